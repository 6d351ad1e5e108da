"""Bands of signatures in dictionaries, and similarity one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

EMPTY = 2**32 - 1


def estimate(left: Sequence[int], right: Sequence[int]) -> float:
    """Return the share of places in which two signatures agree."""
    return sum(one == other for one, other in zip(left, right, strict=True)) / len(left)


def shares_band(
    left: Sequence[int], right: Sequence[int], num_bands: int, rows_per_band: int
) -> bool:
    """Return whether two signatures agree in all places of one band."""
    places = [range(band * rows_per_band, (band + 1) * rows_per_band) for band in range(num_bands)]
    return any(all(left[i] == right[i] for i in band) for band in places)


def query(
    stored: Mapping[object, Sequence[int]],
    asked: Sequence[int],
    num_bands: int,
    rows_per_band: int,
    min_similarity: float = 0.0,
) -> list[tuple[object, float]]:
    """Return (id, similarity) of all that share a band, the most alike first, then in the order of
    the dictionary.
    """
    if set(asked) == {EMPTY}:
        return []
    near = [
        (key, estimate(one, asked))
        for key, one in stored.items()
        if set(one) != {EMPTY} and shares_band(one, asked, num_bands, rows_per_band)
    ]
    return sorted((one for one in near if one[1] >= min_similarity), key=lambda one: -one[1])


def found_in(table: pa.Table, num_queries: int) -> list[list[tuple[object, float]]]:
    """Return (id, similarity or distance) for each query, in the order of the rows of an answer."""
    measure = "distance" if "distance" in table.column_names else "similarity"
    result: list[list[tuple[object, float]]] = [[] for _ in range(num_queries)]
    for row in table.to_pylist():
        result[row["query"]].append((row["id"], row[measure]))
    assert table["query"].to_pylist() == sorted(table["query"].to_pylist())
    return result
