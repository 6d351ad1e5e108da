"""An output folder on remote storage: a finished folder is copied to it, report.json last."""

from __future__ import annotations

import posixpath
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow.fs as pafs

from neardup.documents.sources import resolve
from neardup.errors import MissingExtraError, OutputError

_LAST, _REPORTS = "report.json", ("report.html", "report.json")
_MARK = "incomplete.txt"
_NOTE = (
    b"neardup is writing this folder, or was interrupted. The output is complete once report.json is here. A run with "
    b"--resume copies the rest; any other run with this output replaces it.\n"
)
_PIECE_BYTES = 8 << 20
_WITHOUT_FOLDERS = ("s3", "gcs", "abfs")  # Arrow would write an empty object for each folder


class RemoteFolder:
    """A folder at an address such as s3://bucket/folder; it is complete once it has report.json.

    address : without the options of the client. options : these, with the question mark before them, or empty.

    Raises
    ------
    MissingExtraError
        If the storage needs a package that is not installed.
    OutputError
        If the storage cannot be reached, or written to.
    """

    def __init__(self, address: str) -> None:
        folder, question, options = address.partition("?")  # of the client: s3://bucket/out?region=eu-west-1
        self.address, self.options = folder.rstrip("/"), question + options
        self._resumed = False
        with self._reaching():
            self._filesystem, self._path = resolve(self.address, self.options)

    def refuse_existing(self) -> None:
        """Raise OutputError if there is anything at the address but what a run has left that did not complete."""
        names = self._names()
        if not names or (_MARK in names and _LAST not in names):
            return
        incomplete = "" if _LAST in names else " It has no report.json, so it is not a complete output."
        raise OutputError(
            f"The output {self.address} already exists, and remote storage is never overwritten: got "
            f"{names[0]}.{incomplete} Use another address, or delete what is there."
        )

    def begin(self, *, resume: bool) -> None:
        """Mark the folder as incomplete, so that a run without access fails at once. Raises OutputError.

        resume : keep what the interrupted run has copied, instead of deleting it.
        """
        self.refuse_existing()
        self._resumed, left = resume, [] if resume else self._names()
        with self._reaching():
            if left:
                self._filesystem.delete_dir(self._path)
            with self._filesystem.open_output_stream(self._make(_MARK)) as stream:
                stream.write(_NOTE)

    def copy(self, folder: Path, again: str = "Run it again.") -> None:
        """Copy the files of a folder that are not there yet, report.json last; with it, the folder is complete.

        again : what to do after an error. The files that were copied stay.

        Raises
        ------
        OutputError
            If a file could not be written, or has not its size afterwards.
        """
        files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*")) if path.is_file()}
        reports = {name: files.pop(name) for name in _REPORTS if name in files}
        whole = files.keys() - self._missing(files) if self._resumed else set()  # they are the same in every attempt
        try:
            for group in (files, reports):
                for name in (name for name in group if name not in whole):
                    self._write(group[name], name)
                    whole |= {name}
                if lost := self._missing(group):
                    whole -= set(lost)
                    raise OSError(f"{lost[0]} is missing, or has another size than was written")
        except Exception as error:
            raise OutputError(
                f"The output {self.address} is not complete: {len(whole)} of {len(files) + len(reports)} files were "
                f"written, report.json was not: {error}. Check the network, the quota and the access rights. {again}"
            ) from error
        if _LAST in reports:
            with suppress(Exception):  # report.json counts
                self._filesystem.delete_file(posixpath.join(self._path, _MARK))

    def write(self, name: str, data: bytes) -> None:
        """Write a file, in place of one that is there. Raises OutputError."""
        with self._reaching(), self._filesystem.open_output_stream(self._make(name)) as file:
            file.write(data)

    def sizes(self) -> dict[str, int]:
        """Return the size of each file inside by its name relative to the folder, in bytes. Raises OutputError."""
        with self._reaching():
            inside = pafs.FileSelector(self._path, allow_not_found=True, recursive=True)
            found = [info for info in self._filesystem.get_file_info(inside) if info.is_file]
        return {posixpath.relpath(info.path, self._path): info.size for info in found}

    def delete(self) -> None:
        """Delete the folder and all that is inside, as far as the storage allows; nothing is raised."""
        with suppress(Exception):
            self._filesystem.delete_dir(self._path)

    def delete_if_empty(self) -> None:
        """Delete the folder if no run has copied anything to it, as far as the storage allows; nothing is raised."""
        with suppress(Exception):
            if self._names() == [_MARK]:
                self._filesystem.delete_dir(self._path)

    def _names(self) -> list[str]:
        """Return the names at the address, without folders: of the files inside, or of the file itself."""
        with self._reaching():
            info = self._filesystem.get_file_info(self._path)
            if info.type == pafs.FileType.NotFound:
                return []
            if info.type == pafs.FileType.File:
                return [self.address]
            infos = self._filesystem.get_file_info(pafs.FileSelector(self._path, allow_not_found=True))
        return sorted(posixpath.basename(info.path.rstrip("/")) for info in infos)

    def _missing(self, files: dict[str, Path]) -> list[str]:
        """Return the names of the files that are not there, or with another size."""
        with self._reaching():
            infos = self._filesystem.get_file_info([posixpath.join(self._path, name) for name in files])
        return [name for name, info in zip(files, infos, strict=True) if info.size != files[name].stat().st_size]

    def _write(self, file: Path, name: str) -> None:
        """Write a file; unlike `pyarrow.fs.copy_files`, which ignores what fails as it closes the file (26.0.1)."""
        target = self._filesystem.open_output_stream(self._make(name), compression=None)  # else by its suffix
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
        """Raise OutputError for whatever the client of the storage raises."""
        try:
            yield
        except MissingExtraError:
            raise
        except Exception as error:
            raise OutputError(
                f"The output {self.address} cannot be written: {error}. Check the address, the network and the access "
                "rights, or use a local folder."
            ) from error
