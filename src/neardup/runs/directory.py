"""Write an output folder under a temporary name, then rename it when it is complete, or copy it to
remote storage.
"""

from __future__ import annotations

import errno
import hashlib
import os
import posixpath
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import urlsplit

import pyarrow.fs as pafs

from neardup.decide.rules import table_names
from neardup.documents.sources import is_remote, local_path, resolve
from neardup.errors import InputError, MissingExtraError, NeardupError, OutputError
from neardup.executor import map_all
from neardup.files import (
    AnyPath,
    advice_on,
    public_address,
    reason_of,
    write_bytes,
    writing_to,
)
from neardup.locks import lock_file
from neardup.runs.overlap import contains, local_of
from neardup.settings.constraints import check_path

_LAST = "report.json"  # the file that makes a folder complete
_REPORTS = ("report.html", _LAST)
_MARK = "incomplete.txt"  # the file that marks a folder as incomplete
_NOTE = (
    b"neardup is writing this folder, or was interrupted. The output is complete once "
    b"report.json is here. A run with "
    b"--resume copies the rest; any other run with this output replaces it.\n"
)
_PIECE_BYTES = 8 << 20  # bytes that are copied at once
_DELETED_AT_ONCE = 16  # scratch files that are deleted at once
_WITHOUT_FOLDERS = ("s3", "gcs", "abfs")  # Arrow would write an empty object for each folder


