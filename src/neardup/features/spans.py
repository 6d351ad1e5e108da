"""Locate the tokens of a document in its original text, for displays that mark passages.

The tokens come from the code that a run uses. For one or two documents, not for a corpus.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from neardup.arrays import Bytes, Ints, arrow_of_strings, offsets_from_lengths, ranges
from neardup.features import unicode_tables as unicode
from neardup.features.feature_strings import Strings, token_strings
from neardup.features.normalise import map_characters, normalise, piece_limits
from neardup.features.page_structure import start_tags
from neardup.features.segmenters import Segmenter, cutter_of
from neardup.settings.methods import CODE_TOKENS, PAGE_TOKENS, Shingling

_SEARCH_BUDGET = 64
"""The tokens of a callable are searched far ahead until the text has been read this many times
without a match.
"""
_NEAR = 1_000
"""How far ahead a token is searched after that, in characters."""

_BLOCK = 1 << 16
"""So many characters at a time remain in the caches of a processor."""
_CUT = re.compile("(?<=[ \\n])[0-9A-Za-z]")
"""Where a text can be cut: before a character that combines with none before it and does not
continue a word.
"""

_Located = tuple[str, int, int]
"""A token and its range in the normalised text; an empty range if the token is not there."""


class TokenSpan(NamedTuple):
    """A token with its range: ``text[start:end]`` is what it was made from."""

    start: int
    end: int
    token: str


def token_spans(text: str, shingling: Shingling) -> list[TokenSpan]:
    """Return the tokens of a text, each with its range in the original text.

    Parameters
    ----------
    text : the document as it was read.
    shingling : how texts become tokens; the length of a shingle does not matter.

    Returns
    -------
    list of TokenSpan
        In the order of the text; neither starts nor ends decrease. Positions count code points.
        Tokens that come from one character (``½`` is the words ``1`` and ``2``), or from characters
        that were composed, share their range. The tokens of pages have the ranges of their start
        tags. Words of jieba that overlap share one range. A token of a callable that cannot be
        found has an empty range, where the token before it ends.

    Notes
    -----
    Time is linear in the text. The text is cut where neither composition nor reordering can reach
    across, and each piece, a character and the marks after it, is normalised by itself.
    """
    if shingling.tokens in PAGE_TOKENS:
        return _start_tags(text)
    normalised, starts, ends = _normalise_pieces(text, shingling)
    cut = cutter_of(shingling)
    located: Iterable[_Located]
    if isinstance(cut, Segmenter):
        located = cut.places(normalised)
    elif cut is not None:
        # Tokens with weights are pairs.
        located = _find(
            normalised, (token if isinstance(token, str) else token[0] for token in cut(normalised))
        )
    elif shingling.tokens in CODE_TOKENS:
        kept = [
            i for i in range(len(normalised)) if not normalised.startswith("\r\n", i)
        ]  # as kernels end lines
        starts, ends, normalised = (
            [starts[i] for i in kept],
            [ends[i] for i in kept],
            normalised.replace("\r\n", "\n"),
        )
        strings = token_strings(arrow_of_strings([text]), shingling)
        located = _find(normalised, Strings(strings.data, strings.offsets).to_list())
    else:
        located = _align(normalised, str(shingling.tokens))
    return [
        TokenSpan(starts[start] if start < end else stop, stop, token)
        for token, start, end in located
        for stop in [ends[end - 1] if end else 0]
    ]


def word_ranges(text: str, shingling: Shingling) -> Ints:
    """Return the ranges of all words of a text, int64 (num_words, 2), as `token_spans` has them;
    tokens are words.

    Without an object for each word, but where normalisation does more than replace a character by
    another.
    """
    limits = [0]
    while cut := _CUT.search(text, limits[-1] + _BLOCK):
        limits.append(cut.start())
    blocks = pairwise([*limits, len(text)])
    return np.concatenate(
        [_block_ranges(text[start:end], shingling) + start for start, end in blocks]
    )


def _block_ranges(text: str, shingling: Shingling) -> Ints:
    tables = unicode.load_tables(
        nfkc=shingling.nfkc, case_fold=shingling.case_fold, fold_chinese=False
    )
    codes = unicode.code_points(text)
    entries = tables.entries[codes]
    kinds = unicode.classes_of(entries).astype(np.uint8)
    is_plain = entries & ~np.uint32(unicode.PLAIN) == 0
    if is_plain.all():
        return _plain_ranges(kinds)
    after_space = np.append(False, (codes[:-1] == ord(" ")) | (codes[:-1] == ord("\n")))
    cuts = np.flatnonzero(
        (codes < 128) & (kinds == unicode.WORD) & after_space | (codes - 0x4E00 < 0x5200)
    )
    limits = np.concatenate([[0], cuts, [len(text)]])
    pieces = np.unique(np.searchsorted(limits, np.flatnonzero(~is_plain), "right") - 1)
    starts, sizes = limits[pieces], limits[pieces + 1] - limits[pieces]
    kinds[ranges(starts, sizes)] = unicode.SEPARATOR
    joined = "\n".join(
        text[start:end]
        for start, end in zip(starts.tolist(), (starts + sizes).tolist(), strict=True)
    )
    others = np.array([span[:2] for span in token_spans(joined, shingling)], np.int64).reshape(
        -1, 2
    )
    begins = offsets_from_lengths(sizes + 1)[:-1]
    others += (starts - begins)[np.searchsorted(begins, others[:, 0], "right") - 1][:, None]
    found = np.concatenate([_plain_ranges(kinds), others])
    return found[np.argsort(found[:, 0], kind="stable")]


def _plain_ranges(kinds: Bytes) -> Ints:
    """Return the ranges of words by the classes of the characters."""
    places = np.flatnonzero(kinds != unicode.TRANSPARENT)
    kinds = kinds[places]
    is_word, is_single = kinds == unicode.WORD, kinds == unicode.SINGLE
    starts = is_single | (is_word & ~np.append(False, is_word[:-1]))
    ends = is_single | (is_word & ~np.append(is_word[1:], False))
    return np.stack([places[starts], places[ends] + 1], axis=1)


def _start_tags(page: str) -> list[TokenSpan]:
    """Return the start tags of a page, each from its "<" to the next ">"."""
    tags = zip(*start_tags(page), strict=True)
    return [
        TokenSpan(start, page.find(">", start) + 1 or len(page), f"{token:016x}")
        for start, token in tags
    ]


def _normalise_pieces(text: str, shingling: Shingling) -> tuple[str, Sequence[int], Sequence[int]]:
    """Return the normalised text, and the range in the original text that each of its characters
    comes from.
    """
    if map_characters(text, shingling) is not None:
        return normalise(text, shingling), range(len(text)), range(1, len(text) + 1)

    def normal(piece: str) -> str:
        return _normal(piece, shingling.nfkc, shingling.case_fold, shingling.fold_chinese)

    limits = piece_limits(text, shingling).tolist()
    for start, end in pairwise(limits.copy()):
        if end - start > 1 and "".join(map(normal, text[start:end])) == normal(text[start:end]):
            limits += range(start + 1, end)  # marks that do not combine
        elif end - start > 1 and normal(text[start]) + normal(text[start + 1 : end]) == normal(
            text[start:end]
        ):
            limits.append(
                start + 1
            )  # marks that change places, but do not combine with what they follow
    limits.sort()
    results = [normal(text[start:end]) for start, end in pairwise(limits)]
    lengths = list(map(len, results))
    return (
        "".join(results),
        np.repeat(limits[:-1], lengths).tolist(),
        np.repeat(limits[1:], lengths).tolist(),
    )


@lru_cache(maxsize=1 << 16)
def _normal(piece: str, nfkc: bool, case_fold: bool, fold_chinese: bool) -> str:
    return normalise(piece, Shingling(nfkc=nfkc, case_fold=case_fold, fold_chinese=fold_chinese))


def _align(normalised: str, tokens: str) -> Iterator[_Located]:
    """Yield the tokens that the kernel cuts a normalised text into: in order, the characters that
    it does not drop.
    """
    codes = unicode.code_points(normalised)
    entries = unicode.load_tables(nfkc=False, case_fold=False, fold_chinese=False).entries[codes]
    kinds = unicode.classes_of(entries)
    is_space = entries & np.uint32(unicode.WHITESPACE) != 0
    is_dropped = (kinds == unicode.SEPARATOR) if tokens in ("words", "letters") else is_space
    is_dropped |= (tokens == "letters") & (codes == ord("_"))
    kept = np.flatnonzero(~is_dropped & (kinds != unicode.TRANSPARENT)).tolist()
    spaces = np.flatnonzero(is_space).tolist()
    strings = token_strings(
        arrow_of_strings([normalised]), Shingling(tokens=tokens, nfkc=False, case_fold=False)
    )
    first = 0
    for token in Strings(strings.data, strings.offsets).to_list():
        if token == " ":  # a run of white space between two characters
            run = spaces[bisect(spaces, kept[first - 1]) : bisect(spaces, kept[first])]
            yield token, run[0], run[-1] + 1
        else:
            stop = first + len(token)
            yield token, kept[first], kept[stop - 1] + 1
            first = stop


def _find(text: str, tokens: Iterable[str]) -> Iterator[_Located]:
    """Yield each token where it next occurs in the normalised text.

    A token that is missing once is missing for good, because the search only moves forward; such
    tokens are remembered. Others can still make the search read the rest of the text each time:
    hence the budget.
    """
    missing: set[str] = set()
    budget = _SEARCH_BUDGET * len(text)
    behind = 0
    for token in filter(None, tokens):
        start = -1
        if token not in missing:
            limit = len(text) if budget > 0 else behind + _NEAR + len(token)
            start = text.find(token, behind, limit)
            budget -= max(limit if start < 0 else start, behind) - behind
            if start < 0 and limit == len(text):
                missing.add(token)
        if start < 0:
            yield token, behind, behind
        else:
            behind = start + len(token)
            yield token, start, behind
