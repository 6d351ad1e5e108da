"""WARC files from anybody: what becomes of damage, lies and bombs."""

from __future__ import annotations

import gzip
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

import neardup
from neardup.documents.pages import MAX_PAGE_BYTES
from neardup.formats import warc_bytes, warc_records
from reference.warc_files import (
    ALL,
    HTML,
    LIMIT,
    ONE,
    THREE,
    TWO,
    http,
    members,
    page,
    read_bytes,
    record,
    why,
    zeros,
)

# Damage.


@pytest.mark.parametrize("name", [pytest.param("a.warc", marks=pytest.mark.slow), "a.warc.gz"])
def test_a_file_cut_short_anywhere_gives_its_whole_records_and_says_where_it_ends(
    tmp_path: Path, name: str
) -> None:
    records = [one if name == "a.warc" else members(one) for one in (ONE, TWO)]
    whole = b"".join(records)
    ends = [len(records[0]), len(records[0] + records[1])]
    for size in range(1, len(whole)):
        found, rejected = read_bytes(tmp_path, whole[:size], name)
        # The empty lines behind a record say nothing.
        num_whole = sum(size >= (end - 4 if name == "a.warc" else end) for end in ends)
        assert list(found) == ALL[:num_whole], size
        if num_whole < 2 and size > (ends[0] if num_whole else 0):
            assert [one.byte for one in rejected] == [ends[0] if num_whole else 0], (size, rejected)
        else:
            assert not rejected, size


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_the_rejected_row_says_what_is_missing(tmp_path: Path, name: str) -> None:
    data = ONE + TWO if name == "a.warc" else members(ONE, TWO)
    _, (rejected,) = read_bytes(tmp_path, data[:-9], name)
    assert rejected.row == 1
    assert rejected.byte == (len(ONE) if name == "a.warc" else len(members(ONE)))
    size = len(http(b"<p>two"))
    short = f"the file is cut short inside this record: it has {size - 5} of {size} bytes"
    assert rejected.reason == (
        short if name == "a.warc" else "the file is cut short inside this gzip member"
    )


def test_a_damaged_member_costs_itself_only(tmp_path: Path) -> None:
    first = len(members(ONE))
    second = len(members(TWO))
    whole = members(ONE, TWO, THREE)
    for place in range(first + 10, first + second):
        data = bytearray(whole)
        data[place] ^= 0x55
        found, rejected = read_bytes(tmp_path, bytes(data), "a.warc.gz")
        assert list(found) == [ALL[0], ALL[2]], place
        assert [(one.row, one.byte) for one in rejected] == [(1, first)], place
        assert rejected[0].reason.startswith("the gzip member is damaged: ")
        assert rejected[0].reason.endswith("; the bytes up to the next record are skipped")


def test_a_long_member_with_a_wrong_checksum_is_not_trusted(tmp_path: Path) -> None:
    noise = random.Random(1).randbytes(1 << 20).hex().encode()
    data = bytearray(members(ONE, page(b"<p>" + noise), TWO))
    data[len(data) - len(members(TWO)) - 6] ^= 1
    found, rejected = read_bytes(tmp_path, bytes(data), "a.warc.gz")
    assert list(found) == ALL[:2]
    assert [(one.row, one.byte) for one in rejected] == [(1, len(members(ONE)))]


@pytest.mark.parametrize(
    "junk", [b"junk", b"\x1f\x8b\x08", b"\x1f\x8b\x08" * 1000, bytes(range(1, 256)) * 300]
)
def test_junk_between_members_is_said_and_passed_over(tmp_path: Path, junk: bytes) -> None:
    found, rejected = read_bytes(tmp_path, members(ONE) + junk + members(TWO, THREE), "a.warc.gz")
    assert list(found) == ALL
    assert [one.byte for one in rejected] == [len(members(ONE))]


def test_zeros_between_members_are_padding(tmp_path: Path) -> None:
    found, rejected = read_bytes(
        tmp_path, members(ONE) + bytes(100_000) + members(TWO) + bytes(3), "a.warc.gz"
    )
    assert (list(found), rejected) == (ALL[:2], [])


