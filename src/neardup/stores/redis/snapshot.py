"""Reads of a state of an index in Redis."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Bytes, Mask, Rows, Uint16s, Words, mask_of, rank_in_run
from neardup.candidates.lookups import Entries, Found
from neardup.errors import StoreError
from neardup.schemas import KEPT
from neardup.stores.base import Counts, Import, StoreSettings
from neardup.stores.hashed import NUM_HASHED, HashedSnapshot
from neardup.stores.packed_rows import decode_table, unpack_table
from neardup.stores.redis import scripts
from neardup.stores.redis.connection import Connection
from neardup.stores.redis.known_rows import Header, alive_of

LETTERS = {"features": "f", "tags": "g", "text": "x"}
"""Columns with a key for each row that has a value; the others are packed together."""
APART = ("row", "last_seen", *LETTERS)
_PACKED = "packed"  # the answer that contains all other columns
_ROWS_PER_CALL = 4_000
_LARGE_ROWS_PER_CALL = 200
_FIRST_BYTES = kernels.packed_entries.WIDTH * 1024  # of a bucket
_GROWTH = 16
_ALL_BYTES = 2**40


class _Lookups(NamedTuple):
    """Keys to look up. same : uint64, the bits that must be equal."""

    table: Uint16s
    key: Words
    same: Words

    def take(self, chosen: Rows) -> _Lookups:
        return _Lookups(self.table[chosen], self.key[chosen], self.same[chosen])


class _Matches(NamedTuple):
    """Entries that lookups found. lookup : int64, the position of the lookup."""

    lookup: Rows
    key: Words
    row: Rows

    def take(self, chosen: Rows | Mask) -> _Matches:
        return _Matches(self.lookup[chosen], self.key[chosen], self.row[chosen])


def _new_matches(size: int) -> _Matches:
    return _Matches(np.empty(size, np.int64), np.empty(size, np.uint64), np.empty(size, np.int64))


class RedisSnapshot(HashedSnapshot):
    """The rows of one moment.

    Entries and documents are read when they are needed; later ones are ignored.
    """

    def __init__(self, connection: Connection, header: Header, settings: StoreSettings) -> None:
        self.connection = connection
        self.settings = settings
        self._header = header

    @property
    def header(self) -> Header:
        """The state of the index that is read."""
        return self._header

    @property
    def num_rows(self) -> int:
        return self.header.num_rows

    @property
    def prefix_bits(self) -> Rows:
        """The prefix bits of all tables, with the tables of ids and contents."""
        return np.array([*self.settings.layout.prefix_bits, *[64] * NUM_HASHED])

    def find(self, lookups: Entries, limit: int) -> Found:
        matches = self._matches(lookups.table, lookups.key, limit)
        # The limit counts rows of equal keys, but the result is ordered by row: sort twice.
        matches = matches.take(np.lexsort((matches.row, matches.key, matches.lookup)))
        is_listed = rank_in_run(matches.lookup, matches.key) < limit
        truncated = mask_of(matches.lookup[~is_listed], len(lookups.key))
        matches = matches.take(is_listed)
        matches = matches.take(np.lexsort((matches.row, matches.lookup)))
        return Found(matches.lookup, matches.row, self.are_kept(matches.row), truncated)

    def without(self, rows: Rows) -> RedisSnapshot:
        states = self.header.states.copy()
        states[rows] = kernels.packed_entries.GONE
        return RedisSnapshot(self.connection, self.header._replace(states=states), self.settings)

    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        wanted = pa.schema([self.settings.schema.field(name) for name in columns])
        size = _rows_per_call(columns)
        parts = [self._take(rows[i : i + size], wanted) for i in range(0, len(rows), size)]
        return pa.concat_tables(parts) if parts else wanted.empty_table()

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        rows = np.empty(_rows_per_call(columns), np.int64)
        alive = alive_of(self.header)
        begin = 0
        while begin < self.num_rows:
            number, begin = kernels.packed_entries.list_alive(begin, alive, rows)
            if number:
                yield self.take(rows[:number], columns)

    def count(self) -> Counts:
        return self.header.counts

    def imports(self) -> list[Import]:
        found = self.connection.call("HGETALL", self.connection.key("imports"))
        imports = [Import(name.decode(), *json.loads(value)) for name, value in found.items()]
        return sorted(imports, key=lambda staged: (staged.opened, staged.name))

    def staged(self, import_name: str) -> Iterator[pa.Table]:
        name = self.connection.key(f"import:{import_name}")
        index = 0
        while (data := self.connection.call("LINDEX", name, index)) is not None:
            yield decode_table(data)
            index += 1

    def _find_equal(self, table: int, keys: Words, limit: int) -> tuple[Rows, Rows]:
        number = len(self.settings.layout.prefix_bits) + table
        matches = self._matches(np.full(len(keys), number, np.uint16), keys, limit)
        return matches.lookup, matches.row

    def are_kept(self, rows: Rows) -> Mask:
        kept: Mask = self.header.states[rows] == KEPT
        return kept

    def _matches(self, table: Uint16s, key: Words, limit: int) -> _Matches:
        """Return the entries that lookups find; of equal keys, more than `limit` or all."""
        bits = self.prefix_bits[table]
        needs_equal = (bits == 64) | (self.settings.layout.max_distance == 0)
        # A shift by 64 bits is undefined, so tables without prefix bits are set below.
        same = ~((np.uint64(1) << (64 - np.maximum(bits, 1)).astype("u8")) - 1)
        same[bits == 0] = 0
        same[needs_equal] = 2**64 - 1
        lookups = _Lookups(table, key, same)
        found = [_new_matches(0)]
        # Similar keys may be anywhere in a bucket.
        found += self._read(lookups, np.flatnonzero(~needs_equal), _ALL_BYTES, limit)
        # A bucket lists rows in their order, so its beginning has the first rows of a common key.
        found += self._read(lookups, np.flatnonzero(needs_equal), _FIRST_BYTES, limit)
        return _Matches(*(np.concatenate(column) for column in zip(*found, strict=True)))

    def _read(
        self, lookups: _Lookups, chosen: Rows, num_bytes: int, limit: int
    ) -> Iterator[_Matches]:
        """Yield the matches of chosen lookups, reading buckets until there are more than `limit`.

        num_bytes : of each bucket, in the first step; each step reads more.
        """
        begin = 0
        num_found = np.zeros(len(lookups.key), np.int64)
        while len(chosen):
            wanted = lookups.take(chosen)
            sizes, data = self._fetch(wanted, begin, num_bytes)
            matches = self._match(data, sizes, wanted)
            matches = matches._replace(lookup=chosen[matches.lookup])
            yield matches
            num_found += np.bincount(matches.lookup, minlength=len(num_found))
            # A part that is shorter than requested is the end of its bucket.
            has_more = sizes == num_bytes
            chosen = chosen[has_more & (num_found[chosen] <= limit)]
            begin += num_bytes
            num_bytes *= _GROWTH

    def _match(self, data: Bytes, sizes: Rows, lookups: _Lookups) -> _Matches:
        """Return the matches in parts of buckets."""
        width = kernels.packed_entries.WIDTH
        size = len(data) // width
        found = _new_matches(size)
        wanted = kernels.packed_entries.Lookups(
            lookups.key, lookups.same, self.settings.layout.max_distance
        )
        number = kernels.packed_entries.match(
            data, sizes // width, wanted, alive_of(self.header), *found
        )
        return _Matches(found.lookup[:number], found.key[:number], found.row[:number])

    def _fetch(self, lookups: _Lookups, begin: int, num_bytes: int) -> tuple[Rows, Bytes]:
        """Return the sizes and the bytes of the parts of buckets from a byte on."""
        packed = np.empty(len(lookups.key), [("table", ">u2"), ("top", ">u4")])
        packed["table"] = lookups.table
        packed["top"] = lookups.key >> np.uint64(32)
        dropping, sizes, data = self.connection.run(
            scripts.FETCH, packed.tobytes(), begin, num_bytes
        )
        # A compaction began after this state: its rows may be gone.
        if int(dropping) > self.header.num_forgotten:
            raise self._outdated()
        return np.frombuffer(sizes, "<u4").astype(np.int64), np.frombuffer(data, np.uint8)

    def _take(self, rows: Rows, wanted: pa.Schema) -> pa.Table:
        """Return columns of rows, in one round trip."""
        answers = self._ask(rows, wanted.names)
        columns = {"row": pa.array(rows, "uint32")}
        if _PACKED in answers:
            names = [name for name in wanted.names if name not in APART]
            table = self._unpack(answers[_PACKED], len(rows), names)
            columns |= dict(zip(names, table.columns, strict=True))
        if "last_seen" in answers:
            times = pa.py_buffer(answers["last_seen"])
            kind = wanted.field("last_seen").type
            if times.size != len(rows) * kind.byte_width:
                raise self._damaged("a row has no time at which it was last seen")
            columns["last_seen"] = pa.Array.from_buffers(kind, len(rows), [None, times])
        for name in answers.keys() & LETTERS:
            columns[name] = pa.array(answers[name], wanted.field(name).type)
        return pa.Table.from_arrays([columns[name] for name in wanted.names], schema=wanted)

    def _ask(self, rows: Rows, names: Sequence[str]) -> dict[str, Any]:
        """Return the answers of the server for columns, by name or as _PACKED."""
        packed_rows = rows.astype("<u4").tobytes()
        asked = []
        with self.connection.our_errors():
            pipeline = self.connection.client.pipeline(transaction=False)
            if any(name not in APART for name in names):
                pipeline.eval(scripts.DOCUMENTS, 1, self.connection.prefix, packed_rows)
                asked.append(_PACKED)
            if "last_seen" in names:
                pipeline.eval(scripts.TIMES, 1, self.connection.prefix, packed_rows)
                asked.append("last_seen")
            for name in names:
                if name in LETTERS:
                    letter = LETTERS[name]
                    pipeline.mget([self.connection.key(f"{letter}{row}") for row in rows.tolist()])
                    asked.append(name)
            answers = pipeline.execute()
        return dict(zip(asked, answers, strict=True))

    def _unpack(self, data: bytes | int, num_rows: int, names: list[str]) -> pa.Table:
        """Return columns of packed documents. data : a row if the server has no document of it."""
        if isinstance(data, int):
            dropping = self.connection.call("HGET", self.connection.key("state"), "dropping")
            # None if the index was deleted.
            is_outdated = int(dropping or 0) > self.header.num_forgotten
            raise self._outdated() if is_outdated else self._damaged(f"row {data} has no document")
        fields = [field for field in self.settings.schema if field.name not in APART]
        try:
            return unpack_table(np.frombuffer(data, np.uint8), num_rows, fields, True, names)
        except ValueError as error:
            raise self._damaged(str(error)) from error

    def _outdated(self) -> StoreError:
        return StoreError(
            f"The index was compacted while it was read: {self.connection.address.shown}, a state "
            f"with {self.header.num_forgotten} forgotten rows. A state that is read must be later "
            "than the last compaction. Repeat the call."
        )

    def _damaged(self, what: str) -> StoreError:
        return StoreError(
            f"The index is damaged at {self.connection.address.shown}: {what}. Each row that was "
            "not forgotten has a document. Run `neardup index verify`, and restore the server's "
            "files from a backup."
        )


def _rows_per_call(columns: Sequence[str]) -> int:
    return _LARGE_ROWS_PER_CALL if LETTERS.keys() & set(columns) else _ROWS_PER_CALL
