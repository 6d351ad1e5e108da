"""bBitMinHash of datasketch: the lowest bits of the values of a MinHash."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from neardup.arrays import Words
from neardup.compat.datasketch.minhash import MinHash
from neardup.compat.datasketch.schemes import SCHEMES, Signature, read_head, scheme_named
from neardup.errors import InputError, SchemeError, SettingError

# seed, b, r, number of values; except with legacy, the number is negative and the byte of the
# scheme follows.
_HEAD = "<qBdi"
_BLOCK_BITS = 64


class bBitMinHash(Signature):
    """The b lowest bits of each value of a MinHash.

    Parameters
    ----------
    minhash : the MinHash.
    b : the number of bits to keep, 0 to 32.
    r : the share of all possible members that the set has; 0.0 if it is small or not known.

    Attributes
    ----------
    hashvalues : uint32 of shape (num_perm,).

    Notes
    -----
    Li and König, b-Bit Minwise Hashing (WWW 2010), theorem 1. The values are equal to datasketch.

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
        values = minhash.hashvalues
        mask = values.dtype.type((1 << self.b) - 1)
        # uint32 in every scheme, as b is 32 at most.
        self.hashvalues = (values & mask).astype(np.uint32)

    @property
    def num_perm(self) -> int:
        """The number of values."""
        return len(self)

    def kind(self) -> tuple[Any, ...]:
        """Return the scheme, the seed, b and r."""
        return self.scheme, self.seed, self.b, self.r

    def jaccard(self, other: bBitMinHash) -> float:
        """Estimate the Jaccard similarity of the sets.

        The estimate is negative if fewer bits agree than by chance.
        """
        for name in ("b", "scheme", "seed", "num_perm"):
            value = getattr(self, name)
            other_value = getattr(other, name)
            if value != other_value:
                raise SchemeError(
                    f"Two b-bit MinHash do not compare: the {name} is {value!r} and "
                    f"{other_value!r}. Make both with one {name}."
                )
        if self.b == 0:
            raise SchemeError(
                "Two b-bit MinHash with b=0 do not compare: no bit of their values is left. Make "
                "both with b=1, the default, or more."
            )
        share = int(np.count_nonzero(self.hashvalues == other.hashvalues)) / len(self)
        c1, c2 = self._chances(other)
        return (share - c1) / (1 - c2)

    def _chances(self, other: bBitMinHash) -> tuple[float, float]:
        """Return C1 and C2 of the theorem; the limit of both if no size is known."""
        a1 = _chance(self.r, self.b)
        a2 = _chance(other.r, self.b)
        if self.r == 0.0 and other.r == 0.0:
            return a1, a2
        scale = 1 / (self.r + other.r)
        c1 = (a1 * other.r + a2 * self.r) * scale
        c2 = (a1 * self.r + a2 * other.r) * scale
        return c1, c2

    def bytesize(self) -> int:
        """Return the number of bytes of the pickled state."""
        num_blocks = math.ceil(len(self) / self._per_block())
        return struct.calcsize(self._head()) + 8 * num_blocks

    def _head(self) -> str:
        """Return the format of the head of the pickled state for `struct`."""
        return SCHEMES[self.scheme].head_format(_HEAD)

    def _per_block(self) -> int:
        """Return the number of values in a block of 64 bits.

        The bits of a value are rounded up to a power of two; a value of 0 bits takes 4.
        """
        if self.b == 0:
            return _BLOCK_BITS // 4
        return _BLOCK_BITS // min(bits for bits in (1, 2, 4, 8, 16, 32) if self.b <= bits)

    def __getstate__(self) -> Any:
        count = len(self)
        per_block = self._per_block()
        head = SCHEMES[self.scheme].head(count)
        blocks = np.zeros((math.ceil(count / per_block), per_block), np.uint64)
        blocks.flat[:count] = self.hashvalues
        # The values of a block share no bit after the shifts, so that "or" joins them.
        packed = np.bitwise_or.reduce(blocks << _shifts(per_block), axis=1)
        data = struct.pack(self._head(), self.seed, self.b, self.r, *head)
        # The type and the layout of the pickles of datasketch, which each library reads from the
        # other.
        return bytearray(data + packed.astype("<u8").tobytes())

    def __setstate__(self, state: Any) -> None:
        data = memoryview(state)
        # Bytes of any origin: a damaged pickle is an InputError, whichever step notices it.
        try:
            head = read_head(_HEAD, data)
            self.seed, self.b, self.r = head.values
            self.scheme = head.scheme.name
            if self.b > 32:
                raise ValueError(f"b is {self.b}, more than 32")
            per_block = self._per_block()
            num_blocks = math.ceil(head.num_values / per_block)
            packed = np.frombuffer(data, "<u8", num_blocks, struct.calcsize(self._head()))
        except (struct.error, IndexError, ValueError) as error:
            raise InputError(f"The {len(data)} bytes are no whole bBitMinHash: {error}.") from None
        # The mask has the bits of a slot, which may be wider than b: the other bits are 0.
        mask = np.uint64((1 << (_BLOCK_BITS // per_block)) - 1)
        values = (packed[:, None] >> _shifts(per_block)) & mask
        self.hashvalues = values.reshape(-1)[: head.num_values].astype(np.uint32)


def _shifts(per_block: int) -> Words:
    """Return the shift of each value of a block: the first value has the highest bits."""
    return (np.arange(per_block - 1, -1, -1) * (_BLOCK_BITS // per_block)).astype(np.uint64)


def _chance(r: float, b: int) -> float:
    """Return A of the theorem, or its limit as r goes to 0.

    As in datasketch, the exponent of the denominator is 2b; in the paper it is 2^b.
    """
    if r == 0.0:
        return 1.0 / (1 << b)
    return r * (1 - r) ** int(2**b - 1) / (1 - (1 - r) ** (2 * b))
