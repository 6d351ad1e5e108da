"""What is a page, how its bytes become text, what its head says."""

from __future__ import annotations

import gzip
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from neardup.documents import page_charset
from neardup.documents.batch import Columns, Rejected
from neardup.documents.page_charset import decode_page
from neardup.documents.page_head import HEAD_CHARACTERS, MAX_TITLE_CHARACTERS, language_of, title_of
from neardup.documents.pages import MAX_PAGE_BYTES, NotAPage, has_element, page_of
from neardup.documents.web_encodings import encoding_of_label
from neardup.features.page_structure import read_tags
from neardup.runs.columns import choose_columns
from neardup.runs.input_files import list_inputs

RUSSIAN = "<html><p>Все счастливые семьи похожи друг на друга"
CHINESE = "<html><p>学而时习之，不亦说乎？有朋自远方来，不亦乐乎？"
JAPANESE = "<html><p>吾輩は猫である。名前はまだ無い。どこで生れたか"


HTML_ONLY = Columns("html")


def read(path: Path, columns: Columns = HTML_ONLY) -> tuple[list[str], list[Rejected]]:
    (part,) = list_inputs([str(path)])
    rejected: list[Rejected] = []
    return [
        text for batch in part.read(columns, rejected.append) for text in batch.text.to_pylist()
    ], rejected


@pytest.mark.parametrize("name", ["a.html", "a.htm", "a.xhtml", "a.HTML", "a.html.gz"])
def test_an_html_file_is_one_document(tmp_path: Path, name: str) -> None:
    html = "<!doctype html>\n<p>one</p>\n<p>é\0</p>\n"
    data = html.encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert read(tmp_path / name) == ([html], [])
    (part,) = list_inputs([str(tmp_path / name)])
    assert (part.format, part.unit) == ("html", "file")
    assert list(part.column_types()) == ["file", "charset", "title", "language", "html"]
    assert choose_columns([part]) == Columns("html", "file")
    (batch,) = part.read(Columns("html", "file"), pytest.fail)
    assert batch.ids is not None
    assert batch.ids.to_pylist() == [str(tmp_path / name)]


@pytest.mark.parametrize(
    ("text", "encoding", "declared", "name"),
    [
        (RUSSIAN, "windows-1251", "windows-1251", "windows-1251"),
        (RUSSIAN, "windows-1251", "CP1251", "windows-1251"),
        (RUSSIAN, "koi8-r", "koi8-r", "koi8-r"),
        (CHINESE, "gb18030", "gb2312", "gbk"),
        (CHINESE, "gbk", "GBK", "gbk"),
        (CHINESE, "utf-16-le", "utf-16", "utf-16le"),
        (JAPANESE, "shift_jis", "Shift_JIS", "shift_jis"),
        (JAPANESE, "euc-jp", "x-euc-jp", "euc-jp"),
        ("<p>“Größe” – 5 €", "windows-1252", "ISO-8859-1", "windows-1252"),
        ("<p>Größe", "utf-8", " utf-8 ", "utf-8"),
    ],
)
def test_the_http_header_names_the_encoding_with_the_labels_of_the_web(
    text: str, encoding: str, declared: str, name: str
) -> None:
    assert decode_page(text.encode(encoding), declared) == (text.encode(), name)


@pytest.mark.parametrize(
    "meta",
    [
        '<meta charset="gb2312">',
        "<META CHARSET=gb2312 />",
        '<meta http-equiv="Content-Type" content="text/html; charset=gb2312">',
        "<!-- <meta charset=utf-8> --><meta name=x><meta charset='gbk'>",
        "<!--><meta charset=gbk>",
        "<title>a</title ><p title='>'></p><meta/charset=gbk>",
        "<script><meta charset=gbk></script>",
        "<meta a charset=gbk charset=utf-8>",
        "<meta content='text/html; charset = \"gbk\"' http-equiv=CONTENT-TYPE>",
        "<meta charset=nonsense><meta charset=chinese>",
        "<?xml version='1.0' encoding='GB2312'?>",
        '<?xml version="1.0" encoding="utf-8"?><meta charset=gbk>',
    ],
)
def test_a_meta_element_or_an_xml_declaration_names_the_encoding(meta: str) -> None:
    text = meta + CHINESE
    assert decode_page(text.encode("gb18030")) == (text.encode(), "gbk")


@pytest.mark.parametrize(
    ("mark", "codec", "name"),
    [
        (b"\xff\xfe", "utf-16-le", "utf-16le"),
        (b"\xfe\xff", "utf-16-be", "utf-16be"),
        (b"\xef\xbb\xbf", "utf-8", "utf-8"),
    ],
)
def test_a_byte_order_mark_says_more_than_the_header_and_the_page(
    mark: bytes, codec: str, name: str
) -> None:
    text = "<meta charset=windows-1251>" + CHINESE
    assert decode_page(mark + text.encode(codec), "koi8-r") == (text.encode(), name)


