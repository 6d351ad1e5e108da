"""Write the text that HTML pages show: the text between their tags, without scripts, styles and
comments.

Or write the page in short: the text, and the tags that mark content, for a parser whose time is not
linear. Time here is linear in the bytes of any input. Character references stay as written; style
sheets are ignored.
"""

import numpy as np

from neardup.kernels import html_tags as names
from neardup.kernels.compiled import U64, kernel
from neardup.kernels.html_tokens import (
    SELF_CLOSING,
    SHADOW_ROOT,
    START,
    is_letter,
    is_space,
    skip_comment,
)

# Bytes of a tag with its attributes in a page in short: parsers compare each attribute with all.
MAX_TAG_BYTES = 1024
_NUM_OTHERS = 256  # slots of unknown names in a page in short: parsers search a list of them
# Gaps before the next word: the widest since the last one counts.
_NONE = 0
_SPACE = 1
_LINE = 2
_TOP = 3
_LINES = names.CLOSES_P | names.LINE
_LEFT_OUT = names.METADATA | names.FORMATTING | names.VOID | names.PAGE_PART
_PLAINTEXT, _XMP, _A, _BR = (names.hash_name(name) for name in ("plaintext", "xmp", "a", "br"))


@kernel
def _write_piece(data, position, stop, literal, short, text, end, gap):
    """Append the shown text of data[position:stop] to text[:end], a run of blanks as one; return
    the new end and gap.

    Requires: no whole tag in it, unless it is `literal` text, in which nothing is markup.
    """
    while position < stop:
        byte = data[position]
        if byte == 60 and not literal and position + 1 < stop:
            second = data[position + 1]
            closes = second == 47 and position + 2 < stop
            if is_letter(second) or (closes and is_letter(data[position + 2])):
                break  # half a tag, at the end of the page
            if second == 33 or second == 63 or closes:
                position = skip_comment(data, position + 1, stop)
                continue
        position += 1
        if is_space(byte):
            gap = max(gap, _SPACE)
        elif byte != 0:  # the standard drops it
            if gap in (_SPACE, _LINE):
                text[end] = 10 if gap == _LINE else 32
                end += 1
            gap = _NONE
            # "<" and the text after an omitted tag would make another tag.
            if short and byte == 60:
                end = _write_reference(text, end)
            else:
                text[end] = byte
                end += 1
    return end, gap


@kernel
def _write_reference(text, end):
    """Append "&lt;"; return the new end."""
    text[end] = 38
    text[end + 1] = 108
    text[end + 2] = 116
    text[end + 3] = 59
    return end + 4


@kernel
def _write_tag(data, start, stop, text, end):
    """Append a tag; one with many attributes without them. The name of no tag of HTML is longer
    than 32 bytes.
    """
    cut = stop - start > MAX_TAG_BYTES
    if cut:
        stop = start + 2
        while stop < start + 32 and not (
            is_space(data[stop]) or data[stop] == 47 or data[stop] == 62
        ):
            stop += 1
    for i in range(start, stop):
        text[end] = data[i]
        end += 1
    if cut:
        text[end] = 62
        end += 1
    return end


@kernel(allocates=True)
def _write_page(data, limits, tags, rows, short, text, end):
    """Append the text of the page data[limits[0]:limits[1]] with the tags rows[0]:rows[1]; return
    the new end.
    """
    gap = _TOP
    literal = False
    # The element that hides its text, and the number of open elements with its name.
    hiding = U64(0)
    depth = 0
    others = np.zeros(_NUM_OTHERS, U64)
    position = limits[0]
    for i in range(rows[0], rows[1]):
        if depth == 0:
            end, gap = _write_piece(data, position, tags.starts[i], literal, short, text, end, gap)
        tag = tags.names[i]
        is_start = tags.kinds[i] & START != 0
        position = tags.ends[i]
        literal = is_start and tag in (_PLAINTEXT, _XMP)
        if depth > 0:
            if tag == hiding:
                depth += 1 if is_start else -1
            continue
        flags = names.flags_of(tag)
        gap = max(gap, _gap_of(flags))
        if flags & names.HIDDEN:
            if _hides(tags.kinds[i], flags):
                hiding = tag
                depth = 1
        elif short and _is_kept(tag, flags, others):
            end = _write_tag(data, tags.starts[i], position, text, end)
    if depth == 0:
        end, gap = _write_piece(data, position, limits[1], literal, short, text, end, gap)
    return end


@kernel
def _gap_of(flags):
    """Return the gap that a tag makes."""
    if flags & _LINES:
        return _LINE
    return _SPACE if flags & names.APART else _NONE


@kernel
def _hides(kind, flags):
    """Return whether a tag opens an element without shown content.

    A self-closing one of SVG or MathML has no content; the content of a shadow root is shown.
    """
    is_closed = kind & SELF_CLOSING != 0 and flags & names.FOREIGN != 0
    return kind & START != 0 and not is_closed and kind & SHADOW_ROOT == 0


@kernel
def _is_kept(tag, flags, others):
    """Return whether a tag stays in a page in short. Of names that HTML does not know, the first of
    a slot stays.
    """
    if flags == 0:
        slot = tag & U64(_NUM_OTHERS - 1)
        if others[slot] == U64(0):
            others[slot] = tag
        return others[slot] == tag
    return tag in (_A, _BR) or not flags & _LEFT_OUT


@kernel(allocates=True)
def write_texts(data, offsets, tags, short, text, text_offsets):
    """Fill `text` with the shown text of each page; page i has text[text_offsets[i]:text_offsets[i
    + 1]].

    short : also with the tags that mark content. Requires: `tags` as read from the same bytes; room
    for all bytes of the pages, and with `short` for three more for each "<".
    """
    end = text_offsets[0] = 0
    for i in range(len(offsets) - 1):
        limits = (offsets[i], offsets[i + 1])
        rows = (tags.offsets[i], tags.offsets[i + 1])
        end = _write_page(data, limits, tags, rows, short, text, end)
        text_offsets[i + 1] = end
