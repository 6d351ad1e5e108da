"""The stores on servers answer as one of dictionaries and lists does; writers take turns; errors
say what to do.
"""

from __future__ import annotations

import itertools
import json
import random
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest

from neardup.candidates.lookups import Entries, Layout
from neardup.errors import StoreError
from neardup.stores.addresses import create_store, open_store
from neardup.stores.base import Changes
from reference.store import ReferenceStore, assert_equal, document, made_for, random_step, table_of

pytestmark = pytest.mark.slow

LAYOUTS = [Layout((64, 64, 64), 0), Layout((2, 8), 3), Layout((0,), 1)]
LAYOUT = LAYOUTS[0]
NUMBERS = itertools.count()


@pytest.fixture
def address(server):
    """Return an address where no index is."""
    return server.address(f"index-{next(NUMBERS)}")


def one_document(row, **values):
    """Return a change that adds one document with one key in every table."""
    table = table_of([document(row, random.Random(row), member=True, **values)])
    keys = np.full(len(LAYOUT.prefix_bits), 2**63 + row % 7, np.uint64)
    return Changes(
        table, Entries(np.zeros(len(keys), np.int64), np.arange(len(keys), dtype=np.uint16), keys)
    )


@pytest.mark.parametrize(
    "layout",
    [LAYOUT, *(pytest.param(layout, marks=pytest.mark.slow) for layout in LAYOUTS[1:])],
    ids=str,
)
def test_random_changes_are_found_as_in_lists_also_by_who_opens_the_index_later(address, layout):
    rng = random.Random(str(layout))
    store = create_store(address, made_for(layout))
    expected = ReferenceStore(layout)
    for number, size in enumerate((0, 1, 200, 2, 90)):
        with store.writing() as writer:
            for _ in range(3):
                random_step([writer], expected, rng, size)
            if number % 3 == 0:
                assert_equal(writer, expected, rng)
        if number % 4 == 3:
            store.compact()
        if number % 2:
            with store.reading() as snapshot:
                assert_equal(snapshot, expected, rng)
    assert store.verify() == []
    again = open_store(address)
    with again.reading() as snapshot:
        assert_equal(snapshot, expected, rng)
    assert again.settings == store.settings == made_for(layout)
    again.close()
    store.close()


def test_a_document_may_have_many_keys_in_one_table_and_none_in_another(address):
    store = create_store(address, made_for(LAYOUT))
    expected = ReferenceStore(LAYOUT)
    rng = random.Random(3)
    documents = table_of([document(row, rng, member=True) for row in range(3)])
    entries = Entries(
        np.array([0, 0, 0, 1, 2, 2]),
        np.array([1, 1, 2, 0, 2, 2], np.uint16),
        np.array([5, 6, 5, 5, 5, 7], np.uint64),
    )
    lookups = Entries(
        np.arange(9),
        np.repeat(np.arange(3, dtype=np.uint16), 3),
        np.tile(np.array([5, 6, 7], "u8"), 3),
    )
    with store.writing() as writer:
        for one in (writer, expected):
            one.write(Changes(documents, entries))
        for found, wanted in zip(writer.find(lookups, 9), expected.find(lookups, 9), strict=True):
            assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize(
    "id", ["", "\0", "a\0b", "\u00e9\U0001f600", "long " * 5_000, "' OR 1=1 --", "\\x00", "*:{}"]
)
def test_an_id_is_any_text(address, id):
    store = create_store(address, made_for(LAYOUT))
    with store.writing() as writer:
        writer.write(one_document(0, id=id, payload=id, import_name=id, kept_id=id))
        writer.stage(id, 5, pa.table({"id": [id]}))
    with store.reading() as snapshot:
        assert snapshot.rows_of_ids(pa.array([id, f"{id} "], pa.large_string())).tolist() == [0, -1]
        columns = ["id", "payload", "import_name", "kept_id"]
        assert snapshot.take(np.array([0]), columns).to_pylist() == [dict.fromkeys(columns, id)]
        assert [staged.name for staged in snapshot.imports()] == [id]
        assert [table.to_pylist() for table in snapshot.staged(id)] == [[{"id": id}]]
    store.close()


