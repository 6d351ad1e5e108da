"""Outline HTML pages: a line for each element that shapes a page, and the name that pages of one
outline share.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache, reduce
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Words
from neardup.features.page_structure import read_tags


def common_lines(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return the places of a longest common subsequence, rising in both.

    Returns
    -------
    pairs of a place in `left` and a place in `right`, with the same line.

    Notes
    -----
    Bit-parallel: Hyyrö, Bit-parallel LCS-length computation revisited (2004). A row of the table of
    lengths is one integer, whose bit i is 0 where line i of `left` makes the sequence longer. Time
    and memory are len(left) * len(right) / 64, whatever the lines are; the cubic time of difflib
    took 5 s for a thousand lines that repeat.
    """
    bits: dict[Hashable, int] = {}
    for position, line in enumerate(left):
        bits[line] = bits.get(line, 0) | 1 << position
    whole = (1 << len(left)) - 1
    row, rows = whole, []
    for line in right:
        matches = row & bits.get(line, 0)
        row = (row + matches | row - matches) & whole
        rows.append(row)
    return _walk_back(rows, len(left))


def _walk_back(rows: list[int], num_left: int) -> list[tuple[int, int]]:
    """Return the pairs from the rows of the table, one for each line of the right side."""
    pairs = []
    position, other = num_left - 1, len(rows) - 1
    while position >= 0 and other >= 0:
        if rows[other] >> position & 1:
            position -= 1
        elif other and not rows[other - 1] >> position & 1:
            other -= 1
        else:
            pairs.append((position, other))
            position, other = position - 1, other - 1
    return pairs[::-1]


MAX_LINES, MAX_DEPTH, MAX_LABEL, MAX_NAME = 1000, 32, 80, 100
MAX_ELEMENTS = 50_000  # of a page; a million take six seconds
_MAX_TAG_BYTES, _MAX_ATTRIBUTES = 4096, 128
_MAX_SHORT = 32  # characters of a label in a name
_LEAST_SHARE = 1 / 3  # of the weight inside an element, for a name to go on with one inside
_PLAIN_WEIGHT = 0.1  # of a label with neither class nor id, where one with them weighs 1

# Left out: what shows nothing, with all inside; and what marks text, whose inside stands in its
# place.
_HIDDEN = "base head link math meta noscript script style svg template title"
_INLINE = (
    "a abbr acronym b bdi bdo big br cite code data del dfn em font html i ins kbd label mark "
    "nobr q rp rt ruby s samp "
    "small span strike strong sub sup time tt u var wbr"
)
_IMPLIED = "body colgroup p tbody tr"  # elements that a page may have without naming them
_SHOWN, _PASSED, _DROPPED = 0, 1, 2

_NAME = re.compile(rb"<([A-Za-z][^ \t\n\f\r/>]*)")
_ATTRIBUTE = re.compile(
    rb"[ \t\n\f\r/]*([^ \t\n\f\r/>][^ \t\n\f\r/>=]*)[ \t\n\f\r]*"
    rb"(?:=[ \t\n\f\r]*(?:\"([^\"]*)(?:\"|\Z)|'([^']*)(?:'|\Z)|([^ \t\n\f\r>\"'][^ "
    rb"\t\n\f\r>]*)|(?=>)))?"
)


class Line(NamedTuple):
    """An element of an outline.

    label : its tag, id and classes, as in `div#main.wide`; numbers in them read `*`. depth : 0 for
    body. repeats : of how many siblings, alike with all inside, it is the first.
    """

    label: str
    depth: int
    repeats: int


class Outline(NamedTuple):
    """The lines of a page, and how many elements are left out as they are too many."""

    lines: list[Line]
    left_out: int


def outline(page: str, *, max_lines: int = MAX_LINES, max_elements: int = MAX_ELEMENTS) -> Outline:
    """Return the outline of an HTML page.

    Parameters
    ----------
    page : HTML.
    max_lines : lines to return at most.
    max_elements : elements to look at, the first ones.

    Notes
    -----
    Left out are the head, scripts and styles, elements that only mark text, what is deeper than
    MAX_DEPTH, and what is behind the first `max_elements`. Siblings next to each other that have
    one label and, inside, one outline are folded to one line; how often a line inside is repeated
    plays no part. Time is linear in the page, and small but for the elements shown.
    """
    pages = pa.array([page.encode("utf-8", "replace")], "large_binary")
    tags = read_tags(pages)
    elements = kernels.html_tree.elements_of(tags)
    shown, depths = _shown(elements, max_elements)
    lines = fold_lines(_labels(pages[0].as_buffer().to_pybytes(), tags, elements, shown), depths)
    beyond = max(0, int(elements.offsets[-1]) - max_elements)
    return Outline(lines[:max_lines], max(0, len(lines) - max_lines) + beyond)


