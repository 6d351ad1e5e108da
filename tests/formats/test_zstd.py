"""zstd files that Arrow does not read: wide windows, and archives that begin with a dictionary.

The archives follow the IIPC draft "Zstandard Compression for WARC Files 1.0".
"""

from __future__ import annotations

import sys
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import neardup
from neardup.documents import zstd_streams
from neardup.documents.lines import STREAM_ERRORS
from neardup.errors import IncompleteWarning
from reference.warc_files import page, read

zstd = pytest.importorskip(zstd_streams._MODULE, reason="the extra zstd is not installed")

PAGES = {f"http://{i}.test/": f"<html><p>Page {i} of the archive, {i * i} words" for i in range(40)}
RECORDS = [page(html.encode(), url) for url, html in PAGES.items()]
TRAINED = zstd.train_dict(RECORDS, 1024)
DICTIONARY = bytes(TRAINED.dict_content)
DICTIONARY_FRAME = 0x184D2A5D
EXTENSION_FRAME = 0x184D2A50


def skippable(data: bytes, magic: int = DICTIONARY_FRAME) -> bytes:
    return magic.to_bytes(4, "little") + len(data).to_bytes(4, "little") + data


def frames(dictionary: object = None) -> bytes:
    """Return a frame for each record."""
    return b"".join(zstd.compress(record, zstd_dict=dictionary) for record in RECORDS)


def wide(text: bytes, window_log: int) -> bytes:
    """Return a frame with a window, as `zstd --long` writes from a pipe: magic, descriptor, window,
    and one raw block, the last.
    """
    block = (len(text) << 3 | 1).to_bytes(3, "little")
    return zstd_streams.ZSTD_MAGIC + b"\x00" + bytes([(window_log - 10) << 3]) + block + text


@pytest.fixture
def only_arrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide Python's reader."""
    monkeypatch.setitem(sys.modules, zstd_streams._MODULE, None)


def reason_of(path: Path) -> str:
    """Return why a file cannot be read."""
    with pytest.warns(IncompleteWarning) as caught:
        neardup.dedup(path, text_unit="line")
    (warning,) = caught
    return str(warning.message)


@pytest.mark.parametrize(
    "dictionary", [DICTIONARY, zstd.compress(DICTIONARY)], ids=["as is", "zst"]
)
def test_an_archive_that_begins_with_a_dictionary_has_its_pages(tmp_path: Path, dictionary) -> None:
    path = tmp_path / "a.warc.zst"
    path.write_bytes(skippable(dictionary) + frames(TRAINED))
    found, left_out = read(path)
    assert {url: html for url, (_, html) in found.items()} == PAGES
    assert left_out == []


@pytest.mark.parametrize("magic", [EXTENSION_FRAME, DICTIONARY_FRAME])
def test_other_skippable_frames_are_skipped(tmp_path: Path, magic: int) -> None:
    path = tmp_path / "a.warc.zst"
    path.write_bytes(skippable(b"a note", magic) + frames() + skippable(b"the end", magic))
    assert len(read(path)[0]) == len(PAGES)


