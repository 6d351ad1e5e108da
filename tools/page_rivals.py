"""What others take for the structure of a page, written plainly: the rivals of
tools/measure_pages.py.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from html.parser import HTMLParser
from importlib.util import find_spec
from io import StringIO

import numpy as np
from page_pairs import Closeness, Floats, Pages, by_lists


class Outline(HTMLParser):
    """What Python's own parser says of a page: its start tags, its classes, and the tokens of
    gryffin.

    gryffin (html-distance/feature.go) takes each token of the first 5,000 by its kind and tag, and
    behind a start tag each attribute by its name: with its value if it is class, name or rel.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.classes: set[str] = set()
        self.tokens: list[str] = ["", ""]  # its first shingles have gaps
        self.count = 0
        self.feed(page)
        self.close()

    def add(
        self, token: str, tag: str = "", attributes: Iterable[tuple[str, str | None]] = ()
    ) -> None:
        """Take a token, if it is one of the first."""
        self.count += 1
        if self.count <= 5000:
            self.tokens.append(token + tag)
            for name, value in attributes:
                valued = f":{value or ''}" if name in ("class", "name", "rel") else ""
                self.tokens.append(f"G:{tag}:{name}{valued}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.see(tag, attrs)
        self.add("A:", tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.see(tag, attrs)
        self.add("C:", tag, attrs)

    def see(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Take a start tag and its classes."""
        self.tags.append(tag)
        self.classes.update(
            word for name, value in attributes if name == "class" for word in (value or "").split()
        )

    def handle_endtag(self, tag: str) -> None:
        self.add("B:", tag)

    def handle_decl(self, decl: str) -> None:
        self.add("D:")

    def handle_comment(self, data: str) -> None:
        self.add("E:")

    def handle_data(self, data: str) -> None:
        self.add("F:")


def gryffin_tokens(page: str) -> list[str]:
    """Return what gryffin makes shingles of."""
    return Outline(page).tokens


def by_tag_sequence(pages: Pages) -> Closeness:
    """Compare the runs of four start tags, names only."""
    tags = [Outline(page).tags for page in pages.html]
    return by_lists([zip(one, one[1:], one[2:], one[3:], strict=False) for one in tags])


def classes_of(pages: Pages) -> list[list[str]]:
    """Return the words of all class attributes of each page, in order."""
    return [sorted(Outline(page).classes) for page in pages.html]


def by_classes(pages: Pages) -> Closeness:
    """Compare the words of all class attributes; two pages without any are unlike."""
    return by_lists(list(classes_of(pages)))


def by_html_similarity(share: float, least: float) -> Callable[[Pages], Closeness | None]:
    """Return html-similarity's `similarity`, of which the structure has a share; each page is
    parsed once.

    What cannot reach `least` is 0: difflib takes long, and its ratio is at most that of the counts
    of tags.
    """

    def measure(pages: Pages) -> Closeness | None:
        if find_spec("html_similarity") is None:
            print("html-similarity is not installed: its rows are left out", file=sys.stderr)
            return None
        tags, classes = parse_as_html_similarity(pages.html)
        style = by_lists([sorted(one) for one in classes]).values
        bare = np.array([not one for one in classes])
        style[bare[:, None] & bare] = 1.0
        values = (1 - share) * style + share * most_alike(tags)
        for left, right in np.argwhere(np.triu(values >= least, 1)).tolist():
            values[left, right] = (1 - share) * style[left, right] + share * difflib_ratio(
                tags[left], tags[right]
            )
        values[values < least] = 0.0
        return Closeness(values, True)

    return measure


def parse_as_html_similarity(pages: list[str]) -> tuple[list[list[str]], list[set[str]]]:
    """Return the tags and the classes of pages as the package reads them; no tags where it raises
    an error.
    """
    import lxml.html
    from html_similarity.structural_similarity import get_tags
    from html_similarity.style_similarity import get_classes

    def read(page: str) -> list[str]:
        try:
            return get_tags(lxml.html.parse(StringIO(page)))
        except ValueError:
            return []

    return [read(page) for page in pages], [get_classes(page) for page in pages]


def most_alike(tags: list[list[str]]) -> Floats:
    """Return the most that difflib's ratio of two lists can be: what they share as bags."""
    names = sorted({tag for one in tags for tag in one})
    counts = np.array(
        [[counted[name] for name in names] for counted in map(Counter, tags)], np.int32
    )
    sizes = counts.sum(axis=1)
    shared = np.stack([np.minimum(counts, one).sum(axis=1) for one in counts])
    return (2 * shared / np.maximum(sizes[:, None] + sizes, 1)).astype(np.float32)


def difflib_ratio(left: list[str], right: list[str]) -> float:
    """Return what the package calls structural similarity."""
    return SequenceMatcher(None, left, right).ratio()
