"""Hash the tokens of documents, straight from Arrow's UTF-8 buffers.

A document passes through two small buffers that stay in the cache: its *stream* (folded bytes, a
zero between tokens) and its token hashes. From the hashes come its shingles: token n-grams, hashed
again while they roll.
"""

import numpy as np

from neardup.kernels.code_tokens import end_lines, find_code_tokens
from neardup.kernels.compiled import I64, U8, U32, U64, kernel
from neardup.kernels.intrinsics import (
    address_of,
    count_ones,
    count_trailing_zeros,
    filled_bytes,
    load_u64,
    store_u64,
)
from neardup.kernels.mixing import MIX_1, MIX_2, mix
from neardup.kernels.strings import decode, encode, hash_at, is_lead
from neardup.kernels.token_arrays import PADDING as _PADDING

# Modes: the tokens of a text.
WORDS = 0
WHITESPACE = 1
CHARACTERS = 2
LETTERS = 3
CODE = 4
UNCOMMENTED = 5

# Fields of a table entry; see features/unicode_tables.py.
_CODE_POINT = U32(0x1FFFFF)
_CLASS_SHIFT = U32(21)
_EXPAND = U32(1 << 23)
_SPACE = U32(1 << 24)
_COMPOSE = U32(1 << 25)
_COMBINING_SHIFT = U32(26)
# Of the first word of an expansion: the number of its words, and of the pairs after them.
_COUNT = U32(0xFF)
_PAIRS_SHIFT = U32(8)
_SEPARATOR = 0
_WORD = 1
_SINGLE = 2
_TRANSPARENT = 3
_SINGLE_ENTRY = U32(_SINGLE << 21)
_BYTE_ORDER_MARK = U32(0xFEFF)
_UNDERSCORE = U8(95)

_HIGH_BITS = U64(0x8080808080808080)
_ALIKE = np.array(
    [[ord(pair[0]), ord(pair[1])] for pair in ("0o", "1l", "2z", "5s", "8b", "9g", "il")], U8
)
SEEN = 4096  # 32 kB; with four times less, a tenth more repeats are missed
# The initial state of a character, and a random odd base for n-grams.
_CHAIN = U64(0x9E3779B97F4A7C15)
_BASE = U64(0xD6E8FEB86659FD93)
_LANE_1 = U64(0xA0761D6478BD642F)
_LANE_2 = U64(0xE7037ED1A0B428DB)


@kernel
def _append(entry, mode, stream, length):
    """Append one normalised code point to the stream as its class demands; return the new
    length.
    """
    kind = (entry >> _CLASS_SHIFT) & U32(3)
    code = entry & _CODE_POINT
    # Invisible characters of code are written, too, but no mark of the byte order.
    is_written = mode >= CODE and (code != _BYTE_ORDER_MARK or length > 0)
    if is_written or (mode != WORDS and kind != _TRANSPARENT):
        kind = U32(_SEPARATOR) if entry & _SPACE else U32(_WORD)
    if kind == _WORD:
        return encode(code, stream, length)
    if kind == _SINGLE:
        stream[length] = 0
        length = encode(code, stream, length + 1)
        stream[length] = 0
        return length + 1
    if kind == _SEPARATOR:
        stream[length] = 0
        return length + 1
    return length


@kernel
def _is_ascii(data):
    """Return whether all bytes are below 128."""
    high = U8(0)
    for byte in data:
        high |= byte
    return high < 128


@kernel
def _fold_ascii_words(data, case_bit, stream):
    """Write ASCII text to the stream: letters with case_bit set, digits, underscores, zeros for the
    rest.

    The arithmetic is equal to `tables.ascii`; unlike the table, it becomes vector instructions (2.4
    x as fast).
    """
    for i in range(len(data)):
        byte = data[i]
        letter = U8((byte | U8(0x20)) - U8(97)) < U8(26)
        other = (U8(byte - U8(48)) < U8(10)) or byte == U8(95)
        stream[i] = U8(byte | case_bit) if letter else (byte if other else U8(0))


