"""The encodings of the web have the labels and the characters of the WHATWG Encoding Standard."""

from __future__ import annotations

import time

import pytest

from neardup.documents import web_encodings
from neardup.documents.web_encodings import decode, encoding_of_label


@pytest.mark.parametrize("label", web_encodings._BY_LABEL)
def test_every_label_has_an_encoding_of_ascii_or_of_two_bytes(label: str) -> None:
    name = encoding_of_label(f"\t{label.upper()}\n ")
    assert name is not None
    data = "<p>".encode(
        "utf-16-be" if name == "utf-16be" else "utf-16-le" if "16le" in name else "ascii"
    )
    assert decode(data, name) == "<p>"


# From encodings.json and the index-*.txt of whatwg/encoding, May 2026.
@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("unicode-1-1-utf-8", "utf-8"),
        ("logical", "iso-8859-8-i"),
        ("visual", "iso-8859-8"),
        ("ascii", "windows-1252"),
        ("iso-8859-9", "windows-1254"),
        ("koi8-ru", "koi8-u"),
        ("x-user-defined", "x-user-defined"),
        ("gb_2312-80", "gbk"),
        ("gb18030", "gb18030"),
        ("ks_c_5601-1987", "euc-kr"),
        ("ms_kanji", "shift_jis"),
        ("csunicode", "utf-16le"),
    ],
)
def test_labels_are_those_of_the_standard(label: str, name: str) -> None:
    assert encoding_of_label(label) == name


@pytest.mark.parametrize(
    ("name", "data", "text"),
    [
        ("koi8-u", b"\xae\xbe\xa4\xad", "ўЎєґ"),
        ("koi8-r", b"\xae\xbe", "╝╬"),
        ("windows-1252", b"\x80\x81\x9d\xff", "€\x81\x9dÿ"),
        ("windows-1255", b"\xca\x81\xd9", "\u05ba\x81\ufffd"),
        ("windows-874", b"\xa1\x98\xdb", "ก\x98\ufffd"),
        ("windows-1253", b"\xaa\xe1", "\ufffdα"),
        ("x-user-defined", b"a\x80\xff", "a\uf780\uf7ff"),
        ("gbk", b"\x80\xa3\xa0\xd6\xd0\xff", "€\u3000中\ufffd"),
        ("gb18030", b"\xa6\xd9\x81\x30\x81\x30", "\ufe10\x80"),
        ("euc-jp", b"\xa1\xc1\xad\xa1\xfc\xe2\x8e\xb1\x8f\xb0\xa1\xa4\xa2", "～①髙ｱ丂あ"),
        ("euc-jp", b"\xad\xff\xa4\xa2\xa4", "\ufffd\ufffdあ\ufffd"),
        ("shift_jis", b"\x81\x60\x87\x40\xee\xe0", "～①髙"),
        ("shift_jis", b"\xa0\x80\xb1\xfd\xfe\xff", "\ufffd\x80ｱ\ufffd\ufffd\ufffd"),
        ("iso-2022-jp", b'a\x1b$B$"!A-!\x1b(J\\~\x1b(I1\x1b(Bb', "aあ～①¥‾ｱb"),
        ("iso-2022-jp", b"\x1b$@0!\nx\x1b(B\xe9", "亜\n\ufffd\ufffd"),
        ("iso-2022-jp", b"\x1b(I!_`~\x7f\x80\xb1\n", "｡ﾟ" + "\ufffd" * 5 + "\n"),
        ("big5", b"\xa4\xa4\x87\x40", "中䏰"),
        ("euc-kr", b"\xc7\xd1\x81\x41", "한갂"),
    ],
)
def test_characters_are_those_of_the_standard(name: str, data: bytes, text: str) -> None:
    assert decode(data, name) == text


@pytest.mark.parametrize(
    "piece", [b"\xad\xff", b"\x1b$B\x1b(B", b"\x1b(I", b"\xff", b"\x80", b"\x1b$B\xff"]
)
@pytest.mark.parametrize("name", ["euc-jp", "gbk", "iso-2022-jp"])
@pytest.mark.timing
def test_no_bytes_make_decoding_slow(name: str, piece: bytes) -> None:
    """The bound is ten times what 0.2 microseconds a byte take."""
    data = piece * ((1 << 20) // len(piece))
    begin = time.process_time()
    decode(data, name)
    assert time.process_time() - begin < 2
