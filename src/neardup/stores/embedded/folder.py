"""Folders whose entries are on disk."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


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