def test_the_header_says_more_than_the_page() -> None:
    text = "<meta charset=utf-8>" + RUSSIAN
    assert decode_page(text.encode("koi8-r"), "koi8-r") == (text.encode(), "koi8-r")


@pytest.mark.parametrize(
    "before",
    [
        " " * 1024,
        "<!--" + "x" * 1024 + "-->",
        "<script>" + "x" * 1024 + "<meta charset=koi8-u></script>",
        "<p title='" + "x" * 1024 + "<meta charset=koi8-u>'>",
        "<title>" + "x" * 1024 + "</title><meta charset=nonsense>",
    ],
    ids=["white space", "comment", "script", "attribute", "title"],
)
@pytest.mark.parametrize("meta", ["<meta charset=koi8-r>", "<META\tx='>' charset='KOI8-R' />"])
def test_a_later_meta_element_counts_where_the_parser_meets_it(before: str, meta: str) -> None:
    text = before + meta + RUSSIAN
    assert decode_page(text.encode("koi8-r")) == (text.encode(), "koi8-r")


@pytest.mark.parametrize(
    "meta",
    [
        "<!-- <meta charset=koi8-r> -->",
        "<meta name=charset content=koi8-r>",
        "<meta content='text/html; charset=koi8-r'>",
        "<meta http-equiv='content-type ' content='text/html; charset=koi8-r'>",
        "<metacharset=koi8-r>",
        "</meta charset=koi8-r>",
        "<meta charset=koi8-r",
    ],
)
@pytest.mark.parametrize("before", ["", "x" * 1024], ids=["early", "late"])
def test_what_declares_nothing_leaves_utf_8(before: str, meta: str) -> None:
    assert decode_page((before + meta + "é").encode()).charset == "utf-8"


@pytest.mark.parametrize("name", ["script", "style", "textarea", "title"])
def test_a_meta_element_in_raw_text_counts_in_the_first_bytes_only(name: str) -> None:
    page = f"<{name}><meta charset=koi8-r></{name}>é"
    assert decode_page(page.encode("koi8-r", "replace")).charset == "koi8-r"
    assert decode_page((" " * 1024 + page).encode()).charset == "utf-8"


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(
    "begin", ["<!doctype html>", " \r\n\t<html>", "<?xml version='1.0'?>", "<meta charset=utf-16>"]
)
def test_utf_16_without_a_mark_is_known_by_its_first_tag(codec: str, begin: str) -> None:
    text = begin + CHINESE
    assert decode_page(text.encode(codec)) == (text.encode(), codec.replace("-16-", "-16"))


@pytest.mark.parametrize("begin", [b"<\0p>", b"<\0\0p\0>", b"\0<p>", b"a\0<\0p\0>\0", b"\0", b""])
def test_a_zero_alone_makes_no_utf_16(begin: bytes) -> None:
    assert decode_page(begin + b"<p>").charset == "utf-8"


def test_an_undeclared_escape_to_kanji_is_iso_2022_jp() -> None:
    assert decode_page(JAPANESE.encode("iso-2022-jp")) == (JAPANESE.encode(), "iso-2022-jp")
    assert decode_page(b"<p>\x1b[1m a \x1b(B") == (b"<p>\x1b[1m a \x1b(B", "utf-8")


def test_a_page_that_names_x_user_defined_is_windows_1252_unless_the_header_names_it() -> None:
    page = b"<meta charset=x-user-defined>\x80"
    assert decode_page(page) == (page[:-1] + "€".encode(), "windows-1252")
    assert decode_page(page, "x-user-defined").html.decode()[-1] == "\uf780"


def test_a_page_that_says_utf_16_in_ascii_is_utf_8() -> None:
    text = "<meta charset=utf-16le><p>é"
    assert decode_page(text.encode()) == (text.encode(), "utf-8")


@pytest.mark.parametrize(
    ("text", "codec", "name"),
    [
        (RUSSIAN, "cp1251", "windows-1251"),
        (CHINESE, "gb18030", "gb18030"),
        (JAPANESE, "shift_jis", "shift_jis"),
        (JAPANESE, "euc-jp", "euc-jp"),
        (RUSSIAN, "utf-8", "utf-8"),
    ],
)
def test_an_encoding_that_is_not_declared_is_detected(text: str, codec: str, name: str) -> None:
    assert decode_page((text * 3).encode(codec)) == ((text * 3).encode(), name)


def test_valid_utf_8_is_never_taken_for_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_charset, "_detector", lambda: pytest.fail)
    assert decode_page(b"<p>\xc3\xa9") == (b"<p>\xc3\xa9", "utf-8")


