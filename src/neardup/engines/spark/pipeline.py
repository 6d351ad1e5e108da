"""The whole run on Spark: describe, collapse copies, propose, confirm, decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Accumulator, Broadcast
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from neardup import schemas
from neardup.arrays import Integers, Ints, arrow_of, begins_run, find_in
from neardup.candidates.blocks import Radius, choose_join_blocks
from neardup.candidates.cells import choose_cells
from neardup.decide.priority import sort_keys
from neardup.engines.spark import decide, session
from neardup.engines.spark.blocks import (
    Cells,
    Place,
    Placed,
    cells_of,
    collect,
    exchange,
    gather,
    hashed,
    scatter,
)
from neardup.engines.spark.decide import first_of_clusters, removed_by_sieve
from neardup.engines.spark.source import NEW, PART, PART_SHIFT, SLICES_PER_CORE, Corpus, Files
from neardup.features.binary import rows_of
from neardup.features.idf import IdfTable, describe_features
from neardup.methods import stages
from neardup.methods.base import Method
from neardup.methods.stages import Batches, Read, batch_of
from neardup.progress import Progress, Stages, compile_seconds
from neardup.settings.methods import Shingling
from neardup.settings.run import SelectionSettings
from neardup.verify.recall import Recall, audit_recall

LIGHT, PLACED = (
    table.insert(0, pa.field("document", pa.int64()))
    for table in (schemas.DESCRIBED, schemas.PLACED)
)


def list_contents(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    """Return the contents of documents that have features, as schemas.CONTENTS."""
    for rows in map(_featured, batches):
        yield batch_of(schemas.CONTENTS, rows["content"], _positions(rows))


def find_copies(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    """Return the documents that share a content with others, as schemas.COPIES. batches : of whole
    contents.
    """
    rows = pa.Table.from_batches(batches, schemas.CONTENTS).combine_chunks()
    words, position = rows_of(rows["content"].combine_chunks()), rows["position"].to_numpy()
    order = np.lexsort((position, *words.T))
    words, position = words[order], position[order]
    starts = np.flatnonzero(begins_run(*words.T)) if len(words) else np.empty(0, np.int64)
    sizes = np.diff(np.append(starts, len(words)))
    copied = np.repeat(sizes > 1, sizes)
    ends = (np.repeat(position[at], sizes)[copied] for at in (starts, starts + sizes - 1))
    yield batch_of(schemas.COPIES, position[copied], *ends)


def place_documents(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    """Return documents that have features, as PLACED. batches : documents of files, LIGHT, and
    their schemas.COPIES.
    """
    tables = list(batches)
    copies = pa.Table.from_batches(
        (table for table in tables if table.schema == schemas.COPIES), schemas.COPIES
    )
    copied, first, last = (column.to_numpy() for column in copies.columns)
    for rows in (_featured(table) for table in tables if table.schema != schemas.COPIES):
        position = _positions(rows)
        firsts, lasts = position.copy(), position.copy()
        at, here = find_in(position, copied)
        firsts[at[here]], lasts[at[here]] = first[here], last[here]
        columns = [*rows.columns, *map(arrow_of, (position, firsts, lasts))]
        yield pa.RecordBatch.from_arrays(columns, schema=PLACED)


def _featured(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.filter(pc.greater(rows["size"], 0))


def _positions(rows: pa.RecordBatch) -> Integers:
    """Return the positions of documents: their numbers, those of the earlier corpus first."""
    positions: Integers = rows["document"].to_numpy() + NEW * ~rows["against"].to_numpy(
        zero_copy_only=False
    )
    return positions


DRIVER_DOCUMENTS = (
    5_000_000  # that the driver collects at most: some 80 bytes each, without their ids
)
BROADCAST_ROWS = (
    10_000_000  # sent to every executor at most, 24 bytes each; longer lists are shuffled
)
_CELL_BYTES = 64 << 20
_COPIES = 2  # of the features of a document, in its own cell and in those of other documents
_ROW_BYTES, _ENTRY_BYTES = (
    500,
    40,
)  # of a document besides its features, and of a feature that is a bucket
_PARTITIONS = "spark.sql.shuffle.partitions"
LISTED = pa.schema(
    map(LIGHT.field, ("document", "id", "row", "bytes", "size", "count_by", "rejected", "ranks"))
)
PLACES = pa.schema(map(PLACED.field, ("document", "position", "first")))
POSITIONS = pa.schema(map(PLACED.field, ("position", "first")))
"""The columns of documents that the driver collects; of a DataFrame, POSITIONS."""
Stage = Callable[[Batches, Method], Iterator[pa.RecordBatch]]


class Search(NamedTuple):
    """The pairs of a run.

    light : all documents and rejected rows, schemas.DESCRIBED. documents : those with features,
    schemas.PLACED. listed, placed : columns of these for the driver, as blocks. compared : the
    number of pairs measured. num_documents, num_pairs : documents and duplicate pairs. Blocks of
    pairs are : hidden, schemas.CANDIDATES, documents that a bucket does not list; confirmed,
    schemas.confirmed_schema, the duplicates. by_size : whether the larger document of a pair comes
    first.
    """

    light: DataFrame
    documents: DataFrame
    listed: DataFrame
    placed: DataFrame
    compared: int
    num_documents: int
    num_pairs: int
    hidden: DataFrame
    confirmed: DataFrame
    by_size: bool

    @property
    def fits_driver(self) -> bool:
        """Whether the driver can collect the documents, without their texts, and the pairs."""
        return fits_driver(self.num_documents, self.num_pairs)


def fits_driver(num_documents: int, num_pairs: int) -> bool:
    """Return whether the driver can collect so many documents, without their texts, and pairs."""
    return num_documents <= DRIVER_DOCUMENTS and num_pairs <= decide.DRIVER_PAIRS


def driver_limit() -> str:
    """Return how much the driver collects, in words."""
    return f"{DRIVER_DOCUMENTS:,} documents and {decide.DRIVER_PAIRS:,} pairs"


class Outcome(NamedTuple):
    """The result of a run, as DataFrames.

    light : all documents and rejected rows, schemas.DESCRIBED. documents : those with features,
    schemas.PLACED. compared : the number of pairs measured. hidden : schemas.CANDIDATES, documents
    that a bucket does not list. found : the duplicate pairs, schemas.confirmed_schema; in a sieve,
    each removed document with all kept ones. removed : the same, with the most similar kept one
    alone; none if all pairs are wanted. rounds : of the sieve; 0 if the driver decided. clusters :
    the first of each connected cluster with the others, or None in a sieve.
    """

    light: DataFrame
    documents: DataFrame
    compared: int
    hidden: DataFrame
    found: DataFrame
    removed: DataFrame
    rounds: int
    clusters: DataFrame | None = None


class Run:
    """The flow of one run: a context, in which the number of shuffled partitions fits, unless the
    user has set it.

    all_pairs : whether to measure every proposed pair and remove nothing. distinct : whether a rule
    needs the pairs of documents with different contents, so that copies look up no bucket. order :
    numbers the documents in the order of a rule, from their blocks and their number: the columns
    document and position. None for the order of `keep`.
    """

    def __init__(
        self,
        spark: SparkSession,
        corpus: Corpus,
        method: Method,
        selection: SelectionSettings,
        timed: Stages,
        *,
        all_pairs: bool = False,
        distinct: bool = False,
        order: Callable[[DataFrame, int], pa.Table] | None = None,
    ) -> None:
        self.spark, self.corpus, self.selection, self.timed = spark, corpus, selection, timed
        self.order = order
        self.all_pairs, self.connected = (
            all_pairs,
            selection.linkage == "connected" and not all_pairs,
        )
        self.distinct = distinct or self.connected
        self.compile_seconds = spark.sparkContext.accumulator(0.0)
        self._compiled = 0.0  # seconds that are counted
        self.num_features = spark.sparkContext.accumulator(0)
        self._persisted: list[DataFrame] = []
        self._sets_partitions = _PARTITIONS not in spark.conf.getAll
        self._by_size = (
            all_pairs and method.directed
        )  # the larger document of a pair contains the other
        is_sorted = order is not None or bool(sort_keys(selection.keep)) or self._by_size
        self._packed = corpus.in_order and not is_sorted
        self.method: Broadcast[Method] = spark.sparkContext.broadcast(method)
        if method.counted is not None:
            with self.named("count"):
                self.method = spark.sparkContext.broadcast(
                    method.with_idf(self._count(method.counted))
                )
        most = (
            method.max_bucket_size
            if selection.max_bucket_size is None
            else selection.max_bucket_size
        )
        self.most = method.lookup.limit(most, all_pairs=all_pairs)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        if self._sets_partitions:
            self.spark.conf.unset(_PARTITIONS)

    def _persist(self, frame: DataFrame) -> DataFrame:
        """Return a frame that Spark stores when it is first computed, until `release`."""
        self._persisted.append(frame.persist())
        return self._persisted[-1]

    def release(self) -> None:
        """Drop all that is stored: Spark would keep it as long as its session, which may be that of
        the user.
        """
        while self._persisted:
            self._persisted.pop().unpersist()

    def search(self) -> Search:
        """Describe all documents, and find and measure pairs."""
        with self.named("describe"):
            describe = partial(_describe, read=self.corpus.read, num_features=self.num_features)
            if self._packed:
                light = self._persist(self._to_blocks(self.corpus.all(), describe, _place_by_file))
                self.num_documents = _num_rows(light)
            else:
                described = f"document {self.corpus.key_type}, {declare(schemas.DESCRIBED)}"
                light = self._persist(self._map(self.corpus.all(), describe, described))
                self.num_documents = light.count()
            self._fit_partitions(self.num_features.value)
            listed = self._pick(light, LISTED.names, LIGHT)
            documents = self._persist(
                self._place_blocks(light) if self._packed else self._collapse(light, listed)
            )
            names = PLACES.names if self.corpus.in_order else POSITIONS.names
            placed = self._pick(documents, names, PLACED)
            self.entered = documents
            if self._packed:
                packed = (light, LIGHT), (documents, PLACED)
                light, documents = (
                    self._map(blocks, _same, declare(table), table) for blocks, table in packed
                )
            self.documents, self.nodes = documents, documents.filter("position = first")
        with self.named("propose"):
            proposed = self._persist(self._propose())
            pairs, hidden = proposed.filter("cell = 0"), proposed.filter("cell = 1")
            compared = _num_rows(pairs)
        with self.named("confirm"):
            confirmed = self._persist(self._confirm(pairs, self._choose_cells(pairs)))
            num_pairs = _num_rows(confirmed)
        counts = compared, self.num_documents, num_pairs
        return Search(light, documents, listed, placed, *counts, hidden, confirmed, self._by_size)

    def decide(self, search: Search) -> Outcome:
        """Decide with rows of Spark, about more documents than the driver can collect."""
        found = self._pairs(search.confirmed)
        hidden = self._map(search.hidden, _same, declare(schemas.CANDIDATES), schemas.CANDIDATES)
        outcome = Outcome(
            search.light, search.documents, search.compared, hidden, found, found.limit(0), 0
        )
        if self.all_pairs:
            return outcome
        with self.named("decide"):
            if self.connected:
                edges = self._pairs(self._persist(self._join_clusters(search.confirmed)))
                removed = self._persist(self._remove(edges, edges.selectExpr("right as left")))
                return outcome._replace(removed=removed, clusters=edges)
            gone, rounds = removed_by_sieve(found)
            gone = self._persist(gone)
            edges = found.join(gone, "left", "left_anti")
            edges = edges.join(gone.selectExpr("left as right"), "right", "left_semi")
            found = self._persist(self._remove(edges, gone))
            best = F.min_by(F.struct("*"), F.struct(-F.col("strength"), "left")).alias("best")
            removed = self._persist(found.groupBy("right").agg(best).select("best.*"))
            return outcome._replace(found=found, removed=removed, rounds=rounds)

    def audit(self, documents: Ints, threshold: float) -> Recall | None:
        """Compare sampled documents with all others; return the share of their pairs that have a
        key in common.
        """
        read = self.corpus.read
        chosen = self.corpus.chosen(self.spark.createDataFrame(pa.table({"document": documents})))
        described = self._map(
            chosen, partial(stages.describe_sample, read=read), declare(schemas.AUDITED)
        ).toArrow()
        # The order decides the last digits of the interval.
        sample = self.spark.sparkContext.broadcast(
            described.sort_by("document").combine_chunks().to_batches()
        )
        compare = partial(_audit, read=read, sample=sample, threshold=threshold)
        rows = self._map(self.corpus.all(), compare, declare(schemas.AUDIT_COUNTS)).groupBy(
            "sample"
        )
        counts = (
            rows.agg(F.sum("found").alias("found"), F.sum("true").alias("true"))
            .orderBy("sample")
            .toArrow()
        )
        return audit_recall(counts["found"].to_numpy(), counts["true"].to_numpy())

    def sign(self) -> DataFrame:
        """Return the sketches of all documents, as schemas.SIGNED."""
        sign = partial(stages.sign_documents, read=self.corpus.read)
        return self._persist(self._map(self.corpus.all(), sign, declare(schemas.SIGNED)))

    def _fit_partitions(self, num_features: int) -> None:
        """Choose the partitions of shuffles, unless the user has, and the cells of the features."""
        num_cores = self.spark.sparkContext.defaultParallelism
        num_bytes = (
            _ROW_BYTES * self.num_documents
            + _ENTRY_BYTES * num_features * self.method.value.lookup.by_sets
        )
        if self._sets_partitions:
            self.spark.conf.set(_PARTITIONS, str(fit_partitions(num_bytes, num_cores)))
        self.num_cells = fit_partitions(_COPIES * 8 * num_features, num_cores)

    @property
    def _num_partitions(self) -> int:
        return int(str(self.spark.conf.get(_PARTITIONS)))

    def _map(
        self,
        frame: DataFrame,
        stage: Stage,
        columns: str,
        *reads: pa.Schema,
        place: Place | None = None,
    ) -> DataFrame:
        """Run a stage. reads : of the blocks that it takes, if any. place : of the blocks that it
        returns, if any.
        """
        common = {"method": self.method, "seconds": self.compile_seconds}
        return frame.mapInArrow(
            partial(run_stage, stage=stage, reads=reads, place=place, **common), columns
        )

    def _to_blocks(
        self, frame: DataFrame, stage: Stage, place: Place, *reads: pa.Schema
    ) -> DataFrame:
        return self._map(frame, stage, declare(schemas.BLOCKS), *reads, place=place)

    def _pairs(self, blocks: DataFrame) -> DataFrame:
        """Return the rows in blocks of schemas.confirmed_schema."""
        table = schemas.confirmed_schema(self.method.value.measures)
        return self._map(blocks, _same, declare(table), table)

    def _count(self, counted: Shingling) -> IdfTable:
        """Count the documents of each feature."""
        count = partial(stages.count_documents, read=self.corpus.read)
        rows = self._map(self.corpus.all(), count, declare(schemas.COUNTS))
        table = (
            rows.groupBy("feature")
            .agg(F.sum("documents").cast("long").alias("documents"))
            .toArrow()
        )
        hashes, documents = (
            table["feature"].to_numpy().view(np.uint64),
            table["documents"].to_numpy(),
        )
        order = np.argsort(hashes)[1:]  # the first is 0, no hash: the number of all documents
        num_documents, counts = (
            int(documents[hashes == 0].sum()),
            documents[order].astype(np.uint32),
        )
        return IdfTable(num_documents, hashes[order], counts, describe_features(counted))

    def _pick(self, frame: DataFrame, names: Sequence[str], table: pa.Schema) -> DataFrame:
        """Return columns of documents as blocks. table : of the documents, where they are in
        blocks.
        """
        if self._packed:
            return self._to_blocks(frame, partial(_select, names=names), _in_one, table)
        return self._to_blocks(frame.select(*names), _same, _in_one)

    def _place_blocks(self, light: DataFrame) -> DataFrame:
        """Return the same as `_collapse`, as blocks of PLACED. light : blocks of LIGHT."""
        assert isinstance(self.corpus, Files)
        both = light
        if not self.all_pairs:
            num_cells = self._num_partitions
            contents = self._to_blocks(
                light, list_contents, partial(_place_contents, num_cells=num_cells), LIGHT
            )
            copies = self._to_blocks(
                exchange(contents, num_cells), find_copies, _place_by_part, schemas.CONTENTS
            )
            both = exchange(light.unionByName(copies), self.corpus.num_slices)
        return self._to_blocks(both, place_documents, _place_by_file, LIGHT, schemas.COPIES)

    def _collapse(self, light: DataFrame, listed: DataFrame) -> DataFrame:
        """Return the documents with features, as schemas.PLACED. listed : columns of all documents,
        as blocks.
        """
        documents = light.filter("size > 0").drop("rejected")
        if self.order is None:
            documents = self._number(documents)
        else:
            positions = self.spark.createDataFrame(self.order(listed, self.num_documents))
            documents = documents.join(positions, "document")
        copies = Window.partitionBy("position" if self.all_pairs else "content")
        return documents.withColumns(
            {"first": F.min("position").over(copies), "last": F.max("position").over(copies)}
        )

    def _number(self, documents: DataFrame) -> DataFrame:
        """Number documents in the order of priority; the numbers rise, but have gaps."""
        document, new, order = F.col("document"), ~F.col("against"), []
        for key in sort_keys(self.selection.keep):
            if key.of == "position":
                order.append(F.when(new, document).desc())
                continue
            first = 2 * key.column  # a rank is two numbers; see neardup.documents.ranks
            ranks = [F.col("ranks")[first], F.col("ranks")[first + 1]]
            for value in {"length": [F.col("bytes")], "source": [F.expr(PART)], "column": ranks}[
                key.of
            ]:
                value += F.lit(0.0)  # -0 equals 0
                order.append(F.when(new, -value if key.descending else value))
        if self._by_size:
            order = [F.col("distinct").desc(), F.col("content")]
        documents = documents.orderBy(new, *order, document)
        rank = F.monotonically_increasing_id()
        return documents.withColumn("position", F.when(new, rank + F.lit(NEW)).otherwise(rank))

    def _propose(self) -> DataFrame:
        """Return the candidates as blocks of schemas.CANDIDATES, those that are measured in the
        cell 0.
        """
        lookup, num_cells = self.method.value.lookup, self._num_partitions
        place = hashed("bucket", num_cells)
        if self._packed and lookup.radius is None and not lookup.by_sets:
            listing = partial(_list_entries, distinct=self.distinct)
            entries = self._to_blocks(self.entered, listing, place, PLACED)
        else:
            nodes = (
                self.nodes.withColumn("last", F.col("position")) if self.distinct else self.nodes
            )
            if lookup.radius is not None:
                entries = self._to_blocks(self._list_near(nodes, lookup.radius), _same, place)
            else:
                self.heavy = self._persist(self._describe_again(nodes)) if lookup.by_sets else nodes
                entries = self._to_blocks(self.heavy, stages.list_entries, place)
        pairing = partial(stages.pair_entries, most=self.most)
        pairs = self._to_blocks(
            exchange(entries, num_cells), pairing, hashed("right", num_cells), schemas.ENTRIES
        )
        pairs = exchange(pairs, num_cells)
        return self._to_blocks(pairs, stages.merge_pairs, _listed_first, schemas.CANDIDATES)

    def _list_near(self, nodes: DataFrame, radius: Radius) -> DataFrame:
        """Return a bucket for each fingerprint, as schemas.ENTRIES: those within the distance query
        it too.
        """
        same = Window.partitionBy("keys")
        members = nodes.select("keys", "position", "last").withColumn(
            "leader", F.min("position").over(same)
        )
        leaders = members.filter("position = leader").select("leader", "keys")
        count = max(2, self.num_documents)
        num_blocks = radius.num_blocks or choose_join_blocks(
            count, radius.bits, radius.max_distance
        )
        block = partial(stages.list_blocks, num_blocks=num_blocks)
        blocks = self._map(leaders, block, declare(schemas.FINGERPRINTS)).withColumn(
            "cell", F.pmod(F.xxhash64("bits"), F.lit(self.num_cells)).cast("int")
        )
        near = blocks.groupBy("block", "cell").applyInArrow(
            lambda key, rows: stages.join_blocks(key[0].as_py(), rows, radius, num_blocks),
            declare(schemas.NEAR),
        )
        listed = members.selectExpr(
            *("leader as bucket", "position", "last", "0 as size", "1 as needed"),
            *("true as listed", "true as queries"),
        )
        queries = near.join(members.withColumnRenamed("leader", "right"), "right")
        return listed.unionByName(
            queries.selectExpr(
                *("left as bucket", "position", "last", "0 as size", "1 as needed"),
                *("false as listed", "true as queries"),
            )
        )

    def _describe_again(self, nodes: DataFrame) -> DataFrame:
        """Return the features of documents."""
        if "cells" not in nodes.columns:
            nodes = nodes.withColumn("cells", F.lit(None).cast("array<long>"))
        if not self.method.value.confirms_sets:
            none = {name: F.lit(None).cast("binary") for name in ("features", "structure")}
            return nodes.withColumns(none).select(*schemas.SETS.names)
        wanted = nodes.select("document", "against", "position", "last", "cells")
        rows = self.corpus.chosen(wanted, broadcast=self.num_documents < BROADCAST_ROWS)
        describe = partial(stages.describe_sets, read=self.corpus.read)
        return self._map(rows, describe, declare(schemas.SETS))

    def _confirm(self, pairs: DataFrame, cells: Cells, *, every: bool = False) -> DataFrame:
        """Measure pairs, blocks of schemas.CANDIDATES; return blocks of the duplicates, or of all
        pairs.

        A pair is measured in the cell of its right document; the features of a left document are
        sent once to a cell.
        """
        shared = self.spark.sparkContext.broadcast(cells)
        listing = partial(_list_needed, cells=shared)
        describe: Stage = _same
        if (
            self._packed
            and self.method.value.confirms_sets
            and not self.method.value.lookup.by_sets
        ):
            assert isinstance(self.corpus, Files)
            needed = self._to_blocks(pairs, listing, _place_by_part, schemas.CANDIDATES)
            needed = exchange(needed, self.corpus.num_slices)
            heavy, describe = needed, partial(stages.describe_sets, read=self.corpus.read_listed)
        else:
            needed = self._map(pairs, listing, declare(schemas.NEEDED), schemas.CANDIDATES)
            rows = needed.groupBy("position").agg(F.collect_set("cell").alias("cells"))
            if self.method.value.lookup.by_sets:
                heavy = self.heavy.drop("cells").join(rows, "position").select(*schemas.SETS.names)
            else:
                heavy = self._describe_again(self.nodes.join(rows, "position"))
        sets = self._to_blocks(heavy, describe, _place_sets)
        placed = self._to_blocks(
            pairs, _same, partial(_place_pairs, cells=shared), schemas.CANDIDATES
        )
        both = exchange(sets.unionByName(placed), cells.num_cells)
        measure = partial(stages.measure_pairs, every=every)
        return self._to_blocks(both, measure, _in_one, schemas.SETS, schemas.CANDIDATES)

    def _choose_cells(self, pairs: DataFrame) -> Cells:
        """Return the cells in which pairs are measured; with very many documents, the cell of a
        document is a hash.
        """
        none = np.empty(0, np.int64)
        if self.num_documents > BROADCAST_ROWS:
            return Cells(self.num_cells, none, none)
        earliest = self._to_blocks(pairs, stages.earliest_candidates, _in_one, schemas.CANDIDATES)
        left, right = (column.to_numpy() for column in collect(earliest, schemas.NEAR).columns)
        return Cells(self.num_cells, *choose_cells(left, right, self.num_cells))

    def _remove(self, edges: DataFrame, gone: DataFrame) -> DataFrame:
        """Return the new documents with the earlier ones that remove them: those of `edges`, or the
        document they copy.

        gone : the column `left`, documents that are removed themselves.
        """
        same = {measure.name: F.lit(measure.of_itself) for measure in self.method.value.measures}
        same |= {"right": F.col("left"), "strength": F.lit(float("inf")), "expected": F.lit(1.0)}
        copied = self.nodes.filter("last > first").selectExpr("position as left")
        itself = copied.join(gone, "left", "left_anti").withColumns(same)
        every = edges.unionByName(itself).withColumnRenamed("right", "first")
        new = self.documents.filter(F.col("position") >= NEW).select(
            "first", F.col("position").alias("right")
        )
        return new.join(every, "first").filter("left < right").drop("first")

    def _join_clusters(self, confirmed: DataFrame) -> DataFrame:
        """Return blocks of the first document of each cluster with the others, measured."""
        return self.measure(first_of_clusters(self._pairs(confirmed), self._persist))

    def measure(self, pairs: DataFrame) -> DataFrame:
        """Return blocks of pairs of the first documents of their contents, `left` and `right`,
        measured.
        """
        candidates = pairs.selectExpr("left", "right", "true as listed", "1 as needed", "1 as hits")
        blocks = self._persist(self._to_blocks(candidates, _same, _listed_first))
        return self._confirm(blocks, self._choose_cells(blocks), every=True)

    @contextmanager
    def named(self, stage: str) -> Iterator[None]:
        """Time a stage, and name its jobs."""
        try:
            with self.timed.stage(stage) as progress, self.labelled(stage, progress):
                yield
        finally:
            compiled = self.compile_seconds.value
            self.timed.compile_seconds += compiled - self._compiled
            self._compiled = compiled

    def labelled(self, stage: str, progress: Progress) -> AbstractContextManager[None]:
        """Name the jobs of a stage in Spark's user interface; after an error, cancel those that
        still run.
        """
        return session.labelled(self.spark.sparkContext, stage, progress)


def fit_partitions(num_bytes: int, num_cores: int) -> int:
    """Return the number of partitions of a shuffle: of the bytes of a cell each, at least one and
    at most 64 a core.

    Spark's default, 200, takes twice the processor time for 100,000 documents, as a task of a
    Python worker costs.
    """
    return min(max(num_cores, -(-num_bytes // _CELL_BYTES)), SLICES_PER_CORE * num_cores)


def declare(schema: pa.Schema) -> str:
    """Return the columns of a table in Spark's words."""
    return ", ".join(
        f"{field.name} {field.dataType.simpleString()}" for field in from_arrow_schema(schema)
    )


