"""Bands are the cheapest that reach the recall, by a plain search over all of them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from neardup.candidates.bands import (
    MAX_BANDS,
    MAX_RECALL,
    MAX_ROWS,
    Bands,
    bands_needed,
    bits_for,
    choose_bands,
    expected_false_candidates,
    pack_keys,
)
from neardup.errors import SettingError


def false_candidates(num_bands: int, rows: int, threshold: float) -> float:
    """Return the area under the curve of candidates over the model corpus, by 200 trapezoids."""

    def density(similarity: float) -> float:
        return (1 - (1 - similarity**rows) ** num_bands) * 30 * math.exp(-similarity)

    width = threshold / 200
    heights = [density(step * width) for step in range(201)]
    return sum((left + right) / 2 * width for left, right in itertools.pairwise(heights))


def fewest_bands(threshold: float, recall: float, rows: int) -> int:
    """Return the fewest bands that reach the recall, counted up; one more than all at most."""
    missed = 1.0
    for num_bands in range(1, MAX_BANDS + 1):
        missed *= 1 - threshold**rows
        if 1 - missed >= recall - 1e-12:
            return num_bands
    return MAX_BANDS + 1


def cheapest(threshold: float, recall: float, num_hashes: float = math.inf) -> tuple[int, int]:
    best = (math.inf, (0, 0))
    for rows in range(1, MAX_ROWS + 1):
        num_bands = fewest_bands(threshold, recall, rows)
        if num_bands <= MAX_BANDS and num_bands * rows <= num_hashes:
            cost = num_bands * rows + 60 * false_candidates(num_bands, rows, threshold)
            best = min(best, (cost, (num_bands, rows)))
    return best[1]


@pytest.mark.parametrize("threshold", [0.02, 0.1, 0.3, 0.6, 0.8, 0.95, 1.0])
@pytest.mark.parametrize("recall", [0.02, 0.5, 0.95, 0.999])
def test_bands_are_the_cheapest_that_reach_the_recall(threshold, recall):
    assert choose_bands(threshold, recall) == cheapest(threshold, recall)


@pytest.mark.parametrize("num_hashes", [1, 16, 64, 128])
def test_bands_use_no_more_hashes_than_there_are(num_hashes):
    expected = cheapest(0.7, 0.6, num_hashes)
    if expected == (0, 0):
        with pytest.raises(SettingError, match=f"more than the {num_hashes} hashes of a signature"):
            choose_bands(0.7, 0.6, num_hashes=num_hashes)
    else:
        assert choose_bands(0.7, 0.6, num_hashes=num_hashes) == expected


@pytest.mark.parametrize(
    ("threshold", "recall", "message"),
    [
        (0.0, 0.5, "threshold must be a number above 0 and at most 1.0: got 0.0"),
        (1.01, 0.5, "threshold must be a number above 0 and at most 1.0: got 1.01"),
        (0.5, 0.0, "recall must be a number above 0 and at most 0.999999: got 0.0"),
        (0.5, 1.0, "recall must be a number above 0 and at most 0.999999: got 1.0"),
    ],
)
def test_numbers_out_of_their_range_are_refused(threshold, recall, message):
    with pytest.raises(SettingError, match=message):
        choose_bands(threshold, recall)


def test_the_greatest_threshold_and_recall_are_accepted():
    assert choose_bands(1.0, MAX_RECALL).num_bands == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        # 1 - (1 - 0.001)^1024, 1 - (1 - 0.1^2)^50, 1 - (1 - 0.1^4)^1024 and 1 - (1 - 0.1^4)^500.
        ({"threshold": 0.001}, "more than 1024 bands. At this threshold a recall of 0.641 can be"),
        (
            {"threshold": 0.1, "num_hashes": 100, "rows_per_band": 2},
            "more than the 100 hashes of a signature. At this threshold a recall of 0.394 can be",
        ),
        (
            {"threshold": 0.1, "num_hashes": 5000, "rows_per_band": 4},
            "more than 1024 bands. At this threshold a recall of 0.097 can be",
        ),
        (
            {"threshold": 0.1, "num_hashes": 2000, "rows_per_band": 4},
            "more than the 2000 hashes of a signature. At this threshold a recall of 0.048 can be",
        ),
    ],
    ids=["bands", "hashes", "more hashes than bands", "fewer bands than hashes"],
)
def test_a_recall_that_is_out_of_reach_names_the_one_within(options, message):
    with pytest.raises(SettingError, match=message):
        choose_bands(recall=0.95, **options)


@pytest.mark.parametrize(
    ("agreement", "recall", "needed"),
    [
        (1.0, 0.999, 1),
        (0.5, 0.5, 1),
        (0.5, 0.75, 2),
        (0.5, 0.76, 3),
        (0.5, 1e-13, 1),
        (1e-05, 0.01018780037850125, MAX_BANDS),  # 1 - (1 - 1e-5)^1024
        (1e-05, 0.0102, MAX_BANDS + 1),
        (0.0, 0.5, MAX_BANDS + 1),
    ],
)
def test_needed_bands_are_rounded_up_within_the_limit(agreement, recall, needed):
    assert bands_needed(agreement, recall) == needed


@pytest.mark.parametrize("bands", [Bands(1, 1), Bands(9, 4), Bands(100, 12)])
@pytest.mark.parametrize("threshold", [0.1, 0.8])
def test_false_candidates_are_the_area_below_the_threshold(bands, threshold):
    expected = false_candidates(*bands, threshold)
    assert expected_false_candidates(bands, threshold) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("count", "bits"), [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (2**32, 32)]
)
def test_bits_represent_all_numbers_below_a_count(count, bits):
    assert bits_for(count) == bits


def test_packed_keys_are_sorted_by_key_and_position():
    keys = np.array([9 << 60, 1 << 60, 9 << 60, 1 << 60], np.uint64)
    positions = np.array([3, 2, 1, 0], np.uint32)
    packed = pack_keys(keys, positions, 4)
    assert packed.tolist() == [1 << 60, 1 << 60 | 2, 9 << 60 | 1, 9 << 60 | 3]
    assert packed is keys


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": "0.8"}, "threshold must be a number above 0 and at most 1.0: got '0.8'"),
        ({"recall": True}, "recall must be a number above 0 and at most 0.999999: got True"),
        ({"rows_per_band": 0}, "rows_per_band must be a whole number of 1 or more: got 0"),
        ({"rows_per_band": -1}, "rows_per_band must be a whole number of 1 or more: got -1"),
        ({"num_hashes": 0}, "needs more than the 0 hashes of a signature"),
        # Not even one band fits into the signature.
        ({"threshold": 1.0, "num_hashes": 4, "rows_per_band": 8}, "a recall of 0.0 can be"),
    ],
)
def test_values_that_no_bands_can_have_are_refused(options, message):
    with pytest.raises(SettingError, match=message):
        choose_bands(**{"threshold": 0.8, "recall": 0.9} | options)
