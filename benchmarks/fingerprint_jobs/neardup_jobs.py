"""The jobs as neardup does them; the words it cuts and the signatures it makes, for the peers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from shared import (
    NEAR,
    SHORT_REPEATS,
    Done,
    Took,
    Words,
    as_matches,
    as_pairs,
    clock,
    index_facts,
    main,
    memory,
    planted_rows,
    read_rows,
)

import neardup
from neardup.candidates.hamming_join import join
from neardup.fingerprints.simhash_documents import describe

_REPEATS = 5
_MOST_CHARACTERS = 2000  # of a text that the plain twin signs
Answers = dict[str, npt.NDArray[Any]]


def words(source: str, options: dict[str, Any]) -> Done:
    """Write texts with the words that SimHash() counts in them, so that peers need not cut."""
    texts = pq.read_table(source, columns=["text"])["text"].combine_chunks().cast(pa.large_string())
    tokens = describe(texts, neardup.SimHash(), with_strings=True).tokens
    assert tokens is not None
    buffers = [
        None,
        pa.py_buffer(np.asarray(tokens.offsets, np.int64)),
        pa.py_buffer(np.asarray(tokens.data)),
    ]
    strings = pa.Array.from_buffers(pa.large_string(), len(tokens.offsets) - 1, buffers)
    lists = pa.LargeListArray.from_arrays(
        pa.array(np.asarray(tokens.document_offsets, np.int64)), strings
    )
    pq.write_table(pa.table({"text": texts, "words": lists}), options["output"])
    return Done([], {}, {})


def texts(source: str, options: dict[str, Any]) -> Done:
    """Fingerprint texts that are in memory: cut them into words, hash these, and let them vote."""
    table = pq.read_table(source, columns=["text"])
    times = []
    neardup.sign(table.slice(0, 200), method=neardup.SimHash())
    for _ in range(_REPEATS):
        found, took = clock(
            lambda: neardup.sign(table, method=neardup.SimHash(), threads=options["threads"])
        )
        times.append(took)
    return Done(times, {"fingerprints": found.values[:, 0]}, {})


def pairs(source: str, options: dict[str, Any]) -> Done:
    """Find all pairs: by the public call, from a table with ids to one of pairs, or by its join
    alone.
    """
    fingerprints = np.load(source)
    threads = options["threads"]
    work = {"call": _find_pairs, "join": _join}[options["by"]]
    small = np.random.default_rng(0).integers(0, 2**64, 300_000, dtype=np.uint64)
    for count in (1000, len(small)):  # both ways through the join, compiled or loaded
        work(small[:count].copy(), threads)
    found, took = clock(lambda: work(fingerprints, threads))
    if options["by"] == "call":
        return Done(
            [took],
            as_pairs(found["left_id"].cast(pa.int64()), found["right_id"].cast(pa.int64())),
            {},
        )
    columns = (
        np.concatenate([np.empty(0, np.int64), *(part[side] for part in found)]) for side in (0, 1)
    )
    return Done([took], as_pairs(*columns), {})


def _find_pairs(fingerprints: Words, threads: int) -> pa.Table:
    table = pa.table({"id": np.arange(len(fingerprints)), "fingerprint": fingerprints})
    return neardup.find_pairs(
        table, method=neardup.SimHash(max_distance=NEAR), threads=threads
    ).pairs


def _join(fingerprints: Words, threads: int) -> list[Any]:
    return list(join(fingerprints, 64, NEAR, threads=threads))


def queries(source: str, options: dict[str, Any]) -> Done:
    """Fill an index, and query it in batches."""
    fingerprints = np.load(source)
    batches = np.load(options["queries"])
    times = []
    ids = np.arange(len(fingerprints))
    small = neardup.HammingIndex(max_distance=NEAR, threads=options["threads"])
    small.add_many(ids[:5000], fingerprints[:5000])
    small.query_many(batches[0, :100])
    before = memory()
    index = neardup.HammingIndex(max_distance=NEAR, threads=options["threads"])
    _, (built, _) = clock(lambda: index.add_many(ids, fingerprints))
    facts = {"build": built, "bytes": float(memory() - before), "queries": batches.shape[1]}
    answers = {}
    for batch in batches:
        found, took = clock(lambda batch=batch: index.query_many(batch))
        times.append(took)
        answers = answers or {"query": found["query"].to_numpy(), "row": found["id"].to_numpy()}
    return Done(times, answers, facts)


def sign_texts(source: str, options: dict[str, Any]) -> Done:
    """Sign texts that are in memory by their 5-grams."""
    column = pq.read_table(source, columns=["text"])["text"]
    times = []
    method = neardup.MinHash(tokens=options["tokens"], ngram=5)
    threads = options["threads"]
    neardup.sign(column.slice(0, 200), method=method, threads=threads)
    signed = None
    for _ in range(3):
        del signed
        signed, took = clock(lambda: neardup.sign(column, method=method, threads=threads))
        times.append(took)
    short = np.flatnonzero(pc.utf8_length(column).to_numpy() < _MOST_CHARACTERS)
    rows = short[:: max(1, len(short) // 20)]
    return Done(times, {"rows": rows, "signatures": signed.values[rows]}, {})


def sign_sets(source: str, options: dict[str, Any]) -> Done:
    """Sign sets of tokens, in an Arrow column or in Python lists."""
    column = (
        pq.read_table(source)["tokens"]
        if options["form"] == "arrow"
        else read_rows(source, "tokens")
    )
    times = []
    neardup.sign(column[:200])
    signed = None
    for _ in range(SHORT_REPEATS):
        del signed
        signed, took = clock(lambda: neardup.sign(column, threads=options["threads"]))
        times.append(took)
    return Done(times, {"signatures": signed.values[planted_rows(options)]}, {})


def signatures(source: str, options: dict[str, Any]) -> Done:
    """Write the signatures of sets: what this and datasketch put into an index."""
    np.save(options["output"], neardup.sign(pq.read_table(source)["tokens"]).values)
    return Done([], {}, {})


def index(source: str, options: dict[str, Any]) -> Done:
    """Fill an LSHIndex, and query it for all: in two calls, or one by one."""
    values = np.load(options["signatures"])
    single = options["form"] == "single"
    _fill(values[:1000], options, single)
    return index_facts(*_fill(values, options, single))


def _fill(
    values: npt.NDArray[np.uint32], options: dict[str, Any], single: bool
) -> tuple[Took, Took, int, Answers]:
    """Return what adding and querying took, the bytes, and the answers."""
    before = memory()
    ids = np.arange(len(values))
    method = neardup.MinHash(num_bands=options["bands"], rows_per_band=options["rows"])
    filled = neardup.LSHIndex(method, threads=options["threads"])
    if not single:
        _, add = clock(lambda: filled.add_many(ids, values))
        size = memory() - before
        found, query = clock(lambda: filled.query_many(values, min_similarity=0.0))
        return add, query, size, {"query": found["query"].to_numpy(), "row": found["id"].to_numpy()}
    _, add = clock(lambda: [filled.add(row, one) for row, one in enumerate(values)])
    size = memory() - before
    listed, query = clock(lambda: [filled.query(one, min_similarity=0.0) for one in values])
    limits = np.cumsum([0, *map(len, listed)])
    return add, query, size, as_matches(limits, [row for one in listed for row, _ in one])


if __name__ == "__main__":
    main(
        words=words,
        texts=texts,
        pairs=pairs,
        queries=queries,
        sign_texts=sign_texts,
        sign_sets=sign_sets,
        signatures=signatures,
        index=index,
    )
