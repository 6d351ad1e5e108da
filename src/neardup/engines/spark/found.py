"""Collect the documents and pairs of a cluster on the driver, where a rule decides as locally.

A document has three numbers here: its *key*, by which a worker reads it (PART_SHIFT); its *place*,
the column `position` of the tables on the cluster, which rises with the priority but has gaps; and
its *position* in the queue of the rule, from 0 without gaps.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from neardup.arrays import Array, Floats, Ints, Mask, Positions, Words, arrow_of, find_in
from neardup.decide.outcome import SHORT, Removals
from neardup.decide.priority import priority_order, rank_columns
from neardup.decide.rule import Confirmed, Found, Queue, Rule
from neardup.documents.batch import Corpus, ValueNames
from neardup.engines.base import Searched
from neardup.engines.capabilities import large_spark_of
from neardup.engines.spark import output
from neardup.engines.spark.blocks import collect
from neardup.engines.spark.pipeline import Outcome, Run, Search, driver_limit
from neardup.engines.spark.session import translated
from neardup.engines.spark.source import NEW
from neardup.engines.spark.workers import (
    DOCUMENT_POSITIONS,
    LISTED,
    PARTS,
    POSITIONS,
    count_parts,
)
from neardup.features.grouping import hash_values
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.methods.stages import batch_of
from neardup.runs.locations import DocumentLocations
from neardup.schemas import CANDIDATES, confirmed_schema
from neardup.verify.measured import Measured, measured_of_copies

_LEFT = 0xFFFFFFFF  # the bits of the left position in the key of a pair


class Listed(NamedTuple):
    """The documents of a run, without their texts, in input order.

    rows : of LISTED. corpus : their numbers. rejected : the lines of rejected.jsonl. values :
    uint64 by document, the hash of its value in the column of groups or of counts; empty without
    such a column. described : the same of each column that describes documents. order : uint32, the
    documents in the order in which the rule decides.
    """

    rows: pa.Table
    corpus: Corpus
    rejected: list[str]
    values: Words
    described: dict[str, Words]
    order: Positions

    @property
    def keys(self) -> Ints:
        """The keys of the documents, rising; see PART_SHIFT."""
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
    all_rows = collect(listed, LISTED)
    rows = all_rows.filter(all_rows["rejected"].is_null()).sort_by("document")
    lines = output.in_order(all_rows.filter(all_rows["rejected"].is_valid()))
    parts = pa.Table.from_batches(count_parts(all_rows.to_batches()), PARTS)
    corpus = output.corpus_of(parts, lines, tasks)
    num_against = corpus.num_against
    values = _values_of(rows, tasks, num_against)
    corpus = replace(corpus, names=values.names)
    ranks = _ranks(rows["ranks"].combine_chunks(), len(rank_columns(keep)))
    order = priority_order(keep, corpus, rows["bytes"].to_numpy(), ranks)
    return Listed(
        rows=rows,
        corpus=corpus,
        rejected=lines,
        values=values.counted,
        described=values.described,
        order=rule.order(order, num_against, values.counted),
    )


class _Values(NamedTuple):
    """The values of documents. counted, described : as in `Listed`. names : of these values."""

    counted: Words
    described: dict[str, Words]
    names: ValueNames


def _values_of(rows: pa.Table, tasks: list[Task], num_against: int) -> _Values:
    """Return the values of documents. rows : of LISTED."""
    counted = rows["count_by"].combine_chunks()
    is_counted = counted.null_count < len(counted)
    hashes = hash_values(counted) if is_counted else np.empty(0, np.uint64)
    lists = rows["described"].combine_chunks()  # null in the earlier collection
    column_names = next((task.columns.described for task in tasks if not task.against), ())
    columns = [pc.list_element(lists, number) for number in range(len(column_names))]
    described = [hash_values(column) for column in columns]
    names = [
        _names(column, values, num_against)
        for column, values in zip([counted, *columns], [hashes, *described], strict=True)
    ]
    return _Values(
        counted=hashes,
        described=dict(zip(column_names, described, strict=True)),
        names=ValueNames.join(names),
    )


def place_documents(listed: Listed) -> pa.Table:
    """Return the keys of documents with their places on the cluster, in the order of a rule."""
    places = np.arange(len(listed.order))
    places[listed.corpus.num_against :] += NEW
    return pa.table({"document": listed.keys[listed.order], "position": places})


def find_here(flow: Run, search: Search, listed: Listed, tasks: list[Task], rule: Rule) -> Searched:
    """Collect the pairs of a run, and return them with its documents."""
    method = flow.method.value
    corpus = listed.corpus
    rows = collect(search.positions, DOCUMENT_POSITIONS).sort_by("position")
    # Keys rise, so that the row of a document is its number.
    documents = np.searchsorted(listed.keys, rows["document"].to_numpy()).astype(np.uint32)
    has_features = listed.sizes > 0
    order = listed.order
    if search.by_size:  # the larger document of a pair comes first
        order = np.append(documents, np.flatnonzero(~has_features).astype(np.uint32))
    at = _Positions.of(rows, documents, order, has_features, corpus.num_against)
    pairs = _Pairs.collect(search.confirmed, at, method)
    found = _found(flow, search, at, pairs, rule)
    found = replace(found, lengths=listed.rows["bytes"].to_numpy(), values=listed.values)
    return Searched(
        tasks=tasks,
        method=method,
        corpus=corpus,
        locations=_locate(listed, tasks),
        warnings=[],
        found=found,
        described=listed.described,
        short=int(np.count_nonzero(has_features & (listed.sizes < SHORT))),
        expected=partial(_expected, pairs, at.queue),
    )


def _locate(listed: Listed, tasks: list[Task]) -> DocumentLocations:
    """Return the locations of all documents."""
    names = [task.part.name for task in tasks]
    row_numbers = listed.rows["row"].to_numpy()
    has_ids = any(task.columns.id is not None for task in tasks)
    ids = listed.ids if has_ids else None
    return DocumentLocations(names, listed.corpus, row_numbers, ids, lambda: None)


def _names(counted: pa.Array, hashes: Words, num_against: int) -> ValueNames:
    """Return the values of the counted column, each once. hashes : of all of its values."""
    distinct, first = np.unique(hashes[num_against:], return_index=True)
    return ValueNames(distinct, counted.take(arrow_of(first + num_against)))


def _ranks(lists: pa.ListArray, num_ranks: int) -> list[Floats]:
    """Return the columns by which documents are ordered, float64 (num_documents, 2) each."""
    ranks = np.full((len(lists), num_ranks, 2), np.nan)
    if num_ranks:
        has_ranks = np.diff(lists.offsets.to_numpy()) > 0  # the earlier corpus has none
        ranks[has_ranks] = lists.flatten().to_numpy().reshape(-1, num_ranks, 2)
    return [ranks[:, number] for number in range(num_ranks)]


def decide_rows(flow: Run, search: Search, rule: Rule) -> Outcome:
    """Decide about the rows of a DataFrame on the driver, by a rule that workers do not perform."""
    if not search.fits_driver:
        size = large_spark_of(search.num_documents, search.num_pairs, driver_limit())
        size.refuse("dedup", asdict(flow.selection))
    method = flow.method.value
    with flow.named("decide"):
        rows = collect(search.positions, POSITIONS).sort_by("position")
        places = rows["position"].to_numpy()
        # Here the queue is in the order of the places, and documents have no other numbers.
        numbers = np.arange(len(places), dtype=np.uint32)
        # The frame `positions` lists documents with features only.
        has_features = np.ones(len(places), np.bool_)
        # Places of new documents begin at NEW.
        num_against = int(np.searchsorted(places, NEW))
        at = _Positions.of(rows, numbers, numbers, has_features, num_against)
        pairs = _Pairs.collect(search.confirmed, at, method)
        found = _found(flow, search, at, pairs, rule)
    removals = rule.decide(found).removals
    removed = _table_of(removals, places, method)
    frame = flow.spark.createDataFrame(pa.Table.from_batches([removed]))
    return Outcome(search.hidden, found=frame, removed=frame)


def _table_of(removals: Removals, places: Ints, method: Method) -> pa.RecordBatch:
    """Return removed documents by their places, as schemas.confirmed_schema."""
    return batch_of(
        confirmed_schema(method.measures),
        places[removals.kept],
        places[removals.documents],
        method.strength(removals.measured),
        np.ones(len(removals.kept)),  # `expected`, from which no recall is estimated here
        *removals.measured.arrow(method.measures),
    )


def _found(flow: Run, search: Search, at: _Positions, pairs: _Pairs, rule: Rule) -> Found:
    """Return the confirmed pairs of a search; it has neither lengths nor values of documents."""
    queue = at.queue
    method = flow.method.value
    hidden = collect(search.hidden, CANDIDATES)
    unlisted = at.of_places(hidden["left"].to_numpy()), at.of_places(hidden["right"].to_numpy())
    confirmed = Confirmed(
        kept=np.ones(len(queue.order), np.bool_),
        left=pairs.left,
        right=pairs.right,
        measured=pairs.measured,
        best=np.zeros(len(pairs.keys), np.bool_),
        left_out=_left_out(*unlisted, queue, rule, directed=method.directed),
        compared=search.compared,
        collisions=None,
    )
    if rule.pairs == "distinct" and method.directed:
        unlisted = unlisted[0], queue.last[unlisted[1]]
        confirmed = _name_last_copies(confirmed, queue)
    return Found(
        queue=queue,
        confirmed=confirmed,
        method=method,
        lengths=np.empty(0, np.int64),
        values=np.empty(0, np.uint64),
        unlisted=lambda: [unlisted],
        measure=partial(_measure, flow, at),
        sieved=False,
    )


def _name_last_copies(pairs: Confirmed, queue: Queue) -> Confirmed:
    """Return pairs of contents with `left` before `right`: the last copy, which was compared, in
    place of a first document that comes before `left`.
    """
    right = np.where(pairs.left < pairs.right, pairs.right, queue.last[pairs.right])
    order = np.lexsort((pairs.left, right))
    return pairs._replace(
        left=pairs.left[order], right=right[order], measured=pairs.measured.take(order)
    )


class _Positions(NamedTuple):
    """Translates places on the cluster, and documents, to positions in the queue of a rule.

    places : int64, rising, of the documents with features. of_rows : uint32, their positions in the
    queue. of_documents : uint32, the position of each document.
    """

    queue: Queue
    places: Ints
    of_rows: Positions
    of_documents: Positions

    @classmethod
    def of(
        cls,
        rows: pa.Table,
        documents: Positions,
        order: Positions,
        has_features: Mask,
        num_against: int,
    ) -> _Positions:
        """Return the positions of documents in an order.

        Parameters
        ----------
        rows : POSITIONS of the documents with features, rising.
        documents : uint32, the numbers of these documents.
        order, has_features, num_against : as in Queue.
        """
        places = rows["position"].to_numpy()
        position = np.empty_like(order)
        # The inverse of `order`: the position of each document.
        position[order] = np.arange(len(order), dtype=order.dtype)
        of_rows = position[documents]
        # The first of a content in this order, which may differ from the first on the cluster.
        first_row = np.searchsorted(places, rows["first"].to_numpy())
        # Larger than all positions, for the minimum below.
        first = np.full(len(places), len(order), np.int64)
        np.minimum.at(first, first_row, of_rows)
        representative = np.arange(len(order), dtype=np.uint32)
        representative[of_rows] = first[first_row]
        queue = Queue(order, representative, has_features, num_against)
        return cls(queue, places, of_rows, position)

    def of_places(self, places: Ints) -> Positions:
        """Return the positions of documents with features."""
        positions: Positions = self.of_rows[np.searchsorted(self.places, places)]
        return positions

    def places_of(self, positions: Ints) -> Ints:
        """Return the places of documents with features."""
        rows = np.argsort(self.of_rows)
        at = np.searchsorted(self.of_rows, positions, sorter=rows)
        places: Ints = self.places[rows[at]]
        return places


class _Pairs(NamedTuple):
    """Measured pairs.

    keys : int64, rising, right << 32 | left, positions. measured, expected : by pair, as in
    confirmed_schema.
    """

    keys: Ints
    measured: Measured
    expected: Floats

    @classmethod
    def collect(cls, blocks: DataFrame, at: _Positions, method: Method) -> _Pairs:
        """Collect pairs of the first documents of their contents.

        A pair of a directed measure may be there in both directions.
        """
        rows = collect(blocks, confirmed_schema(method.measures))
        left = at.of_places(rows["left"].to_numpy())
        right = at.of_places(rows["right"].to_numpy())
        if method.directed:
            keys = _keys(left, right)
        else:  # the queue of a rule may have another order than the cluster
            keys = _keys(np.minimum(left, right), np.maximum(left, right))
        keys, first = np.unique(keys, return_index=True)
        measured = output.measured_of(rows, method.measures).take(first)
        return cls(keys, measured, rows["expected"].to_numpy()[first])

    @property
    def left(self) -> Positions:
        """The kept or the earlier position of each."""
        return (self.keys & _LEFT).astype(np.uint32)

    @property
    def right(self) -> Positions:
        """The other position."""
        return (self.keys >> 32).astype(np.uint32)

    def find(self, left: Positions, right: Positions) -> Ints:
        """Return the rows of pairs in either direction. Requires: all are there."""
        rows, is_there = find_in(self.keys, _keys(left, right))
        reversed_rows, _ = find_in(self.keys, _keys(right, left))
        return np.where(is_there, rows, reversed_rows)


def _keys(left: Array, right: Array) -> Ints:
    """Return the keys of pairs; see _Pairs."""
    keys: Ints = right.astype(np.int64) << 32 | left.astype(np.int64)
    return keys


def _left_out(
    unlisted: Positions, later: Positions, queue: Queue, rule: Rule, *, directed: bool
) -> Mask:
    """Return by position whether a bucket has an earlier document that it does not list.

    A copy looks up the buckets of the first document of its content, unless the rule compares
    contents alone.

    unlisted, later : uint32, a position that a bucket does not list, and one that looks it up.
    directed : whether a pair is measured in one direction.
    """
    num_positions = len(queue.order)
    first_unlisted = np.full(num_positions, num_positions, np.int64)
    np.minimum.at(first_unlisted, later, unlisted)
    left_out = np.arange(num_positions) > first_unlisted[queue.representative]
    if rule.pairs == "distinct":
        left_out &= queue.queries(directed=directed)
    else:
        left_out[: queue.num_against] = False
    return left_out


def _measure(flow: Run, at: _Positions, kept: Positions, documents: Positions) -> Measured:
    """Return the measures of pairs of documents, which workers measure."""
    method = flow.method.value
    first = at.queue.representative
    # Workers measure the first documents of contents only, which have the same features.
    left = first[at.of_documents[kept]]
    right = first[at.of_documents[documents]]
    measured = measured_of_copies(len(left), method.measures)
    is_near = left != right
    if not is_near.any():
        return measured
    keys = np.unique(_keys(left[is_near], right[is_near]))
    wanted = pa.table({"left": at.places_of(keys & _LEFT), "right": at.places_of(keys >> 32)})
    with translated(), flow.named("decide"):
        blocks = flow.measure(flow.spark.createDataFrame(wanted))
        pairs = _Pairs.collect(blocks, at, method)
    rows = pairs.find(left[is_near], right[is_near])
    for name, column in measured.columns.items():
        column[is_near] = pairs.measured[name][rows]
    return measured


def _expected(
    pairs: _Pairs, queue: Queue, left: Positions, right: Positions, _: Measured
) -> Floats:
    """Return the similarities by which the chance of pairs to be proposed is known."""
    first = queue.representative
    return pairs.expected[pairs.find(first[left], first[right])]
