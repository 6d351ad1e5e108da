"""How many processors there are to work with."""

from __future__ import annotations

import os


def count_processors() -> int:
    """Return how many processors this process may use, at least 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
