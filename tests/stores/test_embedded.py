"""A store in a folder answers as one of dictionaries and lists does, also after it was opened
again.
"""

from __future__ import annotations

import copy
import errno
import json
import random
import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from neardup.candidates.lookups import Layout
from neardup.errors import StoreError
from neardup.schemas import TIME
from neardup.stores import embedded
from neardup.stores.addresses import open_store
from neardup.stores.base import Changes
from neardup.stores.embedded import row_files
from neardup.stores.embedded import store as store_module
from neardup.stores.embedded.array_files import ArrayFile, ArraySpace
from neardup.stores.embedded.folder import RESERVE, Reserve
from reference.store import ReferenceStore, assert_equal, made_for, random_changes, random_step

LAYOUTS = [Layout((64, 64), 0), Layout((2, 8), 3)]


def test_a_change_whose_record_would_be_too_long_goes_to_files(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "_RECORD_BYTES", 5000)
    rng = random.Random(0)
    path = str(tmp_path / "index")
    store = embedded.create(path, made_for(LAYOUTS[0]))
    expected = ReferenceStore(LAYOUTS[0])
    with store.writing() as writer:
        for size in (90, 3, 200, 0):
            changes = random_changes(expected, rng, size)
            writer.write(changes)
            expected.write(changes)
            assert_equal(writer, expected, rng)
        writer.stage("monday", 1, pa.table({"text": ["long" * 99] * 500}))
        assert len(list(writer.staged("monday"))) > 5
        expected.stage("monday", 1, pa.table({"text": ["long" * 99] * 500}))
    assert store.describe()["journal_records"] <= 1
    assert store.describe()["documents_bytes"] > 5000
    store.close()
    store = embedded.open(path)
    with store.reading() as snapshot:
        assert_equal(snapshot, expected, rng)
    assert store.verify() == []
    store.close()


@pytest.mark.slow
def test_a_batch_of_many_bytes_goes_to_files_at_once(tmp_path):
    """It follows what is in the journal, and what comes after it goes to the journal again."""
    path = str(tmp_path / "index")
    rng = random.Random(0)
    expected = ReferenceStore(LAYOUTS[0])
    store = embedded.create(path, made_for(LAYOUTS[0]), memory_bytes=1 << 17)
    records = []
    for size in (5, 3, 700, 2, 900, 800, 1, 1):
        with store.writing() as writer:
            changes = random_changes(expected, rng, size)
            writer.write(changes)
            expected.write(changes)
            assert_equal(writer, expected, rng)
        records.append(store.describe()["journal_records"])
        with closing(embedded.open(path, read_only=True)) as other, other.reading() as snapshot:
            assert_equal(snapshot, expected, rng)
    assert records == [1, 2, 0, 1, 0, 0, 1, 2]
    store.close()
    with closing(embedded.open(path)) as store, store.reading() as snapshot:
        assert_equal(snapshot, expected, rng)
        assert store.verify() == []


@pytest.mark.slow
def test_large_changes_are_written_a_part_at_a_time_all_or_none(tmp_path):
    folder = tmp_path / "index"
    rng = random.Random(0)
    expected = ReferenceStore(LAYOUTS[0])
    store = embedded.create(str(folder), made_for(LAYOUTS[0]), memory_bytes=1 << 17)
    with store.writing() as writer:
        random_step([writer], expected, rng, 300)
        before = sorted(path.name for path in folder.iterdir())

        def cut() -> Iterator[Changes]:
            later = copy.deepcopy(expected)
            for size in (700, 800):
                yield (part := random_changes(later, rng, size))
                later.write(part)
            raise RuntimeError("of the caller")

        with pytest.raises(RuntimeError, match="of the caller"):
            writer.write_all(cut())
        assert_equal(writer, expected, rng)
        assert sorted(path.name for path in folder.iterdir()) == before

        def whole() -> Iterator[Changes]:
            for size in (0, 700, 800, 0, 900, 1):
                yield (part := replace(random_changes(expected, rng, size), seen_at=9))
                expected.write(part)

        writer.write_all(whole())
        assert_equal(writer, expected, rng)
        assert store.describe()["journal_records"] == 0
    store.close()
    with closing(embedded.open(str(folder))) as store, store.reading() as snapshot:
        assert_equal(snapshot, expected, rng)
        assert store.verify() == []


