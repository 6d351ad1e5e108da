"""How close each two pages of a set are, by what they share: for tools/measure_pages.py."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
Lists = list[Iterable[object]]

SIMILARITIES = np.arange(1, 101) / 100
DISTANCES = np.arange(33.0)


@dataclass
class Pages:
    """The pages of a set. codes : the number of each page's site."""

    name: str
    html: list[str]
    codes: Ints

    @property
    def column(self) -> pa.Array:
        """The pages, as neardup's own functions take them."""
        return pa.array(self.html, pa.large_string())


class Closeness(NamedTuple):
    """How close each two pages are. values : (num_pages, num_pages), similarities if `alike`, else
    distances.
    """

    values: Floats
    alike: bool

    @property
    def limits(self) -> npt.NDArray[np.float64]:
        """The thresholds or distances to choose from."""
        return SIMILARITIES if self.alike else DISTANCES


class Members(NamedTuple):
    """The distinct features of pages. features, pages : int64, one each for every feature of every
    page, by page.
    """

    features: Ints
    pages: Ints


def members_of(features: npt.NDArray[np.uint64] | Ints, sizes: Ints) -> Members:
    """Return the distinct features of pages that have `sizes` features each, one after the
    other.
    """
    numbers = np.unique(features, return_inverse=True)[1].astype(np.int64)
    num_features = int(numbers.max(initial=0)) + 1
    keys = np.unique(np.repeat(np.arange(len(sizes)), sizes) * num_features + numbers)
    return Members(keys % num_features, keys // num_features)


def number(lists: Lists) -> Members:
    """Return the distinct features of pages from lists of what can be hashed."""
    numbers: dict[object, int] = {}
    features = [[numbers.setdefault(one, len(numbers)) for one in each] for each in lists]
    sizes = np.array([len(each) for each in features])
    return members_of(np.array([one for each in features for one in each], np.int64), sizes)


def shared_weights(members: Members, weights: Ints, num_pages: int) -> Floats:
    """Return for each two pages the weight of the features they share; with itself a page shares
    all.

    weights : of each feature, by its number. For each feature there is the list of its pages: a
    page shares what the lists of its features hold.
    """
    order = np.argsort(members.features, kind="stable")
    pages = members.pages[order]
    lengths = np.bincount(members.features, minlength=len(weights))
    firsts = np.cumsum(lengths) - lengths
    starts = np.searchsorted(members.pages, np.arange(num_pages + 1))
    shared = np.zeros((num_pages, num_pages), np.float32)
    for page in range(num_pages):
        mine = members.features[starts[page] : starts[page + 1]]
        long = lengths[mine]
        places = np.repeat(firsts[mine] - (np.cumsum(long) - long), long) + np.arange(long.sum())
        shared[page] = np.bincount(pages[places], np.repeat(weights[mine], long), num_pages)
    return shared


def jaccard(shared: Floats) -> Floats:
    """Return the share of what two pages have in common out of all they have."""
    sizes = shared.diagonal()
    return shared / np.maximum(sizes[:, None] + sizes - shared, 1)


def cosine(shared: Floats) -> Floats:
    """Return the geometric mean of what is common out of either page."""
    sizes = np.maximum(shared.diagonal(), 1)
    return shared / np.sqrt(sizes[:, None] * sizes)


def weigh_rare(members: Members, num_pages: int) -> Ints:
    """Weigh features of several pages 2 that at most the square root of all hold, 3 up to the
    fourth root; others 1.
    """
    counts = np.bincount(members.features)
    root = math.isqrt(num_pages)
    return 1 + (counts > 1) * ((counts <= root).astype(np.int64) + (counts <= math.isqrt(root)))


def by_lists(lists: Lists) -> Closeness:
    """Compare the sets of what is in lists by Jaccard."""
    members = number(lists)
    ones = np.ones(int(members.features.max(initial=0)) + 1, np.int64)
    return Closeness(jaccard(shared_weights(members, ones, len(lists))), True)
