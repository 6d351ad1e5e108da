"""Judge what says that two pages share a template: the tables of
benchmarks/results/accuracy-pages.md.

    python tools/measure_pages.py ../shared/data [recipes forms docs zh_news templates news]

Every pair of pages of a set is measured, without a search, so that the measure is judged and
nothing else; last comes what a run finds. The label is the site; of `templates`, made by
tools/make_template_pages.py, the template; of `news`, made by tools/make_news_pages.py, the
publisher. A threshold is also chosen on one half of the sites and
scored on the other, over SPLITS draws. html-similarity is left out with a message where it is not
installed. Two runs print the same.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from make_examples import read_records
from page_pairs import (
    Closeness,
    Ints,
    Pages,
    cosine,
    jaccard,
    members_of,
    number,
    shared_weights,
    weigh_rare,
)
from page_rivals import (
    by_classes,
    by_html_similarity,
    by_tag_sequence,
    classes_of,
    gryffin_tokens,
)

import neardup
from neardup.features.page_structure import shingle_pages
from neardup.settings.methods import METHODS
from neardup.verify.scores import best_of, count_within

SETS = ("recipes", "forms", "docs", "zh_news")  # and those of MADE, where they are made
MADE = ("templates", "news")
WORK = Path(__file__).resolve().parent.parent / "benchmarks" / "work"
SPLITS = 20
CURVE = np.array([0.2, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6])


class Row(NamedTuple):
    """A measure. limit : the threshold or distance it is known by; None if there is none."""

    measure: Callable[[Pages], Closeness | None]
    limit: float | None


def load(folder: Path, name: str) -> Pages:
    """Read a set."""
    records = read_records((WORK if name in MADE else folder / "html_sites") / f"{name}.jsonl.zst")
    codes = np.unique([record["site"] for record in records], return_inverse=True)[1].astype(
        np.int64
    )
    return Pages(name, [record["html"] for record in records], codes)


# neardup's measures


def by_sets(method: neardup.MinHash) -> Callable[[Pages], Closeness]:
    """Return the measure that a method confirms with, of all pairs."""

    def measure(pages: Pages) -> Closeness:
        shingles = shingle_pages(pages.column, method.ngram)
        members = members_of(shingles.hashes, np.diff(shingles.offsets))
        weights = weigh_rare(members, len(pages.html))
        shared = shared_weights(
            members, weights if method.boost_rare else np.ones_like(weights), len(pages.html)
        )
        return Closeness((cosine if method.similarity == "cosine" else jaccard)(shared), True)

    return measure


def by_sets_and_classes(pages: Pages) -> Closeness:
    """Return the default measure with the words of class attributes beside the shingles."""
    shingles = shingle_pages(pages.column, STRUCTURE.ngram)
    rows = zip(shingles.offsets[:-1].tolist(), shingles.offsets[1:].tolist(), strict=True)
    lists: list[Iterable[object]] = [
        [*shingles.hashes[start:stop].tolist(), *classes]
        for (start, stop), classes in zip(rows, classes_of(pages), strict=True)
    ]
    members = number(lists)
    num_pages = len(pages.html)
    return Closeness(
        cosine(shared_weights(members, weigh_rare(members, num_pages), num_pages)), True
    )


def by_mean_with_classes(pages: Pages) -> Closeness:
    """Return the mean of the default measure and of the Jaccard similarity of class sets."""
    return Closeness((by_sets(STRUCTURE)(pages).values + by_classes(pages).values) / 2, True)


def by_fingerprints(method: neardup.SimHash) -> Callable[[Pages], Closeness]:
    """Return the distance of two fingerprints; a page without features is far from all."""

    def measure(pages: Pages) -> Closeness:
        signed = neardup.sign(pa.table({"text": pages.column}), method=method)
        values = signed.values[:, 0]
        empty = signed.empty
        distances = np.bitwise_count(values[:, None] ^ values).astype(np.float32)
        distances[empty[:, None] | empty] = 64
        return Closeness(distances, False)

    return measure


# The rows

GRYFFIN = neardup.SimHash(
    tokens=gryffin_tokens,
    ngram=3,
    weights="tf",
    hash="fnv1",
    nfkc=False,
    case_fold=False,
    confirm="hamming",
)

STRUCTURE = neardup.method("structure")


def sets_row(**settings: object) -> Row:
    """Return the row of structure() with other settings."""
    method = replace(STRUCTURE, **settings)
    return Row(by_sets(method), method.threshold)


def prints_row(method: object) -> Row:
    """Return the row of a method of fingerprints."""
    assert isinstance(method, neardup.SimHash)
    return Row(by_fingerprints(method), method.max_distance)


OWN = "**3 tags, cosine, rare ones count more**"
ROWS: dict[str, Row] = {
    OWN: sets_row(),
    "3 tags, cosine": sets_row(boost_rare=False),
    "3 tags, Jaccard, rare ones count more": sets_row(similarity="jaccard"),
    "3 tags, Jaccard": sets_row(similarity="jaccard", boost_rare=False),
    "2 tags, cosine, rare ones count more": sets_row(ngram=2),
    "4 tags, cosine, rare ones count more": sets_row(ngram=4),
    "**SimHash of 3 tags**": prints_row(METHODS["tags"]),
    "**decay**": prints_row(neardup.method("decay")),
    "decay, 0.85": prints_row(neardup.method("decay", decay=0.85)),
    "**paths**": prints_row(neardup.method("paths")),
    "paths, 0.85": prints_row(neardup.method("paths", decay=0.85)),
    "gryffin": Row(by_fingerprints(GRYFFIN), 2),
    "4 names of tags, Jaccard": Row(by_tag_sequence, None),
    "class sets, Jaccard": Row(by_classes, None),
    "3 tags and classes in one set, cosine, rare ones count more": Row(by_sets_and_classes, None),
    "3 tags, class sets: the mean of both": Row(by_mean_with_classes, None),
    "html-similarity": Row(by_html_similarity(0.5, 0.4), None),
    "html-similarity, k=0.3": Row(by_html_similarity(0.3, 0.3), None),
}


# Scoring


class Judged(NamedTuple):
    """What is known of a measure on a set. other : by split, F1 on sites that did not choose the
    limit; chosen : it.
    """

    as_set: neardup.lsh.Score | None
    best: neardup.lsh.Score
    other: npt.NDArray[np.float64]
    chosen: npt.NDArray[np.float64]


def scores_of(
    close: Closeness, codes: Ints, pages: Ints, limits: npt.NDArray[np.float64]
) -> list[neardup.lsh.Score]:
    """Return the score of some pages at each limit."""
    left, right = (pages[places] for places in np.triu_indices(len(pages), 1))
    values = close.values[left, right].astype(np.float64).round(6)
    same = codes[left] == codes[right]
    found = count_within(limits, values, at_least=close.alike)
    correct = count_within(limits, values[same], at_least=close.alike)
    counts = zip(limits.tolist(), found.tolist(), correct.tolist(), strict=True)
    return [neardup.lsh.Score(*one, int(same.sum())) for one in counts]


def judge(close: Closeness, codes: Ints, limit: float | None) -> Judged:
    """Score a measure at its default threshold, at its best, and with a limit from other sites."""
    every = np.arange(len(codes))
    as_set = None if limit is None else scores_of(close, codes, every, np.array([limit]))[0]
    best = best_of(scores_of(close, codes, every, close.limits), at_least=close.alike)
    chosen, other = zip(
        *(choose_and_score(close, codes, *halves) for halves in split(codes)), strict=True
    )
    return Judged(as_set, best, np.array(other), np.array(chosen))


def choose_and_score(
    close: Closeness, codes: Ints, first: Ints, second: Ints
) -> tuple[float, float]:
    """Return the best limit of the first pages, and F1 on the second ones with it."""
    limit = best_of(scores_of(close, codes, first, close.limits), at_least=close.alike).limit
    return limit, scores_of(close, codes, second, np.array([limit]))[0].f1 or 0.0


def split(codes: Ints) -> Iterator[tuple[Ints, Ints]]:
    """Yield the pages of two halves of the sites, each time drawn anew; where a half has no pair,
    another is drawn.
    """
    draw = np.random.default_rng(1)

    def halves() -> Iterator[tuple[Ints, Ints]]:
        while True:
            mine = np.isin(codes, draw.permutation(codes.max() + 1)[: (codes.max() + 1) // 2])
            if all(np.bincount(codes[half]).max() > 1 for half in (mine, ~mine)):
                yield np.flatnonzero(mine), np.flatnonzero(~mine)

    return islice(halves(), SPLITS)


# Printing


def print_tables(folder: Path, names: list[str]) -> None:
    """Print the sets, what each measure says of them, and what a run finds."""
    sets = [load(folder, name) for name in names]
    print(
        "| set | pages | sites | with two pages or more | pairs to find | all pairs "
        "|\n|---|---:|---:|---:|---:|---:|"
    )
    for pages in sets:
        sizes = np.bincount(pages.codes)
        pairs = [int((one * (one - 1) // 2).sum()) for one in (sizes, np.array([len(pages.codes)]))]
        print(
            f"| {pages.name} | {len(pages.codes):,} | {len(sizes):,} | {(sizes > 1).sum():,} | ",
            end="",
        )
        print(f"{pairs[0]:,} | {pairs[1]:,} |")
    columns = [{name: one for name in ROWS if (one := measure(pages, name))} for pages in sets]
    for title, cell in (
        ("at the default threshold", cell_as_set),
        ("at its best", cell_at_best),
        ("other half", cell_of_others),
    ):
        print(f"\n| {title} | " + " | ".join(names) + " |\n|---|" + "---:|" * len(names))
        for name in columns[0]:
            cells = [cell(column[name]) for column in columns]
            if any(cells):
                print(f"| {name} | " + " | ".join(cells) + " |")
    print("\n| threshold | " + " | ".join(names) + " |\n|---|" + "---:|" * len(names))
    curves = [
        scores_of(by_sets(STRUCTURE)(pages), pages.codes, np.arange(len(pages.codes)), CURVE)
        for pages in sets
    ]
    for scores in zip(*curves, strict=True):
        print(f"| {scores[0].limit:g} | " + " | ".join(map(cell_of, scores)) + " |")
    print(
        "\n| a run | pairs at the threshold | found | precision / recall; F1 "
        "|\n|---|---:|---:|---:|"
    )
    for pages in sets:
        print(run_row(pages))


def measure(pages: Pages, name: str) -> Judged | None:
    """Return what is known of one measure, and say how far it is."""
    started = time.perf_counter()
    close = ROWS[name].measure(pages)
    judged = None if close is None else judge(close, pages.codes, ROWS[name].limit)
    print(f"{pages.name}: {name}, {time.perf_counter() - started:.1f} s", file=sys.stderr)
    return judged


def run_row(pages: Pages) -> str:
    """Return the row of what `neardup.evaluate` finds with bands, out of the pairs that there
    are.
    """
    table = pa.table({"text": pages.column, "cluster": pages.codes.astype(str)})
    score = neardup.evaluate(table, method=STRUCTURE, max_bucket_size=100_000).at_threshold
    exact = scores_of(
        by_sets(STRUCTURE)(pages), pages.codes, np.arange(len(table)), np.array([score.limit])
    )[0]
    share = 100 * score.found / exact.found
    return f"| {pages.name} | {exact.found:,} | {share:.2f} % | {cell_of(score)} |"


def cell_of(score: neardup.lsh.Score) -> str:
    """Return precision / recall in per cent, and F1."""
    precision = "none" if score.precision is None else f"{100 * score.precision:.1f}"
    return f"{precision} / {100 * (score.recall or 0.0):.1f}; {score.f1 or 0.0:.3f}"


def cell_as_set(judged: Judged) -> str:
    """Return the figures at the threshold or distance that a measure is known by."""
    return "" if judged.as_set is None else cell_of(judged.as_set)


def cell_at_best(judged: Judged) -> str:
    """Return the highest F1 and where it is reached."""
    return f"{judged.best.f1 or 0.0:.3f} at {judged.best.limit:g}"


def cell_of_others(judged: Judged) -> str:
    """Return the mean of F1 over the splits, its standard deviation, and the limits that were
    chosen.
    """
    chosen = f"{judged.chosen.min():g} to {judged.chosen.max():g}"
    return f"{judged.other.mean():.3f} ± {judged.other.std(ddof=1):.3f} at {chosen}"


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    print_tables(folder, sys.argv[2:] or list(SETS))
