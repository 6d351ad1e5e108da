"""The index of datasketch for similarity from a threshold on, in memory or on Redis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from neardup.arrays import Array
from neardup.compat.datasketch.schemes import Signature, agreed_scheme
from neardup.compat.datasketch.storage import open_storage, read_key, write_key
from neardup.errors import InputError, SchemeError, SettingError

if TYPE_CHECKING:
    from typing_extensions import Self

# The rules of Kronrod with 21 points and of Gauss with 10: nodes on both sides of the middle, their
# weights by each. In the order in which QUADPACK adds: floats depend on it.
_RULE = (
    (0.9739065285171717, 0.032558162307964725, 0.06667134430868814),
    (0.8650633666889845, 0.07503967481091996, 0.1494513491505806),
    (0.6794095682990244, 0.10938715880229764, 0.21908636251598204),
    (0.4333953941292472, 0.13470921731147334, 0.26926671930999635),
    (0.14887433898163122, 0.14773910490133849, 0.29552422471475287),
    (0.9956571630258081, 0.011694638867371874, 0.0),
    (0.9301574913557082, 0.054755896574351995, 0.0),
    (0.7808177265864169, 0.0931254545836976, 0.0),
    (0.5627571346686047, 0.12349197626206584, 0.0),
    (0.2943928627014602, 0.14277593857706009, 0.0),
)
_MIDDLE = 0.1494455540029169
_TOLERANCE = 1.49e-8  # absolute and relative; the default of scipy.integrate.quad
_MOST_PARTS = 50
_EPSILON = 2.220446049250313e-16


def integrate(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the integral of a function from low to high.

    Notes
    -----
    Piessens, de Doncker-Kapenga, Überhuber and Kahaner, QUADPACK (1983), routine QAGS without its
    extrapolation: the interval with the largest estimated error is halved until the sum of the
    errors is small. Extrapolation begins only after halvings that smooth functions do not need.
    """
    result, error, spread = _rule(function, low, high)
    if error == 0.0 or (error <= max(_TOLERANCE, _TOLERANCE * abs(result)) and error != spread):
        return result  # an error equal to the spread is no estimate
    parts = [(error, low, high, result)]
    while len(parts) == 1 or (
        error > max(_TOLERANCE, _TOLERANCE * abs(result)) and len(parts) < _MOST_PARTS
    ):
        worst = max(range(len(parts)), key=lambda index: parts[index][0])
        worst_error, start, end, value = parts[worst]
        middle = 0.5 * (start + end)
        left, left_error, _ = _rule(function, start, middle)
        right, right_error, _ = _rule(function, middle, end)
        halves = [(left_error, start, middle, left), (right_error, middle, end, right)]
        if right_error > left_error:
            halves.reverse()
        parts[worst], error = halves[0], error + (left_error + right_error) - worst_error
        parts.append(halves[1])
        result += (left + right) - value
    total = 0.0
    for part in parts:  # since Python 3.12 `sum` compensates, which QUADPACK does not
        total += part[3]
    return total


def _rule(
    function: Callable[[float], float], low: float, high: float
) -> tuple[float, float, float]:
    """Return the integral by the rule of Kronrod, an estimate of its error, and that of |function -
    its mean|.
    """
    centre, half = 0.5 * (low + high), 0.5 * (high - low)
    middle = function(centre)
    gauss, kronrod, total = 0.0, _MIDDLE * middle, abs(_MIDDLE * middle)
    sides: list[tuple[float, float, float]] = []
    for node, weight, gauss_weight in _RULE:
        left, right = function(centre - half * node), function(centre + half * node)
        gauss += gauss_weight * (left + right)
        kronrod += weight * (left + right)
        total += weight * (abs(left) + abs(right))
        sides.append((weight, left, right))
    mean = kronrod * 0.5
    spread = _MIDDLE * abs(middle - mean)
    deviations = 0.0
    for weight, left, right in sides:
        deviations += weight * (abs(left - mean) + abs(right - mean))
    spread += deviations
    error, spread = abs((kronrod - gauss) * half), spread * abs(half)
    if spread and error:
        error = spread * min(1.0, (200.0 * error / spread) ** 1.5)
    return kronrod * half, max(_EPSILON * 50.0 * total * abs(half), error), spread


