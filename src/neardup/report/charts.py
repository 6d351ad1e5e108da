"""Draw the report's charts as SVG text.

Every function is pure and returns one `<svg>` element; equal numbers give equal text. Colours are
presentation attributes, so that a chart needs no style sheet (a notebook has none). Charts also
have classes, so that a page can restyle them: a style sheet overrides presentation attributes, and
a strict Content-Security-Policy forbids only `style="..."`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from neardup.candidates.bands import Bands, candidate_probability
from neardup.files import write_text, writing_to
from neardup.report.rows import ReportValues
from neardup.report.wording import duration, percent, say, short, shortened, visible

# Lengths are pixels of a drawing that is shown at its size; pages scale it.
_WIDTH = 420
_HEIGHT = 236
# The frame of a plot inside its drawing; labels are around it.
_LEFT = 50
_RIGHT = 408
_TOP = 30
_BOTTOM = 196
_FILLS = {"kept": "#2a6fb0", "near": "#c4621c", "exact": "#6f7b88"}
_BAR_STEP = 26  # from a horizontal bar to the next
_MIN_LENGTH = 1.5  # of a bar whose value is not zero, so that it can be seen
_CHARACTER = 7.2  # mean width of a character of the 13 px labels in the usual interface fonts
_MAX_LABEL = 24  # characters of a bar's label; its title shows all of it
_LEGEND_LEFT = 176  # to the right of the longest title of a vertical axis
_LEGEND_STEP = 84
# The label at the threshold ends a little to the right of its line, but its text, which is up to
# this wide, must begin inside the drawing.
_MARK_OVERHANG = 40
_MARK_WIDTH = 370


class _Curve(NamedTuple):
    """A curve of a score chart: the key of a measure, the name of its colour, and its label."""

    measure: str
    css_class: str
    label: str


_SCORE_CURVES = (
    _Curve(measure="precision", css_class="near", label="precision"),
    _Curve(measure="recall", css_class="exact", label="recall"),
    _Curve(measure="f1", css_class="kept", label="F1"),
)


class Bar(NamedTuple):
    """One line of a bar list.

    label : the text before the bar. value : its length. title : the text on hover. fill : the name
    of its colour. shown : the text after the bar. Default: the value.
    """

    label: str
    value: float
    title: str
    fill: str = "kept"
    shown: str = ""

    @property
    def text(self) -> str:
        """The text after the bar."""
        return self.shown or f"{self.value:,}"


def histogram(
    edges: Sequence[float], counts: Sequence[int], *, x_label: str, y_label: str, name: str
) -> str:
    """Return a histogram with one bar per bin, or an empty string if all counts are zero.

    Parameters
    ----------
    edges : the limits of the bins, ascending, of length len(counts) + 1.
    counts : the number of values in each bin.
    x_label, y_label : the quantities on the axes.
    name : the sentence that a screen reader reads instead of the chart.

    Raises
    ------
    ValueError if there is not one edge more than there are counts.
    """
    if counts and len(edges) != len(counts) + 1:
        raise ValueError(
            f"{len(counts)} counts need {len(counts) + 1} edges: got {len(edges)}. Pass one more."
        )
    if not any(counts):
        return ""
    top = max(counts)
    # Counts are integers: a small maximum has fractions among its ticks, which are left out.
    parts = [_y_tick(tick / top, short(tick)) for tick in _ticks(0, top, 4) if tick == int(tick)]
    parts += _columns(edges, counts)
    low = edges[0]
    high = edges[-1]
    if high > low:
        ticks = _ticks(low, high, 5)
        parts += [_x_tick((tick - low) / (high - low), f"{tick:g}") for tick in ticks]
    else:  # at a threshold of 1, all similarities are equal: one bar, without a scale
        parts.append(_x_tick(0.5, f"{low:g}"))
    return _svg(name, _HEIGHT, [*parts, *_frame(x_label, y_label)])


def _columns(edges: Sequence[float], counts: Sequence[int]) -> list[str]:
    """Return the columns of a histogram, each in a strip that shows its limits and its count."""
    top = max(counts)
    step = (_RIGHT - _LEFT) / len(counts)
    gap = min(1.5, step / 8)
    columns = []
    for index, count in enumerate(counts):
        height = max(count / top * (_BOTTOM - _TOP), _MIN_LENGTH if count else 0.0)
        x = _LEFT + index * step
        column = _rect(x + gap / 2, _BOTTOM - height, step - gap, height, "near")
        title = say("charts.bar", low=edges[index], high=edges[index + 1], count=count)
        columns.append(_hover(x, step, title, column))
    return columns


def s_curve(
    num_bands: int,
    rows_per_band: int,
    threshold: float | None,
    agreement: Callable[[float], Any] = float,
) -> str:
    """Return the curve of 1-(1-s^r)^b over the similarity s, with a mark at the threshold, if any.

    agreement : the probability that two documents of a similarity agree in a row.
    """
    bands = Bands(num_bands, rows_per_band)

    def chance(similarity: float) -> float:
        return float(candidate_probability(agreement(similarity), bands))

    parts = _percent_ticks()
    parts += [_x_tick(tick / 10, f"{tick / 10:g}") for tick in (0, 2, 4, 6, 8, 10)]
    grid = [index / 100 for index in range(101)]
    if threshold is not None:
        # The area begins at the threshold itself, which may lie between two points of the grid.
        found = [threshold, *(similarity for similarity in grid if similarity > threshold)]
        parts += _mark(threshold, chance(threshold), _points(found, chance))
    # After the area, so that the line is drawn on top of it.
    parts.append(
        f'<polyline class="curve" points="{_points(grid, chance)}" fill="none" '
        f'stroke="{_FILLS["kept"]}" stroke-width="2.25"/>'
    )
    # Last: transparent strips on top of all receive the mouse.
    parts += _chance_strips(chance)
    name = say("charts.curve", num_bands=num_bands, rows_per_band=rows_per_band)
    axes = _frame(say("charts.pair_similarity"), say("charts.pair_chance"))
    return _svg(name, _HEIGHT, [*parts, *axes])


def _chance_strips(chance: Callable[[float], float]) -> list[str]:
    """Return 20 strips that show the chance in their middle on hover."""
    strips = []
    for index in range(20):
        similarity = index / 20 + 0.025
        title = say("charts.chance", similarity=similarity, shown=percent(chance(similarity)))
        strips.append(_hover(_across(index / 20), _across(0.05) - _LEFT, title, ""))
    return strips


def _points(similarities: Iterable[float], chance: Callable[[float], float]) -> str:
    """Return the points of a curve as the attribute of a polygon or polyline."""
    return " ".join(f"{_number(_across(s))},{_number(_up(chance(s)))}" for s in similarities)


def _mark(threshold: float, chance: float, found: str) -> list[str]:
    """Return the area below the curve from the threshold on, and a line at the threshold.

    found : the points of the curve from the threshold on.
    """
    x = _across(threshold)
    label = say("charts.threshold", threshold=threshold, chance=percent(chance))
    label_end = min(max(x + _MARK_OVERHANG, _MARK_WIDTH), _RIGHT)
    return [
        f'<polygon class="area" points="{_number(x)},{_BOTTOM} {found} {_RIGHT},{_BOTTOM}"'
        f' fill="{_FILLS["kept"]}" fill-opacity="0.16"/>',
        f'<line x1="{_number(x)}" x2="{_number(x)}" y1="{_TOP - 10}" y2="{_BOTTOM}" '
        'stroke="currentColor" stroke-dasharray="4 3"/>'
        f"{_text(label_end, _TOP - 15, label, 'end')}",
    ]


def score_chart(reports: Mapping[str, ReportValues]) -> str:
    """Return precision, recall and F1 over the limits of evaluations, one below the other.

    Parameters
    ----------
    reports : each `Evaluation.report` by the name of its method, "" for a single one.
    """
    groups = []
    for index, (name, report) in enumerate(reports.items()):
        parts = "".join(_score_curves(name, report))
        groups.append(f'<g transform="translate(0,{index * _HEIGHT})">{parts}</g>')
    return _svg(
        "Precision, recall and F1 over the threshold or distance", _HEIGHT * len(groups), groups
    )


def _score_curves(name: str, report: ReportValues) -> list[str]:
    """Return the axes, the limit of the run and the three curves of one evaluation."""
    scores = report["curve"]
    limit = next(iter(scores[0]))  # threshold or max_distance: the first column of a score
    limits = [score[limit] for score in scores]
    span = (limits[-1] - limits[0]) or 1  # a curve may have a single limit

    def x_of(value: float) -> float:
        return _across(float((value - limits[0]) / span))

    parts = _percent_ticks()
    parts += [_x_label(x_of(tick), f"{tick:g}") for tick in _ticks(limits[0], limits[-1], 9)]
    parts += _limit_line(x_of(report["at_threshold"][limit]))
    xs = [x_of(value) for value in limits]
    for number, curve in enumerate(_SCORE_CURVES):
        parts.append(_score_line(curve, xs, [score[curve.measure] for score in scores]))
        parts += _legend(number, curve)
    return [*parts, *_frame(limit.replace("_", " "), name)]


def _limit_line(x: float) -> list[str]:
    """Return the vertical line at the limit of the run, unless the curve begins above it."""
    return [_rect(x - 0.5, _TOP, 1, _BOTTOM - _TOP, "exact")] if x >= _LEFT else []


def _score_line(curve: _Curve, xs: Sequence[float], values: Sequence[float | None]) -> str:
    """Return the line of one measure; limits without a value are left out."""
    points = " ".join(
        f"{_number(x)},{_number(_up(value))}"
        for x, value in zip(xs, values, strict=True)
        # A limit without found pairs has no precision.
        if value is not None
    )
    width = 2.75 if curve.measure == "f1" else 1.5
    return (
        f'<polyline points="{points}" fill="none" stroke="{_FILLS[curve.css_class]}"'
        f' stroke-width="{width}"/>'
    )


def _legend(number: int, curve: _Curve) -> list[str]:
    """Return the colour and the label of a curve, above the plot."""
    x = _LEGEND_LEFT + _LEGEND_STEP * number
    return [
        _rect(x, _TOP - 21, 10, 4, curve.css_class),
        _text(x + 14, _TOP - 15, curve.label, "start"),
    ]


def save_drawing(drawing: str, path: Path) -> None:
    """Write a drawing to an SVG file. Raises OutputError if it cannot be written."""
    with writing_to(path):
        write_text(path, standalone(drawing) + "\n")


class Drawing(str):
    """A drawing as SVG text, which a notebook shows."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return str(self)


