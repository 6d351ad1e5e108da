"""Make the sample collections in examples/data from the labelled sets they are drawn from.

    python tools/make_examples.py ../shared/data

Whole groups of related texts are drawn, by a hash of their name, so that a sample has as many
near-duplicates as the set it comes from, and the same sets give the same sample. Needs pyarrow
only.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import sys
import uuid
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

TARGET = Path(__file__).resolve().parent.parent / "examples" / "data"
# terms-old.jsonl.zst holds versions before this day, terms-new.jsonl.zst those since
OLD_BEFORE = "2022-07-01"
Record = dict[str, Any]


def read_records(path: Path) -> list[Record]:
    """Return the records of a file of JSON lines, which may be .gz or .zst."""
    with pa.input_stream(str(path), compression="detect") as stream:
        return [json.loads(line) for line in stream.read().splitlines()]


def draw_groups(
    records: list[Record], max_bytes: int, wanted: Callable[[list[Record]], bool]
) -> list[Record]:
    """Return the records of whole groups, drawn by the hash of their name, up to so many bytes of
    text.

    A record without a group is one by itself. The records keep their order.
    """
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[str(record["cluster"] or record["id"])].append(record)
    drawn: set[str] = set()
    size = 0
    for name in sorted(groups, key=lambda name: hashlib.sha256(name.encode()).digest()):
        group_size = sum(len(record["text"].encode()) for record in groups[name])
        if wanted(groups[name]) and size + group_size <= max_bytes:
            drawn.add(name)
            size += group_size
    return [record for record in records if str(record["cluster"] or record["id"]) in drawn]


def shorter_than(limit: int) -> Callable[[list[Record]], bool]:
    """Return a test of a group: no text reaches so many characters."""
    return lambda group: all(len(record["text"]) < limit for record in group)


def write_parquet(records: list[Record], columns: tuple[str, ...], path: Path) -> None:
    """Write some columns as Parquet."""
    table = pa.table(
        {name: pa.array([record[name] for record in records], pa.string()) for name in columns}
    )
    pq.write_table(table, path, compression="zstd", compression_level=19)


def write_jsonl(records: list[Record], columns: tuple[str, ...], path: Path) -> None:
    """Write some columns as JSON lines, compressed by zstd."""
    lines = [
        json.dumps({name: record[name] for name in columns}, ensure_ascii=False) + "\n"
        for record in records
    ]
    codec = pa.Codec("zstd", compression_level=19)
    path.write_bytes(codec.compress("".join(lines).encode(), asbytes=True))


PAGES = {  # of html_sites/docs: by package and the end of the id
    "sqlite3-doc": (
        "c3ref/stmt_busy.html",
        "c3ref/wal_checkpoint.html",
        "c3ref/log.html",
        "enable_load_extension.html",
    ),
    "libboost1.74-doc": (
        "years_duration.html",
        "gradian.html",
        "absolute.html",
        "unary_minus.html",
    ),
    "postgresql-doc-15": (
        "sql-alterlargeobject.html",
        "sql-load.html",
        "sql-dropextension.html",
        "dml-insert.html",
    ),
}
MIRROR = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title} - a mirror</title></head>
<body class="mirror">
<header id="top"><nav><ul class="menu"><li><a href="/">Home</a></li><li><a href="/list">All</a></li></ul></nav></header>
<main><article class="entry"><h1>{title}</h1>
{body}
</article></main>
<footer><small>Copied for the example.</small></footer>
</body></html>
"""  # noqa: E501