def shared_places(first: Sequence[Line], second: Sequence[Line]) -> set[int]:
    """Return which lines of `first` the other outline has too, as deep, in an order that both
    share.
    """
    return {
        place
        for place, _ in common_lines([line[:2] for line in first], [line[:2] for line in second])
    }


def common_places(first: Sequence[Line], others: Iterable[Sequence[Line]]) -> set[int]:
    """Return which lines of `first` all other outlines have too."""
    return reduce(
        set.intersection, (shared_places(first, other) for other in others), set(range(len(first)))
    )


def outline_name(
    lines: Sequence[Line], places: set[int], rarity: Callable[[str], float] = lambda _: 1.0
) -> str:
    """Return one path of an outline as a short name, such as `body.recipe > main > ul.ingredients >
    li ×`.

    Parameters
    ----------
    lines : an outline.
    places : the lines that may be in the name, as all pages have them.
    rarity : how telling a label is; elements with a class or an id count ten times as much as
        others.

    Notes
    -----
    From the body down the path goes to the child with the most rarity inside, behind the first
    element with a class or an id only as long as that is a third of all there is. Dots stand for
    the elements that are not in `places`, and for the least telling ones of a path longer than
    MAX_NAME characters.
    """
    weights = [
        rarity(line.label) * (1.0 if _is_distinct(line.label) else _PLAIN_WEIGHT)
        if place in places
        else 0.0
        for place, line in enumerate(lines)
    ]
    path = _heaviest_path(lines, weights)
    while path and path[-1] not in places:
        path.pop()
    left = sorted(
        (place for place in path[:-1] if place in places),
        key=lambda place: (weights[place], -place),
    )
    taken = places.intersection(path)
    while len(name := _written(lines, path, taken)) > MAX_NAME and left:
        taken.remove(left.pop(0))
    return name


@cache
def _kinds() -> tuple[Words, Words, dict[int, str]]:
    """Return the hashes of hidden and of inline tags, and the names of those that may be implied by
    their hashes.
    """
    hash_name = kernels.html_tags.hash_name
    hidden, inline = (
        np.array([hash_name(name) for name in names.split()]) for names in (_HIDDEN, _INLINE)
    )
    return hidden, inline, {int(hash_name(name)): name for name in _IMPLIED.split()}


def _shown(elements: kernels.html_tree.Elements, max_elements: int) -> tuple[list[int], list[int]]:
    """Return the elements to show, and how many shown ones contain each."""
    num_elements = min(int(elements.offsets[-1]), max_elements)
    names = elements.names[:num_elements]
    hidden, inline, _ = _kinds()
    kinds = np.where(
        np.isin(names, hidden), _DROPPED, np.where(np.isin(names, inline), _PASSED, _SHOWN)
    )
    shown: list[int] = []
    depths: list[int] = []
    within: list[int] = []  # the depths of the shown elements that are open
    dropped = num_elements  # the depth of the dropped element that is open, if any
    for element, (kind, depth) in enumerate(
        zip(kinds.tolist(), elements.depths[:num_elements].tolist(), strict=True)
    ):
        if depth > dropped:
            continue
        dropped = depth if kind == _DROPPED else num_elements
        if kind != _SHOWN:
            continue
        while within and within[-1] >= depth:
            within.pop()
        if len(within) < MAX_DEPTH:
            shown.append(element)
            depths.append(len(within))
            within.append(depth)
    return shown, depths


def _labels(
    page: bytes,
    tags: kernels.html_tokens.Tags,
    elements: kernels.html_tree.Elements,
    shown: list[int],
) -> list[str]:
    """Return the labels of elements. Those of one token are alike but for numbers, so that one tag
    tells for all.
    """
    num_tags = int(tags.offsets[-1])
    wanted = np.isin(tags.tokens[:num_tags], elements.tokens[shown])
    starting = np.flatnonzero(wanted & (tags.kinds[:num_tags] & kernels.html_tokens.START != 0))
    tokens, first = np.unique(tags.tokens[starting], return_index=True)
    place_of = dict(zip(tokens.tolist(), tags.starts[starting[first]].tolist(), strict=True))
    implied = _kinds()[2]
    label_of: dict[int, str] = {}
    labels = []
    for token, name in zip(
        elements.tokens[shown].tolist(), elements.names[shown].tolist(), strict=True
    ):
        if token not in label_of:
            label_of[token] = _label(page, place_of[token]) if token in place_of else implied[name]
        labels.append(label_of[token])
    return labels


