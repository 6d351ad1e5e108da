"""Texts of OpenDocument (.odt, ISO/IEC 26300): each file is a document, its paragraphs and notes.

The text is the one of the finished document: tracked insertions are read, deletions are not.
Headers, footers and comments are left out. Notes follow the text, as in the reader of .docx.
"""

from __future__ import annotations

from functools import partial

from neardup.documents.sinks import sink_of_lines
from neardup.formats.packages import (
    Markup,
    Package,
    elements_of,
    encrypted,
    read_file,
    text_of_xml,
)
from neardup.formats.registry import Handler

_OFFICE = "urn:oasis:names:tc:opendocument:xmlns:office:1.0"
_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
_DRAWING = "urn:oasis:names:tc:opendocument:xmlns:drawing:1.0"
_PICTURE = "urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0"
_CONTENT = "content.xml"
_MANIFEST = "META-INF/manifest.xml"

_MARKUP = Markup(
    roots={f"{_OFFICE} document-content"},
    texts={f"{_TEXT} p", f"{_TEXT} h"},
    lines={f"{_TEXT} p", f"{_TEXT} h"},
    marks={
        f"{_TEXT} s": " ",  # blanks of a number, which never matters to a comparison
        f"{_TEXT} tab": "\t",
        f"{_TEXT} line-break": "\n",
        # A paragraph inside a paragraph begins a line.
        f"{_DRAWING} text-box": "\n",
    },
    hidden={
        f"{_TEXT} tracked-changes",  # the deleted texts
        f"{_TEXT} note-citation",
        f"{_TEXT} ruby-text",  # the pronunciation of a character
        f"{_OFFICE} annotation",
        # The descriptions of a picture.
        f"{_PICTURE} title",
        f"{_PICTURE} desc",
    },
    notes={f"{_TEXT} note-body"},
)


def text_of(data: bytes) -> str:
    """Return the text of a document, a line for each paragraph. Raises the errors of `Package`."""
    package = Package(data)
    if _MANIFEST in package:
        names = {element.name for element in elements_of(package.read(_MANIFEST))}
        if "encryption-data" in names:
            raise encrypted()
    return text_of_xml(package.pieces(_CONTENT), _MARKUP)


HANDLER = Handler(partial(read_file, text_of=text_of), sink_of_lines)
