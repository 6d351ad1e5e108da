"""A file appears under its name only when it is complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from neardup.atomic import AtomicFile
from neardup.errors import OutputError


def test_a_file_replaces_what_is_there_when_its_block_ends(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with AtomicFile(path) as partial:
        partial.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


def test_a_failing_block_leaves_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(UnicodeEncodeError), AtomicFile(path) as partial:
        partial.write_text("new \ud800", encoding="utf-8")
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("name", ["missing/a.txt", "."])
def test_a_file_that_cannot_be_written_is_an_output_error_with_its_name(tmp_path: Path, name: str) -> None:
    with (
        pytest.raises(OutputError, match=r"Nothing was written to .*: .* Name a file in a folder you may write to"),
        AtomicFile(tmp_path / name) as partial,
    ):
        partial.write_text("new")
    assert list(tmp_path.iterdir()) == []
