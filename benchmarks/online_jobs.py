"""The peers of online.py: add a text unless a similar one is there, one by one.

    python online_jobs.py TOOL TEXTS.json ANSWERS.json OPTIONS

TOOL is `memory` or `redis` (datasketch's MinHashLSH), or `rocksdb` (band keys in RocksDB, each
batch synced). All make datasketch's signature, and none compares the candidates. The answers are
the id of an earlier text for each, or null.
"""

from __future__ import annotations

import json
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

import numpy as np
from datasketch import MinHash, MinHashLSH

Clock = tuple[float, float]


class Seen(Protocol):
    """The signatures of the texts so far."""

    def find(self, sketch: MinHash) -> str | None:
        """Return the id of a text with a common band."""

    def insert(self, id: str, sketch: MinHash) -> None:
        """Add a text."""

    def fill(self, sketches: Iterable[tuple[str, MinHash]]) -> None:
        """Add many texts, as fast as the tool can."""


class Datasketch:
    """MinHashLSH in memory or in Redis."""

    def __init__(self, bands: int, rows: int, storage: dict[str, Any] | None) -> None:
        options = {} if storage is None else {"storage_config": storage}
        self._lsh = MinHashLSH(num_perm=bands * rows, params=(bands, rows), **options)

    def find(self, sketch: MinHash) -> str | None:
        return min(self._lsh.query(sketch), default=None)

    def insert(self, id: str, sketch: MinHash) -> None:
        self._lsh.insert(id, sketch)

    def fill(self, sketches: Iterable[tuple[str, MinHash]]) -> None:
        with self._lsh.insertion_session(buffer_size=20_000) as session:
            for id, sketch in sketches:
                session.insert(id, sketch)


class RocksDB:
    """A key for each band: its number and its values. The value is the id of the text."""

    def __init__(self, bands: int, rows: int, folder: str) -> None:
        from rocksdict import Rdict, WriteBatch, WriteOptions

        self._bands = bands
        self._rows = rows
        self._store = Rdict(folder)
        self._batch = WriteBatch
        self._synced = WriteOptions()
        self._synced.sync = True

    def _keys(self, sketch: MinHash) -> list[bytes]:
        parts = sketch.hashvalues.reshape(self._bands, self._rows)
        return [struct.pack("B", band) + part.tobytes() for band, part in enumerate(parts)]

    def find(self, sketch: MinHash) -> str | None:
        found = self._store.get(self._keys(sketch))
        return min((id for id in found if id is not None), default=None)

    def insert(self, id: str, sketch: MinHash) -> None:
        batch = self._batch()
        for key in self._keys(sketch):
            batch.put(key, id)
        self._store.write(batch, self._synced)

    def fill(self, sketches: Iterable[tuple[str, MinHash]]) -> None:
        for id, sketch in sketches:
            for key in self._keys(sketch):
                self._store[key] = id


def open_tool(tool: str, options: dict[str, Any], folder: str) -> Seen:
    """Return an empty index of a tool."""
    bands = int(options["bands"])
    rows = int(options["rows"])
    if tool == "rocksdb":
        return RocksDB(bands, rows, folder)
    if tool == "memory":
        return Datasketch(bands, rows, None)
    server = {"host": "127.0.0.1", "port": options["port"]}
    return Datasketch(bands, rows, {"type": "redis", "basename": b"online", "redis": server})


def sketch_of(text: str, num_perm: int, ngram: int) -> MinHash:
    """Return the signature of the word n-grams of a text."""
    words = text.lower().split()
    grams = [" ".join(words[i : i + ngram]).encode() for i in range(len(words) - ngram + 1)]
    sketch = MinHash(num_perm=num_perm)
    sketch.update_batch(grams)
    return sketch


def timed(work: Callable[[], Any], clocks: list[Clock]) -> Any:
    """Return what a function returns; append its seconds of wall and of processor time."""
    wall = time.perf_counter()
    processor = time.process_time()
    result = work()
    clocks.append((time.perf_counter() - wall, time.process_time() - processor))
    return result


class Clocks:
    """The times of the signatures, of additions and of queries."""

    def __init__(self) -> None:
        self.signing: list[Clock] = []
        self.adding: list[Clock] = []
        self.asking: list[Clock] = []


def add_if_new(seen: Seen, id: str, sketch: MinHash) -> str | None:
    """Return the id of a similar text, or None once the text is added."""
    found = seen.find(sketch)
    if found is None:
        seen.insert(id, sketch)
    return found


def measure(seen: Seen, texts: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """Add the texts to an index with random signatures, ask for them, and return the answers."""
    num_perm = options["bands"] * options["rows"]
    permutations = MinHash(num_perm=num_perm).permutations
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2**32, (options["before"], num_perm), np.uint32)
    make = partial(MinHash, permutations=permutations, seed=1, scheme="affine32")
    seen.fill((f"b{number}", make(hashvalues=row)) for number, row in enumerate(values))
    clocks = Clocks()
    answers = []
    for number, text in enumerate(texts):
        sketch = timed(partial(sketch_of, text, num_perm, options["ngram"]), clocks.signing)
        add = partial(add_if_new, seen, str(number), sketch)
        answers.append(timed(add, clocks.adding))
    for text in texts:
        sketch = sketch_of(text, num_perm, options["ngram"])
        timed(partial(seen.find, sketch), clocks.asking)
    return {"answers": answers, **vars(clocks)}


def main() -> None:
    """Run one tool."""
    tool, texts_file, answers_file, text_of_options = sys.argv[1:]
    options = json.loads(text_of_options)
    with open(texts_file) as stream:
        texts = json.load(stream)
    with tempfile.TemporaryDirectory(dir=options["folder"], ignore_cleanup_errors=True) as folder:
        done = measure(open_tool(tool, options, folder), texts, options)
    with open(answers_file, "w") as stream:
        json.dump(done, stream)


if __name__ == "__main__":
    main()
