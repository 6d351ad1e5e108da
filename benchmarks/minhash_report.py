"""Write the page of run_minhash.py: the targets of neardup, every case, and where neardup loses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from environment import conditions
from simhash_report import Result, table

_CAVEATS = Path(__file__).resolve().parent / "minhash_caveats.md"
_TITLES = {
    "sign_texts": "Signatures of texts: 128 values, 5-grams",
    "sign_sets": "Signatures of sets of tokens: 128 values",
    "index": "LSH indexes: 128 values, 16 bands of 8; all added, then all queried",
}
_HEADS = {
    "sign_texts": (
        "tool",
        "what runs",
        "threads",
        "MB/s",
        "MB a CPU s",
        "wall, s",
        "CPU, s",
        "checked",
        "repeats",
    ),
    "sign_sets": (
        *("tool", "what runs", "threads", "sets a second", "wall, s", "CPU, s", "error", "spread"),
        *("x Arrow", "x CPU", "x lists", "x CPU", "repeats"),
    ),
    "index": (
        *(
            "tool",
            "what runs",
            "threads",
            "add, s",
            "µs a query",
            "both, s",
            "CPU, s",
            "bytes each",
            "planted found",
        ),
        *("theory", "wrong", "x neardup", "x CPU", "repeats"),
    ),
}
Ratios = tuple[float, float]  # of wall time and of CPU seconds
_ARROW = "sign, Arrow lists"
_LISTS = "sign, Python lists"
_INDEX = "LSHIndex: add_many, query_many"


def write_markdown(
    folder: Path, results: list[Result], facts: dict[str, str], versions: dict[str, str]
) -> None:
    """Write the page."""
    named = ", ".join(f"{name} {version}" for name, version in versions.items())
    lines = [
        "# Benchmark: MinHash",
        "",
        _CAVEATS.read_text().format(**facts, conditions=conditions(), versions=named).rstrip(),
        "",
    ]
    asked = [[*words, "yes" if met else "**no**"] for *words, met in _targets(results)]
    lines += ["## Targets", "", *table(("what", "target", "measured", "CPU", "met"), asked, 1), ""]
    for part, title in _TITLES.items():
        lines += [f"## {title}", ""]
        for on in dict.fromkeys(one.on for one in results if one.part == part):
            rows = [_row(one, results) for one in results if (one.part, one.on) == (part, on)]
            lines += [f"### {on}", "", *table(_HEADS[part], rows, 2), ""]
    losses = list(_losses(results)) or ["- Nowhere in these measures."]
    lines += ["## Where neardup loses", "", *losses]
    (folder / "minhash.md").write_text("\n".join(lines) + "\n")


def _row(one: Result, results: list[Result]) -> list[str]:
    """Return the cells of a result: the times of sound answers only."""
    start = [one.case.tool, one.case.how, str(one.case.threads)]
    if not one.usable:
        told = f"{one.state} {one.quality or ''}".strip()
        return [*start, told, *[""] * (len(_HEADS[one.part]) - 4)]
    quality = one.quality
    wall = f"{one.wall:.3f}"
    cpu = f"{one.cpu:.3f}"
    if one.part == "sign_texts":
        checked = f"{quality.same} of {quality.checked}"
        middle = [f"{one.rate:.1f}", f"{one.size / one.cpu:.1f}", wall, cpu, checked]
    elif one.part == "sign_sets":
        middle = [f"{one.rate:,.0f}", wall, cpu, f"{quality.error:+.1f}", f"{quality.spread:.2f}"]
        middle += [
            *_cells(one, _rival(one, results, _ARROW)),
            *_cells(one, _rival(one, results, _LISTS)),
        ]
    else:
        facts = one.facts
        middle = [f"{facts['add']:.3f}", f"{1e6 * facts['query'] / one.size:.2f}", wall, cpu]
        middle += [f"{facts['bytes'] / one.size:.0f}", f"{quality.found:,} of {quality.planted:,}"]
        middle += [f"{quality.least:,} to {quality.most:,}", str(quality.wrong)]
        middle += _cells(one, _rival(one, results, _INDEX))
    return [*start, *middle, str(len(one.times))]


def _rival(one: Result, results: list[Result], how: str) -> Result | None:
    """Return neardup's result of a way to do it, on the same input with as many threads."""
    for other in results:
        same = (other.part, other.on, other.case.threads) == (one.part, one.on, one.case.threads)
        if same and other.case.ours and other.usable and other.case.how == how:
            return other
    return None


