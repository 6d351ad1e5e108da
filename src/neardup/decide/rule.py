"""The base of rules, which decide which documents are removed; their input and their result.

An engine finds the documents in their order of priority and the confirmed pairs of them; a rule
knows no engine, no file and no report. The rules are in the modules beside this one;
`decide/rules.py` lists them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from neardup.arrays import Array, Floats, Ints, Mask, Positions, Words
from neardup.decide.outcome import Removals
from neardup.errors import SettingError
from neardup.files import JsonObject
from neardup.schemas import Measures
from neardup.verify.measured import Measured

PairsNeeded = Literal["sieve", "distinct", "all"]
"""The pairs that a search confirms.

sieve : of each kept document and the later ones, as the sieve goes on; the search decides while it
measures. distinct : of all documents with different contents. all : of all documents.
"""


class Measuring(Protocol):
    """The part of a method that a rule uses; see methods.base.Method."""

    directed: ClassVar[bool]

    @property
    def measures(self) -> Measures:
        """The measures of a pair."""

    def is_duplicate(self, measured: Measured) -> Mask:
        """Return which pairs are duplicates."""

    def strength(self, measured: Measured) -> Floats:
        """Return the strength of pairs."""


class Queue(NamedTuple):
    """The documents in priority order.

    order, representative : uint32 by position, the document, and the first position with the same
    content. featured : bool by document. num_against : the number of positions, from the first,
    that are always kept.
    """

    order: Positions
    representative: Positions
    featured: Mask
    num_against: int

    @property
    def is_first(self) -> Mask:
        """Return whether each position is the first with its content."""
        first: Mask = self.representative == np.arange(len(self.representative))
        return first

    @property
    def last(self) -> Positions:
        """Return by position the last position with the same content."""
        last = np.empty_like(self.representative)
        # The last copy of a content is written last.
        last[self.representative] = np.arange(len(last), dtype=last.dtype)
        return last[self.representative]

    @property
    def is_last(self) -> Mask:
        """Return whether each position is the last with its content."""
        is_last: Mask = self.last == np.arange(len(self.representative))
        return is_last

    def queries(self, *, directed: bool) -> Mask:
        """Return which positions look up buckets in a search among different contents.

        directed : whether a pair is measured in one direction. Then a document that follows the
        first of a content may be similar to a later copy of it alone, so the last copy is compared
        with the documents after the first.
        """
        return self.is_first | self.is_last if directed else self.is_first

    def by_document(self, positions: Array) -> Ints:
        """Return the order of positions by their documents: tables list them in input order."""
        return np.argsort(self.order[positions], kind="stable")

    def removals(self, removed: Array, keepers: Array, measured: Measured) -> Removals:
        """Return the removals of positions, by document; keepers, measured : of each."""
        return Removals(self.order[removed], self.order[keepers], measured)


class Confirmed(NamedTuple):
    """The confirmed pairs of a search, in the order of `right`.

    kept : bool by position, the documents that the sieve kept; all of them, unless the search
    decided while it measured.
    left, right : uint32 (num_pairs,), positions. measured : the measures of the pairs. best : bool,
    whether the pair removed its right document. left_out : bool by position, whether a kept
    document has an earlier one in a bucket that does not list it. compared : the number of measured
    pairs. collisions : pairs of fingerprints within the distance whose features are not similar.
    Both are None if the engine does not count them.
    """

    kept: Mask
    left: Positions
    right: Positions
    measured: Measured
    best: Mask
    left_out: Mask
    compared: int | None
    collisions: int | None


@dataclass(frozen=True)
class Found:
    """The result of a search, over which a rule decides.

    confirmed : the pairs that the rule needs. lengths : int64 by document, the bytes of its text.
    values : uint64 by document, the hash of its value in the column of groups or of counts; empty
    without one. unlisted : yields the first position that a full bucket does not list, with each
    position that looks up the bucket; of copies that are not compared, one position. measure :
    measures pairs of documents, the kept one first. sieved : whether the search has decided as the
    sieve does.
    """

    queue: Queue
    confirmed: Confirmed
    method: Measuring
    lengths: Ints
    values: Words
    unlisted: Callable[[], Iterable[tuple[Positions, Positions]]]
    measure: Callable[[Positions, Positions], Measured]
    sieved: bool

    def distinct(self) -> Found:
        """Return the pairs of documents with different contents alone."""
        is_first = self.queue.is_first
        return self._of_pairs(is_first[self.confirmed.left] & is_first[self.confirmed.right])

    def at(self, method: Measuring) -> Found:
        """Return the pairs that are duplicates by a method whose limit is at least as strict."""
        return replace(self._of_pairs(method.is_duplicate(self.confirmed.measured)), method=method)

    def in_memory(self) -> Found:
        """Return a copy that needs no scratch files, for a rule that may decide again."""
        return replace(self.distinct(), lengths=self.lengths.copy(), values=self.values.copy())

    def decided(self) -> Found:
        """Return a copy without the search, once the rule has decided."""
        return replace(self, unlisted=_no_unlisted, measure=refuse_to_measure)

    def _of_pairs(self, chosen: Mask) -> Found:
        pairs = self.confirmed
        confirmed = pairs._replace(
            left=pairs.left[chosen],
            right=pairs.right[chosen],
            measured=pairs.measured.select(self.method.measures).take(chosen),
            best=pairs.best[chosen],
        )
        return replace(self, confirmed=confirmed)


def _no_unlisted() -> Iterable[tuple[Positions, Positions]]:
    return ()


def refuse_to_measure(kept: Positions, documents: Positions) -> Measured:
    """Raise RuntimeError: a rule measures further pairs while it decides, and not afterwards."""
    raise RuntimeError(
        "No pairs are measured for a rule after it has decided, or on top of an index."
    )


class Names(NamedTuple):
    """The names for a table of a rule. ids : returns the ids of documents. values : returns values
    of the column of groups by their hashes.
    """

    ids: Callable[[Positions], pa.Array]
    values: Callable[[Words], list[str]]


class RuleTable(NamedTuple):
    """A table of a rule, which becomes `name`.parquet. rows : yields it."""

    name: str
    schema: pa.Schema
    rows: Callable[[Names], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The decision of a rule.

    removals : the removed documents that have a keeper, in input order. left, right : uint32
    (num_pairs,), positions of the pairs that are listed; `left` may be the later one in a search
    for all pairs. measured : the measures of these pairs. num_hidden : the number of kept documents
    with an earlier one in a bucket that does not list it. cluster_sizes : int64, the number of
    documents of each cluster; None if a cluster is a kept document and the documents removed for
    it. others : uint32, documents that are removed without a keeper. facts : facts about the
    decision, by the name of their part of the report.
    """

    removals: Removals
    left: Positions
    right: Positions
    measured: Measured
    num_hidden: int = 0
    cluster_sizes: Ints | None = None
    others: Positions = field(default_factory=lambda: np.empty(0, np.uint32))
    tables: tuple[RuleTable, ...] = ()
    facts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class Rule(ABC):
    """Decides which documents are removed, over the confirmed pairs of a search."""

    pairs: PairsNeeded = "distinct"
    compares_more: bool = False
    """Whether `decide` measures pairs that are not among the confirmed ones."""
    tables: ClassVar[tuple[str, ...]] = ()
    """The names of its tables, which become files of the output."""
    counts_values: bool = True
    """Whether removals are counted by the values of a column; a rule may have a table of its own.
    """
    both_ways: tuple[str, Any] | None = None
    """The option, and its value, that compares documents in both directions; None if none does."""

    def refuse(self, method: Measuring) -> None:
        """Raise SettingError if the rule cannot decide over the pairs of a method."""
        if self.both_ways is not None and method.directed:
            option, value = self.both_ways
            raise SettingError(
                f"{option}={value!r} compares documents in both directions: got "
                "similarity='containment'. Use another similarity (--similarity), or leave "
                f"{option} (--{option.replace('_', '-')}) out."
            )

    def order(self, order: Positions, num_against: int, values: Words) -> Positions:
        """Return the documents in the order in which the rule decides about them.

        order : uint32, documents by priority, the earlier collection first. values : as in `Found`.
        """
        return order

    @property
    def reorders(self) -> bool:
        """Return whether `order` changes the order."""
        return type(self).order is not Rule.order

    @property
    def options(self) -> JsonObject:
        """The options of a run that the rule follows from, besides linkage and keep; an engine may
        refuse them.
        """
        return {}

    @abstractmethod
    def decide(self, found: Found) -> Decision:
        """Decide about all documents."""
