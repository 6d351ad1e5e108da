"""An index of MinHash signatures in memory: those that share a band with a query, while signatures come and go."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from neardup.candidates.bands import Bands, candidate_probability, choose_bands
from neardup.errors import SettingError
from neardup.index.band_tables import BandTables
from neardup.index.ids import Given
from neardup.index.matches import Matches
from neardup.index.signature_rows import AnySignatures, SignatureIndex, check_num_hashes
from neardup.settings.methods import MinHash


class LSHIndex(SignatureIndex):
    """An index in memory that finds the signatures whose sets are alike, by locality-sensitive hashing in bands.

    Parameters
    ----------
    threshold : the Jaccard similarity at which the recall is asked for, and at which `add_if_new` calls two alike.
    recall : the share of pairs just at the threshold that must share a band; more alike, more often.
    num_bands, rows_per_band : the bands, or their rows alone, in place of those chosen from threshold and recall.
    num_hashes : the length of the signatures, at least num_bands x rows_per_band, of which the first go into bands and
        all into estimates. When unset, that of the first added.
    scheme : what the signatures were made with; when unset, that of the first `Signatures` added.
    threads : of `add_many` and `query_many`; all processors of this process when unset.

    Raises
    ------
    SettingError
        If a value is out of its limits, or no bands of num_hashes reach the recall; it says what can be reached.

    Notes
    -----
    Leskovec, Rajaraman and Ullman, Mining of Massive Datasets, section 3.4: signatures of sets of similarity s share
    one of b bands of r rows with probability 1 - (1 - s^r)^b. Which rows share a band is exact; similarities are
    estimated from all hashes, with a standard deviation of sqrt(s (1 - s) / num_hashes). A set without features, whose
    signature is all ones, is like nothing.

    Memory: 4 x num_hashes + (16 to 24) x num_bands bytes a signature, and 24 for an integer id: about 750 with 128
    hashes and the 12 bands of the default. What was removed is passed over, and left out once it is half of all. Not
    for use by several threads while one of them adds or removes.

    Examples
    --------
    >>> import numpy as np
    >>> index = LSHIndex(threshold=0.5, num_bands=4, rows_per_band=2)
    >>> index.add("first", np.array([1, 2, 3, 4, 5, 6, 7, 8], np.uint32))
    >>> index.query(np.array([1, 2, 3, 4, 5, 0, 0, 0], np.uint32))
    [('first', 0.625)]
    """

    def __init__(
        self,
        threshold: float = 0.8,
        recall: float = 0.99,
        *,
        num_bands: int | None = None,
        rows_per_band: int | None = None,
        num_hashes: int | None = None,
        scheme: Mapping[str, Any] | None = None,
        threads: int | None = None,
    ) -> None:
        check_num_hashes(num_hashes)
        asked = MinHash(threshold=threshold, recall=recall, num_bands=num_bands, rows_per_band=rows_per_band)
        if asked.num_bands is not None and asked.rows_per_band is not None:
            self.bands = Bands(asked.num_bands, asked.rows_per_band)
        else:
            self.bands = choose_bands(threshold, recall, num_hashes=num_hashes, rows_per_band=rows_per_band)
        if num_hashes is not None and num_hashes < self.bands.num_hashes:
            raise SettingError(
                f"Bands take num_bands x rows_per_band hashes: got {num_bands} x {rows_per_band} with "
                f"num_hashes={num_hashes}. Use fewer, or longer signatures."
            )
        self.threshold = threshold
        super().__init__(num_hashes, self.bands.num_hashes, scheme, threads)

    @property
    def recall(self) -> float:
        """The share of pairs just at the threshold that share a band."""
        return float(candidate_probability(self.threshold, self.bands))

    def _clear(self) -> None:
        super()._clear()
        self._tables = BandTables(self.bands, self._threads)

    def _enter(self, first: int) -> None:
        self._tables.enter(self._values, first, self._ids.num_rows)

    def __repr__(self) -> str:
        """Say what it holds."""
        bands = f"num_bands={self.bands.num_bands}, rows_per_band={self.bands.rows_per_band}"
        return f"LSHIndex(threshold={self.threshold}, {bands}, {len(self):,} signatures)"

    def add(self, id: str | int, signature: AnySignatures) -> None:
        """Add a signature: an array of num_hashes, or Signatures of one. Raises as `add_many` does."""
        self._append([id], self._one(signature))

    def add_many(self, ids: Given, signatures: AnySignatures) -> None:
        """Add signatures, all or none.

        Parameters
        ----------
        ids : strings, or integers below 2^63: a list, a NumPy or an Arrow array.
        signatures : Signatures, or a uint32 array of shape (n, num_hashes), taken to be of the index's scheme.

        Raises
        ------
        InputError
            If an id is there already or twice, or is not of the kind of the others; if the two differ in length.
        SchemeError
            If the signatures are of another scheme, seed or length; both are named.
        """
        self._append(ids, signatures)

    def add_if_new(self, id: str | int, signature: AnySignatures) -> list[tuple[str | int, float]]:
        """Add a signature unless one like it is there: return those like it, and add it if there are none.

        Parameters
        ----------
        id : of the signature; one that is there already is an InputError, as for `add`.
        signature : as for `add`.

        Returns
        -------
        list of (id, similarity)
            Those whose estimate reaches the threshold, most alike first. Empty: it was added.
        """
        given = self._ids.to_array([id])
        if id in self:
            self._ids.append(given)  # raises
        found = self.query(signature, min_similarity=self.threshold)
        if not found:
            self.add(id, signature)
        return found

    def query(self, signature: AnySignatures, *, min_similarity: float | None = None) -> list[tuple[str | int, float]]:
        """Return (id, similarity) of those that share a band, most alike first; at equal similarity, earlier ones.

        Parameters
        ----------
        signature : an array of num_hashes, or Signatures of one.
        min_similarity : the least estimated Jaccard similarity that is returned; None for all that share a band.
        """
        found = self._find(self._one(signature), min_similarity)
        ids: list[str | int] = self._ids.take(found.row).to_pylist()
        return list(zip(ids, (found.equal / (self.num_hashes or 1)).tolist(), strict=True))

    def query_many(self, signatures: AnySignatures, *, min_similarity: float | None = None) -> pa.Table:
        """Return those that share a band with each of many signatures.

        Parameters
        ----------
        signatures : as for `add_many`.
        min_similarity : the least estimated Jaccard similarity that is returned; None for all that share a band.

        Returns
        -------
        pyarrow.Table
            Columns `query` (int64, which of those given), `id` (int64 or string), `similarity` (float64), by query,
            then the most alike, then as they were added.
        """
        found = self._find(signatures, min_similarity)
        similarity = found.equal / (self.num_hashes or 1)
        return pa.table({"query": found.query, "id": self._ids.take(found.row), "similarity": similarity})

    def _find(self, signatures: AnySignatures, min_similarity: float | None) -> Matches:
        values, least = self._to_values(signatures), self._least_equal(min_similarity)
        return self._tables.find(values if len(self) else values[:0], self._stored(), least)

    def merge(self, other: LSHIndex) -> None:
        """Add all signatures of another index, whatever its bands. Raises as `add_many` does."""
        self._merge(other)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write ids and signatures to a Parquet file, the scheme and the settings in its metadata.

        The file appears when it is whole; tables are built again when it is opened.
        """
        self._save(path, {"threshold": self.threshold, **self.bands._asdict()}, overwrite=overwrite)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, threads: int | None = None) -> LSHIndex:
        """Return the index that was saved. Raises InputError if the file is not one.

        Parameters
        ----------
        path : a file that `save` wrote.
        threads : as for `LSHIndex`.
        """
        return cls._open(path, threads)
