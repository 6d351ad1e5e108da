"""What goes wrong with a server: each error says what, where, and what to do; damage is found."""

from __future__ import annotations

import itertools
import random
import re
import sys
import threading
import time
from contextlib import ExitStack

import numpy as np
import pytest

import servers
from neardup.errors import MissingExtraError, StoreError
from neardup.stores.addresses import create_store, open_store
from neardup.stores.base import Changes
from neardup.stores.servers import parse_server_address
from reference.store import document, made_for, table_of
from reference.store_writer import LAYOUT, assert_whole, change_at

pytestmark = pytest.mark.slow

psycopg = pytest.importorskip(
    "psycopg", reason="no psycopg: install neardup[postgres] to test the store"
)
redis = pytest.importorskip("redis", reason="no redis-py: install neardup[redis] to test the store")

from neardup.stores.postgres import connections  # noqa: E402
from neardup.stores.redis import connection  # noqa: E402

NUMBERS = itertools.count()


@pytest.fixture
def address(server):
    return server.address(f"errors-{next(NUMBERS)}")


@pytest.fixture
def store(address):
    """Return a store with some documents."""
    store = create_store(address, made_for(LAYOUT))
    with store.writing() as writer:
        for _ in range(5):
            writer.write(change_at(writer.num_rows))
    yield store
    store.close()


def name_of(store):
    return store.address.rpartition("=")[2]


def sql(server, store, statement):
    """Change tables of an index behind its back."""
    with psycopg.connect(server.address().partition("?")[0], autocommit=True) as connection:
        connection.execute(f'SET search_path TO "neardup_{name_of(store)}"')
        connection.execute(statement)


def keys_of(server, store):
    """Return a client, and the prefix of the keys of an index."""
    return redis.Redis(port=server.port), f"neardup:{name_of(store)}:"


@pytest.mark.parametrize("scheme", ["postgresql", "redis"])
def test_a_server_that_is_not_there_is_named(scheme):
    pytest.importorskip({"postgresql": "psycopg", "redis": "redis"}[scheme])
    with pytest.raises(
        StoreError, match=rf"cannot be reached .* at {scheme}://me@127.0.0.1:1/x.*Check the address"
    ) as e:
        open_store(f"{scheme}://me:secret@127.0.0.1:1/x")
    assert "secret" not in str(e.value)


def test_a_wrong_password_is_refused_and_a_user_needs_the_right_to_create_a_schema_or_an_empty_one(
    postgres_server,
):
    with psycopg.connect(
        postgres_server.address().partition("?")[0], autocommit=True
    ) as connection:
        connection.execute("CREATE ROLE limited LOGIN PASSWORD 'right'")
        connection.execute("CREATE SCHEMA neardup_given AUTHORIZATION limited")
    with pytest.raises(StoreError, match="no index 'given'") as caught:
        open_store(postgres_server.address("given"))
    assert str(caught.value).count("'given'") == 1  # an empty schema is no index
    with pytest.raises(
        StoreError, match=r"refused the user at postgresql://limited@127.*Name them as in"
    ) as caught:
        open_store(postgres_server.address(user="limited:wrong"))
    assert "wrong" not in str(caught.value)
    with pytest.raises(
        StoreError, match=r"refused a change at .*permission denied.*Use such a user"
    ):
        create_store(postgres_server.address(user="limited:right"), made_for(LAYOUT))
    store = create_store(postgres_server.address("given", user="limited:right"), made_for(LAYOUT))
    with store.writing() as writer:
        writer.write(change_at(0))
    assert store.verify() == []
    store.close()


def test_a_redis_server_with_a_password_wants_it():
    with servers.Redis(servers.redis_program(), "--requirepass", "right") as server:
        right = server.address().replace("//", "//:right@")
        for address in (server.address(), right.replace("right", "wrong")):
            with pytest.raises(
                StoreError, match=r"refused the user at redis://.*Name them as in redis://user"
            ) as caught:
                open_store(address)
            assert ":wrong" not in str(caught.value)
        create_store(right, made_for(LAYOUT)).close()


def test_an_index_of_another_format_is_refused(server, store):
    if isinstance(server, servers.Postgres):
        sql(server, store, "UPDATE settings SET data = '2' WHERE name = 'format'")
    else:
        client, prefix = keys_of(server, store)
        client.hset(f"{prefix}settings", "format", 2)
        client.close()
    with pytest.raises(
        StoreError,
        match=r"of another format: version 2 at .*reads version 1.*create the index again",
    ):
        open_store(store.address)


