"""The flow of a run on Spark: describe, collapse copies, propose, confirm, decide."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from neardup import schemas
from neardup.arrays import Ints
from neardup.candidates.blocks import Radius, choose_join_blocks
from neardup.candidates.cells import choose_cells
from neardup.candidates.items import ItemTable
from neardup.decide.priority import SortKey, sort_keys
from neardup.engines.spark import decide, session, workers
from neardup.engines.spark.blocks import (
    Cells,
    Route,
    collect,
    exchange,
    route_by_hash,
    route_to_one,
)
from neardup.engines.spark.decide import first_of_clusters, removed_by_sieve
from neardup.engines.spark.source import NEW, PART, SLICES_PER_CORE, Corpus, Files
from neardup.engines.spark.workers import (
    DESCRIBED,
    DOCUMENT_POSITIONS,
    LISTED,
    PARTS,
    PLACED,
    POSITIONS,
    Stage,
    declare,
    same,
)
from neardup.features.idf import IdfTable, describe_features
from neardup.methods import stages
from neardup.methods.base import Method
from neardup.progress import Progress, Stages
from neardup.settings.methods import Shingling
from neardup.settings.run import SelectionSettings
from neardup.verify.recall import Recall, measure_recall

DRIVER_DOCUMENTS = 5_000_000
"""Documents that the driver collects at most: some 80 bytes each, without their ids."""
BROADCAST_ROWS = 10_000_000
"""Rows that are sent to every executor at most, 24 bytes each; longer lists are shuffled."""

_PARTITIONS = "spark.sql.shuffle.partitions"
_CELL_BYTES = 64 << 20  # bytes that a task receives
_CELLS_PER_DOCUMENT = 2  # copies of a document's features: for its cell, and for its pairs' cells
_DOCUMENT_BYTES = 500  # shuffled bytes of a document without its features
_ENTRY_BYTES = 40  # shuffled bytes of a feature that is a bucket


class Search(NamedTuple):
    """The documents and pairs of a run.

    Attributes
    ----------
    described : all documents and rejected rows, schemas.DESCRIBED.
    documents : the documents with features, schemas.PLACED.
    listed, positions : columns of both for the driver, as blocks.
    compared : the number of pairs measured.
    num_documents, num_pairs : documents, and duplicate pairs.
    hidden : blocks of schemas.CANDIDATES, documents that a bucket does not list.
    confirmed : blocks of schemas.confirmed_schema, the duplicate pairs.
    by_size : whether the larger document of a pair comes first.
    """

    described: DataFrame
    documents: DataFrame
    listed: DataFrame
    positions: DataFrame
    compared: int
    num_documents: int
    num_pairs: int
    hidden: DataFrame
    confirmed: DataFrame
    by_size: bool

    @property
    def fits_driver(self) -> bool:
        """True if the driver can collect the documents, without their texts, and the pairs."""
        return fits_driver(self.num_documents, self.num_pairs)


def fits_driver(num_documents: int, num_pairs: int) -> bool:
    """Return whether the driver can collect documents, without their texts, and pairs."""
    return num_documents <= DRIVER_DOCUMENTS and num_pairs <= decide.DRIVER_PAIRS


def driver_limit() -> str:
    """Return how much the driver collects, in words."""
    return f"{DRIVER_DOCUMENTS:,} documents and {decide.DRIVER_PAIRS:,} pairs"


class Outcome(NamedTuple):
    """The decisions of a run, as DataFrames.

    Attributes
    ----------
    hidden : schemas.CANDIDATES, documents that a bucket does not list.
    found : schemas.confirmed_schema, the duplicate pairs; in a sieve, each removed document with
        all kept ones.
    removed : the same, each removed document with the most similar kept one; no rows if all pairs
        are wanted.
    rounds : the number of rounds of the sieve; 0 if the driver decided.
    clusters : the first document of each connected cluster with each other; None in a sieve.
    """

    hidden: DataFrame
    found: DataFrame
    removed: DataFrame
    rounds: int = 0
    clusters: DataFrame | None = None

    @property
    def removed_positions(self) -> DataFrame:
        """The column `position` of the removed documents."""
        return self.removed.selectExpr("right as position")


class Counted(NamedTuple):
    """The documents of each feature, and the rows that could not be read, of schemas.COUNTS."""

    frequencies: IdfTable
    rejected: pa.Table


class _StoredFrames:
    """The frames that Spark stores for a run."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._persisted: list[DataFrame] = []
        self._checkpoints: list[DataFrame] = []

    def persist(self, frame: DataFrame) -> DataFrame:
        """Store a frame, which is used several times."""
        self._persisted.append(frame.persist())
        return self._persisted[-1]

    def checkpoint(self, frame: DataFrame) -> DataFrame:
        """Compute a frame and forget its plan.

        Checkpoints in a folder survive the loss of an executor. Without a folder, Spark stores them
        until `release`, and such a loss ends the run.
        """
        if self._spark.sparkContext.getCheckpointDir() is not None:
            return frame.checkpoint()
        self._checkpoints.append(frame.localCheckpoint())
        return self._checkpoints[-1]

    def release(self) -> None:
        """Drop all frames, which Spark would keep as long as its session, perhaps the user's."""
        while self._persisted:
            self._persisted.pop().unpersist()
        while self._checkpoints:
            # `unpersist` finds persisted frames alone. The plan of a checkpoint is its stored rows.
            plan = self._checkpoints.pop()._jdf.queryExecution().analyzed()
            plan.rdd().unpersist(False)


