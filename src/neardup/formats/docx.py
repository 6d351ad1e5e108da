"""Word documents (.docx, ISO/IEC 29500): each file is a document, its paragraphs and notes.

The document is read as if finished: tracked insertions are read, deletions are not.
Headers, footers and comments are left out.
"""

from __future__ import annotations

import posixpath
from functools import partial

from neardup.documents.sinks import sink_of_lines
from neardup.formats.packages import (
    Markup,
    Package,
    Unreadable,
    elements_of,
    read_file,
    text_of_xml,
)
from neardup.formats.registry import Handler

# Transitional documents, which Word writes, and strict ones differ in the namespace.
_NAMESPACES = (
    "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "http://purl.oclc.org/ooxml/wordprocessingml/main",
)
_ALTERNATIVES = "http://schemas.openxmlformats.org/markup-compatibility/2006"
_MATHEMATICS = (
    "http://schemas.openxmlformats.org/officeDocument/2006/math",
    "http://purl.oclc.org/ooxml/officeDocument/math",
)


def _names(*local_names: str) -> frozenset[str]:
    return frozenset(f"{namespace} {name}" for namespace in _NAMESPACES for name in local_names)


_MARKUP = Markup(
    roots=_names("document", "footnotes", "endnotes"),
    texts=_names("t") | {f"{namespace} t" for namespace in _MATHEMATICS},
    lines=_names("p"),
    marks={
        **dict.fromkeys(_names("tab"), "\t"),
        **dict.fromkeys(_names("br", "cr", "txbxContent"), "\n"),
        **dict.fromkeys(_names("noBreakHyphen"), "-"),
    },
    hidden={
        # Properties, in which `tab` is a tab stop.
        *_names("pPr", "rPr", "sectPr", "tblPr"),
        *_names("del", "moveFrom"),
        *_names("rt"),  # the pronunciation of a character
        # A copy of the element before it, for older programs.
        f"{_ALTERNATIVES} Fallback",
    },
)
# The ends of the types of relationships.
_DOCUMENT = "/officeDocument"
_NOTES = ("/footnotes", "/endnotes")


def text_of(data: bytes) -> str:
    """Return the text of a document, a line for each paragraph. Raises the errors of `Package`."""
    package = Package(data)
    document = _targets(package, "", _DOCUMENT)
    if not document:
        raise Unreadable("it is a ZIP file, but not of Word")
    notes = [name for kind in _NOTES for name in _targets(package, document[0], kind)]
    parts = [document[0], *(name for name in notes if name in package)]
    return "".join(text_of_xml(package.pieces(part), _MARKUP) for part in parts)


def _targets(package: Package, part: str, kind: str) -> list[str]:
    """Return the members that a part names by a kind of relationship.

    part : "" for the package itself. kind : the end of the type of the relationship.
    """
    folder, name = posixpath.split(part)
    relationships = posixpath.join(folder, "_rels", f"{name}.rels")
    if relationships not in package:
        return []
    return [
        posixpath.normpath(posixpath.join("/", folder, element.attributes["Target"])).lstrip("/")
        for element in elements_of(package.read(relationships))
        if element.attributes.get("Type", "").endswith(kind) and "Target" in element.attributes
    ]


HANDLER = Handler(partial(read_file, text_of=text_of), sink_of_lines)
