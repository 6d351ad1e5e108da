"""Read packages, ZIP files of XML: .docx, .odt and .epub. Only the standard library is needed.

A package comes from anybody. The number of its members is bounded before they are listed, and the
bytes that they expand to while they are read. Entities of XML are refused, external ones are never
fetched. An open element costs a counter here and a hundred bytes in expat, so depth is bounded.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from xml.parsers import expat

from neardup.arrays import arrow_of_strings
from neardup.documents.batch import Columns, DocumentBatch, Reject
from neardup.documents.limits import check_expansion
from neardup.documents.lines import STREAM_ERRORS
from neardup.documents.sources import Source
from neardup.formats.whole_files import batch_of_file, read_data, rejected_file

MAX_FILE_BYTES = 256 << 20
"""A longer file is rejected. Most of a long one are images."""
MAX_MEMBERS = 50_000
"""Members of a package; a picture is one."""
MAX_XML_BYTES = 128 << 20
"""Decompressed bytes of the members that are read, without images."""
MAX_DEPTH = 10_000
"""Open elements; real documents have less than a hundred."""
MAX_LISTED = 2 * MAX_MEMBERS
"""Elements of a list of members."""
_PIECE_BYTES = 1 << 20  # the parser reads an unfinished tag again with each piece

_MEMBER_MAGIC = b"PK\x01\x02"  # of an entry in the list of members
_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"  # of the files of Office before 2007
_ENCRYPTED_STREAM = "EncryptedPackage".encode("utf-16-le")  # MS-OFFCRYPTO, section 2.3.4.4
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_IS_ENCRYPTED = 1  # bit of a member's flags


class Unreadable(Exception):
    """A file has no text that can be read; the message has the reason."""


_DAMAGE = (
    *STREAM_ERRORS,
    zipfile.BadZipFile,
    expat.ExpatError,
    LookupError,  # an encoding that is unknown
    ValueError,
    OverflowError,  # of zipfile: an offset of 64 bits
    NotImplementedError,  # of zipfile: a compression or a version that it does not know
)


def read_file(
    source: Source,
    columns: Columns,
    reject: Reject,
    *,
    text_of: Callable[[bytes], str],
    with_payload: bool = False,
) -> Iterator[DocumentBatch]:
    """Yield a file as one document, or reject it; its id, if wanted, is its path.

    text_of : returns the text in the bytes of the file. Raises Unreadable, or an error of damage.
    """
    data = read_data(source, reject, MAX_FILE_BYTES)
    if data is None:
        return
    try:
        # Damage may leave lone surrogates, which are not Unicode text.
        text = text_of(data).encode("utf-8", "replace").decode()
    except Unreadable as error:
        reject(rejected_file(source, str(error)))
        return
    except _DAMAGE as error:
        reject(rejected_file(source, f"the file is damaged: {error}"))
        return
    has_id = columns.id is not None
    texts = arrow_of_strings([text])
    yield batch_of_file(source, data, texts, with_id=has_id, with_payload=with_payload)


class Package:
    """The members of a ZIP file, read within the limits.

    Raises Unreadable if the bytes are no ZIP file or have too many members.
    """

    def __init__(self, data: bytes) -> None:
        if data.startswith(_OLE_MAGIC):
            raise Unreadable(_why_not_zip(data))
        # Listing members takes ten times the memory of their entries. Counted are at least as many.
        if data.count(_MEMBER_MAGIC) > MAX_MEMBERS:
            raise Unreadable(f"it has more than {MAX_MEMBERS:,} members, the most that are read")
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except zipfile.BadZipFile as error:
            raise Unreadable(f"it is damaged, or no file of its suffix: {error}") from error
        self._compressed_bytes = len(data)
        self._num_bytes = 0

    def __contains__(self, name: str) -> bool:
        return name in self._zip.NameToInfo

    def pieces(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a member.

        Raises
        ------
        Unreadable
            If the member is missing, encrypted, or compressed by another method than deflate.
        OSError
            If the members read so far expand too much.
        """
        info = self._zip.NameToInfo.get(name)
        if info is None:
            raise Unreadable(f"it has no member {name:.200}")
        if info.flag_bits & _IS_ENCRYPTED:
            raise encrypted()
        # A file may ask the decompressor of LZMA for 4 GiB. None of the three formats allows it.
        if info.compress_type not in _METHODS:
            raise Unreadable(f"its member {name:.200} is not compressed by deflate")
        with self._zip.open(info) as stream:
            while piece := stream.read(_PIECE_BYTES):
                self._num_bytes += len(piece)
                self._check_expansion()
                yield piece

    def _check_expansion(self) -> None:
        check_expansion(self._num_bytes, self._compressed_bytes, advice="Check where it comes from")
        if self._num_bytes > MAX_XML_BYTES:
            raise Unreadable(
                f"its text takes more than {MAX_XML_BYTES} bytes of XML, the most that is read"
            )

    def read(self, name: str) -> bytes:
        """Return the bytes of a member. Raises the errors of `pieces`."""
        return b"".join(self.pieces(name))


