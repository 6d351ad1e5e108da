"""A file appears under its name only when it is complete. Small files are UTF-8, and a line feed
ends a line.
"""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from neardup.errors import InputError, OutputError
from neardup.files import (
    AtomicFile,
    advice_on,
    json_lines,
    lines_of,
    read_json,
    read_text,
    write_json,
    write_text,
)

SEPARATORS = ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\r")
"""Characters at which `str.splitlines` ends a line, and JSON, file names and ids do not."""


def names_in(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_file_replaces_what_is_there_when_its_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with AtomicFile(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert names_in(tmp_path) == ["a.txt"]


def test_a_failing_block_leaves_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), AtomicFile(path) as partial:
        partial.write_text("new \ud800", encoding="utf-8")
    assert path.read_text() == "old"
    assert names_in(tmp_path) == ["a.txt"]


def test_of_two_writers_each_publishes_what_it_wrote_itself(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    with AtomicFile(path) as first:
        first.write_text("whole")
        second = AtomicFile(path)
        Path(second.partial).write_text("ha")
    assert path.read_text() == "whole"
    second.discard()
    assert names_in(tmp_path) == ["a.txt"]


def test_a_name_of_255_bytes_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("漢" * 84 + "abc")
    write_text(path, "x")
    assert read_text(path) == "x"


@pytest.mark.parametrize(
    "error", [OutputError("the disk of another file is full"), InputError("a row is missing")]
)
def test_an_error_of_neardup_passes_unchanged(tmp_path: Path, error) -> None:
    with pytest.raises(type(error)) as raised, AtomicFile(tmp_path / "a.txt"):
        raise error
    assert raised.value is error


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("missing/a.txt", "No such file or directory. Create the folder, or use another one."),
        (".", "Is a directory. Use another name, or move away the file or folder in its place."),
        (
            "file/a.txt",
            "Not a directory. Use another name, or move away the file or folder in its place.",
        ),
        ("a" * 300, "File name too long. Use a name that is shorter, or has simpler characters."),
    ],
)
def test_a_file_that_cannot_be_written_is_an_output_error_with_its_name_and_the_advice_for_the_cause(  # noqa: E501
    tmp_path: Path, name: str, advice: str
) -> None:
    (tmp_path / "file").touch()
    path = tmp_path / name
    with pytest.raises(OutputError) as raised, AtomicFile(path) as partial:
        partial.write_text("new")
    assert str(raised.value) == f"Nothing was written to {path}: {advice}"
    assert names_in(tmp_path) == ["file"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_is_no_matter_of_permissions(number: int) -> None:
    assert (
        advice_on(OSError(number, os.strerror(number))) == "Free some space, or use another disk."
    )
    assert "permission" in advice_on(PermissionError(errno.EACCES, "Permission denied"))


def test_json_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    write_json(path, {"name": "é\u2028\udcff"})
    with pytest.raises(TypeError):
        write_json(path, {"name": object()})
    assert read_json(path) == {"name": "é\u2028\udcff"}
    assert names_in(tmp_path) == ["run.json"]


@pytest.mark.parametrize("damaged", ["", '{"name": "', "[" * 100_000, "\ufeff\ufeff1"])
def test_damaged_json_is_a_value_error(tmp_path: Path, damaged: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(damaged, encoding="utf-8")
    with pytest.raises(ValueError, match=r"it is not JSON in UTF-8: |it is nested too deeply"):
        read_json(path)


@pytest.mark.parametrize("separator", SEPARATORS)
def test_only_a_line_feed_ends_a_line(separator: str) -> None:
    name = f"a{separator}b"
    rows = [{"file": name}, {"file": "é"}]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    assert list(json_lines(lines.encode())) == rows
    assert lines_of(f"{name}\r\n\nc\n") == [name, "", "c"]
    assert lines_of(f"c\n{name}") == ["c", name]
