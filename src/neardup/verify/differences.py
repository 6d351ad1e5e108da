"""Tell whether two similar texts differ in names and numbers, in whole passages, or in single
words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, groupby
from typing import Literal, NamedTuple

from neardup.verify.alignment import Passage

Kind = Literal["names", "passages", "words"]

# A character of Chinese or Japanese is a word: these have no spaces.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\s\u3040-\u30ff\u3400-\u9fff]+")
_NUMERALS = frozenset("〇零一二三四五六七八九十百千万亿年月日号第")
_MIN_NAMES = 0.9  # of the words that differ; a few names have a lower-case word
_MIN_RUN = 10  # words that differ one after the other, about a sentence
_MIN_IN_RUNS = 0.5  # of the words that differ


class Marked(NamedTuple):
    """A text with its passages, which are shared with the other text or not."""

    text: str
    passages: Sequence[Passage]


def kind_of_difference(left: Marked, right: Marked) -> Kind | None:
    """Return the kind of difference of two texts; None if all words are shared.

    names : names, numbers and dates only, as in two copies of a filled-in form. A name is a word
    with a capital letter, a digit or an at sign, or a Chinese numeral; Chinese names are not known.
    passages : runs of ten words or more have most of the differences. words : any others.
    """
    left_runs = _different_runs(left)
    right_runs = _different_runs(right)
    left_words = set(chain(*left_runs))
    right_words = set(chain(*right_runs))
    # A word between two names that differ is in no shared run of words, and yet is shared.
    words = left_words ^ right_words
    if not words:
        return None
    if sum(map(_is_name, words)) >= _MIN_NAMES * len(words):
        return "names"
    runs = left_runs + right_runs
    num_words = sum(map(len, runs))
    num_in_runs = sum(len(run) for run in runs if len(run) >= _MIN_RUN)
    return "passages" if num_in_runs >= _MIN_IN_RUNS * num_words else "words"


def _different_runs(side: Marked) -> list[list[str]]:
    """Return the words that are not shared, neighbours as one run."""
    ends = [passage.end for passage in side.passages if not passage.shared]
    starts = [passage.start for passage in side.passages if not passage.shared]
    flagged: list[tuple[bool, str]] = []
    place = 0
    for word in _WORD.finditer(side.text):
        while place < len(ends) and ends[place] <= word.start():
            place += 1
        is_different = place < len(starts) and starts[place] < word.end()
        if any(map(str.isalnum, word[0])):
            flagged.append((is_different, word[0]))
    runs = groupby(flagged, key=lambda pair: pair[0])
    return [[word for _, word in run] for is_different, run in runs if is_different]


def _is_name(word: str) -> bool:
    """Return whether a word is a name, a number, a date or an address."""
    first = next(filter(str.isalpha, word), "")
    has_sign = "@" in word or any(map(str.isdigit, word))
    return has_sign or first.isupper() or word in _NUMERALS