def _label(page: bytes, start: int) -> str:
    """Return the label of the start tag that begins here; what two tags of one token have in
    common.
    """
    tag = page[start : start + _MAX_TAG_BYTES]
    name = _NAME.match(tag)
    assert name is not None, tag[:40]
    values: dict[bytes, bytes] = {}
    position = name.end()
    for _ in range(_MAX_ATTRIBUTES):
        attribute = _ATTRIBUTE.match(tag, position)
        if attribute is None:
            break
        values.setdefault(attribute[1].lower(), attribute[2] or attribute[3] or attribute[4] or b"")
        position = attribute.end()
    label = (
        name[1].lower()
        + _words(b"#", values.get(b"id", b""))
        + _words(b".", values.get(b"class", b""))
    )
    text = label.decode("utf-8", "ignore")
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"


def _words(sign: bytes, value: bytes) -> bytes:
    words = {re.sub(rb"[0-9]+", b"*", word) for word in re.split(rb"[ \t\n\f\r]+", value) if word}
    return b"".join(sign + word for word in sorted(words))


def fold_lines(labels: list[str], depths: list[int]) -> list[Line]:
    """Return lines from elements in document order, runs of like siblings folded."""
    counts, follows = _count_runs(labels, depths)
    lines: list[Line] = []
    skipped = MAX_DEPTH
    for element, (label, depth) in enumerate(zip(labels, depths, strict=True)):
        if depth > skipped:
            continue
        skipped = depth if follows[element] else MAX_DEPTH
        if not follows[element]:
            lines.append(Line(label, depth, counts[element]))
    return lines


def _count_runs(labels: list[str], depths: list[int]) -> tuple[list[int], list[bool]]:
    """Return how long the run of like siblings from each element on is, and whether one precedes
    it.

    Goes from the last element to the first, so that those inside of an element come before it.
    """
    shapes: dict[
        tuple[str | int, ...], int
    ] = {}  # a label and the shapes inside, runs folded -> a number
    inside: list[list[int]] = [
        [] for _ in range(MAX_DEPTH + 1)
    ]  # by depth: shapes behind, under the same parent
    behind = [0] * (MAX_DEPTH + 1)  # by depth: the next sibling, where there is one
    counts, follows = [1] * len(labels), [False] * len(labels)
    for element in range(len(labels) - 1, -1, -1):
        depth = depths[element]
        shape = shapes.setdefault((labels[element], *inside[depth + 1]), len(shapes))
        inside[depth + 1] = []
        if inside[depth] and inside[depth][-1] == shape:
            counts[element] = counts[behind[depth]] + 1
            follows[behind[depth]] = True
        else:
            inside[depth].append(shape)
        behind[depth] = element
    return counts, follows


def _is_distinct(label: str) -> bool:
    return "#" in label or "." in label


def _heaviest_path(lines: Sequence[Line], weights: Sequence[float]) -> list[int]:
    """Return the places of lines from the first down: of those inside a line, the one with the most
    weight in it.
    """
    parents: list[int] = []
    open_: list[int] = []
    for place, line in enumerate(lines):
        while open_ and lines[open_[-1]].depth >= line.depth:
            open_.pop()
        parents.append(open_[-1] if open_ else -1)
        open_.append(place)
    inside = [0.0] * (len(lines) + 1)  # the last stands for the page, parent of the outermost
    heaviest = [(0.0, -1)] * (len(lines) + 1)
    for place in range(len(lines) - 1, -1, -1):
        parent, total = parents[place], weights[place] + inside[place]
        inside[parent] += total
        heaviest[parent] = max(heaviest[parent], (total, place), key=lambda child: child[0])
    path: list[int] = []
    total, place = heaviest[-1]
    has_distinct = False
    while place >= 0 and (not has_distinct or total >= _LEAST_SHARE * inside[path[-1]] > 0):
        has_distinct = has_distinct or (
            weights[place] > 0 and lines[place].depth > 0 and _is_distinct(lines[place].label)
        )
        path.append(place)
        total, place = heaviest[place]
    return path


def _written(lines: Sequence[Line], path: list[int], taken: set[int]) -> str:
    """Return the elements of a path that are taken, with a sign where some are left out."""
    name, gap = "", False
    for place in path:
        if place not in taken:
            gap = True
            continue
        element = _short(lines[place].label) + (" ×" if lines[place].repeats > 1 else "")
        name += f"{' … ' if gap else ' > '}{element}" if name else f"{'… ' if gap else ''}{element}"
        gap = False
    return name


def _short(label: str) -> str:
    """Return a label without its last classes, if it is too long to be one of several."""
    while len(label) > _MAX_SHORT:
        before, dot, _ = label.rpartition(".")
        if not dot:
            return label[: _MAX_SHORT - 1] + "…"
        label = before
    return label
