"""The sources of the documents of an index: where a kept document and its duplicates came from.

Each row has the source of its own document. A duplicate that brings a new source to its kept
document is also listed under the row of that document in a further table of keys, so that the
sources of a document are found by a look-up in every store:

    row   kept_row   source   listed
    0                a
    1     0          a                    the source is known
    2     0          b        under row 0
    3     0          c        under row 0  row 1 was sent again, from a new source

No row changes once it is written: a document that is sent again from a new source becomes a removed
copy of itself, with an id that no caller has.

An index that does not track sources has no such column and no such table. In an index that also
tracks dates, the column has the origin of a document: its source, U+001F, and its date, each empty
if there is none. A date has no U+001F, a source may have some.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import (
    Array,
    Ints,
    Mask,
    Rows,
    Words,
    arrow_of,
    begins_run,
    offsets_from_lengths,
    ranges,
)
from neardup.candidates.lookups import Entries
from neardup.documents.texts import as_rank
from neardup.errors import InputError, SettingError
from neardup.schemas import SOURCE_COLUMNS
from neardup.settings.constraints import check_text
from neardup.stores.base import Snapshot, StoredSnapshot
from neardup.stores.documents import array_of
from neardup.stores.key_tables import ALL

SOURCE = "source"
_STRING = pa.large_string()
_NOTHING = pa.scalar(None, _STRING)
_SEPARATOR = "\x1f"  # of the source and the date of an origin
# Spreads the numbers of rows over all bits of a key; odd, so that keys of two rows differ.
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_STORED = -1  # the position of a source that a stored row brought


def origins_of(sources: pa.Array | None, dates: pa.Array | None, num_documents: int) -> pa.Array:
    """Return the origins of documents of an index that tracks dates, null without source and date.

    Parameters
    ----------
    sources, dates : large_string (num_documents,), or None. A date that is neither a date nor a
        number counts as none.
    """
    none = pa.nulls(num_documents, _STRING)
    source = (none if sources is None else sources).fill_null("")
    date = none
    if dates is not None:
        ranks, bad = as_rank(dates)
        ranks[list(bad)] = np.nan
        date = pc.replace_with_mask(dates, arrow_of(np.isnan(ranks[:, 0])), _NOTHING)
    # Around a number or a date, U+001F is white space like any other.
    date = pc.replace_substring(date.fill_null(""), _SEPARATOR, "")
    origins = pc.binary_join_element_wise(source, date, pa.scalar(_SEPARATOR, _STRING))
    return pc.replace_with_mask(origins, pc.equal(origins, _SEPARATOR), _NOTHING)


def converted(origins: pa.Array, *, dated: bool, to_dated: bool) -> pa.Array:
    """Return the sources of documents of one index as another index stores them.

    dated, to_dated : whether the two track dates.
    """
    if dated == to_dated:
        return origins
    if to_dated:
        return origins_of(origins, None, len(origins))
    parts = pc.split_pattern(origins, _SEPARATOR, max_splits=1, reverse=True)
    return _without_empty(pc.list_element(parts, 0))


def refuse_undated(dates: str | None, address: str, *, tracks: bool) -> None:
    """Raise SettingError if documents have dates, and their index does not track them."""
    if dates is not None and not tracks:
        raise SettingError(
            f"dates names a column of dates: got dates={dates!r} for the index {address}, which "
            "does not store it. Create an index with track_dates=True (--track-dates), or leave "
            "dates (--dates) out."
        )


def refuse_untracked(sources: str | None, address: str, *, tracks: bool) -> None:
    """Raise SettingError if documents have sources, and their index does not track them."""
    if sources is not None and not tracks:
        raise SettingError(
            f"sources names where documents come from: got sources={sources!r} for the index "
            f"{address}, which does not store it. Create an index with track_sources=True "
            "(--track-sources), or leave sources (--sources) out."
        )


def refuse_untracked_source(name: str, source: str | None, address: str, *, tracks: bool) -> None:
    """Raise SettingError if a document has a source, and its index does not track them. name : of
    the source, for the error.
    """
    if source is not None and not tracks:
        raise SettingError(
            f"The {name} is where the document comes from: got {source!r:.200} for the index "
            f"{address}, which does not store it. Create an index with track_sources=True "
            "(--track-sources), or leave the source out."
        )


def check_date(name: str, date: str | None, address: str, *, tracks: bool) -> None:
    """Raise SettingError if a document has a date, and its index does not track them; InputError if
    it is neither a date nor a number. An empty one is none. name : of the date, for the error.
    """
    if date is None:
        return
    if not tracks:
        raise SettingError(
            f"The {name} is the date of the document: got {date!r:.200} for the index {address}, "
            "which does not store it. Create an index with track_dates=True (--track-dates), or "
            "leave the date out."
        )
    check_text(name, date)
    ranks, bad = as_rank(pa.array([date]))
    if date and (bad or np.isnan(ranks[0, 0])):
        raise InputError(
            f"The {name} must be a date, a time or a number, such as 2026-11-28: got "
            f"{date!r:.200}. Correct it, or leave it out."
        )


class Sources(NamedTuple):
    """The sources of the kept document of each new document, up to that document.

    lists : list of string (num_documents,), in the order of their bytes. is_first : bool, whether
    a document is the first one with its source for its kept document.
    """

    lists: pa.Array
    is_first: Mask

    def columns(self, *, dated: bool) -> list[pa.Array]:
        """Return the columns SOURCE_COLUMNS; then DATE_COLUMNS if the sources are origins."""
        sources = self.lists
        dates: list[pa.Array] = []
        if dated:
            origins = _Origins.of(self.lists)
            sources = origins.sources(len(self.lists))
            dates = origins.extremes(len(self.lists))
        return [sources, pc.list_value_length(sources).cast(pa.int64()), *dates]


class _Origins(NamedTuple):
    """Origins of kept documents, cut into their parts.

    documents : int64, not falling, the document of each. names : large_string, its source, null
    without one. numbers : int64, the position of its date in `dates`, -1 without one. dates :
    large_string, from the least to the greatest.
    """

    documents: Ints
    names: pa.Array
    numbers: Ints
    dates: pa.Array

    @classmethod
    def of(cls, lists: pa.Array) -> _Origins:
        """Cut the origins in lists. Requires: no list is null."""
        # Each distinct origin is cut once: many documents have the same.
        encoded = lists.flatten().dictionary_encode()
        parts = pc.split_pattern(encoded.dictionary, _SEPARATOR, max_splits=1, reverse=True)
        names, dates = (_without_empty(pc.list_element(parts, side)) for side in range(2))
        order = _order_of_dates(dates)
        numbers = np.full(len(dates), -1)
        numbers[order] = np.arange(len(order))
        return cls(
            documents=pc.list_parent_indices(lists).cast(pa.int64()).to_numpy(),
            names=names.take(encoded.indices),
            numbers=numbers[encoded.indices.to_numpy()],
            dates=dates.take(arrow_of(order)),
        )

    def sources(self, num_documents: int) -> pa.Array:
        """Return the distinct sources of each document as a list."""
        known = _distinct(self.documents, np.zeros(len(self.documents), np.int64), self.names)
        return _lists(known.keepers, known.names, num_documents)

    def extremes(self, num_documents: int) -> list[pa.Array]:
        """Return the least and the greatest date of each document; null without one."""
        dated = np.flatnonzero(self.numbers >= 0)
        # `lexsort` sorts by its last key first.
        order = dated[np.lexsort((self.numbers[dated], self.documents[dated]))]
        documents = self.documents[order]
        first = np.searchsorted(documents, np.arange(num_documents), "left")
        stop = np.searchsorted(documents, np.arange(num_documents), "right")
        dates = self.dates.take(arrow_of(self.numbers[order]))
        return [
            dates.take(pa.array(at, mask=first == stop)).cast(pa.string())
            for at in (first, stop - 1)
        ]


def _order_of_dates(dates: pa.Array) -> Ints:
    """Return the positions of dates, without the nulls, from the least to the greatest."""
    ranks, _ = as_rank(dates)
    by_bytes = np.empty(len(dates), np.int64)  # decides between two texts of one moment
    by_bytes[pc.sort_indices(dates.view(pa.large_binary())).to_numpy()] = np.arange(len(dates))
    order = np.lexsort((by_bytes, ranks[:, 1], ranks[:, 0]))
    return order[: len(dates) - dates.null_count]  # nan comes last


def _without_empty(texts: pa.Array) -> pa.Array:
    texts = texts.cast(_STRING)
    # `if_else` of pyarrow 18 damages a slice of strings.
    return pc.replace_with_mask(texts, pc.equal(texts, ""), _NOTHING)


def sources_of(table: int, snapshot: Snapshot, keepers: Rows, sources: pa.Array) -> Sources:
    """Return the sources of the kept documents of arriving documents.

    Parameters
    ----------
    table : the table of keys that lists sources.
    snapshot : the documents before the new ones.
    keepers : int64 (num_documents,), the row of the kept document of each document, which is its
        own row if it is kept; -1 if there is none.
    sources : large_string (num_documents,), the source of each; null without one.
    """
    num_documents = len(keepers)
    stored = np.unique(keepers[(keepers >= 0) & (keepers < snapshot.num_rows)])
    found = _stored_sources(table, snapshot, stored)
    known = _distinct(
        keepers=np.concatenate([found.keepers, keepers]),
        positions=np.concatenate([np.full(len(found.keepers), _STORED), np.arange(num_documents)]),
        names=pa.concat_arrays([found.names, sources]),
    )
    is_first = np.zeros(num_documents, np.bool_)
    is_first[known.positions[known.positions != _STORED]] = True
    return Sources(lists=_lists_so_far(known, keepers), is_first=is_first)


def _lists_so_far(known: _Known, keepers: Rows) -> pa.Array:
    """Return the sources of the kept document of each document, up to that document."""
    num_documents = len(keepers)
    low = np.searchsorted(known.keepers, keepers, "left")
    sizes = np.searchsorted(known.keepers, keepers, "right") - low
    documents = np.repeat(np.arange(num_documents), sizes)
    index = ranges(low, sizes)
    is_before = known.positions[index] <= documents
    names = known.names.take(arrow_of(index[is_before]))
    return _lists(documents[is_before], names, num_documents)


def entries_of(table: int, keepers: Rows, is_first: Mask) -> Entries:
    """Return the entries of documents that bring a new source. keepers, is_first : by document."""
    documents = np.flatnonzero(is_first)
    return Entries(
        document=documents,
        table=np.full(len(documents), table, np.uint16),
        key=_keys_of(keepers[documents]),
    )


def entries_of_rows(table: int, rows: pa.Table) -> Entries:
    """Return the entries of stored rows, which are copied to another store: for each source of a
    kept document, one of these rows at least.
    """
    keepers = rows["kept_row"].cast(pa.int64()).fill_null(-1).to_numpy()
    distinct = _distinct(keepers, np.arange(len(keepers)), array_of(rows[SOURCE]))
    is_first = np.zeros(len(keepers), np.bool_)
    is_first[distinct.positions] = True
    return entries_of(table, keepers, is_first)


def all_sources(snapshot: StoredSnapshot) -> AllSources:
    """Return the sources of all kept documents, as of now. Scans the index once."""
    keepers = [np.empty(0, np.int64)]
    names = [pa.nulls(0, _STRING)]
    for table in snapshot.scan(["row", "kept_row", SOURCE]):
        present = table.filter(table[SOURCE].is_valid())
        keepers.append(pc.coalesce(present["kept_row"], present["row"]).cast(pa.int64()).to_numpy())
        names.append(array_of(present[SOURCE]))
    rows = np.concatenate(keepers)
    return AllSources(_distinct(rows, np.zeros(len(rows), np.int64), pa.concat_arrays(names)))


class AllSources(NamedTuple):
    """The sources of all documents that stand for themselves or for others."""

    known: _Known

    def columns(self, rows: Rows, kept: Mask, *, dated: bool) -> list[pa.Array]:
        """Return the columns of `Sources.columns` of rows; null for documents that are not kept."""
        keepers = self.known.keepers
        low = np.searchsorted(keepers, rows, "left")
        sizes = np.where(kept, np.searchsorted(keepers, rows, "right") - low, 0)
        names = self.known.names.take(arrow_of(ranges(low, sizes)))
        lists = _lists(np.repeat(np.arange(len(rows)), sizes), names, len(rows))
        columns = Sources(lists, kept).columns(dated=dated)
        return [
            pc.if_else(arrow_of(kept), column, pa.scalar(None, column.type)) for column in columns
        ]


class _Stored(NamedTuple):
    """Sources that stored rows brought: the row of the kept document, and the source."""

    keepers: Rows
    names: pa.Array


class _Known(NamedTuple):
    """The distinct sources of kept documents, by row and then by the bytes of the source.

    keepers : int64, the row of the kept document. positions : int64, the first document that
    brought the source. names : large_string.
    """

    keepers: Rows
    positions: Ints
    names: pa.Array


def _stored_sources(table: int, snapshot: Snapshot, keepers: Rows) -> _Stored:
    """Return the sources of stored kept documents, and of the rows listed under them."""
    if not len(keepers):
        return _Stored(keepers, pa.array([], _STRING))
    every = np.ones(len(keepers), np.bool_)
    listed = snapshot.find(entries_of(table, keepers, every), ALL)
    rows = np.concatenate([keepers, listed.row])
    return _Stored(
        keepers=np.concatenate([keepers, keepers[listed.entry]]),
        names=array_of(snapshot.take(rows, [SOURCE])[SOURCE]),
    )


def _keys_of(rows: Rows) -> Words:
    keys: Words = rows.astype(np.uint64) * _SPREAD
    return keys


def _distinct(keepers: Rows, positions: Ints, names: pa.Array) -> _Known:
    """Return each source of a kept document once; nulls, and documents of none, are left out."""
    encoded = names.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy().astype(np.int64)
    by_bytes = pc.sort_indices(encoded.dictionary.view(pa.large_binary())).to_numpy()
    ranks = np.empty(len(by_bytes), np.int64)
    ranks[by_bytes] = np.arange(len(by_bytes))
    present = np.flatnonzero((codes >= 0) & (keepers >= 0))
    # `lexsort` sorts by its last key first.
    order = present[np.lexsort((positions[present], ranks[codes[present]], keepers[present]))]
    order = order[begins_run(keepers[order], codes[order])]
    return _Known(keepers[order], positions[order], names.take(arrow_of(order)))


def _lists(documents: Array, names: pa.Array, num_documents: int) -> pa.Array:
    """Return the names of each document as a list. documents : of each name, not falling."""
    sizes = np.bincount(documents, minlength=num_documents)
    offsets = offsets_from_lengths(sizes).astype(np.int32)
    kind = SOURCE_COLUMNS["sources"]
    return pa.ListArray.from_arrays(arrow_of(offsets), names.cast(kind.value_type))
