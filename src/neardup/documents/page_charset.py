"""Decode the bytes of a page as browsers do: by byte order mark, HTTP header, meta element, or
detection.

Sections are of the HTML standard: 13.2.3.2 looks for a declaration in the first bytes,
13.2.3.4 changes the encoding at a later meta element. The detection is ours, as the standard leaves
it open.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.documents.page_head import read_attributes
from neardup.documents.web_encodings import (
    decode,
    encoding_of_codec,
    encoding_of_label,
    is_iso_2022_jp,
)

PRESCAN_BYTES = 1024
"""The first bytes are searched for a declaration before they are parsed."""

_DETECT_BYTES = 128 << 10  # from which the encoding is detected
_MAX_META_ELEMENTS = 1000  # bounds the work for a page of meta elements alone
_FALLBACK = "windows-1252"
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16le"),
    (b"\xfe\xff", "utf-16be"),
)
_IN_CONTENT = re.compile(
    r"""charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|["']|([^\t\n\f\r ;]+))""",
    re.IGNORECASE,
)
_XML_DECLARATION = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([^"']*)["']""")
# A comment; a meta element or another tag; other markup, up to its ">".
_MARKUP = re.compile(
    r"<(?:(?P<comment>!--)|(?P<meta>meta(?=[\t\n\f\r /]))|"
    r"/?[A-Za-z][^\t\n\f\r >]*|(?P<other>[!/?]))",
    re.IGNORECASE,
)
# A page begins with markup, after white space. Zeros there are found in no other encoding.
_UTF_16 = {
    "utf-16le": re.compile(rb"(?:[\t\n\f\r ]\0)*<\0[A-Za-z!?]\0"),
    "utf-16be": re.compile(rb"(?:\0[\t\n\f\r ])*\0<\0[A-Za-z!?]"),
}


class Decoded(NamedTuple):
    """A page as UTF-8, without a byte order mark, and the name of its original encoding."""

    html: bytes
    charset: str


def decode_page(data: bytes, declared: str | None = None, *, is_xml: bool = False) -> Decoded:
    """Return a page in UTF-8.

    Parameters
    ----------
    data : the bytes of the page.
    declared : the encoding in the HTTP header; an unknown label is ignored.
    is_xml : whether the page is XML, whose declaration counts more than its meta elements.
    """
    for mark, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _decoded(data[len(mark) :], name)
    known = encoding_of_label(declared) if declared else None
    known = known or _declared_inside(data, is_xml=is_xml)
    if known is not None:
        return _decoded(data, known)
    if is_iso_2022_jp(data):  # before UTF-8, which all of its bytes are
        return _decoded(data, "iso-2022-jp")
    if _is_utf8(data):
        return Decoded(data, "utf-8")
    return _decoded(data, _detected(data))


def _is_utf8(data: bytes) -> bool:
    # Arrow checks many bytes at once, and makes no string: 30 times as fast as decoding.
    limits = pa.py_buffer(struct.pack("=qq", 0, len(data)))
    try:
        pa.LargeStringArray.from_buffers(1, limits, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _decoded(data: bytes, name: str) -> Decoded:
    if name == "utf-8" and _is_utf8(data):
        return Decoded(data, name)
    return Decoded(html=decode(data, name).encode("utf-8", "replace"), charset=name)


def _declared_inside(data: bytes, *, is_xml: bool) -> str | None:
    """Return the encoding that the bytes of a page name or show, or None."""
    start = data[:PRESCAN_BYTES]
    if is_xml:
        declared = _declared_by_xml(start) or _declared_at_start(start)
    else:
        declared = _declared_at_start(start) or _declared_by_xml(start)
    if declared is not None:
        return declared
    wide = (name for name, pattern in _UTF_16.items() if pattern.match(data))
    return next(wide, None) or _declared_later(data)


def _declared_by_xml(start: bytes) -> str | None:
    declaration = _XML_DECLARATION.match(start)
    return None if declaration is None else _in_ascii(declaration[1].decode("latin-1"))


def _in_ascii(label: str) -> str | None:
    """Return the encoding of a label that was found by its ASCII bytes."""
    name = encoding_of_label(label)
    # In UTF-16, these bytes would not have been found.
    if name is not None and name.startswith("utf-16"):
        return "utf-8"
    return "windows-1252" if name == "x-user-defined" else name


def _declared_at_start(start: bytes) -> str | None:
    """Return the known encoding of the first meta element that names one: 13.2.3.2.

    Scripts are not skipped, and a tag without an end ends the search.
    """
    # Latin-1 decodes any bytes, and the names of elements and encodings are ASCII.
    text = start.decode("latin-1")
    position = 0
    while match := _MARKUP.search(text, position):
        if match["comment"] or match["other"]:
            closing = "-->" if match["comment"] else ">"
            # The dashes of `<!-->` begin and end the comment.
            close = text.find(closing, match.start() + 2)
            end = close + len(closing) if close >= 0 else None
        else:
            attributes = read_attributes(text, match.end())
            end = attributes.end
            is_meta = match["meta"] is not None and end is not None
            name = _named_by_meta(attributes.values) if is_meta else None
            if name is not None:
                return name
        if end is None:
            return None
        position = end
    return None


def _named_by_meta(attributes: Mapping[str, str]) -> str | None:
    """Return the known encoding that the attributes of a meta element name, or None."""
    if "charset" in attributes:
        return _in_ascii(attributes["charset"])
    if attributes.get("http-equiv", "").lower() != "content-type":
        return None
    label = charset_parameter(attributes.get("content", ""))
    return None if label is None else _in_ascii(label)


def _declared_later(data: bytes) -> str | None:
    """Return the known encoding of the first meta element that the parser meets and that names one:
    13.2.3.4.
    """
    attributes = (read_attributes(tag, len("<meta")).values for tag in _meta_elements(data))
    names = map(_named_by_meta, attributes)
    return next((name for name in names if name is not None), None)


def _meta_elements(data: bytes) -> Iterator[str]:
    """Yield the first meta elements of a page, outside of comments, scripts and the like."""
    page = np.frombuffer(data, np.uint8)
    tags = kernels.html_tokens.tags_of(page, np.array([0, len(data)], np.int64))
    count = tags.offsets[-1]
    is_meta = tags.names[:count] == kernels.html_tags.hash_name("meta")
    is_start = tags.kinds[:count] & kernels.html_tokens.START != 0
    for row in np.flatnonzero(is_meta & is_start)[:_MAX_META_ELEMENTS].tolist():
        yield data[tags.starts[row] : tags.ends[row]].decode("latin-1")


def charset_parameter(content_type: str) -> str | None:
    """Return the parameter `charset` of a content type."""
    match = _IN_CONTENT.search(content_type)
    if match is None:
        return None
    return next((value for value in match.groups() if value is not None), None)


def _detected(data: bytes) -> str:
    """Return the detected encoding, _FALLBACK if it is unknown or there is no detector."""
    detect = _detector()
    if detect is None:
        return _FALLBACK
    codec = detect(data[:_DETECT_BYTES], html5_compatible=False)  # a name of Python's codecs
    if not codec:
        return _FALLBACK
    return encoding_of_codec(codec) or _FALLBACK


@cache
def _detector() -> Callable[..., str | None] | None:
    """Return the detector of resiliparse, None if it is not installed."""
    try:
        from resiliparse.parse.encoding import detect_encoding
    except ImportError:
        return None
    detector: Callable[..., str | None] = detect_encoding
    return detector
