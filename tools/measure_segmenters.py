"""Measure segmenters of Chinese: speed, agreement with jieba word for word, and what a second
thread adds.

    python tools/measure_segmenters.py ../shared/data [--megabytes 2] > table.md

Packages that are not installed are left out; jieba, which the others are compared with, is needed.
Last, what folding traditional characters to simplified ones does to the words of texts that exist
in both scripts.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from statistics import mean

from make_examples import read_records

from neardup.features.normalise import normalise
from neardup.features.segmenters import segmenter_of
from neardup.settings.methods import Jieba, MinHash, Shingling

Cut = Callable[[str], list[str]]
MODES = ("exact", "no hmm", "full", "search")
PACKAGES = {
    "jieba": "jieba",
    "rjieba": "rjieba",
    "jieba-next": "jieba_next",
    "jieba-fast-dat": "jieba_fast_dat",
    "cppjieba-py-dat": "cppjieba_py_dat",
    "opencc-jieba-pyo3": "opencc_jieba_pyo3",
}


def cuts_of(package: str) -> dict[str, Cut] | None:
    """Return how a package cuts in each mode; None if it is not installed."""
    try:
        module = importlib.import_module(PACKAGES[package])
    except ImportError:
        return None
    cuts: tuple[Cut, ...]
    if package == "rjieba":
        cuts = (
            module.cut,
            lambda text: module.cut(text, False),
            module.cut_all,
            module.cut_for_search,
        )
    elif package == "opencc-jieba-pyo3":
        own = module.OpenCC()
        cuts = (
            lambda text: own.jieba_cut(text, True),
            lambda text: own.jieba_cut(text, False),
            own.jieba_cut_all,
            lambda text: own.jieba_cut_for_search(text, True),
        )
    else:
        cuts = (
            module.lcut,
            lambda text: module.lcut(text, HMM=False),
            lambda text: module.lcut(text, cut_all=True),
            module.lcut_for_search,
        )
    return dict(zip(MODES, cuts, strict=True))


def neardup_cuts() -> dict[str, Cut]:
    """Return how neardup cuts, filter included."""
    settings = (Jieba(), Jieba(hmm=False), Jieba(mode="full"), Jieba(mode="search"))
    return dict(zip(MODES, map(segmenter_of, settings), strict=True))


def sample(folder: Path, megabytes: float) -> list[str]:
    """Return normalised texts of a set, evenly spread, of so many megabytes together."""
    texts = [record["text"] for record in read_records(folder / "data.jsonl.zst")]
    total = sum(len(text.encode()) for text in texts) / 1e6
    return [normalise(text, Shingling()) for text in texts[:: max(1, round(total / megabytes))]]


def letters_only(words: Iterable[str]) -> list[str]:
    """Return the words that hold a letter, a digit or an underscore: what neardup counts."""
    return [word for word in words if any(c.isalnum() or c == "_" for c in word)]


def agreement(found: list[list[str]], expected: list[list[str]]) -> float:
    """Return the share of words that two cuts have in common, as multisets of each text: 2 common /
    all.
    """
    common = sum((Counter(a) & Counter(b)).total() for a, b in zip(found, expected, strict=True))
    return 2 * common / max(1, sum(map(len, found)) + sum(map(len, expected)))


def seconds(work: Callable[[], object], threads: int = 1, repeats: int = 3) -> float:
    """Return the least of some times that threads take, which all do the same work."""
    times = []
    for _ in range(repeats):
        workers = [threading.Thread(target=work) for _ in range(threads)]
        start = time.perf_counter()
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(name: str, cut: Cut, texts: list[str], expected: list[list[str]]) -> str:
    """Return one row of the table."""
    found = [letters_only(cut(text)) for text in texts]
    size = sum(len(text.encode()) for text in texts) / 1e6

    def work() -> None:
        for text in texts:
            cut(text)

    one = seconds(work)
    two = seconds(work, threads=2)
    equal = sum(a == b for a, b in zip(found, expected, strict=True))
    return (
        f"| {name} | {size / one:.1f} MB/s | x {2 * one / two:.2f} | {equal:,} of {len(texts):,} | "
        f"{100 * agreement(found, expected):.2f} % |"
    )


def measure_packages(texts: list[str]) -> None:
    """Print the table of one set of texts."""
    everyone = {"neardup": neardup_cuts()}
    for package in PACKAGES:
        cuts = cuts_of(package)
        if cuts is not None:
            everyone[f"{package} {version(package)}"] = cuts
    reference = everyone[f"jieba {version('jieba')}"]
    for mode in MODES:
        expected = [letters_only(reference[mode](text)) for text in texts]
        print(
            f"\n{mode}\n\n| package | speed | two threads | texts equal to jieba's | words in "
            "common |"
        )
        print("|---|---:|---:|---:|---:|")
        for name, cuts in everyone.items():
            print(measure(name, cuts[mode], texts, expected), flush=True)


def measure_folding(folder: Path) -> None:
    """Print how alike the words of one text in two scripts are, with and without folding."""
    print(
        "\n| texts | pairs | tokens | ngram | mean Jaccard, as they are | folded | folded, at "
        "0.5 or more |"
    )
    print("|---|---:|---|---:|---:|---:|---:|")
    for file in ("documents.jsonl.gz", "sentences.jsonl.gz"):
        records = sorted(
            read_records(folder / file), key=lambda record: (record["cluster"], record["script"])
        )
        pairs = [
            (a, b)
            for a, b in pairwise(records)
            if a["cluster"] == b["cluster"] and a["script"] != b["script"]
        ]
        for source in sorted({a["source"] for a, _ in pairs}):
            texts = [(a["text"], b["text"]) for a, b in pairs if a["source"] == source]
            for tokens in ("jieba", "characters"):
                for ngram in (1, 2):
                    plain, folded = (
                        [jaccard(left, right, tokens, ngram, fold) for left, right in texts]
                        for fold in (False, True)
                    )
                    near = mean(value >= 0.5 for value in folded)
                    print(
                        f"| {source} | {len(texts)} | {tokens} | {ngram} | {mean(plain):.3f} | "
                        f"{mean(folded):.3f} | {100 * near:.0f} % |"
                    )


def jaccard(left: str, right: str, tokens: str, ngram: int, fold: bool) -> float:
    """Return the Jaccard similarity of the runs of tokens of two texts."""
    method = MinHash(fold="chinese" if fold else ())
    cut: Cut = segmenter_of(Jieba(), method) if tokens == "jieba" else letters_only
    sides = []
    for text in (left, right):
        words = list(cut(normalise(text, method)))
        sides.append({tuple(words[i : i + ngram]) for i in range(max(1, len(words) - ngram + 1))})
    return len(sides[0] & sides[1]) / max(1, len(sides[0] | sides[1]))


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--megabytes", type=float, default=2.0)
    given = parser.parse_args()
    logging.disable()
    for name in ("zh_laws", "zh_poetry"):
        print(f"\n## {name}")
        measure_packages(sample(given.data / name, given.megabytes))
    print("\n## zh_ts")
    measure_folding(given.data / "zh_ts")


if __name__ == "__main__":
    main()
