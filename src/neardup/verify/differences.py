"""Classify the differences of two similar texts: names and numbers, passages, or single words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, groupby
from typing import Literal, NamedTuple

from neardup.verify.alignment import Passage

Kind = Literal["names", "passages", "words"]

# A character of Chinese or Japanese is a word: these have no spaces.
_UNSPACED = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]|[^\s{_UNSPACED}]+")
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
    num_names = sum(_is_name(word) for word in words)
    if num_names >= _MIN_NAMES * len(words):
        return "names"
    runs = left_runs + right_runs
    num_words = sum(len(run) for run in runs)
    num_in_runs = sum(len(run) for run in runs if len(run) >= _MIN_RUN)
    return "passages" if num_in_runs >= _MIN_IN_RUNS * num_words else "words"


class _Word(NamedTuple):
    """A word, and whether it is in a passage that is not shared."""

    text: str
    is_different: bool


def _different_runs(side: Marked) -> list[list[str]]:
    """Return the words that are not shared, neighbours as one run."""
    different = [passage for passage in side.passages if not passage.shared]
    words: list[_Word] = []
    index = 0
    for found in _WORD.finditer(side.text):
        # The first passage that ends after the start of the word.
        while index < len(different) and different[index].end <= found.start():
            index += 1
        is_different = index < len(different) and different[index].start < found.end()
        if any(map(str.isalnum, found[0])):
            words.append(_Word(found[0], is_different))
    runs = groupby(words, key=lambda word: word.is_different)
    return [[word.text for word in run] for is_different, run in runs if is_different]


def _is_name(word: str) -> bool:
    """Return whether a word is a name, a number, a date or an address."""
    first = next(filter(str.isalpha, word), "")
    has_sign = "@" in word or any(map(str.isdigit, word))
    return has_sign or first.isupper() or word in _NUMERALS
