"""Changes of an index in PostgreSQL: one transaction each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa

from neardup.arrays import Mask, Rows
from neardup.candidates.entries import Entries
from neardup.errors import StoreError
from neardup.schemas import KEPT
from neardup.stores.base import Changes, Counts, Writer, check_changes
from neardup.stores.packed_rows import encode_table, pack_table
from neardup.stores.postgres import statements
from neardup.stores.postgres.connections import bigints
from neardup.stores.postgres.snapshot import PostgresSnapshot, bigints_of


class PostgresWriter(PostgresSnapshot, Writer):
    """The writer of an index: it has the advisory lock of the index on its connection."""

    def write(self, changes: Changes) -> None:
        self.write_all([changes])

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
                f"Another writer changed the index meanwhile at {session.address.shown}: it has no longer "
                f"{self.num_rows} rows. One writer at a time is possible. Repeat the call; nothing was written."
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
        """Delete documents and their keys; return by how much the numbers of kept and of removed documents change."""
        if len(rows) == 0:
            return 0, 0
        kept, removed = self.session.row(statements.FORGET, bigints(rows))
        self.session.execute(statements.FORGET_ENTRIES, bigints(rows))
        return -kept, -removed

    def _add(self, documents: pa.Table, entries: Entries | None, lasting: Mask) -> tuple[int, int]:
        """Insert the lasting documents and their keys; return the number of kept and of removed ones."""
        kept = documents.column("state").to_numpy() == KEPT
        if entries is not None and len(entries.key):
            chosen = lasting[entries.document]
            chosen_entries = Entries(entries.document[chosen], entries.table[chosen], entries.key[chosen])
            self._copy(entry_rows(chosen_entries, kept, self.num_rows, len(self.layout.prefix_bits)), "entries")
        self._copy(documents if lasting.all() else documents.filter(pa.array(lasting)), "documents")
        return int((kept & lasting).sum()), int((~kept & lasting).sum())

    def _copy(self, table: pa.Table, name: str) -> None:
        statement = statements.copy_statement(table.column_names, name)
        self.session.copy(statement, [_HEADER, pack_table(table, compact=False).data.tobytes(), _TRAILER])


_HEADER, _TRAILER = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff"


def entry_rows(entries: Entries, kept: Mask, first_row: int, num_tables: int) -> pa.Table:
    """Return the rows of the table of keys: of a document as many as it has keys in one table, one as a rule.

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
