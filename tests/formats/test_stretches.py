"""A large file is read in stretches side by side, and yields what it yields when it is read from
its begin.
"""

from __future__ import annotations

import gzip
import itertools
import json
import random
import zlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.documents import stretches
from neardup.documents.batch import Columns, DocumentBatch, Rejected
from neardup.formats import parquet
from neardup.formats.reading import InputFile, Task, read_tasks
from reference.made_up import texts
from reference.warc_files import info, page

pytestmark = pytest.mark.slow

THREADS = [1, 2, 7, 64]


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stretches, "STRETCH_BYTES", 4096)
    monkeypatch.setattr(stretches, "_COMPRESSED_BYTES", 1024)
    monkeypatch.setattr(stretches, "_TRIAL_BYTES", 512)
    monkeypatch.setattr(stretches, "_SEARCHED_BYTES", 256)
    monkeypatch.setattr(parquet, "STRETCH_BYTES", 4096)


def rows_of(
    entries: Iterator[DocumentBatch | Rejected | None],
) -> tuple[list[object], list[Rejected]]:
    """Return each document with its row, id and payload, and the rejected rows."""
    documents: list[object] = []
    rejected: list[Rejected] = []
    for entry in entries:
        if isinstance(entry, Rejected):
            rejected.append(entry)
        elif entry is not None:
            payload = entry.payload
            copied = payload.to_pylist() if isinstance(payload, pa.RecordBatch) else _split(payload)
            ids = [None] * len(entry.rows) if entry.ids is None else entry.ids.to_pylist()
            documents += zip(entry.rows.tolist(), entry.text.to_pylist(), ids, copied, strict=True)
    return documents, rejected


def _split(payload: object) -> list[bytes]:
    if hasattr(payload, "records"):
        return list(payload.records)
    data = bytes(payload.data)
    offsets = payload.offsets.tolist()
    return [data[begin:end] for begin, end in itertools.pairwise(offsets)]


def whole(part: InputFile, columns: Columns) -> tuple[list[object], list[Rejected]]:
    """Return what a file yields that is read from its begin to its end."""
    rejected: list[Rejected] = []
    documents, _ = rows_of(part.read(columns, rejected.append, with_payload=True))
    return documents, rejected


def side_by_side(
    part: InputFile, columns: Columns, threads: int
) -> tuple[list[object], list[Rejected]]:
    task = Task(part, columns, against=False)
    return rows_of(entry for _, entry in read_tasks([task], threads, with_payload=True))


def located(rejected: list[Rejected]) -> list[tuple]:
    """Return where each row was rejected; the first has a hint in its reason, and a file may be
    lost as a whole.
    """
    return [(row.row, row.line, row.byte, row.excluded) for row in rejected if row.row is not None]


def same(part: InputFile, columns: Columns) -> int:
    """Check that all threads read the same; return the number of documents."""
    expected, rejected = whole(part, columns)
    for threads in THREADS[:3]:
        found = side_by_side(part, columns, threads)
        assert found[0] == expected
        assert located(found[1]) == located(rejected)
    return len(expected)


def lines(seed: int, count: int) -> bytes:
    """Return JSON lines, some blank, bad, or longer than a stretch."""
    rng = random.Random(seed)
    made = []
    for number in range(count):
        length = rng.choice([3, 30, 300, 9000]) if rng.random() < 0.1 else 40
        line = json.dumps(
            {"id": f"d{number}", "text": "".join(rng.choices("abcdé 中\U0001f600", k=length))}
        )
        made.append(rng.choice(["", "{", "[1]"]) if rng.random() < 0.05 else line)
    ends = ["\n", "\r\n"] if seed % 3 == 0 else ["\n"]
    text = "".join(line + rng.choice(ends) for line in made)
    return ("\ufeff" * (seed % 2) + (text.rstrip("\r\n") if seed % 5 == 0 else text)).encode()


def cut_anywhere(data: bytes, seed: int, most: int = 3000) -> list[bytes]:
    rng = random.Random(seed)
    pieces = []
    while data:
        size = rng.randint(1, most)
        pieces.append(data[:size])
        data = data[size:]
    return pieces