def _ratios(one: Result, ours: Result) -> Ratios:
    return one.wall / ours.wall, one.cpu / ours.cpu


def _times(ratio: float) -> str:
    return f"{ratio:.{0 if ratio >= 100 else 1 if ratio >= 10 else 2}f}"


def _cells(one: Result, ours: Result | None) -> list[str]:
    return [_times(ratio) for ratio in _ratios(one, ours)] if ours else ["", ""]


def _targets(results: list[Result]) -> Iterator[tuple[str, str, str, str, bool]]:
    """Yield the targets of neardup and the figures measured, in wall time and in CPU seconds."""
    sound = [one for one in results if one.usable]
    texts = {
        (one.case.options["tokens"], one.case.threads): one
        for one in sound
        if one.part == "sign_texts"
    }
    for tokens, least in (("words", 150), ("chars", 60)):
        if one := texts.get((tokens, 1)):
            what = f"signatures of texts, {tokens}, one thread"
            used = f"{one.size / one.cpu:.0f} MB a CPU second"
            yield what, f"{least} MB/s", f"{one.rate:.0f} MB/s", used, one.rate >= least
            if two := texts.get((tokens, 2)):
                ratio = one.wall / two.wall
                used = f"{two.cpu / one.cpu:.2f} times the CPU seconds"
                yield (
                    f"the same, two threads for one ({tokens})",
                    "2 times",
                    f"{ratio:.2f} times",
                    used,
                    ratio >= 1.8,
                )
    for peer, by_how in (
        ("rensa", {_ARROW: 5, _LISTS: 1}),
        ("datasketch", {_ARROW: 50, _LISTS: 50}),
    ):
        for how, least in by_how.items():
            yield from _against(sound, "sign_sets", peer, how, least)
    for peer, least in (("datasketch", 10), ("rensa", 1), ("gaoya", 1)):
        yield from _against(sound, "index", peer, _INDEX, least)


def _against(
    sound: list[Result], part: str, tool: str, how: str, least: float
) -> Iterator[tuple[str, str, str, str, bool]]:
    """Compare neardup with the fastest way of a peer, by threads, on the largest input that the
    peer managed.
    """
    group = [one for one in sound if one.part == part and one.case.tool == tool]
    for threads in (1, 2):
        peers = [one for one in group if one.case.threads == threads]
        best = min(peers, key=lambda one: (-one.size, one.wall), default=None)
        ours = _rival(best, sound, how) if best else None
        if best and ours:
            what = f"{ours.on}, {how}, against {tool}, {best.case.how}; threads: {threads}"
            ratio, used = _ratios(best, ours)
            yield (
                what,
                f"{least} times",
                f"{_times(ratio)} times",
                f"{_times(used)} times",
                ratio >= least,
            )


_MEASURES: dict[str, tuple[tuple[str, str, Callable[[Result], float]], ...]] = {
    "sign_texts": (),
    "sign_sets": (("all sets", "s", lambda one: one.wall),),
    "index": (
        ("to add", "s", lambda one: one.facts["add"]),
        ("to query", "s", lambda one: one.facts["query"]),
        ("a document", "bytes", lambda one: one.facts["bytes"] / one.size),
    ),
}


def _losses(results: list[Result]) -> Iterator[str]:
    """Name every measure in which a peer with sound answers beat a way of neardup, on as many
    threads.

    One by one is set against datasketch alone, which knows no other way.
    """
    sound = [one for one in results if one.usable]
    for one in (one for one in sound if not one.case.ours):
        for ours in sound:
            same = (ours.part, ours.on, ours.case.threads) == (one.part, one.on, one.case.threads)
            single = ours.case.options.get("form") == "single" and one.case.tool != "datasketch"
            if not ours.case.ours or not same or single:
                continue
            for what, unit, measure in _MEASURES[one.part]:
                theirs = measure(one)
                mine = measure(ours)
                if theirs < mine:
                    told = f"{one.case.tool} {theirs:.3g} {unit}, neardup {mine:.3g} {unit}"
                    ways = f"{one.case.how}; {ours.case.how}; threads: {one.case.threads}"
                    yield f"- {one.on}, {what}: {told} ({ways})"
