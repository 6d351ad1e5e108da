"""The permutation schemes of datasketch: from hashes to the values and bytes of a signature."""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from neardup.arrays import Array, Words
from neardup.compat.datasketch.hashfunc import sha1_hash32, sha1_hash64
from neardup.errors import InputError, SchemeError, SettingError

_MERSENNE = (1 << 61) - 1


@dataclass(frozen=True)
class Scheme:
    """A permutation scheme.

    Attributes
    ----------
    dtype : the type of the values of a signature, and of multipliers and addends.
    bits : the number of bits of a value. A value of the empty set has all bits set.
    code : the byte of the scheme in serialised signatures; None for the oldest scheme, which has no
        such byte.
    hashfunc : the default hash function.
    """

    name: str
    dtype: type[np.unsignedinteger[Any]]
    bits: int
    code: int | None
    hashfunc: Callable[[Any], int]

    @property
    def max_hash(self) -> int:
        """Return the largest value."""
        return (1 << self.bits) - 1

    @property
    def value_format(self) -> str:
        """Return the format of a value for `struct`."""
        return "I" if self.bits == 32 else "Q"

    def head(self, count: int) -> tuple[int, ...]:
        """Return the head of a serialised signature.

        Without a code, it is the count of values; with a code, the negative count and the code.
        """
        return (count,) if self.code is None else (-count, self.code)

    def head_format(self, layout: str) -> str:
        """Return the format of a head for `struct`; layout : the format up to the count."""
        return layout if self.code is None else f"{layout}B"

    def empty(self, num_perm: int) -> Array:
        """Return the signature of the empty set."""
        return np.full(num_perm, self.max_hash, self.dtype)

    def draw(self, num_perm: int, seed: Any) -> Array:
        """Return the multipliers and the addends of a seed, shape (2, num_perm)."""
        # Its stream is frozen: NumPy may change other generators between versions.
        generator = np.random.RandomState(seed)
        if self.name == "legacy":
            return _draw_mersenne(generator, num_perm)
        # Twice a number of one bit less, plus 1: all odd numbers, each equally likely.
        halves = generator.randint(0, 1 << (self.bits - 1), num_perm, dtype=self.dtype)
        addends = generator.randint(0, 1 << self.bits, num_perm, dtype=self.dtype)
        return np.array([halves * self.dtype(2) + self.dtype(1), addends])

    def sign(self, hashes: Words, permutations: Any) -> Array:
        """Return the signature of a set of hashes, at least one."""
        # Loads the compiler, which a comparison of stored signatures does not need.
        from neardup.kernels import minhash_datasketch as kernel

        signature = np.empty(len(permutations[0]), self.dtype)
        multipliers = np.array(permutations[0], self.dtype)
        addends = np.array(permutations[1], self.dtype)
        if self.name == "legacy":
            kernel.sign_mersenne(hashes, multipliers, addends, signature)
        else:
            mixed = np.empty(len(hashes), self.dtype)
            constants = kernel.BITS_64 if self.bits == 64 else kernel.BITS_32
            kernel.mix(hashes, *constants, mixed)
            kernel.sign_affine(mixed, multipliers, addends, signature)
        return signature

    def hashes(self, values: list[Any]) -> Words:
        """Return results of a hash function as an array.

        Raises InputError if a value is outside the range of the scheme.
        """
        # By Python: NumPy makes floats of a list with both a negative number and one above 2^63.
        self._require_range("hashfunc returned a value", min(values), max(values))
        return np.array(values, np.uint64)

    def values(self, values: Any, what: str) -> Array:
        """Return a copy of values as an array of the scheme's type."""
        # Objects: integers of any size are checked before they are converted.
        values = values if isinstance(values, np.ndarray) else np.array(list(values), object)
        may_be_outside = values.dtype != self.dtype
        if may_be_outside and values.size:
            self._require_range(what, values.min(), values.max())
        converted: Array = values.astype(self.dtype)
        return converted

    def _require_range(self, what: str, least: Any, greatest: Any) -> None:
        # Hashes of "legacy" may have 64 bits, although its values have 32.
        bits = 32 if self.dtype is np.uint32 else 64
        if not 0 <= least <= greatest < 1 << bits:
            raise InputError(
                f"{what} out of range for scheme {self.name!r}, 0 to 2^{bits} - 1: got {least} to "
                f"{greatest}. Use a hash of {self.bits} bits, or scheme='affine64' for one of 64."
            )


