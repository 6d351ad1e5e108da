"""List the input files of paths, folders, patterns and addresses."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count

from neardup.documents.sources import is_remote
from neardup.errors import InputError
from neardup.formats.reading import InputFile, UnreachableInput
from neardup.formats.registry import (
    COMPRESSIONS,
    FORMATS,
    UNQUOTED,
    Format,
    compression_of,
    format_of,
    split_name,
)
from neardup.runs.find import FoundFile, Skip, find
from neardup.runs.options import ReadingSettings
from neardup.runs.spool import spool
from neardup.settings.run import Quote, TextUnit

NOT_CODE = "other than source code"
_CODE_FORMATS = ("code", "notebook")
_REMOTE = "remote"
_ENDINGS: dict[str | None, str] = {codec: suffix for suffix, codec in COMPRESSIONS.items()}


def list_inputs(
    paths: Sequence[str],
    *,
    unit: TextUnit = "auto",
    format_name: str | None = None,
    only_code: bool = False,
    quote: Quote = "double",
    skip: Skip = lambda name, reason: None,
) -> list[InputFile]:
    """Return the input files of `paths`, in the order named; within a folder or pattern, sorted.

    Parameters
    ----------
    paths : files, folders (searched to any depth; names that begin with `.` or `_` and unknown
        suffixes are left out), patterns (`*`, `**`, `?`, `[...]`), addresses (`s3://...`), or `-`
        for standard input. A file that is named twice is read once, at its first place.
    unit : for text files: "line", one document per line; "file", one document per file; "auto",
        lines for standard input and for a single text file named directly, files otherwise.
    format_name : the format of all inputs, whatever their names. None: detected from the suffix,
        or from the first bytes of standard input.
    only_code : leave out the other files of folders and patterns if some files are source code, as
        in clones of repositories.
    quote : "none" for CSV and TSV files without quotes.
    skip : called with the name of each file of a folder or pattern that is left out, and the
        reason.

    Raises
    ------
    InputError
        If a path does not exist, a folder or pattern gives no file, or a file has an unknown
        suffix.
    MissingExtraError
        If the storage of an address needs a package that is not installed.
    """
    # Refuse other values before anything is searched; the settings themselves are not used.
    ReadingSettings(text_unit=unit, in_format=format_name, quote=quote)
    # A string is a sequence, too: each character would be a path.
    if isinstance(paths, str) or not paths:
        raise InputError(
            f"Inputs must be a list of at least one path: got {paths!r}. Pass ['data/'], for "
            "example."
        )
    found = find_once(paths, format_name, skip)
    if only_code and format_name is None:
        found = _code_of(found, skip)
    named = [file for file in found if file is not None]
    text_unit = _unit_of_texts(named, format_name) if unit == "auto" else unit
    roots = _common_roots(named)
    files = []
    for file in found:
        if file is None:
            files.append(_piped(unit, format_name))
        else:
            # Names in the output keep the folders of the inputs below their common folder.
            files.append(_input_file(file, text_unit, roots[_volume(file)], format_name))
    if quote == "none":
        files = [replace(file, format=UNQUOTED.get(file.format, file.format)) for file in files]
    return _named_uniquely(files)


def find_once(paths: Sequence[str], format_name: str | None, skip: Skip) -> list[FoundFile | None]:
    """Return each file once, at its first place in the order; None is standard input."""
    found: dict[str, FoundFile | None] = {}  # a dictionary keeps the first order of its keys
    # Of this search only: a later one may find a link to another folder.
    real_folder = lru_cache(maxsize=1024)(os.path.realpath)
    for path in paths:
        if path == "-":
            found.setdefault("-", None)
        else:
            for file in find(path, format_name, skip):
                found.setdefault(file.key(real_folder), file)
    return list(found.values())


def _code_of(found: Sequence[FoundFile | None], skip: Skip) -> list[FoundFile | None]:
    """Return the files without the other ones of folders, if there is source code in folders."""
    in_folders = [file for file in found if file and not (file.is_direct or file.problem)]
    others = [file for file in in_folders if not _is_code(file)]
    if len(others) == len(in_folders):
        return list(found)
    for file in others:
        skip(file.name, NOT_CODE)
    left_out = set(others)
    return [file for file in found if file not in left_out]


def _is_code(file: FoundFile) -> bool:
    return format_of(file.name)[0] in _CODE_FORMATS


def _unit_of_texts(files: Sequence[FoundFile], format_name: str | None) -> str:
    """Return "line" if the only text file is named directly, or "file"."""
    readable = [file for file in files if not file.problem]
    texts = [file for file in readable if _format_of(file, format_name)[0].unit == "auto"]
    # A single file in a folder or pattern is a document: others may join it.
    return "line" if len(texts) == 1 and texts[0].is_direct else "file"


def _piped(unit: str, requested: str | None) -> InputFile:
    """Return standard input as a file."""
    copy = spool(requested)
    known = FORMATS[copy.format]
    ending = _ENDINGS.get(copy.source.compression, "")
    return InputFile(
        name=copy.source.name,
        location=copy.source.location,
        compression=copy.source.compression,
        format=copy.format,
        # Standard input is one file, named directly.
        unit=_unit(known, "line" if unit == "auto" else unit),
        relative_name=f"stdin{known.suffixes[0]}{ending}",
        version=copy.version,
    )


def _input_file(file: FoundFile, text_unit: str, root: str, requested: str | None) -> InputFile:
    """Return a file that was found as an input; root : the folder that its name is relative to."""
    # `relpath` would look up the working directory and make both paths absolute for each file.
    separator = "/" if is_remote(file.location) else os.sep
    below = file.path.removeprefix(root).lstrip(separator)
    relative_name = below.replace(os.sep, "/")
    if file.problem:
        return UnreachableInput(
            name=file.name,
            location=file.location,
            format="unreachable",
            unit="file",
            relative_name=relative_name,
            reason=file.problem,
        )
    known, compression = _format_of(file, requested)
    return InputFile(
        name=file.name,
        location=file.location,
        compression=compression,
        format=known.name,
        unit=_unit(known, text_unit),
        relative_name=relative_name,
        below=file.path.removeprefix(file.base).lstrip(separator).replace(os.sep, "/"),
    )


def _format_of(file: FoundFile, requested: str | None) -> tuple[Format, str | None]:
    """Return the format of a file, requested or by its suffix, and its compression."""
    if requested is not None:
        return FORMATS[requested], compression_of(file.name)
    format_name, compression = format_of(file.name)
    assert format_name is not None  # find() leaves unknown suffixes out
    return FORMATS[format_name], compression


def _unit(known: Format, text_unit: str) -> str:
    """Return the unit of a format: its own, or `text_unit` for a format of plain text."""
    return text_unit if known.unit == "auto" else known.unit


def _volume(file: FoundFile) -> str:
    """Return the drive of a local file, empty except on Windows; _REMOTE for a remote file."""
    # Drives of Windows are named in either case.
    return _REMOTE if is_remote(file.location) else os.path.splitdrive(file.base)[0].casefold()


def _common_roots(found: list[FoundFile]) -> dict[str, str]:
    """Return the common folder of all remote files, and of the local files of each drive."""
    bases: dict[str, list[str]] = {}
    for file in found:
        bases.setdefault(_volume(file), []).append(file.base)
    # Addresses have slashes on Windows, too.
    paths = {volume: posixpath if volume == _REMOTE else os.path for volume in bases}
    return {volume: paths[volume].commonpath(folders) for volume, folders in bases.items()}


def _named_uniquely(files: list[InputFile]) -> list[InputFile]:
    """Return the files with unique names in the output.

    A local and a remote file may have the same name relative to their roots.
    """
    taken = set()
    unique = []
    for file in files:
        name = file.relative_name
        if name in taken:
            # The number comes before all suffixes: a-2.jsonl.gz.
            stem, _, _ = split_name(name)
            suffix = name[len(stem) :]
            copies = (f"{stem}-{number}{suffix}" for number in count(2))
            name = next(copy for copy in copies if copy not in taken)
            file = replace(file, relative_name=name)
        taken.add(name)
        unique.append(file)
    return unique
