"""Read and write small files: atomic writes; UTF-8, JSON and TOML; errors with advice.

All modules write and read small files by these functions: encodings do not depend on the locale,
and a file is complete or absent.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from neardup.errors import NeardupError, OutputError

AnyPath: TypeAlias = str | os.PathLike[str]
JsonObject: TypeAlias = dict[str, Any]
Output: TypeAlias = Path | str | None
"""The folder of an output, or its address; None if nothing is written."""
# The password in scheme://user:password@host; group 1 is the part before the colon.
_PASSWORD = re.compile(r"^([A-Za-z][A-Za-z0-9+.\-]*://[^/?#:@]*):[^/?#]*@")
# libpq also accepts the password as an option of the query.
_PASSWORD_OPTION = re.compile(
    r"([?&](?:[^=&#]*(?:password|secret|signature|token)[^=&#]*|sig)=)[^&#]*", re.IGNORECASE
)
# Characters of a name that its temporary name repeats, at most 160 bytes: file systems allow 255
# bytes, which include the random digits and the ending.
_PARTIAL_PREFIX = 40

# The advice on an OSError depends on its cause, not on the operation that failed.
_NO_SPACE = "Free some space, or use another disk."
_NO_PERMISSION = "Use a folder with write permission."
_READ_ONLY = "Use a folder on a disk that can be written to."
_NO_FOLDER = "Create the folder, or use another one."
_IN_THE_WAY = "Use another name, or move away the file or folder in its place."
_BAD_NAME = "Use a name that is shorter, or has simpler characters."
_TOO_MANY_FILES = "Raise the limit of open files (ulimit -n), or use fewer threads."
_TOO_LARGE = "Use a file system with larger files, or raise the limit of their size (ulimit -f)."
_DISK = "Check the disk and the connection to it, then run again."
_ADVICE = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EACCES: _NO_PERMISSION,
    errno.EPERM: _NO_PERMISSION,
    errno.EROFS: _READ_ONLY,
    errno.ENOENT: _NO_FOLDER,
    errno.EEXIST: _IN_THE_WAY,
    errno.ENOTEMPTY: _IN_THE_WAY,
    errno.EISDIR: _IN_THE_WAY,
    errno.ENOTDIR: _IN_THE_WAY,
    errno.EBUSY: _IN_THE_WAY,
    errno.ENAMETOOLONG: _BAD_NAME,
    errno.EINVAL: _BAD_NAME,
    errno.EILSEQ: _BAD_NAME,
    errno.EMFILE: _TOO_MANY_FILES,
    errno.ENFILE: _TOO_MANY_FILES,
    errno.EFBIG: _TOO_LARGE,
}
_UNWRITABLE_VALUE = "Leave the values out, or use another format."


def public_address(address: str) -> str:
    """Return an address without passwords, for messages and reports; a path is unchanged.

    Examples
    --------
    >>> public_address("sftp://ada:secret@host/in.csv?password=secret")
    'sftp://ada@host/in.csv?password=...'
    """
    if "://" not in address:
        return address
    return _PASSWORD_OPTION.sub(r"\1...", _PASSWORD.sub(r"\1@", address))


def reason_of(error: Exception) -> str:
    """Return the reason of an error, without its number and without a full stop."""
    reason = str(getattr(error, "strerror", None) or error)
    # Arrow puts the file, the operation and the number into the reason: only the cause is shown.
    is_from_arrow = "[errno" in reason
    if isinstance(error, OSError) and error.errno is not None and is_from_arrow:
        reason = os.strerror(error.errno)
    return reason.rstrip(".")


def advice_on(error: Exception) -> str:
    """Return the next step after an error in writing a file, by its cause.

    error : an OSError, or an error of a value that cannot be written.
    """
    if not isinstance(error, OSError):
        return _UNWRITABLE_VALUE
    return _DISK if error.errno is None else _ADVICE.get(error.errno, _DISK)


class AtomicFile(AbstractContextManager[Path]):
    """A file that is written beside its path, then renamed to it.

    As a context manager it gives the path to write to; the file is renamed if the block succeeds,
    or removed if it fails. Two writers of one path write to different files, so that each publishes
    its own content.

    Raises
    ------
    OutputError
        Instead of an OSError in the block or while renaming.
    """

    def __init__(self, path: AnyPath) -> None:
        # Strings: for each of many small files, pathlib would take longer than the file system.
        self.path = os.fspath(path)
        folder, name = os.path.split(self.path)
        unique = secrets.token_hex(8)
        self.partial = os.path.join(folder, f".{name[:_PARTIAL_PREFIX]}.{unique}.partial")

    def __enter__(self) -> Path:
        return Path(self.partial)

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        try:
            # An OSError of the block is raised again here, which turns it into an OutputError.
            with writing_to(self.path):
                if error is None:
                    self.commit()
                elif isinstance(error, OSError):
                    raise error
        finally:
            with suppress(OSError):  # the first error counts; after a commit no file is left
                self.discard()

    def commit(self) -> None:
        """Rename the file to its path, replacing a file of that name. Raises OSError."""
        os.replace(self.partial, self.path)

    def discard(self) -> None:
        """Remove the file, if it is not renamed yet."""
        with suppress(FileNotFoundError):
            os.unlink(self.partial)

    def cannot_write(self, error: Exception) -> OutputError:
        """Return the error for this file if it cannot be written."""
        return cannot_write(self.path, error)


@contextmanager
def writing_to(path: AnyPath) -> Iterator[None]:
    """Raise OutputError, which names a file, instead of an OSError in the block."""
    try:
        yield
    except NeardupError:
        raise
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: AnyPath, error: Exception) -> OutputError:
    """Return the error for a file that cannot be written."""
    return OutputError(f"Nothing was written to {path}: {reason_of(error)}. {advice_on(error)}")


def identity_of(path: AnyPath | int) -> tuple[int, int] | None:
    """Return the device and the number of a file or folder, or of an open file, which differ once
    it is replaced; None if there is none.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # ValueError: a name that no file can have
        return None
    return status.st_dev, status.st_ino