@pytest.mark.parametrize("name", ["format", "layout"])
def test_an_index_without_one_of_its_settings_is_damaged(server, store, name):
    if isinstance(server, servers.Postgres):
        sql(server, store, f"DELETE FROM settings WHERE name = '{name}'")
    else:
        client, prefix = keys_of(server, store)
        client.hdel(f"{prefix}settings", name)
        client.close()
    with pytest.raises(StoreError, match=rf"is damaged at .*the setting {name} is missing.*Restor"):
        open_store(store.address)


def test_an_index_that_was_dropped_while_it_was_open_is_noticed(server, store):
    if isinstance(server, servers.Postgres):
        sql(server, store, f'DROP SCHEMA "neardup_{name_of(store)}" CASCADE')
        with pytest.raises(
            StoreError, match=r"dropped or changed while it was open at .*Restore them"
        ):
            store.reading().__enter__()
        with pytest.raises(StoreError, match=r"dropped or changed while it was open"):
            store.describe()
    else:
        client, prefix = keys_of(server, store)
        client.delete(*client.keys(f"{prefix}*"))
        client.close()
        with pytest.raises(StoreError, match=r"The index is gone: .*Restore the server's files"):
            store.reading().__enter__()
    # It is not named beside the indexes that are there.
    with pytest.raises(StoreError, match=rf"no index '{name_of(store)}' at .*Indexes there: ") as e:
        open_store(store.address)
    assert str(e.value).count(f"'{name_of(store)}'") == 1


def test_an_index_on_redis_that_was_replaced_by_another_is_noticed(redis_server):
    other = create_store(redis_server.address("replaced"), made_for(LAYOUT))
    with other.reading():
        client, prefix = keys_of(redis_server, other)
        client.delete(*client.keys(f"{prefix}*"))
        client.close()
    create_store(other.address, made_for(LAYOUT)).close()
    with pytest.raises(
        StoreError, match=r"The index is gone: .*open the index again if another has its name now"
    ):
        other.reading().__enter__()
    other.close()


def test_a_writer_that_waits_too_long_is_told_who_is_in_its_way(server, store, monkeypatch):
    monkeypatch.setattr(connection, "WRITER_TIMEOUT_S", 0.1)
    monkeypatch.setitem(connections.SETTINGS, "lock_timeout", "100ms")
    other = open_store(store.address)
    with (
        store.writing(),
        pytest.raises(StoreError, match=r"The index is in use.*one at a time|One writer at a time"),
    ):
        other.writing().__enter__()
    with other.writing() as writer:  # the lock is free again
        writer.write(change_at(writer.num_rows))
    other.close()


def test_a_writer_on_redis_waits_for_its_turn_longer_than_for_an_answer(redis_server):
    address = redis_server.address(f"patient-{next(NUMBERS)}")
    first = create_store(address, made_for(LAYOUT))
    second = open_store(f"{address}&socket_timeout=0.5")

    def write():
        with second.writing() as writer:
            writer.write(change_at(0))

    waiting = threading.Thread(target=write)
    with first.writing():
        waiting.start()
        waiting.join(1)
    waiting.join(30)
    with first.reading() as snapshot:
        assert snapshot.num_rows
    second.close()
    first.close()


def test_an_index_on_postgresql_is_reached_over_a_unix_socket(postgres_server):
    place = f"postgresql:///postgres?host={postgres_server.folder}&port={postgres_server.port}&user=neardup"
    store = create_store(f"{place}&index=socket", made_for(LAYOUT))
    with store.writing() as writer:
        writer.write(change_at(0))
    assert store.verify() == []
    store.close()
    with open_store(postgres_server.address("socket")).reading() as snapshot:
        assert snapshot.num_rows > 0


def test_an_index_on_redis_is_reached_over_a_unix_socket():
    server = servers.Redis(servers.redis_program())
    server.arguments += ("--unixsocket", str(server.folder / "socket"))
    with server:
        store = create_store(f"unix://{server.folder}/socket?index=a", made_for(LAYOUT))
        with store.writing() as writer:
            writer.write(change_at(0))
        store.close()
        with open_store(server.address("a")).reading() as snapshot:
            assert snapshot.num_rows > 0


