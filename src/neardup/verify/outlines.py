"""Set the outlines of two pages side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

from neardup.features.common_lines import common_lines
from neardup.features.outline import Line, outline


class Pair(NamedTuple):
    """Lines that stand side by side: of one label, as deep or not, or one of them alone."""

    left: Line | None
    right: Line | None

    @property
    def shared(self) -> bool:
        """Whether both pages have it."""
        return self.left is not None and self.right is not None and self.left.label == self.right.label


class Outlines(NamedTuple):
    """Two outlines as pairs of lines, and how many elements of each are left out behind them."""

    pairs: list[Pair]
    left_out: tuple[int, int]

    def record(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        sides = [{"left": _record(pair.left), "right": _record(pair.right)} for pair in self.pairs]
        return {"outlines": sides, "left_out": list(self.left_out)}


def align_outlines(left: str, right: str) -> Outlines:
    """Return the outlines of two HTML pages, aligned by their labels.

    Notes
    -----
    A line is shared wherever it stands in the tree: an element put around others is one line more, not a change of all
    inside. So it is with the shingles of start tags, which do not know of depth. How often a line is repeated plays no
    part.
    """
    (first, first_left_out), (second, second_left_out) = outline(left), outline(right)
    pairs: list[Pair] = []
    start = other_start = 0
    shared = common_lines([line.label for line in first], [line.label for line in second])
    for place, other in [*shared, (len(first), len(second))]:
        pairs += [Pair(line, None) for line in first[start:place]]
        pairs += [Pair(None, line) for line in second[other_start:other]]
        pairs += map(Pair, first[place : place + 1], second[other : other + 1])
        start, other_start = place + 1, other + 1
    return Outlines(pairs, (first_left_out, second_left_out))


def _record(line: Line | None) -> dict[str, Any] | None:
    return None if line is None else line._asdict()
