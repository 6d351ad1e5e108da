"""The permutation schemes of datasketch: how a hash becomes the values of a signature, and how
those are stored.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from neardup.arrays import Array, Words
from neardup.compat.datasketch.hashfunc import sha1_hash32, sha1_hash64
from neardup.errors import InputError, SchemeError, SettingError

_MERSENNE = (1 << 61) - 1


@dataclass(frozen=True)
class Scheme:
    """What belongs to the name of a scheme.

    Attributes
    ----------
    dtype : of the values of a signature, also of multipliers and addends.
    bits : of a value. That of an empty set has all of them.
    code : its byte in what datasketch stores; None for the scheme that was before there was such a
        byte.
    hashfunc : the hash function, if none is given.
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
        """Return the letter of module struct for a value."""
        return "I" if self.bits == 32 else "Q"

    def head(self, count: int) -> tuple[int, ...]:
        """Return a count of values as it is stored: negative and followed by the code, if there is
        one.
        """
        return (count,) if self.code is None else (-count, self.code)

    def head_format(self, layout: str) -> str:
        """Return the format of module struct of a head that ends with the count, with that of the
        code.
        """
        return layout if self.code is None else f"{layout}B"

    def empty(self, num_perm: int) -> Array:
        """Return the signature of the empty set."""
        return np.full(num_perm, self.max_hash, self.dtype)

    def draw(self, num_perm: int, seed: Any) -> Array:
        """Return the multipliers and the addends of a seed, shape (2, num_perm)."""
        generator = np.random.RandomState(seed)
        if self.name == "legacy":
            return _draw_mersenne(generator, num_perm)
        halves = generator.randint(0, 1 << (self.bits - 1), num_perm, dtype=self.dtype)
        addends = generator.randint(0, 1 << self.bits, num_perm, dtype=self.dtype)
        return np.array([halves * self.dtype(2) + self.dtype(1), addends])

    def sign(self, hashes: Words, permutations: Any) -> Array:
        """Return the signature of a set of hashes, of which there is one at least."""
        from neardup.kernels import minhash_datasketch as kernel

        signature = np.empty(len(permutations[0]), self.dtype)
        multipliers, addends = (
            np.array(permutations[0], self.dtype),
            np.array(permutations[1], self.dtype),
        )
        if self.name == "legacy":
            kernel.sign_mersenne(hashes, multipliers, addends, signature)
        else:
            mixed = np.empty(len(hashes), self.dtype)
            kernel.mix(hashes, *(kernel.BITS_64 if self.bits == 64 else kernel.BITS_32), mixed)
            kernel.sign_affine(mixed, multipliers, addends, signature)
        return signature

    def hashes(self, values: list[Any]) -> Words:
        """Return the result of a hash function as an array. Raise InputError for a value out of the
        scheme's range.
        """
        self._require_room("hashfunc returned a value", min(values), max(values))
        return np.array(values, np.uint64)

    def values(self, values: Any, what: str) -> Array:
        """Return a copy of given values as an array of the scheme's type."""
        values = values if isinstance(values, np.ndarray) else np.array(list(values), object)
        if values.dtype != self.dtype and values.size:  # of its own type, none is out of range
            self._require_room(what, values.min(), values.max())
        converted: Array = values.astype(self.dtype)
        return converted

    def _require_room(self, what: str, least: Any, greatest: Any) -> None:
        bits = 32 if self.dtype is np.uint32 else 64
        if not 0 <= least <= greatest < 1 << bits:
            raise InputError(
                f"{what} out of range for scheme {self.name!r}, 0 to 2^{bits} - 1: got "
                f"{least} to {greatest}. "
                f"Use a hash of {self.bits} bits, or scheme='affine64' for one of 64."
            )


def _draw_mersenne(generator: np.random.RandomState, num_perm: int) -> Words:
    """Return the draws of datasketch 1.x: a multiplier from 1, an addend from 0, both below the
    prime.
    """
    state = generator.get_state()
    words = generator.randint(0, _MERSENNE + 1, 2 * num_perm, dtype=np.uint64)
    if (
        words.max() >= _MERSENNE - 1
    ):  # drawn in turn, one of these would have been drawn again; chance 2^-60 a word
        generator.set_state(state)
        lows = [1, 0] * num_perm
        words = np.array(
            [generator.randint(low, _MERSENNE, dtype=np.uint64) - np.uint64(low) for low in lows]
        )
    drawn = words.reshape(num_perm, 2) + np.array([1, 0], np.uint64)
    return drawn.T


class Signature(ABC):
    """Values that are compared with those of its own kind.

    hashvalues : array, of which the first dimension is the length.
    """

    __slots__ = ()
    hashvalues: Array

    @abstractmethod
    def kind(self) -> tuple[Any, ...]:
        """Return all that must be equal for two of them to compare."""

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
        Scheme("affine32", np.uint32, 32, 1, sha1_hash32),
        Scheme("affine64", np.uint64, 64, 2, sha1_hash64),
        Scheme("legacy", np.uint64, 32, None, sha1_hash32),
    )
}
"""By name. legacy is that of datasketch 1.x, affine32 the default of 2.x."""


def scheme_named(name: Any) -> Scheme:
    """Return a scheme by its name."""
    if name not in SCHEMES:
        raise SettingError(
            f"scheme must be one of {', '.join(SCHEMES)}, got {name!r}. Use 'legacy' for "
            "values made by datasketch 1.x."
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


def read_head(layout: str, data: memoryview) -> tuple[list[Any], int, Scheme]:
    """Return the values before the count, the count, and the scheme of a head that was stored."""
    *values, count = struct.unpack_from(layout, data)
    return (
        values,
        abs(count),
        scheme_of_code(data[struct.calcsize(layout)]) if count < 0 else SCHEMES["legacy"],
    )


def agreed_scheme(known: str | None, minhash: Any) -> str | None:
    """Return the scheme of an index after it met a MinHash; weighted ones have none. Two that
    differ: SchemeError.
    """
    scheme: str | None = getattr(minhash, "scheme", None)
    if known is not None and scheme is not None and scheme != known:
        raise SchemeError(
            f"The scheme {scheme!r} of this MinHash does not match scheme {known!r} of those "
            "in the index. "
            f"Make all of one index with scheme={known!r}."
        )
    return known if scheme is None else scheme