def test_without_the_detector_what_is_not_utf_8_is_windows_1252(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "resiliparse.parse.encoding", None)
    page_charset._detector.cache_clear()
    try:
        assert decode_page(RUSSIAN.encode("koi8-r")).charset == "windows-1252"
        assert decode_page(b"<p>caf\xe9 \x80") == ("<p>café €".encode(), "windows-1252")
    finally:
        page_charset._detector.cache_clear()


def test_what_does_not_fit_the_declared_encoding_is_replaced() -> None:
    assert decode_page("<p>é".encode("latin-1"), "utf-8") == ("<p>\ufffd".encode(), "utf-8")
    assert decode_page(b"\xff\xfe<\0p\0>\0x", None) == ("<p>\ufffd".encode(), "utf-16le")


@pytest.mark.parametrize(
    "label", ["utf-7", "hz-gb-2312", "iso-2022-kr", "replacement", "", "../../x", "\0", "x" * 10**6]
)
def test_labels_that_the_web_does_not_know_count_for_nothing(label: str) -> None:
    assert encoding_of_label(label) is None
    assert decode_page(RUSSIAN.encode(), label) == (RUSSIAN.encode(), "utf-8")


@pytest.mark.parametrize("begin", ["[1] ", "[note] ", "[tel] ", "[-] ", "{x} "])
def test_a_page_may_begin_with_a_text_in_brackets(begin: str) -> None:
    assert page_of(f"{begin}<p>text".encode(), None).html == f"{begin}<p>text".encode()


COMMENTS = [
    "",
    "-",
    "--",
    "!",
    "--!",
    "---!",
    "-!",
    "--!-",
    " --!>",
    "-->",
    ">",
    "->",
    "<!--",
    "--!",
]


@pytest.mark.parametrize("first", COMMENTS)
@pytest.mark.parametrize("second", COMMENTS)
def test_a_page_has_an_element_if_the_tokeniser_finds_one(first: str, second: str) -> None:
    page = f"<!--{first}{second}><p>"
    assert has_element(page.encode()) == (read_tags(pa.array([page])).offsets[-1] > 0)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"%PDF-1.7 <a>", "not HTML: it begins as PDF does"),
        (b' \n{"html": "<p>"}', "not HTML: it begins as JSON does"),
        (b'[{"html": "<p>"}]', "not HTML: it begins as JSON does"),
        (b'[-1.5e3, "<p>"]', "not HTML: it begins as JSON does"),
        (b'[null, "<p>"]', "not HTML: it begins as JSON does"),
        (b"\x89PNG\r\n\x1a\n<p>", "not HTML: it begins as a PNG image does"),
        (b"\xff\xd8\xff\xe0<p>", "not HTML: it begins as a JPEG image does"),
        (b"GIF89a<p>", "not HTML: it begins as a GIF image does"),
        (b"PK\x03\x04<p>", "not HTML: it begins as a ZIP archive does"),
        (b"", "no HTML element"),
        (b"plain words, 1 < 2, x <3", "no HTML element"),
        (b"<!-- <p> -->", "no HTML element"),
        (b"<!-- <p>", "no HTML element"),
        (b"<!doctype html></p><?php ?>", "no HTML element"),
        (
            b"<p>" + b" " * MAX_PAGE_BYTES,
            "the page is longer than 16777216 bytes, the longest page that is read",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_is_no_page_is_rejected(tmp_path: Path, data: bytes, reason: str) -> None:
    (tmp_path / "a.html").write_bytes(data)
    pages, (rejected,) = read(tmp_path / "a.html")
    assert pages == []
    assert (rejected.file, rejected.row, rejected.reason) == (str(tmp_path / "a.html"), 0, reason)
    assert rejected.excluded == (
        not data or reason != "no HTML element"
    )  # by a stated rule: type, size, or empty


@pytest.mark.parametrize(
    "data",
    [
        b"<p>",
        b"\n<P >",
        b"<!--><p>",
        b"<!-- a --><b>",
        b"{% x %}<p>",
        b"[a] <i>",
        b"1 < 2 <i",
        b"<!---><a>",
    ],
)
def test_what_has_an_element_is_a_page(data: bytes) -> None:
    assert page_of(data, None).html == data


def test_the_longest_page_is_read() -> None:
    assert page_of(b"<p>" + b" " * (MAX_PAGE_BYTES - 3), None).charset == "utf-8"


def test_utf_16_is_judged_once_it_is_decoded() -> None:
    assert page_of("\ufeff<p>é".encode("utf-16-le"), None).html == "<p>é".encode()
    with pytest.raises(NotAPage, match="no HTML element"):
        page_of("\ufeffx < 1 <é".encode("utf-16-be"), None)


def test_a_compressed_page_ends_at_the_limit_however_long_it_is(tmp_path: Path) -> None:
    (tmp_path / "bomb.html.gz").write_bytes(gzip.compress(b"<p>" + bytes(64 << 20)))
    texts, (rejected,) = read(tmp_path / "bomb.html.gz")
    assert not texts
    assert rejected.reason.startswith("the page is longer than 16777216 bytes")


def test_a_damaged_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "a.html.gz").write_bytes(gzip.compress(b"<p>" * 1000)[:-20])
    texts, (rejected,) = read(tmp_path / "a.html.gz")
    assert not texts
    assert rejected.reason.startswith("the file cannot be read")


