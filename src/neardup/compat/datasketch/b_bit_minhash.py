"""MinHash cut to its last bits, as datasketch has it."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from neardup.arrays import Words
from neardup.compat.datasketch.minhash import MinHash
from neardup.compat.datasketch.schemes import SCHEMES, Signature, read_head, scheme_named
from neardup.errors import InputError, SchemeError, SettingError

# seed, b, r, number of values: negative, and followed by a byte, with every scheme but legacy
_HEAD = "<qBdi"
_BLOCK_BITS = 64


class bBitMinHash(Signature):
    """The b lowest bits of each value of a MinHash.

    Parameters
    ----------
    minhash : the MinHash.
    b : bits to keep, 0 to 32.
    r : size of the set as a share of all that could be in it; 0.0 if it is small or not known.

    Attributes
    ----------
    hashvalues : uint32 of shape (num_perm,).

    Notes
    -----
    Li and König, b-Bit Minwise Hashing (WWW 2010), theorem 1; the values of datasketch.

    Examples
    --------
    >>> minhash = MinHash()
    >>> minhash.update(b"Hello")
    >>> bBitMinHash(minhash, b=1).jaccard(bBitMinHash(minhash, b=1))
    1.0
    """

    __slots__ = ("b", "hashvalues", "r", "scheme", "seed")
    b: int
    r: float
    scheme: str
    seed: Any

    def __init__(self, minhash: MinHash, b: int = 1, r: float = 0.0) -> None:
        self.b = int(b)
        self.r = float(r)
        if not 0 <= self.b <= 32:
            raise SettingError(f"b must be an integer in [0, 32]: got {b}. Use 1, the default.")
        if not 0.0 <= self.r <= 1.0:
            raise SettingError(
                f"r must be a float in [0.0, 1.0]: got {r}. Use 0.0 if it is not known."
            )
        self.seed = minhash.seed
        self.scheme = scheme_named(minhash.scheme).name
        self.hashvalues = (
            minhash.hashvalues & minhash.hashvalues.dtype.type((1 << self.b) - 1)
        ).astype(np.uint32)

    def kind(self) -> tuple[Any, ...]:
        """Return the scheme, the seed, b and r."""
        return self.scheme, self.seed, self.b, self.r

    def jaccard(self, other: bBitMinHash) -> float:
        """Estimate the Jaccard similarity of the sets; below 0 where fewer bits agree than by
        chance.
        """
        for name in ("b", "scheme", "seed"):
            mine, its = getattr(self, name), getattr(other, name)
            if mine != its:
                raise SchemeError(
                    f"Two b-bit MinHash of which the {name} is {mine!r} and {its!r} do not "
                    "compare. "
                    f"Make both with one {name}."
                )
        share = int(np.count_nonzero(self.hashvalues == other.hashvalues)) / self.hashvalues.size
        low, high = self._chance(other)
        return (share - low) / (1 - high)

    def _chance(self, other: bBitMinHash) -> tuple[float, float]:
        """Return C1 and C2 of the theorem; the limit of both, where nothing is known of the
        sizes.
        """
        mine, its = _chance_of_one(self.r, self.b), _chance_of_one(other.r, self.b)
        if self.r == 0.0 and other.r == 0.0:
            return mine, its
        scale = 1 / (self.r + other.r)
        return (mine * other.r + its * self.r) * scale, (mine * self.r + its * other.r) * scale

    def bytesize(self) -> int:
        """Return the number of bytes of the state that pickle keeps."""
        return struct.calcsize(self._head()) + 8 * -(-self.hashvalues.size // self._per_block())

    def _head(self) -> str:
        return SCHEMES[self.scheme].head_format(_HEAD)

    def _per_block(self) -> int:
        """Return how many values a block of 64 bits has; a value takes a power of two of them."""
        return _BLOCK_BITS // next(
            bits for bits in (1, 2, 4, 8, 16, 32) if self.b <= bits and (self.b or bits == 4)
        )

    def __getstate__(self) -> Any:
        count, per_block = self.hashvalues.size, self._per_block()
        head = SCHEMES[self.scheme].head(count)
        blocks = np.zeros((-(-count // per_block), per_block), np.uint64)
        blocks.flat[:count] = self.hashvalues
        packed = np.bitwise_or.reduce(blocks << _shifts(per_block), axis=1)
        return bytearray(
            struct.pack(self._head(), self.seed, self.b, self.r, *head)
            + packed.astype("<u8").tobytes()
        )

    def __setstate__(self, state: Any) -> None:
        data = memoryview(state)
        try:
            (self.seed, self.b, self.r), count, scheme = read_head(_HEAD, data)
            self.scheme, per_block = scheme.name, self._per_block()
            packed = np.frombuffer(
                data, "<u8", -(-count // per_block), struct.calcsize(self._head())
            )
        except (struct.error, IndexError, ValueError, StopIteration) as error:
            raise InputError(f"The {len(data)} bytes are no whole bBitMinHash: {error}.") from None
        mask = np.uint64((1 << (_BLOCK_BITS // per_block)) - 1)
        values = (packed[:, None] >> _shifts(per_block)) & mask
        self.hashvalues = values.reshape(-1)[:count].astype(np.uint32)


def _shifts(per_block: int) -> Words:
    """Return by how much each value of a block is shifted: the first the most."""
    return (np.arange(per_block - 1, -1, -1) * (_BLOCK_BITS // per_block)).astype(np.uint64)


def _chance_of_one(r: float, b: int) -> float:
    """Return A of the theorem, or its limit where r goes to 0.

    As in datasketch, the exponent below the line is 2b where the paper has 2^b.
    """
    if r == 0.0:
        return 1.0 / (1 << b)
    return r * (1 - r) ** int(2**b - 1) / (1 - (1 - r) ** (2 * b))
