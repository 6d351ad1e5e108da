"""Iterators that threads run ahead yield their items in order, in bounded memory, and end with
their caller.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup import executor
from neardup.executor import STREAM_BYTES, bytes_ahead, chain_ahead, group_small, map_ordered

MIB = 1 << 20


def numbers(place: int, count: int) -> Iterator[tuple[int, int]]:
    return ((place, number) for number in range(count))


def failing(place: int, count: int) -> Iterator[tuple[int, int]]:
    yield from numbers(place, count)
    raise ValueError("no more")


def running() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == "neardup-read-ahead"}


@pytest.mark.parametrize("threads", [1, 2, 7, 64])
@given(
    counts=st.lists(st.integers(0, 9), max_size=20),
    size=st.sampled_from([0, MIB, 20 * MIB, 1 << 30]),
)
def test_items_come_in_order(threads, counts, size):
    streams = [partial(numbers, *pair) for pair in enumerate(counts)]
    items = chain_ahead(streams, threads, bytes_of=lambda _: size)
    assert list(items) == [
        (place, number) for place, count in enumerate(counts) for number in range(count)
    ]
    assert not running()


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_an_error_comes_after_what_is_before_it(threads):
    found: list[tuple[int, int]] = []
    items = chain_ahead(
        [partial(numbers, 0, 3), partial(failing, 1, 2), partial(numbers, 2, 3)],
        threads,
        bytes_of=len,
    )
    with pytest.raises(ValueError, match="no more"):
        found.extend(items)
    assert found == [*numbers(0, 3), *numbers(1, 2)]
    assert not running()

    def streams() -> Iterator[Callable[[], Iterator[tuple[int, int]]]]:
        yield partial(numbers, 0, 3)
        raise OSError("gone")

    found.clear()
    with pytest.raises(OSError, match="gone"):
        found.extend(chain_ahead(streams(), threads, bytes_of=len))
    assert found == list(numbers(0, 3))
    assert not running()


@pytest.mark.parametrize("threads", [2, 7])
def test_a_caller_that_stops_ends_the_threads(threads):
    endless = [partial(numbers, place, 10**9) for place in range(10)]
    items = chain_ahead(endless, threads, bytes_of=lambda _: MIB)
    assert [next(items) for _ in range(5)] == list(numbers(0, 5))
    items.close()
    assert not running()


@pytest.mark.parametrize("threads", [2, 16])
def test_no_more_waits_than_the_bytes_ahead(threads, monkeypatch):
    monkeypatch.setattr(executor, "_ITEM_BYTES", 0)
    made = [0]
    taken = 0
    most = 0
    lock = threading.Lock()

    def stream() -> Iterator[bytes]:
        for _ in range(100):
            with lock:
                made[0] += 1
            yield b""

    for _ in chain_ahead([stream] * 20, threads, bytes_of=lambda _: MIB):
        taken += 1
        most = max(most, made[0] - taken)
    assert taken == 20 * 100
    # Each of the streams that is open has its share, and one item in the hand of its thread.
    assert most * MIB <= bytes_ahead(threads) + threads * (STREAM_BYTES + MIB)


@given(st.lists(st.integers(0, 5)), st.integers(1, 6))
def test_a_list_of_several_items_has_at_most_the_rows_that_are_allowed(
    rows: list[int], most: int
) -> None:
    groups = list(group_small(rows, lambda _: 1, rows_of=lambda item: item, max_rows=most))
    assert [item for group in groups for item in group] == rows
    assert all(len(group) == 1 or sum(group) <= most for group in groups)
    for before, after in pairwise(groups):
        assert sum(before) + after[0] > most  # as long as allowed


def test_the_calling_thread_works_on_small_items():
    sizes = [1, 10, 2, 20]
    worked = map_ordered(
        sizes, lambda _: threading.get_ident(), 2, bytes_of=lambda size: size, min_bytes=10
    )
    is_caller = [thread == threading.get_ident() for _, thread in worked]
    assert is_caller == [True, False, True, False]


def test_an_error_of_a_small_item_comes_after_the_results_before_it():
    found = map_ordered([1, 0, 2], lambda number: 1 / number, 2, min_bytes=1)
    assert next(found) == (1, 1.0)
    with pytest.raises(ZeroDivisionError):
        next(found)
