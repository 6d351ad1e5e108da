"""A store in memory answers as one of dictionaries and lists does."""

from __future__ import annotations

import random

import numpy as np
import pytest

from neardup.candidates.lookups import Layout
from neardup.errors import StoreError
from neardup.stores.addresses import create_store, open_store
from neardup.stores.base import Changes
from reference.store import ReferenceStore, assert_equal, document, made_for, random_step, table_of

LAYOUTS = [Layout((64, 64, 64), 0), Layout((2, 8), 3), Layout((0,), 1)]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    "sizes", [(0, 1, 1, 2), pytest.param((0, 5, 300, 1, 700), marks=pytest.mark.slow)], ids=str
)
def test_random_changes_are_found_as_in_lists(layout, sizes):
    rng = random.Random(f"{layout} {sizes}")
    store = create_store("memory:", made_for(layout))
    expected = ReferenceStore(layout)
    for number in range(60 if max(sizes) < 9 else 12):
        with store.writing() as writer:
            random_step([writer], expected, rng, rng.choice(sizes))
            if number % 5 == 0:
                assert_equal(writer, expected, rng)
        if number % 7 == 6:
            store.compact()
        if number % 4 == 0:
            with store.reading() as snapshot:
                assert_equal(snapshot, expected, rng)


def test_a_snapshot_does_not_change_with_the_store():
    rng = random.Random(0)
    store = create_store("memory:", made_for(LAYOUTS[1]))
    expected = ReferenceStore(LAYOUTS[1])
    snapshots = []
    for _ in range(8):
        with store.writing() as writer, store.reading() as snapshot:
            snapshots.append(
                (snapshot, list(snapshot.scan(["row", "last_seen"])), snapshot.count())
            )
            random_step([writer], expected, rng, 90)
        store.compact()
    for snapshot, rows, count in snapshots:
        assert [table.to_pylist() for table in snapshot.scan(["row", "last_seen"])] == [
            t.to_pylist() for t in rows
        ]
        assert snapshot.count() == count


def test_rows_must_count_on_and_columns_stay_the_same():
    store = create_store("memory:", made_for(LAYOUTS[0]))
    rng = random.Random(0)
    with store.writing() as writer:
        with pytest.raises(ValueError, match="rows must count on from 0: got 1 to 1"):
            writer.write(Changes(table_of([document(1, rng)])))
        writer.write(Changes(table_of([document(0, rng)])))
        with pytest.raises(ValueError, match="columns must be those of the store"):
            writer.write(Changes(table_of([document(1, rng)]).drop_columns(["text"])))
        with pytest.raises(ValueError, match="rows must be from 0 to 0: got 1 to 1"):
            writer.write(Changes(forgotten=np.array([1])))
        assert writer.num_rows == 1


def test_attachments_and_meta_are_what_was_given():
    store = create_store(
        "memory:", made_for(LAYOUTS[0], {"method": "simhash"}, {"idf": b"\0bytes"})
    )
    assert store.settings.meta == {"method": "simhash"}
    assert (store.attachment("idf"), store.attachment("other")) == (b"\0bytes", None)
    assert store.verify() == []
    assert store.describe()["bytes"] > 0


def test_a_closed_store_is_refused():
    store = create_store("memory:", made_for(LAYOUTS[0]))
    store.close()
    with pytest.raises(StoreError, match="was closed"), store.reading():
        pass
    with pytest.raises(StoreError, match="cannot be backed up"):
        store.backup("folder")


@pytest.mark.parametrize("address", ["memory:", "ftp://host/index"])
def test_an_address_without_a_store_is_refused_by_name(address):
    with pytest.raises(StoreError, match=f"got {address}|address {address}"):
        open_store(address)
