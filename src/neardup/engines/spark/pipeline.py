"""The whole run on Spark: describe, collapse copies, propose, confirm, decide."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as F

from neardup.candidates.bands import Bands
from neardup.candidates.blocks import Radius, choose_join_blocks
from neardup.candidates.samples import Samples
from neardup.engines.spark import stages as workers
from neardup.engines.spark.decide import first_of_clusters, removed_by_sieve
from neardup.engines.spark.source import NEW, Corpus
from neardup.errors import SettingError
from neardup.features.idf import IdfTable, describe_features
from neardup.methods.base import Method
from neardup.progress import Stages
from neardup.settings.run import SelectionSettings

_CELL_BYTES = 64 << 20
_COPIES = 4  # of the features of a document, in the cells of other documents


class Outcome(NamedTuple):
    """The result of a run, as DataFrames.

    light : all documents and rejected rows, as stages.LIGHT. documents : those with features, with their `position` in
    the order of priority and that of the earliest copy, `first`. pairs : the candidates. confirmed : the duplicate
    pairs, with their measures. removed : `position` and `kept`, with their measures; None if all pairs are wanted.
    rounds : of the sieve; 0 if the driver decided. connected : whether clusters were.
    """

    light: DataFrame
    documents: DataFrame
    pairs: DataFrame
    confirmed: DataFrame
    found: DataFrame | None
    removed: DataFrame | None
    rounds: int
    connected: bool


class Run:
    """The flow of one run. all_pairs : whether to measure every proposed pair and remove nothing."""

    def __init__(
        self,
        spark: SparkSession,
        corpus: Corpus,
        method: Method,
        selection: SelectionSettings,
        *,
        all_pairs: bool,
        stages: Stages | None = None,
    ) -> None:
        self.stages = Stages() if stages is None else stages
        self.spark, self.corpus, self.selection, self.all_pairs = spark, corpus, selection, all_pairs
        if method.counted is not None:
            with self.named("count"):
                method = method.with_idf(self._count(method))
        self.method: Broadcast[Method] = spark.sparkContext.broadcast(method)
        most = method.max_bucket_size if selection.max_bucket_size is None else selection.max_bucket_size
        # Documents of one fingerprint have equal distances: the earliest represents them.
        self.most = 1 if isinstance(method.search, Radius) and not (method.confirms_sets or all_pairs) else most
        self.connected = selection.linkage == "connected" and not all_pairs

    def decide(self) -> Outcome:
        """Run all workers."""
        with self.named("describe"):
            light = self._describe()
            self.documents = self._collapse(light).persist()
            self.nodes = self.documents.filter("position = first")
            total = self.nodes.agg(F.count("*").alias("nodes"), F.sum("distinct").alias("features")).first()
            assert total is not None  # an aggregate of all rows
            self.num_nodes, num_features = int(total["nodes"]), int(total["features"] or 0)
        self.num_cells = max(1, (1 + _COPIES) * 8 * num_features // _CELL_BYTES)
        with self.named("propose"):
            pairs = self._propose().withColumn("cell", self._cell("right"))
            pairs = pairs.repartition("cell").dropDuplicates(["cell", "left", "right"]).persist()
            pairs.count()
        with self.named("confirm"):
            confirmed = self._confirm(pairs.filter("left >= 0")).persist()
            confirmed.count()
        rounds, found, removed = 0, None, None
        with self.named("decide"):
            if self.connected:
                found = confirmed.withColumnRenamed("right", "position")
                removed = self._removed_of_clusters(confirmed)
            elif not self.all_pairs:
                gone, rounds = removed_by_sieve(confirmed)
                found = self._found_of_sieve(confirmed, gone)
                removed = self._removed_of_sieve(found, gone)
        return Outcome(light, self.documents, pairs, confirmed, found, removed, rounds, self.connected)

    def _count(self, method: Method) -> IdfTable:
        """Count the documents of each feature."""
        counted = method.counted
        assert counted is not None
        rows, read = self.corpus.all()
        function = partial(workers.count_documents, read=read, counted=self.spark.sparkContext.broadcast(counted))
        counts = rows.mapInArrow(function, "feature long, documents long").groupBy("feature").agg(F.sum("documents"))
        return workers.idf_table(counts.toArrow(), describe_features(counted))

    def _describe(self) -> DataFrame:
        rows, read = self.corpus.all()
        function = partial(workers.describe_light, read=read, method=self.method)
        return rows.mapInArrow(function, f"document {self.corpus.key_type}, {workers.LIGHT}").persist()

    def _collapse(self, light: DataFrame) -> DataFrame:
        """Return the documents with features, their position, and the first and last position of the same content."""
        featured = light.filter("size > 0").drop("rejected")
        featured = featured.withColumn("position", self._position(light)) if self._in_order else self._sorted(featured)
        if self.all_pairs:
            return featured.withColumns({"first": F.col("position"), "last": F.col("position")})
        copies = Window.partitionBy("content", "content2")
        return featured.withColumns({"first": F.min("position").over(copies), "last": F.max("position").over(copies)})

    @property
    def _in_order(self) -> bool:
        return self.corpus.in_order and self.selection.keep in ("first", "last")

    def _position(self, light: DataFrame) -> Column:
        document = F.col("document")
        new = F.lit(NEW - 1) - document if self.selection.keep == "last" else document
        return F.when(F.col("against"), document).otherwise(new + F.lit(NEW))

    def _sorted(self, light: DataFrame) -> DataFrame:
        """Number documents in the order of priority; the numbers rise, but have gaps."""
        keep, new, document = self.selection.keep, ~F.col("against"), F.col("document")
        value = F.when(new, -F.col("value") if keep == "longest" or keep.startswith("max:") else F.col("value"))
        value = F.lit(0.0) if keep in ("first", "last") else value + F.lit(0.0)  # -0 equals 0
        if keep == "last":
            order = [new, F.when(~new, document), F.when(new, document).desc()]
        else:
            order = [new, value, document]
        rank = F.monotonically_increasing_id()
        return light.orderBy(*order).withColumn("position", F.when(new, rank + F.lit(NEW)).otherwise(rank))

    def _propose(self) -> DataFrame:
        """Return the pairs of buckets, with repeats."""
        search = self.method.value.search
        nodes = self.nodes.withColumn("last", F.col("position")) if self.connected else self.nodes
        if isinstance(search, Bands):
            return self._pair(nodes.mapInArrow(partial(workers.list_bands, count=search.num_bands), workers.QUERY))
        if isinstance(search, Samples):
            self.heavy = self._describe_again(nodes).persist()
            pairs = self._pair(self.heavy.mapInArrow(partial(workers.list_samples, method=self.method), workers.QUERY))
            hits = pairs.groupBy("left", "right").agg(F.count("*").alias("hits"), F.max("needed").alias("needed"))
            return hits.filter("left < 0 or hits >= needed").drop("hits")
        if isinstance(search, Radius):
            return self._near(nodes, search)
        raise SettingError(
            f"The engine spark has no search for the method {type(self.method.value).__name__}, whose candidates come "
            "from all documents at once. Use the local engine."
        )

    def _pair(self, members: DataFrame) -> DataFrame:
        """Pair the members of each bucket."""
        function = partial(workers.pair_sorted, most=self.most, rule=self.method.value.rule)
        return members.repartition("key").sortWithinPartitions("key", "position").mapInArrow(function, workers.PAIR)

    def _near(self, nodes: DataFrame, radius: Radius) -> DataFrame:
        """Pair the documents of each fingerprint with the earliest of each one within the distance."""
        same = Window.partitionBy("keys").orderBy("position")
        members = nodes.select("keys", "position", "last", "distinct").withColumns(
            {"rank": F.row_number().over(same), "leader": F.first("position").over(same)}
        )
        leaders = members.filter("rank = 1").select(F.col("position").alias("leader"), "keys")
        num_blocks = radius.num_blocks or choose_join_blocks(max(2, self.num_nodes), radius.bits, radius.max_distance)
        blocks = leaders.mapInArrow(partial(workers.list_blocks, radius=radius, num_blocks=num_blocks), workers.BLOCK)
        blocks = blocks.repartition("block", "bits").sortWithinPartitions("block", "bits")
        near = blocks.mapInArrow(partial(workers.join_blocks, radius=radius, num_blocks=num_blocks), workers.NEAR)
        near = near.unionByName(leaders.select(F.col("leader").alias("left"), F.col("leader").alias("right")))
        listed = members.filter(F.col("rank") <= self.most + 1).select(
            F.col("leader").alias("left"), F.col("position").alias("member"), "rank", F.col("distinct").alias("size")
        )
        queriers = members.select(F.col("leader").alias("right"), "position", "last", "distinct")
        rule, unlisted = self.method.value.rule, F.col("rank") > self.most
        pairs = near.hint("merge").join(queriers, "right").hint("merge").join(listed, "left").filter("member < last")
        enough = F.col("member") != F.col("position")
        if rule is not None and rule.similarity != "hamming":
            enough &= F.least("size", "distinct") / F.greatest("size", "distinct") >= rule.threshold
        pairs = pairs.filter(unlisted | enough)
        left = F.when(unlisted, F.bitwise_not("member")).otherwise(F.col("member"))
        return pairs.select(left.alias("left"), F.col("position").alias("right"))

    def _cell(self, position: str) -> Column:
        return F.pmod(F.xxhash64(position), F.lit(self.num_cells)).cast("int")

    def _describe_again(self, nodes: DataFrame) -> DataFrame:
        """Return the features of documents."""
        if not self.method.value.confirms_sets:
            empty = F.lit(b"").alias("features"), F.lit(None).cast("binary").alias("structure")
            return nodes.select("position", "last", "content", "content2", "keys", *empty)
        rows, read = self.corpus.chosen(nodes.select("document", "against", "position", "last"))
        return rows.mapInArrow(partial(workers.describe_heavy, read=read, method=self.method), workers.HEAVY)

    def _confirm(self, pairs: DataFrame, *, every: bool = False) -> DataFrame:
        """Measure pairs, the columns cell, left and right; return the duplicates, or all pairs.

        A pair is measured in the cell of its right document; the features of a left document are sent once to a cell.
        """
        method, measures = self.method, self.method.value.measures
        ends = F.explode(F.array("left", "right")).alias("position")
        needed = pairs.select("cell", ends).distinct()
        if isinstance(method.value.search, Samples):
            heavy = self.heavy
        else:
            wanted = needed.select("position").distinct()
            heavy = self._describe_again(self.nodes.join(wanted, "position", "left_semi"))
        # Merged, not broadcast: Spark takes features to be as small as the list of documents that they are read by.
        cells = needed.join(heavy.hint("merge"), "position").groupBy("cell")

        def measure(documents: pa.Table, rows: pa.Table) -> pa.Table:
            return workers.measure_cell(documents, rows, method, every)

        names, types = workers.duplicate_names(measures), workers.duplicate_types(measures)
        schema = ", ".join(f"{name} {workers.SPARK_TYPES[dtype]}" for name, dtype in zip(names, types, strict=True))
        rows = pairs.select(F.col("cell").alias("home"), "left", "right").groupBy("home")  # another name: a self-join
        return cells.cogroup(rows).applyInArrow(measure, schema)

    def _found_of_sieve(self, confirmed: DataFrame, gone: DataFrame) -> DataFrame:
        """Return the pairs of removed documents and kept ones. gone : `first` of the removed documents."""
        kept = confirmed.join(gone.withColumnRenamed("first", "left"), "left", "left_anti")
        new = self.documents.filter(F.col("position") >= NEW).select("position", "first").join(gone, "first")
        return new.join(kept.withColumnRenamed("right", "first"), "first").filter("left < position").persist()

    def _removed_of_sieve(self, found: DataFrame, gone: DataFrame) -> DataFrame:
        """Return the removed documents with the most similar of the kept ones; of equals, the earliest."""
        names = [measure.name for measure in self.method.value.measures]
        best = F.min(F.struct((-F.col("strength")).alias("weakness"), F.col("left").alias("kept"), *names)).alias(
            "best"
        )
        nearest = found.groupBy("position").agg(best).select("position", "best.kept", *(f"best.{n}" for n in names))
        new = self.documents.filter((F.col("position") >= NEW) & (F.col("position") > F.col("first")))
        return nearest.unionByName(self._of_itself(new.join(gone, "first", "left_anti"))).persist()

    def _of_itself(self, copies: DataFrame) -> DataFrame:
        """Return copies with the measures of a document and itself."""
        measures = zip(self.method.value.measures, workers.duplicate_types(self.method.value.measures)[3:], strict=True)
        columns = [F.lit(m.of_itself).cast(workers.SPARK_TYPES[dtype]).alias(m.name) for m, dtype in measures]
        return copies.select("position", F.col("first").alias("kept"), *columns)

    def _removed_of_clusters(self, confirmed: DataFrame) -> DataFrame:
        """Return all documents but the first of each connected cluster; each is measured with the first."""
        names = [measure.name for measure in self.method.value.measures]
        firsts = first_of_clusters(confirmed.select("left", "right"))  # node, root
        new = self.documents.filter(F.col("position") >= NEW).select("position", "first")
        rows = new.join(firsts.withColumnRenamed("node", "first"), "first", "left")
        chained = rows.filter("root < first")
        pairs = chained.select(F.col("root").alias("left"), F.col("first").alias("right")).distinct()
        measured = self._confirm(pairs.withColumn("cell", self._cell("right")), every=True)
        measured = measured.select(F.col("left").alias("kept"), F.col("right").alias("first"), *names)
        copies = rows.filter("(root is null or root = first) and position > first")
        found = chained.join(measured, "first").select("position", "kept", *names)
        return found.unionByName(self._of_itself(copies)).persist()

    @contextmanager
    def named(self, stage: str) -> Iterator[None]:
        """Time a stage, and name its jobs in Spark's user interface."""
        self.spark.sparkContext.setJobDescription(f"neardup: {stage}")
        with self.stages.stage(stage):
            yield
        self.spark.sparkContext.setJobDescription(None)
