"""Find the tokens of source code in one pass, by the rules that most languages share.

A text is read by its kind, which its lines show. BRACES, with comments ``//`` and ``/* */``: at
least as many lines begin with ``//`` or ``/*`` as with ``#``, a space and a capital letter, and if
they are equal, more lines end in ``;``, or in ``{`` after a word or ``)``, than in ``:``. The
comments of other texts are ``#``; if more lines end in ``:``, they are INDENTED.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U8, kernel

BRACES, INDENTED, PLAIN = range(3)
# Signs in ASCII.
_TAB = 9
_LINE_END = 10
_CARRIAGE_RETURN = 13
_SPACE = 32
_DOUBLE = 34
_HASH = 35
_SINGLE = 39
_OPEN_ROUND = 40
_CLOSE_ROUND = 41
_STAR = 42
_MINUS = 45
_POINT = 46
_SLASH = 47
_COLON = 58
_SEMICOLON = 59
_EQUALS = 61
_GREATER = 62
_OPEN_SQUARE = 91
_BACKSLASH = 92
_CLOSE_SQUARE = 93
_UNDERSCORE = 95
_BACKTICK = 96
_OPEN_CURLY = 123
_CLOSE_CURLY = 125
_ZERO = U8(48)
_UPPER_A = U8(65)
_LOWER_A = U8(97)
_NUM_QUOTE_KINDS = 6  # " ' ` and the same three in threes
_BEFORE_EQUALS = tuple(b"=!<>+-*/%&|^:~")  # signs that form one token with a following "="
_DOUBLED = tuple(b"&|+-<>:*/.?")  # signs that form one token with the same sign


class _Blanks(NamedTuple):
    """The white space before a line: its start and size in the stream."""

    start: int
    size: int


@kernel(allocates=True)
def find_code_tokens(stream, length, with_comments, edges):
    """Write the start and the end of each token, in turn; return the number of tokens.

    Tokens are words, numbers, strings with their quotes, signs, the words and signs of comments if
    they count, and in an INDENTED text, outside brackets, the line end and the white space before a
    line that is indented unlike the one before.

    edges : integers, with space for two entries per byte of the stream. Requires: two zeros after
    `length`.
    """
    kind = kind_of(stream, length)
    failed_until = np.zeros(_NUM_QUOTE_KINDS, I64)
    count = 0
    position = 0
    comment_end = 0
    depth = 0  # of brackets
    blanks = _Blanks(start=0, size=0)  # of this line
    last_blanks = _Blanks(start=0, size=0)  # of the last line with tokens
    starts_line = False  # in an INDENTED text, outside brackets
    while position < length:
        byte = stream[position]
        if byte <= _SPACE:
            start = position
            position += 1
            if byte == _LINE_END:
                position = _skip_blanks(stream, position, length)
                blanks = _Blanks(start=start, size=position - start)
                starts_line = kind == INDENTED and depth == 0
            continue
        if position >= comment_end:
            comment_end = max(comment_end, _end_of_comment(stream, position, length, kind))
            if comment_end > position and not with_comments:
                position = comment_end
                continue
        if starts_line:
            starts_line = False
            if not _is_same_indent(stream, blanks, last_blanks):
                count = _add_token(edges, count, blanks.start, blanks.start + blanks.size)
            last_blanks = blanks
        in_comment = position < comment_end
        stop = _end_of_token(stream, position, length, in_comment, failed_until)
        if stop == position:
            stop = min(_end_of_sign(stream, position), comment_end if in_comment else length)
            depth = _depth_after(byte, depth)
        count = _add_token(edges, count, position, stop)
        position = stop
    return count


@kernel
def _add_token(edges, count, start, stop):
    """Append a token; return the new number of tokens."""
    edges[2 * count] = start
    edges[2 * count + 1] = stop
    return count + 1


@kernel
def _skip_blanks(stream, position, length):
    """Return the end of the spaces and tabs from a position on."""
    while position < length and (stream[position] == _SPACE or stream[position] == _TAB):
        position += 1
    return position


@kernel
def _is_same_indent(stream, blanks, last):
    """Return whether two lines begin with the same white space."""
    # Blanks include the line end before them. The first line has none: its size 0 counts as 1.
    expected_size = max(last.size, 1)
    if blanks.size != expected_size:
        return False
    for i in range(1, blanks.size):
        if stream[blanks.start + i] != stream[last.start + i]:
            return False
    return True


@kernel
def _end_of_token(stream, position, length, in_comment, failed_until):
    """Return the end of a word, a number or a string; the same position if there is none."""
    byte = stream[position]
    stop = position
    if _is_word(byte):
        stop = _end_of_word(stream, position)
    elif not in_comment and (byte in (_DOUBLE, _SINGLE, _BACKTICK)):
        stop = _end_of_string(stream, position, length, failed_until)
    return stop


@kernel
def _depth_after(byte, depth):
    """Return the depth of brackets after a sign."""
    if byte in (_OPEN_ROUND, _OPEN_SQUARE, _OPEN_CURLY):
        return depth + 1
    is_closing = byte in (_CLOSE_ROUND, _CLOSE_SQUARE, _CLOSE_CURLY)
    return depth - 1 if is_closing and depth > 0 else depth


@kernel(inline=True)
def _is_digit(byte):
    # Bytes wrap around: the difference of a smaller byte is large.
    return U8(byte - _ZERO) < U8(10)


@kernel(inline=True)
def _is_word(byte):
    """Return whether a byte belongs to a word: a letter, a digit, an underscore, or a part of a
    character beyond ASCII.
    """
    is_letter = U8((byte | U8(0x20)) - _LOWER_A) < U8(26)
    return is_letter or _is_digit(byte) or byte == _UNDERSCORE or byte >= 128


@kernel
def kind_of(stream, length):
    """Return the kind of a text of `length` bytes, followed by two zeros; a zero byte is white
    space.
    """
    braces = 0  # lines that end in ";", or in "{" after a word or ")"
    colons = 0
    slashes = 0  # lines that begin with "//" or "/*"
    hashes = 0
    before = U8(0)  # the last two signs of the line
    last = U8(0)
    for i in range(length + 1):
        # The end of the text ends its last line.
        byte = stream[i] if i < length else U8(_LINE_END)
        if byte == _LINE_END:
            opens = last == _OPEN_CURLY and (before == _CLOSE_ROUND or _is_word(before))
            braces += last == _SEMICOLON or opens
            colons += last == _COLON
            before = U8(0)
            last = U8(0)
        elif byte > _SPACE:
            if last == 0:
                slashes += _begins_slash_comment(stream, i)
                hashes += _begins_hash_comment(stream, i)
            before = last
            last = byte
    if slashes > hashes or (slashes == hashes and braces > colons):
        return BRACES
    return INDENTED if colons > braces else PLAIN


@kernel
def _begins_slash_comment(stream, i):
    following = stream[i + 1]
    return stream[i] == _SLASH and (following in (_SLASH, _STAR))


@kernel
def _begins_hash_comment(stream, i):
    """Return whether there is a "#", a space and a capital letter, so no directive of C."""
    if stream[i] != _HASH or stream[i + 1] != _SPACE:
        return False
    is_capital = U8(stream[i + 2] - _UPPER_A) < U8(26)
    return is_capital or stream[i + 2] >= 128


@kernel
def end_lines(stream, length):
    """Remove the carriage return of each CR LF, also inside a string; return the new length."""
    end = 0
    for i in range(length):
        stream[end] = stream[i]
        is_return = stream[i] == _CARRIAGE_RETURN and i + 1 < length
        end += 0 if is_return and stream[i + 1] == _LINE_END else 1
    return end


@kernel
def _end_of_word(stream, position):
    """Return the end of a word or a number: a point before a digit belongs to a number."""
    is_number = _is_digit(stream[position])
    while True:
        byte = stream[position]
        is_point = is_number and byte == _POINT and _is_digit(stream[position + 1])
        if not (is_point or _is_word(byte)):
            return position
        position += 1


@kernel
def _end_of_sign(stream, position):
    """Return the end of an operator or another sign: == != <= += -> => && :: and the like are
    one.
    """
    byte = stream[position]
    following = stream[position + 1]
    if following == _EQUALS:
        is_pair = byte in _BEFORE_EQUALS
    elif following == byte:
        is_pair = byte in _DOUBLED
    else:
        is_pair = following == _GREATER and (byte in (_MINUS, _EQUALS))
    return position + 2 if is_pair else position + 1


@kernel
def _end_of_string(stream, position, length, failed_until):
    """Return the end of the string that begins with a quote; the same position if nothing closes
    it.

    Three quotes, and backticks, go across lines. failed_until : int64, by kind of quotes, the
    position up to which a search has failed, so that the time is linear in the text.
    """
    quote = stream[position]
    triple = quote != _BACKTICK and stream[position + 1] == quote and stream[position + 2] == quote
    width = 3 if triple else 1
    kind = _quote_kind(quote, triple)
    i = position + width
    if position < failed_until[kind]:
        return position
    while i < length:
        byte = stream[i]
        if byte == _BACKSLASH:
            i += 1
        elif byte == _LINE_END and not triple and quote != _BACKTICK:
            break
        elif byte == quote and (not triple or (stream[i + 1] == quote and stream[i + 2] == quote)):
            return i + width
        i += 1
    failed_until[kind] = i
    return position


@kernel
def _quote_kind(quote, triple):
    """Return the number of a kind of quotes, below _NUM_QUOTE_KINDS."""
    kind = 2
    if quote == _DOUBLE:
        kind = 0
    elif quote == _SINGLE:
        kind = 1
    return kind + 3 if triple else kind


@kernel
def _end_of_comment(stream, position, length, kind):
    """Return the end of the comment that begins at a position; the same position if none begins."""
    byte = stream[position]
    following = stream[position + 1]
    is_block = kind == BRACES and byte == _SLASH and following == _STAR
    is_line = byte == _SLASH and following == _SLASH if kind == BRACES else byte == _HASH
    i = position
    if is_block:
        i += 2
        while i < length and not (stream[i] == _STAR and stream[i + 1] == _SLASH):
            i += 1
        return min(i + 2, length)
    if is_line:
        while i < length and stream[i] != _LINE_END:
            i += 1
    return i
