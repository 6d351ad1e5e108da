"""Ranges are cut from the texts of documents of every format; the rest of each document stays as it
was.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from neardup.decide.outcome import Cuts, Edits
from neardup.documents.batch import Columns
from neardup.documents.sinks import open_compressed
from neardup.documents.sources import Source
from neardup.errors import OutputError
from neardup.formats.reading import Part, Task
from neardup.formats.registry import COMPRESSIONS
from neardup.formats.tables import TablePart
from neardup.output.kept import KeptWriter, apply_edits
from neardup.output.write import kept_table
from neardup.runs.input_files import list_inputs

TEXTS = [
    "one two three",
    None,
    "déjà vu, 再见 🙂",
    "",
    'quotes " and \\ and \t tabs',
    "all of it goes",
    "a document that is removed",
    "the last",
]
CUTS = {
    0: [(4, 8)],
    2: [(0, 6), (10, 12)],
    4: [(7, 8), (13, 15)],
    5: [(0, 14)],
    6: [(0, 1)],
    7: [(3, 8)],
}  # characters
REMOVED = {6}


def edit(text: str, cuts: list[tuple[int, int]]) -> str:
    """Return a text without some ranges of characters."""
    for start, end in reversed(cuts):
        text = text[:start] + text[end:]
    return text


def edited() -> dict[int, str | None]:
    """Return the text of each document that stays."""
    texts = {
        row: text if text is None else edit(text, CUTS.get(row, []))
        for row, text in enumerate(TEXTS)
    }
    return {
        row: text for row, text in texts.items() if row not in REMOVED and (text or row not in CUTS)
    }


def edits_of(
    texts: list[str | None], cuts: dict[int, list[tuple[int, int]]], removed: set[int]
) -> Edits:
    """Return edits from cuts in characters."""
    rows = [
        (document, *(len((texts[document] or "")[:place].encode()) for place in pair))
        for document in sorted(cuts)
        for pair in cuts[document]
    ]
    documents, starts, ends = np.array(rows, np.int64).reshape(-1, 3).T
    kept = np.array([document not in removed for document in range(len(texts))], np.bool_)
    return Edits(kept, Cuts(documents.astype(np.uint32), starts, ends))


def write(part: Part, out: Path, edits: Edits, text: str = "text") -> Path:
    """Write the documents of an input with edits."""
    task = Task(part, Columns(text), False)
    first = 0
    with KeptWriter(part, out) as writer:
        for batch in task.read(pytest.fail, with_payload=True):
            edited_batch, kept = apply_edits(
                task, batch, edits.between(first, first + len(batch.rows))
            )
            assert edited_batch.payload is not None
            writer.write(edited_batch.payload, kept)
            first += len(batch.rows)
    return writer.path


EDITS = edits_of(TEXTS, CUTS, REMOVED)
TYPES = [
    pa.string(),
    pa.large_string(),
    pa.string_view(),
    pa.binary(),
    pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.large_string(), ordered=True),
]


def table(kind: pa.DataType) -> pa.Table:
    count = len(TEXTS)
    schema = pa.schema(
        [
            pa.field("id", pa.int64(), nullable=False),
            pa.field("text", kind, metadata={"origin": "test"}),
            pa.field("lang", pa.dictionary(pa.int32(), pa.string())),
            pa.field("tags", pa.list_(pa.field("element", pa.string()))),
        ],
        metadata={"maker": "a test"},
    )
    langs = pa.array(["en", "fr"] * (count // 2)).dictionary_encode()
    values = (
        [None if text is None else text.encode() for text in TEXTS]
        if kind == pa.binary()
        else TEXTS
    )
    columns = [
        pa.array(range(count)),
        pa.array(values, pa.large_string() if kind != pa.binary() else kind).cast(kind),
    ]
    return pa.Table.from_arrays(
        [*columns, langs, pa.array([["a", None], []] * (count // 2))], schema=schema
    )


def check_table(written: pa.Table, kind: pa.DataType) -> None:
    """Compare a table with the edited one; its schema too, with metadata."""
    expected = edited()
    source = table(kind)
    assert written.schema.equals(source.schema, check_metadata=True)
    assert written.column("id").to_pylist() == list(expected)
    texts = [
        value.decode() if isinstance(value, bytes) else value
        for value in written.column("text").to_pylist()
    ]
    assert texts == list(expected.values())
    for name in ("lang", "tags"):
        values = source.column(name).to_pylist()
        assert written.column(name).to_pylist() == [values[row] for row in expected]


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("group_rows", [3, 100])
def test_parquet_keeps_types_metadata_and_the_other_columns(
    tmp_path: Path, kind: pa.DataType, group_rows: int
) -> None:
    try:
        pq.write_table(
            table(kind), tmp_path / "in.parquet", row_group_size=group_rows, compression="zstd"
        )
    except pa.ArrowNotImplementedError as error:
        pytest.skip(f"pyarrow {pa.__version__}: {error}")  # views, before 21
    (part,) = list_inputs([str(tmp_path / "in.parquet")])
    path = write(part, tmp_path / "out", EDITS)
    check_table(pq.read_table(path), pq.read_schema(tmp_path / "in.parquet").field("text").type)
    assert pq.read_metadata(path).row_group(0).column(1).compression == "ZSTD"


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("batch_rows", [2, 100])
def test_arrow_keeps_types_metadata_and_the_other_columns(
    tmp_path: Path, kind: pa.DataType, stream: bool, batch_rows: int
) -> None:
    make, read = (
        (pa.ipc.new_stream, pa.ipc.open_stream) if stream else (pa.ipc.new_file, pa.ipc.open_file)
    )
    with make(str(tmp_path / "in.arrow"), table(kind).schema) as writer:
        writer.write_table(table(kind), max_chunksize=batch_rows)
    (part,) = list_inputs([str(tmp_path / "in.arrow")])
    with read(write(part, tmp_path / "out", EDITS).read_bytes()) as reader:
        check_table(reader.read_all(), kind)


def test_a_table_in_memory_is_written_and_returned_with_edits(tmp_path: Path) -> None:
    part = TablePart(table(pa.string()))
    check_table(pq.read_table(write(part, tmp_path / "out", EDITS)), pa.string())
    check_table(kept_table([Task(part, Columns("text"), False)], EDITS), pa.string())


def test_a_column_of_runs_stays_one(tmp_path: Path) -> None:
    runs = pa.RunEndEncodedArray.from_arrays(
        pa.array([2, 3], pa.int32()), pa.array(["one two", "three"])
    )
    part = TablePart(pa.table({"text": runs}))
    kept = kept_table(
        [Task(part, Columns("text"), False)],
        edits_of(["one two"] * 2 + ["three"], {1: [(0, 4)]}, set()),
    )
    assert kept.schema.field("text").type == runs.type
    assert kept.column("text").combine_chunks().to_pylist() == ["one two", "two", "three"]


SUFFIXES = ["", *COMPRESSIONS]


def source_file(path: Path, data: bytes) -> Part:
    """Write a file, compressed as its suffix says, and return it as an input."""
    with open_compressed(str(path), COMPRESSIONS.get(path.suffix)) as stream:
        stream.write(data)
    (part,) = list_inputs([str(path)])
    return part


def content(path: Path) -> bytes:
    with Source(str(path), str(path), COMPRESSIONS.get(path.suffix)).open_stream() as stream:
        return bytes(stream.read())


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(("name", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_delimited_text_keeps_the_other_columns(
    tmp_path: Path, name: str, delimiter: str, suffix: str
) -> None:
    rows = [[str(row), text or "", f'x"{delimiter}\n{row}'] for row, text in enumerate(TEXTS)]
    file = io.StringIO()
    csv.writer(file, delimiter=delimiter).writerows([["id", "text", "note"], *rows])
    part = source_file(tmp_path / f"in.{name}{suffix}", file.getvalue().encode())
    written = content(write(part, tmp_path / "out", EDITS)).decode()
    expected = [[str(row), text or "", rows[row][2]] for row, text in edited().items()]
    assert list(csv.reader(io.StringIO(written, newline=""), delimiter=delimiter))[1:] == expected


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("head", ["", "\ufeff"])
@pytest.mark.parametrize("is_ended", [True, False])
def test_lines_keep_their_ends_and_the_byte_order_mark(
    tmp_path: Path, end: str, head: str, is_ended: bool, suffix: str
) -> None:
    last = len(TEXTS) - 1
    ends = [end if row < last or is_ended else "" for row in range(len(TEXTS))]
    data = head + "".join((text or "") + ends[row] for row, text in enumerate(TEXTS))
    part = source_file(tmp_path / f"in.txt{suffix}", data.encode())
    written = content(write(part, tmp_path / "out", EDITS)).decode()
    assert written == head + "".join((text or "") + ends[row] for row, text in edited().items())


def test_a_carriage_return_that_becomes_the_last_character_of_a_line_is_not_read_as_part_of_its_end(
    tmp_path: Path,
) -> None:
    part = source_file(tmp_path / "in.txt", b"a\rb\nnext\n")
    edits = edits_of(["a\rb", "next"], {0: [(2, 3)]}, set())
    (again,) = list_inputs([str(write(part, tmp_path / "out", edits))])
    (batch,) = again.read(Columns("text"), pytest.fail)
    assert batch.text.to_pylist() == ["a\r", "next"]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_text_file_is_a_document(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"in.txt{suffix}"
    source_file(path, "\ufeffone\r\ntwo\n再见".encode())
    (part,) = list_inputs([str(path)], unit="file")
    text = "one\r\ntwo\n再见"
    assert (
        content(
            write(part, tmp_path / "a", edits_of([text], {0: [(3, 8), (9, 10)]}, set()))
        ).decode()
        == "\ufeffone\n见"
    )
    assert not write(part, tmp_path / "b", edits_of([text], {0: [(0, 11)]}, set())).exists()


def jsonl(
    tmp_path: Path,
    lines: list[bytes],
    texts: list[str | None],
    cuts: dict[int, list[tuple[int, int]]],
) -> bytes:
    part = source_file(tmp_path / "in.jsonl", b"".join(lines))
    path = write(part, tmp_path / "out", edits_of(texts, cuts, set()))
    try:
        return content(path)
    finally:
        path.unlink()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_json_lines_change_in_the_string_of_the_text_only(tmp_path: Path, suffix: str) -> None:
    lines = [
        f'{{"id" : {row},  "text":{json.dumps(text)}, "n": 1.50e+1 }}\n'
        for row, text in enumerate(TEXTS)
    ]
    part = source_file(tmp_path / f"in.jsonl{suffix}", "".join(lines).encode())
    written = content(write(part, tmp_path / "out", EDITS)).decode()
    assert written == "".join(
        f'{{"id" : {row},  "text":{json.dumps(text)}, "n": 1.50e+1 }}\n'
        for row, text in edited().items()
    )


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b'{"text":"ab cd"}\r\n', b'{"text":"ab"}\r\n'),
        (b' {"t\\u0065xt" : "ab cd" }', b' {"t\\u0065xt" : "ab" }'),
        (b'\xef\xbb\xbf{"text":"ab cd"}\n', b'\xef\xbb\xbf{"text":"ab"}\n'),
        (
            b'{"text":"first","text":"ab cd","x":"text"}\n',
            b'{"text":"first","text":"ab","x":"text"}\n',
        ),
        (b'{"text":null,"text":"ab cd"}\n', b'{"text":null,"text":"ab"}\n'),
        (
            b'{"a":{"text":"in"},"b":["text",{"text":"}"}],"text":"ab cd","c":{"text":"x"}}\n',
            b'{"a":{"text":"in"},"b":["text",{"text":"}"}],"text":"ab","c":{"text":"x"}}\n',
        ),
        (b'{"x":"\xff\\ud800","text":"ab cd"}\n', b'{"x":"\xff\\ud800","text":"ab"}\n'),
        (
            b'{"text":"ab cd","x":' + b"[" * 3000 + b"]" * 3000 + b"}\n",
            b'{"text":"ab","x":' + b"[" * 3000 + b"]" * 3000 + b"}\n",
        ),
        (b'{"x":Inf,"text":"ab cd"}\n', b'{"x":Inf,"text":"ab"}\n'),
        (b'{"x":"\\"text\\":","text":"ab cd"}\n', b'{"x":"\\"text\\":","text":"ab"}\n'),
    ],
)
def test_the_text_of_a_line_is_the_last_string_of_its_key(
    tmp_path: Path, line: bytes, expected: bytes
) -> None:
    assert jsonl(tmp_path, [line], ["ab cd"], {0: [(2, 5)]}) == expected


@pytest.mark.parametrize("text", ["déjà 再见 🙂 end", 'a "quote" \\ \x01 end'])
@pytest.mark.parametrize("is_escaped", [True, False])
def test_escapes_stay_escapes_and_characters_stay_characters(
    tmp_path: Path, text: str, is_escaped
) -> None:
    line = json.dumps({"text": text}, ensure_ascii=is_escaped)
    expected = json.dumps({"text": text[:-4]}, ensure_ascii=is_escaped)
    assert (
        jsonl(tmp_path, [line.encode()], [text], {0: [(len(text) - 4, len(text))]})
        == expected.encode()
    )


SPACES = st.text(" \t", max_size=2)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "a", '"']), inner, max_size=2)
    ),
    max_leaves=6,
)


@st.composite
def json_lines(draw: st.DrawFn) -> tuple[bytes, bytes, str, list[tuple[int, int]]]:
    """Draw a line around a text, as bytes before and behind its string; the text; and cuts in
    characters.
    """
    ascii_only = draw(st.booleans())
    space = [draw(SPACES) for _ in range(4)]

    def member(key: str, value: Any) -> str:
        return f"{json.dumps(key)}{space[0]}:{space[1]}{json.dumps(value, ensure_ascii=ascii_only)}"

    names = ["id", "TEXT", "text ", "a"]
    pairs = draw(st.dictionaries(st.sampled_from(names), VALUES, max_size=3))
    before = [member(key, value) for key, value in pairs.items()]
    split = draw(st.integers(0, len(before)))
    behind = before[split:]
    before = before[:split]
    if draw(st.booleans()):
        before.insert(
            0, member("text", draw(st.text(max_size=3)))
        )  # a key that is repeated: the last one counts
    text = draw(
        st.text(
            st.characters(exclude_categories=["Cs"]) | st.sampled_from('\\"\n🙂\x00'),
            min_size=1,
            max_size=9,
        )
    )
    ends = sorted(draw(st.sets(st.integers(0, len(text)), min_size=2, max_size=5)))
    cuts = list(zip(ends[::2], ends[1::2], strict=False))
    head = (
        f"{space[2]}{{"
        + "".join(f"{pair}{space[3]}," for pair in before)
        + f'"text"{space[0]}:{space[1]}'
    )
    tail = "".join(f",{space[3]}{pair}" for pair in behind) + f"}}{space[2]}\n"
    return head.encode("utf-8", "replace"), tail.encode("utf-8", "replace"), text, cuts


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(json_lines(), min_size=1, max_size=4), st.booleans())
@example([(b"{", b"}\n", "", [])], True)
def test_json_lines_equal_the_source_byte_for_byte_outside_of_the_text(
    tmp_path: Path, drawn: list[tuple[bytes, bytes, str, list[tuple[int, int]]]], ascii_only: bool
) -> None:
    drawn = [line for line in drawn if line[3]]
    sources = []
    expected = b""
    for head, tail, text, cuts in drawn:
        value = json.dumps(text, ensure_ascii=ascii_only).encode()
        rest = json.dumps(edit(text, cuts), ensure_ascii=value.isascii()).encode()
        sources.append(head + value + tail)
        expected += head + rest + tail if edit(text, cuts) else b""
    if sources:
        texts: list[str | None] = [line[2] for line in drawn]
        assert (
            jsonl(tmp_path, sources, texts, {row: line[3] for row, line in enumerate(drawn)})
            == expected
        )


@pytest.mark.parametrize("name", ["page.html", "page.html.gz"])
def test_ranges_of_pages_are_refused(tmp_path: Path, name: str) -> None:
    part = source_file(tmp_path / name, b"<p>A page</p>")
    with pytest.raises(
        OutputError,
        match=r"Parts of a text cannot be cut from .*page.html.*: its documents are web pages",
    ):
        write(part, tmp_path / "out", edits_of(["<p>A page</p>"], {0: [(3, 5)]}, set()), "html")
    assert not (tmp_path / "out" / name).exists()
    assert write(part, tmp_path / "out", Edits(np.ones(1, np.bool_)), "html").exists()


def test_a_text_of_several_columns_is_refused() -> None:
    part = TablePart(pa.table({"title": ["one"], "text": ["two"]}))
    task = Task(part, Columns("title", more_text=("text",)), False)
    with pytest.raises(
        OutputError, match="where it is of several columns: got title, text of table"
    ):
        kept_table([task], edits_of(["one\ntwo"], {0: [(0, 2)]}, set()))