def test_a_snapshot_does_not_change_while_documents_are_added_and_replaced(address):
    store = create_store(address, made_for(LAYOUT))
    other = open_store(address, read_only=True)
    with store.writing() as writer:
        writer.write(one_document(0, id="a"))
        with other.reading() as snapshot:
            replaced = one_document(1, id="a", first_seen=7)
            writer.write(Changes(replaced.documents, replaced.entries, forgotten=np.array([0])))
            ids = pa.array(["a"], pa.large_string())
            assert snapshot.rows_of_ids(ids).tolist() == [0]
            assert snapshot.take(np.array([0]), ["id"]).to_pylist() == [{"id": "a"}]
            lookups = Entries(
                np.arange(2), np.zeros(2, np.uint16), np.array([2**63, 2**63 + 1], np.uint64)
            )
            assert snapshot.find(lookups, 9).row.tolist() == [0]
            assert [table.to_pylist() for table in snapshot.scan(["row"])] == [[{"row": 0}]]
            assert (snapshot.num_rows, sum(snapshot.count())) == (1, 1)
        with other.reading() as snapshot:
            assert snapshot.rows_of_ids(ids).tolist() == [1]
            assert snapshot.find(lookups, 9).row.tolist() == [1]
    other.close()
    store.close()


def test_a_document_is_replaced_by_one_of_the_same_change(address):
    store = create_store(address, made_for(LAYOUT))
    rng = random.Random(2)
    with store.writing() as writer:
        writer.write(one_document(0, id="a"))
        documents = [document(row, rng, id="a", member=True) for row in (1, 2)]
        keys = np.array([2**63, 2**63], np.uint64)
        entries = Entries(np.arange(2), np.zeros(2, np.uint16), keys)
        writer.write(Changes(table_of(documents), entries, forgotten=np.array([0, 1])))
        ids = pa.array(["a"], pa.large_string())
        assert (writer.rows_of_ids(ids).tolist(), writer.num_rows, sum(writer.count())) == (
            [2],
            3,
            1,
        )
        assert writer.find(
            Entries(np.zeros(1, np.int64), np.zeros(1, np.uint16), keys[:1]), 9
        ).row.tolist() == [2]
    assert store.verify() == []
    store.close()


@pytest.mark.slow
def test_rows_of_a_common_key_are_listed_up_to_the_limit_however_many_there_are(address):
    store = create_store(address, made_for(LAYOUT))
    expected = ReferenceStore(LAYOUT)
    rng = random.Random(2)
    documents = table_of([document(row, rng, member=True) for row in range(3_000)])
    entries = Entries(
        np.arange(3_000),
        np.ones(3_000, np.uint16),
        np.where(np.arange(3_000) % 900, 5, 6).astype("u8"),
    )
    lookups = Entries(np.arange(3), np.ones(3, np.uint16), np.array([5, 6, 7], np.uint64))
    with store.writing() as writer:
        for one in (writer, expected):
            one.write(Changes(documents, entries, forgotten=np.arange(1, 2_000, 3)))
        for limit in (1, 4, 1_500, 5_000):
            for found, wanted in zip(
                writer.find(lookups, limit), expected.find(lookups, limit), strict=True
            ):
                assert found.tolist() == wanted.tolist()
    store.compact()
    assert store.verify() == []
    store.close()


def test_settings_and_attachments_come_back(address):
    meta = {"method": "simhash", "nested": [1, None, {"a": "\u00e9\0"}]}
    store = create_store(address, made_for(LAYOUTS[1], meta, {"idf": bytes(range(256)) * 5_000}))
    again = open_store(address)
    assert again.settings == store.settings == made_for(LAYOUTS[1], meta)
    assert (again.attachment("idf"), again.attachment("other")) == (bytes(range(256)) * 5_000, None)
    assert again.durable
    assert json.loads(json.dumps(again.describe()))["bytes"] > 0


