"""The order in which documents pass the sieve, by sorting with plain keys."""

from __future__ import annotations

from collections.abc import Sequence


def order(
    keep: str,
    texts: Sequence[str | None],
    ranks: Sequence[float | None] | None = None,
    num_against: int = 0,
) -> list[int]:
    """Return the documents by priority; those of the earlier corpus first, equal ones as they were
    read.
    """
    new = list(range(num_against, len(texts)))
    sizes = [len((text or "").encode()) for text in texts]
    values = [float("nan") if value is None else value for value in ranks or []]
    if keep == "last":
        new.reverse()
    elif keep == "longest":
        new.sort(key=lambda number: -sizes[number])
    elif keep == "shortest":
        new.sort(key=lambda number: sizes[number])
    elif keep != "first":
        sign = -1 if keep.startswith("max:") else 1
        known = sorted(
            (n for n in new if values[n] == values[n]), key=lambda number: sign * values[number]
        )
        new = known + [number for number in new if values[number] != values[number]]
    return [*range(num_against), *new]
