"""Align the passages of two texts: shared and differing stretches by turns."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence, Set
from typing import NamedTuple

from neardup.features.common_lines import common_lines
from neardup.verify.passages import Passage

_WORDS = re.compile(r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")
"""A word, or a letter of a script without spaces."""
_MAX_CELLS = 300_000_000  # words of one text times words of the other: some 40 MB and 0.1 s
_MIN_RUN = 3  # words that must match one after the other: fewer would cut a moved passage into pieces


class Stretch(NamedTuple):
    """A stretch of both texts: shared, or the differing text of each, which may be empty."""

    left: str
    right: str
    shared: bool


def align(
    left: str, left_passages: Sequence[Passage], right: str, right_passages: Sequence[Passage]
) -> list[Stretch] | None:
    """Return shared and differing stretches by turns, or None if long texts share passages in another order.

    Notes
    -----
    Passages are shared wherever they are in the other text. If the shared passages of both texts are the same, letter
    by letter, then a differing passage belongs in the other text after as many shared letters as in its own. Letters
    and digits are counted, case and compatibility folded, as the space between tokens may differ. This takes linear
    time. Otherwise some passages moved or are repeated: then only a longest common subsequence of the shared words
    stays shared, and a moved passage differs in both texts.
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
        (left_start, left_end), (right_start, right_end) = (side.differing_after(cut) for side in sides)
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
    """Return the passages of both texts, of which those stay shared that are in one order; all if they are too long."""
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


def _words(text: str, passages: Sequence[Passage]) -> list[_Word]:
    """Return the words of the shared passages of a text."""
    return [
        _Word(unicodedata.normalize("NFKC", found[0]).casefold(), found.start())
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

    letters : the folded letters of the shared passages. offsets : the position of each in the text. differing : number
    of shared letters before a differing stretch -> its start and end.
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
                for letter in unicodedata.normalize("NFKC", text[position]).casefold():
                    if letter.isalnum():
                        letters.append(letter)
                        self.offsets.append(position)
        self.letters = "".join(letters)

    def differing_after(self, num_letters: int) -> tuple[int, int]:
        """Return the differing range after this many shared letters; empty if there is none."""
        position = self.offsets[num_letters] if num_letters < len(self.offsets) else self.length
        return self.differing.get(num_letters, (position, position))
