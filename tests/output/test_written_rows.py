"""What a run writes beside removed.parquet: kept files, a mask, ids, columns, or nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.errors import ColumnError, SettingError

FOX = "the quick brown fox jumps over the lazy dog and runs away from here"
ROWS = [
    {"id": "a", "text": FOX},
    {"id": "b", "text": FOX.title()},
    {"id": "c", "text": "a text about something else"},
]


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Two files of JSON lines; the last line of the first is rejected."""
    monkeypatch.chdir(tmp_path)
    first, *others = (json.dumps(row) for row in ROWS)
    Path("one.jsonl").write_text(f"{first}\n[]\n")
    Path("two.jsonl").write_text("".join(f"{line}\n" for line in others))
    return ["one.jsonl", "two.jsonl"]


def names_in(folder: str) -> set[str]:
    return {path.name for path in Path(folder).iterdir()}


ALWAYS = {"removed.parquet", "rejected.jsonl", "report.json", "report.html"}


@pytest.mark.parametrize(
    ("write", "more"),
    [
        ("kept", {"kept"}),
        ("mask", {"mask.parquet"}),
        ("ids", {"ids.parquet"}),
        ("annotated", {"annotated"}),
        ("removed", set()),
    ],
)
def test_the_output_has_what_was_asked_for(files: list[str], write: str, more: set[str]) -> None:
    result = neardup.dedup(files, output="out", write=write, max_unreadable=1)
    assert names_in("out") == ALWAYS | more
    assert result.report["write"] == write
    assert (
        FOX.title() in Path("out/report.html").read_text()
    )  # the examples of the page are read in any case


def test_the_mask_has_each_row_of_the_inputs_rejected_ones_too(files: list[str]) -> None:
    result = neardup.dedup(files, output="out", write="mask", max_unreadable=1)
    mask = pq.read_table("out/mask.parquet")
    assert mask.to_pylist() == [
        {"source_file": file, "row": row, "kept": kept}
        for file, row, kept in [
            ("one.jsonl", 0, True),
            ("one.jsonl", 1, False),
            ("two.jsonl", 0, False),
            ("two.jsonl", 1, True),
        ]
    ]
    assert mask["kept"].to_pylist() == result.mask.tolist()


def test_the_ids_are_those_of_the_kept_documents_and_not_of_the_earlier_collection(
    files: list[str],
) -> None:
    neardup.dedup("two.jsonl", against="one.jsonl", output="out", write="ids", max_unreadable=1)
    assert pq.read_table("out/ids.parquet").to_pylist() == [
        {"id": "c", "source_file": "two.jsonl", "row": 1}
    ]


def test_the_command_lists_what_it_wrote(files: list[str]) -> None:
    result = CliRunner().invoke(
        cli, ["dedup", *files, "-o", "out", "--write", "ids", "--max-unreadable", "100%"]
    )
    assert result.exit_code == 0, result.output
    assert "out/ids.parquet" in result.stdout
    assert "out/removed.parquet" in result.stdout


def test_what_to_write_needs_a_folder() -> None:
    with pytest.raises(SettingError, match="write='mask' without one"):
        neardup.dedup([FOX], write="mask")


def test_annotated_json_lines_keep_their_bytes_and_get_keys(tmp_path: Path) -> None:
    rows = [
        {"id": 'a"1', "text": FOX, "more": {"nested": [{}]}},
        {"id": "b", "text": FOX.title()},
        {"id": "c", "text": "x y"},
    ]
    lines = [json.dumps(row) for row in rows]
    (tmp_path / "in.jsonl").write_bytes(f"{lines[0]}\r\n{lines[1]} \n{lines[2]}".encode())
    neardup.dedup(tmp_path / "in.jsonl", output=tmp_path / "out", write="annotated")
    written = (tmp_path / "out/annotated/in.jsonl").read_text().splitlines()
    assert all(new.startswith(old[:-1] + ", ") for old, new in zip(lines, written, strict=True))
    added = [
        {"duplicate_of": None, "similarity": None, "cluster": 0, "duplicates": 1},
        {"duplicate_of": 'a"1', "similarity": 1, "cluster": 0, "duplicates": None},
    ]
    added.append({"duplicate_of": None, "similarity": None, "cluster": 2, "duplicates": 0})
    assert [json.loads(line) for line in written] == [
        row | new for row, new in zip(rows, added, strict=True)
    ]


