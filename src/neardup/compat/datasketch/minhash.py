"""MinHash of datasketch."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from neardup.arrays import Array
from neardup.compat.datasketch.schemes import SCHEMES, Scheme, Signature, scheme_named
from neardup.errors import SchemeError, SettingError

if TYPE_CHECKING:
    from typing_extensions import Self

_MAX_PERMUTATIONS = 1 << 32


class MinHash(Signature):
    """A signature of a set, which grows with the set.

    Parameters
    ----------
    num_perm : the length of the signature; if hashvalues are given, their length.
    seed : the seed of the permutations, for `numpy.random.RandomState`.
    gpu_mode : "disable" or "detect"; with "always", `update_batch` raises RuntimeError, because
        neardup uses no GPU.
    hashfunc : a function from a member of the set to an integer of 32 bits, with affine64 of 64
        bits; by default the first bytes of SHA-1 of a member of type bytes.
    hashobj : has no effect but a warning, as in datasketch.
    hashvalues : the initial signature, shape (num_perm,).
    permutations : multipliers and addends of another MinHash, shape (2, num_perm).
    scheme : "affine32", the default, "affine64", or "legacy", the only scheme of datasketch 1.x.
        Required with hashvalues or permutations, which do not contain it.

    Attributes
    ----------
    hashvalues : uint32 with affine32, otherwise uint64, shape (num_perm,).
    permutations : array of the same type, shape (2, num_perm).

    Notes
    -----
    The values are bit for bit equal to datasketch 1.10 (legacy) and 2.0 (all three schemes).

    Examples
    --------
    >>> minhash = MinHash(num_perm=4, scheme="legacy")
    >>> minhash.update(b"Hello")
    >>> minhash.hashvalues.tolist()
    [734825475, 960773806, 359816889, 342714745]
    """

    _scheme_if_none: ClassVar[str | None] = None
    scheme: str
    seed: Any
    permutations: Any

    def __init__(
        self,
        num_perm: int = 128,
        seed: Any = 1,
        gpu_mode: str = "disable",
        hashfunc: Callable[[Any], int] | None = None,
        hashobj: object = None,
        hashvalues: Any = None,
        permutations: Any = None,
        scheme: str | None = None,
    ) -> None:
        provided = hashvalues is not None or permutations is not None
        # Values without a scheme may be of either version, so that the scheme must be named.
        self.scheme = self._choose_scheme(scheme, None if provided else "affine32")
        if hashvalues is not None:
            num_perm = len(hashvalues)
        if not 1 <= num_perm <= _MAX_PERMUTATIONS:
            raise SettingError(
                f"num_perm must be positive and at most 2^32: got {num_perm}. Use 128, the default."
            )
        if hashfunc is not None and not callable(hashfunc):
            raise SettingError(
                f"The hashfunc must be a callable: got {hashfunc!r}. Give a function to an integer."
            )
        if hashobj is not None:
            warnings.warn(
                "hashobj is deprecated, use hashfunc instead.", DeprecationWarning, stacklevel=2
            )
        known = self._known
        self.seed = seed
        self.num_perm = num_perm
        self.hashfunc = known.hashfunc if hashfunc is None else hashfunc
        if hashvalues is None:
            self.hashvalues = known.empty(num_perm)
        else:
            self.hashvalues = known.values(hashvalues, "hash values")
        self.permutations = (
            known.draw(num_perm, seed) if permutations is None else self._parse(permutations)
        )
        if len(self.permutations[0]) != num_perm:
            raise SettingError(
                f"Numbers of hash values and permutations mismatch: {num_perm} and "
                f"{len(self.permutations[0])}. Give both from one MinHash."
            )
        self._gpu_mode = gpu_mode

    @classmethod
    def _choose_scheme(cls, scheme: str | None, otherwise: str | None) -> str:
        """Return the name of the scheme to use. Raises SettingError if there is none."""
        chosen = scheme or cls._scheme_if_none or otherwise
        if chosen is None:
            raise SettingError(
                "scheme must be specified explicitly with hash values or permutations, because "
                "they do not contain it. Use that of the MinHash they are from; 'legacy' for "
                "values made by datasketch 1.x."
            )
        return scheme_named(chosen).name

    @property
    def _known(self) -> Scheme:
        return SCHEMES[self.scheme]

    def _parse(self, permutations: Any) -> Any:
        known = self._known
        if known.name == "legacy":
            return permutations
        # Permutations of another MinHash are shared, not copied: they never change.
        can_share = isinstance(permutations, np.ndarray) and permutations.dtype == known.dtype
        if not can_share:
            permutations = np.array(
                [known.values(row, "permutation parameters") for row in permutations]
            )
        # An even multiplier maps two hashes to one, so that it is no permutation.
        if np.any(permutations[0] & known.dtype(1) == 0):
            raise SettingError(
                f"All multipliers of scheme {known.name!r} must be odd: some are even."
            )
        return permutations

    def update(self, b: Any) -> None:
        """Add a member to the set."""
        self.update_batch((b,))

    def update_batch(self, b: Iterable[Any]) -> None:
        """Add members to the set."""
        hashfunc = self.hashfunc
        # Before the check of the GPU, as in datasketch: no member, no error.
        values = [hashfunc(member) for member in b]
        if not values:
            return
        if self._gpu_mode == "always":
            raise RuntimeError(
                "gpu_mode='always' is not supported: there is no GPU here. Use gpu_mode='disable'."
            )
        known = self._known
        signature = known.sign(known.hashes(values), self.permutations)
        self.hashvalues = np.minimum(self.hashvalues, signature)

    def jaccard(self, other: MinHash) -> float:
        """Estimate the Jaccard similarity of the sets: the share of equal values."""
        self._require_comparable(other)
        return int(np.count_nonzero(self.hashvalues == other.hashvalues)) / len(self)

    def count(self) -> float:
        """Estimate the number of members (Cohen 1994)."""
        total = np.sum(self.hashvalues / float(self._known.max_hash))
        return float(len(self)) / total - 1.0

    def merge(self, other: MinHash) -> None:
        """Change this to the signature of the union with another set."""
        self._require_comparable(other)
        self.hashvalues = np.minimum(other.hashvalues, self.hashvalues)

    def _require_comparable(self, other: MinHash) -> None:
        kind = self.kind()
        other_kind = MinHash.kind(other)  # `other` may be a MinHash of datasketch itself
        if kind != other_kind:
            raise SchemeError(
                "MinHash of two kinds do not compare: scheme, seed and number of permutation "
                f"functions are {kind} and {other_kind}. Make both with the same."
            )

    def is_empty(self) -> bool:
        """Return whether the signature is the signature of the empty set."""
        return bool((self.hashvalues == self._known.max_hash).all())

    def clear(self) -> None:
        """Remove all members of the set."""
        self.hashvalues = self._known.empty(len(self))

    def copy(self) -> Self:
        """Return an independent copy."""
        # Without drawing the permutations again: both share them.
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.hashvalues = self.digest()
        return twin

    def kind(self) -> tuple[Any, ...]:
        """Return the scheme, the seed and the length."""
        return getattr(self, "scheme", None), self.seed, len(self)

    @classmethod
    def union(cls, *mhs: MinHash) -> MinHash:
        """Return the MinHash of the union of two or more sets."""
        values = cls._values_of_union(mhs)
        first = mhs[0]
        return cls(
            seed=first.seed,
            hashfunc=first.hashfunc,
            hashvalues=values,
            permutations=first.permutations,
            gpu_mode=first._gpu_mode,
            scheme=first.scheme,
        )

    @staticmethod
    def _values_of_union(mhs: tuple[MinHash, ...]) -> Array:
        """Return the least value of each position."""
        if len(mhs) < 2:
            raise SettingError(f"Cannot union less than 2 MinHash: got {len(mhs)}.")
        for other in mhs[1:]:
            mhs[0]._require_comparable(other)
        least: Array = np.minimum.reduce([minhash.hashvalues for minhash in mhs])
        return least

    @classmethod
    def bulk(cls, b: Iterable[Iterable[Any]], **minhash_kwargs: Any) -> list[Self]:
        """Return the MinHash of each of many sets; minhash_kwargs : arguments of `MinHash`."""
        return list(cls.generator(b, **minhash_kwargs))

    @classmethod
    def generator(cls, b: Iterable[Iterable[Any]], **minhash_kwargs: Any) -> Iterator[Self]:
        """Yield the MinHash of each of many sets; minhash_kwargs : arguments of `MinHash`."""
        # The permutations are drawn once for all sets.
        empty = cls(**minhash_kwargs)
        for members in b:
            minhash = empty.copy()
            minhash.update_batch(members)
            yield minhash

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled MinHash, also of datasketch; without a scheme, it is of version 1."""
        self.__dict__.update({"scheme": "legacy", "_gpu_mode": "disable"} | state)
