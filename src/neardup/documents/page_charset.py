"""Decode the bytes of a page as browsers do: by byte order mark, HTTP header, meta element, else by detection.

The labels and their encodings are those of the WHATWG Encoding Standard, section 4.2 (gb2312 is gb18030,
iso-8859-1 is windows-1252); the codecs are Python's. Bytes that do not fit the declared encoding become U+FFFD.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import pyarrow as pa

from neardup.documents.page_head import start_tags

PRESCAN_BYTES = 1024
"""Only meta elements within this many bytes can declare the encoding, as in the HTML standard."""

_DETECT_BYTES = 128 << 10
_FALLBACK = "windows-1252"
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16le"), (b"\xfe\xff", "utf-16be"))
_IN_CONTENT = re.compile(r"""charset\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;"']+))""", re.IGNORECASE)
_XML_DECLARATION = re.compile(rb"""<\?xml\s[^>]*?encoding\s*=\s*["']([^"']*)["']""")


# The name in the Encoding Standard (WHATWG), the codec of Python, other labels.
_ENCODINGS = """
utf-8 utf-8 unicode-1-1-utf-8 unicode11utf8 unicode20utf8 utf8 x-unicode20utf8
ibm866 cp866 866 cp866 csibm866
iso-8859-2 iso8859-2 csisolatin2 iso-ir-101 iso8859-2 iso88592 iso_8859-2 iso_8859-2:1987 l2 latin2
iso-8859-3 iso8859-3 csisolatin3 iso-ir-109 iso8859-3 iso88593 iso_8859-3 iso_8859-3:1988 l3 latin3
iso-8859-4 iso8859-4 csisolatin4 iso-ir-110 iso8859-4 iso88594 iso_8859-4 iso_8859-4:1988 l4 latin4
iso-8859-5 iso8859-5 csisolatincyrillic cyrillic iso-ir-144 iso8859-5 iso88595 iso_8859-5 iso_8859-5:1988
iso-8859-6 iso8859-6 arabic asmo-708 csiso88596e csiso88596i csisolatinarabic ecma-114 iso-8859-6-e iso-8859-6-i
  iso-ir-127 iso8859-6 iso88596 iso_8859-6 iso_8859-6:1987
iso-8859-7 iso8859-7 csisolatingreek ecma-118 elot_928 greek greek8 iso-ir-126 iso8859-7 iso88597 iso_8859-7
  iso_8859-7:1987 sun_eu_greek
iso-8859-8 iso8859-8 csiso88598e csisolatinhebrew hebrew iso-8859-8-e iso-ir-138 iso8859-8 iso88598 iso_8859-8
  iso_8859-8:1988 visual csiso88598i iso-8859-8-i logical
iso-8859-10 iso8859-10 csisolatin6 iso-ir-157 iso8859-10 iso885910 l6 latin6
iso-8859-13 iso8859-13 iso8859-13 iso885913
iso-8859-14 iso8859-14 iso8859-14 iso885914
iso-8859-15 iso8859-15 csisolatin9 iso8859-15 iso885915 iso_8859-15 l9
iso-8859-16 iso8859-16
koi8-r koi8-r cskoi8r koi koi8 koi8_r
koi8-u koi8-u koi8-ru
macintosh mac-roman csmacintosh mac x-mac-roman
windows-874 cp874 dos-874 iso-8859-11 iso8859-11 iso885911 tis-620
windows-1250 cp1250 cp1250 x-cp1250
windows-1251 cp1251 cp1251 x-cp1251
windows-1252 cp1252 ansi_x3.4-1968 ascii cp1252 cp819 csisolatin1 ibm819 iso-8859-1 iso-ir-100 iso8859-1 iso88591
  iso_8859-1 iso_8859-1:1987 l1 latin1 us-ascii x-cp1252 x-user-defined
windows-1253 cp1253 cp1253 x-cp1253
windows-1254 cp1254 cp1254 csisolatin5 iso-8859-9 iso-ir-148 iso8859-9 iso88599 iso_8859-9 iso_8859-9:1989 l5 latin5
  x-cp1254
windows-1255 cp1255 cp1255 x-cp1255
windows-1256 cp1256 cp1256 x-cp1256
windows-1257 cp1257 cp1257 x-cp1257
windows-1258 cp1258 cp1258 x-cp1258
x-mac-cyrillic mac-cyrillic x-mac-ukrainian
gb18030 gb18030 gbk chinese csgb2312 csiso58gb231280 gb2312 gb_2312 gb_2312-80 iso-ir-58 x-gbk
big5 big5hkscs big5-hkscs cn-big5 csbig5 x-x-big5
euc-jp euc_jp cseucpkdfmtjapanese x-euc-jp
iso-2022-jp iso2022_jp csiso2022jp
shift_jis cp932 csshiftjis ms932 ms_kanji shift-jis sjis windows-31j x-sjis
euc-kr cp949 cseuckr csksc56011987 iso-ir-149 korean ks_c_5601-1987 ks_c_5601-1989 ksc5601 ksc_5601 windows-949
utf-16be utf-16-be unicodefffe
utf-16le utf-16-le csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff utf-16
"""
_CODECS: dict[str, str] = {}
_BY_LABEL: dict[str, str] = {}
for _name, _codec, *_labels in map(str.split, _ENCODINGS.strip().replace("\n  ", " ").splitlines()):
    _CODECS[_name] = _codec
    _BY_LABEL |= dict.fromkeys((_name, *_labels), _name)
