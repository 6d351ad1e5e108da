"""Score every method on every labelled set, and what others do: the tables of
benchmarks/results/accuracy-methods.md.

    python tools/measure_methods.py ../shared/data [en_licenses zh_laws ...]

Needs the extra zh; the packages datasketch and simhash are left out with a message where they are
not installed. The sets are cut to MOST_BYTES and about MOST_TEXTS, whole groups, the same for all
methods. Seeds are fixed: two runs print the same.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from make_examples import Record, draw_groups, read_records
from measure_simhash import Labelled, judged_pairs, rewritten_answers

import neardup
from neardup.decide.clusters import first_members
from neardup.features.normalise import normalise
from neardup.features.shingles import shingle_documents
from neardup.verify.scores import SAME, UNKNOWN, Judgements, Labels

# of a set
MOST_BYTES = 8_000_000
MOST_TEXTS = 2_000
Places = npt.NDArray[np.uint32]
Pairs = tuple[Places, Places]
Pick = Callable[[Record], bool]

ENGLISH: dict[str, tuple[str, Pick]] = {
    "en_licenses, whole": ("en_licenses/data.jsonl.gz", lambda record: record["kind"] == "text"),
    "en_licenses, notices": (
        "en_licenses/data.jsonl.gz",
        lambda record: record["kind"] == "notice",
    ),
    "en_terms": ("en_terms/data.jsonl.zst", bool),
    "en_doc_versions": ("en_doc_versions/data.jsonl.zst", bool),
    "en_bible": ("en_bible/data.jsonl.zst", bool),
    "en_short_answers": ("en_short_answers/data.jsonl.gz", bool),
    "stsb-en": ("short_pairs/data.jsonl.gz", bool),
}
CHINESE: dict[str, tuple[str, Pick]] = {
    "zh_laws": ("zh_laws/data.jsonl.zst", bool),
    "zh_poetry": ("zh_poetry/data.jsonl.zst", bool),
    "zh_ts, documents": ("zh_ts/documents.jsonl.gz", bool),
    "zh_ts, sentences": ("zh_ts/sentences.jsonl.gz", bool),
    "stsb-zh": ("short_pairs/data.jsonl.gz", bool),
    "pawsx-zh": ("short_pairs/data.jsonl.gz", bool),
}
DEFAULT = "**MinHash, 5 words**"
LOOSER = (0.7, 0.5)
METHODS: dict[str, neardup.MinHash | neardup.SimHash] = {
    DEFAULT: neardup.MinHash(),
    "MinHash, 3 words": neardup.MinHash(ngram=3),
    "MinHash, 2 words": neardup.MinHash(ngram=2),
    "MinHash, 1 word": neardup.MinHash(ngram=1),
    "MinHash, 5 chars": neardup.MinHash(tokens="chars"),
    "MinHash, 3 jieba": neardup.MinHash(tokens="jieba", ngram=3),
    "containment, 5 words": neardup.MinHash(similarity="containment"),
    "**SimHash, words**": neardup.SimHash(),
    "SimHash, words that weigh 1": neardup.SimHash(weights="one"),
    "SimHash, 2 words": neardup.SimHash(ngram=2),
    "SimHash, 4 chars": neardup.SimHash(tokens="chars", ngram=4),
    "SimHash, jieba": neardup.SimHash(tokens="jieba"),
}


@dataclass
class Collection:
    """Texts and what is known of them. judged : pairs with verdicts, None where the texts have
    labels.
    """

    name: str
    table: pa.Table
    judged: pa.Table | None
    truth: Labels | Judgements

    @property
    def texts(self) -> list[str]:
        """The texts."""
        return self.table["text"].to_pylist()

    def score(self, pairs: Pairs, limit: float) -> neardup.lsh.Score:
        """Judge pairs of places as `neardup.evaluate` does."""
        verdicts = self.truth.judge(*pairs)
        positives = self.truth.count_positives(np.zeros(len(self.table), np.int64)).sum()
        return neardup.lsh.Score(
            limit, int((verdicts != UNKNOWN).sum()), int((verdicts == SAME).sum()), int(positives)
        )


# The sets


def load(folder: Path, name: str) -> Collection:
    """Read a set. Where a label is no verdict on two texts, the pairs that people judged count, and
    no others.
    """
    file, picked = {**ENGLISH, **CHINESE}[name]
    records = read_records(folder / file)
    if name == "en_short_answers":
        return from_pairs(name, rewritten_answers(records))
    if name.startswith(("stsb", "pawsx")):
        return from_pairs(name, judged_pairs(records, name))
    records = [record for record in records if picked(record)]
    size = sum(len(record["text"].encode()) for record in records)
    records = draw_groups(
        records, min(MOST_BYTES, size * MOST_TEXTS // len(records)), lambda group: True
    )
    texts = [record["text"] for record in records]
    if name.startswith("zh_ts"):
        texts = [normalise(text, neardup.MinHash(fold="chinese")) for text in texts]
    labels = pa.array([record["cluster"] or None for record in records], pa.string())
    codes = (
        labels.dictionary_encode()
        .indices.fill_null(-1)
        .to_numpy(zero_copy_only=False)
        .astype(np.int64)
    )
    return Collection(name, pa.table({"text": texts, "cluster": labels}), None, Labels(codes))


def from_pairs(name: str, data: Labelled) -> Collection:
    """Return texts of which only some pairs are judged, or all but a few."""
    verdicts = dict.fromkeys(map(tuple, data.relevant.tolist()), True)
    if data.unrelated is not None:
        verdicts |= dict.fromkeys(map(tuple, data.unrelated.tolist()), False)
    else:
        neutral = set(map(tuple, data.neutral.tolist()))
        others = set(combinations(range(len(data.texts)), 2)) - neutral - verdicts.keys()
        verdicts |= dict.fromkeys(others, False)
    left, right = np.array(sorted(verdicts), np.uint32).T
    same = np.array([verdicts[pair] for pair in sorted(verdicts)])
    ids = np.arange(len(data.texts)).astype(str)
    judged = pa.table({"left_id": ids[left], "right_id": ids[right], "duplicate": same})
    return Collection(
        name, pa.table({"id": ids, "text": data.texts}), judged, Judgements(left, right, same)
    )


# What others do


def datasketch_pairs(texts: list[str]) -> Pairs:
    """Return what MinHashLSH(threshold=0.8, num_perm=128) answers for each text; nothing confirms
    it.

    It signs the 64-bit hashes of the same shingles that neardup takes by default, so that only the
    method differs.
    """
    from datasketch import MinHash, MinHashLSH

    shingles = shingle_documents(pa.array(texts, pa.large_string()), neardup.MinHash())
    sets = [
        np.unique(shingles.hashes[a:b])
        for a, b in zip(shingles.offsets, shingles.offsets[1:], strict=False)
    ]
    index = MinHashLSH(threshold=0.8, num_perm=128)
    found: list[tuple[int, int]] = []
    for place, signed in enumerate(
        MinHash.generator(([one.tobytes() for one in each] for each in sets), num_perm=128)
    ):
        if not signed.is_empty():
            found += [(other, place) for other in index.query(signed)]
            index.insert(place, signed)
    return to_pairs(found)


def text_dedup_pairs(texts: list[str]) -> Pairs:
    """Return the pairs of each cluster that text-dedup would make: 5 words, 250 permutations,
    threshold 0.7.

    Its words are what stands between characters that are none, a run of Chinese among them; texts
    of fewer than five are left alone. Signatures are neardup's, cut into the 25 bands of 10 rows
    that its search for parameters chooses; texts that share a band are one cluster, chains too,
    unconfirmed.
    """
    split = [re.split(r"\W", text) for text in texts]
    runs = [[" ".join(words[i : i + 5]).lower() for i in range(len(words) - 4)] for words in split]
    signatures = neardup.sign(runs, method=neardup.MinHash(num_hashes=250))
    signed = np.flatnonzero(~signatures.empty).astype(np.uint32)
    firsts: list[Places] = []
    for band in np.split(signatures.values[signed], 25, axis=1):
        _, first, members = np.unique(band, axis=0, return_index=True, return_inverse=True)
        firsts.append(signed[first[members.ravel()]])
    clusters = first_members(len(texts), np.concatenate(firsts), np.tile(signed, len(firsts)))
    order = np.argsort(clusters, kind="stable")
    groups = np.split(order, np.flatnonzero(np.diff(clusters[order])) + 1)
    return to_pairs(
        [pair for group in groups if len(group) > 1 for pair in combinations(group.tolist(), 2)]
    )


def simhash_pairs(texts: list[str]) -> Pairs:
    """Return the pairs within distance 3 by the package simhash: runs of 4 characters, as it cuts a
    text itself.
    """
    from simhash import Simhash

    # A feature that occurs more often goes another way, to the same sum, but with NumPy 2 to an
    # OverflowError.
    Simhash.large_weight_cutoff = 1 << 40
    values = np.array([Simhash(text).value for text in texts], np.uint64)
    found = [
        (place, place + 1 + other)
        for place in range(len(values))
        for other in np.flatnonzero(
            np.bitwise_count(values[place + 1 :] ^ values[place]) <= 3
        ).tolist()
    ]
    return to_pairs(found)


def to_pairs(found: list[tuple[int, int]]) -> Pairs:
    """Return pairs of places as two arrays."""
    left, right = np.array(found, np.uint32).reshape(-1, 2).T
    return left, right


PEERS: dict[str, tuple[str, Callable[[list[str]], Pairs], float]] = {
    "datasketch, 5 words": ("datasketch", datasketch_pairs, 0.8),
    "text-dedup style, 5 words": ("neardup", text_dedup_pairs, 0.7),
    "simhash, 4 chars": ("simhash", simhash_pairs, 3),
}


# Measuring


def measure(
    data: Collection, chinese: bool
) -> dict[str, tuple[neardup.lsh.Score, neardup.lsh.Score | None]]:
    """Return by method what it finds at its default threshold, and the best of its curve; peers
    have no curve.
    """
    scores: dict[str, tuple[neardup.lsh.Score, neardup.lsh.Score | None]] = {}
    for name, method in METHODS.items():
        if chinese or method.tokens != "jieba":
            started = time.perf_counter()
            lowest = None if isinstance(method, neardup.SimHash) else 0.1
            result = neardup.evaluate(
                data.table,
                pairs=data.judged,
                method=method,
                max_bucket_size=100_000,
                curve_from=lowest,
            )
            scores[name] = result.at_threshold, result.best
            if name == DEFAULT:
                curve = {round(row["threshold"], 2): row for row in result.curve.to_pylist()}
                for threshold in LOOSER:
                    counts = (
                        curve[threshold][count] for count in ("found", "correct", "positives")
                    )
                    scores[f"MinHash, 5 words at {threshold}"] = (
                        neardup.lsh.Score(threshold, *counts),
                        None,
                    )
            tell(data.name, name, started)
    for name, (package, find, limit) in PEERS.items():
        if find_spec(package) is None:
            print(f"{package} is not installed: its row is left out", file=sys.stderr)
            continue
        started = time.perf_counter()
        scores[name] = data.score(find(data.texts), limit), None
        tell(data.name, name, started)
    return scores


def tell(data: str, method: str, started: float) -> None:
    """Say how far it is."""
    print(f"{data}: {method}, {time.perf_counter() - started:.1f} s", file=sys.stderr)


def print_tables(folder: Path, names: list[str], chinese: bool) -> None:
    """Print the sets, what each method finds at its default threshold, and the best that it can."""
    sets = [load(folder, name) for name in names]
    columns = [measure(data, chinese) for data in sets]
    print("\n| set | texts | MB | pairs to find |\n|---|---:|---:|---:|")
    for data, column in zip(sets, columns, strict=True):
        size = sum(len(text.encode()) for text in data.texts) / 1e6
        positives = column[DEFAULT][0].positives
        print(f"| {data.name} | {len(data.table):,} | {size:.1f} | {positives:,} |")
    for title, number, cell in (
        ("at the default threshold", 0, cell_as_set),
        ("at its best", 1, cell_at_best),
    ):
        print(f"\n| {title} | " + " | ".join(names) + " |\n|---|" + "---:|" * len(names))
        most = [
            max(shown(one[number]) for one in column.values() if one[number]) for column in columns
        ]
        for method in columns[0]:
            scores = [column[method][number] for column in columns]
            cells = [
                cell(one, shown(one) == best) for one, best in zip(scores, most, strict=True) if one
            ]
            if cells:
                print(f"| {method} | " + " | ".join(cells) + " |")


def cell_as_set(score: neardup.lsh.Score, best: bool) -> str:
    """Return precision / recall in per cent, and F1."""
    precision = "none" if score.precision is None else f"{100 * score.precision:.1f}"
    return f"{precision} / {100 * (score.recall or 0.0):.1f}; {mark(score, best)}"


def cell_at_best(score: neardup.lsh.Score, best: bool) -> str:
    """Return F1, and the threshold or distance it is reached at."""
    return f"{mark(score, best)} at {score.limit:g}"


def mark(score: neardup.lsh.Score, best: bool) -> str:
    """Return F1, bold if no method has more."""
    return f"**{shown(score)}**" if best else shown(score)


def shown(score: neardup.lsh.Score) -> str:
    """Return F1 with two digits; they sort as the numbers do."""
    return f"{score.f1 or 0.0:.2f}"


def wanted_sets(wanted: list[str]) -> list[str]:
    """Return the names of sets that begin with one of `wanted`, all without any; then its files."""
    named = [name for name in (*ENGLISH, *CHINESE) if name.startswith(tuple(wanted or [""]))]
    return named + [name for name in wanted if Path(name).is_file()]


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    wanted = sys.argv[2:]
    for sets in (ENGLISH, CHINESE):
        names = [name for name in sets if not wanted or any(name.startswith(one) for one in wanted)]
        if names:
            print_tables(folder, names, sets is CHINESE)
