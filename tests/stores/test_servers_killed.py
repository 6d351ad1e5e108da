"""What was acknowledged survives the end of the client and of the server, and nothing is half
there.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import signal
import threading

import pytest

import servers
from neardup.errors import StoreError
from neardup.stores.addresses import create_store, open_store
from reference.store import made_for
from reference.store_writer import LAYOUT, StoreWriter, assert_whole, rows_after, write_forever

NUMBERS = itertools.count()


@pytest.fixture(params=["postgres", "redis"])
def kind(request):
    return request.param


@pytest.fixture
def address(request, kind):
    return request.getfixturevalue(f"{kind}_server").address(f"killed-{next(NUMBERS)}")


@pytest.fixture
def own_server(kind):
    """Return a server that the test may kill."""
    make, program = {
        "postgres": (servers.Postgres, servers.postgres_program),
        "redis": (servers.Redis, servers.redis_program),
    }[kind]
    with make(program()) as server:
        yield server


@pytest.fixture(scope="module")
def store_writer():
    writer = StoreWriter()
    yield writer
    writer.close()


def wait_a_moment(rng):
    """Wait for a random part of the next changes: the moment of a kill is not to be the same."""
    threading.Event().wait(rng.random() * 0.01)


def kill_writers(address, store_writer, times, rng):
    """Let processes write, and kill each at some moment; check the store each time."""
    create_store(address, made_for(LAYOUT)).close()
    reader = open_store(address, read_only=True)
    acknowledged = 0
    for _ in range(times):
        child = store_writer.start(address)
        for _ in range(rng.randrange(1, 6)):
            acknowledged = int(store_writer.line())
        wait_a_moment(rng)
        os.kill(child, signal.SIGKILL)
        while (line := store_writer.line()) != "ended":
            acknowledged = int(line)
        with reader.reading() as snapshot:
            assert_whole(snapshot, acknowledged)
    assert reader.verify() == []
    reader.close()


class Writing(threading.Thread):
    """Write to a store until this fails.

    acknowledged : the number of rows. enough : set after `wanted` changes. error : of the failure.
    """

    def __init__(self, store, wanted):
        super().__init__()
        self.store = store
        self.wanted = wanted
        self.acknowledged = 0
        self.enough = threading.Event()
        self.error = ""

    def run(self):
        try:
            for number, num_rows in enumerate(write_forever(self.store)):
                self.acknowledged = num_rows
                if number == self.wanted:
                    self.enough.set()
        except StoreError as error:
            self.error = str(error)


def kill_servers(server, times, rng):
    """Write, and kill the server at some moment; check the store when the server is there again."""
    store = create_store(server.address(), made_for(LAYOUT))
    for _ in range(times):
        writing = Writing(store, rng.randrange(1, 9))
        writing.start()
        assert writing.enough.wait(60)
        wait_a_moment(rng)
        server.kill()
        writing.join()
        assert re.match(
            r"The server cannot be reached or ended .* at .*: .*is needed.*Check the ",
            writing.error,
        )
        with pytest.raises(StoreError, match="cannot be reached"):
            open_store(server.address())
        server.start()
        with store.reading() as snapshot:
            assert_whole(snapshot, writing.acknowledged)
        assert store.verify() == []
    store.close()


@pytest.mark.slow
def test_a_client_that_is_killed_leaves_all_that_was_acknowledged_and_nothing_half_written(
    address, store_writer
):
    kill_writers(address, store_writer, 2, random.Random(1))


@pytest.mark.slow
def test_a_server_that_is_killed_has_all_that_was_acknowledged_when_it_is_there_again(own_server):
    kill_servers(own_server, 2, random.Random(2))


@pytest.mark.slow
def test_a_client_is_killed_thirty_times(address, store_writer):
    kill_writers(address, store_writer, 30, random.Random(3))


@pytest.mark.slow
def test_a_server_is_killed_twenty_times(own_server):
    kill_servers(own_server, 20, random.Random(4))


class Reading(threading.Thread):
    """Read a store, and check what is there, until `ended`. states : the number of rows each
    time.
    """

    def __init__(self, store, ended):
        super().__init__()
        self.store = store
        self.ended = ended
        self.states = []
        self.error = None

    def run(self):
        try:
            while not self.ended.is_set():
                with self.store.reading() as snapshot:
                    assert_whole(snapshot, 0)
                    assert sum(snapshot.count()) == len(rows_after(snapshot.num_rows))
                    self.states.append(snapshot.num_rows)
        except BaseException as error:
            self.error = error


@pytest.mark.slow
def test_writers_in_two_processes_take_turns_while_threads_read_whole_states(address, store_writer):
    create_store(address, made_for(LAYOUT)).close()
    child = store_writer.start(address)
    store = open_store(address)
    reader = open_store(address, read_only=True)
    ended = threading.Event()
    theirs = [int(store_writer.line())]
    readings = [Reading(reader, ended) for _ in range(3)]
    for reading in readings:
        reading.start()
    mine = [next(write_forever(store)) for _ in range(10)]
    os.kill(child, signal.SIGKILL)
    while (line := store_writer.line()) != "ended":
        theirs.append(int(line))
    ended.set()
    for reading in readings:
        reading.join()
        assert reading.error is None
        assert reading.states == sorted(reading.states)
    assert not set(mine) & set(theirs)
    assert theirs[0] < mine[-1]
    with reader.reading() as snapshot:
        assert_whole(snapshot, max(mine + theirs))
    assert reader.verify() == []
    store.close()
    reader.close()
