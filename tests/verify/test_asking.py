"""A length of shingles and a threshold are chosen from answers about pairs of nine bands of
similarity, some of which may be wrong.
"""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from neardup.verify import asking
from neardup.verify.choosing import STEPS
from neardup.verify.recall import wilson
from reference.places import REPOSITORY, SHARED_DATA

GIVEN = 0.9  # what 5 words at 0.8 are with 2 words
MIDDLES = np.round(np.arange(1, 10) / 10 + 0.05, 2)
UNRELATED = np.array(
    [
        100_000,
        40_000,
        20_000,
        8_000,
        3_000,
        1_000,
        400,
        100,
        50,
        20,
        20,
        20,
        30,
        40,
        60,
        80,
        100,
        300,
    ]
)
"""The pairs of a collection by step of 0.05, most of which are chance similarities below 0.4."""


POINTS = np.arange(10, 100) / 100 + 0.005
"""The middles of intervals of 0.01, five in a step."""


def estimate(by_step, similarity, same) -> list[asking.Estimate]:
    """Return the estimates of shingles of 2 words, from the pairs of each step and the answers."""
    sample = asking.Sample(
        lengths=(2,),
        similarity=np.concatenate([POINTS, similarity])[None],
        weight=np.concatenate([np.repeat(by_step / 5, 5), np.zeros(len(similarity))]),
        base=2,
    )
    return asking.estimate(sample, len(POINTS) + np.arange(len(similarity)), same)


def decide(answers: dict[float, str], pairs=UNRELATED, min_precision=0.6) -> asking.Decision:
    """Return the decision by answers, a string of y and n for each similarity."""
    similarity, same = columns(answers)
    return asking.decide(estimate(pairs, similarity, same), min_precision, 2, GIVEN)


def columns(answers: dict[float, str]) -> tuple[np.ndarray, np.ndarray]:
    similarity = np.array([place for place, keys in answers.items() for _ in keys])
    return similarity, np.array([key == "y" for keys in answers.values() for key in keys], np.bool_)


def rising(first: float, keys: str = "yyy") -> dict[float, str]:
    """Return three answers for each band: yes from a similarity on."""
    return {float(middle): keys if middle > first else "nnn" for middle in MIDDLES}


@pytest.mark.parametrize("line", [0.3, 0.5, 0.6, 0.8])
def test_with_all_pairs_answered_the_threshold_is_the_best_of_the_labels(line):
    similarity = np.arange(100, 1000) / 1000 + 0.0005
    estimates = estimate(np.full(18, 50), similarity, similarity > line)
    decision = asking.decide(estimates, 0.6, 2, GIVEN)
    assert decision.found.threshold == pytest.approx(line)
    assert decision.changes
    for share in (decision.found.precision, decision.found.recall):
        assert share.low <= wilson(share.estimated, 900)[0] < share.estimated < share.high
    assert decision.found.answers == 900


@pytest.mark.parametrize(
    "places", [(0.11, 0.36), (0.15, 0.25), (0.15, 0.35), (0.25, 0.45), (0.15, 0.15)]
)
def test_two_wrong_yes_to_pairs_of_low_similarity_do_not_lower_the_threshold_to_them(places):
    answers = [(middle, "n" if middle < 0.6 else "y") for middle in MIDDLES for _ in range(3)]
    wrong = dict.fromkeys(places, "ny") if len(set(places)) == 2 else {places[0]: "yy"}
    clean = {
        float(middle): "".join(key for at, key in answers if at == middle) for middle in MIDDLES
    }
    for place, keys in wrong.items():
        band = float(MIDDLES[asking.band_of(np.array([place]))[0]])
        clean[band] = clean[band][len(keys) :]
        clean[place] = clean.get(place, "") + keys
    assert sum(map(len, clean.values())) == 27
    decision = decide(clean)
    assert not decision.changes or decision.found.threshold >= 0.5


def test_a_threshold_with_too_low_a_precision_is_not_chosen_and_a_lower_limit_allows_it():
    pairs = np.full(18, 1000)
    answers = {float(middle): "ynyn" for middle in MIDDLES}
    decision = decide(answers, pairs)
    assert not decision.is_precise
    assert not decision.changes
    assert decision.found.precision.estimated < 0.6
    allowed = decide(answers, pairs, min_precision=0.3)
    assert allowed.changes
    assert allowed.found.threshold < 0.3


