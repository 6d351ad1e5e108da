"""Files that the tools of each format wrote, all of the same texts: tests/data/formats/make.py."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import neardup
from neardup.documents import zstd_streams
from neardup.errors import IncompleteWarning
from reference.places import TESTS
from reference.warc_files import read

FILES = TESTS / "data" / "formats"
TEXTS = {
    "a": 'He said: "one two three four", and left',
    "b": "five six seven eight nine ten",
    "c": '"Eleven twelve thirteen fourteen',
}
COPY = ("d", "b")  # "Five six seven; eight nine ten!"


def has_python_zstd() -> bool:
    try:
        import_module(zstd_streams._MODULE)
    except ImportError:
        return False
    return True


needs_zstd = pytest.mark.skipif(not has_python_zstd(), reason="the extra zstd is not installed")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sqlite.tsv", {"quote": "none"}),
        ("jq-seq.json", {}),
        pytest.param("long-31.jsonl.zst", {}, marks=needs_zstd),
        ("spark-lz4.parquet", {}),
        ("saved", {}),
    ],
)
def test_rows_of_any_tool_are_the_documents(name: str, options: dict, tmp_path: Path) -> None:
    result = neardup.dedup(FILES / name, output=tmp_path / "out", **options)
    kept = neardup.dedup(FILES / name, **options).kept
    assert dict(zip(kept["id"].to_pylist(), kept["text"].to_pylist(), strict=True)) == TEXTS
    removed = result.removed.select(["id", "kept_id"]).to_pylist()
    assert [(row["id"], row["kept_id"]) for row in removed] == [COPY]
    (written,) = (path for path in (tmp_path / "out/kept").rglob("*") if path.is_file())
    again = neardup.dedup(written, **options)
    assert again.kept.to_pydict() == kept.to_pydict()


def test_texts_of_a_wet_file_are_the_documents() -> None:
    found, left_out = read(FILES / "fastwarc.warc.wet.gz")
    texts = {url: text for url, (_, text) in found.items()}
    assert {name: texts[f"http://{name}.test/"] for name in TEXTS} == TEXTS
    assert (len(texts), left_out) == (4, [])


@needs_zstd
def test_pages_of_an_archive_with_a_dictionary_are_the_documents() -> None:
    found, left_out = read(FILES / "zstd-dictionary.warc.zst")
    pages = {url: html for url, (_, html) in found.items()}
    for name, text in TEXTS.items():
        assert pages[f"http://{name}.test/"] == f"<html><title>{name}</title><p>{text}</html>"
    assert (len(pages), left_out) == (4, [])


def test_pretty_printed_json_is_named_with_the_command_that_converts_it() -> None:
    with pytest.warns(IncompleteWarning, match=r"jq -c \. FILE"):
        neardup.dedup(FILES / "jq-pretty.json", text_column="text")


def test_lz4_of_hadoop_is_written_as_lz4_raw(tmp_path: Path) -> None:
    neardup.dedup(FILES / "spark-lz4.parquet", output=tmp_path / "out")
    (written,) = (tmp_path / "out/kept").iterdir()
    groups = [
        pq.read_metadata(path).row_group(0) for path in (FILES / "spark-lz4.parquet", written)
    ]
    # pyarrow names LZ4_RAW "LZ4", and has no name for the LZ4 of Hadoop.
    assert [group.column(1).compression for group in groups] == ["UNKNOWN", "LZ4"]
