"""The jobs on web pages as neardup does them: a pair, the elements of a page, and the parts of a
fingerprint.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
from shared import Done, clock, main, read_pairs, read_rows

import neardup
from neardup.documents.batch import BLOCK_BYTES, Columns
from neardup.documents.pages import page_documents
from neardup.features import page_structure
from neardup.fingerprints.simhash_documents import describe, summarise_described
from neardup.formats import warc
from neardup.formats.warc_bytes import GzipBytes
from neardup.formats.warc_records import Record, read_records
from neardup.kernels import html_tree
from neardup.settings.methods import METHODS

_REPEATS = 3


def pairs(source: str, options: dict[str, Any]) -> Done:
    """Compare pairs of pages, one after the other."""
    given = read_pairs(source)
    method = neardup.method("structure")
    times = []
    neardup.compare("<p>a", "<p>b", method=method)
    for _ in range(_REPEATS):
        found, took = clock(
            lambda: [neardup.compare(*pair, method=method).similarity for pair in given]
        )
        times.append(took)
    return Done(times, {"similarities": np.array(found)}, {})


def parse(source: str, options: dict[str, Any]) -> Done:
    """Find the elements of pages, one by one."""
    pages = [pa.array([one], pa.large_string()) for one in read_rows(source, "html")]
    times = []
    _elements(pages[0])
    for _ in range(_REPEATS):
        found, took = clock(lambda: [int(_elements(page).offsets[-1]) for page in pages])
        times.append(took)
    return Done(times, {"elements": np.array(found)}, {})


def _elements(page: pa.Array) -> Any:
    return html_tree.elements_of(page_structure.read_tags(page))


def parts(source: str, options: dict[str, Any]) -> Done:
    """Fingerprint a crawl on one thread, part by part; say the CPU seconds of each."""
    _by_parts(source)
    found, took = clock(lambda: _by_parts(source))
    return Done([took], {}, found)


def _by_parts(source: str) -> dict[str, float]:
    seconds: dict[str, float] = defaultdict(float)

    def timed(name: str, work: Callable[[], Any]) -> Any:
        result, (_, cpu) = clock(work)
        seconds[name] += cpu
        return result

    with open(source, "rb") as stream:
        records = read_records(GzipBytes(stream, keep=False), warc._is_page)
        while batch := timed("records", lambda: _take(records)):
            pages = timed("pages", lambda batch=batch: [warc._page(record) for record in batch])
            rows = np.arange(len(pages))
            made = timed("arrow", lambda pages=pages, rows=rows: _column(pages, rows))
            tags = timed("tags", lambda made=made: page_structure.read_tags(made))
            timed("tree", lambda tags=tags: html_tree.elements_of(tags))
            for name, word in (("shingles", "tags"), ("decay", "decay"), ("paths", "paths")):
                method = METHODS[word]
                timed(
                    name,
                    lambda made=made, method=method: summarise_described(
                        describe(made, method), method
                    ),
                )
    return dict(seconds)


def _take(records: Iterator[Record]) -> list[Record]:
    """Return the responses of one batch."""
    taken: list[Record] = []
    num_bytes = 0
    for record in records:
        if record.block is not None and warc._is_response(record.fields):
            taken.append(record)
            num_bytes += len(record.block)
            if num_bytes >= BLOCK_BYTES:
                break
    return taken


def _column(pages: list[Any], rows: Any) -> pa.Array:
    columns = Columns("html")
    return page_documents(pages, rows, columns, "crawl", "warc", reject=print, payload=None).text


if __name__ == "__main__":
    main(pairs=pairs, parse=parse, parts=parts)