def test_writers_take_turns_and_no_row_is_lost_or_doubled(address):
    create_store(address, made_for(LAYOUT)).close()
    stores = [open_store(address) for _ in range(2)]

    def add(store, name):
        for number in range(12):
            with store.writing() as writer:
                row = writer.num_rows
                writer.write(one_document(row, id=f"{name} {number}"))

    threads = [threading.Thread(target=add, args=(stores[i % 2], i)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with stores[0].reading() as snapshot:
        documents = pa.concat_tables(snapshot.scan(["row", "id"])).to_pylist()
    assert [document["row"] for document in documents] == list(range(48))
    assert {document["id"] for document in documents} == {
        f"{i} {number}" for i in range(4) for number in range(12)
    }
    assert stores[0].verify() == []
    for store in stores:
        store.close()


def test_a_change_that_fails_leaves_nothing(address):
    store = create_store(address, made_for(LAYOUT))
    expected = ReferenceStore(LAYOUT)
    rng = random.Random(1)
    with store.writing() as writer:
        random_step([writer], expected, rng, 20)
        bad = one_document(writer.num_rows + 1)
        with pytest.raises(ValueError, match=f"rows must count on from {writer.num_rows}"):
            writer.write(bad)
        assert_equal(writer, expected, rng)
        with pytest.raises(ValueError, match="rows must count on from"):
            writer.write_all([one_document(writer.num_rows), one_document(writer.num_rows)])
        assert_equal(writer, expected, rng)
    with pytest.raises(RuntimeError, match="of the caller"), store.writing() as writer:
        raise RuntimeError("of the caller")
    with store.writing() as writer:
        writer.write(one_document(expected.num_rows))
    assert store.verify() == []
    store.close()


def test_an_index_that_exists_is_not_created_again(address):
    create_store(address, made_for(LAYOUT))
    with pytest.raises(
        StoreError, match=r"exists already: .*needs a name that is free.*choose another name"
    ):
        create_store(address, made_for(LAYOUT))


def test_of_several_calls_at_once_one_creates_the_index_and_compactions_take_turns(address):
    with ThreadPoolExecutor(4) as pool:
        created = [pool.submit(create_store, address, made_for(LAYOUT)) for _ in range(4)]
        errors = [call.exception() for call in created if call.exception()]
        assert len(errors) == 3
        assert all("exists already" in str(error) for error in errors)
        (store,) = (call.result() for call in created if not call.exception())
        with store.writing() as writer:
            writer.write(one_document(0))
        for call in [pool.submit(store.compact) for _ in range(3)]:
            call.result()
    assert store.verify() == []
    store.close()


def test_an_index_that_is_missing_is_named_beside_those_that_exist(server):
    create_store(server.address("there"), made_for(LAYOUT))
    with pytest.raises(
        StoreError, match=r"no index 'missing'.*Indexes there: .*'there'.*neardup index create"
    ):
        open_store(server.address("missing"))


@pytest.mark.parametrize("name", ["News-2026_A", "-", "0", "SELECT", "x" * 47 + "X"])
def test_a_name_of_an_index_may_have_capital_letters_digits_and_hyphens(server, name):
    store = create_store(server.address(name), made_for(LAYOUT))
    with store.writing() as writer:
        writer.write(one_document(0))
    store.compact()
    assert store.describe()["bytes"] > 0
    assert store.verify() == []
    with open_store(server.address(name)).reading() as snapshot:
        assert snapshot.num_rows == 1
    store.close()


@pytest.mark.parametrize("name", ["", "a b", "x" * 49, '"', "'", "a.b", "*", "新闻", "é", "%"])
def test_a_name_of_an_index_is_short_and_plain(server, name):
    with pytest.raises(
        StoreError, match=r"name of the index is not valid: got index=['\"].*1 to 48 letters"
    ):
        create_store(server.address(name), made_for(LAYOUT))


def test_an_index_for_reading_only_is_not_written(address):
    create_store(address, made_for(LAYOUT))
    store = open_store(address, read_only=True)
    for use in (lambda: store.writing().__enter__(), store.compact):
        with pytest.raises(StoreError, match=r"opened for reading only. Open it without read_only"):
            use()


def test_a_store_that_was_closed_is_refused(address):
    store = create_store(address, made_for(LAYOUT))
    store.close()
    for use in (
        lambda: store.reading().__enter__(),
        lambda: store.writing().__enter__(),
        store.verify,
        store.describe,
    ):
        with pytest.raises(StoreError, match="was closed"):
            use()


def test_a_backup_names_the_tool_of_the_server(address):
    with pytest.raises(StoreError, match=r"does not back up .*: got 'copy'.*Run: "):
        create_store(address, made_for(LAYOUT)).backup("copy")
