"""Find the files of a path, a folder, a pattern or an address."""

from __future__ import annotations

import difflib
import fnmatch
import os
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import pyarrow.fs as pafs

from neardup.documents.sources import is_remote, local_path, resolve, unreachable
from neardup.errors import InputError
from neardup.files import public_address
from neardup.formats.registry import FORMATS, accepted_suffixes, format_of, why_unreadable
from neardup.settings.constraints import check_path

_MAGIC = re.compile(r"[*?\[]")


Skip = Callable[[str, str], None]
"""A function that is called for each file that a search skips, with its name and the reason."""


class LeftOut:
    """The files that searches left out, each once; it is called as `Skip` is."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, None]] = {}  # by the reason

    def __call__(self, name: str, reason: str) -> None:
        self._names.setdefault(reason, {})[name] = None

    def warnings(self) -> list[str]:
        """Return a sentence for each reason, with the first three names."""
        return [_left_out(reason, list(names)) for reason, names in self._names.items()]


def _left_out(reason: str, names: Sequence[str]) -> str:
    first = ", ".join(names[:3]) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
    return f"Left out {len(names):,} file{'s' * (len(names) > 1)} {reason}: {first}."


Fail = Callable[[str, str], None]
"""A function that is called for each path that cannot be reached, with the reason."""

IsHidden = Callable[[str], bool]
"""Whether a file or folder of a name is left out."""

Describing = Callable[[str, set[str]], set[str]]
"""A function that returns which names in a folder describe a dataset and are no documents."""

HIDDEN = "with a name that begins with ., _ or ~$"
UNKNOWN = "without a known suffix"
NOT_REGULAR = "other than regular files"
DESCRIPTIVE = "as descriptions of a dataset"
UNINSTALLED = "for lack of the extra office (pip install 'neardup[office]')"


class FoundFile(NamedTuple):
    """A file that was found.

    name : as the user would write it, bytes that are not UTF-8 escaped; location : the path or
    address to open; path : normal and absolute; base : the searched folder; is_direct : whether the
    file itself was named; problem : why the path cannot be reached, or "".
    """

    name: str
    location: str
    path: str
    base: str
    is_direct: bool
    problem: str = ""

    def key(self, real_folder: Callable[[str], str]) -> str:
        """Return a string that is equal for all names of a file, links included.

        real_folder : `os.path.realpath`, with a cache: there are few folders for many files.
        """
        # Storage has no links.
        if is_remote(self.location):
            return self.location
        # Most paths are no links: the real path of their folder is enough.
        if os.path.islink(self.path):
            return os.path.realpath(self.path)
        folder, name = os.path.split(self.path)
        return os.path.join(real_folder(folder), name)


def find(
    path: str, format_name: str | None = None, skip: Skip = lambda name, reason: None
) -> list[FoundFile]:
    """Return the files of a path, folder, pattern or address, sorted; then the paths that cannot be
    reached.

    format_name : the format of all files; None to detect it from the suffix and leave out files
    with an unknown suffix. skip : called for each file of a folder or pattern that is left out.

    Raises
    ------
    InputError
        If there is nothing there, or nothing that can be read.
    """
    check_path("An input", path)
    # Addresses of local files are searched with the rules of local paths.
    if is_remote(path) and not path.startswith("file://"):
        return _find_remote(path, format_name, skip)
    return _find_local(path, local_path(path), format_name, skip)


def _find_local(name: str, path: str, format_name: str | None, skip: Skip) -> list[FoundFile]:
    unreachable: dict[str, str] = {}  # path -> reason
    fail = unreachable.__setitem__
    # A folder whose name has special characters is a folder, not a pattern.
    if os.path.isdir(path):
        base = path
        below = _walk(path, _is_hidden, skip, fail, _check_folder)
        found = [os.path.join(path, file) for file in below]
    elif os.path.exists(path):
        return [_find_single(name, path, format_name)]
    # Only now: an existing file named a[1].txt is a file.
    elif _MAGIC.search(path):
        base = _fixed_part(path)
        found = _matching(path, base, skip, fail)
    else:
        raise _missing(name, _neighbours(path))

    readable = _readable(name, found, format_name, skip, unreachable)
    # A reason of "" is a file that can be reached.
    listed = dict.fromkeys(readable, "") | dict(sorted(unreachable.items()))
    base = os.path.abspath(base)
    return [
        FoundFile(
            name=shown(file),
            location=file,
            path=os.path.abspath(file),
            base=base,
            is_direct=False,
            problem=problem,
        )
        for file, problem in listed.items()
    ]


def _find_single(name: str, path: str, format_name: str | None) -> FoundFile:
    """Return the file of a path. Raises InputError if it is not a regular file."""
    if not os.path.isfile(path):
        raise InputError(
            f"Not a regular file: {shown(name)}. Files are read more than once: pipe it in, and "
            "name '-'."
        )
    return _direct(name, path, os.path.abspath(path), format_name)


def _readable(
    name: str,
    found: Sequence[str],
    format_name: str | None,
    skip: Skip,
    unreachable: Mapping[str, str],
) -> list[str]:
    """Return the files whose format is known.

    name : the folder or pattern. unreachable : the reason for each path that cannot be reached.

    Raises
    ------
    InputError
        If there is none.
    """
    readable = []
    for path in found:
        known = format_name or format_of(path)[0]
        if known is None:
            skip(shown(path), UNKNOWN)
        elif format_name is None and not FORMATS[known].is_installed:
            skip(shown(path), UNINSTALLED)
        else:
            readable.append(path)
    if found and not readable:
        # A folder of PDF files: the error names the package.
        _require(found)
    if not readable:
        files = "1 file" if len(found) == 1 else f"{len(found)} files"
        seen = f"{files}, such as {shown(found[0])}" if found else "no file"
        problems = [f"{shown(path)}: {reason}" for path, reason in unreachable.items()]
        raise InputError(
            f"No input in {shown(name)}: {'; '.join([seen, *problems[:3]])}. Known are "
            f"{accepted_suffixes()}. Check the path or the pattern ('**/' searches folders below)."
        )
    return readable


def _require(found: Sequence[str]) -> None:
    """Raise MissingExtraError for the first file whose format needs a package."""
    for path in found:
        known, _ = format_of(path)
        if known is not None:
            FORMATS[known].require(shown(path))


def shown(name: str) -> str:
    """Return a name as text: bytes that are not UTF-8 are escaped, and passwords are left out."""
    text = name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return public_address(text)


def _direct(name: str, location: str, path: str, format_name: str | None) -> FoundFile:
    """Return a file that was named directly; path : normal and absolute."""
    if (format_name or format_of(location)[0]) is None:
        reason = why_unreadable(location)
        if reason is not None:
            raise InputError(f"{shown(name)} cannot be read: {reason}.")
        raise InputError(
            f"Unknown kind of file: {shown(name)} ends with {os.path.splitext(name)[1]!r}. Known "
            f"are {accepted_suffixes()}. Name its format with in_format (--in-format), or rename "
            "the file."
        )
    if format_name is None:
        _require([location])
    return FoundFile(
        name=shown(name),
        location=location,
        path=path,
        base=os.path.dirname(path),
        is_direct=True,
    )


def _walk(
    folder: str,
    is_hidden: IsHidden,
    skip: Skip,
    fail: Fail,
    describing: Describing = lambda folder, names: set(),
    *,
    matches: Callable[[str], object] = lambda path: True,
) -> list[str]:
    """Return the regular files below a folder, sorted, relative to it.

    Each folder is entered once, even if several links lead to it. describing : is called with each
    folder and the names in it; returns the names of files that are no documents. matches : whether
    a relative path with slashes is of the search; other files are not reported either.
    """
    files = []
    entered: set[tuple[int, int]] = set()
    waiting: list[list[str]] = [[]]
    # A stack, because folders may be nested deeper than Python calls.
    while waiting:
        parts = waiting.pop()
        current = os.path.join(folder, *parts)
        entries = _enter(current, entered, fail)
        reasons = _reasons_to_skip(current, entries, is_hidden, describing)
        # The last folder that is appended is entered first: links come last in `entries`, so that a
        # folder is known by its real name.
        for entry in reversed(entries):
            path = [*parts, entry.name]
            kind = _kind_of(entry, fail)
            reason = reasons.get(entry.name)
            if kind == "folder" and reason != HIDDEN:
                waiting.append(path)
            elif not matches("/".join(path)):
                continue
            elif kind == "file" and reason is None:
                files.append(path)
            elif kind in ("file", "other"):
                _leave_out(entry.path, reason, skip, fail)
    return [os.path.join(*path) for path in sorted(files)]


def _reasons_to_skip(
    folder: str, entries: list[os.DirEntry[str]], is_hidden: IsHidden, describing: Describing
) -> dict[str, str]:
    """Return why files and folders are left out, by their names. Raises InputError for a folder
    that is a table of another format.
    """
    names = {entry.name for entry in entries}
    reasons = dict.fromkeys(describing(folder, names), DESCRIPTIVE)
    return reasons | dict.fromkeys(filter(is_hidden, names), HIDDEN)


def _kind_of(entry: os.DirEntry[str], fail: Fail) -> Literal["folder", "file", "other"] | None:
    """Return the kind of an entry; None for a link into a folder that cannot be read."""
    try:
        if entry.is_dir():
            return "folder"
        return "file" if entry.is_file() else "other"
    except OSError as error:
        fail(entry.path, _unlisted(error))
        return None


def _enter(folder: str, entered: set[tuple[int, int]], fail: Fail) -> list[os.DirEntry[str]]:
    """Return the entries of a folder; none if it was entered before or cannot be listed.

    entered : the devices and numbers of the folders entered so far.
    """
    try:
        status = os.stat(folder)
        identity = (status.st_dev, status.st_ino)
        if identity in entered:
            return []
        entries = _entries(folder)
    except OSError as error:
        fail(folder, _unlisted(error))
        return []
    # Only after it was listed: a second link to a folder that failed is tried again.
    entered.add(identity)
    return entries


def _unlisted(error: OSError) -> str:
    return f"the folder cannot be listed: {error.strerror or error}"


def _leave_out(path: str, reason: str | None, skip: Skip, fail: Fail) -> None:
    """Leave out a path for a reason, or because it is neither a file nor a folder; such a path that
    looks like an input counts as lost, not skipped.
    """
    if reason is not None:
        skip(shown(path), reason)
        return
    # `is_file` follows links, so that a link to nothing, or to a device, is no file.
    if os.path.islink(path) and not os.path.exists(path):
        fail(path, "it is a link to nothing that is there")
    elif format_of(path)[0] is not None:
        fail(path, "it is not a regular file")
    else:
        skip(shown(path), NOT_REGULAR)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """Return the entries of a folder by name, links last. Raises OSError."""
    with os.scandir(folder) as found:
        return sorted(found, key=lambda entry: (entry.is_symlink(), entry.name))


def _check_folder(folder: str, names: set[str]) -> set[str]:
    """Return the files of a folder that describe a dataset. Raises InputError for a table of
    another format.
    """
    _refuse_tables(folder, names)
    # Of `datasets`: by `save_to_disk`, and in the older repositories of its hub.
    descriptive = {"dataset_info.json", "dataset_infos.json", "dataset_dict.json"}
    if "dataset_info.json" in names:
        descriptive.add("state.json")
    if ".gitattributes" in names:  # a clone, whose README is the card of the dataset or model
        descriptive |= {"README.md", "LICENSE.md", "LICENSE.txt"}
    return descriptive & names


def _refuse_tables(folder: str, names: set[str]) -> None:
    """Raise InputError if a folder is a table of a format whose files also have removed rows."""
    where = shown(folder)
    if "_delta_log" in names:
        kind = "Delta"
        reader = f"deltalake.DeltaTable({where!r}).to_pyarrow_table()"
    elif ".hoodie" in names:
        kind = "Hudi"
        reader = f"pyarrow.Table.from_batches(hudi.HudiTable({where!r}).read_snapshot())"
    elif "_versions" in names and "data" in names:
        kind = "Lance"
        reader = f"lance.dataset({where!r}).to_table()"
    elif os.path.basename(folder) == "metadata" and any(
        name == "version-hint.text" or name.endswith((".metadata.json", ".metadata.json.gz"))
        for name in names
    ):
        kind = "Iceberg"
        where = shown(os.path.dirname(folder))
        reader = f"duckdb.sql(\"from iceberg_scan('{where}')\")"
    else:
        return
    raise InputError(
        f"{where} is a table of {kind}, whose files also have rows that were removed from it. Read "
        f"it in Python, as in neardup.dedup({reader}). To read all of its files as they are, name "
        f"a pattern: '{where}/**/*.parquet'."
    )


def _matching(pattern: str, fixed: str, skip: Skip, fail: Fail) -> list[str]:
    """Return the regular files that match a pattern, sorted."""
    if "**" in pattern:
        # The fixed part is no pattern: `_walk` returns paths relative to it.
        rest = pattern[len(fixed) :] if fixed != "." else pattern
        matches = expression_of(rest.replace(os.sep, "/")).fullmatch
        # A pattern also names files that begin with "_", unlike a search in a folder.
        below = _walk(fixed, _is_unlisted, skip, fail, matches=matches)
        return below if fixed == "." else [os.path.join(fixed, path) for path in below]
    found = []
    for path in _expand(pattern, fixed, fail):
        if os.path.isfile(path):
            found.append(path)
        elif not os.path.isdir(path):
            _leave_out(path, None, skip, fail)
    return sorted(found)


def _expand(pattern: str, fixed: str, fail: Fail) -> list[str]:
    """Return the paths that match a pattern without `**`, as the module glob does."""
    rest = pattern if fixed == "." else pattern[len(fixed) :]
    folders = ["" if fixed == "." else fixed]
    # Windows has both separators.
    *parts, last = re.split(r"[/\\]" if os.sep == "\\" else "/+", rest)
    for part in parts:
        below = [path for folder in folders for path in _children(folder, part, fail)]
        folders = [path for path in below if os.path.isdir(path)]
    return [path for folder in folders for path in _children(folder, last, fail)]


def _children(folder: str, part: str, fail: Fail) -> list[str]:
    """Return the paths in a folder whose name matches a part of a pattern."""
    if not _MAGIC.search(part):
        path = os.path.join(folder, part)
        return [path] if os.path.lexists(path) else []
    try:
        names = [entry.name for entry in _entries(folder or ".")]
    except OSError as error:
        fail(folder or ".", _unlisted(error))
        return []
    # As in a shell, `*` matches no dot file.
    if not part.startswith("."):
        names = [name for name in names if not _is_unlisted(name)]
    # Windows ignores case.
    matches = re.compile(fnmatch.translate(os.path.normcase(part))).match
    return [os.path.join(folder, name) for name in names if matches(os.path.normcase(name))]


def _is_hidden(name: str) -> bool:
    """Return whether a search in a folder skips a name: all names that a pattern skips and, as in
    Spark and Arrow, `_SUCCESS` and `_delta_log`, but not files of source code such as
    `__init__.py`.
    """
    if _is_unlisted(name):
        return True
    return name.startswith("_") and format_of(name)[0] not in ("code", "notebook")


def _is_unlisted(name: str) -> bool:
    """Return whether a pattern skips a name: dot files, and the locks of open files of Office."""
    return name.startswith((".", "~$"))


def _fixed_part(pattern: str) -> str:
    """Return the folder before the first special character of a pattern."""
    fixed = _MAGIC.split(pattern, maxsplit=1)[0]
    # Whole folders only: "data/a*" is searched in "data/".
    return fixed[: fixed.replace(os.sep, "/").rfind("/") + 1] or "."


def _find_remote(address: str, format_name: str | None, skip: Skip) -> list[FoundFile]:
    folder = _searched_folder(address)
    is_pattern = folder != address
    filesystem, path = resolve(folder)
    try:
        info = filesystem.get_file_info(path)
        if info.type == pafs.FileType.File:
            return [_direct(address, address, _normal(path), format_name)]
        # A pattern whose folder is not there matches nothing, and `_readable` says so.
        if info.type == pafs.FileType.NotFound and not is_pattern:
            raise _missing(address, [])
        below = _list_below(filesystem, path, skip)
    except InputError:
        raise
    except Exception as error:  # the client of each storage raises errors of its own
        raise unreachable(address, error) from error
    if is_pattern:
        matches = expression_of(address[len(folder) :]).fullmatch
        below = [path for path in below if matches(path)]
    readable = _readable(address, below, format_name, skip, {})
    root = folder.rstrip("/") + "/"
    base = _normal(path)
    return [
        FoundFile(
            name=shown(root + path),
            location=root + path,
            path=_normal(f"{base}/{path}"),
            base=base,
            is_direct=False,
        )
        for path in readable
    ]


def _searched_folder(address: str) -> str:
    """Return the folder before the first special character, or the address if it is no pattern."""
    # A web address may contain `?` and `[`, and the web has no folders to search.
    is_web = address.startswith(("http://", "https://"))
    special = None if is_web else _MAGIC.search(address)
    if special is None:
        return address
    return address[: address.rfind("/", 0, special.start()) + 1]


def _list_below(filesystem: Any, path: str, skip: Skip) -> list[str]:
    selector = pafs.FileSelector(path, recursive=True, allow_not_found=True)
    files = [
        info.path for info in filesystem.get_file_info(selector) if info.type == pafs.FileType.File
    ]
    # Arrow gives paths with the bucket, without the scheme.
    start = len(_normal(path).rstrip("/")) + 1
    # By folders, as a local search sorts: "a/b" comes before "a-b".
    below = sorted((_normal(file)[start:] for file in files), key=lambda path: path.split("/"))
    visible = []
    for path in below:
        if any(map(_is_hidden, path.split("/"))):
            skip(path, HIDDEN)
        else:
            visible.append(path)
    return visible


def _normal(path: str) -> str:
    return posixpath.normpath("/" + path.lstrip("/"))


def expression_of(pattern: str) -> re.Pattern[str]:
    """Return the regular expression of a pattern of `*`, `**`, `?` and `[...]`; only `**` crosses
    folders.
    """
    # Every second part is a special one, since `split` also returns the captured separators.
    parts = re.split(r"(\*\*/|\*\*|\*|\?|\[!?\]?[^\]/]*\])", pattern)
    special = {"**/": "(?:[^/]+/)*", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    translated = []
    for index, part in enumerate(parts):
        if index % 2 == 0:
            translated.append(re.escape(part))
        elif part.startswith("["):
            # As in `_children`. The group is followed by an anchor of the end.
            group = fnmatch.translate(part).rpartition(")")[0]
            translated.append(f"(?!/){group})")
        else:
            translated.append(special[part])
    return re.compile("".join(translated))


def _neighbours(path: str) -> list[str]:
    folder = os.path.dirname(path) or "."
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return difflib.get_close_matches(os.path.basename(path), names, n=1, cutoff=0.85)


def _missing(name: str, neighbours: list[str]) -> InputError:
    hint = f" Did you mean {shown(neighbours[0])}?" if neighbours else ""
    hint = hint or " Create an index with `neardup index create`." * name.endswith(".index")
    return InputError(
        f"No such file or folder: {shown(name)}.{hint} Inputs are files, folders, patterns "
        "('data/*.parquet'), addresses such as s3://bucket/data, or - for standard input. Check "
        "the path."
    )
