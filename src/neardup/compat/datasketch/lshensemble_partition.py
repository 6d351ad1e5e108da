"""How to divide sets by size so that queries have few false candidates of other sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def optimal_partitions(sizes: npt.ArrayLike, counts: npt.ArrayLike, num_part: int) -> list[tuple[Any, Any]]:
    """Return the least and the greatest size of each partition.

    Parameters
    ----------
    sizes : the sizes that occur, ascending.
    counts : how often each occurs.
    num_part : partitions; with as many as sizes, each size is one.

    Notes
    -----
    Zhu et al. (VLDB 2016), section 6: a partition stands for its greatest size, and costs the false positives expected
    of that. Dynamic programming, O(num_part num_sizes^2); of equal costs, the smaller first partitions. The partitions
    are those of datasketch, which from three on are not always the cheapest.
    """
    sizes, counts = np.asarray(sizes), np.asarray(counts)
    if num_part < 2:
        return [(sizes[0], sizes[-1])]
    if num_part >= len(sizes):
        return [(size, size) for size in sizes]
    ends = _ends(_costs(sizes, counts), num_part)
    starts = [0, *(end + 1 for end in ends[:-1])]
    return [(sizes[start], sizes[end]) for start, end in zip(starts, ends, strict=True)]


def _costs(sizes: npt.NDArray[Any], counts: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the false positives expected of the sizes from l to u, at [l, u], 0 where l is above u."""
    costs = np.zeros((len(sizes), len(sizes)))
    for last, size in enumerate(sizes):
        # Not from running sums: ties are decided by the last bit of the sum of each range.
        terms = (float(size) - sizes[: last + 1]) / float(size) * counts[: last + 1]
        costs[: last + 1, last] = [np.add.reduce(terms[first:]) for first in range(last + 1)]
    return costs


def _ends(costs: npt.NDArray[np.float64], num_part: int) -> Sequence[int]:
    """Return where each partition ends, from the least costs of the first sizes in so many partitions."""
    num_sizes = len(costs)
    best = {1: costs[0]}
    for part in range(2, num_part):
        best[part] = np.zeros(num_sizes)
        for last in range(part - 1, num_sizes):
            best[part][last] = _split(best[part - 1], costs, part, last)[1]
    end = _split(best[num_part - 1], costs, num_part, num_sizes - 1)[0]
    ends = [num_sizes - 1, end]
    for part in range(num_part - 1, 1, -1):
        # By best[part - 1] the total would be least; datasketch goes by best[part], and its answers depend on it.
        end = _split(best[part], costs, part, end)[0]
        ends.append(end)
    return ends[::-1]


def _split(
    best: npt.NDArray[np.float64], costs: npt.NDArray[np.float64], part: int, last: int
) -> tuple[int, np.float64]:
    """Return where to end all but the last of so many partitions of the sizes up to last, and what it costs."""
    sums = best[part - 2 : last] + costs[part - 1 : last + 1, last]
    position = int(sums.argmin())
    return part - 2 + position, sums[position]
