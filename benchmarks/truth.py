"""Measure a result against exact Jaccard similarity, computed without any of neardup's code.

A seeded sample of documents is compared with ALL documents of the corpus: the Jaccard similarity of
their sets of word 5-grams (words as in `peers/words.py`), through an inverted index of the sample's
shingle hashes. A *partner* of a document is another with similarity >= the threshold. For a tool's
set of removed rows:

right removal      a sampled document is removed, and some partner of it is kept.
wrong removal      a sampled document is removed, and no partner of it is kept: its content is lost.
miss               a sampled document is kept, and an EARLIER partner is kept too. A pair left in counts
                   once, at its later document: which of the two a tool prefers to
                   keep.
found share        right / (right + misses); None when both are 0.
wrong share        wrong / (right + wrong); None when nothing sampled was removed.
pairs found share  of all pairs (sampled document, partner), those of which at least one is removed.
                   Its denominator is the same for all tools. A tool that removes too much does well
                   here, and badly in wrong share.

The definitions look only at what is kept. A tool that merges chains A~B~C into one cluster loses
nothing in the found share; it pays where the chain takes away a document that resembles no kept
one: its real cost.

    python truth.py bulk.parquet removed.parquet [--sample 2000]
"""  # noqa: E501

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from peers.words import words

NGRAM = 5
_U64 = np.uint64
_BASE = _U64(0x9FB21C651E98DF25)


class Truth(NamedTuple):
    """Every pair (sampled document, partner), as rows. similarity : float64, the others int64."""

    sample: np.ndarray
    left: np.ndarray
    right: np.ndarray
    similarity: np.ndarray
    num_rows: int


class Quality(NamedTuple):
    """Counts and shares as defined at the top of the module."""

    sampled: int
    with_partner: int
    right: int
    wrong: int
    missed: int
    found_share: float | None
    wrong_share: float | None
    pairs_found_share: float | None


def _mix(values: np.ndarray) -> np.ndarray:
    """Scatter 64-bit values (the finaliser of SplitMix64, Steele et al. 2014): a bijection."""
    values = values + _U64(0x9E3779B97F4A7C15)
    values = (values ^ (values >> _U64(30))) * _U64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> _U64(27))) * _U64(0x94D049BB133111EB)
    return values ^ (values >> _U64(31))


class _Shingler:
    """Turns texts into sets of shingle hashes; equal words get equal numbers for its lifetime."""

    def __init__(self) -> None:
        self._numbers: defaultdict[str, int] = defaultdict()
        self._numbers.default_factory = self._numbers.__len__

    def hashes(self, text: str) -> np.ndarray:
        """Return the sorted distinct 64-bit shingle hashes of a text."""
        tokens = words(text)
        numbers = np.fromiter(
            map(self._numbers.__getitem__, tokens), dtype=np.uint64, count=len(tokens)
        )
        if len(numbers) == 0:
            return numbers
        scattered = _mix(numbers)
        size = min(NGRAM, len(scattered))
        count = len(scattered) - size + 1
        rolled = np.full(count, size, dtype=np.uint64)
        for start in range(size):
            rolled = rolled * _BASE + scattered[start : start + count]
        return np.unique(rolled)


def _texts(path: Path) -> Iterator[str]:
    for batch in pq.ParquetFile(path).iter_batches(batch_size=1000, columns=["text"]):
        for text in batch.column(0):
            yield text.as_py() or ""


