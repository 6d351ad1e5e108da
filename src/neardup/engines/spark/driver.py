"""Decide on the driver about the pairs that workers found, with the code of the local engine."""

from __future__ import annotations

import json
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame

from neardup.arrays import arrow_of, begins_run, ranges
from neardup.decide.connected import connect, roots
from neardup.decide.outcome import SHORT, Outcome, Pairs, Removals, count_decisions
from neardup.decide.sieve import decide
from neardup.documents.corpus import Corpus
from neardup.engines.spark import output
from neardup.engines.spark.blocks import collect
from neardup.engines.spark.pipeline import LISTED, PLACES, Search
from neardup.engines.spark.source import NEW, PART_SHIFT
from neardup.features.grouping import hash_values
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.output.tables import DocumentLocations
from neardup.schemas import CANDIDATES, confirmed_schema
from neardup.verify.measured import Measured, measured_of_copies
from neardup.verify.recall import Recall, estimate_recall

Places = npt.NDArray[np.int64]


class Decisions(NamedTuple):
    """The decisions of a run.

    rejected : the lines of rejected.jsonl. id_hashes, value_hashes : uint64 by document, of its id and of the counted
    value; empty if there are none.
    """

    outcome: Outcome
    locations: DocumentLocations
    rejected: list[str]
    id_hashes: npt.NDArray[np.uint64]
    value_hashes: npt.NDArray[np.uint64]


class _Queue(NamedTuple):
    """Documents with features in the order of priority.

    positions : int64, rising. numbers : uint32, their running numbers. first : int64, the place in the queue of the
    first document of the same content. num_against : those of the earlier corpus.
    """

    positions: Places
    numbers: npt.NDArray[np.uint32]
    first: Places
    num_against: int


class _Found(NamedTuple):
    """Pairs of documents, by their places in the queue. row : of the measured pairs, or -1 for a copy."""

    left: Places
    right: Places
    row: Places

    def take(self, rows: Places) -> _Found:
        """Return some of the pairs."""
        return _Found(*(column[rows] for column in self))


def decide_here(search: Search, tasks: list[Task], method: Method, *, all_pairs: bool) -> Decisions:
    """Collect the documents, without their texts, and the pairs of a run, and decide."""
    light = collect(search.listed, LISTED)
    rejected, light = (light.filter(mask) for mask in (light["rejected"].is_valid(), light["rejected"].is_null()))
    light = light.sort_by("document")
    keys, num_bytes, sizes = (light[name].to_numpy() for name in ("document", "bytes", "size"))
    at = [rows["document"].to_numpy() >> PART_SHIFT for rows in (light, rejected, light)]
    weighed = zip(at, (None, None, num_bytes), strict=True)
    counts = np.stack([np.bincount(parts, weights, len(tasks)) for parts, weights in weighed]).astype(np.int64)
    lines = _in_order(rejected)
    corpus = output.corpus_of_counts(counts, int(np.count_nonzero(sizes == 0)), lines, tasks)
    queue = _queue(search, keys)
    found, measured, removed, expected = _decide(search, queue, method, all_pairs)
    removals = Removals(queue.numbers[removed.right], queue.numbers[removed.left], measured[1].take(removed.row))
    pairs = Pairs(queue.numbers[found.left], queue.numbers[found.right], measured[0].take(found.row))
    num_overflows = _num_overflows(search, queue, removed.right)
    outcome = Outcome(
        corpus=corpus,
        counts=count_decisions(removals, pairs, corpus, num_bytes),
        short=int(np.count_nonzero((sizes > 0) & (sizes < SHORT))),
        compared=search.compared,
        num_bucket_overflows=num_overflows,
        recall=None if num_overflows else _recall(found, pairs.measured.exact, expected, len(keys), method),
        removals=removals,
        pairs=pairs,
    )
    ids = light["id"].combine_chunks() if any(task.columns.id is not None for task in tasks) else None
    parts = [task.part.name for task in tasks]
    locations = DocumentLocations(parts, corpus, light["row"].to_numpy(), ids, lambda: None)
    hashes = np.empty(0, np.uint64) if ids is None else hash_values(ids)
    return Decisions(outcome, locations, lines, hashes, _values(light["count_by"].combine_chunks(), corpus))


def _in_order(rejected: pa.Table) -> list[str]:
    """Return the lines of rejected.jsonl, by file and row."""

    def place(number: int) -> list[int]:
        row = json.loads(lines[number])
        return [documents[number], *(-1 if row[name] is None else row[name] for name in ("row", "line"))]

    lines, documents = rejected["rejected"].to_pylist(), rejected["document"].to_pylist()
    return [lines[number] for number in sorted(range(len(lines)), key=place)]


def _queue(search: Search, keys: Places) -> _Queue:
    placed = collect(search.placed, PLACES).sort_by("position")
    document, positions, first = (column.to_numpy() for column in placed.columns)
    numbers = np.searchsorted(keys, document).astype(np.uint32)
    return _Queue(positions, numbers, np.searchsorted(positions, first), int(np.searchsorted(positions, NEW)))


