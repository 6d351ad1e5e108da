"""WARC files: which records are documents, and what they are."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import fastwarc.warc
import fsspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import neardup
from neardup.documents.batch import Columns
from neardup.documents.pages import COLUMN_TYPES, MAX_PAGE_BYTES
from neardup.errors import ColumnError
from neardup.runs.columns import choose_columns
from neardup.runs.input_files import list_inputs
from reference.warc_files import (
    ALL,
    HTML,
    LIMIT,
    ONE,
    THREE,
    TWO,
    info,
    members,
    page,
    read,
    read_bytes,
    record,
    why,
)


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz", "a.warc.zst", "a.warc.bz2", "a.WARC.GZ"])
def test_the_pages_of_a_file_are_its_documents_by_their_url(tmp_path: Path, name: str) -> None:
    others = [
        record(kind, b"x: y\r\n")
        for kind in ("request", "metadata", "revisit", "resource", "conversion", "new")
    ]
    dns = record(
        "response", b"20240506\na.test. 300 IN A 192.0.2.1", "dns:a.test", content_type="text/dns"
    )
    records = [info(), ONE, *others, dns, TWO]
    path = tmp_path / name
    if name.lower().endswith(".gz"):
        path.write_bytes(members(*records))
    else:
        from neardup.documents.sinks import open_compressed
        from neardup.formats.registry import COMPRESSIONS

        with open_compressed(str(path), COMPRESSIONS.get(path.suffix)) as stream:
            stream.write(b"".join(records))
    found, left_out = read(path)
    assert [row.reason.partition(":")[0] for row in left_out] == [
        "the record is a conversion of application/warc-fields",
        "the record is a new of application/warc-fields",
    ]
    assert all(row.excluded for row in left_out)
    assert found == {"http://one.test/": (1, "<p>one"), "http://two.test/": (9, "<p>two")}


def test_a_file_of_one_gzip_member_is_read_too(tmp_path: Path) -> None:
    assert read_bytes(tmp_path, gzip.compress(ONE + TWO + THREE), "a.warc.gz") == read_bytes(
        tmp_path, ONE + TWO + THREE
    )


@pytest.mark.parametrize("size", [1, 7, 100, 300])
def test_members_may_end_anywhere(tmp_path: Path, size) -> None:
    data = ONE + TWO + THREE
    cut = members(*(data[begin : begin + size] for begin in range(0, len(data), size)))
    found, rejected = read_bytes(tmp_path, cut, "a.warc.gz")
    assert not rejected
    assert list(found) == ALL


def test_a_remote_archive_is_read(tmp_path: Path) -> None:
    fsspec.filesystem("memory").pipe("/archives/a.warc.gz", members(ONE, TWO))
    (part,) = list_inputs(["memory://archives/a.warc.gz"])
    (batch,) = part.read(Columns("html", "url"), pytest.fail)
    assert batch.ids is not None
    assert batch.ids.to_pylist() == ALL[:2]


def test_the_columns_are_those_of_an_archive(tmp_path: Path) -> None:
    head = b"<html lang=DE><title>Gr\xfc\xdfe</title>"
    (tmp_path / "a.warc").write_bytes(
        page(head, header=b"Content-Type: text/html; charset=latin1\r\n")
    )
    (part,) = list_inputs([str(tmp_path / "a.warc")])
    assert part.column_types() == COLUMN_TYPES["warc"]
    assert choose_columns([part]) == Columns("html", "url")
    (batch,) = part.read(Columns("html", "url"), pytest.fail, with_payload=True)
    assert batch.payload.rows().to_pylist() == [
        {
            "url": "http://a.test/",
            "date": datetime(2024, 5, 6, 7, 8, 9, tzinfo=timezone.utc),
            "charset": "windows-1252",
            "title": "Grüße",
            "language": "de",
            "html": "<html lang=DE><title>Grüße</title>",
        }
    ]


@pytest.mark.parametrize(
    ("written", "date"),
    [
        (
            "2024-05-06T07:08:09.123456789Z",
            datetime(2024, 5, 6, 7, 8, 9, 123456, tzinfo=timezone.utc),
        ),
        ("2024-05-06T07:08:09.5Z", datetime(2024, 5, 6, 7, 8, 9, 500000, tzinfo=timezone.utc)),
        ("2024", datetime(2024, 1, 1, tzinfo=timezone.utc)),
        ("2024-05", datetime(2024, 5, 1, tzinfo=timezone.utc)),
        ("2024-05-06", datetime(2024, 5, 6, tzinfo=timezone.utc)),
        ("2024-05-06T07:08Z", datetime(2024, 5, 6, 7, 8, tzinfo=timezone.utc)),
        ("2024-05T07:08Z", None),
        ("2024-05-32", None),
        ("0000-00-00T00:00:00Z", None),
        ("yesterday", None),
    ],
)
def test_dates_are_times_in_utc_or_nothing(
    tmp_path: Path, written: str, date: datetime | None
) -> None:
    (tmp_path / "a.warc").write_bytes(ONE.replace(b"2024-05-06T07:08:09Z", written.encode()))
    (part,) = list_inputs([str(tmp_path / "a.warc")])
    (batch,) = part.read(Columns("html"), pytest.fail, with_payload=True)
    assert batch.payload.rows()["date"].to_pylist() == [date]


@pytest.mark.parametrize(
    "status", ["301 Moved Permanently", "404 Not Found", "500", "206 Partial Content", "204 "]
)
def test_what_is_not_a_status_of_200_is_rejected(tmp_path: Path, status: str) -> None:
    assert why(tmp_path, page(b"<p>one", status=status)) == f"HTTP status {status[:3]}"


@pytest.mark.parametrize(
    ("content_type", "body", "reason"),
    [
        (b"application/json", b"{}", "not HTML: its content type is application/json"),
        (b"Image/PNG", b"<p>", "not HTML: its content type is image/png"),
        (b"image/webp\r\nContent-Encoding: br", b"<p>", "not HTML: its content type is image/webp"),
        (b"text/plain; charset=utf-8", b"<p>", "not HTML: its content type is text/plain"),
        (b"text/html", b"%PDF-1.4 <p>", "not HTML: it begins as PDF does"),
        (b"text/html", b'{"a": "<p>"}', "not HTML: it begins as JSON does"),
        (b"text/html", b"words", "no HTML element"),
        (b"", b"words <p>", "not HTML: it has no content type and does not begin as a page does"),
        (
            b"",
            b"\x00\x01\x02",
            "not HTML: it has no content type and does not begin as a page does",
        ),
    ],
)
def test_what_is_not_html_is_rejected(
    tmp_path: Path, content_type: bytes, body: bytes, reason: str
) -> None:
    header = b"Content-Type: " + content_type + b"\r\n" if content_type else b"X: y\r\n"
    assert why(tmp_path, page(body, header=header)) == reason


@pytest.mark.parametrize(
    "content_type", [b"TEXT/HTML", b"application/xhtml+xml;charset=UTF-8", b" text/html ; x", b""]
)
def test_what_is_html_by_type_or_by_its_beginning_is_read(
    tmp_path: Path, content_type: bytes
) -> None:
    header = b"content-type:" + content_type + b"\r\n" if content_type else b""
    found, rejected = read_bytes(tmp_path, page(b"\n <!DOCTYPE html><p>", header=header))
    assert (len(found), rejected) == (1, [])


def chunk(body: bytes, line_end: bytes = b"\r\n") -> bytes:
    return b"%x" % len(body) + line_end + body + line_end + b"0" + line_end * 2


@pytest.mark.parametrize(
    ("header", "encode"),
    [
        (b"Content-Encoding: gzip", gzip.compress),
        (b"Content-Encoding: x-gzip", gzip.compress),
        (
            b"Content-Encoding: gzip",
            lambda body: gzip.compress(body[:3]) + gzip.compress(body[3:]) + b"\0padding",
        ),
        (b"Content-Encoding: DEFLATE", zlib.compress),
        (b"Content-Encoding: deflate", lambda body: zlib.compress(body)[2:-4]),
        (b"Content-Encoding: gzip, gzip", lambda body: gzip.compress(gzip.compress(body))),
        (b"Content-Encoding: identity", bytes),
        (
            b"Transfer-Encoding: chunked",
            lambda body: b"4\r\n%s\r\n3;x=y\r\n%s\r\n0\r\n\r\n" % (body[:4], body[4:7]),
        ),
        (b"Transfer-Encoding: gzip, chunked", lambda body: chunk(gzip.compress(body))),
        (
            b"Transfer-Encoding: chunked\r\nContent-Encoding: gzip",
            lambda body: chunk(gzip.compress(body), b"\n"),
        ),
        # Archives keep the header of what they have undone.
        (b"Content-Encoding: gzip", bytes),
        (b"Content-Encoding: deflate", bytes),
        (b"Content-Encoding: br", bytes),
        (b"Transfer-Encoding: chunked", bytes),
    ],
)
def test_encodings_of_the_body_are_undone_if_it_is_in_them(
    tmp_path: Path, header: bytes, encode
) -> None:
    body = b"<p>seve"
    assert len(body) == 7
    found, rejected = read_bytes(tmp_path, page(encode(body), header=HTML + header + b"\r\n"))
    assert not rejected
    assert list(found.values()) == [(0, "<p>seve")]


@pytest.mark.parametrize(
    ("header", "body", "reason"),
    [
        (
            b"Content-Encoding: br",
            b"\x0b\x02\x80<p>\x03",
            "encoding br, which is not supported (only gzip and deflate are)",
        ),
        (
            b"Content-Encoding: zstd",
            b"\x28\xb5\x2f\xfd",
            "content encoding zstd, which is not supported",
        ),
        (
            b"Content-Encoding: gzip",
            gzip.compress(b"<p>one", mtime=0)[:-12],
            "cut short inside its content encoding gzip",
        ),
        (
            b"Content-Encoding: gzip",
            gzip.compress(b"<p>one", mtime=0) + gzip.compress(b" two", mtime=0)[:-12],
            "cut short inside its content encoding gzip",
        ),
        (
            b"Content-Encoding: gzip",
            gzip.compress(b"<p>", mtime=0) * 101,
            "more than 100 members in its content encoding gzip",
        ),
        (b"Content-Encoding: deflate", b"", "no HTML element"),
        (
            b"Content-Encoding: gzip",
            b"\x1f\x8b\x08garbage",
            "the body is damaged in its content encoding gzip",
        ),
        (
            b"Content-Encoding: deflate",
            b"garbage",
            "the body is damaged in its content encoding deflate",
        ),
        (
            b"Content-Encoding: gzip,gzip,gzip,gzip,gzip",
            b"x",
            "encoded 5 times; at most 4 are decoded",
        ),
        (
            b"Transfer-Encoding: chunked",
            b"2\r\n<p\r\n2\r\n>x\r\nzz\r\n",
            "the chunks of the body are damaged",
        ),
    ],
)
def test_a_body_that_cannot_be_decoded_is_rejected(
    tmp_path: Path, header: bytes, body: bytes, reason: str
) -> None:
    assert reason in why(tmp_path, page(body, header=HTML + header + b"\r\n"))


def test_a_body_stored_dechunked_may_begin_with_a_line_of_zero(tmp_path: Path) -> None:
    header = HTML + b"Transfer-Encoding: chunked\r\n"
    found, rejected = read_bytes(tmp_path, page(b"0\r\n<p>seven", header=header))
    assert not rejected
    assert list(found.values()) == [(0, "0\r\n<p>seven")]


LONG = b"<p>" + b"x" * MAX_PAGE_BYTES


@pytest.mark.parametrize(
    "one",
    [
        page(LONG),
        page(gzip.compress(LONG, mtime=0), header=HTML + b"Content-Encoding: gzip\r\n"),
        page(
            gzip.compress(gzip.compress(LONG, mtime=0), mtime=0),
            header=HTML + b"Content-Encoding: gzip, gzip\r\n",
        ),
        page(zlib.compress(LONG), header=HTML + b"Content-Encoding: deflate\r\n"),
    ],
    ids=["plain", "gzip", "gzip twice", "deflate"],
)
def test_a_page_that_is_too_long_is_rejected_by_the_limit(tmp_path: Path, one: bytes) -> None:
    assert why(tmp_path, one) == f"the page is {LIMIT}"


def test_the_longest_page_is_read(tmp_path: Path) -> None:
    body = LONG[:MAX_PAGE_BYTES]
    header = HTML + b"Content-Encoding: gzip\r\n"
    found, rejected = read_bytes(
        tmp_path, page(body) + page(gzip.compress(body), "http://b.test/", header=header)
    )
    assert (len(found), rejected) == (2, [])


def test_a_record_that_is_too_long_is_passed_over(tmp_path: Path) -> None:
    reason = "the record has 20971579 bytes; at most 17825792 are read"
    assert why(tmp_path, page(b"<p>" + b"x" * ((20 << 20) - 3))) == reason


def test_a_long_record_that_is_no_response_is_passed_over_in_silence(tmp_path: Path) -> None:
    found, rejected = read_bytes(tmp_path, ONE + record("resource", b"x" * (20 << 20)) + TWO)
    assert (list(found), rejected) == (ALL[:2], [])


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        (b"", "the record contains no HTTP response: it does not begin with a status line"),
        (b"<p>", "the record contains no HTTP response: it does not begin with a status line"),
        (
            b"HTTP/1.1 abc\r\n\r\n<p>",
            "the record contains no HTTP response: it does not begin with a status line",
        ),
        (
            b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70000 + b"\r\n\r\n<p>",
            "the HTTP header is longer than 65536 bytes",
        ),
    ],
)
def test_a_response_that_is_none_is_rejected(tmp_path: Path, block: bytes, reason: str) -> None:
    assert why(tmp_path, record("response", block)) == reason


@pytest.mark.parametrize(
    "block",
    [
        b"HTTP/1.0 200\r\nContent-Type: text/html\r\n\r\n<p>",
        b"HTTP/2 200 \nContent-Type:\n text/html\n\n<p>",
    ],
)
def test_loose_http_is_read(tmp_path: Path, block: bytes) -> None:
    found, rejected = read_bytes(tmp_path, record("response", block))
    assert (list(found.values()), rejected) == ([(0, "<p>")], [])


# Beside other inputs.


@pytest.mark.parametrize(
    ("content", "format_name", "compression", "name"),
    [
        (ONE, "warc", None, "stdin.warc"),
        (members(ONE), "warc", "gzip", "stdin.warc.gz"),
        (b"\xef\xbb\xbf\n<!DOCTYPE  html><p>", "html", None, "stdin.html"),
        (b"<html lang=en><p>", "html", None, "stdin.html"),
        (gzip.compress(b"<HTML>", mtime=0), "html", "gzip", "stdin.html.gz"),
        (b"<htmlx>", "text", None, "stdin.txt"),
    ],
)
def test_standard_input_is_known_for_an_archive_or_a_page(
    pipe: Callable[[bytes], None], content, format_name, compression, name
) -> None:
    pipe(content)
    (part,) = list_inputs(["-"])
    assert (part.format, part.compression, part.relative_name) == (
        format_name,
        compression,
        name,
    )
    assert sum(len(batch.rows) for batch in part.read(choose_columns([part]), pytest.fail)) == 1


def test_pages_beside_tables_and_texts_are_asked_for_their_html(tmp_path: Path) -> None:
    (tmp_path / "a.warc").write_bytes(ONE)
    (tmp_path / "b.jsonl").write_text('{"text": "words", "url": "u"}\n')
    (tmp_path / "c.txt").write_text("words")
    parts = list_inputs([str(tmp_path)])
    columns = choose_columns(parts)
    assert columns == Columns("text", "url")
    texts = [
        text
        for part in parts
        for batch in part.read(columns, pytest.fail)
        for text in batch.text.to_pylist()
    ]
    assert texts == ["<p>one", "words", "words"]
    with pytest.raises(ColumnError, match=r"No column 'html' in .*b\.jsonl"):
        choose_columns(parts, text_column="html")


def test_another_column_of_pages_can_be_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.warc").write_bytes(page(b"<title>One</title><p>words") + TWO)
    parts = list_inputs([str(tmp_path)])
    columns = choose_columns(parts, text_column="title")
    assert columns == Columns("title", "url")
    assert [batch.text.to_pylist() for batch in parts[0].read(columns, pytest.fail)] == [
        ["One", None]
    ]
    with pytest.raises(ColumnError, match=r"No column 'titel' in .* Did you mean 'title'\?"):
        choose_columns(parts, text_column="titel")


def test_a_column_called_html_is_guessed_last(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"html": "<p>", "id": 1}\n')
    assert choose_columns(list_inputs([str(tmp_path)])) == Columns("html", "id")
    (tmp_path / "a.jsonl").write_text('{"html": "<p>", "raw_content": "words"}\n')
    assert choose_columns(list_inputs([str(tmp_path)])) == Columns("raw_content")


# Another reader.


def test_fastwarc_reads_the_same_pages(tmp_path: Path) -> None:
    bodies = [f"<p>{i}".encode() * i for i in range(1, 300)]
    data = members(info(), *(page(body, f"http://{i}.test/") for i, body in enumerate(bodies)))
    found, rejected = read_bytes(tmp_path, data, "a.warc.gz")
    assert not rejected
    expected = {
        one.headers["WARC-Target-URI"]: one.reader.read().decode()
        for one in fastwarc.warc.ArchiveIterator(
            io.BytesIO(data), record_types=fastwarc.warc.response
        )
    }
    assert {url: text for url, (_, text) in found.items()} == expected


EDITS = st.one_of(
    st.tuples(st.integers(0, 2000), st.integers(0, 40), st.binary(max_size=8)),
    st.tuples(
        st.integers(0, 2000),
        st.just(0),
        st.sampled_from(
            [
                b"\r\n",
                b"\r\n\r\n",
                b"WARC/1.0\r\n",
                b"Content-Length: 99999999\r\n",
                members(b"x"),
                b"\x1f\x8b\x08",
            ]
        ),
    ),
)


@pytest.mark.slow
@settings(max_examples=400)
@given(st.lists(EDITS, max_size=6), st.booleans(), st.binary(max_size=200))
def test_any_bytes_give_pages_or_rejected_rows(
    tmp_path: Path, edits, compressed: bool, body: bytes
) -> None:
    records = [
        info(),
        ONE,
        page(body),
        page(gzip.compress(b"<p>"), header=HTML + b"Content-Encoding: gzip\r\n"),
        TWO,
    ]
    data = bytearray(members(*records) if compressed else b"".join(records))
    for place, size, new in edits:
        data[place : place + size] = new
    found, rejected = read_bytes(tmp_path, bytes(data), "a.warc.gz" if compressed else "a.warc")
    rows = [row for row, _ in found.values()] + [one.row for one in rejected]
    assert len(set(rows)) == len(rows)
    assert all(one.byte is not None and 0 <= one.byte <= len(data) for one in rejected)
    if not edits:
        assert {ALL[0], ALL[1]} <= set(found)


@settings(max_examples=200)
@given(st.binary(max_size=300), st.sampled_from(["a.warc", "a.warc.gz", "a.warc.zst"]))
def test_random_bytes_give_no_page(tmp_path: Path, data: bytes, name: str) -> None:
    found, rejected = read_bytes(tmp_path, data, name)
    assert not found
    assert len(rejected) <= 1 or name == "a.warc"


def test_records_about_the_file_are_kept_though_all_pages_are_too_long(tmp_path: Path) -> None:
    about = record("warcinfo", b"software: a crawler\r\n")
    path = tmp_path / "a.warc"
    path.write_bytes(about + page(b"<p>" + b"word " * 500))
    neardup.dedup(
        path, output=tmp_path / "out", max_document_bytes=100, max_unreadable=1, on_error="skip"
    )
    assert (tmp_path / "out" / "kept" / "a.warc").read_bytes() == about