class Run:
    """The flow of one run. A context: it fits the number of shuffled partitions, unless it is set.

    The documents of files in input order travel as blocks (`_packed`). Documents in another order,
    or of a DataFrame, are rows until their positions are known.

    `search` comes first: `decide` and `measure` use the documents that it describes.
    `measure_recall`, `count`, `sign` and `search_items` need no search. `release` comes last.

    Parameters
    ----------
    all_pairs : whether to measure every proposed pair and remove nothing.
    distinct : whether a rule needs the pairs of documents with different contents, so that copies
        look up no bucket, except the last one if the method is directed; see `Queue.queries`.
    order : numbers the documents in the order of a rule: takes their blocks and their number, and
        returns the columns document and position. None for the order of `keep`.
    """

    # Set by `search`; the first five are as in `Search`.
    described: DataFrame
    documents: DataFrame
    listed: DataFrame
    positions: DataFrame
    num_documents: int
    num_cells: int  # cells in which pairs are measured
    contents: DataFrame  # the first document of each content
    blocks: DataFrame  # the documents with features as blocks, if packed
    sets: DataFrame  # the features of contents, if buckets are features

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
        self.spark = spark
        self.corpus = corpus
        self.selection = selection
        self.timed = timed
        self.order = order
        self.all_pairs = all_pairs
        self.connected = selection.linkage == "connected" and not all_pairs
        self.distinct = distinct or self.connected

        self.compile_seconds = spark.sparkContext.accumulator(0.0)
        self._timed_compile_seconds = 0.0  # the part that is already added to `timed`
        self.num_features = spark.sparkContext.accumulator(0)
        self._stored = _StoredFrames(spark)
        # A number that the user has set stays.
        self._sets_partitions = _PARTITIONS not in spark.conf.getAll

        # In a search for contained documents, the larger document of a pair comes first.
        self._by_size = all_pairs and method.directed
        # Blocks are read in the order of the inputs; any other order needs rows that Spark sorts.
        is_sorted = order is not None or bool(sort_keys(selection.keep)) or self._by_size
        self._packed = corpus.in_order and not is_sorted

        self.method: Broadcast[Method] = spark.sparkContext.broadcast(method)
        if method.counted is not None:
            # Counting runs a stage, which needs a method: the table is added afterwards.
            weighted = method.with_idf(self.count(method.counted).frequencies)
            self.method = spark.sparkContext.broadcast(weighted)

    def __enter__(self) -> Run:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        if self._sets_partitions:
            self.spark.conf.unset(_PARTITIONS)
        if error is not None:
            self.release()

    def release(self) -> None:
        """Drop all stored frames."""
        self._stored.release()

    def search(self) -> Search:
        """Describe all documents, and find and measure pairs."""
        method = self.method.value
        if method.awaits_count:
            with self.named("count"):
                counted = method.for_corpus(self._count_documents())
            self.method = self.spark.sparkContext.broadcast(counted)
        with self.named("describe"):
            self._describe_and_place()
        with self.named("propose"):
            proposed = self._stored.persist(self._propose())
            # The cells of workers.route_listed_first.
            pairs = proposed.filter("cell = 0")
            hidden = proposed.filter("cell = 1")
            # The count computes the frame, which Spark then has stored.
            num_compared = _num_rows(pairs)
        with self.named("confirm"):
            confirmed = self._stored.persist(self._confirm(pairs, self._choose_cells(pairs)))
            num_pairs = _num_rows(confirmed)
        return Search(
            described=self.described,
            documents=self.documents,
            listed=self.listed,
            positions=self.positions,
            compared=num_compared,
            num_documents=self.num_documents,
            num_pairs=num_pairs,
            hidden=hidden,
            confirmed=confirmed,
            by_size=self._by_size,
        )

    def decide(self, search: Search) -> Outcome:
        """Decide with rows of Spark, about more documents than the driver can collect."""
        found = self._unpack_pairs(search.confirmed)
        hidden = self._unpack(search.hidden, schemas.CANDIDATES)
        if self.all_pairs:
            return Outcome(hidden, found, removed=found.limit(0))
        with self.named("decide"):
            decide_over = self._remove_all_but_first if self.connected else self._sift
            return decide_over(hidden, found)

    def _remove_all_but_first(self, hidden: DataFrame, found: DataFrame) -> Outcome:
        """Keep the first document of each connected cluster. found : the duplicate pairs."""
        firsts = first_of_clusters(found, self._stored.persist, self._stored.checkpoint)
        clusters = self._unpack_pairs(self._stored.persist(self.measure(firsts)))
        removed_contents = clusters.selectExpr("right as left")
        removed = self._stored.persist(self._remove(clusters, removed_contents))
        return Outcome(hidden, found, removed, clusters=clusters)

    def _sift(self, hidden: DataFrame, found: DataFrame) -> Outcome:
        """Remove each document that is similar to a kept one. found : the duplicate pairs."""
        sieved, rounds = removed_by_sieve(found, self._stored.checkpoint)
        removed_contents = self._stored.persist(sieved)
        # The pairs of a kept document with a removed one.
        pairs = found.join(removed_contents, "left", "left_anti")
        pairs = pairs.join(removed_contents.selectExpr("left as right"), "right", "left_semi")
        removals = self._stored.persist(self._remove(pairs, removed_contents))
        # Of several kept documents, the most similar one, and of these the first.
        by_strength = F.struct(-F.col("strength"), "left")
        best = removals.groupBy("right").agg(F.min_by(F.struct("*"), by_strength).alias("best"))
        removed = self._stored.persist(best.select("best.*"))
        return Outcome(hidden, removals, removed, rounds)

    def measure_recall(self, documents: Ints, threshold: float) -> Recall | None:
        """Compare sampled documents with all others; return the share of their pairs that have a
        key in common.
        """
        read = self.corpus.read
        keys = self.spark.createDataFrame(pa.table({"document": documents}))
        describe = partial(stages.describe_sample, read=read)
        described = self._map(self.corpus.chosen(keys), describe, declare(schemas.SAMPLED))
        # The order of the sample decides the last digits of the interval.
        rows = described.toArrow().sort_by("document").combine_chunks()
        sample = self.spark.sparkContext.broadcast(rows.to_batches())
        compare = partial(
            workers.compare_with_sample, read=read, sample=sample, threshold=threshold
        )
        counts = self._map(self.corpus.all(), compare, declare(schemas.SAMPLE_COUNTS)).toArrow()
        numbers = counts["sample"].to_numpy()
        found = np.bincount(numbers, counts["found"].to_numpy())
        true = np.bincount(numbers, counts["true"].to_numpy())
        return measure_recall(found.astype(np.int64), true.astype(np.int64))

    def count_parts(self, listed: DataFrame) -> pa.Table:
        """Return the counts of the parts of a search, PARTS. listed : as in Search."""
        return collect(self._to_blocks(listed, workers.count_parts, route_to_one, LISTED), PARTS)

    def sign(self) -> DataFrame:
        """Return the sketches of all documents, as schemas.SIGNED."""
        sign = partial(stages.sign_documents, read=self.corpus.read)
        return self._stored.persist(self._map(self.corpus.all(), sign, declare(schemas.SIGNED)))

    def count(self, counted: Shingling) -> Counted:
        """Count the documents of each feature. counted : the settings that make the features."""
        count = partial(stages.count_documents, read=self.corpus.read, counted=counted)
        rows = self._map(self.corpus.all(), count, declare(schemas.COUNTS))
        # A rejected row is a group of its own, so that one job returns all.
        groups = rows.groupBy("feature", "document", "rejected")
        with self.named("count"):
            sums = groups.agg(F.sum("documents").cast("long").alias("documents")).toArrow()
        is_rejected = pc.is_valid(sums["rejected"])
        table = sums.filter(pc.invert(is_rejected))
        hashes = table["feature"].to_numpy().view(np.uint64)
        documents = table["documents"].to_numpy()
        num_documents = int(documents[hashes == 0].sum())  # 0 is no hash: it counts all documents
        order = np.argsort(hashes)
        order = order[hashes[order] != 0]
        counts = documents[order].astype(np.uint32)
        scheme = describe_features(counted)
        return Counted(
            frequencies=IdfTable(num_documents, hashes[order], counts, scheme),
            rejected=sums.filter(is_rejected),
        )

    def search_items(self, table: ItemTable) -> DataFrame:
        """Return the items that are found in all documents, as schemas.SEARCHED."""
        sent_table = self.spark.sparkContext.broadcast(table)
        search = partial(workers.search_items, read=self.corpus.read, table=sent_table)
        return self._map(self.corpus.all(), search, declare(schemas.SEARCHED))

    def measure(self, pairs: DataFrame) -> DataFrame:
        """Measure pairs of the first documents of their contents; return blocks of all of them.

        pairs : left and right, positions.
        """
        candidates = pairs.selectExpr("left", "right", "true as listed", "1 as needed", "1 as hits")
        blocks = self._stored.persist(self._to_blocks(candidates, same, workers.route_listed_first))
        return self._confirm(blocks, self._choose_cells(blocks), every=True)

    # Run stages.

    @contextmanager
    def named(self, stage: str) -> Iterator[None]:
        """Time a stage, and name its jobs."""
        try:
            with self.timed.stage(stage) as progress, self.labelled(stage, progress):
                yield
        finally:
            # The accumulator is a sum over all stages: only the new part belongs to this one.
            seconds = self.compile_seconds.value
            self.timed.compile_seconds += seconds - self._timed_compile_seconds
            self._timed_compile_seconds = seconds

    def labelled(self, stage: str, progress: Progress) -> AbstractContextManager[None]:
        """Name the jobs of a stage in Spark's user interface; after an error, cancel the running
        ones.
        """
        return session.labelled(self.spark.sparkContext, stage, progress)

    def _map(
        self,
        frame: DataFrame,
        stage: Stage,
        columns: str,
        *reads: pa.Schema,
        route: Route | None = None,
    ) -> DataFrame:
        """Perform a stage in workers; see workers.run_stage.

        columns : the names and types of the columns that it returns, in SQL.
        """
        function = partial(
            workers.run_stage,
            stage=stage,
            method=self.method,
            seconds=self.compile_seconds,
            reads=reads,
            route=route,
        )
        return frame.mapInArrow(function, columns)

    def _to_blocks(
        self, frame: DataFrame, stage: Stage, route: Route, *reads: pa.Schema
    ) -> DataFrame:
        """Perform a stage in workers, and return its rows as blocks."""
        return self._map(frame, stage, declare(schemas.BLOCKS), *reads, route=route)

    def _unpack(self, blocks: DataFrame, table: pa.Schema) -> DataFrame:
        """Return the rows in blocks of a table."""
        return self._map(blocks, same, declare(table), table)

    def _unpack_pairs(self, blocks: DataFrame) -> DataFrame:
        """Return the rows in blocks of schemas.confirmed_schema."""
        return self._unpack(blocks, schemas.confirmed_schema(self.method.value.measures))

    def _pick(self, frame: DataFrame, names: Sequence[str], table: pa.Schema) -> DataFrame:
        """Return columns of documents as blocks. table : of the documents, if they are packed."""
        if self._packed:
            select = partial(workers.select_columns, names=names)
            return self._to_blocks(self._in_few_tasks(frame), select, route_to_one, table)
        return self._to_blocks(frame.select(*names), same, route_to_one)

    def _in_few_tasks(self, frame: DataFrame) -> DataFrame:
        """Return a frame of one partition for each core, for a stage that takes less time than the
        start of a task.
        """
        return frame.coalesce(self.spark.sparkContext.defaultParallelism)

    def _fit_partitions(self, num_features: int) -> None:
        """Choose the partitions of shuffles, unless the user has, and the cells of the features."""
        num_cores = self.spark.sparkContext.defaultParallelism
        num_bytes = _DOCUMENT_BYTES * self.num_documents
        if self.method.value.lookup.by_sets:
            num_bytes += _ENTRY_BYTES * num_features
        if self._sets_partitions:
            self.spark.conf.set(_PARTITIONS, str(fit_partitions(num_bytes, num_cores)))
        feature_bytes = 8 * num_features
        self.num_cells = fit_partitions(_CELLS_PER_DOCUMENT * feature_bytes, num_cores)

    @property
    def _num_partitions(self) -> int:
        return int(str(self.spark.conf.get(_PARTITIONS)))

    @property
    def _copies_query(self) -> bool:
        """True if the copies of a content look up buckets."""
        return not self.distinct or self.method.value.directed

    def _count_documents(self) -> int:
        """Count the documents in a pass of its own, since their keys depend on the number."""
        count = partial(stages.count_rows, read=self.corpus.read)
        rows = self._map(self.corpus.all(), count, declare(schemas.NUM_DOCUMENTS)).toArrow()
        return int(rows["documents"].to_numpy().sum())

    # Describe documents, and give them positions.

    def _describe_and_place(self) -> None:
        """Describe all documents, and find their positions."""
        described = self._stored.persist(self._describe())
        self.num_documents = _num_rows(described) if self._packed else described.count()
        self._fit_partitions(self.num_features.value)
        self.listed = self._pick(described, LISTED.names, DESCRIBED)
        documents = self._stored.persist(self._place(described))
        columns = DOCUMENT_POSITIONS if self.corpus.in_order else POSITIONS
        self.positions = self._pick(documents, columns.names, PLACED)
        if self._packed:
            self.blocks = documents
            described = self._unpack(described, DESCRIBED)
            documents = self._unpack(documents, PLACED)
        self.described = described
        self.documents = documents
        self.contents = documents.filter("position = first")

    def _describe(self) -> DataFrame:
        """Return all documents, and rejected rows, as schemas.DESCRIBED: blocks, if packed."""
        describe = partial(
            workers.describe_documents, read=self.corpus.read, num_features=self.num_features
        )
        if self._packed:
            return self._to_blocks(self.corpus.all(), describe, workers.route_by_file)
        columns = f"document {self.corpus.key_type}, {declare(schemas.DESCRIBED)}"
        return self._map(self.corpus.all(), describe, columns)

    def _place(self, described: DataFrame) -> DataFrame:
        """Return the documents with features, as schemas.PLACED: blocks, if packed.

        described : as `_describe` returns.
        """
        if self._packed:
            return self._place_blocks(described)
        documents = described.filter("size > 0").drop("rejected")
        if self.order is None:
            documents = self._number(documents)
        else:
            positions = self.spark.createDataFrame(self.order(self.listed, self.num_documents))
            documents = documents.join(positions, "document")
        # In a search for all pairs, a copy is a document like any other.
        copies = Window.partitionBy("position" if self.all_pairs else "content")
        first = F.min("position").over(copies)
        last = F.max("position").over(copies)
        return documents.withColumns({"first": first, "last": last})

    def _place_blocks(self, described: DataFrame) -> DataFrame:
        """Return the documents with features, as blocks of PLACED: copies find one another."""
        assert isinstance(self.corpus, Files)
        described_and_copies = described
        if not self.all_pairs:
            num_cells = self._num_partitions
            route = partial(workers.route_contents, num_cells=num_cells)
            # A row of 24 bytes for each document.
            few = self._in_few_tasks(described)
            contents = self._to_blocks(few, workers.list_contents, route, DESCRIBED)
            contents = exchange(contents, num_cells)
            by_file = workers.route_by_file_of_position
            copies = self._to_blocks(contents, workers.find_copies, by_file, schemas.CONTENTS)
            described_and_copies = exchange(described.unionByName(copies), self.corpus.num_slices)
        return self._to_blocks(
            described_and_copies,
            workers.place_documents,
            workers.route_by_file,
            DESCRIBED,
            schemas.COPIES,
        )

    def _number(self, documents: DataFrame) -> DataFrame:
        """Number documents in the order of priority; the numbers rise, but have gaps."""
        is_new = ~F.col("against")
        order = sort_columns(self.selection.keep)
        if self._by_size:
            order = [F.col("distinct").desc(), F.col("content")]
        documents = documents.orderBy(is_new, *order, "document")
        # The numbers rise with the partitions and their rows, thus in the order of the sort.
        number = F.monotonically_increasing_id()
        position = F.when(is_new, number + F.lit(NEW)).otherwise(number)
        return documents.withColumn("position", position)

    # Find pairs.

    def _propose(self) -> DataFrame:
        """Return the candidates as blocks of schemas.CANDIDATES: in cell 0 the pairs to measure, in
        cell 1 the documents that a bucket does not list.
        """
        num_cells = self._num_partitions
        by_bucket = route_by_hash("bucket", num_cells)
        entries = exchange(self._list_entries(by_bucket), num_cells)
        method = self.method.value
        max_members = self.selection.max_bucket_size
        if max_members is None:
            max_members = method.max_bucket_size
        limit = method.lookup.limit(max_members, all_pairs=self.all_pairs)
        pairing = partial(stages.pair_entries, most=limit)
        by_document = route_by_hash("right", num_cells)
        pairs = exchange(self._to_blocks(entries, pairing, by_document, schemas.ENTRIES), num_cells)
        merge = stages.merge_pairs
        return self._to_blocks(pairs, merge, workers.route_listed_first, schemas.CANDIDATES)

    def _list_entries(self, route: Route) -> DataFrame:
        """Return the buckets of contents as blocks of schemas.ENTRIES."""
        lookup = self.method.value.lookup
        if self._packed and lookup.radius is None and not lookup.by_sets:
            listing = partial(workers.list_entries, copies_query=self._copies_query)
            return self._to_blocks(self.blocks, listing, route, PLACED)
        contents = self.contents
        if not self._copies_query:
            contents = contents.withColumn("last", F.col("position"))
        if lookup.radius is not None:
            return self._to_blocks(self._list_near(contents, lookup.radius), same, route)
        if lookup.by_sets:
            contents = self.sets = self._stored.persist(self._describe_sets(contents))
        return self._to_blocks(contents, stages.list_entries, route)

    def _list_near(self, contents: DataFrame, radius: Radius) -> DataFrame:
        """Return a bucket for each fingerprint, as schemas.ENTRIES: fingerprints within the
        distance look it up.
        """
        by_fingerprint = Window.partitionBy("keys")
        members = contents.select("keys", "position", "last")
        members = members.withColumn("leader", F.min("position").over(by_fingerprint))
        leaders = members.filter("position = leader").select("leader", "keys")

        num_blocks = radius.num_blocks
        if not num_blocks:
            num_leaders = max(2, self.num_documents)
            num_blocks = choose_join_blocks(num_leaders, radius.bits, radius.max_distance)
        list_blocks = partial(stages.list_blocks, num_blocks=num_blocks)
        cell = F.pmod(F.xxhash64("bits"), F.lit(self.num_cells)).cast("int")
        blocks = self._map(leaders, list_blocks, declare(schemas.FINGERPRINTS))
        near = (
            blocks.withColumn("cell", cell)
            .groupBy("block", "cell")
            .applyInArrow(
                lambda key, rows: stages.join_blocks(key[0].as_py(), rows, radius, num_blocks),
                declare(schemas.NEAR),
            )
        )

        # A bucket lists the documents of its fingerprint; the others only look it up. One common
        # bucket makes a candidate, of any size.
        columns = ("position", "last", "0 as size", "1 as needed")
        listed = members.selectExpr(
            "leader as bucket", *columns, "true as listed", "true as queries"
        )
        near_members = near.join(members.withColumnRenamed("leader", "right"), "right")
        queries = near_members.selectExpr(
            "left as bucket", *columns, "false as listed", "true as queries"
        )
        return listed.unionByName(queries)

    # Measure pairs.

    def _choose_cells(self, pairs: DataFrame) -> Cells:
        """Choose the cells in which pairs are measured; with very many documents, a hash does."""
        if self.num_documents > BROADCAST_ROWS:
            none = np.empty(0, np.int64)
            return Cells(self.num_cells, known=none, cells=none)
        find = stages.earliest_candidates
        blocks = self._to_blocks(pairs, find, route_to_one, schemas.CANDIDATES)
        left, right = (column.to_numpy() for column in collect(blocks, schemas.NEAR).columns)
        return Cells(self.num_cells, *choose_cells(left, right, self.num_cells))

    def _confirm(self, pairs: DataFrame, cells: Cells, *, every: bool = False) -> DataFrame:
        """Measure pairs, blocks of schemas.CANDIDATES; return blocks of the duplicates, or of all.

        A pair is measured in the cell of its right document. The features of a document are sent
        once to each cell of its pairs.
        """
        sent_cells = self.spark.sparkContext.broadcast(cells)
        sets = self._list_sets(pairs, sent_cells)
        route = partial(workers.route_pairs, cells=sent_cells)
        routed = self._to_blocks(pairs, same, route, schemas.CANDIDATES)
        sets_and_pairs = exchange(sets.unionByName(routed), cells.num_cells)
        measure = partial(stages.measure_pairs, every=every)
        return self._to_blocks(
            sets_and_pairs, measure, route_to_one, schemas.SETS, schemas.CANDIDATES
        )

    def _list_sets(self, pairs: DataFrame, cells: Broadcast[Cells]) -> DataFrame:
        """Return the features of the documents of pairs as blocks of schemas.SETS, by cell."""
        method = self.method.value
        listing = partial(workers.list_needed, cells=cells)
        # Each file is read once more, by the task that has the list of its needed documents.
        if self._packed and method.confirms_sets and not method.lookup.by_sets:
            assert isinstance(self.corpus, Files)
            by_file = workers.route_by_file_of_position
            needed = self._to_blocks(pairs, listing, by_file, schemas.CANDIDATES)
            needed = exchange(needed, self.corpus.num_slices)
            describe = partial(stages.describe_sets, read=self.corpus.read_listed)
            return self._to_blocks(needed, describe, workers.route_sets)
        needed = self._map(pairs, listing, declare(schemas.NEEDED), schemas.CANDIDATES)
        with_cells = needed.groupBy("position").agg(F.collect_set("cell").alias("cells"))
        if method.lookup.by_sets:
            sets = self.sets.drop("cells").join(with_cells, "position")
            sets = sets.select(*schemas.SETS.names)
        else:
            sets = self._describe_sets(self.contents.join(with_cells, "position"))
        return self._to_blocks(sets, same, workers.route_sets)

    def _describe_sets(self, contents: DataFrame) -> DataFrame:
        """Return the features of documents, schemas.SETS, from their texts if pairs need them."""
        if "cells" not in contents.columns:
            contents = contents.withColumn("cells", F.lit(None).cast("array<long>"))
        if not self.method.value.confirms_sets:
            none = {name: F.lit(None).cast("binary") for name in ("features", "structure")}
            return contents.withColumns(none).select(*schemas.SETS.names)
        wanted = contents.select("document", "against", "position", "last", "cells")
        rows = self.corpus.chosen(wanted, broadcast=self.num_documents < BROADCAST_ROWS)
        describe = partial(stages.describe_sets, read=self.corpus.read)
        return self._map(rows, describe, declare(schemas.SETS))

    # Decide.

    def _remove(self, pairs: DataFrame, removed_contents: DataFrame) -> DataFrame:
        """Return removed documents, by a pair or as copies: rows of schemas.confirmed_schema.

        A pair of contents holds for all documents of the right one, and a kept document removes
        its later copies.

        pairs : a kept document, and the first document of a content. removed_contents : the column
        `left`, the first documents of contents that are removed.
        """
        # A copy is removed by the first document of its content, more strongly than by any pair.
        of_copy = {measure.name: F.lit(measure.of_itself) for measure in self.method.value.measures}
        of_copy |= {
            "right": F.col("left"),
            "strength": F.lit(float("inf")),
            "expected": F.lit(1.0),
        }
        copied = self.contents.filter("last > first").selectExpr("position as left")
        kept_contents = copied.join(removed_contents, "left", "left_anti")
        copies = kept_contents.withColumns(of_copy)
        removals = pairs.unionByName(copies).withColumnRenamed("right", "first")
        # Documents of the earlier collection are never removed.
        new = self.documents.filter(F.col("position") >= NEW)
        new = new.select("first", F.col("position").alias("right"))
        # A pair of contents concerns the copies of its right document that come after the left one.
        return new.join(removals, "first").filter("left < right").drop("first")


