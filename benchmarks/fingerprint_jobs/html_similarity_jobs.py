"""Pairs of pages as html-similarity compares them."""

from __future__ import annotations

from typing import Any

import html_similarity
import numpy as np
from shared import Done, clock, main, read_pairs


def pairs(source: str, options: dict[str, Any]) -> Done:
    """Compare pairs of pages, one after the other."""
    given = read_pairs(source)
    compare = getattr(html_similarity, options["call"])
    found, took = clock(lambda: [compare(*pair) for pair in given])
    return Done([took], {"similarities": np.array(found)}, {})


if __name__ == "__main__":
    main(pairs=pairs)
