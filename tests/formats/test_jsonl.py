"""JSON lines: what is read, what is rejected, and that both depend on each line alone."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup
from neardup.documents import lines
from neardup.documents.batch import Columns, RawLines, Rejected
from neardup.documents.ranks import no_rank
from neardup.documents.sources import Source
from neardup.errors import IncompleteWarning
from neardup.formats import jsonl


def read(
    path: Path, columns: Columns, compression: str | None = None
) -> tuple[list[tuple], list[Rejected]]:
    rejected: list[Rejected] = []
    rows: list[tuple] = []
    for batch in jsonl.read(Source(path.name, str(path), compression), columns, rejected.append):
        ids = [None] * len(batch.rows) if batch.ids is None else batch.ids.to_pylist()
        ranks = [None] * len(batch.rows) if not batch.ranks else batch.ranks[0][:, 0].tolist()
        assert batch.text.type == pa.large_string()
        batch.text.validate(full=True)
        rows += zip(batch.rows.tolist(), batch.text.to_pylist(), ids, ranks, strict=True)
    return rows, rejected


def read_lines(tmp_path: Path, data: bytes, columns: Columns = Columns("text", "id")):  # noqa: B008
    path = tmp_path / "in.jsonl"
    path.write_bytes(data)
    return read(path, columns)


def test_text_and_ids_are_read(tmp_path: Path) -> None:
    rows, rejected = read_lines(
        tmp_path, '{"id": "x", "text": "é\\n😀"}\n{"text": "b", "id": "y"}'.encode()
    )
    assert rows == [(0, "é\n😀", "x", None), (1, "b", "y", None)]
    assert rejected == []


def test_missing_or_null_text_is_a_document_without_text(tmp_path: Path) -> None:
    rows, rejected = read_lines(tmp_path, b'{"id": "x"}\n{"id": "y", "text": null}\n{}\n')
    assert [(row, text) for row, text, _, _ in rows] == [(0, None), (1, None), (2, None)]
    assert rejected == []


def test_blank_lines_are_counted_but_are_no_documents(tmp_path: Path) -> None:
    rows, rejected = read_lines(tmp_path, b'\n{"text": "a"}\n  \r\n{"text": "b"}\r\n\n')
    assert [(row, text) for row, text, _, _ in rows] == [(1, "a"), (3, "b")]
    assert rejected == []


@pytest.mark.parametrize("ids", ["1, 2", '"1", "2"', '1, "2"', "1, 2.5", '"a", true'])
def test_ids_of_any_plain_type_become_strings(tmp_path: Path, ids: str) -> None:
    values = json.loads(f"[{ids}]")
    rows, rejected = read_lines(
        tmp_path, b"".join(json.dumps({"text": "t", "id": v}).encode() + b"\n" for v in values)
    )
    assert [row[2] for row in rows] == [v if isinstance(v, str) else json.dumps(v) for v in values]
    assert rejected == []


def test_ranks_are_numbers_or_nan(tmp_path: Path) -> None:
    data = (
        b'{"text": "a", "r": 1}\n{"text": "b", "r": 2.5}\n{"text": "c"}\n{"text": "d", "r": '
        b'"high"}\n'
    )
    rows, rejected = read_lines(tmp_path, data, Columns("text", None, ("r",)))
    np.testing.assert_array_equal([row[3] for row in rows], [1, 2.5, np.nan])
    assert [(one.row, one.reason) for one in rejected] == [(3, no_rank("high"))]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"text": 1}', "'text' is a number, not a string"),
        (b'{"text": ["a"]}', "'text' is a list, not a string"),
        (b'{"text": "a", "id": {}}', "the id is an object, not a string or a number"),
        (b'{"text": "a\\ud800"}', "'text' contains a lone surrogate"),
        (
            b'{"text": "\xff"}',
            "'text' is not valid UTF-8: invalid start byte at byte 10 of the line",
        ),
        (b'{"text": "a"', "the line is not JSON"),
        (b'{"text": "a"} {"text": "b"}', "the line is not JSON: Extra data"),
        (b'{"text": "a"} null', "the line is not JSON: Extra data"),
        (b"[1]", "the line is a list, not an object"),
        (b"null", "the line is null, not an object"),
        (b"\x00", "the line is not JSON"),
        (b'{"text": "a\tb"}', "the line is not JSON: Invalid control character at column 12"),
        (b'{"text": ' + b"[" * 100_000 + b"}", "nested too deeply"),
        (b"[" * 100_000, "the line is nested too deeply"),
    ],
)
@pytest.mark.parametrize("position", [0, 1, 40])
def test_a_bad_line_is_rejected_with_its_place_and_costs_no_other(
    tmp_path: Path, line: bytes, reason: str, position: int
) -> None:
    good = [json.dumps({"text": f"text {i}", "id": str(i)}).encode() for i in range(100)]
    content = [*good[:position], line, *good[position:]]
    rows, rejected = read_lines(tmp_path, b"\n".join(content) + b"\n")
    assert [row[1] for row in rows] == [f"text {i}" for i in range(100)]
    (bad,) = rejected
    assert (bad.file, bad.row, bad.line) == ("in.jsonl", position, position + 1)
    assert bad.byte == sum(len(one) + 1 for one in good[:position])
    assert reason in bad.reason


def test_deep_nesting_beside_the_text_is_read(tmp_path: Path) -> None:
    deep = b'{"text": "a", "meta": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    rows, rejected = read_lines(tmp_path, deep + b"\nbad\n" + deep + b"\n")
    assert [row[1] for row in rows] == ["a", "a"]
    assert len(rejected) == 1


def test_of_a_repeated_key_the_last_wins(tmp_path: Path) -> None:
    rows, _ = read_lines(tmp_path, b'{"text": "first", "text": "last"}\n')
    assert rows[0][1] == "last"


def test_a_byte_order_mark_is_tolerated_at_the_head_only(tmp_path: Path) -> None:
    rows, rejected = read_lines(tmp_path, b'\xef\xbb\xbf{"text": "a"}\n\xef\xbb\xbf{"text": "b"}\n')
    assert [row[1] for row in rows] == ["a"]
    assert [one.row for one in rejected] == [1]


VALUES = st.sampled_from(
    [
        '"a"',
        "null",
        "1",
        "1.5",
        '"\\ud800"',
        '"\\ud83d\\ude00"',
        "[null, 1]",
        '{"text": "in"}',
        "NaN",
        "Inf",
        "1e999",
        "tru",
    ]
)
OBJECTS = st.lists(
    st.tuples(st.sampled_from(["text", "id", "rank", "z", "te\\u0078t"]), VALUES), max_size=4
).map(lambda pairs: "{" + ", ".join(f'"{key}": {value}' for key, value in pairs) + "}")
JUNK = st.sampled_from(
    ["", "  ", "null", "{}{}", '{"a": [{}', "}{", '{"text": "a"},', ' {"text": "a"} ', "\ufeff{}"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(OBJECTS, JUNK, st.just('{"text": "plain"}')), min_size=1, max_size=40))
def test_what_a_line_gives_does_not_depend_on_its_neighbours(
    tmp_path_factory, contents: list[str]
) -> None:
    path = tmp_path_factory.mktemp("alone") / "in.jsonl"
    columns = Columns("text", None, ("rank",))

    def outcome(several: list[str]) -> dict[int, object]:
        path.write_text("\n".join(several) + "\n", encoding="utf-8")
        rows, rejected = read(path, columns)
        read_rows: dict[int, object] = {row[0]: repr(row[1:]) for row in rows}
        return read_rows | {one.row: one.reason for one in rejected}

    together = outcome(contents)
    for index, content in enumerate(contents):
        lead = [""] if index else []
        assert outcome([*lead, content]).get(len(lead)) == together.get(index)


@pytest.mark.parametrize("block_bytes", [1, 7, 64, 1 << 20])
def test_block_size_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int
) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", block_bytes)
    data = b'{"text": "a"}\n\nbad\n{"text": "long ' + b"x" * 100 + b'"}\n{"text": "end"}'
    rows, rejected = read_lines(tmp_path, data, Columns("text"))
    assert [(row[0], row[1][:4]) for row in rows] == [(0, "a"), (3, "long"), (4, "end")]
    assert [(one.row, one.byte) for one in rejected] == [(2, 15)]


def test_a_line_beyond_the_bound_is_rejected_and_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "BLOCK_BYTES", 8)
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 50)
    data = b'{"text": "a"}\n{"text": "' + b"x" * 200 + b'"}\n{"text": "b"}\nbad\n'
    rows, rejected = read_lines(tmp_path, data, Columns("text"))
    assert [(row[0], row[1]) for row in rows] == [(0, "a"), (2, "b")]
    assert [(one.row, one.line, one.byte) for one in rejected] == [
        (1, 2, 14),
        (3, 4, data.index(b"bad")),
    ]
    assert "longer than 50 bytes" in rejected[0].reason


RECORDS = b"".join(
    json.dumps({"text": f"document {i} " * 20}).encode() + b"\n" for i in range(3000)
)


def pack(data: bytes, codec: str) -> bytes:
    packers = {"gzip": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}
    return packers[codec](data) if codec in packers else pa.compress(data, codec, asbytes=True)


@pytest.mark.parametrize("codec", ["gzip", "bz2", "xz", "zstd"])
def test_members_that_follow_each_other_are_all_read(tmp_path: Path, codec: str) -> None:
    path = tmp_path / "in"
    path.write_bytes(pack(b'{"text": "a"}\n', codec) + pack(b'{"text": "b"}\n', codec))
    rows, rejected = read(path, Columns("text"), codec)
    assert [row[1] for row in rows] == ["a", "b"]
    assert rejected == []


@pytest.mark.parametrize("codec", ["gzip", "bz2", "xz", "zstd"])
@pytest.mark.parametrize("damage", ["cut", "garbage"])
def test_a_damaged_stream_keeps_what_was_read_and_rejects_the_rest_once(
    tmp_path: Path, codec: str, damage: str
) -> None:
    packed = pack(RECORDS, codec) + pack(RECORDS, codec)
    packed = packed[: len(packed) * 9 // 10] if damage == "cut" else packed + b"garbage at the end"
    path = tmp_path / "in"
    path.write_bytes(packed)
    rows, rejected = read(path, Columns("text"), codec)
    assert [row[0] for row in rows] == list(range(len(rows)))
    assert 3000 <= len(rows) <= 6000
    if damage == "cut":
        (bad,) = rejected
        assert (bad.file, bad.row, bad.line) == ("in", None, len(rows) + 1)
        assert bad.byte is not None
        assert "the rest of the file cannot be read" in bad.reason


def test_the_payload_is_the_lines_as_they_stood(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(b'{"text" : "a"}\r\n\nbad\n  {"x":1, "text":"b"}\n{"text":"c"}\n')
    (batch,) = jsonl.read(
        Source("in", str(path)), Columns("text"), lambda _: None, with_payload=True
    )
    assert isinstance(batch.payload, RawLines)
    data = bytes(batch.payload.data)
    offsets = batch.payload.offsets
    assert [data[i:j] for i, j in pairwise(offsets)] == [
        b'{"text" : "a"}\r\n',
        b'  {"x":1, "text":"b"}\n',
        b'{"text":"c"}\n',
    ]


def test_columns_are_the_keys_of_the_first_lines(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    path.write_bytes(
        b'\xef\xbb\xbf{"a": 1}\nbad\n{"b": "x", "a": 2}\n' + b'{"a": 1}\n' * 200 + b'{"late": 1}\n'
    )
    assert jsonl.column_types(Source("in", str(path))) == {"a": pa.int64(), "b": pa.large_string()}


@pytest.mark.parametrize("options", [{}, {"id_column": "id"}])
def test_a_row_whose_id_is_a_list_or_an_object_is_rejected_alone(tmp_path, options):
    rows = [{"id": number, "text": f"a{number} b c"} for number in (1, 2)]
    rows += [{"id": [], "text": "x y z"}, {"id": {}, "text": "u v w"}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = neardup.dedup(tmp_path / "in.jsonl", **options, max_unreadable=1).report
    assert (
        report["columns"]["id"],
        report["counts"]["read"],
        report["counts"]["rejected"],
    ) == ("id", 2, 2)


@pytest.mark.parametrize(
    "options", [{}, {"within": "group"}, {"keep": "max:rank"}], ids=["plain", "within", "ranks"]
)
@pytest.mark.parametrize("late_id", ["250", '"x"', "1.5"])
def test_a_bad_text_costs_no_other_row_where_ids_are_whole_numbers(tmp_path, late_id, options):
    lines = [f'{{"id": {row}, "text": "a{row}", "group": 7, "rank": {row}}}' for row in range(300)]
    lines[16] = '{"id": 16, "text": ["a"], "group": 7, "rank": 16}'
    lines[250] = f'{{"id": {late_id}, "text": "a250", "group": 7, "rank": 250}}'
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    kept = neardup.dedup(tmp_path / "in.jsonl", **options, on_error="skip").kept
    ids = [*map(str, range(16)), *map(str, range(17, 300))]
    ids[ids.index("250")] = late_id.strip('"')
    assert kept["id"].to_pylist() == ids


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"   \n", b" \t \r\n"])
def test_blank_lines_in_masses_are_not_looked_at_one_by_one(
    tmp_path: Path, monkeypatch, blank: bytes
) -> None:
    looked_at: list[int] = []
    line = lines.LineBlock.line

    def note(block: lines.LineBlock, index: int) -> bytes:
        looked_at.append(index)
        return line(block, index)

    monkeypatch.setattr(lines.LineBlock, "line", note)
    data = blank * 300_000 + b' {"id": 1, "text": "a"} \n' + blank * 5 + b"no object\n" + blank
    rows, rejected = read_lines(tmp_path, data)
    assert [(row, text, id) for row, text, id, _ in rows] == [(300_000, "a", "1")]
    assert [(one.row, one.line, one.byte) for one in rejected] == [
        (300_006, 300_007, len(blank) * 300_005 + len(b' {"id": 1, "text": "a"} \n'))
    ]
    assert len(looked_at) <= 6  # the object and the other line, for the columns and to be read


@given(
    st.lists(
        st.sampled_from(
            [b"\n", b" \n", b"\t\r\n", b'{"text": "a"}\n', b"{}\n", b" {} \n", b"no\n"]
        ),
        max_size=40,
    )
)
def test_blocks_of_few_lines_have_the_same_lines_as_one_block(
    tmp_path_factory, contents: list[bytes]
) -> None:
    folder = tmp_path_factory.mktemp("in")
    whole = read_lines(folder, b"".join(contents), Columns("text"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "MAX_BLOCK_LINES", 3)
        assert read_lines(folder, b"".join(contents), Columns("text")) == whole


def test_rejected_rows_in_masses_are_passed_on_block_by_block(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(lines, "MAX_BLOCK_LINES", 1000)
    (tmp_path / "in.jsonl").write_bytes(b"no object\n" * 10_000)
    rejected: list[Rejected] = []
    waiting = []
    for batch in jsonl.read(
        Source("in.jsonl", str(tmp_path / "in.jsonl")), Columns("text"), rejected.append
    ):
        waiting.append(len(rejected))
        assert len(batch.rows) == 0
        rejected.clear()
    assert waiting == [1000] * 10


# JSON text sequences (RFC 7464), and JSON that has not an object a line
SEPARATOR = b"\x1e"
SOME_LINES = [
    b'{"id": "x", "text": "one"}\n',
    b' {"text": "two", "id": 3}  \r\n',
    b'{"text": "three" "id"}\n',
    b'{"text": "\xff"}\n',
    b"[1]\n",
    b"\n",
    b"  \n",
    b'{"text": "last"}',
    b'{"text": "\x1e"}\n',
]


@given(st.lists(st.sampled_from(SOME_LINES), max_size=40), st.data())
def test_a_separator_before_a_line_changes_nothing(tmp_path: Path, plain, data) -> None:
    marked = [
        SEPARATOR + line if data.draw(st.booleans(), label="separator") else line for line in plain
    ]
    rows, rejected = read_lines(tmp_path, b"".join(marked))
    expected, expected_rejected = read_lines(tmp_path, b"".join(plain))
    assert rows == expected
    assert [row.row for row in rejected] == [row.row for row in expected_rejected]


def test_kept_lines_of_a_sequence_keep_their_separators(tmp_path: Path) -> None:
    data = b'\x1e{"id": "a", "text": "one two three"}\n\x1e{"id": "b", "text": "four five six"}\n'
    path = tmp_path / "a.json"
    path.write_bytes(data)
    neardup.dedup(path, output=tmp_path / "out")
    assert (tmp_path / "out/kept/a.json").read_bytes() == data


def test_a_sequence_is_known_in_standard_input(pipe) -> None:
    pipe(b'\x1e{"id": "a", "text": "one two three"}\n')
    assert neardup.dedup("-").kept["text"].to_pylist() == ["one two three"]


OTHER_RECORDS = [{"text": "one two three"}, {"text": "four five six", "more": {"of": ["it"]}}]
PRETTY = [json.dumps(record, indent=2) for record in OTHER_RECORDS]
LONG = json.dumps({"text": "words of a long text " * 5000}, indent=2)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("\n".join(PRETTY), "jq -c . FILE"),
        (LONG + "\n", "jq -c . FILE"),
        ("\ufeff" + PRETTY[0], "jq -c . FILE"),
        ("".join(map(json.dumps, OTHER_RECORDS)), "jq -c . FILE"),
        (json.dumps(OTHER_RECORDS, indent=2), "jq -c '.[]'"),
        ("".join(f"\x1e{text}\n" for text in PRETTY), "jq --seq -c . FILE"),
    ],
    ids=["pretty", "long", "marked", "without line ends", "array", "sequence"],
)
def test_other_json_is_named_with_the_command_that_converts_it(
    tmp_path: Path, text: str, command: str
) -> None:
    path = tmp_path / "a.json"
    path.write_text(text, encoding="utf-8")
    with pytest.warns(IncompleteWarning, match=re.escape(command)):
        neardup.dedup(path, text_column="text")


@pytest.mark.parametrize(
    "line", ['{"text": "cut', '{"text": 1, }', '{"a":' * 3000, "{", '{"text": "a"} and more']
)
def test_a_bad_line_is_no_other_json(tmp_path: Path, line: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(f'{line}\n{{"text": "one two three"}}\n')
    with pytest.warns(IncompleteWarning) as caught:
        neardup.dedup(path, text_column="text")
    assert "jq" not in str(caught[0].message)


def read_table(path: Path, data: bytes) -> pa.Table:
    path.write_bytes(data)
    assert jsonl.HANDLER.read_table is not None
    return jsonl.HANDLER.read_table(Source(path.name, str(path)), ("id",))


# Arrow's parser ends the process at a `null` that begins a block.
@pytest.mark.parametrize("data", [b"null\n", b'\n null\n{"id": "a"}\n', b'{"id": "a"}\nnull\n'])
def test_a_table_of_lines_that_are_no_objects_is_refused_with_the_line(tmp_path, data):
    line = 1 + data.split(b"null")[0].count(b"\n")
    with pytest.raises(pa.ArrowInvalid, match=f"line {line}: the line is null, not an object"):
        read_table(tmp_path / "ids.jsonl", data)


def test_a_table_has_lines_of_any_length(tmp_path):
    ids = ["a", "b" * (5 << 20), "c"]
    data = b"".join(json.dumps({"id": name}).encode() + b"\n" for name in ids)
    assert read_table(tmp_path / "ids.jsonl", data)["id"].to_pylist() == ids


@pytest.mark.parametrize("data", [b"", b"\n\n"])
def test_a_table_without_lines_has_no_rows(tmp_path, data):
    assert read_table(tmp_path / "ids.jsonl", data).num_rows == 0
