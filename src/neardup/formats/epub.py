"""Books in EPUB: each file is a document, the text of its pages in reading order."""

from __future__ import annotations

import posixpath
from functools import partial
from urllib.parse import unquote

from neardup.arrays import arrow_of_utf8
from neardup.documents.page_charset import decode_page
from neardup.documents.page_text import texts_of_pages
from neardup.documents.pages import HTML_TYPES
from neardup.documents.sinks import sink_of_lines
from neardup.formats.packages import Package, Unreadable, elements_of, encrypted, read_file
from neardup.formats.registry import Handler

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PACKAGE_TYPE = "application/oebps-package+xml"


def text_of(data: bytes) -> str:
    """Return the visible text of the pages of a book. Raises the errors of `Package`."""
    package = Package(data)
    names = _pages(package)
    # Fonts may be encrypted in books that anybody can read.
    if not _encrypted_members(package).isdisjoint(names):
        raise encrypted()
    pages = [decode_page(package.read(name)).html for name in names]
    texts = texts_of_pages(arrow_of_utf8(pages), main=False)
    return "\n".join(texts.to_pylist())


def _pages(package: Package) -> list[str]:
    """Return the members that are the pages of a book, in reading order, each once."""
    root = _root_file(package)
    folder = posixpath.dirname(root)
    manifest: dict[str, str] = {}  # the member of each page, by id
    spine: list[str] = []  # ids in reading order
    for element in elements_of(package.read(root)):
        values = element.attributes
        if element.name == "item" and values.get("media-type") in HTML_TYPES:
            path = posixpath.join(folder, unquote(values.get("href", "")))
            manifest[values.get("id", "")] = posixpath.normpath(path)
        elif element.name == "itemref":
            spine.append(values.get("idref", ""))
    # The manifest may be incomplete, or follow the spine.
    pages = [manifest[page_id] for page_id in spine if page_id in manifest]
    if not pages:
        raise Unreadable("it has no page: its spine names no XHTML")
    return list(dict.fromkeys(pages))


def _root_file(package: Package) -> str:
    """Return the member that lists the pages: its path is a URL (EPUB 3.3, section 4.2.6.3.1)."""
    for element in elements_of(package.read(_CONTAINER)):
        values = element.attributes
        if element.name == "rootfile" and values.get("media-type") == _PACKAGE_TYPE:
            return posixpath.normpath(unquote(values.get("full-path", "")))
    raise Unreadable("it is a ZIP file, but not of EPUB")


def _encrypted_members(package: Package) -> set[str]:
    """Return the members that the list of encrypted ones names."""
    if _ENCRYPTION not in package:
        return set()
    return {
        posixpath.normpath(unquote(element.attributes.get("URI", "")))
        for element in elements_of(package.read(_ENCRYPTION))
        if element.name == "CipherReference"
    }


HANDLER = Handler(partial(read_file, text_of=text_of), sink_of_lines)
