"""Finding files: what a path, a folder, a pattern or an address stands for."""

from __future__ import annotations

import difflib
import glob
import os
import posixpath
import re
from typing import Any, NamedTuple

import pyarrow.fs as pafs

from neardup.documents.input_file import format_of
from neardup.documents.sources import is_remote, local_path, resolve
from neardup.errors import InputError
from neardup.formats import accepted_suffixes

_MAGIC = re.compile(r"[*?\[]")


class Found(NamedTuple):
    """A file that was found.

    name : as the user would write it; location : what is opened; path : normal and absolute; base : the
    folder named, above it; is_direct : whether the file itself was named.
    """

    name: str
    location: str
    path: str
    base: str
    is_direct: bool

    @property
    def key(self) -> str:
        """Equal for the same file, however it was named."""
        return self.location if is_remote(self.location) else self.path


def find(path: str) -> list[Found]:
    """Return the files that a path, folder, pattern or address stands for, sorted.

    Raises
    ------
    InputError
        If there is nothing there, or nothing that can be read.
    """
    if is_remote(path) and not path.startswith("file://"):
        return _find_remote(path)
    return _find_local(path, local_path(path))


def _find_local(name: str, path: str) -> list[Found]:
    if os.path.isdir(path):
        base = os.path.abspath(path)
        below = [os.path.relpath(file, path) for file in _walk(path)]
        found = [os.path.join(path, one) for one in sorted(below, key=lambda one: one.split(os.sep))]
    elif os.path.exists(path):
        return [_direct(name, path)]
    elif _MAGIC.search(path):
        base = os.path.abspath(_fixed_part(path))
        found = sorted(one for one in glob.glob(path, recursive=True) if os.path.isfile(one))
    else:
        raise _missing(name, _neighbours(path))
    readable = [one for one in found if format_of(one)[0] is not None]
    if not readable:
        raise _nothing_readable(name, found)
    return [Found(one, one, os.path.abspath(one), base, False) for one in readable]


def _direct(name: str, path: str) -> Found:
    if not os.path.isfile(path):
        raise InputError(f"Not a regular file: {name}. Files are read more than once: pipe it in, and name '-'.")
    if format_of(path)[0] is None:
        raise _unknown_suffix(name)
    absolute = os.path.abspath(path)
    return Found(name, path, absolute, os.path.dirname(absolute), True)


def _walk(folder: str) -> list[str]:
    files = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [one for one in folders if not _is_hidden(one)]
        files += [os.path.join(parent, one) for one in names if not _is_hidden(one)]
    return files


def _is_hidden(name: str) -> bool:
    """Whether a search passes over a name: dot files, and as in Spark and Arrow `_SUCCESS`, `_delta_log`."""
    return name.startswith((".", "_"))


def _fixed_part(pattern: str) -> str:
    """Return the folder before the first special character of a pattern."""
    match = _MAGIC.search(pattern)
    fixed = pattern[: match.start()] if match else pattern
    return fixed[: fixed.replace(os.sep, "/").rfind("/") + 1] or "."


def _find_remote(address: str) -> list[Found]:
    # A web address may hold `?` and `[`, and the web has no folders to search.
    pattern = None if address.startswith(("http://", "https://")) else _MAGIC.search(address)
    folder = address[: address.rfind("/", 0, pattern.start()) + 1] if pattern else address
    filesystem, path = resolve(folder)
    try:
        info = filesystem.get_file_info(path)
        if info.type == pafs.FileType.File:
            if format_of(address)[0] is None:
                raise _unknown_suffix(address)
            full = _normal(path)
            return [Found(address, address, full, posixpath.dirname(full), True)]
        if info.type == pafs.FileType.NotFound and not pattern:
            raise _missing(address, [])
        below = _list_below(filesystem, path)
    except OSError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"Cannot list {address}: {error}. Check the address and the access rights.") from error
    if pattern:
        matches = re.compile(_regular_expression(address[len(folder) :])).fullmatch
        below = [one for one in below if matches(one)]
    readable = [one for one in below if format_of(one)[0] is not None]
    if not readable:
        raise _nothing_readable(address, below)
    root = folder.rstrip("/") + "/"
    base = _normal(path)
    return [Found(root + one, root + one, _normal(f"{base}/{one}"), base, False) for one in readable]


def _list_below(filesystem: Any, path: str) -> list[str]:
    selector = pafs.FileSelector(path, recursive=True, allow_not_found=True)
    files = [info.path for info in filesystem.get_file_info(selector) if info.type == pafs.FileType.File]
    start = len(_normal(path).rstrip("/")) + 1
    below = [_normal(one)[start:] for one in files]
    return sorted((one for one in below if not any(map(_is_hidden, one.split("/")))), key=lambda one: one.split("/"))


def _normal(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


def _regular_expression(pattern: str) -> str:
    """Translate a pattern of `*`, `**`, `?` and `[...]`; only `**` crosses folders."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\])", pattern)
    special = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    translated = []
    for index, part in enumerate(parts):
        if index % 2 == 0:
            translated.append(re.escape(part))
        elif part.startswith("["):
            inside = part[1:-1].replace("\\", "\\\\").replace("[", "\\[")
            translated.append(f"[{'^' + inside[1:] if inside.startswith('!') else inside}]")
        else:
            translated.append(special[part])
    return "".join(translated)


def _neighbours(path: str) -> list[str]:
    folder = os.path.dirname(path) or "."
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return difflib.get_close_matches(os.path.basename(path), names, n=1)


def _missing(name: str, neighbours: list[str]) -> InputError:
    hint = f" Did you mean {neighbours[0]}?" if neighbours else ""
    return InputError(
        f"No such file or folder: {name}.{hint} Inputs are files, folders, patterns ('data/*.parquet'), "
        "addresses such as s3://bucket/data, or - for standard input. Check the path."
    )


def _unknown_suffix(name: str) -> InputError:
    suffix = os.path.splitext(name)[1]
    return InputError(
        f"Unknown kind of file: {name} ends with {suffix!r}. Known are {accepted_suffixes()}. "
        f"Rename the file, or pipe it in (neardup dedup - < {os.path.basename(name)})."
    )


def _nothing_readable(name: str, found: list[str]) -> InputError:
    seen = f"{len(found)} files, such as {found[0]}" if found else "no file"
    return InputError(
        f"No input in {name}: {seen}. Known are {accepted_suffixes()}. "
        "Check the path or the pattern ('**/' searches folders below)."
    )
