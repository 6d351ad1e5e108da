"""Columns are written by their position: two of one name, or without a name, keep their values."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.errors import ColumnError

HEADER = ["id", "tag", "tag", "text", "", ""]
LONG = " ".join(f"word{number}" for number in range(60))
ROWS = [
    ["1", "a", "b", LONG, "x", "y"],
    ["2", "c", "d", "other words in here", "z", ""],
    ["3", "e", "f", LONG, "", "w"],
]
FIRST_TWO = ROWS[:2]
MARK = "\ufeff".encode()


def table_of(rows: list[list[str]]) -> pa.Table:
    columns = [pa.array(values, pa.string()) for values in zip(*rows, strict=True)]
    return pa.Table.from_arrays(columns, names=HEADER)


def columns_of(table: pa.Table) -> list[list[str]]:
    return [
        list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)
    ]


def write(path: Path) -> Path:
    suffix = path.suffix
    if suffix == ".parquet":
        pq.write_table(table_of(ROWS), path)
    elif suffix == ".arrow":
        pyarrow.feather.write_feather(table_of(ROWS), path)
    else:
        text = io.StringIO(newline="")
        csv.writer(text, delimiter="\t" if suffix == ".tsv" else ",").writerows([HEADER, *ROWS])
        path.write_bytes(text.getvalue().encode())
    return path


def read(path: Path) -> list[list[str]]:
    if path.suffix == ".parquet":
        table = pq.ParquetFile(path).read()
    elif path.suffix == ".arrow":
        table = pa.ipc.open_file(path.read_bytes()).read_all()
    else:
        text = path.read_bytes().decode()
        rows = list(
            csv.reader(
                io.StringIO(text, newline=""), delimiter="\t" if path.suffix == ".tsv" else ","
            )
        )
        assert rows.pop(0) == HEADER
        return rows
    assert table.schema.names == HEADER
    return columns_of(table)


with_every_format = pytest.mark.parametrize("name", ["in.csv", "in.tsv", "in.parquet", "in.arrow"])


@with_every_format
def test_kept_documents_have_every_column(tmp_path: Path, name: str) -> None:
    neardup.dedup(write(tmp_path / name), output=tmp_path / "out")
    assert read(tmp_path / "out" / "kept" / name) == FIRST_TWO


@with_every_format
def test_the_table_of_kept_documents_has_every_column(tmp_path: Path, name: str) -> None:
    kept = neardup.dedup(write(tmp_path / name)).kept
    assert kept.schema.names == HEADER
    assert columns_of(kept) == FIRST_TWO


@with_every_format
def test_annotated_documents_have_every_column(tmp_path: Path, name: str) -> None:
    neardup.dedup(write(tmp_path / name), output=tmp_path / "out", write="annotated")
    (path,) = (tmp_path / "out" / "annotated").iterdir()
    table = pq.ParquetFile(path).read()
    assert table.schema.names[: len(HEADER)] == HEADER
    assert columns_of(table.select(range(len(HEADER)))) == ROWS


@with_every_format
def test_documents_without_their_passages_have_every_column(tmp_path: Path, name: str) -> None:
    neardup.remove_passages(write(tmp_path / name), output=tmp_path / "out")
    assert read(tmp_path / "out" / "kept" / name) == FIRST_TWO


@pytest.mark.parametrize("mark", [b"", MARK])
def test_blank_lines_before_the_header_are_no_rows(tmp_path: Path, mark) -> None:
    data = b'\r\n\n"id\n1",text,text2\r\n\r\n1,a b c,x\r\n1,2\r\n2,a b d,y\n'
    (tmp_path / "in.csv").write_bytes(mark + data)
    result = neardup.dedup(
        tmp_path / "in.csv", output=tmp_path / "out", overwrite=True, max_unreadable=1
    )
    assert result.kept.to_pydict() == {
        "id\n1": ["1", "2"],
        "text": ["a b c", "a b d"],
        "text2": ["x", "y"],
    }
    (rejected,) = map(
        json.loads, (tmp_path / "out" / "rejected.jsonl").read_text().split("\n")[:-1]
    )
    assert rejected["row"] == 1
    assert rejected["reason"] == "expected 3 columns, got 2"


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.zst", ".tsv.xz"])
@pytest.mark.parametrize("mark", [MARK, b""])
def test_a_byte_order_mark_stays(tmp_path: Path, suffix: str, mark) -> None:
    path = tmp_path / f"in{suffix}"
    between = b"\t" if "tsv" in suffix else b","
    codec = {".csv": None, ".gz": "gzip", ".zst": "zstd", ".xz": "xz"}[path.suffix]
    with open_as(path, codec, "w") as file:
        file.write(
            mark
            + between.join([b"id", b"text"])
            + b"\n"
            + between.join([b"1", "é a b".encode()])
            + b"\n"
        )
    neardup.dedup(path, output=tmp_path / "out", overwrite=True)
    with open_as(tmp_path / "out" / "kept" / path.name, codec, "r") as file:
        assert bytes(file.read()).startswith(mark + b'"id"')


def open_as(path: Path, codec: str | None, mode: str):
    if codec == "xz":
        import lzma

        return lzma.open(path, f"{mode}b")
    return pa.output_stream(path, codec) if mode == "w" else pa.input_stream(path, codec)


def test_kept_rows_of_types_that_no_table_can_have_are_refused_by_name(tmp_path: Path) -> None:
    for number, value in enumerate(("1", Decimal("1.5"))):
        pq.write_table(
            pa.table({"text": ["one two"], "rank": [value]}), tmp_path / f"{number}.parquet"
        )
    result = neardup.dedup([tmp_path / "0.parquet", tmp_path / "1.parquet"])
    with pytest.raises(
        ColumnError, match=r"columns that cannot be in one table.*Read them from the files"
    ):
        _ = result.kept
