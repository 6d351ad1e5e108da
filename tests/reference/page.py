"""A page of HTML read back, strictly: what is opened is closed, and no attribute is there twice."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = {"meta", "input", "br", "link", "img"}


class Page(HTMLParser):
    """A page read back: its elements with their attributes, and the text of each kind of
    element.
    """

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"<{tag}> repeats an attribute"
        self.elements.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data: str) -> None:
        for tag in set(self.open):
            self.texts[tag][-1] += data

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)
