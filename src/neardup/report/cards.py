"""Write the cards that open a report: a few removals that show what the run did, with their marked texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from neardup.report.items import Example, marked_text, same_text, similarity_shown
from neardup.report.messages import say
from neardup.report.wording import escape_text, plural, shortened_in_the_middle

_CHARACTERS = 320  # of each text on a card
_BEFORE = 80  # of them before the first difference
_MAX_ID = 60


Passages = Sequence[tuple[int, int, bool]]


class _Card(NamedTuple):
    """The title of a card, what it says in HTML, and the number of its removal in the list."""

    title: str
    sentence: str
    number: int


def cards(examples: Sequence[Example]) -> str:
    """Return up to three cards, in HTML: the largest family, the most near-duplicates of one text, the closest call.

    Parameters
    ----------
    examples : the removals in the list of the page, numbered from 1.
    """
    return "".join(_html(card, examples[card.number - 1]) for card in _picked(examples))


def _picked(examples: Sequence[Example]) -> list[_Card]:
    numbered = list(enumerate(examples, 1))
    near = [(number, example) for number, example in numbered if not example.exact]
    found: list[_Card] = []
    if not numbered:
        return found
    number, family = max(numbered, key=lambda item: (item[1].family, not item[1].exact))
    if family.family > 1:
        copies = family.family - family.family_near
        among = say(f", {plural(copies, 'copy')} among them,", f"，其中 {copies:,} 篇是副本") if copies else ""
        sentence = say(
            f"{plural(family.family, 'document')}{among} removed by one text: ",
            f"同一篇文本删除了 {family.family:,} 篇文档{among}：",
        )
        found.append(_Card(say("The largest family", "最大的一组"), sentence + _name(family.kept_id), number))
    others = [item for item in near if item[1].kept_id != family.kept_id and item[1].family_near > 1]
    if others:
        number, most = max(others, key=lambda item: item[1].family_near)
        sentence = say(
            f"{plural(most.family_near, 'near-duplicate')} removed by one text: ",
            f"同一篇文本删除了 {most.family_near:,} 篇近似重复：",
        )
        title = say("The most near-duplicates", "近似重复最多的文本")
        found.append(_Card(title, sentence + _name(most.kept_id), number))
    if near:
        number, closest = min(near, key=lambda item: (item[1].similarity, -(item[1].distance or 0)))
        by = say(", removed by ", "，删除它的是 ")
        sentence = f"{similarity_shown(closest)}: {_name(closest.id)}{by}{_name(closest.kept_id)}"
        found.append(_Card(say("The closest call", "最接近阈值的删除"), sentence, number))
    return found


def _name(document: str) -> str:
    shown = escape_text(shortened_in_the_middle(document, _MAX_ID), lines=False)
    return f'<bdi class="id">{shown}</bdi>'


def _html(card: _Card, example: Example) -> str:
    first = _first_difference(example.text, example.passages)
    second = _first_difference(example.kept_text, example.kept_passages)
    if first is None or second is None:  # one text has all of the other: both are shown at the same place
        first = second = first or second or 0
    removed = _excerpt(example.text, example.passages, first, "del")
    kept = _excerpt(example.kept_text, example.kept_passages, second, "ins")
    if example.text == example.kept_text:
        kept = same_text()
    both = say("Read both", "对照阅读")
    return (
        f'<article><h3>{card.title}</h3><p>{card.sentence}</p><div class="removed">{removed}</div>'
        f'<div class="kept">{kept}</div><p><a href="#removed-{card.number}">{both}</a></p></article>'
    )


def _first_difference(text: str, passages: Passages) -> int | None:
    return next((start for start, end, shared in passages if not shared and text[start:end].strip()), None)


def _excerpt(text: str, passages: Passages, place: int, mark: str) -> str:
    """Return the part of a text around a place, with its differences marked."""
    first = max(0, min(place - _BEFORE, len(text) - _CHARACTERS))
    last = first + _CHARACTERS
    inside = [
        (max(start, first) - first, min(end, last) - first, shared)
        for start, end, shared in passages
        if end > first and start < last
    ]
    cut = ("…" if first else "", "…" if last < len(text) else "")
    shown = f"{cut[0]}{text[first:last]}{cut[1]}"
    return marked_text(shown, [(start + len(cut[0]), end + len(cut[0]), shared) for start, end, shared in inside], mark)