@pytest.mark.timing
@pytest.mark.parametrize(
    "call",
    ["read", *(pytest.param(call, marks=pytest.mark.slow) for call in ("write", "verify", "open"))],
)
def test_a_server_that_is_frozen_is_not_waited_for(server, monkeypatch, call):
    monkeypatch.setattr(connections, "PATIENCE_S", 0.5)
    place = server.address(f"frozen-{next(NUMBERS)}")
    place += "&connect_timeout=2" if isinstance(server, servers.Postgres) else "&socket_timeout=1"
    store = create_store(place, made_for(LAYOUT))

    def use():
        if call == "read":
            with store.reading() as snapshot:
                snapshot.rows_of_contents(np.zeros((1, 2), np.uint64))
        elif call == "write":
            with store.writing() as writer:
                writer.write(change_at(writer.num_rows))
        elif call == "open":
            open_store(place)
        elif sentences := store.verify():
            raise StoreError(" ".join(sentences))

    use()  # a connection of before is asked first
    began = time.monotonic()
    with (
        server.frozen(),
        pytest.raises(
            StoreError, match=r"cannot be reached or ended the connection at .*repeat the"
        ),
    ):
        use()
    assert time.monotonic() - began < 10
    use()
    assert store.verify() == []
    store.close()


@pytest.mark.timing
def test_a_server_that_freezes_while_a_writer_has_its_turn_ends_the_turn(server, monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE_S", 0.5)
    place = server.address(f"frozen-{next(NUMBERS)}")
    place += "&connect_timeout=2" if isinstance(server, servers.Postgres) else "&socket_timeout=1"
    store = create_store(place, made_for(LAYOUT))
    with ExitStack() as frozen:

        def write():
            with store.writing() as writer:
                frozen.enter_context(server.frozen())
                writer.write(change_at(writer.num_rows))

        began = time.monotonic()
        with pytest.raises(StoreError, match="cannot be reached"):
            write()
        assert time.monotonic() - began < (1.9 if isinstance(server, servers.Redis) else 10)
    with store.writing() as writer:
        writer.write(change_at(writer.num_rows))
    assert store.verify() == []
    store.close()


def test_a_server_that_is_busy_is_waited_for(postgres_server, monkeypatch):
    monkeypatch.setattr(connections, "PATIENCE_S", 0.2)
    session = connections.Session(parse_server_address(postgres_server.address("busy")))
    assert session.row("SELECT 7 FROM pg_sleep(1.5)") == (7,)
    session.close()


def test_a_writer_on_redis_that_lost_its_lock_cannot_write(redis_server):
    store = create_store(redis_server.address("lost"), made_for(LAYOUT))
    client, prefix = keys_of(redis_server, store)
    with store.writing() as writer:
        writer.write(change_at(0))
        client.set(f"{prefix}writer", "another")
        with pytest.raises(
            StoreError, match=r"lost its turn at .*Nothing was written; repeat the call"
        ):
            writer.write(change_at(writer.num_rows))
        assert client.get(f"{prefix}writer") == b"another"
    assert client.get(f"{prefix}writer") == b"another"  # not released by whom it does not belong to
    client.delete(f"{prefix}writer")
    with store.reading() as snapshot:
        assert snapshot.num_rows == change_at(0).documents.num_rows
    assert store.verify() == []
    client.close()
    store.close()


def test_a_waiting_writer_on_redis_is_woken_when_the_lock_is_free(redis_server, monkeypatch):
    monkeypatch.setattr(connection, "LONGEST_WAIT_S", 30)
    stores = [
        create_store(redis_server.address("woken"), made_for(LAYOUT)),
        open_store(redis_server.address("woken")),
    ]
    waits = threading.Event()
    done = threading.Event()

    def write():
        waits.set()
        with stores[1].writing() as writer:
            writer.write(change_at(writer.num_rows))
        done.set()

    with stores[0].writing() as writer:
        thread = threading.Thread(target=write)
        thread.start()
        waits.wait()
        writer.write(change_at(writer.num_rows))
    assert done.wait(10)
    thread.join()
    for store in stores:
        store.close()


@pytest.mark.parametrize(
    ("arguments", "durable", "promise"),
    [
        (
            ("--appendonly", "yes", "--appendfsync", "everysec"),
            True,
            "may lose the changes of the last second",
        ),
        (("--appendonly", "yes", "--appendfsync", "no"), True, "often half a minute"),
        (("--appendonly", "no"), False, "loses all changes since its last snapshot"),
        (
            ("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"),
            False,
            "documents may be lost at any time",
        ),
    ],
)
def test_the_promise_of_redis_is_that_of_its_settings(arguments, durable, promise):
    with servers.Redis(servers.redis_program(), *arguments) as server:
        store = create_store(server.address(), made_for(LAYOUT))
        assert (store.durable, promise in store.promise) == (durable, True)
        store.close()


def test_servers_that_sync_each_change_promise_that_it_survives(store):
    assert store.durable
    assert "Acknowledged changes are on the disk of the server" in store.promise


def test_the_promise_of_postgresql_is_that_of_its_settings(postgres_server):
    def promise_with(options):
        store = open_store(f"{postgres_server.address('promises')}&options={options}")
        store.close()
        return store.durable, store.promise

    create_store(postgres_server.address("promises"), made_for(LAYOUT)).close()
    durable, promise = promise_with("-c%20synchronous_commit%3Doff")
    assert not durable
    assert "may lose the changes of the last second" in promise


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("DELETE FROM entries WHERE row = 1", "1 documents are in no table of keys."),
        ("DELETE FROM documents WHERE row = 1", "1 entries of tables of keys have no document."),
        (
            "UPDATE entries SET kept = NOT kept WHERE row = 1",
            "1 entries of tables of keys have another state",
        ),
        (
            "UPDATE counts SET kept = kept + 2",
            "kept documents differs by 2 from the number that was counted.",
        ),
        ("UPDATE counts SET num_rows = 3", "documents have a row that was never given out."),
        ("INSERT INTO staged VALUES ('a', 1, 'b')", "1 staged tables belong to no import."),
        ("DROP TABLE entries", "The index was dropped or changed while it was open"),
    ],
)
def test_damage_in_postgresql_is_found(postgres_server, damage, found):
    store = create_store(postgres_server.address(f"damaged-{next(NUMBERS)}"), made_for(LAYOUT))
    with store.writing() as writer:
        writer.write(change_at(0))
        writer.write(change_at(writer.num_rows))
    assert store.verify() == []
    sql(postgres_server, store, damage)
    assert found in " ".join(store.verify())
    store.close()


