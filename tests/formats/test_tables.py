"""Parquet, Arrow, CSV, plain text, tables in memory: the same documents whatever holds them."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.documents import limits
from neardup.documents.batch import Columns, RawLines, Rejected
from neardup.documents.ranks import no_rank
from neardup.documents.texts import text_bytes
from neardup.errors import ColumnError, InputError, SettingError
from neardup.formats import delimited, reading
from neardup.formats.reading import Task
from neardup.formats.tables import TablePart, as_table
from neardup.runs.input_files import list_inputs

TABLE = pa.table({"id": ["x", "y", None], "text": ["un été", None, ""], "score": [1.5, None, 3]})
COLUMNS = Columns("text", "id", ("score",))


def read(part, columns: Columns = COLUMNS, with_payload: bool = False):
    rejected: list[Rejected] = []
    batches = list(part.read(columns, rejected.append, with_payload=with_payload))
    rows = [row for batch in batches for row in batch.rows.tolist()]
    texts = [text for batch in batches for text in batch.text.to_pylist()]
    ids = [one for batch in batches if batch.ids is not None for one in batch.ids.to_pylist()]
    for batch in batches:
        assert batch.text.type == pa.large_string()
        batch.text.validate(full=True)
    return rows, texts, ids, batches, rejected


def one_file(path: Path, unit: str = "auto"):
    (part,) = list_inputs([str(path)], unit=unit)
    return part


def parquet(tmp_path: Path, table: pa.Table, **options):
    try:
        pq.write_table(table, tmp_path / "in.parquet", **options)
    except pa.ArrowNotImplementedError as error:
        pytest.skip(f"pyarrow {pa.__version__}: {error}")  # views, before 21
    return one_file(tmp_path / "in.parquet")


def arrow_file(tmp_path: Path, table: pa.Table):
    pyarrow.feather.write_feather(table, tmp_path / "in.arrow")
    return one_file(tmp_path / "in.arrow")


def arrow_stream(tmp_path: Path, table: pa.Table):
    with pa.ipc.new_stream(str(tmp_path / "in.ipc"), table.schema) as writer:
        writer.write_table(table)
    return one_file(tmp_path / "in.ipc")


def in_memory(tmp_path: Path, table: pa.Table) -> TablePart:
    return TablePart(table)


HOLDERS = [parquet, arrow_file, arrow_stream, in_memory]


@pytest.mark.parametrize("hold", HOLDERS)
def test_text_ids_ranks_rows_are_read(tmp_path: Path, hold) -> None:
    part = hold(tmp_path, TABLE)
    rows, texts, ids, batches, rejected = read(part)
    assert (rows, texts, ids, rejected) == ([0, 1, 2], ["un été", None, ""], ["x", "y", None], [])
    np.testing.assert_array_equal(batches[0].ranks[0][:, 0], [1.5, np.nan, 3])
    assert list(part.column_types()) == ["id", "text", "score"]


@pytest.mark.parametrize("hold", HOLDERS)
@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_every_type_of_text_is_read(tmp_path: Path, hold, kind: pa.DataType) -> None:
    plain = pa.array(["a", None, "é" * 20, "a"])
    _, texts, ids, _, _ = read(
        hold(tmp_path, pa.table({"text": plain.cast(kind), "id": plain.cast(kind)})),
        Columns("text", "id"),
    )
    assert texts == ids == plain.to_pylist()


def _of_bad_text(kind: str) -> pa.Array:
    """Return a good and a bad text inside another type, as an Arrow file may contain them."""
    text = pa.array([b"good", b"\xff"]).view(pa.string())
    if kind == "view":
        return pa.array([b"good", b"\xff"], pa.binary_view()).view(pa.string_view())
    if kind == "dictionary":
        return pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), text)
    if kind == "struct":
        return pa.StructArray.from_arrays([text], ["inner"])
    return pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), text)


@pytest.mark.parametrize("kind", ["view", "dictionary", "struct", "list"])
def test_text_of_an_arrow_file_that_is_not_utf8_costs_no_row_of_another_column(
    tmp_path: Path, kind: str
) -> None:
    table = pa.table({"text": ["a", "b"], "other": _of_bad_text(kind)})
    pyarrow.feather.write_feather(table, tmp_path / "in.arrow")
    rows, _, _, _, rejected = read(one_file(tmp_path / "in.arrow"), Columns("text"))
    assert (rows, rejected) == ([0, 1], [])
    if kind in ("view", "dictionary", "struct"):
        columns = Columns("other.inner" if kind == "struct" else "other")
        rows, _, _, _, rejected = read(one_file(tmp_path / "in.arrow"), columns)
        assert (rows, [row.reason for row in rejected]) == ([0], ["the text is not valid UTF-8"])


@pytest.mark.parametrize("hold", HOLDERS)
@pytest.mark.parametrize("kind", [pa.binary(), pa.string(), pa.large_string()], ids=str)
def test_text_that_is_not_utf8_is_rejected_by_row(tmp_path: Path, hold, kind: pa.DataType) -> None:
    values = pa.array([b"good", b"\xff", "é".encode(), b"\xed\xa0\x80"])
    text = (
        values.cast(pa.large_binary()).view(kind)
        if kind == pa.large_string()
        else values.view(kind)
    )
    part = hold(tmp_path, pa.table({"text": text, "n": [0, 1, 2, 3]}))
    rows, texts, _, batches, rejected = read(part, Columns("text"), with_payload=True)
    assert (rows, texts) == ([0, 2], ["good", "é"])
    assert [(one.row, one.reason) for one in rejected] == [
        (1, "the text is not valid UTF-8"),
        (3, "the text is not valid UTF-8"),
    ]
    assert batches[0].payload.column("n").to_pylist() == [0, 2]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (pa.array([1, None, -3]), ["1", None, "-3"]),
        (pa.array([1, 2, 3], pa.date32()), ["1970-01-02", "1970-01-03", "1970-01-04"]),
        (pa.array([b"\x01\xff", b"ab", None], pa.binary(2)), ["01ff", "6162", None]),
        (pa.array([True, False, None]), ["true", "false", None]),
        (pa.nulls(3), [None, None, None]),
    ],
)
def test_ids_of_other_types_become_strings(values: pa.Array, expected: list) -> None:
    _, _, ids, _, _ = read(
        TablePart(pa.table({"text": ["a", "b", "c"], "id": values})), Columns("text", "id")
    )
    assert ids == expected


@pytest.mark.parametrize("hold", HOLDERS)
def test_reading_twice_gives_the_same(tmp_path: Path, hold) -> None:
    part = hold(tmp_path, pa.table({"text": [f"text {i}" for i in range(30_000)]}))
    first = read(part, Columns("text"))
    second = read(part, Columns("text"))
    assert first[:2] == second[:2]
    assert first[0] == list(range(30_000))


def test_batches_hold_a_few_megabytes_whatever_the_row_groups(tmp_path: Path) -> None:
    table = pa.table({"text": [f"{i:06}" + "x" * 10_000 for i in range(3000)]})
    for part in (parquet(tmp_path, table, use_dictionary=False), TablePart(table)):
        sizes = [batch.text.nbytes for batch in read(part, Columns("text"))[3]]
        assert max(sizes) < 6 << 20
        assert len(sizes) > 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    [
        pa.DictionaryArray.from_arrays(np.zeros(1000, np.int32), ["x" * 1_000_000]),
        pa.RunEndEncodedArray.from_arrays([1000], ["x" * 1_000_000]),
    ],
    ids=["dictionary", "runs"],
)
def test_a_column_that_repeats_a_long_text_does_not_fill_the_memory(text: pa.Array) -> None:
    table = pa.table({"text": text})
    assert max(len(batch.rows) for batch in read(TablePart(table), Columns("text"))[3]) <= 8


def test_the_bytes_of_runs_are_those_of_their_texts() -> None:
    runs = pa.RunEndEncodedArray.from_arrays([3, 5, 9], ["x" * 10, None, "yy"])
    of_codes = pa.RunEndEncodedArray.from_arrays([3, 5], pa.array(["é", "a"]).dictionary_encode())
    parts = (runs, runs.slice(1, 3), runs.slice(4), runs.slice(9), of_codes)
    assert list(map(text_bytes, parts)) == [38, 20, 8, 0, 8]


@pytest.mark.parametrize(
    "text",
    [
        pa.DictionaryArray.from_arrays([0, 0], pa.array([["a text"]])),
        pa.RunEndEncodedArray.from_arrays([2], pa.array([["a text"]])),
    ],
    ids=["dictionary", "runs"],
)
def test_encoded_lists_are_no_text(text: pa.Array) -> None:
    with pytest.raises(ColumnError, match=r"list<.*, which cannot be text"):
        neardup.dedup(pa.table({"text": text}))


@pytest.mark.parametrize("hold", [parquet, arrow_file])
@pytest.mark.parametrize("damage", ["cut", "empty", "noise"])
def test_a_damaged_file_is_one_rejection(tmp_path: Path, hold, damage: str) -> None:
    part = hold(tmp_path, TABLE)
    path = Path(part.location)
    data = path.read_bytes()
    path.write_bytes(
        {"cut": data[: len(data) // 2], "empty": b"", "noise": bytes(range(256)) * 4}[damage]
    )
    _, texts, _, _, rejected = read(part)
    assert texts == []
    assert [(one.file, one.row) for one in rejected] == [(str(path), None)]
    assert "cannot be read" in rejected[0].reason
    assert part.column_types() == {}


def test_damage_inside_a_parquet_file_keeps_what_came_before(tmp_path: Path) -> None:
    table = pa.table({"text": [f"text {i} " * 50 for i in range(2000)]})
    part = parquet(tmp_path, table, row_group_size=500, use_dictionary=False, compression="snappy")
    path = Path(part.location)
    data = bytearray(path.read_bytes())
    offset = pq.read_metadata(path).row_group(2).column(0).data_page_offset
    data[offset : offset + 40] = b"\xff" * 40
    path.write_bytes(bytes(data))
    rows, _, _, _, rejected = read(part, Columns("text"))
    assert rows == list(range(len(rows)))
    assert len(rejected) == 1


def test_damage_in_a_column_that_is_only_copied_stops_the_copy_aloud(tmp_path: Path) -> None:
    table = pa.table(
        {
            "text": [f"text {i} " * 50 for i in range(2000)],
            "other": [f"more {i} " * 50 for i in range(2000)],
        }
    )
    part = parquet(tmp_path, table, row_group_size=500, use_dictionary=False, compression="snappy")
    path = Path(part.location)
    data = bytearray(path.read_bytes())
    offset = pq.read_metadata(path).row_group(2).column(1).data_page_offset
    data[offset : offset + 40] = b"\xff" * 40
    path.write_bytes(bytes(data))
    rows, _, _, _, rejected = read(part, Columns("text"))
    assert (rows, rejected) == (list(range(2000)), [])
    with pytest.raises(InputError, match="cannot be copied"):
        read(part, Columns("text"), with_payload=True)


def test_arrow_offsets_that_point_outside_are_rejected_not_followed(tmp_path: Path) -> None:
    part = arrow_stream(tmp_path, pa.table({"text": pa.array(["abc", "defgh"])}))
    data = Path(part.location).read_bytes()
    good = np.array([0, 3, 8], np.int32).tobytes()
    assert data.count(good) == 1
    Path(part.location).write_bytes(
        data.replace(good, np.array([0, 3, 1 << 30], np.int32).tobytes())
    )
    _, texts, _, _, rejected = read(part, Columns("text"))
    assert texts == []
    assert "cannot be read" in rejected[0].reason


CSV = '\ufeffid,text\n1,"a\nb"\n2,x,too many\n3,NA\n\n4,"say ""hi"""\nshort\n5,\n'.encode()


