"""The lock of the only writer of an index."""

from __future__ import annotations

import os
from pathlib import Path

from neardup.errors import StoreError
from neardup.locks import lock_file

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
            self._file = lock_file(folder / NAME)
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

    def release(self) -> None:
        """Let another writer open the index."""
        os.close(self._file)
