"""A format is one entry of the registry: its module reads and writes it, and nothing else needs to
know of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup.arrays import arrow_of_bytes
from neardup.documents.batch import Columns, DocumentBatch, RawLines, Rejected, select_lines
from neardup.documents.sinks import ByteSink, open_compressed
from neardup.documents.sources import Source
from neardup.formats.registry import (
    COMPRESSIONS,
    FORMATS,
    UNQUOTED,
    Format,
    Handler,
    format_of,
    format_of_bytes,
    register,
    split_name,
)
from neardup.runs.input_files import list_inputs
from reference.places import TESTS

# A made-up format: paragraphs with an empty line behind each; a paragraph is a document.


def read_paragraphs(
    file: Source,
    columns: Columns,
    reject: Callable[[Rejected], None],
    *,
    with_payload: bool = False,
) -> Iterator[DocumentBatch]:
    with file.open_stream() as stream:
        data = bytes(stream.read()).removeprefix(b"%paragraphs\n")
    ends = [index + 2 for index in range(len(data)) if data[index : index + 2] == b"\n\n"]
    offsets = np.array([0, *ends], np.int64)
    text = arrow_of_bytes(data, offsets).view(pa.large_string())
    payload = (
        RawLines(*select_lines(data, offsets, np.ones(len(ends), bool))) if with_payload else None
    )
    yield DocumentBatch(text, np.arange(len(ends)), payload=payload)


class ParagraphSink(ByteSink):
    def __init__(self, path: str, compression: str | None) -> None:
        super().__init__(path, compression, lambda lines: lines.data)
        self._stream.write(b"%paragraphs\n")


HANDLER = Handler(
    read_paragraphs, lambda file: partial(ParagraphSink, compression=file.compression)
)

PARAGRAPHS = [
    "The quick brown fox jumps over the lazy dog and runs away.\n\n",
    "Nothing in this paragraph repeats\nwhat the first of them says.\n\n",
    "The quick brown fox jumps over the lazy dog and runs away!\n\n",
]


@pytest.fixture
def paragraphs() -> Iterator[None]:
    register(Format("paragraphs", (".para",), __name__, magic=b"%paragraphs\n"))
    yield
    del FORMATS["paragraphs"]


@pytest.mark.usefixtures("paragraphs")
@pytest.mark.parametrize("suffix", ["", ".gz", ".zst"])
def test_a_registered_format_is_found_read_and_kept_in_its_format(
    tmp_path: Path, suffix: str
) -> None:
    with open_compressed(str(tmp_path / f"in.para{suffix}"), COMPRESSIONS.get(suffix)) as stream:
        stream.write(("%paragraphs\n" + "".join(PARAGRAPHS)).encode())
    result = neardup.dedup(tmp_path / f"in.para{suffix}", output=tmp_path / "out")
    assert result.removed.select(["row", "kept_row", "exact"]).to_pylist() == [
        {"row": 2, "kept_row": 0, "exact": True}
    ]
    (kept,) = list_inputs([str(tmp_path / "out/kept")])
    assert kept.relative_name == f"in.para{suffix}"
    with kept.open_stream() as written:
        assert bytes(written.read()).decode() == "%paragraphs\n" + PARAGRAPHS[0] + PARAGRAPHS[1]


@pytest.mark.usefixtures("paragraphs")
def test_a_registered_format_is_recognised_by_its_first_bytes_and_can_be_named(
    pipe: Callable[[bytes], None],
) -> None:
    pipe(("%paragraphs\n" + "".join(PARAGRAPHS)).encode())
    assert list_inputs(["-"])[0].format == "paragraphs"
    pipe(b"text")
    assert list_inputs(["-"], format_name="paragraphs")[0].format == "paragraphs"


@pytest.mark.parametrize(
    ("head", "name"),
    [
        (b"PAR1", "parquet"),
        (b"ARROW1", "arrow"),
        (b"\xff\xff\xff\xff", "arrow"),
        (b"WARC/1.1\r\n", "warc"),
        (b'{"text": 1}', "jsonl"),
        (b'\xef\xbb\xbf \n{"text": 1}', "jsonl"),
        (b"<!DOCTYPE html>", "html"),
        (b"\n<HTML lang=en>", "html"),
        ((TESTS / "data/office/contract.docx").read_bytes(), "docx"),
        ((TESTS / "data/office/contract.odt").read_bytes(), "odt"),
        ((TESTS / "data/office/contract.epub").read_bytes(), "epub"),
        (b"PK\x03\x04" + bytes(26) + b"notes.txt", None),
        (b"From a@b.c Thu Jan  1 00:00:00 1970\n", "mbox"),
        (b"From - Thu Jan 01 00:00:00 1970\r\n", "mbox"),
        (b"From here on Thu Jan is away\n", None),
        (b"Subject: s\n", None),
        (b"<htmlish>", None),
        (b"[1]", None),
        (b"", None),
    ],
)
def test_formats_are_recognised_by_their_first_bytes(head: bytes, name: str | None) -> None:
    assert format_of_bytes(head) == name


def test_every_suffix_names_its_format_and_tables_with_codecs_of_their_own_are_not_compressed_as_a_whole() -> (  # noqa: E501
    None
):
    by_suffix = [known for name, known in FORMATS.items() if name not in UNQUOTED.values()]
    for known in by_suffix:
        for suffix in known.suffixes:
            assert split_name("deep/a.b" + suffix.upper()) == ("deep/a.b", known.name, None)
            compressed = split_name(f"a{suffix}.gz")
            assert (
                compressed == (f"a{suffix}.gz", None, None)
                if known.contents == "binary"
                else ("a", known.name, "gzip")
            )


def test_finding_a_file_loads_no_reader(tmp_path: Path) -> None:
    (tmp_path / "a.warc").touch()
    (tmp_path / "b.html").touch()
    (tmp_path / "c.parquet").touch()
    code = (
        f"import json, sys; from neardup.runs.find import find; find({str(tmp_path)!r}); "
        "print(json.dumps([name for name in sys.modules if name.startswith('neardup.formats.')]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.rpartition(".")[2] for name in json.loads(done.stdout)}
    assert not loaded & {known.module.rpartition(".")[2] for known in FORMATS.values()}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("https://host/a.jsonl.gz?token=x.csv", ("jsonl", "gzip")),
        ("HTTPS://host/a.jsonl?b", ("jsonl", None)),
        ("http_dump?v2.jsonl", ("jsonl", None)),
        ("s3://bucket/why?.parquet", ("parquet", None)),
    ],
)
def test_only_an_address_of_the_web_has_a_query(name, expected) -> None:
    assert format_of(name) == expected
