"""The views in which items and documents are compared: their words, or the structure of their code.

A view turns texts into the texts that are cut into shingles, and words of these into characters of
the texts as they were read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import (
    Mask,
    Rows,
    arrow_of,
    arrow_of_strings,
    flatten_strings,
    offsets_from_lengths,
)
from neardup.candidates.markup import fold_markup, fold_texts
from neardup.features.feature_strings import token_strings
from neardup.features.spans import TEXT_SEPARATOR, token_spans, word_ranges
from neardup.settings.contamination import ContaminationSettings
from neardup.settings.methods import Shingling

_CODE = Shingling(tokens="uncommented", nfkc=False, case_fold=False)
_KEYWORDS = """
    and as assert async await break case catch class const continue def default del delete do elif
    else enum except export extends False final finally fn for from func function global goto if
    impl import in instanceof interface is lambda let loop match mod mut new nil None nonlocal not
    null or package pass private protected pub public raise return self static struct super switch
    template this throw True true false try type typedef typeof union unsafe use using var virtual
    void where while with yield
"""
_SIGNS_OF_CODE = "( ) [ ] { } = == ; : -> => += :: &&"
_MIN_SIGNS = 0.15  # of the tokens of code; prose has about 0.03


def _kinds_of_bytes() -> Rows:
    """Return the kind of a token by its first byte: 1 a name, 2 a number, 3 a string, 0 a sign.

    The kinds are positions in the choices of `_fold_names`.
    """
    kinds = np.zeros(256, np.int64)
    kinds[[code for code in range(128) if chr(code).isalpha() or chr(code) == "_"]] = 1
    kinds[128:] = 1
    kinds[ord("0") : ord("9") + 1] = 2
    kinds[[ord(quote) for quote in "\"'`"]] = 3
    return kinds


_KINDS = _kinds_of_bytes()


class Located(NamedTuple):
    """Texts whose words have places.

    cut : the texts to cut into words. words : int64 (num_words, 2), the characters of the words of
    all texts, each in its text as it was read.
    """

    cut: pa.Array
    words: Rows


class View(ABC):
    """A view of texts. shingling : the cutting of the texts that `read` returns."""

    shingling: Shingling

    @abstractmethod
    def read(self, texts: pa.Array) -> pa.Array:
        """Return the texts to cut, one for each text."""

    @abstractmethod
    def locate(self, texts: pa.Array) -> Located:
        """Return the texts to cut, and the places of their words. texts : not null."""


@dataclass(frozen=True)
class WordsView(View):
    """The words of texts. folds_markup : whether markup is folded."""

    shingling: Shingling
    folds_markup: bool

    def read(self, texts: pa.Array) -> pa.Array:
        """Return the texts without markup."""
        return fold_markup(texts) if self.folds_markup else texts

    def locate(self, texts: pa.Array) -> Located:
        """Return the texts without markup, and the places of their words."""
        folded = fold_texts(texts, is_marked_up=self.folds_markup)
        strings = [each.text for each in folded]
        # All texts are cut as one string. A separator is before each, also before the first: marks
        # at the beginning of a text are placed alike in any batch.
        text_starts = offsets_from_lengths([len(text) + 1 for text in strings]) + 1
        words = word_ranges(TEXT_SEPARATOR.join(["", *strings]), self.shingling)
        limits = np.searchsorted(words[:, 0], text_starts)
        words -= np.repeat(text_starts[:-1], np.diff(limits))[:, None]
        for number in np.flatnonzero([len(each.edits) for each in folded]).tolist():
            rows = slice(limits[number], limits[number + 1])
            words[rows] = folded[number].unfold(words[rows])
        return Located(arrow_of_strings(strings), words)


class StructureView(View):
    """The tokens of code by their kinds: each name, number and string is a sign, keywords and other
    signs stay. Comments are left out, and line ends, which are tokens by the language of the whole
    text.
    """

    shingling = Shingling(tokens="whitespace", nfkc=False, case_fold=False)

    def read(self, texts: pa.Array) -> pa.Array:
        """Return the signs of each text, with spaces between."""
        tokens, offsets = _code_tokens(texts)
        signs = pa.LargeListArray.from_arrays(offsets, _fold_names(tokens))
        return pc.binary_join(signs, pa.scalar(" ", tokens.type))

    def locate(self, texts: pa.Array) -> Located:
        """Return the signs of each text, and the places of the tokens."""
        spans = [
            (span.start, span.end)
            for text in texts.to_pylist()
            for span in token_spans(text, _CODE)
            if text[span.start] > " "
        ]
        return Located(self.read(texts), np.array(spans, np.int64).reshape(-1, 2))


def _code_tokens(texts: pa.Array) -> tuple[pa.LargeStringArray, pa.Array]:
    """Return the tokens of code of all texts, except line ends, and their offsets by text."""
    found = token_strings(texts, _CODE)
    tokens = pa.LargeStringArray.from_buffers(
        len(found.offsets) - 1, pa.py_buffer(found.offsets), pa.py_buffer(found.data)
    )
    is_token = found.data[found.offsets[:-1]] > ord(" ")
    offsets = offsets_from_lengths(is_token)[found.document_offsets]
    return tokens.filter(arrow_of(is_token)), arrow_of(offsets)


def _fold_names(tokens: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return tokens with one sign in place of every name, number and string."""
    data, offsets = flatten_strings(tokens)
    kinds = _KINDS[data[offsets[:-1]]]
    is_keyword = pc.is_in(tokens, pa.array(_KEYWORDS.split(), tokens.type))
    kinds[np.asarray(is_keyword, np.bool_)] = 0
    signs = (pa.scalar(sign, tokens.type) for sign in '$0"')
    return pc.choose(arrow_of(kinds), tokens, *signs)


def views_of(settings: ContaminationSettings, shingling: Shingling) -> list[View]:
    """Return the views of a search. shingling : of the documents."""
    words = WordsView(replace(shingling, html=None), settings.markup)
    return [words, StructureView()] if settings.structure else [words]


def has_code(texts: pa.Array) -> Mask:
    """Return whether each text is code, by the share of its signs."""
    tokens, offsets = _code_tokens(texts)
    signs = pa.array(_SIGNS_OF_CODE.split(), tokens.type)
    num_signs = offsets_from_lengths(pc.is_in(tokens, signs))
    limits = np.asarray(offsets)
    return np.asarray(np.diff(num_signs[limits]) > _MIN_SIGNS * np.diff(limits))
