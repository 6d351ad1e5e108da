"""Read the head of an HTML page: its title, its language.

Only the first `HEAD_CHARACTERS` are read, forwards only: no page makes this slow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from neardup.documents.page_content import resolve

HEAD_CHARACTERS = 256 << 10
"""Characters at the beginning of a page that count as its head."""

COMMENT_END = r"(?<=<!--)-?>|--!?>"
"""Pattern of the end of a comment, to search for after `<!--`: also of `<!-->`, of `<!--->`, and
`--!>` (13.2.5.43 to 13.2.5.52 of the HTML standard).
"""

MAX_TITLE_CHARACTERS = 1000
_MAX_LANGUAGE_CHARACTERS = 100

_OPENING = re.compile(
    r"<(?:(!--)|(html|meta|title|body|script|style|noscript|textarea|xmp)(?=[\s/>]))", re.IGNORECASE
)
_HIDDEN = {
    name: re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "xmp", "title")
}
_SPACE = r"[\t\n\f\r ]*"
_VALUE = (
    r"""(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<open>["'])|"""
    r"(?P<bare>[^\t\n\f\r >]+)|(?=>))"
)
# An attribute with its value, or the end of the tag. A quote without its end ends the page.
_ATTRIBUTE = re.compile(
    r"[\t\n\f\r /]*(?:(?P<end>>)|(?P<name>[^\t\n\f\r />][^\t\n\f\r />=]*)"
    f"(?:{_SPACE}={_SPACE}{_VALUE})?)"
)
_COMMENT_END = re.compile(COMMENT_END)
_LANGUAGE = re.compile(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*")


class Attributes(NamedTuple):
    """The attributes of a tag, names in lower case, and the end of the tag.

    values : with character references as written; of equal names the first counts. end : None if
    the text ends before the tag.
    """

    values: dict[str, str]
    end: int | None

    def value(self, name: str) -> str:
        """Return a value with resolved character references, "" without the attribute."""
        return resolve(self.values.get(name, ""))


class Tag(NamedTuple):
    """A start tag: its name in lower case, its attributes, and its end."""

    name: str
    attributes: Attributes
    end: int


def read_attributes(text: str, position: int) -> Attributes:
    """Return the attributes of the tag whose name ends at a position: 13.2.5.32 to 13.2.5.40 of the
    HTML standard.
    """
    values: dict[str, str] = {}
    while attribute := _ATTRIBUTE.match(text, position):
        if attribute["end"]:
            return Attributes(values, attribute.end())
        if attribute["open"]:
            break
        value = attribute["double"] or attribute["single"] or attribute["bare"] or ""
        values.setdefault(attribute["name"].lower(), value)
        position = attribute.end()
    return Attributes(values, None)


def start_tags(head: str) -> Iterator[Tag]:
    """Yield the start tags that matter in a head, in order, except in comments and scripts."""
    position = 0
    while match := _OPENING.search(head, position):
        if match[1]:
            close = _COMMENT_END.search(head, match.end())
            if close is None:
                return
            position = close.end()
            continue
        name = match[2].lower()
        attributes = read_attributes(head, match.end())
        if attributes.end is None:
            return
        position = attributes.end
        yield Tag(name=name, attributes=attributes, end=position)
        if name in _HIDDEN:
            closing = _HIDDEN[name].search(head, position)
            if closing is None:
                return
            position = closing.end()


def title_of(page: str) -> str | None:
    """Return the text of the first title element, on one line, at most 1,000 characters; None if
    there is none.

    Examples
    --------
    >>> title_of("<html><title>Tom &amp;\\n Jerry</title>")
    'Tom & Jerry'
    """
    head = page[:HEAD_CHARACTERS]
    for tag in start_tags(head):
        if tag.name == "title":
            closing = _HIDDEN["title"].search(head, tag.end)
            if closing is None:
                return None
            text = " ".join(resolve(head[tag.end : closing.start()]).split())
            return text[:MAX_TITLE_CHARACTERS].rstrip() or None
    return None


def language_of(page: str) -> str | None:
    """Return the language that a page declares, in lower case, or None.

    The first of these counts: `lang` and `xml:lang` of the html element, and the meta element
    `content-language` if it names a single language.

    Examples
    --------
    >>> language_of('<!doctype html><html lang="pt-BR">')
    'pt-br'
    """
    for tag in start_tags(page[:HEAD_CHARACTERS]):
        value = tag.attributes.value
        declared = ""
        if tag.name == "html":
            declared = value("lang").strip() or value("xml:lang").strip()
        elif tag.name == "meta" and value("http-equiv").strip().lower() == "content-language":
            declared = value("content").strip()
        elif tag.name == "body":
            return None
        if len(declared) <= _MAX_LANGUAGE_CHARACTERS and _LANGUAGE.fullmatch(declared):
            return declared.lower()
    return None
