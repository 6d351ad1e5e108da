"""A store in a folder answers as one of dictionaries and lists does, also after it was opened again."""

from __future__ import annotations

import random

import pytest

from neardup.stores import embedded
from neardup.stores.addresses import open_store
from neardup.stores.base import Layout
from reference.store import ReferenceStore, assert_equal, random_step

LAYOUTS = [Layout((64, 64), 0), Layout((2, 8), 3)]


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
