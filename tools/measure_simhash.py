"""Measure SimHash on labelled texts: the tables of benchmarks/results/accuracy-simhash.md.

    python tools/measure_simhash.py ../shared/data [length] [weights] [confirm]    # needs NumPy 2 and the extra zh

length: by the number of features, how often near-duplicates are missed at distance 3, and unrelated
texts collide. weights: which features and weights serve which texts. confirm: what
confirm="jaccard" catches, and what it costs. All three when none is named. Seeds are fixed: two
runs print the same.
"""  # noqa: E501

from __future__ import annotations

import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from make_examples import Record, read_records

import neardup
from neardup.features.described import Lists
from neardup.features.segmenters import segmenter_of
from neardup.fingerprints.simhash_documents import describe
from neardup.verify.measured import hamming_distances, similarity_of_lists

Ints = npt.NDArray[np.int64]
Pairs = Ints  # (num_pairs, 2), left < right
NEAR = 0.8
ALIKE = 0.5
UNRELATED = 0.3
LENGTHS = (1, 8, 16, 32, 64, 128, 256, 1024)
MOST = 20_000  # texts of one length
DISTANCES = 17


# What is measured on


@dataclass
class Labelled:
    """Texts, the pairs that a method should find, and those that count for nothing; all other pairs
    are unrelated.

    unrelated : where only some pairs were judged, those judged to differ.
    """

    texts: list[str]
    relevant: Pairs
    neutral: Pairs
    unrelated: Pairs | None
    chinese: bool
    fold: tuple[str, ...] = ()


def load(folder: Path, name: str) -> Labelled:
    """Read a set, and say which of its pairs count.

    To find: pairs under one label of ALIKE or more, in Jaccard similarity of runs of three words.
    Unrelated: pairs under two labels that are under UNRELATED. Copies and the rest count for
    nothing.
    """
    if name.startswith("short_pairs"):
        return judged_pairs(read_records(folder / "short_pairs" / "data.jsonl.gz"), name.split()[1])
    files = {
        "en_licenses": "data.jsonl.gz",
        "en_short_answers": "data.jsonl.gz",
        "zh_ts": "documents.jsonl.gz",
    }
    records = read_records(folder / name / files.get(name, "data.jsonl.zst"))
    if name == "zh_poetry":
        records = some_poems(records)
    if name == "en_licenses":
        records = [record for record in records if record["kind"] == "text"]
    texts = [record["text"] for record in records]
    if name == "en_short_answers":
        return rewritten_answers(records)
    chinese = name.startswith("zh")
    fold = ("chinese",) if name == "zh_ts" else ()
    method = neardup.MinHash(ngram=3, threshold=UNRELATED, recall=0.99, fold=fold)
    found = neardup.find_pairs(texts, method=method, max_bucket_size=100_000).pairs
    alike = to_pairs(found)
    copies = keys(alike[found["exact"].to_numpy(zero_copy_only=False)])
    labels = [record["cluster"] for record in records]
    wanted = np.array([labels[a] == labels[b] and bool(labels[a]) for a, b in alike.tolist()], bool)
    wanted &= (found["similarity"].to_numpy() >= ALIKE) & ~np.isin(keys(alike), copies)
    labelled = pairs_under_one_label(labels)
    neutral = np.concatenate([alike[~wanted], labelled[~np.isin(keys(labelled), keys(alike))]])
    return Labelled(texts, alike[wanted], neutral, None, chinese, fold)


def some_poems(records: list[Record]) -> list[Record]:
    """Return the poems of 4,000 labels, and 4,000 without one."""
    labels = sorted({record["cluster"] for record in records if record["cluster"]})
    chosen = set(random.Random(1).sample(labels, 4000))
    others = [record for record in records if not record["cluster"]]
    return [r for r in records if r["cluster"] in chosen] + random.Random(2).sample(others, 4000)