def _draw_mersenne(generator: np.random.RandomState, num_perm: int) -> Words:
    """Return the draws of datasketch 1.x, (2, num_perm): multipliers from 1, addends from 0.

    Both are below the prime.
    """
    state = generator.get_state()
    words = generator.randint(0, _MERSENNE + 1, 2 * num_perm, dtype=np.uint64)
    # datasketch draws one by one, and draws such a word again; chance 2^-60 a word.
    if words.max() >= _MERSENNE - 1:
        generator.set_state(state)
        # In turn: a multiplier, which is at least 1, then an addend.
        for index in range(2 * num_perm):
            low = 1 - index % 2
            words[index] = generator.randint(low, _MERSENNE, dtype=np.uint64) - np.uint64(low)
    drawn = words.reshape(num_perm, 2) + np.array([1, 0], np.uint64)
    return drawn.T


class Signature(ABC):
    """Base of the signatures: values that are compared with values of the same kind.

    hashvalues : array (num_perm, ...).
    """

    __slots__ = ()
    hashvalues: Array

    @abstractmethod
    def kind(self) -> tuple[Any, ...]:
        """Return the settings that must be equal if two signatures are compared."""

    def digest(self) -> Array:
        """Return a copy of the values."""
        return self.hashvalues.copy()

    def __len__(self) -> int:
        return len(self.hashvalues)

    def __eq__(self, other: object) -> bool:
        return (
            type(self) is type(other)
            and isinstance(other, Signature)
            and bool(self.kind() == other.kind())
            and np.array_equal(self.hashvalues, other.hashvalues)
        )

    __hash__: ClassVar[None]  # type: ignore[assignment]


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme(name="affine32", dtype=np.uint32, bits=32, code=1, hashfunc=sha1_hash32),
        Scheme(name="affine64", dtype=np.uint64, bits=64, code=2, hashfunc=sha1_hash64),
        Scheme(name="legacy", dtype=np.uint64, bits=32, code=None, hashfunc=sha1_hash32),
    )
}
"""Schemes by name. "legacy" is the scheme of datasketch 1.x, "affine32" the default of 2.x."""


def scheme_named(name: Any) -> Scheme:
    """Return a scheme by its name."""
    if name not in SCHEMES:
        raise SettingError(
            f"scheme must be one of {', '.join(SCHEMES)}, got {name!r}. Use 'legacy' for values "
            "made by datasketch 1.x."
        )
    return SCHEMES[name]


def scheme_of_code(code: int) -> Scheme:
    """Return the scheme that a stored byte names."""
    for scheme in SCHEMES.values():
        if scheme.code == code:
            return scheme
    raise InputError(
        f"Unknown permutation scheme code: {code}. Known are 1 (affine32) and 2 (affine64)."
    )


class Head(NamedTuple):
    """The head of a serialised signature.

    values : the values before the count. num_values : the length of the signature.
    """

    values: list[Any]
    num_values: int
    scheme: Scheme


def read_head(layout: str, data: memoryview) -> Head:
    """Return the head of a serialised signature; layout : its format up to the count."""
    *values, count = struct.unpack_from(layout, data)
    scheme = SCHEMES["legacy"]
    # Counts of version 1 are never negative, so that a negative one marks the byte of a scheme.
    if count < 0:
        scheme = scheme_of_code(data[struct.calcsize(layout)])
    return Head(values=values, num_values=abs(count), scheme=scheme)


def agreed_scheme(known: str | None, minhash: Any) -> str | None:
    """Return the scheme of an index to which a MinHash is added.

    A weighted MinHash has no scheme. Raises SchemeError if the schemes differ.
    """
    scheme: str | None = getattr(minhash, "scheme", None)
    if known is not None and scheme is not None and scheme != known:
        raise SchemeError(
            f"The scheme {scheme!r} of this MinHash does not match scheme {known!r} of those in "
            f"the index. Make all of one index with scheme={known!r}."
        )
    return known if scheme is None else scheme
