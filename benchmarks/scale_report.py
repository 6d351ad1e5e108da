"""Keep the figures of runs at scale in results/scale.csv, and write results/scale.md and its plot
from them.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import simhash_plot
from environment import conditions
from scale_check import Quality

_CORES = 2
_ENOUGH_DOCUMENTS = 5_000_000
_FIELDS = ("case", "metric", "value", "unit")
_CAVEATS = Path(__file__).resolve().parent / "scale_caveats.md"


class Case:
    """The figures of one case. values : by metric."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.values: dict[str, float] = {}
        self.units: dict[str, str] = {}

    def add(self, metric: str, value: float, unit: str) -> None:
        """Add a figure."""
        self.values[metric] = value
        self.units[metric] = unit


def add_stages(case: Case, took: dict[str, Any]) -> None:
    """Add the time, memory and disk of a run and of its stages."""
    case.add("wall time", took["wall_s"], "s")
    case.add("processor seconds", took["cpu_s"], "s")
    case.add("load", took["load"], "")
    case.add("peak memory", max(stage["peak_bytes"] for stage in took["stages"]), "B")
    case.add("peak disk", max(stage["disk_bytes"] for stage in took["stages"]), "B")
    for stage in took["stages"]:
        for metric in ("wall_s", "cpu_s", "peak_bytes", "disk_bytes"):
            case.add(
                f"{stage['stage']}: {metric}", stage[metric], "s" if metric.endswith("_s") else "B"
            )


def add_run(
    case: Case, facts: dict[str, Any], took: dict[str, Any], base_bytes: int, quality: Quality
) -> None:
    """Add the figures of a run over documents."""
    documents = facts["documents"]
    gigabytes = facts["bytes"] / 1e9
    add_stages(case, took)
    case.add("documents", documents, "")
    case.add("text", facts["bytes"], "B")
    case.add("input files", facts["disk"], "B")
    case.add("removed", took["report"]["counts"]["removed"], "")
    case.add("pairs measured", took["report"]["counts"]["compared"], "")
    case.add("GB per core-hour", gigabytes * 3600 / took["wall_s"] / _CORES, "")
    case.add("GB per processor-hour", gigabytes * 3600 / took["cpu_s"], "")
    case.add("base memory", base_bytes, "B")
    case.add("memory per document", (case.values["peak memory"] - base_bytes) / documents, "B")
    case.add("disk per document", case.values["peak disk"] / documents, "B")
    case.add("audited removals", quality.audited, "")
    case.add("wrong removals", quality.wrong, "")
    case.add("planted pairs", quality.planted, "")
    case.add("recall", quality.recall, "share")
    case.add("recall by plan", quality.expected, "share")
    case.add("copies found", quality.copies_found / max(1, quality.copies), "share")


def add_join(
    case: Case, took: dict[str, Any], pairs: int, planted: int, missed: int, file_bytes: int
) -> None:
    """Add the figures of a join of fingerprints."""
    add_stages(case, took)
    case.add("fingerprints", took["report"]["counts"]["fingerprints"], "")
    case.add("pairs", pairs, "")
    case.add("planted pairs", planted, "")
    case.add("missed", missed, "")
    case.add("input files", file_bytes, "B")


