"""Lock a file for one process, until it closes the file or ends."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path


def lock_file(path: Path) -> int:
    """Lock a file, write the process id to it, and return its descriptor; closing it unlocks it.

    Raises
    ------
    BlockingIOError
        If the lock is taken; `strerror` is the id of the process that has it.
    ImportError
        If the system has no flock, such as Windows.
    """
    import fcntl

    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The owner may have deleted the file since it was opened, and may do so at any moment.
        is_same = False
        with suppress(FileNotFoundError):
            is_same = os.path.samestat(os.fstat(file), path.stat())
        if not is_same:
            raise BlockingIOError
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
    except BlockingIOError as error:
        process_id = os.pread(file, 32, 0).decode("ascii", "replace").strip() or "unknown"
        os.close(file)
        raise BlockingIOError(errno.EWOULDBLOCK, process_id) from error
    except BaseException:
        os.close(file)
        raise
    return file