def run_stage(
    batches: Batches,
    stage: Stage,
    method: Broadcast[Method],
    seconds: Accumulator[float],
    reads: tuple[pa.Schema, ...] = (),
    place: Place | None = None,
) -> Iterator[pa.RecordBatch]:
    """Run a stage of methods/stages.py on batches, or on the tables in blocks; place : return
    blocks.

    seconds : gets the time in which a worker compiles kernels.
    """
    before = compile_seconds()
    try:
        made = stage(gather(batches, *reads) if reads else batches, method.value)
        yield from made if place is None else scatter(made, place)
    finally:
        seconds.add(compile_seconds() - before)


def _describe(
    batches: Batches, method: Method, read: Read, num_features: Accumulator[int]
) -> Iterator[pa.RecordBatch]:
    """Describe documents, and count their features; tasks that are run again count twice."""
    for rows in stages.describe_documents(batches, method, read):
        num_features.add(int(rows["distinct"].to_numpy().sum()))
        yield rows


def _audit(
    batches: Batches,
    method: Method,
    read: Read,
    sample: Broadcast[list[pa.RecordBatch]],
    threshold: float,
) -> Iterator[pa.RecordBatch]:
    """Compare documents with a sample; see stages.audit_documents."""
    return stages.audit_documents(batches, method, read, sample.value, threshold)


