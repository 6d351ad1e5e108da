"""A file that keeps some of the disk, so that documents can be forgotten, and files compacted, when it is full."""

from __future__ import annotations

import errno
import gc
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from neardup.errors import StoreError

NAME = "reserve"
_BYTES, _ROWS_A_BYTE = 1 << 20, 2  # of SQLite's index of its log; of bits of rows in the log, the database and a file
_MAX_COPIED_BYTES = 64 << 20  # the log moves to the database, this to files, a file to a smaller one: of 32 MiB each
_FULL = (errno.ENOSPC, errno.EDQUOT)
T = TypeVar("T")


class Reserve:
    """The space that an index needs to become smaller.

    Parameters
    ----------
    folder : of the index.
    """

    def __init__(self, folder: Path) -> None:
        self._path, self._size = folder / NAME, 0

    def keep(self, num_rows: int, num_bytes: int) -> None:
        """Make the file large enough. Raises OSError if the disk is full.

        Parameters
        ----------
        num_rows, num_bytes : of the index.
        """
        needed = num_rows // _ROWS_A_BYTE + min(num_bytes, _MAX_COPIED_BYTES)
        wanted = (needed // _BYTES + 2) * _BYTES
        if wanted <= self._size:
            return
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
            try:
                # A step at a time: where there is not space for all of it, there is for some.
                for offset in range(os.fstat(file).st_size, wanted, _BYTES):
                    _allocate(file, offset, min(_BYTES, wanted - offset))
            finally:
                os.close(file)
        except OSError as error:
            if error.errno in _FULL:
                raise
        self._size = wanted

    def use(self, work: Callable[[], T]) -> T:
        """Return the result of `work`; while the disk is full, of another attempt, with more of the space each time.

        What is not needed stays reserved: other programs may fill the disk before `keep` is called again.
        """
        released = _BYTES
        while True:
            try:
                return work()
            except StoreError:
                raise
            except (OSError, sqlite3.OperationalError) as error:
                if (isinstance(error, OSError) and error.errno not in _FULL) or not self._release(released):
                    raise
            released *= 4
            gc.collect()  # an error may keep files mapped that were removed, and with them their space

    def _release(self, num_bytes: int) -> bool:
        """Make the file so much smaller; return whether there was any of it."""
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            return False
        os.truncate(self._path, max(0, size - num_bytes))
        self._size = 0
        return size > 0


def _allocate(file: int, offset: int, num_bytes: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, offset, num_bytes)
    else:
        os.pwrite(file, bytes(num_bytes), offset)
