"""No command replaces one of its inputs, however the input is spelled."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup.cli.sources import Named
from neardup.errors import OutputError
from neardup.runs.overlap import contains, local_of

TEXT = "one two three four five six"


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An output of an earlier run, whose kept document is read again; the working directory is
    above it.
    """
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "out"
    (folder / "kept").mkdir(parents=True)
    (folder / "kept" / "a.txt").write_text(TEXT)
    (folder / "report.json").write_text(json.dumps({"command": "dedup", "text": "seven"}))
    (tmp_path / "link.txt").symlink_to(folder / "kept" / "a.txt")
    (tmp_path / "linked").symlink_to(folder)
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "more").symlink_to(folder / "kept")
    (folder / "kept" / "elsewhere.txt").symlink_to(tmp_path / "other.txt")
    (tmp_path / "other.txt").write_text("seven eight")
    return folder


def find_items(corpus: Named, **options: Any) -> neardup.Contamination:
    return neardup.find_contamination([TEXT], corpus, **options)


SPELLINGS = {
    "its path": "out/kept/a.txt",
    "an absolute path": "{here}/out/kept/a.txt",
    "an address": "file://{here}/out/kept/a.txt",
    "a pattern": "out/kept/*.txt",
    "a pattern of folders": "**/a.txt",
    "a detour": "out/../out/kept/./a.txt",
    "a link to the file": "link.txt",
    "a link to the folder": "linked/kept/a.txt",
    "a folder with a link to it": "corpus",
    "a link inside it to another file": "out/kept/elsewhere.txt",
    "a folder above it": ".",
    "the folder": "out",
    "the address of the folder": "file://{here}/out/",
}


@pytest.mark.parametrize("spelling", SPELLINGS.values(), ids=SPELLINGS.keys())
@pytest.mark.parametrize(
    "command",
    [
        neardup.dedup,
        neardup.remove_passages,
        neardup.cluster,
        find_items,
        neardup.find_contamination,
    ],
)
def test_an_output_that_holds_an_input_is_not_replaced(
    output: Path, command, spelling: str
) -> None:
    before = sorted(output.rglob("*"))
    with pytest.raises(OutputError, match=r"overlap|would replace the input"):
        command(Named(spelling.format(here=os.getcwd())), output=output, overwrite=True)
    assert sorted(output.rglob("*")) == before
    assert (output / "kept" / "a.txt").read_text() == TEXT
    assert not output.with_name("out.partial").exists()


@pytest.mark.parametrize("name", ["linked", "file://{output}", "{output}/../out"])
def test_an_output_that_is_named_by_a_link_or_an_address_is_the_same(
    output: Path, name: str
) -> None:
    with pytest.raises(OutputError, match=r"overlap|would replace the input"):
        neardup.dedup(Path("out/kept/a.txt"), output=name.format(output=output), overwrite=True)
    assert (output / "kept" / "a.txt").read_text() == TEXT


def test_an_earlier_collection_and_items_are_inputs_too(output: Path) -> None:
    Path("new.jsonl").write_text(json.dumps({"text": TEXT, "question": TEXT}) + "\n")
    with pytest.raises(OutputError, match=r"the input out/kept/\*\.txt overlap"):
        neardup.dedup(
            Path("new.jsonl"), against=Path("out/kept/*.txt"), output=output, overwrite=True
        )
    (output / "kept" / "a.jsonl").write_bytes(Path("new.jsonl").read_bytes())
    with pytest.raises(OutputError, match=r"the input out/kept/\*\.jsonl overlap"):
        neardup.find_contamination(
            Path("out/kept/*.jsonl"), Path("new.jsonl"), output=output, overwrite=True
        )
    assert (output / "kept" / "a.txt").read_text() == TEXT


def test_other_files_beside_the_output_are_read(output: Path) -> None:
    result = neardup.dedup(Path("other.txt"), output=output, overwrite=True)
    assert result.report["counts"]["read"] == 1
    assert not (output / "kept" / "a.txt").exists()


def files_of(folder: Path) -> Path:
    table = pa.table({"id": ["a", "b"], "text": [TEXT, "seven eight nine ten"]})
    pq.write_table(table, folder / "in.parquet")
    (folder / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    return folder


@pytest.mark.parametrize("name", ["in.parquet", "in.jsonl"])
@pytest.mark.parametrize(
    "source", ["{name}", "file://{here}/{name}", "./*{suffix}", "../{folder}/{name}"]
)
def test_a_file_that_is_an_input_is_not_replaced(
    tmp_path: Path, monkeypatch, name: str, source: str
) -> None:
    monkeypatch.chdir(files_of(tmp_path))
    path = source.format(name=name, here=tmp_path, suffix=Path(name).suffix, folder=tmp_path.name)
    before = Path(name).read_bytes()
    index = neardup.Index.create("an.index")
    for write in (
        lambda: neardup.find_pairs([path], output=name, overwrite=True),
        lambda: neardup.sign([path], output=name, overwrite=True),
        lambda: index.query_files([path], output=name, overwrite=True),
        lambda: index.add_files([path], answers=name, overwrite=True),
        lambda: index.add_files([path], if_new=True, output=name, overwrite=True),
        lambda: index.add_files([path], if_new=True, output=str(tmp_path), overwrite=True),
    ):
        with pytest.raises(OutputError, match="would replace the input"):
            write()
    index.close()
    assert Path(name).read_bytes() == before


@pytest.mark.parametrize(
    ("output", "answers"),
    [("new.jsonl", "./new.jsonl"), ("kept", "kept/in.jsonl")],
)
def test_answers_and_kept_rows_of_an_index_are_two_files(
    tmp_path: Path, monkeypatch, output: str, answers: str
) -> None:
    monkeypatch.chdir(files_of(tmp_path))
    Path("kept").mkdir()
    index = neardup.Index.create("memory:")
    with pytest.raises(OutputError, match="answers and the kept rows would be one file"):
        index.add_files("in.jsonl", output=output, answers=answers, overwrite=True)
    assert len(index) == 0


def test_a_temporary_folder_with_files_of_the_user_is_not_emptied(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = Path("news.partial")
    data.mkdir()
    (data / "a.txt").write_text(TEXT)
    with pytest.raises(
        OutputError, match=r"news\.partial is used while .* it has a\.txt, which is not of a run"
    ):
        neardup.dedup(data, output="news")
    assert (data / "a.txt").read_text() == TEXT


def test_folders_are_compared_by_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "c").symlink_to(tmp_path / "a")
    assert contains(tmp_path / "a", tmp_path / "c" / "b" / "new")
    assert contains(tmp_path / "c", tmp_path / "a")
    assert not contains(tmp_path / "a" / "b", tmp_path / "a")
    assert not contains(tmp_path / "missing", tmp_path / "missing" / "a")
    assert [local_of(name) for name in ("a/b", "s3://a/b", "file:///a%20b")] == [
        "a/b",
        None,
        "/a b",
    ]
