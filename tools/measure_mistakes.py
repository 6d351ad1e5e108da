"""Score the settings that answers favour where some answers are wrong: a table of
accuracy-choosing.md.

    python tools/measure_mistakes.py ../shared/data [en_licenses zh_laws ... labelled.jsonl ...]

The sets, the draws and the rule are those of tools/measure_choosing.py, with 27 answers: right
ones, and ones of which each is wrong with the probability 0.1, also where it is asked again. Seeds
are fixed.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
from measure_choosing import (
    DEFAULT,
    DRAWS,
    ENOUGH,
    Answering,
    answered,
    known_pairs,
    read,
    scores_of,
)
from measure_methods import wanted_sets

COUNT = 27
WRONG = 0.1
WAYS = {
    "right": Answering(COUNT),
    "one in ten wrong": Answering(COUNT, WRONG),
    "right, no least precision": Answering(COUNT, 0.0, 0.0),
    "one in ten wrong, no least precision": Answering(COUNT, WRONG, 0.0),
}
# Half of the texts have fewer than 20 different words, so that a sweep takes shingles of 1 word.
SHORT = ("stsb-en", "stsb-zh")


class Scored(NamedTuple):
    """The F1 of the default, of the best setting, and of each draw by the way of answering."""

    name: str
    default: float
    best: float
    chosen: dict[str, list[float]]

    def enough_of_default(self, way: str) -> int:
        """Return the number of draws with at least 90 % of the F1 of the default."""
        return sum(f1 >= ENOUGH * self.default for f1 in self.chosen[way])

    def enough_of_best(self, way: str) -> float:
        """Return the share of draws with at least 90 % of the best F1."""
        return float(np.mean([f1 >= ENOUGH * self.best for f1 in self.chosen[way]]))


def measure(folder: Path, name: str) -> Scored:
    """Simulate the answers for a set."""
    data = read(folder, name)
    scores = scores_of(data)
    known = known_pairs(data, 1 if data.name in SHORT else 2)
    chosen = {way: answered(known, scores, how) for way, how in WAYS.items()}
    return Scored(data.name, scores[DEFAULT.ngram, DEFAULT.threshold], max(scores.values()), chosen)


def print_tables(rows: list[Scored]) -> None:
    """Print the F1 of each set, and what the worst of them have."""
    print(f"| set | F1 of the default | best F1 | {' | '.join(WAYS)} |")
    print("|---|---:|---:|" + "---:|" * len(WAYS))
    for row in rows:
        cells = [
            f"{np.mean(f1):.2f}, {min(f1):.2f} ({row.enough_of_default(way)})"
            for way, f1 in row.chosen.items()
        ]
        print(f"| {row.name} | {row.default:.2f} | {row.best:.2f} | {' | '.join(cells)} |")
    print()
    for way in WAYS:
        mean = np.mean([np.mean(row.chosen[way]) for row in rows])
        least = min(row.enough_of_default(way) for row in rows)
        worst = min(min(row.chosen[way]) / row.default for row in rows if row.default)
        reached = sum(row.enough_of_best(way) for row in rows)
        print(
            f"- {way.capitalize()}: mean F1 {mean:.2f}. On the worst set, {least} of {DRAWS} draws "
            f"have at least 90 % of the F1 of the default; the least draw has {worst:.2f} of it. "
            f"90 % of the best F1 is reached on {reached:.1f} of {len(rows)} sets."
        )


if __name__ == "__main__":
    base = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    print_tables([measure(base, name) for name in wanted_sets(sys.argv[2:])])
