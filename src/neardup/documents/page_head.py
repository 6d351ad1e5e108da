"""Read the head of an HTML page: its title, its language.

Only the first `HEAD_CHARACTERS` are read, forwards only: no page makes this slow.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

HEAD_CHARACTERS = 256 << 10
"""Characters at the beginning of a page that count as its head."""

MAX_TITLE_CHARACTERS = 1000
_MAX_TAG_CHARACTERS = 4096
_MAX_LANGUAGE_CHARACTERS = 100

_OPENING = re.compile(
    r"<(?:(!--)|(html|meta|title|body|script|style|noscript|textarea|xmp)(?=[\s/>]))", re.IGNORECASE
)
_HIDDEN = {
    name: re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE)
    for name in ("script", "style", "textarea", "xmp", "title")
}
_ATTRIBUTE = re.compile(r"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'=<>`]+)))?""")
_LANGUAGE = re.compile(r"[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*")


class Tag(NamedTuple):
    """A start tag: its name in lower case, the text between name and `>`, and its start and end."""

    name: str
    inside: str
    begin: int
    end: int

    def attributes(self) -> dict[str, str]:
        """Return the attributes, names in lower case, with resolved character references. Of equal
        names the first counts.
        """
        found: dict[str, str] = {}
        for name, double_quoted, single_quoted, bare in _ATTRIBUTE.findall(self.inside):
            value = double_quoted or single_quoted or bare
            found.setdefault(name.lower(), html.unescape(value))
        return found


def start_tags(head: str) -> Iterator[Tag]:
    """Yield the start tags that matter in a head, in order, except in comments and scripts."""
    position = 0
    while match := _OPENING.search(head, position):
        if match[1]:
            # `<!-->` and `<!--->` are comments too.
            close = head.find("-->", match.start() + 2)
            if close < 0:
                return
            position = close + 3
            continue
        name = match[2].lower()
        name_end = match.end()
        limit = min(len(head), name_end + _MAX_TAG_CHARACTERS)
        close = head.find(">", name_end, limit)
        end = close + 1 if close >= 0 else limit
        yield Tag(name=name, inside=head[name_end:end], begin=match.start(), end=end)
        position = end
        if name in _HIDDEN:
            closing = _HIDDEN[name].search(head, end)
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
            text = " ".join(html.unescape(head[tag.end : closing.start()]).split())
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
        attributes = tag.attributes() if tag.name in ("html", "meta") else {}
        declared = ""
        if tag.name == "html":
            declared = attributes.get("lang", "").strip() or attributes.get("xml:lang", "").strip()
        elif attributes.get("http-equiv", "").strip().lower() == "content-language":
            declared = attributes.get("content", "").strip()
        elif tag.name == "body":
            return None
        if len(declared) <= _MAX_LANGUAGE_CHARACTERS and _LANGUAGE.fullmatch(declared):
            return declared.lower()
    return None
