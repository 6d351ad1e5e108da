"""Decide which items a corpus contains, from their shingles found in its documents.

docs/contamination.md explains the rule.
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
    Ints,
    Mask,
    Positions,
    Rows,
    begins_run,
    offsets_from_lengths,
    ranges,
    writable,
)
from neardup.candidates.items import LONG, ItemTable, Matches, min_whole
from neardup.settings.contamination import ContaminationSettings

RULES = ("containment", "whole", "perfect")
"""The rules that show an item: enough of its shingles are in a document; all of a long one, however
many documents have it; all of a short one.
"""


# The best stretch of a field in a document, as a kernel writes it: the distinct rare shingles, all
# distinct shingles, the first and the last match.
_BEST = np.dtype([(name, np.int64) for name in ("rare", "shingles", "first", "last")])
_ROUNDING = 1e-9  # of shares, so that 0.1 of 30 shingles are 3


class Stretches(NamedTuple):
    """The best stretch of each field of an item in a document, in the order of the matches.

    begins : int64, the first match of the field in the document. items, fields : int32. best : rows
    of _BEST. starts : int64 (num_found,), the first stretch of each item in a document.
    """

    begins: Rows
    items: Int32s
    fields: Int32s
    best: np.ndarray
    starts: Rows

    @property
    def sizes(self) -> Rows:
        """Return the number of stretches of each item in a document."""
        return np.diff(self.starts, append=len(self.items))

    def total(self, column: str, weights: Array) -> Array:
        """Return the sum of a column of `best` for each item in a document, weighted by field."""
        values = self.best[column] * weights[self.fields]
        return np.add.reduceat(values, self.starts) if len(values) else values[:0]

    def shown(self, table: ItemTable) -> Rows:
        """Return the stretch to show of each item in a document.

        It is the stretch of the first field with enough shingles, or the one with most shingles.
        """
        shingles = self.best["shingles"]
        sizes = np.bincount(table.fields, minlength=len(table.field_items))[self.fields]
        needed = table.settings.threshold * np.maximum(sizes, 1)
        is_enough = shingles >= needed - _ROUNDING
        group = np.repeat(np.arange(len(self.starts)), self.sizes)
        rank = np.where(is_enough, 0, -shingles)
        order = np.lexsort((np.arange(len(group)), rank, ~is_enough, group))
        return order[self.starts]


class Hits(NamedTuple):
    """Items found in documents, by item, the best first.

    documents : uint32. items, rules : int32; rules are numbers of RULES. containment : float64.
    starts, ends : int64, the characters of the document from the first match of the shown stretch
    to its last. found : by hit, the entries of all matches in its stretches, with repeats.
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
    """Return the stretch of each field in each document that contains most of its shingles.

    Parameters
    ----------
    matches : by document and field, in each by position.
    is_rare : bool by match.
    """
    field_of_match = table.fields[matches.entries]
    begins = np.flatnonzero(begins_run(matches.documents, field_of_match))
    fields = field_of_match[begins]
    # A stretch has half as many words again as the field.
    num_words = table.num_tokens[fields] + np.maximum(table.num_tokens[fields] // 2, 5)
    best = np.empty((len(begins), 4), np.int64)
    kernels.item_shingles.best_stretches(
        np.append(begins[1:], len(field_of_match))[: len(begins)],
        writable(matches.entries),
        writable(matches.positions),
        is_rare,
        num_words - table.ngrams[fields] + 1,
        np.zeros(len(table.items), np.int32),
        best,
    )
    items = table.field_items[fields]
    return Stretches(
        begins=begins,
        items=items,
        fields=fields,
        best=best.view(_BEST)[:, 0],
        starts=np.flatnonzero(begins_run(matches.documents[begins], items)),
    )


ENOUGH, KEPT, ALL, FURTHER = range(4)
"""The state of an item in a document: enough of it, boilerplate included; it may be a hit; all of
it; all of it, but not listed because `max_documents` others have all of it.
"""


class Kept(NamedTuple):
    """The matches to keep of some documents.

    matches : bool by match, whether it is in a stretch of an item that may be found. items : int32,
    the items that documents have enough of, in the order of the matches. states : int32, ENOUGH,
    KEPT or ALL.
    """

    matches: Mask
    items: Int32s
    states: Int32s


class _Shares(NamedTuple):
    """The share of a part of an item in a document, by item and document.

    num_found, num_rare : int64, its entries in the document, and the rare ones. num_entries :
    int64, the entries of the part. share : float64, the weight found of the weight of the part.
    rare_weight : float64, the weight of the rare shingles found. contains : bool, whether enough is
    there, boilerplate included. is_whole : bool, whether all shingles are there, and they are
    enough to show an item. is_long : bool, whether they are also many.
    """

    num_found: Rows
    num_rare: Rows
    num_entries: Rows
    share: Floats
    rare_weight: Floats
    contains: Mask
    is_whole: Mask
    is_long: Mask

    @property
    def is_counted(self) -> Mask:
        """Return whether the share is of the number of shingles: all of a long part, or of a short
        part with a rare one.
        """
        return self.is_long | (self.is_whole & (self.num_rare > 0))


def _shares(table: ItemTable, found: Stretches) -> Iterator[_Shares]:
    """Yield the shares of the parts of items: of the first field, then of all fields."""
    settings = table.settings
    items = found.items[found.starts]
    # A match of the answer alone is ignored: answers repeat across items.
    needed_first = np.ceil(settings.threshold / 2 * table.num_first[items] - _ROUNDING)
    has_first = found.total("shingles", table.is_first) >= needed_first
    for is_part, num_entries_of_items, weight_of_items in table.parts:
        num_found = found.total("shingles", is_part)
        num_entries = num_entries_of_items[items]
        weights = table.weights * is_part
        share = found.total("shingles", weights) / np.maximum(weight_of_items[items], 1e-300)
        may_show = has_first & (num_entries >= settings.min_rare)
        is_whole = may_show & (num_found >= min_whole(num_entries))
        is_enough = (num_found >= settings.min_shingles) & (share >= settings.threshold - _ROUNDING)
        yield _Shares(
            num_found=num_found,
            num_rare=found.total("rare", is_part),
            num_entries=num_entries,
            share=share,
            rare_weight=found.total("rare", weights),
            contains=has_first & is_enough | is_whole,
            is_whole=is_whole,
            is_long=is_whole & (num_entries >= LONG),
        )


def keep_matches(table: ItemTable, matches: Matches, is_common: Mask) -> Kept:
    """Return the items that may be found, however many documents are still to come.

    is_common : bool by match, whether it is known to be common.
    """
    found = find_stretches(table, matches, ~is_common)
    items = found.items[found.starts]
    may_be_hit = np.zeros(len(items), np.bool_)
    has_all = np.zeros(len(items), np.bool_)
    has_enough = np.zeros(len(items), np.bool_)
    for part in _shares(table, found):
        is_every = part.num_entries == table.num_entries[items]
        has_all |= part.is_long | (part.is_whole & is_every)
        has_enough |= part.contains
        min_rare = np.where(part.is_whole, 1, table.settings.min_rare)
        may_be_hit |= part.is_long | (part.contains & (part.num_rare >= min_rare))

    states = np.where(may_be_hit, KEPT + has_all, ENOUGH)
    return Kept(
        matches=_in_stretches(found.best[np.repeat(may_be_hit, found.sizes)], len(matches.entries)),
        items=items[has_enough],
        states=states[has_enough].astype(np.int32),
    )


def _in_stretches(best: np.ndarray, num_matches: int) -> Mask:
    """Return whether each match is in one of some stretches."""
    is_inside = np.zeros(num_matches, np.bool_)
    is_inside[ranges(best["first"], best["last"] - best["first"] + 1)] = True
    return is_inside


def decide_hits(table: ItemTable, matches: Matches, characters: Integers, is_rare: Mask) -> Hits:
    """Return all hits.

    Parameters
    ----------
    matches : the kept matches of all documents, by document and field.
    characters : (num_matches, 2), the range of each match in its document.
    is_rare : bool by entry, whether few documents have the words around it.
    """
    found = find_stretches(table, matches, is_rare[matches.entries])
    items = found.items[found.starts]
    containment, rules = _best_parts(table, found, is_rare)
    shown = found.best[found.shown(table)]
    documents = matches.documents[found.begins[found.starts]].astype(np.uint32)
    hits = Hits(
        documents=documents,
        items=items,
        rules=rules,
        containment=containment,
        starts=characters[shown["first"], 0],
        ends=characters[shown["last"], 1],
        found=_entries(found, matches),
    )
    order = np.lexsort((documents, -containment, items))
    return hits.take(order[containment[order] > 0])


def _best_parts(table: ItemTable, found: Stretches, is_rare: Mask) -> tuple[Floats, Int32s]:
    """Return the largest containment that a part of each item in a document shows, 0 if none does,
    and its rule.
    """
    items = found.items[found.starts]
    containment = np.zeros(len(items))
    rules = np.zeros(len(items), np.int64)
    for part, (is_part, _, _) in zip(_shares(table, found), table.parts, strict=True):
        counted = part.num_found / np.maximum(part.num_entries, 1)
        share = np.where(part.is_counted, counted, part.share)
        rare_weights = (table.weights * is_part)[table.fields] * is_rare
        all_rare = np.bincount(table.items, rare_weights, table.num_items)[items]
        shows = part.is_counted | _has_rare(part, all_rare, table.settings)
        is_better = shows & (share > containment)
        containment = np.where(is_better, share, containment)
        rules = np.where(is_better, _rules_of(part), rules)
    return containment, rules.astype(np.int32)


def _rules_of(part: _Shares) -> Ints:
    """Return the rule by which a part shows an item; see RULES."""
    conditions = [part.is_long, part.is_counted]
    return np.select(conditions, [RULES.index("whole"), RULES.index("perfect")])


def _has_rare(part: _Shares, all_rare: Array, settings: ContaminationSettings) -> Mask:
    """Return whether enough of a part is there, and enough of it is rare.

    all_rare : float64, the weight of all rare shingles of the part.
    """
    min_weight = (settings.threshold / 2 - _ROUNDING) * all_rare
    has_rare = (part.num_rare >= settings.min_rare) & (part.rare_weight >= min_weight)
    return part.contains & has_rare


def _entries(found: Stretches, matches: Matches) -> Array:
    """Return an array of arrays: by item in a document, the entries of the matches in its
    stretches.
    """
    sizes = found.best["last"] - found.best["first"] + 1
    entries = matches.entries[ranges(found.best["first"], sizes)]
    starts = offsets_from_lengths(sizes)[found.starts]
    return np.fromiter(np.split(entries, starts[1:]), np.object_)[: len(starts)]
