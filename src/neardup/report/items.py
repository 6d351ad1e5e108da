"""Write removed documents as HTML, each next to the document that removed it, with the passages
they share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import ROUND_DOWN, Decimal
from typing import NamedTuple

from neardup.arrays import arrow_of_strings
from neardup.features.outline import Line
from neardup.features.shingles import extract_text
from neardup.features.spans import TokenSpan, token_spans
from neardup.report.wording import document_id, escape_text, say
from neardup.runs.locations import Place
from neardup.settings.methods import PAGE_TOKENS, Shingling
from neardup.verify.alignment import Passage, align_outlines, mark_passages

# The shown beginning of a text or outline: marking takes more than linear time, and nobody reads
# more.
_MAX_CHARACTERS = 2000
_MAX_LINES = 80

# Characters of an equal passage that stay in view beside a difference; the rest of it is folded if
# that saves more than as many again.
_MAX_EQUAL = 120


class MarkedPair(NamedTuple):
    """Two texts to show, their passages, and whether they are only parts of the documents."""

    left: str
    right: str
    left_passages: list[Passage]
    right_passages: list[Passage]
    truncated: bool


class Marker:
    """Marks the passages that documents share. texts : by the number of the document, as read."""

    def __init__(self, texts: Mapping[int, str], settings: Shingling) -> None:
        self._settings = settings
        # All at once: pages are cut to their main texts in one call.
        compared = extract_text(arrow_of_strings(list(texts.values())), settings)
        self._texts: dict[int, str] = dict(zip(texts, compared.to_pylist(), strict=True))
        self._spans: dict[int, list[TokenSpan]] = {}

    def mark(self, left: int, right: int) -> MarkedPair:
        """Return two documents with the passages that they share."""
        if self._settings.tokens in PAGE_TOKENS:
            return _outlines(self._texts[left], self._texts[right])
        left_text = self._texts[left][:_MAX_CHARACTERS]
        right_text = self._texts[right][:_MAX_CHARACTERS]
        left_passages, right_passages = mark_passages(
            left_text,
            self._spans_of(left),
            right_text,
            self._spans_of(right),
            self._settings.ngram,
        )
        lengths = [len(self._texts[document]) for document in (left, right)]
        return MarkedPair(
            left=left_text,
            right=right_text,
            left_passages=left_passages,
            right_passages=right_passages,
            truncated=max(lengths) > _MAX_CHARACTERS,
        )

    def _spans_of(self, document: int) -> list[TokenSpan]:
        """Return the tokens of the shown text; kept, because a document may be in many pairs."""
        if document not in self._spans:
            text = self._texts[document][:_MAX_CHARACTERS]
            self._spans[document] = token_spans(text, self._settings)
        return self._spans[document]


def _outlines(left: str, right: str) -> MarkedPair:
    """Return the outlines of two pages as texts, a line for each element."""
    found = align_outlines(left, right)
    pairs = found.pairs[:_MAX_LINES]
    left_text, left_passages = _lines((pair.left, pair.shared) for pair in pairs)
    right_text, right_passages = _lines((pair.right, pair.shared) for pair in pairs)
    return MarkedPair(
        left=left_text,
        right=right_text,
        left_passages=left_passages,
        right_passages=right_passages,
        truncated=len(found.pairs) > _MAX_LINES or any(found.left_out),
    )


def _lines(lines: Iterable[tuple[Line | None, bool]]) -> tuple[str, list[Passage]]:
    """Return the lines of one page as a text, and each line after its indentation as a passage."""
    text = ""
    passages = []
    for line, shared in lines:
        if line is not None:
            start = len(text) + 2 * line.depth
            repeats = f" × {line.repeats}" if line.repeats > 1 else ""
            text += f"{'  ' * line.depth}{line.label}{repeats}\n"
            # The passage ends before the line feed.
            passages.append(Passage(start, len(text) - 1, shared))
    return text, passages


_MAX_OPENING = 90  # characters of the text beside an id in the list
# Characters of an id in the list, as many as its column has room for. It is cut in the middle:
# ids share their beginnings and their ends. The opened item shows all of it.
_MAX_LABEL = 25


class Example(NamedTuple):
    """A removed document, and the kept document that removed it.

    pair : their texts. distance : of the fingerprints, shown instead of the similarity if it
    decided alone, otherwise None. family, family_near : the documents that the same kept document
    removed, with and without copies; of a hit, family is the number of documents that have its
    words. is_possible : whether a hit may be a quotation that the item has.
    """

    removed: Place
    kept: Place
    pair: MarkedPair
    similarity: float
    exact: bool
    distance: int | None = None
    family: int = 1
    family_near: int = 0
    is_possible: bool = False


def removed_list(examples: Sequence[Example], removed: int) -> str:
    """Return the list of removed documents as HTML; `removed` is the number of all, shown or
    not.
    """
    if not examples:
        none = say("removed.no_examples")
        return f"<p>{none if removed else say('removed.none')}</p>"
    items = ""
    sides = (say("counts.removed"), say("counts.kept"))
    for number, example in enumerate(examples, 1):
        items += _item(
            f"removed-{number}", example, say("pair.near"), _opening(example.pair.left), sides
        )
    total = max(removed, len(examples))
    legend = say("removed.shown", shown=len(examples), total=total)
    return f'<p class="legend">{legend}</p><ol id="removed-list" class="pairs">\n{items}</ol>'


def pair_list(examples: Sequence[Example], kind: str) -> str:
    """Return pairs of texts as items of a list, in HTML; kind : of errors, wrong or missed, which
    begins their ids.
    """
    items = ""
    sides = (say("errors.first"), say("errors.second"))
    for number, example in enumerate(examples, 1):
        items += _item(
            f"{kind}-{number}",
            example,
            say(f"errors.{kind}"),
            _in_summary(example.kept.id),
            sides,
            fold=True,
        )
    return items


def hit_list(examples: Sequence[Example]) -> str:
    """Return items, each with a document that contains it, as items of a list, in HTML."""
    items = ""
    sides = (say("contamination.item"), say("contamination.document"))
    for number, example in enumerate(examples, 1):
        where = say("contamination.part", documents=example.family)
        if example.is_possible:
            where = say("words.comma").join([say("contamination.possible"), where])
        items += _item(f"hit-{number}", example, where, _opening(example.pair.left), sides)
    return items


def passage_list(examples: Sequence[tuple[Example, int]]) -> str:
    """Return passages, each with its length and the copy that stays, as items of a list, in
    HTML.
    """
    items = ""
    sides = (say("passages.cut"), say("passages.kept"))
    for number, (example, length) in enumerate(examples, 1):
        start, end, _ = example.pair.left_passages[0]
        opening = _opening(example.pair.left[start:end])
        characters = say("passages.length", length=length)
        items += _item(
            f"passage-{number}",
            example,
            characters,
            opening,
            sides,
            figure=f"{example.family:,}",
        )
    return items


def _opening(text: str) -> str:
    """Return the beginning of a text in the summary of an item, as HTML."""
    # Enough characters, unless most are white space; the whole text may be long.
    return _in_summary(" ".join(text[: 4 * _MAX_OPENING].split())[:_MAX_OPENING])


def _in_summary(text: str) -> str:
    """Return a text beside the id in the summary of an item, as HTML."""
    return f'<span class="place"><bdi>{escape_text(text, lines=False)}</bdi></span>'


def _item(
    anchor: str,
    example: Example,
    near: str,
    beside: str,
    sides: tuple[str, str],
    *,
    figure: str | None = None,
    fold: bool = False,
) -> str:
    """Return an item.

    near : the word for a pair that is no copy. beside : the HTML beside the first id in the
    summary. sides : the titles of the two texts. figure : a text instead of the similarity. fold :
    whether long equal passages are folded.
    """
    css_class = "exact" if example.exact else "near"
    word = say("pair.copy") if example.exact else near
    pair = example.pair
    note = hint("pair.long") if pair.truncated else ""
    removed = marked_text(pair.left, pair.left_passages, "del", fold=fold)
    kept = marked_text(pair.right, pair.right_passages, "ins", fold=fold)
    if pair.left == pair.right and not pair.truncated:
        kept = hint("pair.same")
    kept_document = ""
    # A passage without a copy that stays has neither text nor id.
    if pair.right or example.kept.id:
        kept_document = _document("kept", sides[1], example.kept, kept)
    return (
        f'<li id="{anchor}" data-kind="{css_class}" '
        # All digits: the script of the page sorts by them.
        f'data-similarity="{float(example.similarity)!r}">'
        f'<details><summary><span class="similarity">{figure or similarity_shown(example)}</span> '
        f'<span class="kind {css_class}">{word}</span> '
        f'{document_id(example.removed.id, _MAX_LABEL)} {beside}</summary>{note}<div class="texts">'
        f"{_document('removed', sides[0], example.removed, removed)}{kept_document}"
        "</div></details></li>\n"
    )


def hint(key: str) -> str:
    """Return a sentence in place of, or above, a text, in HTML."""
    return f'<p class="hint">{say(key)}</p>'


def similarity_shown(example: Example) -> str:
    """Return the similarity to three digits, truncated, so that only 1 shows as 1.000; or the
    distance that decided.
    """
    if example.distance is not None:
        return say("words.bits", bits=example.distance)
    # By `repr`, the shortest decimal: the exact value of the float 0.7 is below 0.7, and would be
    # truncated to 0.699.
    similarity = Decimal(repr(float(example.similarity)))
    return str(similarity.quantize(Decimal("0.001"), rounding=ROUND_DOWN))


def _document(side: str, title: str, place: Place, body: str) -> str:
    return (
        f'<div class="{side}"><h3>{title} '
        f"{document_id(place.id)}</h3>{location(*place)}{body}</div>"
    )


def location(document: str, file: str, row: int) -> str:
    """Return the file and row of a document, as HTML; "" for a document that is a file, whose id is
    its path.
    """
    if document == file:
        return ""
    return f'<span class="place"><bdi>{escape_text(file, lines=False)}</bdi>:{row}</span>'


def marked_text(
    text: str, passages: Sequence[tuple[int, int, bool]], mark: str, *, fold: bool = False
) -> str:
    """Return the whole text, with every passage that is not shared in a `mark` element.

    fold : whether the inside of a long shared passage opens on demand. A text without a difference
    is not folded.
    """
    fold = fold and not all(shared for _, _, shared in passages)
    body = ""
    position = 0
    for start, end, shared in passages:
        # Passages may overlap: no text is written twice.
        start = max(start, position)
        body += escape_text(text[position:start])
        if shared and fold:
            before = _MAX_EQUAL if start else 0
            after = _MAX_EQUAL if end < len(text) else 0
            body += _folded_passage(text[start:end], before, after)
        else:
            passage = escape_text(text[start:end])
            body += passage if shared or not passage else f"<{mark}>{passage}</{mark}>"
        position = max(start, end)
    body += escape_text(text[position:])
    body = body or f"<i>{say('pair.empty')}</i>"
    # Arabic and Hebrew run from right to left.
    return f'<div class="text" dir="auto">{body}</div>'


def _folded_passage(passage: str, before: int, after: int) -> str:
    """Return a shared passage with its inside folded: about `before` characters at its beginning
    and `after` at its end stay in view.
    """
    # Between two words, if the text has spaces.
    start = passage.rfind(" ", 0, before) + 1 or before
    stop = passage.find(" ", len(passage) - after)
    stop = len(passage) - after if stop < 0 else stop
    if stop - start <= 2 * _MAX_EQUAL:
        return escape_text(passage)
    summary = say("pair.equal", characters=stop - start)
    return (
        f"{escape_text(passage[:start])}"
        f'<details class="equal"><summary>{summary}</summary>{escape_text(passage[start:stop])}'
        f"</details>{escape_text(passage[stop:])}"
    )
