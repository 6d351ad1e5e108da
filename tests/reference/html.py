"""The tags of a page by regular expressions, and the hashes of their structure."""

from __future__ import annotations

import re
from typing import NamedTuple

MASK = (1 << 64) - 1
VALUED = (b"class", b"id", b"name", b"rel", b"type")
RAW_TEXT = (b"iframe", b"noembed", b"noframes", b"script", b"style", b"textarea", b"title", b"xmp")
TAG = re.compile(rb"<(/?)([A-Za-z][^ \t\n\f\r/>]*)")
COMMENT = re.compile(rb"<!--(?:-?>|.*?--!?>|.*\Z)", re.DOTALL)
OTHER_MARKUP = re.compile(rb"<(?:[!?]|/(?!\Z))[^>]*(?:>|\Z)")
END_OF_TAG = re.compile(rb"[ \t\n\f\r/]*>")
ATTRIBUTE = re.compile(
    rb"[ \t\n\f\r/]*([^ \t\n\f\r/>][^ \t\n\f\r/>=]*)[ \t\n\f\r]*"
    rb"(?:=[ \t\n\f\r]*(?:\"([^\"]*)\"|'([^']*)'|([^ \t\n\f\r>\"'][^ \t\n\f\r>]*)|(?=>)))?"
)


class Tag(NamedTuple):
    """A start or end tag. attributes : the first value of each name; start : where its "<" stands;
    end : behind it.
    """

    is_end: bool
    name: bytes
    attributes: dict[bytes, bytes]
    self_closing: bool
    after_text: bool
    start: int
    end: int


def tags_of(page: bytes) -> list[Tag]:
    """Return the tags of a page as the HTML standard cuts them."""
    tags: list[Tag] = []
    position = 0
    text = False
    while position < len(page):
        tag = TAG.match(page, position)
        markup = COMMENT.match(page, position) or OTHER_MARKUP.match(page, position)
        if not tag:
            text = text or not (markup or page[position : position + 1] in b" \t\n\f\r")
            position = markup.end() if markup else position + 1
            continue
        attributes, end, self_closing = attributes_of(page, tag.end())
        if end is None:
            break
        name = tag[2].lower()
        tags.append(Tag(tag[1] != b"", name, attributes, self_closing, text, position, end))
        position = end
        text = False
        if name == b"plaintext" and not tag[1]:
            break
        if name in RAW_TEXT and not tag[1]:
            close = re.compile(rb"</" + name + rb"[ \t\n\f\r/>]", re.IGNORECASE).search(
                page, position
            )
            position = close.start() if close else len(page)
    return tags


def attributes_of(page: bytes, position: int) -> tuple[dict[bytes, bytes], int | None, bool]:
    """Return the attributes of a tag, its end (None where the page ends before), and whether it is
    self-closing.
    """
    attributes: dict[bytes, bytes] = {}
    while not (end := END_OF_TAG.match(page, position)):
        attribute = ATTRIBUTE.match(page, position)
        if (
            not attribute
            or page[attribute.end() : attribute.end() + 1] == b"="
            or attribute.end() == len(page)
        ):
            return {}, None, False
        name, *values = attribute.groups()
        attributes.setdefault(
            name.lower(), next((value for value in values if value is not None), b"")
        )
        position = attribute.end()
    return (
        attributes,
        end.end(),
        page[end.end() - 2 : end.end()] == b"/>" and page[position : end.end()] != b">",
    )


def opens_shadow_root(tag: Tag) -> bool:
    """Return whether the content of a template is shown, as a shadow root of the element around
    it.
    """
    mode = re.split(
        rb"[ \t\n\f\r]+", tag.attributes.get(b"shadowrootmode", b"").strip(b" \t\n\f\r")
    )
    return tag.name == b"template" and not tag.is_end and mode in ([b"open"], [b"closed"])


def hash_bytes(name: bytes) -> int:
    """FNV-1a, 64 bits."""
    state = 0xCBF29CE484222325
    for byte in name:
        state = (state ^ byte) * 0x100000001B3 & MASK
    return state


def mix(value: int) -> int:
    """The 64-bit finaliser moremur (Pelle Evensen, 2019)."""
    value = (value ^ value >> 27) * 0x3C79AC492BA7B653 & MASK
    value = (value ^ value >> 33) * 0x1C69B3F74AC4AE35 & MASK
    return value ^ value >> 27


def token_of(tag: Tag) -> int:
    """Return the hash of a tag with its attributes, and with the words of those that tell the
    structure.
    """
    total = hash_bytes(tag.name)
    for name, value in tag.attributes.items():
        total += mix(hash_bytes(name))
        if name in VALUED:
            for word in re.split(rb"[ \t\n\f\r]+", value):
                if word:
                    salt = hash_bytes(name) * 0x9E3779B97F4A7C15 & MASK
                    total += mix(hash_bytes(re.sub(rb"[0-9]+", b"#", word)) ^ salt)
    return mix(total & MASK)


LINES = set(
    b"address article aside blockquote body br caption center dd details dialog dir div dl dt "
    b"fieldset figcaption "
    b"figure footer form frame frameset h1 h2 h3 h4 h5 h6 header hgroup hr html legend li "
    b"listing main menu nav ol "
    b"optgroup option p plaintext pre search section summary table tbody tfoot thead tr ul xmp".split()  # noqa: E501
)
APART = set(
    (
        b"audio button canvas embed iframe img input meter object progress select svg td textarea "
        b"th video"
    ).split()
)
HIDDEN = set(
    b"audio canvas datalist iframe noembed noframes noscript script select style svg template "
    b"textarea title "
    b"video".split()
)


def text_of(page: bytes) -> bytes:
    """Return what a page shows, each run of blanks as one, a block on a line of its own."""
    text = b""
    position = 0
    open_ = []
    literal = False
    for tag in tags_of(page):
        text += b"" if open_ else shown(page[position : tag.start], literal)
        position = tag.end
        literal = not tag.is_end and tag.name in (b"plaintext", b"xmp")
        if open_ and tag.name == open_[0]:
            open_ = open_[1:] if tag.is_end else [*open_, tag.name]
        elif not open_:
            text += b"\x01" if tag.name in LINES else b" " if tag.name in APART else b""
            if (
                tag.name in HIDDEN
                and not tag.is_end
                and not (tag.name == b"svg" and tag.self_closing)
                and not opens_shadow_root(tag)
            ):
                open_ = [tag.name]
    text += b"" if open_ else shown(page[position:], literal)
    lines = (re.sub(rb"[ \t\n\f\r]+", b" ", line).strip(b" ") for line in text.split(b"\x01"))
    return b"\n".join(line for line in lines if line)


def shown(piece: bytes, literal: bool) -> bytes:
    """Return a piece of text without comments, half tags and zeros; `literal` text without the
    zeros only.
    """
    if not literal:
        piece = re.sub(
            rb"(?P<half></?[A-Za-z].*\Z)|" + COMMENT.pattern + b"|" + OTHER_MARKUP.pattern,
            b"",
            piece,
            flags=re.DOTALL,
        )
    return piece.replace(b"\0", b"")
