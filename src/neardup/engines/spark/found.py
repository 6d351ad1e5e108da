"""Collect what a cluster has found on the driver, where a rule decides as on one machine."""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from neardup.arrays import Array, Floats, Ints, Mask, Positions, Words, arrow_of, find_in
from neardup.decide.outcome import SHORT
from neardup.decide.priority import priority_order, rank_columns
from neardup.decide.rule import Confirmed, Found, Queue, Rule
from neardup.documents.batch import Corpus, ValueNames
from neardup.engines.base import Searched
from neardup.engines.capabilities import large_spark_of
from neardup.engines.spark import output
from neardup.engines.spark.blocks import collect
from neardup.engines.spark.pipeline import (
    LISTED,
    PLACES,
    POSITIONS,
    Outcome,
    Run,
    Search,
    driver_limit,
)
from neardup.engines.spark.session import translated
from neardup.engines.spark.source import NEW, PART_SHIFT
from neardup.features.grouping import hash_values
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.methods.stages import batch_of
from neardup.runs.locations import DocumentLocations
from neardup.schemas import CANDIDATES, confirmed_schema
from neardup.verify.measured import Measured, measured_of_copies


class Listed(NamedTuple):
    """The documents of a run, without their texts, in input order.

    rows : of LISTED. corpus : their numbers. rejected : the lines of rejected.jsonl. values :
    uint64 by document, the hash of its value in the column of groups or of counts; empty without
    one. order : uint32, the documents in the order in which the rule decides.
    """

    rows: pa.Table
    corpus: Corpus
    rejected: list[str]
    values: Words
    order: Positions

    @property
    def keys(self) -> Ints:
        """The documents on the cluster, rising; see PART_SHIFT."""
        keys: Ints = self.rows["document"].to_numpy()
        return keys

    @property
    def sizes(self) -> Ints:
        """The number of features of each document."""
        sizes: Ints = self.rows["size"].to_numpy()
        return sizes

    @property
    def ids(self) -> pa.Array:
        """The id of each document, null without one."""
        return self.rows["id"].combine_chunks()


def list_documents(listed: DataFrame, rule: Rule, tasks: list[Task], keep: str) -> Listed:
    """Collect the documents of a run. listed : blocks of LISTED."""
    num_ranks = len(rank_columns(keep))
    rows = collect(listed, LISTED)
    light = rows.filter(rows["rejected"].is_null()).sort_by("document")
    lines = output.in_order(rows.filter(rows["rejected"].is_valid()))
    counted = light["count_by"].combine_chunks()
    values = np.empty(0, np.uint64) if counted.null_count == len(counted) else hash_values(counted)
    corpus = _corpus(rows, light, lines, tasks)
    corpus = replace(corpus, names=_names(counted, values, corpus.num_against))
    lengths = light["bytes"].to_numpy()
    ranks = _ranks(light, num_ranks)
    order = priority_order(keep, corpus, lengths, ranks)
    return Listed(light, corpus, lines, values, rule.order(order, corpus.num_against, values))


def place_documents(listed: Listed) -> pa.Table:
    """Return the documents with their positions on the cluster, in the order of a rule."""
    positions = np.arange(len(listed.order))
    positions[listed.corpus.num_against :] += NEW
    return pa.table({"document": listed.keys[listed.order], "position": positions})


def find_here(flow: Run, search: Search, listed: Listed, tasks: list[Task], rule: Rule) -> Searched:
    """Collect the pairs of a run, and return them with its documents."""
    method = flow.method.value
    sizes, corpus, num_against = listed.sizes, listed.corpus, listed.corpus.num_against
    placed = _places(search, listed.keys)
    order = _by_size(placed, len(sizes)) if search.by_size else listed.order
    queue = _queue(order, placed, sizes > 0, num_against)
    at = _Positions(placed, queue)
    pairs = _Pairs.collect(search.confirmed, at, method)
    found = _found(flow, search, at, pairs, rule)
    found = replace(found, lengths=listed.rows["bytes"].to_numpy(), values=listed.values)
    ids = listed.ids if any(task.columns.id is not None for task in tasks) else None
    names = [task.part.name for task in tasks]
    return Searched(
        tasks=tasks,
        method=method,
        corpus=corpus,
        locations=DocumentLocations(
            names, corpus, listed.rows["row"].to_numpy(), ids, lambda: None
        ),
        warnings=[],
        found=found,
        short=int(np.count_nonzero((sizes > 0) & (sizes < SHORT))),
        expected=partial(_expected, pairs, queue),
    )


def _corpus(rows: pa.Table, light: pa.Table, lines: list[str], tasks: list[Task]) -> Corpus:
    """Return the corpus. rows : documents and rejected rows. light : the documents."""
    parts = light["document"].to_numpy() >> PART_SHIFT
    all_parts = rows["document"].to_numpy() >> PART_SHIFT
    num_documents = np.bincount(parts, minlength=len(tasks))
    num_rejected = np.bincount(all_parts, minlength=len(tasks)) - num_documents
    num_bytes = np.bincount(parts, light["bytes"].to_numpy(), len(tasks)).astype(np.int64)
    without = int(np.count_nonzero(light["size"].to_numpy() == 0))
    return output.corpus_of_counts(
        np.stack([num_documents, num_rejected, num_bytes]), without, lines, tasks
    )


