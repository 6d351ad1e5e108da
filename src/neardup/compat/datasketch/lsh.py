"""MinHashLSH of datasketch: an index for similarity above a threshold, in memory or on Redis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from neardup.arrays import Array
from neardup.compat.datasketch.pickled_keys import read_key, write_key
from neardup.compat.datasketch.schemes import Signature, agreed_scheme
from neardup.compat.datasketch.storage import Config, open_storage
from neardup.errors import InputError, SchemeError, SettingError

if TYPE_CHECKING:
    from typing_extensions import Self

# Nodes of the Kronrod rule with 21 points: the distance from the centre, on both sides, the weight,
# and the weight in the Gauss rule with 10 points, 0.0 for a node that it lacks. The order is that
# of the additions in QUADPACK: floating-point sums depend on it.
_NODES = (
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
_CENTRE_WEIGHT = 0.1494455540029169
_TOLERANCE = 1.49e-8  # absolute and relative; the default of scipy.integrate.quad
_MAX_INTERVALS = 50
_ROUNDING = 2.220446049250313e-16 * 50.0  # relative; the first factor is the machine epsilon


class _Interval(NamedTuple):
    """The integral over an interval, and an estimate of its error.

    deviation : the integral of |function - its mean|.
    """

    low: float
    high: float
    integral: float
    error: float
    deviation: float


def integrate(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the integral of a function from low to high.

    Notes
    -----
    Piessens, de Doncker-Kapenga, Überhuber and Kahaner, QUADPACK (1983), routine QAGS without its
    extrapolation: the interval with the largest estimated error is halved until the sum of the
    errors is small. Extrapolation begins only after halvings that smooth functions do not need.
    """
    whole = _apply_rule(function, low, high)
    integral = whole.integral
    error = whole.error
    # An error of the size of the deviation is the upper limit of `_error`, and so no estimate: QAGS
    # halves then, too.
    is_estimate = error != whole.deviation
    if error == 0.0 or (error <= _tolerance(integral) and is_estimate):
        return integral
    intervals = [whole]
    # At least once: the whole interval was not accepted above.
    while len(intervals) == 1 or (error > _tolerance(integral) and len(intervals) < _MAX_INTERVALS):
        index = max(range(len(intervals)), key=lambda index: intervals[index].error)
        worst = intervals[index]
        first, second = _halve(function, worst)
        intervals[index] = first
        intervals.append(second)
        # QUADPACK adds in this order: the last bit may decide between bands.
        error = error + (first.error + second.error) - worst.error
        integral += (first.integral + second.integral) - worst.integral
    total = 0.0
    for interval in intervals:  # since Python 3.12 `sum` compensates, which QUADPACK does not
        total += interval.integral
    return total


def _tolerance(integral: float) -> float:
    return max(_TOLERANCE, _TOLERANCE * abs(integral))


def _halve(function: Callable[[float], float], interval: _Interval) -> list[_Interval]:
    """Return both halves, the half with the larger error first: the order of QUADPACK."""
    middle = 0.5 * (interval.low + interval.high)
    left = _apply_rule(function, interval.low, middle)
    right = _apply_rule(function, middle, interval.high)
    return [right, left] if right.error > left.error else [left, right]


def _apply_rule(function: Callable[[float], float], low: float, high: float) -> _Interval:
    """Integrate by the Kronrod rule; the difference from the Gauss rule estimates the error."""
    centre = 0.5 * (low + high)
    half = 0.5 * (high - low)
    middle = function(centre)
    gauss = 0.0
    kronrod = _CENTRE_WEIGHT * middle
    absolute = abs(_CENTRE_WEIGHT * middle)
    sides = []
    for distance, weight, gauss_weight in _NODES:
        left = function(centre - half * distance)
        right = function(centre + half * distance)
        gauss += gauss_weight * (left + right)
        kronrod += weight * (left + right)
        absolute += weight * (abs(left) + abs(right))
        sides.append((left, right))
    deviation = _deviation(middle, sides, 0.5 * kronrod) * abs(half)
    rounding_error = _ROUNDING * absolute * abs(half)
    return _Interval(
        low=low,
        high=high,
        integral=kronrod * half,
        error=max(rounding_error, _error((kronrod - gauss) * half, deviation)),
        deviation=deviation,
    )


