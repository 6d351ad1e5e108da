"""The counts of the parts of a run add up to those of the run."""

from __future__ import annotations

import functools
import operator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from neardup.decide.outcome import Counts, Pairs, Removals, count_decisions
from neardup.verify.measured import Measured

NUM_DOCUMENTS = 3000
CORPUS: Any = SimpleNamespace(part_ends=np.array([500, 1200, 1200, NUM_DOCUMENTS]))


def measured(draw: np.random.Generator, size: int) -> Measured:
    """Return random measures, of which many are equal."""
    similarity = draw.integers(10, 21, size) / 20
    return Measured(
        {
            "similarity": similarity,
            "distance": draw.integers(0, 4, size).astype(np.uint16),
            "exact": (similarity == 1) & (draw.random(size) < 0.5),
        }
    )


def count(removals: Removals, pairs: Pairs, sizes: np.ndarray | None) -> Counts:
    lengths = np.arange(NUM_DOCUMENTS, dtype=np.int64) % 97
    return count_decisions(removals, pairs, CORPUS, lambda documents: lengths[documents], sizes)


def rows_of(counts: Counts) -> dict[tuple, int]:
    """Return how many documents have each measure, in any order."""
    repeats: dict[tuple, int] = {}
    for *measures, number in zip(*counts.near.columns.values(), counts.repeats, strict=True):
        repeats[tuple(measures)] = repeats.get(tuple(measures), 0) + int(number)
    return repeats


@pytest.mark.parametrize("num_parts", [1, 2, 7])
def test_the_counts_of_parts_add_up(num_parts):
    draw = np.random.default_rng(num_parts)
    removed = np.flatnonzero(draw.random(NUM_DOCUMENTS) < 0.4).astype(np.uint32)
    kept = draw.integers(0, NUM_DOCUMENTS, len(removed)).astype(np.uint32)
    removals = Removals(removed, kept, measured(draw, len(removed)))
    pairs = Pairs(removed, kept, removals.measured)
    sizes = draw.integers(2, 9, 100)
    whole = count(removals, pairs, sizes)
    parts = []
    for rows in np.array_split(np.arange(len(removed)), num_parts):
        part = removals.take(rows)
        some = Pairs(part.documents, part.kept, part.measured)
        parts.append(count(part, some, sizes[len(parts) :: num_parts]))
    total = functools.reduce(operator.add, parts)
    assert (total.removed, total.removed_exact) == (whole.removed, whole.removed_exact)
    assert (total.pairs, total.pairs_exact) == (whole.pairs, whole.pairs_exact)
    assert total.cluster_sizes == whole.cluster_sizes
    assert np.array_equal(total.by_inputs, whole.by_inputs)
    assert rows_of(total) == rows_of(whole)
    for name, column in total.near.columns.items():
        assert column.dtype == whole.near[name].dtype


@pytest.mark.parametrize("at_once", [1, 7, 65_536])
def test_removed_documents_and_bytes_are_counted_by_input(at_once, monkeypatch):
    monkeypatch.setattr("neardup.decide.outcome._DOCUMENTS_AT_ONCE", at_once)
    draw = np.random.default_rng(3)
    removed = np.flatnonzero(draw.random(NUM_DOCUMENTS) < 0.02).astype(np.uint32)
    kept = draw.integers(0, NUM_DOCUMENTS, len(removed)).astype(np.uint32)
    removals = Removals(removed, kept, measured(draw, len(removed)))
    # Documents 499 and 500 are in the first two inputs; the third has no document.
    input_of = [0] * 500 + [1] * 700 + [3] * (NUM_DOCUMENTS - 1200)
    cells: dict[tuple[int, int], list[int]] = {}
    for document, keeper in zip(removed.tolist(), kept.tolist(), strict=True):
        cell = cells.setdefault((input_of[document], input_of[keeper]), [0, 0])
        cell[0] += 1
        cell[1] += document % 97
    counts = count(removals, Pairs(removed, kept, removals.measured), np.empty(0, int))
    assert counts.by_inputs.tolist() == [[*cell, *cells[cell]] for cell in sorted(cells)]


def test_a_cluster_is_a_kept_document_and_the_ones_removed_for_it_unless_sizes_are_given():
    removed = np.array([3, 4, 5, 7], np.uint32)
    kept = np.array([1, 1, 2, 1], np.uint32)
    removals = Removals(removed, kept, measured(np.random.default_rng(1), 4))
    pairs = Pairs(removed, kept, removals.measured)
    assert count(removals, pairs, None).cluster_sizes == [[2, 1], [4, 1]]
    assert count(removals, pairs, np.array([3, 3, 5])).cluster_sizes == [[3, 2], [5, 1]]


def test_nothing_added_changes_nothing():
    draw = np.random.default_rng(1)
    none = np.empty(0, np.uint32)
    nothing = count(
        Removals(none, none, measured(draw, 0)),
        Pairs(none, none, measured(draw, 0)),
        np.empty(0, int),
    )
    removed = np.arange(10, dtype=np.uint32)
    removals = Removals(removed, removed + 20, measured(draw, 10))
    counts = count(removals, Pairs(removed, removed + 20, removals.measured), np.array([2, 3]))
    for total in (counts + nothing, nothing + counts):
        assert rows_of(total) == rows_of(counts)
        assert total.cluster_sizes == counts.cluster_sizes
        assert np.array_equal(total.by_inputs, counts.by_inputs)
    empty = nothing + nothing
    assert (empty.removed, empty.cluster_sizes, len(empty.repeats)) == (0, [], 0)