def test_pages_of_a_dictionary_are_kept_as_frames_without_one(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.zst"
    path.write_bytes(skippable(DICTIONARY) + frames(TRAINED))
    neardup.dedup(path, output=tmp_path / "out", threshold=1.0)
    (kept,) = (tmp_path / "out/kept").iterdir()
    data = kept.read_bytes()
    assert zstd.decompress(data) == b"".join(RECORDS)
    # Each record is a frame, by which programs find it.
    for record in RECORDS:
        frame = zstd.ZstdDecompressor()
        assert frame.decompress(data) == record
        data = frame.unused_data
    assert data == b""


def test_an_archive_with_a_dictionary_is_known_in_standard_input(tmp_path: Path, pipe) -> None:
    pipe(skippable(DICTIONARY) + frames(TRAINED))
    assert neardup.dedup("-").report["counts"]["read"] == len(PAGES)


@pytest.mark.parametrize("window_log", [27, 28, 31])
def test_a_window_of_long_31_is_read(tmp_path: Path, window_log: int) -> None:
    path = tmp_path / "a.txt.zst"
    path.write_bytes(wide(b"one two three\n", window_log) + wide(b"four five six\n", window_log))
    result = neardup.dedup(path, text_unit="line")
    assert result.kept["text"].to_pylist() == ["one two three", "four five six"]


@pytest.mark.parametrize(
    ("head", "window_bytes"),
    [
        (b"\x00\x08", 2 << 10),  # exponent 1, mantissa 0
        (b"\x00\x0f", (2 << 10) + 7 * 256),  # mantissa 7: each is an eighth
        (b"\x00\xa8", 1 << 31),
        (b"\x20\x05", 5),  # one segment of five bytes
        (b"\xa0\x00\x00\x00\x10", 1 << 28),
        (b"\xe0" + (3 << 30).to_bytes(8, "little"), 3 << 30),
    ],
)
def test_a_window_is_that_of_the_header_or_of_the_only_segment(head, window_bytes) -> None:
    # RFC 8878, sections 3.1.1.1.2 and 3.1.1.1.4.
    frame = zstd_streams._parse_head(zstd_streams.ZSTD_MAGIC + head.ljust(12, b"\0"))
    assert frame == (window_bytes, False)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (frames(TRAINED), "zstd -d -D DICTIONARY"),
        (skippable(DICTIONARY[:200]) + frames(TRAINED), "Unable to decompress"),
        (skippable(zstd.compress(DICTIONARY)[:-9]) + frames(TRAINED), "dictionary is damaged"),
        (skippable(bytes(9 << 20)) + frames(TRAINED), "more than 8,388,608 bytes"),
        (skippable(zstd.compress(bytes(9 << 20))) + frames(TRAINED), "more than 8,388,608 bytes"),
        (skippable(DICTIONARY) + frames(TRAINED)[:-9], "ended before the end-of-stream marker"),
        (wide(b"one two three\n", 32), "takes 4,096 MiB to decompress, and at most 2,048 MiB"),
    ],
    ids=["elsewhere", "cut", "cut inside", "too long", "bomb", "cut short", "too wide"],
)
def test_a_file_that_cannot_be_decompressed_is_named_with_the_reason(tmp_path, data, why) -> None:
    path = tmp_path / "a.warc.zst"
    path.write_bytes(data)
    assert why in reason_of(path)


BEGINNINGS = [
    b"",
    zstd_streams.ZSTD_MAGIC,
    skippable(b""),
    skippable(DICTIONARY[:40]),
    skippable(DICTIONARY) + zstd_streams.ZSTD_MAGIC,
    skippable(DICTIONARY) + frames(TRAINED)[:-200],
    wide(b"one", 31),
]


@given(st.sampled_from(BEGINNINGS), st.binary(max_size=40), st.data())
def test_any_bytes_are_read_or_refused(beginning: bytes, rest: bytes, data: st.DataObject) -> None:
    broken = bytearray(beginning + rest)
    for _ in range(data.draw(st.integers(0, 3), label="changed bytes") if broken else 0):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    try:
        with zstd_streams.open_zstd(pa.BufferReader(bytes(broken))) as stream:
            while stream.read(1 << 16):
                pass
    except STREAM_ERRORS:
        pass


@pytest.mark.usefixtures("only_arrow")
@pytest.mark.parametrize(
    ("data", "advice"),
    [
        (wide(b"one two three\n", 28), "zstd -d --long=28. Or install"),
        (wide(b"one two three\n", 31), "zstd -d --long=31. Or install"),
        (skippable(DICTIONARY) + frames(TRAINED), "begins with a zstd dictionary. Install"),
    ],
    ids=["28", "31", "dictionary"],
)
def test_without_the_package_the_ways_out_are_named(tmp_path: Path, data: bytes, advice) -> None:
    path = tmp_path / "a.warc.zst"
    path.write_bytes(data)
    reason = reason_of(path)
    assert advice in reason
    assert "pip install 'neardup[zstd]'" in reason


@pytest.mark.usefixtures("only_arrow")
def test_a_window_of_long_27_needs_no_package(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.zst"
    path.write_bytes(wide(b"one two three\n", 27))
    assert neardup.dedup(path, text_unit="line").kept["text"].to_pylist() == ["one two three"]
