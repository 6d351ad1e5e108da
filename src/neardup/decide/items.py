"""Decide which items a corpus contains, from the shingles of items that were found in its
documents.

The rule is that of docs/contamination.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import (
    Array,
    Floats,
    Int32s,
    Integers,
    Mask,
    Positions,
    Rows,
    begins_run,
    offsets_from_lengths,
    ranges,
    writable,
)
from neardup.candidates.items import LONG, ItemTable, Matches, least_whole

RULES = ("containment", "whole", "perfect")
"""What shows an item: enough of its shingles; all of a long one, however many have it; all of a
short one.
"""


class Stretches(NamedTuple):
    """The best stretch of each field of an item in a document, in the order of the matches.

    begins : int64, the first match of the field in the document. items, fields : int32. counts :
    int64 (num_stretches, 4), the distinct rare shingles in it, all distinct shingles, its first and
    its last match. starts : int64, the first stretch of each item in a document.
    """

    begins: Rows
    items: Int32s
    fields: Int32s
    counts: Rows
    starts: Rows

    def total(self, column: int, weights: Array) -> Array:
        """Return the sum of a column of `counts` for each item in a document, weighted by field."""
        values = self.counts[:, column] * weights[self.fields]
        return np.add.reduceat(values, self.starts) if len(values) else values[:0]

    def shown(self, table: ItemTable) -> Rows:
        """Return the stretch to show of each item in a document.

        That of the first field of which enough was found; else the one with most.
        """
        sizes = np.bincount(table.fields, minlength=len(table.field_items))[self.fields]
        is_enough = self.counts[:, 1] >= table.settings.threshold * np.maximum(sizes, 1) - 1e-9
        group = np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.items)))
        order = np.lexsort(
            (np.arange(len(group)), np.where(is_enough, 0, -self.counts[:, 1]), ~is_enough, group)
        )
        return order[self.starts]


class Hits(NamedTuple):
    """Items found in documents, by item, the best first.

    documents : uint32. items, rules : int32; rules are numbers of RULES. containment : float64.
    starts, ends : int64, the characters of the document where the best field's stretch is. found :
    by hit, the place of each match in the stretches, with repeats.
    """

    documents: Positions
    items: Int32s
    rules: Int32s
    containment: Floats
    starts: Rows
    ends: Rows
    found: Array

    def take(self, rows: Array) -> Hits:
        """Return some of the hits."""
        return Hits._make(column[rows] for column in self)


def find_stretches(table: ItemTable, matches: Matches, is_rare: Mask) -> Stretches:
    """Return the stretch of each field in each document that holds most of its shingles.

    Parameters
    ----------
    matches : by document and field, in each by position. is_rare : bool by match.
    """
    fields = table.fields[matches.places]
    begins = np.flatnonzero(begins_run(matches.documents, fields))
    ends, best = (
        np.append(begins[1:], len(fields))[: len(begins)],
        np.empty((len(begins), 4), np.int64),
    )
    fields = fields[begins]
    width = table.num_tokens[fields] + np.maximum(
        table.num_tokens[fields] // 2, 5
    )  # words: half as many again
    arrays = (
        writable(matches.places),
        writable(matches.positions),
        is_rare,
        width - table.ngrams[fields] + 1,
    )
    kernels.item_shingles.best_stretches(ends, *arrays, np.zeros(len(table.items), np.int32), best)
    items = table.field_items[fields]
    return Stretches(
        begins, items, fields, best, np.flatnonzero(begins_run(matches.documents[begins], items))
    )


ENOUGH, KEPT, ALL, FURTHER = range(4)
"""What a document has of an item: enough of it, boilerplate included; what may be a hit; all of it;
and the same if it is not listed, because `max_documents` others have all of it.
"""


class Kept(NamedTuple):
    """What is kept of the matches in some documents.

    matches : bool by match, those in the stretches of items that may be found. items, states :
    int32, the items of which documents have enough, in the order of the matches; ENOUGH, KEPT or
    ALL.
    """

    matches: Mask
    items: Int32s
    states: Int32s


class _Judged(NamedTuple):
    """How much of a part of an item a document has, by item and document.

    own, rare : int64, the shingles there. num_own : int64, those that the part has. share :
    float64, of these, weighted. rare_weight : float64, of the rare ones. contains : bool, whether
    enough is there, boilerplate included. is_whole : bool, whether all are there, and these are
    enough to show an item; is_long : and they are many.
    """

    own: Rows
    rare: Rows
    num_own: Rows
    share: Floats
    rare_weight: Floats
    contains: Mask
    is_whole: Mask
    is_long: Mask


def _judge(table: ItemTable, found: Stretches) -> Iterator[_Judged]:
    """Yield how much of the first field, and of all, a document has."""
    items, settings = found.items[found.starts], table.settings
    # An answer without any of its question is none: answers are alike.
    has_first = found.total(1, table.is_first) >= np.ceil(
        settings.threshold / 2 * table.num_first[items] - 1e-9
    )
    for is_part, of_items, all_weight in table.parts:
        own, num_own, weights = found.total(1, is_part), of_items[items], table.weights * is_part
        share = found.total(1, weights) / np.maximum(all_weight[items], 1e-300)
        is_whole = has_first & (num_own >= settings.min_rare) & (own >= least_whole(num_own))
        contains = (
            has_first & (own >= settings.min_shingles) & (share >= settings.threshold - 1e-9)
            | is_whole
        )
        rare = found.total(0, is_part), num_own, share, found.total(0, weights)
        yield _Judged(own, *rare, contains, is_whole, is_whole & (num_own >= LONG))


def keep_matches(table: ItemTable, matches: Matches, is_common: Mask) -> Kept:
    """Return which items may be found, however many documents are still to come.

    is_common : bool by match, of those known to be.
    """
    found = find_stretches(table, matches, ~is_common)
    items = found.items[found.starts]
    kept, whole, enough = (np.zeros(len(items), np.bool_) for _ in range(3))
    for part in _judge(table, found):
        whole |= part.is_long | (part.is_whole & (part.num_own == table.num_own[items]))
        enough |= part.contains
        kept |= part.is_long | (
            part.contains & (part.rare >= np.where(part.is_whole, 1, table.settings.min_rare))
        )
    first, last = found.counts[
        np.repeat(kept, np.diff(found.starts, append=len(found.items))), 2:
    ].T
    in_stretch = np.zeros(len(matches.places), np.bool_)
    in_stretch[ranges(first, last - first + 1)] = True
    return Kept(
        in_stretch, items[enough], np.where(kept, KEPT + whole, ENOUGH)[enough].astype(np.int32)
    )


def decide_hits(table: ItemTable, matches: Matches, characters: Integers, is_rare: Mask) -> Hits:
    """Return all hits.

    Parameters
    ----------
    matches : those kept of all documents, by document and field. characters : (num_matches, 2), the
        range of each.
    is_rare : bool by place, whether few documents have the words around it.
    """
    found = find_stretches(table, matches, is_rare[matches.places])
    items = found.items[found.starts]
    containment, rules = np.zeros(len(items)), np.zeros(len(items), np.int32)
    for part, (is_part, _, _) in zip(_judge(table, found), table.parts, strict=True):
        is_short = part.is_whole & ~part.is_long & (part.rare > 0)
        all_rare = np.bincount(
            table.items, (table.weights * is_part)[table.fields] * is_rare, table.num_items
        )[items]
        is_enough = part.contains & (part.rare >= table.settings.min_rare)
        is_enough &= part.rare_weight >= (table.settings.threshold / 2 - 1e-9) * all_rare
        share = np.where(
            part.is_long | is_short, part.own / np.maximum(part.num_own, 1), part.share
        )
        better = (part.is_long | is_short | is_enough) & (share > containment)
        containment[better] = share[better]
        rules[better] = np.select([part.is_long, is_short], [1, 2], 0)[better]
    first, last = found.counts[found.shown(table), 2:].T
    documents = matches.documents[found.begins[found.starts]].astype(np.uint32)
    order = np.lexsort((documents, -containment, items))
    order = order[containment[order] > 0]
    sizes = found.counts[:, 3] - found.counts[:, 2] + 1
    every, limits = (
        matches.places[ranges(found.counts[:, 2], sizes)],
        offsets_from_lengths(sizes)[found.starts],
    )
    places = np.fromiter(np.split(every, limits[1:]), np.object_)[: len(items)]
    return Hits(
        documents, items, rules, containment, characters[first, 0], characters[last, 1], places
    ).take(order)
