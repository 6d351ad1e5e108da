"""Measure --noise on texts with simulated errors: the tables of
benchmarks/results/accuracy-noise.md.

    python tools/measure_noise.py ../shared/data [20000]

Passages of English and Chinese texts, unrelated to each other, and copies of a tenth of them with
errors of tools/noisy_texts.py; the files of examples/data take the place of a folder that is
missing. A number of passages makes it quicker. Seeds are fixed: two runs print the same but for the
times.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from itertools import combinations, pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from make_examples import read_records
from noisy_texts import passages, with_errors

import neardup
from neardup.features.shingles import shingle_documents

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "data"
SHARES = (0.01, 0.03, 0.05, 0.1, 0.15, 0.2)
ALL = "every text"
COPIES = "the copies"
LENGTHS = (150, 250, 350, 500, 1_000)
LONG = (1_000, 3_000, 10_000, 30_000, 100_000)
CLEAN_LENGTHS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
NOISES = (0.01, 0.03, 0.05, 0.1, 0.15)
MOST_NOISE = 0.15  # the maximum of --noise


@dataclass(frozen=True)
class Language:
    """Files of texts, the lengths of passages, and the run of words that unrelated passages share
    rarely.
    """

    name: str
    files: tuple[str, ...]
    examples: tuple[str, ...]
    lengths: tuple[int, int]
    run: int


ENGLISH = Language(
    "English",
    ("en_terms/data.jsonl.zst", "en_licenses/data.jsonl.gz", "en_bible/data.jsonl.zst"),
    ("terms-old.jsonl.zst", "licenses.parquet"),
    (250, 1_000),
    5,
)
CHINESE = Language("Chinese", ("zh_laws/data.jsonl.zst",), ("laws.parquet",), (150, 450), 10)
LANGUAGES = (ENGLISH, CHINESE)
CLEAN_SOURCES = (
    ("Bible", "en_bible/data.jsonl.zst", ENGLISH),
    ("terms of service", "en_terms/data.jsonl.zst", ENGLISH),
    ("licences", "en_licenses/data.jsonl.gz", ENGLISH),
    ("laws", "zh_laws/data.jsonl.zst", CHINESE),
)


# Texts


def one_of_each(paths: Iterable[Path]) -> list[str]:
    """Return the texts of files, the first of each cluster."""
    first: dict[str, str] = {}
    for path in paths:
        records = (
            pq.read_table(path).to_pylist() if path.suffix == ".parquet" else read_records(path)
        )
        for record in records:
            label = (
                record.get("cluster")
                or record.get("license")
                or record.get("title")
                or record["id"]
            )
            first.setdefault(f"{path.name} {label}", record["text"])
    return list(first.values())


@cache
def unrelated(folder: Path, language: Language, most: int) -> list[str]:
    """Return passages of which no two share a twentieth of the runs of some words of the shorter
    one, in any order.
    """
    named = [folder / name for name in language.files]
    paths = named if folder.exists() else [EXAMPLES / name for name in language.examples]
    draw = random.Random(7)
    cut = [
        text
        for text in passages(one_of_each(paths), *language.lengths, draw)
        if 2 * sum(map(str.isalnum, text)) > len(text)
    ]
    cut.sort(key=len, reverse=True)
    rule = neardup.MinHash(
        similarity="containment", threshold=0.05, ngram=language.run, recall=0.95
    )
    kept = neardup.dedup(cut, method=rule).mask
    texts = [text for text, stays in zip(cut, kept, strict=True) if stays]
    draw.shuffle(texts)
    return texts[:most]


def noisy(texts: list[str], share: float, which: str) -> list[str]:
    """Return texts, all with errors or none, and behind them a copy with other errors of every
    tenth of them.
    """
    draw = random.Random(9)
    first = [with_errors(text, share, draw) for text in texts] if which == ALL else texts
    return first + [with_errors(text, share, draw) for text in texts[: len(texts) // 10]]


# Accuracy


@dataclass(frozen=True)
class Found:
    """The removals of a run. right : for each copy, whether its original removed it."""

    removed: int
    right: npt.NDArray[np.bool_]
    compared: int

    @property
    def precision(self) -> float:
        """The share of the removals that are right."""
        return float(self.right.sum()) / max(1, self.removed)

    @property
    def recall(self) -> float:
        """The share of the copies that are removed."""
        return float(self.right.mean())

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        return 2 * float(self.right.sum()) / (self.removed + len(self.right))


def run(texts: list[str], method: neardup.MinHash) -> Found:
    """Remove the near-duplicates of texts of which the last are copies of the first."""
    result = neardup.dedup(pa.table({"text": texts}), method=method)
    copies = len(texts) // 11
    rows, kept = (result.removed[name].to_numpy() for name in ("row", "kept_row"))
    first = len(texts) - copies
    right = np.zeros(copies, np.bool_)
    right[rows[rows - first == kept] - first] = True
    return Found(len(rows), right, result.report["counts"]["compared"])


def setting(share: float, which: str, **others: Any) -> neardup.MinHash:
    """Return the settings that docs/ocr.md advises: half of the share where one
    text is clean.
    """
    method = neardup.method(noise=noise_of(share, which), **others)
    assert isinstance(method, neardup.MinHash)
    return method


def noise_of(share: float, which: str) -> float:
    """Return the value of --noise for texts with a share of errors."""
    return min(MOST_NOISE, share if which == ALL else share / 2)


def print_accuracy(folder: Path, most: int) -> None:
    """Print precision, recall and F1 by language, share and texts that have errors; then recall by
    length.
    """
    for language in LANGUAGES:
        texts = unrelated(folder, language, most)
        sizes = f"{min(map(len, texts)):,} to {max(map(len, texts)):,}"
        print(
            f"- {language.name}: {len(texts):,} passages of {sizes} characters, "
            f"{len(texts) // 10:,} copies."
        )
    print(
        "\n| texts | errors in | share | `--noise` | threshold | precision / recall | F1 | F1 "
        "of the default |"
    )
    print("|---|---|---:|---:|---:|---:|---:|---:|")
    by_length: list[str] = []
    for language in LANGUAGES:
        texts = unrelated(folder, language, most)
        for which in (ALL, COPIES):
            for share in SHARES:
                made = noisy(texts, share, which)
                method = setting(share, which)
                found = run(made, method)
                default = run(made, neardup.MinHash())
                noise = 100 * noise_of(share, which)
                print(
                    f"| {language.name} | {which} | {100 * share:g} % | {noise:g}% | "
                    f"{method.threshold:g} | {100 * found.precision:.1f} / "
                    f"{100 * found.recall:.1f} | **{found.f1:.3f}** | {default.f1:.3f} |"
                )
                by_length.append(
                    f"| {language.name} | {which} | {100 * share:g} % | "
                    + lengths(texts, found)
                    + " |"
                )
                tell(f"{language.name}, {which}, {share:g}")
    heads = [f"{low:,} to {high:,}" for low, high in pairwise(LENGTHS)]
    print(
        f"\n| recall by length | errors in | share | {' | '.join(heads)} |\n|---|---|---:|"
        + "---:|" * len(heads)
    )
    print("\n".join(by_length))


def lengths(texts: list[str], found: Found) -> str:
    """Return the recall of copies whose originals have so many characters."""
    sizes = np.array([len(text) for text in texts[: len(found.right)]])
    cells = []
    for low, high in pairwise(LENGTHS):
        of_length = found.right[(sizes >= low) & (sizes < high)]
        cells.append(f"{100 * of_length.mean():.1f}" if len(of_length) else "")
    return " | ".join(cells)


def print_settings(folder: Path, most: int) -> None:
    """Print what other settings find where every text has 10 % of errors, and how many pairs they
    compare.
    """
    others: dict[str, dict[str, Any]] = {"nothing": {}, "`--recall 0.9`": {"recall": 0.9}}
    others |= {"`--tokens chars`": {"tokens": "chars"}, "`--boost-rare`": {"boost_rare": True}}
    others |= {f"`--ngram {ngram}`": {"ngram": ngram} for ngram in (4, 6, 7)}
    print(
        "\n| texts | beside `--noise 10%` | threshold | bands | precision / recall | F1 | "
        "compared pairs |"
    )
    print("|---|---|---:|---:|---:|---:|---:|")
    for language in LANGUAGES:
        made = noisy(unrelated(folder, language, most), 0.1, ALL)
        for name, values in others.items():
            method = setting(0.1, ALL, **values)
            found = run(made, method)
            bands = neardup.plan(documents=1e6, method=method).bands
            assert bands is not None
            print(
                f"| {language.name} | {name} | {method.threshold:.3g} | {bands[0]} x {bands[1]} | "
                f"{100 * found.precision:.1f} / {100 * found.recall:.1f} | {found.f1:.3f} | "
                f"{found.compared:,} |"
            )
            tell(f"{language.name}, {name}")


def print_long(folder: Path, most: int) -> None:
    """Print what is found among longer texts, joined from passages, with the rule of chance and
    without it.
    """
    heads = " | ".join(f"{length:,}" for length in LONG)
    print(f"\n| precision / recall of | errors in | share | above chance | {heads} |")
    print("|---|---|---:|---|" + "---:|" * len(LONG))
    for language in LANGUAGES:
        joined = " ".join(unrelated(folder, language, most))
        for which, share in (
            (ALL, 0.01),
            (ALL, 0.05),
            (ALL, 0.1),
            (ALL, 0.15),
            (COPIES, 0.1),
            (COPIES, 0.2),
        ):
            for above_chance in (False, True):
                method = setting(share, which, above_chance=above_chance)
                cells = []
                for length in LONG:
                    made = noisy(cut(joined, length, 200), share, which)
                    found = run(made, method)
                    cells.append(f"{100 * found.precision:.0f} / {100 * found.recall:.0f}")
                rule = "yes" if above_chance else "no"
                print(
                    f"| {language.name} | {which} | {100 * share:g} % | {rule} | "
                    f"{' | '.join(cells)} |"
                )
            tell(f"{language.name}, long texts, {which}, {share:g}")


def cut(joined: str, length: int, most: int) -> list[str]:
    """Return the first texts of a length, their number a multiple of 10: at most `most`, or 6
    million characters.
    """
    count = min(most, 6_000_000 // length, len(joined) // length) // 10 * 10
    return [joined[start : start + length] for start in range(0, count * length, length)]


def print_clean(folder: Path) -> None:
    """Print how many clean unrelated texts are removed wrongly, by their length."""
    heads = " | ".join(f"{length:,}" for length in CLEAN_LENGTHS)
    print(f"\n| wrong removals among clean texts | `--noise` | {heads} |")
    print("|---|---:|" + "---:|" * len(CLEAN_LENGTHS))
    for name, joined in clean_sources(folder).items():
        for share in NOISES:
            cells = []
            for length in CLEAN_LENGTHS:
                count = min(60, 12_000_000 // length, len(joined) // length)
                texts = [joined[number * length : (number + 1) * length] for number in range(count)]
                removed = len(
                    neardup.dedup(
                        pa.table({"text": texts}), method=neardup.method(noise=share)
                    ).removed
                )
                cells.append(f"{removed} of {count}" if count > 1 else "")
            print(f"| {name} | {100 * share:g}% | {' | '.join(cells)} |")
        tell(f"{name}, clean")


def clean_sources(folder: Path) -> dict[str, str]:
    """Return long texts without related parts: passages that `unrelated` chose, poems of one
    edition, random words.
    """
    passages_of = {
        name: Language(name, (file,), (), language.lengths, language.run)
        for name, file, language in CLEAN_SOURCES
    }
    joined = {
        name: " ".join(unrelated(folder, source, 60_000)) for name, source in passages_of.items()
    }
    poems = read_records(folder / "zh_poetry/data.jsonl.zst")
    joined["poems"] = " ".join(
        poem["text"] for poem in poems if poem["edition"] == "songshi"
    )  # each poem once
    words = list(
        dict.fromkeys(
            word for text in one_of_each([folder / CLEAN_SOURCES[2][1]]) for word in text.split()
        )
    )
    draw = random.Random(5)
    joined["random English words"] = " ".join(draw.choices(words[:4_000], k=2_000_000))
    return joined


def print_unrelated(folder: Path, most: int) -> None:
    """Print how similar unrelated texts are that are as long: passages joined to some length, 30 of
    each.
    """
    print(
        "\n| clean texts | characters in a run | "
        + " | ".join(f"{length:,}" for length in LONG)
        + " |"
    )
    print("|---|---:|" + "---:|" * len(LONG))
    for language in LANGUAGES:
        joined = " ".join(unrelated(folder, language, most))
        for ngram in (5, 6, 7):
            cells = []
            for length in LONG:
                count = min(30, len(joined) // length)
                values = similarities(
                    [joined[i * length : (i + 1) * length] for i in range(count)], ngram
                )
                cells.append(f"{np.median(values):.3f}, {max(values):.3f}" if values else "")
            print(f"| {language.name} | {ngram} | " + " | ".join(cells) + " |")
            tell(f"{language.name}, {ngram} characters, by length")


def similarities(texts: list[str], ngram: int) -> list[float]:
    """Return the Jaccard similarity of each two texts."""
    shingles = shingle_documents(
        pa.array(texts, pa.large_string()), neardup.MinHash(tokens="letters", ngram=ngram)
    )
    sets = [
        np.unique(shingles.hashes[a:b])
        for a, b in zip(shingles.offsets, shingles.offsets[1:], strict=False)
    ]
    shared = [(len(np.intersect1d(a, b, True)), len(a) + len(b)) for a, b in combinations(sets, 2)]
    return [both / (sizes - both) for both, sizes in shared]


# Cost


def print_cost(folder: Path, most: int) -> None:
    """Print processor seconds of `dedup` on the same table, medians of 5 runs by turns, kernels
    compiled.
    """
    methods: dict[str, neardup.MinHash] = {"the default": neardup.MinHash()}
    methods |= {f"`--noise {100 * share:g}%`": setting(share, ALL) for share in NOISES}
    print("\n| processor seconds | " + " | ".join(methods) + " |\n|---|" + "---:|" * len(methods))
    for language in LANGUAGES:
        table = pa.table({"text": noisy(unrelated(folder, language, most), 0.05, ALL)})
        calls = [partial(neardup.dedup, table, method=method) for method in methods.values()]
        for call in calls:
            call()
        times = [[seconds(call) for call in calls] for _ in range(5)]
        medians = [median(column) for column in zip(*times, strict=True)]
        size = sum(map(len, table["text"].to_pylist())) / 1e6
        cells = " | ".join(f"{one:.2f}" for one in medians)
        print(f"| {language.name}, {size:.1f} million characters | {cells} |")
        tell(f"{language.name}, times")


def seconds(call: Callable[[], object]) -> float:
    """Return the processor seconds of a call, of all its threads."""
    started = time.process_time()
    call()
    return time.process_time() - started


def tell(done: str) -> None:
    """Say how far it is."""
    print(f"{done}: {time.perf_counter():.0f} s", file=sys.stderr)


if __name__ == "__main__":
    data = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    number = int(sys.argv[2]) if len(sys.argv) > 2 else 20_000
    for part in (print_accuracy, print_settings, print_long, print_unrelated, print_cost):
        part(data, number)
    if data.exists():
        print_clean(data)
