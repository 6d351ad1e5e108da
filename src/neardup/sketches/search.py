"""The search for many queries: block by block on threads, the rows found in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.executor import map_all

if TYPE_CHECKING:
    from neardup.kernels.matches import Found

_BLOCK = 1 << 14  # signatures worked on at once

Values = npt.NDArray[Any]
SearchBlock = Callable[[int, "Found"], int]
"""Searches for the queries of a block from a number on; returns the query that did not fit into the buffers, or their
number."""


class Matches(NamedTuple):
    """Rows found, by query, then the most similar, then row.

    query, row : int64; equal : int64, the hashes or bits that agree.
    """

    query: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    equal: npt.NDArray[np.int64]


def find_in_blocks(queries: Values, prepare: Callable[[Values], SearchBlock], threads: int) -> Matches:
    """Return the results of all queries, in order.

    prepare : returns the search for a block of the queries.
    """

    def find_block(span: tuple[int, int]) -> list[Matches]:
        block = np.array(queries[span[0] : span[1]])  # of one layout, for the compiler
        return _collect(len(block), span[0], prepare(block))

    parts = map_all(list(spans(0, len(queries))), find_block, threads)
    return _in_order([match for part in parts for match in part])


def _collect(num_queries: int, first: int, ask: SearchBlock) -> list[Matches]:
    """Return the results of a block of queries, in buffers that grow as needed."""
    parts = []
    begin, size = 0, 64 + 2 * num_queries
    while begin < num_queries:
        queries, rows, counts = (np.empty(size, np.uint32) for _ in range(3))
        found = kernels.matches.Found(queries, rows, counts, np.zeros(1, np.int64))
        reached = ask(begin, found)
        query, row, equal = (column[: int(found.used[0])].astype(np.int64) for column in found[:3])
        parts.append(Matches(query + first, row, equal))
        if reached == begin:
            size *= 4  # this query alone has more
        begin = reached
    return parts


def spans(first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of rows to work on at once."""
    for start in range(first, stop, _BLOCK):
        yield start, min(start + _BLOCK, stop)


def _in_order(parts: list[Matches]) -> Matches:
    none = Matches(*np.empty((3, 0), np.int64))
    query, row, equal = (np.concatenate(columns) for columns in zip(none, *parts, strict=True))
    order = np.lexsort((row, -equal, query))
    return Matches(query[order], row[order], equal[order])
