"""Show how far a run is, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neardup.progress import Watcher


@contextmanager
def watching(quiet: bool) -> Iterator[Watcher | None]:
    """Yield a watcher that draws on stderr; None when nobody looks, so that nothing is loaded or written."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from neardup.cli.stage_bars import StageBars

    with StageBars() as bars:
        yield bars
