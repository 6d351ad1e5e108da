"""Snapshots whose last two tables of keys find rows by their ids and contents, and whether these
agree.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Mask, Rows, Words, arrow_of, view_strings
from neardup.candidates.lookups import Entries
from neardup.errors import StoreError
from neardup.features.grouping import hash_strings
from neardup.schemas import KEPT
from neardup.stores.base import Counts, StoredSnapshot
from neardup.stores.documents import array_of, contents_of
from neardup.stores.key_tables import ALL, KeyEntries

NUM_HASHED = 2
_IDS, _CONTENTS = range(NUM_HASHED)
_MOST_COPIES = 64
"""Members of one content that are looked at: only `add` makes more than one, and all of these are
kept.
"""


class HashedSnapshot(StoredSnapshot):
    """A snapshot that finds rows by the hash of the id, and members by the first half of their
    content.
    """

    @abstractmethod
    def _find_equal(self, table: int, keys: Words, limit: int) -> tuple[Rows, Rows]:
        """Return the numbers of keys and the rows that have them, `limit` of a key or more if there
        are as many.

        table : of the last two.
        """

    @abstractmethod
    def are_kept(self, rows: Rows) -> Mask:
        """Return which rows were kept."""

    def rows_of_ids(self, ids: pa.Array) -> Rows:
        """Return the row of each id; -1 if there is none."""
        number, row = self._find_equal(_IDS, hash_ids(ids), ALL)
        result = np.full(len(ids), -1, np.int64)
        if len(row):
            stored = array_of(self.take(row, ["id"]).column("id"))
            same = pc.equal(stored, ids.take(arrow_of(number))).to_numpy(zero_copy_only=False)
            result[number[same]] = row[same]
        return result

    def rows_of_contents(self, contents: Words) -> Rows:
        """Return the earliest kept row that is a member and has the content; else the earliest
        removed one; else -1.
        """
        number, row = self._find_equal(
            _CONTENTS, np.ascontiguousarray(contents[:, 0]), _MOST_COPIES
        )
        result = np.full(len(contents), -1, np.int64)
        if len(row):
            same = (
                contents_of(self.take(row, ["content"]).column("content")) == contents[number]
            ).all(axis=1)
            number, row = number[same], row[same]
            last = np.lexsort(
                (-row, self.are_kept(row), number)
            )  # of equal numbers, the last is assigned
            result[number[last]] = row[last]
        return result


def entries_of(
    documents: pa.Table, entries: Entries | None, first: int, num_tables: int
) -> KeyEntries:
    """Return the entries of new documents in all tables, rows rising in each of them.

    first : the row of the first document. num_tables : those of `entries`.
    """
    size = len(documents)
    members = documents.column("member").to_numpy().nonzero()[0]
    stop = size + len(members)
    total = stop + (0 if entries is None else len(entries.key))
    found = KeyEntries(
        np.empty(total, np.uint16), np.empty(total, np.uint64), np.empty(total, np.int64)
    )
    found.table[:size], found.table[size:stop] = num_tables + _IDS, num_tables + _CONTENTS
    found.key[:size] = hash_ids(array_of(documents.column("id")))
    found.key[size:stop] = contents_of(documents.column("content"))[members, 0]
    found.row[:size], found.row[size:stop] = np.arange(size), members
    if entries is not None:
        found.table[stop:], found.key[stop:], found.row[stop:] = (
            entries.table,
            entries.key,
            entries.document,
        )
    return found._replace(row=(found.row + first).astype(np.uint32))


def hash_ids(ids: pa.Array) -> Words:
    """Return the keys of ids, large_string."""
    return hash_strings(*view_strings(ids))


def check_rows(snapshot: HashedSnapshot) -> list[str]:
    """Return the disagreements, a sentence each."""
    found, num_kept, num_rows = [], 0, 0
    try:
        for table in snapshot.scan(["row", "id", "state", "member", "content"]):
            rows = table.column("row").to_numpy().astype(np.int64)
            kept, members = (
                table.column("state").to_numpy() == KEPT,
                table.column("member").to_numpy(),
            )
            wrong = (snapshot.rows_of_ids(array_of(table.column("id"))) != rows) | (
                snapshot.are_kept(rows) != kept
            )
            wrong[members] |= (
                snapshot.rows_of_contents(contents_of(table.column("content"))[members]) < 0
            )
            if wrong.any():
                found.append(
                    f"{int(wrong.sum())} documents from row {rows[wrong][0]} on differ from "
                    "their entries."
                )
            num_kept, num_rows = num_kept + int(kept.sum()), num_rows + len(rows)
    except StoreError as error:
        return [*found, str(error)]
    stored = Counts(num_kept, num_rows - num_kept)
    if stored != snapshot.count():
        found.append(
            f"The numbers of kept and removed documents are {tuple(stored)}, not "
            f"{tuple(snapshot.count())}."
        )
    return found
