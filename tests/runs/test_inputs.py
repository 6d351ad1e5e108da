"""Check the files that list_inputs finds, and their names."""

from __future__ import annotations

import gzip
import io
import ntpath
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest

from neardup.documents.batch import Columns
from neardup.errors import InputError, MissingExtraError, SettingError
from neardup.runs import input_files, spool
from neardup.runs.input_files import list_inputs

LINE = b'{"text": "a"}\n'


def put(folder: Path, *names: str, content: bytes = LINE) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def test_a_folder_gives_its_known_files_sorted_without_hidden_ones(tmp_path: Path) -> None:
    put(
        tmp_path,
        "b.jsonl",
        "a/z.csv",
        "a/y.parquet",
        "notes.xyz",
        ".hidden.jsonl",
        "_log/0.json",
        "_SUCCESS",
    )
    files = list_inputs([str(tmp_path)])
    assert [file.relative_name for file in files] == ["a/y.parquet", "a/z.csv", "b.jsonl"]
    assert [file.format for file in files] == ["parquet", "csv", "jsonl"]
    assert files[0].name == str(tmp_path / "a/y.parquet")


def test_a_pattern_gives_the_files_that_match(tmp_path: Path) -> None:
    put(tmp_path, "a1.jsonl", "a2.jsonl", "b1.jsonl", "deep/a3.jsonl")
    assert [f.relative_name for f in list_inputs([str(tmp_path / "a?.jsonl")])] == [
        "a1.jsonl",
        "a2.jsonl",
    ]
    assert [f.relative_name for f in list_inputs([str(tmp_path / "**/a[13].jsonl")])] == [
        "a1.jsonl",
        "deep/a3.jsonl",
    ]


@pytest.mark.parametrize("below", ["", "**/"])
@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("x[!a]y.jsonl", ["x5y.jsonl", "x^y.jsonl", "xby.jsonl"]),  # a slash is none of them
        ("x[+-9]y.jsonl", ["x5y.jsonl"]),  # between + and 9, there is the slash
        ("x[^a]y.jsonl", ["x^y.jsonl", "xay.jsonl"]),
        ("x[5z-a]y.jsonl", ["x5y.jsonl"]),  # an empty range
        ("x[!z-a]y.jsonl", ["x5y.jsonl", "x^y.jsonl", "xay.jsonl", "xby.jsonl"]),
    ],
)
def test_a_set_of_characters_means_the_same_with_and_without_folders_below(
    tmp_path: Path, below: str, name: str, found: list[str]
) -> None:
    put(tmp_path, "x/y.jsonl", "x5y.jsonl", "x^y.jsonl", "xay.jsonl", "xby.jsonl")
    files = list_inputs([str(tmp_path / f"{below}{name}")])
    assert [file.relative_name for file in files] == found


def test_a_pattern_reports_no_path_that_it_does_not_match(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", ".b.txt", ".c.jsonl")
    (tmp_path / "dangling.txt").symlink_to("nowhere")
    left_out = []
    files = list_inputs(
        [str(tmp_path / "**/*.jsonl")], skip=lambda name, reason: left_out.append(name)
    )
    assert [file.relative_name for file in files] == ["a.jsonl"]
    assert left_out == [str(tmp_path / ".c.jsonl")]


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    put(tmp_path, "a[1].jsonl")
    assert [f.relative_name for f in list_inputs([str(tmp_path / "a[1].jsonl")])] == ["a[1].jsonl"]


def test_several_folders_keep_their_names_below_the_output(tmp_path: Path) -> None:
    put(tmp_path, "x/part-0.jsonl", "y/part-0.jsonl")
    files = list_inputs([str(tmp_path / "x"), str(tmp_path / "y")])
    assert [file.relative_name for file in files] == ["x/part-0.jsonl", "y/part-0.jsonl"]


def test_no_relative_name_climbs_out_of_the_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, "in/a.jsonl", "other/b.jsonl", "work/c.jsonl")
    monkeypatch.chdir(tmp_path / "work")
    files = list_inputs(["../in", "../other/b.jsonl", "c.jsonl"])
    assert [file.relative_name for file in files] == ["in/a.jsonl", "other/b.jsonl", "work/c.jsonl"]


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl", "b.jsonl")
    files = list_inputs([str(tmp_path / "b.jsonl"), str(tmp_path), str(tmp_path / "." / "b.jsonl")])
    assert [Path(file.name).name for file in files] == ["b.jsonl", "a.jsonl"]


def test_a_link_that_leads_to_another_folder_since_the_last_search_is_followed(
    tmp_path: Path,
) -> None:
    put(tmp_path, "old/a.jsonl", "new/a.jsonl")
    link = tmp_path / "latest"
    link.symlink_to("old")
    both = [str(link / "a.jsonl"), str(tmp_path / "old/a.jsonl")]
    assert len(list_inputs(both)) == 1
    link.unlink()
    link.symlink_to("new")
    assert len(list_inputs(both)) == 2


