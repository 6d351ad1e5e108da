"""Kept pages are copied byte for byte."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path

import fastwarc.warc
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import neardup
from neardup.errors import IncompleteWarning
from neardup.output.kept import KeptWriter
from neardup.runs.columns import choose_columns
from neardup.runs.input_files import list_inputs
from reference.warc_files import http, info, members, page, record

NUM_PAGES = 10
BODIES = [
    f"<html lang=en><title>Page {i}, é</title><p>{'word ' * i}".encode() for i in range(NUM_PAGES)
]
URLS = [f"http://{i}.test/a,b" for i in range(NUM_PAGES)]
PAGES = [page(body, url) for body, url in zip(BODIES, URLS, strict=True)]
REQUEST = record(
    "request", b"GET / HTTP/1.1\r\n\r\n", content_type="application/http; msgtype=request"
)
BAD = page(b"<p>", "http://bad.test/", status="404 Not Found")


def keep(path: Path, out: Path, every: int) -> list[Path]:
    """Write every so-manieth page of the inputs in `path`, counted over them all; 0 keeps none."""
    paths = []
    number = 0
    for part in list_inputs([str(path)]):
        with KeptWriter(part, out) as writer:
            for batch in part.read(choose_columns([part]), lambda _: None, with_payload=True):
                numbers = np.arange(number, number := number + len(batch.rows))
                writer.write(
                    batch.payload,
                    np.zeros(len(numbers), bool) if every == 0 else numbers % every == 0,
                )
        paths.append(writer.path)
    return paths


def read_again(path: Path) -> list[tuple[fastwarc.warc.WarcRecordType, str | None, bytes]]:
    """Return type, URL and content of each record, as FastWARC reads them; their digests must be
    right.
    """
    found = []
    for one in fastwarc.warc.ArchiveIterator(io.BytesIO(path.read_bytes()), parse_http=False):
        assert one.verify_block_digest()
        found.append(
            (one.record_type, one.headers.get("WARC-Target-URI") or None, one.reader.read())
        )
    return found


@pytest.mark.parametrize("every", [0, 1, 2])
def test_kept_records_stand_byte_for_byte_in_an_archive_of_the_same_name(
    tmp_path: Path, every: int
) -> None:
    (tmp_path / "in.warc").write_bytes(
        info() + BAD + b"".join(REQUEST + one for one in PAGES[:5]) + info(b"2") + PAGES[5]
    )
    (path,) = keep(tmp_path / "in.warc", tmp_path / "kept", every)
    assert path == tmp_path / "kept/in.warc"
    kept = [one for i, one in enumerate(PAGES[:6]) if every and i % every == 0]
    split = sum(i % every == 0 for i in range(5)) if every else 0
    assert path.read_bytes() == info() + b"".join(kept[:split]) + info(b"2") + b"".join(
        kept[split:]
    )


@pytest.mark.parametrize("every", [0, 1, 2])
def test_kept_gzip_members_stay_as_they_were(tmp_path: Path, every: int) -> None:
    # Levels differ, so that compressing again would show.
    packed = [gzip.compress(one, 1 + i % 9, mtime=i) for i, one in enumerate(PAGES)]
    (tmp_path / "in.warc.gz").write_bytes(
        members(info(), BAD) + b"".join(members(REQUEST) + one for one in packed)
    )
    (path,) = keep(tmp_path / "in.warc.gz", tmp_path / "kept", every)
    assert path.name == "in.warc.gz"
    kept = [one for i, one in enumerate(packed) if every and i % every == 0]
    assert path.read_bytes() == members(info()) + b"".join(kept)


@pytest.mark.parametrize("cut", [None, 100, 1000])
def test_records_without_a_member_of_their_own_get_one(tmp_path: Path, cut: int | None) -> None:
    data = info() + b"".join(PAGES)
    step = cut or len(data)
    (tmp_path / "in.warc.gz").write_bytes(
        members(*(data[i : i + step] for i in range(0, len(data), step)))
    )
    (path,) = keep(tmp_path / "in.warc.gz", tmp_path / "kept", 3)
    assert path.read_bytes().count(gzip.compress(b"", mtime=0)[:4]) == 5
    assert gzip.decompress(path.read_bytes()) == info() + b"".join(PAGES[::3])


def test_other_compressions_are_of_the_whole_file(tmp_path: Path) -> None:
    with pa.CompressedOutputStream(
        pa.OSFile(str(tmp_path / "in.warc.zst"), "wb"), "zstd"
    ) as stream:
        stream.write(info() + b"".join(PAGES))
    (path,) = keep(tmp_path / "in.warc.zst", tmp_path / "kept", 3)
    with pa.CompressedInputStream(pa.OSFile(str(path)), "zstd") as stream:
        assert stream.read() == info() + b"".join(PAGES[::3])


@pytest.mark.parametrize("name", ["in.warc", "in.warc.gz"])
def test_what_was_kept_is_an_archive_that_others_read(tmp_path: Path, name: str) -> None:
    records = [info(), *PAGES]
    (tmp_path / name).write_bytes(members(*records) if name.endswith("gz") else b"".join(records))
    (path,) = keep(tmp_path / name, tmp_path / "kept", 2)
    expected = [
        (fastwarc.warc.response, url, http(body)) for url, body in zip(URLS, BODIES, strict=True)
    ][::2]
    assert read_again(path) == [(fastwarc.warc.warcinfo, None, b"software: a test\r\n"), *expected]
    (again,) = keep(path, tmp_path / "again", 1)
    assert again.read_bytes() == path.read_bytes()


def test_a_damaged_archive_keeps_what_could_be_read(tmp_path: Path) -> None:
    packed = [members(one) for one in PAGES]
    packed[3] = packed[3][:60] + b"damage" + packed[3][66:]
    (tmp_path / "in.warc.gz").write_bytes(b"".join(packed)[:-5])
    (path,) = keep(tmp_path / "in.warc.gz", tmp_path / "kept", 1)
    assert path.read_bytes() == b"".join(packed[:3] + packed[4:-1])


@pytest.mark.slow
def test_members_larger_than_a_piece_are_copied_too(tmp_path: Path) -> None:
    noise = (
        np.random.default_rng(1).integers(0, 256, 3 << 20, dtype=np.uint8).tobytes().hex().encode()
    )
    data = members(info(), *(page(b"<p>%d" % i + noise) for i in range(4)))
    (tmp_path / "in.warc.gz").write_bytes(data)
    (path,) = keep(tmp_path / "in.warc.gz", tmp_path / "kept", 1)
    assert path.read_bytes() == data


def test_html_files_are_kept_or_left_out_whole(tmp_path: Path) -> None:
    files = {
        f"in/{name}": body.decode().encode("utf-16")
        for name, body in zip("abcd", BODIES, strict=False)
    }
    for name, data in files.items():
        (tmp_path / "in").mkdir(exist_ok=True)
        (tmp_path / f"{name}.html").write_bytes(data)
    (tmp_path / "in/e.html").write_bytes(b"%PDF-")
    keep(tmp_path / "in", tmp_path / "kept", 2)
    assert {one.name: one.read_bytes() for one in (tmp_path / "kept").iterdir()} == {
        "a.html": files["in/a"],
        "c.html": files["in/c"],
    }


def test_a_compressed_html_file_stays_compressed(tmp_path: Path) -> None:
    (tmp_path / "in.html.gz").write_bytes(gzip.compress(BODIES[0]))
    (path,) = keep(tmp_path / "in.html.gz", tmp_path / "kept", 1)
    assert (path.name, gzip.decompress(path.read_bytes())) == ("in.html.gz", BODIES[0])


WORDS = [
    f"<html><title>T</title><p>{' '.join(f'word{i}x{j}' for j in range(100))}</p>".encode()
    for i in range(4)
]


def test_pages_whose_column_is_no_rank_are_rejected_and_not_kept(tmp_path: Path) -> None:
    titles = ["2024-01-02", "no date", "2023-01-02"]
    pages = [page(f"<title>{title}</title><p>{title * 50}".encode()) for title in titles]
    (tmp_path / "in.warc").write_bytes(b"".join(pages))
    result = neardup.dedup(
        tmp_path / "in.warc", keep="max:title", output=tmp_path / "out", on_error="skip"
    )
    assert (tmp_path / "out/kept/in.warc").read_bytes() == pages[0] + pages[2]
    rejected, _ = [
        json.loads(line) for line in (tmp_path / "out/rejected.jsonl").read_text().splitlines()
    ]
    assert (rejected["row"], result.kept["title"].to_pylist()) == (1, [titles[0], titles[2]])


def test_dedup_of_an_archive_end_to_end(tmp_path: Path) -> None:
    urls = ["http://a.test/", "http://b.test/", "http://c.test/", "http://d.test/"]
    bodies = [WORDS[0], WORDS[1], WORDS[0].replace(b"x99", b"x98"), WORDS[2]]
    pages = [page(body, url) for body, url in zip(bodies, urls, strict=True)]
    (tmp_path / "in.warc.gz").write_bytes(members(info(), pages[0], BAD, *pages[1:]))
    result = neardup.dedup(tmp_path / "in.warc.gz", output=tmp_path / "out")
    assert result.removed.select(["id", "row", "kept_id"]).to_pylist() == [
        {"id": "http://c.test/", "row": 4, "kept_id": "http://a.test/"}
    ]
    assert (tmp_path / "out/kept/in.warc.gz").read_bytes() == members(
        info(), pages[0], pages[1], pages[3]
    )
    (rejected,) = [
        json.loads(line) for line in (tmp_path / "out/rejected.jsonl").read_text().splitlines()
    ]
    assert (rejected["row"], rejected["byte"], rejected["reason"]) == (
        2,
        len(members(info(), pages[0])),
        "HTTP status 404",
    )
    table = neardup.dedup(tmp_path / "in.warc.gz").kept
    assert table["url"].to_pylist() == [urls[0], urls[1], urls[3]]
    assert table.column_names == ["url", "date", "charset", "title", "language", "html"]


def test_dedup_of_html_files_end_to_end(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for name, body in zip("abcd", [WORDS[0], WORDS[1], WORDS[0], WORDS[2]], strict=True):
        (tmp_path / f"in/{name}.htm").write_bytes(body)
    result = neardup.dedup(tmp_path / "in", output=tmp_path / "out")
    assert result.removed["source_file"].to_pylist() == [str(tmp_path / "in/c.htm")]
    assert sorted(one.name for one in (tmp_path / "out/kept").iterdir()) == [
        "a.htm",
        "b.htm",
        "d.htm",
    ]


def test_dedup_of_an_archive_without_a_page_gives_an_empty_table(tmp_path: Path) -> None:
    (tmp_path / "in.warc").write_bytes(info() + BAD)
    with pytest.warns(IncompleteWarning, match="no row of the file can be read: HTTP status 404"):
        result = neardup.dedup(tmp_path / "in.warc", output=tmp_path / "out")
    assert result.kept.num_rows == 0
    assert result.report["counts"]["rejected"] == 1
    assert (tmp_path / "out/kept/in.warc").read_bytes() == info()