def _error(difference: float, deviation: float) -> float:
    """Return the estimate of QUADPACK from the difference of the two rules."""
    error = abs(difference)
    if deviation and error:
        # The better rule is much closer to the integral than the two rules are to each other: hence
        # the power 1.5 of QUADPACK.
        error = deviation * min(1.0, (200.0 * error / deviation) ** 1.5)
    return error


def _deviation(middle: float, sides: list[tuple[float, float]], mean: float) -> float:
    """Return the sum of |function - mean| by the Kronrod rule, from the values at its nodes."""
    of_sides = 0.0
    for (_, weight, _), (left, right) in zip(_NODES, sides, strict=True):
        of_sides += weight * (abs(left - mean) + abs(right - mean))
    return _CENTRE_WEIGHT * abs(middle - mean) + of_sides


# More than a thousand integrals for 128 values, and programs make many indexes of the same
# settings.
@cache
def optimal_bands(threshold: float, num_perm: int, weights: tuple[float, float]) -> tuple[int, int]:
    """Return the bands b and rows r of the least weighted sum of false positives and negatives.

    Leskovec et al., Mining of Massive Datasets, 3.4.2: sets of similarity s share a band with
    probability 1 - (1 - s^r)^b.

    >>> optimal_bands(0.9, 128, (0.5, 0.5))
    (5, 25)
    """
    limits = _Limits(low=0.0, threshold=threshold, high=1.0)
    return _least_error(lambda s: s, limits, num_perm, num_perm, weights)


@cache
def optimal_containment_bands(
    threshold: float, num_perm: int, max_rows: int, ratio: float, weights: tuple[float, float]
) -> tuple[int, int]:
    """Return the bands and rows for containment; ratio : size of the indexed set to the query's.

    Zhu et al. (VLDB 2016), section 5: a containment of t is a similarity of t / (1 + ratio - t).
    """
    limits = _Limits(low=0.0, threshold=min(threshold, ratio), high=min(ratio, 1.0))
    return _least_error(lambda t: t / (1 + ratio - t), limits, num_perm, max_rows, weights)


class _Limits(NamedTuple):
    """Values of a measure: pairs from `threshold` to `high` are wanted, from `low` not."""

    low: float
    threshold: float
    high: float


