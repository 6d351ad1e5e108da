"""What queries of signatures find: collected block by block, in the order in which it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from neardup.kernels.band_tables import Found

_BLOCK = 1 << 14  # signatures worked on at once
_FEW = 256  # that no second thread is woken for
_EMPTY = np.uint32(0xFFFFFFFF)

Values = npt.NDArray[np.uint32]


class Matches(NamedTuple):
    """Rows found, by query, then the most alike, then row. query, row : int64; equal : int64, places that agree."""

    query: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    equal: npt.NDArray[np.int64]


def find_in_blocks(queries: Values, find: Callable[[Values, int], list[Matches]], threads: int) -> Matches:
    """Return what is found for all queries, in order; `find` is given some of them and the number of the first."""
    blocks = list(spans(0, len(queries)))

    def find_block(span: tuple[int, int]) -> list[Matches]:
        return find(np.array(queries[span[0] : span[1]]), span[0])  # of one layout, for the compiler

    if threads > 1 and len(queries) > _FEW:
        with ThreadPoolExecutor(threads) as pool:
            parts = list(pool.map(find_block, blocks))
    else:
        parts = [find_block(span) for span in blocks]
    return _in_order([part for found in parts for part in found])


def collect(num_queries: int, first: int, ask: Callable[[int, Found], int]) -> list[Matches]:
    """Return what a kernel finds for some queries, whose numbers begin with `first`.

    ask : takes the query to go on with and where to put what is found; returns the query that there was no room for,
    or the number of queries.
    """
    from neardup.kernels.band_tables import Found

    parts = []
    begin, room = 0, 64 + 2 * num_queries
    while begin < num_queries:
        numbers, rows, places = (np.empty(room, np.uint32) for _ in range(3))
        found = Found(numbers, rows, places, np.zeros(1, np.int64))
        reached = ask(begin, found)
        query, row, equal = (column[: int(found.used[0])].astype(np.int64) for column in found[:3])
        parts.append(Matches(query + first, row, equal))
        if reached == begin:
            room *= 4  # one query alone has more
        begin = reached
    return parts


def spans(first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield stretches of rows to work on at once."""
    for start in range(first, stop, _BLOCK):
        yield start, min(start + _BLOCK, stop)


def has_features(values: Values) -> npt.NDArray[np.bool_]:
    """Return False for each signature that is all ones, as that of an empty set is; bool (num_signatures,)."""
    featured: npt.NDArray[np.bool_] = values[:, 0] != _EMPTY
    if not featured.all():
        doubtful = np.flatnonzero(~featured)
        featured[doubtful] = (values[doubtful] != _EMPTY).any(axis=1)
    return featured


def _in_order(parts: list[Matches]) -> Matches:
    if not parts:
        return Matches(*(np.empty(0, np.int64) for _ in range(3)))
    query, row, equal = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((row, -equal, query))
    return Matches(query[order], row[order], equal[order])