def test_damage_in_redis_is_found(redis_server):
    for damage, found in {
        lambda client, p: client.delete(
            f"{p}d0"
        ): "The index is damaged at .*: row 1 has no document",
        lambda client, p: client.lset(f"{p}d0", 1, b"\1\2\3"): "is damaged",
        lambda client, p: client.lset(
            f"{p}d0", 1, client.lindex(f"{p}d0", 2)
        ): "differ from their entries",
        lambda client, p: client.delete(f"{p}t1:0:0"): "The table 1 has 0 entries",
        lambda client, p: client.append(f"{p}t1:0:0", "abc"): "t1:0:0 is no multiple of 12 bytes",
        lambda client, p: client.append(
            f"{p}t3:0:0", client.getrange(f"{p}t3:0:0", -12, -1)
        ): "The table 3 has",
        lambda client, p: client.append(f"{p}states", b"\1"): "There are states of",
        lambda client, p: client.hincrby(
            f"{p}state", "kept", 1
        ): "numbers of kept and removed documents are",
    }.items():
        store = create_store(redis_server.address(f"damaged-{next(NUMBERS)}"), made_for(LAYOUT))
        with store.writing() as writer:
            writer.write(change_at(0))
            writer.write(change_at(writer.num_rows))
        assert store.verify() == []
        client, prefix = keys_of(redis_server, store)
        damage(client, prefix)
        client.close()
        assert re.search(found, " ".join(store.verify())), found
        store.close()


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        (lambda client, p: client.delete(f"{p}buckets"), "a part of its state is missing"),
        (lambda client, p: client.hdel(f"{p}state", "kept"), "a part of its state is missing"),
        (lambda client, p: client.delete(f"{p}states"), "rows have no state"),
    ],
)
def test_an_index_on_redis_that_lost_keys_is_damaged_not_read_beyond_its_rows(
    redis_server, damage, found
):
    store = create_store(redis_server.address(f"lost-{next(NUMBERS)}"), made_for(LAYOUT))
    with store.writing() as writer:
        for _ in range(5):
            writer.write(change_at(writer.num_rows))
    store.close()
    client, prefix = keys_of(redis_server, store)
    damage(client, prefix)
    client.close()
    store = open_store(store.address)
    with pytest.raises(StoreError, match=rf"The index is damaged at redis://.*{found}.*Restore"):
        store.reading().__enter__()
    store.close()


