"""Decisions on Spark: the sieve in rounds over confirmed pairs, and connected clusters.

A run with few pairs decides on the driver, by the stages of the local engine.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from neardup.decide.connected import connect, roots
from neardup.decide.sieve import decide
from neardup.engines.spark.source import NEW

DRIVER_PAIRS = 10_000_000
"""Confirmed pairs that the driver decides about at most: 24 bytes each, and as much again while it does."""


def removed_by_sieve(confirmed: DataFrame, driver_pairs: int | None = None) -> tuple[DataFrame, int]:
    """Return the removed documents that are no copies, as column `first`, and the number of rounds on the cluster.

    confirmed : left, right, strength. driver_pairs : see DRIVER_PAIRS.

    Notes
    -----
    A round: a document that no undecided earlier one is similar to is kept, and removes its neighbours; pairs with a
    decided document are dropped. This is the greedy maximal independent set in the order of priority of Blelloch,
    Fineman and Shun (SPAA 2012): O(log^2 n) rounds for a random order, and one for each document of a chain at worst.
    """
    limit = DRIVER_PAIRS if driver_pairs is None else driver_pairs
    # A document of the earlier corpus is always kept. A pair with left > right concerns copies of the right one only.
    edges = confirmed.filter((F.col("left") < F.col("right")) & (F.col("right") >= NEW)).select("left", "right")
    removed: list[DataFrame] = []
    rounds = 0
    while (count := edges.count()) > limit:
        rounds += 1
        kept = (
            edges.select("left")
            .distinct()
            .join(edges.select(F.col("right").alias("left")).distinct(), "left", "left_anti")
        )
        gone = _cut(edges.join(kept, "left").select(F.col("right").alias("first")).distinct())
        removed.append(gone)
        rest = edges.join(gone.withColumnRenamed("first", "right"), "right", "left_anti")
        # The neighbours of kept documents are gone, so their pairs are too.
        rest = rest.join(gone.withColumnRenamed("first", "left"), "left", "left_anti")
        edges = _cut(rest.select("left", "right"))
    if count:
        removed.append(_decide_on_driver(edges))
    if not removed:
        return edges.select(F.col("right").alias("first")), rounds
    result = removed[0]
    for frame in removed[1:]:
        result = result.unionByName(frame)
    return result.persist(), rounds


def _cut(frame: DataFrame) -> DataFrame:
    """Compute a round and forget how, as plans would double with each.

    Checkpoints survive the loss of an executor. Without a folder for them, it fails the run.
    """
    context = frame.sparkSession.sparkContext
    return frame.localCheckpoint() if context.getCheckpointDir() is None else frame.checkpoint()


def _decide_on_driver(edges: DataFrame) -> DataFrame:
    left, right = (column.to_numpy() for column in edges.toArrow().columns)
    nodes, ends = np.unique(np.concatenate([left, right]), return_inverse=True)
    earlier, later = np.split(ends.astype(np.uint32), 2)
    # Strength does not change which documents are kept, only by which of them another is removed.
    decided = decide(earlier, later, np.ones(len(left)), np.arange(len(nodes), dtype=np.uint32))
    return edges.sparkSession.createDataFrame(pa.table({"first": nodes[~decided.kept]}))


def first_of_clusters(pairs: DataFrame, driver_pairs: int | None = None) -> DataFrame:
    """Return each document of the pairs with the first of its connected cluster, as columns `node` and `root`.

    Notes
    -----
    Kiveris, Lattanzi, Mirrokni, Rastogi and Vassilvitskii, Connected Components in MapReduce and Beyond (SoCC 2014):
    large-star and small-star alternate until every document is joined to the first of its cluster.
    """
    limit = DRIVER_PAIRS if driver_pairs is None else driver_pairs
    edges = (
        pairs.select(F.greatest("left", "right").alias("node"), F.least("left", "right").alias("other"))
        .distinct()
        .persist()
    )
    state = None
    while (count := edges.count()) > limit:
        edges = _cut(_small_star(_large_star(edges)))
        reached = edges.agg(F.count("*"), F.sum(F.xxhash64("node", "other").cast("decimal(38,0)"))).first()
        if reached == state:
            break
        state = reached
    else:
        if count:
            edges = _connect_on_driver(edges)
    firsts = edges.select(F.col("other").alias("node"), F.col("other").alias("root")).distinct()
    return edges.select("node", F.col("other").alias("root")).unionByName(firsts).distinct()


def _large_star(edges: DataFrame) -> DataFrame:
    """Connect the greater neighbours of each document to the least one of it and its neighbours."""
    both = edges.unionByName(edges.select(F.col("other").alias("node"), F.col("node").alias("other")))
    least = both.groupBy("node").agg(F.min("other").alias("least"))
    joined = both.join(least, "node").filter("other > node")
    return joined.select(F.col("other").alias("node"), F.least("node", "least").alias("other")).distinct()


def _small_star(edges: DataFrame) -> DataFrame:
    """Connect each document and its smaller neighbours to the least of these."""
    least = edges.groupBy("node").agg(F.min("other").alias("least"))
    joined = edges.join(least, "node")
    moved = joined.filter("other > least").select(F.col("other").alias("node"), F.col("least").alias("other"))
    return moved.unionByName(least.select("node", F.col("least").alias("other"))).distinct()


def _connect_on_driver(edges: DataFrame) -> DataFrame:
    node, other = (column.to_numpy() for column in edges.toArrow().columns)
    nodes, ends = np.unique(np.concatenate([node, other]), return_inverse=True)
    parents = np.arange(len(nodes), dtype=np.uint32)
    connect(parents, *np.split(ends.astype(np.uint32), 2))
    first = nodes[roots(parents)]
    others = first != nodes
    return edges.sparkSession.createDataFrame(pa.table({"node": nodes[others], "other": first[others]}))
