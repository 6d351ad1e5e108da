"""An index of MinHash signatures in memory for the sets that contain a query: LSH Ensemble."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import kernels
from neardup.candidates.bands import Bands, candidate_probability
from neardup.errors import InputError, SettingError
from neardup.fingerprints.signatures import Signatures
from neardup.index.id_table import IdsLike
from neardup.index.lsh import AnySignatures
from neardup.index.prefix_trees import PrefixTrees, featured_rows, plant_trees
from neardup.index.row_index import RowIndex, check_num_hashes, least_equal, open_signatures
from neardup.index.row_store import RowStore, SignatureRows, one_row
from neardup.index.search import Matches, SearchBlock, Values, find_in_blocks, no_matches
from neardup.settings.methods import MinHash

if TYPE_CHECKING:
    from neardup.kernels.prefix_trees import Trees

_DEPTH = 8  # the most rows a band
_MAX_PARTITIONS = 1024

Sizes: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]]


class LSHEnsemble(RowIndex):
    """An index in memory that finds the sets that contain most of a query set, however much larger they are.

    Parameters
    ----------
    threshold : the minimum containment |Q ∩ X| / |Q| that is searched for.
    recall : the share of sets just at the threshold that are to be found; where a set is so much larger than the query
        that no bands reach it, as many as can be. `plan` estimates how many.
    num_partitions : by size, of about as many sets each. More fit the bands better to the sizes, and take longer.
    num_hashes : the length of the signatures; when unset, that of the first added.
    scheme : how the signatures were made; when unset, that of the first `Signatures` added.
    threads : of `query_many`, and to make trees; all processors of this process when unset.

    Raises
    ------
    SettingError
        If a value is out of its limits.

    Notes
    -----
    Zhu, Nargesian, Pu and Miller, LSH Ensemble: Internet-scale domain search, VLDB 2016. A set of size x that contains
    a share t of a query of size q has a Jaccard similarity of t / (x / q + 1 - t) with it (equation 6), least for the
    largest set of a partition, which decides the bands of the partition: up to 8 rows, in prefix trees from every place
    of the signature. Not as in the paper, the bands are those of most rows, and fewest, that reach the recall, instead
    of those with the least sum of expected errors. Sets smaller than threshold x q cannot contain enough and are left
    out. Containment is estimated from the Jaccard similarity s and the sizes, as s (q + x) / (q (1 + s)): roughly,
    where x is many times q.

    Memory: 12 x num_hashes bytes a set, and 32 for an integer id and the size: about 1,600 with 128 hashes. Not for use
    by several threads at once.

    Examples
    --------
    >>> import numpy as np
    >>> ensemble = LSHEnsemble(threshold=0.6)
    >>> ensemble.add("large", np.array([1, 2, 3, 4], np.uint32), size=20)
    >>> ensemble.query(np.array([1, 2, 9, 9], np.uint32), size=16)
    [('large', 0.75)]
    """

    def __init__(
        self,
        threshold: float = 0.8,
        recall: float = 0.99,
        *,
        num_partitions: int = 16,
        num_hashes: int | None = None,
        scheme: Mapping[str, Any] | None = None,
        threads: int | None = None,
    ) -> None:
        MinHash(threshold=threshold, recall=recall)  # checks both
        whole = isinstance(num_partitions, int) and not isinstance(num_partitions, bool)
        if not whole or not 1 <= num_partitions <= _MAX_PARTITIONS:
            raise SettingError(
                f"num_partitions must be a whole number from 1 to {_MAX_PARTITIONS}: got {num_partitions!r}. Change "
                "num_partitions."
            )
        self.threshold, self.recall, self.num_partitions = threshold, recall, num_partitions
        check_num_hashes(num_hashes)
        self._largest = np.zeros(0, np.int64)  # the largest set of each partition, once trees are made
        super().__init__(SignatureRows(num_hashes, 1, scheme, sized=True), threads)

    def _new_searcher(self) -> PrefixTrees:
        return PrefixTrees(self._plant)

    def _settings(self) -> dict[str, Any]:
        settings = {"threshold": self.threshold, "recall": self.recall, "num_partitions": self.num_partitions}
        return {**settings, "num_hashes": self.num_hashes}

    @property
    def num_hashes(self) -> int | None:
        """The length of the signatures, None until it is known."""
        return self._store.width

    def __repr__(self) -> str:
        """Return the settings and the number of sets."""
        return f"LSHEnsemble(threshold={self.threshold}, num_partitions={self.num_partitions}, {len(self):,} sets)"

    def add(self, id: str | int, signature: AnySignatures, size: int | None = None) -> None:
        """Add a set: its signature, and how many features it has. Raises as `add_many` does."""
        self.add_many([id], one_row(signature), None if size is None else [size])

    def add_many(self, ids: IdsLike, signatures: AnySignatures, sizes: Sizes | None = None) -> None:
        """Add sets, all or none.

        Parameters
        ----------
        ids : strings, or integers below 2^63: a list, a NumPy or an Arrow array.
        signatures : Signatures, or a uint32 array of shape (n, num_hashes), taken to be of the index's scheme.
        sizes : integers, how many features each set has, repeats not counted; 0 for an empty set. When None, as
            `Signatures.cardinality` estimates them.

        Raises
        ------
        InputError
            If an id is there already or twice, or is not of the kind of the others; if the three differ in length.
        SchemeError
            If the signatures are of another scheme, seed or length; both are named.
        """
        self._add(ids, signatures, self._to_sizes(signatures, sizes))

    def query(
        self, signature: AnySignatures, size: int | None = None, *, min_containment: float | None = None
    ) -> list[tuple[str | int, float]]:
        """Return (id, containment) of the sets that contain enough of the query, as estimated, the most first.

        Parameters
        ----------
        signature : an array of num_hashes, or Signatures of one.
        size : how many features the query has, repeats not counted; when None, as the signature estimates it.
        min_containment : the least estimated containment that is returned; the threshold when None; 0.0 for all that
            share a band and are large enough.
        """
        found, containment = self._find(one_row(signature), None if size is None else [size], min_containment)
        return self._hits(found.row, containment)

    def query_many(
        self, signatures: AnySignatures, sizes: Sizes | None = None, *, min_containment: float | None = None
    ) -> pa.Table:
        """Return the sets that contain enough of each of many queries: what `query` returns for each.

        Parameters
        ----------
        signatures : as for `add_many`.
        sizes : as for `add_many`.
        min_containment : as for `query`.

        Returns
        -------
        pyarrow.Table
            Columns `query` (int64, the position of the query), `id` (int64 or string), `containment` (float64,
            estimated), by query, then the most contained, then as they were added.
        """
        found, containment = self._find(signatures, sizes, min_containment)
        return self._table(found.query, found.row, containment=containment)

    def merge(self, other: LSHEnsemble) -> None:
        """Add all sets of another ensemble, whatever its settings. Raises as `add_many` does."""
        self._merge(other)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, threads: int | None = None) -> LSHEnsemble:
        """Return the ensemble that was saved. Raises InputError if the file is not one.

        Parameters
        ----------
        path : a file that `save` wrote.
        threads : as for `LSHEnsemble`.
        """
        return open_signatures(path, cls, lambda settings, scheme: cls(**settings, scheme=scheme, threads=threads))

    def plan(self, size: int) -> pa.Table:
        """Return how each partition is searched for a query.

        Parameters
        ----------
        size : how many features the query has.

        Returns
        -------
        pyarrow.Table
            A row for each partition, the smallest sets first, then one for those added since the trees were made, if
            any: `largest_size`; `num_bands` and `rows_per_band`, 0 where no set is large enough; `recall` (float64),
            the share of its largest sets that is found, if just at the threshold, null without bands. Smaller sets are
            found more often.
        """
        q = _check_sizes([size], 1)
        _, tail = self._searcher.up_to_date(self._store, 1)
        largest = self._largest_sets(tail)
        bands = self._choose_bands(q, largest)[0]
        pairs = zip(self._least(q, largest)[0], bands.tolist(), strict=True)
        recall = [float(candidate_probability(least, Bands(*pair))) if pair[0] else None for least, pair in pairs]
        table = {"largest_size": largest, "num_bands": bands[:, 0], "rows_per_band": bands[:, 1], "recall": recall}
        return pa.table(table).slice(0, len(largest) - (tail[0] == tail[1]))

    def _plant(self, store: RowStore) -> Trees:
        assert store.sizes is not None
        rows = featured_rows(store)
        rows = rows[np.argsort(store.sizes[rows], kind="stable")]
        edges = np.linspace(0, len(rows), min(self.num_partitions, max(1, len(rows))) + 1).astype(int)
        self._largest = store.sizes[rows[edges[1:] - 1]] if len(rows) else np.zeros(1, np.int64)
        starts = list(range(store.values.shape[1]))
        return plant_trees(store.values, rows, edges.tolist(), starts, _DEPTH, self._threads)

    def _find(
        self, signatures: AnySignatures, sizes: Sizes | None, min_containment: float | None
    ) -> tuple[Matches, npt.NDArray[np.float64]]:
        store, least = self._store, self.threshold if min_containment is None else min_containment
        least_equal(least, 1, "min_containment")  # checks it
        values = store.to_values(signatures)
        query_sizes = self._to_sizes(signatures, sizes)
        if not len(self) or not len(values) or store.sizes is None:
            return no_matches(), np.zeros(0)
        trees, tail = self._searcher.up_to_date(store, len(values))
        largest, stored = self._largest_sets(tail), store.stored()

        def prepare(block: Values, first: int) -> SearchBlock:
            bands = self._choose_bands(query_sizes[first : first + len(block)], largest)
            return lambda begin, found: int(
                kernels.prefix_trees.find_bands(block, begin, stored, trees, tail, bands, found)
            )

        found = find_in_blocks(values, prepare, self._threads)
        q, x = np.maximum(query_sizes[found.query], 1), store.sizes[found.row]
        similarity = found.equal / (self.num_hashes or 1)
        containment = np.minimum(similarity * (q + x) / (q * (1 + similarity)), np.minimum(1.0, x / q))
        order = np.lexsort((found.row, -containment, found.query))
        order = order[((x / q >= self.threshold) & (containment >= least))[order]]
        return Matches(*(column[order] for column in found)), containment[order]

    def _to_sizes(self, signatures: AnySignatures, sizes: Sizes | None) -> npt.NDArray[np.int64]:
        """Return the sizes of sets, as given or as estimated from their signatures."""
        values = self._store.to_values(signatures)
        if sizes is not None:
            return _check_sizes(sizes, len(values))
        sets = signatures if isinstance(signatures, Signatures) else Signatures(values, self.scheme or {})
        return np.rint(sets.cardinality()).astype(np.int64)

    def _largest_sets(self, tail: tuple[int, int]) -> npt.NDArray[np.int64]:
        """Return the size of the largest set of each partition, that of the tail last."""
        assert self._store.sizes is not None
        return np.append(self._largest, self._store.sizes[tail[0] : tail[1]].max(initial=0))

    def _least(self, sizes: npt.NDArray[np.int64], largest: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Return the least Jaccard similarity that a set of a partition has if it contains enough of a query."""
        ratio, threshold = largest[None, :] / np.maximum(sizes, 1)[:, None], self.threshold
        return np.minimum(threshold / (np.maximum(ratio, threshold) + 1 - threshold), 1.0)

    def _choose_bands(self, sizes: npt.NDArray[np.int64], largest: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return the bands and rows for queries of some sizes in each partition, (num_queries, num_partitions, 2)."""
        num_hashes, similarity = self.num_hashes or 1, self._least(sizes, largest)
        chosen = np.empty((*similarity.shape, 2), np.int64)
        chosen[:] = num_hashes, 1
        for rows in range(1, min(_DEPTH, num_hashes) + 1):
            most = Bands(num_hashes // rows, rows)
            with np.errstate(divide="ignore"):
                needed = np.ceil(np.log1p(-self.recall) / np.log1p(-(similarity**rows)) - 1e-9)
            reaches = needed <= most.num_bands
            chosen[reaches, 0], chosen[reaches, 1] = np.maximum(needed[reaches], 1), rows
        chosen[largest[None, :] / np.maximum(sizes, 1)[:, None] < self.threshold] = 0
        return chosen


def _check_sizes(sizes: Sizes, length: int) -> npt.NDArray[np.int64]:
    """Return sizes as int64, or raise InputError."""
    given = np.asarray(sizes)
    if length == 0 and given.size == 0:
        return np.zeros(0, np.int64)
    if given.shape != (length,) or given.dtype.kind not in "iu" or int(given.min()) < 0:
        raise InputError(
            f"Sizes are integers of 0 or more, one for each signature: got {np.array2string(given, threshold=6)} for "
            f"{length} signatures. Count the distinct features of each set."
        )
    return given.astype(np.int64)