def save(results: Path, case: Case) -> None:
    """Write the figures of a case to scale.csv, in place of its earlier ones."""
    file = results / "scale.csv"
    rows = [row for row in read(results) if row["case"] != case.name]
    rows += [
        {"case": case.name, "metric": metric, "value": f"{value:.6g}", "unit": case.units[metric]}
        for metric, value in case.values.items()
    ]
    results.mkdir(parents=True, exist_ok=True)
    aside = file.with_suffix(".tmp")
    with open(aside, "w", newline="") as stream:
        writer = csv.DictWriter(stream, _FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    aside.replace(file)


def read(results: Path) -> list[dict[str, str]]:
    """Return the rows of scale.csv."""
    file = results / "scale.csv"
    if not file.exists():
        return []
    with open(file, newline="") as stream:
        return list(csv.DictReader(stream))


def write(results: Path, facts: dict[str, str]) -> None:
    """Write scale.md, and the plot of the growth."""
    cases: dict[str, dict[str, float]] = {}
    for row in read(results):
        cases.setdefault(row["case"], {})[row["metric"]] = float(row["value"])
    runs = {name: values for name, values in cases.items() if "GB per core-hour" in values}
    joins = {name: values for name, values in cases.items() if "fingerprints" in values}
    alike = {name: values for name, values in cases.items() if name.endswith("alike")}
    lines = [
        "# Benchmark: scale",
        "",
        _CAVEATS.read_text().format(**facts, conditions=conditions()).strip(),
        "",
    ]
    lines += _runs(runs) + _stages({**runs, **joins}) + _joins(joins)
    if alike:
        lines += [
            "## Near-identical documents",
            "",
            "![growth](scale-growth.svg)",
            "",
            *_alike(alike),
        ]
        points = {
            label: [(values["documents"], values[metric]) for values in alike.values()]
            for label, metric in (
                ("pairs measured", "pairs measured"),
                ("milliseconds of processor", "milliseconds"),
            )
            for values in alike.values()
            if values.setdefault("milliseconds", 1000 * values["processor seconds"])
        }
        plot = simhash_plot.growth(
            points,
            title="Near-identical documents",
            x_label="documents",
            y_label="pairs, milliseconds",
        )
        (results / "scale-growth.svg").write_text(plot)
    (results / "scale.md").write_text("\n".join(lines).rstrip() + "\n")


def _table(header: list[str], rows: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(row) + " |"
        for row in [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    ] + [""]


def _runs(runs: dict[str, dict[str, float]]) -> list[str]:
    rows = [
        [
            name,
            f"{v['text'] / 1e9:.2f}",
            f"{v['load']:.0f}",
            f"{v['wall time']:,.0f}",
            f"{v['processor seconds']:,.0f}",
            f"{v['GB per core-hour']:.0f}",
            f"{v['GB per processor-hour']:.0f}",
            f"{v['peak memory'] / 1e9:.2f}",
            _per_document(v),
            f"{v['peak disk'] / 1e9:.2f}",
            f"{v['disk per document']:,.0f}",
        ]
        for name, v in runs.items()
    ]
    judged = [
        [
            name,
            f"{v['removed']:,.0f}",
            f"{v['wrong removals']:.0f} of {v['audited removals']:,.0f}",
            f"{v['recall']:.2%}",
            f"{v['recall by plan']:.2%}",
            f"{v['planted pairs']:,.0f}",
            f"{v['copies found']:.2%}",
            "not tried"
            if "same result" not in v
            else "same rows"
            if v["same result"]
            else "**differs**",
            f"{v['resumed in']:,.0f}" if "resumed in" in v else "",
        ]
        for name, v in runs.items()
    ]
    header = [
        "case",
        "GB of text",
        "load",
        "wall, s",
        "CPU, s",
        "GB per core-hour",
        "GB per CPU-hour",
        "peak memory, GB",
        "bytes of memory a document",
        "scratch, GB",
        "bytes of scratch a document",
    ]
    return [
        "## Documents",
        "",
        *_table(header, rows),
        *_table(
            [
                "case",
                "removed",
                "wrong",
                "recall",
                "by plan",
                "planted pairs",
                "copies found",
                "killed and resumed",
                "resumed in, s",
            ],
            judged,
        ),
    ]


def _per_document(values: dict[str, float]) -> str:
    """Return the memory of a document; of few documents it would be that of the batches in
    flight.
    """
    return (
        f"{values['memory per document']:.0f}" if values["documents"] >= _ENOUGH_DOCUMENTS else ""
    )


def _stages(cases: dict[str, dict[str, float]]) -> list[str]:
    rows = []
    for name, values in cases.items():
        for stage in [
            metric.removesuffix(": wall_s") for metric in values if metric.endswith(": wall_s")
        ]:
            wall, cpu, peak, disk = (
                values[f"{stage}: {metric}"]
                for metric in ("wall_s", "cpu_s", "peak_bytes", "disk_bytes")
            )
            rows.append(
                [
                    f"{name}: {stage}",
                    f"{wall:,.1f}",
                    f"{cpu:,.1f}",
                    f"{peak / 1e9:.2f}",
                    f"{disk / 1e9:.2f}",
                ]
            )
    return [
        "## By stage",
        "",
        *_table(["case: stage", "wall, s", "CPU, s", "memory, GB", "scratch, GB"], rows),
    ]


def _joins(joins: dict[str, dict[str, float]]) -> list[str]:
    rows = [
        [
            name,
            f"{v['load']:.0f}",
            f"{v['wall time']:,.0f}",
            f"{v['processor seconds']:,.0f}",
            f"{v['peak memory'] / 1e9:.2f}",
            f"{v['input files'] / 1e9:.1f}",
            f"{v['pairs']:,.0f}",
            f"{v['missed']:.0f} of {v['planted pairs']:,.0f}",
        ]
        for name, v in joins.items()
    ]
    header = [
        "case",
        "load",
        "wall, s",
        "CPU, s",
        "peak memory, GB",
        "file, GB",
        "pairs",
        "planted pairs missed",
    ]
    return ["## All pairs within distance 3", "", *_table(header, rows)] if rows else []


def _alike(alike: dict[str, dict[str, float]]) -> list[str]:
    rows = [
        [
            name,
            f"{v['removed']:,.0f}",
            f"{v['pairs measured']:,.0f}",
            f"{v['pairs measured'] / v['documents']:.2f}",
            f"{v['processor seconds']:.1f}",
        ]
        for name, v in alike.items()
    ]
    return _table(["case", "removed", "pairs measured", "pairs a document", "CPU, s"], rows)
