"""Outline HTML pages: a line for each element that shapes a page, and a name for pages that share
an outline.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Words
from neardup.features.page_structure import TAG_NAME, implied_names, read_tags

MAX_LINES = 1000  # of an outline
MAX_DEPTH = 32  # of a line
MAX_LABEL = 80  # characters
MAX_NAME = 100  # characters
MAX_ELEMENTS = 50_000  # of a page; a million take six seconds
_MAX_TAG_BYTES = 4096
_MAX_ATTRIBUTES = 128  # of a tag
_MAX_SHORT = 32  # characters of a label in a name
_MIN_SHARE = 1 / 3  # of the weight inside an element, for a name to include its heaviest child
_PLAIN_WEIGHT = 0.1  # of a label with neither class nor id; a label with one of them weighs 1

# Hidden elements are left out with everything inside. Inline elements only mark text: their inside
# takes their place.
_HIDDEN = "base head link math meta noscript script style svg template title"
_INLINE = (
    "a abbr acronym b bdi bdo big br cite code data del dfn em font html i ins kbd label mark nobr "
    "q rp rt ruby s samp small span strike strong sub sup time tt u var wbr"
)

# Group 1 is the attribute's name; its value is group 2 in double quotes, 3 in single ones, 4 bare.
_ATTRIBUTE = re.compile(
    rb"[ \t\n\f\r/]*([^ \t\n\f\r/>][^ \t\n\f\r/>=]*)[ \t\n\f\r]*"
    rb"(?:=[ \t\n\f\r]*(?:\"([^\"]*)(?:\"|\Z)|'([^']*)(?:'|\Z)|([^ \t\n\f\r>\"'][^ "
    rb"\t\n\f\r>]*)|(?=>)))?"
)


class Line(NamedTuple):
    """An element of an outline.

    label : its tag, id and classes, as in `div#main.wide`; numbers in them read `*`. depth : 0 for
    body. repeats : the number of consecutive siblings, equal with everything inside, that the line
    stands for.
    """

    label: str
    depth: int
    repeats: int


class Outline(NamedTuple):
    """The lines of a page. left_out : the number of lines and elements beyond the limits."""

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
    Left out are the head, scripts and styles, elements that only mark text, elements deeper than
    MAX_DEPTH, and elements after the first `max_elements`. Consecutive siblings with one label and,
    inside, one outline are folded to one line; the number of repeats of a line inside does not
    matter. Time is linear in the page, and small except for the elements shown.
    """
    data = page.encode("utf-8", "replace")
    tags = read_tags(pa.array([data], "large_binary"))
    elements = kernels.html_tree.elements_of(tags)
    shown, depths = _shown_elements(elements, max_elements)
    lines = fold_lines(_labels(data, tags, elements, shown), depths)
    lines_beyond = max(0, len(lines) - max_lines)
    elements_beyond = max(0, int(elements.offsets[-1]) - max_elements)
    return Outline(lines[:max_lines], lines_beyond + elements_beyond)


def _shown_elements(
    elements: kernels.html_tree.Elements, max_elements: int
) -> tuple[list[int], list[int]]:
    """Return the elements to show, and the number of shown elements that contain each."""
    num_elements = min(int(elements.offsets[-1]), max_elements)
    names = elements.names[:num_elements]
    is_hidden = np.isin(names, _hashes_of(_HIDDEN)).tolist()
    is_inline = np.isin(names, _hashes_of(_INLINE)).tolist()
    shown: list[int] = []
    shown_depths: list[int] = []
    open_depths: list[int] = []  # depths in the page of the shown elements that contain this one
    deeper_than_any = num_elements
    hidden_depth = deeper_than_any  # of the open hidden element
    for element, depth in enumerate(elements.depths[:num_elements].tolist()):
        if depth > hidden_depth:
            continue
        hidden_depth = depth if is_hidden[element] else deeper_than_any
        if is_hidden[element] or is_inline[element]:
            continue
        while open_depths and open_depths[-1] >= depth:
            open_depths.pop()
        if len(open_depths) < MAX_DEPTH:
            shown.append(element)
            shown_depths.append(len(open_depths))
            open_depths.append(depth)
    return shown, shown_depths


