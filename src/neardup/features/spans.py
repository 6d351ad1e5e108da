"""Locate the tokens of a document in its original text, for displays that mark passages.

The tokens are those of the kernels, in plain Python: this module is for one or two documents, not for a
corpus.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.errors import SettingError
from neardup.features.page_structure import start_tags
from neardup.features.segmenters import segmenter_of
from neardup.features.unicode_tables import (
    CLASS_MASK,
    CLASS_SHIFT,
    COMPOSE,
    EXPAND,
    LOW_MASK,
    RANK_SHIFT,
    SINGLE,
    TRANSPARENT,
    WHITESPACE,
    WORD,
    load_tables,
)
from neardup.settings.shingling import PAGE_TOKENS, Jieba

_SEARCH_BUDGET = 64
"""The tokens of a callable are searched far ahead until this many times the text has been read in vain."""
_NEAR = 1_000
"""How far ahead a token is searched after that, in characters."""
_MAX_PIECE = 100
"""Longest piece normalised at once, in characters: ``unicodedata`` sorts a run of marks in quadratic time."""


# What the rules come to in ASCII, 20 x as fast: the usual case of a report.
_ASCII_TOKENS = {
    "words": re.compile(r"[0-9A-Za-z_]+"),
    "whitespace": re.compile(r"[^\x00\x09-\x0d\x1c-\x20]+"),
}


class TokenSpan(NamedTuple):
    """A token with its place: ``text[start:end]`` is what it was made from."""

    start: int
    end: int
    token: str


class _Character(NamedTuple):
    """A character of the normalised text, its entry word, and its place in the original text."""

    character: str
    entry: int
    start: int
    end: int

    @property
    def token_class(self) -> int:
        return self.entry >> CLASS_SHIFT & CLASS_MASK

    @property
    def is_space(self) -> bool:
        return bool(self.entry & WHITESPACE)


def token_spans(
    text: str,
    *,
    tokens: str | Jieba | Callable[[str], Iterable[str]],
    nfkc: bool,
    case_fold: bool,
    fold_chinese: bool,
) -> list[TokenSpan]:
    """Return the tokens of a text, each with its place in the original text.

    Parameters
    ----------
    text : str
        The document as it was read.
    tokens : {"words", "chars", "whitespace", "jieba", "tags", "elements", "paths"}, Jieba or callable
        What a token is; those of pages stand where their start tags do. Words of jieba that overlap share one
        place. A callable gets the normalised text and returns its tokens in order; empty ones are left out.
    nfkc, case_fold, fold_chinese : bool
        The normalisation, as in `neardup.features.unicode_tables.load_tables`.

    Returns
    -------
    list of TokenSpan
        In the order of the text; neither starts nor ends ever fall. Positions count code points. Tokens that
        come from one character (``½`` is the words ``1`` and ``2``), or from characters that were composed,
        share their place. A callable's token that cannot be found has a span of no width, where the token
        before it ends.

    Raises
    ------
    SettingError
        If ``tokens`` is another string.

    Notes
    -----
    Time is linear in the text. The text is cut where neither composition nor reordering can reach across, and
    each piece is normalised alone; a piece is one character and the marks after it, and beyond 1,000 of those
    the result can differ from that of the kernels. Each token of a callable is looked up in the normalised
    text behind the one before it.
    """
    if text.isascii() and isinstance(tokens, str) and tokens in _ASCII_TOKENS:
        return [
            TokenSpan(found.start(), found.end(), found[0].lower() if case_fold else found[0])
            for found in _ASCII_TOKENS[tokens].finditer(text)
        ]
    if isinstance(tokens, str) and tokens == "words":
        quick = _quick_words(text, nfkc=nfkc, case_fold=case_fold, fold_chinese=fold_chinese)
        if quick is not None:
            return quick
    if tokens in PAGE_TOKENS:
        return _start_tags(text)
    located = _normalised(text, nfkc=nfkc, case_fold=case_fold, fold_chinese=fold_chinese)
    if isinstance(tokens, Jieba) or tokens == "jieba":
        settings = tokens if isinstance(tokens, Jieba) else Jieba()
        segmenter = segmenter_of(settings, nfkc=nfkc, case_fold=case_fold, fold_chinese=fold_chinese)
        places = segmenter.places("".join(item.character for item in located))
        return [TokenSpan(located[start].start, located[end - 1].end, word) for word, start, end in places]
    if callable(tokens):
        normalised = "".join(item.character for item in located)
        return list(_find(located, normalised, tokens(normalised)))
    if tokens not in _SPLITTERS:
        raise SettingError(
            f"tokens must be one of {', '.join(map(repr, _SPLITTERS))}, 'jieba', a Jieba or a callable: got "
            f'{tokens!r}. Use "words" unless the text has no words to speak of.'
        )
    visible = (item for item in located if item.token_class != TRANSPARENT)
    return list(_SPLITTERS[tokens](visible))


def _start_tags(page: str) -> list[TokenSpan]:
    """Return the start tags of a page, each from its "<" to the next ">"."""
    places, hashes = start_tags(page)
    ends = [page.find(">", place) + 1 for place in places]
    return [
        TokenSpan(place, end or len(page), f"{token:016x}")
        for place, end, token in zip(places, ends, hashes, strict=True)
    ]


def _quick_words(text: str, *, nfkc: bool, case_fold: bool, fold_chinese: bool) -> list[TokenSpan] | None:
    """Return the words of a text in which each character becomes one character whatever stands around it, else None.

    Most texts are so, but for characters such as an ellipsis, which become several separators and count as one.
    """
    tables = load_tables(nfkc=nfkc, case_fold=case_fold, fold_chinese=fold_chinese)
    entries = tables.entries[_code_points(text)]
    kinds = (entries >> np.uint32(CLASS_SHIFT)) & np.uint32(CLASS_MASK)
    expands = entries & np.uint32(EXPAND) != 0
    for word in np.unique(entries[expands]).tolist():
        first = word & LOW_MASK
        parts = tables.expansions[first + 1 : first + 1 + int(tables.expansions[first])]
        if (parts >> np.uint32(CLASS_SHIFT) & np.uint32(CLASS_MASK)).any():
            return None
    odd = (entries & np.uint32(COMPOSE) != 0) | (entries >> np.uint32(RANK_SHIFT) != 0) & ~expands
    if odd.any() or (kinds == TRANSPARENT).any():
        return None
    kinds[expands] = 0
    mapped = (entries & np.uint32(LOW_MASK)).astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    # A token begins at each single character, and at a word character that has none before it.
    is_word = np.concatenate([[False], kinds == WORD, [False]])
    edges = np.flatnonzero(is_word[1:] != is_word[:-1])
    singles = np.flatnonzero(kinds == SINGLE)
    starts = np.concatenate([edges[::2], singles])
    ends = np.concatenate([edges[1::2], singles + 1])
    order = np.argsort(starts)
    return [
        TokenSpan(start, end, mapped[start:end])
        for start, end in zip(starts[order].tolist(), ends[order].tolist(), strict=True)
    ]


def _normalised(text: str, *, nfkc: bool, case_fold: bool, fold_chinese: bool) -> list[_Character]:
    """Return the characters of the normalised text; those from one inseparable piece share its place."""
    places: list[tuple[str, int, int]] = []
    for start, end in _pieces(text, nfkc=nfkc, case_fold=case_fold):
        whole = _normalise(text[start:end], nfkc=nfkc, case_fold=case_fold)
        if end - start > 1:
            alone = [_normalise(character, nfkc=nfkc, case_fold=case_fold) for character in text[start:end]]
            if "".join(alone) == whole:
                places += ((result, at, at + 1) for at, result in enumerate(alone, start))
                continue
        places.append((whole, start, end))
    entries = _plain_entries("".join(result for result, _, _ in places), fold_chinese=fold_chinese)
    remaining = iter(entries.tolist())
    return [
        _Character(chr(entry & LOW_MASK), entry, start, end)
        for result, start, end in places
        for entry in islice(remaining, len(result))
    ]


def _pieces(text: str, *, nfkc: bool, case_fold: bool) -> Iterator[tuple[int, int]]:
    """Return the limits of the shortest pieces that may be normalised each alone, in order."""
    entries = load_tables(nfkc=nfkc, case_fold=case_fold, fold_chinese=False).entries[_code_points(text)]
    is_lone_mark = (entries >> np.uint32(RANK_SHIFT) != 0) & (entries & np.uint32(EXPAND) == 0)
    joins = is_lone_mark | (entries & np.uint32(COMPOSE) != 0)
    start = 0
    for end in [*np.flatnonzero(~joins).tolist(), len(text)]:
        while start < end:
            yield start, min(end, start + _MAX_PIECE)
            start = min(end, start + _MAX_PIECE)


def _normalise(text: str, *, nfkc: bool, case_fold: bool) -> str:
    """Return N(text), Chinese folding apart."""
    if nfkc:
        text = unicodedata.normalize("NFKC", text)
    if case_fold:
        text = text.casefold()
        text = unicodedata.normalize("NFKC", text) if nfkc else text
    return text


def _plain_entries(text: str, *, fold_chinese: bool) -> npt.NDArray[np.uint32]:
    """Return the entry words of a text that is normalised already, Chinese folding apart."""
    return load_tables(nfkc=False, case_fold=False, fold_chinese=fold_chinese).entries[_code_points(text)]


def _code_points(text: str) -> npt.NDArray[np.uint32]:
    """Return the code points of a text."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.uint32, copy=False)


