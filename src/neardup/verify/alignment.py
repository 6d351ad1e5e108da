"""Align the passages of two texts: shared and differing stretches by turns."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from neardup.verify.passages import Passage


class Stretch(NamedTuple):
    """A stretch of both texts: shared, or the differing text of each, which may be empty."""

    left: str
    right: str
    shared: bool


def align(
    left: str, left_passages: Sequence[Passage], right: str, right_passages: Sequence[Passage]
) -> list[Stretch] | None:
    """Return shared and differing stretches by turns, or None if the texts share passages in another order.

    Notes
    -----
    Passages are shared wherever they stand in the other text. If what is shared reads the same in both, letter by
    letter, then a differing passage stands in the other text after as many shared letters as in its own. Letters
    and digits are counted, case and compatibility folded, as the space between tokens may differ. Linear time.
    """
    sides = [_Side(left, left_passages), _Side(right, right_passages)]
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
