"""Check the chosen columns, and the errors if none can be chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.documents.batch import Columns
from neardup.errors import ColumnError
from neardup.formats import jsonl
from neardup.formats.tables import TablePart
from neardup.runs import columns
from neardup.runs.columns import choose_columns
from neardup.runs.input_files import list_inputs


def part(name: str = "in.parquet", **columns: list) -> TablePart:
    return TablePart(pa.table(columns), name)


def test_known_names_are_guessed_in_their_order_in_any_case() -> None:
    assert choose_columns([part(body=["a"], content=["b"], url=["c"])]) == Columns("content", "url")
    assert choose_columns([part(Text=["a"], ID=[1], doc_id=[2])]) == Columns("Text", "ID")
    assert choose_columns([part(text=["a"], Text=["b"])]) == Columns("text")
    assert choose_columns([part(text=["a"], other=["b"])]) == Columns("text", None)


def test_a_guess_must_fit_every_part() -> None:
    parts = [part("a", text=["a"], content=["b"], id=[1]), part("b", content=["c"])]
    assert choose_columns(parts) == Columns("content", None)
    with pytest.raises(ColumnError, match=r"all inputs have: a has 'text'; b has 'content'"):
        choose_columns([part("a", text=["a"]), part("b", content=["c"])])


def test_two_columns_that_differ_in_case_are_ambiguous() -> None:
    with pytest.raises(ColumnError, match=r"Which column is 'text'.*'Text', 'TEXT'"):
        choose_columns([part(Text=["a"], TEXT=["b"])])


def test_without_a_known_name_the_columns_are_listed() -> None:
    with pytest.raises(
        ColumnError, match=r"No column of text in in.parquet: it has 'document', 'n'"
    ):
        choose_columns([part(document=["a"], n=[1])])


@pytest.mark.parametrize("column", [None, "title"])
def test_a_csv_file_with_another_separator_is_recognised_by_its_header(column: str | None) -> None:
    with pytest.raises(
        ColumnError, match=r"it has 'title;words'.* separated by ';': use commas in \.csv files"
    ):
        choose_columns([part("in.csv", **{"title;words": ["a;b"]})], column)


def test_a_named_column_that_is_missing_names_the_part_and_the_closest() -> None:
    parts = [part("a", main_text=["x"]), part("b", maintext=["x"])]
    with pytest.raises(
        ColumnError,
        match=r"No column 'main_text' in b: it has 'maintext'. Did you mean 'maintext'\?",
    ):
        choose_columns(parts, "main_text")


def test_columns_of_the_wrong_type_are_refused_with_the_ones_that_fit() -> None:
    with pytest.raises(
        ColumnError,
        match=r"'text' in in.parquet holds int64, which cannot be text. Columns of strings: 'body'",
    ):
        choose_columns([part(text=[1], body=["x"])])
    with pytest.raises(
        ColumnError, match=r"'text' in in.parquet holds lists without values, which cannot be text"
    ):
        choose_columns([part(text=[[None]], body=["x"])])
    with pytest.raises(
        ColumnError, match=r"cannot be the rank. Columns of numbers or dates: 'text', 'stars'"
    ):
        choose_columns([part(text=["a"], dates=[["b"]], stars=[1])], rank_columns=["dates"])
    with pytest.raises(ColumnError, match=r"cannot be the id"):
        choose_columns([part(text=["a"], keys=[[1]])], id_column="keys")


def test_an_id_is_guessed_only_if_it_can_be_one() -> None:
    assert choose_columns([part(text=["a"], id=[[1]])]) == Columns("text", None)


def test_plain_text_mixes_with_tables_and_empty_or_damaged_parts_are_not_asked(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("a line\n")
    (tmp_path / "b.jsonl").write_text('{"body": "x"}\n')
    (tmp_path / "c.jsonl").write_text("")
    (tmp_path / "d.parquet").write_text("no parquet")
    assert choose_columns(list_inputs([str(tmp_path)])) == Columns("body")
    assert choose_columns(list_inputs([str(tmp_path / "a.txt")])) == Columns("text")
    assert choose_columns(list_inputs([str(tmp_path / "c.jsonl")])) == Columns("text")


def test_a_rank_of_plain_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a line\n")
    with pytest.raises(ColumnError, match="plain text, which has no columns"):
        choose_columns(list_inputs([str(tmp_path / "a.txt")]), rank_columns=["stars"])


def test_a_rank_in_csv_is_checked_when_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,stars\nx,5\n")
    assert choose_columns(list_inputs([str(tmp_path)]), rank_columns=["stars"]) == Columns(
        "text", None, ("stars",)
    )


def test_times_rank_alike_in_one_file_and_in_several(tmp_path: Path) -> None:
    times = ["2026-01-31 12:00:00+00", "2026-01-31T13", "2026-01-30"]
    for name, some in (("whole", times), ("first", times[:2]), ("second", times[2:])):
        pq.write_table(
            pa.table({"text": ["a b c d e f g"] * len(some), "time": some}),
            tmp_path / f"{name}.parquet",
        )
    for names in (["whole"], ["first", "second"]):
        found = neardup.dedup([tmp_path / f"{name}.parquet" for name in names], keep="max:time")
        assert found.mask.tolist() == [False, True, False]
        assert found.report["counts"]["rejected"] == 0


def test_a_row_of_values_as_header_is_named(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("1,a text without a header,en\n2,another,en\n")
    with pytest.raises(
        ColumnError, match=r"The first row of CSV and TSV is the names of the columns"
    ):
        neardup.dedup(tmp_path / "in.csv")


def test_an_earlier_collection_without_the_named_column_has_its_own(tmp_path: Path) -> None:
    old = pa.table({"id": ["a"], "body": ["one two three four five six"]})
    new = pa.table({"id": ["b"], "title": ["x"], "abstract": ["One two three four five six!"]})
    assert neardup.dedup(new, against=old, text_column="abstract").removed[
        "kept_id"
    ].to_pylist() == ["a"]
    with pytest.raises(ColumnError, match="No column 'summary' in source"):
        neardup.dedup(new, against=old, text_column="summary")


def test_columns_that_many_files_share_are_checked_once_and_each_file_is_looked_at_once(
    tmp_path, monkeypatch
) -> None:
    """The time before the first document was quadratic in the number of files."""
    for number in range(60):
        (tmp_path / f"{number}.jsonl").write_text(
            '{"id": 1, "text": "a", "score": 2, "kind": "b"}\n'
        )
        (tmp_path / f"{number}.html").write_text("<p>a</p>")
    counts = dict.fromkeys(("asked", "checked", "looked at"), 0)

    def counting(name: str, function: Callable) -> Callable:
        def call(*arguments, **options):
            counts[name] += 1
            return function(*arguments, **options)

        return call

    counted = jsonl.HANDLER._replace(column_types=counting("looked at", jsonl.HANDLER.column_types))
    monkeypatch.setattr(jsonl, "HANDLER", counted)
    role = columns._TEXT._replace(fits=counting("checked", columns.is_text))
    monkeypatch.setattr(columns, "_TEXT", role)
    monkeypatch.setattr(columns, "_named", counting("asked", columns._named))
    files = list_inputs([str(tmp_path)])
    for _ in range(3):
        choose_columns(
            [file for file in files if file.format == "jsonl"], None, "id", ["score"], ["kind"]
        )
        assert choose_columns(files).text == "text"
    assert counts["looked at"] == 60
    assert counts["checked"] <= 12
    assert counts["asked"] <= 24


def test_of_files_with_the_same_columns_the_first_is_named_where_one_is_missing(
    tmp_path: Path,
) -> None:
    for name, row in (
        ("a", '{"text": "a", "id": 1}'),
        ("b", '{"text": "b"}'),
        ("c", '{"text": "c"}'),
    ):
        (tmp_path / f"{name}.jsonl").write_text(row + "\n")
    with pytest.raises(ColumnError, match=r"No column 'id' in \S*b\.jsonl: it has 'text'"):
        choose_columns(list_inputs([str(tmp_path)]), id_column="id")
