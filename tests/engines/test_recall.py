"""Check the accuracy against theory: each bound is computed from the false-alarm rate beside it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.candidates.bands import Bands, candidate_probability, choose_bands
from neardup.candidates.samples import Samples, hit_probability
from neardup.features.shingles import shingle_documents
from neardup.fingerprints.minhash import band_keys, sign
from neardup.settings.methods import MinHash
from neardup.verify.recall import estimate_recall, measure_recall
from reference.pairs import exact_pairs
from reference.statistics import (
    binomial_interval,
    binomial_probability,
    chi_square_interval,
    most_misses,
)

FALSE_ALARM = 1e-6
"""Of each comparison with a bound; some thirty of them: a wrong alarm in thirty thousand changes of
the scheme.
"""
NUM_SEEDS = 1000
NUM_HASHES = 128
# Two sets of so many elements, of which so many are shared: Jaccard 0.5, 0.8, also as small and
# large sets.
PAIRS = {"J=0.5": (30, 20), "J=0.8": (90, 80), "J=0.5, small": (3, 2), "J=0.8, large": (2700, 2400)}


@cache
def agreements(size: int, shared: int) -> np.ndarray:
    """Return, for each seed, which of the hashes of two sets of random elements agree."""
    values = np.random.default_rng(size).integers(0, 2**64, 2 * size - shared, np.uint64)
    hashes = np.concatenate([values[:size], values[size - shared :]])
    offsets = np.array([0, size, 2 * size], np.int64)
    rows = []
    for seed in range(NUM_SEEDS):
        left, right = sign(hashes, offsets, NUM_HASHES, seed)
        rows.append(left == right)
    return np.array(rows)


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_the_mean_of_the_estimates_is_the_jaccard_similarity(name):
    size, shared = PAIRS[name]
    jaccard = shared / (2 * size - shared)
    bound = 5 * math.sqrt(
        jaccard * (1 - jaccard) / (NUM_HASHES * NUM_SEEDS)
    )  # 5 standard errors: 6e-7
    assert abs(float(agreements(size, shared).mean()) - jaccard) < bound


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_the_spread_of_the_estimates_is_that_of_independent_hashes(name):
    size, shared = PAIRS[name]
    jaccard = shared / (2 * size - shared)
    estimates = agreements(size, shared).mean(axis=1)
    ratio = float(((estimates - jaccard) ** 2).sum()) / (jaccard * (1 - jaccard) / NUM_HASHES)
    low, high = chi_square_interval(NUM_SEEDS, FALSE_ALARM)
    assert low < ratio < high


@pytest.mark.parametrize("name", sorted(PAIRS))
def test_every_hash_of_the_signature_agrees_equally_often(name):
    size, shared = PAIRS[name]
    jaccard = shared / (2 * size - shared)
    low, high = binomial_interval(NUM_SEEDS, jaccard, FALSE_ALARM / NUM_HASHES)
    by_hash = agreements(size, shared).sum(axis=0)
    assert low <= by_hash.min()
    assert by_hash.max() <= high


@pytest.mark.parametrize("name", sorted(PAIRS))
@pytest.mark.parametrize(
    "bands", [Bands(16, 8), Bands(32, 4), Bands(9, 14), Bands(128, 1), Bands(1, 3)]
)
def test_the_rate_of_candidates_is_that_of_the_s_curve(name, bands):
    size, shared = PAIRS[name]
    jaccard = shared / (2 * size - shared)
    chance = 1 - (1 - jaccard**bands.rows_per_band) ** bands.num_bands
    rows = agreements(size, shared)[:, : bands.num_hashes].reshape(
        NUM_SEEDS, bands.num_bands, bands.rows_per_band
    )
    candidates = int(rows.all(axis=2).any(axis=1).sum())
    low, high = binomial_interval(NUM_SEEDS, chance, FALSE_ALARM)
    assert low <= candidates <= high


@pytest.mark.parametrize("bands", [Bands(16, 4), Bands(64, 1), Bands(8, 8)])
def test_band_keys_agree_where_the_bands_of_the_signatures_do(bands):
    values = np.random.default_rng(7).integers(0, 2**64, 40, np.uint64)
    signatures = sign(
        np.concatenate([values[:30], values[10:]]), np.array([0, 30, 60], np.int64), 64, 3
    )
    rows = (signatures[0] == signatures[1]).reshape(bands)
    keys = band_keys(signatures, bands.num_bands)
    assert (keys[:, 0] == keys[:, 1]).tolist() == rows.all(axis=1).tolist()


@pytest.mark.parametrize("bands", [Bands(1, 1), Bands(20, 5), Bands(512, 64)])
@pytest.mark.parametrize("similarity", [0.0, 0.01, 0.5, 0.8, 0.999, 1.0])
def test_the_s_curve_is_the_formula_of_the_book(bands, similarity):
    exact = 1 - (1 - Fraction(similarity) ** bands.rows_per_band) ** bands.num_bands
    probability = float(candidate_probability(similarity, bands))
    assert probability == pytest.approx(float(exact), rel=1e-12)


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.5, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("recall", [0.5, 0.9, 0.99, 0.999])
def test_chosen_bands_reach_the_recall_and_one_band_less_does_not(threshold, recall):
    bands = choose_bands(threshold, recall)
    missed_by_band = 1 - Fraction(threshold) ** bands.rows_per_band
    assert missed_by_band**bands.num_bands <= 1 - recall + 1e-12
    assert bands.num_bands == 1 or missed_by_band ** (bands.num_bands - 1) > 1 - recall


@pytest.mark.parametrize(
    "samples", [Samples(4, 1), Samples(16, 9), Samples(128, 100), Samples(32, 32)]
)
@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9, 1.0])
def test_the_chance_of_hits_is_a_binomial_tail(samples, share):
    tail = sum(
        binomial_probability(hits, samples.num_samples, share)
        for hits in range(samples.num_needed, samples.num_samples + 1)
    )
    assert float(hit_probability(share, samples)) == pytest.approx(tail, abs=1e-9)


# Real texts: what is estimated, against what brute force finds.
NUM_RUNS = 20
COVERAGE_FALSE_ALARM = 1e-3
"""Of each count of intervals that miss, over seeds: a 95 % interval may miss with a probability of
0.05.
"""
# Clusters of a hundred and more licences, and poems in two editions; bands that find 60 to 90 % of
# the pairs.
LOW_RECALL = [
    ("en_licenses", 0.8, Bands(3, 7)),
    ("en_licenses", 0.8, Bands(4, 6)),
    ("zh_poetry", 0.5, Bands(11, 4)),
    ("zh_poetry", 0.5, Bands(4, 5)),
]
MEGABYTES = {"en_licenses": 5, "zh_poetry": 2}


class Truth:
    """A corpus without copies: its texts, and the exact pairs at or above a threshold."""

    def __init__(self, texts: list[str], threshold: float) -> None:
        shingles = shingle_documents(pa.array(texts, pa.large_string()), MinHash())
        sets = [
            np.unique(shingles.hashes[a:b])
            for a, b in zip(shingles.offsets, shingles.offsets[1:], strict=False)
        ]
        _, firsts = np.unique(shingles.content, axis=0, return_index=True)
        chosen = [int(number) for number in np.sort(firsts) if len(sets[number])]
        self.threshold = threshold
        self.texts = [texts[number] for number in chosen]
        self.left, self.right, self.similarity = exact_pairs(
            [sets[number] for number in chosen], threshold
        )
        self.pairs = set(
            zip(self.left.tolist(), self.right.tolist(), self.similarity.tolist(), strict=True)
        )
        self.table = pa.table({"text": self.texts})

    def method(self, bands: Bands, seed: int) -> MinHash:
        return MinHash(threshold=self.threshold, seed=seed, **bands._asdict())


@pytest.fixture(scope="module")
def truths(real_texts):
    """Return a function (set, threshold) -> Truth."""
    return cache(
        lambda name, threshold: Truth(real_texts(name, MEGABYTES[name] * 1_000_000), threshold)
    )


def found_pairs(result) -> set[tuple[int, int, float]]:
    rows = result.pairs.to_pylist()
    return {(int(row["left_id"]), int(row["right_id"]), row["similarity"]) for row in rows}


def test_every_pair_that_is_found_is_one_of_brute_force_with_the_same_similarity(truths):
    truth = truths("en_licenses", 0.8)
    assert len(truth.pairs) > 100
    result = neardup.find_pairs(
        truth.table, method=truth.method(Bands(64, 2), 1), max_bucket_size=100_000
    )
    found = found_pairs(result)
    assert found <= truth.pairs
    # At 0.8 and more a pair is missed with a probability of at most (1 - 0.64)^64 = 4e-29.
    assert found == truth.pairs


@pytest.mark.slow
@pytest.mark.parametrize(("name", "threshold", "bands"), LOW_RECALL)
def test_the_estimated_recall_of_all_pairs_agrees_with_the_measured_one(
    name, threshold, bands, truths
):
    """The interval is to hold whatever the clusters: their pairs share signatures, and are found or
    missed together.
    """
    truth = truths(name, threshold)
    misses = 0
    for seed in range(NUM_RUNS):
        result = neardup.find_pairs(
            truth.table, method=truth.method(bands, seed), max_bucket_size=100_000
        )
        found = found_pairs(result)
        assert found <= truth.pairs
        measured = len(found) / len(truth.pairs)
        assert measured < 1.0  # there is something to miss
        recall = result.report["recall"]
        assert recall["low"] <= recall["estimated"] <= recall["high"]
        misses += not recall["low"] <= measured <= recall["high"]
    assert misses <= most_misses(NUM_RUNS, 0.05, COVERAGE_FALSE_ALARM)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "threshold", "bands"), LOW_RECALL)
def test_the_estimated_number_of_pairs_has_no_bias(name, threshold, bands, truths):
    """The mean over seeds, within 5 of its standard errors; these are seen in the runs, for pairs
    depend.
    """
    truth = truths(name, threshold)
    chance = 1 - (1 - truth.similarity**bands.rows_per_band) ** bands.num_bands
    totals = []
    for seed in range(3 * NUM_RUNS):
        found = candidates(truth, bands, seed)
        totals.append(float((1 / chance[found]).sum()))
    standard_error = np.std(totals, ddof=1) / math.sqrt(len(totals))
    assert abs(np.mean(totals) - len(truth.left)) < 5 * standard_error


def candidates(truth: Truth, bands: Bands, seed: int) -> np.ndarray:
    """Return which of the exact pairs share a band."""
    shingles = shingle_documents(pa.array(truth.texts, pa.large_string()), MinHash())
    keys = band_keys(
        sign(shingles.hashes, shingles.offsets, bands.num_hashes, seed), bands.num_bands
    )
    return (keys[:, truth.left] == keys[:, truth.right]).any(axis=0)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "threshold", "bands"), LOW_RECALL)
def test_the_estimated_recall_of_the_sieve_agrees_with_the_measured_one(
    name, threshold, bands, truths
):
    """Measured among what the sieve looks for: pairs of a kept document and a later one."""
    truth = truths(name, threshold)
    misses = 0
    for seed in range(NUM_RUNS):
        result = neardup.dedup(
            truth.table, method=truth.method(bands, seed), max_bucket_size=100_000
        )
        kept = np.ones(len(truth.texts), np.bool_)
        kept[[int(number) for number in result.removed["id"].to_pylist()]] = False
        looked_for = kept[truth.left]
        found = candidates(truth, bands, seed)
        measured = found[looked_for].mean()
        assert result.report["counts"]["confirmed"] == int(found[looked_for].sum())
        recall = result.report["recall"]
        misses += not recall["low"] <= measured <= recall["high"]
    assert misses <= most_misses(NUM_RUNS, 0.05, COVERAGE_FALSE_ALARM)


@pytest.mark.parametrize(("bands", "seed"), [(Bands(3, 8), 1), (Bands(2, 5), 2)])
def test_a_sample_of_all_documents_is_brute_force(bands, seed, truths):
    truth = truths("en_licenses", 0.8)
    method = truth.method(bands, seed)
    result = neardup.find_pairs(truth.table, method=method, max_bucket_size=100_000)
    sampled = neardup.dedup(truth.table, method=method, recall_sample=len(truth.texts)).report[
        "recall_sample"
    ]
    assert sampled["pairs"] == 2 * len(truth.pairs)  # from both sides
    assert sampled["found"] == 2 * result.pairs.num_rows
    assert sampled["recall"] == result.pairs.num_rows / len(truth.pairs)
    assert sampled["low"] <= sampled["recall"] <= sampled["high"]


@pytest.mark.parametrize(("name", "threshold", "bands"), LOW_RECALL)
def test_a_sample_of_a_few_documents_covers_the_recall_of_all(name, threshold, bands, truths):
    truth = truths(name, threshold)
    num_samples = 200
    size = 300
    hits = candidates(truth, bands, 1)
    count = len(truth.texts)
    true = np.bincount(truth.left, minlength=count) + np.bincount(truth.right, minlength=count)
    found = np.bincount(truth.left[hits], minlength=count) + np.bincount(
        truth.right[hits], minlength=count
    )
    recall = hits.mean()
    misses = 0
    randomness = np.random.default_rng(1)
    for _ in range(num_samples):
        drawn = randomness.choice(count, min(size, count // 2), replace=False)
        sampled = measure_recall(found[drawn], true[drawn])
        assert sampled is not None
        misses += not sampled.low <= recall <= sampled.high
    assert misses <= most_misses(num_samples, 0.05, COVERAGE_FALSE_ALARM)


@pytest.mark.slow
def test_the_recall_sample_of_a_run_covers_the_measured_recall(truths):
    """The same documents are drawn each time, other signatures."""
    truth = truths("zh_poetry", 0.5)
    misses = 0
    for seed in range(NUM_RUNS):
        method = truth.method(Bands(3, 8), seed)
        sampled = neardup.dedup(
            truth.table, method=method, recall_sample=min(300, len(truth.texts) // 2)
        ).report["recall_sample"]
        misses += (
            not sampled["low"] <= candidates(truth, Bands(3, 8), seed).mean() <= sampled["high"]
        )
    assert misses <= most_misses(NUM_RUNS, 0.05, COVERAGE_FALSE_ALARM)


SENTENCE = "one two three four five six seven eight nine ten eleven twelve"


def test_a_cluster_of_several_hundred_documents_is_listed_whole():
    """Each pair is missed by 16 bands of one row with a probability of at most (1 - 8/10)^16 =
    7e-12.
    """
    texts = [f"{SENTENCE} {number}" for number in range(300)]
    result = neardup.find_pairs(texts, method=MinHash(threshold=0.8, num_bands=16, rows_per_band=1))
    assert result.pairs.num_rows == 300 * 299 // 2
    assert result.report["bound"] == {"max_bucket_size": 1000, "documents": 0}


NUMBERED = [f"{SENTENCE} {number}" for number in range(30)]
# They have one fingerprint.
REORDERED = [
    " ".join(words) for words in itertools.islice(itertools.permutations(SENTENCE.split()), 30)
]


@pytest.mark.parametrize(
    ("method", "texts"),
    [
        (MinHash(), NUMBERED),
        (MinHash(similarity="containment"), NUMBERED),
        (neardup.SimHash(ngram=1), REORDERED),
    ],
    ids=["bands", "samples", "fingerprints"],
)
def test_no_recall_is_known_where_full_buckets_hide_pairs(method, texts):
    full = neardup.find_pairs(texts, method=method, max_bucket_size=5).report
    listed = neardup.find_pairs(texts, method=method, max_bucket_size=30).report
    assert full["bound"]["documents"] > 0 == listed["bound"]["documents"]
    assert full["recall"] is None


def test_nothing_found_is_nothing_said():
    none = np.empty(0)
    assert estimate_recall(none, none.astype(np.uint32), lambda values: values) is None
    assert measure_recall(np.zeros(5, np.int64), np.zeros(5, np.int64)) is None
    summary = neardup.dedup(["one text", "and quite another"], recall_sample=2).report
    assert summary["recall"] is None
    assert summary["recall_sample"]["recall"] is None


def test_pairs_that_are_always_found_leave_no_doubt():
    recall = estimate_recall(np.ones(7), np.arange(7, dtype=np.uint32), lambda values: values)
    assert recall == (1.0, 1.0, 1.0, 7)


def test_the_estimate_is_that_of_horvitz_and_thompson():
    similarity = np.array([0.8, 0.9, 0.8])
    group = np.array([0, 0, 4], np.uint32)
    recall = estimate_recall(similarity, group, lambda values: values / 2)
    assert recall is not None
    chances = [0.4, 0.45, 0.4]
    total = sum(1 / chance for chance in chances)
    deviations = [math.sqrt(1 - chance) / chance for chance in chances]
    spread = 1.959963984540054 * math.sqrt(
        (deviations[0] + deviations[1]) ** 2 + deviations[2] ** 2
    )
    assert recall.estimated == pytest.approx(3 / total)
    assert recall.low == pytest.approx(3 / (total + spread))
    assert recall.high == pytest.approx(min(1, 3 / max(total - spread, 3)))


def test_the_estimate_for_containment_agrees_with_the_measured_one(real_texts):
    """Samples of the smaller document's shingles; brute force over all pairs."""
    texts = Truth(real_texts("en_licenses", 400_000), 0.6).texts
    shingles = shingle_documents(pa.array(texts, pa.large_string()), MinHash())
    limits = zip(shingles.offsets, shingles.offsets[1:], strict=False)
    sets = [frozenset(shingles.hashes[start:stop].tolist()) for start, stop in limits]
    for threshold in (0.7, 0.9):
        method = MinHash(similarity="containment", threshold=threshold, recall=0.8)
        result = neardup.find_pairs(
            pa.table({"text": texts}), method=method, max_bucket_size=100_000
        )
        true = {
            (left, right)
            for right, own in enumerate(sets)
            for left in range(right)
            if len(own & sets[left]) / min(len(own), len(sets[left])) >= threshold
        }
        found = {(left, right) for left, right, _ in found_pairs(result)}
        assert found <= true
        recall = result.report["recall"]
        assert recall["low"] <= len(found) / len(true) <= recall["high"]
