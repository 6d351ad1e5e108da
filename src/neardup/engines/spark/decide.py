"""Decide on Spark: by the sieve in rounds, or connected clusters; with few pairs on the driver, by
the local stages.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from neardup.arrays import Ints
from neardup.decide.clusters import first_connected, number_ends
from neardup.decide.sieve import decide
from neardup.engines.spark.source import NEW

# that the driver decides about at most: 24 bytes each, and as much again while it does
DRIVER_PAIRS = 10_000_000


def removed_by_sieve(confirmed: DataFrame) -> tuple[DataFrame, int]:
    """Return the removed documents that are no copies, as the column `left`, and the number of
    rounds on the cluster.

    confirmed : left, right.

    Notes
    -----
    A round: a document that no undecided earlier one is similar to is kept, and removes its
    neighbours; pairs with a decided document are dropped. This is the greedy maximal independent
    set in the order of priority of Blelloch, Fineman and Shun (SPAA 2012): O(log^2 n) rounds for a
    random order, and one for each document of a chain at worst.
    """
    # A document of the earlier corpus is always kept. A pair with left > right concerns copies of
    # the right one only.
    edges = confirmed.filter((F.col("left") < F.col("right")) & (F.col("right") >= NEW)).select(
        "left", "right"
    )
    gone, rounds, spark = edges.select("left").limit(0), 0, confirmed.sparkSession
    while (count := edges.count()) > DRIVER_PAIRS:
        rounds += 1
        kept = edges.select("left").subtract(edges.selectExpr("right as left"))
        decided = _cut(edges.join(kept, "left").selectExpr("right as left").distinct())
        gone = gone.unionByName(decided)
        # The neighbours of kept documents are gone, so their pairs are too.
        edges = edges.join(decided.withColumnRenamed("left", "right"), "right", "left_anti")
        edges = _cut(edges.join(decided, "left", "left_anti").select("left", "right"))
    if count:
        gone = gone.unionByName(
            spark.createDataFrame(pa.table({"left": _decide(*_columns(edges))}))
        )
    return gone, rounds


def _decide(left: Ints, right: Ints) -> Ints:
    positions, (earlier, later) = number_ends(left, right)
    # Strength does not change which documents are kept, only by which of them another is removed.
    decided = decide(earlier, later, np.ones(len(left)), np.arange(len(positions), dtype=np.uint32))
    return positions[~decided.kept]


def first_of_clusters(pairs: DataFrame, persist: Callable[[DataFrame], DataFrame]) -> DataFrame:
    """Return the first document of each connected cluster, `left`, with each of the others,
    `right`.

    persist : makes Spark store a frame.

    Notes
    -----
    Kiveris, Lattanzi, Mirrokni, Rastogi and Vassilvitskii, Connected Components in MapReduce and
    Beyond (SoCC 2014): large-star and small-star alternate until every document is joined to the
    first of its cluster.
    """
    edges = pairs.select(
        F.least("left", "right").alias("left"), F.greatest("left", "right").alias("right")
    )
    edges = persist(edges.distinct())
    state = None
    while (count := edges.count()) > DRIVER_PAIRS:
        edges = _cut(_small_star(_large_star(edges)))
        reached = edges.agg(
            F.count("*"), F.sum(F.xxhash64("left", "right").cast("decimal(38,0)"))
        ).first()
        if reached == state:
            return edges
        state = reached
    if not count:
        return edges
    ends, firsts = first_connected(*_columns(edges))
    others = firsts != ends
    return edges.sparkSession.createDataFrame(
        pa.table({"left": firsts[others], "right": ends[others]})
    )


def _large_star(edges: DataFrame) -> DataFrame:
    """Connect the later neighbours of each document to the first one of it and its neighbours."""
    both = edges.unionByName(
        edges.selectExpr("right as left", "left as right")
    )  # left : the centre of the star
    first = both.groupBy("left").agg(F.least(F.min("right"), "left").alias("first"))
    return (
        both.join(first, "left")
        .filter("right > left")
        .selectExpr("first as left", "right")
        .distinct()
    )


def _small_star(edges: DataFrame) -> DataFrame:
    """Connect each document and its earlier neighbours to the first of these."""
    first = edges.groupBy("right").agg(F.min("left").alias("first"))
    moved = (
        edges.join(first, "right")
        .filter("left > first")
        .selectExpr("first as left", "left as right")
    )
    return moved.unionByName(first.selectExpr("first as left", "right")).distinct()


def _cut(frame: DataFrame) -> DataFrame:
    """Compute a round and forget how, as plans would double with each.

    Checkpoints survive the loss of an executor. Without a folder for them, it fails the run.
    """
    context = frame.sparkSession.sparkContext
    return frame.localCheckpoint() if context.getCheckpointDir() is None else frame.checkpoint()


def _columns(edges: DataFrame) -> list[Ints]:
    return [column.to_numpy() for column in edges.select("left", "right").toArrow().columns]
