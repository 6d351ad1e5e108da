"""Align the outlines of two pages."""

from __future__ import annotations

from typing import Any, NamedTuple

from neardup.features.common_lines import common_lines
from neardup.features.outline import Line, outline


class Pair(NamedTuple):
    """Two aligned lines with one label, at any depth, or one line alone."""

    left: Line | None
    right: Line | None

    @property
    def shared(self) -> bool:
        """Whether both pages have the line."""
        return self.left is not None and self.right is not None and self.left.label == self.right.label


class Outlines(NamedTuple):
    """Two outlines as pairs of lines, and the number of elements of each that are left out at the end."""

    pairs: list[Pair]
    left_out: tuple[int, int]

    def record(self) -> dict[str, Any]:
        """Return values for JSON."""
        sides = [{"left": _record(pair.left), "right": _record(pair.right)} for pair in self.pairs]
        return {"outlines": sides, "left_out": list(self.left_out)}


def align_outlines(left: str, right: str) -> Outlines:
    """Return the outlines of two HTML pages, aligned by their labels.

    Notes
    -----
    A line is shared at any depth: an element around others adds one line and does not change the lines inside, as with
    the shingles of start tags, which ignore depth. The number of repetitions of a line does not count.
    """
    (first, first_left_out), (second, second_left_out) = outline(left), outline(right)
    pairs: list[Pair] = []
    start = other_start = 0
    shared = common_lines([line.label for line in first], [line.label for line in second])
    for line_index, other_index in [*shared, (len(first), len(second))]:
        pairs += [Pair(line, None) for line in first[start:line_index]]
        pairs += [Pair(None, line) for line in second[other_start:other_index]]
        pairs += map(Pair, first[line_index : line_index + 1], second[other_index : other_index + 1])
        start, other_start = line_index + 1, other_index + 1
    return Outlines(pairs, (first_left_out, second_left_out))


def _record(line: Line | None) -> dict[str, Any] | None:
    return None if line is None else line._asdict()
