"""Align two texts or two outlines: shared and differing passages by turns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence, Set
from functools import lru_cache
from itertools import chain, groupby
from typing import NamedTuple

from neardup.features.normalise import normalise
from neardup.features.outline import Line, common_lines, outline
from neardup.features.spans import TokenSpan
from neardup.files import JsonObject
from neardup.settings.folds import FOLDS
from neardup.settings.methods import Shingling


class Pair(NamedTuple):
    """Two aligned lines with one label, at any depth, or one line alone."""

    left: Line | None
    right: Line | None

    @property
    def shared(self) -> bool:
        """True if both pages have the line."""
        return (
            self.left is not None and self.right is not None and self.left.label == self.right.label
        )


class Outlines(NamedTuple):
    """Two outlines as pairs of lines.

    left_out : the number of elements at the end of each page that its outline leaves out.
    """

    pairs: list[Pair]
    left_out: tuple[int, int]

    def record(self) -> JsonObject:
        """Return values for JSON."""
        sides = [{"left": _record(pair.left), "right": _record(pair.right)} for pair in self.pairs]
        return {"outlines": sides, "left_out": list(self.left_out)}


def align_outlines(left: str, right: str) -> Outlines:
    """Return the outlines of two HTML pages, aligned by their labels.

    Notes
    -----
    A line is shared at any depth: an element around others adds one line and does not change the
    lines inside, as with the shingles of start tags, which ignore depth. The number of repetitions
    of a line does not count.
    """
    left_lines, num_left_out = outline(left)
    right_lines, num_right_out = outline(right)
    pairs = []
    left_start = 0
    right_start = 0
    left_labels = [line.label for line in left_lines]
    right_labels = [line.label for line in right_lines]
    for left_index, right_index in common_lines(left_labels, right_labels):
        pairs += [Pair(line, None) for line in left_lines[left_start:left_index]]
        pairs += [Pair(None, line) for line in right_lines[right_start:right_index]]
        pairs.append(Pair(left_lines[left_index], right_lines[right_index]))
        left_start = left_index + 1
        right_start = right_index + 1
    pairs += [Pair(line, None) for line in left_lines[left_start:]]
    pairs += [Pair(None, line) for line in right_lines[right_start:]]
    return Outlines(pairs, (num_left_out, num_right_out))


def _record(line: Line | None) -> JsonObject | None:
    return None if line is None else line._asdict()


class Passage(NamedTuple):
    """A passage ``text[start:end]`` that is shared with the other text, or differs from it."""

    start: int
    end: int
    shared: bool


def mark_passages(
    left_text: str,
    left: Sequence[TokenSpan],
    right_text: str,
    right: Sequence[TokenSpan],
    ngram: int,
) -> tuple[list[Passage], list[Passage]]:
    """Return the shared and the differing passages of two texts.

    Parameters
    ----------
    left_text, right_text : the texts.
    left, right : their tokens with their positions; neither starts nor ends decrease. Tokens may
        share characters. A token of no width is compared, but not shown.
    ngram : tokens per shingle. All tokens of a shorter text are one shingle.

    Returns
    -------
    tuple of two lists of Passage
        For each text its passages in order, without gaps, from 0 to its end, alternately shared and
        differing; none for an empty text. Characters between two tokens belong to the passage on
        their left, characters before the first token to the first passage.

    Notes
    -----
    A token is shared if a shingle that covers it occurs anywhere in the other text, so a moved
    block is shared, with its first and last ``ngram - 1`` tokens. Characters that several tokens
    come from are shared only if all these tokens are. Time is linear in the number of tokens, times
    ``ngram``.
    """
    left_shingles = _shingles(left, ngram)
    right_shingles = _shingles(right, ngram)
    left_shared = _covered(left_shingles, set(right_shingles), len(left))
    right_shared = _covered(right_shingles, set(left_shingles), len(right))
    return _merge(left_text, left, left_shared), _merge(right_text, right, right_shared)


def _shingles(spans: Sequence[TokenSpan], ngram: int) -> list[tuple[str, ...]]:
    """Return the shingles in order. Fewer than `ngram` tokens are one shingle."""
    tokens = [span.token for span in spans]
    width = min(ngram, len(tokens))
    if width == 0:
        return []
    return [tuple(tokens[first : first + width]) for first in range(len(tokens) - width + 1)]


def _covered(
    shingles: list[tuple[str, ...]], others: set[tuple[str, ...]], num_tokens: int
) -> list[bool]:
    """Return for each token whether a shingle that covers it is among ``others``."""
    shared = [False] * num_tokens
    shared_end = 0
    for index in range(num_tokens):
        if index < len(shingles) and shingles[index] in others:
            shared_end = index + len(shingles[index])
        shared[index] = index < shared_end
    return shared


def _merge(text: str, spans: Sequence[TokenSpan], shared: list[bool]) -> list[Passage]:
    """Return the passages of a text whose tokens are shared or not."""
    if not text:
        return []
    units = _units(spans, shared)
    runs = [next(run) for _, run in groupby(units, key=lambda unit: unit.shared)]
    if not runs:
        return [Passage(0, len(text), False)]
    starts = [0, *(run.start for run in runs[1:])]
    ends = [*starts[1:], len(text)]
    return [
        Passage(start, end, run.shared) for start, end, run in zip(starts, ends, runs, strict=True)
    ]


def _units(spans: Sequence[TokenSpan], shared: list[bool]) -> list[Passage]:
    """Return the tokens of some width. Tokens that share characters are merged."""
    units: list[Passage] = []
    for (start, end, _), flag in zip(spans, shared, strict=True):
        if start == end:
            continue
        if units and start < units[-1].end:
            last = units.pop()
            units.append(Passage(last.start, max(last.end, end), last.shared and flag))
        else:
            units.append(Passage(start, end, flag))
    return units


_MARKS = "\u0300-\u036f\u3099\u309a"
_WORDS = re.compile(
    f"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af][{_MARKS}]*"
    f"|[\u1100-\u115f]+[\u1160-\u11ff]*|(?:[^\\W_][{_MARKS}]*)+"
)
"""A word, or a letter of a script without spaces, or a Korean syllable, also of several letters."""
_PIECES = re.compile(f"[^{_MARKS}]?[{_MARKS}]*", re.DOTALL)
"""A character with the marks after it; empty at the end of a text."""
_MAX_CELLS = 300_000_000  # words of one text times words of the other: some 40 MB and 0.1 s
_MIN_RUN = 3  # words that must match in a row: fewer would cut a moved passage into pieces


class Stretch(NamedTuple):
    """A stretch of both texts: shared, or the differing text of each, which may be empty."""

    left: str
    right: str
    shared: bool


def align(
    left: str, left_passages: Sequence[Passage], right: str, right_passages: Sequence[Passage]
) -> list[Stretch] | None:
    """Return shared and differing stretches by turns.

    Returns
    -------
    list of Stretch, or None if long texts share passages in another order.

    Notes
    -----
    A passage is shared if it is anywhere in the other text. If the shared passages of both texts
    are the same, letter by letter, then a differing passage has a position in the other text: after
    the same number of shared letters. Letters and digits are counted, as the space between tokens
    may differ; case, compatibility and the spellings of all foldings are folded, as tokens may have
    been. This takes linear time. Otherwise some passages moved or are repeated: then only a longest
    common subsequence of the shared words stays shared, and a moved passage differs in both texts.
    """
    left_side = _Side(left, left_passages)
    right_side = _Side(right, right_passages)
    if left_side.letters != right_side.letters:
        left_ordered, right_ordered = _in_order(left, left_passages, right, right_passages)
        left_side = _Side(left, left_ordered)
        right_side = _Side(right, right_ordered)
    if left_side.letters != right_side.letters:
        return None
    stretches = []
    left_begin = 0
    right_begin = 0
    for num_letters in sorted(set(left_side.differing) | set(right_side.differing)):
        left_start, left_end = left_side.differing_after(num_letters)
        right_start, right_end = right_side.differing_after(num_letters)
        stretches += [
            Stretch(left[left_begin:left_start], right[right_begin:right_start], True),
            Stretch(left[left_start:left_end], right[right_start:right_end], False),
        ]
        left_begin = left_end
        right_begin = right_end
    stretches.append(Stretch(left[left_begin:], right[right_begin:], True))
    return [stretch for stretch in stretches if stretch.left or stretch.right]


class _Word(NamedTuple):
    """A word of a shared passage: folded, and its start."""

    letters: str
    start: int


def _in_order(
    left: str, left_passages: Sequence[Passage], right: str, right_passages: Sequence[Passage]
) -> tuple[Sequence[Passage], Sequence[Passage]]:
    """Return the passages of both texts, in which only words in one order stay shared.

    Passages of long texts are returned as they are.
    """
    left_words = _words(left, left_passages)
    right_words = _words(right, right_passages)
    if len(left_words) * len(right_words) > _MAX_CELLS:
        return left_passages, right_passages
    left_letters = [word.letters for word in left_words]
    right_letters = [word.letters for word in right_words]
    runs: list[list[tuple[int, int]]] = []
    for left_index, right_index in common_lines(left_letters, right_letters):
        if not runs or (left_index - 1, right_index - 1) != runs[-1][-1]:
            runs.append([])
        runs[-1].append((left_index, right_index))
    kept = list(chain(*(run for run in runs if len(run) >= _MIN_RUN)))
    return (
        _split(left_passages, left_words, {left_index for left_index, _ in kept}),
        _split(right_passages, right_words, {right_index for _, right_index in kept}),
    )


@lru_cache(maxsize=1 << 16)
def _folded(text: str) -> str:
    """Return the letters of a text without marks, which some foldings drop or move."""
    letters = unicodedata.normalize("NFD", normalise(text, Shingling(fold=FOLDS)))
    # Not composed again: a piece of Korean may be a syllable or one letter of it.
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _words(text: str, passages: Sequence[Passage]) -> list[_Word]:
    """Return the words of the shared passages of a text."""
    return [
        _Word(_folded(found[0]), found.start())
        for passage in passages
        if passage.shared
        for found in _WORDS.finditer(text, passage.start, passage.end)
    ]


def _split(passages: Sequence[Passage], words: Sequence[_Word], kept: Set[int]) -> list[Passage]:
    """Cut shared passages where words in `kept` begin or end; only these words stay shared."""
    split = []
    index = 0
    for passage in passages:
        if not passage.shared:
            split.append(passage)
            continue
        start = passage.start
        shared = index in kept
        while index < len(words) and words[index].start < passage.end:
            if (index in kept) != shared:
                split.append(Passage(start, words[index].start, shared))
                start = words[index].start
                shared = not shared
            index += 1
        split.append(Passage(start, passage.end, shared))
    return split


class _Side:
    """One of the texts: its shared letters, and the differing ranges between them.

    letters : the folded letters of the shared passages. offsets : the position of each letter in
    the text. differing : by the number of shared letters before a differing range, its start and
    end.
    """

    def __init__(self, text: str, passages: Sequence[Passage]) -> None:
        self.length = len(text)
        self.differing: dict[int, tuple[int, int]] = {}
        self.offsets: list[int] = []
        letters: list[str] = []
        for start, end, shared in passages:
            if not shared:
                # Ranges with no shared letter between them are one.
                first_start, _ = self.differing.get(len(letters), (start, end))
                self.differing[len(letters)] = (first_start, end)
                continue
            for piece in _PIECES.finditer(text, start, end):
                found = [letter for letter in _folded(piece[0]) if letter.isalnum()]
                letters += found
                self.offsets += [piece.start()] * len(found)
        self.letters = "".join(letters)

    def differing_after(self, num_letters: int) -> tuple[int, int]:
        """Return the differing range after this many shared letters; empty if there is none."""
        position = self.offsets[num_letters] if num_letters < len(self.offsets) else self.length
        return self.differing.get(num_letters, (position, position))
