"""Decide which items a corpus contains, from their shingles found in its documents.

docs/contamination.md explains the rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neardup.arrays import (
    Array,
    Floats,
    Int32s,
    Integers,
    Mask,
    Positions,
    Rows,
    offsets_from_lengths,
    ranges,
)
from neardup.candidates.items import ItemTable, Matches
from neardup.decide.item_rules import RULES, Decided, ItemRule, Judged, rules_of
from neardup.decide.stretches import Stretches, find_stretches


class Hits(NamedTuple):
    """Items found in documents, by item, the best first.

    documents : uint32. items, rules, fields : int32; rules are numbers of RULES, fields of the
    shown stretches. containment : float64. starts, ends : int64, the characters of the document
    from the first match of the shown stretch to its last. found : by hit, the entries of all
    matches in its stretches, with repeats.
    """

    documents: Positions
    items: Int32s
    rules: Int32s
    fields: Int32s
    containment: Floats
    starts: Rows
    ends: Rows
    found: Array

    def take(self, rows: Array) -> Hits:
        """Return some of the hits."""
        return Hits._make(column[rows] for column in self)

    def found_in_view(self, table: ItemTable) -> list[Int32s]:
        """Return by hit the entries found in the view of its rule: of words, or of structure.

        In the other view, few entries of an item are no matches, so their number says nothing.
        """
        if table.has_words.all():
            return list(self.found)
        is_of_words = self.rules != RULES.index("structure")
        return [
            entries[table.has_words[table.fields[entries]] == of_words]
            for entries, of_words in zip(self.found, is_of_words.tolist(), strict=True)
        ]


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


def keep_matches(rules: Sequence[ItemRule], matches: Matches, is_common: Mask) -> Kept:
    """Return the items that may be found, however many documents are still to come.

    rules : of one table. is_common : bool by match, whether it is known to be common.
    """
    table = rules[0].table
    found = find_stretches(table, matches, ~is_common)
    judged = Judged(*np.zeros((3, len(found.starts)), np.bool_))
    for rule in rules:
        judged = judged.joined(rule.judge(found))
    states = np.where(judged.may_be_hit, KEPT + judged.has_all, ENOUGH)
    is_kept = np.repeat(judged.may_be_hit, found.sizes)
    return Kept(
        matches=_in_stretches(found.best[is_kept], len(matches.entries)),
        items=found.items_found[judged.has_enough],
        states=states[judged.has_enough].astype(np.int32),
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
    items = found.items_found
    decided, may_be_shown = _decide(table, found, is_rare)
    stretches = found.shown(table, may_be_shown)
    shown = found.best[stretches]
    documents = matches.documents[found.begins[found.starts]].astype(np.uint32)
    hits = Hits(
        documents=documents,
        items=items,
        rules=decided.rules,
        fields=found.fields[stretches],
        containment=decided.containment,
        starts=characters[shown["first"], 0],
        ends=characters[shown["last"], 1],
        found=_entries(found, matches),
    )
    containment = decided.containment
    order = np.lexsort((documents, -containment, items))
    return hits.take(order[containment[order] > 0])


def _decide(table: ItemTable, found: Stretches, is_rare: Mask) -> tuple[Decided, Mask]:
    """Return the decision of the first rule that shows each item in a document; and which stretches
    are of fields that this rule judges.
    """
    num_found = len(found.starts)
    decided = Decided(np.zeros(num_found), np.zeros(num_found, np.int32))
    may_be_shown = np.zeros(len(found.items), np.bool_)
    for rule in rules_of(table):
        of_rule = rule.decide(found, is_rare)
        is_new = (decided.containment == 0) & (of_rule.containment > 0)
        decided = Decided(
            containment=np.where(is_new, of_rule.containment, decided.containment),
            rules=np.where(is_new, of_rule.rules, decided.rules),
        )
        may_be_shown |= np.repeat(is_new, found.sizes) & rule.fields[found.fields]
    return decided, may_be_shown


def _entries(found: Stretches, matches: Matches) -> Array:
    """Return an array of arrays: by item in a document, the entries of the matches in its
    stretches.
    """
    sizes = found.best["last"] - found.best["first"] + 1
    entries = matches.entries[ranges(found.best["first"], sizes)]
    starts = offsets_from_lengths(sizes)[found.starts]
    return np.fromiter(np.split(entries, starts[1:]), np.object_)[: len(starts)]
