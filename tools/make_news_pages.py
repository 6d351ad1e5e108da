"""Make benchmarks/work/news.jsonl.zst: the test pages of a library that reads newspapers.

    git clone --depth 1 https://github.com/flairNLP/fundus
    python tools/make_news_pages.py fundus

Each is an article as its publisher sent it; those of one publisher are of different years. `site`
is the publisher.
`tools/measure_pages.py` measures them under the name `news`.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import pyarrow as pa

TARGET = Path(__file__).resolve().parent.parent / "benchmarks" / "work" / "news.jsonl.zst"
PAGES = "tests/resources/parser/test_data"


def main(clone: Path) -> None:
    """Write the pages of a clone, in the order of their names."""
    lines = []
    for file in sorted((clone / PAGES).glob("*/*.html.gz")):
        # The names are COUNTRY/PUBLISHER_YEAR_MONTH_DAY.html.gz.
        publisher = file.name.split("_")[0]
        record = {
            "html": gzip.decompress(file.read_bytes()).decode("utf-8", "replace"),
            "site": f"{file.parent.name}/{publisher}",
        }
        lines.append(json.dumps(record))
    if not lines:
        sys.exit(f"There are no pages in {clone / PAGES}: is it a clone of flairNLP/fundus?")
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_bytes(pa.Codec("zstd").compress("\n".join(lines).encode(), asbytes=True))
    print(f"{len(lines)} pages in {TARGET}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Give the folder of the clone: python tools/make_news_pages.py fundus")
    main(Path(sys.argv[1]))
