"""Scratch files of a run: columns of numbers, which are appended to, then mapped into memory; and
checkpoints.

They contain no texts, except around items that were found and around anchors of passages. A column
is a plain file of little-endian numbers: its length gives the number of values, and the columns of
an interrupted run can be truncated to its last checkpoint.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from neardup.arrays import Array
from neardup.errors import NeardupError, OutputError, ResumeError
from neardup.files import AnyPath, JsonObject, read_json, write_json
from neardup.formats.reading import Task
from neardup.runs.directory import OutputDirectory
from neardup.schemas import KEYS, Column
from neardup.version import __version__

resource: Any
try:
    import resource
except ImportError:  # on Windows, which has no such limit
    resource = None


def prepare(
    scratch: Scratch,
    tasks: Sequence[Task],
    settings: JsonObject,
    resume: bool,
    folder: OutputDirectory | None = None,
) -> bool:
    """Record the identity of a run, or check the recorded one; return whether the run is resumed.

    folder : the folder of the output, which is begun accordingly.

    Raises
    ------
    ResumeError
        If the scratch files belong to other inputs, settings or another version; the message lists
        the differences.
    """
    note = scratch.directory / "run.json"
    # Tuples become lists, as in the recorded identity.
    this = json.loads(json.dumps(_describe(tasks, settings)))
    resuming = resume and note.exists()
    if resuming:
        different = [*_differences(_read_note(note, "settings"), this)]
        if different:
            raise ResumeError(
                f"The interrupted run in {scratch.directory.parent} is a different run: it had "
                f"{'; '.join(different)}. Use the same inputs and settings, or run without resume "
                "(--resume) to start again."
            )
    else:
        scratch.clear()
        write_json(note, this)
    if folder is not None:
        # Only now is anything written to remote storage: a refusal before it leaves no trace there.
        folder.begin(resume=resuming)
    return resuming


def _read_note(file: Path, *fields: str) -> JsonObject:
    """Read a record of an interrupted run. Raises ResumeError if it is damaged.

    fields : the names of objects in the record.
    """
    try:
        record: JsonObject = read_json(file)
        if not all(isinstance(record[name], dict) for name in fields):
            raise ValueError("it has another form")
    # TypeError, KeyError: it is no object, or lacks a field.
    except (ValueError, TypeError, KeyError) as error:
        raise ResumeError(
            f"The record {file} of the interrupted run is damaged: {error}. The run cannot be "
            "resumed: run without resume (--resume) to start again."
        ) from error
    return record


def _describe(tasks: Sequence[Task], settings: JsonObject) -> JsonObject:
    return {
        "version": __version__,
        "settings": settings,
        "inputs": [task.identity for task in tasks],
        "reading": [
            [*task.columns, task.against, task.max_document_bytes, task.part.format, task.part.unit]
            for task in tasks
        ],
    }


def _differences(old: JsonObject, new: JsonObject) -> Iterator[str]:
    """Return the differences between two records."""
    # Another version may compute other hashes.
    if old.get("version") != new["version"]:
        yield f"version {old.get('version')}, now {new['version']}"
    old_settings = old["settings"]
    new_settings = new["settings"]
    for name in sorted(old_settings.keys() | new_settings.keys()):
        before = old_settings.get(name)
        now = new_settings.get(name)
        if before != now:
            yield f"{name} {before}, now {now}"
    if old.get("inputs") != new["inputs"]:
        yield "other inputs, or they have changed since"
    elif old.get("reading") != new["reading"]:
        yield "its inputs read in another way (columns, format, unit or longest document)"


_MAX_MAPPED_BYTES = 192 << 20  # pages of mapped columns in memory
_BUFFER_BYTES = 1 << 16  # numbers of a column that wait to be written together
# Open files before the limit is raised, and the new limit. A process starts with 256 on macOS, and
# with 1,024 on Linux.
_MANY_FILES = 128
_ALLOWED_FILES = 4096
_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
_NOT_COLUMNS = (".json", ".parquet")


class Scratch:
    """A folder of columns.

    Pattern: `append` any number of times; `checkpoint`; then `column` to read. A mapped column must
    not be appended to.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._open: dict[str, BinaryIO] = {}
        self._maps: list[mmap.mmap] = []
        self._others = ExitStack()

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def clear(self) -> None:
        """Delete the files of an earlier run."""
        self._delete(list(self.directory.iterdir()))

    def append(self, column: Column, values: Array) -> None:
        """Append numbers to a column. Raises OSError if the disk is full."""
        # A column has one type: a wrong one would shift all later numbers.
        assert values.dtype == column.dtype, (column, values.dtype)
        if column.name not in self._open:
            self._allow_files()
            path = self.directory / column.name
            # Buffered: at each write to the system another thread takes the interpreter, and a
            # batch of documents has twenty columns. On many processors, reading would wait for it.
            self._open[column.name] = path.open("ab", buffering=_BUFFER_BYTES)
        self._open[column.name].write(np.ascontiguousarray(values).data)

    def remove(self, column: Column) -> None:
        """Delete a column, if there is one; an array of it stays valid."""
        (self.directory / column.name).unlink(missing_ok=True)

    def write(self, column: Column, values: Array, first: int) -> None:
        """Write numbers to a column from the number `first` on; threads may do so at once. Raises
        OSError.
        """
        # Not "ab": appending ignores the position.
        with open(self.directory / column.name, "r+b", buffering=0) as file:
            file.seek(first * values.itemsize)
            _write(file, values)

    def checkpoint(self, state: JsonObject) -> None:
        """Record `state` and the lengths of all columns, in one step."""
        for file in self._open.values():
            file.flush()  # the lengths of the columns are the sizes of their files
        lengths = {column.name: column.stat().st_size for column in self._columns()}
        # In one step: a run that dies here continues from the checkpoint before it.
        write_json(self.directory / "checkpoint.json", {"state": state, "lengths": lengths})

    def restore(self) -> JsonObject | None:
        """Truncate all columns to the last checkpoint and return its state, or None if there is
        none.

        Raises
        ------
        ResumeError
            If a column is shorter than at the checkpoint.
        """
        file = self.directory / "checkpoint.json"
        if not file.exists():
            self._delete(self._columns())
            return None
        record = _read_note(file, "lengths", "state")
        lengths: dict[str, int] = record["lengths"]
        # Columns that were begun after the checkpoint.
        self._delete(column for column in self._columns() if column.name not in lengths)
        for name, length in lengths.items():
            column = self.directory / name
            # Longer is right: numbers after the checkpoint are cut off. Shorter means that they are
            # lost.
            if not column.exists() or column.stat().st_size < length:
                raise ResumeError(
                    f"The scratch file {column} is shorter than at the last checkpoint ({length} "
                    "bytes). The run cannot be resumed: run without resume (--resume) to start "
                    "again."
                )
            os.truncate(column, length)
        state: JsonObject = record["state"]
        return state

    def _columns(self) -> list[Path]:
        return [
            path
            for path in self.directory.iterdir()
            if path.is_file() and path.suffix not in _NOT_COLUMNS
        ]

    @staticmethod
    def _delete(paths: Iterable[Path]) -> None:
        for path in paths:
            # Stores of a search have folders here.
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()

    def close_with(self, store: AbstractContextManager[Any]) -> None:
        """Leave the context of a store in this folder when the scratch files are closed."""
        self._others.enter_context(store)

    def close_columns(self) -> None:
        """Finish appending."""
        for file in self._open.values():
            file.close()
        self._open.clear()

    def column(self, column: Column) -> Array:
        """Return a column, mapped into memory; empty if it was never written. Writes to the array
        stay in memory.
        """
        if column.name in self._open:
            self._open.pop(column.name).close()
        shape = (-1,) if column.width == 1 else (-1, column.width)
        path = self.directory / column.name
        # An empty file cannot be mapped.
        if not path.exists() or path.stat().st_size == 0:
            return np.empty(0, column.dtype).reshape(shape)
        self._allow_files()
        with open(path, "rb") as file:
            # Private pages: kernels may write to the array, the file stays as it is.
            mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        self._maps.append(mapped)
        return np.frombuffer(mapped, column.dtype).reshape(shape)

    def _allow_files(self) -> None:
        """Raise the limit of open files before it is reached: each band is a column, and a mapped
        one stays open.
        """
        # The number grows by one file at a time, so it meets this one.
        if resource is not None and len(self._open) + len(self._maps) == _MANY_FILES:
            soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
            wanted = _ALLOWED_FILES if hard == resource.RLIM_INFINITY else min(_ALLOWED_FILES, hard)
            if soft != resource.RLIM_INFINITY and soft < wanted:
                resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

    def release_pages(self, allowed_bytes: int = 0) -> None:
        """Release the pages of all mapped columns to the system's cache once they reach
        _MAX_MAPPED_BYTES.

        allowed_bytes : a higher limit, for random access, which would touch the released pages
        again.
        """
        # Mapped pages count as memory of this process, although the system could reclaim them at
        # any time. Touching a released page costs about as much as comparing two short documents,
        # so pages are not released more often than needed.
        if _mapped_bytes() >= max(allowed_bytes, _MAX_MAPPED_BYTES):
            self.release_all_pages()

    def release_all_pages(self) -> None:
        """Release the pages of all mapped columns to the system."""
        for mapped in self._maps:
            if hasattr(mapped, "madvise"):
                mapped.madvise(mmap.MADV_DONTNEED)

    def close(self) -> None:
        """Close all files. Mapped columns stay valid as long as an array refers to them."""
        self._others.close()
        self.close_columns()
        # Not closed: Python refuses that as long as an array refers to one.
        self._maps.clear()