def standalone(drawing: str) -> Drawing:
    """Return a drawing as the text of an SVG file."""
    # Inside of HTML an <svg> needs no namespace, in a file it does.
    return Drawing(drawing.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1))


def bars(rows: Sequence[Bar], *, name: str, logarithmic: bool = False) -> str:
    """Return one horizontal bar per row, between its texts, or an empty string for no rows.

    logarithmic : whether lengths are proportional to log(1 + value), not to the values. A caller
    mentions this next to the chart.
    """
    if not rows:
        return ""
    # With 1 added, a count of 1 has a length.
    lengths = [math.log1p(row.value) if logarithmic else row.value for row in rows]
    # All values may be 0.
    longest = max(lengths) or 1.0
    labels = [shortened(visible(row.label), _MAX_LABEL) for row in rows]
    # Estimated: nobody measures text before a browser draws it.
    left = max(map(len, labels)) * _CHARACTER + 12
    right = max(len(row.text) for row in rows) * _CHARACTER + 12
    available = max(_WIDTH - left - right, 40)
    parts = []
    for index, (row, label, length) in enumerate(zip(rows, labels, lengths, strict=True)):
        width = max(length / longest * available, _MIN_LENGTH if row.value else 0.0)
        parts.append(_bar(row, label, left=left, width=width, y=index * _BAR_STEP + 4))
    return _svg(name, len(rows) * _BAR_STEP, parts)


