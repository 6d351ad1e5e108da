"""The tags of a page are those of the HTML standard, in time linear in its bytes, whatever they
are.
"""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from neardup.kernels import html_tags
from neardup.kernels.html_tokens import (
    AFTER_TEXT,
    END,
    MAX_ATTRIBUTES,
    SELF_CLOSING,
    SHADOW_ROOT,
    START,
    tags_of,
)
from reference import html as reference

JIT_IS_OFF = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
TAG_NAMES = ("a", "b", "div", "p", "script", "title", "textarea")
PIECES = (
    b"< > / = \" ' - ! ? a b p div i1 22 <p <div </p> </div> <br/> <a> id class= rel=x "
    b"name='b 2' <!-- --> --!> <!--> "
    b"<script> </script> </script <title> </TITLE > <plaintext> <!doctype\t <?xml ?> </ \x00 "
    b"\xc3\xa9 \xff x<y"
).split(b" ")
PAGES = st.lists(st.sampled_from([*PIECES, b" ", b"\n", b"\x0b"]), max_size=40).map(b"".join)


def read(*pages: bytes):
    offsets = np.cumsum([0, *map(len, pages)], dtype=np.int64)
    return tags_of(np.frombuffer(b"".join(pages), np.uint8), offsets)


def rows(tags, page: int, first: int = 0) -> list[tuple[int, ...]]:
    """Return name, token (0 of an end tag), kind, start and end of the tags of a page that begins
    at byte `first`.
    """
    rows = slice(tags.offsets[page], tags.offsets[page + 1])
    tokens = np.where(tags.kinds[rows] & START, tags.tokens[rows], 0)
    columns = (
        tags.names[rows],
        tokens,
        tags.kinds[rows],
        tags.starts[rows] - first,
        tags.ends[rows] - first,
    )
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]


def expected(page: bytes) -> list[tuple[int, ...]]:
    return [
        (
            reference.hash_bytes(tag.name),
            0 if tag.is_end else reference.token_of(tag),
            (END if tag.is_end else START)
            | SELF_CLOSING * tag.self_closing
            | AFTER_TEXT * tag.after_text
            | SHADOW_ROOT * reference.opens_shadow_root(tag),
            tag.start,
            tag.end,
        )
        for tag in reference.tags_of(page)
    ]


def names(page: bytes) -> list[str]:
    """Return the tags of a page by name, end tags with a slash."""
    known = {reference.hash_bytes(name.encode()): name for name in TAG_NAMES}
    return ["/" * (row[2] & END == END) + known[row[0]] for row in rows(read(page), 0)]


def token(tag: bytes) -> int:
    return rows(read(tag), 0)[0][1]


@given(st.lists(PAGES, max_size=4))
@example([b"<!--!><p>", b"<!---!><p>--><b>", b"<!----!><p>", b"<!---><p>", b"<!--->--><p>"])
@example(
    [b"<p/ >", b"<p / id>", b"<p a=b/>", b"<p =a>", b"<p a==b>", b"<p a='x'b>", b"<p a=>", b"<p a"]
)
@example(
    [
        b"</>",
        b"</ p>",
        b"<",
        b"</",
        b"<p",
        b"a<p>",
        b"<TiTle></titl></title><p>",
        b"<p a='>",
        b"<title></a</title><p>",
    ]
)
@example(
    [
        b"<template shadowrootmode=open><template a shadowrootmode='closed'/>",
        b"<TEMPLATE SHADOWROOTMODE = ' open\n' ></template shadowrootmode=open>",
        b"<template shadowrootmode><template shadowrootmode=><template shadowrootmode='open open'>",
        b"<template shadowrootmode=no shadowrootmode=open><p shadowrootmode=open>",
        b"<template x='shadowrootmode=open'><template shadowrootmode=open",
    ]
)
@example(
    [b"<p class='a  b' CLASS=c>", b"<p class=post-12>", b"<p id=1a2>", b"<p b=1 name=1 type=2>"]
)
def test_the_tags_are_those_of_the_reference(pages):
    tags = read(*pages)
    first = 0
    for index, page in enumerate(pages):
        assert rows(tags, index, first) == expected(page)
        first += len(page)


def test_tags_in_comments_scripts_and_attributes_are_none():
    assert names(
        b"<!-- <p> --><script>'<p>'</script><a title='<p>'><textarea><p></textarea></a>"
    ) == [
        "script",
        "/script",
        "a",
        "textarea",
        "/textarea",
        "/a",
    ]


def test_the_order_of_attributes_and_of_classes_does_not_matter():
    assert token(b"<p class='a b' id=x>") == token(b"<P ID=x class=' b\na '>")


def test_numbers_in_names_do_not_matter_and_other_differences_do():
    assert token(b"<p class=post-1234>") == token(b"<p class=post-7>")
    others = [
        b"<p>",
        b"<p class>",
        b"<p class=a>",
        b"<p class=b>",
        b"<p id=a>",
        b"<p class=post->",
        b"<p class=post-#1>",
    ]
    assert len({token(tag) for tag in others}) == len(others)


def test_values_of_other_attributes_do_not_matter():
    assert token(b"<a href=x title='a b'>") == token(b"<a href='y' title>")


def test_attributes_past_the_limit_are_not_looked_at():
    many = b"<p " + b" ".join(b"a%d" % i for i in range(MAX_ATTRIBUTES))
    assert token(many + b" b>") == token(many + b">") != token(many[:-1] + b">")


@pytest.mark.parametrize(
    ("first", "repeated", "count", "num_tags"),
    [
        (b"", b"<div>", 100_000, 100_000),
        (b"", b"<p>x", 1_000_000, 1_000_000),
        (b"<p class=", b"a", 10_000_000, 0),
        (b"<p", b" a=1", 2_000_000, 0),
        (b"", b"<", 5_000_000, 0),
        (b"", b"<!--", 1_000_000, 0),
        (b"<script>", b"<!--", 1_000_000, 1),
        (b"<title>", b"</titl", 1_000_000, 1),
        (b"<p ", b"<p a='", 1_000_000, 0),
        (b"", b"\0", 5_000_000, 0),
    ],
    ids=[
        "nested",
        "siblings",
        "value",
        "attributes",
        "brackets",
        "comments",
        "scripts",
        "titles",
        "quotes",
        "zeros",
    ],
)
def test_pages_made_to_take_long_do_not(first, repeated, count, num_tags):
    share = 1000 if JIT_IS_OFF else 1
    assert read(first + repeated * (count // share)).offsets[1] == (
        num_tags if num_tags < 2 else num_tags // share
    )


def test_two_hundred_thousand_attributes_are_one_tag():
    names = b" ".join(b"a%d" % i for i in range(2_000 if JIT_IS_OFF else 200_000))
    assert read(b"<p " + names + b">").offsets[1] == 1


def test_known_names_have_their_bits():
    slots = {
        int(key): int(flags)
        for key, flags in zip(html_tags.KEYS, html_tags.FLAGS, strict=True)
        if key
    }
    assert slots[reference.hash_bytes(b"script")] & html_tags.RAW_TEXT
    assert slots[reference.hash_bytes(b"br")] & html_tags.VOID
    assert {key for key, flags in slots.items() if flags & html_tags.RAW_TEXT} == set(
        map(reference.hash_bytes, reference.RAW_TEXT)
    )
