"""Measure how fast the text of HTML pages is found, and whether main content is a page's own text.

    python tools/measure_page_text.py ../shared/data

Of the lines of a site's pages, those of 20 characters or more that stand on one page only are its
own; those on several are the frame. Found: the share of a page's own text in what is taken. Pure:
the share of its own text in what is taken of both. Means over the pages with 300 characters or more
of their own, of sites with two pages or more. MB/s of HTML in processor time, on one thread, least
of three.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from make_examples import read_records
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from neardup.documents.page_text import texts_of_pages

SETS = ("recipes", "forms", "zh_news", "docs")
MIN_LINE = 20
MIN_OWN = 300


def by_resiliparse(pages: pa.Array, *, main: bool) -> list[str]:
    """Return what resiliparse makes of pages as they are."""
    return [
        extract_plain_text(
            HTMLTree.parse(page.as_py()),
            main_content=main,
            list_bullets=False,
            alt_texts=False,
            comments=False,
        )
        for page in pages
    ]


WAYS: dict[str, Callable[[pa.Array], list[str]]] = {
    "all text by resiliparse": lambda pages: by_resiliparse(pages, main=False),
    "all text": lambda pages: texts_of_pages(pages, main=False).to_pylist(),
    "main content by resiliparse": lambda pages: by_resiliparse(pages, main=True),
    "main content": lambda pages: texts_of_pages(pages, main=True).to_pylist(),
}


def squeeze(text: str) -> str:
    """Return a text without blanks, in which parsers differ."""
    return "".join(text.split())


def lines_of(sites: list[str], shown: list[str]) -> list[tuple[list[str], set[str]]]:
    """Return the own lines and those of the frame of each page, without blanks."""
    lines = [[squeeze(line) for line in text.split("\n")] for text in shown]
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for site, page in zip(sites, lines, strict=True):
        counts[site].update(set(page))
    return [
        (
            [line for line in page if counts[site][line] == 1 and len(line) >= MIN_LINE],
            {line for line in page if counts[site][line] > 1 and len(line) >= 4},
        )
        for site, page in zip(sites, lines, strict=True)
    ]


def score(text: str, own: list[str], frame: set[str]) -> tuple[float, float]:
    """Return how much of a page's own text is in what was taken, and how much of what was taken is
    its own.
    """
    taken = squeeze(text)
    right = sum(len(line) for line in own if line in taken)
    wrong = sum(len(line) for line in frame if line in taken)
    return right / sum(map(len, own)), right / max(1, right + wrong)


def measure(name: str, path: Path) -> None:
    """Print the rows of a set."""
    records = list(read_records(path))
    pages = pa.array([record["html"] for record in records])
    sites = [record["cluster"] for record in records]
    num_pages = Counter(sites)
    lines = lines_of(sites, WAYS["all text"](pages))
    wanted = [
        row
        for row, (own, _) in enumerate(lines)
        if num_pages[sites[row]] > 1 and sum(map(len, own)) >= MIN_OWN
    ]
    for way, find in WAYS.items():
        seconds = []
        for _ in range(3):
            begun = time.process_time()
            texts = find(pages)
            seconds.append(time.process_time() - begun)
        found, pure = np.mean([score(texts[row], *lines[row]) for row in wanted], axis=0)
        speed = pages.nbytes / 1e6 / min(seconds)
        print(
            f"{name:8} {way:28} {speed:5.0f} MB/s  found {found:.2f}  pure {pure:.2f}  pages "
            f"{len(wanted)}"
        )


if __name__ == "__main__":
    for name in SETS:
        measure(name, Path(sys.argv[1]) / "html_sites" / f"{name}.jsonl.zst")