def test_a_threshold_whose_precision_is_uncertain_is_not_chosen():
    enough = asking.Estimate(2, 0.5, 0.7, asking.Share(0.6, 0.3, 0.9), asking.Share(1, 1, 1), 27)
    assert enough.is_precise(0.6)
    assert not enough._replace(precision=asking.Share(0.59, 0.3, 0.9)).is_precise(0.6)
    assert not enough._replace(precision=asking.Share(0.9, 0.29, 1.0)).is_precise(0.6)


def test_settings_that_are_no_better_than_the_given_ones_stay():
    def at(threshold: float, f1: float) -> asking.Estimate:
        sure = asking.Share(0.9, 0.8, 1.0)
        return asking.Estimate(2, threshold, f1, sure, sure, 27)

    assert not asking.decide([at(0.5, 0.6), at(0.9, 0.7), at(0.95, 0.7)], 0.6, 2, 0.9).changes
    assert asking.decide([at(0.5, 0.6), at(0.9, 0.7), at(0.95, 0.8)], 0.6, 2, 0.9).changes
    lower = asking.decide([at(0.5, 0.8), at(0.6, 0.8), at(0.9, 0.7)], 0.6, 2, 0.9)
    assert (lower.changes, lower.found.threshold) == (True, 0.6)  # the highest of equals


def test_the_estimates_are_those_of_bayes_rule_over_curves_and_shares_of_wrong_answers():
    pairs = np.zeros(18, np.int64)
    pairs[[0, 8, 16]] = 1000, 100, 10  # from 0.1, 0.5 and 0.9
    answers = {0.105: "nn", 0.505: "yn", 0.905: "yy"}
    total = precision = recall = f1 = 0.0
    for centre in np.linspace(-0.1, 1.1, 25):
        for width in np.geomspace(0.01, 0.15, 6):
            for top in (0.5, 0.7, 0.85, 1.0):

                def share(similarity: float, c=centre, w=width, u=top) -> float:
                    return u / (1 + exp((c - similarity) / w))

                weight = 0.0
                for wrong in (0, 0.05, 0.1, 0.15):
                    likelihood = 1.0
                    for similarity, keys in answers.items():
                        says_yes = min(
                            max(wrong + (1 - 2 * wrong) * share(similarity), 1e-6), 1 - 1e-6
                        )
                        for key in keys:
                            likelihood *= says_yes if key == "y" else 1 - says_yes
                    weight += likelihood
                right = [
                    count * np.mean([share(step + 0.01 * place + 0.005) for place in range(5)])
                    for step, count in zip(STEPS, pairs, strict=True)
                ]
                found = sum(right[8:])
                missed = sum(right[:8])
                total += weight
                precision += weight * found / 110
                recall += weight * found / (found + missed)
                f1 += weight * 2 * found / (110 + found + missed)
    at_half = estimate(pairs, *columns(answers))[8]
    assert at_half.threshold == 0.5
    assert at_half.precision.estimated == pytest.approx(precision / total)
    assert at_half.recall.estimated == pytest.approx(recall / total)
    assert at_half.f1 == pytest.approx(f1 / total)
    for share_of in (at_half.precision, at_half.recall):
        assert 0 <= share_of.low < share_of.estimated < share_of.high <= 1


@pytest.mark.slow
def test_the_interval_has_the_truth_in_19_of_20_collections_of_which_the_curve_is_one_of_the_model():  # noqa: E501
    draw = np.random.default_rng(4)
    inside = 0
    trials = 300
    curves = asking._curves_at(POINTS)
    for curve in curves[draw.integers(len(curves), size=trials)]:
        similarity = np.repeat(MIDDLES, 3)
        share = np.interp(similarity, POINTS, curve)
        wrong = draw.choice([0.0, 0.05, 0.1, 0.15])
        same = draw.random(27) < wrong + (1 - 2 * wrong) * share
        by_step = curve.reshape(18, 5).mean(axis=1)
        truth = (UNRELATED[8:] * by_step[8:]).sum() / UNRELATED[8:].sum()
        found = estimate(UNRELATED, similarity, same)
        inside += (
            not found or found[8].precision.low - 1e-9 <= truth <= found[8].precision.high + 1e-9
        )
    # Five standard errors below 95 % (6e-7); the points of the answers lie between those of the
    # curve.
    assert inside / trials > 0.95 - 5 * np.sqrt(0.95 * 0.05 / trials)


def test_a_pair_of_similarity_one_and_one_at_the_lowest_are_answers():
    found = estimate(np.ones(18, np.int64), np.array([0.1, 1.0]), np.array([False, True]))
    assert [each.threshold for each in found] == STEPS.tolist()