def write_bytes(path: Path, data: bytes) -> None:
    """Write a small file in one step: after an error, the old file is unchanged. Raises OSError."""
    file = AtomicFile(path)
    try:
        Path(file.partial).write_bytes(data)
        file.commit()
    finally:
        with suppress(OSError):
            file.discard()


def write_text(path: Path, text: str) -> None:
    """Write a small file as UTF-8 in one step; a name in it that is not UTF-8 is escaped. Raises
    OSError.
    """
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_json(path: Path, value: Any) -> None:
    """Write a value as JSON, in ASCII, in one step. Raises OSError."""
    write_bytes(path, json.dumps(value).encode("ascii"))


class _Readable(Protocol):
    """A path, or a file of a package."""

    def read_bytes(self) -> bytes: ...


def read_text(path: _Readable) -> str:
    """Read a small file as UTF-8 in any locale; a byte order mark is left out.

    Raises
    ------
    OSError, UnicodeDecodeError
        If it cannot be read, or is not UTF-8.
    """
    return path.read_bytes().decode("utf-8-sig")


def read_json(path: _Readable) -> Any:
    """Read a value of JSON in UTF-8. Raises OSError; ValueError if it is not JSON."""
    try:
        return json.loads(read_text(path))
    except RecursionError as error:
        raise ValueError("it is nested too deeply to be read") from error
    except ValueError as error:
        raise ValueError(f"it is not JSON in UTF-8: {error}") from error


def parse_toml(text: str) -> dict[str, Any]:
    """Return the values of TOML. Raises ValueError if it is not TOML."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, which end at a line feed, or a carriage return and a line feed.

    Unlike `str.splitlines`, this splits no line at U+0085, U+2028, U+2029 or a form feed, which
    names and ids may contain.
    """
    lines = text.split("\n")
    if not lines[-1]:
        del lines[-1]
    return [line.removesuffix("\r") for line in lines]


def json_lines(data: bytes) -> Iterator[Any]:
    """Yield the values of lines of JSON in UTF-8; blank lines are left out. Raises ValueError if a
    line is not JSON.
    """
    for line in data.split(b"\n"):
        if line.strip():
            yield json.loads(line.decode("utf-8"))
