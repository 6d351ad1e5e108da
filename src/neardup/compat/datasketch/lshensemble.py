"""MinHashLSHEnsemble of datasketch: an index for containment, in memory or on Redis."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.arrays import Array, Floats
from neardup.compat.datasketch.lsh import MinHashLSH, optimal_containment_bands, require_settings
from neardup.compat.datasketch.minhash import MinHash
from neardup.compat.datasketch.storage import Config, base_name
from neardup.errors import InputError, SettingError


def optimal_partitions(
    sizes: npt.ArrayLike, counts: npt.ArrayLike, num_part: int
) -> list[tuple[Any, Any]]:
    """Return the least and the greatest size of each partition.

    Parameters
    ----------
    sizes : the distinct sizes, ascending.
    counts : the number of sets of each size.
    num_part : the number of partitions. If there are no more sizes, each size is a partition.

    Notes
    -----
    Zhu et al. (VLDB 2016), section 6: each size counts as the greatest of its partition, and the
    cost is the expected number of false positives. Dynamic programming, O(num_part num_sizes^2);
    of equal costs, the smaller first partitions are chosen. The partitions are equal to the ones of
    datasketch; three or more of them are not always the cheapest.
    """
    sizes = np.asarray(sizes)
    counts = np.asarray(counts)
    if num_part < 2:
        return [(sizes[0], sizes[-1])]
    if num_part >= len(sizes):
        return [(size, size) for size in sizes]
    ends = _ends(_costs(sizes, counts), num_part)
    starts = [0, *(end + 1 for end in ends[:-1])]
    return [(sizes[start], sizes[end]) for start, end in zip(starts, ends, strict=True)]


def _costs(sizes: Array, counts: Array) -> Floats:
    """Return the expected false positives of a partition of sizes l to u, at [l, u]; 0 if l > u."""
    costs = np.zeros((len(sizes), len(sizes)))
    for last, size in enumerate(sizes):
        # Not by running sums: the last bit of the sum of each range decides ties.
        terms = (float(size) - sizes[: last + 1]) / float(size) * counts[: last + 1]
        costs[: last + 1, last] = [np.add.reduce(terms[first:]) for first in range(last + 1)]
    return costs


def _ends(costs: Floats, num_part: int) -> Sequence[int]:
    """Return the last position of each partition."""
    num_sizes = len(costs)
    # best[n][u] : the least cost of n partitions of the sizes up to position u.
    best = {1: costs[0]}
    for part in range(2, num_part):
        best[part] = np.zeros(num_sizes)
        # `part` partitions need as many sizes.
        for last in range(part - 1, num_sizes):
            _, best[part][last] = _split(best[part - 1], costs, part, last)
    end, _ = _split(best[num_part - 1], costs, num_part, num_sizes - 1)
    ends = [num_sizes - 1, end]
    for part in range(num_part - 1, 1, -1):
        # best[part - 1] would give the least total; datasketch uses best[part], and its answers
        # depend on it.
        end, _ = _split(best[part], costs, part, end)
        ends.append(end)
    return ends[::-1]


def _split(best: Floats, costs: Floats, num_part: int, last: int) -> tuple[int, np.float64]:
    """Return the end of the last but one of `num_part` partitions of the sizes up to `last`.

    Returns the cost of these partitions, too. best : the least costs of one partition less.
    """
    sums = best[num_part - 2 : last] + costs[num_part - 1 : last + 1, last]
    position = int(sums.argmin())
    return num_part - 2 + position, sums[position]


class MinHashLSHEnsemble:
    """Find the sets that contain most of a query.

    Sets are partitioned by size, and each partition has an index for each number of rows.

    Parameters
    ----------
    threshold : the containment, the share of the query's members that are in the set.
    num_perm : the length of the signatures.
    num_part : the number of partitions by size.
    m : the largest number of rows; an ensemble needs about m times the memory of one index.
    weights : the weights of false positives and false negatives; they sum to 1.
    storage_config, prepickle : as for MinHashLSH.

    Attributes
    ----------
    indexes : for each partition, the index by number of rows.
    lowers, uppers : the least and the greatest size in each partition; None if it is empty.

    Notes
    -----
    Zhu, Nargesian, Pu and Miller, LSH Ensemble (VLDB 2016).

    Examples
    --------
    >>> index = MinHashLSHEnsemble(threshold=0.8, num_perm=128, num_part=2)
    >>> minhash = MinHash(num_perm=128)
    >>> minhash.update_batch([b"this", b"is", b"a", b"test"])
    >>> index.index([("one", minhash, 4)])
    >>> list(index.query(minhash, 4))
    ['one']
    """

    def __init__(
        self,
        threshold: float = 0.9,
        num_perm: int = 128,
        num_part: int = 16,
        m: int = 8,
        weights: tuple[float, float] = (0.5, 0.5),
        storage_config: Config | None = None,
        prepickle: bool | None = None,
    ) -> None:
        require_settings(threshold, num_perm, weights)
        if num_part < 1:
            raise SettingError(f"num_part must be at least 1: got {num_part}. Use 16, the default.")
        if not 2 <= m <= num_perm:
            raise SettingError(
                f"m must be in the range of [2, num_perm]: got {m}. Use 8, the default."
            )
        self.threshold = threshold
        self.h = num_perm
        self.m = m
        # The ratios of sizes for which bands are chosen in advance, as in datasketch: from e^-5 to
        # e^5.
        self.xqs = np.exp(np.linspace(-5, 5, 10))
        bands_and_rows = [
            optimal_containment_bands(threshold, num_perm, m, ratio, tuple(weights))
            for ratio in self.xqs
        ]
        self.params = np.array(bands_and_rows, int)
        config = dict(storage_config or {"type": "dict"})
        # Indexes of several ensembles on one server must not share keys.
        config["basename"] = base_name(config)
        self.indexes = [self._indexes_of(part, config, prepickle) for part in range(num_part)]
        self.lowers: list[Any] = [None] * num_part
        self.uppers: list[Any] = [None] * num_part

    def _indexes_of(
        self, part: int, config: Config, prepickle: bool | None
    ) -> dict[int, MinHashLSH]:
        """Return the empty indexes of a partition, by number of rows."""
        rows: list[int] = self.params[:, 1].tolist()
        return {
            r: MinHashLSH(
                num_perm=self.h,
                # As many bands as fit: a query uses the first ones, by the ratio of sizes.
                params=(self.h // r, r),
                prepickle=prepickle,
                storage_config=_config_of(config, part, r),
            )
            for r in dict.fromkeys(rows)
        }

    def index(self, entries: Iterable[tuple[Hashable, MinHash, int]]) -> None:
        """Add all sets, in one call: keys, their MinHash and their sizes."""
        if not self.is_empty():
            raise InputError("Cannot call index again on a non-empty index. Give all sets at once.")
        # By size, so that the partitions are filled one after the other.
        ordered = sorted(entries, key=lambda entry: entry[2])
        if not ordered:
            raise InputError("entries is empty: give one set at least.")
        if ordered[0][2] <= 0:
            raise InputError(
                f"Set size must be positive: got {ordered[0][2]}. Leave out empty sets."
            )
        sizes, counts = np.array(sorted(Counter(size for _, _, size in ordered).items())).T
        partitions = optimal_partitions(sizes, counts, len(self.indexes))
        for part, (lower, upper) in enumerate(partitions):
            self.lowers[part] = lower
            self.uppers[part] = upper
        part = 0
        for key, minhash, size in ordered:
            # Each size is in a partition, so the next one has it if this one does not.
            part += size > self.uppers[part]
            for index in self.indexes[part].values():
                index.insert(key, minhash, buffer=True)
        # Here, not after each set: a buffer saves round trips to a server.
        for indexes in self.indexes:
            for index in indexes.values():
                index.keys.empty_buffer()

    def query(self, minhash: MinHash, size: int) -> Iterator[Hashable]:
        """Yield the keys of sets that may contain enough members of a query of `size` members."""
        if not size > 0:
            raise InputError(f"Set size must be positive: got {size}. Ask for no empty set.")
        for upper, index in zip(self.uppers, self.indexes, strict=True):
            # With fewer sizes than partitions, some are empty.
            if upper is not None:
                b, r = self._best(upper, size)
                yield from index[r]._query_b(minhash, b)

    def _best(self, size: int, query_size: int) -> tuple[int, int]:
        ratio = float(size) / float(query_size)
        # The last choice also serves larger ratios.
        index = min(int(np.searchsorted(self.xqs, ratio)), len(self.params) - 1)
        b, r = self.params[index].tolist()
        return b, r

    def __contains__(self, key: Hashable) -> bool:
        return any(key in index for part in self.indexes for index in part.values())

    def is_empty(self) -> bool:
        """Return whether no set was added."""
        return all(index.is_empty() for part in self.indexes for index in part.values())


def _config_of(config: Config, part: int, r: int) -> Config:
    """Return the configuration of one index, with a basename of its own."""
    names = [config["basename"], struct.pack(">H", part), struct.pack(">H", r)]
    # The names of datasketch, so that each library finds the data of the other.
    return {**config, "basename": b"-".join(names)}