def test_without_a_yes_there_is_no_estimate():
    assert estimate(np.ones(18, np.int64), np.array([0.5]), np.array([False])) == []
    assert estimate(np.ones(18, np.int64), np.array([]), np.array([], np.bool_)) == []


@pytest.mark.parametrize(
    ("answers", "bands"),
    [
        (rising(0.5), []),
        (rising(0.5) | {0.45: "nyn"}, []),  # the shares rise
        (rising(0.5) | {0.15: "yn"}, [0, 1, 2, 3]),  # 1/2 below 0, 0, 0: the fewest answers first
        (rising(0.5) | {0.95: "yyn"}, [4, 5, 6, 7, 8]),
        ({0.15: "y", 0.95: "n"}, [0, 8]),
        ({0.15: "y", 0.95: "y"}, []),
        ({}, []),
    ],
)
def test_bands_contradict_where_a_lower_one_has_a_larger_share_of_yes(answers, bands):
    assert asking.contradicting_bands(*columns(answers)) == bands


@pytest.mark.parametrize(("count", "more"), [(27, 4), (24, 4), (23, 2), (22, 1), (21, 0), (3, 0)])
def test_at_most_a_third_more_is_asked_again(count, more):
    answers = (
        rising(0.5) | {0.15: "nyn"} | {0.95: "yyyy"}
    )  # 28 answers; the lowest four bands contradict
    assert len(asking.bands_to_ask_again(*columns(answers), count)) == more


def three_lengths(truth: int) -> tuple[asking.Sample, np.ndarray]:
    """Return pairs whose similarities by 1, 2 and 5 words are independent, and which of them are
    duplicates: from 0.5 on by one of the lengths.
    """
    draw = np.random.default_rng(7)
    similarity = draw.uniform(0.15, 1, (3, 900))
    sample = asking.Sample((1, 2, 5), similarity, np.ones(900), base=2)
    return sample, similarity[sample.lengths.index(truth)] >= 0.5


@pytest.mark.parametrize("ngram", [1, 2, 5])
def test_answers_choose_the_length_that_explains_them(ngram):
    sample, same = three_lengths(ngram)
    decision = asking.decide(asking.estimate(sample, np.arange(90), same[:90]), 0.6, 5, 0.8)
    assert (decision.found.ngram, decision.found.threshold) == (ngram, 0.5)
    assert decision.changes
    assert (decision.given.ngram, decision.given.threshold) == (5, 0.8)


def test_a_shorter_length_is_left_out_where_its_pairs_are_at_the_edge_of_the_search():
    sample, same = three_lengths(1)
    similarity = sample.similarity.copy()
    similarity[1, similarity[0] < 0.7] = 0.12  # found by 2 words, but just
    estimates = asking.estimate(sample._replace(similarity=similarity), np.arange(90), same[:90])
    of_one = [each.threshold for each in estimates if each.ngram == 1]
    assert 0.65 <= min(of_one) <= 0.7
    assert len([each for each in estimates if each.ngram == 5]) == len(STEPS)


def test_a_pool_has_fifty_pairs_of_each_step_that_stand_for_all():
    draw = np.random.default_rng(3)
    similarity = np.concatenate([draw.uniform(0.1, 0.15, 2000), draw.uniform(0.9, 1, 60), [0.5]])
    pool = asking.draw_pool(similarity)
    assert len(np.unique(pool.rows)) == len(pool.rows)
    assert pool.weight.sum() == pytest.approx(len(similarity))
    drawn = similarity[pool.rows]
    assert np.count_nonzero(drawn < 0.15) == 50
    assert set(pool.weight[drawn < 0.15].tolist()) == {40}
    assert asking.band_of(drawn[:5]).tolist() == [8, 4, 0, 8, 0]
    assert not len(asking.draw_pool(np.array([])).rows)


@pytest.mark.slow
@pytest.mark.skipif(not SHARED_DATA.exists(), reason="needs the labelled sets of ../shared")
@pytest.mark.parametrize(
    "name", ["en_terms", "en_doc_versions", "zh_laws", "zh_poetry", "zh_ts, documents"]
)
def test_with_one_answer_in_ten_wrong_19_of_20_draws_have_nine_tenths_of_the_f1_of_the_default(
    name, monkeypatch
):
    monkeypatch.syspath_prepend(str(REPOSITORY / "tools"))
    import measure_mistakes as measuring

    found = measuring.measure(SHARED_DATA, name)
    assert found.enough_of_default("one in ten wrong") >= 19
    assert np.mean(found.chosen["one in ten wrong"]) >= max(0.7, found.default)
