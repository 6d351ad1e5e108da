"""Write the reports of `neardup dedup` and `neardup evaluate`, each as one HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from neardup.report import charts
from neardup.report.items import (
    Example,
    hint,
    marked_text,
    pair_list,
    removed_list,
    similarity_shown,
)
from neardup.report.page import render_page
from neardup.report.rows import ReportValues, headline, part_of, scores
from neardup.report.sections import sections
from neardup.report.wording import (
    document_id,
    escape_text,
    percent,
    say,
    speaking,
    what_copies_share,
)
from neardup.verify.alignment import Passage


class Errors(NamedTuple):
    """Examples of both kinds of errors, most similar first.

    num_wrong, num_missed : all errors, shown or not.
    """

    wrong: list[Example]
    missed: list[Example]
    num_wrong: int
    num_missed: int


def render_errors(report: ReportValues, errors: Errors, language: str = "en") -> str:
    """Return the errors as one HTML page.

    Parameters
    ----------
    report : of the evaluation.
    language : of the page; en or zh.
    """
    score = report["at_threshold"]
    best = report["best"]
    truth = report["truth"]
    # threshold or max_distance: the first field of a score.
    limit = next(iter(score))
    precision, recall, f1 = scores(score)
    _, _, best_f1 = scores(best)
    with speaking(language):
        known = (
            say("errors.label", name=escape_text(truth["label"]))
            if "label" in truth
            else say("errors.judged")
        )
        found = say(
            "errors.scores",
            limit=say(f"errors.{limit}"),
            value=score[limit],
            found=score["found"],
            precision=precision,
            recall=recall,
            f1=f1,
            best=best_f1,
            best_value=best[limit],
        )
        wrong = say("errors.wrong_means", known=known) + _listed(
            errors.wrong, errors.num_wrong, "wrong"
        )
        missed = say("errors.missed_means", known=known) + _listed(
            errors.missed, errors.num_missed, "missed"
        )
        both = say("errors.headline", wrong=errors.num_wrong, missed=errors.num_missed)
        return render_page(report, both, found, [("wrong", wrong), ("missed", missed)])


def _listed(examples: Sequence[Example], total: int, kind: str) -> str:
    if not examples:
        return say("errors.none_drawn") if total else say("errors.none")
    shown = say("errors.shown", shown=len(examples), total=total)
    return f'<p class="legend">{shown}</p><ol class="pairs">\n{pair_list(examples, kind)}</ol>'


_CHARACTERS = 320  # of each text on a card
_BEFORE = 80  # of them before the first difference
_MAX_ID = 60


def cards(examples: Sequence[Example]) -> str:
    """Return up to three cards in HTML: the largest family, the most near-duplicates, a close call.

    Parameters
    ----------
    examples : the removals in the list of the page, numbered from 1.
    """
    return "".join(_html(card, examples[card.number - 1]) for card in _picked(examples))


class _Card(NamedTuple):
    """A card: the name of its title, a sentence in HTML, the number of its removal in the list."""

    title: str
    sentence: str
    number: int


def _picked(examples: Sequence[Example]) -> Iterator[_Card]:
    """Yield the cards of the largest family, the most near-duplicates and the closest call."""
    numbered = list(enumerate(examples, 1))
    if not numbered:
        return
    # Of equal families one that is shown by a near-duplicate: copies have nothing to see.
    number, family = max(numbered, key=lambda item: (item[1].family, not item[1].exact))
    if family.family > 1:
        yield _Card("cards.largest_family", _family_sentence(family), number)
    near = [item for item in numbered if not item[1].exact]
    # Not the family of the first card again.
    others = [item for item in near if item[1].kept != family.kept and item[1].family_near > 1]
    if others:
        number, largest = max(others, key=lambda item: item[1].family_near)
        kept = document_id(largest.kept.id, _MAX_ID)
        sentence = say("cards.near", near=largest.family_near, kept=kept)
        yield _Card("cards.most_near", sentence, number)
    if near:
        # The least similar; without similarities, the greatest distance.
        number, closest = min(near, key=lambda item: (item[1].similarity, -(item[1].distance or 0)))
        yield _Card("cards.closest_call", _closest_sentence(closest), number)


def _family_sentence(example: Example) -> str:
    """Return the sentence about the documents that one kept document removed."""
    copies = example.family - example.family_near
    among = say("cards.copies", copies=copies) if copies else ""
    kept = document_id(example.kept.id, _MAX_ID)
    return say("cards.family", family=example.family, among=among, kept=kept)


def _closest_sentence(example: Example) -> str:
    """Return the sentence about the removal nearest to the threshold."""
    removed = document_id(example.removed.id, _MAX_ID)
    kept = document_id(example.kept.id, _MAX_ID)
    measure = similarity_shown(example)
    return say("cards.closest", measure=measure, removed=removed, kept=kept)


def _html(card: _Card, example: Example) -> str:
    pair = example.pair
    first = _first_difference(pair.left, pair.left_passages)
    second = _first_difference(pair.right, pair.right_passages)
    # One text contains the other: both are shown from the same position.
    if first is None or second is None:
        first = second = first or second or 0
    removed = _excerpt(pair.left, pair.left_passages, first, "del")
    kept = _excerpt(pair.right, pair.right_passages, second, "ins")
    # The beginnings of long texts may be equal, and the rest not.
    if pair.left == pair.right and not pair.truncated:
        kept = hint("pair.same")
    return (
        f"<article><h3>{say(card.title)}</h3><p>{card.sentence}</p>"
        f'<div class="removed">{removed}</div><div class="kept">{kept}</div>'
        f'<p><a href="#removed-{card.number}">{say("cards.read_both")}</a></p></article>'
    )


def _first_difference(text: str, passages: Sequence[Passage]) -> int | None:
    return next(
        (start for start, end, shared in passages if not shared and text[start:end].strip()), None
    )


def _excerpt(text: str, passages: Sequence[Passage], position: int, mark: str) -> str:
    """Return the part of a text around a position, with its differences marked."""
    # Near the end of a text the excerpt begins earlier, so that it has its full length.
    first = max(0, min(position - _BEFORE, len(text) - _CHARACTERS))
    last = first + _CHARACTERS
    before = "…" if first else ""
    after = "…" if last < len(text) else ""
    # Passages move by the part that is left out, and by the ellipsis in its place.
    offset = len(before) - first
    inside = [
        Passage(max(start, first) + offset, min(end, last) + offset, shared)
        for start, end, shared in passages
        if end > first and start < last
    ]
    return marked_text(f"{before}{text[first:last]}{after}", inside, mark)


_SHARES = {"kept": "kept", "removed_near": "near", "removed_exact": "exact"}


def render_report(report: ReportValues, examples: Sequence[Example]) -> str:
    """Return the report as one HTML page.

    Parameters
    ----------
    report : the contents of report.json; an absent or null value is left out of the page.
    examples : the removed documents to show, in input order.
    """
    with speaking(report.get("lang", "en")):
        removed = removed_list(examples, part_of(report, "counts").get("removed", 0))
        shares = charts.proportion(report, _SHARES, name=say("removed.shares"))
        parts = [
            ("examples", cards(examples)),
            *sections(report, "removed", _terms(report)),
            ("removed", removed),
            ("passages", say("passages.then") if report.get("passages") else ""),
        ]
        return render_page(report, headline(report), shares, parts, "report.js")


def _terms(report: ReportValues) -> dict[str, str]:
    """Return further terms of the page with their meaning under the settings."""
    scheme = part_of(report, "scheme")
    groups = part_of(report, "groups")
    copies = what_copies_share({**scheme, **part_of(report, "settings")}, scheme.get("tokens"))
    terms = {say("removed.copy_term"): say("removed.copy_means", copies=copies)}
    if groups:
        column = escape_text(groups["column"])
        terms[say("groups.term")] = say(
            "groups.means", column=column, share=percent(groups["share"])
        )
    return terms
