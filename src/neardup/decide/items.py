"""Decide which items a corpus contains, from the shingles of items that were found in its documents.

The rule is that of docs/contamination.md.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.arrays import ranges, writable
from neardup.candidates.items import LONG, ItemTable, Matches, least_whole

RULES = ("containment", "whole", "perfect")
"""What shows an item: enough of its shingles; all of a long one, however many have it; all of a short one."""


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

    def shown(self, table: ItemTable) -> npt.NDArray[np.int64]:
        """Return the stretch to show of each item in a document.

        That of the first field of which enough was found; else the one with most.
        """
        sizes = np.bincount(table.fields, minlength=len(table.field_items))[self.fields]
        is_enough = self.counts[:, 1] >= table.settings.threshold * np.maximum(sizes, 1)
        group = np.repeat(np.arange(len(self.starts)), np.diff(self.starts, append=len(self.items)))
        order = np.lexsort((np.arange(len(group)), np.where(is_enough, 0, -self.counts[:, 1]), ~is_enough, group))
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
        return Hits(*columns, [found[row] for row in rows.tolist()] if found else [])


def find_stretches(table: ItemTable, matches: Matches, is_rare: npt.NDArray[np.bool_]) -> Stretches:
    """Return the stretch of each field in each document that holds most of its shingles.

    Parameters
    ----------
    matches : by document and field, in each by position. is_rare : bool by match.
    """
    fields = table.fields[matches.places]
    last = np.flatnonzero((np.diff(fields, append=-1) != 0) | (np.diff(matches.documents, append=-1) != 0))
    best = np.empty((len(last), 4), np.int64)
    arrays = (last + 1, writable(matches.places), writable(matches.positions), is_rare, table.widths(fields[last]))
    kernels.item_shingles.best_stretches(*arrays, np.zeros(len(table.items), np.int32), best)
    items, documents = table.field_items[fields[last]], matches.documents[last]
    new = (np.diff(items, prepend=-1) != 0) | (np.diff(documents, prepend=-1) != 0)
    return Stretches(np.append(0, last + 1)[:-1], items, fields[last], best, np.flatnonzero(new))


class Kept(NamedTuple):
    """What is kept of the matches in some documents.

    matches : bool by match, those in the stretches of items that may be found. items, whole : by item kept in a
    document: int32; bool, whether all of it is there. enough : int32, an item for each document that has enough of it,
    boilerplate included.
    """

    matches: npt.NDArray[np.bool_]
    items: npt.NDArray[np.int32]
    whole: npt.NDArray[np.bool_]
    enough: npt.NDArray[np.int32]


class _Judged(NamedTuple):
    """How much of a part of an item a document has, by item and document.

    own, rare : int64, the shingles there. share : float64, of those that the part has, weighted. rare_weight : float64,
    the weight of the rare ones. is_whole : bool, whether all are there, and these are enough to show an item.
    num_own : int64, those it has.
    """

    own: npt.NDArray[np.int64]
    rare: npt.NDArray[np.int64]
    share: npt.NDArray[np.float64]
    rare_weight: npt.NDArray[np.float64]
    is_whole: npt.NDArray[np.bool_]
    num_own: npt.NDArray[np.int64]

    def contains(self, table: ItemTable) -> npt.NDArray[np.bool_]:
        """Return whether enough is there, boilerplate included."""
        enough = (self.own >= table.settings.min_shingles) & (self.share >= table.settings.threshold - 1e-9)
        return enough | self.is_whole


def _judge(table: ItemTable, found: Stretches) -> list[_Judged]:
    """Return how much of the first field, and of all, a document has; nothing of all if it has nothing of the first."""
    judged, items = [], found.items[found.starts]
    for is_part, num_own, all_weight in table.parts:
        own, weights = found.total(1, is_part), table.weights * is_part
        share = found.total(1, weights) / np.maximum(all_weight[items], 1e-300)
        is_whole = table.is_decidable(num_own[items]) & (own >= least_whole(num_own[items]))
        rare = found.total(0, is_part), share, found.total(0, weights)
        judged.append(_Judged(own, *rare, is_whole, num_own[items]))
    first, of_all = judged
    # An answer without any of its question is none: answers are alike.
    has_first = first.own >= np.ceil(table.settings.threshold / 2 * first.num_own)
    return [first, of_all._replace(own=of_all.own * has_first, is_whole=of_all.is_whole & has_first)]


def keep_matches(table: ItemTable, matches: Matches, is_common: npt.NDArray[np.bool_]) -> Kept:
    """Return which items may be found, however many documents are still to come.

    is_common : bool by place, of those known to be.
    """
    found = find_stretches(table, matches, ~is_common[matches.places])
    items = found.items[found.starts]
    kept, whole, enough = (np.zeros(len(items), np.bool_) for _ in range(3))
    for part in _judge(table, found):
        whole |= part.is_whole & ((part.num_own >= LONG) | (part.num_own == table.num_own[items]))
        enough |= part.contains(table)
        kept |= part.contains(table) & (part.rare >= np.where(part.is_whole, 1, table.settings.min_rare))
        kept |= part.is_whole & (part.num_own >= LONG)
    first, last = found.counts[np.repeat(kept, np.diff(found.starts, append=len(found.items))), 2:].T
    in_stretch = np.zeros(len(matches.places), np.bool_)
    in_stretch[ranges(first, last - first + 1)] = True
    return Kept(in_stretch, items[kept], whole[kept], items[enough])


def decide_hits(
    table: ItemTable,
    matches: Matches,
    characters: npt.NDArray[np.integer[Any]],
    num_documents: npt.NDArray[np.int64],
    is_whole: npt.NDArray[np.bool_],
) -> Hits:
    """Return all hits.

    Parameters
    ----------
    matches : those kept of all documents, by document and field.
    characters : (num_matches, 2), the range of each.
    num_documents : int64 by place, the documents that have the words around it.
    is_whole : bool by item, whether all of it was found.
    """
    is_rare = num_documents <= table.most_documents(is_whole)
    found = find_stretches(table, matches, is_rare[matches.places])
    items = found.items[found.starts]
    containment, rules = np.zeros(len(items)), np.zeros(len(items), np.int32)
    for part, (is_part, _, _) in zip(_judge(table, found), table.parts, strict=True):
        is_long = part.is_whole & (part.num_own >= LONG)
        is_short = part.is_whole & ~is_long & (part.rare > 0)
        is_enough = part.contains(table) & (part.rare >= table.settings.min_rare)
        all_rare = np.bincount(table.items, (table.weights * is_part)[table.fields] * is_rare, table.num_items)[items]
        is_enough &= part.rare_weight >= (table.settings.threshold / 2 - 1e-9) * all_rare
        share = np.where(is_long | is_short, part.own / np.maximum(part.num_own, 1), part.share)
        better = (is_long | is_short | is_enough) & (share > containment)
        containment[better] = share[better]
        rules[better] = np.where(is_long, 1, np.where(is_short, 2, 0))[better]
    first, last = found.counts[found.shown(table), 2:].T
    documents = matches.documents[found.begins[found.starts]]
    order = np.lexsort((documents, -containment, items))
    order = order[containment[order] > 0]
    limits = np.append(found.starts, len(found.items))
    places = []
    for begin, end in zip(limits[order].tolist(), limits[order + 1].tolist(), strict=True):
        inside = [matches.places[low : high + 1] for _, _, low, high in found.counts[begin:end].tolist()]
        places.append(np.unique(np.concatenate(inside)))
    starts, ends = characters[first, 0], characters[last, 1]
    hits = Hits(documents.astype(np.uint32), items, rules, containment, starts, ends, [])
    return hits.take(order)._replace(found=places)
