"""An index in a folder survives kills, damage, full disks and a second writer; readers follow the
writer.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import subprocess
import threading
import time
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from neardup.candidates.lookups import Entries
from neardup.errors import StoreError
from neardup.stores import embedded
from neardup.stores.addresses import open_store
from neardup.stores.base import Changes
from neardup.stores.documents import Chunk
from neardup.stores.embedded import row_files
from neardup.stores.embedded.array_files import FileInfo
from neardup.stores.embedded.database import Database
from reference.processes import process
from reference.store import ReferenceStore, assert_equal, made_for, random_step
from reference.writing_process import LAYOUT, changes_of, keys_of

pytestmark = pytest.mark.slow


def rows_of(snapshot) -> list[int]:
    return [row for table in snapshot.scan(["row"]) for row in table.column("row").to_pylist()]


def check_rows(store, rows: list[int], seen: dict[int, int]) -> None:
    """Check that the store has these rows, each found by its id and its keys, and the times at
    which some were seen.
    """
    with store.reading() as snapshot:
        assert rows_of(snapshot) == rows
        ids = pa.array([f"document {row}" for row in rows], pa.large_string())
        assert snapshot.rows_of_ids(ids).tolist() == rows
        keys = np.array([keys_of(row) for row in rows], np.uint64).reshape(-1)
        found = snapshot.find(
            Entries(None, np.tile(np.arange(2, dtype=np.uint16), len(rows)), keys), 5
        )
        assert found.row.tolist() == np.repeat(rows, 2).tolist()
        table = snapshot.take(np.array(rows, np.int64), ["id", "last_seen"])
        assert table.column("id").to_pylist() == ids.to_pylist()
        times = dict(zip(rows, table.column("last_seen").cast(pa.int64()).to_pylist(), strict=True))
        assert {row: times[row] for row in seen if row in times} == {
            row: seen[row] for row in seen if row in times
        }


def kill_while_writing(path: Path, times: int, rng: random.Random) -> None:
    """Kill a writing process at random moments, and check all that it acknowledged."""
    embedded.create(str(path), made_for(LAYOUT)).close()
    stop = 0
    forgotten = set()
    seen = {}
    staged = 0
    for number in range(times):
        with process("-m", "reference.writing_process", path, number) as child:
            child.stdout.readline()
            time.sleep(rng.random() * 0.08)  # a random moment
            child.kill()
            lines = child.stdout.read().split("\n")[:-1]  # the last may be cut short
        for line in lines:
            if line == "staged":
                staged += 2
                continue
            first, stop, *rows = (int(word) for word in line.split())
            forgotten |= set(rows)
            seen |= {first - 1: first}
        store = embedded.open(str(path))
        assert store.verify() == []
        with store.reading() as snapshot:
            rows = rows_of(snapshot)
            assert [row for row in rows if row < stop - 1] == [
                r for r in range(stop - 1) if r not in forgotten
            ]
            # One more change may be there: it was written, and not acknowledged.
            assert snapshot.num_rows - stop in (0, 1, 40)
            seen.pop(stop - 1, None)
            stop = snapshot.num_rows
            forgotten = set(range(stop)) - set(rows)
            assert sum(found.num_documents for found in snapshot.imports()) - staged in (0, 2)
            staged = sum(found.num_documents for found in snapshot.imports())
        check_rows(store, rows, seen)
        store.close()
    assert stop > 5 * times


@pytest.mark.slow
def test_what_was_acknowledged_survives_50_kills(tmp_path):
    kill_while_writing(tmp_path / "index", 50, random.Random(1))


def filled(path: Path, memory_bytes: int = 1 << 17) -> tuple[list[int], ReferenceStore]:
    """Write an index with every kind of file, and some records in its journal."""
    rng = random.Random(0)
    expected = ReferenceStore(LAYOUT)
    store = embedded.create(
        str(path),
        made_for(LAYOUT, {"method": "any"}, {"idf": bytes(range(256))}),
        None,
        memory_bytes,
    )
    with store.writing() as writer:
        for size in (300, 0, 200, 1, 0, 0, 300, 0, 1, 2):
            random_step([writer], expected, rng, size)
        writer.write(Changes(seen=np.array([1, 5]), seen_at=9, forgotten=np.array([2])))
        expected.write(Changes(seen=np.array([1, 5]), seen_at=9, forgotten=np.array([2])))
        writer.stage("monday", 1, pa.table({"id": ["a"]}))
        expected.stage("monday", 1, pa.table({"id": ["a"]}))
    store._finish_tasks()
    store._maintenance.flush()
    with store.writing() as writer:
        random_step([writer], expected, random.Random(3), 5)
    store.close()
    return rng, expected


def answer(path: Path, expected: ReferenceStore) -> str:
    """Return the first problem of an index: at open, or by `verify`; else check its answers and
    return nothing.
    """
    try:
        store = open_store(str(path), read_only=True)
    except StoreError as error:
        return str(error)
    try:
        problems = store.verify()
        if not problems:
            assert store.settings.meta == {"method": "any"}
            assert store.attachment("idf") == bytes(range(256))
            with store.reading() as snapshot:
                assert_equal(snapshot, expected, random.Random(1))
        return "; ".join(problems)
    except StoreError as error:
        return str(error)
    finally:
        store.close()


def positions_to_damage(size: int, thorough: bool) -> list[int]:
    """Return bytes of a file: its ends, and some between."""
    step = max(1, size // (400 if thorough else 8))
    return sorted({0, 8, 12, 20, size - 1, *range(step // 2, size, step)})


@pytest.mark.parametrize(
    "kind",
    [
        "documents",
        *(
            pytest.param(kind, marks=pytest.mark.slow)
            for kind in ("index.db", "keys", "seen", "forgotten")
        ),
    ],
)
def test_a_flipped_byte_is_named_or_does_no_harm(tmp_path, kind, pytestconfig):
    _, expected = filled(tmp_path / "index")
    path = next((tmp_path / "index").glob(f"{kind}*"))
    whole = path.read_bytes()
    quiet = 0
    positions = positions_to_damage(len(whole), pytestconfig.getoption("--thorough"))
    for position in positions:
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        problem = answer(tmp_path / "index", expected)
        assert not problem or kind in problem
        quiet += not problem
    path.write_bytes(whole)
    assert answer(tmp_path / "index", expected) == ""
    unused = len(positions) if kind == "index.db" else 0  # SQLite has bytes that nothing uses
    assert quiet <= unused


@pytest.mark.slow
def test_a_footer_with_any_byte_flipped_is_damage_and_no_other_error(tmp_path):
    filled(tmp_path / "index")
    path = next((tmp_path / "index").glob("documents*"))
    whole = path.read_bytes()
    footer = len(whole) - 10 - int.from_bytes(whole[-10:-6], "little")
    info = FileInfo(path.name, row_files.DOCUMENTS, 0, 300, len(whole), zlib.crc32(whole))
    refused: list[str] = []
    for position in range(footer, len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        try:
            row_files.open_file(path.parent, info, num_tables=2)
        except StoreError as error:
            refused.append(str(error))
    assert len(refused) >= 10  # its magic and its length at least
    assert all(path.name in message for message in refused)


@pytest.mark.parametrize("kind", ["documents", "keys", "seen", "forgotten", "index.db"])
def test_a_truncated_or_missing_file_is_named(tmp_path, kind):
    _, expected = filled(tmp_path / "index")
    path = next((tmp_path / "index").glob(f"{kind}*"))
    whole = path.read_bytes()
    for size in (len(whole) - 1, len(whole) // 2, 20, 1, 0):
        path.write_bytes(whole[:size])
        assert path.name in answer(tmp_path / "index", expected), size
    path.unlink()
    assert path.name in answer(tmp_path / "index", expected)


@pytest.mark.slow
def test_a_file_with_damaged_numbers_is_named_and_ends_no_process(tmp_path):
    filled(tmp_path / "index")
    with process("-m", "reference.damaging_process", tmp_path / "index", 1, 600) as child:
        damaged = child.stdout.read().split("\n")
    assert child.returncode == 0, f"{damaged[-2]} was damaged"


def test_damage_is_not_merged_into_a_file_that_is_whole(tmp_path):
    filled(tmp_path / "index")
    path = max((tmp_path / "index").glob("documents*"), key=lambda path: path.stat().st_size)
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"document 1", b"document 2", 1))
    store = embedded.open(str(tmp_path / "index"))
    with store.writing() as writer:
        writer.write(Changes(forgotten=np.array(rows_of(writer)[::7])))
    with pytest.raises(StoreError, match=rf"{path.name} is damaged: its checksum differs"):
        store.compact()
    assert path.name in " ".join(store.verify())
    store.close()


def test_a_foreign_file_and_a_later_version_are_named(tmp_path):
    _, expected = filled(tmp_path / "index")
    with sqlite3.connect(tmp_path / "index" / "index.db") as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    with pytest.raises(
        StoreError, match=r"index\.db has format 99; this version of neardup reads formats up to 1"
    ):
        embedded.open(str(tmp_path / "index"))
    with sqlite3.connect(tmp_path / "index" / "index.db") as database:
        database.execute("PRAGMA user_version = 0")
    database.close()
    with pytest.raises(StoreError, match=r"index\.db is damaged: its user_version is 0"):
        embedded.open(str(tmp_path / "index"))
    (tmp_path / "other").mkdir()
    with sqlite3.connect(tmp_path / "other" / "index.db") as database:
        database.execute("CREATE TABLE t (x)")
    database.close()
    with pytest.raises(
        StoreError, match=r"index\.db is damaged: it is not the database of an index"
    ):
        embedded.open(str(tmp_path / "other"))
    with pytest.raises(StoreError, match="There is no index at"):
        embedded.open(str(tmp_path / "nothing"))
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(StoreError, match="There is something at"):
        embedded.create(str(tmp_path / "index"), made_for(LAYOUT))
    assert "its user_version is 0" in answer(tmp_path / "index", expected)


def test_the_current_folder_is_no_place_for_an_index_or_its_copy(tmp_path, monkeypatch):
    store = embedded.create(str(tmp_path / "index"), made_for(LAYOUT))
    (tmp_path / "current").mkdir()
    monkeypatch.chdir(tmp_path / "current")
    with pytest.raises(StoreError, match=r"cannot replace the current folder: got \."):
        embedded.create(".", made_for(LAYOUT))
    with pytest.raises(StoreError, match=r"cannot replace the current folder: got \."):
        store.backup(".")
    store.close()


def test_a_folder_of_the_user_is_not_taken_for_an_index_that_was_filled_halfway(tmp_path):
    (tmp_path / "index.partial").mkdir()
    (tmp_path / "index.partial" / "notes.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"There is something at .*index\.partial already"):
        embedded.create(str(tmp_path / "index"), made_for(LAYOUT), lambda store: None)
    assert (tmp_path / "index.partial" / "notes.txt").read_text() == "mine"


def test_a_second_writer_is_refused_and_the_first_is_named(tmp_path):
    path = str(tmp_path / "index")
    store = embedded.create(path, made_for(LAYOUT))
    with pytest.raises(StoreError, match=f"open for writing already, in process {os.getpid()}"):
        embedded.open(path)
    reader = embedded.open(path, read_only=True)
    with pytest.raises(StoreError, match="was opened for reading only"), reader.writing():
        pass
    store.close()
    embedded.open(path).close()
    with pytest.raises(StoreError, match="was closed"), store.reading():
        pass
    reader.close()


READ = """
import sys
from neardup.stores import embedded
store, last = embedded.open(sys.argv[1], read_only=True), -1
print("open", flush=True)
while last < int(sys.argv[2]):
    with store.reading() as snapshot:
        rows = [row for table in snapshot.scan(["row"]) for row in table.column("row").to_pylist()]
        assert snapshot.num_rows >= last and sum(snapshot.count()) == len(rows), (snapshot.count(), len(rows))
        assert len(set(range(snapshot.num_rows)) - set(rows)) * 2 <= snapshot.num_rows
        last = snapshot.num_rows
