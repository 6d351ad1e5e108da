"""Decode bytes in the encodings of the web: the labels and the indexes of the WHATWG Encoding
Standard.

The codecs are Python's, with the characters in which they differ from the indexes of the standard.
Only 203 characters of Big5 are missing, Hong Kong's supplement of 2008, and JIS X 0212 has the
tilde of ASCII.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from neardup.files import lines_of, read_text

# A text with more invalid bytes is not Japanese or Chinese, and repairs take a microsecond each.
_MAX_REPAIRS = 10_000

_CODECS: dict[str, str] = {}
_BY_LABEL: dict[str, str] = {}
_, *_rows = lines_of(read_text(Path(__file__).with_name("encodings.txt")))
for _name, _codec, *_labels in map(str.split, _rows):
    _CODECS[_name] = _codec
    _BY_LABEL |= dict.fromkeys((_name, *_labels), _name)
_BY_CODEC = {codec: name for name, codec in _CODECS.items()}

# Bytes with another character than in Python's codec.
_OTHER_CHARACTERS = {
    "koi8-u": {0xAE: "\u045e", 0xBE: "\u040e"},
    "windows-1255": {0xCA: "\u05ba"},
    # Bytes outside of ASCII are characters of private use, U+F780 to U+F7FF.
    "x-user-defined": {byte: chr(0xF700 + byte) for byte in range(0x80, 0x100)},
}
# Python's character, and the character of the standard.
_JAPANESE = tuple(zip("〜‖−¢£¬", "～∥－￠￡￢", strict=True))
_CHINESE = (
    ("\ue5e5", "\u3000"),
    *zip(
        map(chr, range(0xE78D, 0xE794)), "\ufe10\ufe12\ufe11\ufe13\ufe14\ufe15\ufe16", strict=True
    ),
    *zip("\ue794\ue795\ue796\ue7c7", "\ufe17\ufe18\ufe19\u1e3f", strict=True),
    *zip(
        "\ue81e\ue826\ue82b\ue82c\ue832\ue843\ue854\ue864",
        map(chr, range(0x9FB4, 0x9FBC)),
        strict=True,
    ),
)
_REPLACEMENTS = {
    "euc-jp": _JAPANESE,
    "iso-2022-jp": _JAPANESE,
    "gbk": _CHINESE,
    "gb18030": _CHINESE,
    # Bytes that no character begins with: of private use in Python.
    "shift_jis": tuple(zip("\uf8f0\uf8f1\uf8f2\uf8f3", "\ufffd" * 4, strict=True)),
}

_ESCAPE = re.compile(rb"(\x1b(?:\([BJI]|\$[@B]))")
_TO_ASCII = b"\x1b(B"
_TO_ROMAN = b"\x1b(J"
_TO_KATAKANA = b"\x1b(I"
_ESCAPE_TO_KANJI = re.compile(rb"\x1b\$[@B]")
# The character of each byte; bytes beyond are invalid.
_KATAKANA = "".join(map(chr, [*range(0x21), *range(0xFF61, 0xFFA0)]))
_INVALID = 0xFF  # in EUC-JP
# Two bytes of JIS X 0208 are the same in EUC-JP, with the high bits set.
_JIS_IN_EUC = bytes(
    byte | 0x80 if 0x21 <= byte < 0x7F else byte if byte < 0x80 else _INVALID for byte in range(256)
)


def encoding_of_label(label: str) -> str | None:
    """Return the name of the encoding for a label on the web, None for an unknown label.

    Labels of the encoding `replacement`, such as hz-gb-2312, are unknown, too: browsers show no
    text of such a page.

    Examples
    --------
    >>> encoding_of_label(" GB2312 "), encoding_of_label("latin1"), encoding_of_label("utf-7")
    ('gbk', 'windows-1252', None)
    """
    # The ASCII white space of the standard; `strip()` alone takes other blanks too.
    return _BY_LABEL.get(label.strip("\t\n\f\r ").lower())


def encoding_of_codec(codec: str) -> str | None:
    """Return the name of the encoding for a codec of Python, None for another codec."""
    return encoding_of_label(codec) or _BY_CODEC.get(codec)


def is_iso_2022_jp(data: bytes) -> bool:
    """Return whether bytes are ISO-2022-JP without doubt: ASCII, with an escape to kanji."""
    return data.isascii() and _ESCAPE_TO_KANJI.search(data) is not None


def decode(data: bytes, name: str) -> str:
    """Return the text of bytes in an encoding; invalid bytes become U+FFFD."""
    if name.startswith("windows-") or name in _OTHER_CHARACTERS:
        text, _ = codecs.charmap_decode(data, "replace", _characters_of(name))
        return text
    text = _decode_multibyte(data, name, "replace")
    if name not in _REPLACEMENTS:
        return text
    if 0 < text.count("\ufffd") <= _MAX_REPAIRS:
        text = _decode_multibyte(data, name, _REPAIR)
    for python, standard in _REPLACEMENTS[name]:
        text = text.replace(python, standard)
    return text


@cache
def _characters_of(name: str) -> str:
    """Return the character of each byte of a single-byte encoding."""
    characters = list(bytes(range(256)).decode(_CODECS[name], "replace"))
    # Control characters fill the gaps of Windows' encodings; other gaps are errors: U+FFFE.
    for byte in range(0x80, 0x100):
        if characters[byte] == "\ufffd":
            characters[byte] = chr(byte) if byte < 0xA0 else "\ufffe"
    for byte, character in _OTHER_CHARACTERS.get(name, {}).items():
        characters[byte] = character
    return "".join(characters)


def _decode_multibyte(data: bytes, name: str, errors: str) -> str:
    if name == "iso-2022-jp":
        return "".join(_pieces_of_iso_2022_jp(data, errors))
    return data.decode(_CODECS[name], errors)


def _pieces_of_iso_2022_jp(data: bytes, errors: str) -> Iterator[str]:
    """Yield the text between the escapes of ISO-2022-JP.

    Python's codec has neither the characters of NEC and IBM, which its codec of EUC-JP and
    `_repair` have, nor narrow katakana.
    """
    state = _TO_ASCII
    for piece in _ESCAPE.split(data):
        if piece[:1] == b"\x1b" and _ESCAPE.fullmatch(piece):
            state = piece
        elif state == _TO_ASCII:
            yield piece.decode("ascii", "replace")
        elif state == _TO_ROMAN:  # ASCII but for two characters
            yield piece.decode("ascii", "replace").replace("\\", "¥").replace("~", "‾")
        elif state == _TO_KATAKANA:
            text, _ = codecs.charmap_decode(piece, "replace", _KATAKANA)
            yield text
        else:
            yield piece.translate(_JIS_IN_EUC).decode("euc_jp", errors)


def _repair(error: UnicodeError) -> tuple[str, int]:
    """Return the character of bytes that Python's codec of EUC-JP or GB18030 does not have, and the
    position after them; U+FFFD for invalid bytes.
    """
    assert isinstance(error, UnicodeDecodeError)
    pair = error.object[error.start : error.start + 2]
    if error.encoding == "gb18030" and pair[:1] == b"\x80":
        return "€", error.start + 1
    if error.encoding == "euc_jp" and len(pair) == 2 and 0xA1 <= min(pair) <= max(pair) < 0xFF:
        with_extensions = _shift_jis_of(pair).decode("cp932", "replace")
        if len(with_extensions) == 1 and with_extensions != "\ufffd":
            return with_extensions, error.start + 2
    return "\ufffd", error.end


def _shift_jis_of(pair: bytes) -> bytes:
    """Return two bytes of EUC-JP in Shift_JIS: rows of 94 cells become rows of 188."""
    pointer = (pair[0] - 0xA1) * 94 + pair[1] - 0xA1
    row, cell = divmod(pointer, 188)
    lead = row + (0x81 if row < 0x1F else 0xC1)
    trail = cell + (0x40 if cell < 0x3F else 0x41)
    return bytes((lead, trail)) if lead < 0x100 else b"\xff"


_REPAIR = "neardup-web"
codecs.register_error(_REPAIR, _repair)
