"""Mark what two documents share, for reports: their words, or their outlines if the structure of pages is compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from neardup.arrays import arrow_of_strings
from neardup.features.outline import Line
from neardup.features.shingles import extract_text
from neardup.features.spans import TokenSpan, token_spans
from neardup.settings.shingling import PAGE_TOKENS, Shingling
from neardup.verify.outlines import align_outlines
from neardup.verify.passages import Passage, mark_passages

_CHARACTERS = 2000
_LINES = 80


class MarkedPair(NamedTuple):
    """Two texts to show, their passages, and whether they are only parts of the documents."""

    left: str
    right: str
    left_passages: list[Passage]
    right_passages: list[Passage]
    truncated: bool


class Marker:
    """Marks pairs of documents. texts : by the number of the document, as they were read."""

    def __init__(self, texts: Mapping[int, str], settings: Shingling) -> None:
        self._settings = settings
        compared = extract_text(arrow_of_strings(list(texts.values())), settings)
        self._texts: dict[int, str] = dict(zip(texts, compared.to_pylist(), strict=True))
        self._spans: dict[int, list[TokenSpan]] = {}

    def mark(self, left: int, right: int) -> MarkedPair:
        """Return two documents with what they share."""
        if self._settings.tokens in PAGE_TOKENS:
            return _outlines(self._texts[left], self._texts[right])
        texts = [self._texts[document][:_CHARACTERS] for document in (left, right)]
        for document, text in zip((left, right), texts, strict=True):
            if document not in self._spans:
                self._spans[document] = token_spans(text, self._settings)
        marked = mark_passages(texts[0], self._spans[left], texts[1], self._spans[right], self._settings.ngram)
        truncated = any(len(self._texts[document]) > _CHARACTERS for document in (left, right))
        return MarkedPair(texts[0], texts[1], *marked, truncated)


def _outlines(left: str, right: str) -> MarkedPair:
    """Return the outlines of two pages as texts, a line for each element."""
    found = align_outlines(left, right)
    pairs = found.pairs[:_LINES]
    first, first_passages = _lines((pair.left, pair.shared) for pair in pairs)
    second, second_passages = _lines((pair.right, pair.shared) for pair in pairs)
    truncated = len(found.pairs) > _LINES or any(found.left_out)
    return MarkedPair(first, second, first_passages, second_passages, truncated)


def _lines(lines: Iterable[tuple[Line | None, bool]]) -> tuple[str, list[Passage]]:
    """Return the lines of one page as a text, and the part of each behind its indentation as a passage."""
    text, passages = "", []
    for line, shared in lines:
        if line is not None:
            start = len(text) + 2 * line.depth
            repeats = f" × {line.repeats}" if line.repeats > 1 else ""
            text += f"{'  ' * line.depth}{line.label}{repeats}\n"
            passages.append(Passage(start, len(text) - 1, shared))
    return text, passages