def _decide(
    search: Search, queue: _Queue, method: Method, all_pairs: bool
) -> tuple[_Found, tuple[Measured, Measured], _Found, npt.NDArray[np.float64]]:
    """Return all pairs, the measures of the rows of these and of the removals, the removals, and what is expected."""
    confirmed, found = _collect(search.confirmed, queue, method)
    measured, expected = _measured(confirmed, method), confirmed["expected"].to_numpy()
    kept = np.ones(len(queue.first), np.bool_)
    if search.clusters is not None:
        clusters, edges = _collect(search.clusters, queue, method)
        kept[edges.right] = False
        removed, of_removed = _with_copies(edges, kept, queue), _measured(clusters, method)
    elif all_pairs:
        removed, of_removed = found.take(np.empty(0, np.int64)), measured
    else:
        later = (found.left < found.right) & (found.right >= queue.num_against)
        left, right = (end[later].astype(np.uint32) for end in (found.left, found.right))
        # Strength does not change which documents are kept, only by which of them another is removed.
        kept = decide(left, right, np.ones(len(left)), np.arange(len(kept), dtype=np.uint32), queue.num_against).kept
        found, of_removed = _with_copies(found, kept, queue), measured
        strength = np.append(confirmed["strength"].to_numpy(), np.inf)[found.row]
        best = np.lexsort((found.left, -strength, found.right))
        removed = found.take(best[begins_run(found.right[best])])
    return found, (measured, of_removed), removed.take(np.argsort(queue.numbers[removed.right])), expected


def _collect(blocks: DataFrame, queue: _Queue, method: Method) -> tuple[pa.Table, _Found]:
    """Return measured pairs, by the later document and then by the earlier."""
    rows = collect(blocks, confirmed_schema(method.measures)).sort_by([("right", "ascending"), ("left", "ascending")])
    left, right = (np.searchsorted(queue.positions, rows[name].to_numpy()) for name in ("left", "right"))
    return rows, _Found(left, right, np.arange(len(rows)))


def _measured(rows: pa.Table, method: Method) -> Measured:
    """Return the measures of pairs, and behind them those of a document and its copy."""
    columns, copy = output.measured_of(rows, method.measures).columns, measured_of_copies(1, method.measures).columns
    return Measured({name: np.append(values, copy[name]) for name, values in columns.items()})


def _with_copies(found: _Found, kept: npt.NDArray[np.bool_], queue: _Queue) -> _Found:
    """Return the pairs of a kept document and a removed one, those of its copies, and those of copies of kept ones."""
    members = np.argsort(queue.first, kind="stable")
    numbers, starts, sizes = np.unique(queue.first[members], return_index=True, return_counts=True)
    alone = np.flatnonzero(kept[numbers] & (sizes > 1))
    chosen = np.flatnonzero(kept[found.left] & ~kept[found.right])
    left, first = np.append(found.left[chosen], numbers[alone]), np.append(found.right[chosen], numbers[alone])
    group = np.searchsorted(numbers, first)
    right = members[ranges(starts[group], sizes[group])]
    left = np.repeat(left, sizes[group])
    row = np.repeat(np.append(chosen, np.full(len(alone), -1)), sizes[group])
    later = np.flatnonzero((left < right) & (right >= queue.num_against))
    pairs = _Found(left, right, row).take(later)
    return pairs.take(np.lexsort((pairs.left, pairs.right)))


def _num_overflows(search: Search, queue: _Queue, removed: Places) -> int:
    """Return the same as `output.num_overflows`."""
    hidden = collect(search.hidden, CANDIDATES)
    left, right = (
        np.searchsorted(queue.positions, end) for end in (~hidden["left"].to_numpy(), hidden["right"].to_numpy())
    )
    if search.clusters is not None:
        return len(np.unique(right))
    unlisted = np.full(len(queue.first), len(queue.first))
    np.minimum.at(unlisted, right, left)
    behind = np.arange(len(queue.first)) > unlisted[queue.first]
    behind[: queue.num_against] = False
    behind[removed] = False
    return int(np.count_nonzero(behind))


def _recall(
    found: _Found, exact: npt.NDArray[np.bool_], expected: npt.NDArray[np.float64], num_documents: int, method: Method
) -> Recall | None:
    if method.hit_probability is None:
        return None
    left, right = (end[~exact].astype(np.uint32) for end in (found.left, found.right))
    parents = np.arange(num_documents, dtype=np.uint32)
    connect(parents, left, right)
    return estimate_recall(expected[found.row[~exact]], roots(parents)[left], method.hit_probability)


def _values(column: pa.Array, corpus: Corpus) -> npt.NDArray[np.uint64]:
    """Return the hash of the counted value of each document, and note the values."""
    if column.null_count == len(column):
        return np.empty(0, np.uint64)
    hashes = hash_values(column)
    distinct, first = np.unique(hashes[corpus.num_against :], return_index=True)
    names = column.slice(corpus.num_against).take(arrow_of(first)).to_pylist()
    corpus.tally.values |= dict(zip(map(str, distinct.tolist()), names, strict=True))
    return hashes
