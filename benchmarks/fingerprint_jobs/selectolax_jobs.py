"""Pages as selectolax parses them, by Lexbor and the rules of HTML5."""

from __future__ import annotations

from typing import Any

import numpy as np
from selectolax.lexbor import LexborHTMLParser
from shared import Done, clock, main, read_rows


def parse(source: str, options: dict[str, Any]) -> Done:
    """Parse pages from their bytes, one by one."""
    pages = [page.encode() for page in read_rows(source, "html")]
    trees, took = clock(lambda: [LexborHTMLParser(page) for page in pages])
    return Done([took], {"elements": np.array([len(tree.css("*")) for tree in trees])}, {})


if __name__ == "__main__":
    main(parse=parse)
