"""The registry of file formats: the names and first bytes of their files, and their modules.

To add a format, write a module with a `HANDLER` and register a `Format` that names it. The module
is imported when the first file of the format is opened: finding files and showing help load no
reader.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from neardup.errors import MissingExtraError

if TYPE_CHECKING:
    import pyarrow as pa

    from neardup.arrays import Integers
    from neardup.documents.batch import Columns, DocumentBatch, Payload, Reject
    from neardup.documents.nested import ColumnTypes
    from neardup.documents.sinks import Sink
    from neardup.documents.sources import Source, Stretch
    from neardup.documents.turns import Turns


class Read(Protocol):
    """Yields the documents of a file in order; calls `reject` once for each row left out."""

    def __call__(
        self, file: Source, columns: Columns, reject: Reject, /, *, with_payload: bool = False
    ) -> Iterator[DocumentBatch]:
        """Return the batches. Damage in the file is rejected.

        Raises
        ------
        CannotOpen
            If the file is gone.
        """
        ...


class Widening(NamedTuple):
    """The functions that write rows with further columns.

    make_sink : like `Handler.make_sink`, with the schema of the further columns as second argument.
    append : returns a payload with the values of the further columns.
    """

    make_sink: Callable[[Source, pa.Schema], Callable[[str], Sink]]
    append: Callable[[Payload, pa.RecordBatch], Payload]


class Handler(NamedTuple):
    """The functions that read and write the files of a format.

    read : yields the documents.
    make_sink : returns the function that opens a local path to write kept payloads, in the layout
        of a file. Raises pa.ArrowException or OSError if the file is too damaged to have a layout.
    column_types : returns name and type of each column; None for a format without columns. Like
        `num_rows`, it may raise the errors of an empty, damaged or missing file.
    num_rows : returns the number of rows; None if it is unknown without reading the file.
    read_table : returns all rows as a table; the columns of the second argument are read as
        strings. None for a format without columns.
    replace_texts : see `InputFile.replace_texts`; None if the text of a document cannot be replaced
        in its payload.
    turns_of : see `InputFile.turns_of`; None if payloads are rows of a table, or have no turns.
    stretches : returns the stretches of a file, which `read` reads one by one (`Source.stretch`);
        an empty list if a file is read whole. `read` counts rows and bytes from the start of the
        stretch, and sets its `reached`. May raise the same errors as `column_types`.
    widening : the functions that add columns to the rows; None if rows cannot get further columns.
    """

    read: Read
    make_sink: Callable[[Source], Callable[[str], Sink]]
    column_types: Callable[[Source], ColumnTypes | None] = lambda file: None
    num_rows: Callable[[Source], int | None] = lambda file: None
    read_table: Callable[[Source, Sequence[str]], pa.Table] | None = None
    replace_texts: (
        Callable[[DocumentBatch, str, Integers, pa.LargeStringArray | Turns], Payload] | None
    ) = None
    turns_of: Callable[[DocumentBatch, str, Sequence[str], Integers], Turns | None] | None = None
    stretches: Callable[[Source], list[Stretch]] = lambda file: []
    widening: Widening | None = None


@dataclass(frozen=True)
class Format:
    """A file format.

    suffixes : the suffixes of its files, in lower case, the usual suffix first.
    module : full name of the module that has the format's `HANDLER`.
    contents : "text" in UTF-8; "binary", compressed inside and never as a whole; "mail", in any
        encoding; or web "pages", whose text is HTML.
    unit : the extent of a document: "row"; "file"; "message", a part of a file whose id is the path
        with the row; "auto" if the user chooses between a line and a file.
    magic : a regular expression that matches the first bytes, for standard input; None if the first
        bytes distinguish nothing.
    package : the name of a module that reads its files, from the extra `office`; None if none is
        needed.
    """

    name: str
    suffixes: tuple[str, ...]
    module: str
    contents: Literal["text", "binary", "mail", "pages"] = "text"
    unit: Literal["row", "file", "message", "auto"] = "row"
    magic: bytes | None = None
    package: str | None = None

    @property
    def handler(self) -> Handler:
        """The functions of the format; imports its module."""
        # `import_module` takes locks, too slow for each of many files. Without HANDLER, another
        # thread is in the middle of the import.
        known: Handler | None = getattr(sys.modules.get(self.module), "HANDLER", None)
        handler: Handler = known or import_module(self.module).HANDLER
        return handler

    @property
    def is_installed(self) -> bool:
        """True if the package that it needs is installed."""
        return self.package is None or _is_installed(self.package)

    def require(self, name: str) -> None:
        """Raise MissingExtraError if the package that it needs is not installed. name : a file."""
        if not self.is_installed:
            raise MissingExtraError(
                f"{name} needs the package {self.package}, which is not installed. Install it: pip "
                'install "neardup[office]".'
            )


@cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


FORMATS: dict[str, Format] = {}
"""Every registered format by name, in the order in which their suffixes and magic bytes are tried.
"""

COMPRESSIONS: dict[str, str] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz"}
"""Suffix -> name of the compression of a whole file."""

_BY_SUFFIX: dict[str, Format] = {}
"""The format of each suffix; a folder of many files looks up all of their names."""


def register(new: Format) -> None:
    """Add a format, or replace the format of the same name."""
    FORMATS[new.name] = new
    # Of formats with the same suffix, the first registered counts.
    _BY_SUFFIX.clear()
    for known in FORMATS.values():
        for suffix in known.suffixes:
            _BY_SUFFIX.setdefault(suffix, known)


_HERE = "neardup.formats."
register(
    Format("parquet", (".parquet", ".pq"), _HERE + "parquet", contents="binary", magic=b"PAR1")
)
# An Arrow file begins with its name, an Arrow stream with the mark of a message.
register(
    Format(
        "arrow",
        (".arrow", ".feather", ".ipc"),
        _HERE + "arrow_ipc",
        contents="binary",
        magic=rb"ARROW1|\xff\xff\xff\xff",
    )
)
register(
    Format(
        "jsonl",
        (".jsonl", ".ndjson", ".json"),
        _HERE + "jsonl",
        # A JSON text sequence (RFC 7464) has a separator before each record.
        magic=rb"(?:\xef\xbb\xbf)?[\s\x1e]*\{",
    )
)
register(Format("csv", (".csv",), _HERE + "delimited"))
register(Format("tsv", (".tsv",), _HERE + "delimited"))
UNQUOTED = {"csv": "csv-unquoted", "tsv": "tsv-unquoted"}
"""The formats of the same files without quotes, which their suffixes do not show."""
register(Format(UNQUOTED["csv"], (".csv",), _HERE + "delimited"))
register(Format(UNQUOTED["tsv"], (".tsv",), _HERE + "delimited"))
register(Format("text", (".txt", ".text", ".md"), _HERE + "plain", unit="auto"))
_CODE = (
    ".py .pyi .pyx .js .jsx .mjs .cjs .ts .tsx .java .kt .scala .c .h .cc .cpp .cxx .hh .hpp .cu "
    ".cs .m .mm .go .rs .rb .php .swift .dart .zig .nim .jl .r .pl .pm .lua .sh .bash .sql .hs .ml "
    ".fs .clj .ex .exs .erl .f90 .vue"
)
register(Format("code", tuple(_CODE.split()), _HERE + "plain", unit="file"))
register(Format("notebook", (".ipynb",), _HERE + "notebook", unit="file"))
_HTML = rb"(?:\xef\xbb\xbf)?\s*<(?i:!doctype\s+html|html)[\s>]"
register(
    Format(
        "html",
        (".html", ".htm", ".xhtml"),
        _HERE + "html_files",
        contents="pages",
        unit="file",
        magic=_HTML,
    )
)
register(Format("warc", (".warc",), _HERE + "warc", contents="pages", magic=rb"WARC/(?:1\.|0\.1)"))
# A WET file begins as a WARC file does, so standard input is taken for WARC.
register(Format("wet", (".wet", ".warc.wet"), _HERE + "wet"))
_FIRST_MEMBER = {
    # Also of other files of Office, which the reader refuses by name.
    "docx": rb"(?:\[Content_Types\]\.xml|_rels/|docProps/|word/)",
    "odt": rb"mimetypeapplication/vnd\.oasis\.opendocument\.text",  # also a template
    "epub": rb"mimetypeapplication/epub\+zip",
}
"""Name and content of the first member of a package, after the 30 bytes of its header."""
_PACKAGE_SUFFIXES = {
    # With macros, which are left out, and templates.
    "docx": (".docx", ".docm", ".dotx", ".dotm"),
    "odt": (".odt", ".ott"),
    "epub": (".epub",),
}
for _name, _member in _FIRST_MEMBER.items():
    register(
        Format(
            _name,
            _PACKAGE_SUFFIXES[_name],
            _HERE + _name,
            contents="binary",
            unit="file",
            magic=rb"PK\x03\x04(?s:.{26})" + _member,
        )
    )
register(
    Format(
        "pdf",
        (".pdf",),
        _HERE + "pdf",
        contents="binary",
        unit="file",
        magic=b"%PDF-",
        package="pypdfium2",
    )
)
register(Format("eml", (".eml",), _HERE + "mail", contents="mail", unit="file"))
register(
    Format(
        "mbox",
        (".mbox",),
        _HERE + "mail",
        contents="mail",
        unit="message",
        # With the day of the week: a text may begin with "From ", too.
        magic=rb"(?:\xef\xbb\xbf)?From \S+ +(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) [A-Z][a-z][a-z] ",
    )
)

_UNREADABLE = {
    ".arc": "it is an ARC file, the format before WARC. Convert it: warcio recompress FILE.arc.gz "
    "FILE.warc.gz",
    ".wat": "it is a WAT file, which has metadata of pages and no texts. Read the .wet or the "
    ".warc file of its name",
}
"""The suffixes of formats that are not read, and the reason with the next step."""


class SplitName(NamedTuple):
    """A file's name without its suffixes, its format, and its compression.

    format, compression : None if no suffix names one.
    """

    stem: str
    format: str | None
    compression: str | None


def split_name(name: str) -> SplitName:
    """Return a file's name without its suffixes, its format and its compression.

    Examples
    --------
    >>> split_name("corpus/part-1.jsonl.gz")
    SplitName(stem='corpus/part-1', format='jsonl', compression='gzip')
    >>> split_name("notes")
    SplitName(stem='notes', format=None, compression=None)
    """
    compression = compression_of(name)
    stem = _without_compression(name)
    last_dot = stem.rfind(".")
    last_but_one = stem.rfind(".", 0, max(0, last_dot))
    for dot in (last_but_one, last_dot):  # a suffix has one dot or two
        if dot < 0:
            continue
        known = _BY_SUFFIX.get(stem[dot:].lower())
        # A binary format is never compressed as a whole.
        if known is not None and (compression is None or known.contents != "binary"):
            return SplitName(stem=stem[:dot], format=known.name, compression=compression)
    return SplitName(stem=name, format=None, compression=None)


def format_of(name: str) -> tuple[str | None, str | None]:
    """Return format and compression by the suffixes of a path or an address.

    The query of an address does not count.
    """
    # Of storages such as S3, a question mark is part of the key.
    is_web = name.lower().startswith(("http://", "https://"))
    without_query = name.split("?", 1)[0] if is_web else name
    split = split_name(without_query)
    return split.format, split.compression


def why_unreadable(name: str) -> str | None:
    """Return why a format that is known by its suffix is not read, and the next step."""
    stem = _without_compression(name)
    return _UNREADABLE.get(stem[max(0, stem.rfind(".")) :].lower())


def _without_compression(name: str) -> str:
    """Return a name without the suffix of its compression."""
    return name if compression_of(name) is None else name[: name.rfind(".")]


def compression_of(name: str) -> str | None:
    """Return the compression by a file's last suffix."""
    return COMPRESSIONS.get(name[name.rfind(".") :].lower()) if "." in name else None


def format_of_bytes(head: bytes) -> str | None:
    """Return the format with the magic bytes at the beginning of a file; None if there is none."""
    for known in FORMATS.values():
        if known.magic and re.match(known.magic, head):
            return known.name
    return None


def accepted_suffixes() -> str:
    """Return the list of readable suffixes, for messages."""
    plain = ", ".join(suffix for suffix, known in _BY_SUFFIX.items() if known.name != "code")
    code = f"source code such as {', '.join(FORMATS['code'].suffixes[:3])}"
    return f"{plain}, {code}; lines, tables of text and pages also with {', '.join(COMPRESSIONS)}"
