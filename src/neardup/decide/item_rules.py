"""The rules by which a document shows an item; docs/contamination.md explains them.

A rule is an object. Its scope is the minimum of shingles with which a document is worth a look; it
judges the items in documents while more documents are still to come, and decides when all are
counted. `rules_of` lists the rules of a search in their order: a later rule decides only where no
earlier one shows the item.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from neardup.arrays import Array, Floats, Int32s, Ints, Mask, Rows
from neardup.candidates.items import ANSWER, STRUCTURE, ItemTable
from neardup.decide.stretches import ROUNDING, Stretches
from neardup.settings.contamination import ContaminationSettings

LONG = 20
"""The fewest shingles of a long item: a document that has all of one contains it, whatever the
number of documents that have them. The fewest rare shingles of an answer that show it alone.
"""
WHOLE = 0.95
"""The share of the shingles of a long item that counts as all of it."""
RULES = ("containment", "whole", "perfect", "answer", "structure")
"""The names of the rules: enough shingles of an item are in a document; all of a long one, however
many documents have it; all of a short one; enough of its long answer; enough of its code under
other names.
"""
_NEVER = np.iinfo(np.int32).max  # as the minimum of an item to which a rule does not apply


class Judged(NamedTuple):
    """The findings of a rule before all documents are counted, by item and document.

    has_enough : bool, whether enough is there, boilerplate included. may_be_hit : bool, whether it
    may be found, however many documents are to come. has_all : bool, whether all of it is there.
    """

    has_enough: Mask
    may_be_hit: Mask
    has_all: Mask

    def joined(self, other: Judged) -> Judged:
        """Return the findings of two rules as one."""
        return Judged(*map(np.logical_or, self, other))


class Decided(NamedTuple):
    """The decision of a rule, by item and document.

    containment : float64, the largest that a part of the item shows, 0 if none does. rules : int32,
    the rule, as a number of RULES.
    """

    containment: Floats
    rules: Int32s


@dataclass(frozen=True)
class ItemRule(ABC):
    """A rule by which a document shows an item of a table."""

    view: ClassVar[int] = 0
    """The view of the table in which its shingles are found."""

    table: ItemTable

    @property
    @abstractmethod
    def fields(self) -> Mask:
        """The fields that the rule judges, bool by field."""

    @abstractmethod
    def min_entries(self) -> Rows:
        """Return the minimum number of entries in a document that is worth a look, by item."""

    @abstractmethod
    def judge(self, found: Stretches) -> Judged:
        """Judge items in documents; `found` counts as rare all shingles not yet known as common."""

    @abstractmethod
    def decide(self, found: Stretches, is_rare: Mask) -> Decided:
        """Decide, after all documents were counted. is_rare : bool by entry."""


def rules_of(table: ItemTable) -> list[ItemRule]:
    """Return the rules of a search, in their order."""
    rules: list[ItemRule] = [QuestionRule(table)]
    if table.settings.answers:
        rules.append(AnswerRule(table))
    if table.settings.structure:
        rules.append(StructureRule(table))
    return rules


def min_entries_of(rules: Sequence[ItemRule]) -> list[Int32s]:
    """Return by view, and by item, the minimum number of entries that any rule needs."""
    minima = defaultdict(list)
    for rule in rules:
        minima[rule.view].append(rule.min_entries())
    return [np.asarray(np.minimum.reduce(minima[view]), np.int32) for view in sorted(minima)]


def min_whole(num_entries: Rows) -> Rows:
    """Return the minimum number of an item's entries that count as all of it."""
    share = np.ceil(WHOLE * num_entries - ROUNDING)
    return np.where(num_entries < LONG, num_entries, share).astype(np.int64)


class Part(NamedTuple):
    """A part of the fields that can show an item: its first field, or all.

    fields : bool by field, whether it belongs to the part. num_entries : int64 by item, its entries
    in the part. weights : float64 by item, the sum of their weights.
    """

    fields: Mask
    num_entries: Rows
    weights: Floats

    @classmethod
    def of(cls, table: ItemTable, fields: Mask) -> Part:
        """Return the part that has some fields."""
        weights = (table.weights * fields)[table.fields]
        totals = np.bincount(table.items, weights, table.num_items).astype(np.float64)
        return cls(fields, table.count_entries(fields), totals)


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