def rewritten_answers(records: list[Record]) -> Labelled:
    """Return the answers: those copied or lightly revised belong to their source."""
    relevant = []
    neutral = []
    for (a, left), (b, right) in combinations(enumerate(records), 2):
        if left["cluster"] != right["cluster"]:
            continue
        labels = {left["label"], right["label"]}
        if "source" in labels and labels & {"near_copy", "light_revision"}:
            relevant.append((a, b))
        elif "non" not in labels:
            neutral.append((a, b))
    return Labelled(
        [r["text"] for r in records], to_array(relevant), to_array(neutral), None, chinese=False
    )


def judged_pairs(records: list[Record], which: str) -> Labelled:
    """Return sentence pairs: of stsb those scored 4.5 and more against 2 and less, of pawsx both
    labels.
    """
    texts: list[str] = []
    relevant = []
    unrelated = []
    for record in records:
        if f"{record['set']}-{record['lang']}" != which:
            continue
        place = (len(texts), len(texts) + 1)
        texts += [record["text_a"], record["text_b"]]
        score = record.get("score")
        label = record.get("label")
        if label == 1 or (score is not None and score >= 4.5):
            relevant.append(place)
        elif label == 0 or (score is not None and score <= 2):
            unrelated.append(place)
    return Labelled(
        texts, to_array(relevant), to_array([]), to_array(unrelated), which.endswith("zh")
    )


def pairs_under_one_label(labels: list[str | None]) -> Pairs:
    """Return all pairs of texts with one label."""
    groups: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        if label:
            groups.setdefault(label, []).append(place)
    return to_array([pair for group in groups.values() for pair in combinations(group, 2)])


def to_array(pairs: list[tuple[int, int]]) -> Pairs:
    """Return pairs as an array."""
    return np.array(pairs, np.int64).reshape(-1, 2)


def to_pairs(table: pa.Table) -> Pairs:
    """Return the pairs of a result, whose ids are running numbers."""
    return np.stack(
        [table[name].cast(pa.int64()).to_numpy() for name in ("left_id", "right_id")], axis=1
    )


def keys(pairs: Pairs) -> Ints:
    """Return a number for each pair."""
    return pairs.min(axis=1) << 32 | pairs.max(axis=1) if len(pairs) else np.empty(0, np.int64)


# How it is measured