def write_pages(records: list[Record]) -> None:
    """Write three pages as files, and all of them as the responses of a WARC file, a gzip member
    each.
    """
    pages = {}
    for package, ends in PAGES.items():
        for end in ends:
            page = next(
                one for one in records if one["site"] == package and one["id"].endswith("/" + end)
            )
            pages[f"{package.split('-')[0]}/{end.rsplit('/', 1)[-1]}"] = page["html"]
    original = pages["sqlite3/stmt_busy.html"]
    title = re.search("<title>(.*?)</title>", original)
    assert title is not None
    body = original[original.index("</div>") + len("</div>") :].strip()
    pages["mirror/stmt_busy.html"] = MIRROR.format(title=title[1], body=body)
    (TARGET / "pages").mkdir(exist_ok=True)
    for name, file in (
        ("sqlite3/stmt_busy.html", "stmt_busy.html"),
        ("sqlite3/log.html", "log.html"),
        ("mirror/stmt_busy.html", "stmt_busy-mirror.html"),
    ):
        (TARGET / "pages" / file).write_text(pages[name], encoding="utf-8")
    with open(TARGET / "crawl.warc.gz", "wb") as archive:
        for number, (name, page) in enumerate(pages.items()):
            archive.write(
                gzip.compress(_response(number, f"https://docs.example.org/{name}", page), mtime=0)
            )


def _response(number: int, url: str, page: str) -> bytes:
    """Return a WARC record of a page."""
    body = page.encode()
    block = (
        f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n".encode()  # noqa: E501
        + body
    )
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\nWARC-Date: "
        f"2026-11-01T00:00:{number:02}Z\r\n"
        f"WARC-Record-ID: <urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, url)}>\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return head.encode() + block + b"\r\n\r\n"


def make(sets: Path) -> None:
    """Write all sample collections."""
    write_pages(read_records(sets / "html_sites" / "docs.jsonl.zst"))
    licenses = read_records(sets / "en_licenses" / "data.jsonl.gz")
    for record in licenses:
        record["license"] = record["cluster"]
    drawn = draw_groups(licenses, 1_800_000, shorter_than(20_000))
    write_parquet(drawn, ("id", "text", "license", "kind"), TARGET / "licenses.parquet")

    laws = read_records(sets / "zh_laws" / "data.jsonl.zst")
    several = {
        law["cluster"]
        for law in laws
        if sum(law["cluster"] == other["cluster"] for other in laws) > 1
    }
    drawn = draw_groups(
        [law for law in laws if law["cluster"] in several], 900_000, shorter_than(9_000)
    )
    single = draw_groups(
        [law for law in laws if law["cluster"] not in several], 400_000, shorter_than(9_000)
    )
    for record in drawn + single:
        record["title"] = record["cluster"]
    write_parquet(drawn + single, ("id", "text", "title", "date"), TARGET / "laws.parquet")

    terms = read_records(sets / "en_terms" / "data.jsonl.zst")
    for record in terms:
        record["document"] = record["cluster"]
    columns = ("id", "text", "document", "date")
    drawn = draw_groups(
        terms, 1_300_000, lambda group: len(group) > 2 and shorter_than(14_000)(group)
    )
    write_jsonl(
        [term for term in drawn if term["date"] < OLD_BEFORE],
        columns,
        TARGET / "terms-old.jsonl.zst",
    )
    write_jsonl(
        [term for term in drawn if term["date"] >= OLD_BEFORE],
        columns,
        TARGET / "terms-new.jsonl.zst",
    )
    for term in terms:
        if term["cluster"] == "Firefox / Terms of Service" and term["date"] in (
            "2025-02-28",
            "2025-03-01",
        ):
            (TARGET / f"firefox-terms-{term['date']}.txt").write_text(
                term["text"].rstrip() + "\n", encoding="utf-8"
            )

    poems = read_records(sets / "zh_poetry" / "data.jsonl.zst")
    pairs = [poem for poem in poems if poem["cluster"] is not None]
    drawn = draw_groups(pairs, 180_000, shorter_than(400))
    drawn += draw_groups(
        [poem for poem in poems if poem["cluster"] is None], 100_000, shorter_than(400)
    )
    write_jsonl(drawn, ("id", "text", "author", "title", "edition"), TARGET / "poems.jsonl.zst")


if __name__ == "__main__":
    TARGET.mkdir(parents=True, exist_ok=True)
    make(Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data"))
    for file in sorted(one for one in TARGET.rglob("*") if one.is_file()):
        print(f"{file.stat().st_size:>9,}  {file.name}")