class RemoteFolder:
    """A folder at an address such as s3://bucket/folder; it is complete once it has report.json.

    address : the address without options. options : the options of the client, with the question
    mark before them, or empty.

    Raises
    ------
    MissingExtraError
        If the storage needs a package that is not installed.
    OutputError
        If the storage cannot be reached, or written to.
    """

    def __init__(self, address: str) -> None:
        # Options of the client follow a question mark: s3://bucket/out?region=eu-west-1
        folder, question, options = address.partition("?")
        self.address = folder.rstrip("/")
        self.options = question + options
        self._shown = public_address(self.address)
        self._resumed = False
        with self._reaching():
            self._filesystem, self._path = resolve(self.address, self.options)

    def refuse_existing(self) -> None:
        """Raise OutputError if there is anything at the address except an incomplete output."""
        names = self._names()
        # An interrupted run of this output: another run may replace it.
        if not names or (_MARK in names and _LAST not in names):
            return
        incomplete = ""
        if _LAST not in names:
            incomplete = " It has no report.json, so it is not a complete output."
        raise OutputError(
            f"The output {self._shown} already exists, and remote storage is never overwritten: "
            f"got {names[0]}.{incomplete} Use another address, or delete what is there."
        )

    def begin(self, *, resume: bool) -> None:
        """Mark the folder as incomplete, so that a run without access fails at once. Raises
        OutputError.

        resume : whether to keep the files that the interrupted run has copied.
        """
        self.refuse_existing()
        self._resumed = resume
        # Of an interrupted run that is not continued.
        has_files = not resume and bool(self._names())
        with self._reaching():
            if has_files:
                self._filesystem.delete_dir(self._path)
            # The mark is the first file, so the folder counts as incomplete from the beginning.
            with self._filesystem.open_output_stream(self._make(_MARK)) as stream:
                stream.write(_NOTE)

    def copy(self, folder: Path, again: str = "Run it again.") -> None:
        """Copy the files of a folder that the address does not have, and then report.json, which
        makes the folder complete.

        again : the advice after an error. The copied files stay.

        Raises
        ------
        OutputError
            If a file could not be written, or has not its size afterwards.
        """
        files = {
            path.relative_to(folder).as_posix(): path
            for path in sorted(folder.rglob("*"))
            if path.is_file()
        }
        # In the order of _REPORTS: report.json, which makes the folder complete, is the last.
        reports = {name: files.pop(name) for name in _REPORTS if name in files}
        copied = set()
        if self._resumed:  # all attempts have the same files, except for the reports
            copied = files.keys() - self._missing(files)
        try:
            # Everything is checked before the reports: report.json tells that all is there.
            for group in (files, reports):
                for name, file in group.items():
                    if name not in copied:
                        self._write(file, name)
                        copied.add(name)
                if lost := self._missing(group):
                    copied -= set(lost)
                    # The sizes prove that all was written.
                    raise OSError(f"{lost[0]} is missing, or has another size than was written")
        except Exception as error:
            raise OutputError(
                f"The output {self._shown} is not complete: {len(copied)} of "
                f"{len(files) + len(reports)} files were written, report.json was not: {error}. "
                f"Check the network, the quota and the access rights. {again}"
            ) from error
        if _LAST in reports:
            with suppress(Exception):  # with report.json, the mark has no effect
                self._filesystem.delete_file(posixpath.join(self._path, _MARK))

    def write(self, name: str, data: bytes) -> None:
        """Write a file, or replace it. Raises OutputError."""
        with self._reaching(), self._filesystem.open_output_stream(self._make(name)) as file:
            file.write(data)

    def sizes(self) -> dict[str, int]:
        """Return the size of each file inside by its name relative to the folder, in bytes. Raises
        OutputError.
        """
        with self._reaching():
            inside = pafs.FileSelector(self._path, allow_not_found=True, recursive=True)
            found = [info for info in self._filesystem.get_file_info(inside) if info.is_file]
        return {posixpath.relpath(info.path, self._path): info.size for info in found}

    def delete(self) -> None:
        """Delete the folder and everything inside, as far as the storage allows; raise nothing."""
        with suppress(Exception):
            self._filesystem.delete_dir(self._path)

    def delete_if_empty(self) -> None:
        """Delete the folder if no run has copied anything to it, as far as the storage allows;
        raise nothing.
        """
        with suppress(Exception):
            if self._names() == [_MARK]:
                self._filesystem.delete_dir(self._path)

    def _names(self) -> list[str]:
        """Return the names of the files inside the folder, or the address itself if it is a
        file.
        """
        with self._reaching():
            info = self._filesystem.get_file_info(self._path)
            if info.type == pafs.FileType.NotFound:
                return []
            if info.type == pafs.FileType.File:
                # A file at the address itself: there is an output, whatever it is.
                return [self._shown]
            inside = pafs.FileSelector(self._path, allow_not_found=True)
            infos = self._filesystem.get_file_info(inside)
        return sorted(posixpath.basename(info.path.rstrip("/")) for info in infos)

    def _missing(self, files: dict[str, Path]) -> list[str]:
        """Return the names of the files that the folder lacks, or has with another size."""
        with self._reaching():
            infos = self._filesystem.get_file_info(
                [posixpath.join(self._path, name) for name in files]
            )
        return [
            name
            for name, info in zip(files, infos, strict=True)
            if info.size != files[name].stat().st_size
        ]

    def _write(self, file: Path, name: str) -> None:
        """Write a file. `pyarrow.fs.copy_files` ignores errors of closing the file (26.0.1)."""
        # By default, Arrow compresses a file according to its suffix.
        target = self._filesystem.open_output_stream(self._make(name), compression=None)
        with open(file, "rb") as source, target:
            shutil.copyfileobj(source, target, _PIECE_BYTES)

    def _make(self, name: str) -> str:
        """Return the path of a file, after making its folder."""
        path = posixpath.join(self._path, name)
        if self._filesystem.type_name not in _WITHOUT_FOLDERS:
            self._filesystem.create_dir(posixpath.dirname(path), recursive=True)
        return path

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        """Raise OutputError for any error of the client of the storage."""
        try:
            yield
        except MissingExtraError:
            raise
        # The address cannot be resolved: the error names it and the next step already.
        except InputError as error:
            raise OutputError(str(error)) from error
        except Exception as error:
            raise OutputError(
                f"The output {self._shown} cannot be written: {error}. Check the address, the "
                "network and the access rights, or use a local folder."
            ) from error


class Places(NamedTuple):
    """The folders that a run writes to before its output: `partial`, with the result; `scratch`,
    for scratch files.
    """

    partial: Path
    scratch: Path


