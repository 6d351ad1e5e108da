"""An index of MinHash signatures in memory for the k most similar, however similar they are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.errors import SettingError
from neardup.index.id_table import IdsLike
from neardup.index.lsh import AnySignatures
from neardup.index.prefix_trees import PrefixTrees, featured_rows, plant_trees
from neardup.index.row_index import RowIndex, check_num_hashes, open_signatures
from neardup.index.row_store import RowStore, SignatureRows, one_row
from neardup.index.search import Matches, SearchBlock, Values, find_in_blocks, no_matches

if TYPE_CHECKING:
    from neardup.kernels.prefix_trees import Trees

_MAX_TREES = 512
_CANDIDATES_A_TREE = 4


class LSHForest(RowIndex):
    """An index in memory that finds the k signatures most similar to a query, without a threshold: an LSH Forest.

    Parameters
    ----------
    num_trees : prefix trees; each is of num_hashes // num_trees hashes. More find more of the less similar.
    num_hashes : the length of the signatures; when unset, that of the first added.
    scheme : how the signatures were made; when unset, that of the first `Signatures` added.
    threads : of `query_many`, and to make trees; all processors of this process when unset.

    Raises
    ------
    SettingError
        If num_trees is not from 1 to 512.

    Notes
    -----
    Bawa, Condie and Ganesan, LSH Forest, WWW 2005: all trees are climbed together from the longest common prefix up,
    until k + 4 x num_trees candidates are found, or none is left that shares a first value. Candidates of one level are
    taken all or none, so that the answer does not depend on the order of adding. They are ranked by estimated Jaccard
    similarity, with a standard deviation of sqrt(s (1 - s) / num_hashes). A set without features, whose signature is
    all ones, is similar to nothing.

    Trees are sorted rows. What is added is scanned at first, and sorted when that is cheaper; nothing has to be called.
    Memory: 4 x num_hashes + 8 x num_trees bytes a signature, and 24 for an integer id: about 600 with 128 hashes. Not
    for use by several threads at once.

    Examples
    --------
    >>> import numpy as np
    >>> forest = LSHForest(num_trees=2)
    >>> forest.add_many(["a", "b", "c"], np.array([[1, 2, 3, 4], [1, 2, 7, 8], [9, 9, 3, 9]], np.uint32))
    >>> forest.query(np.array([1, 2, 3, 5], np.uint32), k=2)
    [('a', 0.75), ('b', 0.5)]
    """

    def __init__(
        self,
        num_trees: int = 8,
        *,
        num_hashes: int | None = None,
        scheme: Mapping[str, Any] | None = None,
        threads: int | None = None,
    ) -> None:
        if isinstance(num_trees, bool) or not isinstance(num_trees, int) or not 1 <= num_trees <= _MAX_TREES:
            raise SettingError(
                f"num_trees must be a whole number from 1 to {_MAX_TREES}: got {num_trees!r}. Change num_trees."
            )
        check_num_hashes(num_hashes)
        self.num_trees = num_trees
        super().__init__(SignatureRows(num_hashes, num_trees, scheme), threads)

    def _new_searcher(self) -> PrefixTrees:
        return PrefixTrees(self._plant)

    def _settings(self) -> dict[str, Any]:
        return {"num_trees": self.num_trees, "num_hashes": self.num_hashes}

    @property
    def num_hashes(self) -> int | None:
        """The length of the signatures, None until it is known."""
        return self._store.width

    def __repr__(self) -> str:
        """Return the settings and the number of signatures."""
        return f"LSHForest(num_trees={self.num_trees}, {len(self):,} signatures)"

    def add(self, id: str | int, signature: AnySignatures) -> None:
        """Add a signature: an array of num_hashes, or Signatures of one. Raises as `add_many` does."""
        self._add([id], one_row(signature))

    def add_many(self, ids: IdsLike, signatures: AnySignatures) -> None:
        """Add signatures, all or none; as `LSHIndex.add_many`.

        Parameters
        ----------
        ids : strings, or integers below 2^63: a list, a NumPy or an Arrow array.
        signatures : Signatures, or a uint32 array of shape (n, num_hashes), taken to be of the index's scheme.
        """
        self._add(ids, signatures)

    def query(self, signature: AnySignatures, k: int = 10) -> list[tuple[str | int, float]]:
        """Return (id, similarity) of at most k, the most similar first; at equal similarity, those added earlier.

        There is no threshold: the k most similar are returned, however little similar they are; fewer if fewer share
        the first value of a tree with it.
        """
        found = self._find(one_row(signature), k)
        return self._hits(found.row, found.equal / (self.num_hashes or 1))

    def query_many(self, signatures: AnySignatures, k: int = 10) -> pa.Table:
        """Return the k that are most similar to each of many signatures: what `query` returns for each.

        Parameters
        ----------
        signatures : as for `add_many`.
        k : how many.

        Returns
        -------
        pyarrow.Table
            Columns `query` (int64, the position of the query), `id` (int64 or string), `similarity` (float64), by
            query, then the most similar, then as they were added.
        """
        found = self._find(signatures, k)
        return self._table(found.query, found.row, similarity=found.equal / (self.num_hashes or 1))

    def merge(self, other: LSHForest) -> None:
        """Add all signatures of another forest, whatever its trees. Raises as `add_many` does."""
        self._merge(other)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, threads: int | None = None) -> LSHForest:
        """Return a forest of the signatures in a file: of a forest, of `Signatures.save`, or of `neardup sign`.

        Parameters
        ----------
        path : a Parquet file with columns `id` and `signature`.
        threads : as for `LSHForest`.

        Raises
        ------
        InputError
            If the file cannot be read, or is none of these.
        """
        return open_signatures(path, cls, lambda settings, scheme: cls(**settings, scheme=scheme, threads=threads))

    def _plant(self, store: RowStore) -> Trees:
        depth = store.values.shape[1] // self.num_trees
        rows = featured_rows(store)
        starts = [tree * depth for tree in range(self.num_trees)]
        return plant_trees(store.values, rows, [0, len(rows)], starts, depth, self._threads)

    def _find(self, signatures: AnySignatures, k: int) -> Matches:
        if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
            raise SettingError(f"k must be a whole number above 0: got {k!r}. Change k.")
        values = self._store.to_values(signatures)
        if not len(self) or not len(values):
            return no_matches()
        trees, tail = self._searcher.up_to_date(self._store, len(values))
        stored, wanted = self._store.stored(), int(k) + _CANDIDATES_A_TREE * self.num_trees

        def prepare(block: Values, first: int) -> SearchBlock:
            return lambda begin, found: int(
                kernels.prefix_trees.find_longest(block, begin, stored, trees, tail, wanted, found)
            )

        found = find_in_blocks(values, prepare, self._threads)
        firsts = np.flatnonzero(np.diff(found.query, prepend=-1))
        rank = np.arange(len(found.query)) - np.repeat(firsts, np.diff(firsts, append=len(found.query)))
        return Matches(*(column[rank < k] for column in found))
