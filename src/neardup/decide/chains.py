"""Chains of similar documents: all but the first of each are removed."""

from __future__ import annotations

import numpy as np

from neardup.arrays import Positions
from neardup.decide.clusters import first_members
from neardup.decide.rule import Decision, Found, Rule


class Chains(Rule):
    """Keep the first document of each cluster of documents that are connected by pairs.

    The measures of a removed document compare it with the first, which may be dissimilar.
    """

    compares_more = True

    def decide(self, found: Found) -> Decision:
        """Connect the pairs, and remove all but the first of each cluster."""
        queue = found.queue
        pairs = found.confirmed
        first = first_of_clusters(found)
        removed = np.flatnonzero(first != np.arange(len(first)))
        removed = removed[removed >= queue.num_against]
        removed = removed[queue.by_document(removed)]
        keepers = first[removed]
        measured = found.measure(queue.order[keepers], queue.order[removed])
        return Decision(
            removals=queue.removals(removed, keepers, measured),
            left=pairs.left,
            right=pairs.right,
            measured=pairs.measured,
            num_hidden=_num_hidden(found, first) if pairs.left_out.any() else 0,
        )


def first_of_clusters(found: Found) -> Positions:
    """Return by position the first member of its cluster; a document and its copies are in one."""
    representative = found.queue.representative
    positions = np.arange(len(representative), dtype=np.uint32)
    left = np.append(representative, found.confirmed.left)
    right = np.append(positions, found.confirmed.right)
    return first_members(len(positions), left, right)


def _num_hidden(found: Found, first: Positions) -> int:
    """Return the number of documents for which a full bucket hid another cluster's document."""
    is_hidden = np.zeros(len(first), np.bool_)
    for unlisted, positions in found.unlisted():
        # Only an earlier document counts. A bucket that lists all yields a position beyond the end.
        is_earlier = unlisted < positions
        later = positions[is_earlier]
        is_other = first[unlisted[is_earlier]] != first[later]
        is_hidden[later[is_other]] = True
    return int(np.count_nonzero(is_hidden))
