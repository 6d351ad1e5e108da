"""Print the measures of two texts and their passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Console
from rich.text import Text

from neardup.cli.render.diff import Gap, Marks, fold_stretches, fold_whole
from neardup.cli.render.table import Rows, are_columns, is_plain, is_unicode, print_names, two_columns
from neardup.methods.base import Method as Answers
from neardup.methods.registry import method_of
from neardup.report.wording import percent, say, visible, what_copies_share
from neardup.results import Comparison
from neardup.schemas import DISTANCE
from neardup.settings.methods import MethodSettings
from neardup.verify.alignment import align
from neardup.verify.passages import Passage


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


class Marked(Protocol):
    """Two texts, and the passages that they share."""

    @property
    def left(self) -> str: ...
    @property
    def right(self) -> str: ...
    @property
    def left_passages(self) -> Sequence[Passage]: ...
    @property
    def right_passages(self) -> Sequence[Passage]: ...


def print_differences(
    result: Marked, names: tuple[str, str], marks: Marks, console: Console, *, same_text: bool = False
) -> None:
    """Print the passages of two texts that differ, and what is around them.

    same_text : whether the texts are equal after normalisation.
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
        hunks = fold_whole([(result.left, result.left_passages), (result.right, result.right_passages)], marks)
    else:
        hunks = fold_stretches(stretches, marks)
    if are_columns(console, marks.plain):
        _print_columns(hunks, names, console)
    else:
        _print_stacked(hunks, names, console)


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
    found, rows = result.measures, Rows()
    union = found.num_left + found.num_right - found.num_shared
    answers = method_of(method)
    unit, bits, decisive = answers.feature_name, _bits(answers), _decisive(answers)
    if bits:
        distance = "-" if found.distance is None else str(found.distance)
        rows.figure(say("compare.distance"), distance, say("compare.bits", bits=bits), "bold")
    bold = {decisive: "bold"}
    shared = say("compare.shared", num_shared=found.num_shared, union=union, unit=unit)
    rows.figure("Jaccard", f"{found.jaccard:.4f}", shared, bold.get("jaccard", ""))
    if decisive == "cosine":
        rows.figure(say("compare.cosine"), f"{found.cosine:.4f}", say("compare.mean"), "bold")
    for key, name, size, share, style in (
        ("compare.a_in_b", "A", found.num_left, found.left_in_right, bold.get("containment", "")),
        ("compare.b_in_a", "B", found.num_right, found.right_in_left, ""),
    ):
        remark = say("compare.containment", shared=found.num_shared, size=size, unit=unit, name=name)
        rows.figure(say(key), f"{share:.4f}", remark, style)
    if found.structure is not None:
        rows.figure(say("compare.structure"), f"{found.structure:.4f}", say("compare.start_tags"), "bold")
    if result.bands is not None and found.estimated_jaccard is not None and found.candidate_probability is not None:
        b, r, hashes = result.bands.num_bands, result.bands.rows_per_band, result.bands.num_hashes
        rows.figure("MinHash", f"{found.estimated_jaccard:.4f}", say("compare.hashes", hashes=hashes))
        rows.figure(say("compare.chance"), percent(found.candidate_probability), say("compare.compared", b=b, r=r))
    if found.fingerprints is not None:
        for name, fingerprint in zip("AB", found.fingerprints, strict=True):
            rows.line(say("compare.simhash", name=name), f"{fingerprint:0{bits // 4}x}")
    return rows


def _bits(method: Answers) -> int:
    """Return the bits of a fingerprint; 0 where there is none."""
    return 0 if method.rule is None else method.rule.bits


def _decisive(method: Answers) -> str:
    """Return the measure that decides: distance, jaccard, containment, cosine, or one of a method of its own."""
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
        return Text(say("compare.copies"), "bold green").append(say("compare.copy", same=same), "not bold default")
    reason = _reason(result, method)
    if result.duplicate:
        return Text(say("compare.near"), "bold green").append(reason, "not bold default")
    return different.append(reason, "not bold default")


def _reason(result: Comparison, method: MethodSettings) -> str:
    """Return which measure decided, and how."""
    distance, answers = result.measures.distance, method_of(method)
    decisive, limit = _decisive(answers), answers.limit
    if decisive == DISTANCE.name:
        near = distance is not None and distance <= limit.value
        if not near or not answers.confirms_sets:
            within = say("compare.within" if near else "compare.beyond")
            return say("compare.by_distance", distance=distance, within=within, value=limit.value)
        decisive = "jaccard"
    measure, similarity, threshold = say(f"measures.{decisive}", decisive), result.similarity, result.threshold
    reaches = _reaches(similarity, threshold)
    reason = say("compare.by_measure", measure=measure, similarity=similarity, reaches=reaches, threshold=threshold)
    structure = result.measures.structure
    if structure is None or answers.rule is None or not answers.rule.min_structure:
        return reason + say("compare.stop")
    least = answers.rule.min_structure
    reaches = _reaches(structure, least)
    return reason + say("compare.and_structure", structure=structure, reaches=reaches, least=least)


def _reaches(value: float, limit: float) -> str:
    return say("compare.reaches" if value >= limit else "compare.is_below")


def _print_columns(hunks: list[tuple[Text, Text] | Gap], names: tuple[str, str], console: Console) -> None:
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


def _print_stacked(hunks: list[tuple[Text, Text] | Gap], names: tuple[str, str], console: Console) -> None:
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
