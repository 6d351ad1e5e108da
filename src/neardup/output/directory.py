"""The output folder: written under a temporary name next to its path, and renamed when it is complete."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

from neardup.atomic import AtomicFile
from neardup.documents.sources import is_remote, local_path
from neardup.errors import OutputError
from neardup.locks import lock_file
from neardup.output.remote import RemoteFolder


class Places(NamedTuple):
    """The folders that a run writes to before its output: `partial`, with the result; `scratch`, for scratch files."""

    partial: Path
    scratch: Path


def places_of(output: str | os.PathLike[str], scratch: str | os.PathLike[str] | None = None) -> Places:
    """Return the temporary folders of an output: next to it, or for an address in `scratch`.

    scratch : a folder that several runs may share. Default: next to the output; for an address, that of the system.
    """
    name = name_of(output)
    remote = is_address(name)
    path = Path(urlsplit(name).path or "out") if remote else Path(local_path(name))
    digest = hashlib.blake2b(os.fsencode(name if remote else path.absolute()), digest_size=8).hexdigest()
    if remote:
        partial = Path(scratch or tempfile.gettempdir()) / f"neardup-{path.name}-{digest}.partial"
        return Places(partial, partial / "scratch")
    partial = path.with_name(path.name + ".partial")
    if scratch is None:
        return Places(partial, partial / "scratch")
    return Places(partial, Path(scratch) / f"{path.absolute().name}-{digest}.scratch")


def name_of(output: str | os.PathLike[str]) -> str:
    """Return the path or the address of an output. Raises OutputError if it is neither a str nor a path, or empty."""
    name = os.fspath(output) if isinstance(output, (str, os.PathLike)) else None
    if not isinstance(name, str) or not name:
        raise OutputError(f"An output is a str or a pathlib.Path: got {output!r:.80}. Name a file or a folder.")
    return name


def is_address(output: str | os.PathLike[str]) -> bool:
    """Return whether an output is on remote storage."""
    name = name_of(output)
    return is_remote(name) and not name.startswith("file://")


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")  # a Path keeps one of two slashes


def refuse_address(path: str | os.PathLike[str], what: str) -> None:
    """Raise OutputError if the path of an output is the address of remote storage."""
    name = name_of(path)
    if _ADDRESS.match(name):
        raise OutputError(
            f"The output must be a local {what}: got {name}. Copy the output to the storage after the run."
        )


_LOCK = "lock"


class OutputDirectory:
    """A folder that appears only when it is complete.

    All files are written to `DIR.partial`, next to DIR: results to `result`, scratch files to `scratch`. The scratch
    files of an interrupted run remain, so that it can be resumed. If DIR is an address of remote storage, they are
    written to a local folder, and the results are copied at the end. The folder is locked for this run, until it ends
    in any way.

    path : the folder; an address as str. remote : the folder on remote storage, else None.
    """

    def __init__(
        self, path: str | os.PathLike[str], overwrite: bool, resume: bool, scratch: str | os.PathLike[str] | None = None
    ) -> None:
        self.remote = RemoteFolder(name_of(path)) if is_address(path) else None
        self.path = Path(local_path(name_of(path))) if self.remote is None else self.remote.address
        self.partial, self.scratch = places_of(path, scratch)
        self.result = self.partial / "result"
        self._refuse_existing(overwrite)
        try:
            self.unlock = self._lock()
            if not resume:
                self._clear()
            shutil.rmtree(self.result, ignore_errors=True)
            self.result.mkdir()
        except OSError as error:
            raise OutputError(
                f"The output {self.path} cannot be written: {error.strerror or error}. Use a folder with "
                "write permission."
            ) from error

    def _lock(self) -> Callable[[], object]:
        """Make the temporary folder and lock it; return how to unlock it. Raises OutputError if another run has it."""
        if self.remote is None:
            self.partial.mkdir(parents=True, exist_ok=True)
        else:  # a temporary folder may be shared with other users
            self.partial.mkdir(mode=0o700, exist_ok=True)
            if hasattr(os, "geteuid") and self.partial.lstat().st_uid != os.geteuid():
                raise PermissionError(errno.EACCES, f"{self.partial} belongs to another user")
        try:
            return weakref.finalize(self, os.close, lock_file(self.partial / _LOCK))
        except BlockingIOError as error:
            raise OutputError(
                f"The output {self.path} is being written by another run, in process {error.strerror}. Wait until it "
                f"ends, or use another folder. If it has ended, on a machine that was lost, delete {self.partial}."
            ) from error
        except (ImportError, OSError):  # neither Windows nor every shared file system has locks
            return lambda: None

    def _clear(self) -> None:
        """Delete what an interrupted run has left, but not the lock."""
        for path in self.partial.iterdir():
            if path.name != _LOCK:
                shutil.rmtree(path, ignore_errors=True)
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _refuse_existing(self, overwrite: bool) -> None:
        """Raise OutputError if there is an output."""
        if self.remote is not None:
            self.remote.refuse_existing()
            return
        path = Path(self.path)
        if path.exists() and not overwrite:
            raise OutputError(
                f"The output {path} already exists. Use another folder, or pass overwrite=True (--overwrite) "
                "to replace it when the new result is complete."
            )
        if path.exists() and not path.is_dir():
            raise OutputError(f"The output {path} is a file. Use a folder.")

    def refuse_inputs_inside(self, inputs: Iterable[str]) -> None:
        """Raise OutputError if an input is in the output folder, or the output is in an input folder."""
        for name in inputs:
            if self._overlaps(name):
                self.discard()
                raise OutputError(
                    f"The output {self.path} and the input {name} overlap. Use an output outside "
                    "the input, so that a second run does not read the result of the first."
                )

    def _overlaps(self, name: str) -> bool:
        if self.remote is not None:
            address, other = (PurePosixPath(each.split("?")[0]) for each in (self.remote.address, name))
            return is_address(name) and (address == other or address in other.parents or other in address.parents)
        target, source = Path(self.path).resolve(), Path(name)
        if not source.exists():
            return False
        resolved = source.resolve()
        return target == resolved or target in resolved.parents or (resolved.is_dir() and resolved in target.parents)

    def begin(self, *, resume: bool) -> None:
        """Write to remote storage for the first time, once the inputs are found. Raises OutputError.

        resume : whether there is an interrupted run to continue.
        """
        if self.remote is not None:
            self.remote.begin(resume=resume)

    @property
    def can_resume(self) -> bool:
        """Whether there are scratch files that a run can continue from."""
        return (self.scratch / "checkpoint.json").exists()

    def finish(self) -> None:
        """Move the result into place, or copy it to the remote storage, and delete everything else."""
        self.publish()
        self.clear()

    def publish(self) -> None:
        """Move the result into place, or copy it to the remote storage."""
        if self.remote is not None:
            how = " with resume=True (--resume) to copy the rest" if self.can_resume else ""
            self.remote.copy(self.result, f"Then run again{how}.")
        else:
            if Path(self.path).exists():
                os.replace(self.path, self.partial / "old")
            os.replace(self.result, self.path)

    def replace(self, name: str, data: bytes) -> None:
        """Write a file of the finished output anew. Raises OutputError."""
        if self.remote is not None:
            self.remote.write(name, data)
            return
        with AtomicFile(Path(self.path) / name) as path:
            path.write_bytes(data)

    def discard_result(self) -> None:
        """Delete the results written so far, but not the scratch files."""
        shutil.rmtree(self.result, ignore_errors=True)

    def discard(self) -> None:
        """Delete everything that was written beside the output, and the mark on remote storage."""
        self.clear()
        if self.remote is not None:
            self.remote.delete_if_empty()

    def clear(self) -> None:
        """Delete everything that was written beside the output."""
        shutil.rmtree(self.partial, ignore_errors=True)
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.unlock()
