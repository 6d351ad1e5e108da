"""Name the input that each file belongs to, as the user gave it."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from neardup.documents.sources import is_remote, local_path
from neardup.runs.find import shown
from neardup.runs.run import Source, named_paths


def input_names(source: Source, names: Sequence[str]) -> list[str]:
    """Return the input of each file as it was given: a file, a folder, a pattern or an address.

    names : of the files, or of tables in memory, whose name is their own.
    """
    given = {shown(_searched(path)): path for path in named_paths(source)}
    files = given.keys() & set(names)
    folders = [(prefix.rstrip("/") + "/", shown(path)) for prefix, path in given.items()]
    folders = [(prefix, path) for prefix, path in folders if prefix.rstrip("/") not in files]

    def input_of(name: str) -> str:
        if name in files:
            return shown(given[name])
        for prefix, path in folders:
            if name.startswith(prefix) or fnmatch.fnmatchcase(name, path):
                return path
        return name

    return [input_of(name) for name in names]


def _searched(path: str) -> str:
    """Return the path or address that the names of its files begin with."""
    is_local = path.startswith("file://") or not is_remote(path)
    return local_path(path) if is_local else path