def find_partners(
    path: Path, *, threshold: float = 0.8, sample: int = 2000, seed: int = 1
) -> Truth:
    """Return all pairs of a sampled document with any other document that reach the threshold."""
    num_rows = pq.ParquetFile(path).metadata.num_rows
    chosen = np.sort(np.random.default_rng(seed).permutation(num_rows)[:sample])
    is_chosen = np.zeros(num_rows, dtype=bool)
    is_chosen[chosen] = True
    shingler = _Shingler()
    sets = [shingler.hashes(text) for row, text in enumerate(_texts(path)) if is_chosen[row]]
    sizes = np.array([len(one) for one in sets])
    flat = np.concatenate(sets)
    owners = np.repeat(np.arange(len(sets)), sizes)[np.argsort(flat, kind="stable")]
    index, starts = np.unique(np.sort(flat), return_index=True)
    stops = np.append(starts[1:], len(flat))

    lefts = []
    rights = []
    similarities = []
    for row, text in enumerate(_texts(path)):
        own = shingler.hashes(text)
        places = np.minimum(np.searchsorted(index, own), len(index) - 1)
        places = places[index[places] == own]
        lengths = stops[places] - starts[places]
        if not len(places):
            continue
        # The owners of all hit shingles, one after the other: ranges of `owners`, without a loop
        # over shingles.
        steps = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        common = np.bincount(
            owners[np.repeat(starts[places], lengths) + steps], minlength=len(sets)
        )
        similarity = common / np.maximum(sizes + len(own) - common, 1)
        partners = np.flatnonzero((similarity >= threshold - 1e-12) & (chosen != row))
        lefts.append(chosen[partners])
        rights.append(np.full(len(partners), row))
        similarities.append(similarity[partners])
    empty = [np.zeros(0, dtype=np.int64)]
    left = np.concatenate(lefts + empty)
    right = np.concatenate(rights + empty)
    return Truth(chosen, left, right, np.concatenate([*similarities, np.zeros(0)]), num_rows)


def load_or_find(path: Path, cache: Path, **settings: float | int) -> Truth:
    """Return `find_partners(path, **settings)`, from `cache` (an .npz) when it is there."""
    if cache.exists():
        with np.load(cache, allow_pickle=False) as stored:
            return Truth(
                *(stored[name] for name in Truth._fields[:-1]), num_rows=int(stored["num_rows"])
            )
    truth = find_partners(path, **settings)  # type: ignore[arg-type]
    np.savez_compressed(cache, **truth._asdict())
    return truth


def measure(truth: Truth, removed_rows: np.ndarray, among: np.ndarray | None = None) -> Quality:
    """Return the quality of a set of removed rows, over the sampled documents in the mask
    `among`.
    """
    kept = np.ones(truth.num_rows, dtype=bool)
    kept[removed_rows] = False
    among = np.ones(truth.num_rows, dtype=bool) if among is None else among
    pairs = among[truth.left]
    left = truth.left[pairs]
    right = truth.right[pairs]
    covered = np.zeros(truth.num_rows, dtype=bool)
    covered[left[kept[right]]] = True
    earlier = np.zeros(truth.num_rows, dtype=bool)
    earlier[left[kept[right] & (right < left)]] = True
    sample = truth.sample[among[truth.sample]]
    is_kept = kept[sample]
    num_right = int((~is_kept & covered[sample]).sum())
    num_wrong = int((~is_kept & ~covered[sample]).sum())
    num_missed = int((is_kept & earlier[sample]).sum())
    return Quality(
        sampled=len(sample),
        with_partner=len(np.unique(left)),
        right=num_right,
        wrong=num_wrong,
        missed=num_missed,
        found_share=_share(num_right, num_right + num_missed),
        wrong_share=_share(num_wrong, num_right + num_wrong),
        pairs_found_share=_share(int((~kept[left] | ~kept[right]).sum()), len(left)),
    )


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def removed_rows(path: Path) -> np.ndarray:
    """Return the `row` column of a removed.parquet, neardup's or an adapter's."""
    rows: np.ndarray = pq.read_table(path, columns=["row"]).column("row").to_numpy()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("removed", type=Path, nargs="+")
    parser.add_argument("--threshold", type=float, default=0.8)
    parser.add_argument("--sample", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    began = time.perf_counter()
    truth = find_partners(args.corpus, threshold=args.threshold, sample=args.sample, seed=args.seed)
    print(
        f"{len(truth.sample)} of {truth.num_rows} documents sampled, {len(truth.left)} pairs, "
        f"{time.perf_counter() - began:.1f} s"
    )
    for path in args.removed:
        print(path, json.dumps(measure(truth, removed_rows(path))._asdict()))


if __name__ == "__main__":
    main()
