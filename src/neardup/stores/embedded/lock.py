"""The lock of the only writer of an index."""

from __future__ import annotations

import os
from pathlib import Path

from neardup.errors import StoreError

NAME = "writer.lock"


class WriterLock:
    """A lock on a folder that ends with the process at the latest.

    Parameters
    ----------
    folder : of the index.

    Raises
    ------
    StoreError
        If another store has it; the message names the process.
    """

    def __init__(self, folder: Path) -> None:
        try:
            import fcntl
        except ImportError as error:
            raise StoreError(
                f"The index {folder} cannot be locked: this system has no flock. Use Linux or macOS, or a server: "
                "postgresql://... or redis://..."
            ) from error
        self._file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            process = os.pread(self._file, 32, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._file)
            raise StoreError(
                f"The index {folder} is open for writing already, in process {process}. An index in a folder has one "
                "writer: close it there, send documents to that process, or open this one for reading only."
            ) from error
        os.ftruncate(self._file, 0)
        os.pwrite(self._file, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let another writer open the index."""
        os.close(self._file)
