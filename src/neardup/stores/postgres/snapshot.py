"""States of an index in PostgreSQL: reads of a transaction that sees one of them, changes of the
writer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy

import numpy as np
import pyarrow as pa

from neardup.arrays import Mask, Rows, Words
from neardup.candidates.lookups import Entries, Found
from neardup.errors import StoreError
from neardup.schemas import KEPT
from neardup.stores.base import (
    Changes,
    Counts,
    Import,
    StoredSnapshot,
    StoreSettings,
    Writer,
    check_changes,
)
from neardup.stores.packed_rows import decode_table, encode_table, pack_table, unpack_table
from neardup.stores.postgres import statements
from neardup.stores.postgres.connections import Bigints, Session, bigints, slices_of_bigints

_ROWS_A_CALL, _LARGE_ROWS_A_CALL = 4_000, 200
_SIGN = np.uint64(1 << 63)


class PostgresSnapshot(StoredSnapshot):
    """The reads that a transaction, or the writer, makes over one connection."""

    def __init__(self, session: Session, settings: StoreSettings) -> None:
        self.session, self.layout, self.schema = session, settings.layout, settings.schema
        self._num_rows, kept, removed = session.row(statements.COUNTS)
        self._counts = Counts(kept, removed)
        self._hidden = np.empty(0, np.int64)  # rows that are skipped

    @property
    def num_rows(self) -> int:
        return int(self._num_rows)

    def find(self, lookups: Entries, limit: int) -> Found:
        equal = np.array(statements.tables_of_equal_keys(self.layout))
        numbers, packed = self.session.row(
            statements.find_statement(self.layout), *self._wanted(lookups, limit)
        )
        entry, values = np.frombuffer(numbers or b"", ">i8"), np.frombuffer(packed or b"", ">i8")
        order = np.lexsort((values, entry))
        entry, values = entry[order].astype(np.int64), values[order].astype(np.int64)
        rank = np.arange(len(entry)) - np.searchsorted(entry, entry)
        beyond = (values & 2 != 0) | (equal[lookups.table[entry]] & (rank >= limit))
        truncated = np.zeros(len(lookups.key), np.bool_)
        truncated[entry[beyond]] = True
        entry, values = entry[~beyond], values[~beyond]
        return Found(entry, values >> 2, values & 1 != 0, truncated)

    def _wanted(self, lookups: Entries, limit: int) -> list[Bigints | int]:
        """Return the parameters of the statement that finds rows."""
        order = np.argsort(lookups.table, kind="stable")
        bounds = np.searchsorted(
            lookups.table[order], np.arange(len(self.layout.prefix_bits) + 1)
        ).tolist()
        key = bigints_of(lookups.key[order])
        masks = np.array(
            [statements.prefix_mask(bits) for bits in self.layout.prefix_bits], np.int64
        )
        prefix = key & masks[lookups.table[order]]
        columns = [slices_of_bigints(values, bounds) for values in (order, key, prefix)]
        parameters: list[Bigints | int] = []
        for table, equal in enumerate(statements.tables_of_equal_keys(self.layout)):
            parameters += [column[table] for column in (columns[:2] if equal else columns)]
            parameters += [bigints(self._hidden), limit + 1]
        return parameters

    def rows_of_ids(self, ids: pa.Array) -> Rows:
        return self._rows_of(statements.IDS, ids.cast("large_binary").to_pylist())

    def rows_of_contents(self, contents: Words) -> Rows:
        values = np.ascontiguousarray(contents).view("V16").reshape(-1)
        return self._rows_of(statements.CONTENTS, [value.tobytes() for value in values])

    def without(self, rows: Rows) -> PostgresSnapshot:
        snapshot = copy(self)
        snapshot._hidden = np.concatenate([self._hidden, rows])
        return snapshot

    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        if len(rows) == 0:
            return self._table([], 0, columns)
        found = self.session.rows(statements.take_statement(columns), bigints(rows))
        return self._table([record for (record,) in found], len(rows), columns)

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        last, size = (
            -1,
            _LARGE_ROWS_A_CALL if set(columns) & set(statements.LARGE) else _ROWS_A_CALL,
        )
        while self.num_rows:
            found = self.session.rows(statements.scan_statement(columns), last, size)
            if not found:
                return
            yield self._table([record for record, _ in found], len(found), columns)
            last = found[-1][1]

    def count(self) -> Counts:
        return self._counts

    def imports(self) -> list[Import]:
        return [
            Import(name.decode(), opened, size)
            for name, opened, size in self.session.rows(statements.IMPORTS)
        ]

    def staged(self, import_name: str) -> Iterator[pa.Table]:
        last = 0
        while found := self.session.rows(statements.STAGED, import_name.encode(), last):
            ((last, data),) = found
            yield decode_table(data)

    def _rows_of(self, statement: str, values: list[bytes]) -> Rows:
        found = np.full(len(values), -1, np.int64)
        if values:
            (packed,) = self.session.row(statement, values, bigints(self._hidden))
            pairs = np.frombuffer(packed or b"", ">i8").reshape(-1, 2)
            found[pairs[:, 0]] = pairs[:, 1]
        return found

    def _table(self, records: list[bytes], num_rows: int, columns: Sequence[str]) -> pa.Table:
        fields = [self.schema.field(name) for name in columns]
        if num_rows == 0:
            return pa.schema(fields).empty_table()
        try:
            return unpack_table(
                np.frombuffer(b"".join(records), np.uint8), num_rows, fields, compact=False
            )
        except ValueError as error:
            raise StoreError(
                f"Documents are missing or damaged at {self.session.address.shown}: {error}. "
                f"{num_rows} documents were asked for by row. Run `neardup index verify`, and "
                "restore the database from a backup."
            ) from error


def bigints_of(keys: Words) -> Rows:
    """Return keys as numbers with a sign, in the same order."""
    return (keys ^ _SIGN).view(np.int64)


class PostgresWriter(PostgresSnapshot, Writer):
    """The writer of an index: it has the advisory lock of the index on its connection."""

    def write_all(self, parts: Iterable[Changes]) -> None:
        before = self._num_rows, self._counts
        try:
            with self.session.transaction():
                for changes in parts:
                    self._write(changes)
        except BaseException:
            self._num_rows, self._counts = before
            raise

    def _write(self, changes: Changes) -> None:
        session, documents = self.session, changes.documents
        added = 0 if documents is None else documents.num_rows
        check_changes(changes, self.num_rows, self.schema)
        if changes.ended_import is not None:
            for statement in statements.END_IMPORT:
                session.execute(statement, changes.ended_import.encode())
        kept, removed = self._forget(changes.forgotten)
        if documents is not None and added:
            lasting = ~np.isin(self.num_rows + np.arange(added), changes.forgotten)
            new_kept, new_removed = self._add(documents, changes.entries, lasting)
            kept, removed = kept + new_kept, removed + new_removed
        if len(changes.seen):
            session.execute(statements.SEE, changes.seen_at, bigints(changes.seen))
        if session.execute(statements.COUNT_ON, added, kept, removed, self.num_rows) != 1:
            raise StoreError(
                f"Another writer changed the index meanwhile at {session.address.shown}: it has "
                f"no longer {self.num_rows} rows. One writer at a time is possible. Repeat the "
                "call; nothing was written."
            )
        self._num_rows += added
        self._counts = Counts(self._counts.kept + kept, self._counts.removed + removed)

    def stage(self, import_name: str, opened: int, documents: pa.Table | None) -> None:
        size = 0 if documents is None else documents.num_rows
        with self.session.transaction():
            name = import_name.encode()
            self.session.execute(statements.OPEN_IMPORT, name, opened, size)
            if documents is not None:
                self.session.execute(statements.STAGE, name, encode_table(documents), name)

    def _forget(self, rows: Rows) -> tuple[int, int]:
        """Delete documents and their keys; return by how much the numbers of kept and of removed
        documents change.
        """
        if len(rows) == 0:
            return 0, 0
        kept, removed = self.session.row(statements.FORGET, bigints(rows))
        self.session.execute(statements.FORGET_ENTRIES, bigints(rows))
        return -kept, -removed

    def _add(self, documents: pa.Table, entries: Entries | None, lasting: Mask) -> tuple[int, int]:
        """Insert the lasting documents and their keys; return the number of kept and of removed
        ones.
        """
        kept = documents.column("state").to_numpy() == KEPT
        if entries is not None and len(entries.key):
            chosen = entries.take(lasting[entries.document])
            self._copy(
                entry_rows(chosen, kept, self.num_rows, len(self.layout.prefix_bits)), "entries"
            )
        self._copy(documents if lasting.all() else documents.filter(pa.array(lasting)), "documents")
        return int((kept & lasting).sum()), int((~kept & lasting).sum())

    def _copy(self, table: pa.Table, name: str) -> None:
        statement = statements.copy_statement(table.column_names, name)
        self.session.copy(
            statement, [_HEADER, pack_table(table, compact=False).data.tobytes(), _TRAILER]
        )


_HEADER, _TRAILER = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"


def entry_rows(entries: Entries, kept: Mask, first_row: int, num_tables: int) -> pa.Table:
    """Return the rows of the table of keys: of a document as many as it has keys in one table, one
    as a rule.

    kept : bool (num_documents,). first_row : the row of the first document.
    """
    group = entries.document * num_tables + entries.table
    order = np.argsort(group, kind="stable")
    group = group[order]
    begins = np.searchsorted(group, group)  # of the keys of a document in a table
    rank = np.arange(len(group)) - begins
    document = entries.document[order]
    owners, line = np.unique(document << 32 | rank, return_inverse=True)
    keys = np.zeros((num_tables, len(owners)), np.int64)
    missing = np.ones((num_tables, len(owners)), np.bool_)
    table = entries.table[order]
    keys[table, line], missing[table, line] = bigints_of(entries.key[order]), False
    documents = owners >> 32
    columns: Sequence[pa.Array] = [
        pa.array(first_row + documents),
        *(pa.array(keys[i], mask=missing[i]) for i in range(num_tables)),
        pa.array(kept[documents]),
    ]
    return pa.table(columns, ["row", *(f"key_{i}" for i in range(num_tables)), "kept"])
