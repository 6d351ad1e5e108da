"""Add columns to kept rows: the sources and the dates of all documents that they stand for.

A kept document stands for itself, and for the documents that were removed for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import (
    Array,
    Ints,
    Mask,
    Positions,
    Words,
    arrow_of,
    arrow_of_strings,
    find_in,
    offsets_from_lengths,
)
from neardup.decide.outcome import Outcome, Removals
from neardup.documents.batch import ValueNames
from neardup.documents.texts import as_rank, storage_type
from neardup.files import JsonObject
from neardup.formats.reading import Task
from neardup.runs.input_names import input_names
from neardup.runs.run import Source
from neardup.settings.constraints import Options
from neardup.settings.run import INPUT, OutputSettings

_SOURCES = {"sources": pa.list_(pa.string()), "num_sources": pa.int64()}
_DATES = ("first_seen", "last_seen")
_MAX_STEPS = 32  # doublings of the steps from keeper to keeper: 2^32 steps
_NO_VALUE = 0  # the hash of an empty string and of a null
_NO_NUMBER = pa.nulls(1, pa.int32())[0]
_MAX_NUMBER = np.iinfo(np.int32).max


def needs_of(settings: OutputSettings) -> Options:
    """Return the needs of the columns, as fields of the inputs of a run; see `runs.run.Inputs`."""
    reserved: dict[str, str] = {}
    described = []
    if settings.sources is not None:
        reserved |= dict.fromkeys(_SOURCES, "sources (--sources)")
        described += [settings.sources] * (settings.sources != INPUT)
    if settings.dates is not None:
        reserved |= dict.fromkeys(_DATES, "dates (--dates)")
        described += [settings.dates] * (settings.dates not in described)
    return {
        "reserved": reserved,
        "described": tuple(described),
        "ordered": () if settings.dates is None else (settings.dates,),
        "adds": bool(reserved),
    }


def keepers_of(removals: Removals, kept: Mask) -> Ints:
    """Return the kept document that stands for each removed one; -1 if none does.

    A rule may name a keeper that is removed in turn: its own keeper then stands for both. Documents
    that were removed for each other have none.

    kept : bool (num_documents,).
    """
    keepers = removals.kept.astype(np.int64)
    for _ in range(_MAX_STEPS):
        rows = np.flatnonzero(~kept[keepers])
        index, has_keeper = find_in(removals.documents, keepers[rows])
        rows = rows[has_keeper]
        further = keepers[index[has_keeper]]
        if np.array_equal(keepers[rows], further):  # also if there are none
            break
        keepers[rows] = further
    return np.where(kept[keepers], keepers, -1)


class _Standing(NamedTuple):
    """The removed documents for which a kept document stands.

    removed, keepers : the removed document, and the kept one. is_written : bool by document,
    whether it is a kept one of the inputs, not of the earlier collection.
    """

    removed: Positions
    keepers: Ints
    is_written: Mask

    @classmethod
    def of(cls, outcome: Outcome) -> _Standing:
        """Return the documents of a run."""
        kept = outcome.edits.kept
        removed = outcome.removals.documents
        keepers = keepers_of(outcome.removals, kept)
        is_written = kept.copy()
        is_written[: outcome.corpus.num_against] = False
        return cls(removed[keepers >= 0], keepers[keepers >= 0], is_written)


class _Values(NamedTuple):
    """A value of each document. values : Arrow array, each value once, in the order of the values.
    numbers : int32 by document, the number of its value; -1 without one.
    """

    values: pa.Array
    numbers: Array

    @classmethod
    def of_inputs(cls, source: Source, tasks: Sequence[Task], part_ends: Ints) -> _Values:
        """Return the name of the input of each document, as it was given; none if it is of the
        earlier collection.
        """
        names = input_names(source, [task.part.name for task in tasks])
        distinct = sorted(
            {name for name, task in zip(names, tasks, strict=True) if not task.against}
        )
        number_of = {name: number for number, name in enumerate(distinct)}
        by_part = [
            -1 if task.against else number_of[name] for name, task in zip(names, tasks, strict=True)
        ]
        sizes = np.diff(part_ends, prepend=0)
        return cls(arrow_of_strings(distinct), np.repeat(np.array(by_part, np.int32), sizes))

    @classmethod
    def of_strings(cls, hashes: Words, names: ValueNames) -> _Values:
        """Return the values of a column, ordered by their bytes. hashes : by document."""
        distinct, numbers = _distinct(hashes)
        texts = names.texts_of(distinct[distinct != _NO_VALUE])
        order = pc.sort_indices(texts.view(pa.large_binary())).to_numpy()
        return cls(texts.take(arrow_of(order)), _renumbered(distinct, order)[numbers])

    @classmethod
    def of_dates(cls, hashes: Words, names: ValueNames, kind: pa.DataType) -> _Values:
        """Return the dates of a column, or its numbers, of a type. A value that is neither counts
        as no value.
        """
        distinct, numbers = _distinct(hashes)
        texts = names.texts_of(distinct[distinct != _NO_VALUE])
        values = _converted(texts, kind)
        ranks, bad = as_rank(values)
        ranks[list(bad)] = np.nan
        by_text = np.empty(len(texts), np.int64)  # decides between two texts of one moment
        by_text[pc.sort_indices(texts.view(pa.large_binary())).to_numpy()] = np.arange(len(texts))
        order = np.lexsort((by_text, ranks[:, 1], ranks[:, 0]))
        order = order[: np.count_nonzero(~np.isnan(ranks[:, 0]))]  # nan comes last
        return cls(values.take(arrow_of(order)), _renumbered(distinct, order)[numbers])


def _distinct(hashes: Words) -> tuple[Words, Array]:
    """Return the distinct hashes, and for each hash its position among them."""
    encoded = arrow_of(hashes).dictionary_encode()  # by a table of hashes, without a sort
    return encoded.dictionary.to_numpy(), encoded.indices.to_numpy()


def _renumbered(distinct: Words, order: Ints) -> Array:
    """Return the numbers of distinct values: their positions in an order, or -1.

    order : the positions of values among the distinct ones that are not empty.
    """
    numbers = np.full(len(distinct), -1, np.int32)
    present = np.flatnonzero(distinct != _NO_VALUE)
    numbers[present[order]] = np.arange(len(order), dtype=np.int32)
    return numbers


def _converted(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return texts as values of a type; null for a text that is none."""
    if pa.types.is_null(kind) or pa.types.is_string_view(kind):
        kind = pa.string()
    try:
        return texts.cast(kind)
    except pa.ArrowInvalid:  # some lines of JSON may have another type than the first ones
        return pa.concat_arrays([_one_converted(text, kind) for text in texts])


