"""Check the sizes of samples against exact arithmetic."""

from __future__ import annotations

import pytest

from neardup.candidates.samples import Samples, choose_samples, hit_probability, needed_by_size
from neardup.errors import SettingError
from reference import samples as exact


@pytest.mark.parametrize("threshold", [0.03, 0.05, 0.1, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0])
@pytest.mark.parametrize("recall", [0.5, 0.8, 0.95, 0.99])
def test_samples_and_the_hits_that_they_need_are_exact(threshold, recall):
    chosen = exact.choose(threshold, recall)
    if chosen == (0, 0):
        with pytest.raises(SettingError, match="more than 128 samples of a document"):
            choose_samples(threshold, recall)
        return
    samples = choose_samples(threshold, recall)
    assert samples == chosen
    assert needed_by_size(threshold, recall, samples).tolist() == exact.needed_hits(
        threshold, recall
    )


def test_a_sample_that_reaches_the_recall_exactly_is_enough():
    # One of two halves: 1 - 0.5^1 and 1 - 0.5^2 are numbers that floats represent.
    assert needed_by_size(0.5, 0.5, Samples(4, 2))[1] == 1
    assert needed_by_size(0.5, 0.75, Samples(4, 1))[2] == 1


def test_the_chance_of_any_array_has_its_shape():
    chances = hit_probability([[0.0, 0.5], [1.0, 1.0]], Samples(2, 2))
    assert chances.tolist() == [[0.0, 0.25], [1.0, 1.0]]
