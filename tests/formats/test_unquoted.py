"""CSV and TSV without quotes, as databases, `cut` and bitexts have them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.cli.main import cli
from neardup.errors import IncompleteWarning, OutputError

# A value begins with a quotation mark, and another ends with one two rows later.
DUMP = (
    b"id\ttext\n"
    b'1\t"unbalanced, one two three four\n'
    b"2\tfive six seven eight nine ten\n"
    b'3\televen twelve "thirteen"\n'
    b'4\t""\n'
    b"5\tend of the dump\n"
)


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    path = tmp_path / "dump.tsv"
    path.write_bytes(DUMP)
    return path


def test_with_quotes_rows_of_a_dump_become_one(dump: Path) -> None:
    assert neardup.dedup(dump).report["counts"]["read"] < 5


def test_without_quotes_each_line_is_a_row(dump: Path) -> None:
    kept = neardup.dedup(dump, quote="none").kept
    lines = [line.split("\t") for line in DUMP.decode().splitlines()]
    assert [kept.column_names, *(list(row.values()) for row in kept.to_pylist())] == lines


@pytest.mark.parametrize("name", ["d.csv", "d.tsv", "d.csv.gz", "d.tsv.zst"])
def test_kept_rows_are_written_as_they_were_read(tmp_path: Path, name: str) -> None:
    delimiter = b"," if ".csv" in name else b"\t"
    data = DUMP.replace(b",", b";").replace(b"\t", delimiter)
    path = tmp_path / name
    neardup.dedup(_stored(path, data), quote="none", output=tmp_path / "out")
    assert _contents(tmp_path / "out/kept" / name) == data


def _stored(path: Path, data: bytes) -> Path:
    from neardup.documents.sinks import open_compressed
    from neardup.formats.registry import compression_of

    with open_compressed(str(path), compression_of(path.name)) as file:
        file.write(data)
    return path


def _contents(path: Path) -> bytes:
    from neardup.documents.sources import Source
    from neardup.formats.registry import compression_of

    return Source(path.name, str(path), compression_of(path.name)).read_bytes(1 << 20)


VALUES = st.text(st.sampled_from("ab\"'\\ ,é中") | st.characters(codec="utf-8")).map(
    lambda value: value.translate(dict.fromkeys(map(ord, "\t\r\n"), "_"))
)


@given(st.lists(VALUES, min_size=1, max_size=8))
def test_any_values_without_a_delimiter_come_back(tmp_path: Path, values: list[str]) -> None:
    lines = ["id\ttext", *(f"{number}\t{value}" for number, value in enumerate(values))]
    path = tmp_path / "a.tsv"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    # Rows with different ids are not compared, so each is kept.
    neardup.dedup(path, quote="none", within="id", output=tmp_path / "out", overwrite=True)
    assert (tmp_path / "out/kept/a.tsv").read_bytes() == path.read_bytes()


def test_other_files_of_the_run_are_read_as_ever(dump: Path) -> None:
    other = dump.with_name("b.jsonl")
    other.write_text('{"id": "6", "text": "of another \\"format\\""}\n')
    report = neardup.dedup([dump, other], quote="none").report
    assert report["counts"]["read"] == 6
    assert [part["format"] for part in report["inputs"]] == ["tsv-unquoted", "jsonl"]


def test_standard_input_may_be_without_quotes(pipe) -> None:
    pipe(DUMP)
    assert neardup.dedup("-", in_format="tsv", quote="none").report["counts"]["read"] == 5


def test_a_row_with_another_number_of_columns_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes(DUMP + b'6\t"one\ttoo many"\n')
    with pytest.warns(IncompleteWarning, match="1 of 6 rows"):
        result = neardup.dedup(path, quote="none")
    assert result.report["counts"]["read"] == 5


def test_the_kept_files_of_a_run_are_read_without_quotes_into_an_index(dump: Path) -> None:
    out = dump.parent / "out"
    neardup.dedup(dump, quote="none", output=out)
    with neardup.Index.from_run(dump.parent / "a.index", out) as index:
        assert len(index) == 5


def test_items_of_contamination_may_be_without_quotes(tmp_path: Path) -> None:
    words = "one two three four five six seven eight nine ten eleven twelve"
    (tmp_path / "items.tsv").write_text(f'question\tanswer\n"{words}\tthe first\nb c d"\te\n')
    (tmp_path / "corpus.tsv").write_text(f'text\tsource\n"so: {words}\tx\n')
    found = neardup.find_contamination(
        tmp_path / "items.tsv", tmp_path / "corpus.tsv", quote="none", item_columns="question"
    )
    assert found.report["counts"]["items"] == 2
    assert found.hits["item_id"].to_pylist() == ["0"]


def test_a_value_that_needs_quotes_is_not_written_without(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,text\n1,one two three\n2,one two three\n")
    other = tmp_path / "b.csv"
    other.write_text("id,text\n3,one two three\n")
    # The list of the sources of a row has a comma.
    with pytest.raises(OutputError, match="cannot be written without quotes"):
        neardup.dedup([path, other], quote="none", sources="input", output=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_command_line_has_the_option(dump: Path) -> None:
    done = CliRunner().invoke(
        cli, ["dedup", str(dump), "--quote", "none", "-o", f"{dump}.out", "--json"]
    )
    assert (done.exit_code, json.loads(done.stdout)["counts"]["read"]) == (0, 5)
