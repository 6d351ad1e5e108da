"""Several columns make one id, which differs where a value differs, on every way into a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.cli.main import cli
from neardup.documents.texts import join_ids
from neardup.errors import ColumnError, InputError

FOX = "the quick brown fox jumps over the lazy dog and runs away from here"
TABLE = pa.table(
    {
        "repo": ["a", "a", "b:c", "b"],
        "path": ["x.py", "100%.py", "d.py", "c:d.py"],
        "number": [1, 2, 3, 4],
        "text": [FOX, "something else entirely, which no fox has ever written", FOX, FOX],
    }
)
IDS = ["a:x.py", "a:100%25.py", "b%3Ac:d.py", "b:c%3Ad.py"]
BOTH: dict[str, Any] = {"id_column": ["repo", "path"]}


def encoded(values: tuple[str, ...]) -> str:
    return ":".join(value.replace("%", "%25").replace(":", "%3A") for value in values)


@given(st.lists(st.tuples(*[st.text(st.sampled_from("a%:25é3A"), max_size=5)] * 3), min_size=1))
def test_an_id_has_the_values_that_made_it(rows: list[tuple[str, ...]]) -> None:
    ids = join_ids(
        [pa.array(values, pa.string()) for values in zip(*rows, strict=True)]
    ).to_pylist()
    assert ids == [encoded(row) for row in rows]
    assert [tuple(map(unquote, id.split(":"))) for id in ids] == rows


def written(path: Path) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in TABLE.to_pylist()))
    elif path.suffix == ".csv":
        pa_csv.write_csv(TABLE, path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_file(path, TABLE.schema) as file:
            file.write_table(TABLE)
    else:
        pq.write_table(TABLE, path)
    return path


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "arrow", "parquet"])
def test_ids_of_every_format_are_joined(tmp_path: Path, suffix: str) -> None:
    result = neardup.dedup(written(tmp_path / f"in.{suffix}"), **BOTH)
    removed = result.removed.select(["id", "kept_id"]).to_pylist()
    assert removed == [{"id": IDS[2], "kept_id": IDS[0]}, {"id": IDS[3], "kept_id": IDS[0]}]
    assert result.report["columns"]["id"] == ["repo", "path"]


def test_lines_that_only_a_slow_parser_reads_have_the_same_ids(tmp_path: Path) -> None:
    path = written(tmp_path / "in.jsonl")
    path.write_text(
        path.read_text().replace('"number": 1', '"number": {"of": [NaN]}')
        + '{"repo": "a", "path": {}}\n'
    )
    result = neardup.dedup(path, **BOTH, on_error="skip")
    assert result.removed["id"].to_pylist() == IDS[2:]
    assert result.report["counts"]["rejected"] == 1


def test_other_commands_join_ids_too() -> None:
    assert neardup.cluster(TABLE, **BOTH).documents["id"].to_pylist() == IDS
    assert neardup.find_pairs(TABLE, **BOTH).pairs["left_id"].to_pylist() == [
        IDS[0],
        IDS[0],
        IDS[2],
    ]
    assert neardup.sign(TABLE, **BOTH).ids.to_pylist() == IDS
    passages = neardup.remove_passages(TABLE, min_length=40, **BOTH).passages
    assert set(passages["id"].to_pylist()) == set(IDS[2:])
    judged = pa.table({"left_id": [IDS[0]], "right_id": [IDS[3]], "duplicate": [True]})
    assert neardup.evaluate(TABLE, pairs=judged, **BOTH).report["truth"]["pairs"] == 1
    assert neardup.sweep(TABLE, thresholds=[0.5], **BOTH).counts["removed"].to_pylist() == [2]


def test_an_index_joins_ids_of_files_and_of_lines(tmp_path: Path) -> None:
    with neardup.Index.create("memory:") as index:
        index.add_files(written(tmp_path / "in.parquet"), **BOTH)
        assert [index.get(id).kept_id for id in IDS[2:]] == [IDS[0]] * 2
        lines = [json.dumps(row).encode() for row in TABLE.to_pylist()]
        (answered,) = index.answer_lines([[*lines, b'{"repo": "a", "text": "no path"}']], **BOTH)
        assert [answer.get("id") for _, answer in answered] == [*IDS, None]
        assert all(answer["repeated"] for _, answer in answered[:-1])
        assert answered[-1][1] == {"error": "'path' is missing or null, not a string or a number"}
        hits = index.add_many_if_new(TABLE, **BOTH)
        assert hits["id"].to_pylist() == IDS


def test_lines_join_several_text_columns_as_files_do(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "title": FOX, "body": "b"},
        {"id": "b", "title": None, "body": FOX},
        {"id": "c", "title": FOX},
    ]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "in.jsonl").write_text("\n".join([*lines, ""]))
    wanted = {"text_column": ["title", "body"]}
    with (
        neardup.Index.create("memory:", storage="text") as index,
        neardup.Index.create("memory:", storage="text") as other,
    ):
        index.add_files(tmp_path / "in.jsonl", if_new=False, **wanted)
        (answered,) = other.answer_lines(
            [[line.encode() for line in [*lines, '{"id": "d", "body": 1}']]], **wanted
        )
        assert answered[-1][1] == {"error": "'body' is a number, not a string"}
        assert [index.get(id).text for id in "abc"] == [f"{FOX}\nb", FOX, FOX]
        assert other.get("a").text == f"{FOX}\nb"
        assert [answer["kept_id"] for _, answer in answered[1:3]] == ["a", "a"]


def test_an_index_of_a_run_has_the_ids_of_the_run(tmp_path: Path) -> None:
    neardup.dedup(written(tmp_path / "in.jsonl"), output=tmp_path / "out", **BOTH)
    with neardup.Index.from_run("memory:", tmp_path / "out") as index:
        assert index.get(IDS[0]) is not None
        assert index.get(IDS[1]) is not None


def test_the_command_and_its_files_take_several_columns(tmp_path: Path) -> None:
    source = str(written(tmp_path / "in.parquet"))
    (tmp_path / "run.toml").write_text('id-column = ["repo", "path"]\n')
    first, second, third = (str(tmp_path / name) for name in "abc")
    for output, options in (
        (first, ["--id-column", "repo", "--id-column", "path"]),
        (second, ["--config", str(tmp_path / "run.toml")]),
    ):
        assert CliRunner().invoke(cli, ["dedup", source, "-o", output, *options]).exit_code == 0
    assert (
        CliRunner()
        .invoke(cli, ["dedup", "--config", f"{first}/report.json", "-o", third])
        .exit_code
        == 0
    )
    for output in (first, second, third):
        assert pq.read_table(f"{output}/removed.parquet")["id"].to_pylist() == IDS[2:]


def test_a_null_in_one_of_the_columns_is_a_null_id() -> None:
    table = TABLE.set_column(1, "path", pa.array(["x.py", None, "d.py", "e.py"]))
    assert neardup.cluster(table, **BOTH).documents["id"].to_pylist() == [
        "a:x.py",
        "",
        "b%3Ac:d.py",
        "b:e.py",
    ]
    with (
        neardup.Index.create("memory:") as index,
        pytest.raises(InputError, match="The id of row 1 is null"),
    ):
        index.add_many_if_new(table, **BOTH)


def test_columns_that_cannot_be_ids_are_named() -> None:
    with pytest.raises(
        ColumnError, match="No column 'file' in source: it has 'repo', 'path', 'number', 'text'"
    ):
        neardup.dedup(TABLE, id_column=["repo", "file"])
    with pytest.raises(ColumnError, match=r"The name of a column must be a string: got \[\]"):
        neardup.dedup(TABLE, id_column=[])
    with pytest.raises(
        InputError, match=r"The id 'a:a' belongs to two.*Ids in the column \['repo', 'repo'\]"
    ):
        neardup.dedup(TABLE, id_column=["repo", "repo"])


@pytest.mark.parametrize("first_check", [2, 1000])
@pytest.mark.parametrize("count", [3, 1200])
def test_empty_ids_repeat_and_nulls_do_not_in_runs_of_every_size(
    monkeypatch, first_check: int, count: int
) -> None:
    monkeypatch.setattr("neardup.runs.ids._FIRST_CHECK", first_check)
    texts = [f"text of the document {number}" for number in range(count)]
    others = [str(number) for number in range(count - 2)]
    message = r"The id '' belongs to two documents, row 0 of source and row 1 of source"
    with pytest.raises(InputError, match=message):
        neardup.dedup(pa.table({"id": ["", "", *others], "text": texts}), id_column="id")
    for ids in ([None, None], [None, ""]):
        result = neardup.dedup(pa.table({"id": [*ids, *others], "text": texts}), id_column="id")
        assert result.report["counts"]["read"] == count