_BY_CODEC = {codec: name for name, codec in _CODECS.items()}


class Decoded(NamedTuple):
    """A page as UTF-8, without a byte order mark, and the name of the encoding it was in."""

    html: bytes
    charset: str


def encoding_of_label(label: str) -> str | None:
    """Return the name of the encoding of a label on the web, None for an unknown label.

    Examples
    --------
    >>> encoding_of_label(" GB2312 "), encoding_of_label("latin1"), encoding_of_label("utf-7")
    ('gb18030', 'windows-1252', None)
    """
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
    known = (encoding_of_label(declared) if declared else None) or _declared_inside(data[:PRESCAN_BYTES])
    if known is not None:
        return _decoded(data, known)
    if _is_utf8(data):
        return Decoded(data, "utf-8")
    return _decoded(data, _detected(data))


def _is_utf8(data: bytes) -> bool:
    # Arrow looks at many bytes at once, and makes no string: 30 times as fast as to decode them.
    limits = pa.py_buffer(struct.pack("=qq", 0, len(data)))
    try:
        pa.LargeStringArray.from_buffers(1, limits, pa.py_buffer(data)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _decoded(data: bytes, name: str) -> Decoded:
    if name == "utf-8" and _is_utf8(data):
        return Decoded(data, name)
    return Decoded(data.decode(_CODECS[name], "replace").encode("utf-8", "replace"), name)


def _declared_inside(start: bytes) -> str | None:
    """Return the encoding of the first meta element that names a known one, else that of an XML declaration."""
    name = None
    for tag in start_tags(start.decode("latin-1")):
        if tag.name == "meta":
            attributes = tag.attributes()
            label = attributes.get("charset")
            if label is None and attributes.get("http-equiv", "").strip().lower() == "content-type":
                label = charset_parameter(attributes.get("content", ""))
            name = encoding_of_label(label) if label else None
            if name is not None:
                break
    if name is None and (declaration := _XML_DECLARATION.match(start)):
        name = encoding_of_label(declaration[1].decode("latin-1"))
    # Whoever could read this did not read UTF-16.
    return "utf-8" if name is not None and name.startswith("utf-16") else name


def charset_parameter(content_type: str) -> str | None:
    """Return the parameter `charset` of a content type."""
    match = _IN_CONTENT.search(content_type)
    return next((value for value in match.groups() if value is not None), None) if match else None


def _detected(data: bytes) -> str:
    detect = _detector()
    found = detect(data[:_DETECT_BYTES], html5_compatible=False) if detect is not None else None
    # The detector answers with names of Python's codecs.
    return (_BY_CODEC.get(found) or encoding_of_label(found) if found else None) or _FALLBACK


@cache
def _detector() -> Callable[..., str | None] | None:
    """Return the detector of resiliparse, None where it is not installed."""
    try:
        from resiliparse.parse.encoding import detect_encoding
    except ImportError:
        return None
    detector: Callable[..., str | None] = detect_encoding
    return detector
