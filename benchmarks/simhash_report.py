"""Write the results of run_simhash.py: a CSV in long form, a plot, and a Markdown page that opens
with its caveats.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from environment import conditions
from measure import Measurement
from simhash_cases import Case
from simhash_plot import growth

_CAVEATS = Path(__file__).resolve().parent / "simhash_caveats.md"
_PLOT = "simhash-growth.svg"
_UNITS = {"build": "s", "add": "s", "add_cpu": "s", "query": "s", "query_cpu": "s", "bytes": "B"}
_TITLES = {
    "texts": "Fingerprints of texts: 64 bits, words by frequency",
    "pairs": "All pairs within distance 3 among 64-bit fingerprints",
    "queries": "Queries within distance 3, in batches of 100,000",
}


@dataclass
class Result:
    """A tool at one job on one input.

    part : texts, pairs or queries. on : the input, as shown. size : megabytes, or fingerprints.
    times : wall and processor seconds of the job within its processes. told : other numbers, of
    each process. quality : a named tuple that says whether the answers are `sound`, None as long as
    there are none.
    """

    part: str
    on: str
    size: float
    case: Case
    version: str
    processes: list[Measurement] = field(default_factory=list)
    times: list[tuple[float, float]] = field(default_factory=list)
    told: list[dict[str, float]] = field(default_factory=list)
    quality: Any = None

    @property
    def failed(self) -> bool:
        return not self.processes or any(took.code for took in self.processes)

    @property
    def usable(self) -> bool:
        return not self.failed and self.quality is not None and self.quality.sound

    @property
    def state(self) -> str:
        """What came of it, if it has no times to show."""
        codes = [took.code for took in self.processes if took.code]
        return (
            ("out of time" if codes[0] == 124 else f"failed: exit code {codes[0]}")
            if codes
            else "wrong answers"
        )

    @property
    def facts(self) -> dict[str, float]:
        """Medians of the other numbers that its processes told."""
        return {
            name: median(one[name] for one in self.told)
            for name in (self.told[0] if self.told else {})
        }

    @property
    def wall(self) -> float:
        return median(wall for wall, _ in self.times)

    @property
    def cpu(self) -> float:
        return median(cpu for _, cpu in self.times)

    @property
    def peak_mb(self) -> float:
        return max(took.peak_mb for took in self.processes)

    @property
    def rate(self) -> float:
        """Megabytes a second."""
        return self.size / self.wall

    @property
    def query_us(self) -> float:
        """Microseconds of wall time a query."""
        return 1e6 * self.wall / self.facts["queries"]

    @property
    def query_cpu_us(self) -> float:
        """Microseconds of CPU time a query."""
        return 1e6 * self.cpu / self.facts["queries"]


def write_csv(path: Path, results: list[Result]) -> None:
    """Write case, tool, version, metric, value, unit."""
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(("case", "tool", "version", "metric", "value", "unit"))
        for result in results:
            for metric, value, unit in _metrics(result):
                writer.writerow(
                    (
                        f"{result.part}, {result.on}",
                        result.case.name,
                        result.version,
                        metric,
                        value,
                        unit,
                    )
                )


def _metrics(result: Result) -> Iterator[tuple[str, str, str]]:
    if not result.usable:
        yield "state", result.state, ""
    if result.quality:
        for name, number in result.quality._asdict().items():
            yield name, str(number), ""
    if result.failed:
        return
    yield "processes", str(len(result.processes)), ""
    yield "repeats", str(len(result.times)), ""
    yield "wall", f"{result.wall:.6f}", "s"
    yield "wall_min", f"{min(result.times)[0]:.6f}", "s"
    yield "wall_max", f"{max(result.times)[0]:.6f}", "s"
    yield "cpu", f"{result.cpu:.6f}", "s"
    yield "peak_memory", f"{result.peak_mb:.1f}", "MB"
    for name, value in result.facts.items():
        yield name, f"{value:.3f}", _UNITS.get(name, "")


def write_markdown(
    folder: Path, results: list[Result], facts: dict[str, str], versions: dict[str, str]
) -> None:
    """Write the page and its plot."""
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    caveats = _CAVEATS.read_text().format(**facts, conditions=conditions(), versions=named)
    lines = ["# Benchmark: SimHash", "", caveats.rstrip(), "", *_targets(results)]
    for part, title in _TITLES.items():
        lines += [f"## {title}", ""]
        for on in dict.fromkeys(one.on for one in results if one.part == part):
            group = [one for one in results if one.part == part and one.on == on]
            lines += [
                f"### {on}",
                "",
                *table(_HEADS[part], (_row(one, group) for one in group), 2),
                "",
            ]
    lines += _growth(folder, [one for one in results if one.part == "pairs" and one.usable])
    lines += _losses(results)
    (folder / "simhash.md").write_text("\n".join(lines).rstrip() + "\n")


def table(heads: Iterable[str], rows: Iterable[Iterable[str]], words: int) -> list[str]:
    """Return a table, the first columns of words, the others of numbers."""
    heads = list(heads)
    marks = ["---"] * words + ["---:"] * (len(heads) - words)
    return [f"| {' | '.join(cells)} |" for cells in (heads, marks, *rows)]


_ENDS = ("x neardup", "x CPU", "repeats")
_HEADS = {
    "texts": (
        "tool",
        "what runs",
        "threads",
        "MB/s",
        "wall, s",
        "CPU, s",
        "checked",
        "wrong",
        *_ENDS,
    ),
    "pairs": (
        "tool",
        "what runs",
        "threads",
        "wall, s",
        "CPU, s",
        "peak, MB",
        "found",
        "wrong",
        "pairs",
        *_ENDS,
    ),
    "queries": (
        *("tool", "what runs", "threads", "µs a query", "CPU µs a query", "build, s", "bytes each"),
        *("found", "wrong", *_ENDS),
    ),
}


def _row(one: Result, group: list[Result]) -> list[str]:
    """Return the cells of a result: the times of sound answers only. neardup's time is that of as
    many threads.
    """
    heads = _HEADS[one.part]
    start = [one.case.tool, one.case.how, str(one.case.threads)]
    if not one.usable or one.quality is None:
        return [*start, one.state, *[""] * (len(heads) - len(start) - 1)]
    found = f"{one.quality.found:,} of {one.quality.expected:,}"
    wall = f"{one.wall:.3f}"
    cpu = f"{one.cpu:.3f}"
    if one.part == "texts":
        middle = [f"{one.rate:.1f}", wall, cpu, found, str(one.quality.wrong)]
    elif one.part == "pairs":
        middle = [
            wall,
            cpu,
            f"{one.peak_mb:.0f}",
            found,
            str(one.quality.wrong),
            f"{one.quality.listed:,}",
        ]
    else:
        sizes = [f"{one.facts['build']:.2f}", f"{one.facts['bytes'] / one.size:.0f}"]
        middle = [
            f"{one.query_us:.2f}",
            f"{one.query_cpu_us:.2f}",
            *sizes,
            found,
            str(one.quality.wrong),
        ]
    ours = _rival(one, group)
    ratios = _ratios(one, ours) if ours else ()
    return [
        *start,
        *middle,
        *(f"{ratio:.{1 if ratio >= 10 else 2}f}" for ratio in ratios),
        str(len(one.times)),
    ]


def _ratios(one: Result, ours: Result) -> tuple[float, float]:
    """Return how many times neardup's wall time and CPU seconds a result took, for as many
    queries.
    """
    share = ours.facts["queries"] / one.facts["queries"] if one.part == "queries" else 1.0
    return share * one.wall / ours.wall, share * one.cpu / ours.cpu


def _rival(one: Result, group: list[Result]) -> Result | None:
    """Return neardup's result that a result is compared with: of as many threads, the public call
    if there are two.
    """
    ours = [
        other
        for other in group
        if other.case.ours and other.usable and other.case.threads == one.case.threads
    ]
    return ours[0] if ours else None


def _targets(results: list[Result]) -> list[str]:
    """Yield the targets of neardup and the figures measured, in wall time and in CPU seconds."""
    rows: list[tuple[str, str, str, str, bool]] = []
    sound = [one for one in results if one.usable and one.case.threads == 2]
    texts = [one for one in sound if one.part == "texts"]
    for best in sorted((one for one in texts if one.case.ours), key=lambda one: one.size)[-1:]:
        used = f"{best.size / best.cpu:.0f} MB a CPU second"
        rows.append(
            (
                "fingerprints of texts, two threads",
                "300 MB/s",
                f"{best.rate:.0f} MB/s",
                used,
                best.rate >= 300,
            )
        )
    for peer in (one for one in texts if one.case.script == "simhash"):
        if rival := _rival(peer, [one for one in texts if one.on == peer.on]):
            ratio, used_ratio = _ratios(peer, rival)
            told = (f"{ratio:.0f} times", f"{used_ratio:.0f} times")
            rows.append(
                (f"the same against simhash, {peer.case.how}", "100 times", *told, ratio >= 100)
            )
    for one in (one for one in sound if one.case.ours):
        if one.part == "pairs" and one.size == 10**8:
            what = f"pairs among 100 million, {one.case.tool}, {one.case.how}"
            peak = one.peak_mb / 1000
            rows.append(
                (what, "60 s (aim: 30)", f"{one.wall:.1f} s", f"{one.cpu:.1f} s", one.wall < 60)
            )
            rows.append((f"{what}: peak memory", "4 GB", f"{peak:.2f} GB", "", peak < 4))
        if one.part == "queries" and one.size == 10**7:
            each = (f"{one.query_us:.2f} µs", f"{one.query_cpu_us:.2f} µs")
            rows.append(("a query among 10 million", "10 µs", *each, one.query_us < 10))
    if not rows:
        return []
    cells = [(*words, "yes" if met else "**no**") for *words, met in rows]
    return ["## Targets", "", *table(("what", "target", "measured", "CPU", "met"), cells, 1), ""]


def _growth(folder: Path, results: list[Result]) -> list[str]:
    """Show how time and memory of all pairs grow: of neardup as a table, of all as a plot."""
    rows = []
    lines: dict[str, list[tuple[float, float]]] = {}
    for one in results:
        if not (one.case.tool == "neardup join" and one.case.threads == 1):
            lines.setdefault(one.case.tool, []).append((one.size, one.wall))
        if one.case.ours and one.case.threads == 2:
            cells = (
                f"{one.wall:.3f}",
                f"{1e9 * one.wall / one.size:.0f}",
                f"{one.cpu:.3f}",
                f"{one.peak_mb:.0f}",
            )
            rows.append((one.case.tool, one.case.how, f"{one.size:,}", *cells))
    if not lines:
        return []
    title = "All pairs within distance 3: seconds by number of fingerprints"
    (folder / _PLOT).write_text(
        growth(lines, title=title, x_label="fingerprints", y_label="seconds")
    )
    heads = ("tool", "what runs", "fingerprints", "wall, s", "ns each", "CPU, s", "peak, MB")
    return [
        "## Growth",
        "",
        *table(heads, sorted(rows, key=lambda row: row[0]), 2),
        "",
        f"![{title}]({_PLOT})",
        "",
    ]


def _losses(results: list[Result]) -> list[str]:
    """List every measure in which a peer with sound answers beat neardup on the same input, on as
    many threads.
    """
    lines = []
    for one in results:
        if one.case.ours or not one.usable:
            continue
        group = [other for other in results if (other.part, other.on) == (one.part, one.on)]
        ours = _rival(one, group)
        measures = _MEASURES[one.part] if ours else ()
        for what, unit, measure in measures:
            theirs = measure(one)
            mine = measure(ours)
            if theirs < mine:
                told = f"{one.case.tool} {theirs:.3g} {unit}, {ours.case.tool} {mine:.3g} {unit}"
                lines.append(
                    f"- {one.on}, {what}: {told} ({one.case.how}, threads: {one.case.threads})"
                )
    return ["## Where neardup loses", "", *(lines or ["- Nowhere in these measures."]), ""]


_PEAK = ("peak memory", "MB", lambda one: one.peak_mb)
_MEASURES: dict[str, tuple[tuple[str, str, Callable[[Result], float]], ...]] = {
    "texts": (("all texts", "s", lambda one: one.wall),),
    "pairs": (("all pairs", "s", lambda one: one.wall), _PEAK),
    "queries": (
        ("a query", "µs", lambda one: one.query_us),
        ("to build", "s", lambda one: one.facts["build"]),
        ("a fingerprint", "bytes", lambda one: one.facts["bytes"] / one.size),
    ),
}
