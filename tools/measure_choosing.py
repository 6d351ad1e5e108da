"""Score the choice of `neardup sweep` on labelled sets: the table of
benchmarks/results/accuracy-choosing.md.

    python tools/measure_choosing.py ../shared/data [en_licenses zh_laws ... labelled.jsonl ...]

The sets are those of tools/measure_methods.py, cut the same way; a file of JSON lines with the
fields text and cluster is another set. The best setting is that of 1, 2, 3 and 5 words at
thresholds of 0.05 steps. Answers are simulated: pairs whose truth is known, drawn as `sweep --ask`
draws them, are answered by the labels, 20 times; where the answers contradict each other, it asks
again as the command does. Seeds are fixed. tools/measure_mistakes.py has wrong answers.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from make_examples import read_records
from measure_methods import CHINESE, ENGLISH, Collection, load, wanted_sets

import neardup
from neardup.arrays import arrow_of_strings
from neardup.features.described import Lists
from neardup.features.shingles import shingle_documents
from neardup.verify import asking, choosing
from neardup.verify.measured import similarity_of_lists
from neardup.verify.scores import SAME, UNKNOWN, Labels

NGRAMS = (1, 2, 3, 5)
DEFAULT = neardup.MinHash()
DRAWS = 20
ASKED = (9, 18, 27, 90)
ENOUGH = 0.9  # of the best F1
F1 = dict[tuple[int, float], float]


class Measured(NamedTuple):
    """The result of a set. speaks : whether the default is replaced. chosen : by number of answers,
    F1 of each draw.
    """

    name: str
    speaks: bool
    pick: neardup.MinHash | None
    scores: F1
    chosen: dict[int, list[float]]

    @property
    def best(self) -> float:
        """The best F1 of all settings."""
        return max(self.scores.values())

    @property
    def default(self) -> float:
        """The F1 of the default."""
        return self.scores[DEFAULT.ngram, DEFAULT.threshold]

    @property
    def picked(self) -> float:
        """The F1 of the clearest setting; of the default if there is none."""
        return (
            self.default if self.pick is None else self.scores[self.pick.ngram, self.pick.threshold]
        )


def read(folder: Path, name: str) -> Collection:
    """Return a known set, or that of a file."""
    if name in ENGLISH or name in CHINESE:
        return load(folder, name)
    records = read_records(Path(name))
    labels = pa.array([record["cluster"] or None for record in records], pa.string())
    codes = (
        labels.dictionary_encode()
        .indices.fill_null(-1)
        .to_numpy(zero_copy_only=False)
        .astype(np.int64)
    )
    table = pa.table({"text": [record["text"] for record in records], "cluster": labels})
    return Collection(Path(name).stem, table, None, Labels(codes))


def scores_of(data: Collection) -> F1:
    """Return the F1 of each setting."""
    scores: F1 = {}
    for ngram in NGRAMS:
        method = neardup.MinHash(ngram=ngram)
        found = neardup.evaluate(
            data.table,
            pairs=data.judged,
            method=method,
            max_bucket_size=100_000,
            curve_from=choosing.LOWEST,
        )
        scores |= {
            (ngram, round(row["threshold"], 2)): row["f1"] or 0.0 for row in found.curve.to_pylist()
        }
    return scores


class Known(NamedTuple):
    """The pairs of a set whose truth is known, from similarity 0.1 on, and their texts as lists of
    shingles of each length.
    """

    ngram: int
    left: npt.NDArray[np.uint32]
    right: npt.NDArray[np.uint32]
    similarity: npt.NDArray[np.float64]
    same: npt.NDArray[np.bool_]
    lists: dict[int, Lists]


class Answering(NamedTuple):
    """How pairs are answered. wrong : the share of wrong answers."""

    count: int
    wrong: float = 0.0
    min_precision: float = 0.6


def known_pairs(data: Collection, ngram: int) -> Known:
    """Search a set for the pairs that can be answered."""
    method = neardup.MinHash(ngram=ngram, threshold=choosing.LOWEST, recall=0.9)
    table = pa.table({"text": data.table["text"]})  # ids are row numbers
    pairs = neardup.find_pairs(table, method=method, max_bucket_size=100_000).pairs
    left, right = (pairs[name].cast(pa.uint32()).to_numpy() for name in ("left_id", "right_id"))
    verdicts = data.truth.judge(left, right)
    known = verdicts != UNKNOWN
    similarity = pairs["similarity"].to_numpy()[known].astype(np.float64)
    texts = arrow_of_strings(data.texts)
    lists = {}
    for length in asking.LENGTHS:
        shingles = shingle_documents(texts, neardup.MinHash(ngram=length))
        lists[length] = Lists(shingles.hashes, shingles.offsets)
    return Known(ngram, left[known], right[known], similarity, verdicts[known] == SAME, lists)


def answered(known: Known, scores: F1, how: Answering) -> list[float]:
    """Return the F1 of the settings that answers favour, for each draw."""
    found = []
    for seed in range(DRAWS):
        drawn = asking.draw_pool(known.similarity, seed)
        sample = compared(known, drawn)
        rows, same = draw(known, drawn, how, seed)
        estimates = asking.estimate(sample, rows, same)
        setting = DEFAULT.ngram, DEFAULT.threshold
        if estimates:
            decision = asking.decide(estimates, how.min_precision, *setting)
            if decision.changes:
                setting = decision.found.ngram, round(decision.found.threshold, 2)
        found.append(scores[setting])
    return found


def compared(known: Known, drawn: asking.Pool) -> asking.Sample:
    """Return the similarities of a pool by each length."""
    left = known.left[drawn.rows]
    right = known.right[drawn.rows]
    similarity = [
        similarity_of_lists(lists, lists, left, right, "jaccard") for lists in known.lists.values()
    ]
    return asking.Sample(tuple(known.lists), np.array(similarity), drawn.weight, known.ngram)


def draw(
    known: Known, pool: asking.Pool, how: Answering, seed: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the pairs of a pool that a sweep asks about, and again, and the answers."""
    similarity = known.similarity[pool.rows]
    is_wrong = (
        np.random.default_rng(1000 + seed).random(len(pool.rows)) < how.wrong
    )  # also where it is asked again
    says_yes = known.same[pool.rows] ^ is_wrong
    drawn = list(range(min(how.count, len(pool.rows))))
    waiting = list(range(len(drawn), len(pool.rows)))
    while again := asking.bands_to_ask_again(similarity[drawn], says_yes[drawn], how.count):
        bands = asking.band_of(similarity[waiting]).tolist()
        places = sorted(bands.index(each) for each in again if each in bands)
        if not places:
            break
        drawn += [waiting[place] for place in places]
        waiting = [pair for place, pair in enumerate(waiting) if place not in places]
    return np.array(drawn, np.int64), says_yes[drawn]


