"""Reads of an index in PostgreSQL: of a transaction that sees one state, or of the writer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.errors import StoreError
from neardup.stores.base import Counts, Entries, Found, Layout, Rows, Run, Snapshot
from neardup.stores.documents import EMPTY_SCHEMA
from neardup.stores.packed_rows import decode_table, unpack_table
from neardup.stores.postgres import statements
from neardup.stores.postgres.connections import Bigints, Session

_SCANNED_ROWS = 2_000
_KEY_BITS = 64
_SIGN = np.uint64(1 << 63)


class State(NamedTuple):
    """num_rows and counts as of a snapshot. fields : of the documents; those that are possible before the first."""

    num_rows: int
    counts: Counts
    fields: dict[str, pa.Field]

    @classmethod
    def of(cls, row: tuple[int, int, int, bytes | None]) -> State:
        """Return the state in a row of `statements.COUNTS`."""
        num_rows, kept, removed, fields = row
        schema = EMPTY_SCHEMA if fields is None else pa.ipc.read_schema(pa.py_buffer(fields))
        return cls(num_rows, Counts(kept, removed), {field.name: field for field in schema})


class PostgresSnapshot(Snapshot):
    """The reads that a transaction, or the writer, makes over one connection."""

    def __init__(self, session: Session, state: State, layout: Layout) -> None:
        self.session, self.state, self.layout = session, state, layout

    @property
    def num_rows(self) -> int:
        return self.state.num_rows

    def find(self, lookups: Entries, limit: int) -> Found:
        parameters: list[Bigints | int] = []
        keys = bigints_of(lookups.key)
        for table, prefix_bits in enumerate(self.layout.prefix_bits):
            chosen = np.flatnonzero(lookups.table == table)
            parameters += [limit + 1, Bigints(chosen), Bigints(keys[chosen])]
            if prefix_bits < _KEY_BITS and self.layout.max_distance:
                rest = np.uint64((1 << (_KEY_BITS - prefix_bits)) - 1)
                parameters.append(Bigints(bigints_of(lookups.key[chosen] & ~rest)))
                parameters.append(Bigints(bigints_of(lookups.key[chosen] | rest)))
            parameters.append(limit + 1)
        numbers, packed = self.session.row(statements.find_statement(self.layout), *parameters)
        entry, values = np.frombuffer(numbers or b"", ">i8"), np.frombuffer(packed or b"", ">i8")
        order = np.lexsort((values, entry))
        entry, values = entry[order].astype(np.int64), values[order].astype(np.int64)
        beyond = values & 2 != 0
        truncated = np.zeros(len(lookups.key), np.bool_)
        truncated[entry[beyond]] = True
        entry, values = entry[~beyond], values[~beyond]
        return Found(entry, values >> 2, values & 1 != 0, truncated)

    def rows_of_ids(self, ids: pa.Array) -> Rows:
        return self._rows_of(statements.IDS, ids.cast(pa.large_binary()).to_pylist())

    def rows_of_contents(self, contents: npt.NDArray[np.uint64]) -> Rows:
        values = np.ascontiguousarray(contents).view("V16").reshape(-1)
        return self._rows_of(statements.CONTENTS, [value.tobytes() for value in values])

    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        if len(rows) == 0:
            return self._table(b"", 0, columns)
        (packed,) = self.session.row(statements.take_statement(columns), Bigints(rows))
        return self._table(packed, len(rows), columns)

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        last = -1
        while self.num_rows:
            packed, size, latest = self.session.row(statements.scan_statement(columns), last, _SCANNED_ROWS)
            if size == 0:
                return
            yield self._table(packed, size, columns)
            last = latest

    def count(self) -> Counts:
        return self.state.counts

    def runs(self) -> list[Run]:
        return [Run(name.decode(), opened, size) for name, opened, size in self.session.rows(statements.RUNS)]

    def staged(self, run: str) -> Iterator[pa.Table]:
        last = 0
        while found := self.session.rows(statements.STAGED, run.encode(), last):
            ((last, data),) = found
            yield decode_table(data)

    def _rows_of(self, statement: str, values: list[bytes]) -> Rows:
        found = np.full(len(values), -1, np.int64)
        if values:
            (packed,) = self.session.row(statement, values)
            pairs = np.frombuffer(packed or b"", ">i8").reshape(-1, 2)
            found[pairs[:, 0]] = pairs[:, 1]
        return found

    def _table(self, packed: bytes | None, num_rows: int, columns: Sequence[str]) -> pa.Table:
        fields = [self.state.fields[name] for name in columns]
        if num_rows == 0:
            return pa.schema(fields).empty_table()
        try:
            return unpack_table(np.frombuffer(packed or b"", np.uint8), num_rows, fields, compact=False)
        except ValueError as error:
            raise StoreError(
                f"Documents are missing or damaged at {self.session.address.shown}: {error}. {num_rows} documents were "
                "asked for by row. Run `neardup index verify`, and restore the database from a backup."
            ) from error


def bigints_of(keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    """Return keys as numbers with a sign, in the same order."""
    return (keys ^ _SIGN).view(np.int64)
