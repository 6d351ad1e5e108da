"""The folder of an index: creating, locking and copying it, its errors, and its reserve of disk
space.
"""

from __future__ import annotations

import errno
import gc
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from neardup.errors import StoreError
from neardup.locks import lock_file
from neardup.stores.damage import damaged
from neardup.stores.embedded.database import NAME, Database

LOCK = "writer.lock"
RESERVE = "reserve"
# The reserve has space for one step of forgetting or compacting.
_STEP = 1 << 20  # bytes that are allocated at once
_LOG_INDEX_BYTES = 1 << 20  # of index.db-shm, SQLite's index of its log
# The bits of forgotten rows are in the log, in the database and in a file at the same time: three
# bits a row, rounded up to four.
_ROWS_PER_BYTE = 2
# Rows move from the log to the database, from there to files, and from a file to a smaller one:
# 32 MiB each.
_MAX_COPIED_BYTES = 64 << 20
_FULL = (errno.ENOSPC, errno.EDQUOT)
_ATTEMPTS = 100  # to copy an index in use: a writer replaces files once in many changes
_T = TypeVar("_T")


def check_new(path: Path) -> None:
    """Raise StoreError if a path exists, except as an empty folder that is not the current one."""
    with store_errors(path):
        is_empty_folder = path.is_dir() and not any(path.iterdir())
        is_taken = path.is_symlink() or (path.exists() and not is_empty_folder)
    if is_taken:
        raise StoreError(
            f"There is something at {path} already. Name a folder that is not there yet, or remove "
            "this one first."
        )
    # An empty current folder: no other folder can replace it, and it has no name to extend.
    if not path.name:
        raise StoreError(
            f"An index cannot replace the current folder: got {path}. Name a folder that is not "
            "there yet."
        )


