"""Prefix trees over signatures, as sorted rows; what was added lately is scanned until it pays to sort again."""

from __future__ import annotations

from abc import abstractmethod
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neardup.index.matches import Values, has_features
from neardup.index.signature_rows import SignatureIndex

if TYPE_CHECKING:
    from neardup.kernels.prefix_trees import Trees

_SORT_COST = 3  # to sort a row into a tree, in rows that are scanned


class TreeIndex(SignatureIndex):
    """Base of the indexes that search in prefix trees: rows in trees, and a tail that is scanned.

    The trees are made anew once the queries since have scanned as much as that costs: to ask after every add, or to
    add all and then ask, takes at most twice the time of the better choice, and nothing has to be called.
    """

    def _clear(self) -> None:
        super()._clear()
        self._num_sorted = self._num_scanned = 0
        self._trees: Trees | None = None

    def _enter(self, first: int) -> None:
        pass  # they are in the tail

    @abstractmethod
    def _plant(self) -> Trees:
        """Return trees of all rows."""

    def _up_to_date(self, num_queries: int) -> tuple[Trees, tuple[int, int]]:
        """Return the trees to ask so many queries of, and the rows to scan beside them."""
        stop = self._ids.num_rows
        self._num_scanned += (stop - self._num_sorted) * num_queries
        if self._trees is None or self._num_scanned > _SORT_COST * len(self._trees.starts) * stop:
            self._trees = self._plant()
            self._num_sorted, self._num_scanned = stop, 0
        return self._trees, (self._num_sorted, stop)


def plant_trees(
    values: Values, rows: npt.NDArray[np.int64], edges: list[int], starts: list[int], depth: int, threads: int
) -> Trees:
    """Return prefix trees of some rows.

    Parameters
    ----------
    values : uint32 (num_rows, num_hashes).
    rows : those that are entered, part by part.
    edges : where each part begins in `rows`, and the end.
    starts : the first place of the stretch of a signature that each tree sorts by.
    depth : the length of a stretch; it ends with the signature.
    threads : that work at once.
    """
    from neardup.kernels.prefix_trees import Trees

    sorted_rows = np.empty((len(starts), len(rows)), np.uint32)
    heads = np.empty_like(sorted_rows)

    def plant(tree: int) -> None:
        first_values = values[rows, starts[tree]]
        for start, stop in pairwise(edges):
            part = slice(start, stop)
            own = _sort(values, rows[part], first_values[part], starts[tree], depth)
            sorted_rows[tree, part], heads[tree, part] = own

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(plant, range(len(starts))))
    return Trees(np.array(starts, np.int64), depth, np.array(edges, np.int64), sorted_rows, heads)


def _sort(
    values: Values, rows: npt.NDArray[np.int64], firsts: Values, start: int, depth: int
) -> tuple[npt.NDArray[np.uint32], Values]:
    """Return rows in the order of a stretch of their signatures, and the first value of each."""
    from neardup.kernels.prefix_trees import sort_runs

    packed = firsts.astype(np.uint64) << np.uint64(32) | np.arange(len(rows), dtype=np.uint64)
    packed.sort()
    order = (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)
    own, heads = rows[order].astype(np.uint32), (packed >> np.uint64(32)).astype(np.uint32)
    sort_runs(own, heads, values, start + 1, min(start + depth, values.shape[1]))
    return own, heads


def featured_rows(values: Values, alive: npt.NDArray[np.uint8]) -> npt.NDArray[np.int64]:
    """Return the rows that are there and have features; values and alive : of as many rows."""
    return np.flatnonzero(alive.astype(bool) & has_features(values))
