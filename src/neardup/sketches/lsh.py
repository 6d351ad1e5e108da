"""An index of MinHash signatures in memory: find similar ones, add and remove."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Array, Uint32s, Words, is_real
from neardup.candidates.bands import Bands, candidate_probability, choose_bands
from neardup.errors import SettingError
from neardup.files import AnyPath, JsonObject
from neardup.fingerprints.signatures import Signatures, is_empty
from neardup.fingerprints.sketches import INDEX_KEY, UNKNOWN, Scheme, read_batches, read_json
from neardup.settings.methods import MinHash, named_as
from neardup.sketches.row_index import Matches, RowIndex, SearchBlock, find_in_blocks, spans
from neardup.sketches.row_store import IdsLike, RowStore, SignatureRows, one_row

AnySignatures: TypeAlias = Signatures | Uint32s
_MIN_SLOTS = 1 << 8


class BandTables:
    """A hash table for each band, from its values to rows; 16 to 24 bytes a row and band."""

    def __init__(self, bands: Bands) -> None:
        self.bands = bands
        shape = (bands.num_bands, _MIN_SLOTS)
        self._tables = kernels.band_tables.Tables(
            slots=np.full(shape, kernels.band_tables.FREE, np.uint64),
            older=np.empty(shape, np.uint32),
        )

    def add(self, store: RowStore, first: int) -> None:
        """Enter the rows of a store from `first` on. A row without features is in no table."""
        self._grow(store.num_rows)
        for start, stop in spans(first, store.num_rows):
            block = store.values[start:stop]
            keys = self._keys_of(block)
            featured = ~is_empty(block)
            kernels.band_tables.enter_rows(
                keys, self.bands.rows_per_band, start, featured, store.values, self._tables
            )

    def find(self, queries: Array, store: RowStore, min_equal: int, threads: int) -> Matches:
        """Return the rows that share a band and at least `min_equal` hashes with each query."""
        stored = store.stored()
        rows_per_band = self.bands.rows_per_band

        def prepare(block: Array) -> SearchBlock:
            keys = self._keys_of(block)
            return lambda begin, found: int(
                kernels.band_tables.find_rows(
                    block, keys, begin, rows_per_band, stored, self._tables, min_equal, found
                )
            )

        found = find_in_blocks(queries, prepare, threads)
        empty = is_empty(queries)
        if not empty.any():
            return found
        # The signature of an empty set may share hashes with another set, once in 2^32.
        return found.take(~empty[found.query])

    def _keys_of(self, block: Array) -> Words:
        keys = np.empty((self.bands.num_bands, len(block)), np.uint64)
        kernels.minhash.band_keys(block, self.bands.rows_per_band, keys)
        return keys

    def _grow(self, num_rows: int) -> None:
        """Grow the tables for all rows, at most two thirds full."""
        num_bands = self.bands.num_bands
        slots, older = self._tables
        old_slots = slots.shape[1]
        needed_slots = 3 * num_rows // 2 + 1
        if needed_slots > old_slots:
            shape = (num_bands, max(needed_slots, 3 * old_slots // 2))
            slots = np.full(shape, kernels.band_tables.FREE, np.uint64)
            kernels.band_tables.move_slots(self._tables.slots, slots)
        old_rows = older.shape[1]
        if num_rows > old_rows:
            older = np.empty((num_bands, max(num_rows, 3 * old_rows // 2)), np.uint32)
            older[:, :old_rows] = self._tables.older
        self._tables = kernels.band_tables.Tables(slots, older)


class LSHIndex(RowIndex[BandTables]):
    """Find the signatures of similar sets, in memory, by locality-sensitive hashing in bands.

    Parameters
    ----------
    method : the threshold, the recall or the bands, and num_hashes, the length of the signatures
        (default: of the first added). Default: `MinHash()`. Of longer signatures the first
        hashes go into bands, and all into estimates.
    threshold : short for `MinHash(threshold=threshold)`.
    scheme : the scheme of the signatures. Default: of the first `Signatures` added.
    threads : the threads of `query_many`. Default: all processors of this process.

    Raises
    ------
    SettingError
        If a value is beyond its limits, the similarity is not jaccard, or no bands of num_hashes
        reach the recall.

    Notes
    -----
    Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4. Similarities are
    estimated from all hashes, with a standard deviation of sqrt(s (1 - s) / num_hashes). An empty
    set is similar to nothing.

    Memory: 4 x num_hashes + (16 to 24) x num_bands bytes a signature, and 24 for an integer id:
    about 750 with 128 hashes and the 12 bands of the default. Removed signatures are skipped until
    they are half of all. Threads can share the index unless one of them adds or removes.

    Examples
    --------
    >>> import numpy as np
    >>> index = LSHIndex(MinHash(threshold=0.5, num_bands=4, rows_per_band=2))
    >>> index.add("first", np.array([1, 2, 3, 4, 5, 6, 7, 8], np.uint32))
    >>> index.query(np.array([1, 2, 3, 4, 5, 0, 0, 0], np.uint32))
    [('first', 0.625)]
    """

    def __init__(
        self,
        method: MinHash | None = None,
        *,
        threshold: float | None = None,
        scheme: Scheme | None = None,
        threads: int | None = None,
    ) -> None:
        if method is not None and threshold is not None:
            raise SettingError(
                f"threshold is part of the method: got threshold={threshold!r} and {method!r:.80}. "
                "Leave one of the two out."
            )
        method = named_as(MinHash, "minhash" if method is None else method, threshold)
        # Signatures do not tell the sizes of the sets, from which other similarities follow.
        if method.similarity != "jaccard":
            raise SettingError(
                "Signatures estimate the Jaccard similarity: got "
                f"similarity={method.similarity!r}. Pass MinHash with the least Jaccard similarity "
                "as threshold."
            )
        if method.num_bands is not None and method.rows_per_band is not None:
            self.bands = Bands(method.num_bands, method.rows_per_band)
        else:
            self.bands = choose_bands(
                method.threshold,
                method.recall,
                num_hashes=method.num_hashes,
                rows_per_band=method.rows_per_band,
            )
        self.method = method
        store = SignatureRows(method.num_hashes, self.bands.num_hashes, scheme)
        super().__init__(store, partial(BandTables, self.bands), threads)

    def _settings(self) -> JsonObject:
        return {"threshold": self.threshold, **self.bands._asdict(), "num_hashes": self.num_hashes}

    @property
    def threshold(self) -> float:
        """The similarity from which sets are similar."""
        return self.method.threshold

    @property
    def recall(self) -> float:
        """The share of pairs just at the threshold that share a band."""
        return float(candidate_probability(self.threshold, self.bands))

    @property
    def num_hashes(self) -> int | None:
        """The length of the signatures; None until it is known."""
        return self._store.width

    def __repr__(self) -> str:
        """Return the settings and the number of signatures."""
        bands = f"num_bands={self.bands.num_bands}, rows_per_band={self.bands.rows_per_band}"
        return f"LSHIndex(threshold={self.threshold}, {bands}, {len(self):,} signatures)"

    def add(self, id: str | int, signature: AnySignatures) -> None:
        """Add a signature: an array (num_hashes,), or Signatures of one. Raises as `add_many`."""
        self._add([id], one_row(signature))

    def add_many(self, ids: IdsLike, signatures: AnySignatures) -> None:
        """Add signatures, all or none.

        Parameters
        ----------
        ids : strings, or integers below 2^63: a list, a NumPy or an Arrow array.
        signatures : Signatures, or a uint32 array of shape (n, num_hashes), assumed to have the
            scheme of the index.

        Raises
        ------
        InputError
            If an id is already in the index, occurs twice, or has another type than the others; if
            the two arguments differ in length.
        SchemeError
            If the signatures have another scheme, seed or length; both are named.
        """
        self._add(ids, signatures)

    def add_if_new(self, id: str | int, signature: AnySignatures) -> list[tuple[str | int, float]]:
        """Return the similar signatures, and add the signature if there are none.

        Parameters
        ----------
        id : the id of the signature. An id that is already in the index raises InputError, as for
            `add`.
        signature : as for `add`.

        Returns
        -------
        list of (id, similarity)
            As for `query`. An empty list: the signature was added.
        """
        self._store.check_new(id)
        found = self.query(signature)
        if not found:
            self.add(id, signature)
        return found

    def query(
        self, signature: AnySignatures, *, min_similarity: float | None = None
    ) -> list[tuple[str | int, float]]:
        """Return (id, similarity) of the similar signatures, the most similar first.

        Signatures of equal similarity come in the order in which they were added.

        Parameters
        ----------
        signature : an array (num_hashes,), or Signatures of one.
        min_similarity : the minimum estimated Jaccard similarity to return; the threshold when
            None; 0.0 for all signatures that share a band.
        """
        found = self._find(one_row(signature), min_similarity)
        return self._hits(found.row, found.equal / (self.num_hashes or 1))

    def query_many(
        self, signatures: AnySignatures, *, min_similarity: float | None = None
    ) -> pa.Table:
        """Return the similar signatures of each of many: the results of `query` as a table.

        Parameters
        ----------
        signatures : as for `add_many`.
        min_similarity : as for `query`.

        Returns
        -------
        pyarrow.Table
            Columns `query` (int64, the position of the query), `id` (int64 or string), `similarity`
            (float64), by query, then the most similar, then as they were added.
        """
        found = self._find(signatures, min_similarity)
        return self._table(found.query, found.row, similarity=found.equal / (self.num_hashes or 1))

    def _find(self, signatures: AnySignatures, min_similarity: float | None) -> Matches:
        values = self._store.to_values(signatures)
        if not len(self):
            values = values[:0]
        if min_similarity is None:
            min_similarity = self.threshold
        min_equal = _min_equal(min_similarity, self.num_hashes or 1)
        return self._searcher.find(values, self._store, min_equal, self._threads)

    def merge(self, other: LSHIndex) -> None:
        """Add all signatures of another index; its bands may differ. Raises as `add_many`."""
        self._merge(other)

    @classmethod
    def open(
        cls, path: AnyPath, *, method: MinHash | None = None, threads: int | None = None
    ) -> LSHIndex:
        """Return an index of the signatures in a file.

        `save`, `Signatures.save` and `neardup sign` write such files.

        Parameters
        ----------
        path : a Parquet file with columns `id` and `signature`.
        method : replaces the settings of the index that was saved; `MinHash()` if there are none.
        threads : as for `LSHIndex`.

        Raises
        ------
        InputError
            If the file cannot be read, or is not such a file.
        """
        index = None
        for table in read_batches(path):
            signatures = Signatures._from_table(table, os.fspath(path))
            if index is None:
                scheme = None if signatures.scheme.get("name") == UNKNOWN else signatures.scheme
                chosen = _method_of_file(table.schema, scheme, method)
                index = cls(chosen, scheme=scheme, threads=threads)
            if table.num_rows:
                index._add(signatures.ids, signatures.values)
        assert index is not None  # read_batches yields at least one table
        return index


def _method_of_file(schema: pa.Schema, scheme: Scheme | None, method: MinHash | None) -> MinHash:
    """Return the method of the index of a file; method : the method that the user chose."""
    if method is None:
        return MinHash(**(read_json(schema, INDEX_KEY)[0] or {}))
    chosen = named_as(MinHash, method)
    if scheme is not None and chosen.num_hashes is None:
        return replace(chosen, num_hashes=int(scheme["num_hashes"]))
    return chosen


def _min_equal(min_similarity: float, num_hashes: int) -> int:
    """Return the least number of equal hashes of signatures of at least this similarity."""
    if not is_real(min_similarity) or not 0 <= min_similarity <= 1:
        raise SettingError(
            f"min_similarity must be a number from 0 to 1, or None: got {min_similarity!r}. Change "
            "min_similarity."
        )
    return int(np.searchsorted(np.arange(num_hashes + 1) / num_hashes, min_similarity))
