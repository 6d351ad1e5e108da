"""Decide which items a corpus contains, from the shingles of items that were found in its documents.

The rule is that of docs/contamination.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.arrays import writable
from neardup.candidates.items import LONG, ItemTable, Matches

RULES = ("containment", "whole", "perfect")
"""What shows an item: enough of its rare shingles; all of a long one, however many have it; all of a short one."""


class Stretches(NamedTuple):
    """The best stretch of each field of an item in a document, in the order of the matches.

    begins : int64, the first match of the field in the document. items, fields : int32. counts : int64
    (num_stretches, 4), the distinct rare shingles in it, all distinct shingles, its first and its last match.
    starts : int64, the first stretch of each item in a document.
    """

    begins: npt.NDArray[np.int64]
    items: npt.NDArray[np.int32]
    fields: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]

    def total(self, column: int, weights: npt.NDArray[Any] | None = None) -> npt.NDArray[Any]:
        """Return the sum of a column of `counts` for each item in a document, weighted by field."""
        values = self.counts[:, column] if weights is None else self.counts[:, column] * weights[self.fields]
        return np.add.reduceat(values, self.starts) if len(values) else values[:0]

    def best(self, column: int) -> npt.NDArray[np.int64]:
        """Return the stretch with the greatest number in a column for each item in a document, the first of equals."""
        group = np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.items)))
        order = np.lexsort((np.arange(len(group)), -self.counts[:, column], group))
        return order[self.starts]


class Hits(NamedTuple):
    """Items found in documents, by item, the best first.

    documents : uint32. items, rules : int32; rules are numbers of RULES. containment : float64. starts, ends : int64,
    the characters of the document where the best field's stretch is. found : places that were found, by hit.
    """

    documents: npt.NDArray[np.uint32]
    items: npt.NDArray[np.int32]
    rules: npt.NDArray[np.int32]
    containment: npt.NDArray[np.float64]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]
    found: list[npt.NDArray[np.int32]]

    def take(self, rows: npt.NDArray[Any]) -> Hits:
        """Return some of the hits."""
        documents, items, rules, containment, starts, ends, found = self
        columns = documents[rows], items[rows], rules[rows], containment[rows], starts[rows], ends[rows]
        return Hits(*columns, [found[row] for row in rows.tolist()])


def find_stretches(
    table: ItemTable, matches: Matches, is_rare: npt.NDArray[np.bool_], *, prefers_rare: bool
) -> Stretches:
    """Return the stretch of each field in each document that holds most of its shingles.

    Parameters
    ----------
    matches : by document and field, in each by position. is_rare : bool by match.
    prefers_rare : whether most rare shingles count first.
    """
    fields = table.fields[matches.places]
    last = np.flatnonzero((np.diff(fields, append=-1) != 0) | (np.diff(matches.documents, append=-1) != 0))
    best = np.empty((len(last), 4), np.int64)
    arrays = (last + 1, writable(matches.places), writable(matches.positions), is_rare, table.widths(fields[last]))
    kernels.item_shingles.best_stretches(*arrays, np.zeros(len(table.items), np.int32), prefers_rare, best)
    items, documents = table.field_items[fields[last]], matches.documents[last]
    new = (np.diff(items, prepend=-1) != 0) | (np.diff(documents, prepend=-1) != 0)
    return Stretches(np.append(0, last + 1)[:-1], items, fields[last], best, np.flatnonzero(new))


class Kept(NamedTuple):
    """What is kept of the matches in some documents.

    matches : bool by match, of the items that may be found. items, whole : by item kept in a document: int32; bool,
    whether all of it is there. enough : int32, an item for each document that has enough of it, boilerplate included.
    """

    matches: npt.NDArray[np.bool_]
    items: npt.NDArray[np.int32]
    whole: npt.NDArray[np.bool_]
    enough: npt.NDArray[np.int32]


def keep_matches(table: ItemTable, matches: Matches, is_common: npt.NDArray[np.bool_]) -> Kept:
    """Return which items may be found, however many documents are still to come.

    is_common : bool by key, of those known to be.
    """
    is_rare = ~is_common[table.keys[matches.places]]
    rare = find_stretches(table, matches, is_rare, prefers_rare=True)
    own = find_stretches(table, matches, is_rare, prefers_rare=False)
    items, num_own = own.items[own.starts], own.total(1)
    whole = num_own >= table.least_whole[items]
    kept = whole | (rare.total(0) >= table.settings.min_shingles)
    sizes = np.diff(own.begins[own.starts], append=len(matches.places))
    return Kept(np.repeat(kept, sizes), items[kept], whole[kept], items[num_own >= table.least_own[items]])


def decide_hits(
    table: ItemTable, matches: Matches, ranges: npt.NDArray[np.integer[Any]], num_documents: npt.NDArray[np.int64]
) -> Hits:
    """Return all hits.

    Parameters
    ----------
    matches : those kept of all documents, by document and field.
    ranges : (num_matches, 2), the characters of each.
    num_documents : int64 by key, the documents that have it.
    """
    settings = table.settings
    is_rare = num_documents[table.keys] <= settings.common
    weights = table.weights[table.fields] * is_rare
    num_rare = np.bincount(table.items, is_rare, table.num_items)
    all_rare = np.bincount(table.items, weights, table.num_items)
    rare = find_stretches(table, matches, is_rare[matches.places], prefers_rare=True)
    own = find_stretches(table, matches, is_rare[matches.places], prefers_rare=False)
    items = own.items[own.starts]
    is_long = table.num_own[items] >= LONG
    whole = (own.total(1) >= table.least_whole[items]) & (is_long | (num_rare[items] > 0))
    weight = rare.total(0, table.weights)
    enough = (rare.total(0) >= settings.min_shingles) & (weight >= settings.threshold * all_rare[items] - 1e-9)
    containment = np.where(whole, own.total(1) / table.num_own[items], weight / np.maximum(all_rare[items], 1e-300))
    rules = np.where(whole, np.where(is_long, 1, 2), 0).astype(np.int32)
    starts, ends = np.empty((2, len(items)), np.int64)
    for which, stretches, column in ((whole, own, 1), (~whole, rare, 0)):
        first, last = stretches.counts[stretches.best(column)[which], 2:].T
        starts[which], ends[which] = ranges[first, 0], ranges[last, 1]
    documents = matches.documents[own.begins[own.starts]]
    limits = np.append(own.starts, len(own.items)).tolist()
    found = []
    for row, is_whole in enumerate(whole.tolist()):
        counts = (own if is_whole else rare).counts[limits[row] : limits[row + 1]]
        inside = [matches.places[first : last + 1] for _, _, first, last in counts.tolist()]
        found.append(np.unique(np.concatenate(inside)))
    order = np.lexsort((documents, -containment, items))
    hits = Hits(documents.astype(np.uint32), items, rules, containment, starts, ends, found)
    return hits.take(order[(whole | enough)[order]])
