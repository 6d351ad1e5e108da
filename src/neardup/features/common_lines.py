"""Find the longest sequence of lines that two outlines have in common."""

from __future__ import annotations

from collections.abc import Hashable, Sequence


def common_lines(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the places of a longest common subsequence, rising in both.

    Returns
    -------
    pairs of a place in `left` and a place in `right`, with the same line.

    Notes
    -----
    Bit-parallel: Hyyrö, Bit-parallel LCS-length computation revisited (2004). A row of the table of lengths is one
    integer, whose bit i is 0 where line i of `left` makes the sequence longer. Time and memory are len(left) *
    len(right) / 64, whatever the lines are; the cubic time of difflib took 5 s for a thousand lines that repeat.
    """
    bits: dict[Hashable, int] = {}
    for position, line in enumerate(left):
        bits[line] = bits.get(line, 0) | 1 << position
    whole = (1 << len(left)) - 1
    row, rows = whole, []
    for line in right:
        matches = row & bits.get(line, 0)
        row = (row + matches | row - matches) & whole
        rows.append(row)
    return _walk_back(rows, len(left))


def _walk_back(rows: list[int], num_left: int) -> list[tuple[int, int]]:
    """Return the pairs from the rows of the table, one for each line of the right side."""
    pairs = []
    position, other = num_left - 1, len(rows) - 1
    while position >= 0 and other >= 0:
        if rows[other] >> position & 1:
            position -= 1
        elif other and not rows[other - 1] >> position & 1:
            other -= 1
        else:
            pairs.append((position, other))
            position, other = position - 1, other - 1
    return pairs[::-1]
