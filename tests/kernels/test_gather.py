"""Rows gathered from chunks are those that Arrow takes, whatever the chunks are like."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from neardup import kernels
from neardup.errors import StoreError
from neardup.stores.documents import Chunk, Documents, gather, selection_of

SCHEMA = pa.schema(
    [
        ("row", pa.uint32()),
        ("id", pa.large_string()),
        ("flag", pa.bool_()),
        ("content", pa.binary(16)),
        ("sketch", pa.large_binary()),
        ("first_seen", pa.timestamp("us", tz="UTC")),
        ("last_seen", pa.timestamp("us", tz="UTC")),
        ("score", pa.float64()),
        ("number", pa.uint16()),
    ]
)
NARROW = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


def random_column(kind: pa.DataType, size: int, rng: random.Random) -> pa.Array:
    values = {
        pa.uint32(): lambda: rng.randrange(2**32),
        pa.uint16(): lambda: rng.randrange(2**16),
        pa.large_string(): lambda: "é" * rng.randrange(9),
        pa.large_binary(): lambda: rng.randbytes(rng.choice([0, 1, 7, 8, 9, 300])),
        pa.bool_(): lambda: rng.random() < 0.5,
        pa.binary(16): lambda: rng.randbytes(16),
        pa.float64(): rng.random,
    }.get(kind, lambda: rng.randrange(2**40))
    nulls = rng.choice([0, 0, 0.3, 1])
    return pa.array([None if rng.random() < nulls else values() for _ in range(size)], kind)


def random_chunk(first: int, rng: random.Random) -> tuple[Chunk, dict[int, dict]]:
    """Return a chunk, and its documents by row."""
    rows = [first + i for i in range(rng.randrange(1, 20)) if rng.random() < 0.7 or i == 0]
    rows = rows if rng.random() < 0.5 else list(range(first, rows[-1] + 1))
    columns = {field.name: random_column(field.type, len(rows), rng) for field in SCHEMA}
    columns["row"] = pa.array(rows, pa.uint32())
    unchanged = rng.random() < 0.3
    if unchanged:
        columns["last_seen"] = columns["first_seen"]
    documents = pa.table(columns, schema=SCHEMA).to_pylist()
    stored = {}
    for name, column in columns.items():
        narrow = (
            column.cast(NARROW[column.type])
            if column.type in NARROW and rng.random() < 0.5
            else column
        )
        begin = rng.randrange(9)
        padded = pa.concat_arrays([narrow.slice(0, 1)] * begin + [narrow, narrow.slice(0, 1)])
        if (
            column.null_count < len(column)
            or name in ("first_seen", "last_seen")
            or rng.random() < 0.5
        ):
            stored[name] = padded.slice(begin, len(narrow))
    if unchanged:
        del stored["last_seen"]
    if len(rows) == rows[-1] + 1 - first and rng.random() < 0.5:
        del stored["row"]
    return Chunk(first, rows[-1] + 1, pa.RecordBatch.from_pydict(stored)), dict(
        zip(rows, documents, strict=True)
    )


def addresses_of(chunks: list[Chunk]) -> np.ndarray:
    addresses = np.array([chunk.address for chunk in chunks])
    addresses[:, kernels.gather.FIELDS] = [chunk.locate(SCHEMA) for chunk in chunks]
    return addresses


@pytest.mark.parametrize("seed", range(60))
def test_rows_are_those_of_arrow(seed):
    rng = random.Random(seed)
    chunks = []
    documents = {}
    first = 0
    for _ in range(rng.randrange(1, 9)):
        chunk, found = random_chunk(first, rng)
        chunks.append(chunk)
        documents |= found
        first = chunk.stop
    rows = rng.choices(list(documents), k=rng.choice([0, 1, 5, 70, 200]))
    names = rng.sample(SCHEMA.names, rng.randrange(1, len(SCHEMA) + 1))
    table = gather(
        np.array(rows, np.int64), chunks, addresses_of(chunks), selection_of(SCHEMA, names)
    ).table()
    table.validate(full=True)
    assert table.schema.equals(pa.schema([SCHEMA.field(name) for name in names]))
    assert table.to_pylist() == [{name: documents[row][name] for name in names} for row in rows]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
@pytest.mark.parametrize("offsets", [[0, 9, 2], [0, 2**31 - 1, 2], [0, -1, 2]], ids=str)
def test_offsets_that_lead_out_of_the_bytes_are_damage(kind, offsets):
    width = np.int32 if kind == pa.string() else np.int64
    ids = pa.Array.from_buffers(
        kind, 2, [None, pa.py_buffer(np.array(offsets, width)), pa.py_buffer(b"ab")]
    )
    chunks = [Chunk(0, 2, pa.RecordBatch.from_arrays([ids], ["id"]), "documents-00000007.arrow")]
    with pytest.raises(
        StoreError, match=r"The file documents-00000007\.arrow is damaged: .* from a backup"
    ):
        gather(np.array([0, 1]), chunks, addresses_of(chunks), selection_of(SCHEMA, ["id"]))


@pytest.mark.parametrize("row", [-1, 1, 3, 2**32 - 1])
def test_a_row_that_is_in_no_chunk_is_damage(row):
    columns = [pa.array([0, 2], pa.uint32()), pa.array(["a", "b"])]
    chunks = [Chunk(0, 3, pa.RecordBatch.from_arrays(columns, ["row", "id"]))]
    with pytest.raises(StoreError, match="damaged"):
        gather(np.array([row]), chunks, addresses_of(chunks), selection_of(SCHEMA, ["id"]))


def test_a_column_of_another_type_is_damage():
    chunk = Chunk(0, 1, pa.RecordBatch.from_arrays([pa.array([1])], ["flag"]))
    with pytest.raises(StoreError, match="damaged"):
        chunk.locate(SCHEMA)


def test_damaged_columns_are_an_error_each_time_that_their_rows_are_taken():
    whole, damaged = (pa.RecordBatch.from_arrays([pa.array([value])], ["id"]) for value in ("a", 1))
    documents = Documents(SCHEMA)
    documents.restore([Chunk(0, 1, damaged), Chunk(1, 2, whole)], ())
    view = documents.view()
    for rows in ([0], [0], [1, 0]):
        with pytest.raises(StoreError, match="damaged"):
            view.take(np.array(rows), ["id"])
    assert view.take(np.array([1]), ["id"])["id"].to_pylist() == ["a"]
