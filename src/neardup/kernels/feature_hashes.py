"""Join tokens to feature strings; lower-case texts, keep their letters and hash strings as other
programs do.
"""

import math

import numpy as np

from neardup.kernels.compiled import I64, U8, U32, U64, kernel
from neardup.kernels.mixing import FNV_OFFSET, FNV_PRIME

_SPACE = 0x20
_APOSTROPHE = 0x27
_DOT = 0x2E
_SLASH = 0x2F
_COLON = 0x3A


@kernel
def _letter(data, position, letters):
    """Return the mapping of the code point at `position`, and its length in bytes; of broken UTF-8
    anything.
    """
    lead = data[position]
    if lead < 0x80:
        return letters[lead], 1
    width = min(2 if lead < 0xE0 else 3 if lead < 0xF0 else 4, len(data) - position)
    code = I64(lead & (0x7F >> width))
    for i in range(position + 1, position + width):
        code = code << 6 | I64(data[i] & 0x3F)
    return letters[code] if code < len(letters) else U32(0), width


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
                kept.data[end] = letter  # 0 is overwritten: no branch to mispredict
                end += letter != 0
                position += 1
            if position == len(data):
                break
            letter, width = _letter(data, position, letters)
            position += width
            while letter != 0:
                kept.data[end] = letter & 0xFF
                letter >>= U32(8)
                end += 1
        kept.offsets[document + 1] = end


@kernel
def _keep_link(data, position, letters, kept, end):
    r"""Append the match of (?:://[\w./]+)? at `position` to `kept`; return its end in the data, and
    the new end of `kept`.
    """
    if position + 3 >= len(data) or data[position + 1] != _SLASH or data[position + 2] != _SLASH:
        return position, end
    start = position
    first = end
    for _ in range(3):  # an assignment to a slice takes 1.5 seconds to compile
        kept[end] = data[position]
        position += 1
        end += 1
    while position < len(data):
        letter, width = _letter(data, position, letters)
        byte = data[position]
        if byte in (_DOT, _SLASH):
            letter = U32(byte)
        elif letter == 0 or letter == _APOSTROPHE:
            break
        kept[end] = letter
        end += 1
        position += width
    return (position, end) if end > first + 3 else (start, first)


@kernel
def _append(letter, before, kept, end):
    """Append a letter to `kept`, or the space that ends a word; return the new end. before : the
    letter before it.

    An unwanted byte is written, too, and overwritten by the next one: the end of a word cannot be
    predicted, and a branch would take 5 x as long.
    """
    kept[end] = letter if letter != 0 else U32(_SPACE)
    return end + ((before | letter) != 0)


@kernel
def keep_words(text, letters, kept):
    r"""Fill `kept` with the matches of [\w']+(?:://[\w./]+)? in each document, in which a space
    ends a word.

    letters : the bytes that [\w'] matches, by byte.
    """
    end = kept.offsets[0] = 0
    for document in range(len(text.offsets) - 1):
        data = text.data[text.offsets[document] : text.offsets[document + 1]]
        end = _keep_words_of(data, letters, kept.data, end)
        kept.offsets[document + 1] = end


@kernel
def _keep_words_of(data, letters, kept, end):
    """Append the words of one document to `kept`; return its new end."""
    nothing = U32(0)
    position = 0
    before = nothing  # the last letter, 0 between words
    while position < len(data):
        while position < len(data) and data[position] < 0x80 and data[position] != _COLON:
            letter = letters[data[position]]
            end = _append(letter, before, kept, end)
            before = letter
            position += 1
        if position == len(data):
            break
        if before != 0 and data[position] == _COLON:
            position, end = _keep_link(data, position, letters, kept, end)
            letter = nothing
            width = 0
        else:
            letter, width = _letter(data, position, letters)
        end = _append(letter, before, kept, end)
        before = letter
        position += width
    return _append(nothing, before, kept, end) if before != 0 else end


# Of MD5 (RFC 1321, 3.3 and 3.4): the state at the start, the number of each step, and by how much
# its sum is turned.
_START = (U32(0x67452301), U32(0xEFCDAB89), U32(0x98BADCFE), U32(0x10325476))
_SINES = np.array([int(abs(math.sin(step)) * 2**32) for step in range(1, 65)], U32)
_TURNS = np.array([[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]], U32)
# Strings remembered, 512 KB that stay in the cache: English text is hashed twice as fast.
_SEEN = 1 << 16


