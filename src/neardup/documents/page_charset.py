"""Decode the bytes of a page as browsers do: by byte order mark, HTTP header, meta element, or
detection.

The labels of encodings come from the WHATWG Encoding Standard, section 4.2 (gb2312 is gb18030,
iso-8859-1 is windows-1252); the codecs are Python's. Bytes that are invalid in the encoding become
U+FFFD.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from neardup.documents.page_head import start_tags
from neardup.files import lines_of, read_text

PRESCAN_BYTES = 1024
"""Only meta elements within this many bytes can declare the encoding, as in the HTML standard."""

_DETECT_BYTES = 128 << 10  # from which the encoding is detected
_FALLBACK = "windows-1252"
_BYTE_ORDER_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16le"),
    (b"\xfe\xff", "utf-16be"),
)
_IN_CONTENT = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""", re.IGNORECASE)
_XML_DECLARATION = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([^"']*)["']""")

_CODECS: dict[str, str] = {}
_BY_LABEL: dict[str, str] = {}
_, *_rows = lines_of(read_text(Path(__file__).with_name("encodings.txt")))
for _name, _codec, *_labels in map(str.split, _rows):
    _CODECS[_name] = _codec
    _BY_LABEL |= dict.fromkeys((_name, *_labels), _name)
_BY_CODEC = {codec: name for name, codec in _CODECS.items()}


class Decoded(NamedTuple):
    """A page as UTF-8, without a byte order mark, and the name of its original encoding."""

    html: bytes
    charset: str


def encoding_of_label(label: str) -> str | None:
    """Return the name of the encoding for a label on the web, None for an unknown label.

    Examples
    --------
    >>> encoding_of_label(" GB2312 "), encoding_of_label("latin1"), encoding_of_label("utf-7")
    ('gb18030', 'windows-1252', None)
    """
    # The ASCII white space of the standard; `strip()` alone takes other blanks too.
    return _BY_LABEL.get(label.strip("\t\n\f\r ").lower())


def decode_page(data: bytes, declared: str | None = None) -> Decoded:
    """Return a page in UTF-8.

    Parameters
    ----------
    data : the bytes of the page.
    declared : the encoding in the HTTP header; an unknown label is ignored.
    """
    for mark, name in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _decoded(data[len(mark) :], name)
    known = encoding_of_label(declared) if declared else None
    if known is None:
        known = _declared_inside(data[:PRESCAN_BYTES])
    if known is not None:
        return _decoded(data, known)
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
    text = data.decode(_CODECS[name], "replace")
    return Decoded(html=text.encode("utf-8", "replace"), charset=name)


def _declared_inside(start: bytes) -> str | None:
    """Return the known encoding that a meta element or an XML declaration names, or None."""
    name = _declared_by_meta(start)
    declaration = _XML_DECLARATION.match(start)
    if name is None and declaration is not None:
        name = encoding_of_label(declaration[1].decode("latin-1"))
    # In UTF-16, these ASCII bytes would not have been found.
    return "utf-8" if name is not None and name.startswith("utf-16") else name


def _declared_by_meta(start: bytes) -> str | None:
    """Return the encoding of the first meta element that names a known encoding."""
    # Latin-1 decodes any bytes, and the names of elements and encodings are ASCII.
    for tag in start_tags(start.decode("latin-1")):
        if tag.name != "meta":
            continue
        attributes = tag.attributes()
        label = attributes.get("charset")
        if label is None and attributes.get("http-equiv", "").strip().lower() == "content-type":
            label = charset_parameter(attributes.get("content", ""))
        name = encoding_of_label(label) if label else None
        if name is not None:
            return name
    return None


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
    return _BY_CODEC.get(codec) or encoding_of_label(codec) or _FALLBACK


@cache
def _detector() -> Callable[..., str | None] | None:
    """Return the detector of resiliparse, None if it is not installed."""
    try:
        from resiliparse.parse.encoding import detect_encoding
    except ImportError:
        return None
    detector: Callable[..., str | None] = detect_encoding
    return detector
