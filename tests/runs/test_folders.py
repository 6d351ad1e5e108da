"""The names of folders give values to documents, and clones of repositories are read as code."""

from __future__ import annotations

from pathlib import Path

import pytest

import neardup
from neardup.errors import ColumnError
from neardup.runs.input_files import list_inputs

WORDS = "the river rose by two metres in the night and the bridge was closed"
CODE = (
    "def area(width, height):\n    return width * height  # of a rectangle\n\n\nprint(area(2, 3))\n"
)
UNIQUE = (
    "class {0}:\n    def {0}_of(self, x):\n        return [{0}(y) for y in x if y != {0}.zero]\n"
)


def write(folder: Path, files: dict[str, str]) -> str:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return str(folder)


def groups_of(result: neardup.Deduplication) -> dict[str, bool]:
    """Return whether each group was removed."""
    assert result.groups is not None
    return {row["group"]: row["removed"] for row in result.groups.to_pylist()}


def test_clones_are_grouped_by_their_first_folder(tmp_path: Path) -> None:
    clones = write(
        tmp_path / "clones",
        {
            "first/src/area.py": CODE,
            "first/src/lib/own.py": UNIQUE.format("River"),
            "fork/area.py": CODE,
            "fork/deep/down/own.py": UNIQUE.format("River"),
            "other/area.py": UNIQUE.format("Bridge"),
        },
    )
    method = neardup.method(preset="code")
    result = neardup.dedup(clones, method=method, group_by="folder:1")
    assert groups_of(result) == {"first": False, "fork": True, "other": False}
    # Below the named folder: of several, each gives its own first folders.
    result = neardup.dedup(
        [f"{clones}/first", f"{clones}/fork"], method=method, group_by="folder:1"
    )
    assert set(groups_of(result)) == {"src", "", "deep"}


@pytest.mark.parametrize(
    ("level", "folders"), [(1, ["a", "a", None]), (2, ["b", None, None]), (3, [None, None, None])]
)
@pytest.mark.parametrize("pattern", ["", "/**/*.txt"], ids=["folder", "pattern"])
def test_a_folder_is_counted_from_the_input(
    tmp_path: Path, pattern: str, level: int, folders: list[str | None]
) -> None:
    folder = write(tmp_path / "in", {"a/b/1.txt": "x", "a/2.txt": "x", "3.txt": "x"})
    name = f"folder:{level}"
    found = {
        Path(part.name).name: part.folder_values((name,))[name]
        for part in list_inputs([folder + pattern])
    }
    assert [found["1.txt"], found["2.txt"], found["3.txt"]] == folders


def test_standard_input_and_a_file_are_in_no_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", {"a/1.txt": "x"})
    (part,) = list_inputs([f"{folder}/a/1.txt"])
    assert part.folder_values(("folder:1", "folder:0", "folder", "lang")) == {"folder:1": None}


@pytest.mark.parametrize("suffix", ["txt", "csv"])
def test_a_level_of_folders_that_no_file_has_is_an_error(tmp_path: Path, suffix: str) -> None:
    """Otherwise all documents are one group, and none is removed."""
    text = f"text\n{WORDS}\n"
    folder = write(tmp_path / "in", {f"a/one.{suffix}": text, f"two.{suffix}": text})
    assert groups_of(neardup.dedup(folder, group_by="folder:1")) == {"a": False, "": True}
    with pytest.raises(ColumnError, match=r"No file is in a folder 'folder:2': .*one\.") as caught:
        neardup.dedup(folder, group_by="folder:2")
    assert "Name the folder above it" in str(caught.value)
    with pytest.raises(ColumnError, match="No file is in a folder 'folder:1'"):
        neardup.dedup(f"{folder}/two.{suffix}", within="folder:1")


def test_a_column_named_like_a_level_of_folders_comes_first(tmp_path: Path) -> None:
    folder = write(tmp_path / "in", {"one.csv": f"text,folder:1\n{WORDS},a\n{WORDS},b\n"})
    assert groups_of(neardup.dedup(folder, group_by="folder:1")) == {"a": False, "b": True}


def test_the_keys_of_folders_give_values_to_text_files(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "in",
        {
            "lang=en/part=1/a.txt": WORDS,
            "lang=en/part=2/b.txt": WORDS,
            "lang=de/part=1/c.txt": WORDS,
        },
    )
    result = neardup.dedup(folder, within="lang", keep="max:part")
    (removed,) = result.removed.to_pylist()
    assert removed["id"].endswith("a.txt")
    assert removed["kept_id"].endswith("b.txt")


def test_text_beside_a_table_has_the_value_of_its_folder(tmp_path: Path) -> None:
    folder = write(
        tmp_path / "in",
        {"lang=en/a.txt": WORDS, "b.jsonl": f'{{"text": "{WORDS}", "lang": "de"}}\n'},
    )
    assert len(neardup.dedup(folder, within="lang").removed) == 0
    assert len(neardup.dedup(folder).removed) == 1


@pytest.mark.parametrize("column", ["lang", "folder:0", "folder:x"])
def test_text_without_the_key_is_refused_by_its_name(tmp_path: Path, column: str) -> None:
    folder = write(tmp_path / "in", {"lang_en/a.txt": WORDS})
    with pytest.raises(ColumnError, match=f"No value column '{column}': .*a.txt is plain text"):
        neardup.dedup(folder, within=column)


CLONE = {
    "repo/README.md": WORDS,
    "repo/docs/page.html": f"<p>{WORDS}",
    "repo/package.json": '{"name": "repo"}',
    "repo/src/area.py": CODE,
    "repo/src/notebook.ipynb": (
        '{"nbformat": 4, "cells": [{"cell_type": "code", "source": "print(1)"}]}'
    ),
}


@pytest.mark.parametrize("settings", [{"preset": "code"}, {"tokens": "uncommented"}], ids=str)
def test_methods_of_code_read_the_code_of_repositories_and_name_the_rest(
    tmp_path: Path, settings: dict[str, str]
) -> None:
    clones = write(tmp_path / "clones", CLONE)
    result = neardup.dedup(clones, method=neardup.method(**settings))
    assert len(result.mask) == 2
    (warning,) = result.report["warnings"]
    assert warning == (
        f"Left out 3 files other than source code: {clones}/repo/README.md, "
        f"{clones}/repo/docs/page.html, {clones}/repo/package.json."
    )


def test_a_file_that_is_named_and_a_folder_without_code_are_read_as_always(tmp_path: Path) -> None:
    clones = write(tmp_path / "clones", CLONE)
    method = neardup.method(preset="code")
    assert len(neardup.dedup([f"{clones}/repo/README.md", clones], method=method).mask) == 3
    tables = write(tmp_path / "tables", {"a.jsonl": '{"text": "x = 1"}\n', "b.txt": "y = 2"})
    assert len(neardup.dedup(tables, method=method).mask) == 2
    assert len(neardup.dedup(clones, method=method, in_format="text").mask) == 5
