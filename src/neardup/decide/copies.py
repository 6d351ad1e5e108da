"""Keep several documents of each cluster, or none."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from neardup.arrays import Ints, Positions, Words, begins_run, rank_in_run
from neardup.decide.outcome import Removals
from neardup.decide.rule import Decision, Found, Measuring, Queue, Rule
from neardup.files import JsonObject


class Copies(Rule):
    """Keep several documents of each cluster of another rule, or none.

    Parameters
    ----------
    rule : decides which documents are a cluster: a kept document, and the ones removed for it.
    copies : the number of documents of a cluster that stay, 0 or 2 or more: the first ones in the
        order of priority.
    """

    def __init__(self, rule: Rule, copies: int) -> None:
        self.rule = rule
        self.copies = copies
        self.pairs = rule.pairs
        self.compares_more = rule.compares_more
        self.counts_values = rule.counts_values
        if copies == 0:
            self.both_ways = ("keep", "none")

    def refuse(self, method: Measuring) -> None:
        """Raise SettingError if either rule cannot decide over the pairs of a method."""
        super().refuse(method)
        self.rule.refuse(method)

    @property
    def reorders(self) -> bool:
        """Return whether the other rule changes the order."""
        return self.rule.reorders

    def order(self, order: Positions, num_against: int, values: Words) -> Positions:
        """Return the documents in the order of the other rule."""
        return self.rule.order(order, num_against, values)

    @property
    def options(self) -> JsonObject:
        """The options of the other rule."""
        return self.rule.options

    def decide(self, found: Found) -> Decision:
        """Decide by the other rule, and keep the first documents of each cluster."""
        decision = self.rule.decide(found)
        clusters = _clusters_of(decision.removals, found.queue)
        if self.copies:
            # The kept document is the first of a cluster, before the removed ones.
            rank = 1 + rank_in_run(clusters.kept)
            removals = decision.removals.take(np.sort(clusters.rows[rank >= self.copies]))
        else:
            removals = _without_keepers(decision.removals, clusters, found.queue.num_against)
        return replace(decision, removals=removals, cluster_sizes=clusters.sizes)


class _Clusters(NamedTuple):
    """The removals of each kept document, in the order of priority.

    rows : int64 (num_removed,), the removals by their kept document. kept : uint32 (num_removed,),
    the kept document of each. starts, sizes : int64 (num_clusters,), the first row of each cluster,
    and the number of its documents, which includes the kept one.
    """

    rows: Ints
    kept: Positions
    starts: Ints
    sizes: Ints


def _clusters_of(removals: Removals, queue: Queue) -> _Clusters:
    position = np.empty_like(queue.order)
    position[queue.order] = np.arange(len(queue.order), dtype=queue.order.dtype)
    rows = np.lexsort((position[removals.documents], removals.kept))
    kept = removals.kept[rows]
    starts = np.flatnonzero(begins_run(kept))
    sizes = 1 + np.diff(starts, append=len(kept))
    return _Clusters(rows=rows, kept=kept, starts=starts, sizes=sizes)


def _without_keepers(removals: Removals, clusters: _Clusters, num_against: int) -> Removals:
    """Return the removals if no document of a cluster stays.

    The first removed document of a cluster then removes the kept one, unless the kept one is of the
    earlier collection.
    """
    first = clusters.rows[clusters.starts]
    first = first[removals.kept[first] >= num_against]
    every = np.arange(len(removals.documents))
    both = Removals(
        documents=np.concatenate([removals.documents, removals.kept[first]]),
        kept=np.concatenate([removals.kept, removals.documents[first]]),
        measured=removals.measured.take(np.concatenate([every, first])),
        first=np.concatenate([removals.kept, removals.kept[first]]),
    )
    return both.take(np.argsort(both.documents))
