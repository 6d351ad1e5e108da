"""Columns inside of structs and keys of folders are columns: the answers are those of flat
tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.documents.nested import column_of, with_column

SAME = "one two three four five six"
ROWS: list[dict[str, Any]] = [
    {"doc": {"body": SAME, "at": {"site": "a", "stars": 1}}, "key": "p"},
    {"doc": {"body": "quite another text of words", "at": None}, "key": "q"},
    {"doc": None, "key": "r"},
    {"doc": {"body": SAME + ".", "at": {"site": "b", "stars": 3}}, "key": "s"},
    {"doc": {"body": SAME + "!", "at": {"site": "a", "stars": 2}}, "key": "t"},
]


def write_parquet(rows: list[dict[str, Any]], path: Path) -> None:
    pq.write_table(pa.Table.from_pylist(rows), path)


def write_arrow(rows: list[dict[str, Any]], path: Path) -> None:
    table = pa.Table.from_pylist(rows)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)


def write_lines(rows: list[dict[str, Any]], path: Path) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def flat(row: dict[str, Any]) -> dict[str, Any]:
    doc = row["doc"] or {}
    at = doc.get("at") or {}
    return {
        "text": doc.get("body"),
        "site": at.get("site"),
        "stars": at.get("stars"),
        "key": row["key"],
    }


WRITERS: dict[str, Callable[[list[dict[str, Any]], Path], None]] = {
    "parquet": write_parquet,
    "arrow": write_arrow,
    "jsonl": write_lines,
}
CHOICES = [
    ({}, {}),
    ({"within": "site"}, {"within": "doc.at.site"}),
    ({"keep": "max:stars"}, {"keep": "max:doc.at.stars"}),
]


@pytest.mark.parametrize("format_name", [*WRITERS, "table"])
@pytest.mark.parametrize(("plain", "nested"), CHOICES)
def test_a_column_inside_of_structs_is_a_column(tmp_path, format_name, plain, nested):
    source: Any = pa.Table.from_pylist(ROWS)
    if format_name in WRITERS:
        source = tmp_path / f"rows.{format_name}"
        WRITERS[format_name](ROWS, source)
    result = neardup.dedup(source, text_column="doc.body", id_column="key", **nested)
    expected = neardup.dedup(pa.Table.from_pylist(list(map(flat, ROWS))), id_column="key", **plain)
    names = ["id", "kept_id", "similarity"]
    assert result.removed.num_rows
    assert result.removed.select(names).equals(expected.removed.select(names))


def test_lines_that_arrow_refuses_have_nested_columns_too(tmp_path):
    lines = [
        *map(json.dumps, 20 * ROWS),
        '{"doc": "x", "key": 1}',
        '{"doc": {"body": "\\ud800"}}',
        '{"doc": {"body": 3}}',
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join([*lines, "nothing"]))
    result = neardup.dedup(
        tmp_path / "rows.jsonl", text_column="doc.body", output=tmp_path / "out", on_error="skip"
    )
    assert result.report["counts"]["read"] == 20 * len(ROWS)
    reasons = [
        json.loads(line)["reason"]
        for line in (tmp_path / "out/rejected.jsonl").read_text().splitlines()
    ]
    assert len(reasons) == 5  # and the file
    assert reasons[0] == "'doc' is a string, not an object"


@pytest.mark.parametrize("format_name", WRITERS)
def test_passages_are_cut_from_a_column_inside_of_structs(tmp_path, format_name):
    passage = "a passage of some length that occurs in two of these texts, word by word"
    rows = [
        {"doc": {"n": 1, "body": f"{start} {passage} {start}"}, "body": passage}
        for start in ("first", "second")
    ]
    WRITERS[format_name](rows, tmp_path / f"rows.{format_name}")
    options = {"text_column": "doc.body", "min_length": 50, "output": tmp_path / "out"}
    neardup.remove_passages(tmp_path / f"rows.{format_name}", **options)
    kept = tmp_path / f"out/kept/rows.{format_name}"
    readers = {"parquet": pq.read_table, "arrow": lambda path: pa.ipc.open_file(path).read_all()}
    if format_name == "jsonl":
        found = [json.loads(line) for line in kept.read_text().splitlines()]
    else:
        found = readers[format_name](kept).to_pylist()
    assert found == [rows[0], {"doc": {"n": 1, "body": "second second"}, "body": passage}]


@pytest.mark.parametrize("format_name", WRITERS)
def test_payloads_and_items_may_be_inside_of_structs(tmp_path, format_name):
    path = tmp_path / f"in.{format_name}"
    WRITERS[format_name](ROWS, path)
    for names, payloads in (
        ("doc.at.site", ["a", None]),
        (["doc.at.stars", "key"], ['{"doc.at.stars": 1, "key": "p"}']),
    ):
        with neardup.Index.create("memory:") as index:
            index.add_many(path, text_column="doc.body", id_column="key", payload_column=names)
            assert [index.get(key).payload for key in "pr"][: len(payloads)] == payloads
    items = neardup.find_contamination(
        path, [SAME], item_columns="doc.body", item_id_column="key", benchmark_column="doc.at.site"
    ).items.to_pylist()
    assert [(row["item_id"], row["benchmark"], row["shingles"]) for row in items] == [
        ("p", "a", 4),
        ("q", "", 3),
        ("r", "", 0),
        ("s", "b", 4),
        ("t", "a", 4),
    ]


def test_a_column_comes_before_a_field_of_the_same_path():
    rows = pa.RecordBatch.from_pylist(
        [{"a": {"b": 1, "c": {"d": 2}}, "a.b": 3}, {"a": None, "a.b": 4}]
    )
    assert [column_of(rows, name).to_pylist() for name in ("a.b", "a.c.d")] == [[3, 4], [2, None]]
    assert column_of(rows, "a.x") is None
    changed = with_column(rows, "a.c.d", pa.array(["x", None]))
    assert changed.to_pylist() == [
        {"a": {"b": 1, "c": {"d": "x"}}, "a.b": 3},
        {"a": None, "a.b": 4},
    ]


def test_keys_of_folders_are_columns(tmp_path):
    folders = [
        "site=a/year=2023",
        "site=a/year=2024",
        "site=b%2Fc/year=2024",
        "site=__HIVE_DEFAULT_PARTITION__/year=1",
    ]
    for name in folders:
        (tmp_path / "in" / name).mkdir(parents=True)
        row = {"text": SAME, "year": 5} if name.endswith("=1") else {"text": SAME}
        write_parquet([row], tmp_path / "in" / name / "p.parquet")
    result = neardup.dedup(tmp_path / "in", within="site", keep="max:year", count_by="site")
    assert [Path(name).parent.name for name in result.removed["source_file"].to_pylist()] == [
        "year=2023"
    ]
    assert {row["value"]: row["documents"] for row in result.report["by_value"]["values"]} == {
        "a": 2,
        "b/c": 1,
        "": 1,
    }
    last = (
        neardup.dedup(tmp_path / "in", keep="max:year")
        .removed["kept_source_file"]
        .unique()
        .to_pylist()
    )
    assert [Path(name).parent.name for name in last] == ["year=2024"]
    with pytest.raises(
        neardup.errors.ColumnError, match=r"The folder site=a of .* neither a number nor a date"
    ):
        neardup.dedup(tmp_path / "in/site=a", keep="max:site")
    with pytest.raises(neardup.errors.ColumnError, match="No column 'site'"):
        neardup.dedup(tmp_path / "in", id_column="site")