def test_compression_is_read_from_the_suffix(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl.gz", "b.csv.zst", "c.txt.bz2", "d.tsv.xz", "e.parquet.gz", "f.jsonl")
    found = {file.relative_name: file.compression for file in list_inputs([str(tmp_path)])}
    assert found == {
        "a.jsonl.gz": "gzip",
        "b.csv.zst": "zstd",
        "c.txt.bz2": "bz2",
        "d.tsv.xz": "xz",
        "f.jsonl": None,
    }


def test_one_text_file_named_directly_is_read_by_line_others_by_file(tmp_path: Path) -> None:
    put(tmp_path, "a.txt", "b.txt", "c.jsonl")
    a, b, c = (str(tmp_path / name) for name in ("a.txt", "b.txt", "c.jsonl"))
    assert [file.unit for file in list_inputs([a])] == ["line"]
    assert [file.unit for file in list_inputs([a, c])] == ["line", "row"]
    assert [file.unit for file in list_inputs([a, b])] == ["file", "file"]
    assert [file.unit for file in list_inputs([str(tmp_path)])] == ["file", "file", "row"]
    assert [file.unit for file in list_inputs([str(tmp_path)], unit="line")] == [
        "line",
        "line",
        "row",
    ]


@pytest.mark.parametrize(
    ("content", "format_name", "compression"),
    [
        (b'  {"text": "a"}\n', "jsonl", None),
        (b"just a line\n", "text", None),
        (b"", "text", None),
        (gzip.compress(LINE, mtime=0), "jsonl", "gzip"),
        (b"PAR1....", "parquet", None),
        (b"ARROW1..", "arrow", None),
    ],
)
def test_standard_input_is_recognised_by_its_first_bytes(
    content: bytes, format_name: str, compression: str | None, pipe: Callable[[bytes], None]
) -> None:
    pipe(content)
    (file,) = list_inputs(["-"])
    assert (file.name, file.format, file.compression) == ("-", format_name, compression)
    assert file.unit == ("line" if format_name == "text" else "row")


def test_standard_input_can_be_read_twice(pipe: Callable[[bytes], None]) -> None:
    pipe(b"one\ntwo\n")
    (file,) = list_inputs(["-"])
    for _ in range(2):
        texts = [
            text
            for batch in file.read(Columns("text"), pytest.fail)
            for text in batch.text.to_pylist()
        ]
        assert texts == ["one", "two"]


def test_long_csv_with_a_byte_order_mark_is_recognised(pipe: Callable[[bytes], None]) -> None:
    rows = [f"{number:05d},a text,en,example.org,2020\n" for number in range(3000)]
    pipe(("\ufeffid,text,lang,site,year\n" + "".join(rows)).encode())
    with pytest.raises(InputError, match="Standard input may be CSV"):
        list_inputs(["-"])


def test_standard_input_that_does_not_block_is_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read_end, write_end = os.pipe()
    os.set_blocking(read_end, False)
    parts = [b"one\n", b"two\n"]

    def wait(*_: object) -> None:
        if parts:
            os.write(write_end, parts.pop(0))
        else:
            os.close(write_end)

    monkeypatch.setattr(spool.select, "select", wait)
    with open(read_end) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        (file,) = list_inputs(["-"])
    batches = file.read(Columns("text"), pytest.fail)
    assert [text for batch in batches for text in batch.text.to_pylist()] == ["one", "two"]


def test_standard_input_that_was_closed_or_replaced_is_named(
    pipe: Callable[[bytes], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe(b"one")
    sys.stdin.close()
    with pytest.raises(InputError, match="Standard input is closed"):
        list_inputs(["-"])
    monkeypatch.setattr(sys, "stdin", io.StringIO("one"))
    with pytest.raises(InputError, match="or has no bytes: got - as an input"):
        list_inputs(["-"])


def test_standard_input_is_one_input(pipe: Callable[[bytes], None]) -> None:
    pipe(b"one\ntwo\n")
    list_inputs(["-"])
    with pytest.raises(InputError, match="read only once"):
        list_inputs(["-"])


def test_standard_input_is_identified_by_its_content(pipe: Callable[[bytes], None]) -> None:
    files = []
    for data in (b"one", b"one", b"two"):
        pipe(data)
        files += list_inputs(["-"])
    first, same, other = files
    assert first.identity() == same.identity() != other.identity()


def test_identity_changes_with_the_file(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl")
    (file,) = list_inputs([str(tmp_path)])
    before = file.identity()
    assert file.identity() == before
    put(tmp_path, "a.jsonl", content=LINE * 2)
    assert file.identity() != before


def test_remote_folders_files_and_patterns_are_listed() -> None:
    memory = fsspec.filesystem("memory")
    for name in ("a.jsonl", "deep/b.jsonl", "deep/c.csv", "_SUCCESS"):
        memory.pipe(f"/listed/{name}", LINE)
    folder = list_inputs(["memory://listed"])
    assert [file.relative_name for file in folder] == ["a.jsonl", "deep/b.jsonl", "deep/c.csv"]
    assert folder[1].name == "memory://listed/deep/b.jsonl"
    (file,) = list_inputs(["memory://listed/a.jsonl"])
    assert [
        text for batch in file.read(Columns("text"), pytest.fail) for text in batch.text.to_pylist()
    ] == ["a"]
    assert [f.relative_name for f in list_inputs(["memory://listed/**/*.jsonl"])] == [
        "a.jsonl",
        "deep/b.jsonl",
    ]


def test_a_file_address_is_a_local_file(tmp_path: Path) -> None:
    put(tmp_path, "a b.jsonl")
    (file,) = list_inputs([(tmp_path / "a b.jsonl").as_uri()])
    assert file.is_local
    assert file.relative_name == "a b.jsonl"


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("corpus.jsonk", r"No such file or folder: .*corpus\.jsonk\. Did you mean corpus\.jsonl\?"),
        (
            "picture.png",
            r"Unknown kind of file: .*picture\.png ends with '\.png'\. Known are \.parquet",
        ),
        ("empty", r"No input in .*empty: 1 file, such as .*readme\.xyz"),
        ("*.csv", r"No input in .*\*\.csv: no file"),
    ],
)
def test_what_cannot_be_read_is_named(tmp_path: Path, path: str, message: str) -> None:
    put(tmp_path, "corpus.jsonl", "picture.png", "empty/readme.xyz")
    with pytest.raises(InputError, match=message):
        list_inputs([str(tmp_path / path)])


@pytest.mark.parametrize("path", ["a\0b/c.jsonl", "a\0b/**", "\ud800.jsonl", ""])
def test_a_path_that_no_file_can_have_is_refused(path: str) -> None:
    with pytest.raises(InputError, match=r"An input must be a str or a pathlib\.Path: got "):
        list_inputs([path])


@pytest.mark.parametrize(
    "address",
    [
        "foo://ada:secret@host/in.csv",  # no such protocol: the reason repeats the address
        "foo://host/in.csv?sig=secret",
        "foo://host/in.csv?a=1&X-Amz-Signature=secret",
        "foo://host/in.csv?client_secret=secret",
        "foo://host/in.csv?sv=1&session_token=secret",
    ],
)
def test_an_address_that_cannot_be_reached_is_named_without_secrets(address: str) -> None:
    with pytest.raises(InputError, match="foo://") as caught:
        list_inputs([address])
    assert "=secret" not in str(caught.value)
    assert ":secret@" not in str(caught.value)


def test_an_address_is_named_without_its_password() -> None:
    with pytest.raises(InputError, match=r"No input in memory://ada@nowhere/\*\.jsonl: no file"):
        list_inputs(["memory://ada:secret@nowhere/*.jsonl"])


def test_missing_remote_input_is_named() -> None:
    with pytest.raises(InputError, match=r"No such file or folder: memory://nowhere/a.jsonl"):
        list_inputs(["memory://nowhere/a.jsonl"])


def test_storage_that_needs_a_package_names_the_install_command() -> None:
    with pytest.raises(MissingExtraError, match=r"pip install 'neardup\[remote\]'"):
        list_inputs(["sftp://host/a.jsonl"])


def test_bad_arguments_are_refused() -> None:
    with pytest.raises(
        SettingError, match="text_unit must be one of 'auto', 'line', 'file': got 'word'"
    ):
        list_inputs(["-"], unit="word")
    with pytest.raises(InputError, match="at least one path"):
        list_inputs([])


def test_a_file_that_goes_away_is_an_input_error(tmp_path: Path) -> None:
    put(tmp_path, "a.jsonl")
    (file,) = list_inputs([str(tmp_path)])
    (tmp_path / "a.jsonl").unlink()
    with pytest.raises(InputError, match="no longer there"):
        list(file.read(Columns("text"), pytest.fail))


def test_files_of_several_drives_have_a_common_folder_on_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(input_files, "os", SimpleNamespace(path=ntpath))
    bases = ["C:\\data\\new", "c:\\data\\old", "D:\\more"]
    found = [SimpleNamespace(base=base, location=base) for base in bases]
    found.append(SimpleNamespace(base="bucket/a", location="s3://bucket/a/b.jsonl"))
    roots = input_files._common_roots(found)
    assert {volume: root.lower() for volume, root in roots.items()} == {
        "c:": "c:\\data",
        "d:": "d:\\more",
        "remote": "bucket/a",
    }
