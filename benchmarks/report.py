"""Write the results: a CSV in long form, and a Markdown page that opens with its caveats."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from cases import BANDS, CONFIRMS, ROWS, THREADS, YARDSTICKS, Case
from corpus import Corpus
from environment import conditions
from measure import Measurement
from truth import Quality

LEAST_FOUND = 0.97
_CAVEATS = Path(__file__).resolve().parent / "caveats.md"
_COLUMNS = (
    *(
        "tool",
        "version",
        "confirmed by",
        "wall, s",
        "CPU, s",
        "peak, MB",
        "x wc -w",
        "x copy",
        "x neardup",
    ),
    *("found", "found, not Chinese", "removed wrongly", "runs"),
)
_SHARES = ("found_share", "wrong_share", "pairs_found_share")


@dataclass
class Result:
    """One case on one corpus: its runs, and the quality of its answer by group of documents."""

    case: Case
    corpus: Corpus
    version: str
    runs: list[Measurement] = field(default_factory=list)
    quality: dict[str, Quality] = field(default_factory=dict)
    stages: list[dict[str, float]] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return not self.runs or any(run.code for run in self.runs)

    @property
    def sound(self) -> bool:
        """Whether at least 97 % of what had to go went, and nothing else."""
        quality = self.quality.get("all")
        return (
            quality is not None and (quality.found_share or 0) >= LEAST_FOUND and not quality.wrong
        )

    def median(self, name: str) -> float:
        return median(getattr(run, name) for run in self.runs)


@dataclass(frozen=True)
class Startup:
    """The median wall time of a command that does no work, or the price of the first run."""

    name: str
    seconds: float


def write_csv(path: Path, results: list[Result], startups: list[Startup], version: str) -> None:
    """Write case, tool, version, metric, value, unit."""
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("case", "tool", "version", "metric", "value", "unit"))
        for result in results:
            case = f"{result.corpus.mb} MB"
            for metric, value, unit in _metrics(result):
                writer.writerow((case, result.case.name, result.version, metric, value, unit))
        for startup in startups:
            writer.writerow(
                ("startup", "neardup", version, startup.name, f"{startup.seconds:.3f}", "s")
            )


def _metrics(result: Result) -> Iterator[tuple[str, str, str]]:
    if result.failed:
        yield "exit_code", str(result.runs[-1].code if result.runs else ""), ""
        return
    walls = [run.wall_s for run in result.runs]
    yield "runs", str(len(walls)), ""
    yield "wall", f"{median(walls):.3f}", "s"
    yield "wall_min", f"{min(walls):.3f}", "s"
    yield "wall_max", f"{max(walls):.3f}", "s"
    yield "cpu", f"{result.median('cpu_s'):.3f}", "s"
    yield "peak_memory", f"{max(run.peak_mb for run in result.runs):.1f}", "MB"
    yield "throughput", f"{result.corpus.megabytes / median(walls):.2f}", "MB/s"
    for group, quality in result.quality.items():
        for name, value in quality._asdict().items():
            if value is not None:
                share = name in _SHARES
                yield (
                    f"{name} ({group})",
                    f"{value:.5f}" if share else str(value),
                    "" if share else "documents",
                )


def write_markdown(
    path: Path,
    results: list[Result],
    startups: list[Startup],
    facts: dict[str, str],
    notes: list[str],
) -> None:
    """Write the page: caveats, settings, one table per corpus, scaling, start-up, where neardup
    loses.
    """
    lines = ["# Benchmark: whole processes, same file, same job", "", *_caveats(facts, notes)]
    for mb in sorted({result.corpus.mb for result in results}):
        lines += _table([result for result in results if result.corpus.mb == mb])
    lines += _settings(results)
    lines += _scaling(
        [result for result in results if result.case.name == "neardup" and not result.failed]
    )
    lines += _profile(
        [result for result in results if result.case.name == "neardup" and not result.failed]
    )
    if startups:
        lines += ["## Start and first run (neardup)", "", "| what | seconds |", "| --- | ---: |"]
        lines += [f"| {startup.name} | {startup.seconds:.2f} |" for startup in startups] + [""]
    lines += _losses(results, startups)
    path.write_text("\n".join(lines).rstrip() + "\n")


def _caveats(facts: dict[str, str], notes: list[str]) -> list[str]:
    text = _CAVEATS.read_text().format(
        **facts, conditions=conditions(), bands=BANDS, rows=ROWS, threads=THREADS
    )
    return [text.rstrip(), *(f"- {note}" for note in notes), ""]


def _table(results: list[Result]) -> list[str]:
    corpus = results[0].corpus
    good = [result for result in results if not result.failed]
    wall = {result.case.name: result.median("wall_s") for result in good}
    lines = [
        f"## {corpus.megabytes:.0f} MB of text, {corpus.num_rows:,} documents",
        "",
        "| " + " | ".join(_COLUMNS) + " |",
        "| --- | --- | --- |" + " ---: |" * (len(_COLUMNS) - 3),
    ]
    for result in sorted(results, key=lambda one: wall.get(one.case.name, float("inf"))):
        if result.failed:
            code = result.runs[-1].code if result.runs else "-"
            lines.append(
                f"| {result.case.name} | {result.version} | | failed: exit code {code} | | | | | | "
                "| | | |"
            )
            continue
        cells = [
            result.case.name,
            result.version,
            CONFIRMS.get(result.case.confirm, ""),
            f"{result.median('wall_s'):.2f}",
            f"{result.median('cpu_s'):.2f}",
            f"{max(run.peak_mb for run in result.runs):.0f}",
            _ratio(result, wall.get("wc -w")),
            _ratio(result, wall.get("pyarrow copy")),
            _ratio(result, wall.get("neardup")),
            _percent(result, "all", "found_share"),
            _percent(result, "not Chinese", "found_share"),
            _percent(result, "all", "wrong_share"),
            str(len(result.runs)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    qualities = [result.quality["all"] for result in good if result.quality]
    if qualities:
        lines += [
            "",
            f"Quality over {qualities[0].sampled:,} sampled documents, of which "
            f"{qualities[0].with_partner:,} have a partner at 0.8 or more.",
        ]
    return [*lines, *_fastest(good), ""]


def _ratio(result: Result, base: float | None) -> str:
    return f"{result.median('wall_s') / base:.2f}" if base else ""


def _percent(result: Result, group: str, name: str) -> str:
    value = getattr(result.quality[group], name) if group in result.quality else None
    return "" if value is None else f"{100 * value:.1f} %"


def _fastest(good: list[Result]) -> list[str]:
    """Say how neardup's time compares with the fastest peer, and with the fastest that answers as
    well.
    """
    ours = next((result for result in good if result.case.name == "neardup"), None)
    peers = [result for result in good if result.case.package not in (*YARDSTICKS, "neardup")]
    lines = []
    for who, among in (
        ("Fastest peer", peers),
        (
            "Fastest peer that finds 97 % and removes nothing wrongly",
            [peer for peer in peers if peer.sound],
        ),
    ):
        if ours and among:
            best = min(among, key=lambda peer: peer.median("wall_s"))
            ratio = best.median("wall_s") / ours.median("wall_s")
            lines += ["", f"{who}: {best.case.name}, {ratio:.2f} times neardup's time."]
    return lines


def _settings(results: list[Result]) -> list[str]:
    seen = {result.case.name: result for result in results}
    lines = ["## Settings", "", "| tool | how it runs |", "| --- | --- |"]
    return [*lines, *(f"| {name} | {result.case.settings} |" for name, result in seen.items()), ""]


def _scaling(ours: list[Result]) -> list[str]:
    if len(ours) < 2:
        return []
    lines = [
        "## neardup by size",
        "",
        "| text, MB | documents | wall, s | MB/s | peak, MB |",
        "| ---: | ---: | ---: | ---: | ---: |",
    ]
    for result in sorted(ours, key=lambda one: one.corpus.mb):
        wall = result.median("wall_s")
        peak = max(run.peak_mb for run in result.runs)
        size = result.corpus.megabytes
        lines.append(
            f"| {size:.0f} | {result.corpus.num_rows:,} | {wall:.2f} | {size / wall:.0f} | "
            f"{peak:.0f} |"
        )
    return [*lines, ""]


def _profile(ours: list[Result]) -> list[str]:
    """Say where neardup's time goes: medians of the stages that its own reports name, and the rest
    of the process.
    """
    lines = []
    for result in sorted(ours, key=lambda one: one.corpus.mb):
        if not result.stages:
            continue
        lines += [
            f"## neardup by stage, {result.corpus.megabytes:.0f} MB",
            "",
            "| stage | seconds |",
            "| --- | ---: |",
        ]
        for name in result.stages[0]:
            lines.append(f"| {name} | {median(run[name] for run in result.stages):.2f} |")
        rest = [
            took.wall_s - sum(run.values())
            for took, run in zip(result.runs, result.stages, strict=True)
        ]
        lines += [f"| start of Python, imports, exit | {median(rest):.2f} |", ""]
    return lines


def _losses(results: list[Result], startups: list[Startup]) -> list[str]:
    """List every measure in which some peer beat neardup on the same corpus, and the first run."""
    lines = [
        f"- {one.name}: {one.seconds:.1f} s; the peers compile nothing"
        for one in startups
        if "first" in one.name
    ]
    for ours in results:
        if ours.case.name != "neardup" or ours.failed:
            continue
        # The yardsticks do another job; their ratios stand in the table.
        for other in results:
            if (
                other.corpus.mb == ours.corpus.mb
                and other.case.package not in ("neardup", *YARDSTICKS)
                and not other.failed
            ):
                lines += [f"- {ours.corpus.mb} MB, {loss}" for loss in _compare(ours, other)]
    if not any(result.case.name == "neardup" for result in results):
        return []
    return ["## Where neardup loses", "", *(lines or ["- Nowhere in these measures."]), ""]


def _compare(ours: Result, other: Result) -> Iterator[str]:
    for name, label, unit in (
        ("wall_s", "wall time", "s"),
        ("cpu_s", "CPU time", "s"),
        ("peak_mb", "peak memory", "MB"),
    ):
        mine = ours.median(name)
        theirs = other.median(name)
        if theirs < mine:
            yield f"{label}: {other.case.name} {theirs:.1f} {unit}, neardup {mine:.1f} {unit}"
    if not (ours.quality and other.quality):
        return
    for name, label, better in (
        ("found_share", "found", 1),
        ("wrong_share", "removed wrongly", -1),
    ):
        mine = getattr(ours.quality["all"], name)
        theirs = getattr(other.quality["all"], name)
        if mine is not None and theirs is not None and (theirs - mine) * better > 0:
            yield f"{label}: {other.case.name} {100 * theirs:.2f} %, neardup {100 * mine:.2f} %"