def test_a_member_of_something_else_is_said_and_passed_over(tmp_path: Path) -> None:
    found, rejected = read_bytes(tmp_path, members(ONE, b"something else", TWO), "a.warc.gz")
    assert list(found) == ALL[:2]
    assert [(one.row, one.byte) for one in rejected] == [(1, len(members(ONE)))]
    assert rejected[0].reason.startswith("no WARC record begins here, but b'something else'")


@pytest.mark.parametrize(
    "junk", [b"junk\r\n", b"WARC/1.0 but not really\r\n\r\n", b"WARC/1.0\r\nno colon\r\n\r\n"]
)
@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_junk_between_records_is_said_and_passed_over(
    tmp_path: Path, junk: bytes, name: str
) -> None:
    data = ONE + junk + TWO
    found, rejected = read_bytes(tmp_path, data if name == "a.warc" else gzip.compress(data), name)
    assert list(found) == ALL[:2]
    assert [one.byte for one in rejected] == [len(ONE) if name == "a.warc" else 0]


@pytest.mark.parametrize("length", ["-1", "", "12x", "1" * 19, "٣", "1e3", "0x10"])
def test_a_content_length_that_is_none_is_rejected(tmp_path: Path, length: str) -> None:
    lying = page(b"<p>").replace(
        f"Content-Length: {len(http(b'<p>'))}".encode(), f"Content-Length: {length}".encode()
    )
    assert why(tmp_path, lying).startswith(f"the record has no valid Content-Length: {length!r}")


def test_a_content_length_that_says_too_little_costs_that_record(tmp_path: Path) -> None:
    found, rejected = read_bytes(tmp_path, record("response", http(b"<p>"), length=9) + TWO)
    assert list(found) == [ALL[1]]
    assert [one.row for one in rejected] == [0, 1]


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_a_content_length_that_says_too_much_ends_with_the_file(tmp_path: Path, name: str) -> None:
    lying = record("response", http(b"<p>"), length=10**15)
    found, rejected = read_bytes(tmp_path, lying if name == "a.warc" else members(lying), name)
    assert not found
    assert {one.byte for one in rejected} == {0}


def test_a_content_length_beyond_all_bounds_does_not_cost_the_other_members(tmp_path: Path) -> None:
    data = members(ONE, record("response", http(b"<p>"), length=10**15), TWO)
    found, rejected = read_bytes(tmp_path, data, "a.warc.gz")
    assert list(found) == ALL[:2]
    assert [one.reason for one in rejected] == [
        "the record has 1000000000000000 bytes; at most 17825792 are read"
    ]


def test_a_header_without_an_end_is_rejected(tmp_path: Path) -> None:
    found, rejected = read_bytes(
        tmp_path, b"WARC/1.0\r\n" + b"X: y\r\n" * 50_000 + b"\r\n\r\n" + TWO
    )
    assert list(found) == [ALL[1]]
    assert "does not end within 65536 bytes" in rejected[0].reason


@pytest.mark.parametrize("data", [b"", b"\r\n\r\n", gzip.compress(b"", mtime=0), bytes(1000)])
def test_an_empty_file_holds_nothing(tmp_path: Path, data: bytes) -> None:
    found, rejected = read_bytes(
        tmp_path, data, "a.warc.gz" if data[:1] in (b"\x1f", b"\0") else "a.warc"
    )
    assert (found, rejected) == ({}, [])


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz", "a.warc.zst", "a.warc.xz"])
def test_a_file_that_is_no_warc_is_rejected(tmp_path: Path, name: str) -> None:
    found, rejected = read_bytes(tmp_path, b"no archive at all", name)
    assert not found
    assert [one.row for one in rejected] == [0]


def test_a_file_of_damage_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warc_records, "MAX_DAMAGES", 10)
    _, rejected = read_bytes(tmp_path, (b"junk\r\n" + ONE) * 50)
    assert len(rejected) == 11
    assert rejected[-1].reason.endswith(
        "; the file has more than 10 such places; the rest is not read"
    )


