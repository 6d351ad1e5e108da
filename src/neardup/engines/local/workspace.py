"""Open the scratch files of a run, and say what became of its output if it fails."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from neardup.engines.local.scratch import Scratch
from neardup.errors import NeardupError, OutputError
from neardup.output.directory import OutputDirectory


@contextmanager
def workspace(
    folder: OutputDirectory | None, scratch_folder: str | os.PathLike[str] | None = None
) -> Iterator[Scratch]:
    """Open the scratch files of a run, in the output folder or a temporary one.

    scratch_folder : where the temporary one is. Default: that of the system.

    Raises
    ------
    OutputError
        If the folder cannot be written to; what is left then can be resumed.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="neardup-", dir=scratch_folder) as path, Scratch(Path(path)) as scratch:
            yield scratch
        return
    try:
        with Scratch(folder.scratch) as scratch:
            yield scratch
    except BaseException as error:
        folder.discard_result()
        if isinstance(error, NeardupError):
            if not folder.can_resume:
                folder.discard()
        elif isinstance(error, OSError):
            raise OutputError(_cannot_write(folder, error)) from error
        raise
    finally:
        folder.unlock()


def _cannot_write(folder: OutputDirectory, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"The disk is full: {folder.partial} could not be extended. Nothing was written to {folder.path}. Free "
            f"some space and run again with resume=True (--resume), or delete {folder.partial}."
        )
    return (
        f"{error.strerror or error}: {error.filename or folder.partial}. Nothing was written to {folder.path}. Run "
        "again with resume=True (--resume) once this is fixed."
    )