assert store.verify() == []
print("done")
"""  # noqa: E501


@pytest.mark.slow
def test_readers_in_threads_and_processes_see_consistent_states_while_one_writes(tmp_path):
    path = str(tmp_path / "index")
    rng = random.Random(0)
    failures = []
    stop = 900
    store = embedded.create(path, made_for(LAYOUT), memory_bytes=1 << 17)

    def read() -> None:
        try:
            last = 0
            while last < stop:
                with store.reading() as snapshot:
                    rows = rows_of(snapshot)
                    assert last <= snapshot.num_rows
                    assert sum(snapshot.count()) == len(rows)
                    last = snapshot.num_rows
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    with process("-c", READ, path, stop) as child:
        assert child.stdout.readline() == "open\n"
        for thread in threads:
            thread.start()
        number = 0
        while True:
            with store.writing() as writer:
                if writer.num_rows >= stop:
                    break
                writer.write(changes_of(writer.num_rows, rng.choice([1, 20, 90]), rng))
            number += 1
            if number % 15 == 0:
                store.compact()
        for thread in threads:
            thread.join()
        assert child.stdout.read() == "done\n"
    assert not failures
    store.close()


@pytest.mark.parametrize("kind", ["documents", "keys"])
def test_a_reader_reads_the_list_again_when_a_file_is_replaced_before_it_opens_it(
    tmp_path, monkeypatch, kind
):
    filled(tmp_path / "index")
    writer = embedded.open(str(tmp_path / "index"))
    real = Path.open

    def opened(path: Path, *arguments: object) -> object:
        """Compact the index before the first of its files is opened."""
        if path.name.startswith(kind):
            monkeypatch.setattr(Path, "open", real)
            with writer.writing() as changing:
                changing.write(Changes(forgotten=np.array(rows_of(changing)[::7])))
            writer.compact()
        return real(path, *arguments)

    monkeypatch.setattr(Path, "open", opened)
    reader = embedded.open(str(tmp_path / "index"), read_only=True)
    assert Path.open is real
    with reader.reading() as snapshot, writer.reading() as expected:
        assert rows_of(snapshot) == rows_of(expected)
    assert reader.verify() == []
    reader.close()
    writer.close()


def test_a_backup_while_writing_is_a_whole_state(tmp_path):
    path = tmp_path / "index"
    rng = random.Random(0)
    sizes = []
    store = embedded.create(str(path), made_for(LAYOUT, {"a": 1}, {"idf": b"x"}), None, 1 << 17)
    finished = threading.Event()

    def write() -> None:
        while not finished.is_set():
            with store.writing() as writer:
                writer.write(changes_of(writer.num_rows, 30, rng))

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for number in range(4):
            store.backup(str(tmp_path / f"copy {number}"))
            copy = embedded.open(str(tmp_path / f"copy {number}"))
            assert copy.verify() == []
            with copy.reading() as snapshot:
                sizes.append(snapshot.num_rows)
                assert sum(snapshot.count()) == len(rows_of(snapshot))
            assert (copy.settings.meta, copy.attachment("idf")) == ({"a": 1}, b"x")
            copy.close()
    finally:
        finished.set()
        thread.join()
    assert sizes == sorted(sizes)
    with pytest.raises(StoreError, match=r"There is something at .*copy 0"):
        store.backup(str(tmp_path / "copy 0"))
    store.close()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [
        "copy 0",
        "copy 1",
        "copy 2",
        "copy 3",
        "index",
    ]
    shutil.rmtree(path)
    embedded.open(str(tmp_path / "copy 0")).close()


FULL = """
import resource, sys, random
from neardup.errors import StoreError
from neardup.stores import embedded
from reference.writing_process import changes_of
rng, path = random.Random(0), sys.argv[1]
store = embedded.open(path, memory_bytes=int(sys.argv[3]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
failed = 0
with store.writing() as writer:
    for _ in range(400):
        before = writer.num_rows, writer.count()
        changes = changes_of(writer.num_rows, 20, rng)
        try:
            writer.write(changes)
        except StoreError as error:
            assert (writer.num_rows, writer.count()) == before
            assert "What was acknowledged is stored, and nothing else" in str(error), error
            failed += 1
        else:
            print(before[0], writer.num_rows, *changes.forgotten.tolist(), flush=True)
assert failed > 10
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.close()
"""


SLOW = [
    pytest.param(*case, marks=pytest.mark.slow)
    for case in ((200_000, 1 << 28), (30_000, 1 << 17), (9, 1 << 20))
]


@pytest.mark.slow
@pytest.mark.parametrize(("max_bytes", "memory_bytes"), [(300_000, 1 << 20), *SLOW])
def test_a_full_disk_is_an_error_that_changes_nothing(tmp_path, max_bytes, memory_bytes):
    path = tmp_path / "index"
    embedded.create(str(path), made_for(LAYOUT)).close()
    with process("-c", FULL, path, max_bytes, memory_bytes) as child:
        written = [[int(word) for word in line.split()] for line in child.stdout]
    assert child.returncode == 0
    store = embedded.open(str(path))
    assert store.verify() == []
    forgotten = {row for _, _, *rows in written for row in rows}
    seen = {first - 1: first for first, _, *_ in written}
    stop = written[-1][1] if written else 0
    check_rows(store, [row for row in range(stop) if row not in forgotten], seen)
    with store.writing() as writer:
        writer.write(changes_of(writer.num_rows, 20, random.Random(5)))
    store.close()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 12 MB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", disk], capture_output=True
    )
    if mounted.returncode:
        pytest.skip(f"only root mounts a small file system: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def repeat(call) -> None:
    while True:
        call()


@pytest.mark.slow
@pytest.mark.parametrize("memory_bytes", [1 << 28, 1 << 17])
def test_documents_are_forgotten_and_compacted_on_a_full_disk(small_disk, memory_bytes):
    path = str(small_disk / "index")
    rng = random.Random(0)
    store = embedded.create(path, made_for(LAYOUT), memory_bytes=memory_bytes)
    with (
        store.writing() as writer,
        pytest.raises(StoreError, match="What was acknowledged is stored, and nothing"),
    ):
        repeat(lambda: writer.write(changes_of(writer.num_rows, rng.choice([1, 300, 3000]), rng)))
    rows = rows_of(store._latest)
    store.close()  # without a warning: the journal moves to files in the space of the reserve
    with (
        (small_disk / "filler").open("wb", 0) as file,
        pytest.raises(OSError, match="No space left"),
    ):
        repeat(lambda: file.write(bytes(4096)))
    for forgotten in (rows[:1], rows[1 : len(rows) // 2]):
        store = embedded.open(path, memory_bytes=memory_bytes)
        with store.writing() as writer:
            writer.write(Changes(forgotten=np.array(forgotten, np.int64)))
        store.close()
    store = embedded.open(path)
    store.compact()
    assert store.verify() == []
    assert rows_of(store._latest) == rows[len(rows) // 2 :]
    with store.writing() as writer:
        writer.write(changes_of(writer.num_rows, 300, rng))
    store.close()


@pytest.mark.slow
@pytest.mark.parametrize("failing", ["vacuum", "shorten_log", "drop_records"])
def test_a_call_that_is_committed_does_not_fail_at_close(tmp_path, monkeypatch, failing):
    path = str(tmp_path / "index")
    store = embedded.create(path, made_for(LAYOUT))

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(Database, failing, fail)
    with store.writing() as writer:
        writer.write(changes_of(0, 600, random.Random(0)))
    store._maintenance.flush()
    with pytest.warns(
        UserWarning, match="all its documents are stored. .* database or disk is full"
    ):
        store.close()
    monkeypatch.undo()
    store = embedded.open(path)
    assert rows_of(store._latest) == list(range(600))
    store.close()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write to every folder"
)
def test_an_index_in_a_folder_that_cannot_be_written_is_read(tmp_path):
    _, expected = filled(tmp_path / "index")
    (tmp_path / "index").chmod(0o555)
    assert answer(tmp_path / "index", expected) == ""
    with pytest.raises(StoreError, match="cannot be read or written"):
        embedded.open(str(tmp_path / "index"))
    (tmp_path / "index").chmod(0o755)


def test_a_file_that_exists_is_neither_overwritten_nor_removed(tmp_path):
    path = tmp_path / row_files.file_name(row_files.DOCUMENTS, 1)
    path.write_bytes(b"of another program")
    batch = pa.record_batch({"row": pa.array([0], pa.uint32())})
    with pytest.raises(FileExistsError):
        row_files.write_documents(tmp_path, 1, [Chunk(0, 1, batch)], batch.schema)
    assert path.read_bytes() == b"of another program"