@dataclass(frozen=True)
class QuestionRule(ItemRule):
    """Enough of the first field, the question, alone; or, with part of it, enough of all fields."""

    @property
    def fields(self) -> Mask:
        """All fields of words."""
        return self.table.has_words

    def min_entries(self) -> Rows:
        """Return the smaller of the numbers for the first field alone and for all fields."""
        table = self.table
        num_first = np.where(table.num_first > 0, table.num_first, table.num_entries)
        of_first = _min_entries(num_first, table.settings)
        of_all = _min_entries(table.num_entries, table.settings)
        min_entries = np.minimum(of_first, of_all)
        weights = table.weights[table.has_words]
        has_equal_weights = not len(weights) or np.ptp(weights) == 0
        if has_equal_weights:
            return min_entries
        return np.minimum(min_entries, table.settings.min_shingles)  # a few may weigh enough

    def judge(self, found: Stretches) -> Judged:
        """Judge items in documents by their first field, and by all fields."""
        table = self.table
        items = found.items_found
        judged = Judged(*np.zeros((3, len(items)), np.bool_))
        for part in self._shares(found):
            is_every = part.num_entries == table.num_entries[items]
            min_rare = np.where(part.is_whole, 1, table.settings.min_rare)
            of_part = Judged(
                has_enough=part.contains,
                may_be_hit=part.is_long | (part.contains & (part.num_rare >= min_rare)),
                has_all=part.is_long | (part.is_whole & is_every),
            )
            judged = judged.joined(of_part)
        return judged

    def decide(self, found: Stretches, is_rare: Mask) -> Decided:
        """Decide by the part with the larger containment; the first field, if both are equal."""
        table = self.table
        items = found.items_found
        containment = np.zeros(len(items))
        rules = np.zeros(len(items), np.int64)
        for shares, part in zip(self._shares(found), self._parts, strict=True):
            counted = shares.num_found / np.maximum(shares.num_entries, 1)
            share = np.where(shares.is_counted, counted, shares.share)
            rare_weights = (table.weights * part.fields)[table.fields] * is_rare
            all_rare = np.bincount(table.items, rare_weights, table.num_items)[items]
            shows = shares.is_counted | _has_rare(shares, all_rare, table.settings)
            is_better = shows & (share > containment)
            containment = np.where(is_better, share, containment)
            rules = np.where(is_better, _rules_of(shares), rules)
        return Decided(containment, rules.astype(np.int32))

    @cached_property
    def _parts(self) -> list[Part]:
        """The parts that can show an item: the first field, and all fields."""
        table = self.table
        return [Part.of(table, table.is_first), Part.of(table, table.has_words)]

    def _shares(self, found: Stretches) -> Iterator[_Shares]:
        """Yield the shares of the parts of items: of the first field, then of all fields."""
        table = self.table
        # Without part of the question, a match of the other fields is ignored: choices and short
        # answers repeat across items.
        num_first = table.num_first[found.items_found]
        needed_first = np.ceil(table.settings.threshold / 2 * num_first - ROUNDING)
        has_first = found.total("shingles", table.is_first) >= needed_first
        for part in self._parts:
            yield self._share_of(part, found, has_first)

    def _share_of(self, part: Part, found: Stretches, has_first: Mask) -> _Shares:
        """Return the share of a part. has_first : bool, whether part of the question is there."""
        settings = self.table.settings
        items = found.items_found
        num_entries = part.num_entries[items]
        num_found = found.total("shingles", part.fields)
        weights = self.table.weights * part.fields
        share = found.total("shingles", weights) / np.maximum(part.weights[items], 1e-300)
        may_show = has_first & (num_entries >= settings.min_rare)
        is_whole = may_show & (num_found >= min_whole(num_entries))
        has_share = share >= settings.threshold - ROUNDING
        is_enough = (num_found >= settings.min_shingles) & has_share
        return _Shares(
            num_found=num_found,
            num_rare=found.total("rare", part.fields),
            num_entries=num_entries,
            share=share,
            rare_weight=found.total("rare", weights),
            contains=has_first & is_enough | is_whole,
            is_whole=is_whole,
            is_long=is_whole & (num_entries >= LONG),
        )


