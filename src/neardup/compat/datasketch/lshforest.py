"""MinHashLSHForest of datasketch: an index for the k most similar keys, in memory."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterator

import numpy as np

from neardup.arrays import Array
from neardup.compat.datasketch.schemes import Signature, agreed_scheme
from neardup.errors import InputError, SettingError


class MinHashLSHForest:
    """Keys by trees of prefixes: two signatures are near if they share a long prefix of a tree.

    Parameters
    ----------
    num_perm : the length of the signatures.
    l : the number of trees; each has the next k = num_perm // l values.

    Notes
    -----
    Bawa, Condie and Ganesan, LSH Forest (WWW 2005), with sorted lists instead of trees.

    Examples
    --------
    >>> from neardup.compat.datasketch import MinHash
    >>> forest = MinHashLSHForest(num_perm=128)
    >>> minhash = MinHash(num_perm=128)
    >>> minhash.update(b"Hello")
    >>> forest.add("one", minhash)
    >>> forest.index()
    >>> forest.query(minhash, 2)
    ['one']
    """

    # A default of the class: a pickled forest of datasketch may lack this attribute.
    _minhash_scheme: str | None = None

    def __init__(self, num_perm: int = 128, l: int = 8) -> None:  # noqa: E741
        if l <= 0 or num_perm <= 0:
            raise SettingError(
                f"num_perm and l must be positive: got {num_perm} and {l}. Use 128 and 8."
            )
        if l > num_perm:
            raise SettingError(
                f"l cannot be greater than num_perm: got {l} and {num_perm}. Use 128 and 8."
            )
        self.l = l
        self.k = num_perm // l
        self.hashtables: list[dict[bytes, list[Hashable]]] = [defaultdict(list) for _ in range(l)]
        self.hashranges = [(tree * self.k, (tree + 1) * self.k) for tree in range(l)]
        self.keys: dict[Hashable, list[bytes]] = {}
        self.sorted_hashtables: list[list[bytes]] = [[] for _ in range(l)]

    def add(self, key: Hashable, minhash: Signature) -> None:
        """Add a key with its MinHash; `index` makes it available to queries.

        Raises InputError if the forest has the key.
        """
        self._require_length(minhash)
        scheme = agreed_scheme(self._minhash_scheme, minhash)
        if key in self.keys:
            raise InputError(f"The given key has already been added: {key!r}. Use another.")
        self._minhash_scheme = scheme  # only now: a refused key must not decide it
        self.keys[key] = self._prefixes(minhash, self.k)
        for values, hashtable in zip(self.keys[key], self.hashtables, strict=True):
            hashtable[values].append(key)

    def index(self) -> None:
        """Make all keys added so far available to queries."""
        # Of the whole tables: new values that `add` brings later are seen after the next `index`.
        self.sorted_hashtables = [sorted(hashtable) for hashtable in self.hashtables]

    def query(self, minhash: Signature, k: int) -> list[Hashable]:
        """Return at most k keys that share the longest prefixes, in no order."""
        if k <= 0:
            raise SettingError(f"k must be positive: got {k}.")
        self._require_length(minhash)
        agreed_scheme(self._minhash_scheme, minhash)
        found = set()
        # Longest prefixes first: they are the most similar keys.
        for length in range(self.k, 0, -1):
            for key in self._query(minhash, length):
                found.add(key)
                if len(found) >= k:
                    return list(found)
        return list(found)

    def _query(self, minhash: Signature, length: int) -> Iterator[Hashable]:
        """Yield the keys that share the first `length` values of a tree."""
        prefixes = self._prefixes(minhash, length)
        for prefix, ordered, hashtable in zip(
            prefixes, self.sorted_hashtables, self.hashtables, strict=True
        ):
            # All keys with the prefix follow each other from here.
            position = bisect_left(ordered, prefix)
            while position < len(ordered) and ordered[position].startswith(prefix):
                yield from hashtable[ordered[position]]
                position += 1

    def get_minhash_hashvalues(self, key: Hashable) -> Array:
        """Return the values of a key in the forest, uint32 or uint64 of shape (k * l,).

        Raises KeyError if there is no such key.
        """
        stored = self.keys.get(key)
        if stored is None:
            raise KeyError(f"The provided key does not exist in the LSHForest: {key}")
        # The values of a pickled forest may have 4 or 8 bytes, and no scheme.
        width = len(stored[0]) // self.k
        if width not in (4, 8) or any(len(values) != width * self.k for values in stored):
            raise InputError(
                f"The values of {key!r} are not those of a MinHash, which have 4 or 8 bytes each."
            )
        return np.frombuffer(b"".join(stored), np.dtype(f"u{width}")).byteswap()

    def is_empty(self) -> bool:
        """Return whether no key is available to queries, for example before `index`."""
        # As in datasketch.
        return any(not ordered for ordered in self.sorted_hashtables)

    def __contains__(self, key: Hashable) -> bool:
        return key in self.keys

    def _prefixes(self, minhash: Signature, length: int) -> list[bytes]:
        """Return the first `length` values of each tree as bytes.

        The most significant byte comes first, so that bytes sort like numbers.
        """
        data = minhash.hashvalues.byteswap().tobytes()
        width = len(data) // len(minhash)
        # `length` values of each tree, whatever its k.
        return [data[start * width : (start + length) * width] for start, _ in self.hashranges]

    def _require_length(self, minhash: Signature) -> None:
        if len(minhash) < self.k * self.l:
            raise SettingError(
                f"The num_perm of MinHash out of range: the forest needs {self.k * self.l} values, "
                f"got {len(minhash)}."
            )