def zstd_frames(data: bytes, seed: int) -> bytes:
    """Return frames with and without their length, and frames to skip between them."""
    rng = random.Random(seed)
    frames = []
    for piece in cut_anywhere(data, seed):
        if rng.random() < 0.5:
            frames.append(pa.Codec("zstd").compress(piece, asbytes=True))
        else:
            sink = pa.BufferOutputStream()
            with pa.CompressedOutputStream(sink, "zstd") as stream:
                stream.write(piece)
            frames.append(sink.getvalue().to_pybytes())
        if rng.random() < 0.2:
            frames.append(
                (0x184D2A50 + rng.randrange(16)).to_bytes(4, "little")
                + (5).to_bytes(4, "little")
                + b"\xff" * 5
            )
    return b"".join(frames)


@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))]
)
@pytest.mark.parametrize(
    "kind", ["plain", "gzip members", "one gzip member", "zstd frames", "one zstd frame"]
)
def test_json_lines_in_stretches(tmp_path, kind, seed):
    data = lines(seed, 600)
    packed = {
        "plain": lambda: data,
        "gzip members": lambda: b"".join(map(gzip.compress, cut_anywhere(data, seed))),
        "one gzip member": lambda: gzip.compress(data),
        "zstd frames": lambda: zstd_frames(data, seed),
        "one zstd frame": lambda: pa.Codec("zstd").compress(data, asbytes=True),
    }[kind]()
    path = tmp_path / "in.jsonl"
    path.write_bytes(packed)
    compression = "gzip" if "gzip" in kind else "zstd" if "zstd" in kind else None
    part = InputFile(str(path), str(path), compression, "jsonl", "row", "in.jsonl")
    assert (len(part.stretches()) > 1) == ("one" not in kind)
    assert same(part, Columns("text", "id")) > 400