@kernel
def _expand(data, position, entry, tables, mode, stream, length):
    """Append the expansion of an entry, and the vowel at `position` if a tone mark moves there;
    return the next position, -1 if the text must be normalised as a whole, and the new length.
    """
    expansions = tables.expansions
    first = I64(entry & _CODE_POINT) + 1
    size = expansions[first - 1]
    stop = first + I64(size & _COUNT)
    if size > _COUNT:
        pair = _find_pair(data, position, tables, first)
        if pair < 0:
            return -1, 0
        is_moved = I64(pair != first)
        position += is_moved
        stop = pair + 1 + is_moved
        first = pair
    for i in range(first, stop):
        length = _append(expansions[i], mode, stream, length)
    return position, length


@kernel
def _find_pair(data, position, tables, first):
    """Return the index in `expansions` of the two words that a vowel and the vowel at `position`
    become, `first` if its tone mark does not move, -1 if the text must be normalised as a whole.

    first : the index of the only word of the first vowel.
    """
    expansions = tables.expansions
    following = data[position] if position < len(data) else U8(0)
    if following >= 128:
        code, _ = decode(data, position)
        entry = tables.entries[code]
        if entry & _EXPAND:
            index = I64(entry & _CODE_POINT)
            # For no word, an ASCII one stands in.
            entry = expansions[index + 1] if expansions[index] & _COUNT != 0 else U32(0)
        kind = (entry >> _CLASS_SHIFT) & U32(3)
        # It may be dropped, or become an ASCII vowel.
        return -1 if kind == _TRANSPARENT or entry & _CODE_POINT < 128 else first
    num_pairs = I64(expansions[first - 1] >> _PAIRS_SHIFT)
    for pair in range(first + 1, first + 1 + 3 * num_pairs, 3):
        if expansions[pair] == following:
            return pair + 1
    return first


@kernel
def _depends(entry, before, data, position, entries):
    """Return whether a code point may compose with the one before it, or is out of order.

    entry : of the code point at `position`; before : of the code point before.
    """
    if (before >> _CLASS_SHIFT) & U32(3) == _TRANSPARENT:
        before = _entry_before(data, position, entries)
    rank = entry >> _COMBINING_SHIFT
    return entry & _COMPOSE != 0 or 0 < rank < before >> _COMBINING_SHIFT


@kernel
def _entry_before(data, stop, entries):
    """Return the entry of the last code point before `stop` that is not transparent."""
    while stop > 0:
        start = stop - 1
        while start > 0 and not is_lead(data[start]):
            start -= 1
        code, _ = decode(data, start) if data[start] >= 128 else (U32(0), 1)
        if (entries[code] >> _CLASS_SHIFT) & U32(3) != _TRANSPARENT:
            return entries[code]
        stop = start
    return U32(0)


@kernel
def _fold_ascii(data, table, mode, stream):
    """Write a run of ASCII text to the stream."""
    if mode == WORDS and len(data) > 1:
        _fold_ascii_words(data, table[65] & U8(0x20), stream)
    else:
        for i in range(len(data)):
            stream[i] = table[data[i]]


@kernel(inline=True)
def _ascii_run(data, position):
    """Return where the run of ASCII bytes that begins at `position` ends."""
    while position + 8 <= len(data):
        high = load_u64(data, position) & _HIGH_BITS
        if high != U64(0):
            return position + (count_trailing_zeros(high) >> 3)
        position += 8
    while position < len(data) and data[position] < 128:
        position += 1
    return position


# Inlined, as an array that is passed on is counted twice, atomically.
@kernel(inline=True)
def _fold_singles(data, position, entries, stream, length):
    """Write a run of Chinese characters that stay as they are and of signs between; return its end,
    and the stream's.

    A character is decoded, looked up and written as one word: a Chinese text is folded 1.5 x as
    fast as by _append.
    """
    first = position
    while position + 8 <= len(data):
        word = load_u64(data, position)
        if word & U64(0xC0C0F0) != U64(0x8080E0):  # not the first three bytes of one character
            break
        code = (
            ((word & U64(0x0F)) << U64(12))
            | ((word >> U64(2)) & U64(0xFC0))
            | ((word >> U64(16)) & U64(0x3F))
        )
        entry = entries[code]
        if entry == U32(code) | _SINGLE_ENTRY:
            store_u64(stream, length, (word & U64(0xFFFFFF)) << U64(8))  # between zeros
            length += 4
        elif entry > _CODE_POINT:  # no separator, or one with special rules
            break
        position += 3
    if position > first:
        stream[length] = 0
        length += 1
    return position, length


