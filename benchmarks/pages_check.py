"""Judge the answers of run_pages.py: against how the crawl was made, and against a plain twin."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq
from pages_data import Crawl, Source

sys.path.append(str(Path(__file__).resolve().parent.parent / "tests"))
from reference import html as naive  # the plain twins of neardup's kernels
from reference import simhash

_BASE = 0xD6E8FEB86659FD93
_NGRAM = 3
_CHECKED = 20
_IDENTICAL = 0.9999
_UNRELATED = 0.3


class Fingerprints(NamedTuple):
    """Of how many pages of known template the fingerprint is that of the template; how many match
    the plain twin.
    """

    pages: int
    equal: int
    checked: int
    same: int

    @property
    def sound(self) -> bool:
        return 0 < self.pages == self.equal and self.checked == self.same


class Removed(NamedTuple):
    """What of a crawl was removed. planted : pages that must go, being as an earlier one; found :
    of these, those that went. wrong : removed for a page that is of another site, or, by content,
    has other words.
    """

    planted: int
    found: int
    removed: int
    wrong: int

    @property
    def sound(self) -> bool:
        return self.found >= 0.97 * self.planted and self.wrong <= 0.02 * self.removed


class Similar(NamedTuple):
    """Mean similarities of pairs of pages: one page twice, two of one site, two of different
    sites.
    """

    identical: float
    one_site: float
    unrelated: float

    @property
    def sound(self) -> bool:
        return (
            self.identical >= _IDENTICAL
            and self.unrelated < _UNRELATED
            and self.one_site > self.unrelated
        )


class Elements(NamedTuple):
    """How many elements were found in pages that have so many start tags by a plain search."""

    elements: int
    start_tags: int

    @property
    def sound(self) -> bool:
        return abs(self.elements / self.start_tags - 1) < 0.1


def judge_fingerprints(
    file: Path, crawl: Crawl, pages: Sequence[Source], *, shingles: bool
) -> Fingerprints:
    """Hold fingerprints against those of the first fetch of each page; of shingles some against the
    plain twin.
    """
    found = pq.read_table(file)["fingerprint"].to_pylist()
    values = np.array([int.from_bytes(one, "big") for one in found], np.uint64)
    equal = (
        int(np.count_nonzero(values == values[crawl.sources]))
        if len(values) == len(crawl.sources)
        else 0
    )
    checked = range(0, len(pages), len(pages) // _CHECKED) if shingles else range(0)
    same = sum(int(values[row]) == _fingerprint(pages[row].html) for row in checked)
    return Fingerprints(len(crawl.sources), equal, len(checked), same)


def _fingerprint(html: str) -> int:
    tokens = [naive.token_of(tag) for tag in naive.tags_of(html.encode()) if not tag.is_end]
    features = set()
    for first in range(len(tokens) - _NGRAM + 1):
        state = _NGRAM
        for token in tokens[first : first + _NGRAM]:
            state = (state * _BASE + token) & naive.MASK
        features.add(naive.mix(state))
    return simhash.fingerprint(dict.fromkeys(features, 1.0))


def judge_removed(folder: Path, crawl: Crawl, *, content: bool) -> Removed:
    """Hold what was removed, and for which page, against how the crawl was made."""
    table = pq.read_table(folder / "removed.parquet", columns=["id", "kept_id"])
    removed, kept = (
        [_row_of(one, crawl) for one in table[name].to_pylist()] for name in ("id", "kept_id")
    )
    seen: set[Any] = set()
    planted = set()
    for row, key in enumerate(zip(crawl.sources, crawl.words, strict=True)):
        key = key if content else key[0]
        if key in seen:
            planted.add(row)
        seen.add(key)
    if content:
        pairs = zip(removed, kept, strict=True)
        wrong = sum(
            crawl.sources[one] == crawl.sources[other] and one not in planted
            for one, other in pairs
        )
    else:
        wrong = sum(
            crawl.sites[one] != crawl.sites[other] for one, other in zip(removed, kept, strict=True)
        )
    return Removed(len(planted), len(planted & set(removed)), len(removed), wrong)


def _row_of(url: str, crawl: Crawl) -> int:
    """Return which page of the crawl an address names."""
    source, fetch = map(int, re.findall(r"\d+", url))
    return fetch * crawl.num_sources + source


def judge_pairs(answers: npt.NDArray[np.float64], kinds: Sequence[str]) -> Similar:
    """Return the mean similarity of each kind of pair."""
    kind = np.array(kinds)
    return Similar(
        *(float(answers[kind == one].mean()) for one in ("identical", "one_site", "unrelated"))
    )


def judge_elements(answers: npt.NDArray[np.int64], pages: Sequence[str]) -> Elements:
    """Compare the elements of pages with their start tags."""
    return Elements(int(answers.sum()), sum(len(re.findall(r"<[A-Za-z]", page)) for page in pages))
