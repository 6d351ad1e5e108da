"""Kept documents are written as they were read."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from neardup.documents.batch import Columns
from neardup.errors import OutputError
from neardup.formats.parquet import parquet_layout
from neardup.formats.tables import TablePart
from neardup.output.kept import KeptWriter
from neardup.runs.input_files import list_inputs

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("text", pa.string(), metadata={"origin": "test"}),
        pa.field("lang", pa.dictionary(pa.int32(), pa.string())),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("when", pa.timestamp("ms", "UTC")),
    ],
    metadata={"maker": "a test"},
)


def table(num_rows: int = 1000) -> pa.Table:
    rows = range(num_rows)
    return pa.table(
        {
            "id": pa.array(rows, pa.int64()),
            "text": [f"text {i}, é " * 30 if i % 10 else None for i in rows],
            "lang": pa.array([("en", "fr")[i % 2] for i in rows]).dictionary_encode(),
            "tags": [["a", None] if i % 3 else [] for i in rows],
            "when": pa.array([1000 * i for i in rows], pa.timestamp("ms", "UTC")),
        },
        schema=SCHEMA,
    )


def keep(path: Path, out: Path, every: int = 2) -> list[Path]:
    """Write every so-manieth row of the inputs in `path`; 0 keeps none."""
    paths = []
    for part in list_inputs([str(path)]):
        with KeptWriter(part, out) as writer:
            for batch in part.read(Columns("text"), pytest.fail, with_payload=True):
                mask = np.zeros(len(batch.rows), bool) if every == 0 else batch.rows % every == 0
                writer.write(batch.payload, mask)
        paths.append(writer.path)
    return paths


@pytest.mark.parametrize("every", [0, 1, 2])
def test_parquet_keeps_columns_schema_codecs_dictionaries_and_row_groups(
    tmp_path: Path, every: int
) -> None:
    codecs = {
        "id": "gzip",
        "text": "zstd",
        "lang": "snappy",
        "tags.list.element": "none",
        "when": "lz4",
    }
    pq.write_table(
        table(),
        tmp_path / "in.parquet",
        row_group_size=200,
        compression=codecs,
        use_dictionary=["lang"],
        write_statistics=["id"],
    )
    (path,) = keep(tmp_path / "in.parquet", tmp_path / "kept", every)
    expected = table().filter(pa.array([every > 0 and i % every == 0 for i in range(1000)]))
    written = pq.read_table(path)
    assert written.equals(expected)
    assert written.schema.equals(pq.read_schema(tmp_path / "in.parquet"), check_metadata=True)
    if every:
        source = pq.read_metadata(tmp_path / "in.parquet")
        metadata = pq.read_metadata(path)
        assert metadata.row_group(0).num_rows == 200
        assert metadata.num_row_groups == 5 // every + 5 % every
        for index in range(5):
            for attribute in (
                "path_in_schema",
                "compression",
                "has_dictionary_page",
                "is_stats_set",
            ):
                before, after = (
                    getattr(one.row_group(0).column(index), attribute) for one in (source, metadata)
                )
                assert before == after


@pytest.mark.slow
@pytest.mark.parametrize(("length", "values"), [(10, 1024), (10_000, 52), (10_000_000, 16)])
def test_pages_are_looked_at_the_more_often_the_longer_the_texts(
    tmp_path: Path, length: int, values: int
) -> None:
    texts = pa.table({"text": ["x" * length] * 3})
    pq.write_table(texts, tmp_path / "in.parquet", use_dictionary=False)
    (part,) = list_inputs([str(tmp_path / "in.parquet")])
    assert parquet_layout(part).write_batch == values
    (written,) = keep(tmp_path / "in.parquet", tmp_path / "kept", every=1)
    assert pq.read_table(written).equals(texts)


def test_a_column_that_gave_up_its_dictionary_is_written_without(tmp_path: Path) -> None:
    unique = pa.table(
        {"text": [f"{i} " * 400 for i in range(3000)], "lang": ["en", "fr", "de"] * 1000}
    )
    pq.write_table(unique, tmp_path / "in.parquet")
    assert pq.read_metadata(tmp_path / "in.parquet").row_group(0).column(0).has_dictionary_page
    (path,) = keep(tmp_path / "in.parquet", tmp_path / "kept")
    group = pq.read_metadata(path).row_group(0)
    assert [group.column(i).has_dictionary_page for i in range(2)] == [False, True]


@pytest.mark.parametrize("every", [0, 1, 2])
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
@pytest.mark.parametrize("stream", [False, True])
def test_arrow_stays_file_or_stream_with_its_codec(
    tmp_path: Path, every: int, codec: str | None, stream: bool
) -> None:
    make = pa.ipc.new_stream if stream else pa.ipc.new_file
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with make(str(tmp_path / "in.arrow"), SCHEMA, options=options) as writer:
        writer.write_table(table(), max_chunksize=300)
    (path,) = keep(tmp_path / "in.arrow", tmp_path / "kept", every)
    expected = table().filter(pa.array([every > 0 and i % every == 0 for i in range(1000)]))
    reader = (pa.ipc.open_stream if stream else pa.ipc.open_file)(path.read_bytes())
    assert reader.read_all().equals(expected)
    assert reader.schema.equals(SCHEMA, check_metadata=True)
    if every:
        sizes = [(tmp_path / "in.arrow").stat().st_size, path.stat().st_size]
        assert 0.4 / every < sizes[1] / sizes[0] < 1.6 / every


def test_json_lines_stay_as_they_stood(tmp_path: Path) -> None:
    lines = [
        b'{"text" : "a", "n":1.0}\r\n',
        b'{"text":"b"}\n',
        b'{ "x":[null], "text":"\\u0063"}\n',
        b'{"text":"d"}',
    ]
    (tmp_path / "in.jsonl").write_bytes(b"".join(lines))
    (path,) = keep(tmp_path / "in.jsonl", tmp_path / "kept")
    assert path == tmp_path / "kept/in.jsonl"
    assert path.read_bytes() == lines[0] + lines[2]


@pytest.mark.parametrize("suffix", [".gz", ".zst", ".bz2", ".xz"])
def test_compressed_lines_are_written_compressed(tmp_path: Path, suffix: str) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain/in.jsonl").write_bytes(
        b"".join(b'{"text": "%d"}\n' % i for i in range(5000))
    )
    (tmp_path / "in.jsonl.gz").write_bytes(
        gzip.compress((tmp_path / "plain/in.jsonl").read_bytes())
    )
    (first,) = keep(tmp_path / "in.jsonl.gz", tmp_path / "kept")
    assert gzip.decompress(first.read_bytes()).count(b"\n") == 2500
    if suffix != ".gz":
        from neardup.documents.sinks import open_compressed
        from neardup.formats.registry import COMPRESSIONS

        with open_compressed(str(tmp_path / f"in.jsonl{suffix}"), COMPRESSIONS[suffix]) as stream:
            stream.write((tmp_path / "plain/in.jsonl").read_bytes())
        (path,) = keep(tmp_path / f"in.jsonl{suffix}", tmp_path / "again")
        (part,) = list_inputs([str(path)])
        rows = sum(len(batch.rows) for batch in part.read(Columns("text"), pytest.fail))
        assert rows == 2500
        assert path.stat().st_size < 20_000


@pytest.mark.parametrize("name", ["in.csv", "in.tsv"])
@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_a_header_without_rows_stays_with_or_without_a_line_end(
    tmp_path: Path, name: str, end: str
) -> None:
    header = ("id,text" if name == "in.csv" else "id\ttext") + end
    (tmp_path / name).write_bytes(header.encode())
    (path,) = keep(tmp_path / name, tmp_path / "kept")
    assert path.read_text().replace('"', "") == header.rstrip() + "\n"


def test_csv_stays_csv(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text('id,text\n1,"a ""b""\nc"\n2,x\n007,NA\n')
    (path,) = keep(tmp_path / "in.csv", tmp_path / "kept")
    options = pyarrow.csv.ConvertOptions(column_types={"id": pa.string(), "text": pa.string()})
    parse = pyarrow.csv.ParseOptions(newlines_in_values=True)
    written = pyarrow.csv.read_csv(path, convert_options=options, parse_options=parse)
    assert written.to_pydict() == {"id": ["1", "007"], "text": ['a "b"\nc', "NA"]}


def test_lines_of_text_stay_as_they_stood(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"one\r\ntwo\n\nfour\nfive")
    (path,) = keep(tmp_path / "in.txt", tmp_path / "kept")
    assert path.read_bytes() == b"one\r\n\nfive"


def test_text_files_are_kept_or_left_out_whole(tmp_path: Path) -> None:
    for name in ("a.txt", "deep/b.txt"):
        (tmp_path / "in" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "in" / name).write_bytes(name.encode() + b"\r\nend")
    keep(tmp_path / "in", tmp_path / "kept")
    assert (tmp_path / "kept/deep/b.txt").read_bytes() == b"deep/b.txt\r\nend"
    keep(tmp_path / "in", tmp_path / "none", every=0)
    assert not list(tmp_path.glob("none/**/*.txt"))


def test_what_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    keep(tmp_path / "in.txt", tmp_path / "kept")
    with pytest.raises(OutputError, match="already exists"):
        keep(tmp_path / "in.txt", tmp_path / "kept")


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    pq.write_table(table(5), tmp_path / "in.parquet")
    (part,) = list_inputs([str(tmp_path / "in.parquet")])
    writer = KeptWriter(part, tmp_path / "kept")
    assert not writer.path.exists()
    writer.discard()
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_damaged_input_leaves_no_output(tmp_path: Path) -> None:
    (tmp_path / "in.parquet").write_bytes(b"no parquet")
    (part,) = list_inputs([str(tmp_path / "in.parquet")])
    KeptWriter(part, tmp_path / "kept").close()
    assert not (tmp_path / "kept").exists()


def test_a_table_in_memory_is_kept_as_parquet(tmp_path: Path) -> None:
    part = TablePart(pa.table({"text": ["one", "two", "three"], "n": [1, 2, 3]}), "table")
    with KeptWriter(part, tmp_path / "kept") as writer:
        for batch in part.read(Columns("text"), pytest.fail, with_payload=True):
            writer.write(batch.payload, np.array([True, False, True]))
    assert pq.read_table(tmp_path / "kept" / "table.parquet").to_pydict() == {
        "text": ["one", "three"],
        "n": [1, 3],
    }


@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_row_groups_encoded_on_threads_are_the_bytes_that_arrow_writes_on_one(
    tmp_path: Path, compression: str
) -> None:
    rows = table(2000)
    source = tmp_path / "in.parquet"
    expected = tmp_path / "expected.parquet"
    pq.write_table(
        rows, source, row_group_size=90, compression=compression, use_dictionary=["lang"]
    )
    [part] = list_inputs([str(source)])
    layout = parquet_layout(part)
    with pq.ParquetWriter(
        expected,
        layout.schema,
        compression=layout.codecs,
        use_dictionary=layout.dictionaries,
        write_statistics=layout.statistics,
        write_batch_size=layout.write_batch,
    ) as writer:
        for start in range(0, len(rows), 90):
            writer.write_table(rows.slice(start, 90))
    sink = part.make_sink()(str(tmp_path / "out.parquet"))
    sink.write(rows.combine_chunks().to_batches()[0])
    sink.close()
    assert (tmp_path / "out.parquet").read_bytes() == expected.read_bytes()
    assert pq.read_table(tmp_path / "out.parquet").equals(rows)
