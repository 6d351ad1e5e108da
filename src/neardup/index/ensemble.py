"""An index of MinHash signatures in memory for the sets that contain a query: LSH Ensemble."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.candidates.bands import Bands, candidate_probability
from neardup.errors import InputError, SettingError
from neardup.index.ids import Given, grow
from neardup.index.matches import Matches, Values, collect, find_in_blocks
from neardup.index.prefix_trees import TreeIndex, featured_rows, plant_trees
from neardup.index.signature_files import Rows
from neardup.index.signature_rows import AnySignatures
from neardup.settings.methods import MinHash

if TYPE_CHECKING:
    from neardup.kernels.band_tables import Found
    from neardup.kernels.prefix_trees import Trees

_DEPTH = 8  # the most rows a band
_MAX_PARTITIONS = 1024

Sizes: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]]


class LSHEnsemble(TreeIndex):
    """An index in memory that finds the sets that contain most of a query set, however much larger they are.

    Parameters
    ----------
    threshold : the least containment |Q ∩ X| / |Q| that is searched for.
    recall : the share of sets just at the threshold that are to be found; where a set is so much larger than the query
        that no bands reach it, as many as can be. `plan` says how many.
    num_partitions : by size, of about as many sets each. More fit the bands better to the sizes, and take longer.
    num_hashes : the length of the signatures; when unset, that of the first added.
    scheme : what the signatures were made with; when unset, that of the first `Signatures` added.
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
        super().__init__(num_hashes, 1, scheme, threads)

    def _clear(self) -> None:
        super()._clear()
        self._sizes = np.zeros(0, np.int64)
        self._largest = np.zeros(0, np.int64)  # the largest set of each partition

    def __repr__(self) -> str:
        """Say what it holds."""
        return f"LSHEnsemble(threshold={self.threshold}, num_partitions={self.num_partitions}, {len(self):,} sets)"

    def add(self, id: str | int, signature: AnySignatures, size: int) -> None:
        """Add a set: its signature, and how many features it has. Raises as `add_many` does."""
        self._append_sized([id], self._one(signature), [size])

    def add_many(self, ids: Given, signatures: AnySignatures, sizes: Sizes) -> None:
        """Add sets, all or none.

        Parameters
        ----------
        ids : strings, or integers below 2^63: a list, a NumPy or an Arrow array.
        signatures : Signatures, or a uint32 array of shape (n, num_hashes), taken to be of the index's scheme.
        sizes : integers, how many features each set has, repeats not counted; 0 for an empty set.

        Raises
        ------
        InputError
            If an id is there already or twice, or is not of the kind of the others; if the three differ in length.
        SchemeError
            If the signatures are of another scheme, seed or length; both are named.
        """
        self._append_sized(ids, signatures, sizes)

    def query(self, signature: AnySignatures, size: int) -> list[tuple[str | int, float]]:
        """Return (id, containment) of sets that seem to contain enough of the query, the most first.

        Parameters
        ----------
        signature : an array of num_hashes, or Signatures of one.
        size : how many features the query has, repeats not counted.
        """
        found, containment = self._find(self._one(signature), [size])
        ids: list[str | int] = self._ids.take(found.row).to_pylist()
        return list(zip(ids, containment.tolist(), strict=True))

    def query_many(self, signatures: AnySignatures, sizes: Sizes) -> pa.Table:
        """Return the sets that seem to contain enough of each of many queries.

        Parameters
        ----------
        signatures : as for `add_many`.
        sizes : as for `add_many`.

        Returns
        -------
        pyarrow.Table
            Columns `query` (int64, which of those given), `id` (int64 or string), `containment` (float64, estimated),
            by query, then the most contained, then as they were added.
        """
        found, containment = self._find(signatures, sizes)
        return pa.table({"query": found.query, "id": self._ids.take(found.row), "containment": containment})

    def merge(self, other: LSHEnsemble) -> None:
        """Add all sets of another ensemble, whatever its settings. Raises as `add_many` does."""
        self._merge(other)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write ids, signatures and sizes to a Parquet file, the scheme and the settings in its metadata."""
        settings = {"threshold": self.threshold, "recall": self.recall, "num_partitions": self.num_partitions}
        self._save(path, settings, overwrite=overwrite)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, threads: int | None = None) -> LSHEnsemble:
        """Return the ensemble that was saved. Raises InputError if the file is not one.

        Parameters
        ----------
        path : a file that `save` wrote.
        threads : as for `LSHEnsemble`.
        """
        return cls._open(path, threads)

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
        q = _to_sizes([size], 1)
        _, tail = self._up_to_date(1)
        largest = self._largest_sets(tail)
        bands = self._choose_bands(q, largest)[0]
        pairs = zip(self._least(q, largest)[0], bands.tolist(), strict=True)
        recall = [float(candidate_probability(least, Bands(*pair))) if pair[0] else None for least, pair in pairs]
        table = {"largest_size": largest, "num_bands": bands[:, 0], "rows_per_band": bands[:, 1], "recall": recall}
        return pa.table(table).slice(0, len(largest) - (tail[0] == tail[1]))

    def _append_sized(self, ids: Given, signatures: AnySignatures, sizes: Sizes) -> None:
        given, first = _to_sizes(sizes, len(self._to_values(signatures))), self._ids.num_rows
        self._append(ids, signatures)
        self._sizes = grow(self._sizes, self._ids.num_rows)
        self._sizes[first : self._ids.num_rows] = given

    def _append_rows(self, rows: Rows) -> None:
        self._append_sized(rows.ids, rows.values, rows.sizes if rows.sizes is not None else [])

    def _alive(self) -> Rows:
        return super()._alive()._replace(sizes=self._sizes[self._alive_rows()])

    def _plant(self) -> Trees:
        stop = self._ids.num_rows
        rows = featured_rows(self._values[:stop], self._ids.alive[:stop])
        rows = rows[np.argsort(self._sizes[rows], kind="stable")]
        edges = np.linspace(0, len(rows), min(self.num_partitions, max(1, len(rows))) + 1).astype(int)
        self._largest = self._sizes[rows[edges[1:] - 1]] if len(rows) else np.zeros(1, np.int64)
        starts = list(range(self._values.shape[1]))
        return plant_trees(self._values, rows, edges.tolist(), starts, _DEPTH, self._threads)

    def _find(self, signatures: AnySignatures, sizes: Sizes) -> tuple[Matches, npt.NDArray[np.float64]]:
        from neardup.kernels.prefix_trees import find_bands

        values = self._to_values(signatures)
        asked = _to_sizes(sizes, len(values))
        if not len(self) or not len(values):
            return Matches(*(np.zeros(0, np.int64) for _ in range(3))), np.zeros(0)
        (trees, tail), stored = self._up_to_date(len(values)), self._stored()
        largest = self._largest_sets(tail)

        def find(block: Values, first: int) -> list[Matches]:
            bands = self._choose_bands(asked[first : first + len(block)], largest)

            def ask(begin: int, found: Found) -> int:
                return int(find_bands(block, begin, stored, trees, tail, bands, found))

            return collect(len(block), first, ask)

        found = find_in_blocks(values, find, self._threads)
        q, x = np.maximum(asked[found.query], 1), self._sizes[found.row]
        similarity = found.equal / (self.num_hashes or 1)
        containment = np.minimum(similarity * (q + x) / (q * (1 + similarity)), np.minimum(1.0, x / q))
        order = np.lexsort((found.row, -containment, found.query))
        order = order[(x / q >= self.threshold)[order]]
        return Matches(*(column[order] for column in found)), containment[order]

    def _largest_sets(self, tail: tuple[int, int]) -> npt.NDArray[np.int64]:
        """Return the size of the largest set of each partition, that of the tail last."""
        return np.append(self._largest, self._sizes[tail[0] : tail[1]].max(initial=0))

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


def _to_sizes(sizes: Sizes, length: int) -> npt.NDArray[np.int64]:
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
