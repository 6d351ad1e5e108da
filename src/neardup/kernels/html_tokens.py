"""Read the tags of HTML pages from their UTF-8 bytes: the tokenization of the HTML standard
(13.2.5).

Time is linear in the bytes of any input. Unlike the standard, character references in attributes
stay as written, a "<script>" inside of a comment inside of a script does not nest, and CDATA
sections are comments.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels import html_tags as names
from neardup.kernels.compiled import I64, U8, U64, kernel
from neardup.kernels.intrinsics import count_trailing_zeros, load_u64
from neardup.kernels.mixing import FNV_OFFSET, FNV_PRIME, mix

MAX_ATTRIBUTES = 128  # of a tag; others are ignored, since each is compared with all before it
# Bits of a kind of tags.
START = 1
END = 2
SELF_CLOSING = 4
AFTER_TEXT = 8
SHADOW_ROOT = 16

_VALUE = U64(0x9E3779B97F4A7C15)
_CLASS = names.hash_name("class")
_TYPE = names.hash_name("type")
_REL = names.hash_name("rel")
_NAME = names.hash_name("name")
_ID = names.hash_name("id")
_PLAINTEXT = names.hash_name("plaintext")
_TEMPLATE = names.hash_name("template")
_SHADOW_ROOT_MODE = names.hash_name("shadowrootmode")
_OPEN = names.hash_name("open")
_CLOSED = names.hash_name("closed")
# Signs in ASCII.
_EXCLAMATION = ord("!")
_DOUBLE_QUOTE = ord('"')
_HASH = ord("#")
_SINGLE_QUOTE = ord("'")
_DASH = ord("-")
_SLASH = ord("/")
_LESS = ord("<")
_EQUALS = ord("=")
_GREATER = ord(">")
_QUESTION = ord("?")
_ONES = U64(0x0101010101010101)
_HIGH_BITS = U64(0x8080808080808080)


class Tags(NamedTuple):
    """The start and end tags of pages, in the order of the text.

    names : uint64, the hash of the name in lower case. tokens : uint64, of a start tag the hash of
    the name, the names of the attributes, and the words of class, id, name, rel and type, each run
    of digits in them read as one sign. kinds : uint8, START or END, with SELF_CLOSING, with
    AFTER_TEXT if more than white space precedes it, and with SHADOW_ROOT for a template whose
    content the page shows. starts : int64, the positions of "<" in `data`.
    ends : int64, after the ">". offsets : int64 (num_documents + 1,), the tags of each document.
    """

    names: np.ndarray
    tokens: np.ndarray
    kinds: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    offsets: np.ndarray


def tags_of(data: np.ndarray, offsets: np.ndarray) -> Tags:
    """Return the tags of the pages data[offsets[i]:offsets[i + 1]]."""
    size = int(np.count_nonzero(data == _LESS))
    tags = Tags(
        names=np.empty(size, U64),
        tokens=np.empty(size, U64),
        kinds=np.empty(size, U8),
        starts=np.empty(size, I64),
        ends=np.empty(size, I64),
        offsets=np.zeros(len(offsets), I64),
    )
    read_tags(data, offsets, tags)
    return tags


@kernel
def is_space(byte):
    return byte == 32 or byte == 10 or byte == 9 or byte == 13 or byte == 12


@kernel
def is_letter(byte):
    return U8((byte | U8(32)) - U8(97)) < U8(26)


@kernel
def _find(data, byte, position, stop):
    """Return the next position of a byte, or `stop`."""
    sought = _ONES * U64(byte)
    while position + 8 <= stop:
        word = load_u64(data, position) ^ sought  # zeros in the byte that is sought
        zeros = (word - _ONES) & ~word & _HIGH_BITS
        if zeros != U64(0):
            return position + (count_trailing_zeros(zeros) >> 3)
        position += 8
    while position < stop and data[position] != byte:
        position += 1
    return position


@kernel
def _read_name(data, position, stop, ends_at_equals):
    """Return the hash of a name in lower case, and its end."""
    state = FNV_OFFSET
    first = position
    while position < stop:
        byte = data[position]
        if (
            is_space(byte)
            or byte in (_SLASH, _GREATER)
            or (ends_at_equals and byte == _EQUALS and position > first)
        ):
            break
        if U8(byte - U8(65)) < U8(26):
            byte |= U8(32)
        state = (state ^ U64(byte)) * FNV_PRIME
        position += 1
    return state, position


@kernel
def _read_value(data, position, stop, name, wanted):
    """Return the sum of the hashes of the words of a value, 0 if it is not wanted, and the end of
    the value.
    """
    quote = data[position]
    is_quoted = quote in (_DOUBLE_QUOTE, _SINGLE_QUOTE)
    if is_quoted:
        position += 1
        end = _find(data, quote, position, stop)
    else:
        end = position
        while end < stop and not is_space(data[end]) and data[end] != _GREATER:
            end += 1
    # A sum: the order of classes does not matter.
    total = _hash_words(data, position, end, name) if wanted else U64(0)
    return total, end + is_quoted


@kernel
def _hash_words(data, position, stop, name):
    """Return the sum of the hashes of the words of a value of an attribute."""
    total = U64(0)
    state = FNV_OFFSET
    in_word = False
    in_number = False
    while position < stop:
        byte = data[position]
        position += 1
        if is_space(byte):
            if in_word:
                total += mix(state ^ name * _VALUE)
            state = FNV_OFFSET
            in_word = False
            in_number = False
            continue
        digit = U8(byte - U8(48)) < U8(10)
        if not (digit and in_number):  # a run of digits is one sign
            state = (state ^ U64(_HASH if digit else byte)) * FNV_PRIME
        in_word = True
        in_number = digit
    if in_word:
        total += mix(state ^ name * _VALUE)
    return total


@kernel
def _skip_spaces(data, position, stop):
    """Return the first position from `position` on without white space, or `stop`."""
    while position < stop and is_space(data[position]):
        position += 1
    return position


@kernel
def _read_attributes(data, position, stop, seen):
    """Return the sum of the hashes of a tag's attributes, its end (0: the page ends before), and
    whether it ends in "/>".

    The first of two attributes with one name counts; their order does not.
    """
    total = U64(0)
    count = 0
    slash = False
    while position < stop:
        byte = data[position]
        if byte == _GREATER:
            return total, position + 1, slash
        slash = byte == _SLASH
        if slash or is_space(byte):
            position += 1
            continue
        name, position = _read_name(data, position, stop, True)
        is_new = count < MAX_ATTRIBUTES and not _contains(seen[:count], name)
        wanted = is_new and name in (_CLASS, _ID, _NAME, _REL, _TYPE)
        value, position = _read_any_value(data, position, stop, name, wanted)
        if is_new:
            seen[count] = name
            count += 1
            total += mix(name) + value
    return total, 0, False


@kernel
def _read_any_value(data, position, stop, name, wanted):
    """Return the value of an attribute as `_read_value` does, 0 if it has none, and its end."""
    position = _skip_spaces(data, position, stop)
    if position >= stop or data[position] != _EQUALS:
        return U64(0), position
    position = _skip_spaces(data, position + 1, stop)
    if position >= stop or data[position] == _GREATER:
        return U64(0), position
    return _read_value(data, position, stop, name, wanted)


@kernel
def _opens_shadow_root(data, position, stop):
    """Return whether the attributes of a template make its content a shadow root (13.2.6.4.4)."""
    while position < stop:
        byte = data[position]
        if is_space(byte) or byte in (_SLASH, _GREATER):
            position += 1
            continue
        name, position = _read_name(data, position, stop, True)
        value, position = _read_any_value(data, position, stop, name, True)
        if name == _SHADOW_ROOT_MODE:
            salt = name * _VALUE
            return value == mix(_OPEN ^ salt) or value == mix(_CLOSED ^ salt)
    return False


@kernel
def _contains(values, value):
    """Return whether a value is among others, without a branch for each."""
    found = False
    for other in values:
        found = found or other == value
    return found


@kernel
def skip_comment(data, position, stop):
    """Return the end of a comment, which begins with "<!", "<?" or "</" and no letter.

    Requires: data[position] follows "<".
    """
    is_comment = (
        position + 2 < stop
        and data[position] == _EXCLAMATION
        and data[position + 1] == _DASH
        and data[position + 2] == _DASH
    )
    if not is_comment:
        return min(_find(data, U8(_GREATER), position, stop) + 1, stop)
    position += 3
    for dash in range(2):  # "<!-->" is a comment, and so is "<!--->"
        if position + dash < stop and data[position + dash] == _GREATER:
            return position + dash + 1
        if position >= stop or data[position] != _DASH:
            break
    return _end_of_dashes(data, position, stop)


@kernel
def _end_of_dashes(data, position, stop):
    """Return the end of a comment, after "-->" or "--!>", or `stop`."""
    while position < stop:
        position = _find(data, U8(_DASH), position, stop) + 1
        end = position
        while end < stop and data[end] == _DASH:
            end += 1
        if end > position:  # two dashes or more
            if end < stop and data[end] == _GREATER:
                return end + 1
            if end + 1 < stop and data[end] == _EXCLAMATION and data[end + 1] == _GREATER:
                return end + 2
        position = end
    return stop


@kernel
def _skip_raw_text(data, position, stop, tag):
    """Return the begin of the end tag of a script, style, title or the like, or `stop`."""
    while position < stop:
        position = _find(data, U8(_LESS), position, stop)
        if position + 2 < stop and data[position + 1] == _SLASH and is_letter(data[position + 2]):
            name, end = _read_name(data, position + 2, stop, False)
            if name == tag and end < stop:
                return position
            position += 2  # a name ends at a slash, and may contain the "<" of the end tag
        else:
            position += 1
    return stop


@kernel
def _read_page(data, position, stop, seen, tags, count):
    """Append the tags of data[position:stop] to the first `count`; return the new count."""
    has_text = False  # since the last tag
    while position < stop:
        byte = data[position]
        if byte != _LESS or position + 1 >= stop:
            has_text = has_text or not is_space(byte)
            position += 1
            if has_text:
                position = _find(data, U8(_LESS), position, stop)
            continue
        second = data[position + 1]
        has_third = second == _SLASH and position + 2 < stop
        is_end = has_third and is_letter(data[position + 2])
        # 13.2.5.6 and 13.2.5.7: "<" and a letter, or "</" and a letter, begin a tag.
        if is_end or is_letter(second):
            position = _read_tag(data, position, stop, seen, tags, count, is_end)
            if position == 0:
                break  # the page ends in the tag
            tags.kinds[count] |= AFTER_TEXT * has_text
            has_text = False
            if not is_end:
                position = _skip_content(data, position, stop, tags.names[count])
            count += 1
        elif second in (_EXCLAMATION, _QUESTION) or has_third:
            position = skip_comment(data, position + 1, stop)
        else:
            has_text = True
            position += 1
    return count


@kernel
def _read_tag(data, start, stop, seen, tags, count, is_end):
    """Write a tag after the first `count` ones; return its end, or 0 if the page ends before."""
    name, name_end = _read_name(data, start + 1 + is_end, stop, False)
    attributes, position, slash = _read_attributes(data, name_end, stop, seen)
    if position == 0:
        return position
    is_shadow = name == _TEMPLATE and not is_end and _opens_shadow_root(data, name_end, position)
    tags.names[count] = name
    tags.tokens[count] = mix(name + attributes)
    kind = (END if is_end else START) | (SELF_CLOSING * slash) | (SHADOW_ROOT * is_shadow)
    tags.kinds[count] = kind
    tags.starts[count] = start
    tags.ends[count] = position
    return position


@kernel
def _skip_content(data, position, stop, tag):
    """Return the end of the text of a start tag in which nothing is markup, if it has such text."""
    if tag == _PLAINTEXT:
        return stop
    if names.flags_of(tag) & names.RAW_TEXT:
        return _skip_raw_text(data, position, stop, tag)
    return position


@kernel(allocates=True)
def read_tags(data, offsets, tags):
    """Fill `tags` with the tags of the documents data[offsets[i]:offsets[i + 1]].

    Requires: room for every "<".
    """
    seen = np.empty(MAX_ATTRIBUTES, U64)
    for document in range(len(offsets) - 1):
        count = tags.offsets[document]
        tags.offsets[document + 1] = _read_page(
            data, offsets[document], offsets[document + 1], seen, tags, count
        )