def _min_entries(num_entries: Rows, settings: ContaminationSettings) -> Rows:
    """Return the minimum of `num_entries` entries that is worth a look; at least 1."""
    share = np.ceil(settings.threshold * num_entries - ROUNDING).astype(np.int64)
    minimum = np.maximum(share, np.minimum(settings.min_shingles, num_entries))
    return np.asarray(np.maximum(1, np.minimum(minimum, min_whole(num_entries))))


def _rules_of(part: _Shares) -> Ints:
    """Return the rule by which a part shows an item; see RULES."""
    conditions = [part.is_long, part.is_counted]
    return np.select(conditions, [RULES.index("whole"), RULES.index("perfect")])


def _has_rare(part: _Shares, all_rare: Array, settings: ContaminationSettings) -> Mask:
    """Return whether enough of a part is there, and enough of it is rare.

    all_rare : float64, the weight of all rare shingles of the part.
    """
    min_weight = (settings.threshold / 2 - ROUNDING) * all_rare
    has_rare = (part.num_rare >= settings.min_rare) & (part.rare_weight >= min_weight)
    return part.contains & has_rare


class AloneRule(ItemRule):
    """Enough of long fields of one kind, whatever is there of the question.

    name : of RULES. kind : of the fields.
    """

    name: ClassVar[str]
    kind: ClassVar[int]

    @cached_property
    def fields(self) -> Mask:
        """The fields of the kind, except first ones."""
        is_of_kind: Mask = self.table.kinds == self.kind
        return is_of_kind & ~self.table.is_first

    @cached_property
    def _num_entries(self) -> Rows:
        """The number of entries in these fields, by item."""
        return self.table.count_entries(self.fields)

    @cached_property
    def _min_entries(self) -> Rows:
        """The minimum number of these entries in a document, by item."""
        share = np.ceil(self.table.settings.threshold * self._num_entries - ROUNDING)
        minimum = np.maximum(share.astype(np.int64), LONG)
        return np.where(self._num_entries >= LONG, minimum, _NEVER)

    def min_entries(self) -> Rows:
        """Return the minimum for these fields; no number is enough for short ones."""
        return self._min_entries

    def judge(self, found: Stretches) -> Judged:
        """Judge items in documents by these fields alone."""
        has_enough = self._num_found(found) > 0
        return Judged(
            has_enough=has_enough,
            may_be_hit=has_enough & self._has_rare(found),
            has_all=np.zeros_like(has_enough),
        )

    def decide(self, found: Stretches, is_rare: Mask) -> Decided:
        """Decide by these fields alone."""
        num_found = self._num_found(found) * self._has_rare(found)
        num_entries = self._num_entries[found.items_found]
        containment = num_found / np.maximum(num_entries, 1)
        rules = np.full(len(containment), RULES.index(self.name), np.int32)
        return Decided(containment, rules)

    def _num_found(self, found: Stretches) -> Rows:
        """Return the number of shingles by item and document, 0 if they are not enough."""
        num_found = found.total("shingles", self.fields)
        is_enough = num_found >= self._min_entries[found.items_found]
        return np.where(is_enough, num_found, 0)

    def _has_rare(self, found: Stretches) -> Mask:
        """Return whether as many as LONG shingles are rare, by item and document."""
        has_rare: Mask = found.total("rare", self.fields) >= LONG
        return has_rare


class AnswerRule(AloneRule):
    """Enough of a long answer."""

    name = "answer"
    kind = ANSWER


class StructureRule(AloneRule):
    """Enough of the code of an item, under other names."""

    name = "structure"
    kind = STRUCTURE
    view = 1