class ScratchOfSearch(Scratch):
    """A folder of the columns of one search, beside the columns of documents that several searches
    share.

    keys : the numbers of the shared columns of keys that belong to this search.
    """

    def __init__(self, directory: Path, documents: Scratch, keys: range) -> None:
        super().__init__(directory)
        self._documents = documents
        self._keys = {KEYS.at(part).name: KEYS.at(number) for part, number in enumerate(keys)}

    def column(self, column: Column) -> Array:
        """Return a column of the search, or of the documents."""
        is_key = column.name.startswith(f"{KEYS.name}-")
        shared = self._keys.get(column.name) if is_key else column
        # A search may have columns of its own under the name of shared ones.
        if shared is None or (self.directory / column.name).exists():
            return super().column(column)
        return self._documents.column(shared)

    def release_all_pages(self) -> None:
        """Release the pages of the mapped columns of both."""
        super().release_all_pages()
        self._documents.release_all_pages()


def _write(file: FileIO, values: Array) -> None:
    data = memoryview(np.ascontiguousarray(values).view(np.uint8).reshape(-1).data)
    # An unbuffered file may write a part only.
    while data:
        data = data[file.write(data) :]


def _mapped_bytes() -> int:
    """Return the number of bytes of mapped files in memory; the limit itself if the system does not
    report it.
    """
    try:
        # The third number counts resident shared pages, such as the pages of mapped files.
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[2]) * mmap.PAGESIZE
    except OSError:
        return _MAX_MAPPED_BYTES