def _why_not_zip(data: bytes) -> str:
    if _ENCRYPTED_STREAM in data:
        return str(encrypted())
    return "it is a file of Office before 2007. Save it in a current format"


def encrypted() -> Unreadable:
    """Return the error for a file that is encrypted."""
    return Unreadable("it is encrypted. Save it without a password")


class Markup(NamedTuple):
    """The meaning of the elements of a document, each named by namespace, blank and local name.

    roots : the root elements of a document.
    texts : elements that contain text, in which all characters count.
    lines : elements that end a line.
    marks : the characters that an element stands for.
    hidden : elements left out with all they contain.
    notes : elements whose text follows the document.
    """

    roots: Collection[str]
    texts: Collection[str]
    lines: Collection[str]
    marks: Mapping[str, str]
    hidden: Collection[str]
    notes: Collection[str] = ()


_SEPARATOR = " "  # between namespace and local name


@dataclass
class _Reader:
    """The text of a document while its elements begin and end.

    body, notes : texts. depth : the number of open elements. num_hidden, num_texts, num_notes : the
    number from the outermost one that is hidden, contains text or is a note; 0 outside.
    """

    markup: Markup
    body: io.StringIO = field(default_factory=io.StringIO)
    notes: io.StringIO = field(default_factory=io.StringIO)
    depth: int = 0
    num_hidden: int = 0
    num_texts: int = 0
    num_notes: int = 0
    is_begun: bool = False

    @property
    def text(self) -> io.StringIO:
        return self.notes if self.num_notes else self.body

    def start(self, name: str, _: dict[str, str]) -> None:
        markup = self.markup
        if not self.is_begun:
            self.is_begun = True
            if name not in markup.roots:
                raise Unreadable(f"it is of another kind: its first element is {name:.200}")
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Unreadable(f"its elements are nested deeper than {MAX_DEPTH:,} levels")
        if self.num_hidden or name in markup.hidden:
            self.num_hidden += 1
            return
        if name in markup.notes:
            self.num_notes += 1
        if name in markup.texts:
            self.num_texts += 1
        elif name in markup.marks:
            self.text.write(markup.marks[name])

    def end(self, name: str) -> None:
        self.depth -= 1
        if self.num_hidden:
            self.num_hidden -= 1
            return
        markup = self.markup
        if name in markup.lines:
            self.text.write("\n")
        if name in markup.texts:
            self.num_texts -= 1
        if name in markup.notes:
            self.num_notes -= 1

    def characters(self, data: str) -> None:
        if self.num_texts and not self.num_hidden:
            self.text.write(data)


def text_of_xml(pieces: Iterator[bytes], markup: Markup) -> str:
    """Return the text of an XML document, each line with a line end; notes follow.

    Raises
    ------
    Unreadable
        If the document is of another kind, or declares entities.
    expat.ExpatError
        If it is not well-formed.
    """
    reader = _Reader(markup)
    parser = _parser_of()
    parser.StartElementHandler = reader.start
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.characters
    for piece in pieces:
        parser.Parse(piece, False)
    parser.Parse(b"", True)
    return reader.body.getvalue() + reader.notes.getvalue()


class Element(NamedTuple):
    """The start of an element: its local name, and its attributes, names of no namespace."""

    name: str
    attributes: dict[str, str]


def elements_of(data: bytes) -> list[Element]:
    """Return the starts of all elements of an XML document, a list of members. Raises the errors of
    `text_of_xml`.
    """
    found: list[Element] = []

    def start(name: str, attributes: dict[str, str]) -> None:
        if len(found) == MAX_LISTED:
            raise Unreadable(f"one of its lists has more than {MAX_LISTED:,} elements")
        found.append(Element(name.rpartition(_SEPARATOR)[2], attributes))

    parser = _parser_of()
    parser.StartElementHandler = start
    parser.Parse(data, True)
    return found


def _parser_of() -> expat.XMLParserType:
    """Return a parser of XML with namespaces that refuses entities."""
    parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
    parser.buffer_text = True
    parser.EntityDeclHandler = _refuse_entity
    return parser


def _refuse_entity(*_: object) -> None:
    # Entities that contain others expand a kilobyte to gigabytes. No program writes them here.
    raise Unreadable("its XML declares entities, which are not read")