def _split_words(characters: Iterable[_Character]) -> Iterator[TokenSpan]:
    """Yield the runs of word characters, and each single character."""
    run: list[_Character] = []
    for item in characters:
        if item.token_class != WORD:
            yield from _joined(run)
            run = []
        if item.token_class == WORD:
            run.append(item)
        elif item.token_class == SINGLE:
            yield TokenSpan(item.start, item.end, item.character)
    yield from _joined(run)


def _split_whitespace(characters: Iterable[_Character]) -> Iterator[TokenSpan]:
    """Yield the runs of characters that are not whitespace."""
    run: list[_Character] = []
    for item in characters:
        if item.is_space:
            yield from _joined(run)
            run = []
        else:
            run.append(item)
    yield from _joined(run)


def _split_characters(characters: Iterable[_Character]) -> Iterator[TokenSpan]:
    """Yield each character, and each run of whitespace between two of them as one space."""
    spaces: list[_Character] = []
    is_first = True
    for item in characters:
        if item.is_space:
            spaces.append(item)
            continue
        if spaces and not is_first:
            yield TokenSpan(spaces[0].start, spaces[-1].end, " ")
        yield TokenSpan(item.start, item.end, item.character)
        spaces = []
        is_first = False


_SPLITTERS: dict[str, Callable[[Iterable[_Character]], Iterator[TokenSpan]]] = {
    "words": _split_words,
    "chars": _split_characters,
    "whitespace": _split_whitespace,
}


def _joined(run: list[_Character]) -> Iterator[TokenSpan]:
    """Yield the one token that a run of characters makes, or none for an empty run."""
    if run:
        yield TokenSpan(run[0].start, run[-1].end, "".join(item.character for item in run))


def _find(located: list[_Character], text: str, tokens: Iterable[str]) -> Iterator[TokenSpan]:
    """Yield each token where it next occurs in the normalised text, which is that of ``located``.

    A token that is missing once is missing for good, because the search only moves forward; such tokens are
    remembered. Others can still make the search read the rest of the text each time: hence the budget.
    """
    missing: set[str] = set()
    budget = _SEARCH_BUDGET * len(text)
    behind = 0
    for token in filter(None, tokens):
        at = -1
        if token not in missing:
            limit = len(text) if budget > 0 else behind + _NEAR + len(token)
            at = text.find(token, behind, limit)
            budget -= max(limit if at < 0 else at, behind) - behind
            if at < 0 and limit == len(text):
                missing.add(token)
        if at < 0:
            place = located[behind - 1].end if behind else 0
            yield TokenSpan(place, place, token)
            continue
        behind = at + len(token)
        yield TokenSpan(located[at].start, located[behind - 1].end, token)
