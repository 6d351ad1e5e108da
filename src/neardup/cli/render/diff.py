"""Mark the passages in which two texts differ, and fold long ones that both have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rich.text import Text

from neardup.report.wording import plural, visible
from neardup.verify.alignment import Stretch
from neardup.verify.passages import Passage

_CONTEXT = 60  # characters of a shared passage that are shown next to a difference
_LEAST_FOLDED = 60  # shorter stretches are shown: the note that they are folded is as long
_LONGEST_DIFFERENCE = 1200
_STYLES = ("bold red", "bold green")
_BRACKETS = (("[-", "-]"), ("{+", "+}"))

Sides = tuple[Text, Text]


class Gap(NamedTuple):
    """A long passage of both texts that is not shown, and the note in its place."""

    note: str


class Marks(NamedTuple):
    """How passages are marked: by brackets instead of colours, with Unicode, nothing folded."""

    plain: bool
    unicode: bool
    full: bool

    def note(self, text: str) -> str:
        """Return how much of a text is not shown."""
        words = len(text.split())
        size = plural(words, "word") if words * 16 > len(text) else plural(len(text), "character")
        dots = "⋯" if self.unicode else "..."
        return f"{dots} {size} {dots}"


def fold_stretches(stretches: Sequence[Stretch], marks: Marks) -> list[Sides | Gap]:
    """Return hunks, each with a side for either text, and the gaps between them."""
    hunks: list[Sides | Gap] = []
    sides: Sides = (Text(), Text())
    for index, stretch in enumerate(stretches):
        texts = stretch.left, stretch.right
        if not stretch.shared:
            for i in (0, 1):
                _append_differing(sides[i], texts[i], i, marks)
            continue
        ends = index > 0, index < len(stretches) - 1
        left, right = (_fold(text, *ends, marks) for text in texts)
        if left is None or right is None:
            for side, text in zip(sides, texts, strict=True):
                side.append(_clean(text))
            continue
        sides = sides[0].append(left.head), sides[1].append(right.head)
        hunks += [_trimmed(sides)] if any(side.plain.strip() for side in sides) else []
        hunks.append(Gap(left.note))
        sides = Text(left.tail), Text(right.tail)
    return [*hunks, _trimmed(sides)] if any(side.plain.strip() for side in sides) else hunks


def fold_whole(sides: Sequence[tuple[str, Sequence[Passage]]], marks: Marks) -> list[Sides | Gap]:
    """Return one hunk: both texts from beginning to end, each folded for itself."""
    result = Text(), Text()
    for i, (text, passages) in enumerate(sides):
        for index, (start, end, shared) in enumerate(passages):
            if not shared:
                _append_differing(result[i], text[start:end], i, marks)
                continue
            folded = _fold(text[start:end], index > 0, index < len(passages) - 1, marks)
            if folded is None:
                result[i].append(_clean(text[start:end]))
            else:
                result[i].append(folded.head).append(f"\n{folded.note}\n", "dim").append(folded.tail)
    return [_trimmed(result)]


class _Folded(NamedTuple):
    head: str
    note: str
    tail: str


def _fold(text: str, head: bool, tail: bool, marks: Marks) -> _Folded | None:
    """Return the ends of a shared passage next to a difference; None if it is short enough to show."""
    text = _clean(text)
    first = _cut(text, _CONTEXT) if head else 0
    last = len(text) - _cut(text[::-1], _CONTEXT) if tail else len(text)
    if marks.full or last - first < _LEAST_FOLDED:
        return None
    return _Folded(text[:first], marks.note(text[first:last]), text[last:])


def _cut(text: str, length: int) -> int:
    """Return the position to cut a text at, about this length: at white space if some is near."""
    space = max(text.rfind(" ", length // 2, length), text.rfind("\n", length // 2, length))
    return min(len(text), length if space < 0 else space)


def _append_differing(side: Text, text: str, index: int, marks: Marks) -> None:
    text = _clean(text)
    inner = text.strip()
    if not inner:
        side.append(text)
        return
    before, after = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
    if len(inner) > _LONGEST_DIFFERENCE and not marks.full:
        head = _cut(inner, _LONGEST_DIFFERENCE // 2)
        tail = len(inner) - _cut(inner[::-1], _LONGEST_DIFFERENCE // 2)
        inner = f"{inner[:head]} {marks.note(inner[head:tail])} {inner[tail:]}"
    opening, closing = _BRACKETS[index] if marks.plain else ("", "")
    side.append(before).append(f"{opening}{inner}{closing}", None if marks.plain else _STYLES[index]).append(after)


def _clean(text: str) -> str:
    """Return a text without runs of empty lines, its hidden characters shown: an ESC must not reach a terminal."""
    return visible(re.sub(r"\n\s*\n", "\n", text.replace("\r\n", "\n")))


def _trimmed(sides: Sides) -> Sides:
    """Return both sides without white space around them."""
    for side in sides:
        side.rstrip()
    return tuple(side[len(side.plain) - len(side.plain.lstrip()) :] for side in sides)  # type: ignore[return-value]