@cache
def _hashes_of(names: str) -> Words:
    """Return the hashes of tag names that are separated by blanks."""
    return np.array([kernels.html_tags.hash_name(name) for name in names.split()])


def _labels(
    page: bytes,
    tags: kernels.html_tokens.Tags,
    elements: kernels.html_tree.Elements,
    shown: list[int],
) -> list[str]:
    """Return the labels of elements.

    Elements of one token differ in digits only, which a label leaves out: one tag labels them all.
    """
    tokens = elements.tokens[shown]
    start_of = _tag_starts(tags, tokens)
    implied = implied_names()
    label_of: dict[int, str] = {}
    for token, name in zip(tokens.tolist(), elements.names[shown].tolist(), strict=True):
        if token not in label_of:
            is_implied = token not in start_of
            label_of[token] = implied[name] if is_implied else _label(page, start_of[token])
    return [label_of[token] for token in tokens.tolist()]


def _tag_starts(tags: kernels.html_tokens.Tags, tokens: Words) -> dict[int, int]:
    """Return the offset of the first start tag with each token; implied elements have no tag."""
    num_tags = int(tags.offsets[-1])
    is_start = tags.kinds[:num_tags] & kernels.html_tokens.START != 0
    is_wanted = np.isin(tags.tokens[:num_tags], tokens)
    candidates = np.flatnonzero(is_wanted & is_start)
    found, first = np.unique(tags.tokens[candidates], return_index=True)
    starts = tags.starts[candidates[first]]
    return dict(zip(found.tolist(), starts.tolist(), strict=True))


def _label(page: bytes, start: int) -> str:
    """Return the label of the start tag at an offset; equal for all tags of one token."""
    tag = page[start : start + _MAX_TAG_BYTES]
    name = TAG_NAME.match(tag)
    assert name is not None, tag[:40]
    values: dict[bytes, bytes] = {}
    position = name.end()
    for _ in range(_MAX_ATTRIBUTES):
        attribute = _ATTRIBUTE.match(tag, position)
        if attribute is None:
            break
        value = attribute[2] or attribute[3] or attribute[4] or b""
        values.setdefault(attribute[1].lower(), value)  # of repeated attributes the first counts
        position = attribute.end()
    label = name[1].lower()
    label += _words(b"#", values.get(b"id", b""))
    label += _words(b".", values.get(b"class", b""))
    # The limit of bytes may have cut a character.
    text = label.decode("utf-8", "ignore")
    return text if len(text) <= MAX_LABEL else text[: MAX_LABEL - 1] + "…"


def _words(sign: bytes, value: bytes) -> bytes:
    """Return the distinct words of an attribute, sorted, each after a sign, numbers as `*`."""
    words = {re.sub(rb"[0-9]+", b"*", word) for word in re.split(rb"[ \t\n\f\r]+", value) if word}
    return b"".join(sign + word for word in sorted(words))


def fold_lines(labels: list[str], depths: list[int]) -> list[Line]:
    """Return lines from elements in document order, with runs of equal siblings folded."""
    counts, is_repeat = _count_runs(labels, depths)
    lines: list[Line] = []
    skipped_depth = MAX_DEPTH  # of the open element that repeats its sibling
    for element, (label, depth) in enumerate(zip(labels, depths, strict=True)):
        if depth > skipped_depth:
            continue
        skipped_depth = depth if is_repeat[element] else MAX_DEPTH
        if not is_repeat[element]:
            lines.append(Line(label=label, depth=depth, repeats=counts[element]))
    return lines


