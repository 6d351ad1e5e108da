"""Keep or remove groups of documents, such as the files of a repository, as a whole; see
docs/decisions/0038.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import (
    Floats,
    Ints,
    Mask,
    Positions,
    Words,
    arrow_of,
    begins_run,
    offsets_from_lengths,
)
from neardup.decide.outcome import Removals
from neardup.decide.rule import Decision, Found, Names, Rule, RuleTable
from neardup.decide.sieve import NONE
from neardup.files import JsonObject
from neardup.schemas import groups_schema
from neardup.verify.measured import measured_of_copies


class Groups(NamedTuple):
    """The groups in the order of priority.

    values : uint64, the hash of the value that the documents of a group share. documents, near :
    int64, its documents, and those of them that are similar to a document of a kept group before
    it. removed : bool.
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
    row of the pair with that; -1 for a copy. Both matter for removed positions only.
    """

    groups: Groups
    removed: Mask
    keeper: Positions
    pair: Ints


def decide_groups(
    left: Positions,
    right: Positions,
    strength: Floats,
    representative: Positions,
    values: Words,
    share: float,
) -> GroupDecisions:
    """Decide about the groups in their order: one is removed if enough of its documents are similar
    to kept ones.

    Parameters
    ----------
    left, right : uint32 (num_pairs,), positions of the confirmed pairs, of the first documents with
        their contents.
    strength : float64 (num_pairs,), the similarity, which decides what a removed document names;
        then the position.
    representative : uint32 (num_positions,), the first position with the same content.
    values : uint64 by position from the first that may be removed; those of a group follow each
        other.
    share : of the documents of a group, in (0, 1].
    """
    size, num_pairs = len(representative), len(left)
    ends = np.concatenate([left, right])
    by_end = np.argsort(ends, kind="stable")
    offsets = offsets_from_lengths(np.bincount(ends, minlength=size))
    neighbours = np.concatenate([right, left])[by_end]
    pairs = kernels.decisions.Neighbours(offsets, neighbours, by_end % max(1, num_pairs), strength)
    first = np.flatnonzero(begins_run(values)) if len(values) else np.empty(0, np.int64)
    starts = size - len(values) + np.append(first, len(values))
    documents = np.diff(starts)
    # Rounded, so that 0.1 of 30 documents are 3.
    needed = np.maximum(1, np.ceil(np.round(share * documents, 9))).astype(np.int64)
    near, keeper, pair = (
        np.zeros(len(first), np.int64),
        np.full(size, NONE, np.uint32),
        np.full(size, -1, np.int64),
    )
    kernels.decisions.decide_groups(pairs, representative, starts, needed, near, keeper, pair)
    removed = near >= needed
    of_position = np.append(np.zeros(size - len(values), np.bool_), np.repeat(removed, documents))
    return GroupDecisions(
        Groups(values[first], documents, near, removed), of_position, keeper, pair
    )


class ByGroup(Rule):
    """Keep or remove the documents with the same value in a column together.

    Parameters
    ----------
    column : its name. share : of the documents of a group; it is removed if as many are similar to
        kept ones.
    """

    tables = ("groups",)
    counts_values = False

    def __init__(self, column: str, share: float) -> None:
        self.column, self.share = column, share
        self.both_ways = ("group_by", column)

    @property
    def options(self) -> JsonObject:
        """The option group_by."""
        return {"group_by": self.column}

    def order(self, order: Positions, num_against: int, values: Words) -> Positions:
        """Return an order in which the documents of a group follow each other, from its first one
        on.
        """
        new = order[num_against:]
        _, first, group = np.unique(values[new], return_index=True, return_inverse=True)
        return np.concatenate([order[:num_against], new[np.argsort(first[group], kind="stable")]])

    def decide(self, found: Found) -> Decision:
        """Decide about the groups in their order; a removed document names the most similar one of
        a kept group.
        """
        order, pairs = found.queue.order, found.confirmed
        decided = decide_groups(
            pairs.left,
            pairs.right,
            found.method.strength(pairs.measured),
            found.queue.representative,
            found.values[order[found.queue.num_against :]],
            self.share,
        )
        has_keeper = decided.keeper != NONE
        removed = np.flatnonzero(decided.removed & has_keeper)
        removed = removed[np.argsort(order[removed], kind="stable")]
        pair = decided.pair[removed]
        measured = measured_of_copies(len(removed), found.method.measures)
        for name, column in measured.columns.items():
            column[pair >= 0] = pairs.measured[name][pair[pair >= 0]]
        groups, others = decided.groups, order[decided.removed & ~has_keeper]
        facts = {
            "column": self.column,
            "share": self.share,
            "groups": len(groups.values),
            "removed": int(np.count_nonzero(groups.removed)),
            "removed_with_group": len(others),
        }
        return Decision(
            removals=Removals(order[removed], order[decided.keeper[removed]], measured),
            left=pairs.left,
            right=pairs.right,
            measured=pairs.measured,
            num_hidden=int(np.count_nonzero(pairs.left_out)),
            others=others,
            tables=(RuleTable("groups", groups_schema(), groups.rows),),
            facts={"groups": facts},
        )
