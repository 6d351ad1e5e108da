"""Keep or remove groups of documents, such as the files of a repository, as a whole; see
docs/decisions/0038.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import (
    Ints,
    Mask,
    Positions,
    Words,
    arrow_of,
    begins_run,
    offsets_from_lengths,
)
from neardup.decide.rule import Decision, Found, Names, Rule, RuleTable
from neardup.decide.sieve import NONE
from neardup.files import JsonObject
from neardup.schemas import groups_schema
from neardup.verify.measured import measured_of_copies

if TYPE_CHECKING:
    from neardup.kernels.decisions import Neighbours


class Groups(NamedTuple):
    """The groups in the order of priority.

    values : uint64, the hash of the value that the documents of a group share. documents : int64,
    the number of its documents. near : int64, the number that are similar to a document of a kept
    group before it. removed : bool.
    """

    values: Words
    documents: Ints
    near: Ints
    removed: Mask

    def rows(self, names: Names) -> Iterator[pa.RecordBatch]:
        """Yield the table of groups, in the order of priority; see schemas.groups_schema."""
        columns = [self.documents, self.near, self.near / self.documents, self.removed]
        values = pa.array(names.values(self.values), pa.string())
        yield pa.RecordBatch.from_arrays([values, *map(arrow_of, columns)], schema=groups_schema())


class GroupDecisions(NamedTuple):
    """The decisions, by position in the order of priority.

    removed : bool, whether the group of the document is removed. keeper : uint32, the position of
    the most similar document of a kept group before it, NONE if there is none. pair : int64, the
    row of the pair with the keeper; -1 for a copy. Both matter for removed positions only.
    """

    groups: Groups
    removed: Mask
    keeper: Positions
    pair: Ints


def decide_groups(found: Found, share: float) -> GroupDecisions:
    """Remove a group, in the order of groups, if enough of its documents are similar to kept ones.

    Parameters
    ----------
    found : the pairs of the first documents with their contents. A removed document names the most
        similar document; of equally similar ones, the earliest.
    share : of the documents of a group, in (0, 1].
    """
    queue = found.queue
    num_positions = len(queue.order)
    # The documents of a group follow each other, after the earlier collection.
    values = found.values[queue.order[queue.num_against :]]
    first = np.flatnonzero(begins_run(values))
    starts = queue.num_against + np.append(first, len(values))
    documents = np.diff(starts)
    needed = num_needed(share, documents, at_least=1)

    near = np.zeros(len(first), np.int64)
    keeper = np.full(num_positions, NONE, np.uint32)
    pair = np.full(num_positions, -1, np.int64)
    kernels.decisions.decide_groups(
        _neighbours(found), queue.representative, starts, needed, near, keeper, pair
    )
    groups = Groups(values=values[first], documents=documents, near=near, removed=near >= needed)
    removed = np.zeros(num_positions, np.bool_)
    removed[queue.num_against :] = np.repeat(groups.removed, documents)
    return GroupDecisions(groups=groups, removed=removed, keeper=keeper, pair=pair)


def num_needed(share: float, num_documents: Ints, *, at_least: int) -> Ints:
    """Return the smallest number of documents that is at least a share of them."""
    # Rounded, so that 0.1 of 30 documents are 3.
    needed = np.ceil(np.round(share * num_documents, 9))
    return np.maximum(at_least, needed).astype(np.int64)


def _neighbours(found: Found) -> Neighbours:
    """Return the pairs of each position, in both directions."""
    pairs = found.confirmed
    num_pairs = len(pairs.left)
    ends = np.concatenate([pairs.left, pairs.right])
    others = np.concatenate([pairs.right, pairs.left])
    by_end = np.argsort(ends, kind="stable")
    return kernels.decisions.Neighbours(
        offsets=offsets_from_lengths(np.bincount(ends, minlength=len(found.queue.order))),
        positions=others[by_end],
        rows=by_end % max(1, num_pairs),  # both directions of a pair are one row
        strength=found.method.strength(pairs.measured),
    )


class ByGroup(Rule):
    """Keep or remove the documents with the same value in a column together.

    Parameters
    ----------
    column : the name of the column.
    share : remove a group if this share of its documents, or more, are similar to kept ones.
    """

    tables = ("groups",)
    counts_values = False

    def __init__(self, column: str, share: float) -> None:
        self.column = column
        self.share = share
        self.both_ways = ("group_by", column)

    @property
    def options(self) -> JsonObject:
        """The option group_by."""
        return {"group_by": self.column}

    def order(self, order: Positions, num_against: int, values: Words) -> Positions:
        """Move the documents of a group to its first one."""
        known = order[:num_against]
        new = order[num_against:]
        _, first, group = np.unique(values[new], return_index=True, return_inverse=True)
        by_group = np.argsort(first[group], kind="stable")
        return np.concatenate([known, new[by_group]])

    def decide(self, found: Found) -> Decision:
        """Decide about the groups in their order."""
        queue = found.queue
        pairs = found.confirmed
        decided = decide_groups(found, self.share)
        has_keeper = decided.keeper != NONE
        removed = np.flatnonzero(decided.removed & has_keeper)
        removed = removed[queue.by_document(removed)]
        others = queue.order[decided.removed & ~has_keeper]

        measured = measured_of_copies(len(removed), found.method.measures)
        pair = decided.pair[removed]
        is_pair = pair >= 0  # any other is a copy of its keeper
        for name, column in measured.columns.items():
            column[is_pair] = pairs.measured[name][pair[is_pair]]

        return Decision(
            removals=queue.removals(removed, decided.keeper[removed], measured),
            left=pairs.left,
            right=pairs.right,
            measured=pairs.measured,
            num_hidden=int(np.count_nonzero(pairs.left_out)),
            others=others,
            tables=(RuleTable("groups", groups_schema(), decided.groups.rows),),
            facts={"groups": self._facts(decided.groups, len(others))},
        )

    def _facts(self, groups: Groups, num_others: int) -> JsonObject:
        return {
            "column": self.column,
            "share": self.share,
            "groups": len(groups.values),
            "removed": int(np.count_nonzero(groups.removed)),
            "removed_with_group": num_others,
        }