def _count_runs(labels: list[str], depths: list[int]) -> tuple[list[int], list[bool]]:
    """Return the length of the run of equal siblings that begins at each element, and whether an
    equal sibling precedes it.

    Goes from the last element to the first: the elements inside an element come before it.
    """
    # A shape is a label and the shapes inside, with runs folded; equal shapes have one number.
    numbers: dict[tuple[str | int, ...], int] = {}
    # By depth: the shapes of the later siblings, and the next sibling. Only valid under one parent;
    # the parent, which comes after its children here, clears the shapes.
    later_shapes: list[list[int]] = [[] for _ in range(MAX_DEPTH + 1)]
    next_sibling = [0] * (MAX_DEPTH + 1)
    counts = [1] * len(labels)
    is_repeat = [False] * len(labels)
    for element in reversed(range(len(labels))):
        depth = depths[element]
        inside = later_shapes[depth + 1]
        shape = numbers.setdefault((labels[element], *inside), len(numbers))
        later_shapes[depth + 1] = []
        siblings = later_shapes[depth]
        if siblings and siblings[-1] == shape:
            following = next_sibling[depth]
            counts[element] = counts[following] + 1
            is_repeat[following] = True
        else:
            siblings.append(shape)
        next_sibling[depth] = element
    return counts, is_repeat


def shared_places(first: Sequence[Line], second: Sequence[Line]) -> set[int]:
    """Return the indices of the lines of `first` that the other outline shares: same label and
    depth, in an order that both have.
    """
    left = [(line.label, line.depth) for line in first]
    right = [(line.label, line.depth) for line in second]
    return {index for index, _ in common_lines(left, right)}


def common_places(first: Sequence[Line], others: Iterable[Sequence[Line]]) -> set[int]:
    """Return the indices of the lines of `first` that all other outlines share."""
    common = set(range(len(first)))
    for other in others:
        common &= shared_places(first, other)
    return common


def common_lines(left: Sequence[Hashable], right: Sequence[Hashable]) -> list[tuple[int, int]]:
    """Return a longest common subsequence as pairs of indices, rising in both.

    Returns
    -------
    pairs of an index in `left` and an index in `right`, with the same line.

    Notes
    -----
    Bit-parallel: Hyyrö, Bit-parallel LCS-length computation revisited (2004). A row of the table of
    lengths is one integer, whose bit i is 0 where line i of `left` makes the sequence longer. Time
    and memory are len(left) * len(right) / 64, whatever the lines are; the cubic time of difflib
    took 5 s for a thousand lines that repeat.
    """
    bits: dict[Hashable, int] = {}
    for index, line in enumerate(left):
        bits[line] = bits.get(line, 0) | (1 << index)
    all_bits = (1 << len(left)) - 1
    row = all_bits
    rows = []
    for line in right:
        # In each run of ones, the sum moves the 0 above it down to the lowest match; the difference
        # keeps the ones without a match.
        matches = row & bits.get(line, 0)
        row = ((row + matches) | (row - matches)) & all_bits
        rows.append(row)
    return _walk_back(rows, len(left))


def _walk_back(rows: list[int], num_left: int) -> list[tuple[int, int]]:
    """Return the pairs from the rows of the table, one row for each line of the right side.

    Bit `left` of a row is 0 if that line makes the sequence longer; if it does not in the row
    before, both lines are the last pair.
    """
    pairs = []
    left = num_left - 1
    right = len(rows) - 1
    while left >= 0 and right >= 0:
        if (rows[right] >> left) & 1:
            left -= 1
        elif right and not (rows[right - 1] >> left) & 1:
            right -= 1
        else:
            pairs.append((left, right))
            left -= 1
            right -= 1
    return pairs[::-1]