def _bar(row: Bar, label: str, *, left: float, width: float, y: float) -> str:
    """Return a bar between its label and its text, in a strip that shows its title on hover."""
    parts = [
        f"<title>{escape(visible(row.title))}</title>",
        # Transparent, over the whole line: a short bar is hard to hit.
        _rect(0, y - 4, _WIDTH, _BAR_STEP, "strip"),
        _text(left - 10, y + 13.5, label, "end"),
        _rect(left, y, width, 18, row.fill),
        _text(left + width + 7, y + 13.5, row.text, "start"),
    ]
    return f"<g>{''.join(parts)}</g>"


def proportion(report: ReportValues, fills: Mapping[str, str], *, name: str) -> str:
    """Return one bar divided among counts of a report; an empty string when all are zero.

    fills : the name of the colour of each count, by its key.
    """
    all_counts = report.get("counts") or {}
    counts = {key: all_counts.get(key) or 0 for key in fills}
    total = sum(counts.values())
    drawn = ""
    start = 0.0
    for key, count in counts.items():
        if count:
            share = count / total * 1000
            # Parts are 2 apart and at least 2 wide: the next part covers a part of a thin one.
            bar = _rect(min(start, 998), 0, max(share - 2, 2.0), 10, fills[key])
            title = f"{count:,} {say(f'shares.{key}')}"
            drawn += f"<g><title>{escape(title)}</title>{bar}</g>"
            start += share
    return _strip("chart share", 1000, name, drawn) if drawn else ""


