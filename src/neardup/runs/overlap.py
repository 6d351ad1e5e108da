"""Find inputs that an output would replace, by the identity of files, not by the spelling of their
paths.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Protocol, TypeAlias

from neardup.documents.sources import is_remote, local_path
from neardup.errors import OutputError
from neardup.files import AnyPath, identity_of

_LOCAL_SCHEMES = ("file", "local")  # schemes of Arrow and of fsspec
_STANDARD_INPUT = "-"

Output: TypeAlias = AnyPath

_Identity: TypeAlias = tuple[int, int]
"""The device and the number of a file there: the same by every link, in upper or lower case,
through every mount.
"""

_NO_FILE: _Identity = (0, 0)


class _File(Protocol):
    """An input; see documents.sources.Source."""

    @property
    def name(self) -> str: ...

    @property
    def location(self) -> str: ...


def refuse_replacing(outputs: Iterable[Output | None], inputs: Iterable[_File]) -> None:
    """Raise OutputError if an input is one of the outputs, or a file inside of one.

    outputs : files and folders, as the user named them; they need not exist. inputs : all files
    that a run reads.
    """
    replaced = {}
    for output in outputs:
        path = local_of(os.fspath(output)) if isinstance(output, str | os.PathLike) else None
        identity = identity_of(path) if path else None
        if output is not None and identity is not None:
            replaced[identity] = output
    if not replaced:
        return

    outputs_of_folders: dict[str, Output | None] = {}
    for file in inputs:
        if file.name == _STANDARD_INPUT:
            # Standard input may be a file that the shell opened: `neardup dedup - -o x < x`.
            output = replaced.get(identity_of(0) or _NO_FILE)  # its descriptor
        else:
            output = _output_with(local_of(file.location), replaced, outputs_of_folders)
        if output is not None:
            raise OutputError(
                f"The output {os.fspath(output)} would replace the input {file.name}. Use an "
                "output outside the inputs."
            )


def _output_with(
    path: str | None,
    replaced: Mapping[_Identity, Output],
    outputs_of_folders: dict[str, Output | None],
) -> Output | None:
    """Return the output that is a file, or contains it; None if there is none.

    outputs_of_folders : the output that is or contains each folder so far, which is extended.
    """
    if path is None:
        return None
    output = replaced.get(identity_of(path) or _NO_FILE)
    folders = [os.path.dirname(path)]
    if os.path.islink(path):
        # A link to a file is in its own folder, and the file in another.
        folders.append(os.path.dirname(os.path.realpath(path)))
    for folder in folders:
        if folder not in outputs_of_folders:
            real_folder = os.path.realpath(folder)
            containing = (
                replaced[above] for above in _identities_from(real_folder) if above in replaced
            )
            outputs_of_folders[folder] = next(containing, None)
        output = output or outputs_of_folders[folder]
    return output


def local_of(location: str) -> str | None:
    """Return the path of a local file or folder from its path or its address; None if it is not
    local.
    """
    if not is_remote(location):
        return location
    scheme, _, rest = location.partition("://")
    return local_path(f"file://{rest}") if scheme.lower() in _LOCAL_SCHEMES else None


def contains(folder: AnyPath, path: AnyPath) -> bool:
    """Return whether a path is a folder, or inside it; the path need not exist."""
    identity = identity_of(folder)
    return identity is not None and identity in _identities_from(os.path.realpath(path))


def _identities_from(path: str) -> Iterator[_Identity]:
    """Yield the identity of a path without links, and of each folder above it, if they exist."""
    while True:
        identity = identity_of(path)
        if identity is not None:
            yield identity
        folder = os.path.dirname(path)
        if folder == path:
            return
        path = folder
