"""What a page shows is the text between its tags, but for that of scripts and the like; in short it
shows the same.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.kernels import html_tags
from neardup.kernels.html_text import MAX_TAG_BYTES, write_texts
from neardup.kernels.html_tokens import tags_of
from reference import html as reference

PIECES = (
    b"< > / ! ? & a b' 1 \x00 \xc3\xa9 \xff <p </p <p> </p> <b> </b> <br/> <a href=x> </a> "
    b"<td> <x-y> </x-y> <meta> "
    b"<!-- c --> <!--> --> <?d> </ </> <script> </script> <style> </style> <title> </TITLE > "
    b"<noscript> </noscript> "
    b"<template> <template\tshadowrootmode=open> </template> <select> </select> "
    b"<svg> <svg/> </svg> <xmp> </xmp> <plaintext> "
    b"<body> </html> &lt; "
    b"<p\tid='>'> <img\nalt=a>"
).split(b" ")
PAGES = st.lists(st.sampled_from([*PIECES, b" ", b"\n", b"\x0b"]), max_size=40).map(b"".join)


def write(*pages: bytes, short: bool = False) -> list[bytes]:
    data = np.frombuffer(b"".join(pages), np.uint8)
    offsets = np.cumsum([0, *map(len, pages)], dtype=np.int64)
    num_brackets = sum(page.count(b"<") for page in pages)
    tags = tags_of(data, offsets)
    text = np.empty(len(data) + 3 * num_brackets * short, np.uint8)
    limits = np.empty(len(offsets), np.int64)
    write_texts(data, offsets, tags, short, text, limits)
    return [text[first:stop].tobytes() for first, stop in pairwise(limits)]


def words_of(text: bytes) -> list[bytes]:
    return text.replace(b"&lt;", b"<").split()


@given(st.lists(PAGES, max_size=4))
@example(
    [
        b"a<p>b<i>c</i> d<td>e",
        b" a ",
        b"<template><template></template>a</template>b",
        b"<svg/>a<svg>b</svg>c",
        b"<x-y><template shadowrootmode=open>a<template>b</template>c</template>d</x-y>",
    ]
)
@example(
    [
        b"<xmp><p>a<!-- b",
        b"a<plaintext><p>",
        b"a<!-- b -->c<",
        b"a</p",
        b"a<b <p",
        b"a</",
        b"<title>a</title>b",
    ]
)
def test_the_text_is_that_of_the_reference(pages):
    assert write(*pages) == [reference.text_of(page) for page in pages]


@given(st.lists(PAGES, max_size=4))
@example(
    [
        b"<<b>p>",
        b"a<<!-- -->p>",
        b"<x-y><<b></b>/x-y>",
        b"<xmp><</xmp>p>",
        b"<p " + b"a" * MAX_TAG_BYTES + b">b",
    ]
)
def test_a_page_in_short_shows_the_same_words(pages):
    in_short = write(*write(*pages, short=True))
    assert [words_of(page) for page in in_short] == [words_of(page) for page in write(*pages)]


@given(PAGES)
def test_a_page_in_short_has_no_tags_but_those_that_say_what_is_content(page):
    left_out = (
        html_tags.FORMATTING
        | html_tags.VOID
        | html_tags.METADATA
        | html_tags.HIDDEN
        | html_tags.PAGE_PART
    )
    kept = {b"a", b"br"}
    for tag in reference.tags_of(write(page, short=True)[0]):
        assert (
            tag.name in kept
            or not html_tags.flags_of(np.uint64(reference.hash_bytes(tag.name))) & left_out
        )


@pytest.mark.parametrize("name", [b"p", b"x" * 2 * MAX_TAG_BYTES])
def test_long_tags_are_short_ones_in_a_page_in_short(name):
    page = write(b"<" + name + b" a='" + b"b" * MAX_TAG_BYTES + b"'>c</" + name + b">", short=True)[
        0
    ]
    assert [tag.attributes for tag in reference.tags_of(page)] == [{}, {}]
    assert max(tag.end - tag.start for tag in reference.tags_of(page)) <= MAX_TAG_BYTES


def test_a_page_in_short_has_a_bounded_number_of_names_that_html_does_not_know():
    page = b"".join(b"<x-%d>" % i for i in range(2000))
    assert 128 < len(reference.tags_of(write(page, short=True)[0])) <= 256
    assert write(b"<x-y class=a>b</x-y>", short=True) == [b"<x-y class=a>b</x-y>"]
