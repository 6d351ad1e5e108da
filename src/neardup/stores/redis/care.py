"""The care of an index in Redis: its sizes, its soundness, and the memory of forgotten rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.errors import StoreError
from neardup.stores.base import Rows
from neardup.stores.redis import scripts
from neardup.stores.redis.buckets import ENTRY, bucket_of
from neardup.stores.redis.connection import Connection
from neardup.stores.redis.lock import WriterLock
from neardup.stores.redis.rows import alive_of
from neardup.stores.redis.snapshot import LETTERS, RedisSnapshot
from neardup.stores.redis.writer import RedisWriter
from neardup.stores.state import contents_of, hash_ids

_BUCKETS_A_CALL, _ROWS_A_CALL, _SAMPLES = 2_000, 20_000, 200


def describe(connection: Connection, snapshot: RedisSnapshot) -> dict[str, Any]:
    """Return sizes for `info`. Memory is estimated: from some buckets, documents and values, chosen at random."""
    num_rows, chance = snapshot.num_rows, random.Random(0)
    lists, times = -(-num_rows // scripts.DOCUMENTS_A_LIST), -(-num_rows // scripts.TIMES_A_STRING)
    buckets = [(table, count) for table, count in enumerate(snapshot.header.buckets.tolist())]
    names = {
        "tables": [
            _bucket_name(table, count, number) for table, count in buckets for number in _sample(range(count), chance)
        ],
        "documents": [f"d{i}" for i in _sample(range(lists), chance)],
        "times": [f"s{i}" for i in _sample(range(times), chance)],
        **{letter: [f"{letter}{row}" for row in _sample(range(num_rows), chance)] for letter in LETTERS.values()},
    }
    totals = {
        "tables": int(snapshot.header.buckets.sum()), "documents": lists, "times": times,
        **dict.fromkeys(LETTERS.values(), num_rows),
    }  # fmt: skip
    sizes = {kind: _memory_of(connection, keys) * totals[kind] / max(len(keys), 1) for kind, keys in names.items()}
    rest = _memory_of(connection, ["settings", "state", "states", "forgotten", "attachments", "buckets", "runs"])
    with connection.our_errors():
        server, memory = connection.client.info("server"), connection.client.info("memory")
    documents = sizes["documents"] + sizes["times"] + sum(sizes[letter] for letter in LETTERS.values())
    return {
        "store": "redis",
        "server": server["redis_version"],
        "prefix": connection.prefix.decode(),
        "bytes": int(sum(sizes.values()) + rest),
        "documents_bytes": int(documents),
        "tables_bytes": int(sizes["tables"]),
        "server_bytes": memory["used_memory"],
    }


def verify(snapshot: RedisSnapshot) -> list[str]:
    """Return the damage: entries, documents and counts that do not agree."""
    states = snapshot.connection.call("STRLEN", snapshot.connection.key("states"))
    if states != snapshot.num_rows:
        return [f"There are states of {states} rows, but {snapshot.num_rows} rows."]
    rows, alive = np.empty(snapshot.num_rows, np.int64), np.zeros(snapshot.num_rows, np.bool_)
    number, _ = kernels.packed_entries.list_alive(0, alive_of(snapshot.header), rows)
    alive[rows[:number]] = True
    found: list[str] = []
    num_tables = len(snapshot.layout.prefix_bits)
    listed, of_id, of_content = (np.zeros(snapshot.num_rows, np.int64) for _ in range(3))
    id_keys, content_keys = np.zeros(snapshot.num_rows, np.uint64), np.zeros(snapshot.num_rows, np.uint64)
    for table in range(num_tables + 2):
        keys, row, wrong = _entries_of(snapshot, table)
        found += wrong
        keys, row = keys[row < snapshot.num_rows], row[row < snapshot.num_rows]
        numbers = listed if table < num_tables else of_id if table == num_tables else of_content
        numbers += np.bincount(row, minlength=snapshot.num_rows)
        if table >= num_tables:
            (id_keys if table == num_tables else content_keys)[row] = keys
    members = np.zeros(snapshot.num_rows, np.bool_)
    kept, ids = 0, set[str]()
    try:
        for documents in snapshot.scan(_verified_columns(snapshot)):
            row = documents.column("row").to_numpy()
            members[row] = documents.column("member").to_numpy()
            state = documents.column("state").to_numpy()
            kept += int((state == 1).sum())
            ids.update(documents.column("id").to_pylist())
            differ = (
                (state != snapshot.header.states[row])
                | (hash_ids(documents.column("id")) != id_keys[row])
                | (members[row] & (contents_of(documents.column("content"))[:, 0] != content_keys[row]))
            )
            if differ.any():
                found.append(f"{int(differ.sum())} documents from row {row[differ][0]} on differ from their entries.")
    except StoreError as error:
        return [*found, str(error)]
    if (len(ids), (kept, len(ids) - kept)) != (int(alive.sum()), tuple(snapshot.count())):
        found.append(f"{int(alive.sum())} rows, {len(ids)} ids and the numbers {tuple(snapshot.count())} do not agree.")
    wrong_rows = alive & ((of_id != 1) | (of_content != members) | ((listed > 0) != members))
    if wrong_rows.any():
        first = np.flatnonzero(wrong_rows)[0]
        found.append(f"{int(wrong_rows.sum())} documents from row {first} on have no entries, or too many.")
    return found


def compact(writer: RedisWriter, lock: WriterLock) -> None:
    """Drop the entries and documents of forgotten rows, which gives their memory back."""
    header, key = writer.header, writer.connection.key
    gone = np.zeros(header.num_rows, np.bool_)
    gone[: len(header.forgotten_at)] = header.forgotten_at[: header.num_rows] < header.num_forgotten
    if header.dropped == header.num_forgotten and not writer.connection.call("EXISTS", key("forgotten")):
        return
    with lock.guarded() as pipeline:  # from here on, snapshots that still have these rows are refused
        pipeline.hset(key("state"), "dropping", header.num_forgotten)
    entries = header.entries.copy()
    for table in range(len(header.buckets)):
        for names, values in _buckets_of(writer, table):
            with lock.guarded() as pipeline:
                for name, value in zip(names, values, strict=True):
                    listed = np.frombuffer(value, ENTRY)
                    stays = ~gone[listed["row"]]
                    if not stays.all():
                        entries[table] -= int((~stays).sum())
                        data = listed[stays].tobytes()
                        pipeline.set(key(name), data) if data else pipeline.delete(key(name))
                pipeline.hset(key("state"), "entries", entries.astype("<u8").tobytes())
    rows = np.flatnonzero(gone & (header.states[: header.num_rows] != 0)).astype("<u4")
    for begin in range(0, len(rows), _ROWS_A_CALL):
        with lock.guarded() as pipeline:
            pipeline.eval(scripts.DROP, 1, writer.connection.prefix, rows[begin : begin + _ROWS_A_CALL].tobytes())
    with lock.guarded() as pipeline:
        pipeline.delete(key("forgotten"))
        pipeline.hset(key("state"), "dropped", header.num_forgotten)


def _sample(numbers: range, chance: random.Random) -> list[int]:
    return chance.sample(numbers, min(len(numbers), _SAMPLES))


def _memory_of(connection: Connection, names: list[str]) -> int:
    """Return the memory of keys; that of missing ones is 0."""
    with connection.our_errors():
        pipeline = connection.client.pipeline(transaction=False)
        for name in names:
            pipeline.memory_usage(connection.key(name), samples=0)
        return sum(size or 0 for size in pipeline.execute())


def _bucket_name(table: int, count: int, number: int) -> str:
    """Return the name of one of the `count` buckets of a table."""
    level = count.bit_length() - 1
    split = count - (1 << level)
    if number < 2 * split:
        return f"t{table}:{level + 1}:{number}"
    return f"t{table}:{level}:{number - split}"


def _buckets_of(snapshot: RedisSnapshot, table: int) -> Iterator[tuple[list[str], list[bytes]]]:
    """Yield the names and the entries of buckets that have any."""
    count = int(snapshot.header.buckets[table])
    for begin in range(0, count, _BUCKETS_A_CALL):
        names = [_bucket_name(table, count, number) for number in range(begin, min(count, begin + _BUCKETS_A_CALL))]
        values = snapshot.connection.call("MGET", *map(snapshot.connection.key, names))
        there = [(name, value) for name, value in zip(names, values, strict=True) if value]
        yield [name for name, _ in there], [value for _, value in there]


def _entries_of(snapshot: RedisSnapshot, table: int) -> tuple[npt.NDArray[np.uint64], Rows, list[str]]:
    """Return the keys and rows of all entries of a table, and what is wrong with its buckets."""
    found: list[str] = []
    keys, rows = [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    for names, values in _buckets_of(snapshot, table):
        sizes = np.array([len(value) for value in values], np.int64)
        if np.any(sizes % ENTRY.itemsize):
            cut = names[int(np.flatnonzero(sizes % ENTRY.itemsize)[0])]
            found.append(f"The size of the bucket {cut} is no multiple of {ENTRY.itemsize} bytes.")
            continue
        entries = np.frombuffer(b"".join(values), ENTRY)
        key, row = entries["key"].astype(np.uint64), entries["row"].astype(np.int64)
        place = np.array([name.split(":")[1:] for name in names], np.int64).reshape(-1, 2)
        bucket = np.repeat(np.arange(len(names)), sizes // ENTRY.itemsize)
        level, number = bucket_of(np.full(len(key), table), key, snapshot.header.buckets)
        wrong = (level != place[bucket, 0]) | (number != place[bucket, 1])
        wrong[1:] |= (bucket[1:] == bucket[:-1]) & (row[1:] < row[:-1])
        if wrong.any():
            first = names[bucket[wrong][0]]
            found.append(f"The bucket {first} has entries of other buckets, or not in the order of rows.")
        keys.append(key)
        rows.append(row)
    number_of_entries = sum(map(len, rows))
    if number_of_entries != snapshot.header.entries[table]:
        found.append(
            f"The table {table} has {number_of_entries} entries, but {snapshot.header.entries[table]} were written."
        )
    return np.concatenate(keys), np.concatenate(rows), found


def _verified_columns(snapshot: RedisSnapshot) -> list[str]:
    schema = snapshot.columns.read()
    return [] if schema is None else schema.names