def _names(column: pa.Array, hashes: Words, num_against: int) -> ValueNames:
    """Return the values of the counted column, each once; hashes : of the values, by document."""
    distinct, first = np.unique(hashes[num_against:], return_index=True)
    return ValueNames(distinct, column.take(arrow_of(first + num_against)))


def _ranks(light: pa.Table, num_ranks: int) -> list[Floats]:
    """Return the columns by which documents are ordered, float64 (num_documents, 2) each."""
    if not num_ranks:
        return []
    ranks = np.full((len(light), 2 * num_ranks), np.nan)  # of the earlier corpus, which has none
    lists = light["ranks"].combine_chunks()
    has_ranks = np.diff(lists.offsets.to_numpy()) > 0
    ranks[has_ranks] = lists.flatten().to_numpy().reshape(-1, 2 * num_ranks)
    return [ranks[:, 2 * number : 2 * number + 2] for number in range(num_ranks)]


def decide_rows(flow: Run, search: Search, rule: Rule) -> Outcome:
    """Decide about the rows of a DataFrame on the driver, by a rule that workers do not perform."""
    if not search.fits_driver:
        size = large_spark_of(search.num_documents, search.num_pairs, driver_limit())
        size.refuse("dedup", asdict(flow.selection))
    method = flow.method.value
    with flow.named("decide"):
        rows = collect(search.placed, POSITIONS).sort_by("position")
        places, first = (column.to_numpy() for column in rows.columns)
        numbers = np.arange(len(places), dtype=np.uint32)
        placed = _Places(places, numbers, np.searchsorted(places, first))
        queue = _queue(
            numbers, placed, np.ones(len(places), np.bool_), int(np.searchsorted(places, NEW))
        )
        at = _Positions(placed, queue)
        found = _found(flow, search, at, _Pairs.collect(search.confirmed, at, method), rule)
    removals = rule.decide(found).removals
    measured = removals.measured
    table = batch_of(
        confirmed_schema(method.measures),
        places[removals.kept],
        places[removals.documents],
        method.strength(measured),
        np.ones(len(removals.kept)),
        *measured.arrow(method.measures),
    )
    removed = flow.spark.createDataFrame(pa.Table.from_batches([table]))
    return Outcome(
        search.light, search.documents, search.compared, search.hidden, removed, removed, 0
    )


def _found(flow: Run, search: Search, at: _Positions, pairs: _Pairs, rule: Rule) -> Found:
    """Return the confirmed pairs of a search; it has neither lengths nor values of documents."""
    unlisted = _unlisted(search, at)
    return Found(
        queue=at.queue,
        confirmed=_confirmed(pairs, _left_out(unlisted, at.queue, rule), search.compared),
        method=flow.method.value,
        lengths=np.empty(0, np.int64),
        values=np.empty(0, np.uint64),
        unlisted=lambda: [unlisted],
        measure=partial(_measure, flow, at),
        sieved=False,
    )


class _Places(NamedTuple):
    """Documents with features, by their places on the cluster.

    places : int64, rising. documents : uint32, their running numbers. first : int64, the row here
    of the first document of the same content.
    """

    places: Ints
    documents: Positions
    first: Ints


def _places(search: Search, keys: Ints) -> _Places:
    rows = collect(search.placed, PLACES).sort_by("position")
    document, places, first = (column.to_numpy() for column in rows.columns)
    documents = np.searchsorted(keys, document).astype(np.uint32)
    return _Places(places, documents, np.searchsorted(places, first))


def _by_size(placed: _Places, num_documents: int) -> Positions:
    """Return the documents in the order of a search in which the larger one of a pair comes
    first.
    """
    rest = np.ones(num_documents, np.bool_)
    rest[placed.documents] = False
    return np.append(placed.documents, np.flatnonzero(rest)).astype(np.uint32)


def _queue(order: Positions, placed: _Places, featured: Mask, num_against: int) -> Queue:
    """Return the queue of all documents, in the order in which a rule decides."""
    position = np.empty_like(order)
    position[order] = np.arange(len(order), dtype=order.dtype)
    # The first of a content in this order, which may differ from that of the cluster.
    first = np.full(len(placed.first), len(order), np.int64)
    np.minimum.at(first, placed.first, position[placed.documents])
    representative = np.arange(len(order), dtype=np.uint32)
    representative[position[placed.documents]] = first[placed.first]
    return Queue(order, representative, featured, num_against)