@pytest.mark.parametrize(
    ("page", "title"),
    [
        ("<title>One</title>", "One"),
        ("<html><head>\n<TITLE\nid=x>\n Tom &amp; Jerry &#8211;\t2\n</TITLE >", "Tom & Jerry – 2"),
        ("<title>a <b>is text</title>", "a <b>is text"),
        (
            (
                "<!-- <title>no</title> "
                "--><script>'<title>no</title>'</script><title>yes</title><title>2</title>"
            ),
            "yes",
        ),
        ("<!-- <title>no</title> --!><title>yes</title>", "yes"),
        ("<!--><title>yes</title>-->", "yes"),
        ("<!---><title>yes</title>-->", "yes"),
        ("<!--!><title>no</title>--><title>yes</title>", "yes"),
        ("<title></title>", None),
        ("<title>never ends", None),
        ("<titles>no</titles>", None),
        ("<p>none", None),
        ("", None),
        ("<title>" + "ab " * 1000 + "</title>", ("ab " * 334)[:1000].rstrip()),
        (" " * HEAD_CHARACTERS + "<title>too late</title>", None),
        # More digits than Python converts.
        ("<title>A &#" + "1" * 5000 + ";</title>", "A \ufffd"),
    ],
)
def test_the_title_is_the_text_of_the_first_title_element(page: str, title: str | None) -> None:
    assert title_of(page) == title
    assert len(title or "") <= MAX_TITLE_CHARACTERS


@pytest.mark.parametrize(
    ("page", "language"),
    [
        ('<html lang="en">', "en"),
        ("<!doctype html>\n<HTML class=no-js LANG=zh-Hant-TW>", "zh-hant-tw"),
        ("<html xml:lang='pt-BR'>", "pt-br"),
        ('<html lang="de" xml:lang="fr">', "de"),
        ('<!-- <html lang="fr"> --><html lang="en_US">', "en_us"),
        ('<html><head><meta http-equiv="Content-Language" content=" nl "></head>', "nl"),
        ('<html><meta http-equiv="content-language" content="en, fr">', None),
        ('<html lang=""><body lang="en">', None),
        ('<html data-x="lang=en">', None),
        ('<html lang="{{ lang }}">', None),
        ("<p lang=en>", None),
        ("<html lang='&#" + "1" * 5000 + ";'>", None),
    ],
)
def test_the_language_is_what_the_page_declares(page: str, language: str | None) -> None:
    assert language_of(page) == language


@pytest.mark.timing
@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<!--",
        "<!-",
        "<title",
        "<title>",
        "<html ",
        "<meta ",
        "<meta a=",
        '<html "',
        "<html '",
        "<script>",
        "</script",
        "<meta>",
        "<style><",
        "<html a ",
        "&",
        "<title>&amp",
        "<meta content='",
        "<html =",
        '<meta a="b" ',
    ],
)
def test_no_page_makes_its_head_slow_to_read(unit: str) -> None:
    page = unit * (HEAD_CHARACTERS // len(unit))
    begin = time.process_time()
    title_of(page)
    language_of(page)
    decode_page(page.encode())
    has_element((unit * (MAX_PAGE_BYTES // len(unit))).encode())
    assert time.process_time() - begin < 2


PIECES = st.sampled_from(
    [
        b"<",
        b">",
        b"<html lang=",
        b"<title>",
        b"</title>",
        b"<meta charset=",
        b'"',
        b"'",
        b"utf-16",
        b"shift_jis",
        b"-->",
        b"<!--",
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\x1b$B",
        b"&#x110000;",
        b"&amp",
        b"{",
        b"%PDF-",
    ]
)
BYTES = st.lists(st.one_of(PIECES, st.binary(max_size=20)), max_size=30).map(b"".join)


@pytest.mark.slow
@settings(max_examples=400)
@given(BYTES)
def test_any_bytes_are_a_page_or_are_rejected(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any.html"
    path.write_bytes(data)
    texts, rejected = read(path, Columns("html", "title"))
    assert len(texts) + len(rejected) == 1
    for text in texts:
        assert len((title_of(text) or "").splitlines()) < 2
        assert language_of(text) != ""