@kernel
def join_runs(data, offsets, firsts, num_tokens, separator, joined, joined_offsets):
    """Fill joined with the strings firsts[i] to firsts[i] + num_tokens[i] of `data`, one after the
    other.

    data : uint8, offsets : int64; firsts, num_tokens : int64 (num_features,); separator : a byte to
    put between two strings, below 0 for none; joined : uint8; joined_offsets : int64 (num_features
    + 1,), where each result lies.
    """
    for feature in range(len(firsts)):
        end = joined_offsets[feature]
        for token in range(firsts[feature], firsts[feature] + num_tokens[feature]):
            if separator >= 0 and token > firsts[feature]:
                joined[end] = separator
                end += 1
            for i in range(offsets[token], offsets[token + 1]):
                joined[end] = data[i]
                end += 1


@kernel
def fnv(data, offsets, multiply_first, hashes):
    """Fill hashes (uint64) with the 64-bit hash of each string by Fowler, Noll and Vo: FNV-1
    multiplies before the xor, FNV-1a after it.
    """
    for i in range(len(offsets) - 1):
        state = FNV_OFFSET
        for byte in data[offsets[i] : offsets[i + 1]]:
            state = (
                (state * FNV_PRIME) ^ U64(byte)
                if multiply_first
                else (state ^ U64(byte)) * FNV_PRIME
            )
        hashes[i] = state


@kernel
def _absorb(state, block):
    """Return the MD5 state after a block of 16 words: RFC 1321, section 3.4."""
    a, b, c, d = state
    for step in range(64):
        mixed, word = _mix_step(step, b, c, d)
        total = U32(U32(a + mixed) + U32(block[word % 16] + _SINES[step]))
        turn = _TURNS[step // 16, step % 4]
        a = d
        d = c
        c = b
        b = U32(b + U32(U32(total << turn) | U32(total >> U32(U32(32) - turn))))
    return U32(state[0] + a), U32(state[1] + b), U32(state[2] + c), U32(state[3] + d)


@kernel
def _mix_step(step, b, c, d):
    """Return the function of a step, F, G, H or I of RFC 1321, and the word of the block that it
    adds.
    """
    if step < 16:
        mixed = (b & c) | (~b & d)
        word = step
    elif step < 32:
        mixed = (b & d) | (c & ~d)
        word = 5 * step + 1
    elif step < 48:
        mixed = b ^ c ^ d
        word = 3 * step + 5
    else:
        mixed = c ^ (b | ~d)
        word = 7 * step
    return mixed, word


@kernel(allocates=True)
def md5(data, offsets, keys, digests):
    """Fill digests (uint32, (num_strings, 4)) with the MD5 digest of each string, four bytes in
    each number.

    keys : uint64 (num_strings,), equal where the strings are, and uniform in their low bits: a
    string that was seen a short time ago is not hashed again.
    """
    seen = np.full(_SEEN, -1, I64)
    block = np.empty(16, U32)
    bytes_of_block = block.view(U8)
    for i in range(len(offsets) - 1):
        slot = I64(keys[i] % U64(_SEEN))
        same = seen[slot]
        seen[slot] = i
        if same >= 0 and keys[same] == keys[i]:
            digests[i] = digests[same]
            continue
        string = data[offsets[i] : offsets[i + 1]]
        size = len(string)
        state = _START
        # After the string come a bit, zeros, and in the last 8 bytes of a block of 64 its length in
        # bits.
        for start in range(0, size + 9, 64):
            _fill_block(string, start, block, bytes_of_block)
            state = _absorb(state, block)
        digests[i, 0], digests[i, 1], digests[i, 2], digests[i, 3] = state


@kernel
def _fill_block(string, start, block, bytes_of_block):
    """Write the 64 bytes of a string from `start` on, and its padding, as 16 words."""
    size = len(string)
    block[:] = U32(0)
    for position in range(start, min(start + 64, size)):
        bytes_of_block[position - start] = string[position]
    if start <= size < start + 64:
        bytes_of_block[size - start] = 0x80
    if size + 9 <= start + 64:
        block[14] = U32(8 * size & 0xFFFFFFFF)
        block[15] = U32(size >> 29)
