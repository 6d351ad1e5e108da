"""An output folder on remote storage: a finished folder is copied to it, report.json last."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow.fs as pafs

from neardup.documents.sources import resolve
from neardup.errors import MissingExtraError, OutputError

_LAST = "report.json"
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
        with self._reaching():
            self._filesystem, self._path = resolve(self.address + self.options)

    def refuse_existing(self, *, resume: bool) -> None:
        """Raise OutputError if there is anything at the address.

        resume : accept a folder without report.json, which an interrupted run has left.
        """
        with self._reaching():
            info = self._filesystem.get_file_info(self._path)
            if info.type == pafs.FileType.NotFound:
                return
            inside = pafs.FileSelector(self._path, allow_not_found=True)
            names = [self.address] if info.type == pafs.FileType.File else self._names(inside)
        if not names or (resume and _LAST not in names and self.address not in names):
            return
        incomplete = "" if _LAST in names else " It has no report.json, so it is not a complete output."
        raise OutputError(
            f"The output {self.address} already exists, and remote storage is never overwritten: got "
            f"{names[0]}.{incomplete} Use another address, or delete what is there."
        )

    def check_writable(self) -> None:
        """Write an empty file and delete it, so that a run without access fails at once. Raises OutputError."""
        with self._reaching():
            name = self._make("write-test")
            self._filesystem.open_output_stream(name).close()
            self._filesystem.delete_file(name)

    def copy(self, folder: Path) -> None:
        """Copy all files of a folder, report.json last; after an error delete what was copied. Raises OutputError."""
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        files.sort(key=lambda path: path == folder / _LAST)
        copied = []
        try:
            for file in files:
                with self._reaching():
                    copied.append(self._make(file.relative_to(folder).as_posix()))
                    pafs.copy_files(
                        str(file), copied[-1], source_filesystem=pafs.LocalFileSystem(),
                        destination_filesystem=self._filesystem,
                    )  # fmt: skip
        except BaseException:
            for name in reversed(copied):
                with suppress(Exception):
                    self._filesystem.delete_file(name)
            raise

    def write(self, name: str, data: bytes) -> None:
        """Write a file, in place of one that is there. Raises OutputError."""
        with self._reaching(), self._filesystem.open_output_stream(self._make(name)) as file:
            file.write(data)

    def delete(self) -> None:
        """Delete the folder and all that is inside, as far as the storage allows; nothing is raised."""
        with suppress(Exception):
            self._filesystem.delete_dir(self._path)

    def _names(self, inside: pafs.FileSelector) -> list[str]:
        infos = self._filesystem.get_file_info(inside)
        return sorted(posixpath.basename(info.path.rstrip("/")) for info in infos)

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
