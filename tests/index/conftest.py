"""Fixtures of the tests of an index: indexes over stores of each kind, and a clock that is moved by
hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from neardup import Index
from reference.index_cases import BIGRAMS, Make


@pytest.fixture(params=["memory", "folder"])
def make(request, tmp_path) -> Iterator[Make]:
    """Return a function that makes an empty index in a store of each kind."""
    opened = []
    numbers = count()

    def make_index(**options) -> Index:
        address = "memory:" if request.param == "memory" else tmp_path / f"{next(numbers)}.index"
        opened.append(Index.create(address, **{"method": BIGRAMS, **options}))
        return opened[-1]

    yield make_index
    for index in opened:
        index.close()


@pytest.fixture
def clock(monkeypatch) -> Callable[[float], None]:
    """Return a function that moves the clock of indexes by seconds."""
    now = [1_800_000_000_000_000]
    for module in ("neardup.api.index", "neardup.index.open_index"):
        monkeypatch.setattr(f"{module}.now", lambda: now[0])

    def move(seconds: float) -> None:
        now[0] += int(seconds * 1_000_000)

    return move
