"""Align two texts or two outlines: the passages they share, and those that differ, by turns."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from neardup.features.normalise import normalise
from neardup.features.outline import Line, common_lines, outline
from neardup.features.spans import TokenSpan
from neardup.files import JsonObject
from neardup.settings.methods import Shingling


class Pair(NamedTuple):
    """Two aligned lines with one label, at any depth, or one line alone."""

    left: Line | None
    right: Line | None

    @property
    def shared(self) -> bool:
        """Whether both pages have the line."""
        return (
            self.left is not None and self.right is not None and self.left.label == self.right.label
        )


class Outlines(NamedTuple):
    """Two outlines as pairs of lines, and the number of elements of each that are left out at the
    end.
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
    (first, first_left_out), (second, second_left_out) = outline(left), outline(right)
    pairs: list[Pair] = []
    start = other_start = 0
    shared = common_lines([line.label for line in first], [line.label for line in second])
    for line_index, other_index in [*shared, (len(first), len(second))]:
        pairs += [Pair(line, None) for line in first[start:line_index]]
        pairs += [Pair(None, line) for line in second[other_start:other_index]]
        pairs += map(
            Pair, first[line_index : line_index + 1], second[other_index : other_index + 1]
        )
        start, other_start = line_index + 1, other_index + 1
    return Outlines(pairs, (first_left_out, second_left_out))


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
    ngram : tokens per shingle. A text of fewer tokens is one shingle of all of them.

    Returns
    -------
    tuple of two lists of Passage
        For each text its passages in order, without gaps, from 0 to its end, alternately shared and
        differing; none for an empty text. Characters between two tokens belong to the passage on
        their left, those before the first token to the first passage.

    Notes
    -----
    A token is shared if a shingle that covers it occurs anywhere in the other text, so a moved
    block is shared, with its first and last ``ngram - 1`` tokens. Characters that several tokens
    come from are shared only if all those tokens are. Time is linear in the number of tokens, times
    ``ngram``.
    """
    shingles, others = _shingles(left, ngram), _shingles(right, ngram)
    return (
        _merge(left_text, left, _covered(shingles, set(others), len(left))),
        _merge(right_text, right, _covered(others, set(shingles), len(right))),
    )


def _shingles(spans: Sequence[TokenSpan], ngram: int) -> list[tuple[str, ...]]:
    """Return the shingles in order: one of all tokens if there are fewer than `ngram`, none if
    there are none.
    """
    tokens = [span.token for span in spans]
    width = min(ngram, len(tokens))
    return (
        [tuple(tokens[first : first + width]) for first in range(len(tokens) - width + 1)]
        if width
        else []
    )


def _covered(
    shingles: list[tuple[str, ...]], others: set[tuple[str, ...]], num_tokens: int
) -> list[bool]:
    """Return for each token whether a shingle that covers it is among ``others``."""
    shared = [False] * num_tokens
    reach = 0
    for index in range(num_tokens):
        if index < len(shingles) and shingles[index] in others:
            reach = index + len(shingles[index])
        shared[index] = index < reach
    return shared


def _merge(text: str, spans: Sequence[TokenSpan], shared: list[bool]) -> list[Passage]:
    """Return the passages of a text whose tokens are shared or not."""
    if not text:
        return []
    runs = [next(run) for _, run in groupby(_units(spans, shared), key=lambda unit: unit.shared)]
    if not runs:
        return [Passage(0, len(text), False)]
    starts = [0, *(run.start for run in runs[1:])]
    ends = [*starts[1:], len(text)]
    return [
        Passage(start, end, run.shared) for start, end, run in zip(starts, ends, runs, strict=True)
    ]


def _units(spans: Sequence[TokenSpan], shared: list[bool]) -> list[Passage]:
    """Return the tokens of some width, with those that share characters merged."""
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


_WORDS = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
"""A word, or a letter of a script without spaces."""
_MAX_CELLS = 300_000_000  # words of one text times words of the other: some 40 MB and 0.1 s
_MIN_RUN = (
    3  # words that must match one after the other: fewer would cut a moved passage into pieces
)


class Stretch(NamedTuple):
    """A stretch of both texts: shared, or the differing text of each, which may be empty."""

    left: str
    right: str
    shared: bool


def align(
    left: str, left_passages: Sequence[Passage], right: str, right_passages: Sequence[Passage]
) -> list[Stretch] | None:
    """Return shared and differing stretches by turns, or None if long texts share passages in
    another order.

    Notes
    -----
    Passages are shared wherever they are in the other text. If the shared passages of both texts
    are the same, letter by letter, then a differing passage belongs in the other text after as many
    shared letters as in its own. Letters and digits are counted, as the space between tokens may
    differ; case, compatibility and traditional Chinese are folded, as tokens may have been. This
    takes linear time. Otherwise some passages moved or are repeated: then only a longest common
    subsequence of the shared words stays shared, and a moved passage differs in both texts.
    """
    sides = [_Side(left, left_passages), _Side(right, right_passages)]
    if sides[0].letters != sides[1].letters:
        ordered = _in_order(left, left_passages, right, right_passages)
        sides = [_Side(left, ordered[0]), _Side(right, ordered[1])]
        if sides[0].letters != sides[1].letters:
            return None
    cuts = sorted(set(sides[0].differing) | set(sides[1].differing))
    stretches = []
    begin = (0, 0)
    for cut in cuts:
        (left_start, left_end), (right_start, right_end) = (
            side.differing_after(cut) for side in sides
        )
        stretches.append(Stretch(left[begin[0] : left_start], right[begin[1] : right_start], True))
        stretches.append(Stretch(left[left_start:left_end], right[right_start:right_end], False))
        begin = left_end, right_end
    stretches.append(Stretch(left[begin[0] :], right[begin[1] :], True))
    return [stretch for stretch in stretches if stretch.left or stretch.right]


class _Word(NamedTuple):
    """A word of a shared passage: folded, and its start."""

    letters: str
    start: int


def _in_order(
    left: str, left_passages: Sequence[Passage], right: str, right_passages: Sequence[Passage]
) -> tuple[Sequence[Passage], Sequence[Passage]]:
    """Return the passages of both texts, of which those stay shared that are in one order; all if
    they are too long.
    """
    first, second = _words(left, left_passages), _words(right, right_passages)
    if len(first) * len(second) > _MAX_CELLS:
        return left_passages, right_passages
    pairs = common_lines([word.letters for word in first], [word.letters for word in second])
    runs: list[list[tuple[int, int]]] = []
    for pair in pairs:
        if runs and (pair[0] - 1, pair[1] - 1) == runs[-1][-1]:
            runs[-1].append(pair)
        else:
            runs.append([pair])
    kept = [pair for run in runs if len(run) >= _MIN_RUN for pair in run]
    return (
        _split(left_passages, first, {place for place, _ in kept}),
        _split(right_passages, second, {place for _, place in kept}),
    )


@lru_cache(maxsize=1 << 16)
def _folded(text: str) -> str:
    return normalise(text, Shingling(fold_chinese=True))


def _words(text: str, passages: Sequence[Passage]) -> list[_Word]:
    """Return the words of the shared passages of a text."""
    return [
        _Word(_folded(found[0]), found.start())
        for passage in passages
        if passage.shared
        for found in _WORDS.finditer(text, passage.start, passage.end)
    ]


def _split(passages: Sequence[Passage], words: Sequence[_Word], kept: Set[int]) -> list[Passage]:
    """Return passages, the shared ones cut where words that are kept begin or end."""
    split: list[Passage] = []
    place = 0
    for passage in passages:
        if not passage.shared:
            split.append(passage)
            continue
        start, shared = passage.start, place in kept
        while place < len(words) and words[place].start < passage.end:
            if (place in kept) != shared:
                split.append(Passage(start, words[place].start, shared))
                start, shared = words[place].start, not shared
            place += 1
        split.append(Passage(start, passage.end, shared))
    return split


class _Side:
    """One of the texts: its shared letters, and the differing ranges between them.

    letters : the folded letters of the shared passages. offsets : the position of each in the text.
    differing : number of shared letters before a differing stretch -> its start and end.
    """

    def __init__(self, text: str, passages: Sequence[Passage]) -> None:
        self.length = len(text)
        self.differing: dict[int, tuple[int, int]] = {}
        self.offsets: list[int] = []
        letters: list[str] = []
        for start, end, shared in passages:
            if not shared:
                first = self.differing.get(len(letters), (start, end))[0]
                self.differing[len(letters)] = first, end
                continue
            for position in range(start, end):
                for letter in _folded(text[position]):
                    if letter.isalnum():
                        letters.append(letter)
                        self.offsets.append(position)
        self.letters = "".join(letters)

    def differing_after(self, num_letters: int) -> tuple[int, int]:
        """Return the differing range after this many shared letters; empty if there is none."""
        position = self.offsets[num_letters] if num_letters < len(self.offsets) else self.length
        return self.differing.get(num_letters, (position, position))
