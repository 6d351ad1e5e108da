"""The folder of an index: how it appears, who may write it, and its errors."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from neardup.errors import StoreError
from neardup.locks import lock_file
from neardup.stores.damage import damaged

LOCK = "writer.lock"


def check_new(path: Path) -> None:
    """Raise StoreError if there is something at a path, except for an empty folder."""
    if path.is_symlink() or (path.exists() and not (path.is_dir() and not any(path.iterdir()))):
        raise StoreError(
            f"There is something at {path} already. Name a folder that is not there yet, or remove this one first."
        )


def publish_folder(partial: Path, path: Path) -> None:
    """Rename a complete folder to its path. Raises OSError."""
    sync_folder(partial)
    partial.rename(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Wait until names of files in a folder are on disk. Raises OSError."""
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove files; those that cannot be removed stay until the index is next opened for writing."""
    for name in names:
        with suppress(OSError):
            (folder / name).unlink(missing_ok=True)


def lock_for_writing(folder: Path) -> int:
    """Lock a folder and return a file; the lock ends when this is closed, or with the process.

    Raises
    ------
    StoreError
        If another store has it; the message names the process.
    """
    try:
        return lock_file(folder / LOCK)
    except ImportError as error:
        raise StoreError(
            f"The index {folder} cannot be locked: this system has no flock. Use Linux or macOS, or a server: "
            "postgresql://... or redis://..."
        ) from error
    except BlockingIOError as error:
        raise StoreError(
            f"The index {folder} is open for writing already, in process {error.strerror}. An index in a folder "
            "has one writer: close it there, send documents to that process, or open this one for reading only."
        ) from error


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
