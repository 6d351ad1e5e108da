"""The errors of an index in a folder."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neardup.errors import StoreError
from neardup.stores.damage import damaged


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Raise StoreError instead of errors of files and of SQLite."""
    try:
        yield
    except StoreError:
        raise
    except (OSError, sqlite3.Error) as error:
        # What SQLite raises for a damaged file, or sqlite3 for a damaged text.
        if type(error) is sqlite3.DatabaseError or str(error).startswith("Could not decode to UTF-8"):
            raise damaged(path / "index.db", str(error)) from error
        raise StoreError(
            f"The index {path} cannot be read or written: {getattr(error, 'strerror', None) or error}. What was "
            "acknowledged is stored, and nothing else. Check the permissions, the limits and the space on the disk; "
            "if it is full, `neardup index expire` and `compact` free space. Then repeat the call."
        ) from error
