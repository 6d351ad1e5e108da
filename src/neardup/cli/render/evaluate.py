"""Print the scores of methods: side by side, by length, over the curve and over thresholds."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from neardup.cli.render.reports import print_troubles
from neardup.cli.render.suggestion import print_example
from neardup.cli.render.table import Rows, is_unicode, print_table
from neardup.files import JsonObject
from neardup.report.rows import ReportValues, loss_rows, scores
from neardup.report.wording import noun, percent, plural, say, translated, visible
from neardup.results import Sweep, SweepExample


def print_sweep(result: Sweep) -> None:
    """Print a row for each threshold, then the examples of each with their differences."""
    console = Console(highlight=False)
    rows = []
    for row in result.counts.to_pylist():
        total = row["kept"] + row["removed"]
        near = row["removed"] - row["removed_exact"]
        share = percent(row["removed"] / total) if total else "-"
        counts = (f"{count:,}" for count in (row["removed_exact"], near))
        rows.append((f"{row['threshold']:g}", f"{row['removed']:,}", share, *counts))
    print_table(console, ("Threshold", "Removed", "of all", "copies", "near-duplicates"), rows)
    for example in result.examples:
        names = visible(example.id), say("sweep.kept", id=visible(example.kept_id))
        print_example(_title(example), example.pair, names, console, brief=True)


def _title(example: SweepExample) -> str:
    """Return the similarity of a pair, and the thresholds on either side of it."""
    limits = []
    if example.removed_at is not None:
        limits.append(say("sweep.removed_at", limit=example.removed_at))
    if example.kept_at is not None:
        limits.append(say("sweep.kept_at", limit=example.kept_at))
    title = say("sweep.similarity", similarity=example.similarity)
    return title + say("words.colon") + say("words.comma").join(limits)


_BAR = 24
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def print_evaluations(found: dict[str, JsonObject], files: dict[str, str | None]) -> None:
    """Print the reports of evaluations, by the name of the method, and the files that were
    written.
    """
    console = Console(highlight=False)
    first = next(iter(found.values()))
    _print_truth(first, console)
    _print_figures(found, console)
    _print_lengths(found, console)
    for name, report in found.items():
        _print_curve(name, report, console)
    written = {name: file for name, file in files.items() if file is not None}
    if written:
        rows = Rows()
        for name, file in written.items():
            rows.line(name, visible(file), "bold cyan")
        rows.print(console)
    # A warning about the inputs is in the report of each method: shown once, in the order of the
    # first.
    unique = dict.fromkeys(warning for report in found.values() for warning in report["warnings"])
    print_troubles(first | {"warnings": list(unique)}, console)


def _print_truth(report: ReportValues, console: Console) -> None:
    """Print the labels or judged pairs that the methods are scored on."""
    truth = report["truth"]
    rows = Rows()
    rows.count("Read", report["counts"]["read"], noun(report["counts"]["read"], "document"))
    if "label" in truth:
        rows.count(
            "Labelled", truth["documents"], f"of them, under {plural(truth['labels'], 'label')}"
        )
    else:
        judged = f"{noun(truth['pairs'], 'pair')} of {plural(truth['documents'], 'document')}"
        rows.count("Judged", truth["pairs"], judged)
    wanted = "pairs under one label" if "label" in truth else "pairs judged to be duplicates"
    rows.count("To find", report["at_threshold"]["positives"], wanted, "bold")
    rows.add(loss_rows(report))
    rows.print(console)


def _print_figures(found: dict[str, JsonObject], console: Console) -> None:
    """Print a column of figures for each method."""
    columns = [_figures(report) for report in found.values()]
    rows = [
        tuple(map(translated, (name, *(column[name] for column in columns)))) for name in columns[0]
    ]
    print_table(console, ("", *found), rows, is_bold=lambda row: row[0].strip() == "F1")


# A title with leading spaces is a detail of the figure above it.
def _figures(report: ReportValues) -> dict[str, str]:
    """Return the figures of a method by their names."""
    at = report["at_threshold"]
    best = report["best"]
    rand = {}
    if report["adjusted_rand"] is not None:
        rand = {
            "Adjusted Rand": report["adjusted_rand"],
            "  if connected": report["adjusted_rand_connected"],
        }
    return {
        "Found at": _within(report, at),
        "Found": f"{at['found']:,}",
        "Correct": f"{at['correct']:,}",
        **dict(zip(("Precision", "Recall", "F1"), scores(at), strict=True)),
        **{name: f"{value:.3f}" for name, value in rand.items()},
        "Best F1 at": _within(report, best),
        **dict(zip(("  Precision", "  Recall", "  F1"), scores(best), strict=True)),
    }


def _print_lengths(found: dict[str, JsonObject], console: Console) -> None:
    """Print precision and recall by the length of the shorter text."""
    several = len(found) > 1
    rows = []
    for scores_of_length in zip(*(report["by_length"] for report in found.values()), strict=True):
        least = scores_of_length[0]["characters_from"]
        most = scores_of_length[0]["characters_to"]
        span = f"{least:,}" if least == most else f"{least:,} {say('words.to')} {most:,}"
        # The counts of documents and pairs are of the labels, so they are the same for all methods.
        shares = [scores(score) for score in scores_of_length]
        shown = (
            [f"{precision} / {recall}" for precision, recall, _ in shares] if several else shares[0]
        )
        rows.append(
            (
                span,
                f"{scores_of_length[0]['documents']:,}",
                f"{scores_of_length[0]['positives']:,}",
                *shown,
            )
        )
    _print_title(
        f"By length of the shorter text{': precision / recall' if several else ''}", console
    )
    heads = found if several else ("precision", "recall", "F1")
    print_table(console, ("characters", "texts", "to find", *heads), rows, left=())


def _print_curve(name: str, report: ReportValues, console: Console) -> None:
    """Print the scores over the curve, with F1 as bars; the best is bold, the limit of the method
    is marked.
    """
    limit = _limit_of(report)
    chosen = report["at_threshold"][limit]
    best = report["best"][limit]
    unicode = is_unicode(console)
    rows = [
        (
            f"{score[limit]:g}",
            f"{score['found']:,}",
            *scores(score),
            _bar(score["f1"] or 0.0, unicode) + _mark(score[limit] == chosen, score[limit] == best),
        )
        for score in report["curve"]
    ]
    _print_title(f"{name} by {limit.replace('_', ' ')}", console)
    heads = (limit.split("_")[-1], "found", "precision", "recall", "F1", "")
    print_table(console, heads, rows, is_bold=lambda row: row[0] == f"{best:g}", left=(5,))


def _mark(is_chosen: bool, is_best: bool) -> str:
    notes = ", ".join(
        [*(["the method's own"] if is_chosen else []), *(["the best F1"] if is_best else [])]
    )
    return f" <- {translated(notes)}" if notes else ""


def _limit_of(report: ReportValues) -> str:
    return "threshold" if "threshold" in report["best"] else "max_distance"


def _within(report: ReportValues, score: JsonObject) -> str:
    """Return the limit from which, or up to which, pairs are found."""
    limit = _limit_of(report)
    return (
        f"{score[limit]:g} or more"
        if limit == "threshold"
        else f"{plural(score[limit], 'bit')} or less"
    )


def _bar(share: float, unicode: bool) -> str:
    if not unicode:
        return "#" * round(share * _BAR)
    # Eighths of a character, for a finer bar.
    whole, part = divmod(round(share * _BAR * 8), 8)
    return "█" * whole + (_EIGHTHS[part] if part else "")


def _print_title(title: str, console: Console) -> None:
    console.print()
    console.print(Text(f"  {translated(title)}", "bold"))
