"""Name the input that each file belongs to, as the user gave it."""

from __future__ import annotations

from collections.abc import Sequence

from neardup.documents.sources import is_remote, local_path
from neardup.runs.find import expression_of, shown
from neardup.runs.run import Source, named_paths


def input_names(source: Source, names: Sequence[str]) -> list[str]:
    """Return the input of each file as it was given: a file, a folder, a pattern or an address.

    names : of the files, or of tables in memory, whose name is their own.
    """
    given = {shown(_searched(path)): shown(path) for path in named_paths(source)}
    files = given.keys() & set(names)
    searched = [path for path in given if path not in files]
    folders = {path: path.rstrip("/") + "/" for path in searched}
    patterns = {path: expression_of(path) for path in searched}

    def input_of(name: str) -> str:
        if name in files:
            return given[name]
        for path in searched:
            if name.startswith(folders[path]) or patterns[path].fullmatch(name):
                return given[path]
        return name

    return [input_of(name) for name in names]


def _searched(path: str) -> str:
    """Return the path or address that the names of its files begin with."""
    is_local = path.startswith("file://") or not is_remote(path)
    return local_path(path) if is_local else path