def places_of(output: AnyPath, scratch: AnyPath | None = None) -> Places:
    """Return the temporary folders of an output: next to it, or for an address in `scratch`.

    scratch : a folder that several runs may share. Default: next to the output; for an address, the
    temporary folder of the system.
    """
    name = name_of(output)
    remote = is_address(name)
    # An address of a bucket alone has no path.
    path = Path(urlsplit(name).path or "out") if remote else Path(local_path(name))
    # Outputs of the same name in several folders must not share a scratch folder.
    identity = os.fsencode(name if remote else path.absolute())
    digest = hashlib.blake2b(identity, digest_size=8).hexdigest()
    if remote:
        partial = Path(scratch or tempfile.gettempdir()) / f"neardup-{path.name}-{digest}.partial"
        return Places(partial, partial / "scratch")
    if path.name in ("", ".."):
        raise OutputError(
            f"An output is a folder that can be replaced: got {name!r}. Name a new folder."
        )
    # In the same folder, so that the result can be renamed into place.
    partial = path.with_name(path.name + ".partial")
    if scratch is None:
        return Places(partial, partial / "scratch")
    return Places(partial, Path(scratch) / f"{path.absolute().name}-{digest}.scratch")


def name_of(output: AnyPath) -> str:
    """Return the path or the address of an output. Raises OutputError if it is neither a str nor a
    path, or empty.
    """
    return check_path("An output", output, OutputError)


def is_address(output: AnyPath) -> bool:
    """Return whether an output is on remote storage."""
    name = name_of(output)
    return is_remote(name) and not name.startswith("file://")


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")  # a Path keeps one of two slashes


def refuse_address(path: AnyPath, what: str) -> None:
    """Raise OutputError if the path of an output is the address of remote storage."""
    name = name_of(path)
    if _ADDRESS.match(name):
        raise OutputError(
            f"The output must be a local {what}: got {name}. Copy the output to the storage after "
            "the run."
        )


def refuse_stdout(path: AnyPath) -> None:
    """Raise OutputError if the output is a hyphen, which would become the name of a folder."""
    if name_of(path) == "-":
        raise OutputError(
            "The output '-' is no folder: only neardup dedup writes to standard output. Name a "
            "folder."
        )


_LOCK = "lock"
_LEFT = (_LOCK, "result", "scratch", "old", "attempts")  # names in the temporary folder of a run
_TABLES = (
    "removed",
    "mask",
    "ids",
    "passages",
    "clusters",
    "cluster_summary",
    "hits",
    "items",
    "boilerplate",
    "removals",
    "left",
    "unmatched",
)
_OUTPUTS = {"kept", "annotated", "rejected.jsonl", "report.json", "report.html", "passages.html"}
_OUTPUTS |= {f"{name}.parquet" for name in _TABLES}
_OF_SYSTEMS = (".DS_Store", "Thumbs.db", "desktop.ini")


def _is_of_output(name: str) -> bool:
    """Return whether a run or an operating system writes files of this name."""
    # Files that NFS and macOS make beside others.
    if name in _OF_SYSTEMS or name.startswith((".nfs", "._")):
        return True
    # A run that was killed while it replaced a file leaves
    # `.report.json.0123456789abcdef.partial`.
    written = name
    if name.startswith(".") and name.endswith(".partial"):
        written = name[1:].rsplit(".", 2)[0]
    is_table = written.endswith(".parquet") and written.removesuffix(".parquet") in table_names()
    return is_table or written in _OUTPUTS


