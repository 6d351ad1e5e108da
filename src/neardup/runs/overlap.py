"""Find inputs that an output would replace, by the identity of files, not by the spelling of their
paths.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias

from neardup.documents.sources import is_remote, local_path
from neardup.errors import OutputError
from neardup.files import AnyPath

_LOCAL_SCHEMES = ("file", "local")  # of Arrow, of fsspec
_STANDARD_INPUT = "-"

Output: TypeAlias = AnyPath

_Identity: TypeAlias = tuple[int, int]
"""The device and the number of a file there: the same by every link, in upper or lower case,
through every mount.
"""


class _File(Protocol):
    """An input; see documents.sources.Source."""

    @property
    def name(self) -> str: ...

    @property
    def location(self) -> str: ...


def refuse_replacing(outputs: Iterable[Output | None], inputs: Iterable[_File]) -> None:
    """Raise OutputError if an input is one of the outputs, or a file inside of one.

    outputs : files and folders, as the user named them; they need not be there. inputs : all files
    that a run reads.
    """
    paths = {
        output: local_of(os.fspath(output))
        for output in outputs
        if isinstance(output, str | os.PathLike)
    }
    replaced = {
        identity: output for output, path in paths.items() if path and (identity := _identity(path))
    }
    folders: dict[str, Output | None] = {}  # folder -> the output that it is in
    for file in inputs if replaced else ():
        path = 0 if file.name == _STANDARD_INPUT else local_of(file.location)
        if path is None:
            continue
        output = replaced.get(_identity(path) or (0, 0))
        if output is None and isinstance(path, str):
            for folder in {
                os.path.realpath(os.path.dirname(path)),
                os.path.dirname(os.path.realpath(path)),
            }:
                if folder not in folders:
                    within = (
                        replaced[each] for each in _identities_from(folder) if each in replaced
                    )
                    folders[folder] = next(within, None)
                output = output or folders[folder]
        if output is not None:
            raise OutputError(
                f"The output {os.fspath(output)} would replace the input {file.name}. Use an "
                "output outside the inputs."
            )


def local_of(location: str) -> str | None:
    """Return the path of a local file or folder that is given by its path or its address; None if
    it is not local.
    """
    if not is_remote(location):
        return location
    scheme, _, rest = location.partition("://")
    return local_path(f"file://{rest}") if scheme.lower() in _LOCAL_SCHEMES else None


def contains(folder: AnyPath, path: AnyPath) -> bool:
    """Return whether a path is a folder, or in it; the path need not be there."""
    identity = _identity(folder)
    return identity is not None and identity in _identities_from(os.path.realpath(path))


def _identities_from(path: str) -> Iterator[_Identity]:
    """Yield the identity of a path without links, and of each folder above it, as far as they are
    there.
    """
    while True:
        identity = _identity(path)
        if identity is not None:
            yield identity
        folder = os.path.dirname(path)
        if folder == path:
            return
        path = folder


def _identity(path: AnyPath | int) -> _Identity | None:
    """Return the identity of a file or folder, or of an open file; None if there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # ValueError: a null character
        return None
    return status.st_dev, status.st_ino