@pytest.mark.parametrize(
    "failing",
    [
        "write_documents",
        *(
            pytest.param(f"write_{kind}", marks=pytest.mark.slow)
            for kind in ("keys", "seen", "forgotten")
        ),
    ],
)
def test_a_large_batch_that_cannot_be_written_changes_nothing(tmp_path, monkeypatch, failing):
    folder = tmp_path / "index"
    rng = random.Random(0)
    expected = ReferenceStore(LAYOUTS[0])
    store = embedded.create(str(folder), made_for(LAYOUTS[0]), memory_bytes=1 << 17)
    with store.writing() as writer:
        random_step([writer], expected, rng, 300)
    changes = random_changes(expected, rng, 700)
    changes = replace(changes, seen=np.array([1, 400]), seen_at=7, forgotten=np.array([2, 350]))
    before = sorted(path.name for path in folder.iterdir())

    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch, store.writing() as writer:
        patch.setattr(row_files, failing, fail)
        with pytest.raises(StoreError, match="No space left"):
            writer.write(changes)
        assert_equal(writer, expected, rng)
    assert sorted(path.name for path in folder.iterdir()) == before
    with store.writing() as writer:
        writer.write(changes)
        expected.write(changes)
        assert_equal(writer, expected, rng)
    store.close()
    with closing(embedded.open(str(folder))) as store, store.reading() as snapshot:
        assert_equal(snapshot, expected, rng)


def test_records_that_files_contain_are_ignored_and_deleted_a_few_with_each_write(tmp_path):
    path = tmp_path / "index"
    rng = random.Random(0)
    expected = ReferenceStore(LAYOUTS[0])
    store = embedded.create(str(path), made_for(LAYOUTS[0]))
    with closing(sqlite3.connect(path / "index.db")) as database:

        def write(times: int) -> list[int]:
            with store.writing() as writer:
                for _ in range(times):
                    changes = random_changes(expected, rng, 1)
                    writer.write(changes)
                    expected.write(changes)
            return [
                number
                for (number,) in database.execute("SELECT number FROM journal ORDER BY number")
            ]

        assert write(9) == [*range(1, 10)]
        store._maintenance.flush()
        assert store.describe()["journal_records"] == 0
        assert write(1) == [*range(5, 11)]
        assert store.describe()["journal_records"] == 1
        with (
            closing(embedded.open(str(path), read_only=True)) as other,
            other.reading() as snapshot,
        ):
            assert_equal(snapshot, expected, rng)
        assert write(2) == [*range(10, 13)]
        assert write(1) == [*range(10, 14)]
        store._maintenance.flush()
        store.close()
        assert database.execute("SELECT count(*) FROM journal").fetchone() == (0,)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    ("memory_bytes", "sizes"),
    [(1 << 28, (0, 1, 1, 2)), pytest.param(1 << 17, (0, 5, 100, 1, 700), marks=pytest.mark.slow)],
    ids=str,
)
def test_random_changes_are_found_as_in_lists(tmp_path, layout, memory_bytes, sizes):
    rng = random.Random(f"{layout} {sizes}")
    path = str(tmp_path / "index")
    store = embedded.create(path, made_for(layout, {"a": 1}, {"idf": b"x"}), None, memory_bytes)
    expected = ReferenceStore(layout)
    reader = open_store(path, read_only=True)
    for number in range(40 if max(sizes) < 9 else 12):
        with store.writing() as writer:
            random_step([writer], expected, rng, rng.choice(sizes))
            if number % 5 == 0:
                assert_equal(writer, expected, rng)
        if number % 9 == 8:
            store.compact()
        if number % 7 == 3:
            store.close()
            store = embedded.open(path, memory_bytes=memory_bytes)
            assert store.verify() == []
        if number % 4 == 0:
            for source in (store, reader):
                with source.reading() as snapshot:
                    assert_equal(snapshot, expected, rng)
    store.close()
    for read_only in (True, False):
        store = open_store(path, read_only=read_only)
        with store.reading() as snapshot:
            assert_equal(snapshot, expected, rng)
        assert store.settings.meta == {"a": 1}
        assert store.attachment("idf") == b"x"
        assert store.verify() == []
        store.close()
    reader.close()


def read_arrays(path) -> dict[str, np.ndarray]:
    """Return the arrays of a file as docs/index-format.md describes it."""
    data = path.read_bytes()
    magic, version, checksum, length = struct.unpack_from("<8sIII", data)
    assert (magic, version, checksum) == (b"ndarrays", 1, zlib.crc32(data[20 : 20 + length]))
    arrays = {}
    for array in json.loads(data[20 : 20 + length])["arrays"]:
        arrays[array["name"]] = np.frombuffer(data, array["type"], array["size"], array["offset"])
        assert array["checksum"] == zlib.crc32(arrays[array["name"]].tobytes())
    return arrays


