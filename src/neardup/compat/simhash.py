"""Drop-in replacement for the Python package simhash, version 2.

Use ``from neardup.compat.simhash import Simhash, SimhashIndex`` instead of ``from simhash import
...``: the calls and the fingerprints are the same. Differences: weights above 255 work with NumPy
2, with which the package raises OverflowError; an empty list of features gives 0; fingerprints of
two lengths raise SchemeError; a query does not change the index, to which the package adds empty
buckets. For a corpus, `neardup.SimHash(scheme="simhash")` computes the same fingerprints in bulk.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np

from neardup.arrays import Array, Bytes, Ints
from neardup.errors import InputError, SchemeError, SettingError

__all__ = ["Simhash", "SimhashIndex"]

HashFunction = Callable[[bytes], Any]
# The package sums whole weights of up to _SMALL_WEIGHT in batches.
_BATCH = 200
_SMALL_WEIGHT = 50
_BIG_BUCKET = 200  # members, from which a query logs a warning


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


class Simhash:
    """A fingerprint of a text, or of features with or without weights.

    Parameters
    ----------
    value : a text, which is split into runs of four letters; features: strings, pairs of a string
        and a weight, or a dict of weights; a fingerprint: an integer or another Simhash.
    f : the number of bits of the fingerprint, a multiple of 8.
    reg : the regular expression, as a string or compiled, of the letters of a text.
    hashfunc : a function from UTF-8 bytes to an integer or to bytes, whose last f // 8 are
        used; MD5 by default.
    log : a logger; the logger "simhash" when None.

    Examples
    --------
    >>> Simhash(["aaa", "bbb"]).value
    57087923692560392
    """

    def __init__(
        self,
        value: Any,
        f: int = 64,
        reg: str | re.Pattern[str] = r"[\w\u4e00-\u9fcc]+",
        hashfunc: HashFunction = _md5,
        log: logging.Logger | None = None,
    ) -> None:
        if f < 8 or f % 8:
            raise SettingError(
                f"f must be a positive multiple of 8: got {f}. Use 64, or the bits of your hash."
            )
        self.f = f
        self.f_bytes = f // 8
        self.reg = reg
        self.hashfunc = hashfunc
        self.log = log or logging.getLogger("simhash")
        self.value: int = 0
        if isinstance(value, Simhash):
            self.value = value.value
        elif isinstance(value, str):
            self.build_by_text(value)
        elif isinstance(value, Iterable) and not isinstance(value, bytes):
            self.build_by_features(value)
        elif isinstance(value, Integral):
            self.value = int(value)
        else:
            raise TypeError(
                f"Bad parameter with type {type(value)}. Give a text, features, an integer or a "
                "Simhash."
            )

    def __eq__(self, other: object) -> bool:
        return self.value == other.value if isinstance(other, Simhash) else NotImplemented

    __hash__: ClassVar[None]  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Simhash({self.value:#0{self.f // 4 + 2}x}, f={self.f})"

    def _slide(self, content: str, width: int = 4) -> list[str]:
        # A text shorter than the width is one feature.
        return [content[i : i + width] for i in range(max(len(content) - width + 1, 1))]

    def _tokenize(self, content: str) -> list[str]:
        return self._slide("".join(re.findall(self.reg, content.lower())))

    def build_by_text(self, content: str) -> None:
        """Set the value to the fingerprint of a text."""
        self.build_by_features(Counter(self._tokenize(content)))

    def build_by_features(self, features: Iterable[Any]) -> None:
        """Set the value to the fingerprint of features, with or without weights.

        features : strings, pairs of a string and a weight, or a dict of weights.
        """
        pairs = features.items() if isinstance(features, Mapping) else features
        names: list[str] = []
        weights: list[Any] = []
        weight: Any = 1
        all_weights: Any = 0
        for feature in pairs:
            # As in the package, a string has the weight of the last pair before it.
            if isinstance(feature, str):
                name = feature
            else:
                name, weight = feature
            if not isinstance(weight, Real):
                raise InputError(
                    f"A weight must be a number: got {weight!r}. Give pairs of a string and a "
                    "number."
                )
            names.append(name)
            weights.append(weight)
            # Not by `sum`, which compensates rounding from Python 3.12 on; the package does not.
            all_weights += weight
        sums = self._add(names, weights)
        # A bit is set if more than half of the weight has it; half itself gives 0.
        half = all_weights / 2
        ones = np.array([total > half for total in sums.tolist()] if names else [], np.bool_)
        self.value = int.from_bytes(np.packbits(ones).tobytes(), "big")

    def _add(self, names: list[str], weights: list[Any]) -> Array:
        """Return the summed weights of the features that have each bit, the highest bit first.

        Sums of floats depend on the order, so weights are added in the order of the package: small
        whole weights in batches.
        """
        are_whole = all(isinstance(weight, Integral) for weight in weights)
        # Whole weights as objects: Python's integers do not overflow.
        total = np.zeros(self.f, object if are_whole else np.float64)
        batch = []
        bits = self._bits(names)
        for index, weight in enumerate(weights):
            if isinstance(weight, int) and weight <= _SMALL_WEIGHT:
                batch.append(index)
            else:
                total = total + bits[index].astype(total.dtype) * weight
            if len(batch) >= _BATCH:
                total = total + self._add_batch(bits, weights, batch)
                batch = []
        return total + self._add_batch(bits, weights, batch)

    @staticmethod
    def _add_batch(bits: Array, weights: list[Any], batch: list[int]) -> Ints:
        whole_weights = np.array([weights[index] for index in batch], np.int64)
        # As in the package, a negative one counts only in the half.
        return np.maximum(whole_weights, 0) @ bits[batch].astype(np.int64)

    def _bits(self, names: list[str]) -> Bytes:
        """Return the bits of the hashes, shape (num_features, f), the most significant first."""
        digests = b"".join([self._digest(name) for name in names])
        return np.unpackbits(np.frombuffer(digests, np.uint8)).reshape(-1, self.f)

    def _digest(self, name: str) -> bytes:
        hashed = self.hashfunc(name.encode())
        if isinstance(hashed, Integral):
            # The lowest bits, also of a negative number.
            return (int(hashed) & ((1 << self.f) - 1)).to_bytes(self.f_bytes, "big")
        # The last bytes are the lowest bits of the number that the digest writes.
        digest = cast(bytes, hashed)[-self.f_bytes :]
        if len(digest) < self.f_bytes:
            raise InputError(
                f"hashfunc must return an integer, or at least f // 8 = {self.f_bytes} bytes: got "
                f"{len(digest)} bytes for {name!r}. Use a smaller f or a longer hash."
            )
        return digest

    def distance(self, another: Simhash) -> int:
        """Return the number of different bits of two fingerprints."""
        if self.f != another.f:
            raise SchemeError(
                f"Fingerprints of {self.f} and of {another.f} bits cannot be compared. Make both "
                "with the same f."
            )
        # A value that was given may have more bits than f.
        return ((self.value ^ another.value) & ((1 << self.f) - 1)).bit_count()


class SimhashIndex:
    """Fingerprints by their k + 1 parts: two within k bits of each other share at least one part.

    Parameters
    ----------
    objs : list of (identifier, Simhash).
    f : the number of bits of the fingerprints.
    k : the greatest distance of near fingerprints.
    log : a logger; the logger "simhash" when None.

    Examples
    --------
    >>> index = SimhashIndex([("a", Simhash("the quick brown fox"))], k=3)
    >>> index.get_near_dups(Simhash("The quick brown fox!"))
    ['a']
    """

    def __init__(
        self,
        objs: Iterable[tuple[Any, Simhash]],
        f: int = 64,
        k: int = 2,
        log: logging.Logger | None = None,
    ) -> None:
        self.k = k
        self.f = f
        self.log = log or logging.getLogger("simhash")
        self.bucket: dict[str, set[tuple[int, str]]] = {}
        for identifier, simhash in objs:
            self.add(identifier, simhash)

    def get_near_dups(self, simhash: Simhash) -> list[str]:
        """Return the identifiers of the fingerprints within k bits, as strings."""
        self._require_bits(simhash)
        found: dict[str, None] = {}
        for key in self.get_keys(simhash):
            members = self.bucket.get(key, ())
            if len(members) > _BIG_BUCKET:
                self.log.warning("Big bucket found. key:%s, len:%s", key, len(members))
            for value, identifier in members:
                if ((simhash.value ^ value) & ((1 << self.f) - 1)).bit_count() <= self.k:
                    found[identifier] = None
        return list(found)

    def add(self, obj_id: Any, simhash: Simhash) -> None:
        """Add a fingerprint under an identifier, which becomes a string."""
        self._require_bits(simhash)
        for key in self.get_keys(simhash):
            self.bucket.setdefault(key, set()).add((simhash.value, str(obj_id)))

    def delete(self, obj_id: Any, simhash: Simhash) -> None:
        """Remove a fingerprint with this identifier, if the index has it."""
        self._require_bits(simhash)
        for key in self.get_keys(simhash):
            # No new bucket for a fingerprint that the index does not have.
            self.bucket.get(key, set()).discard((simhash.value, str(obj_id)))

    @property
    def offsets(self) -> list[int]:
        """The bit at which each part begins."""
        # The last part takes the bits that are left over.
        return [self.f // (self.k + 1) * part for part in range(self.k + 1)]

    def get_keys(self, simhash: Simhash) -> Iterator[str]:
        """Yield a key for each part: its bits and its number, in hexadecimal digits."""
        limits = [*self.offsets[1:], self.f]
        for part, (offset, limit) in enumerate(zip(self.offsets, limits, strict=True)):
            bits = simhash.value >> offset & (2 ** (limit - offset) - 1)
            yield f"{bits:x}:{part:x}"

    def bucket_size(self) -> int:
        """Return the number of buckets."""
        return len(self.bucket)

    def _require_bits(self, simhash: Simhash) -> None:
        if simhash.f != self.f:
            raise SchemeError(
                f"The index holds fingerprints of {self.f} bits: got one of {simhash.f}. Make both "
                "with the same f."
            )
