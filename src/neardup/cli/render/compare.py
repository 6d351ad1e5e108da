"""Print the measures of two texts and their passages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from rich.console import Console
from rich.text import Text

from neardup.cli.render.diff import Gap, Marks, fold_stretches, fold_whole, pieces
from neardup.cli.render.table import Rows, is_unicode, two_columns
from neardup.methods.base import Method as Answers
from neardup.methods.registry import method_of
from neardup.report.messages import say
from neardup.report.wording import percent, plural, visible, what_copies_share
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
    plain = plain or console.color_system is None or console.no_color
    print_differences(
        result, names, Marks(plain, is_unicode(console), full), console, same_text=result.measures.same_text
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
    result: Marked, names: tuple[str, str], marks: Marks, console: Console, *, same_text: bool = False
) -> None:
    """Print the passages of two texts that differ, and what is around them.

    same_text : whether the texts are equal after normalisation.
    """
    stretches = align(result.left, result.left_passages, result.right, result.right_passages)
    if all(passage.shared for passage in (*result.left_passages, *result.right_passages)):
        _print_names(names, console)
        if same_text and result.left != result.right:
            found = say(
                "The passages differ only in case, form or script, which the comparison folds.",
                "差异只在于大小写、字符形式或繁简，比较时不计。",
            )
        elif stretches is None or not all(stretch.shared for stretch in stretches):
            found = say("The same passages in another order.", "段落相同，顺序不同。")
        else:
            found = say("No passage differs.", "没有差异。")
        console.print(f"  {found}")
        return
    if stretches is None:
        moved = say(
            "The shared passages are in another order; each text is shown by itself.",
            "共有的段落顺序不同，两篇文本分别显示。",
        )
        console.print(Text(f"  {moved}\n", "dim"))
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
        remark = say(f"of the {bits} bits of two fingerprints differ", f"两个 {bits} 位指纹中不同的位数")
        rows.figure(say("Distance", "距离"), distance, remark, "bold")
    bold = {decisive: "bold"}
    shared = say(
        f"{found.num_shared:,} of {union:,} {unit} are shared", f"共有 {found.num_shared:,} 个特征，合计 {union:,} 个"
    )
    rows.figure("Jaccard", f"{found.jaccard:.4f}", shared, bold.get("jaccard", ""))
    if decisive == "cosine":
        remark = say("the geometric mean of the two below", "下面两项的几何平均")
        rows.figure(say("Cosine", "余弦"), f"{found.cosine:.4f}", remark, "bold")
    share = _share_of(found.num_shared, found.num_left, unit, "A")
    rows.figure(say("A in B", "A 含于 B"), f"{found.left_in_right:.4f}", share, bold.get("containment", ""))
    share = _share_of(found.num_shared, found.num_right, unit, "B")
    rows.figure(say("B in A", "B 含于 A"), f"{found.right_in_left:.4f}", share)
    if found.structure is not None:
        remark = say("cosine of the runs of start tags", "起始标签序列的余弦")
        rows.figure(say("Structure", "结构"), f"{found.structure:.4f}", remark, "bold")
    if result.bands is not None and found.estimated_jaccard is not None and found.candidate_probability is not None:
        b, r, hashes = result.bands.num_bands, result.bands.rows_per_band, result.bands.num_hashes
        estimated = say(f"Jaccard as {hashes} hashes estimate it", f"由 {hashes} 个哈希估计的 Jaccard")
        rows.figure("MinHash", f"{found.estimated_jaccard:.4f}", estimated)
        remark = say(
            f"that a run compares the two: {plural(b, 'band')} of {plural(r, 'row')}",
            f"一次运行会比较这两篇：{b} 段，每段 {r} 行",
        )
        rows.figure(say("Chance", "比较概率"), percent(found.candidate_probability), remark)
    if found.fingerprints is not None:
        for name, fingerprint in zip("AB", found.fingerprints, strict=True):
            rows.line(say(f"SimHash of {name}", f"{name} 的 SimHash"), f"{fingerprint:0{bits // 4}x}")
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
    return say(
        f"containment: {shared:,} of the {size:,} {unit} of {name}",
        f"包含度：{name} 的 {size:,} 个特征中有 {shared:,} 个共有",
    )


def _verdict(result: Comparison, method: MethodSettings) -> Text:
    found = result.measures
    same = what_copies_share(vars(method), method.tokens)
    different = Text(say("  Not duplicates: ", "  不重复："), "bold yellow")
    if not (found.num_left and found.num_right):
        empty = [name for name, size in (("A", found.num_left), ("B", found.num_right)) if not size]
        reason = say(
            f"{' and '.join(empty)} has no token, and equals nothing.", f"{'、'.join(empty)} 没有词，不与任何文本相同。"
        )
        return different.append(reason, "default")
    if found.same_text:
        return Text(say("  Copies: ", "  副本："), "bold green").append(
            say(f"{same}.", f"{same}。"), "not bold default"
        )
    reason = _reason(result, method)
    if result.duplicate:
        return Text(say("  Near-duplicates: ", "  近似重复："), "bold green").append(reason, "not bold default")
    return different.append(reason, "not bold default")


def _reason(result: Comparison, method: MethodSettings) -> str:
    """Return which measure decided, and how."""
    distance, answers = result.measures.distance, method_of(method)
    decisive, limit = _decisive(answers), answers.limit
    if decisive == DISTANCE.name:
        near = distance is not None and distance <= limit.value
        if not near or not answers.confirms_sets:
            within = say("within", "不超过") if near else say("beyond", "超过")
            return say(
                f"the distance {distance} is {within} {limit.value:g} bits.",
                f"距离 {distance} {within} {limit.value:g} 位。",
            )
        decisive = "jaccard"
    names = {
        "jaccard": say("Jaccard similarity", "Jaccard 相似度"),
        "containment": say("containment of A in B", "A 含于 B 的比例"),
        "cosine": say("cosine similarity", "余弦相似度"),
    }
    measure, threshold = names.get(decisive, decisive), result.threshold
    reaches = _reaches(result.similarity, threshold)
    reason = say(
        f"the {measure} {result.similarity:.4f} {reaches} the threshold {threshold:g}",
        f"{measure} {result.similarity:.4f} {reaches}阈值 {threshold:g}",
    )
    structure = result.measures.structure
    if structure is None or answers.rule is None or not answers.rule.min_structure:
        return reason + say(".", "。")
    least = answers.rule.min_structure
    reaches = _reaches(structure, least)
    return reason + say(
        f", and that of structure {structure:.4f} {reaches} {least:g}.",
        f"，结构相似度 {structure:.4f} {reaches} {least:g}。",
    )


def _reaches(value: float, limit: float) -> str:
    return say("reaches", "达到") if value >= limit else say("is below", "低于")


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
