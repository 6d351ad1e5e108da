"""The parts of a call of an index: the processor time of each, without the parts inside it."""

from __future__ import annotations

import importlib
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

REST = "the call: options, batches, threads"
# The functions of each part, in the order of a call.
PARTS = {
    "text to Arrow": (
        "neardup.index.documents:_batch_of_texts",
        "neardup.api.index:batch_of_text",
    ),
    "features": ("neardup.methods.minhash:MinHashMethod.describe",),
    "signature, keys of bands": (
        "neardup.methods.minhash:MinHashMethod.sketch",
        "neardup.methods.minhash:MinHashMethod.keys_of",
        "neardup.index.open_index:describe",
    ),
    "look-up of ids, contents, buckets": (
        "neardup.index.incoming:Incoming.numbered",
        "neardup.stores.state:View.rows_of_ids",
        "neardup.stores.state:View.rows_of_contents",
        "neardup.stores.state:View.find",
    ),
    "confirmation of candidates": (
        "neardup.index.decisions:measure_stored",
        "neardup.index.collection:measure_stored",
    ),
    "decision": (
        "neardup.index.collection:next_step",
        "neardup.index.collection:query",
    ),
    "row to store": ("neardup.index.collection:_columns", "neardup.index.collection:_table"),
    "record of the journal": (
        "neardup.stores.state:State.check",
        "neardup.stores.embedded.store:encode",
    ),
    "SQLite: write, commit, sync": ("neardup.stores.embedded.database:Database.insert",),
    "tables in memory": (
        "neardup.stores.state:State.prepare",
        "neardup.stores.state:State.apply",
        "neardup.stores.embedded.store:EmbeddedStore._publish",
    ),
    "store: lock, reserve, tasks": ("neardup.stores.embedded.store:EmbeddedStore._write_all",),
    "answer": (
        "neardup.index.collection:_answers",
        "neardup.index.collection:_hits",
        "neardup.api.index:rows_of",
    ),
}


class _Frame:
    """A part under way: its name, and when it began or the part inside it ended."""

    def __init__(self, name: str, begun: float) -> None:
        self.name = name
        self.begun = begun


class Clock:
    """The seconds of each part since the last `take`."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()
        self._frames: list[_Frame] = []

    def wrap(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function whose time is counted for a part."""

        def timed(*arguments: Any, **keywords: Any) -> Any:
            now = time.process_time()
            if self._frames:
                outer = self._frames[-1]
                self._seconds[outer.name] += now - outer.begun
            self._frames.append(_Frame(name, now))
            try:
                return function(*arguments, **keywords)
            finally:
                self._end()

        return timed

    def _end(self) -> None:
        """End the innermost part."""
        now = time.process_time()
        frame = self._frames.pop()
        self._seconds[frame.name] += now - frame.begun
        if self._frames:
            self._frames[-1].begun = now

    def take(self) -> Counter[str]:
        """Return the seconds of each part, and begin again."""
        seconds = self._seconds
        self._seconds = Counter()
        return seconds


class _Place(NamedTuple):
    """A function in its module or class."""

    owner: Any
    name: str


def _place_of(path: str) -> _Place:
    """Return the place of a function. path : "module:name" or "module:Class.name"."""
    module, _, names = path.partition(":")
    *classes, name = names.split(".")
    owner: Any = importlib.import_module(module)
    for each in classes:
        owner = getattr(owner, each)
    return _Place(owner, name)


@contextmanager
def clocked() -> Iterator[Clock]:
    """Count the time of all parts in the block."""
    clock = Clock()
    originals = []
    for part, paths in PARTS.items():
        for path in paths:
            place = _place_of(path)
            function = getattr(place.owner, place.name)
            originals.append((place, function))
            setattr(place.owner, place.name, clock.wrap(part, function))
    try:
        yield clock
    finally:
        # In reverse order: a function may have been wrapped at two places.
        for place, function in reversed(originals):
            setattr(place.owner, place.name, function)


def measure(clock: Clock, call: Callable[[Any], Any], values: list[Any]) -> dict[str, float]:
    """Return the median milliseconds of each part of a call with each of some values."""
    counted = clock.wrap(REST, call)
    calls = []
    clock.take()
    for value in values:
        counted(value)
        calls.append(clock.take())
    names = [*PARTS, REST]
    return {name: 1000 * statistics.median(seconds[name] for seconds in calls) for name in names}