@pytest.mark.parametrize(
    ("pattern", "column", "found"),
    [("*", "id", "row 0 has no document"), ("s*", "last_seen", "a row has no time")],
)
def test_a_row_on_redis_whose_keys_were_deleted_after_the_state_was_read_is_damaged(
    redis_server, pattern, column, found
):
    store = create_store(redis_server.address(f"taken-{next(NUMBERS)}"), made_for(LAYOUT))
    with store.writing() as writer:
        writer.write(change_at(0))
    client, prefix = keys_of(redis_server, store)
    with store.reading() as snapshot:
        client.delete(*client.keys(f"{prefix}{pattern}"))
        with pytest.raises(StoreError, match=rf"The index is damaged at redis://.*{found}"):
            snapshot.take(np.array([0]), [column])
    client.close()
    store.close()


def test_an_answer_of_redis_is_not_used_if_another_thread_has_forgotten_the_rows_before_it(
    redis_server, monkeypatch
):
    store = create_store(redis_server.address("forgotten-rows"), made_for(LAYOUT))
    with store.writing() as writer:
        writer.write(change_at(0))
    known = store._known
    rows = known.read().num_rows
    header_of = known._header_of

    def after_another_thread(*arguments):
        monkeypatch.setattr(known, "_header_of", header_of)
        known._reset(num_forgotten=0)  # as for a new connection
        return header_of(*arguments)

    monkeypatch.setattr(known, "_header_of", after_another_thread)
    header = known.read()
    assert header.num_rows == rows
    assert len(header.states) >= rows
    store.close()


def test_compaction_on_redis_gives_memory_back_and_refuses_states_from_before(redis_server):
    store = create_store(redis_server.address("compacted"), made_for(LAYOUT))
    reader = open_store(store.address, read_only=True)
    with store.writing() as writer:
        for _ in range(60):
            writer.write(change_at(writer.num_rows))
        rows = np.concatenate(
            [table.column("row").to_numpy() for table in writer.scan(["row"])]
        ).astype(np.int64)
    before = store.describe()["bytes"]
    with reader.reading() as old:
        with store.writing() as writer:
            writer.write(Changes(forgotten=rows[:-5]))
        assert old.take(rows, ["row"]).num_rows == len(rows)
        assert old.take(rows[:3], ["id"]).num_rows == 3
        store.compact()
        with pytest.raises(StoreError, match=r"compacted while it was read.*Repeat the call"):
            old.take(rows[:3], ["id"])
        with pytest.raises(StoreError, match=r"compacted while it was read"):
            old.rows_of_contents(np.zeros((1, 2), np.uint64))
    with reader.reading() as snapshot:
        assert sum(table.num_rows for table in snapshot.scan(["id"])) == 5
    assert store.describe()["bytes"] < before / 2
    assert store.verify() == reader.verify() == []
    reader.close()
    store.close()


def test_a_compaction_on_redis_that_broke_off_goes_on(redis_server, monkeypatch):
    def break_off(self, size=0):
        nonlocal transactions
        transactions -= 1
        if transactions < 0:
            raise RuntimeError("broken off")
        return whole(self, size)

    whole = connection.WriterLock.guarded
    for number in itertools.count():
        store = create_store(redis_server.address(f"broken-{number}"), made_for(LAYOUT))
        with store.writing() as writer:
            for _ in range(6):
                writer.write(change_at(writer.num_rows))
        monkeypatch.setattr(connection.WriterLock, "guarded", break_off)
        transactions = number
        broken = False
        try:
            store.compact()
        except RuntimeError:
            broken = True
        monkeypatch.undo()
        with store.reading() as snapshot:
            assert_whole(snapshot, 0)
        assert store.verify() == []
        with store.writing() as writer:
            writer.write(change_at(writer.num_rows))
        store.compact()
        with open_store(store.address).reading() as snapshot:
            assert_whole(snapshot, 0)
        assert store.verify() == []
        store.close()
        if not broken:
            break
    assert number > 3


