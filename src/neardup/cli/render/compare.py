"""Print the measures of two texts and their passages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from rich.console import Console
from rich.text import Text

from neardup.cli.render.diff import Gap, Marks, fold_stretches, fold_whole, pieces
from neardup.cli.render.table import Rows, is_unicode, two_columns
from neardup.methods.base import Method as Answers
from neardup.methods.registry import method_of
from neardup.output.wording import percent, plural, visible, what_copies_share
from neardup.results import Comparison
from neardup.schemas import DISTANCE
from neardup.settings.methods import MethodSettings
from neardup.verify.alignment import align
from neardup.verify.passages import Passage

_TWO_COLUMNS = 100  # characters of a line from which two columns are easier to read than two paragraphs


def print_comparison(
    result: Comparison,
    names: tuple[str, str],
    method: MethodSettings,
    *,
    plain: bool = False,
    full: bool = False,
    say: Callable[[str], str] = str,
    console: Console | None = None,
) -> None:
    """Print the measures, the verdict, and the passages of two texts.

    Parameters
    ----------
    names : of the texts.
    plain : mark differing passages by brackets, as without colours.
    full : fold no passage.
    say : translates messages.
    """
    console = console or Console(highlight=False)
    names = visible(names[0]), visible(names[1])
    print_similarity(result, method, say=say, console=console)
    plain = plain or console.color_system is None or console.no_color
    print_differences(
        result, names, Marks(plain, is_unicode(console), full), console, say, same_text=result.measures.same_text
    )


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
    result: Marked,
    names: tuple[str, str],
    marks: Marks,
    console: Console,
    say: Callable[[str], str] = str,
    *,
    same_text: bool = False,
) -> None:
    """Print the passages of two texts that differ, and what is around them.

    same_text : whether the texts are equal after normalisation.
    """
    stretches = align(result.left, result.left_passages, result.right, result.right_passages)
    if all(passage.shared for passage in (*result.left_passages, *result.right_passages)):
        _print_names(names, console)
        if same_text and result.left != result.right:
            console.print(say("  The passages differ only in case, form or script, which the comparison folds."))
        else:
            moved = stretches is None or not all(stretch.shared for stretch in stretches)
            console.print(say("  The same passages in another order." if moved else "  No passage differs."))
        return
    if stretches is None:
        console.print(Text(say("  The shared passages are in another order; each text is shown by itself.\n"), "dim"))
        sides = (pieces(result.left, result.left_passages), pieces(result.right, result.right_passages))
        hunks = fold_whole(sides, marks)
    else:
        hunks = fold_stretches(stretches, marks)
    if console.width >= _TWO_COLUMNS and not marks.plain:
        _print_columns(hunks, names, console)
    else:
        _print_stacked(hunks, names, console)


def print_similarity(
    result: Comparison,
    method: MethodSettings,
    *,
    others: Sequence[tuple[str, str, str]] = (),
    say: Callable[[str], str] = str,
    console: Console | None = None,
) -> None:
    """Print the measures and the verdict; others : name, figure and remark of further measures; say : translates."""
    console = console or Console(highlight=False)
    rows = _measures(result, method, say)
    for name, figure, remark in others:
        rows.figure(name, figure, remark)
    rows.print(console)
    console.print()
    console.print(_verdict(result, method, say))
    console.print()


def _measures(result: Comparison, method: MethodSettings, say: Callable[[str], str]) -> Rows:
    found, rows = result.measures, Rows(say)
    union = found.num_left + found.num_right - found.num_shared
    answers = method_of(method)
    unit, bits, decisive = answers.feature_name, _bits(answers), _decisive(answers)
    if bits:
        distance = "-" if found.distance is None else str(found.distance)
        rows.figure("Distance", distance, f"of the {bits} bits of two fingerprints differ", "bold")
    bold = {decisive: "bold"}
    shared = f"{found.num_shared:,} of {union:,} {unit} are shared"
    rows.figure("Jaccard", f"{found.jaccard:.4f}", shared, bold.get("jaccard", ""))
    if decisive == "cosine":
        rows.figure("Cosine", f"{found.cosine:.4f}", "the geometric mean of the two below", "bold")
    share = _share_of(found.num_shared, found.num_left, unit, "A")
    rows.figure("A in B", f"{found.left_in_right:.4f}", share, bold.get("containment", ""))
    rows.figure("B in A", f"{found.right_in_left:.4f}", _share_of(found.num_shared, found.num_right, unit, "B"))
    if found.structure is not None:
        rows.figure("Structure", f"{found.structure:.4f}", "cosine of the runs of start tags", "bold")
    if result.bands is not None and found.estimated_jaccard is not None and found.candidate_probability is not None:
        estimated = f"Jaccard as {result.bands.num_hashes} hashes estimate it"
        rows.figure("MinHash", f"{found.estimated_jaccard:.4f}", estimated)
        bands = f"{plural(result.bands.num_bands, 'band')} of {plural(result.bands.rows_per_band, 'row')}"
        rows.figure("Chance", percent(found.candidate_probability), f"that a run compares the two: {bands}")
    if found.fingerprints is not None:
        for name, fingerprint in zip("AB", found.fingerprints, strict=True):
            rows.line(f"SimHash of {name}", f"{fingerprint:0{bits // 4}x}")
    return rows


def _bits(method: Answers) -> int:
    """Return the bits of a fingerprint; 0 where there is none."""
    return 0 if method.rule is None else method.rule.bits


def _decisive(method: Answers) -> str:
    """Return the measure that decides: distance, jaccard, containment, cosine, or one of a method of its own."""
    if method.rule is None or method.limit.measure == DISTANCE.name:
        return method.limit.measure
    return method.rule.similarity


def _share_of(shared: int, size: int, unit: str, name: str) -> str:
    return f"containment: {shared:,} of the {size:,} {unit} of {name}"


def _verdict(result: Comparison, method: MethodSettings, say: Callable[[str], str]) -> Text:
    found = result.measures
    if not (found.num_left and found.num_right):
        empty = " and ".join(n for n, size in (("A", found.num_left), ("B", found.num_right)) if not size)
        return Text(say("  Not duplicates: "), "bold yellow").append(
            say(f"{empty} has no token, and equals nothing."), "default"
        )
    if found.same_text:
        same = what_copies_share(vars(method), method.tokens)
        return Text(say("  Copies: "), "bold green").append(say(f"{same}."), "not bold default")
    reason = say(_reason(result, method))
    if result.duplicate:
        return Text(say("  Near-duplicates: "), "bold green").append(reason, "not bold default")
    return Text(say("  Not duplicates: "), "bold yellow").append(reason, "not bold default")


def _reason(result: Comparison, method: MethodSettings) -> str:
    """Return which measure decided, and how."""
    distance, figures = result.measures.distance, f"{result.similarity:.4f}"
    answers = method_of(method)
    decisive, limit = _decisive(answers), answers.limit
    if decisive == DISTANCE.name:
        near = distance is not None and distance <= limit.value
        if not near or not answers.confirms_sets:
            return f"the distance {distance} is {'within' if near else 'beyond'} {limit.value:g} bits."
        decisive = "jaccard"
    names = {"jaccard": "Jaccard similarity", "containment": "containment of A in B", "cosine": "cosine similarity"}
    measure = names.get(decisive, decisive)
    reaches = result.similarity >= result.threshold
    reason = f"the {measure} {figures} {'reaches' if reaches else 'is below'} the threshold {result.threshold:g}"
    structure = result.measures.structure
    if structure is None or answers.rule is None or not answers.rule.min_structure:
        return f"{reason}."
    verb = "reaches" if structure >= answers.rule.min_structure else "is below"
    return f"{reason}, and that of structure {structure:.4f} {verb} {answers.rule.min_structure:g}."


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


def _print_names(names: tuple[str, str], console: Console) -> None:
    console.print(Text(f"- {names[0]}", "bold red"), soft_wrap=True)
    console.print(Text(f"+ {names[1]}", "bold green"), soft_wrap=True)


def _print_stacked(hunks: list[tuple[Text, Text] | Gap], names: tuple[str, str], console: Console) -> None:
    _print_names(names, console)
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
