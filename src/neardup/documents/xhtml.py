"""Write pages of XHTML as HTML, which has no empty tags, no CDATA sections and no DTDs.

    <script src="a.js"/>       <script src="a.js"></script>
    <![CDATA[1 < 2]]>          1 &lt; 2
    <br></br>                  <br>

Entities of a DTD stay as written: they are never expanded. A page that is not well-formed is
written to its end, as far as its tags can be told. Time is linear in the characters.
"""

from __future__ import annotations

import html
import re
from typing import NamedTuple

from neardup import kernels
from neardup.documents.page_head import read_attributes

MEDIA_TYPE = "application/xhtml+xml"

_MARKUP = re.compile(
    r"<(?:(?P<comment>!--)|(?P<cdata>!\[CDATA\[)|(?P<doctype>!DOCTYPE)|(?P<instruction>\?)|"
    r"(?P<slash>/?)(?P<name>[A-Za-z_:][^\t\n\r />]*))"
)
_BEGIN = re.compile(
    r"\s{0,100}<\?xml\s[^>]{0,200}>(?:\s|<!--[^>]{0,500}-->){0,100}"
    r"<!DOCTYPE\s{1,100}[A-Za-z:]{1,20}\s{1,100}PUBLIC\s{1,100}[\"']-//W3C//DTD XHTML"
)
_BEGIN_CHARACTERS = 2048
_SUBSET_END = re.compile(r"\]\s*>")
# In HTML, no tag and no reference is read in the content of these.
_RAW_TEXT = ("script", "style")


class _Piece(NamedTuple):
    """A construct of XML as HTML, and its end in the page."""

    text: str
    end: int


def begins_as_xhtml(page: bytes) -> bool:
    """Return whether a page in UTF-8 begins with an XML declaration and the document type of
    XHTML.
    """
    return _BEGIN.match(page[:_BEGIN_CHARACTERS].decode("utf-8", "ignore")) is not None


def html_of_xhtml(page: str) -> str:
    """Return a page of XHTML as HTML."""
    pieces = []
    position = 0
    while match := _MARKUP.search(page, position):
        piece = _piece_of(page, match)
        if piece is None:  # the page ends in it
            break
        pieces += [page[position : match.start()], piece.text]
        position = piece.end
    return "".join([*pieces, page[position:]])


def _piece_of(page: str, match: re.Match[str]) -> _Piece | None:
    """Return the construct at a match as HTML, None if it has no end."""
    if match["comment"]:
        comment = _up_to("-->", page, match)
        # HTML would end it at the first sign.
        is_short = page.startswith((">", "->"), match.end())
        return comment._replace(text="") if comment and is_short else comment
    if match["cdata"]:
        section = _up_to("]]>", page, match)
        if section is None:
            return None
        content = page[match.end() : section.end - len("]]>")]
        return section._replace(text=html.escape(content, quote=False))
    if match["doctype"]:
        return _document_type(page, match)
    if match["instruction"]:
        instruction = _up_to("?>", page, match)
        # HTML would end it at the first sign, and show the rest.
        has_sign = instruction is not None and ">" in instruction.text[:-1]
        return instruction._replace(text="") if instruction and has_sign else instruction
    return _tag(page, match)


def _up_to(close: str, page: str, match: re.Match[str]) -> _Piece | None:
    """Return the text from a match to the end of a sign, as written."""
    end = page.find(close, match.end())
    if end < 0:
        return None
    end += len(close)
    return _Piece(page[match.start() : end], end)


def _document_type(page: str, match: re.Match[str]) -> _Piece | None:
    """Return a document type without the declarations in brackets."""
    declared = _up_to(">", page, match)
    bracket = -1 if declared is None else declared.text.find("[")
    if declared is None or bracket < 0:
        return declared
    subset = _SUBSET_END.search(page, match.end())
    return None if subset is None else _Piece(declared.text[:bracket] + ">", subset.end())


def _tag(page: str, match: re.Match[str]) -> _Piece | None:
    """Return a tag; an empty one with its end tag, unless the element has none in HTML."""
    name = match["name"]
    end = read_attributes(page, match.end()).end
    if end is None:
        return None
    text = page[match.start() : end]
    is_void = name in kernels.html_tags.VOID_NAMES
    if match["slash"]:
        return _Piece("" if is_void else text, end)
    is_empty = text.endswith("/>")
    if is_empty and not is_void:
        return _Piece(f"{text[:-2].rstrip()}></{name}>", end)
    if name in _RAW_TEXT and not is_empty:
        close = _raw_end(page, name, end)
        if close is None:
            return None
        # In a section, HTML would end the element at an end tag.
        return _Piece(text + page[end:close].replace(f"</{name}", f"<\\/{name}"), close)
    return _Piece(text, end)


def _raw_end(page: str, name: str, position: int) -> int | None:
    """Return the position of the end tag of a script or a style outside its CDATA sections; None if
    it or a section has no end.
    """
    close = page.find(f"</{name}", position)
    while (section := page.find("<![CDATA[", position, max(close, 0))) >= 0:
        position = page.find("]]>", section)
        if position < 0:
            return None
        if close < position:
            close = page.find(f"</{name}", position)
    return None if close < 0 else close
