"""The registry of file formats: how a file is recognised, and the module that reads and writes it.

To add a format, write a module with a `HANDLER` and register a `Format` that names it. The module
is imported when the first file of the format is opened, so that finding files and showing help load
no reader.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from neardup.arrays import Integers
    from neardup.documents.batch import Columns, DocumentBatch, Payload, Reject
    from neardup.documents.nested import ColumnTypes
    from neardup.documents.sinks import Sink
    from neardup.documents.sources import Source, Stretch


class Read(Protocol):
    """Yields the documents of a file in order; calls `reject` once for each row left out."""

    def __call__(
        self, file: Source, columns: Columns, reject: Reject, /, *, with_payload: bool = False
    ) -> Iterator[DocumentBatch]:
        """Return the batches. Damage in the file is rejected; CannotOpen is raised if the file is
        gone.
        """
        ...


class Handler(NamedTuple):
    """The functions that read and write the files of a format.

    read : yields the documents.
    make_sink : returns how kept payloads of a file are written to a local path, in the layout of
        the file. Raises pa.ArrowException or OSError if the file is too damaged to have a layout.
    column_types : name and type of each column; None for a format without columns. As `num_rows`,
        it may raise what a file raises that is empty, damaged or gone.
    num_rows : the number of rows, if known without reading the file.
    read_table : all rows as a table, the columns named second as strings; None for a format without
    columns. replace_texts : as `InputFile.replace_texts`; None if the text of a document cannot be
    replaced in its payload. stretches : those that `read` can read of a file, its `stretch`: rows
    and bytes count from its begin, and its end is
        noted in it. It may raise as `column_types`; none where a file is read whole.
    """

    read: Read
    make_sink: Callable[[Source], Callable[[str], Sink]]
    column_types: Callable[[Source], ColumnTypes | None] = lambda file: None
    num_rows: Callable[[Source], int | None] = lambda file: None
    read_table: Callable[[Source, Sequence[str]], pa.Table] | None = None
    replace_texts: Callable[[DocumentBatch, str, Integers, pa.LargeStringArray], Payload] | None = (
        None
    )
    stretches: Callable[[Source], list[Stretch]] = lambda file: []


@dataclass(frozen=True)
class Format:
    """A file format.

    suffixes : of its files, in lower case; the first is the usual one.
    module : full name of the module that has the format's `HANDLER`.
    contents : "text" in UTF-8; "binary", compressed inside and never as a whole; or web "pages",
    whose text is HTML. unit : of a document: "row"; "file"; "auto" if the user chooses between a
    line and a file. magic : a regular expression that matches the first bytes, for standard input;
    None if nothing distinguishes it.
    """

    name: str
    suffixes: tuple[str, ...]
    module: str
    contents: Literal["text", "binary", "pages"] = "text"
    unit: Literal["row", "file", "auto"] = "row"
    magic: bytes | None = None

    @property
    def handler(self) -> Handler:
        """The functions of the format; imports its module."""
        # `import_module` takes locks, for each of many files. Another thread may be in the middle
        # of the module.
        known: Handler | None = getattr(sys.modules.get(self.module), "HANDLER", None)
        handler: Handler = known or import_module(self.module).HANDLER
        return handler


FORMATS: dict[str, Format] = {}
"""Every registered format by name, in the order in which their suffixes and magic bytes are tried.
"""

COMPRESSIONS: dict[str, str] = {".gz": "gzip", ".zst": "zstd", ".bz2": "bz2", ".xz": "xz"}
"""Suffix -> name of the compression of a whole file."""

_BY_SUFFIX: dict[str, Format] = {}
"""The format of each suffix: a folder of many files asks for all of their names."""


def register(new: Format) -> None:
    """Add a format, or replace the one of that name."""
    FORMATS[new.name] = new
    _BY_SUFFIX.clear()
    for known in FORMATS.values():
        for suffix in known.suffixes:
            _BY_SUFFIX.setdefault(suffix, known)


_HERE = "neardup.formats."
register(Format("parquet", (".parquet", ".pq"), _HERE + "parquet", "binary", magic=b"PAR1"))
register(
    Format(
        "arrow",
        (".arrow", ".feather", ".ipc"),
        _HERE + "arrow_ipc",
        "binary",
        magic=rb"ARROW1|\xff\xff\xff\xff",
    )
)
register(
    Format(
        "jsonl", (".jsonl", ".ndjson", ".json"), _HERE + "jsonl", magic=rb"(?:\xef\xbb\xbf)?\s*\{"
    )
)
register(Format("csv", (".csv",), _HERE + "delimited"))
register(Format("tsv", (".tsv",), _HERE + "delimited"))
register(Format("text", (".txt", ".text", ".md"), _HERE + "plain", unit="auto"))
_CODE = (
    ".py .pyi .pyx .js .jsx .mjs .cjs .ts .tsx .java .kt .scala .c .h .cc .cpp .cxx .hh .hpp "
    ".cu .cs .m .mm .go .rs "
    ".rb .php .swift .dart .zig .nim .jl .r .pl .pm .lua .sh .bash .sql .hs .ml .fs .clj .ex "
    ".exs .erl .f90 .vue"
)
register(Format("code", tuple(_CODE.split()), _HERE + "plain", unit="file"))
register(Format("notebook", (".ipynb",), _HERE + "notebook", unit="file"))
_HTML = rb"(?:\xef\xbb\xbf)?\s*<(?i:!doctype\s+html|html)[\s>]"
register(
    Format(
        "html", (".html", ".htm", ".xhtml"), _HERE + "html_files", "pages", unit="file", magic=_HTML
    )
)
register(Format("warc", (".warc",), _HERE + "warc", "pages", magic=rb"WARC/1\."))


def split_name(name: str) -> tuple[str, str | None, str | None]:
    """Return a file's name without its suffixes, its format and its compression.

    Examples
    --------
    >>> split_name("corpus/part-1.jsonl.gz")
    ('corpus/part-1', 'jsonl', 'gzip')
    >>> split_name("notes")
    ('notes', None, None)
    """
    stem, compression = name, compression_of(name)
    if compression is not None:
        stem = name[: name.rfind(".")]
    last_dot = stem.rfind(".")
    for dot in (stem.rfind(".", 0, max(0, last_dot)), last_dot):  # a suffix has one dot or two
        known = _BY_SUFFIX.get(stem[dot:].lower())
        if dot >= 0 and known is not None and (compression is None or known.contents != "binary"):
            return stem[:dot], known.name, compression
    return name, None, None


def format_of(name: str) -> tuple[str | None, str | None]:
    """Return format and compression by the suffixes of a path, or of an address without its
    query.
    """
    _, format_name, compression = split_name(
        name.split("?", 1)[0] if name.startswith("http") else name
    )
    return format_name, compression


def compression_of(name: str) -> str | None:
    """Return the compression by a file's last suffix."""
    return COMPRESSIONS.get(name[name.rfind(".") :].lower()) if "." in name else None


def format_of_bytes(head: bytes) -> str | None:
    """Return the format whose magic bytes a file begins with; None if there is none."""
    return next(
        (known.name for known in FORMATS.values() if known.magic and re.match(known.magic, head)),
        None,
    )


def accepted_suffixes() -> str:
    """Return the list of readable suffixes, for messages."""
    plain = ", ".join(
        suffix for known in FORMATS.values() for suffix in known.suffixes if known.name != "code"
    )
    code = f"source code such as {', '.join(FORMATS['code'].suffixes[:3])}"
    return f"{plain}, {code}; lines, tables of text and pages also with {', '.join(COMPRESSIONS)}"
