"""Long unrelated texts: what they share by chance, and that no engine takes them for duplicates."""

from __future__ import annotations

import math
import random
from collections import Counter
from itertools import combinations
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.arrays import offsets_from_lengths
from neardup.errors import SettingError
from neardup.features.described import Lists, even_features
from reference.places import REPOSITORY, SHARED_DATA

NOISE = neardup.method(noise="10%")
DRAW = random.Random(1)
WORDS = ["".join(DRAW.choices("etaoinshrdlucmfw", k=DRAW.randint(3, 9))) for _ in range(300)]


def unrelated_texts(seed: int, count: int, num_words: int = 3_000) -> list[str]:
    """Texts of some 18,000 letters, their words drawn from 300."""
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=num_words)) for _ in range(count)]


def with_wrong_letters(text: str, share: float, seed: int) -> str:
    draw = random.Random(seed)
    return "".join(
        draw.choice("etaoinshrdlu") if draw.random() < share else letter for letter in text
    )


def positions_of(pairs: pa.Table) -> set[tuple[int, int]]:
    return {(int(pair["left_id"]), int(pair["right_id"])) for pair in pairs.to_pylist()}


UNRELATED = unrelated_texts(1, 12)
COPIES = [with_wrong_letters(UNRELATED[0], 0.1, seed) for seed in range(2)]


class Plain(NamedTuple):
    """The shingles of a text, and how many occur an even number of times by chance: by counting."""

    shingles: set[str]
    even: int


def plain(text: str) -> Plain:
    counts = Counter(text[start : start + 5] for start in range(len(text) - 4))
    times = Counter(counts.values())
    twice = min(times[2], math.floor(math.sqrt(1.5 * times[1] * times[3])))
    more = sum(number for count, number in times.items() if count % 2 == 0 and count > 2)
    return Plain(set(counts), twice + more)


def plain_rule(left: Plain, right: Plain) -> tuple[float, bool]:
    """Return the Jaccard similarity of two texts, and whether they share more than chance."""
    shared = len(left.shingles & right.shingles)
    chance = 2 * math.sqrt(left.even * right.even)
    return shared / len(left.shingles | right.shingles), shared >= 1.1 * chance + 2 * math.sqrt(
        2 * chance
    )


# The rule


def test_two_texts_of_one_source_share_twice_as_many_features_as_each_has_an_even_number_of_times():
    """Features whose occurrences are Poisson numbers, of very different means; the difference has a
    mean of 0.
    """
    draw = np.random.default_rng(2)
    means = draw.lognormal(-1.0, 1.5, 5_000)
    differences = []
    for _ in range(200):
        counts = draw.poisson(means, (2, len(means)))
        hashes = np.concatenate(
            [np.repeat(np.arange(len(means)), times) for times in counts]
        ).astype(np.uint64)
        even = even_features(
            Lists(hashes * np.uint64(0x9E3779B97F4A7C15), offsets_from_lengths(counts.sum(axis=1)))
        )
        differences.append((counts > 0).all(axis=0).sum() - even.sizes.sum())
    assert abs(np.mean(differences)) < 5 * np.std(differences) / math.sqrt(len(differences))