class _Positions:
    """Translates places on the cluster, and documents, to positions in the queue."""

    def __init__(self, placed: _Places, queue: Queue) -> None:
        self._placed, self.queue = placed, queue
        self._of_document = np.empty_like(queue.order)
        self._of_document[queue.order] = np.arange(len(queue.order), dtype=queue.order.dtype)

    def of_places(self, places: Ints) -> Positions:
        """Return the positions of documents with features."""
        positions: Positions = self._of_document[
            self._placed.documents[np.searchsorted(self._placed.places, places)]
        ]
        return positions

    def places_of(self, positions: Ints) -> Ints:
        """Return the places of documents with features."""
        order = np.argsort(self._placed.documents)
        rows = order[
            np.searchsorted(self._placed.documents, self.queue.order[positions], sorter=order)
        ]
        places: Ints = self._placed.places[rows]
        return places

    def of_documents(self, documents: Positions) -> Positions:
        """Return the positions of documents."""
        positions: Positions = self._of_document[documents]
        return positions


class _Pairs(NamedTuple):
    """Measured pairs, by their keys. keys : int64, rising, both positions. expected : as in
    confirmed_schema.
    """

    keys: Ints
    measured: Measured
    expected: Floats

    @classmethod
    def collect(cls, blocks: object, at: _Positions, method: Method) -> _Pairs:
        """Collect pairs of first documents of their contents; a directed measure may be there in
        both directions.
        """
        rows = collect(blocks, confirmed_schema(method.measures))
        left, right = (at.of_places(rows[name].to_numpy()) for name in ("left", "right"))
        if not method.directed:
            left, right = np.minimum(left, right), np.maximum(left, right)
        keys, first = np.unique(_keys(left, right), return_index=True)
        measured = output.measured_of(rows, method.measures).take(first)
        return cls(keys, measured, rows["expected"].to_numpy()[first])

    @property
    def left(self) -> Positions:
        """The kept or the earlier position of each."""
        return (self.keys & 0xFFFFFFFF).astype(np.uint32)

    @property
    def right(self) -> Positions:
        """The other position."""
        return (self.keys >> 32).astype(np.uint32)

    def find(self, left: Positions, right: Positions) -> Ints:
        """Return the rows of pairs in either direction. Requires: all are there."""
        at, is_there = find_in(self.keys, _keys(left, right))
        other, _ = find_in(self.keys, _keys(right, left))
        rows: Ints = np.where(is_there, at, other)
        return rows


def _keys(left: Array, right: Array) -> Ints:
    keys: Ints = right.astype(np.int64) << 32 | left.astype(np.int64)
    return keys


def _unlisted(search: Search, at: _Positions) -> tuple[Positions, Positions]:
    """Return positions that a bucket does not list, and the later ones that look it up."""
    hidden = collect(search.hidden, CANDIDATES)
    return at.of_places(~hidden["left"].to_numpy()), at.of_places(hidden["right"].to_numpy())


def _left_out(unlisted: tuple[Positions, Positions], queue: Queue, rule: Rule) -> Mask:
    """Return by position whether a bucket has an earlier document that it does not list.

    A copy looks up the buckets of the first document of its content, unless the rule compares
    contents alone.
    """
    size = len(queue.order)
    first_unlisted = np.full(size, size, np.int64)
    np.minimum.at(first_unlisted, unlisted[1], unlisted[0])
    left_out = np.arange(size) > first_unlisted[queue.representative]
    if rule.pairs == "distinct":
        left_out &= queue.is_first
    else:
        left_out[: queue.num_against] = False
    return left_out


def _confirmed(pairs: _Pairs, left_out: Mask, compared: int) -> Confirmed:
    """Return the pairs as those of a search that has not decided."""
    no_best = np.zeros(len(pairs.keys), np.bool_)
    kept = np.ones(len(left_out), np.bool_)
    return Confirmed(
        kept, pairs.left, pairs.right, pairs.measured, no_best, left_out, compared, None
    )


def _measure(flow: Run, at: _Positions, kept: Positions, documents: Positions) -> Measured:
    """Return the measures of pairs of documents; workers measure them."""
    first, method = at.queue.representative, flow.method.value
    left, right = first[at.of_documents(kept)], first[at.of_documents(documents)]
    measured = measured_of_copies(len(left), method.measures)
    other = left != right
    if other.any():
        keys = np.unique(_keys(left[other], right[other]))
        ends = {"left": at.places_of(keys & 0xFFFFFFFF), "right": at.places_of(keys >> 32)}
        with translated(), flow.named("decide"):
            asked = flow.spark.createDataFrame(pa.table(ends))
            pairs = _Pairs.collect(flow.measure(asked), at, method)
        rows = pairs.find(left[other], right[other])
        for name, column in measured.columns.items():
            column[other] = pairs.measured[name][rows]
    return measured


def _expected(
    pairs: _Pairs, queue: Queue, left: Positions, right: Positions, _: Measured
) -> Floats:
    """Return the similarities by which the chance of pairs to be proposed is known."""
    return pairs.expected[pairs.find(queue.representative[left], queue.representative[right])]