def test_rows_that_a_redis_server_lost_are_not_taken_for_those_that_came_later():
    with servers.Redis(servers.redis_program(), "--appendonly", "no") as server:
        store = create_store(server.address(), made_for(LAYOUT))
        with store.writing() as writer:
            writer.write(change_at(0))
        client, _ = keys_of(server, store)
        client.save()
        client.close()
        with store.writing() as writer:
            for _ in range(4):
                writer.write(change_at(writer.num_rows))
        server.kill()
        server.start()
        other = open_store(server.address())
        with other.writing() as writer:
            assert writer.num_rows == change_at(0).documents.num_rows
            states = []
            for _ in range(30):
                row = writer.num_rows
                documents = table_of([document(row, random.Random(f"later {row}"), member=True)])
                states += documents.column("state").to_pylist()
                writer.write(Changes(documents))
        with store.reading() as snapshot:
            assert snapshot.take(np.arange(1, 31), ["state"]).column("state").to_pylist() == states
            assert snapshot.header.states[1:31].tolist() == states
        other.close()
        store.close()


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("redis://h:1/0", ("redis://h:1/0", "index", "redis://h:1/0")),
        ("redis://u:p@h/2?index=a", ("redis://u:p@h/2", "a", "redis://u@h/2?index=a")),
        (
            "postgresql:///db?host=/var/run&index=a",
            ("postgresql:///db?host=/var/run", "a", "postgresql:///db?host=/var/run&index=a"),
        ),
        (
            "unix:///tmp/redis.sock?db=1",
            ("unix:///tmp/redis.sock?db=1", "index", "unix:///tmp/redis.sock?db=1"),
        ),
        (
            "postgresql://h/db?password=p&index=a_b-1&sslmode=require",
            (
                "postgresql://h/db?password=p&sslmode=require",
                "a_b-1",
                "postgresql://h/db?password=...&index=a_b-1&sslmode=require",
            ),
        ),
        (
            "postgresql:///db?user=a+b&index=x&options=-c%20jit%3Doff",
            (
                "postgresql:///db?user=a+b&options=-c%20jit%3Doff",
                "x",
                "postgresql:///db?user=a+b&index=x&options=-c%20jit%3Doff",
            ),
        ),
    ],
)
def test_an_address_names_a_server_and_an_index_and_is_shown_without_its_password(
    address, expected
):
    assert parse_server_address(address) == expected


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("mysql://ada:secret@host/db?password=secret", r"No store is known .*mysql://ada@host/db"),
        ("redis://:secret@[::1/0", r"The address is no URL: got redis://@\[::1/0.*Correct it"),
        ("postgresql://ada:sec#ret@host/db", r"contains a #.*Write %23"),
        ("rediss://127.0.0.1:1/0?ssl_cert_reqs=x", r"is not one of a Redis server: .*Correct it"),
        ("redis://127.0.0.1:1/0?retries=2", r"is not one of a Redis server: .*'retries'.*Correct"),
    ],
)
def test_an_address_that_no_store_has_is_named_without_its_password(address, message):
    with pytest.raises(StoreError, match=message) as caught:
        open_store(address)
    assert "sec" not in str(caught.value)


def test_an_address_of_redis_cannot_decode_answers_or_repeat_calls(redis_server):
    address = redis_server.address(f"options-{next(NUMBERS)}")
    store = create_store(f"{address}&decode_responses=True&retry=3", made_for(LAYOUT))
    with store.writing() as writer:
        writer.write(change_at(0))
    assert store.verify() == []
    store.close()


@pytest.mark.parametrize(("scheme", "package"), [("postgresql", "psycopg"), ("redis", "redis")])
def test_a_package_that_is_missing_is_named_with_the_command_that_installs_it(
    monkeypatch, scheme, package
):
    monkeypatch.setitem(sys.modules, package, None)
    extra = {"postgresql": "postgres"}.get(scheme, scheme)
    with pytest.raises(MissingExtraError, match=rf'pip install "neardup\[{extra}\]"'):
        open_store(f"{scheme}://host/0")


def test_a_full_redis_server_refuses_a_change_and_keeps_the_index():
    def fill(writer):
        while writer.num_rows < 10**5:
            change = change_at(writer.num_rows)
            writer.write(change)
            writer.stage("a", 1, change.documents)

    with servers.Redis(servers.redis_program()) as server:
        store = create_store(server.address(), made_for(LAYOUT))
        client, _ = keys_of(server, store)
        client.config_set("maxmemory", client.info("memory")["used_memory"] + 200_000)
        with (
            store.writing() as writer,
            pytest.raises(StoreError, match=r"no memory left at .*Raise maxmemory"),
        ):
            fill(writer)
        client.config_set("maxmemory", 0)
        client.close()
        assert store.verify() == []
        with store.writing() as writer:
            writer.write(change_at(writer.num_rows))
        store.close()