def measure(folder: Path, name: str) -> Measured:
    """Choose for a set, and score the choices."""
    started = time.process_time()
    data = read(folder, name)
    scores = scores_of(data)
    evaluated = time.process_time()
    suggestion = neardup.sweep(pa.table({"text": data.table["text"]})).suggestion
    assert suggestion is not None
    swept = time.process_time()
    ngram = 2 if suggestion.clearest is None else suggestion.clearest.ngram
    known = known_pairs(data, ngram)
    chosen = {asked: answered(known, scores, Answering(asked)) for asked in ASKED}
    result = Measured(data.name, suggestion.changes, suggestion.clearest, scores, chosen)
    times = evaluated - started, swept - evaluated, time.process_time() - swept
    print(
        f"{data.name}: {' + '.join(f'{each:.0f}' for each in times)} s; {suggestion}",
        file=sys.stderr,
    )
    return result


def print_tables(rows: list[Measured]) -> None:
    """Print the choices of all sets, and how many of them are good."""
    heads = " | ".join(f"{asked} answers" for asked in ASKED)
    print(f"| set | speaks | clearest setting | its F1 | best F1 | F1 of the default | {heads} |")
    print("|---|---|---|---:|---:|---:|" + "---:|" * len(ASKED))
    for row in rows:
        pick = "none" if row.pick is None else f"{row.pick.ngram} at {row.pick.threshold:g}"
        mark = "" if row.picked >= ENOUGH * row.best else " (short)"
        cells = [f"{np.mean(f1):.2f}, {min(f1):.2f}" for f1 in row.chosen.values()]
        print(
            f"| {row.name} | {'yes' if row.speaks else 'no'} | {pick} | {row.picked:.2f}{mark} | "
            f"{row.best:.2f} | {row.default:.2f} | {' | '.join(cells)} |"
        )
    speaking = [row for row in rows if row.speaks]
    good = sum(row.picked >= ENOUGH * row.best for row in speaking)
    worst = min((row.picked / row.default for row in speaking if row.default), default=1.0)
    total = sum(row.picked >= ENOUGH * row.best for row in rows)
    print(
        f"\n- It speaks on {len(speaking)} of {len(rows)} sets. Of these, {good} reach 90 % "
        "of the best F1, and the "
        f"least has {worst:.2f} of the F1 of the default.\n- The clearest setting reaches 90 "
        "% of the best F1 on "
        f"{total} of {len(rows)} sets, the default on "
        f"{sum(row.default >= ENOUGH * row.best for row in rows)}."
    )
    for asked in ASKED:
        reached = sum(
            float(np.mean(np.array(row.chosen[asked]) >= ENOUGH * row.best)) for row in rows
        )
        least = min(min(row.chosen[asked]) / row.default for row in rows if row.default)
        print(
            f"- {asked} answers reach 90 % of the best F1 on {reached:.1f} of {len(rows)} sets on "
            f"average; the least draw has {least:.2f} of the F1 of the default."
        )


if __name__ == "__main__":
    base = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    print_tables([measure(base, name) for name in wanted_sets(sys.argv[2:])])