def size_bar(size: int, largest: int) -> str:
    """Return a bar for a table cell: a size relative to the largest."""
    width = max(100 * size / largest, 1.0)  # the bar of a small size must be visible
    return _strip("size", 100, f"{size:,}", _rect(0, 0, width, 10, "kept"))


def distance_chart(report: ReportValues) -> str:
    """Return the bars of the Hamming distances in a report, or an empty string if it has none."""
    distances = report.get("distances") or ()
    rows = []
    for distance, count in enumerate(distances):
        title = say("charts.at_distance", count=count, distance=distance)
        label = say("words.bits", bits=distance)
        rows.append(Bar(label=label, value=count, title=title, fill="near"))
    return bars(rows if any(distances) else (), name=say("charts.distances"))


def similarity_chart(report: ReportValues) -> str:
    """Return the histogram of the similarities in a report, or an empty string if it has none."""
    similarities = report.get("similarities") or {}
    return histogram(
        similarities.get("edges") or [],
        similarities.get("counts") or [],
        x_label=say("words.similarity"),
        y_label=say("words.near_duplicates"),
        name=say("charts.similarities"),
    )


def sweep_chart(report: ReportValues) -> str:
    """Return the bars of the removed documents at each threshold in the report of a sweep."""
    rows = [
        Bar(
            label=f"{row['threshold']:g}",
            value=row["removed"],
            title=say("charts.swept_at", **row),
            fill="near",
        )
        for row in report["thresholds"]
    ]
    return bars(rows, name=say("charts.swept"))


def pairs_chart(report: ReportValues) -> str:
    """Return two bars, the compared pairs at the threshold and below it, or an empty string.

    Copies are found without a comparison. The run does not keep the similarity of the pairs below:
    it stops comparing two documents once they cannot reach the threshold.
    """
    counts = report.get("counts") or {}
    near = (counts.get("confirmed") or 0) - (counts.get("confirmed_exact") or 0)
    below = (counts.get("compared") or 0) - near
    # Reports of some methods lack the counts.
    if below <= 0 or near < 0:
        return ""
    rows = [
        Bar(
            label=say("words.near_duplicates"),
            value=near,
            title=say("charts.reached", near=near),
            fill="near",
        ),
        Bar(
            label=say("charts.below"),
            value=below,
            title=say("charts.missed", below=below),
            fill="exact",
        ),
    ]
    return bars(rows, name=say("charts.pairs"))


def cluster_chart(report: ReportValues) -> str:
    """Return the bars of the cluster sizes in a report, or an empty string if it has none."""
    rows = [
        Bar(
            label=each.sizes, value=each.clusters, title=say("charts.clusters_of", **each._asdict())
        )
        for each in size_classes(report.get("cluster_sizes") or ())
    ]
    return bars(rows, name=say("charts.clusters"), logarithmic=True)


def time_chart(report: ReportValues) -> str:
    """Return the bars of the seconds by stage in a report, or an empty string if it has none."""
    timings = report.get("timings") or ()
    total = sum(timing["seconds"] for timing in timings) or 1.0
    rows = []
    for timing in timings:
        name = str(timing["stage"])
        seconds = timing["seconds"]
        stage = say(f"stages.{name}", name)
        rows.append(
            Bar(
                label=stage,
                value=seconds,
                shown=f"{duration(seconds)} · {percent(seconds / total)}",
                title=f"{stage}{say('words.colon')}{duration(seconds)}",
            )
        )
    return bars(rows, name=say("charts.seconds"))


class SizeClass(NamedTuple):
    """Clusters of similar sizes: the sizes as text, and the numbers of clusters and documents."""

    sizes: str
    clusters: int
    documents: int


