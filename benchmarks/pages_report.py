"""Write the page of run_pages.py: the targets of neardup, every case, the parts, and where neardup
loses.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from environment import conditions
from simhash_report import Result, table

_CAVEATS = Path(__file__).resolve().parent / "pages_caveats.md"
_PARTS = (
    ("records", "reading: gzip members inflated, records cut"),
    ("pages", "reading: HTTP header, charset, what is no page"),
    ("arrow", "reading: pages as one Arrow column, checked"),
    ("tags", "parsing: tags with their attributes"),
    ("tree", "walking: elements with their depth (decay and paths only)"),
)
_FEATURES = (("shingles", ()), ("decay", ("tree",)), ("paths", ("tree",)))
_HEADS = {
    "runs": (
        "command",
        "threads",
        "pages/s",
        "wall, s",
        "pages a CPU s",
        "CPU, s",
        "peak, MB",
        "answers",
        "repeats",
    ),
    "pairs": (
        *("tool", "what runs", "ms a pair", "CPU ms a pair", "identical", "one site", "unrelated"),
        *("x neardup", "x CPU", "repeats"),
    ),
    "parse": (
        "tool",
        "what runs",
        "pages/s",
        "pages a CPU s",
        "elements",
        "x neardup",
        "x CPU",
        "repeats",
    ),
}
_TITLES = {
    "runs": "Whole runs from a WARC file",
    "pairs": "Pairs of pages, one after the other, one thread",
    "parse": "A yardstick: pages parsed and no more, one thread",
}


def write_markdown(
    folder: Path,
    results: list[Result],
    parts: dict[str, float],
    num_pages: int,
    facts: dict[str, str],
    versions: dict[str, str],
) -> None:
    """Write the page."""
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = [
        "# Benchmark: web pages",
        "",
        _CAVEATS.read_text().format(**facts, conditions=conditions(), versions=named).rstrip(),
        "",
    ]
    asked = [[*words, "yes" if met else "**no**"] for *words, met in _targets(results)]
    lines += ["## Targets", "", *table(("what", "target", "measured", "CPU", "met"), asked, 1), ""]
    for part, title in _TITLES.items():
        group = [one for one in results if one.part == part]
        rows = [_row(one, group) for one in group]
        words = 1 if part == "runs" else 2
        lines += [f"## {title}", "", f"{group[0].on}.", "", *table(_HEADS[part], rows, words), ""]
        if part == "runs" and parts:
            lines += ["## Where the time of a fingerprint goes", "", *_shares(parts, num_pages), ""]
    losses = list(_losses(results)) or ["- Nowhere in these measures."]
    lines += ["## Where neardup loses", "", *losses]
    (folder / "pages.md").write_text("\n".join(lines) + "\n")


def _row(one: Result, group: list[Result]) -> list[str]:
    """Return the cells of a result: the times of sound answers only."""
    start = (
        [one.case.how, str(one.case.threads)]
        if one.part == "runs"
        else [one.case.tool, one.case.how]
    )
    if not one.usable:
        told = f"{one.state} {one.quality or ''}".strip()
        return [*start, told, *[""] * (len(_HEADS[one.part]) - 3)]
    if one.part == "runs":
        cells = [
            f"{one.rate:,.0f}",
            f"{one.wall:.2f}",
            f"{one.size / one.cpu:,.0f}",
            f"{one.cpu:.2f}",
        ]
        return [*start, *cells, f"{one.peak_mb:.0f}", _answers(one), str(len(one.times))]
    if one.part == "pairs":
        cells = [f"{1000 * one.wall / one.size:.1f}", f"{1000 * one.cpu / one.size:.1f}"]
        cells += [f"{value:.2f}" for value in one.quality]
    else:
        cells = [f"{one.rate:,.0f}", f"{one.size / one.cpu:,.0f}", f"{one.quality.elements:,}"]
    ours = next((other for other in group if other.case.ours and other.usable), None)
    ratios = (
        [f"{ratio:.1f}" for ratio in (one.wall / ours.wall, one.cpu / ours.cpu)]
        if ours
        else ["", ""]
    )
    return [*start, *cells, *ratios, str(len(one.times))]


def _answers(one: Result) -> str:
    found = one.quality
    if one.case.options["command"] == "dedup":
        return (
            f"found {found.found:,} of {found.planted:,}, wrong {found.wrong:,} of "
            f"{found.removed:,}"
        )
    twin = f", {found.same} of {found.checked} as the plain twin" if found.checked else ""
    return f"{found.equal:,} of {found.pages:,} as their template{twin}"


def _shares(parts: dict[str, float], num_pages: int) -> list[str]:
    """Return the table of parts: milliseconds of a page, and their share by the features."""
    rows = []
    totals = {name: _reading(parts) + parts[name] for name, _ in _FEATURES}
    for name, what in _PARTS:
        users = [features for features, needed in _FEATURES if name != "tree" or "tree" in needed]
        shares = [
            f"{100 * parts[name] / totals[one]:.0f} %" if one in users else ""
            for one, _ in _FEATURES
        ]
        rows.append([what, f"{1000 * parts[name] / num_pages:.3f}", *shares])
    for features, needed in _FEATURES:
        rest = parts[features] - parts["tags"] - sum(parts[name] for name in needed)
        shares = [
            f"{100 * rest / totals[features]:.0f} %" if one == features else ""
            for one, _ in _FEATURES
        ]
        rows.append(
            [f"hashing: {features}, weights, votes", f"{1000 * rest / num_pages:.3f}", *shares]
        )
    each = [f"{1000 * totals[one] / num_pages:.3f} ms" for one, _ in _FEATURES]
    rows.append(["all, a page", "", *each])
    heads = ("part, on one thread", "CPU ms a page", *(name for name, _ in _FEATURES))
    return table(heads, rows, 1)


def _reading(parts: dict[str, float]) -> float:
    return parts["records"] + parts["pages"] + parts["arrow"]


def _targets(results: list[Result]) -> Iterator[tuple[str, str, str, str, bool]]:
    """Yield the targets of neardup and the figures measured, in wall time and in CPU seconds."""
    sound = [one for one in results if one.usable]
    for one in sound:
        if one.part == "runs" and one.case.options["command"] == "sign" and one.case.threads == 2:
            used = f"{one.size / one.cpu:,.0f} a CPU second"
            yield (
                f"{one.case.how}, two threads",
                "1,000 pages/s",
                f"{one.rate:,.0f} pages/s",
                used,
                one.rate >= 1000,
            )
    ours = next((one for one in sound if one.part == "pairs" and one.case.ours), None)
    for one in sound:
        if ours and one.part == "pairs" and not one.case.ours:
            ratio = one.wall / ours.wall
            used = f"{one.cpu / ours.cpu:.1f} times"
            asked = 5 if one.case.how.startswith("similarity") else 1
            what = f"a pair, against {one.case.tool}, {one.case.how}"
            yield what, f"{asked} times", f"{ratio:.1f} times", used, ratio >= asked


def _losses(results: list[Result]) -> Iterator[str]:
    """Name every measure in which a peer with sound answers beat neardup."""
    for ours in (one for one in results if one.case.ours and one.usable):
        for one in results:
            if one.part == ours.part and not one.case.ours and one.usable and one.wall < ours.wall:
                told = f"{one.case.tool} {one.wall:.3g} s, neardup {ours.wall:.3g} s"
                yield f"- {one.on}: {told} ({one.case.how}; {ours.case.how})"
