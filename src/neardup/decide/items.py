"""Decide which items a corpus contains, from the shingles of items that were found in its documents.

The rule is that of docs/contamination.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.arrays import writable
from neardup.candidates.items import LONG, ItemTable, Matches, least_whole

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

    def shown(self, table: ItemTable, column: int) -> npt.NDArray[np.int64]:
        """Return the stretch to show of each item in a document.

        That of the first field of which enough was found, by a column of `counts`; else the one with most.
        """
        sizes = np.bincount(table.fields, minlength=len(table.field_items))[self.fields]
        is_enough = self.counts[:, column] >= table.settings.threshold * np.maximum(sizes, 1)
        group = np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.items)))
        order = np.lexsort((np.arange(len(group)), np.where(is_enough, 0, -self.counts[:, column]), ~is_enough, group))
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


class _Judged(NamedTuple):
    """How much of a part of an item a document has, by item and document.

    own : int64, the shingles in the stretches with most. rare, near : int64, the rare shingles, and all, in the
    stretches with most rare ones. num_own, num_rare : those it has. is_decidable : bool,
    whether these are enough. weight, all_weight : float64, the rare shingles
    there and of the item, weighted.
    """

    own: npt.NDArray[np.int64]
    rare: npt.NDArray[np.int64]
    near: npt.NDArray[np.int64]
    num_own: npt.NDArray[np.int64]
    is_decidable: npt.NDArray[np.bool_]
    num_rare: npt.NDArray[np.float64]
    weight: npt.NDArray[np.float64]
    all_weight: npt.NDArray[np.float64]

    @property
    def whole(self) -> npt.NDArray[np.bool_]:
        """Whether it is all there; a short one needs a shingle that is rare."""
        is_all = self.is_decidable & (self.own >= least_whole(self.num_own))
        return is_all & ((self.num_own >= LONG) | (self.num_rare > 0))


def _judge(
    table: ItemTable, own: Stretches, rare: Stretches, is_rare: npt.NDArray[np.bool_], is_part: npt.NDArray[np.bool_]
) -> _Judged:
    """Return how much of a part of each item a document has. is_rare : bool by place. is_part : bool by field."""
    items, counts = own.items[own.starts], is_part[table.fields]
    weights = table.weights * is_part

    def sums(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.bincount(table.items, values, table.num_items)[items]

    num_own = sums(counts).astype(np.int64)
    return _Judged(
        own.total(1, is_part),
        rare.total(0, is_part),
        rare.total(1, is_part),
        num_own,
        table.is_decidable(num_own),
        sums(counts & is_rare),
        rare.total(0, weights),
        sums(weights[table.fields] * is_rare),
    )


def keep_matches(table: ItemTable, matches: Matches, is_common: npt.NDArray[np.bool_]) -> Kept:
    """Return which items may be found, however many documents are still to come.

    is_common : bool by place, of those known to be.
    """
    is_rare = ~is_common[matches.places]
    rare = find_stretches(table, matches, is_rare, prefers_rare=True)
    own = find_stretches(table, matches, is_rare, prefers_rare=False)
    items = own.items[own.starts]
    short, whole, enough = (np.zeros(len(items), np.bool_) for _ in range(3))
    for is_part, num_own in ((table.is_first, table.num_first), (np.ones_like(table.is_first), table.num_own)):
        found, count = own.total(1, is_part), num_own[items]
        is_whole = table.is_decidable(count) & (found >= least_whole(count))
        whole |= is_whole & ((count >= LONG) | (count == table.num_own[items]))
        short |= is_whole
        enough |= table.is_decidable(count) & (found >= table.least_of(count))
    num_rare = rare.total(0)
    kept = whole & (table.num_own[items] >= LONG) | (short & (num_rare > 0))
    kept |= (num_rare >= table.settings.min_rare) & (rare.total(1) >= table.settings.min_shingles)
    sizes = np.diff(own.begins[own.starts], append=len(matches.places))
    return Kept(np.repeat(kept, sizes), items[kept], whole[kept], items[enough])


def decide_hits(
    table: ItemTable,
    matches: Matches,
    ranges: npt.NDArray[np.integer[Any]],
    num_documents: npt.NDArray[np.int64],
    is_whole: npt.NDArray[np.bool_],
) -> Hits:
    """Return all hits.

    Parameters
    ----------
    matches : those kept of all documents, by document and field.
    ranges : (num_matches, 2), the characters of each.
    num_documents : int64 by place, the documents that have the words around it.
    is_whole : bool by item, whether all of it was found.
    """
    settings = table.settings
    is_rare = num_documents <= table.most_documents(is_whole)
    rare = find_stretches(table, matches, is_rare[matches.places], prefers_rare=True)
    own = find_stretches(table, matches, is_rare[matches.places], prefers_rare=False)
    items = own.items[own.starts]
    whole, enough = (np.zeros(len(items), np.bool_) for _ in range(2))
    containment, rules = np.zeros(len(items)), np.zeros(len(items), np.int32)
    first, of_all = (_judge(table, own, rare, is_rare, part) for part in (table.is_first, np.ones_like(table.is_first)))
    # An answer without any of its question is none: answers are alike.
    has_first = first.own >= np.ceil(settings.threshold / 2 * first.num_own)
    for part, may_show in ((first, np.ones_like(has_first)), (of_all, has_first)):
        is_enough = (part.rare >= settings.min_rare) & (part.near >= settings.min_shingles)
        is_enough &= part.weight >= settings.threshold * part.all_weight - 1e-9
        share = np.where(
            part.whole, part.own / np.maximum(part.num_own, 1), part.weight / np.maximum(part.all_weight, 1e-300)
        )
        better = may_show & (part.whole | is_enough) & (share > containment)
        containment[better] = share[better]
        rules[better] = np.where(part.whole, np.where(part.num_own >= LONG, 1, 2), 0)[better]
        whole[better] = part.whole[better]
        enough |= better
    starts, ends = np.empty((2, len(items)), np.int64)
    for which, stretches, column in ((whole, own, 1), (~whole, rare, 0)):
        begin, end = stretches.counts[stretches.shown(table, column)[which], 2:].T
        starts[which], ends[which] = ranges[begin, 0], ranges[end, 1]
    documents = matches.documents[own.begins[own.starts]]
    limits = np.append(own.starts, len(own.items)).tolist()
    found = []
    for row, shows_own in enumerate(whole.tolist()):
        counts = (own if shows_own else rare).counts[limits[row] : limits[row + 1]]
        inside = [matches.places[first : last + 1] for _, _, first, last in counts.tolist()]
        found.append(np.unique(np.concatenate(inside)))
    order = np.lexsort((documents, -containment, items))
    hits = Hits(documents.astype(np.uint32), items, rules, containment, starts, ends, found)
    return hits.take(order[enough[order]])
