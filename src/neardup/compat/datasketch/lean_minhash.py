"""LeanMinHash of datasketch: the values and the seed of a MinHash, and their bytes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import numpy as np

from neardup.arrays import Array
from neardup.compat.datasketch.minhash import MinHash
from neardup.compat.datasketch.schemes import SCHEMES, read_head
from neardup.errors import InputError, SettingError

if TYPE_CHECKING:
    from typing_extensions import Self

_HEAD = "qi"  # seed, number of values; see `Scheme.head`


class LeanMinHash(MinHash):
    """A MinHash without permutations and hash function, to store and compare.

    Parameters
    ----------
    minhash : the MinHash to copy.
    seed, hashvalues : the seed and the values, both required without a minhash.
    scheme : the scheme of the hashvalues; required with them.

    Examples
    --------
    >>> minhash = MinHash(num_perm=4)
    >>> minhash.update(b"Hello")
    >>> lean = LeanMinHash(minhash)
    >>> stored = bytearray(lean.bytesize())
    >>> lean.serialize(stored)
    >>> LeanMinHash.deserialize(stored).jaccard(minhash)
    1.0
    """

    __slots__ = ("hashvalues", "scheme", "seed")

    def __init__(
        self,
        minhash: MinHash | None = None,
        seed: Any = None,
        hashvalues: Any = None,
        scheme: str | None = None,
    ) -> None:
        if minhash is not None:
            if scheme is not None and scheme != minhash.scheme:
                raise SettingError(
                    f"scheme {scheme!r} conflicts with the scheme {minhash.scheme!r} of the "
                    "MinHash. Leave it out."
                )
            seed = minhash.seed
            hashvalues = minhash.hashvalues
            scheme = minhash.scheme
        elif hashvalues is None or seed is None:
            raise SettingError(
                "Init parameters cannot be None: give either minhash, or both seed and hashvalues."
            )
        self._fill(seed, hashvalues, self._choose_scheme(scheme, None))

    def _fill(self, seed: Any, hashvalues: Any, scheme: str) -> None:
        self.seed = seed
        self.scheme = scheme
        self.hashvalues = SCHEMES[scheme].values(hashvalues, "hash values")
        # A negative count marks the byte of the scheme, and a count of 0 has no sign. datasketch
        # refuses it, too.
        if scheme != "legacy" and not len(self.hashvalues):
            raise SettingError("hashvalues must not be empty: give the values of a MinHash.")

    def update(self, b: Any) -> NoReturn:
        """Raise TypeError."""
        raise TypeError(
            "Cannot update a LeanMinHash. Update a MinHash, then make a LeanMinHash of it."
        )

    def update_batch(self, b: Any) -> NoReturn:
        """Raise TypeError."""
        self.update(b)

    def copy(self) -> Self:
        """Return a copy."""
        return self._from_values(self.seed, self.hashvalues, self.scheme)

    @classmethod
    def _from_values(cls, seed: Any, hashvalues: Any, scheme: str) -> Self:
        lean = object.__new__(cls)
        lean._fill(seed, hashvalues, scheme)
        return lean

    def _format(self, byteorder: str) -> str:
        """Return the format of the bytes for `struct`."""
        head = self._known.head_format(byteorder + _HEAD)
        return f"{head}{len(self)}{self._known.value_format}"

    def bytesize(self, byteorder: str = "@") -> int:
        """Return the number of bytes that `serialize` writes; byteorder : as in `struct`."""
        return struct.calcsize(self._format(byteorder))

    def serialize(self, buf: Any, byteorder: str = "@") -> None:
        """Write the bytes of datasketch into a buffer.

        Notes
        -----
        legacy: the seed in 8 bytes, the number of values in 4, each value in 4. Other schemes: the
        number is negative, and the byte of the scheme follows; a value has 4 bytes, with affine64
        8.
        """
        size = self.bytesize(byteorder)
        # Not len(buf): a buffer may have items of several bytes, such as an array.
        num_bytes = memoryview(buf).nbytes
        if num_bytes < size:
            raise InputError(
                f"The buffer does not have enough space for this MinHash: it has {num_bytes} bytes "
                f"of {size}. Use a bytearray of bytesize()."
            )
        values = [self.seed, *self._known.head(len(self)), *self.hashvalues.tolist()]
        struct.pack_into(self._format(byteorder), buf, 0, *values)

    @classmethod
    def deserialize(cls, buf: Any, byteorder: str = "@") -> Self:
        """Return the LeanMinHash from the bytes of `serialize`, also of any version of datasketch.

        Raises InputError if there are too few bytes, or the scheme is unknown.
        """
        # Buffers of other item types, such as an array, are read as bytes, too.
        return cls._from_values(*_read(memoryview(buf).cast("B"), byteorder))

    def __getstate__(self) -> Any:
        buf = bytearray(self.bytesize())
        self.serialize(buf)
        return buf

    def __setstate__(self, state: Any) -> None:
        self._fill(*_read(memoryview(state), "@"))

    # A LeanMinHash does not change, so it may be a key; other signatures have no hash.
    def __hash__(self) -> int:  # type: ignore[override]
        return hash((self.scheme, self.seed, tuple(self.hashvalues.tolist())))

    @classmethod
    def union(cls, *lmhs: MinHash) -> LeanMinHash:
        """Return the LeanMinHash of the union of two or more sets."""
        values = cls._values_of_union(lmhs)
        return cls._from_values(lmhs[0].seed, values, lmhs[0].scheme)


class _Serialized(NamedTuple):
    """The content of a serialised LeanMinHash, in the order of the parameters of `_fill`."""

    seed: int
    hashvalues: Array
    scheme: str


def _read(buf: memoryview, byteorder: str) -> _Serialized:
    """Return the content of the bytes that `serialize` wrote."""
    try:
        layout = byteorder + _HEAD
        head = read_head(layout, buf)
        scheme = head.scheme
        [seed] = head.values
        head_format = scheme.head_format(layout)
        # Zero values, which align the end of the head for the values that follow.
        offset = struct.calcsize(f"{head_format}0{scheme.value_format}")
        # The byte orders of `struct` that NumPy writes with another sign.
        order = {"@": "=", "!": ">"}.get(byteorder, byteorder)
        values = np.frombuffer(buf, f"{order}{scheme.value_format}", head.num_values, offset)
    except (struct.error, IndexError, ValueError) as error:
        raise InputError(
            f"The {len(buf)} bytes are no whole LeanMinHash: {error}. Give the bytes and the "
            "byteorder of serialize()."
        ) from None
    return _Serialized(seed=seed, hashvalues=values.astype(scheme.dtype), scheme=scheme.name)
