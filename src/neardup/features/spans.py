"""Locate the tokens of a document in its original text, for displays that mark passages.

The tokens come from the code that a run uses. Meant for one or two documents, not for a corpus.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import (
    Bytes,
    Ints,
    Mask,
    Uint32s,
    arrow_of_strings,
    offsets_from_lengths,
    ranges,
)
from neardup.features import unicode_tables as unicode
from neardup.features.feature_strings import Strings, token_strings
from neardup.features.normalise import (
    fold_characters,
    map_characters,
    move_tones,
    normalise,
    piece_limits,
    reduce,
)
from neardup.features.page_structure import start_tags
from neardup.features.segmenters import LocatedToken, Segmenter, cutter_of
from neardup.settings.methods import CODE_TOKENS, PAGE_TOKENS, Shingling

_SEARCH_BUDGET = 64
"""Text lengths that failed searches for the tokens of a callable may read in all."""
_NEAR = 1_000
"""Characters that each search may read once the budget is spent."""

_BLOCK = 1 << 16
"""Characters handled at a time: their arrays fit into the caches of a processor."""
_CUT = re.compile("(?<=[ \\n])[0-9A-Za-z]")
"""A safe cut of a text: before a character that neither combines with earlier ones nor continues a
word.
"""
TEXT_SEPARATOR = "\f"
"""Between texts that are read as one: nothing combines with it, and no folding drops it."""
_WIDE_SPACE = re.compile("[^\\S\0-\x7f]")
"""White space beyond ASCII, which a kernel writes as a zero."""
_BYTE_ORDER_MARK = "\ufeff"  # dropped at the beginning of source code
_PADDING = 2  # zeros after source code
_ALIKE_IN_LENGTH = ("chinese", "vietnamese", "hyphens")
"""The foldings of a reduced text that change no length."""
_FIRST_HAN = 0x4E00
_NUM_HAN = 0x5200  # to U+9FFF: each begins a token, and none combines with an earlier character


class TokenSpan(NamedTuple):
    """A token with its range: ``text[start:end]`` is the source of the token."""

    start: int
    end: int
    token: str


class _Normalised(NamedTuple):
    """A normalised text; character i comes from starts[i] to ends[i] of the original text."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


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
        found has an empty range at the end of the token before it.

    Notes
    -----
    Time is linear in the text. The text is cut where neither composition nor reordering can reach
    across, and each piece, a character and the marks after it, is normalised by itself.
    """
    if shingling.tokens in PAGE_TOKENS:
        return _start_tags(text)
    normalised = _normalised(text, shingling)
    if shingling.tokens in CODE_TOKENS:
        normalised = _without_carriage_returns(normalised)
    spans = []
    for token, start, end in _locate(normalised.text, shingling):
        original_end = normalised.ends[end - 1] if end else 0
        original_start = normalised.starts[start] if start < end else original_end
        spans.append(TokenSpan(original_start, original_end, token))
    return spans


def _start_tags(page: str) -> list[TokenSpan]:
    """Return the start tags of a page, each from its "<" to the next ">"."""
    spans = []
    for start, token in zip(*start_tags(page), strict=True):
        end = page.find(">", start) + 1 or len(page)
        spans.append(TokenSpan(start, end, f"{token:016x}"))
    return spans


def _without_carriage_returns(normalised: _Normalised) -> _Normalised:
    """Drop the CR of each CRLF, as the kernels for source code do."""
    text = normalised.text
    kept = [index for index in range(len(text)) if not text.startswith("\r\n", index)]
    return _Normalised(
        text=text.replace("\r\n", "\n"),
        starts=[normalised.starts[index] for index in kept],
        ends=[normalised.ends[index] for index in kept],
    )


def _locate(normalised: str, shingling: Shingling) -> Iterable[LocatedToken]:
    """Return the tokens of a normalised text with their ranges."""
    cut = cutter_of(shingling)
    if isinstance(cut, Segmenter):
        return cut.locate(normalised)
    if cut is not None:
        tokens = cut(normalised)  # strings, or pairs of a string and a weight
        strings = (token if isinstance(token, str) else token[0] for token in tokens)
        return _find(normalised, strings)
    if shingling.tokens in CODE_TOKENS:
        return _locate_code(normalised, with_comments=shingling.tokens == "code")
    return _align(normalised, str(shingling.tokens))


def _locate_code(normalised: str, *, with_comments: bool) -> Iterator[LocatedToken]:
    """Yield the tokens that the kernel finds in normalised source code.

    A search for their strings would find them in comments, which may have no tokens.
    """
    text = normalised.lstrip(_BYTE_ORDER_MARK)
    data = _WIDE_SPACE.sub("\0", text).encode()
    stream = np.frombuffer(bytearray(data) + bytes(_PADDING), np.uint8)
    edges = np.empty(2 * len(data), np.int32)
    count = kernels.code_tokens.find_code_tokens(stream, len(data), with_comments, edges)
    limits = edges[: 2 * count].reshape(-1, 2)
    # From bytes to characters: the number of characters that begin before.
    num_before = offsets_from_lengths(stream & 0xC0 != 0x80) + len(normalised) - len(text)
    for (first, stop), (start, end) in zip(
        limits.tolist(), num_before[limits].tolist(), strict=True
    ):
        yield LocatedToken(data[first:stop].decode(), start, end)


def _find(text: str, tokens: Iterable[str]) -> Iterator[LocatedToken]:
    """Yield each token at its next occurrence in the normalised text.

    A token that is missing once is missing for good, because the search only moves forward; such
    tokens are remembered. Other searches may still read the rest of the text each time: hence the
    budget.
    """
    missing: set[str] = set()
    budget = _SEARCH_BUDGET * len(text)
    offset = 0  # end of the last token that was found
    for token in filter(None, tokens):
        start = -1
        if token not in missing:
            limit = len(text) if budget > 0 else offset + _NEAR + len(token)
            start = text.find(token, offset, limit)
            searched_to = limit if start < 0 else start
            budget -= max(searched_to, offset) - offset
            # Only a search to the end proves that the text lacks the token.
            if start < 0 and limit == len(text):
                missing.add(token)
        if start < 0:
            yield LocatedToken(token, offset, offset)
        else:
            offset = start + len(token)
            yield LocatedToken(token, start, offset)


def _align(normalised: str, tokens: str) -> Iterator[LocatedToken]:
    """Yield the tokens that the kernel cuts a normalised text into.

    The kernel drops some characters; the tokens side by side are the others, in order.
    """
    codes = unicode.code_points(normalised)
    tables = unicode.load_tables(nfkc=False, case_fold=False)
    entries = tables.entries[codes]
    is_space = entries & np.uint32(unicode.WHITESPACE) != 0
    spaces = np.flatnonzero(is_space).tolist()
    kept = _kept_characters(codes, entries, is_space, tokens)
    as_is = Shingling(tokens=tokens, nfkc=False, case_fold=False)
    strings = token_strings(arrow_of_strings([normalised]), as_is)
    first = 0  # index in `kept` of the first character of the next token
    for token in Strings(strings.data, strings.offsets).to_list():
        if token == " ":  # a run of white space between two characters
            run = spaces[bisect(spaces, kept[first - 1]) : bisect(spaces, kept[first])]
            yield LocatedToken(token, run[0], run[-1] + 1)
        else:
            next_first = first + len(token)
            yield LocatedToken(token, kept[first], kept[next_first - 1] + 1)
            first = next_first


def _kept_characters(codes: Uint32s, entries: Uint32s, is_space: Mask, tokens: str) -> list[int]:
    """Return the offsets of the characters that are in tokens."""
    kinds = unicode.classes_of(entries)
    is_dropped = is_space
    if tokens in ("words", "letters"):
        is_dropped = kinds == unicode.SEPARATOR
    if tokens == "letters":
        is_dropped = is_dropped | (codes == ord("_"))
    kept: list[int] = np.flatnonzero(~is_dropped & (kinds != unicode.TRANSPARENT)).tolist()
    return kept


def _normalised(text: str, shingling: Shingling) -> _Normalised:
    """Return a text, normalised and folded, whose characters know their source."""
    reduced = reduce(text, shingling)
    normalised = _normalise_pieces(reduced.text, shingling)
    if reduced.kept is None:
        return normalised
    ends = np.asarray(normalised.ends, np.int64)
    return normalised._replace(
        starts=reduced.kept[np.asarray(normalised.starts, np.int64)].tolist(),
        ends=(reduced.kept[ends - 1] + 1).tolist(),
    )


def _normalise_pieces(text: str, shingling: Shingling) -> _Normalised:
    """Normalise and fold a reduced text piece by piece."""
    as_is = map_characters(text, shingling)
    if as_is is not None and all(name in _ALIKE_IN_LENGTH for name in shingling.fold):
        return _Normalised(
            text=move_tones(fold_characters(as_is, shingling), shingling),
            starts=range(len(text)),
            ends=range(1, len(text) + 1),
        )

    # Only these settings, so that other methods find the pieces in the cache.
    plain = Shingling(
        tokens="code" if shingling.tokens in CODE_TOKENS else "words",
        nfkc=shingling.nfkc,
        case_fold=shingling.case_fold,
        fold=shingling.fold,
    )
    normal = partial(_normal, shingling=plain)
    limits = _cut_pieces(text, plain, normal)
    results = [normal(text[start:end]) for start, end in pairwise(limits)]
    lengths = list(map(len, results))
    return _Normalised(
        text=move_tones("".join(results), shingling),
        starts=np.repeat(limits[:-1], lengths).tolist(),
        ends=np.repeat(limits[1:], lengths).tolist(),
    )


def _cut_pieces(text: str, shingling: Shingling, normal: Callable[[str], str]) -> list[int]:
    """Return the offsets that cut a text into the shortest pieces that are normalised alone."""
    limits: list[int] = piece_limits(text, shingling).tolist()
    # A copy, because the loop appends to the list.
    for start, end in pairwise(limits.copy()):
        if end - start > 1:
            limits += _cuts_inside(text, start, end, normal)
    return sorted(limits)


def _cuts_inside(text: str, start: int, end: int, normal: Callable[[str], str]) -> Iterable[int]:
    """Return the offsets that cut a piece, a character and its marks, without changing its normal
    form.
    """
    piece = normal(text[start:end])
    if "".join(map(normal, text[start:end])) == piece:
        return range(start + 1, end)  # the marks do not combine
    if normal(text[start]) + normal(text[start + 1 : end]) == piece:
        return [start + 1]  # the marks are reordered, but do not combine with the character
    return []


@lru_cache(maxsize=1 << 16)
def _normal(piece: str, shingling: Shingling) -> str:
    return normalise(piece, shingling)


def word_ranges(text: str, shingling: Shingling) -> Ints:
    """Return the ranges of all words of a text, int64 (num_words, 2), as `token_spans` has them.

    Requires: `shingling.tokens` is "words". No object is made for a word, unless normalisation
    does more than replace single characters by single characters.
    """
    if "hyphens" not in shingling.fold:
        return _word_ranges(text, shingling)
    # Lines are joined first: a block must not end inside a word.
    reduced = reduce(text, shingling)
    # An ignorable character that was dropped may have kept a word from being joined: not twice.
    other_folds = tuple(name for name in shingling.fold if name != "hyphens")
    found = _word_ranges(reduced.text, replace(shingling, fold=other_folds))
    if reduced.kept is None:
        return found
    starts = reduced.kept[found[:, 0]]
    ends = reduced.kept[found[:, 1] - 1] + 1
    return np.stack([starts, ends], axis=1)


def _word_ranges(text: str, shingling: Shingling) -> Ints:
    """Return the ranges of all words of a text in which no line end divides a word."""
    limits = [0]
    while cut := _CUT.search(text, limits[-1] + _BLOCK):
        limits.append(cut.start())
    limits.append(len(text))
    blocks = [_block_ranges(text[start:end], shingling) + start for start, end in pairwise(limits)]
    return np.concatenate(blocks)


def _block_ranges(text: str, shingling: Shingling) -> Ints:
    """Return the ranges of the words of a block, in the order of their starts."""
    tables = unicode.load_tables(
        nfkc=shingling.nfkc, case_fold=shingling.case_fold, fold=shingling.fold
    )
    codes = unicode.code_points(text)
    entries = tables.entries[codes]
    kinds = unicode.classes_of(entries).astype(np.uint8)
    is_plain = entries & ~np.uint32(unicode.PLAIN) == 0
    if is_plain.all():
        return _plain_ranges(kinds)

    # Pieces with a character that is not plain go through `token_spans`, the others do not.
    limits = np.concatenate([[0], _find_cuts(codes, kinds), [len(text)]])
    pieces = np.unique(np.searchsorted(limits, np.flatnonzero(~is_plain), "right") - 1)
    starts = limits[pieces]
    sizes = limits[pieces + 1] - starts
    # As separators, so that the plain rules find no word inside of these pieces.
    kinds[ranges(starts, sizes)] = unicode.SEPARATOR
    plain = _plain_ranges(kinds)
    found = np.concatenate([plain, _ranges_in_pieces(text, starts, sizes, shingling)])
    return found[np.argsort(found[:, 0], kind="stable")]


def _find_cuts(codes: Uint32s, kinds: Bytes) -> Ints:
    """Return the offsets at which a block can be cut into pieces that are normalised alone."""
    is_space = (codes == ord(" ")) | (codes == ord("\n"))
    after_space = np.append(False, is_space[:-1])
    begins_word = (codes < 128) & (kinds == unicode.WORD) & after_space
    # The codes are unsigned: a code below _FIRST_HAN wraps around and becomes a large number.
    is_han = codes - np.uint32(_FIRST_HAN) < _NUM_HAN
    return np.flatnonzero(begins_word | is_han)


def _ranges_in_pieces(text: str, starts: Ints, sizes: Ints, shingling: Shingling) -> Ints:
    """Return the ranges of the words of some pieces, read as one text with separators between."""
    ends = starts + sizes
    bounds = zip(starts.tolist(), ends.tolist(), strict=True)
    joined = TEXT_SEPARATOR.join(text[start:end] for start, end in bounds)
    spans = [(span.start, span.end) for span in token_spans(joined, shingling)]
    found = np.array(spans, np.int64).reshape(-1, 2)
    joined_starts = offsets_from_lengths(sizes + 1)[:-1]
    piece = np.searchsorted(joined_starts, found[:, 0], "right") - 1
    found += (starts - joined_starts)[piece][:, None]
    return found


def _plain_ranges(kinds: Bytes) -> Ints:
    """Return the ranges of words, from the token class of each character."""
    positions = np.flatnonzero(kinds != unicode.TRANSPARENT)
    kinds = kinds[positions]
    is_word = kinds == unicode.WORD
    is_single = kinds == unicode.SINGLE
    after_word = np.append(False, is_word[:-1])
    before_word = np.append(is_word[1:], False)
    starts = positions[is_single | (is_word & ~after_word)]
    ends = positions[is_single | (is_word & ~before_word)] + 1
    return np.stack([starts, ends], axis=1)