def _select(batches: Batches, method: Method, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield batch.select(names)


def _list_entries(batches: Batches, method: Method, distinct: bool) -> Iterator[pa.RecordBatch]:
    """Return the buckets of the first documents of each content, of PLACED. distinct : copies do
    not query.
    """
    for rows in batches:
        nodes = rows.filter(pc.equal(rows["position"], rows["first"]))
        if distinct:
            nodes = nodes.set_column(
                nodes.schema.get_field_index("last"), "last", nodes["position"]
            )
        yield from stages.list_entries([nodes], method)


def _place_contents(rows: pa.RecordBatch, num_cells: int) -> Placed:
    return np.arange(len(rows)), cells_of(rows_of(rows["content"])[:, 0].view(np.int64), num_cells)


def _place_by_file(rows: pa.RecordBatch) -> Placed:
    return np.arange(len(rows)), rows["document"].to_numpy() >> PART_SHIFT


def _same(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    yield from batches


def _list_needed(
    batches: Batches, method: Method, cells: Broadcast[Cells]
) -> Iterator[pa.RecordBatch]:
    """Return the documents of pairs with their cells, as schemas.NEEDED, each once in a batch."""
    for pairs in batches:
        left, right = (pairs[name].to_numpy() for name in ("left", "right"))
        cell, first = cells.value.of(right), begins_run(right)
        known, numbers = np.unique(np.append(left, right[first]), return_inverse=True)
        keys = np.unique(numbers * cells.value.num_cells + np.append(cell, cell[first]))
        number, cell = np.divmod(keys, cells.value.num_cells)
        yield batch_of(schemas.NEEDED, known[number], cell)


def _place_pairs(pairs: pa.RecordBatch, cells: Broadcast[Cells]) -> Placed:
    return np.arange(len(pairs)), cells.value.of(pairs["right"].to_numpy())


def _place_sets(documents: pa.RecordBatch) -> Placed:
    cells = documents["cells"]
    return np.repeat(
        np.arange(len(documents)), pc.list_value_length(cells).to_numpy()
    ), cells.flatten().to_numpy()


def _place_by_part(documents: pa.RecordBatch) -> Placed:
    return np.arange(len(documents)), (documents["position"].to_numpy() & NEW - 1) >> PART_SHIFT


def _listed_first(pairs: pa.RecordBatch) -> Placed:
    return np.arange(len(pairs)), pc.invert(pairs["listed"]).cast("int64").to_numpy()


def _in_one(table: pa.RecordBatch) -> Placed:
    return np.arange(len(table)), np.zeros(len(table), np.int64)


def _num_rows(blocks: DataFrame) -> int:
    """Return the number of rows in blocks."""
    return int(blocks.agg(F.coalesce(F.sum("count"), F.lit(0))).first()[0])