def _least_error(
    similarity: Callable[[float], float],
    limits: _Limits,
    num_perm: int,
    max_rows: int,
    weights: tuple[float, float],
) -> tuple[int, int]:
    """Return the first bands and rows of the least error.

    similarity : returns the Jaccard similarity at a value of the measure.
    """

    def error(bands_and_rows: tuple[int, int]) -> float:
        b, r = map(float, bands_and_rows)
        false_positive = integrate(
            lambda s: 1 - (1 - similarity(s) ** r) ** b, limits.low, limits.threshold
        )
        false_negative = 0.0
        if limits.threshold < limits.high:
            # 1 - (1 - x), not x: values below 2^-53 are rounded to 0, and the first of several
            # zeros is chosen.
            false_negative = integrate(
                lambda s: 1 - (1 - (1 - similarity(s) ** r) ** b), limits.threshold, limits.high
            )
        return false_positive * weights[0] + false_negative * weights[1]

    choices = []
    # The order of datasketch: of equal errors the first one is chosen, here by `min`.
    for b in range(1, num_perm + 1):
        choices += [(b, r) for r in range(1, min(max_rows, num_perm // b) + 1)]
    return min(choices, key=error)


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
    is_outside = any(not 0.0 <= weight <= 1.0 for weight in weights)
    if is_outside or len(weights) != 2 or sum(weights) != 1.0:
        raise SettingError(
            f"Weights must be two numbers in [0.0, 1.0] that sum to 1.0: got {tuple(weights)}. Use "
            "(0.4, 0.6) to miss fewer pairs."
        )


class MinHashLSH:
    """Keys by the bands of their MinHash: a query returns the keys that share a band with it.

    Parameters
    ----------
    threshold : the Jaccard similarity for which bands and rows are chosen.
    num_perm : the length of the signatures.
    weights : the weights of false positives and false negatives in this choice; they sum to 1.
    params : the number of bands and the number of rows, instead of this choice.
    storage_config : {"type": "dict"}, the default, or "redis" with the server under "redis" and the
        name of the index under "basename". Indexes of one name share their data, also with
        datasketch.
    prepickle : on Redis, whether keys are stored as pickles, as in datasketch by default: pickles
        of str, bytes or int, read without running code. If false, keys are bytes. Ignored in
        memory.
    hashfunc : a function from the bytes of a band to the bytes to store; by default the bytes of
        the band.

    Attributes
    ----------
    b, r : the number of bands, and of rows of a band.
    h : the length of the signatures.
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

    # Defaults of the class: a pickled index of datasketch may lack these attributes.
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
        storage_config: Config | None = None,
        prepickle: bool | None = None,
        hashfunc: Callable[[bytes], bytes] | None = None,
    ) -> None:
        require_settings(threshold, num_perm, weights)
        self.h = num_perm
        if params is None:
            # A list has no hash for the cache.
            params = optimal_bands(threshold, num_perm, tuple(weights))
        self.b, self.r = params
        if self.b * self.r > num_perm:
            raise SettingError(
                f"The product of b and r in params is {self.b} * {self.r} = {self.b * self.r}; it "
                f"must be at most num_perm={num_perm}. Give the num_perm of your MinHash, or fewer "
                "bands or rows."
            )
        if self.b < 2 or self.r < 1:
            raise SettingError(
                f"The number of bands are too small (b < 2), or of rows (r < 1): got {params}. "
                "Use a lower threshold, or more in params."
            )
        self.keys: Any
        self.hashtables: Any
        self.keys, self.hashtables = open_storage(storage_config, self.b)
        self._on_server = storage_config is not None and storage_config.get("type") == "redis"
        self.prepickle = self._on_server if prepickle is None else bool(prepickle)
        self.hashfunc = hashfunc
        self.hashranges = [(band * self.r, (band + 1) * self.r) for band in range(self.b)]

    def insert(
        self,
        key: Hashable,
        minhash: Signature,
        check_duplication: bool = True,
        *,
        buffer: bool = False,
    ) -> None:
        """Add a key with its MinHash; buffer : whether a session on Redis sends it later.

        With check_duplication, raises InputError if the index has the key.
        """
        self._require_length(minhash)
        scheme = agreed_scheme(self._minhash_scheme, minhash)
        if check_duplication and key in self:
            raise InputError(
                f"The given key already exists: {key!r}. Remove it first, or use another."
            )
        self._put(self._stored(key), self._bands(minhash), buffer)
        self._minhash_scheme = scheme  # only now: a refused key must not decide it

    def _put(self, stored: Any, bands: list[bytes], buffer: bool = False) -> None:
        self.keys.insert(stored, *bands, buffer=buffer)
        for band, hashtable in zip(bands, self.hashtables, strict=False):
            hashtable.insert(band, stored, buffer=buffer)

    def _stored(self, key: Hashable) -> Any:
        """Return a key in the form of the storage: bytes on a server."""
        if not self._on_server:
            return key
        if self.prepickle:
            return write_key(key)
        if not isinstance(key, bytes):
            raise InputError(
                f"prepickle=False requires bytes keys on a server: got {key!r}, a "
                f"{type(key).__name__}. Give bytes, or use prepickle=True."
            )
        return key

    def _keys_of(self, stored: Iterable[Any]) -> set[Hashable]:
        """Return keys from their form in the storage."""
        if self._on_server and self.prepickle:
            return {read_key(data) for data in stored}
        return set(iter(stored))  # `iter` gives the order of the sets of datasketch

    def merge(self, other: MinHashLSH, check_overlap: bool = False) -> None:
        """Add all keys of another index.

        With check_overlap, raises InputError if both indexes have a key.
        """
        self._require_mergeable(other)
        bands_of = {}
        for stored in list(other.keys):
            (key,) = other._keys_of([stored])
            bands_of[key] = other.keys.get(stored)
        if check_overlap and any(key in self for key in bands_of):
            raise InputError(
                "The keys are overlapping, duplicate key exists. Remove it from one of the two."
            )
        self._minhash_scheme = self._minhash_scheme or other._minhash_scheme
        # All keys were read first: a key that both indexes have is refused before anything changes.
        for key, bands in bands_of.items():
            self._put(self._stored(key), bands)

    def _require_mergeable(self, other: MinHashLSH) -> None:
        if type(self) is not type(other):
            raise SettingError(
                f"Cannot merge type MinHashLSH and type {type(other).__name__}. Give a MinHashLSH."
            )
        sizes = (self.h, self.b, self.r)
        other_sizes = (other.h, other.b, other.r)
        if sizes != other_sizes:
            raise SettingError(
                "Cannot merge MinHashLSH with different initialization parameters: num_perm, b "
                f"and r are {sizes} and {other_sizes}."
            )
        scheme = self._minhash_scheme
        other_scheme = other._minhash_scheme
        if scheme is not None and other_scheme is not None and scheme != other_scheme:
            raise SchemeError(
                f"Cannot merge indexes of two schemes, {scheme!r} and {other_scheme!r}. Build both "
                "with one."
            )

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
        # One round trip to a server for all bands.
        buckets = self.hashtables[0].get_each(self.hashtables[:b], self._bands(minhash, b))
        return self._keys_of(stored for bucket in buckets for stored in bucket)

    def add_to_query_buffer(self, minhash: Signature) -> None:
        """Run a query for `collect_query_buffer`."""
        self._buffered += (self._query_b(minhash, self.b),)

    def collect_query_buffer(self) -> list[Hashable]:
        """Return the keys that all queries since the last collection found."""
        buffered = self._buffered
        self._buffered = ()
        # As in datasketch: the keys that every query found.
        return list(set.intersection(*buffered)) if buffered else []

    def __contains__(self, key: Hashable) -> bool:
        return self._stored(key) in self.keys

    def remove(self, key: Hashable) -> None:
        """Remove a key. Raises InputError if the index does not have it."""
        stored = self._stored(key)
        if stored not in self.keys:
            raise InputError(f"The given key does not exist: {key!r}.")
        for band, hashtable in zip(self.keys[stored], self.hashtables, strict=False):
            hashtable.remove_val(band, stored)
            # Empty buckets would count in `get_counts`, and keep their keys in memory.
            if not hashtable.get(band):
                hashtable.remove(band)
        self.keys.remove(stored)

    def is_empty(self) -> bool:
        """Return whether there is no key."""
        # As in datasketch: one empty table is enough.
        return any(not len(hashtable) for hashtable in self.hashtables)

    def get_counts(self) -> list[dict[Hashable, int]]:
        """Return a dict for each band: the number of keys by the bytes of the band."""
        return [hashtable.itemcounts() for hashtable in self.hashtables]

    def get_subset_counts(self, *keys: Hashable) -> list[dict[Hashable, int]]:
        """Return the counts of `get_counts`, for some keys only."""
        # A key that is given twice counts once.
        found = [bands for bands in self.keys.getmany(*map(self._stored, set(keys))) if bands]
        return [dict(Counter(bands[band] for bands in found)) for band in range(self.b)]

    def insertion_session(self, buffer_size: int = 50000) -> MinHashLSHInsertionSession:
        """Return a context in which to insert."""
        return MinHashLSHInsertionSession(self, buffer_size)

    def deletion_session(self, buffer_size: int = 50000) -> MinHashLSHDeletionSession:
        """Return a context in which to remove."""
        return MinHashLSHDeletionSession(self, buffer_size)

    def _bands(self, minhash: Signature, b: int | None = None) -> list[bytes]:
        """Return the bytes of each of the first b bands, through hashfunc if there is one.

        The most significant byte of a value comes first.
        """
        data = self._byteswap(minhash.hashvalues)
        # Bytes of a value: 4 or 8, by the scheme.
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
                f"Expecting minhash with length {self.h}, got {len(minhash)}. Make MinHash and "
                "index with one num_perm."
            )


class _Session:
    """A context in which to change an index.

    On a server, insertions are buffered until the buffer is full or the context ends.
    """

    def __init__(self, lsh: MinHashLSH, buffer_size: int) -> None:
        self.lsh = lsh
        # On a server all storages of an index share one buffer, so that one size is enough.
        lsh.buffer_size = lsh.keys.buffer_size = buffer_size

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Send the buffered insertions."""
        self.lsh.keys.empty_buffer()


class MinHashLSHInsertionSession(_Session):
    """A context in which to insert."""

    def insert(self, key: Hashable, minhash: Signature, check_duplication: bool = True) -> None:
        """Insert into the index."""
        self.lsh.insert(key, minhash, check_duplication, buffer=True)


class MinHashLSHDeletionSession(_Session):
    """A context in which to remove."""

    def remove(self, key: Hashable) -> None:
        """Remove from the index."""
        self.lsh.remove(key)
