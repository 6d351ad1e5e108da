"""Elements stand where the HTML standard puts them: implied, ignored and closed by others."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from neardup.kernels.html_tokens import tags_of
from neardup.kernels.html_tree import MAX_DEPTH, elements_of
from reference import html as reference

JIT_IS_OFF = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
NAMES = [
    "html",
    "head",
    "body",
    "title",
    "link",
    "template",
    "p",
    "div",
    "span",
    "a",
    "b",
    "h1",
    "h2",
    "ul",
    "li",
    "dl",
    "dt",
    "dd",
    "table",
    "caption",
    "colgroup",
    "col",
    "thead",
    "tbody",
    "tr",
    "td",
    "th",
    "form",
    "input",
    "select",
    "optgroup",
    "option",
    "button",
    "br",
    "svg",
    "g",
    "path",
    "math",
    "foreignobject",
    "script",
    "style",
    "frameset",
    "x-y",
]
NAME_OF = {
    reference.hash_bytes(name.encode()): name for name in [*NAMES, "meta", "circle", "i", "html"]
}
PIECES = [
    f"<{slash}{name}{end}>" for name in NAMES for slash, end in (("", ""), ("/", ""), ("", "/"))
]
PAGES = st.lists(st.sampled_from([*PIECES, "x", " ", "<!doctype html>"]), max_size=60).map("".join)


def read(*pages: str):
    texts = [page.encode() for page in pages]
    data = np.frombuffer(b"".join(texts), np.uint8)
    return elements_of(tags_of(data, np.cumsum([0, *map(len, texts)], dtype=np.int64)))


def outline(elements, page: int = 0) -> str:
    """Return the names of the elements of a page, each with its depth."""
    rows = slice(elements.offsets[page], elements.offsets[page + 1])
    return " ".join(
        f"{NAME_OF[int(name)]}{depth}"
        for name, depth in zip(elements.names[rows], elements.depths[rows], strict=True)
    )


# What the parser lexbor (selectolax 1.0.2) makes of these pages; html, head and body come first in
# all.
@pytest.mark.parametrize(
    ("page", "inside"),
    [
        ("<p>a<p>b<div>c</p>d</div>", "p2 p2 div2 p3"),
        ("<ul><li>a<li>b<ul><li>c</ul><li>d</ul>", "ul2 li3 li3 ul4 li5 li3"),
        ("<dl><dt>a<dd>b<dt>c</dl>", "dl2 dt3 dd3 dt3"),
        ("<table><tr><td>a<td>b<tr><th>c</table>", "table2 tbody3 tr4 td5 td5 tr4 th5"),
        (
            "<table><td><table><tr><td>x</table></table><p>",
            "table2 tbody3 tr4 td5 table6 tbody7 tr8 td9 p2",
        ),
        ("<table><col><tr><td></table>", "table2 colgroup3 col4 tbody3 tr4 td5"),
        ("<table><form><tr><td></form><p></table>", "table2 form3 tbody3 tr4 td5 p6"),
        ("<tr><td><p>", "p2"),
        (
            "<select><option>a<option>b<optgroup><option>c</select>",
            "select2 option3 option3 optgroup3 option4",
        ),
        ("<h1>a<h2>b</h1><p>", "h12 h22 p2"),
        ("<form><form><input></form><p></form>", "form2 input3 p2"),
        ("<button><p>a<button>b", "button2 p3 button2"),
        ("<div><span></div></span><p>", "div2 span3 p2"),
        ("<svg><path/><g><circle/></g></svg><p>", "svg2 path3 g3 circle4 p2"),
        ("x</p></br><p>", "p2 br2 p2"),
        ("</p><p>", "p2"),
    ],
)
def test_elements_stand_where_the_standard_puts_them(page, inside):
    assert outline(read(page)) == "html0 head1 body1 " + inside


@pytest.mark.parametrize(
    ("page", "elements"),
    [
        ("<title>t</title><meta><p>x<meta>", "html0 head1 title2 meta2 body1 p2 meta3"),
        ("<head><title>t</title>x<link>", "html0 head1 title2 body1 link2"),
        ("<html class=a><html><head></head><link><body><body>", "html0 head1 link2 body1"),
        ("<script></script>", "html0 head1 script2 body1"),
    ],
)
def test_html_head_and_body_are_there_once(page, elements):
    assert outline(read(page)) == elements


def test_a_page_without_elements_has_none():
    assert outline(read("plain < text", "", "<!-- <p> -->", "</div>")) == ""


def test_an_element_implied_has_the_token_of_its_name_and_others_that_of_their_attributes():
    elements = read("<html class=a>", "<html>", "<p>")
    first, plain, implied = elements.tokens[elements.offsets[:3]]
    assert first != plain == implied


def test_elements_deeper_than_the_limit_stand_at_the_limit():
    depths = read("<div>" * (2 * MAX_DEPTH)).depths[: 2 * MAX_DEPTH + 3]
    assert depths.max() == MAX_DEPTH
    assert list(depths[:5]) == [0, 1, 1, 2, 3]


@given(st.lists(PAGES, max_size=3))
def test_pages_are_trees_whatever_their_tags(pages):
    elements = read(*pages)
    for page in range(len(pages)):
        rows = slice(elements.offsets[page], elements.offsets[page + 1])
        names = [NAME_OF[int(name)] for name in elements.names[rows]]
        depths = elements.depths[rows].astype(int)
        if len(depths):
            assert names[:2] == ["html", "head"]
            assert depths[0] == 0
            assert (depths[1:] >= 1).all()
            assert (np.diff(depths) <= 1).all()
            assert names.count("html") == 1
            assert names.count("head") == 1


@given(st.lists(PAGES, min_size=1, max_size=4))
def test_a_page_has_the_same_elements_alone_and_among_others(pages):
    together = read(*pages)
    assert [outline(together, page) for page in range(len(pages))] == [
        outline(read(page)) for page in pages
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    "repeated",
    [
        "<div>",
        "<b>",
        "<a><p>",
        "<p>x",
        "<table><tr><td>",
        "</div>",
        "<b></p>",
        "<svg>",
        "<a><b><i></a>",
    ],
)
def test_pages_made_to_take_long_do_not(repeated):
    elements = read("<div>" * 600 + repeated * (200 if JIT_IS_OFF else 200_000))
    assert elements.depths[: elements.offsets[1]].max() <= MAX_DEPTH
