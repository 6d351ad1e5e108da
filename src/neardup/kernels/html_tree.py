"""Find the elements of HTML pages from their tags: the tree construction of the HTML standard
(13.2.6).

Implied and ignored tags, scopes and foreign content are followed, since they change the depth of
elements. Formatting elements are closed at their end tags but not reopened, and the content of a
table outside of its cells stays there.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels import html_tags as names
from neardup.kernels.compiled import I64, U64, kernel
from neardup.kernels.html_tokens import AFTER_TEXT, SELF_CLOSING, START, Tags
from neardup.kernels.mixing import mix

# Deeper elements are children of the element at this depth, as in Chromium: time stays linear.
MAX_DEPTH = 512
_HTML, _HEAD, _BODY, _FRAMESET = (
    names.hash_name(name) for name in ("html", "head", "body", "frameset")
)
_A, _P, _LI, _DD, _DT, _BR = (names.hash_name(name) for name in ("a", "p", "li", "dd", "dt", "br"))
_TABLE, _TBODY, _TR, _TD, _TH = (
    names.hash_name(name) for name in ("table", "tbody", "tr", "td", "th")
)
_COL, _COLGROUP, _BUTTON, _TEMPLATE = (
    names.hash_name(name) for name in ("col", "colgroup", "button", "template")
)
_OPTION, _OPTGROUP, _FORM = (names.hash_name(name) for name in ("option", "optgroup", "form"))
_NONE = U64(0)  # the tag of no element
# Indices of `Stack.state`: the number of open elements, and the parts of the page seen, as bits.
_SIZE, _SEEN = range(2)
# Bits of `state[_SEEN]`. The last one is no part: a form is open, and a form inside is ignored.
_SEEN_HTML = 1
_SEEN_HEAD = 2
_SEEN_BODY = 4
_IN_FORM = 8
_IN_FOREIGN = 1 << 20  # in the flags of an open element: its content belongs to SVG or MathML


class Elements(NamedTuple):
    """The elements of pages in document order.

    names, tokens : uint64, as in `Tags`; an implied element has the token of its name alone. depths
    : int32, 0 for html. offsets : int64 (num_documents + 1,), the elements of each document.
    """

    names: np.ndarray
    tokens: np.ndarray
    depths: np.ndarray
    offsets: np.ndarray


class Stack(NamedTuple):
    """The open elements of a page. tags : uint64, flags : int64 (MAX_DEPTH,). state : int64, the
    number of open elements, and the bits of parts seen.
    """

    tags: np.ndarray
    flags: np.ndarray
    state: np.ndarray


def elements_of(tags: Tags) -> Elements:
    """Return the elements of the pages that have these tags."""
    # A tag makes its element and at most two more (tbody, tr), a page html, head and body.
    size = 3 * (int(tags.offsets[-1]) + len(tags.offsets) - 1)
    hashes = np.empty(size, U64), np.empty(size, U64)
    elements = Elements(*hashes, np.empty(size, np.int32), np.zeros_like(tags.offsets))
    build_elements(tags, elements)
    return elements


@kernel
def _emit(elements, count, tag, token, depth):
    elements.names[count] = tag
    elements.tokens[count] = token
    elements.depths[count] = depth
    return count + 1


@kernel
def _push(stack, tag, flags):
    size = stack.state[_SIZE]
    if size < MAX_DEPTH:
        stack.tags[size] = tag
        stack.flags[size] = flags
        stack.state[_SIZE] = size + 1


@kernel
def _imply(stack, elements, count, tag):
    """Open an element that the page does not name."""
    count = _emit(elements, count, tag, mix(tag), stack.state[_SIZE])
    _push(stack, tag, names.flags_of(tag))
    return count


@kernel
def _index_of(stack, tag, boundary, stop_tag):
    """Return the index of the innermost open element with a tag, or -1.

    The search ends at an element with a flag of `boundary`, and at the tag `stop_tag`.
    """
    for index in range(stack.state[_SIZE] - 1, -1, -1):
        if stack.tags[index] == tag:
            return index
        if stack.flags[index] & boundary or stack.tags[index] == stop_tag:
            return -1
    return -1


@kernel
def _close_to(stack, index):
    """Close the element at an index with its content, unless the index is -1."""
    if index >= 0:
        stack.state[_SIZE] = index


@kernel
def _enter_body(stack, elements, count, flags):
    """Open html, head and body for a start tag, or text (flags -1), that is in none of them."""
    if not stack.state[_SEEN] & _SEEN_HTML:
        count = _imply(stack, elements, count, _HTML)
    is_metadata = flags >= 0 and flags & names.METADATA != 0
    if not stack.state[_SEEN] & _SEEN_HEAD:
        stack.state[_SIZE] = 1
        count = _imply(stack, elements, count, _HEAD)
        if not is_metadata:
            stack.state[_SIZE] = 1
    elif is_metadata and stack.state[_SIZE] == 1:
        _push(stack, _HEAD, names.SPECIAL)  # metadata after </head> goes into it (13.2.6.4.6)
    stack.state[_SEEN] |= _SEEN_HTML | _SEEN_HEAD
    if not is_metadata and _index_of(stack, _TEMPLATE, 0, _NONE) < 0:
        stack.state[_SIZE] = 1
        count = _imply(stack, elements, count, _BODY)
        stack.state[_SEEN] |= _SEEN_BODY
    return count


@kernel
def _open_page_part(stack, elements, count, tag, token):
    """Open html, head or body, once each; return the count."""
    if tag == _HTML:
        if not stack.state[_SEEN] & _SEEN_HTML:
            count = _emit(elements, count, tag, token, 0)
            _push(stack, tag, names.SCOPE | names.SPECIAL)
            stack.state[_SEEN] |= _SEEN_HTML
        return count
    if not stack.state[_SEEN] & _SEEN_HTML:
        count = _imply(stack, elements, count, _HTML)
        stack.state[_SEEN] |= _SEEN_HTML
    bit = _SEEN_HEAD if tag == _HEAD else _SEEN_BODY
    if stack.state[_SEEN] & (bit | _SEEN_BODY):
        return count
    stack.state[_SIZE] = 1
    if bit == _SEEN_BODY and not stack.state[_SEEN] & _SEEN_HEAD:
        count = _imply(stack, elements, count, _HEAD)
        stack.state[_SIZE] = 1
    count = _emit(elements, count, tag, token, 1)
    _push(stack, tag, names.SPECIAL)
    stack.state[_SEEN] |= bit | _SEEN_HEAD
    return count


@kernel
def _open_table_part(stack, elements, count, tag):
    """Close and open rows and bodies of a table for its next part; return the count, -1 if there is
    no table.
    """
    is_cell = tag in (_TD, _TH)
    is_row = tag == _TR
    for index in range(stack.state[_SIZE] - 1, -1, -1):
        name = stack.tags[index]
        flags = stack.flags[index]
        if name == _TEMPLATE:
            return count
        # A column is in a column group: directly in a table, it implies one.
        if tag == _COL and name in (_COLGROUP, _TABLE):
            stack.state[_SIZE] = index + 1
            return _imply(stack, elements, count, _COLGROUP) if name == _TABLE else count
        if (
            name == _TABLE
            or (flags & names.ROWS and (is_cell or is_row))
            or (name == _TR and is_cell)
        ):
            stack.state[_SIZE] = index + 1
            if name == _TABLE and (is_cell or is_row):
                count = _imply(stack, elements, count, _TBODY)
            if name != _TR and is_cell:
                count = _imply(stack, elements, count, _TR)
            return count
    return I64(-1)


@kernel
def _close_before(stack, tag, flags):
    """Close the elements that a start tag closes: paragraphs, items, options, headings, links and
    buttons.
    """
    if tag in (_LI, _DD, _DT):
        _close_item(stack, tag)
    if flags & names.CLOSES_P:
        _close_to(stack, _index_of(stack, _P, names.SCOPE, _BUTTON))
    top = stack.state[_SIZE] - 1
    if flags & names.HEADING and stack.flags[top] & names.HEADING:
        stack.state[_SIZE] = top
    elif tag in (_OPTION, _OPTGROUP):
        _close_to(stack, _index_of(stack, _OPTION, names.SPECIAL, _NONE))
        if tag == _OPTGROUP:
            _close_to(stack, _index_of(stack, _OPTGROUP, names.SPECIAL, _NONE))
    elif tag == _BUTTON:
        _close_to(stack, _index_of(stack, _BUTTON, names.SCOPE, _NONE))
    elif tag == _A:
        _remove(stack, _index_of(stack, _A, names.SCOPE, _NONE))


@kernel
def _close_item(stack, tag):
    """Close the list item, or the term or description, that the next one closes."""
    for index in range(stack.state[_SIZE] - 1, -1, -1):
        name = stack.tags[index]
        if name == tag or (tag != _LI and name in (_DD, _DT)):
            stack.state[_SIZE] = index
            break
        if stack.flags[index] & names.SPECIAL and not stack.flags[index] & names.LOOSE:
            break


@kernel
def _remove(stack, index):
    """Remove an element from the stack, unless the index is -1; its content stays open."""
    if index >= 0:
        for i in range(index, stack.state[_SIZE] - 1):
            stack.tags[i] = stack.tags[i + 1]
            stack.flags[i] = stack.flags[i + 1]
        stack.state[_SIZE] -= 1


@kernel
def _in_table(stack):
    """Return whether the innermost element belongs to a table, outside of its cells."""
    top = stack.state[_SIZE] - 1
    return stack.tags[top] in (_TABLE, _TR) or stack.flags[top] & names.ROWS != 0


@kernel
def _in_foreign(stack):
    size = stack.state[_SIZE]
    return size > 0 and stack.flags[size - 1] & _IN_FOREIGN != 0


@kernel
def _start(stack, elements, count, tag, token, kind):
    """Open the element of a start tag with the elements that it implies; return the new count."""
    flags = names.flags_of(tag)
    if flags & names.BREAKS_OUT:  # tags such as <p> end SVG and MathML (13.2.6.5)
        while _in_foreign(stack):
            stack.state[_SIZE] -= 1
    is_foreign = _in_foreign(stack)
    if not is_foreign:
        if tag in (_HTML, _HEAD, _BODY, _FRAMESET):
            return _open_page_part(stack, elements, count, tag, token)
        count, is_ignored = _prepare(stack, elements, count, tag, flags)
        if is_ignored:
            return count
    count = _emit(elements, count, tag, token, stack.state[_SIZE])
    if is_foreign or flags & names.FOREIGN:
        if not kind & SELF_CLOSING:
            # An integration point contains HTML again.
            content_flag = 0 if flags & names.INTEGRATION else _IN_FOREIGN
            _push(stack, tag, content_flag | (flags & names.SCOPE))
    else:
        _push_html(stack, tag, flags)
    return count


@kernel
def _push_html(stack, tag, flags):
    """Push an element of HTML, unless it has no content, or is a form directly in a table."""
    if tag == _FORM:
        stack.state[_SEEN] |= _IN_FORM
        if not _in_table(stack):
            _push(stack, tag, flags)
    elif not flags & names.VOID:
        _push(stack, tag, flags)


@kernel
def _prepare(stack, elements, count, tag, flags):
    """Open and close the elements that a start tag of HTML implies; return the new count, and
    whether the tag is ignored.
    """
    if not stack.state[_SEEN] & _SEEN_BODY:
        count = _enter_body(stack, elements, count, flags)
    if tag == _FORM and stack.state[_SEEN] & _IN_FORM:
        return count, True
    if flags & names.TABLE_PART:
        opened = _open_table_part(stack, elements, count, tag)
        if opened < 0:
            return count, True
        count = opened
    _close_before(stack, tag, flags)
    return count, False


@kernel
def _end(stack, elements, count, tag):
    """Close the element of an end tag; return the new count: "</p>" and "</br>" may make an
    element.
    """
    if tag in (_HTML, _BODY) or (stack.state[_SIZE] == 0 and tag != _BR):
        return count
    flags = names.flags_of(tag)
    if tag == _HEAD:
        if not stack.state[_SEEN] & _SEEN_BODY and stack.state[_SEEN] & _SEEN_HEAD:
            stack.state[_SIZE] = 1
    elif flags & names.HEADING:
        _close_heading(stack)
    elif flags & names.TABLE_PART or tag in (_TABLE, _TEMPLATE):
        _close_to(stack, _index_of(stack, tag, 0, _NONE if tag == _TEMPLATE else _TABLE))
    else:
        count = _end_other(stack, elements, count, tag, flags)
    return count


@kernel
def _end_other(stack, elements, count, tag, flags):
    """Close the element of an end tag outside of head, headings and tables; return the count."""
    boundary = names.SCOPE if flags & (names.SPECIAL | names.FORMATTING) else names.SPECIAL
    if tag == _LI:
        boundary |= names.LIST
    if tag == _FORM:
        stack.state[_SEEN] &= ~_IN_FORM
    index = _index_of(stack, tag, boundary, _BUTTON if tag == _P else _NONE)
    if index >= 0:
        _close_or_remove(stack, index, tag, flags)
    elif tag == _BR or (tag == _P and stack.state[_SEEN] & _SEEN_BODY):
        if not stack.state[_SEEN] & _SEEN_BODY:
            count = _enter_body(stack, elements, count, I64(0))  # as for a tag without flags
        count = _emit(elements, count, tag, mix(tag), stack.state[_SIZE])
    return count


@kernel
def _close_heading(stack):
    """Close the innermost heading in scope, of any level."""
    for index in range(stack.state[_SIZE] - 1, -1, -1):
        if stack.flags[index] & names.HEADING:
            stack.state[_SIZE] = index
            break
        if stack.flags[index] & names.SCOPE:
            break


@kernel
def _close_or_remove(stack, index, tag, flags):
    """Close the element at an index with its content, or remove it alone: a form, or formatting
    around a block.
    """
    if tag == _FORM:
        _remove(stack, index)
        return
    if flags & names.FORMATTING:
        for inner in range(index + 1, stack.state[_SIZE]):
            if stack.flags[inner] & names.SPECIAL:
                _remove(stack, index)
                return
    stack.state[_SIZE] = index


@kernel
def _ends_head(stack):
    """Return whether text here opens the body."""
    size = stack.state[_SIZE]
    return not stack.state[_SEEN] & _SEEN_BODY and (
        size < 2 or (size == 2 and stack.tags[1] == _HEAD)
    )


@kernel(allocates=True)
def build_elements(tags, elements):
    """Fill `elements` from the tags of pages."""
    # One stack for all pages: `state` alone says how much of it is in use.
    stack = Stack(
        tags=np.zeros(MAX_DEPTH, U64), flags=np.zeros(MAX_DEPTH, I64), state=np.zeros(2, I64)
    )
    for document in range(len(tags.offsets) - 1):
        stack.state[:] = 0
        first = elements.offsets[document]
        count = _build_page(tags, document, stack, elements, first)
        # A page whose tags end in its head has a body, too.
        if count > first and not stack.state[_SEEN] & _SEEN_BODY:
            count = _enter_body(stack, elements, count, I64(-1))
        elements.offsets[document + 1] = count


@kernel
def _build_page(tags, document, stack, elements, count):
    """Append the elements of the tags of a page to the first `count`; return the new count."""
    for i in range(tags.offsets[document], tags.offsets[document + 1]):
        tag = tags.names[i]
        kind = tags.kinds[i]
        if kind & AFTER_TEXT and _ends_head(stack):
            count = _enter_body(stack, elements, count, I64(-1))
        if kind & START:
            count = _start(stack, elements, count, tag, tags.tokens[i], kind)
        else:
            count = _end(stack, elements, count, tag)
    return count
