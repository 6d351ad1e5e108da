"""The output folder: written under a temporary name next to its path, and renamed when it is complete."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from neardup.errors import OutputError


def partial_of(path: str | os.PathLike[str]) -> Path:
    """Return the temporary folder of an output, next to it."""
    output = Path(path)
    return output.with_name(output.name + ".partial")


def scratch_of(output: str | os.PathLike[str], scratch: str | os.PathLike[str]) -> Path:
    """Return the folder of the scratch files of an output, in a folder that several runs may share."""
    path = Path(output).absolute()
    digest = hashlib.blake2b(os.fsencode(path), digest_size=8).hexdigest()
    return Path(scratch) / f"{path.name}-{digest}.scratch"


_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:/")  # a Path keeps one of two slashes


def refuse_address(path: str | os.PathLike[str], what: str) -> None:
    """Raise OutputError if the path of an output is the address of remote storage."""
    name = os.fspath(path)
    if _ADDRESS.match(name):
        raise OutputError(
            f"The output must be a local {what}: got {name}. Copy the output to the storage after the run."
        )


class OutputDirectory:
    """A folder that appears only when it is complete.

    All files are written to `DIR.partial`, next to DIR: results to `result`, scratch files to `scratch`. The scratch
    files of an interrupted run remain, so that it can be resumed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        overwrite: bool,
        resume: bool,
        scratch: str | os.PathLike[str] | None = None,
    ) -> None:
        refuse_address(path, "folder")
        self.path = Path(path)
        self.partial = partial_of(self.path)
        self.result = self.partial / "result"
        self.scratch = self.partial / "scratch" if scratch is None else scratch_of(self.path, scratch)
        if self.path.exists() and not overwrite:
            raise OutputError(
                f"The output {self.path} already exists. Use another folder, or pass overwrite=True (--overwrite) "
                "to replace it when the new result is complete."
            )
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"The output {self.path} is a file. Use a folder.")
        try:
            if not resume:
                self.discard()
            shutil.rmtree(self.result, ignore_errors=True)
            self.result.mkdir(parents=True)
        except OSError as error:
            raise OutputError(
                f"The output {self.path} cannot be written: {error.strerror or error}. Use a folder with "
                "write permission."
            ) from error

    def refuse_inputs_inside(self, inputs: Iterable[str]) -> None:
        """Raise OutputError if an input is in the output folder, or the output is in an input folder."""
        target = self.path.resolve()
        for name in inputs:
            source = Path(name)
            if not source.exists():
                continue
            resolved = source.resolve()
            if target == resolved or target in resolved.parents or (resolved.is_dir() and resolved in target.parents):
                self.discard()
                raise OutputError(
                    f"The output {self.path} and the input {name} overlap. Use an output outside "
                    "the input, so that a second run does not read the result of the first."
                )

    def finish(self) -> None:
        """Move the result into place and delete everything else."""
        old = self.partial / "old"
        if self.path.exists():
            os.replace(self.path, old)
        os.replace(self.result, self.path)
        self.discard()

    def discard_result(self) -> None:
        """Delete the results written so far, but not the scratch files."""
        shutil.rmtree(self.result, ignore_errors=True)

    def discard(self) -> None:
        """Delete everything that was written beside the output."""
        shutil.rmtree(self.partial, ignore_errors=True)
        shutil.rmtree(self.scratch, ignore_errors=True)