def test_the_longest_record_is_read_and_a_longer_one_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    length = len(http(b"<p>one"))
    data = record("response", http(b"<p>one")) + record("response", http(b"<p>two!"))
    monkeypatch.setattr(warc_records, "MAX_RECORD_BYTES", length)
    found, rejected = read_bytes(tmp_path, data)
    assert len(found) == 1
    assert [(one.row, one.too_long) for one in rejected] == [(1, True)]
    assert rejected[0].reason == f"the record has {length + 1} bytes; at most {length} are read"


# Bombs.

# 256 MB of one byte each, and what is said of it.
BOMBS = {
    "content": (
        lambda: zeros(record("response", http(b"<p>"), length=2 << 30)[:-4], 256),
        "at most 17825792 are read",
    ),
    "content of another record": (
        lambda: zeros(record("resource", b"", length=200 << 20)[:-4], 256),
        "no WARC record",
    ),
    "content that is not counted": (lambda: zeros(ONE, 256), "no WARC record begins here"),
    "empty lines": (lambda: zeros(ONE, 256, b"\n"), "no WARC record begins here"),
    "header": (lambda: zeros(b"WARC/1.0\r\nX: ", 256, b"x"), "does not end within 65536 bytes"),
    "header of the response": (
        lambda: zeros(record("response", b"HTTP/1.1 200 OK\r\nX: ", length=17 << 20)[:-4], 256),
        "the HTTP header is longer than 65536 bytes",
    ),
    "body in gzip": (
        lambda: members(page(zeros(b"<p>", 256), header=HTML + b"Content-Encoding: gzip\r\n")),
        LIMIT,
    ),
    "empty members": (lambda: members(b"") * 100_000, None),
    "members of an empty line": (lambda: members(b"\n") * 100_000, None),
}


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit of memory")
@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_ends_in_bounded_memory_and_time(tmp_path: Path, bomb: str) -> None:
    make, reason = BOMBS[bomb]
    (tmp_path / "bomb.warc.gz").write_bytes(members(ONE) + make() + members(TWO))
    code = f"""
import json, resource, sys
sys.path.insert(0, {str(Path(neardup.__file__).parents[1])!r})
from neardup.documents.batch import Columns
from neardup.runs.input_files import list_inputs
from neardup.report.contents import peak_memory
(part,) = list_inputs([{str(tmp_path / "bomb.warc.gz")!r}])
before = peak_memory()
resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
rejected, urls = [], []
for batch in part.read(Columns("html", "url"), rejected.append, with_payload=True):
    urls += batch.ids.to_pylist()
print(json.dumps([urls, [one.reason for one in rejected], peak_memory() - before]))
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    urls, reasons, grown = json.loads(result.stdout)
    assert urls[0] == ALL[0]
    assert urls[-1] == ALL[1]
    assert grown < 8 * MAX_PAGE_BYTES
    assert reason is None or any(reason in one for one in reasons)
    assert len(reasons) <= (0 if reason is None else 2)


def test_what_is_too_long_to_be_inflated_is_said_if_nothing_is_found_behind_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warc_bytes.GzipBytes, "max_skipped_bytes", 1000)
    data = ONE + record("resource", b"x" * 2000)
    found, rejected = read_bytes(tmp_path, members(data), "a.warc.gz")
    assert list(found) == ALL[:1]
    assert "no record was found after it" in rejected[0].reason
    found, rejected = read_bytes(tmp_path, members(data, TWO), "a.warc.gz")
    assert (list(found), rejected) == (ALL[:2], [])


@pytest.mark.parametrize("size", [3, 9, 40])
def test_a_file_that_ends_in_a_header_is_incomplete(tmp_path: Path, size: int) -> None:
    (tmp_path / "a.warc").write_bytes(ONE + ONE[:size])
    result = neardup.dedup(tmp_path / "a.warc", output=tmp_path / "out", on_error="skip")
    assert result.report["incomplete"]["files"] == 1
    reason = json.loads((tmp_path / "out" / "rejected.jsonl").read_text())["reason"]
    assert reason == f"the file is cut short inside the header of this record: it has {size} bytes"
