"""Print the measures of two texts and their passages, with long shared ones folded."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from neardup.cli.render.table import (
    Rows,
    are_columns,
    is_plain,
    is_unicode,
    print_names,
    two_columns,
)
from neardup.methods.base import Method as Answers
from neardup.methods.registry import method_of
from neardup.report.items import MarkedPair
from neardup.report.wording import percent, say, visible, what_copies_share
from neardup.results import Comparison
from neardup.schemas import DISTANCE
from neardup.settings.methods import MethodSettings
from neardup.verify.alignment import Passage, Stretch, align

_CONTEXT = 60  # characters of a shared passage that are shown next to a difference
_LEAST_FOLDED = 60  # shorter stretches are shown: the note that they are folded is as long
_LONGEST_DIFFERENCE = 1200
_BRIEF = 480  # characters of each text that are shown where many pairs follow each other
_STYLES = ("bold red", "bold green")
_BRACKETS = (("[-", "-]"), ("{+", "+}"))

Sides = tuple[Text, Text]


class Gap(NamedTuple):
    """A long passage of both texts that is not shown, and the note in its place."""

    note: str


class Marks(NamedTuple):
    """The marks of passages: brackets instead of colours, Unicode, nothing folded."""

    plain: bool
    unicode: bool
    full: bool

    def note(self, text: str) -> str:
        """Return how much of a text is not shown."""
        words = len(text.split())
        is_words = words * 16 > len(text)
        size = say(
            "folded.words" if is_words else "folded.characters",
            count=words if is_words else len(text),
        )
        dots = "⋯" if self.unicode else "..."
        return f"{dots} {size} {dots}"


def fold_stretches(stretches: Sequence[Stretch], marks: Marks) -> list[Sides | Gap]:
    """Return hunks, each with a side for either text, and the gaps between them."""
    hunks = []
    sides: Sides = (Text(), Text())
    for index, stretch in enumerate(stretches):
        if not stretch.shared:
            _append_differing(sides[0], stretch.left, 0, marks)
            _append_differing(sides[1], stretch.right, 1, marks)
            continue
        has_before = index > 0
        has_after = index < len(stretches) - 1
        left = _fold(stretch.left, has_before, has_after, marks)
        right = _fold(stretch.right, has_before, has_after, marks)
        if left is None or right is None:  # a shared stretch that is too short to fold
            sides[0].append(_clean(stretch.left))
            sides[1].append(_clean(stretch.right))
            continue
        hunks += _as_hunk((sides[0].append(left.head), sides[1].append(right.head)))
        hunks.append(Gap(left.note))
        sides = (Text(left.tail), Text(right.tail))
    return hunks + _as_hunk(sides)


def _as_hunk(sides: Sides) -> list[Sides | Gap]:
    """Return a hunk of both sides; none if both are blank."""
    return [_trimmed(sides)] if any(side.plain.strip() for side in sides) else []


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
                result[i].append(folded.head).append(f"\n{folded.note}\n", "dim").append(
                    folded.tail
                )
    return [_trimmed(result)]


class _Folded(NamedTuple):
    head: str
    note: str
    tail: str


def _fold(text: str, head: bool, tail: bool, marks: Marks) -> _Folded | None:
    """Return the ends of a shared passage next to a difference; None if it is short enough to
    show.
    """
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
    before = text[: len(text) - len(text.lstrip())]
    after = text[len(text.rstrip()) :]
    if len(inner) > _LONGEST_DIFFERENCE and not marks.full:
        head = _cut(inner, _LONGEST_DIFFERENCE // 2)
        tail = len(inner) - _cut(inner[::-1], _LONGEST_DIFFERENCE // 2)
        inner = f"{inner[:head]} {marks.note(inner[head:tail])} {inner[tail:]}"
    opening, closing = _BRACKETS[index] if marks.plain else ("", "")
    side.append(before).append(
        f"{opening}{inner}{closing}", None if marks.plain else _STYLES[index]
    ).append(after)


def _clean(text: str) -> str:
    """Return a text without runs of empty lines, its hidden characters shown: an ESC must not reach
    a terminal.
    """
    return visible(re.sub(r"\n\s*\n", "\n", text.replace("\r\n", "\n")))


def _trimmed(sides: Sides) -> Sides:
    """Return both sides without white space around them."""
    for side in sides:
        side.rstrip()
    return tuple(side[len(side.plain) - len(side.plain.lstrip()) :] for side in sides)  # type: ignore[return-value]


def print_comparison(
    result: Comparison,
    names: tuple[str, str],
    method: MethodSettings,
    *,
    plain: bool = False,
    full: bool = False,
    console: Console | None = None,
) -> None:
    """Print the measures, the verdict, and the passages of two texts.

    Parameters
    ----------
    names : of the texts.
    plain : mark differing passages by brackets, as without colours.
    full : fold no passage.
    """
    console = console or Console(highlight=False)
    names = visible(names[0]), visible(names[1])
    print_similarity(result, method, console=console)
    marks = Marks(plain or is_plain(console), is_unicode(console), full)
    print_differences(result, names, marks, console, same_text=result.measures.same_text)


def print_differences(
    result: Comparison | MarkedPair,
    names: tuple[str, str],
    marks: Marks,
    console: Console,
    *,
    same_text: bool = False,
    brief: bool = False,
) -> None:
    """Print the passages of two texts that differ, with their surroundings.

    same_text : whether the texts are equal after normalisation. brief : print the first of them
    only.
    """
    stretches = align(result.left, result.left_passages, result.right, result.right_passages)
    if all(passage.shared for passage in (*result.left_passages, *result.right_passages)):
        print_names(names, console)
        if same_text and result.left != result.right:
            found = "compare.folded"
        elif stretches is None or not all(stretch.shared for stretch in stretches):
            found = "compare.moved"
        else:
            found = "compare.equal"
        console.print(f"  {say(found)}")
        return
    if stretches is None:
        console.print(Text(f"  {say('compare.apart')}\n", "dim"))
        hunks = fold_whole(
            [(result.left, result.left_passages), (result.right, result.right_passages)], marks
        )
    else:
        hunks = fold_stretches(stretches, marks)
    if brief:
        hunks = _first_hunks(hunks, marks)
    if are_columns(console, marks.plain):
        _print_columns(hunks, names, console)
    else:
        _print_stacked(hunks, names, console)


def _first_hunks(hunks: list[Sides | Gap], marks: Marks) -> list[Sides | Gap]:
    """Return the first hunks, the last one cut, and a gap that counts the omitted lines."""
    left = _BRIEF
    for index, hunk in enumerate(hunks):
        if not isinstance(hunk, Gap):
            longest = max(map(len, hunk))
            if longest > left:
                cut = tuple(side[: _cut(side.plain, left)] for side in hunk)
                later = zip(
                    *(each for each in hunks[index:] if not isinstance(each, Gap)), strict=True
                )
                rest = max(
                    (" ".join(side.plain for side in sides)[left:] for sides in later), key=len
                )
                return [*hunks[:index], cut, Gap(marks.note(rest))]  # type: ignore[list-item]
            left -= longest
    return hunks


def print_similarity(
    result: Comparison,
    method: MethodSettings,
    *,
    others: Sequence[tuple[str, str, str]] = (),
    console: Console | None = None,
) -> None:
    """Print the measures and the verdict; others : name, figure and remark of further measures."""
    console = console or Console(highlight=False)
    rows = _measures(result, method)
    for name, figure, remark in others:
        rows.figure(name, figure, remark)
    rows.print(console)
    console.print()
    console.print(_verdict(result, method))
    console.print()


def _measures(result: Comparison, method: MethodSettings) -> Rows:
    """Return the rows of all measures of two texts; the deciding one is bold."""
    found = result.measures
    rows = Rows()
    answers = method_of(method)
    if answers.ordered:  # numbers are not shared
        rows.figure(say("measure.similarity_term"), f"{result.similarity:.4f}", "", "bold")
        return rows
    bits = _bits(answers)
    if bits:
        distance = "-" if found.distance is None else str(found.distance)
        rows.figure(say("compare.distance"), distance, say("compare.bits", bits=bits), "bold")
    _add_set_measures(rows, result, answers)
    if found.weighted_cosine is not None:
        rows.figure(say("compare.cosine"), f"{found.weighted_cosine:.4f}", say("compare.weights"))
    if found.structure is not None:
        name = say("compare.structure")
        rows.figure(name, f"{found.structure:.4f}", say("compare.start_tags"), "bold")
    _add_minhash_measures(rows, result)
    if found.fingerprints is not None:
        for name, fingerprint in zip("AB", found.fingerprints, strict=True):
            rows.line(say("compare.simhash", name=name), f"{fingerprint:0{bits // 4}x}")
    return rows


def _add_set_measures(rows: Rows, result: Comparison, answers: Answers) -> None:
    """Add the measures of two sets of features: Jaccard, cosine, and the share of each in both."""
    found = result.measures
    unit = answers.feature_name
    union = found.num_left + found.num_right - found.num_shared
    style = {_decisive(answers): "bold"}
    shared = say("compare.shared", num_shared=found.num_shared, union=union, unit=unit)
    rows.figure("Jaccard", f"{found.jaccard:.4f}", shared, style.get("jaccard", ""))
    if "cosine" in style:
        rows.figure(say("compare.cosine"), f"{found.cosine:.4f}", say("compare.mean"), "bold")

    def add_share(key: str, name: str, size: int, share: float, style: str) -> None:
        counts = {"shared": found.num_shared, "size": size, "unit": unit, "name": name}
        rows.figure(say(key), f"{share:.4f}", say("compare.containment", **counts), style)

    # The method named containment measures A in B.
    bold = style.get("containment", "")
    add_share("compare.a_in_b", "A", found.num_left, found.left_in_right, bold)
    add_share("compare.b_in_a", "B", found.num_right, found.right_in_left, "")


def _add_minhash_measures(rows: Rows, result: Comparison) -> None:
    """Add the estimate of MinHash, and the chance that the two texts are compared."""
    found = result.measures
    bands = result.bands
    if bands is None or found.estimated_jaccard is None or found.candidate_probability is None:
        return
    hashes = say("compare.hashes", hashes=bands.num_hashes)
    rows.figure("MinHash", f"{found.estimated_jaccard:.4f}", hashes)
    compared = say("compare.compared", b=bands.num_bands, r=bands.rows_per_band)
    rows.figure(say("compare.chance"), percent(found.candidate_probability), compared)


def _bits(method: Answers) -> int:
    """Return the bits of a fingerprint; 0 for a method without fingerprints."""
    return 0 if method.rule is None else method.rule.bits


def _decisive(method: Answers) -> str:
    """Return the deciding measure: distance, jaccard, containment, cosine, or another one."""
    if method.rule is None or method.limit.measure == DISTANCE.name:
        return method.limit.measure
    return method.rule.similarity


def _verdict(result: Comparison, method: MethodSettings) -> Text:
    found = result.measures
    same = what_copies_share(vars(method), getattr(method, "tokens", None))
    different = Text(say("compare.different"), "bold yellow")
    if not (found.num_left and found.num_right):
        empty = "A" if found.num_right else "B" if found.num_left else say("compare.both")
        return different.append(say("compare.no_token", empty=empty), "default")
    if found.same_text:
        return Text(say("compare.copies"), "bold green").append(
            say("compare.copy", same=same), "not bold default"
        )
    reason = _reason(result, method)
    if result.duplicate:
        return Text(say("compare.near"), "bold green").append(reason, "not bold default")
    return different.append(reason, "not bold default")


def _reason(result: Comparison, method: MethodSettings) -> str:
    """Return which measure decided, and how."""
    distance = result.measures.distance
    answers = method_of(method)
    decisive = _decisive(answers)
    limit = answers.limit
    if decisive == DISTANCE.name:
        near = distance is not None and distance <= limit.value
        if not near or not answers.confirms_sets:
            within = say("compare.within" if near else "compare.beyond")
            return say("compare.by_distance", distance=distance, within=within, value=limit.value)
        decisive = "jaccard"
    measure = say(f"measures.{decisive}", decisive)
    similarity = result.similarity
    threshold = result.threshold
    reaches = _reaches(similarity, threshold)
    reason = say(
        "compare.by_measure",
        measure=measure,
        similarity=similarity,
        reaches=reaches,
        threshold=threshold,
    )
    structure = result.measures.structure
    if structure is None or answers.rule is None or not answers.rule.min_structure:
        return reason + say("compare.stop")
    least = answers.rule.min_structure
    reaches = _reaches(structure, least)
    return reason + say("compare.and_structure", structure=structure, reaches=reaches, least=least)


def _reaches(value: float, limit: float) -> str:
    return say("compare.reaches" if value >= limit else "compare.is_below")


def _print_columns(
    hunks: list[tuple[Text, Text] | Gap], names: tuple[str, str], console: Console
) -> None:
    table, line = two_columns(names, console, overflow="fold")
    for index, hunk in enumerate(hunks):
        if isinstance(hunk, Gap):
            note = Text(hunk.note, "dim")
            for cell in [Text(), note, Text()] if index else [note, Text()]:
                table.add_row(cell, line, cell)
        else:
            lines = max(len(side.wrap(console, (console.width - 5) // 2)) for side in hunk)
            table.add_row(hunk[0], "\n".join([line] * lines), hunk[1])
    console.print(table)


def _print_stacked(
    hunks: list[tuple[Text, Text] | Gap], names: tuple[str, str], console: Console
) -> None:
    print_names(names, console)
    for hunk in hunks:
        if isinstance(hunk, Gap):
            console.print(Text(f"  {hunk.note}", "dim"))
            continue
        console.print()
        for sign, style, side in zip("-+", ("red", "green"), hunk, strict=True):
            if not side.plain.strip():
                continue
            for line in side.wrap(console, max(console.width - 2, 20)):
                line.rstrip()
                console.print(Text(f"{sign} ", style).append_text(line), soft_wrap=True)
        console.print()
