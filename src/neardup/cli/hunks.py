"""Set the passages of two texts side by side: where one differs, what the other has there."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from neardup.verify.passages import Passage


class Piece(NamedTuple):
    """A stretch of a text, and whether the other text has it too."""

    text: str
    shared: bool


class Stretch(NamedTuple):
    """What stands at one place of both texts: the same, or something of its own in each, which may be nothing."""

    left: list[Piece]
    right: list[Piece]
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
        places = [side.differing.get(cut) or (side.offset(cut),) * 2 for side in sides]
        stretches.append(_shared(sides, begin, (places[0][0], places[1][0])))
        stretches.append(Stretch(*([Piece(s.text[p[0] : p[1]], False)] for s, p in zip(sides, places)), False))
        begin = places[0][1], places[1][1]
    stretches.append(_shared(sides, begin, (len(left), len(right))))
    return [stretch for stretch in stretches if any(piece.text for piece in (*stretch.left, *stretch.right))]


def pieces(text: str, passages: Sequence[Passage]) -> list[Piece]:
    """Return the passages of a text as pieces."""
    return [Piece(text[passage.start : passage.end], passage.shared) for passage in passages]


def _shared(sides: list[_Side], begin: tuple[int, int], end: tuple[int, int]) -> Stretch:
    left, right = (
        [Piece(side.text[start:stop], True)] for side, start, stop in zip(sides, begin, end, strict=True)
    )
    return Stretch(left, right, True)


class _Side:
    """One of the texts: its shared letters, and where among them it differs.

    letters : the folded letters of the shared passages. offsets : where each stands in the text. differing : number
    of shared letters before a differing stretch -> its start and end.
    """

    def __init__(self, text: str, passages: Sequence[Passage]) -> None:
        self.text = text
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

    def offset(self, num_letters: int) -> int:
        """Return where the text has had so many shared letters, at the start of the next one."""
        return self.offsets[num_letters] if num_letters < len(self.offsets) else len(self.text)
