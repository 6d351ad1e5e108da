"""The index of datasketch for similarity from a threshold on, in memory or on Redis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from neardup.compat.datasketch.lsh_params import optimal_bands
from neardup.compat.datasketch.pickled_keys import read_key, write_key
from neardup.compat.datasketch.schemes import Signature, agreed_scheme
from neardup.compat.datasketch.storage import open_storage
from neardup.errors import InputError, SchemeError, SettingError

if TYPE_CHECKING:
    from typing_extensions import Self


def require_settings(threshold: float, num_perm: int, weights: tuple[float, float]) -> None:
    """Refuse settings that an index cannot have."""
    if not 0.0 <= threshold <= 1.0:
        raise SettingError(f"threshold must be in [0.0, 1.0]: got {threshold}. Use 0.8, for example.")
    if num_perm < 2:
        raise SettingError(f"Too few permutation functions: num_perm must be at least 2, got {num_perm}. Use 128.")
    if any(not 0.0 <= weight <= 1.0 for weight in weights) or sum(weights) != 1.0:
        raise SettingError(
            f"Weights must be in [0.0, 1.0] and sum to 1.0: got {tuple(weights)}. Use (0.4, 0.6) to miss fewer pairs."
        )


class MinHashLSH:
    """Keys by the bands of their MinHash: those that share a band with a query are its answer.

    Parameters
    ----------
    threshold : the Jaccard similarity for which bands and rows are chosen.
    num_perm : length of the signatures.
    weights : of the false positives and of the false negatives in that choice; they sum to 1.
    params : the number of bands and of rows, if they are to be given.
    storage_config : {"type": "dict"}, the default, or "redis" with the server under "redis" and the name of the index
        under "basename": indexes of one name are one, and datasketch's are found too.
    prepickle : on Redis, whether keys are kept as pickles, as datasketch does by default: of str, bytes or int, read
        without running anything. If not, keys are bytes. In memory it changes nothing.
    hashfunc : from the bytes of a band to what is kept of them; the bytes themselves if not given.

    Attributes
    ----------
    b, r : bands, and rows of a band.
    h : length of the signatures.
    keys : the bytes of the bands by key.
    hashtables : for each band, the keys by its bytes.

    Examples
    --------
    >>> from neardup.compat.datasketch import MinHash
    >>> index = MinHashLSH(threshold=0.5, num_perm=128)
    >>> minhash = MinHash(num_perm=128)
    >>> minhash.update_batch([b"this", b"is", b"a", b"test"])
    >>> index.insert("one", minhash)
    >>> index.query(minhash)
    ['one']
    """

    # Set here, since the state that pickle kept of an index of datasketch may lack them.
    buffer_size = 50000
    _on_server = False
    _minhash_scheme: str | None = None
    _buffered: tuple[set[Hashable], ...] = ()

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        weights: tuple[float, float] = (0.5, 0.5),
        params: tuple[int, int] | None = None,
        storage_config: Mapping[str, Any] | None = None,
        prepickle: bool | None = None,
        hashfunc: Callable[[bytes], bytes] | None = None,
    ) -> None:
        require_settings(threshold, num_perm, weights)
        self.h = num_perm
        self.b, self.r = params if params is not None else optimal_bands(threshold, num_perm, tuple(weights))
        if self.b * self.r > num_perm:
            raise SettingError(
                f"The product of b and r in params is {self.b} * {self.r} = {self.b * self.r}; it must be at most "
                f"num_perm={num_perm}. Give the num_perm of your MinHash, or fewer bands or rows."
            )
        if self.b < 2:
            raise SettingError(f"The number of bands are too small (b < 2): got {self.b}. Use a lower threshold.")
        self.keys: Any
        self.hashtables: Any
        self.keys, self.hashtables = open_storage(storage_config, self.b)
        self._on_server = storage_config is not None and storage_config.get("type") == "redis"
        self.prepickle = self._on_server if prepickle is None else bool(prepickle)
        self.hashfunc = hashfunc
        self.hashranges = [(band * self.r, (band + 1) * self.r) for band in range(self.b)]

    def insert(self, key: Hashable, minhash: Signature, check_duplication: bool = True) -> None:
        """Add a key with its MinHash. A key that is there already is an InputError, if it is to be checked."""
        self._insert(key, minhash, check_duplication)

    def _insert(self, key: Hashable, minhash: Signature, check_duplication: bool, buffer: bool = False) -> None:
        self._require_length(minhash)
        self._minhash_scheme = agreed_scheme(self._minhash_scheme, minhash)
        if check_duplication and key in self:
            raise InputError(f"The given key already exists: {key!r}. Remove it first, or use another.")
        self._put(self._stored(key), self._bands(minhash), buffer)

    def _put(self, stored: Any, bands: list[bytes], buffer: bool = False) -> None:
        self.keys.insert(stored, *bands, buffer=buffer)
        for band, hashtable in zip(bands, self.hashtables, strict=False):
            hashtable.insert(band, stored, buffer=buffer)

    def _stored(self, key: Hashable) -> Any:
        """Return a key as the storage has it: bytes on a server."""
        if not self._on_server:
            return key
        if self.prepickle:
            return write_key(key)
        if not isinstance(key, bytes):
            raise InputError(
                f"prepickle=False requires bytes keys on a server: got {key!r}, a {type(key).__name__}. "
                "Give bytes, or use prepickle=True."
            )
        return key

    def _keys_of(self, stored: Iterable[Any]) -> set[Hashable]:
        """Return keys from what the storage has."""
        if self._on_server and self.prepickle:
            return {read_key(data) for data in stored}
        return set(iter(stored))  # one by one, which gives the order that datasketch's sets have

    def merge(self, other: MinHashLSH, check_overlap: bool = False) -> None:
        """Add all keys of another index; with check_overlap, one that both have is an InputError."""
        if type(self) is not type(other):
            raise SettingError(f"Cannot merge type MinHashLSH and type {type(other).__name__}. Give a MinHashLSH.")
        if (self.h, self.b, self.r) != (other.h, other.b, other.r):
            raise SettingError(
                "Cannot merge MinHashLSH with different initialization parameters: num_perm, b and r are "
                f"{(self.h, self.b, self.r)} and {(other.h, other.b, other.r)}."
            )
        known, its = self._minhash_scheme, other._minhash_scheme
        if known is not None and its is not None and known != its:
            raise SchemeError(f"Cannot merge indexes of two schemes, {known!r} and {its!r}. Build both with one.")
        bands_of = {key: other.keys.get(stored) for stored in list(other.keys) for key in other._keys_of([stored])}
        if check_overlap and any(key in self for key in bands_of):
            raise InputError("The keys are overlapping, duplicate key exists. Remove it from one of the two.")
        self._minhash_scheme = known or its
        for key, bands in bands_of.items():
            self._put(self._stored(key), bands)

    def query(self, minhash: Signature) -> list[Hashable]:
        """Return the keys that share a band with a MinHash, in no order."""
        return list(self._query_b(minhash, self.b))

    def _query_b(self, minhash: Signature, b: int) -> set[Hashable]:
        """Return the keys that share one of the first b bands."""
        self._require_length(minhash)
        agreed_scheme(self._minhash_scheme, minhash)
        if b > self.b:
            raise SettingError(f"b must be less or equal to the number of hash tables, {self.b}: got {b}.")
        if not b:
            return set()
        buckets = self.hashtables[0].get_each(self.hashtables[:b], self._bands(minhash, b))
        return self._keys_of(stored for bucket in buckets for stored in bucket)

    def add_to_query_buffer(self, minhash: Signature) -> None:
        """Query now, answer with `collect_query_buffer`."""
        self._buffered += (self._query_b(minhash, self.b),)

    def collect_query_buffer(self) -> list[Hashable]:
        """Return the keys that all queries since the last collection have in common."""
        buffered, self._buffered = self._buffered, ()
        return list(set.intersection(*buffered)) if buffered else []

    def __contains__(self, key: Hashable) -> bool:
        return self._stored(key) in self.keys

    def remove(self, key: Hashable) -> None:
        """Take a key out; one that is not there is an InputError."""
        stored = self._stored(key)
        if stored not in self.keys:
            raise InputError(f"The given key does not exist: {key!r}.")
        for band, hashtable in zip(self.keys[stored], self.hashtables, strict=False):
            hashtable.remove_val(band, stored)
            if not hashtable.get(band):
                hashtable.remove(band)
        self.keys.remove(stored)

    def is_empty(self) -> bool:
        """Return whether there is no key."""
        return any(not len(hashtable) for hashtable in self.hashtables)

    def get_counts(self) -> list[dict[Hashable, int]]:
        """Return for each band the number of keys by its bytes."""
        return [hashtable.itemcounts() for hashtable in self.hashtables]

    def get_subset_counts(self, *keys: Hashable) -> list[dict[Hashable, int]]:
        """Return the counts of `get_counts`, for some keys only."""
        found = [bands for bands in self.keys.getmany(*map(self._stored, set(keys))) if bands]
        return [dict(Counter(bands[band] for bands in found)) for band in range(self.b)]

    def insertion_session(self, buffer_size: int = 50000) -> MinHashLSHInsertionSession:
        """Return a context in which to insert."""
        return MinHashLSHInsertionSession(self, buffer_size)

    def deletion_session(self, buffer_size: int = 50000) -> MinHashLSHDeletionSession:
        """Return a context in which to remove."""
        return MinHashLSHDeletionSession(self, buffer_size)

    def _bands(self, minhash: Signature, b: int | None = None) -> list[bytes]:
        """Return the values of each of the first b bands, the most significant byte first, after the hash function."""
        data = self._byteswap(minhash.hashvalues)
        width = len(data) // self.h
        bands = [data[start * width : end * width] for start, end in self.hashranges[:b]]
        return bands if self.hashfunc is None else [self.hashfunc(band) for band in bands]

    @staticmethod
    def _byteswap(values: np.ndarray[Any, Any]) -> bytes:
        return values.byteswap().tobytes()

    _hashed_byteswap = _byteswap  # the pickles of datasketch name one of the two

    def _require_length(self, minhash: Signature) -> None:
        if len(minhash) != self.h:
            raise SettingError(
                f"Expecting minhash with length {self.h}, got {len(minhash)}. Make MinHash and index with one num_perm."
            )


class _Session:
    """A context in which to change an index. On a server, what is inserted waits for its end, or until much waits."""

    def __init__(self, lsh: MinHashLSH, buffer_size: int) -> None:
        self.lsh = lsh
        lsh.buffer_size = lsh.keys.buffer_size = buffer_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Send what waits."""
        self.lsh.keys.empty_buffer()


class MinHashLSHInsertionSession(_Session):
    """A context in which to insert."""

    def insert(self, key: Hashable, minhash: Signature, check_duplication: bool = True) -> None:
        """Insert into the index."""
        self.lsh._insert(key, minhash, check_duplication, buffer=True)


class MinHashLSHDeletionSession(_Session):
    """A context in which to remove."""

    def remove(self, key: Hashable) -> None:
        """Remove from the index."""
        self.lsh.remove(key)