@kernel(inline=True)
def _fold_run(data, position, tables, mode, stream, length):
    """Write a run of ASCII text, or of Chinese characters; return its end, and the stream's."""
    if data[position] < 128:
        stop = _ascii_run(data, position)
        _fold_ascii(data[position:stop], tables.ascii, mode, stream[length:])
        return stop, length + stop - position
    if mode == WORDS:
        return _fold_singles(data, position, tables.entries, stream, length)
    return position, length


@kernel
def _fold(data, tables, mode, stream):
    """Write a text to the stream; return its length there and whether it must be normalised as a
    whole.
    """
    fold_mode = WORDS if mode == LETTERS else mode
    if mode < CODE and _is_ascii(data):
        _fold_ascii(data, tables.ascii, fold_mode, stream)
        return len(data), False
    return _fold_unicode(data, tables, fold_mode, stream)


@kernel
def _fold_unicode(data, tables, mode, stream):
    """Write any text to the stream, as `_fold` does.

    It must be normalised as a whole if a code point may combine with the one before it, or
    combining marks are out of order: the quick check of Unicode Standard Annex #15, section 9.
    Transparent characters are dropped before, so marks on both sides of one are neighbours.
    """
    entries = tables.entries
    length = 0
    position = 0
    before = U32(0)  # the entry of the code point before
    while position < len(data):
        after, length = _fold_run(data, position, tables, mode, stream, length)
        if after > position:
            position = after
            before = U32(0)
            continue
        code, width = decode(data, position)
        entry = entries[code]
        if entry >> _CLASS_SHIFT == _WORD:  # without flags
            length = encode(entry & _CODE_POINT, stream, length)
            before = entry
            position += width
            continue
        if entry >= _COMPOSE and _depends(entry, before, data, position, entries):
            return 0, True
        before = entry
        position += width
        if entry & _EXPAND:
            position, length = _expand(data, position, entry, tables, mode, stream, length)
            if position < 0:
                return 0, True
        else:
            length = _append(entry, mode, stream, length)
    return end_lines(stream, length) if mode >= CODE else length, False


@kernel
def _find_edges(stream, length, edges):
    """Write where runs of non-zero bytes begin and end, in turn; return the number of runs.

    Works on 64 bytes at once: a bit a byte, so that the only unforeseeable branch comes once a
    block. Requires: `_PADDING` zeros after `length`.
    """
    count = 0
    carry = U64(0)
    for block in range(0, length + 1, 64):
        filled = filled_bytes(stream, block)
        changes = filled ^ ((filled << U64(1)) | carry)
        carry = filled >> U64(63)
        found = count_ones(changes)
        for first in range(0, found, 8):
            for i in range(8):  # positions after the last are overwritten
                edges[count + first + i] = block + count_trailing_zeros(changes)
                changes &= changes - U64(1)
        count += found
    return count >> 1


@kernel(allocates=True)
def _find_code(stream, length, comments, edges):
    """Find the tokens of source code; see `find_code_tokens`, and `Tables` for `comments`."""
    if comments is None:  # by its type, so Numba does not compile the rest
        return 0
    return find_code_tokens(stream, length, comments, edges)


@kernel
def _hash_tokens(stream, edges, count, tokens):
    """Hash `count` tokens that lie between edges, as kernels/strings.py does."""
    base = address_of(stream)
    for i in range(count):
        start = I64(edges[2 * i])
        tokens[i] = hash_at(base + start, I64(edges[2 * i + 1]) - start, start)


@kernel(allocates=True)
def hash_ascii(mode):
    """Return the hash of each ASCII character as a token, of a space for a zero: uint64 (128,).

    As LETTERS, a digit hashes as the letter that it is mistaken for, and so does i as l.
    """
    hashes = np.empty(128, U64)
    for byte in range(128):
        hashes[byte] = mix(_CHAIN ^ U64(byte))
    hashes[0] = hashes[0x20]
    if mode == LETTERS:
        for i in range(len(_ALIKE)):
            hashes[_ALIKE[i, 0]] = hashes[_ALIKE[i, 1]]
    return hashes


