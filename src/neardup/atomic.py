"""Files that appear under their name only when they are complete."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path

from neardup.errors import OutputError


class AtomicFile(AbstractContextManager[Path]):
    """A file that is written beside its path, then renamed to it.

    As a context manager it gives the path to write to; the file is renamed if the block succeeds, else removed.

    Raises
    ------
    OutputError
        Instead of an OSError in the block or while renaming.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.partial = self.path.with_name(f".{self.path.name}.partial")

    def __enter__(self) -> Path:
        return self.partial

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            if error is None:
                self.commit()
            elif isinstance(error, OSError):
                raise error
        except OSError as failure:
            raise self.cannot_write(failure) from failure
        finally:
            self.discard()

    def commit(self) -> None:
        """Rename the file to its path, replacing what is there. Raises OSError."""
        os.replace(self.partial, self.path)

    def discard(self) -> None:
        """Remove the file, if it is not renamed yet."""
        self.partial.unlink(missing_ok=True)

    def cannot_write(self, error: Exception) -> OutputError:
        """Return the error to raise where the file cannot be written."""
        reason = getattr(error, "strerror", None) or error
        return OutputError(
            f"Nothing was written to {self.path}: {reason}. Name a file in a folder you may write to, on a disk with "
            "enough free space."
        )
