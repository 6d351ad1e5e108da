"""Decide over pairs on a cluster, in rounds: by the sieve, or by connected clusters.

Once few pairs are left, the driver collects them and decides with the local kernels.
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

DRIVER_PAIRS = 10_000_000
"""Pairs that the driver decides over at most: 24 bytes each, and as much again while it decides."""


Store = Callable[[DataFrame], DataFrame]
"""Makes Spark store a frame, and returns it."""


def removed_by_sieve(confirmed: DataFrame, checkpoint: Store) -> tuple[DataFrame, int]:
    """Return the documents that the sieve removes, and the number of rounds on the cluster.

    Exact copies have no pairs here: the caller removes them.

    Parameters
    ----------
    confirmed : left and right, positions.
    checkpoint : also computes a frame and forgets its plan, because plans double with each round.

    Returns
    -------
    DataFrame of the column `left`, and int.

    Notes
    -----
    A round: a document without an undecided earlier neighbour is kept, and removes its later
    neighbours; pairs with a decided document are dropped. This is the greedy maximal independent
    set in the order of priority of Blelloch, Fineman and Shun (SPAA 2012): O(log^2 n) rounds for a
    random order, and one for each document of a chain at worst.
    """
    # A document of the earlier corpus is always kept. A pair with left > right concerns only the
    # copies of its right document.
    is_decisive = (F.col("left") < F.col("right")) & (F.col("right") >= NEW)
    edges = confirmed.filter(is_decisive).select("left", "right")
    removed = edges.select("left").limit(0)  # an empty frame with the column
    rounds = 0
    while (num_edges := edges.count()) > DRIVER_PAIRS:
        rounds += 1
        # A document without earlier neighbours is kept, whatever is decided about others.
        kept = edges.select("left").subtract(edges.selectExpr("right as left"))
        neighbours = edges.join(kept, "left").selectExpr("right as left").distinct()
        neighbours = checkpoint(neighbours)
        removed = removed.unionByName(neighbours)
        # All neighbours of a kept document are removed, so its pairs are dropped here, too.
        edges = edges.join(neighbours.withColumnRenamed("left", "right"), "right", "left_anti")
        edges = edges.join(neighbours, "left", "left_anti").select("left", "right")
        edges = checkpoint(edges)
    if num_edges:
        positions = _removed_here(*_columns(edges))
        rest = confirmed.sparkSession.createDataFrame(pa.table({"left": positions}))
        removed = removed.unionByName(rest)
    return removed, rounds


def _removed_here(left: Ints, right: Ints) -> Ints:
    """Return the positions that the sieve removes over pairs, left < right."""
    pairs = number_ends(left, right)
    # The strength decides which of several kept documents removes another, but not whether.
    strength = np.ones(len(left))
    representative = np.arange(len(pairs.ends), dtype=np.uint32)
    decided = decide(pairs.left, pairs.right, strength, representative)
    return pairs.ends[~decided.kept]


def first_of_clusters(pairs: DataFrame, persist: Store, checkpoint: Store) -> DataFrame:
    """Return each document of a connected cluster, `right`, with the first of the cluster, `left`.

    The first document itself has no row.

    Parameters
    ----------
    pairs : left and right, positions.
    persist : stores a frame that is read several times.
    checkpoint : also computes a frame and forgets its plan, because plans double with each round.

    Notes
    -----
    Kiveris, Lattanzi, Mirrokni, Rastogi and Vassilvitskii, Connected Components in MapReduce and
    Beyond (SoCC 2014): large-star and small-star alternate until every document is joined to the
    first of its cluster.
    """
    earlier = F.least("left", "right").alias("left")
    later = F.greatest("left", "right").alias("right")
    edges = persist(pairs.select(earlier, later).distinct())
    digest = None
    while (num_edges := edges.count()) > DRIVER_PAIRS:
        edges = checkpoint(_small_star(_large_star(edges)))
        # Once every edge leads to the first document of its cluster, no edge moves: the number of
        # edges and the sum of their hashes stay the same. Decimal, because a sum of hashes exceeds
        # bigint, which is an error in Spark 4.
        sum_of_hashes = F.sum(F.xxhash64("left", "right").cast("decimal(38,0)"))
        new_digest = edges.agg(F.count("*"), sum_of_hashes).first()
        if new_digest == digest:
            return edges
        digest = new_digest
    if not num_edges:
        return edges
    ends, firsts = first_connected(*_columns(edges))
    is_other = firsts != ends
    table = pa.table({"left": firsts[is_other], "right": ends[is_other]})
    return edges.sparkSession.createDataFrame(table)


def _large_star(edges: DataFrame) -> DataFrame:
    """Connect the later neighbours of each document to the first of the document and all of its
    neighbours.
    """
    reverse = edges.selectExpr("right as left", "left as right")
    both = edges.unionByName(reverse)  # `left` is the centre of the star
    first = both.groupBy("left").agg(F.least(F.min("right"), "left").alias("first"))
    later = both.join(first, "left").filter("right > left")
    return later.selectExpr("first as left", "right").distinct()


def _small_star(edges: DataFrame) -> DataFrame:
    """Connect each document and its earlier neighbours to the first of these neighbours."""
    first = edges.groupBy("right").agg(F.min("left").alias("first"))
    others = edges.join(first, "right").filter("left > first")
    moved = others.selectExpr("first as left", "left as right")
    return moved.unionByName(first.selectExpr("first as left", "right")).distinct()


def _columns(edges: DataFrame) -> list[Ints]:
    """Collect the columns left and right on the driver."""
    return [column.to_numpy() for column in edges.select("left", "right").toArrow().columns]
