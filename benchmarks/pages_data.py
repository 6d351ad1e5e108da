"""A crawl of web pages that is made from labelled ones: real markup, other words, the same each
time it is made.

A page of the sets is fetched again and again: each time with other words in the same template, and
every fourth time as the time before, but for a time of day. So it is known which pages share a
template and which an article.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, NamedTuple

import pyarrow as pa

NUM_PAGES = 4000
LEAST_BYTES = 38_000  # of a page that is taken: then the average is 100 KB
AGAIN = 4  # every so manieth fetch finds the words of the one before
_SETS = ("recipes", "forms", "docs", "zh_news")
_TEXT = re.compile(r'>([^<>="]+)<')  # without what may stand in a tag with ">" in an attribute
_WORD = re.compile(r"[^\W\d_]{4,}")
_SEED = 5


class Crawl(NamedTuple):
    """A WARC file, and for each of its pages in order: which page it is made of, of which site,
    with which words.
    """

    warc: Path
    num_bytes: int  # of all pages, decoded
    sources: list[int]
    sites: list[str]
    words: list[int]

    @property
    def num_sources(self) -> int:
        """How many pages it is made of, fetched in turn."""
        return max(self.sources) + 1

    @property
    def average_kb(self) -> float:
        """Kilobytes of a page."""
        return self.num_bytes / len(self.sources) / 1000


class Source(NamedTuple):
    """A labelled page."""

    html: str
    site: str


def build(data: Path, work: Path, num_pages: int = NUM_PAGES) -> Crawl:
    """Return the crawl, made unless it is there."""
    warc = work / f"crawl-{num_pages}.warc.gz"
    truth = work / f"crawl-{num_pages}.json"
    if not truth.exists():
        with open(warc, "wb") as file:
            told = _write(file, large_pages(data), num_pages)
        truth.write_text(json.dumps(told))
    return Crawl(warc, **json.loads(truth.read_text()))


def large_pages(data: Path) -> list[Source]:
    """Return the labelled pages of `LEAST_BYTES` or more, in an order in which sites are mixed."""
    pages = []
    for name in _SETS:
        for line in (
            pa.input_stream(str(data / f"{name}.jsonl.zst"), compression="zstd").read().splitlines()
        ):
            row = json.loads(line)
            if len(row["html"].encode()) >= LEAST_BYTES:
                pages.append(Source(row["html"], f"{name}/{row['site']}"))
    return sorted(pages, key=lambda page: hashlib.sha256(page.html.encode()).digest())


def _write(file: IO[bytes], pages: list[Source], num_pages: int) -> dict[str, object]:
    """Write the records of a crawl as Common Crawl does: a gzip member each, requests and metadata
    among them.
    """
    vocabulary = sorted({word for page in pages for word in _WORD.findall(page.html)})
    told: dict[str, list[object]] = {"sources": [], "sites": [], "words": []}
    num_bytes = 0
    file.write(_member("warcinfo", "", b"software: benchmark\r\n", "application/warc-fields"))
    for number in range(num_pages):
        source = number % len(pages)
        fetch = number // len(pages)
        page = pages[source]
        words = fetch - (fetch % AGAIN == AGAIN - 1)
        html = (
            _reworded(page.html, vocabulary, random.Random(f"{_SEED} {source} {words}"))
            if words
            else page.html
        )
        html += f"<!-- {fetch:02}:{source % 60:02} -->"
        charset = "gb18030" if page.site.startswith("zh_news") else "utf-8"
        num_bytes += len(html.encode())
        file.writelines(
            _records(f"http://{source}.example/{fetch}", html.encode(charset, "replace"), charset)
        )
        for name, value in (("sources", source), ("sites", page.site), ("words", words)):
            told[name].append(value)
    return {"num_bytes": num_bytes, **told}


def _reworded(html: str, vocabulary: list[str], draw: random.Random) -> str:
    """Return a page in which all words of four letters or more, in the text, are others."""
    size = len(vocabulary)
    return _TEXT.sub(
        lambda text: _WORD.sub(lambda _: vocabulary[int(draw.random() * size)], text[0]), html
    )


def _records(url: str, body: bytes, charset: str) -> Iterator[bytes]:
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset={charset}\r\nContent-Length: "
        f"{len(body)}\r\n\r\n"
    )
    yield _member(
        "request",
        url,
        b"GET / HTTP/1.1\r\nHost: example\r\n\r\n",
        "application/http; msgtype=request",
    )
    yield _member("response", url, head.encode() + body, "application/http; msgtype=response")
    yield _member("metadata", url, b"fetchTimeMs: 100\r\n", "application/warc-fields")


def _member(kind: str, url: str, block: bytes, content_type: str) -> bytes:
    """Return a record as a gzip member."""
    target = f"WARC-Target-URI: {url}\r\n" if url else ""
    header = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\n{target}WARC-Date: 2024-05-06T07:08:09Z\r\n"
        f"Content-Type: {content_type}\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(header.encode() + block + b"\r\n\r\n", 6, mtime=0)
