"""Chains of similar documents: all but the first of each are removed."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from neardup.arrays import Mask, Positions
from neardup.decide.clusters import first_members
from neardup.decide.outcome import Removals
from neardup.decide.rule import Decision, Found, Rule


class Chains(Rule):
    """Keep the first document of each cluster of documents that are connected by pairs.

    The measures of a removed document compare it with the first, which may be dissimilar.
    """

    compares_more = True

    def decide(self, found: Found) -> Decision:
        """Connect the pairs, and remove all but the first of each cluster."""
        queue, pairs = found.queue, found.confirmed
        first = first_of_clusters(found)
        removed = np.flatnonzero(first != np.arange(len(first)))
        removed = removed[removed >= queue.num_against]
        removed = removed[np.argsort(queue.order[removed], kind="stable")]
        documents = queue.order[removed]
        kept = queue.order[first[removed]]
        num_hidden = 0
        if pairs.left_out.any():
            num_hidden = int(np.count_nonzero(_is_hidden(found.unlisted(), first)))
        return Decision(
            removals=Removals(documents, kept, found.measure(kept, documents)),
            left=pairs.left,
            right=pairs.right,
            measured=pairs.measured,
            num_hidden=num_hidden,
        )


def first_of_clusters(found: Found) -> Positions:
    """Return by position the first member of its cluster; a document and its copies are of one
    cluster.
    """
    representative = found.queue.representative
    positions = np.arange(len(representative), dtype=np.uint32)
    left = np.append(representative, found.confirmed.left)
    right = np.append(positions, found.confirmed.right)
    return first_members(len(positions), left, right)


def _is_hidden(unlisted: Iterable[tuple[Positions, Positions]], first: Positions) -> Mask:
    """Return by position whether a bucket has an earlier document that it does not list, and of
    another cluster.
    """
    hidden = np.zeros(len(first), np.bool_)
    for left, right in unlisted:
        earlier = left < right
        ends = right[earlier]
        hidden[ends[first[left[earlier]] != first[ends]]] = True
    return hidden