def listed_files(folder):
    """Return the files of an index by kind, in their order; the journal must be empty."""
    database = sqlite3.connect(folder / "index.db")
    listed = database.execute("SELECT kind, name FROM files ORDER BY kind, first, stop").fetchall()
    assert database.execute("SELECT count(*) FROM journal").fetchone() == (0,)
    database.close()
    files = {}
    for kind, name in listed:
        files.setdefault(kind, []).append(folder / name)
    return files


def read_forgotten(path):
    bits = np.unpackbits(read_arrays(path)["bits"], bitorder="little")
    return set(np.flatnonzero(bits).tolist())


def read_seen(paths):
    seen = {}
    for path in paths:
        arrays = read_arrays(path)
        seen |= dict(zip(arrays["rows"].tolist(), arrays["times"].tolist(), strict=True))
    return seen


def read_documents(paths):
    return [row for path in paths for row in pa.ipc.open_file(path).read_all().to_pylist()]


def read_entries(path, table):
    """Return the keys and rows of a table, whose cells must be as described."""
    arrays = read_arrays(path)
    keys = arrays[f"keys.{table}"]
    starts = arrays[f"starts.{table}"]
    cells = keys >> np.uint64(65 - len(starts).bit_length())
    assert np.array_equal(np.searchsorted(cells, np.arange(len(starts))), starts)
    return list(zip(keys.tolist(), arrays[f"rows.{table}"].tolist(), strict=True))


def test_an_index_can_be_read_as_its_format_is_described(tmp_path):
    """Documents, times and keys come from SQLite, Arrow and NumPy alone."""
    folder = tmp_path / "index"
    rng = random.Random(0)
    store = embedded.create(str(folder), made_for(LAYOUTS[0]), memory_bytes=1 << 17)
    expected = ReferenceStore(LAYOUTS[0])
    with store.writing() as writer:
        for size in (300, 200, 0, 100, 200):
            changes = random_changes(expected, rng, size)
            writer.write(changes)
            expected.write(changes)
    store._finish_tasks()
    store._maintenance.flush()
    store.close()

    files = listed_files(folder)
    (bits,) = files["forgotten"]
    forgotten = read_forgotten(bits)
    seen = read_seen(files["seen"])
    documents = read_documents(files["documents"])
    assert len(documents) == expected.num_rows
    for row, document in enumerate(documents):
        if row not in forgotten:
            last_seen = document.get("last_seen", document["first_seen"])
            if row in seen:
                last_seen = pa.scalar(seen[row], TIME).as_py()
            assert document["id"] == expected.rows[row]["id"]
            assert last_seen == expected.rows[row]["last_seen"]
    entries = []
    for path in files["keys"]:
        for table in (0, 1):
            entries += [(table, key, row) for key, row in read_entries(path, table)]
    found = [entry for entry in entries if entry[2] not in forgotten]
    assert sorted(found) == sorted(entry for entry in expected.entries if entry[2] in expected.rows)


@pytest.mark.parametrize(
    ("error", "attempts"),
    [
        (sqlite3.OperationalError("database or disk is full"), 3),
        (sqlite3.OperationalError("disk I/O error"), 3),
        (OSError(errno.ENOSPC, "No space left on device"), 3),
        (sqlite3.OperationalError("database is locked"), 1),
        (sqlite3.OperationalError("no such table: files"), 1),
        (PermissionError(errno.EACCES, "Permission denied"), 1),
    ],
    ids=str,
)
def test_the_reserve_is_released_for_a_full_disk_alone(tmp_path, monkeypatch, error, attempts):
    # Of the time of this test, nearly all would be spent on the objects of the tests before it.
    monkeypatch.setattr("neardup.stores.embedded.folder.gc.collect", lambda: 0)
    reserve = Reserve(tmp_path)
    reserve.keep(0, 0)
    tried = []

    def work():
        tried.append(error)
        raise error

    with pytest.raises(type(error)):
        reserve.use(work)
    assert len(tried) == attempts
    assert ((tmp_path / RESERVE).stat().st_size == 0) == (attempts > 1)


def test_more_elements_than_an_array_has_space_for_are_not_written(tmp_path):
    spaces = [ArraySpace("first", "<u4", 4), ArraySpace("second", "<u4", 4)]
    with ArrayFile(tmp_path / "arrays", "keys", 0, 4, spaces) as file:
        file.append("second", np.arange(4))
        file.append("first", np.arange(3))
        before = (tmp_path / "arrays").read_bytes()
        with pytest.raises(AssertionError):
            file.append("first", np.arange(20))
        assert (tmp_path / "arrays").read_bytes() == before
        file.append("first", np.arange(1))
