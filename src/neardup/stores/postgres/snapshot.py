"""Reads of an index in PostgreSQL in a transaction, which sees one state; changes of the writer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy

import numpy as np
import pyarrow as pa

from neardup.arrays import Mask, Rows, Words, mask_of, rank_in_run
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

_ROWS_PER_CALL = 4_000
_LARGE_ROWS_PER_CALL = 200
_SIGN = np.uint64(1 << 63)
# The bits of a value that `find_statement` returns, below the row.
_IS_KEPT = 1
_IS_BEYOND = 2
_ROW_SHIFT = 2
# Of PostgreSQL's binary COPY format.
_COPY_HEADER = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_TRAILER = b"\xff\xff"


class PostgresSnapshot(StoredSnapshot):
    """The reads that a transaction, or the writer, makes over one connection."""

    def __init__(self, session: Session, settings: StoreSettings) -> None:
        self.session = session
        self.layout = settings.layout
        self.schema = settings.schema
        self._num_rows, kept, removed = session.row(statements.COUNTS)
        self._counts = Counts(kept, removed)
        self._hidden = np.empty(0, np.int64)  # rows that are skipped

    @property
    def num_rows(self) -> int:
        return int(self._num_rows)

    def find(self, lookups: Entries, limit: int) -> Found:
        numbers, packed = self.session.row(
            statements.find_statement(self.layout), *self._wanted(lookups, limit)
        )
        # The aggregate of no rows is null.
        entry = np.frombuffer(numbers or b"", ">i8").astype(np.int64)
        values = np.frombuffer(packed or b"", ">i8").astype(np.int64)
        # The upper bits of a value are the row, so values sort by row.
        order = np.lexsort((values, entry))
        entry = entry[order]
        values = values[order]

        # The statement marks rows beyond the limit, except in tables of equal keys.
        rank = rank_in_run(entry)
        needs_equal = np.array(statements.tables_of_equal_keys(self.layout))
        is_beyond = values & _IS_BEYOND != 0
        is_beyond |= needs_equal[lookups.table[entry]] & (rank >= limit)
        truncated = mask_of(entry[is_beyond], len(lookups.key))
        listed = values[~is_beyond]
        return Found(
            entry=entry[~is_beyond],
            row=listed >> _ROW_SHIFT,
            kept=listed & _IS_KEPT != 0,
            truncated=truncated,
        )

    def _wanted(self, lookups: Entries, limit: int) -> list[Bigints | int]:
        """Return the parameters of the statement that finds rows."""
        order = np.argsort(lookups.table, kind="stable")
        table = lookups.table[order]
        key = bigints_of(lookups.key[order])
        masks = [statements.prefix_mask(bits) for bits in self.layout.prefix_bits]
        prefix = key & np.array(masks, np.int64)[table]
        bounds = np.searchsorted(table, np.arange(len(masks) + 1)).tolist()
        columns = [slices_of_bigints(values, bounds) for values in (order, key, prefix)]
        hidden = bigints(self._hidden)
        parameters: list[Bigints | int] = []
        for number, needs_equal in enumerate(statements.tables_of_equal_keys(self.layout)):
            used = columns[:2] if needs_equal else columns
            parameters += [column[number] for column in used]
            # One row more than the limit shows that a lookup is truncated.
            parameters += [hidden, limit + 1]
        return parameters

    def rows_of_ids(self, ids: pa.Array) -> Rows:
        return self._rows_of(statements.IDS, ids.cast("large_binary").to_pylist())

    def rows_of_contents(self, contents: Words) -> Rows:
        values = np.ascontiguousarray(contents).view("V16").reshape(-1)
        return self._rows_of(statements.CONTENTS, [value.tobytes() for value in values])

    def without(self, rows: Rows) -> PostgresSnapshot:
        # The copy reads in the same transaction.
        snapshot = copy(self)
        snapshot._hidden = np.concatenate([self._hidden, rows])
        return snapshot

    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        if len(rows) == 0:
            return self._table([], 0, columns)
        found = self.session.rows(statements.take_statement(columns), bigints(rows))
        return self._table([record for (record,) in found], len(rows), columns)

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        is_large = set(columns) & set(statements.LARGE)
        size = _LARGE_ROWS_PER_CALL if is_large else _ROWS_PER_CALL
        last = -1
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
        num_rows_before = self._num_rows
        counts_before = self._counts
        try:
            with self.session.transaction():
                for changes in parts:
                    self._write(changes)
        except BaseException:
            # Each part has changed them; the transaction has taken the parts back.
            self._num_rows = num_rows_before
            self._counts = counts_before
            raise

    def _write(self, changes: Changes) -> None:
        check_changes(changes, self.num_rows, self.schema)
        if changes.ended_import is not None:
            for statement in statements.END_IMPORT:
                self.session.execute(statement, changes.ended_import.encode())
        forgotten = self._forget(changes.forgotten)
        num_added = 0
        added = Counts(0, 0)
        if changes.documents is not None:
            num_added = changes.documents.num_rows
            # Documents that are added and forgotten at once are never written, but use up their
            # rows.
            is_lasting = ~np.isin(self.num_rows + np.arange(num_added), changes.forgotten)
            added = self._add(changes.documents, changes.entries, is_lasting)
        if len(changes.seen):
            self.session.execute(statements.SEE, changes.seen_at, bigints(changes.seen))
        self._count(num_added, added.kept - forgotten.kept, added.removed - forgotten.removed)

    def _count(self, num_added: int, kept: int, removed: int) -> None:
        """Change the counts, unless another writer has changed them."""
        parameters = (num_added, kept, removed, self.num_rows)
        if self.session.execute(statements.COUNT_ON, *parameters) != 1:
            raise StoreError(
                f"Another writer changed the index meanwhile at {self.session.address.shown}: it "
                f"has no longer {self.num_rows} rows. One writer at a time is possible. Repeat the "
                "call; nothing was written."
            )
        self._num_rows += num_added
        self._counts = Counts(self._counts.kept + kept, self._counts.removed + removed)

    def stage(self, import_name: str, opened: int, documents: pa.Table | None) -> None:
        size = 0 if documents is None else documents.num_rows
        with self.session.transaction():
            name = import_name.encode()
            self.session.execute(statements.OPEN_IMPORT, name, opened, size)
            if documents is not None:
                self.session.execute(statements.STAGE, name, encode_table(documents), name)

    def _forget(self, rows: Rows) -> Counts:
        """Delete documents and their keys; return the number of deleted documents."""
        if len(rows) == 0:
            return Counts(0, 0)
        kept, removed = self.session.row(statements.FORGET, bigints(rows))
        self.session.execute(statements.FORGET_ENTRIES, bigints(rows))
        return Counts(kept, removed)

    def _add(self, documents: pa.Table, entries: Entries | None, is_lasting: Mask) -> Counts:
        """Insert documents and their keys; return their number.

        is_lasting : bool (num_documents,), false for documents that the same change forgets.
        """
        if not len(documents):
            return Counts(0, 0)
        is_kept = documents.column("state").to_numpy() == KEPT
        if entries is not None and len(entries.key):
            lasting = entries.take(is_lasting[entries.document])
            num_tables = len(self.layout.prefix_bits)
            self._copy(entry_rows(lasting, is_kept, self.num_rows, num_tables), "entries")
        if not is_lasting.all():
            documents = documents.filter(pa.array(is_lasting))
        self._copy(documents, "documents")
        return Counts(int((is_kept & is_lasting).sum()), int((~is_kept & is_lasting).sum()))

    def _copy(self, table: pa.Table, name: str) -> None:
        statement = statements.copy_statement(table.column_names, name)
        rows = pack_table(table, compact=False).data.tobytes()
        self.session.copy(statement, [_COPY_HEADER, rows, _COPY_TRAILER])


def entry_rows(entries: Entries, kept: Mask, first_row: int, num_tables: int) -> pa.Table:
    """Return the rows of the table of keys, usually one for each document.

    A document with several keys in one table has several rows.

    kept : bool (num_documents,). first_row : the row of the first document.
    """
    order = np.lexsort((entries.table, entries.document))
    document = entries.document[order]
    table = entries.table[order]
    rank = rank_in_run(document, table)  # of a key among the keys of its document in its table
    # A line for each document and rank: document << 32 | rank.
    lines, line = np.unique(document << 32 | rank, return_inverse=True)

    keys = np.zeros((num_tables, len(lines)), np.int64)
    is_missing = np.ones((num_tables, len(lines)), np.bool_)
    keys[table, line] = bigints_of(entries.key[order])
    is_missing[table, line] = False
    columns = {"row": pa.array(first_row + (lines >> 32))}
    for number in range(num_tables):
        columns[f"key_{number}"] = pa.array(keys[number], mask=is_missing[number])
    columns["kept"] = pa.array(kept[lines >> 32])
    return pa.table(columns)