def sort_columns(keep: str) -> list[Column]:
    """Return the columns by which `keep` orders new documents; they are null for the others."""
    is_new = ~F.col("against")
    columns = []
    for key in sort_keys(keep):
        if key.by == "position":
            columns.append(F.when(is_new, F.col("document")).desc())
            continue
        for value in _values_of(key):
            value = value + F.lit(0.0)  # -0 equals 0
            columns.append(F.when(is_new, -value if key.descending else value))
    return columns


def _values_of(key: SortKey) -> list[Column]:
    """Return the values of a key that is no position."""
    if key.by == "length":
        return [F.col("bytes")]
    if key.by == "source":
        return [F.expr(PART)]
    first = 2 * key.column  # a rank is two numbers; see neardup.documents.ranks
    return [F.col("ranks")[first], F.col("ranks")[first + 1]]


def fit_partitions(num_bytes: int, num_cores: int) -> int:
    """Return the number of partitions of a shuffle: of _CELL_BYTES each, at least one and at most
    64 a core.

    A task of a Python worker has a price: Spark's default, 200, takes twice the processor time for
    100,000 documents.
    """
    num_cells = -(-num_bytes // _CELL_BYTES)
    return min(max(num_cores, num_cells), SLICES_PER_CORE * num_cores)


def _num_rows(blocks: DataFrame) -> int:
    """Return the number of rows in blocks."""
    # The sum over no blocks is null.
    return int(blocks.agg(F.coalesce(F.sum("count"), F.lit(0))).first()[0])
