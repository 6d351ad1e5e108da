"""How many documents of a group stay: one, several, or none."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from neardup.arrays import Ints, Positions, Words
from neardup.decide.outcome import Removals
from neardup.decide.rule import Decision, Found, Rule
from neardup.files import JsonObject


def keep_copies(
    removals: Removals, order: Positions, num_against: int, copies: int
) -> tuple[Removals, Ints]:
    """Return the removals if so many documents of each group stay, and the number of documents in
    each group.

    A group is a document that was kept, and those that were removed for it. Its first documents in
    the order of priority stay. If none does, the kept document is removed too, for the first of the
    others, unless it is of the earlier corpus.

    Parameters
    ----------
    order : uint32 (num_documents,), the documents in the order of priority.
    """
    position = np.empty_like(order)
    position[order] = np.arange(len(order), dtype=order.dtype)
    rows = np.lexsort((position[removals.documents], removals.kept))
    kept = removals.kept[rows]
    starts = np.flatnonzero(np.append(True, kept[1:] != kept[:-1])[: len(kept)])
    sizes = np.diff(np.append(starts, len(kept)))
    if copies:
        rank = 1 + np.arange(len(kept)) - np.repeat(starts, sizes)
        return removals.take(np.sort(rows[rank >= copies])), sizes + 1
    first = rows[starts]
    first = first[removals.kept[first] >= num_against]
    both = Removals(
        np.concatenate([removals.documents, removals.kept[first]]),
        np.concatenate([removals.kept, removals.documents[first]]),
        removals.measured.take(np.concatenate([np.arange(len(kept)), first])),
        np.concatenate([removals.kept, removals.kept[first]]),
    )
    return both.take(np.argsort(both.documents)), sizes + 1


class Copies(Rule):
    """Keep several documents of each cluster of another rule, or none.

    Parameters
    ----------
    rule : decides what a cluster is. copies : the documents of a cluster that stay, 0 or 2 or more.
    """

    def __init__(self, rule: Rule, copies: int) -> None:
        self.rule, self.copies = rule, copies
        self.pairs, self.compares_more = rule.pairs, rule.compares_more
        self.both_ways = ("keep", "none") if copies == 0 else rule.both_ways

    @property
    def reorders(self) -> bool:
        """Whether the other rule changes the order."""
        return self.rule.reorders

    def order(self, order: Positions, num_against: int, values: Words) -> Positions:
        """Return the documents in the order of the other rule."""
        return self.rule.order(order, num_against, values)

    @property
    def options(self) -> JsonObject:
        """Those of the other rule."""
        return self.rule.options

    def decide(self, found: Found) -> Decision:
        """Decide by the other rule, and keep the first documents of each cluster."""
        decision = self.rule.decide(found)
        queue = found.queue
        removals, sizes = keep_copies(
            decision.removals, queue.order, queue.num_against, self.copies
        )
        return replace(decision, removals=removals, cluster_sizes=sizes)
