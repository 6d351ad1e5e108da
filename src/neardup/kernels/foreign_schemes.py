"""Lower-case texts and keep their letters as other SimHash programs do, straight from Arrow's UTF-8 buffers.

The letters are in a table: uint32[0x110000], the UTF-8 bytes of the letter that a code point becomes, the first
byte lowest, or 0 where it is none. A letter of two bytes may become one of three: `Text` that is written has room for
twice the bytes of the one that is read.
"""

from __future__ import annotations

import numpy as np

from neardup.kernels.compiled import kernel

_SPACE, _APOSTROPHE, _DOT, _SLASH, _COLON = 0x20, 0x27, 0x2E, 0x2F, 0x3A


@kernel
def _letter(data, position, letters):
    """Return the mapping of the code point at `position`, and its length in bytes; of broken UTF-8 anything."""
    lead = data[position]
    if lead < 0x80:
        return letters[lead], 1
    width = min(2 if lead < 0xE0 else 3 if lead < 0xF0 else 4, len(data) - position)
    code = np.int64(lead & (0x7F >> width))
    for i in range(position + 1, position + width):
        code = code << 6 | np.int64(data[i] & 0x3F)
    return letters[code] if code < len(letters) else np.uint32(0), width


@kernel
def keep_letters(text, letters, kept):
    """Fill `kept` with the letters of each document."""
    end = kept.offsets[0] = 0
    for document in range(len(text.offsets) - 1):
        data = text.data[text.offsets[document] : text.offsets[document + 1]]
        position = 0
        while position < len(data):
            while position < len(data) and data[position] < 0x80:
                letter = letters[data[position]]
                kept.data[end] = letter
                end += letter != 0
                position += 1
            if position == len(data):
                break
            letter, width = _letter(data, position, letters)
            position += width
            while letter != 0:
                kept.data[end] = letter & 0xFF
                letter >>= np.uint32(8)
                end += 1
        kept.offsets[document + 1] = end


@kernel
def _keep_link(data, position, letters, kept, end):
    r"""Append the match of (?:://[\w./]+)? at `position` to `kept`; return where it ends here and there."""
    if position + 3 >= len(data) or data[position + 1] != _SLASH or data[position + 2] != _SLASH:
        return position, end
    start, first = position, end
    kept[end : end + 3] = data[position : position + 3]
    position, end = position + 3, end + 3
    while position < len(data):
        letter, width = _letter(data, position, letters)
        byte = data[position]
        if byte in (_DOT, _SLASH):
            letter = np.uint32(byte)
        elif letter == 0 or letter == _APOSTROPHE:
            break
        kept[end] = letter
        end += 1
        position += width
    return (position, end) if end > first + 3 else (start, first)


@kernel
def _append(letter, before, kept, end):
    """Append a letter to `kept`, or the space that ends a word; return the new end. before : the letter before it.

    What is not wanted is written, too, and overwritten by the next: nobody foresees where a word ends, and a branch
    would take 5 x as long.
    """
    kept[end] = letter if letter != 0 else np.uint32(_SPACE)
    return end + ((before | letter) != 0)


@kernel
def keep_words(text, letters, kept):
    r"""Fill `kept` with the matches of [\w']+(?:://[\w./]+)? in each document, in which a space ends a word.

    letters : what [\w'] matches, one byte each.
    """
    nothing = np.uint32(0)
    end = kept.offsets[0] = 0
    for document in range(len(text.offsets) - 1):
        data = text.data[text.offsets[document] : text.offsets[document + 1]]
        position, before = 0, nothing
        while position < len(data):
            while position < len(data) and data[position] < 0x80 and data[position] != _COLON:
                letter = letters[data[position]]
                end = _append(letter, before, kept.data, end)
                before = letter
                position += 1
            if position == len(data):
                break
            if before != 0 and data[position] == _COLON:
                position, end = _keep_link(data, position, letters, kept.data, end)
                letter, width = nothing, 0
            else:
                letter, width = _letter(data, position, letters)
            end = _append(letter, before, kept.data, end)
            before = letter
            position += width
        if before != 0:
            end = _append(nothing, before, kept.data, end)
        kept.offsets[document + 1] = end
