"""Write the list of removed documents, each next to the document that removed it, as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_DOWN, Decimal
from typing import TYPE_CHECKING, NamedTuple

from neardup.report.wording import document_id, escape_text, say

if TYPE_CHECKING:
    from neardup.report.marked_pairs import MarkedPair

Place = tuple[str, str, int]

_MAX_OPENING = 90  # characters of its text there
_MAX_LABEL = 160  # characters of an id in the list; the opened item shows all of it


class Example(NamedTuple):
    """A removed document, and the kept document that removed it.

    removed, kept : id, file and row. pair : their texts. distance : of the fingerprints, shown instead of the
    similarity if it decided alone; else None. family, family_near : the documents that the same kept document removed,
    and those of them that are no copies.
    """

    removed: Place
    kept: Place
    pair: MarkedPair
    similarity: float
    exact: bool
    distance: int | None = None
    family: int = 1
    family_near: int = 0


def removed_list(examples: Sequence[Example], removed: int) -> str:
    """Return the list of removed documents as HTML; `removed` is the number of all, shown or not."""
    if not examples:
        none = say("removed.no_examples")
        return f"<p>{none if removed else say('removed.none')}</p>"
    items = "".join(_removed(number, example) for number, example in enumerate(examples, 1))
    total = max(removed, len(examples))
    legend = say("removed.shown", shown=len(examples), total=total)
    return f'<p class="legend">{legend}</p><ol id="removed-list" class="pairs">\n{items}</ol>'


def pair_list(examples: Sequence[Example], kind: str) -> str:
    """Return pairs of texts as items of a list, in HTML; kind : of errors, wrong or missed, which begins their ids."""
    items, sides = "", (say("errors.first"), say("errors.second"))
    for number, example in enumerate(examples, 1):
        other = f'<span class="place"><bdi>{escape_text(example.kept[0], lines=False)}</bdi></span>'
        items += _item(f"{kind}-{number}", example, say(f"errors.{kind}"), other, sides)
    return items


def hit_list(examples: Sequence[Example]) -> str:
    """Return items, each with a document that contains it, as items of a list, in HTML."""
    items, sides = "", (say("contamination.item"), say("contamination.document"))
    for number, example in enumerate(examples, 1):
        opening = " ".join(example.pair.left[: 4 * _MAX_OPENING].split())[:_MAX_OPENING]
        shown = f'<span class="place"><bdi>{escape_text(opening, lines=False)}</bdi></span>'
        items += _item(f"hit-{number}", example, say("contamination.part"), shown, sides)
    return items


def _removed(number: int, example: Example) -> str:
    opening = " ".join(example.pair.left[: 4 * _MAX_OPENING].split())[:_MAX_OPENING]
    shown = f'<span class="place"><bdi>{escape_text(opening, lines=False)}</bdi></span>'
    sides = say("counts.removed"), say("counts.kept")
    return _item(f"removed-{number}", example, say("pair.near"), shown, sides)


def _item(anchor: str, example: Example, near: str, beside: str, sides: tuple[str, str]) -> str:
    """Return an item.

    near : the word for a pair that is no copy. beside : what the summary shows beside the first id, in HTML.
    sides : the titles of the two texts.
    """
    css_class, word = ("exact", say("pair.copy")) if example.exact else ("near", near)
    pair = example.pair
    note = hint("pair.long") if pair.truncated else ""
    removed = marked_text(pair.left, pair.left_passages, "del")
    kept = marked_text(pair.right, pair.right_passages, "ins")
    if pair.left == pair.right and not pair.truncated:
        kept = hint("pair.same")
    return (
        f'<li id="{anchor}" data-kind="{css_class}" data-similarity="{float(example.similarity)!r}">'
        f'<details><summary><span class="similarity">{similarity_shown(example)}</span> '
        f'<span class="kind {css_class}">{word}</span> '
        f'{document_id(example.removed[0], _MAX_LABEL)} {beside}</summary>{note}<div class="texts">'
        f"{_document('removed', sides[0], example.removed, removed)}"
        f"{_document('kept', sides[1], example.kept, kept)}"
        "</div></details></li>\n"
    )


def hint(key: str) -> str:
    """Return a sentence in place of, or above, a text, in HTML."""
    return f'<p class="hint">{say(key)}</p>'


def similarity_shown(example: Example) -> str:
    """Return the similarity to three digits, truncated, so that only 1 shows as 1.000; or the distance that decided."""
    if example.distance is not None:
        return say("words.bits", bits=example.distance)
    return str(Decimal(repr(float(example.similarity))).quantize(Decimal("0.001"), rounding=ROUND_DOWN))


def _document(side: str, title: str, place: Place, body: str) -> str:
    return f'<div class="{side}"><h3>{title} {document_id(place[0])}</h3>{location(*place)}{body}</div>'


def location(document: str, file: str, row: int) -> str:
    """Return the file and row of a document, as HTML; nothing of a document that is a file, whose id is its path."""
    if document == file:
        return ""
    return f'<span class="place"><bdi>{escape_text(file, lines=False)}</bdi>:{row}</span>'


def marked_text(text: str, passages: Sequence[tuple[int, int, bool]], mark: str) -> str:
    """Return the whole text, with every passage that is not shared in a `mark` element."""
    body, position = "", 0
    for start, end, shared in passages:
        start = max(start, position)
        passage = escape_text(text[start:end])
        body += escape_text(text[position:start])
        body += passage if shared or not passage else f"<{mark}>{passage}</{mark}>"
        position = max(start, end)
    body += escape_text(text[position:])
    body = body or f"<i>{say('pair.empty')}</i>"
    return f'<div class="text" dir="auto">{body}</div>'