def test_features_that_only_a_repeated_passage_has_twice_do_not_count():
    once = np.arange(1, 101, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    passages = np.concatenate([once, once[:90]])
    lists = Lists(np.concatenate([passages, once]), np.array([0, 190, 290]))
    assert even_features(lists).sizes.tolist() == [0, 0]
    assert even_features(Lists(np.repeat(once, 4), np.array([0, 400]))).sizes.tolist() == [100]


def test_pairs_are_the_same_as_by_counting_in_plain_python():
    texts = [*unrelated_texts(3, 4, 6_000), *unrelated_texts(4, 4, 500)]
    texts += [with_wrong_letters(text, share, 5) for text in texts[::2] for share in (0.1, 0.25)]
    method = neardup.MinHash(
        tokens="chars", threshold=0.16, recall=0.999, rows_per_band=1, above_chance=True
    )
    joined = [text.replace(" ", "") for text in texts]
    counted = [plain(text) for text in joined]
    pairs = neardup.find_pairs(pa.table({"text": joined}), method=method).pairs
    found = positions_of(pairs)
    rules = {
        (i, j): plain_rule(counted[i], counted[j]) for i, j in combinations(range(len(joined)), 2)
    }
    assert found == {
        pair for pair, (similarity, is_above) in rules.items() if similarity >= 0.16 and is_above
    }
    assert len(found) >= 4
    assert sum(similarity >= 0.16 for similarity, _ in rules.values()) > 2 * len(found)


# Whole runs


def removed(texts: list[str], **options) -> list[int]:
    table = pa.table({"text": texts, "group": ["one"] * len(texts)})
    return sorted(neardup.dedup(table, method=NOISE, **options).removed["row"].to_pylist())


@pytest.mark.parametrize("options", [{}, {"linkage": "connected"}, {"within": "group"}])
def test_a_copy_with_errors_is_removed_and_no_unrelated_text(options):
    assert removed([*UNRELATED, COPIES[0]], **options) == [12]


def test_texts_of_an_earlier_corpus_remove_no_unrelated_text():
    assert removed([*UNRELATED[3:], COPIES[0]], against=UNRELATED[:3]) == [9]


def test_without_the_rule_unrelated_texts_of_18000_letters_are_removed():
    method = neardup.method(noise="10%", above_chance=False)
    assert (
        len(neardup.dedup(pa.table({"text": UNRELATED}), method=method).removed)
        == len(UNRELATED) - 1
    )


@pytest.mark.slow
def test_find_pairs_cluster_and_sweep_follow_the_same_rule():
    table = pa.table({"text": [*UNRELATED, *COPIES]})
    pairs = neardup.find_pairs(table, method=NOISE).pairs
    assert positions_of(pairs) == {(0, 12), (0, 13), (12, 13)}
    clusters = neardup.cluster(table, method=NOISE).documents["cluster"].to_pylist()
    assert clusters[0] == clusters[12] == clusters[13]
    assert len(set(clusters)) == 12
    swept = neardup.sweep(table, method=NOISE, thresholds=[0.1, 0.16])
    assert swept.counts["removed"].to_pylist() == [2, 2]


@pytest.mark.parametrize("storage", ["features", "text"])
def test_an_index_follows_the_same_rule(tmp_path, storage):
    with neardup.Index.create(tmp_path / "index", method=NOISE, storage=storage) as index:
        answers = [
            index.add_if_new(text, id=str(number))
            for number, text in enumerate([*UNRELATED, *COPIES])
        ]
    assert [answer.kept_id for answer in answers] == [None] * 12 + ["0", "0"]


def test_compare_shows_that_texts_share_no_more_than_chance():
    unrelated, copy = (
        neardup.compare(UNRELATED[0], other, method=NOISE).measures
        for other in (UNRELATED[1], COPIES[0])
    )
    assert unrelated.jaccard > NOISE.threshold
    assert (unrelated.similarity, unrelated.duplicate) == (0.0, False)
    assert (copy.similarity, copy.duplicate) == (copy.jaccard, True)


def test_equal_texts_are_copies_though_they_share_no_more_than_chance():
    text = " ".join(WORDS[:4] * 500)
    assert removed([text, text.upper(), with_wrong_letters(text, 0.1, 1)]) == [1]


def test_a_copy_of_a_text_that_repeats_itself_is_found():
    passage = " ".join(random.Random(8).choices(WORDS, k=60))
    text = f"{passage}. {passage}"
    assert removed([text, with_wrong_letters(text, 0.05, 2)]) == [1]


def test_the_rule_does_not_go_with_two_similarities():
    with pytest.raises(
        SettingError, match=r"min_structure requires .* without boost_rare and above_chance"
    ):
        neardup.MinHash(html="all", min_structure=0.5, above_chance=True)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED_DATA.exists(), reason="needs the texts of ../shared")
@pytest.mark.parametrize(
    "source", ["Bible", "terms of service", "laws", "poems", "random English words"]
)
@pytest.mark.parametrize("length", [1_000, 10_000, 100_000, 1_000_000])
def test_no_clean_unrelated_text_is_removed(monkeypatch, source, length):
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    import measure_noise

    joined = measure_noise.clean_sources(SHARED_DATA)[source]
    count = min(60, len(joined) // length, 6_000_000 // length)
    texts = [joined[number * length : (number + 1) * length] for number in range(count)]
    for noise in (0.01, 0.03, 0.05, 0.1):
        assert (
            neardup.dedup(
                pa.table({"text": texts}), method=neardup.method(noise=noise)
            ).removed.num_rows
            == 0
        )