@cache
def optimal_bands(threshold: float, num_perm: int, weights: tuple[float, float]) -> tuple[int, int]:
    """Return the bands b and rows r with the least weighted sum of the expected false positives and
    negatives.

    Leskovec et al., Mining of Massive Datasets, 3.4.2: sets of similarity s meet with probability 1
    - (1 - s^r)^b.

    >>> optimal_bands(0.9, 128, (0.5, 0.5))
    (5, 25)
    """
    return _least_error(lambda s: s, (0.0, threshold, 1.0), num_perm, num_perm, weights)


@cache
def optimal_containment_bands(
    threshold: float, num_perm: int, max_rows: int, ratio: float, weights: tuple[float, float]
) -> tuple[int, int]:
    """Return the bands and rows for containment, where the indexed set has ratio times the members
    of the query.

    Zhu et al. (VLDB 2016), section 5: a containment of t is a similarity of t / (1 + ratio - t).
    """
    limits = (0.0, min(threshold, ratio), min(ratio, 1.0))
    return _least_error(lambda t: t / (1 + ratio - t), limits, num_perm, max_rows, weights)


def _least_error(
    similarity: Callable[[float], float],
    limits: tuple[float, float, float],
    num_perm: int,
    max_rows: int,
    weights: tuple[float, float],
) -> tuple[int, int]:
    """Return the first bands and rows of the least error.

    similarity : of a value of the measure. limits : the least value, the least of wanted pairs, and
    the greatest.
    """

    def error(num_bands: int, num_rows: int) -> float:
        b, r = float(num_bands), float(num_rows)
        false_positive = integrate(
            lambda s: 1 - (1 - similarity(s) ** r) ** b, limits[0], limits[1]
        )
        false_negative = 0.0
        if limits[1] < limits[2]:
            # 1 - (1 - x), not x: rounded so, values below 2^-53 are 0, and the first of several
            # zeros is chosen.
            false_negative = integrate(
                lambda s: 1 - (1 - (1 - similarity(s) ** r) ** b), limits[1], limits[2]
            )
        return false_positive * weights[0] + false_negative * weights[1]

    pairs = (
        (b, r) for b in range(1, num_perm + 1) for r in range(1, min(max_rows, num_perm // b) + 1)
    )
    return min(pairs, key=lambda pair: error(*pair))


def require_settings(threshold: float, num_perm: int, weights: tuple[float, float]) -> None:
    """Refuse settings that an index cannot have."""
    if not 0.0 <= threshold <= 1.0:
        raise SettingError(
            f"threshold must be in [0.0, 1.0]: got {threshold}. Use 0.8, for example."
        )
    if num_perm < 2:
        raise SettingError(
            f"Too few permutation functions: num_perm must be at least 2, got {num_perm}. Use 128."
        )
    if any(not 0.0 <= weight <= 1.0 for weight in weights) or sum(weights) != 1.0:
        raise SettingError(
            f"Weights must be in [0.0, 1.0] and sum to 1.0: got {tuple(weights)}. Use (0.4, "
            "0.6) to miss fewer pairs."
        )


class MinHashLSH:
    """Keys by the bands of their MinHash: those that share a band with a query are its answer.

    Parameters
    ----------
    threshold : the Jaccard similarity for which bands and rows are chosen.
    num_perm : length of the signatures.
    weights : of the false positives and of the false negatives in that choice; they sum to 1.
    params : the number of bands and of rows, if they are to be given.
    storage_config : {"type": "dict"}, the default, or "redis" with the server under "redis" and the
        name of the index under "basename": indexes of one name are one, and datasketch's are found
        too.
    prepickle : on Redis, whether keys are kept as pickles, as datasketch does by default: of str,
        bytes or int, read without running anything. If not, keys are bytes. In memory it changes
        nothing.
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
        self.b, self.r = (
            params if params is not None else optimal_bands(threshold, num_perm, tuple(weights))
        )
        if self.b * self.r > num_perm:
            raise SettingError(
                f"The product of b and r in params is {self.b} * {self.r} = "
                f"{self.b * self.r}; it must be at most "
                f"num_perm={num_perm}. Give the num_perm of your MinHash, or fewer bands or rows."
            )
        if self.b < 2:
            raise SettingError(
                f"The number of bands are too small (b < 2): got {self.b}. Use a lower threshold."
            )
        self.keys: Any
        self.hashtables: Any
        self.keys, self.hashtables = open_storage(storage_config, self.b)
        self._on_server = storage_config is not None and storage_config.get("type") == "redis"
        self.prepickle = self._on_server if prepickle is None else bool(prepickle)
        self.hashfunc = hashfunc
        self.hashranges = [(band * self.r, (band + 1) * self.r) for band in range(self.b)]

    def insert(self, key: Hashable, minhash: Signature, check_duplication: bool = True) -> None:
        """Add a key with its MinHash. A key that is there already is an InputError, if it is to be
        checked.
        """
        self._insert(key, minhash, check_duplication)

    def _insert(
        self, key: Hashable, minhash: Signature, check_duplication: bool, buffer: bool = False
    ) -> None:
        self._require_length(minhash)
        self._minhash_scheme = agreed_scheme(self._minhash_scheme, minhash)
        if check_duplication and key in self:
            raise InputError(
                f"The given key already exists: {key!r}. Remove it first, or use another."
            )
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
                f"prepickle=False requires bytes keys on a server: got {key!r}, a "
                f"{type(key).__name__}. "
                "Give bytes, or use prepickle=True."
            )
        return key

    def _keys_of(self, stored: Iterable[Any]) -> set[Hashable]:
        """Return keys from what the storage has."""
        if self._on_server and self.prepickle:
            return {read_key(data) for data in stored}
        return set(iter(stored))  # one by one, which gives the order that datasketch's sets have

    def merge(self, other: MinHashLSH, check_overlap: bool = False) -> None:
        """Add all keys of another index; with check_overlap, one that both have is an
        InputError.
        """
        if type(self) is not type(other):
            raise SettingError(
                f"Cannot merge type MinHashLSH and type {type(other).__name__}. Give a MinHashLSH."
            )
        if (self.h, self.b, self.r) != (other.h, other.b, other.r):
            raise SettingError(
                "Cannot merge MinHashLSH with different initialization parameters: num_perm, "
                "b and r are "
                f"{(self.h, self.b, self.r)} and {(other.h, other.b, other.r)}."
            )
        known, its = self._minhash_scheme, other._minhash_scheme
        if known is not None and its is not None and known != its:
            raise SchemeError(
                f"Cannot merge indexes of two schemes, {known!r} and {its!r}. Build both with one."
            )
        bands_of = {
            key: other.keys.get(stored)
            for stored in list(other.keys)
            for key in other._keys_of([stored])
        }
        if check_overlap and any(key in self for key in bands_of):
            raise InputError(
                "The keys are overlapping, duplicate key exists. Remove it from one of the two."
            )
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
            raise SettingError(
                f"b must be less or equal to the number of hash tables, {self.b}: got {b}."
            )
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
        """Return the values of each of the first b bands, the most significant byte first, after
        the hash function.
        """
        data = self._byteswap(minhash.hashvalues)
        width = len(data) // self.h
        bands = [data[start * width : end * width] for start, end in self.hashranges[:b]]
        return bands if self.hashfunc is None else [self.hashfunc(band) for band in bands]

    @staticmethod
    def _byteswap(values: Array) -> bytes:
        return values.byteswap().tobytes()

    _hashed_byteswap = _byteswap  # the pickles of datasketch name one of the two

    def _require_length(self, minhash: Signature) -> None:
        if len(minhash) != self.h:
            raise SettingError(
                f"Expecting minhash with length {self.h}, got {len(minhash)}. Make MinHash "
                "and index with one num_perm."
            )


class _Session:
    """A context in which to change an index. On a server, what is inserted waits for its end, or
    until much waits.
    """

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