@given(
    data=st.lists(
        st.sampled_from([b"a", b"\n", b"\r\n", b"bc" * 700, b"\xff", b""]), max_size=60
    ).map(b"".join)
)
def test_lines_of_text_in_stretches(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("text") / "in.txt"
    path.write_bytes(data)
    same(InputFile(str(path), str(path), None, "text", "line", "in.txt"), Columns("text"))


def test_what_only_looks_like_a_member_is_none(tmp_path):
    """A member that is not compressed may hold the bytes of others."""
    inner = gzip.compress(b"x" * 50, mtime=0)
    data = b"".join(
        b"line %d " % number + inner.replace(b"\n", b"") + b"\n" for number in range(400)
    )
    stored = zlib.compressobj(0, wbits=31)
    path = tmp_path / "in.txt.gz"
    path.write_bytes(stored.compress(data) + stored.flush() + gzip.compress(b"the last\n" * 900))
    part = InputFile(str(path), str(path), "gzip", "text", "line", "in.txt")
    assert len(part.stretches()) > 5
    assert len(located(side_by_side(part, Columns("text"), 7)[1])) == 400  # not UTF-8
    assert same(part, Columns("text")) == 900


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_a_stream_that_breaks_off_yields_the_lines_before(tmp_path, kind):
    data = lines(1, 600)
    path = tmp_path / "in.jsonl"
    columns = Columns("text", "id")
    compress = (
        gzip.compress
        if kind == "gzip"
        else lambda piece: pa.Codec("zstd").compress(piece, asbytes=True)
    )
    packed = b"".join(map(compress, cut_anywhere(data, 1)))
    part = InputFile(str(path), str(path), kind, "jsonl", "row", "in.jsonl")
    path.write_bytes(packed)
    everything = whole(part, columns)[0]
    for size in range(len(packed) // 7, len(packed), len(packed) // 7):
        path.write_bytes(packed[:size])
        found = [side_by_side(part, columns, threads) for threads in THREADS]
        assert found.count(found[0]) == len(THREADS)
        documents, rejected = found[0]
        assert documents == everything[: len(documents)]
        assert rejected
        if kind == "gzip":  # Arrow's reader of zstd loses what it has not returned
            expected = whole(part, columns)
            assert documents == expected[0]
            assert [row[:4] for row in rejected] == [row[:4] for row in expected[1]]
    assert documents


@pytest.mark.parametrize("kind", ["plain", "a member each", "members of some records"])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 3))]
)
def test_warc_in_stretches(tmp_path, kind, seed):
    rng = random.Random(seed)
    records = [info()]
    for number in range(100):
        body = (
            b"<html><p>"
            + b" ".join(rng.choices([b"one", b"two", b"three"], k=rng.randrange(200)))
            + b"</p></html>"
        )
        if rng.random() < 0.1:  # what looks like a record is content
            body += b"\r\n\r\nWARC/1.0\r\nWARC-Type: response\r\n\r\n"
        status = "404 Not Found" if rng.random() < 0.1 else "200 OK"
        records.append(page(body, f"http://a.test/{number}", status=status))
        if rng.random() < 0.05:
            records.append(info())
    if kind == "plain":
        packed = b"".join(records)
    else:
        size = 1 if kind == "a member each" else 7
        groups = [records[first : first + size] for first in range(0, len(records), size)]
        packed = b"".join(gzip.compress(b"".join(group)) for group in groups)
    path = tmp_path / "in.warc"
    path.write_bytes(packed)
    part = InputFile(
        str(path), str(path), None if kind == "plain" else "gzip", "warc", "row", "in.warc"
    )
    assert len(part.stretches()) > 3
    assert same(part, Columns("html", "url")) > 70
    damaged = bytearray(packed)
    damaged[len(packed) // 3 : len(packed) // 3 + 40] = b"\0" * 40
    path.write_bytes(damaged)
    expected = whole(part, Columns("html", "url"))
    for threads in THREADS:
        found = side_by_side(part, Columns("html", "url"), threads)
        assert (found[0], located(found[1])) == (expected[0], located(expected[1]))


def test_row_groups_in_stretches(tmp_path):
    path = tmp_path / "in.parquet"
    table = pa.table({"id": [f"d{number}" for number in range(900)], "text": texts(900)})
    pq.write_table(table, path, row_group_size=70)
    part = InputFile(str(path), str(path), None, "parquet", "row", "in.parquet")
    assert len(part.stretches()) > 3
    assert same(part, Columns("text", "id")) == 900
    everything = whole(part, Columns("text", "id"))[0]
    data = bytearray(path.read_bytes())
    middle = pq.read_metadata(path).row_group(6).column(1).data_page_offset
    data[middle : middle + 200] = b"\xff" * 200
    path.write_bytes(data)
    found = [side_by_side(part, Columns("text", "id"), threads) for threads in THREADS]
    assert found.count(found[0]) == len(THREADS)
    assert found[0][0] == everything[: 6 * 70]
    assert [row.rest_of_file for row in found[0][1]] == [True]


def test_a_file_without_row_groups_has_no_documents_and_no_damage(tmp_path):
    path = tmp_path / "in.parquet"
    schema = pa.schema({"id": pa.string(), "text": pa.string()})
    pq.ParquetWriter(path, schema).close()
    assert pq.read_metadata(path).num_row_groups == 0
    part = InputFile(str(path), str(path), None, "parquet", "row", "in.parquet")
    assert side_by_side(part, Columns("text", "id"), 7) == ([], [])


@pytest.mark.parametrize("cache_bytes", [0, pytest.param(None, marks=pytest.mark.slow)])
def test_the_threads_change_no_decision(tmp_path, cache_bytes):
    table = pa.table({"id": [f"d{number}" for number in range(300)], "text": texts(300)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=70)
    rows = [json.dumps(row) + "\n" for row in table.to_pylist()]
    (tmp_path / "b.jsonl").write_text("".join(rows[::2]))
    (tmp_path / "c.jsonl.gz").write_bytes(
        b"".join(gzip.compress(row.encode()) for row in rows[1::2])
    )
    results = [
        neardup.dedup(
            tmp_path,
            method=neardup.MinHash(threshold=0.6),
            threads=threads,
            cache_bytes=cache_bytes,
        )
        for threads in THREADS
    ]
    assert results[0].removed.num_rows > 300
    assert all(result.removed.equals(results[0].removed) for result in results)
    assert all(result.kept.equals(results[0].kept) for result in results)
