"""What the indexes of MinHash signatures share: rows of ids and signatures, of one scheme and one length."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from neardup.errors import InputError, SchemeError, SettingError
from neardup.executor import count_processors
from neardup.fingerprints.files import require_same
from neardup.fingerprints.signatures import Signatures
from neardup.index.ids import Given, IdTable, grow
from neardup.index.signature_files import Rows, read_index, write_index

if TYPE_CHECKING:
    from typing_extensions import Self

    from neardup.kernels.band_tables import Stored

_LEAST_TO_COMPACT = 4096
_MAX_ROWS = 2**31

Values = npt.NDArray[np.uint32]
AnySignatures: TypeAlias = Signatures | npt.NDArray[np.uint32]


class SignatureIndex(ABC):
    """Base of the indexes of signatures: who is in them, what each signature is, and which signatures compare.

    num_hashes : the length of a signature; None until the first are added, at least `least_hashes`. scheme : what they
    were made with, None until the first come that say so; arrays are taken to be of the same.
    """

    def __init__(
        self, num_hashes: int | None, least_hashes: int, scheme: Mapping[str, Any] | None, threads: int | None
    ) -> None:
        check_num_hashes(num_hashes)
        self.num_hashes, self._least_hashes = None if num_hashes is None else int(num_hashes), least_hashes
        self.scheme = None if scheme is None else dict(scheme)
        self._threads = threads or count_processors()
        self._clear()

    def _clear(self) -> None:
        """Forget all rows."""
        self._ids = IdTable()
        self._values = np.zeros((0, self.num_hashes or 0), np.uint32)

    @abstractmethod
    def _enter(self, first: int) -> None:
        """Enter the rows from `first` on where queries look for them."""

    def __len__(self) -> int:
        """Return how many signatures there are."""
        return self._ids.num_alive

    def __contains__(self, id: object) -> bool:
        """Return whether there is a signature of this id."""
        return id in self._ids

    def remove(self, id: str | int) -> None:
        """Remove the signature of an id. Raises InputError if there is none."""
        if id not in self:
            raise InputError(f"The index has no signature of the id {id!r}. Look with `id in index` first.")
        self._ids.remove(self._ids.to_array([id]))
        if self._ids.num_rows > max(_LEAST_TO_COMPACT, 2 * len(self)):
            rows = self._alive()
            self._clear()
            self._append_rows(rows)

    def _append_rows(self, rows: Rows) -> None:
        """Add rows of another index, or of a file."""
        self._append(rows.ids, rows.values)

    def _append(self, ids: Given, signatures: AnySignatures) -> None:
        """Add signatures, all or none; see `add_many`."""
        given, values = self._ids.to_array(ids), self._to_values(signatures)
        if len(given) != len(values):
            raise InputError(
                f"Ids and signatures go together: got {len(given)} ids and {len(values)} signatures. Pass as many."
            )
        first, stop = self._ids.num_rows, self._ids.num_rows + len(given)
        if stop >= _MAX_ROWS:
            raise InputError(f"An index holds fewer than 2^31 signatures: got {stop:,}. Use two.")
        if not len(given):
            return
        self._ids.append(given)
        if self.num_hashes is None:
            self.num_hashes = values.shape[1]
            self._values = np.zeros((0, self.num_hashes), np.uint32)
        if self.scheme is None and isinstance(signatures, Signatures):
            self.scheme = dict(signatures.scheme)
        self._values = grow(self._values, stop)
        self._values[first:stop] = values
        self._enter(first)

    def _alive_rows(self) -> npt.NDArray[np.int64]:
        return np.flatnonzero(self._ids.alive[: self._ids.num_rows])

    def _alive(self) -> Rows:
        """Return what is there, as it was added."""
        rows = self._alive_rows()
        return Rows(self._ids.take(rows), self._values[rows])

    def _merge(self, other: SignatureIndex) -> None:
        if type(other) is not type(self):
            raise InputError(
                f"An {type(self).__name__} merges with one of its kind: got {type(other).__name__}. Pass another one."
            )
        if self.scheme is not None and other.scheme is not None:
            require_same(self.scheme, other.scheme, "the index", "the one to be merged", kind="Signatures")
        if len(other):
            self._append_rows(other._alive())
            self.scheme = self.scheme or other.scheme

    def _save(self, path: str | os.PathLike[str], settings: Mapping[str, Any], *, overwrite: bool) -> None:
        made = {"kind": type(self).__name__, "num_hashes": self.num_hashes, **settings}
        write_index(path, self._alive(), made, self.scheme, overwrite=overwrite)

    @classmethod
    def _open(cls, path: str | os.PathLike[str], threads: int | None) -> Self:
        file = read_index(path, cls.__name__)
        try:
            index = cls(**file.settings, scheme=file.scheme, threads=threads)
        except TypeError as error:
            raise InputError(f"{os.fspath(path)} does not say how it was made: {error}. Save it again.") from error
        for rows in file.rows:
            index._append_rows(rows)
        return index

    def _to_values(self, signatures: AnySignatures) -> Values:
        """Return signatures as a uint32 array of shape (n, num_hashes), or raise InputError or SchemeError."""
        if isinstance(signatures, Signatures):
            if self.scheme is not None:
                require_same(self.scheme, signatures.scheme, "the index", "what is given", kind="Signatures")
            signatures = signatures.values
        if not isinstance(signatures, np.ndarray) or signatures.dtype != np.uint32 or signatures.ndim != 2:
            what = (
                f"{signatures.dtype} {signatures.shape}"
                if isinstance(signatures, np.ndarray)
                else type(signatures).__name__
            )
            raise InputError(
                "Signatures are Signatures, or a uint32 array with a row for each; one alone is one row: got "
                f"{what}. Convert with numpy.asarray(values, numpy.uint32)."
            )
        length = signatures.shape[1]
        if self.num_hashes is not None and length != self.num_hashes:
            raise SchemeError(
                f"Signatures of {self.num_hashes} and of {length} hashes do not compare: the index has "
                f"{self.num_hashes}, those given have {length}. Sign with num_hashes={self.num_hashes}."
            )
        if length < self._least_hashes:
            raise SchemeError(
                f"This index needs signatures of {self._least_hashes} hashes or more: got {length}. Sign with more, "
                "or make an index that needs fewer (num_hashes)."
            )
        return signatures

    def _one(self, signature: AnySignatures) -> AnySignatures:
        """Return one signature, given as a row or as Signatures of one, as an array or Signatures of one row."""
        if isinstance(signature, np.ndarray) and signature.ndim == 1:
            signature = signature[None]
        if isinstance(signature, (np.ndarray, Signatures)) and len(signature) != 1:
            raise InputError(f"One signature is asked for: got {len(signature)}. Pass them to query_many or add_many.")
        return signature

    def _stored(self) -> Stored:
        from neardup.kernels.band_tables import Stored

        return Stored(self._values, self._ids.alive)

    def _least_equal(self, min_similarity: float | None) -> int:
        """Return in how many places signatures agree whose estimate is at least so much."""
        if min_similarity is None:
            return 0
        number = isinstance(min_similarity, (int, float, np.number)) and not isinstance(min_similarity, bool)
        if not number or not 0 <= min_similarity <= 1:
            raise SettingError(
                f"min_similarity must be a number from 0 to 1, or None: got {min_similarity!r}. Change min_similarity."
            )
        length = self.num_hashes or 1
        return int(np.searchsorted(np.arange(length + 1) / length, min_similarity))


def check_num_hashes(num_hashes: int | None) -> None:
    """Raise SettingError unless it is the length of a signature, or None."""
    whole = isinstance(num_hashes, (int, np.integer)) and not isinstance(num_hashes, bool)
    if num_hashes is not None and (not whole or num_hashes < 1):
        raise SettingError(
            f"num_hashes must be a whole number above 0, or None: got {num_hashes!r}. Pass the length of a signature."
        )
