"""Read the tags of HTML pages from their UTF-8 bytes, as the HTML standard cuts them (13.2.5,
tokenization).

Time is linear in the bytes, whatever they are. Not done here: character references in attributes
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

# of a tag; further ones are not looked at: to know repeated ones takes a comparison with all
MAX_ATTRIBUTES = 128
# kinds of tags
START = 1
END = 2
SELF_CLOSING = 4
AFTER_TEXT = 8

_VALUE = U64(0x9E3779B97F4A7C15)
_CLASS = names.hash_name("class")
_TYPE = names.hash_name("type")
_REL = names.hash_name("rel")
_NAME = names.hash_name("name")
_ID = names.hash_name("id")
_PLAINTEXT = names.hash_name("plaintext")
_BRACKET = ord("<")
_ONES = U64(0x0101010101010101)
_HIGH_BITS = U64(0x8080808080808080)


class Tags(NamedTuple):
    """The start and end tags of pages, in the order of the text.

    names : uint64, the hash of the name in lower case. tokens : uint64, of a start tag the hash of
    the name, the names of the attributes, and the words of class, id, name, rel and type, each run
    of digits in them read as one sign. kinds : uint8, START or END, with SELF_CLOSING, and with
    AFTER_TEXT where more than blanks precede it. starts : int64, the positions of "<" in `data`.
    ends : int64, behind the ">". offsets : int64 (num_documents + 1,), whose tags are whose.
    """

    names: np.ndarray
    tokens: np.ndarray
    kinds: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    offsets: np.ndarray


def tags_of(data: np.ndarray, offsets: np.ndarray) -> Tags:
    """Return the tags of the pages data[offsets[i]:offsets[i + 1]]."""
    size = int(np.count_nonzero(data == _BRACKET))
    hashes = np.empty(size, U64), np.empty(size, U64)
    places = np.empty(size, I64), np.empty(size, I64)
    tags = Tags(*hashes, np.empty(size, U8), *places, np.zeros(len(offsets), I64))
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
    """Return where a byte is next, or `stop`."""
    sought = _ONES * U64(byte)
    while position + 8 <= stop:
        word = load_u64(data, position) ^ sought  # a byte of zeros at its place
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
            or byte == 47
            or byte == 62
            or (ends_at_equals and byte == 61 and position > first)
        ):
            break
        if U8(byte - U8(65)) < U8(26):
            byte |= U8(32)
        state = (state ^ U64(byte)) * FNV_PRIME
        position += 1
    return state, position


@kernel
def _read_value(data, position, stop, name, wanted):
    """Return the sum of the hashes of the words of a value, 0 where it is not wanted, and where the
    value ends.
    """
    quote = data[position]
    quoted = quote == 34 or quote == 39
    if quoted:
        position += 1
    if quoted and not wanted:
        return U64(0), _find(data, quote, position, stop) + 1
    total = U64(0)
    state = FNV_OFFSET
    in_word = False
    in_number = False
    while position < stop:
        byte = data[position]
        space = is_space(byte)
        if (quoted and byte == quote) or (not quoted and (space or byte == 62)):
            break
        position += 1
        if not wanted:
            continue
        if space:
            if in_word:
                total += mix(state ^ name * _VALUE)
            state = FNV_OFFSET
            in_word = False
            in_number = False
            continue
        digit = U8(byte - U8(48)) < U8(10)
        if not (digit and in_number):
            state = (state ^ U64(35 if digit else byte)) * FNV_PRIME
        in_word = True
        in_number = digit
    if in_word:
        total += mix(state ^ name * _VALUE)
    return total, position + 1 if quoted else position


@kernel
def _read_attributes(data, position, stop, seen):
    """Return the sum of the hashes of a tag's attributes, its end (0: the page ends before), and
    whether it is "/>".

    The first of two attributes with one name counts; their order does not.
    """
    total = U64(0)
    count = 0
    slash = False
    while position < stop:
        byte = data[position]
        if byte == 62:
            return total, position + 1, slash
        slash = byte == 47
        if slash or is_space(byte):
            position += 1
            continue
        name, position = _read_name(data, position, stop, True)
        while position < stop and is_space(data[position]):
            position += 1
        new = count < MAX_ATTRIBUTES
        for i in range(count):
            new = new and seen[i] != name
        value = U64(0)
        if position < stop and data[position] == 61:
            position += 1
            while position < stop and is_space(data[position]):
                position += 1
            if position < stop and data[position] != 62:
                wanted = new and name in (_CLASS, _ID, _NAME, _REL, _TYPE)
                value, position = _read_value(data, position, stop, name, wanted)
        if new:
            seen[count] = name
            count += 1
            total += mix(name) + value
    return total, 0, False


@kernel
def skip_comment(data, position, stop):
    """Return the end of what begins with "<!", "<?" or "</" and no letter. Requires: data[position]
    follows "<".
    """
    if not (
        position + 2 < stop
        and data[position] == 33
        and data[position + 1] == 45
        and data[position + 2] == 45
    ):
        return min(_find(data, U8(62), position, stop) + 1, stop)
    position += 3
    for dash in range(2):  # "<!-->" is a comment, and so is "<!--->"
        if position + dash < stop and data[position + dash] == 62:
            return position + dash + 1
        if position >= stop or data[position] != 45:
            break
    while position < stop:
        position = _find(data, U8(45), position, stop) + 1
        end = position
        while end < stop and data[end] == 45:
            end += 1
        if end > position and end < stop and data[end] == 62:
            return end + 1
        if end > position and end + 1 < stop and data[end] == 33 and data[end + 1] == 62:
            return end + 2
        position = end
    return stop


@kernel
def _skip_raw_text(data, position, stop, tag):
    """Return where the end tag of a script, style, title or the like begins, or `stop`."""
    while position < stop:
        position = _find(data, U8(60), position, stop)
        if position + 2 < stop and data[position + 1] == 47 and is_letter(data[position + 2]):
            name, end = _read_name(data, position + 2, stop, False)
            if name == tag and end < stop:
                return position
            position += 2  # a name ends at a slash, and may contain the "<" of the end tag
        else:
            position += 1
    return stop


@kernel
def _read_page(data, position, stop, seen, tags, count):
    """Write the tags of data[position:stop] behind the first `count`; return the new count."""
    text = False
    while position < stop:
        byte = data[position]
        if byte != 60 or position + 1 >= stop:
            text = text or not is_space(byte)
            position += 1
            if text:
                position = _find(data, U8(60), position, stop)
            continue
        start = position
        second = data[position + 1]
        is_end = second == 47 and position + 2 < stop and is_letter(data[position + 2])
        if not (is_end or is_letter(second)):
            if second == 33 or second == 63 or (second == 47 and position + 2 < stop):
                position = skip_comment(data, position + 1, stop)
            else:
                text = True
                position = position + 1
            continue
        name, position = _read_name(data, position + 1 + is_end, stop, False)
        attributes, position, slash = _read_attributes(data, position, stop, seen)
        if position == 0:
            return count
        tags.names[count] = name
        tags.tokens[count] = mix(name + attributes)
        tags.kinds[count] = (
            (END if is_end else START) | (SELF_CLOSING * slash) | (AFTER_TEXT * text)
        )
        tags.starts[count] = start
        tags.ends[count] = position
        count += 1
        text = False
        if not is_end:
            if name == _PLAINTEXT:
                return count
            if names.flags_of(name) & names.RAW_TEXT:
                position = _skip_raw_text(data, position, stop, name)
    return count


@kernel(allocates=True)
def read_tags(data, offsets, tags):
    """Fill `tags` with those of the documents data[offsets[i]:offsets[i + 1]]. Requires: room for
    every "<".
    """
    seen = np.empty(MAX_ATTRIBUTES, U64)
    for document in range(len(offsets) - 1):
        count = tags.offsets[document]
        tags.offsets[document + 1] = _read_page(
            data, offsets[document], offsets[document + 1], seen, tags, count
        )