@kernel
def _hash_characters(stream, length, ascii_hashes, tokens):
    """Hash every code point of a stream, a run of zeros as one space, none at the ends; return
    their number.
    """
    count = 0
    position = 0
    before = U8(0)
    while position < length:
        byte = stream[position]
        if byte < 0x80:
            # The first zero of a run stays, the others are written over: no branch to guess at
            # every word.
            tokens[count] = ascii_hashes[byte]
            count += 1 if byte | before != 0 else 0
            width = 1
        else:
            width = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            word = load_u64(stream, position) & ((U64(1) << U64(8 * width)) - U64(1))
            tokens[count] = mix(_CHAIN ^ word)
            count += 1
        before = byte
        position += width
    return count - 1 if count > 0 and before == 0 else count


@kernel
def _hash_letters(stream, length, hashes, tokens):
    """Hash every code point of a stream but zeros and underscores; return their number."""
    count = 0
    position = 0
    while position < length:
        byte = stream[position]
        width = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
        if byte < 0x80:
            tokens[count] = hashes[byte]
        else:
            tokens[count] = mix(
                _CHAIN ^ (load_u64(stream, position) & ((U64(1) << U64(8 * width)) - U64(1)))
            )
        count += 1 if byte != 0 and byte != _UNDERSCORE else 0
        position += width
    return count


@kernel
def roll(tokens, count, ngram, hashes, first):
    """Append the hashes of all n-grams of tokens from `first` on; return the new end.

    The hash of t1..tn is mix(t1 B^(n-1) + ... + tn) modulo 2^64. Fewer than n tokens make one
    shingle of all.
    """
    if count == 0:
        return first
    power = U64(1)
    for _ in range(ngram):
        power *= _BASE
    size = min(count, ngram)
    rolling = U64(size)
    for i in range(size):
        rolling = rolling * _BASE + tokens[i]
    hashes[first] = mix(rolling)
    # U64(size) travels along as a leading digit; taking it out keeps the recurrence free of a
    # special case.
    rolling -= U64(size) * power if size == ngram else U64(0)
    for i in range(size, count):
        rolling = rolling * _BASE + (tokens[i] - tokens[i - ngram] * power)
        hashes[first + i - size + 1] = mix(rolling + U64(size) * power)
    return first + count - size + 1


@kernel
def _content(tokens, count, content):
    """Write the 128-bit hash of a token sequence: two lanes in the manner of
    MurmurHash3_x64_128.
    """
    left = U64(count)
    right = ~U64(count)
    for i in range(count):
        token = tokens[i]
        left = (left ^ (token * _LANE_1)) * MIX_1
        left = (left << U64(31)) | (left >> U64(33))
        right = (right ^ (token * _LANE_2)) * MIX_2
        right = (right << U64(27)) | (right >> U64(37))
    content[0] = mix(left)
    content[1] = mix(right)


@kernel
def leave_out_repeats(hashes, first, stop, document, seen):
    """Keep one of each hash from `first` on, and some repeats; return the new end.

    Of n-grams of characters half are repeats. seen : uint64 (SEEN,), the last hash of each slot,
    distinguished by document; SEEN is a power of 2.
    """
    end = first
    mask = U64(len(seen) - 1)
    tag = U64(document + 1) * MIX_1
    for i in range(first, stop):
        value = hashes[i]
        slot = value & mask
        entry = value ^ tag
        hashes[end] = value
        end += 1 if seen[slot] != entry or entry == U64(0) else 0  # 0 is where nothing was seen
        seen[slot] = entry
    return end


@kernel(allocates=True)
def shingle_document(data, tables, mode, ngram, buffers, ascii_hashes, hashes, first):
    """Write the token hashes of a text to buffers.tokens, and its shingle hashes to `hashes` from
    `first` on.

    Return how many tokens there are, the new end, and whether the text must be normalised as a
    whole before; then it has none. ascii_hashes : of `hash_ascii`.
    """
    stream, edges, tokens = buffers
    length, flagged = _fold(data, tables, mode, stream)
    stream[length : length + _PADDING] = 0
    if mode == CHARACTERS:
        count = _hash_characters(stream, length, ascii_hashes, tokens)
    elif mode == LETTERS:
        count = _hash_letters(stream, length, ascii_hashes, tokens)
    else:
        count = (
            _find_code(stream, length, tables.comments, edges)
            if mode >= CODE
            else _find_edges(stream, length, edges)
        )
        _hash_tokens(stream, edges, count, tokens)
    return count, roll(tokens, count, ngram, hashes, first), flagged