def publish_folder(partial: Path, path: Path) -> None:
    """Rename a complete folder to its path. Raises OSError."""
    # The names of all files are on disk before the rename, so a crash leaves either no index or a
    # complete one. The sync of the parent makes the rename itself durable.
    sync(partial)
    partial.rename(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Sync a file, or the list of files of a folder, to disk. Raises OSError."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove files. A file that cannot be removed stays until the next opening for writing."""
    for name in names:
        with suppress(OSError):
            (folder / name).unlink(missing_ok=True)


def lock_for_writing(folder: Path) -> int:
    """Lock a folder; return the file to close to release the lock, which ends with the process.

    Raises
    ------
    StoreError
        If another store has the lock; the message names the process.
    """
    try:
        return lock_file(folder / LOCK)
    except ImportError as error:
        raise StoreError(
            f"The index {folder} cannot be locked: this system has no flock. Use Linux or macOS, "
            "or a server: postgresql://... or redis://..."
        ) from error
    except BlockingIOError as error:
        raise StoreError(
            f"The index {folder} is open for writing already, in process {error.strerror}. An "
            "index in a folder has one writer: close it there, send documents to that process, or "
            "open this one for reading only."
        ) from error


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Raise StoreError instead of errors of files and of SQLite."""
    try:
        yield
    # StoreError is an OSError, too; its message must stay.
    except StoreError:
        raise
    except (OSError, sqlite3.Error) as error:
        # A damaged file raises the base class, and damaged text an error with this message.
        is_damaged_text = str(error).startswith("Could not decode to UTF-8")
        is_damaged = type(error) is sqlite3.DatabaseError or is_damaged_text
        if is_damaged:
            raise damaged(path / NAME, str(error)) from error
        raise StoreError(
            f"The index {path} cannot be read or written: "
            f"{getattr(error, 'strerror', None) or error}. What was acknowledged is stored, and "
            "nothing else. Check the permissions, the limits and the space on the disk; if it is "
            "full, `neardup index expire` and `compact` free space. Then repeat the call."
        ) from error


def copy_index(folder: Path, target: Path) -> None:
    """Write a copy of an index to a new folder, which appears when it is complete.

    Files that never change are linked if the file system allows it, otherwise copied.

    Raises
    ------
    StoreError
        If the target exists, or files are missing.
    OSError
        If it cannot be written.
    """
    check_new(target)
    # Beside the target, because a rename works within one file system only.
    partial = target.with_name(f".{target.name}.partial-{os.getpid()}")
    try:
        _copy_while_written(folder, partial)
        publish_folder(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _copy_while_written(folder: Path, partial: Path) -> None:
    """Copy an index, from the beginning again if its writer has deleted a file meanwhile.

    A file that is missing in every attempt is not replaced, but lost.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        try:
            _copy(folder, partial)
            return
        except FileNotFoundError as error:
            if attempt == _ATTEMPTS:
                raise damaged(Path(str(error.filename)), "it is missing") from error


def _copy(folder: Path, partial: Path) -> None:
    """Copy the database, then the files that the copy lists: they are of one state of the index."""
    # The database first: the writer may replace files meanwhile, and only the copy says which ones
    # belong to it.
    with closing(Database(folder, read_only=True)) as source:
        source.backup(partial / NAME)
    with closing(Database(partial, read_only=True)) as copied:
        infos = copied.files()
    for path in partial.glob(f"{NAME}-*"):  # the log of the copy, which is empty
        path.unlink()
    for info in infos:
        _link(folder / info.name, partial / info.name)
    sync(partial / NAME)


def _link(source: Path, target: Path) -> None:
    """Link a file, or copy it. Raises FileNotFoundError if it is missing."""
    try:
        os.link(source, target)
    # No reason to copy: the writer has deleted the file, and the caller begins again.
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
        sync(target)


class Reserve:
    """Disk space that an index reserves to become smaller when the disk is full.

    The space is a file of zeros. It is made shorter if a call finds the disk full, and long again
    by the next call of `keep`.

    Parameters
    ----------
    folder : the folder of the index.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / RESERVE
        self._size = 0

    def keep(self, num_rows: int, num_bytes: int) -> None:
        """Make the reserve large enough. Raises OSError if the disk is full.

        Parameters
        ----------
        num_rows, num_bytes : the size of the index.
        """
        needed = num_rows // _ROWS_PER_BYTE + min(num_bytes, _MAX_COPIED_BYTES)
        size = (needed // _STEP + 1) * _STEP + _LOG_INDEX_BYTES
        if size <= self._size:
            return
        try:
            self._grow(size)
        except OSError as error:  # an index works without a reserve until the disk is full
            if error.errno in _FULL:
                raise
        # Also where the file system cannot allocate, so that it is not tried with each change.
        self._size = size

    def use(self, work: Callable[[], _T]) -> _T:
        """Return the result of `work`, repeated with more free space while the disk is full.

        Space that is not needed stays reserved, because other programs may fill the disk before
        `keep` is called again.
        """
        num_bytes = _STEP
        while True:
            try:
                return work()
            except (OSError, sqlite3.OperationalError) as error:
                if not _may_be_full(error) or not self._release(num_bytes):
                    raise
            # Each repeat does the work again, so the steps grow.
            num_bytes *= 4
            # The traceback of the error may keep removed files mapped, and so their space in use.
            gc.collect()

    def _grow(self, size: int) -> None:
        """Allocate step by step: on a full disk, the steps that fit stay allocated."""
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            for offset in range(os.fstat(file).st_size, size, _STEP):
                _allocate(file, offset, min(_STEP, size - offset))
        finally:
            os.close(file)

    def _release(self, num_bytes: int) -> bool:
        """Make the reserve smaller; return False if it was empty."""
        try:
            size = self._path.stat().st_size
        except FileNotFoundError:
            return False
        os.truncate(self._path, max(0, size - num_bytes))
        self._size = 0  # unknown: the next call of `keep` looks at the file
        return size > 0


def _may_be_full(error: Exception) -> bool:
    """Return whether a full disk may have caused an error.

    SQLite reports a full disk as itself, or as a file that it cannot write or open. Locks and
    damage have other messages, so they do not use up the reserve.
    """
    if isinstance(error, OSError):
        return error.errno in _FULL
    return any(words in str(error) for words in ("is full", "disk I/O error", "unable to open"))


def _allocate(file: int, offset: int, num_bytes: int) -> None:
    """Allocate a range of a file on the disk; a range that is only skipped would need no space."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, offset, num_bytes)
    else:
        os.pwrite(file, bytes(num_bytes), offset)
