"""A store in a folder answers as one of dictionaries and lists does, also after it was opened again."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from neardup.stores import embedded
from neardup.stores.addresses import open_store
from neardup.stores.base import Layout
from neardup.stores.embedded import store as store_module
from reference.store import ReferenceStore, assert_equal, random_changes, random_step

LAYOUTS = [Layout((64, 64), 0), Layout((2, 8), 3)]


def test_a_large_change_is_several_records_and_one_transaction(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "_RECORD_BYTES", 5000)
    rng, path = random.Random(0), str(tmp_path / "index")
    store, expected = embedded.create(path, {}, LAYOUTS[0]), ReferenceStore(LAYOUTS[0])
    with store.writing() as writer:
        for size in (90, 3, 200, 0):
            changes = random_changes(expected, rng, size)
            writer.write(changes)
            expected.write(changes)
            assert_equal(writer, expected, rng)
        writer.stage("monday", 1, pa.table({"text": ["long" * 99] * 500}))
        assert len(list(writer.staged("monday"))) > 5
        expected.stage("monday", 1, pa.table({"text": ["long" * 99] * 500}))
    assert store.describe()["journal_records"] > 10
    store.close()
    store = embedded.open(path)
    with store.reading() as snapshot:
        assert_equal(snapshot, expected, rng)
    assert store.verify() == []
    store.close()


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(("memory_bytes", "sizes"), [(1 << 28, (0, 1, 1, 2)), (1 << 17, (0, 5, 100, 1, 700))], ids=str)
def test_random_changes_are_found_as_in_lists(tmp_path, layout, memory_bytes, sizes):
    rng, path = random.Random(f"{layout} {sizes}"), str(tmp_path / "index")
    store, expected = embedded.create(path, {"a": 1}, layout, {"idf": b"x"}, memory_bytes), ReferenceStore(layout)
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
        store = open_store(path, read_only)
        with store.reading() as snapshot:
            assert_equal(snapshot, expected, rng)
        assert store.meta == (expected.meta or {"a": 1})
        assert store.attachment("idf") == b"x"
        assert store.verify() == []
        store.close()
    reader.close()
