"""Prefix trees over signatures, as sorted rows; rows added since are scanned until it pays to sort again."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.executor import map_all
from neardup.fingerprints.signatures import is_empty
from neardup.index.row_store import RowStore
from neardup.index.search import Values

if TYPE_CHECKING:
    from neardup.kernels.prefix_trees import Trees

_SORT_COST = 3  # to sort a row into a tree, in rows that are scanned


class PrefixTrees:
    """Rows sorted into trees, and a tail of rows that queries scan.

    The trees are made anew once the queries since have scanned as much as that costs: to ask after every add, or to
    add all and then ask, takes at most twice the time of the better choice, and nothing has to be called.

    plant : returns trees of all rows of a store.
    """

    def __init__(self, plant: Callable[[RowStore], Trees]) -> None:
        self._plant = plant
        self.num_sorted = self._num_scanned = 0
        self.trees: Trees | None = None

    def add(self, store: RowStore, first: int) -> None:
        """Do nothing: new rows are in the tail."""

    def up_to_date(self, store: RowStore, num_queries: int) -> tuple[Trees, tuple[int, int]]:
        """Return the trees to ask so many queries of, and the rows to scan beside them."""
        stop = store.num_rows
        self._num_scanned += (stop - self.num_sorted) * num_queries
        if self.trees is None or self._num_scanned > _SORT_COST * len(self.trees.starts) * stop:
            self.trees = self._plant(store)
            self.num_sorted, self._num_scanned = stop, 0
        return self.trees, (self.num_sorted, stop)


def plant_trees(
    values: Values, rows: npt.NDArray[np.int64], edges: list[int], starts: list[int], depth: int, threads: int
) -> Trees:
    """Return prefix trees of some rows.

    Parameters
    ----------
    values : uint32 (num_rows, num_hashes).
    rows : those that are entered, part by part.
    edges : where each part begins in `rows`, and the end.
    starts : the first hash of the range of a signature that each tree sorts by.
    depth : the length of a range; it ends with the signature.
    threads : that work at once.
    """
    sorted_rows = np.empty((len(starts), len(rows)), np.uint32)
    heads = np.empty_like(sorted_rows)

    def plant(tree: int) -> None:
        first_values = values[rows, starts[tree]]
        for start, stop in pairwise(edges):
            part = slice(start, stop)
            ordered = _sort(values, rows[part], first_values[part], starts[tree], depth)
            sorted_rows[tree, part], heads[tree, part] = ordered

    map_all(range(len(starts)), plant, threads)
    return kernels.prefix_trees.Trees(np.array(starts, np.int64), depth, np.array(edges, np.int64), sorted_rows, heads)


def _sort(
    values: Values, rows: npt.NDArray[np.int64], firsts: Values, start: int, depth: int
) -> tuple[npt.NDArray[np.uint32], Values]:
    """Return rows in the order of a range of their signatures, and the first value of each."""
    packed = firsts.astype(np.uint64) << np.uint64(32) | np.arange(len(rows), dtype=np.uint64)
    packed.sort()
    order = (packed & np.uint64(0xFFFFFFFF)).astype(np.int64)
    ordered, heads = rows[order].astype(np.uint32), (packed >> np.uint64(32)).astype(np.uint32)
    kernels.prefix_trees.sort_runs(ordered, heads, values, start + 1, min(start + depth, values.shape[1]))
    return ordered, heads


def featured_rows(store: RowStore) -> npt.NDArray[np.int64]:
    """Return the rows of a store that were not removed and have features."""
    rows = store.alive_rows()
    return rows[~is_empty(store.values[: store.num_rows])[rows]]
