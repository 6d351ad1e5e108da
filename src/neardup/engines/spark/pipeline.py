"""The whole run on Spark: describe, collapse copies, propose, confirm, decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from threading import Event, Thread
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark import Accumulator, Broadcast, SparkContext
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from neardup import schemas
from neardup.candidates.blocks import Radius, choose_join_blocks
from neardup.decide.priority import sort_keys
from neardup.engines.spark.decide import NEW, first_of_clusters, removed_by_sieve
from neardup.engines.spark.source import PART, SLICES_PER_CORE, Corpus
from neardup.features.idf import IdfTable, describe_features
from neardup.methods import stages
from neardup.methods.base import Method
from neardup.methods.stages import Batches
from neardup.progress import Progress, Stages, compile_seconds
from neardup.settings.run import SelectionSettings
from neardup.settings.shingling import Shingling

BROADCAST_ROWS = 10_000_000  # sent to every executor at most, 24 bytes each; longer lists are shuffled
_CELL_BYTES = 64 << 20
_COPIES = 4  # of the features of a document, in the cells of other documents
_ROW_BYTES = 500  # shuffled of a document besides its features
_PARTITIONS = "spark.sql.shuffle.partitions"
_GROUP, _DESCRIPTION = "spark.jobGroup.id", "spark.job.description"
_POLL_S = 1.0
Stage = Callable[[Batches, Method], Iterator[pa.RecordBatch]]
_WORDS = {
    pa.int64(): "long",
    pa.int32(): "int",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
    pa.list_(pa.float64()): "array<double>",
}


class Outcome(NamedTuple):
    """The result of a run, as DataFrames.

    light : all documents and rejected rows, schemas.DESCRIBED. documents : those with features, schemas.PLACED.
    pairs : schemas.CANDIDATES. found : the duplicate pairs, schemas.confirmed_schema; in a sieve, each removed document
    with all kept ones. removed : the same, with the most similar kept one alone; None if all pairs are wanted.
    rounds : of the sieve; 0 if the driver decided. connected : whether chains of documents were removed.
    """

    light: DataFrame
    documents: DataFrame
    pairs: DataFrame
    found: DataFrame
    removed: DataFrame | None
    rounds: int
    connected: bool = False


class Run:
    """The flow of one run: a context, in which the number of shuffled partitions fits, unless the user has set it.

    all_pairs : whether to measure every proposed pair and remove nothing.
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
    ) -> None:
        self.spark, self.corpus, self.selection, self.timed = spark, corpus, selection, timed
        self.all_pairs, self.connected = all_pairs, selection.linkage == "connected" and not all_pairs
        self.compile_seconds = spark.sparkContext.accumulator(0.0)
        self._sets_partitions = _PARTITIONS not in spark.conf.getAll
        self.method: Broadcast[Method] = spark.sparkContext.broadcast(method)
        if method.counted is not None:
            with self.named("count"):
                self.method = spark.sparkContext.broadcast(method.with_idf(self._count(method.counted)))
        most = method.max_bucket_size if selection.max_bucket_size is None else selection.max_bucket_size
        self.most = method.lookup.limit(most, all_pairs=all_pairs)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        self.timed.compile_seconds += self.compile_seconds.value
        if self._sets_partitions:
            self.spark.conf.unset(_PARTITIONS)

    def decide(self) -> Outcome:
        """Run all workers."""
        with self.named("describe"):
            describe = partial(stages.describe_documents, read=self.corpus.read)
            described = f"document {self.corpus.key_type}, {declare(schemas.DESCRIBED)}"
            light = self._map(self.corpus.all(), describe, described).persist()
            if self._sets_partitions:
                self._fit_partitions(light)
            self.documents = self._collapse(light).persist()
            self.nodes = self.documents.filter("position = first")
            total = self.nodes.agg(F.count("*"), F.coalesce(F.sum("distinct"), F.lit(0))).first()
            assert total is not None  # an aggregate of all rows
            self.num_nodes, num_features = total
            self.num_cells = max(1, (1 + _COPIES) * 8 * num_features // _CELL_BYTES)
        with self.named("propose"):
            pairs = self._propose().persist()
            pairs.count()
        with self.named("confirm"):
            confirmed = self._confirm(pairs.filter("left >= 0")).persist()
            confirmed.count()
        if self.all_pairs:
            return Outcome(light, self.documents, pairs, confirmed, None, 0)
        with self.named("decide"):
            if self.connected:
                removed = self._remove(*self._join_clusters(confirmed)).persist()
                return Outcome(light, self.documents, pairs, confirmed, removed, 0, connected=True)
            gone, rounds = removed_by_sieve(confirmed)
            edges = confirmed.join(gone, "left", "left_anti")
            edges = edges.join(gone.selectExpr("left as right"), "right", "left_semi")
            found = self._remove(edges, gone).persist()
            best = F.min_by(F.struct("*"), F.struct(-F.col("strength"), "left")).alias("best")
            removed = found.groupBy("right").agg(best).select("best.*").persist()
            return Outcome(light, self.documents, pairs, found, removed, rounds)

    def sign(self) -> DataFrame:
        """Return the sketches of all documents, as schemas.SIGNED."""
        sign = partial(stages.sign_documents, read=self.corpus.read)
        return self._map(self.corpus.all(), sign, declare(schemas.SIGNED)).persist()

    def _fit_partitions(self, light: DataFrame) -> None:
        total = light.agg(F.count("*"), F.coalesce(F.sum("distinct"), F.lit(0))).first()
        assert total is not None  # an aggregate of all rows
        num_cores = self.spark.sparkContext.defaultParallelism
        self.spark.conf.set(_PARTITIONS, str(fit_partitions(total[0], total[1], num_cores)))

    def _map(self, frame: DataFrame, stage: Stage, columns: str) -> DataFrame:
        run = partial(run_stage, stage=stage, method=self.method, seconds=self.compile_seconds)
        return frame.mapInArrow(run, columns)

    def _count(self, counted: Shingling) -> IdfTable:
        """Count the documents of each feature."""
        count = partial(stages.count_documents, read=self.corpus.read)
        rows = self._map(self.corpus.all(), count, declare(schemas.COUNTS))
        table = rows.groupBy("feature").agg(F.sum("documents").cast("long").alias("documents")).toArrow()
        hashes, documents = table["feature"].to_numpy().view(np.uint64), table["documents"].to_numpy()
        order = np.argsort(hashes)[1:]  # the first is 0, no hash: the number of all documents
        num_documents, counts = int(documents[hashes == 0].sum()), documents[order].astype(np.uint32)
        return IdfTable(num_documents, hashes[order], counts, describe_features(counted))

    def _collapse(self, light: DataFrame) -> DataFrame:
        """Return the documents with features, as schemas.PLACED."""
        documents = self._number(light.filter("size > 0").drop("rejected"))
        copies = Window.partitionBy("position" if self.all_pairs else "content")
        return documents.withColumns({"first": F.min("position").over(copies), "last": F.max("position").over(copies)})

    def _number(self, documents: DataFrame) -> DataFrame:
        """Number documents in the order of priority; the numbers rise, but have gaps."""
        document, new, order = F.col("document"), ~F.col("against"), []
        for key in sort_keys(self.selection.keep):
            if key.of == "position":
                order.append(F.when(new, document).desc())
                continue
            value = {"length": F.col("bytes"), "source": F.expr(PART), "column": F.col("ranks")[key.column]}[key.of]
            value += F.lit(0.0)  # -0 equals 0
            order.append(F.when(new, -value if key.descending else value))
        if self.all_pairs and self.method.value.directed:  # the larger document of a pair contains the other
            order = [F.col("distinct").desc()]
        is_sorted = self.corpus.in_order and not order
        rank = document if is_sorted else F.monotonically_increasing_id()
        documents = documents if is_sorted else documents.orderBy(new, *order, document)
        return documents.withColumn("position", F.when(new, rank + F.lit(NEW)).otherwise(rank))

    def _propose(self) -> DataFrame:
        """Return the candidates, each once, with the cell in which the pair is measured."""
        lookup = self.method.value.lookup
        nodes = self.nodes.withColumn("last", F.col("position")) if self.connected else self.nodes
        if lookup.radius is not None:
            members = self._list_near(nodes, lookup.radius)
        else:
            self.heavy = self._describe_again(nodes).persist() if lookup.by_sets else nodes
            members = self._map(self.heavy, stages.list_entries, declare(schemas.ENTRIES))
        members = members.repartition("bucket").sortWithinPartitions("bucket", F.col("needed") < 0, "position")
        pairs = self._map(members, partial(stages.pair_sorted, most=self.most), declare(schemas.CANDIDATES))
        pairs = pairs.withColumn("cell", self._cell("right")).repartition("cell").groupBy("cell", "left", "right")
        hits = pairs.agg(F.count("*").alias("hits"), F.max("needed").alias("needed"))
        return hits.filter("left < 0 or hits >= needed")

    def _list_near(self, nodes: DataFrame, radius: Radius) -> DataFrame:
        """Return a bucket for each fingerprint, as schemas.ENTRIES: those within the distance query it too."""
        same = Window.partitionBy("keys")
        members = nodes.select("keys", "position", "last").withColumn("leader", F.min("position").over(same))
        leaders = members.filter("position = leader").select("leader", "keys")
        num_blocks = radius.num_blocks or choose_join_blocks(max(2, self.num_nodes), radius.bits, radius.max_distance)
        block = partial(stages.list_blocks, num_blocks=num_blocks)
        blocks = self._map(leaders, block, declare(schemas.FINGERPRINTS)).withColumn("cell", self._cell("bits"))
        near = blocks.groupBy("block", "cell").applyInArrow(
            lambda key, rows: stages.join_blocks(key[0].as_py(), rows, radius, num_blocks), declare(schemas.NEAR)
        )
        listed = members.selectExpr("leader as bucket", "position", "last", "0 as size", "1 as needed")
        queries = near.join(members.withColumnRenamed("leader", "right"), "right")
        return listed.unionByName(queries.selectExpr("left as bucket", "position", "last", "0 as size", "-1 as needed"))

    def _cell(self, name: str) -> Column:
        return F.pmod(F.xxhash64(name), F.lit(self.num_cells)).cast("int")

    def _describe_again(self, nodes: DataFrame) -> DataFrame:
        """Return the features of documents."""
        if not self.method.value.confirms_sets:
            none = {name: F.lit(None).cast("binary") for name in ("features", "structure")}
            return nodes.withColumns(none).select(*schemas.SETS.names)
        wanted = nodes.select("document", "against", "position", "last")
        rows = self.corpus.chosen(wanted, broadcast=self.num_nodes < BROADCAST_ROWS)
        describe = partial(stages.describe_sets, read=self.corpus.read)
        return self._map(rows, describe, declare(schemas.SETS))

    def _confirm(self, pairs: DataFrame, *, every: bool = False) -> DataFrame:
        """Measure pairs, the columns cell, left and right; return the duplicates, or all pairs.

        A pair is measured in the cell of its right document; the features of a left document are sent once to a cell.
        """
        needed = pairs.select("cell", F.explode(F.array("left", "right")).alias("position")).distinct()
        if self.method.value.lookup.by_sets:
            heavy = self.heavy
        else:
            heavy = self._describe_again(self.nodes.join(needed.select("position").distinct(), "position", "left_semi"))
        # Merged, not broadcast: Spark takes features to be as small as the list of documents that they are read by.
        cells = needed.join(heavy.hint("merge"), "position").groupBy("cell")
        rows = pairs.select(F.col("cell").alias("home"), "left", "right").groupBy("home")  # another name: a self-join
        method, seconds = self.method, self.compile_seconds

        def measure(documents: pa.Table, part: pa.Table) -> pa.Table:
            with timing(seconds):
                return stages.measure_pairs(documents, part, method.value, every)

        columns = declare(schemas.confirmed_schema(self.method.value.measures))
        return cells.cogroup(rows).applyInArrow(measure, columns)

    def _remove(self, edges: DataFrame, gone: DataFrame) -> DataFrame:
        """Return the new documents with the earlier ones that remove them: those of `edges`, or the document they copy.

        gone : the column `left`, documents that are removed themselves.
        """
        same = {measure.name: F.lit(measure.of_itself) for measure in self.method.value.measures}
        same |= {"right": F.col("left"), "strength": F.lit(float("inf")), "expected": F.lit(1.0)}
        copied = self.nodes.filter("last > first").selectExpr("position as left")
        itself = copied.join(gone, "left", "left_anti").withColumns(same)
        every = edges.unionByName(itself).withColumnRenamed("right", "first")
        new = self.documents.filter(F.col("position") >= NEW).select("first", F.col("position").alias("right"))
        return new.join(every, "first").filter("left < right").drop("first")

    def _join_clusters(self, confirmed: DataFrame) -> tuple[DataFrame, DataFrame]:
        """Return the first document of each cluster with the others, measured; and the others, as column `left`."""
        pairs = first_of_clusters(confirmed).persist()
        edges = self._confirm(pairs.withColumn("cell", self._cell("right")), every=True).persist()
        return edges, pairs.selectExpr("right as left")

    @contextmanager
    def named(self, stage: str) -> Iterator[None]:
        """Time a stage, and name its jobs in Spark's user interface; after an error, cancel those that still run."""
        context, group = self.spark.sparkContext, f"neardup-{uuid4().hex}"
        before = {name: context.getLocalProperty(name) for name in (_GROUP, _DESCRIPTION)}
        context.setLocalProperty(_GROUP, group)
        context.setLocalProperty(_DESCRIPTION, f"neardup: {stage}")
        try:
            with self.timed.stage(stage) as progress, _watched(context, group, progress):
                yield
        except BaseException:
            with suppress(Exception):
                context.cancelJobGroup(group)
            raise
        finally:
            for name, value in before.items():
                context.setLocalProperty(name, value)


def fit_partitions(num_documents: int, num_features: int, num_cores: int) -> int:
    """Return the number of partitions of a shuffle: of the bytes of a cell each, at least one and at most 64 a core.

    Spark's default, 200, takes twice the processor time for 100,000 documents, as a task of a Python worker costs.
    """
    num_bytes = _ROW_BYTES * num_documents + (1 + _COPIES) * 8 * num_features
    return min(max(num_cores, -(-num_bytes // _CELL_BYTES)), SLICES_PER_CORE * num_cores)


@contextmanager
def _watched(context: SparkContext, group: str, progress: Progress) -> Iterator[None]:
    """Report the tasks of the jobs of a group to `progress.tasks`, if there is one."""
    ended, report = Event(), getattr(progress, "tasks", lambda done, total: None)

    def watch() -> None:
        tracker = context.statusTracker()
        while not ended.wait(_POLL_S):
            jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(group)]
            ours = {stage for job in jobs if job is not None for stage in job.stageIds}
            active = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds() if stage in ours]
            running = [stage for stage in active if stage is not None]
            if running:
                report(sum(stage.numCompletedTasks for stage in running), sum(stage.numTasks for stage in running))

    thread = Thread(target=watch, daemon=True)
    if hasattr(progress, "tasks"):
        thread.start()
    try:
        yield
    finally:
        ended.set()
        if thread.is_alive():
            thread.join()


def declare(schema: pa.Schema) -> str:
    """Return the columns of a table in Spark's words."""
    return ", ".join(f"{field.name} {_WORDS[field.type]}" for field in schema)


@contextmanager
def timing(seconds: Accumulator[float]) -> Iterator[None]:
    """Add the time in which a worker compiles kernels."""
    before = compile_seconds()
    try:
        yield
    finally:
        seconds.add(compile_seconds() - before)


def run_stage(
    batches: Batches, stage: Stage, method: Broadcast[Method], seconds: Accumulator[float]
) -> Iterator[pa.RecordBatch]:
    """Run a stage of methods/stages.py on batches."""
    with timing(seconds):
        yield from stage(batches, method.value)