def test_annotated_tables_get_columns_and_stay_in_order_behind_an_earlier_collection(
    tmp_path: Path,
) -> None:
    table = pa.table(
        {"id": pa.array([7, 8, 9]), "text": [FOX, FOX.title(), "x y"], "n": pa.array([1, None, 3])}
    )
    pq.write_table(table, tmp_path / "in.parquet")
    neardup.dedup(
        tmp_path / "in.parquet",
        against=[FOX],
        output=tmp_path / "out",
        write="annotated",
        method="simhash",
    )
    written = pq.read_table(tmp_path / "out/annotated/in.parquet")
    assert written.select(["id", "text", "n"]).equals(table)
    assert written.drop(["id", "text", "n"]).to_pylist() == [
        {"duplicate_of": "0", "distance": 0, "similarity": 1.0, "cluster": 0, "duplicates": None},
        {"duplicate_of": "0", "distance": 0, "similarity": 1.0, "cluster": 0, "duplicates": None},
        {"duplicate_of": None, "distance": None, "similarity": None, "cluster": 3, "duplicates": 0},
    ]


def test_annotated_text_files_become_one_table_of_their_paths_and_texts(tmp_path: Path) -> None:
    for name, text in (("a", FOX), ("b", FOX.title())):
        (tmp_path / f"{name}.txt").write_text(text)
    neardup.dedup(tmp_path / "*.txt", output=tmp_path / "out", write="annotated")
    rows = pq.read_table(tmp_path / "out/annotated/text.parquet").to_pylist()
    assert [row["duplicate_of"] for row in rows] == [None, str(tmp_path / "a.txt")]
    assert [row["text"] for row in rows] == [FOX, FOX.title()]


def test_annotated_inputs_never_share_a_file_with_one_of_another_format(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("a", "b"):
        (folder / f"{name}.txt").write_text(FOX)
    table = pa.table({"id": ["p", "q"], "text": [FOX, "another text"]})
    # Names that the table of text files, and those of other inputs, would have.
    for name in ("text.parquet", "c.csv.parquet", "text-2.parquet"):
        pq.write_table(table, folder / name)
    (folder / "c.csv").write_text(f"id,text\nr,{FOX}\n")
    neardup.dedup(folder, output=tmp_path / "out", write="annotated")
    found = {
        path.name: pq.read_table(path)["text"].to_pylist()
        for path in (tmp_path / "out" / "annotated").iterdir()
    }
    assert found == {
        "text.parquet": [FOX, "another text"],
        "text-2.parquet": [FOX, "another text"],
        "text-3.parquet": [FOX, FOX],
        "c.csv.parquet": [FOX, "another text"],
        "c.csv-2.parquet": [FOX],
    }


def test_columns_are_not_added_beside_those_of_the_same_name(tmp_path: Path) -> None:
    with pytest.raises(ColumnError, match="has a column 'cluster'"):
        neardup.dedup(
            pa.table({"text": [FOX], "cluster": [1]}), output=tmp_path / "out", write="annotated"
        )


def test_the_kept_documents_of_one_input_go_to_standard_output(files: list[str]) -> None:
    result = CliRunner().invoke(
        cli, ["dedup", "two.jsonl", "-o", "-", "--against", "one.jsonl", "--on-error", "skip"]
    )
    assert result.exit_code == 0, result.stderr
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == ["c"]
    assert names_in(".") == set(files)
    several = CliRunner().invoke(cli, ["dedup", *files, "-o", "-"])
    assert several.exit_code == 2
    assert "-o - writes the kept documents of one input: got 2 inputs" in several.stderr
    missing = CliRunner().invoke(cli, ["dedup", "two.jsonl", "-o", "-", "--scratch", "none"])
    assert "scratch must be an existing folder: got none." in missing.stderr


def test_an_index_is_as_before_if_the_kept_documents_are_of_several_inputs(
    files: list[str],
) -> None:
    neardup.Index.create("index").close()
    arguments = ["dedup", *files, "--against", "index", "--update", "-o", "-"]
    refused = CliRunner().invoke(cli, arguments)
    assert "-o - writes the kept documents of one input: got 2 inputs" in refused.stderr
    with neardup.Index.open("index", read_only=True) as index:
        assert index.info()["documents"]["kept"] == 0


def test_temporary_files_are_where_they_are_to_be_and_go_in_the_end(
    files: list[str], tmp_path: Path
) -> None:
    scratch = tmp_path / "fast"
    seen = set[str]()
    scratch.mkdir()

    class Watch:
        def begin(self, stage: str, total_documents: int | None) -> None:
            seen.update(path.name for path in scratch.glob("*/*"))

        def advance(self, documents: int, num_bytes: int) -> None: ...
        def end(self, stage: str, seconds: float) -> None: ...

    for output in ("out", None):
        seen.clear()
        result = neardup.dedup(
            files, output=output, scratch=scratch, progress=Watch(), max_unreadable=1
        )
        assert result.removed.num_rows == 1
        assert "run.json" in seen
        assert not list(scratch.iterdir())
    with pytest.raises(SettingError, match="scratch must be an existing folder: got none"):
        neardup.dedup(files, scratch="none")