def test_csv_values_stay_text_and_bad_rows_are_rejected_by_row(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(CSV)
    rows, texts, ids, _, rejected = read(one_file(tmp_path / "in.csv"), Columns("text", "id"))
    assert texts == ["a\nb", "NA", 'say "hi"', ""]
    assert ids == ["1", "3", "4", "5"]
    assert rows == [0, 2, 3, 5]
    assert [(one.row, one.reason) for one in rejected] == [
        (1, "expected 2 columns, got 3"),
        (4, "expected 2 columns, got 1"),
    ]


@pytest.mark.parametrize("block_bytes", [32, 64, 1000])
def test_csv_rows_are_numbered_the_same_in_blocks_of_any_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    lines = [f"{i},text {i}" if i % 7 else f"{i},bad,row" for i in range(500)]
    lines[250] = '250,"' + "long " * 100 + '"'
    (tmp_path / "in.csv").write_text("id,text\n" + "\n".join(lines) + "\n")
    monkeypatch.setattr(delimited, "BLOCK_BYTES", block_bytes)
    rows, _, ids, _, rejected = read(one_file(tmp_path / "in.csv"), Columns("text", "id"))
    assert rows == [i for i in range(500) if i % 7]
    assert ids == [str(i) for i in rows]
    assert [one.row for one in rejected] == [i for i in range(500) if i % 7 == 0]


def test_csv_text_that_is_not_utf8_or_a_rank_that_is_no_number_costs_its_row_only(
    tmp_path: Path,
) -> None:
    (tmp_path / "in.tsv").write_bytes(b"text\trank\na\t1\n\xff\t2\nc\tmany\nd\t\n")
    rows, texts, _, batches, rejected = read(
        one_file(tmp_path / "in.tsv"), Columns("text", None, ("rank",))
    )
    assert (rows, texts) == ([0, 3], ["a", "d"])
    np.testing.assert_array_equal(batches[0].ranks[0][:, 0], [1, np.nan])
    assert [(one.row, one.reason) for one in rejected] == [
        (1, "the text is not valid UTF-8"),
        (2, no_rank("many")),
    ]


def test_a_table_of_csv_has_line_ends_inside_quotes_beyond_a_block(tmp_path: Path) -> None:
    (tmp_path / "ids.csv").write_text("id\n" + '"a\nb"\n' * 400_000)
    part = one_file(tmp_path / "ids.csv")
    assert delimited.HANDLER.read_table(part, ("id",))["id"].unique().to_pylist() == ["a\nb"]


@pytest.mark.parametrize("data", [b"", b"id,text\n", b"id,text"])
def test_csv_without_rows_has_no_documents(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "in.csv").write_bytes(data)
    rows, _, _, _, rejected = read(one_file(tmp_path / "in.csv"), Columns("text"))
    assert (rows, rejected) == ([], [])


def test_each_line_of_text_is_a_document_also_an_empty_one(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"\xef\xbb\xbfone\r\n\ntwo \r\r\n\xff\nlast")
    rows, texts, _, batches, rejected = read(
        one_file(tmp_path / "in.txt"), Columns("text"), with_payload=True
    )
    assert (rows, texts) == ([0, 1, 2, 4], ["one", "", "two \r", "last"])
    assert [(one.row, one.line, one.byte) for one in rejected] == [(3, 4, 16)]
    assert all(isinstance(batch.payload, RawLines) for batch in batches)
    assert (
        b"".join(bytes(batch.payload.data) for batch in batches)
        == b"\xef\xbb\xbfone\r\n\ntwo \r\r\nlast"
    )


def test_a_line_end_at_the_end_makes_no_further_document(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"one\ntwo\n")
    assert read(one_file(tmp_path / "in.txt"), Columns("text"))[1] == ["one", "two"]


def test_a_text_file_can_be_one_document(tmp_path: Path) -> None:
    (tmp_path / "in.md").write_bytes("# Été\n\ntext\n".encode())
    (tmp_path / "bad.md").write_bytes(b"# \xff")
    good = one_file(tmp_path / "in.md", unit="file")
    assert read(good, Columns("text"))[:2] == ([0], ["# Été\n\ntext\n"])
    assert good.column_types() is None
    rejected = read(one_file(tmp_path / "bad.md", unit="file"), Columns("text"))[4]
    assert [(one.row, one.reason) for one in rejected] == [
        (0, "the file is not valid UTF-8: invalid start byte at byte 2 of the file")
    ]


def data_frames() -> dict[str, object]:
    return {
        "pyarrow": TABLE,
        "batch": TABLE.to_batches()[0],
        "reader": TABLE.to_reader(),
        "polars": polars.from_arrow(TABLE),
        "pandas": pandas.DataFrame(
            {"id": ["x", "y", None], "text": ["un été", None, ""], "score": [1.5, None, 3]}
        ),
        "duckdb": duckdb.from_arrow(TABLE),
    }


@pytest.mark.parametrize("kind", ["pyarrow", "batch", "reader", "polars", "pandas", "duckdb"])
def test_tables_of_every_library_are_read_more_than_once(kind: str) -> None:
    part = TablePart(data_frames()[kind])
    for _ in range(2):
        rows, texts, ids, _, _ = read(part, Columns("text", "id"))
        assert (rows, texts, ids) == ([0, 1, 2], ["un été", None, ""], ["x", "y", None])


@pytest.mark.parametrize(
    ("library", "name"),
    [(pandas, "DataFrame"), (polars, "DataFrame"), (duckdb, "DuckDBPyRelation")],
)
def test_tables_of_a_library_from_before_arrow_streams_are_read_all_the_same(
    monkeypatch, library, name
) -> None:
    """pandas before 2.2, polars before 1.3 and DuckDB before 1.1, of which the first iterates over
    its column names.
    """
    if hasattr(getattr(library, name), "__arrow_c_stream__"):
        monkeypatch.delattr(getattr(library, name), "__arrow_c_stream__")
    frame = data_frames()[library.__name__]
    rows, texts, ids, _, _ = read(TablePart(frame), Columns("text", "id"))
    assert (rows, texts, ids) == ([0, 1, 2], ["un été", None, ""], ["x", "y", None])
    signed = neardup.sign(frame)
    assert signed.ids.to_pylist() == ["x", "y", None]


@pytest.mark.parametrize("library", [pandas, polars])
def test_a_series_from_before_arrow_streams_is_a_column(monkeypatch, library) -> None:
    if hasattr(library.Series, "__arrow_c_stream__"):
        monkeypatch.delattr(library.Series, "__arrow_c_stream__")
    column = library.Series(["a", None, "b"])
    assert read(TablePart(column), Columns("text"))[1] == ["a", None, "b"]
    assert len(neardup.sign(column)) == 3


class Frame:
    """A table of a library that nobody knows: its items are the names of its columns."""

    def __init__(self) -> None:
        self.columns = ["id", "text"]

    def __iter__(self):
        return iter(self.columns)


class Keyed:
    """A mapping that is not declared one, such as a file of HDF5."""

    def keys(self):
        return ["id", "text"]

    def __iter__(self):
        return iter(self.keys())


@pytest.mark.parametrize("source", [Frame(), Keyed()])
def test_names_of_columns_are_never_read_as_texts(source) -> None:
    with pytest.raises(
        InputError, match=r"Cannot read (Frame|Keyed) as documents: .*Convert it to a pyarrow table"
    ):
        neardup.dedup(source)
    with pytest.raises(InputError, match=r"Cannot sign (Frame|Keyed)"):
        neardup.sign(source)


def test_a_query_whose_connection_was_closed_is_refused_in_our_words(monkeypatch) -> None:
    connection = duckdb.connect()
    relation = connection.sql("select 'a' as text")
    connection.close()
    for _ in range(2):
        with pytest.raises(
            InputError, match="Cannot read DuckDBPyRelation as a table: Connection Error"
        ):
            neardup.dedup(relation)
        if hasattr(duckdb.DuckDBPyRelation, "__arrow_c_stream__"):
            monkeypatch.delattr(duckdb.DuckDBPyRelation, "__arrow_c_stream__")


@pytest.mark.parametrize("call", [neardup.dedup, neardup.sign])
def test_an_object_that_cannot_be_shown_is_refused_in_our_words(call) -> None:
    class Hidden:
        def __repr__(self) -> str:
            raise RuntimeError

    with pytest.raises(InputError, match="Hidden"):
        call(Hidden())


@pytest.mark.parametrize("values", [[], [float("nan")] * 2])
def test_a_column_of_pandas_without_values_is_a_column_of_texts(
    tmp_path: Path, values: list[float]
) -> None:
    """pandas gives it the type double."""
    frame = pandas.DataFrame({"text": values})
    assert read(TablePart(frame), Columns("text"))[1] == [None] * len(values)
    result = neardup.dedup(frame, output=tmp_path / "out")
    assert result.report["counts"]["without_features"] == len(values)


@pytest.mark.parametrize("hold", ["memory", "file"])
def test_columns_of_views_are_copied_to_the_kept_rows_however_they_are_nested(
    tmp_path: Path, hold: str
) -> None:
    """polars exports strings as views, for which Arrow has no filter."""
    text = ["the quick brown fox jumps over the lazy dog"] * 2 + [
        "another text that is not inline at all"
    ]
    frame = polars.DataFrame(
        {
            "text": text,
            "tags": [["a", "b"], None, ["a tag that is longer than twelve bytes"]],
            "by": [{"name": "a"}, {"name": None}, {"name": "c"}],
            "data": [b"\xff", None, b"\x00" * 20],
        }
    ).with_columns(
        site=polars.Series(["x", "y", "x"]).cast(polars.Categorical),
        pair=polars.Series(
            [["a", "b"], ["c", "d"], ["e", "f"]], dtype=polars.Array(polars.String, 2)
        ),
    )
    source = frame
    if hold == "file":
        source = tmp_path / "in.arrow"
        frame.write_ipc(source)
    result = neardup.dedup(source, output=tmp_path / "out")
    [kept] = (tmp_path / "out" / "kept").iterdir()
    table = pq.read_table(kept) if hold == "memory" else pa.ipc.open_file(kept).read_all()
    expected = [frame.to_dicts()[row] for row in (0, 2)]
    assert table.to_pylist() == result.kept.to_pylist() == expected
    if hold == "file":
        assert table.schema == pa.ipc.open_file(source).schema


def test_a_hugging_face_dataset_is_read_in_its_own_order() -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": ["a", "b", "c"]}).select([2, 0])
    assert read(TablePart(dataset), Columns("text"))[1] == ["c", "a"]
    with pytest.raises(InputError, match="streaming dataset cannot be read twice"):
        TablePart(dataset.to_iterable_dataset())


def test_the_kept_rows_of_a_hugging_face_dataset_are_selected_and_one_split_is_compared_with_another() -> (  # noqa: E501
    None
):
    datasets = pytest.importorskip("datasets")
    train = datasets.Dataset.from_dict(
        {"text": ["one two three", "four five six", "One two three!"], "n": [1, 2, 3]}
    )
    test = datasets.Dataset.from_dict({"text": ["four five six"]})
    kept = neardup.dedup(train).dataset
    assert isinstance(kept, datasets.Dataset)
    assert kept["n"][:] == [1, 2]
    assert neardup.dedup(train, against=test).dataset["n"][:] == [1]
    with pytest.raises(SettingError, match="as source: got list"):
        _ = neardup.dedup(["a"]).dataset


def test_the_splits_of_a_dataset_dict_are_signed_in_their_order() -> None:
    datasets = pytest.importorskip("datasets")
    test = datasets.Dataset.from_dict({"text": ["one two three", "four five six"]})
    train = datasets.Dataset.from_dict({"text": ["seven eight nine"]})
    signed = neardup.sign(datasets.DatasetDict(test=test, train=train))
    texts = [*test["text"], *train["text"]]
    assert signed.values.tolist() == neardup.sign(texts).values.tolist()


def test_the_splits_of_a_dataset_dict_are_one_collection_in_their_order() -> None:
    datasets = pytest.importorskip("datasets")
    test = datasets.Dataset.from_dict({"text": ["one two three", "four five six"], "n": [1, 2]})
    train = datasets.Dataset.from_dict(
        {"text": ["Four five six!", "seven eight nine", None], "n": [3, 4, 5]}
    )
    result = neardup.dedup(datasets.DatasetDict(test=test, train=train))
    assert isinstance(result.dataset, datasets.DatasetDict)
    assert {name: split["n"][:] for name, split in result.dataset.items()} == {
        "test": [1, 2],
        "train": [4, 5],
    }
    assert result.removed.select(
        ["source_file", "row", "kept_source_file", "kept_row"]
    ).to_pylist() == [{"source_file": "train", "row": 0, "kept_source_file": "test", "kept_row": 1}]
    assert result.kept["n"].to_pylist() == [1, 2, 4, 5]
    with pytest.raises(InputError, match="streaming dataset cannot be read twice"):
        neardup.dedup({"train": train.to_iterable_dataset()})


def test_strings_are_read_from_any_iterable() -> None:
    part = TablePart(f"text {i}" if i else None for i in range(20_000))
    assert read(part, Columns("text"))[1] == [None, *(f"text {i}" for i in range(1, 20_000))]
    assert read(TablePart([]), Columns("text"))[1] == []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (["a", 1], "Document 1 is int, not a string: 1"),
        ([2**70], "Document 0 is int, not a string"),
        (["a", 2**70], "Document 1 is int, not a string"),
        (["a\ud800"], "not Unicode text"),
        (np.array("text"), "Cannot read ndarray as documents"),
        ("one text", "Cannot read str as documents"),
        (7, "Cannot read int as documents"),
        ({"train": ["a"]}, "Cannot read dict as documents"),
        ({"a", "b"}, "Cannot read set as documents"),
    ],
)
def test_what_is_no_table_is_refused(source: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        TablePart(source)


def test_a_column_of_structs_without_rows_has_their_fields() -> None:
    column = pa.chunked_array([], pa.struct([("text", pa.large_string())]))
    assert TablePart(column).table.schema == pa.schema([("text", pa.large_string())])


def test_what_becomes_a_table_by_one_call_is_told_which() -> None:
    dataset = pytest.importorskip("pyarrow.dataset").dataset(pa.table({"text": ["a"]}))
    with pytest.raises(InputError, match=r"Call its to_table\(\) first"):
        neardup.dedup(dataset)
    with pytest.raises(InputError, match=r"pyarrow\.Table\.from_pylist"):
        neardup.dedup([{"text": "a"}])


def test_a_parquet_file_of_one_text_in_all_rows_expands_up_to_a_named_limit(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(reading, "FREE_BYTES", 1 << 20)
    monkeypatch.setattr(reading, "FREE_BYTES_OF_TABLE", 1 << 20)
    indices = pa.array(np.zeros(100_000, np.int32))
    table = pa.table({"text": pa.DictionaryArray.from_arrays(indices, ["x" * 1000])})
    part = parquet(tmp_path, table, compression="zstd")
    limit = max(1 << 20, 200 * part.stat()[0])
    rejected: list[Rejected] = []
    num_bytes = sum(
        1000 * len(batch.rows) for batch in Task(part, Columns("text"), False).read(rejected.append)
    )
    assert 0 < num_bytes <= limit < 100_000_000
    (one,) = rejected
    assert one.rest_of_file
    assert "it expands to more than 200 times its size" in one.reason


@pytest.mark.parametrize(
    ("suffix", "line"), [(".txt.gz", b"\n"), (".jsonl.gz", b"{}\n"), (".csv.gz", b'""\n')]
)
def test_a_small_file_of_empty_documents_ends_in_the_same_limit(
    tmp_path: Path, monkeypatch, suffix: str, line: bytes
):
    monkeypatch.setattr(reading, "FREE_BYTES", 1 << 20)
    path = tmp_path / f"in{suffix}"
    path.write_bytes(gzip.compress(b"text\n" * (suffix == ".csv.gz") + line * 3_000_000))
    rejected: list[Rejected] = []
    read = Task(one_file(path, "line"), Columns("text"), False).read(rejected.append)
    num_documents = sum(len(batch.rows) for batch in read)
    assert 64 * num_documents <= 200 * path.stat().st_size
    assert rejected[-1].rest_of_file
    assert "it expands to more than 200 times its size" in rejected[-1].reason


def wide_csv(path: Path, num_columns: int, *, quoted: bool) -> None:
    names = [f'"name, {i}"' if quoted else f"name {i}" for i in range(num_columns - 1)]
    path.write_text(",".join(["text", *names]) + "\n" + ",".join(["a"] * num_columns) + "\n")


@pytest.mark.parametrize("quoted", [False, True])
def test_a_csv_file_has_a_limit_of_columns_that_names_itself(
    tmp_path: Path, monkeypatch, quoted: bool
) -> None:
    monkeypatch.setattr(limits, "MAX_COLUMNS", 100)
    wide_csv(tmp_path / "most.csv", 100, quoted=quoted)
    assert read(one_file(tmp_path / "most.csv"), Columns("text"))[1] == ["a"]
    wide_csv(tmp_path / "more.csv", 101, quoted=quoted)
    _, texts, _, _, rejected = read(one_file(tmp_path / "more.csv"), Columns("text"))
    assert texts == []
    assert "it has 101 columns, more than the 100 that are read" in rejected[0].reason


def test_a_parquet_file_has_a_limit_of_columns_that_names_itself(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(limits, "MAX_COLUMNS", 100)
    part = parquet(tmp_path, pa.table({"text": ["a"], **{f"name {i}": [1] for i in range(100)}}))
    _, texts, _, _, rejected = read(part, Columns("text"))
    assert texts == []
    assert "it has 101 columns, more than the 100 that are read" in rejected[0].reason


def test_a_text_with_many_commas_in_the_header_is_one_column(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(limits, "MAX_COLUMNS", 100)
    (tmp_path / "in.csv").write_text('text,"' + "a, " * 1000 + '"\nb,c\n')
    assert read(one_file(tmp_path / "in.csv"), Columns("text"))[1] == ["b"]


@pytest.mark.parametrize(("document", "is_vector"), [("one two", False), ([1.0, 2.0], True)])
def test_the_first_document_tells_the_kind_however_late_it_comes(document, is_vector) -> None:
    table = as_table([None] * 9000 + [document])
    (name,) = table.column_names
    assert pa.types.is_large_list(table.schema.field(name).type) is is_vector
    assert table[name].null_count == 9000
    assert table[name][-1].as_py() == document


def test_a_list_without_documents_is_a_column_of_texts() -> None:
    assert as_table([None, None]).schema.field(0).type == pa.large_string()