def outline_name(
    lines: Sequence[Line], places: set[int], rarity: Callable[[str], float] = lambda _: 1.0
) -> str:
    """Return one path of an outline as a short name, such as `body.recipe > main > ul.ingredients >
    li ×`.

    Parameters
    ----------
    lines : an outline.
    places : the indices of the lines that may be in the name, as all pages have them.
    rarity : the rarity of a label; elements with a class or an id count ten times as much as
        others.

    Notes
    -----
    From the body down, the path goes to the child with the most rarity inside. After the first
    element with a class or an id, it goes on only while the child has a third of all rarity there.
    Dots stand for the elements that are not in `places`, and for the least rare elements of a path
    longer than MAX_NAME characters.
    """
    weights = [0.0] * len(lines)
    for index in places:
        label = lines[index].label
        weights[index] = rarity(label) * (1.0 if _is_distinct(label) else _PLAIN_WEIGHT)
    path = _heaviest_path(lines, weights)
    while path and path[-1] not in places:
        path.pop()

    named = places.intersection(path)
    # All but the last may go, the lightest first; of equal ones, the innermost.
    removable = sorted(named.difference(path[-1:]), key=lambda index: (weights[index], -index))
    name = _path_name(lines, path, named)
    for index in removable:
        if len(name) <= MAX_NAME:
            break
        named.remove(index)
        name = _path_name(lines, path, named)
    return name


def _is_distinct(label: str) -> bool:
    """Return whether an element has a class or an id."""
    return "#" in label or "." in label


def _heaviest_path(lines: Sequence[Line], weights: Sequence[float]) -> list[int]:
    """Return the indices of lines from the top down: each is the heaviest child of the one
    before, counted with everything inside.
    """
    page = len(lines)  # an index of its own: the parent of the outermost lines
    parents = _parents(lines, page)
    inside = [0.0] * (page + 1)  # weight of all lines inside each line
    for index in reversed(range(page)):
        inside[parents[index]] += weights[index] + inside[index]
    totals = list(map(operator.add, weights, inside[:page]))
    heaviest = _heaviest_children(parents, totals)

    path: list[int] = []
    has_distinct = False
    child = heaviest[page]
    while child is not None:
        if has_distinct and totals[child] < _MIN_SHARE * inside[path[-1]]:
            break
        line = lines[child]
        if weights[child] > 0 and line.depth > 0 and _is_distinct(line.label):
            has_distinct = True
        path.append(child)
        child = heaviest[child]
    return path


def _heaviest_children(parents: Sequence[int], totals: Sequence[float]) -> list[int | None]:
    """Return the heaviest child of each line and, at last, of the page; None if no child has any
    weight. Of equal children the last counts.
    """
    heaviest: list[int | None] = [None] * (len(totals) + 1)
    for index in reversed(range(len(totals))):
        rival = heaviest[parents[index]]
        if totals[index] > (0.0 if rival is None else totals[rival]):
            heaviest[parents[index]] = index
    return heaviest


def _parents(lines: Sequence[Line], page: int) -> list[int]:
    """Return the index of the parent of each line, `page` for the outermost."""
    parents: list[int] = []
    ancestors: list[int] = []
    for index, line in enumerate(lines):
        while ancestors and lines[ancestors[-1]].depth >= line.depth:
            ancestors.pop()
        parents.append(ancestors[-1] if ancestors else page)
        ancestors.append(index)
    return parents


def _path_name(lines: Sequence[Line], path: list[int], named: set[int]) -> str:
    """Return the named elements of a path, with dots for the others; dots at the end are left
    out.
    """
    name = ""
    has_gap = False
    for index in path:
        if index not in named:
            has_gap = True
            continue
        if name:
            name += " … " if has_gap else " > "
        elif has_gap:
            name = "… "
        name += _short(lines[index].label)
        if lines[index].repeats > 1:
            name += " ×"
        has_gap = False
    return name


def _short(label: str) -> str:
    """Return a label without its last classes, if it is too long to be one of several."""
    while len(label) > _MAX_SHORT:
        shorter, dot, _ = label.rpartition(".")
        if not dot:
            return label[: _MAX_SHORT - 1] + "…"
        label = shorter
    return label