class OutputDirectory:
    """A folder that appears only when it is complete.

    All files are written to `DIR.partial`, next to DIR: results to `result`, scratch files to
    `scratch`. The scratch files of an interrupted run remain, so that it can be resumed. If DIR is
    an address of remote storage, they are written to a local folder, and the results are copied at
    the end. The folder is locked for this run, until it ends in any way.

    path : the folder, or its address as str. remote : the folder on remote storage, or None.
    """

    def __init__(
        self, path: AnyPath, overwrite: bool, resume: bool, scratch: AnyPath | None = None
    ) -> None:
        refuse_stdout(path)
        self.remote = RemoteFolder(name_of(path)) if is_address(path) else None
        self.path = Path(local_path(name_of(path))) if self.remote is None else self.remote.address
        self.partial, self.scratch = places_of(path, scratch)
        self.result = self.partial / "result"
        self.is_published = False
        self._overwrite = overwrite
        try:
            # Refuse before `_lock`, which makes the folder; delete only with the lock.
            self._refuse_existing()
            self._refuse_foreign()
            self.unlock = self._lock()
            if not resume:
                self._clear()
            # The result is always written anew; only scratch files are continued.
            shutil.rmtree(self.result, ignore_errors=True)
            self.result.mkdir()
        except NeardupError:  # there is an output, or another run is writing it
            raise
        except OSError as error:
            raise OutputError(
                f"The output {self.path} cannot be written: {reason_of(error)}. {advice_on(error)}"
            ) from error

    def _lock(self) -> Callable[[], object]:
        """Make the temporary folder and lock it; return a function that unlocks it. Raises
        OutputError if another run has locked it.
        """
        if self.remote is None:
            self.partial.mkdir(parents=True, exist_ok=True)
        else:  # a temporary folder may be shared with other users
            self.partial.mkdir(mode=0o700, exist_ok=True)
            if hasattr(os, "geteuid") and self.partial.lstat().st_uid != os.geteuid():
                raise PermissionError(errno.EACCES, f"{self.partial} belongs to another user")
        try:
            # Closing the file unlocks it. The finalizer does so also if nobody calls it.
            return weakref.finalize(self, os.close, lock_file(self.partial / _LOCK))
        except BlockingIOError as error:
            raise OutputError(
                f"The output {self.path} is being written by another run, in process "
                f"{error.strerror}. Wait until it ends, or use another folder. If it has ended, on "
                f"a machine that was lost, delete {self.partial}."
            ) from error
        except (ImportError, OSError):  # neither Windows nor every shared file system has locks
            return lambda: None

    def _refuse_foreign(self) -> None:
        """Raise OutputError if the temporary folder has files that are not of a run."""
        if self.partial.is_symlink():
            raise OutputError(
                f"The folder {self.partial} is used while the output is written: it is a link. Use "
                "another output, or delete the link."
            )
        if not self.partial.exists():
            return
        # Nobody's files but a run's are deleted: `clear` deletes the whole folder.
        foreign = sorted(path.name for path in self.partial.iterdir() if path.name not in _LEFT)
        if foreign:
            raise OutputError(
                f"The folder {self.partial} is used while the output is written, and is not "
                f"emptied: it has {foreign[0]}, which is not of a run. Use another output, or "
                "rename that folder."
            )

    def _clear(self) -> None:
        """Delete the files of an interrupted run, but not the lock."""
        for path in self.partial.iterdir():
            # A new file of this name would be another lock, which a second run could take.
            if path.name != _LOCK:
                shutil.rmtree(path, ignore_errors=True)
        self._forget_checkpoint()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def _refuse_existing(self) -> None:
        """Raise OutputError if there is an output."""
        if self.remote is not None:
            self.remote.refuse_existing()
            return
        path = Path(self.path)
        if not path.exists():
            return
        if not path.is_dir():
            raise OutputError(f"The output {path} is a file. Use a folder.")
        if not self._overwrite:
            raise OutputError(
                f"The output {path} already exists. Use another folder, or pass overwrite=True "
                "(--overwrite) to replace it when the new result is complete."
            )
        # Such as a volume of Docker: only a folder inside a file system can be renamed.
        if os.path.ismount(path):
            raise OutputError(
                f"The folder {path} is not replaced: a file system is mounted there. Use a folder "
                "inside it."
            )
        names = sorted(file.name for file in path.iterdir())
        foreign = [name for name in names if not _is_of_output(name)]
        is_complete = (path / _LAST).exists()
        # A folder that has been an output may have got files of the user's since.
        if foreign and is_complete:
            raise OutputError(
                f"The folder {path} is not replaced: it has {foreign[0]}, which no run has "
                "written. Use another folder, or move that elsewhere."
            )
        # Without report.json it may be any folder of the user's.
        if names and not is_complete:
            raise OutputError(
                f"The folder {path} is not replaced: it has no report.json, so it is not the "
                "output of a run. Use another folder, or delete it yourself."
            )

    def refuse_inputs_inside(self, inputs: Iterable[str]) -> None:
        """Raise OutputError if an input is in the output folder, or the output is in an input
        folder.

        inputs : paths and addresses as the user named them. The files of patterns and links are
        known later: see `runs.overlap.refuse_replacing`.
        """
        for name in inputs:
            if self._overlaps(name):
                self.discard()
                raise OutputError(
                    f"The output {self.path} and the input {name} overlap. Use an output outside "
                    "the input, so that a second run does not read the result of the first."
                )

    def _overlaps(self, name: str) -> bool:
        if self.remote is not None:
            # By spelling: remote storage has no identity of files.
            output = PurePosixPath(self.remote.address.split("?")[0])
            other = PurePosixPath(name.split("?")[0])
            is_same = output == other
            is_inside = output in other.parents or other in output.parents
            return is_address(name) and (is_same or is_inside)
        path = local_of(name)
        return path is not None and (contains(self.path, path) or contains(path, self.path))

    def begin(self, *, resume: bool) -> None:
        """Write to remote storage for the first time, once the inputs are found. Raises
        OutputError.

        resume : whether there is an interrupted run to continue.
        """
        if self.remote is not None:
            self.remote.begin(resume=resume)

    @property
    def can_resume(self) -> bool:
        """True if a run can continue from the scratch files."""
        # Written by the first checkpoint; before it nothing can be continued.
        return self._checkpoint.exists()

    @property
    def _checkpoint(self) -> Path:
        return self.scratch / "checkpoint.json"

    def _forget_checkpoint(self) -> None:
        """Delete the checkpoint, before the columns: if this run is killed while it deletes them,
        the next one must not look for the others.
        """
        self._checkpoint.unlink(missing_ok=True)

    def publish(self) -> None:
        """Move the result into place, or copy it to the remote storage."""
        if self.remote is not None:
            how = " with resume=True (--resume) to copy the rest" if self.can_resume else ""
            self.remote.copy(self.result, f"Then run again{how}.")
        else:
            self._move()
        self.is_published = True

    def _move(self) -> None:
        """Move the result into place; after an error, the replaced output is in its place again."""
        old = self.partial / "old"
        # Again: the user may have made a folder there, or added files, while the run lasted.
        self._refuse_existing()
        if Path(self.path).exists():
            # Both are renames in one file system: the time without an output is as short as can be.
            os.replace(self.path, old)
        try:
            os.replace(self.result, self.path)
        # Also Ctrl-C between both renames.
        except BaseException:
            if old.exists():
                os.replace(old, self.path)
            raise

    def replace(self, name: str, data: bytes) -> None:
        """Replace a file of the finished output. Raises OutputError."""
        if self.remote is not None:
            self.remote.write(name, data)
            return
        path = Path(self.path) / name
        with writing_to(path):
            write_bytes(path, data)

    def discard(self) -> None:
        """Delete everything that was written beside the output, and the mark on remote storage."""
        self.clear()
        if self.remote is not None:
            self.remote.delete_if_empty()

    def clear(self) -> None:
        """Delete everything that was written beside the output."""
        with suppress(OSError):
            self._forget_checkpoint()
            # Several at once, since the system takes a second for the pages of some gigabytes.
            files = [path for path in self.scratch.iterdir() if path.is_file()]
            map_all(files, Path.unlink, _DELETED_AT_ONCE)
        shutil.rmtree(self.partial, ignore_errors=True)
        shutil.rmtree(self.scratch, ignore_errors=True)
        # Last, so that no other run begins in a folder that is being deleted.
        self.unlock()