def size_classes(cluster_sizes: Iterable[Sequence[int]]) -> list[SizeClass]:
    """Return the classes of clusters by size, ascending.

    Sizes of 5 and more are grouped up to powers of two: 5 to 8, 9 to 16, and so on.

    cluster_sizes : pairs of a size and the number of its clusters.
    """
    clusters: Counter[tuple[int, int]] = Counter()  # by lowest and highest size
    documents: Counter[tuple[int, int]] = Counter()
    for size, count in cluster_sizes:
        power = (size - 1).bit_length()
        limits = (size, size) if size <= 4 else (2 ** (power - 1) + 1, 2**power)
        clusters[limits] += count
        documents[limits] += size * count
    return [
        SizeClass(
            sizes=f"{low:,}" if low == high else f"{low:,}–{high:,}",
            clusters=clusters[low, high],
            documents=documents[low, high],
        )
        for low, high in sorted(clusters)
    ]


def _svg(name: str, height: int, parts: Sequence[str]) -> str:
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH} {height}" width="100%" role="img"'
        f' aria-label="{escape(name)}" font-size="13" font-family="system-ui, sans-serif">'
        f"{''.join(parts)}</svg>"
    )


def _strip(css_class: str, width: int, name: str, inner: str) -> str:
    """Return a drawing that is stretched to the width of the element around it."""
    return (
        f'<svg class="{css_class}" viewBox="0 0 {width} 10" preserveAspectRatio="none" role="img"'
        f' aria-label="{escape(name)}">{inner}</svg>'
    )


def _frame(x_label: str, y_label: str) -> list[str]:
    """Return the base line and both axis titles; the vertical one is horizontal, above its axis."""
    return [
        f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{_BOTTOM}" y2="{_BOTTOM}" stroke="currentColor"/>',
        _text(_RIGHT, _HEIGHT - 5, f"{x_label} →", "end"),
        _text(4, _TOP - 15, f"↑ {y_label}", "start"),
    ]


def _across(share: float) -> float:
    return _LEFT + share * (_RIGHT - _LEFT)


def _up(share: float) -> float:
    return _BOTTOM - share * (_BOTTOM - _TOP)


def _y_tick(share: float, label: str) -> str:
    y = _up(share)
    return (
        f'<line x1="{_LEFT}" x2="{_RIGHT}" y1="{_number(y)}" y2="{_number(y)}" '
        'stroke="currentColor" stroke-opacity="0.14"/>'
        f"{_text(_LEFT - 7, y + 4.5, label, 'end')}"
    )


def _percent_ticks() -> list[str]:
    """Return the ticks of a vertical axis from 0 % to 100 %."""
    return [_y_tick(tick / 100, f"{tick} %") for tick in (0, 25, 50, 75, 100)]


def _x_tick(share: float, label: str) -> str:
    return _x_label(_across(share), label)


def _x_label(x: float, label: str) -> str:
    """Return a label below the plot."""
    return _text(x, _BOTTOM + 17, label, "middle")


def _hover(x: float, width: float, title: str, inner: str) -> str:
    """Return a strip as high as the plot, which shows `title` on hover even over a short bar."""
    strip = _rect(x, _TOP, width, _BOTTOM - _TOP, "strip")
    return f"<g><title>{escape(title)}</title>{strip}{inner}</g>"


def _rect(x: float, y: float, width: float, height: float, css_class: str) -> str:
    return (
        f'<rect class="{css_class}" x="{_number(x)}" y="{_number(y)}" width="{_number(width)}"'
        f' height="{_number(height)}" fill="{_FILLS.get(css_class, "transparent")}"/>'
    )


def _text(x: float, y: float, text: str, anchor: str) -> str:
    position = f'x="{_number(x)}" y="{_number(y)}" text-anchor="{anchor}"'
    return f'<text {position} fill="currentColor">{escape(text)}</text>'


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _ticks(low: float, high: float, count: int) -> list[float]:
    """Return the multiples of 1, 2 or 5 times a power of ten in [low, high], about `count`."""
    if high == low:
        return [low]
    # The power of ten at or below the ideal step.
    power = 10.0 ** math.floor(math.log10((high - low) / count))
    steps = [factor * power for factor in (1, 2, 5, 10)]
    # The quotients are rounded: 1e-9 of the range keeps a tick at either end.
    step = next(step for step in steps if step * count >= (high - low) * (1 - 1e-9))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(index * step, 10) for index in range(first, last + 1)]
