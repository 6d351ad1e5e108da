"""Score both grades of `neardup sweep`, the general setting for versions, and 27 answers on
labelled sets: the tables of benchmarks/results/accuracy-grades.md.

    python tools/measure_grades.py ../shared/data [en_licenses zh_laws ... labelled.jsonl ...]

The sets are those of tools/measure_methods.py, cut the same way; a file of JSON lines with the
fields text and cluster, as tools/make_kinds.py writes it, is another set. Answers are simulated as
tools/measure_choosing.py does it, 20 times. Seeds are fixed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from measure_choosing import (
    DEFAULT,
    ENOUGH,
    F1,
    NGRAMS,
    Answering,
    answered,
    known_pairs,
    read,
)
from measure_methods import wanted_sets

import neardup
from neardup.suggestion import Grades
from neardup.verify import choosing

WAYS = {"27 answers": Answering(27), "one in ten wrong": Answering(27, 0.1)}
GENERAL = (2, choosing.GENERAL)
WORTHY = 0.01  # of mean F1, that a higher general threshold may cost


class Scored(NamedTuple):
    """The result of a set. f1, precision : of each setting; a setting without pairs has a precision
    of 1. chosen : F1 of each draw by the way of answering.
    """

    name: str
    grades: Grades
    f1: F1
    precision: F1
    chosen: dict[str, list[float]]

    @property
    def best(self) -> float:
        """The best F1 of all settings."""
        return max(self.f1.values())

    @property
    def versions(self) -> tuple[int, float]:
        """The setting of the grade of versions."""
        method = self.grades.versions.method
        return method.ngram, round(method.threshold, 2)

    def reached(self, way: str) -> float:
        """Return the share of draws with at least 90 % of the best F1."""
        return float(np.mean([f1 >= ENOUGH * self.best for f1 in self.chosen[way]]))


def measure(folder: Path, name: str) -> Scored:
    """Sweep a set, and score its grades and the answers."""
    started = time.process_time()
    data = read(folder, name)
    f1: F1 = {}
    precision: F1 = {}
    for ngram in NGRAMS:
        found = neardup.evaluate(
            data.table,
            pairs=data.judged,
            method=neardup.MinHash(ngram=ngram),
            max_bucket_size=100_000,
            curve_from=choosing.LOWEST,
        )
        for row in found.curve.to_pylist():
            setting = ngram, round(row["threshold"], 2)
            f1[setting] = row["f1"] or 0.0
            precision[setting] = 1.0 if row["precision"] is None else row["precision"]
    grades = neardup.sweep(pa.table({"text": data.table["text"]})).grades
    assert grades is not None
    # Short texts are searched by 1 word.
    known = known_pairs(data, 1 if grades.versions.method.ngram == 1 else 2)
    chosen = {way: answered(known, f1, how) for way, how in WAYS.items()}
    print(f"{data.name}: {time.process_time() - started:.0f} s", file=sys.stderr)
    return Scored(data.name, grades, f1, precision, chosen)


def print_tables(rows: list[Scored]) -> None:
    """Print a row for each set, the means, and the general settings."""
    print(
        "| set | copies: F1, precision | versions at | F1, precision | best F1 | 2 words at "
        f"{choosing.GENERAL:g} | {' | '.join(WAYS)} | versions differ in |"
    )
    print("|---|---:|---:|---:|---:|---:|" + "---:|" * len(WAYS) + "---|")
    default = DEFAULT.ngram, DEFAULT.threshold
    for row in rows:
        cells = [
            f"{np.mean(f1):.2f}, {min(f1):.2f} ({row.reached(way):.0%})"
            for way, f1 in row.chosen.items()
        ]
        ngram, threshold = row.versions
        found = row.grades.versions.differences
        differences = "" if found is None else f"{found.names:.0%} names"
        if found is not None:
            differences += f", {found.passages:.0%} passages, {found.words:.0%} words"
        print(
            f"| {row.name} | {row.f1[default]:.2f}, {row.precision[default]:.2f} | {ngram} at "
            f"{threshold:g} | {row.f1[row.versions]:.2f}, {row.precision[row.versions]:.2f} | "
            f"{row.best:.2f} | {row.f1[GENERAL]:.2f} | {' | '.join(cells)} | {differences} |"
        )
    copies = np.mean([row.precision[default] for row in rows])
    versions = np.mean([row.f1[row.versions] for row in rows])
    print(
        f"\n- Means: copies F1 {np.mean([row.f1[default] for row in rows]):.2f}, precision "
        f"{copies:.2f}; versions F1 {versions:.2f}, precision "
        f"{np.mean([row.precision[row.versions] for row in rows]):.2f}; best F1 "
        f"{np.mean([row.best for row in rows]):.2f}; the general setting "
        f"{np.mean([row.f1[GENERAL] for row in rows]):.2f}."
    )
    for way in WAYS:
        mean = np.mean([np.mean(row.chosen[way]) for row in rows])
        share = np.mean([row.reached(way) for row in rows])
        print(
            f"- {way.capitalize()}: mean F1 {mean:.2f}; 90 % of the best F1 in {share:.0%} of "
            "the draws of all sets."
        )
    _print_general(rows)


def _print_general(rows: list[Scored]) -> None:
    """Print the mean F1 of one setting for all sets."""
    means = {
        setting: float(np.mean([row.f1[setting] for row in rows]))
        for setting in rows[0].f1
        if setting[0] == GENERAL[0]
    }
    best = max(means.values())
    near = [threshold for (_, threshold), mean in means.items() if mean >= best - WORTHY]
    listed = ", ".join(
        f"{mean:.2f} at {threshold:g}"
        for (_, threshold), mean in means.items()
        if 0.2 <= threshold <= 0.8
    )
    print(
        f"- Mean F1 of 2 words: {listed}. The highest threshold within {WORTHY:g} of the best is "
        f"{max(near):g}."
    )


if __name__ == "__main__":
    base = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    print_tables([measure(base, name) for name in wanted_sets(sys.argv[2:])])
