"""Snapshots that find rows by ids and contents in their last two tables of keys; and checks of
these tables.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Mask, Rows, Words, arrow_of, filled, view_strings
from neardup.candidates.lookups import Entries
from neardup.errors import StoreError
from neardup.features.grouping import hash_strings
from neardup.schemas import KEPT
from neardup.stores.base import Counts, StoredSnapshot
from neardup.stores.documents import array_of, content_words, contents_of
from neardup.stores.key_tables import ALL, KeyEntries

NUM_HASHED = 2
_IDS, _CONTENTS = range(NUM_HASHED)
_MAX_COPIES = 64
"""Members of one content that are compared: only `add` makes more than one, and keeps them all."""


class HashedSnapshot(StoredSnapshot):
    """A snapshot with two more tables of keys: hashes of ids, and the first halves of contents."""

    @abstractmethod
    def _find_equal(self, table: int, keys: Words, limit: int) -> tuple[Rows, Rows]:
        """Return the positions of keys and the rows that have them.

        table : _IDS or _CONTENTS. limit : at least this number of rows per key is returned, if
        there are as many.
        """

    @abstractmethod
    def are_kept(self, rows: Rows) -> Mask:
        """Return which rows were kept."""

    def rows_of_ids(self, ids: pa.Array) -> Rows:
        """Return the row of each id; -1 if there is none."""
        position, row = self._find_equal(_IDS, hash_ids(ids), ALL)
        result = filled(len(ids), -1, np.int64)
        if len(row):
            # Keys are hashes of 64 bits, so the ids themselves decide.
            stored = array_of(self.take(row, ["id"]).column("id"))
            is_same = pc.equal(stored, ids.take(arrow_of(position)))
            is_same = is_same.to_numpy(zero_copy_only=False)
            result[position[is_same]] = row[is_same]
        return result

    def rows_of_contents(self, contents: Words) -> Rows:
        """Return the earliest kept row that is a member and has the content; otherwise the earliest
        removed one; otherwise -1.
        """
        keys = np.ascontiguousarray(contents[:, 0])
        position, row = self._find_equal(_CONTENTS, keys, _MAX_COPIES)
        result = filled(len(contents), -1, np.int64)
        if len(row):
            # The key is the first half of the content: compare both.
            stored = contents_of(self.take(row, ["content"]).column("content"))
            is_same = (stored == contents[position]).all(axis=1)
            position = position[is_same]
            row = row[is_same]
            # An assignment of several values to one position stores the last of them.
            order = np.lexsort((-row, self.are_kept(row), position))
            result[position[order]] = row[order]
        return result


def entries_of(
    batch: pa.RecordBatch, entries: Entries | None, first: int, num_tables: int
) -> KeyEntries:
    """Return the entries of new documents in all tables, ordered by row in each table.

    first : the row of the first document. num_tables : of `entries`.
    """
    num_documents = batch.num_rows
    members = batch.column("member").to_numpy(zero_copy_only=False).nonzero()[0]
    contents = content_words(batch.column("content"))
    # All documents have an entry by id, only members of buckets one by content.
    table = [
        filled(num_documents, num_tables + _IDS, np.uint16),
        filled(len(members), num_tables + _CONTENTS, np.uint16),
    ]
    key = [hash_ids(batch.column("id")), contents[members, 0]]
    document = [np.arange(num_documents), members]
    if entries is not None:
        table.append(entries.table)
        key.append(entries.key)
        document.append(entries.document)
    return KeyEntries(
        table=np.concatenate(table),
        key=np.concatenate(key),
        row=(np.concatenate(document) + first).astype(np.uint32),
    )


def hash_ids(ids: pa.Array) -> Words:
    """Return the keys of ids, large_string."""
    return hash_strings(*view_strings(ids))


def check_rows(snapshot: HashedSnapshot) -> list[str]:
    """Return a sentence for each disagreement of documents, entries and counts."""
    problems = []
    num_kept = 0
    num_rows = 0
    try:
        for documents in snapshot.scan(["row", "id", "state", "member", "content"]):
            rows = documents.column("row").to_numpy().astype(np.int64)
            is_kept = documents.column("state").to_numpy() == KEPT
            is_wrong = _differ_from_entries(snapshot, documents, rows, is_kept)
            if is_wrong.any():
                problems.append(
                    f"{int(is_wrong.sum())} documents from row {rows[is_wrong][0]} on differ from "
                    "their entries."
                )
            num_kept += int(is_kept.sum())
            num_rows += len(rows)
    except StoreError as error:
        return [*problems, str(error)]
    stored = Counts(num_kept, num_rows - num_kept)
    if stored != snapshot.count():
        problems.append(
            f"The numbers of kept and removed documents are {tuple(stored)}, not "
            f"{tuple(snapshot.count())}."
        )
    return problems


def _differ_from_entries(
    snapshot: HashedSnapshot, documents: pa.Table, rows: Rows, is_kept: Mask
) -> Mask:
    """Return which documents are not found by their id and content, or in another state."""
    differ: Mask = snapshot.rows_of_ids(array_of(documents.column("id"))) != rows
    differ |= snapshot.are_kept(rows) != is_kept
    members = documents.column("member").to_numpy()
    contents = contents_of(documents.column("content"))[members]
    differ[members] |= snapshot.rows_of_contents(contents) < 0
    return differ