def fingerprints_of(
    texts: list[str], method: neardup.SimHash
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Return the fingerprints of texts, zero where there are none, and which have one."""
    signed = neardup.sign(texts, method=method)
    return signed.values[:, 0], ~signed.empty


def distances_of(fingerprints: npt.NDArray[np.uint64], pairs: Pairs) -> Ints:
    """Return the distance of each pair."""
    return hamming_distances(fingerprints[pairs[:, 0]], fingerprints[pairs[:, 1]]).astype(np.int64)


def pairs_within(texts: list[str], method: neardup.SimHash) -> Pairs:
    """Return the pairs within the distance of a method, whether or not their features are alike."""
    method = replace(method, confirm="hamming")
    return to_pairs(neardup.find_pairs(texts, method=method, max_bucket_size=100_000).pairs)


def jaccard_of(texts: list[str], method: neardup.SimHash, pairs: Pairs) -> npt.NDArray[np.float64]:
    """Return the Jaccard similarity of the features of each pair."""
    shingles = describe(pa.array(texts, pa.large_string()), method).shingles
    lists = Lists(shingles.hashes, shingles.offsets)
    return similarity_of_lists(lists, lists, pairs[:, 0], pairs[:, 1], "jaccard")


def count_distances(fingerprints: npt.NDArray[np.uint64], featured: npt.NDArray[np.bool_]) -> Ints:
    """Return how many of all pairs have each distance from 0 to 64."""
    values = fingerprints[featured]
    counts = np.zeros(65, np.int64)
    for place in range(len(values) - 1):
        counts += np.bincount(np.bitwise_count(values[place] ^ values[place + 1 :]), minlength=65)
    return counts


def percent(part: float, whole: float, digits: int = 1) -> str:
    """Return a share in per cent."""
    return f"{100 * part / whole:.{digits}f} %" if whole else ""


def print_row(cells: Iterable[object]) -> None:
    """Print a row of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def print_head(*heads: str) -> None:
    """Print the head of a table: the first column is text, the others are numbers."""
    print_row(heads)
    print("|---|" + "---:|" * (len(heads) - 1))


# (a) By length


def measure_lengths(folder: Path) -> None:
    """Print, for each language and length, what is missed and what collides at distance 3."""
    english = list(families(folder, "en"))
    chinese = list(families(folder, "zh"))
    cut_words = segmenter_of(neardup.Jieba())
    single = neardup.SimHash(tokens="whitespace")
    two = neardup.SimHash(tokens="whitespace", ngram=2)
    flat = neardup.SimHash(tokens="whitespace", weights="one")
    kinds = (
        ("English, words", english, cut_english, single),
        ("English, words that weigh 1", english, cut_english, flat),
        ("English, runs of 2 words", english, cut_english, two),
        ("Chinese, jieba words", chinese, cut_words, single),
        ("Chinese, characters", chinese, cut_characters, single),
    )
    for title, groups, cut, method in kinds:
        print(f"\n#### {title}\n")
        print_head(
            "features",
            "texts",
            "near pairs",
            "missed",
            "missed, from 0.9 on",
            "one word replaced: missed",
            "bits turned, median",
            "unrelated pairs found",
            "of all pairs",
            "in a million texts",
        )
        for low, texts in by_length(groups, cut):
            measure_length(low, texts, method)


def cut_english(text: str) -> list[str]:
    """Return the words of a text."""
    return re.findall(r"\w+", text.lower())


def cut_characters(text: str) -> list[str]:
    """Return the Chinese characters of a text, and its Latin words."""
    return re.findall(r"[\u3400-\u9fff]|[a-z0-9]+", text.lower())


def families(folder: Path, language: str) -> Iterator[list[str]]:
    """Yield groups of texts that may be near-duplicates: the texts of one label, whole and line by
    line.
    """
    names = {
        "en": (
            "en_licenses/data.jsonl.gz",
            "en_terms/data.jsonl.zst",
            "en_doc_versions/data.jsonl.zst",
            "en_bible/data.jsonl.zst",
            "en_short_answers/data.jsonl.gz",
        ),
        "zh": ("zh_laws/data.jsonl.zst", "zh_poetry/data.jsonl.zst", "zh_ts/documents.jsonl.gz"),
    }
    for name in names[language]:
        groups: dict[str, list[str]] = {}
        for number, record in enumerate(read_records(folder / name)):
            if record.get("script") != "hant":
                groups.setdefault(record["cluster"] or str(number), []).append(record["text"])
        chosen = sorted(groups)
        random.Random(3).shuffle(chosen)
        for label in chosen[:1500]:
            texts = groups[label]
            yield [*texts, *(line for text in texts for line in text.splitlines())]
    for record in read_records(folder / "short_pairs" / "data.jsonl.gz"):
        if record["lang"] == language:
            yield [record["text_a"], record["text_b"]]


def by_length(
    groups: list[list[str]], cut: Callable[[str], list[str]]
) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield each length and different texts of it, as tokens; whole groups at a time, so that pairs
    stay pairs.
    """
    classes: dict[int, dict[str, list[str]]] = {low: {} for low in LENGTHS}
    order = list(range(len(groups)))
    random.Random(4).shuffle(order)
    for number in order:
        for text in dict.fromkeys(groups[number]):
            words = cut(text)
            low = max((low for low in LENGTHS if low <= len(words)), default=None)
            if low is not None and len(classes[low]) < MOST:
                classes[low].setdefault(" ".join(words), words)
    for low, texts in classes.items():
        yield low, list(texts.values())


def measure_length(low: int, tokens: list[list[str]], method: neardup.SimHash) -> None:
    """Print the row of one length. What is near, and what unrelated, is said by single words,
    whatever the features.
    """
    texts = [" ".join(words) for words in tokens]
    fingerprints, featured = fingerprints_of(texts, method)
    near = neardup.find_pairs(
        texts,
        method=neardup.MinHash(tokens="whitespace", ngram=1, threshold=NEAR, recall=0.999),
        max_bucket_size=100_000,
    ).pairs
    near = near.filter(pa.compute.invert(near["exact"]))
    similarity = near["similarity"].to_numpy()
    distances = distances_of(fingerprints, to_pairs(near))
    nearer = distances[similarity >= 0.9]
    within = pairs_within(texts, method)
    collisions = int(
        (jaccard_of(texts, neardup.SimHash(tokens="whitespace"), within) < UNRELATED).sum()
    )
    all_pairs = len(texts) * (len(texts) - 1) // 2
    replaced = replace_one_each(tokens)
    moved = hamming_distances(fingerprints, fingerprints_of(replaced, method)[0])[featured]
    expected = collisions / all_pairs * 5e11
    high = next((f"{one - 1}" for one in LENGTHS if one > low), None)
    print_row(
        [
            f"{low} to {high}" if high else f"{low} and more",
            f"{len(texts):,}",
            f"{len(distances):,}",
            percent((distances > 3).sum(), len(distances)),
            percent((nearer > 3).sum(), len(nearer)),
            percent((moved > 3).sum(), len(moved)),
            f"{np.median(moved):.0f}",
            f"{collisions:,}",
            f"{all_pairs:,}",
            in_short(expected) if collisions else f"under {in_short(3 / all_pairs * 5e11)}",
        ]
    )


def in_short(number: float) -> str:
    """Return a large number with two digits that count."""
    return f"{float(f'{number:.1e}'):,.0f}"


def replace_one_each(tokens: list[list[str]]) -> list[str]:
    """Return each text with one word, drawn at random, replaced by one of another text."""
    draw = random.Random(5)
    replaced = []
    for words in tokens:
        other = draw.choice(draw.choice(tokens))
        place = draw.randrange(len(words))
        replaced.append(" ".join([*words[:place], other, *words[place + 1 :]]))
    return replaced


# (b) Weights

SETS = (
    "en_licenses",
    "en_terms",
    "en_doc_versions",
    "en_bible",
    "en_short_answers",
    "short_pairs stsb-en",
    "zh_laws",
    "zh_poetry",
    "zh_ts",
    "short_pairs stsb-zh",
    "short_pairs pawsx-zh",
)
WEIGHTS = {
    "one": {"weights": "one"},
    "tf": {"weights": "tf"},
    "tf-idf, top 20": {"weights": "tfidf"},
    "tf-idf, all": {"weights": "tfidf", "max_features": 0},
    "levels of the top 20": {"weights": "tfidf", "weight_levels": True},
}
FEATURES = {
    "words": ("words", 1),
    "2 words": ("words", 2),
    "3 words": ("words", 3),
    "4 chars": ("chars", 4),
}


@dataclass
class Score:
    """Precision and recall at distance 3 (or threshold 0.8), and the best F1 with where it is
    reached.
    """

    precision: float
    recall: float
    best: float
    at: float

    def cell(self) -> str:
        """Return the cell of a table."""
        precision = f"{100 * self.precision:.1f}" if self.recall else "none"
        return f"{self.best:.2f} at {self.at:g}; {precision} / {100 * self.recall:.1f}"


def score(right: Ints, wrong: Ints, total: int, at: list[float], default: int) -> Score:
    """Return how good each setting is: right and wrong pairs found with it."""
    precision = right / np.maximum(right + wrong, 1)
    recall = right / max(total, 1)
    f1 = 2 * right / np.maximum(right + wrong + total, 1)
    best = int(f1.argmax())
    return Score(float(precision[default]), float(recall[default]), float(f1[best]), at[best])


def score_simhash(data: Labelled, method: neardup.SimHash) -> Score:
    """Measure a method for each distance from 0 to 16."""
    fingerprints, featured = fingerprints_of(data.texts, method)

    def histogram(pairs: Pairs) -> Ints:
        pairs = pairs[featured[pairs].all(axis=1)]
        return np.bincount(distances_of(fingerprints, pairs), minlength=65)

    right = histogram(data.relevant)
    if data.unrelated is not None:
        wrong = histogram(data.unrelated)
    else:
        wrong = count_distances(fingerprints, featured) - right - histogram(data.neutral)
    distances = [float(one) for one in range(DISTANCES)]
    return score(
        right.cumsum()[:DISTANCES], wrong.cumsum()[:DISTANCES], len(data.relevant), distances, 3
    )


def score_minhash(data: Labelled) -> Score:
    """Measure shingles of five words for thresholds from 0.3 on."""
    method = neardup.MinHash(threshold=0.3, recall=0.99, fold=data.fold)
    found = neardup.find_pairs(data.texts, method=method, max_bucket_size=100_000).pairs
    place = keys(to_pairs(found))
    similarity = found["similarity"].to_numpy()
    relevant = np.isin(place, keys(data.relevant))
    if data.unrelated is not None:
        unrelated = np.isin(place, keys(data.unrelated))
    else:
        unrelated = ~relevant & ~np.isin(place, keys(data.neutral))
    thresholds = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    right = np.array([(relevant & (similarity >= t)).sum() for t in thresholds])
    wrong = np.array([(unrelated & (similarity >= t)).sum() for t in thresholds])
    return score(right, wrong, len(data.relevant), thresholds, 5)


def measure_weights(folder: Path) -> None:
    """Print a table of features and weights for each set: best F1 at which distance; precision /
    recall at 3.
    """
    for name in SETS:
        data = load(folder, name)
        against = (
            f"{len(data.unrelated):,} judged to differ"
            if data.unrelated is not None
            else "all others"
        )
        print(
            f"\n#### {name}: {len(data.texts):,} texts, {len(data.relevant):,} pairs to find "
            f"against {against}\n"
        )
        print_head("features", *WEIGHTS)
        for tokens, (kind, ngram) in kinds_of(data).items():
            methods = [
                neardup.SimHash(tokens=kind, ngram=ngram, fold=data.fold, **settings)
                for settings in WEIGHTS.values()
            ]
            print_row([tokens, *(score_simhash(data, method).cell() for method in methods)])
        print(f"\nMinHash, 5 words, at 0.8: {score_minhash(data).cell()}")


def kinds_of(data: Labelled) -> dict[str, tuple[str, int]]:
    """Return the kinds of features for a set."""
    return {
        **FEATURES,
        **({"jieba": ("jieba", 1), "2 jieba": ("jieba", 2)} if data.chinese else {}),
    }


# (c) confirm="jaccard"


def measure_confirm(folder: Path) -> None:
    """Print how alike the features are of pairs within distance 3: of those to find, and of
    unrelated ones.
    """
    print()
    print_head(
        "set",
        "features",
        "right",
        "lowest 1 %",
        "lowest 5 %",
        "median",
        "right, under 0.5",
        "unrelated",
        "highest",
        "unrelated, under 0.3",
        "under 0.5",
        "under 0.7",
    )
    for name in SETS:
        data = load(folder, name)
        for tokens, (kind, ngram) in kinds_of(data).items():
            if tokens in ("words", "3 words", "jieba"):
                method = neardup.SimHash(tokens=kind, ngram=ngram, fold=data.fold)
                print_row([name, tokens, *confirm_cells(data, method)])


def confirm_cells(data: Labelled, method: neardup.SimHash) -> list[str]:
    """Return the row of one set and kind of features."""
    within = pairs_within(data.texts, method)
    place = keys(within)
    similarity = jaccard_of(data.texts, method, within)
    relevant = np.isin(place, keys(data.relevant))
    right = similarity[relevant]
    if data.unrelated is not None:
        wrong = similarity[np.isin(place, keys(data.unrelated))]
    else:
        wrong = similarity[~relevant & ~np.isin(place, keys(data.neutral))]
    cells = [f"{len(right):,}"]
    cells += [f"{np.quantile(right, q):.2f}" for q in (0.01, 0.05, 0.5)] if len(right) else [""] * 3
    cells += [
        f"{(right < 0.5).sum():,}",
        f"{len(wrong):,}",
        f"{wrong.max():.2f}" if len(wrong) else "",
    ]
    return cells + [f"{(wrong < t).sum():,}" for t in (0.3, 0.5, 0.7)]


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    parts = {"length": measure_lengths, "weights": measure_weights, "confirm": measure_confirm}
    for part in sys.argv[2:] or parts:
        parts[part](folder)