def _one_converted(text: pa.Scalar, kind: pa.DataType) -> pa.Array:
    try:
        return pa.array([text.cast(kind)], kind)
    except pa.ArrowInvalid:
        return pa.nulls(1, kind)


class _SourceColumns(NamedTuple):
    """The columns sources and num_sources of consecutive documents.

    values : strings, in their order. own : int32 by document, the number of its own source; -1
    without one. documents, others : uint32, int32, rising: the documents that stand for documents
    of another source, once for each of these.
    """

    values: pa.Array
    own: Array
    documents: Positions
    others: Array

    @classmethod
    def of(cls, sources: _Values, standing: _Standing) -> _SourceColumns:
        """Return the columns of all documents."""
        numbers = sources.numbers
        removed = standing.removed
        keepers = standing.keepers
        is_other = (numbers[removed] >= 0) & (numbers[removed] != numbers[keepers])
        pairs = keepers[is_other] << 32 | numbers[removed[is_other]]
        pairs = np.unique(pairs)
        return cls(
            values=sources.values,
            own=numbers,
            documents=(pairs >> 32).astype(np.uint32),
            others=(pairs & 0xFFFFFFFF).astype(np.int32),
        )

    def between(self, start: int, stop: int) -> _SourceColumns:
        """Return the columns of the documents in [start, stop)."""
        low, high = np.searchsorted(self.documents, np.array([start, stop], np.uint32)).tolist()
        return _SourceColumns(
            values=self.values,
            own=self.own[start:stop],
            documents=self.documents[low:high] - np.uint32(start),
            others=self.others[low:high],
        )

    def counts(self) -> Ints:
        """Return the number of sources of each document."""
        others = np.bincount(self.documents, minlength=len(self.own))
        counts: Ints = (self.own >= 0) + others
        return counts

    def facts(self, standing: _Standing) -> JsonObject:
        """Return the numbers of sources, and of written documents in two or more of them."""
        documents, num_others = np.unique(self.documents, return_counts=True)
        is_in_several = num_others + (self.own[documents] >= 0) > 1
        return {
            "num_sources": len(self.values),
            "in_several": int(np.count_nonzero(is_in_several & standing.is_written[documents])),
        }

    def arrays(self) -> list[pa.Array]:
        """Return the columns."""
        with_own = np.flatnonzero(self.own >= 0)
        documents = np.append(with_own, self.documents)
        numbers = np.append(self.own[with_own], self.others)
        order = np.lexsort((numbers, documents))
        counts = self.counts()
        offsets = offsets_from_lengths(counts).astype(np.int32)
        names = self.values.take(arrow_of(numbers[order])).cast(pa.string())
        return [pa.ListArray.from_arrays(arrow_of(offsets), names), arrow_of(counts)]