@contextmanager
def workspace(
    folder: OutputDirectory | None = None, scratch_folder: AnyPath | None = None
) -> Iterator[Scratch]:
    """Open the scratch files of a run, in the output folder or a temporary one.

    scratch_folder : the parent of the temporary folder. Default: the one of the system.

    Raises
    ------
    OutputError
        If the folder cannot be written to; the run can then be resumed from its scratch files.
    """
    if folder is None:
        path = None
        try:
            with (
                tempfile.TemporaryDirectory(prefix="neardup-", dir=scratch_folder) as path,
                Scratch(Path(path)) as scratch,
            ):
                yield scratch
        except OSError as error:
            # An error of another file, such as an input, is no error of this folder.
            if path is not None and error.errno not in _DISK_FULL:
                raise
            raise OutputError(
                "Temporary files cannot be written to the folder "
                f"{scratch_folder or 'of the system'}: {error.strerror}. Free some space, or "
                "choose another by scratch (--scratch) or the variable TMPDIR."
            ) from error
        return
    try:
        with Scratch(folder.scratch) as scratch:
            yield scratch
    # Also Ctrl-C: an unfinished result has no use, the scratch files have.
    except BaseException as error:
        shutil.rmtree(folder.result, ignore_errors=True)
        if isinstance(error, NeardupError):
            # Before the first checkpoint there is nothing to resume.
            if not folder.can_resume:
                folder.discard()
        elif isinstance(error, OSError):
            raise OutputError(_cannot_write(folder, error)) from error
        raise
    finally:
        folder.unlock()


def _cannot_write(folder: OutputDirectory, error: OSError) -> str:
    problem = f"{error.strerror or error}: {error.filename or folder.partial}."
    if folder.is_published:
        return (
            f"{problem} The output {folder.path} is complete, but the run failed afterwards, while "
            "it updated an index or deleted temporary files. With an index, repeat the run with "
            "overwrite=True (--overwrite): it decides as before."
        )
    if error.errno in _DISK_FULL:
        return (
            f"The disk is full: {folder.partial} could not be extended. Nothing was written to "
            f"{folder.path}. Free some space and run again with resume=True (--resume), or delete "
            f"{folder.partial}."
        )
    return (
        f"{problem} Nothing was written to {folder.path}. Run again with resume=True (--resume) "
        "once this is fixed."
    )