@kernel(allocates=True)
def shingle_text(text, tables, mode, ngram, buffers, shingles):
    """Fill `shingles` with the shingle hashes and content hash of each document, none if it is
    flagged.

    Requires: buffers as of `make_buffers`; len(shingles.hashes) >= 3 * len(text.data) +
    num_documents.
    """
    ascii_hashes = hash_ascii(mode)
    end = shingles.offsets[0] = 0
    for document in range(len(text.offsets) - 1):
        data = text.data[text.offsets[document] : text.offsets[document + 1]]
        count, end, flagged = shingle_document(
            data, tables, mode, ngram, buffers, ascii_hashes, shingles.hashes, end
        )
        _content(buffers.tokens, count, shingles.content[document])
        shingles.flagged[document] = flagged
        shingles.offsets[document + 1] = end


@kernel
def shingle_tokens(text, token_offsets, ngram, tokens, shingles):
    """Fill `shingles` from documents given as lists of tokens.

    text : all tokens, one after the other, an empty token skipped; token_offsets : int64 array of
    shape (num_documents + 1,), the range of tokens of each document; tokens : uint64, room for the
    longest of these. A token hashes as a word does in `shingle_text`.
    """
    base = address_of(text.data)
    end = shingles.offsets[0] = 0
    for document in range(len(token_offsets) - 1):
        count = 0
        for token in range(token_offsets[document], token_offsets[document + 1]):
            start = text.offsets[token]
            stop = text.offsets[token + 1]
            if stop > start:
                tokens[count] = hash_at(base + start, stop - start, start)
                count += 1
        _content(tokens, count, shingles.content[document])
        end = roll(tokens, count, ngram, shingles.hashes, end)
        shingles.offsets[document + 1] = end


@kernel
def _copy_tokens(stream, length, mode, tokens, count):
    """Append the tokens of a stream to the first `count` tokens; return the new count."""
    first = count
    end = tokens.offsets[count]
    space = False
    for i in range(length):
        byte = stream[i]
        following = stream[i + 1]
        if byte == 0 or (mode == LETTERS and byte == _UNDERSCORE):
            space = mode == CHARACTERS and count > first
            continue
        if space:
            tokens.data[end] = 0x20
            end += 1
            count += 1
            tokens.offsets[count] = end
            space = False
        tokens.data[end] = byte
        end += 1
        if following == 0 or (mode in (CHARACTERS, LETTERS) and following & 0xC0 != 0x80):
            count += 1
            tokens.offsets[count] = end
    return count


@kernel
def _copy_ranges(stream, edges, size, tokens, count):
    """Append `size` tokens between edges to the first `count` tokens; return the new count."""
    for i in range(size):
        end = tokens.offsets[count]
        for position in range(edges[2 * i], edges[2 * i + 1]):
            tokens.data[end] = stream[position]
            end += 1
        count += 1
        tokens.offsets[count] = end
    return count


@kernel(allocates=True)
def write_tokens(text, tables, mode, buffers, tokens, flagged):
    """Fill `tokens` with the tokens that `shingle_text` hashes; buffers and flagged as there.

    Requires: 3 * len(text.data) bytes for tokens.data, and one number more in tokens.offsets.
    """
    stream, edges, _ = buffers
    count = 0
    tokens.offsets[0] = 0
    tokens.document_offsets[0] = 0
    for document in range(len(text.offsets) - 1):
        data = text.data[text.offsets[document] : text.offsets[document + 1]]
        length, flagged[document] = _fold(data, tables, mode, stream)
        stream[length : length + 2] = 0
        if mode >= CODE:
            size = _find_code(stream, length, tables.comments, edges)
            count = _copy_ranges(stream, edges, size, tokens, count)
        else:
            count = _copy_tokens(stream, length, mode, tokens, count)
        tokens.document_offsets[document + 1] = count