class _DateColumns(NamedTuple):
    """The columns first_seen and last_seen of consecutive documents.

    values : the dates in their order. first, last : int32 by document, their numbers; -1 without
    one.
    """

    values: pa.Array
    first: Array
    last: Array

    @classmethod
    def of(cls, dates: _Values, standing: _Standing) -> _DateColumns:
        """Return the columns of all documents."""
        numbers = dates.numbers
        is_dated = numbers[standing.removed] >= 0
        keepers = standing.keepers[is_dated]
        seen = numbers[standing.removed[is_dated]]
        last = numbers.copy()
        np.maximum.at(last, keepers, seen)
        first = np.where(numbers < 0, _MAX_NUMBER, numbers)
        np.minimum.at(first, keepers, seen)
        return cls(dates.values, np.where(last < 0, -1, first), last)

    def between(self, start: int, stop: int) -> _DateColumns:
        """Return the columns of the documents in [start, stop)."""
        return _DateColumns(self.values, self.first[start:stop], self.last[start:stop])

    def arrays(self) -> list[pa.Array]:
        """Return the columns."""
        return [
            self.values.take(pc.if_else(arrow_of(numbers < 0), _NO_NUMBER, arrow_of(numbers)))
            for numbers in (self.first, self.last)
        ]


@dataclass(frozen=True)
class Provenance:
    """The columns of consecutive documents; see decide.outcome.Added. facts : for the report."""

    sources: _SourceColumns | None
    dates: _DateColumns | None
    facts: JsonObject

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns."""
        kinds: dict[str, pa.DataType] = {}
        if self.sources is not None:
            kinds |= _SOURCES
        if self.dates is not None:
            kinds |= dict.fromkeys(_DATES, self.dates.values.type)
        return pa.schema(kinds)

    def between(self, start: int, stop: int) -> Provenance:
        """Return the columns of the documents in [start, stop)."""
        return replace(
            self,
            sources=None if self.sources is None else self.sources.between(start, stop),
            dates=None if self.dates is None else self.dates.between(start, stop),
        )

    def rows(self) -> pa.RecordBatch:
        """Return the columns, with a row for each document."""
        parts = [part for part in (self.sources, self.dates) if part is not None]
        arrays = [array for part in parts for array in part.arrays()]
        return pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def provenance_of(
    settings: OutputSettings,
    source: Source,
    tasks: Sequence[Task],
    outcome: Outcome,
    described: Mapping[str, Words],
) -> Provenance | None:
    """Return the columns that the settings add to kept documents; None without any.

    described : uint64 by document, the hash of its value in each column that the settings name.
    """
    standing = _Standing.of(outcome)
    names = outcome.corpus.names
    sources = None
    dates = None
    facts: JsonObject = {}
    if settings.sources == INPUT:
        values = _Values.of_inputs(source, tasks, outcome.corpus.part_ends)
        sources = _SourceColumns.of(values, standing)
    elif settings.sources is not None:
        values = _Values.of_strings(described[settings.sources], names)
        sources = _SourceColumns.of(values, standing)
    if sources is not None:
        facts |= {"sources": settings.sources, **sources.facts(standing)}
    if settings.dates is not None:
        values = _Values.of_dates(described[settings.dates], names, _type_of(tasks, settings.dates))
        dates = _DateColumns.of(values, standing)
        undated = values.numbers[outcome.corpus.num_against :] < 0
        facts |= {"dates": settings.dates, "undated": int(np.count_nonzero(undated))}
    return Provenance(sources, dates, {"provenance": facts}) if facts else None


def _type_of(tasks: Sequence[Task], column: str) -> pa.DataType:
    """Return the type of a column, which all new inputs share; strings if no value has a type."""
    types = [(task.part.column_types() or {}).get(column) for task in tasks if not task.against]
    kinds = [storage_type(kind) for kind in types if kind is not None]
    return next((kind for kind in kinds if not pa.types.is_null(kind)), pa.string())
