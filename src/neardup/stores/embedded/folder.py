"""The folder of an index: how it appears, who may write it, its errors, its copies, its reserve of
disk.
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
_BYTES, _ROWS_A_BYTE = (
    1 << 20,
    2,
)  # of SQLite's index of its log; of bits of rows in the log, the database and a file
_MAX_COPIED_BYTES = (
    64 << 20
)  # the log moves to the database, this to files, a file to a smaller one: of 32 MiB each
_FULL = (errno.ENOSPC, errno.EDQUOT)
T = TypeVar("T")
_ATTEMPTS = 100  # to copy files that are replaced meanwhile


def check_new(path: Path) -> None:
    """Raise StoreError if there is something at a path, except for an empty folder."""
    with store_errors(path):
        is_taken = path.is_symlink() or (
            path.exists() and not (path.is_dir() and not any(path.iterdir()))
        )
    if is_taken:
        raise StoreError(
            f"There is something at {path} already. Name a folder that is not there yet, or "
            "remove this one first."
        )


def publish_folder(partial: Path, path: Path) -> None:
    """Rename a complete folder to its path. Raises OSError."""
    sync(partial)
    partial.rename(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file, or the names of files in a folder, are on disk. Raises OSError."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def remove_files(folder: Path, names: Iterable[str]) -> None:
    """Remove files; those that cannot be removed stay until the index is next opened for
    writing.
    """
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
    except StoreError:
        raise
    except (OSError, sqlite3.Error) as error:
        # What SQLite raises for a damaged file, or sqlite3 for a damaged text.
        if type(error) is sqlite3.DatabaseError or str(error).startswith(
            "Could not decode to UTF-8"
        ):
            raise damaged(path / NAME, str(error)) from error
        raise StoreError(
            f"The index {path} cannot be read or written: "
            f"{getattr(error, 'strerror', None) or error}. What was acknowledged is stored, and "
            "nothing else. Check the permissions, the limits and the space on the disk; if it is "
            "full, `neardup index expire` and `compact` free space. Then repeat the call."
        ) from error


def copy_index(folder: Path, target: Path) -> None:
    """Write a copy of an index to a new folder, which appears when it is complete.

    Files that never change are linked where the file system allows it, else copied.

    Raises
    ------
    StoreError
        If there is something at the target, or files are missing.
    OSError
        If it cannot be written.
    """
    check_new(target)
    partial = target.with_name(f".{target.name}.partial-{os.getpid()}")
    try:
        for _ in range(_ATTEMPTS):
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            try:
                _copy(folder, partial)
                break
            except FileNotFoundError as error:  # the writer has replaced a file since
                missing = error
        else:
            raise damaged(Path(str(missing.filename)), "it is missing") from missing
        publish_folder(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _copy(folder: Path, partial: Path) -> None:
    with closing(Database(folder, True)) as source:
        source.backup(partial / NAME)
    with closing(Database(partial, True)) as copied:
        infos = copied.files()
    for path in partial.glob(f"{NAME}-*"):
        path.unlink()
    for info in infos:
        _link(folder / info.name, partial / info.name)
    sync(partial / NAME)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
        sync(target)


def _may_be_full(error: Exception) -> bool:
    """Return whether an error may come from a full disk: SQLite also reports one as a file that it
    cannot write.
    """
    if isinstance(error, OSError):
        return error.errno in _FULL
    return any(words in str(error) for words in ("is full", "disk I/O error", "unable to open"))


class Reserve:
    """The space that an index needs to become smaller.

    Parameters
    ----------
    folder : of the index.
    """

    def __init__(self, folder: Path) -> None:
        self._path, self._size = folder / RESERVE, 0

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
        """Return the result of `work`; while the disk is full, of another attempt, with more of the
        space each time.

        What is not needed stays reserved: other programs may fill the disk before `keep` is called
        again.
        """
        released = _BYTES
        while True:
            try:
                return work()
            except (OSError, sqlite3.OperationalError) as error:
                if not _may_be_full(error) or not self._release(released):
                    raise
            released *= 4
            # an error may keep files mapped that were removed, and with them their space
            gc.collect()

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
