"""XHTML is read as XML: its empty tags are elements, its CDATA sections are text."""

from __future__ import annotations

import time
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.api.texts import compare
from neardup.documents.batch import Columns
from neardup.documents.page_text import texts_of_pages
from neardup.documents.pages import html_of, page_of
from neardup.documents.xhtml import begins_as_xhtml, html_of_xhtml
from neardup.runs.input_files import list_inputs

XHTML = "application/xhtml+xml"
BEGIN = """<?xml version="1.0" encoding="utf-8"?>
<!-- of an e-book -->
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd">
"""


@pytest.mark.parametrize(
    ("xhtml", "html"),
    [
        ("<title/><p>a</p>", "<title></title><p>a</p>"),
        ("<script src='a.js' />a", "<script src='a.js'></script>a"),
        ("<div class='a'/>b", "<div class='a'></div>b"),
        ("<a title='/>'>b</a>", "<a title='/>'>b</a>"),
        ("<br/>a<img src='b'/>", "<br/>a<img src='b'/>"),
        ("<br></br>a", "<br>a"),
        ("<svg><path d='M0'/></svg>", "<svg><path d='M0'></path></svg>"),
        ("<![CDATA[1 < 2 && <p>]]>", "1 &lt; 2 &amp;&amp; &lt;p&gt;"),
        ("<script><![CDATA[ if (a < b) ]]></script>", "<script><![CDATA[ if (a < b) ]]></script>"),
        (
            "<script><![CDATA[ a('<script></script>') ]]></script><br></br>",
            "<script><![CDATA[ a('<script><\\/script>') ]]></script><br>",
        ),
        ("<script><![CDATA[ a </script><p/>", "<script><![CDATA[ a </script><p/>"),
        ("<!-- <p/> --><p/>", "<!-- <p/> --><p></p>"),
        ("a<!--> <p/> -->b<!---> c -->", "ab"),
        ("<?php if (a > b) ?>c<?d?>", "c<?d?>"),
        ('<!DOCTYPE html [<!ENTITY a "b">]><p>&a;</p>', "<!DOCTYPE html ><p>&a;</p>"),
        (
            '<!DOCTYPE html [<!ENTITY a "b">\n] ><p>a<![CDATA[ < ]]></p>',
            "<!DOCTYPE html ><p>a &lt; </p>",
        ),
        ("<p>a < b &amp; c</p>", "<p>a < b &amp; c</p>"),
        ("<p>a<![CDATA[b", "<p>a<![CDATA[b"),
        ("<p/><p title='a", "<p></p><p title='a"),
    ],
)
def test_what_html_reads_otherwise_is_written_as_html(xhtml: str, html: str) -> None:
    assert html_of_xhtml(xhtml) == html


@pytest.mark.parametrize(
    ("media_type", "begin", "is_xml"),
    [
        (XHTML, "", True),
        (XHTML, BEGIN, True),
        ("text/html", BEGIN, False),
        ("", BEGIN, True),
        ("", "\ufeff" + BEGIN, True),
        ("", "<!doctype html>", False),
        ("", BEGIN.partition("\n")[2], False),
        ("", BEGIN.replace("XHTML", "HTML"), False),
    ],
)
def test_xhtml_is_known_by_its_type_or_by_its_begin(
    media_type: str, begin: str, is_xml: bool
) -> None:
    page = (begin + "<html><title/><p>Flood</p></html>").encode()
    html = html_of(page, media_type=media_type).html
    assert texts_of_pages(pa.array([html]), main=False).to_pylist() == ["Flood" if is_xml else ""]


def test_the_declaration_of_xml_counts_before_a_meta_element() -> None:
    page = "<?xml version='1.0' encoding='koi8-r'?><html><meta charset='utf-8'/>Все".encode(
        "koi8-r"
    )
    assert page_of(page, None, media_type=XHTML).charset == "koi8-r"
    assert page_of(page, None, media_type="text/html").charset == "utf-8"


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.xhtml", "Flood"), ("A.XHTML", "Flood"), ("a.html", ""), ("b.xhtml.html", "")],
)
def test_a_file_with_its_suffix_is_xhtml(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text("<html><title/><body><p>Flood</p></body></html>")
    (part,) = list_inputs([str(path)])
    (batch,) = part.read(Columns("html"), pytest.fail)
    assert texts_of_pages(batch.text, main=False).to_pylist() == [text]


def test_compare_reads_xhtml_as_a_run_does(tmp_path: Path) -> None:
    (tmp_path / "a.xhtml").write_text(
        "<html><script src='a'/><body><p>Flood in town</p></body></html>"
    )
    (tmp_path / "b.html").write_text("<html><body><p>Flood in town</p></body></html>")
    compared = compare(tmp_path / "a.xhtml", tmp_path / "b.html", method="content")
    assert compared.similarity == 1.0


TEXTS = st.sampled_from(["a", " b ", "&lt;", "<![CDATA[1 < 2 &amp;]]>", "<!-- <p/> -->", "<?c d?>"])
VOID = st.sampled_from(["<br/>", "<br></br>", "<img src='>'/>"])


def elements(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Return elements with others in them; an empty one may be a single tag."""

    def write(name: str, contents: list[str], is_short: bool) -> str:
        if is_short and not contents:
            return f"<{name} title='/>' />"
        return f"<{name}>{''.join(contents)}</{name}>"

    names = st.sampled_from(["p", "div", "x-y", "h1", "a"])
    return st.builds(write, names, st.lists(inner, max_size=4), st.booleans())


class Page(HTMLParser):
    """The tags of a page of HTML, as ElementTree names them, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@given(elements(st.recursive(TEXTS | VOID, elements, max_leaves=12)))
def test_a_parser_of_html_reads_the_elements_and_the_text_of_a_parser_of_xml(page: str) -> None:
    tree = ElementTree.fromstring(page)
    written = Page(html_of_xhtml(page))
    assert written.names == [element.tag for element in tree.iter()]
    assert written.text == "".join(tree.itertext())


@pytest.mark.timing
@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<p",
        "<p/>",
        "<!--",
        "<![CDATA[",
        "<!DOCTYPE",
        "<!DOCTYPE [",
        "<?",
        "<p a='",
        "<script>",
        "<script><![CDATA[",
        "<script><![CDATA[</script>",
        "<script><![CDATA[</script>]]>",
        "<!DOCTYPE [] ]",
        "<?xml ",
    ],
)
def test_no_page_of_xhtml_is_slow_to_write(unit: str) -> None:
    page = unit * ((1 << 20) // len(unit))
    begin = time.process_time()
    html_of_xhtml(page)
    begins_as_xhtml(page.encode())
    assert time.process_time() - begin < 2
