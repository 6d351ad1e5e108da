"""The jobs of the durable index: fill it, ask it one by one and in batches, add one by one and in
groups.

Documents come as fingerprints or sets of features, so that no text is described: that is measured
elsewhere.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from shared import Done, Took, main

from neardup import Index, MinHash, SimHash
from neardup.features.described import Features, Lists
from neardup.fingerprints.minhash import sign
from neardup.index import collection
from neardup.index.incoming import Incoming
from neardup.methods.base import Described

_AT_ONCE = 100_000
_SINGLE = 2_000
_BEFORE = 10_000
_SET_SIZE = 32


def simhash(source: str, options: dict[str, Any]) -> Done:
    """Fill an index with fingerprints, found at distance 3."""
    index = _new(options, SimHash(confirm="hamming"), "fingerprints")
    fingerprints = np.load(source, mmap_mode="r")
    batches = np.load(options["queries"], mmap_mode="r")

    def documents(values: npt.NDArray[np.uint64], first: int, prefix: str) -> Incoming:
        mixed = values * np.uint64(0x9E3779B97F4A7C15)
        features = Features(
            np.stack([values, mixed], axis=1), Lists(values, np.arange(len(values) + 1))
        )
        return _incoming(index, features, values.reshape(-1, 1), first, prefix)

    return _measure(index, documents, fingerprints, batches.reshape(-1), options)


def minhash(source: str, options: dict[str, Any]) -> Done:
    """Fill an index with sets of 32 features, made from seeds; half of the queries share 30 with
    one.
    """
    index = _new(options, MinHash(threshold=0.8), "features")
    asked = np.load(options["asked"]).reshape(-1)
    bands = index.opened.rules.method.lookup.bands
    assert bands is not None
    length = bands.num_hashes

    def documents(seeds: npt.NDArray[np.uint64], first: int, prefix: str) -> Incoming:
        near = seeds >> np.uint64(63) != 0
        base = (seeds & np.uint64(2**63 - 1)).astype(np.uint64)
        steps = np.arange(1, _SET_SIZE + 1, dtype=np.uint64) * np.uint64(0xBF58476D1CE4E5B9)
        hashes = _mix(base[:, None] * np.uint64(0x9E3779B97F4A7C15) + steps)
        hashes[near, :2] = _mix(hashes[near, :2])  # J = 30 / 34
        lists = Lists(hashes.reshape(-1), np.arange(len(seeds) + 1, dtype=np.int64) * _SET_SIZE)
        content = np.stack([hashes[:, 0] ^ hashes[:, 5], hashes[:, 1] ^ hashes[:, 9]], axis=1)
        return _incoming(index, Features(content, lists), sign(*lists, length, 1), first, prefix)

    seeds = np.arange(int(options["size"]), dtype=np.uint64)
    far = np.uint64(2**40) + np.arange(len(asked), dtype=np.uint64)
    queries = np.where(asked >= 0, asked.astype(np.uint64) | np.uint64(2**63), far)
    return _measure(index, documents, seeds, queries, options)


def _mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(values ^ (values >> np.uint64(31)), np.uint64)


def _new(options: dict[str, Any], method: Any, storage: str) -> Index:
    shutil.rmtree(options["index"], ignore_errors=True)
    return Index.create(
        options["index"], method=method, storage=storage, expected_documents=int(options["size"])
    )


def _incoming(index: Index, features: Features, sketch: Any, first: int, prefix: str) -> Incoming:
    count = len(sketch)
    ids = pa.array(
        np.char.add(prefix, np.arange(first, first + count).astype("U10")).tolist(),
        pa.large_string(),
    )
    none = pa.nulls(count, pa.large_string())
    texts = pa.array([""] * count, pa.large_string())
    keys = index.opened.rules.method.keys_of(sketch, features)
    return Incoming(
        ids=ids,
        texts=texts,
        payloads=none,
        described=Described(features, keys),
        sketch=sketch,
        sources=none,
    )


def _measure(
    index: Index,
    documents: Callable[..., Incoming],
    values: Any,
    queries: Any,
    options: dict[str, Any],
) -> Done:
    """Do all that is measured, in this order; facts are seconds, or microseconds for
    percentiles.
    """
    facts: dict[str, float] = {}
    adding = 0.0
    _warm(index, documents(values[:1_000], 0, "w"))
    with Memory(options["index"]) as memory:
        for first in range(0, len(values), _AT_ONCE):
            batch = documents(values[first : first + _AT_ONCE], first, "f")
            begun = time.perf_counter()
            with index.opened.store.writing() as writer:
                collection.add(index.opened.rules, writer, batch, 1, if_new=False)
            adding += time.perf_counter() - begun
        facts["add_per_s"] = len(values) / adding
        began = time.perf_counter()
        store: Any = index.opened.store
        store._finish_tasks()
        facts["finish_s"] = time.perf_counter() - began
    facts |= {"adding_mb": memory.most, "disk_gb": memory.disk_bytes / 1e9}
    facts |= _ask(index, documents, queries, "")
    began = time.perf_counter()
    with Memory(options["index"]) as memory:
        index.compact()
    facts |= {"compact_mb": memory.most, "compact_disk_gb": memory.disk_bytes / 1e9}
    facts["compact_s"] = time.perf_counter() - began
    facts |= _ask(index, documents, queries, "compact_")
    answers = _answers(index, documents, queries, options)
    facts["bytes"] = float(index.info()["bytes"]) / len(values)
    rng = np.random.default_rng(7)
    fresh = rng.integers(2**41, 2**62, 4 * _SINGLE, np.uint64)
    facts |= _add_new(index, documents, fresh[:_SINGLE], 1, "single")
    facts |= _add_new(index, documents, fresh[_SINGLE : 2 * _SINGLE], 64, "group")
    index.close()
    begun = time.perf_counter()
    index = Index.open(options["index"])
    facts["open_s"] = time.perf_counter() - begun
    index.close()
    facts["anonymous_mb"] = anonymous_mb()
    times: list[Took] = [(facts["batch_s"], facts["batch_s"])]
    if not options.get("keep"):
        shutil.rmtree(options["index"])
    return Done(times, answers, facts)


def _warm(index: Index, batch: Incoming) -> None:
    """Load the compiled code and all that stays in memory with it."""
    made = Index.create("memory:", method=index.method, storage=index.settings.storage)
    with made as other, other.opened.store.writing() as writer:
        collection.add(other.opened.rules, writer, batch, 1)
        collection.query(other.opened.rules, writer, batch, 10)


class Memory:
    """A thread that samples memory and disk as a context manager.

    most : the memory of the process, not mapped files, above that at the begin, MB. disk_bytes : of
    the index.
    """

    def __init__(self, folder: str) -> None:
        self.most = 0.0
        self.disk_bytes = 0
        self._folder = folder
        self._begin = anonymous_mb()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._stop.wait(0.05):
            self.most = max(self.most, anonymous_mb() - self._begin)
            with contextlib.suppress(FileNotFoundError), os.scandir(self._folder) as files:
                self.disk_bytes = max(self.disk_bytes, sum(file.stat().st_size for file in files))


def anonymous_mb() -> float:
    """Return the memory of this process that is no mapped file, in MB."""
    with open("/proc/self/status") as status:
        anonymous = next(line for line in status if line.startswith("RssAnon"))
    return int(anonymous.split()[1]) / 1024


def _ask(
    index: Index, documents: Callable[..., Incoming], queries: Any, prefix: str
) -> dict[str, float]:
    """Return the percentiles of single queries, of which some were asked before, and the time of a
    query in a batch.
    """
    singles = [
        documents(queries[number : number + 1], 0, "q") for number in range(_BEFORE + _SINGLE)
    ]
    took = []
    hit = []
    for incoming in singles:
        begun = time.perf_counter()
        with index.opened.store.reading() as snapshot:
            hits = collection.query(index.opened.rules, snapshot, incoming, 10)
        took.append(time.perf_counter() - begun)
        if len(hits):
            hit.append(took[-1])
    found = []
    for incoming in singles[_BEFORE:]:
        with index.opened.store.reading() as snapshot:
            probes = index.opened.rules.lookup.probes(incoming.described.keys)
            begun = time.perf_counter()
            snapshot.find(probes, index.opened.rules.max_bucket_size)
            found.append(time.perf_counter() - begun)
    batch = documents(queries[: 10 * 10_000], 0, "q")
    begun = time.perf_counter()
    with index.opened.store.reading() as snapshot:
        for first in range(0, len(batch), 10_000):
            collection.query(
                index.opened.rules,
                snapshot,
                batch.take(np.arange(first, min(first + 10_000, len(batch)))),
                10,
            )
    batch_s = (time.perf_counter() - begun) / len(batch)
    facts = {"batch_s": batch_s, "batch_per_s": 1 / batch_s}
    for name, values in (("query", took[_BEFORE:]), ("hit", hit[_BEFORE // 2 :]), ("find", found)):
        facts[f"{name}_p50_us"], facts[f"{name}_p99_us"] = (
            np.percentile(values, [50, 99]) * 1e6
        ).tolist()
    return {prefix + name: value for name, value in facts.items()}


def _answers(
    index: Index, documents: Callable[..., Incoming], queries: Any, options: dict[str, Any]
) -> dict[str, Any]:
    """Return for the first queries the rows found, as pairs of query and number of the document."""
    batch = documents(queries[:20_000], 0, "q")
    with index.opened.store.reading() as snapshot:
        hits = collection.query(index.opened.rules, snapshot, batch, 1_000)
    rows = np.array([int(id[1:]) for id in hits["id"].to_pylist()], np.int64)
    return {"query": hits["query"].to_numpy(), "row": rows}


def _groups(size: int, by: int) -> Iterator[tuple[int, int]]:
    for first in range(0, size, by):
        yield first, min(first + by, size)


def _add_new(
    index: Index, documents: Callable[..., Incoming], fresh: Any, by: int, name: str
) -> dict[str, float]:
    """Add documents that are new, so many at a time, each time synced."""
    batches = [documents(fresh[first:stop], first, name) for first, stop in _groups(len(fresh), by)]
    took = []
    for batch in batches:
        begun = time.perf_counter()
        with index.opened.store.writing() as writer:
            collection.add(index.opened.rules, writer, batch, 1)
        took.append(time.perf_counter() - begun)
    median, late = np.percentile(took, [50, 99]).tolist()
    return {
        f"{name}_per_s": len(fresh) / sum(took),
        f"{name}_p50_us": median * 1e6,
        f"{name}_p99_us": late * 1e6,
    }


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main(simhash=simhash, minhash=minhash)
