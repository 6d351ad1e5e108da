"""Find the tokens of source code, without a grammar: what most languages have in common, in one
pass.

A text is read by its kind, which its lines show. BRACES, with comments ``//`` and ``/* */``: more
lines begin with ``//`` or ``/*`` than with ``#``, a space and a capital letter, or as many do, and
more lines end in ``;``, or in ``{`` after a word or ``)``, than in ``:``. The comments of others
are ``#``; if more lines end in ``:``, they are INDENTED.
"""

import numpy as np

from neardup.kernels.compiled import I64, U8, kernel

BRACES = 0
INDENTED = 1
PLAIN = 2
_LINE_END = 10
_SPACE = 32
_HASH = 35
_STAR = 42
_SLASH = 47
_BACKSLASH = 92
_DOUBLE = 34
_SINGLE = 39
_BACKTICK = 96


@kernel(inline="always")
def _is_word(byte):
    """Return whether a byte is of a word: a letter, a digit, an underscore, or of a character
    beyond ASCII.
    """
    letter = U8((byte | U8(0x20)) - U8(97)) < U8(26)
    return letter or U8(byte - U8(48)) < U8(10) or byte == 95 or byte >= 128


@kernel
def kind_of(stream, length):
    """Return the kind of a text of `length` bytes, behind which are two zeros; a zero byte is white
    space.
    """
    braces = 0
    colons = 0
    slashes = 0
    hashes = 0
    before = U8(0)
    last = U8(0)
    for i in range(length + 1):
        byte = stream[i] if i < length else U8(_LINE_END)
        if byte == _LINE_END:
            braces += last == 59 or (last == 123 and (before == 41 or _is_word(before)))  # ; { )
            colons += last == 58
            before = U8(0)
            last = U8(0)
        elif byte > _SPACE:
            if last == 0 and byte == _SLASH:
                slashes += stream[i + 1] == _SLASH or stream[i + 1] == _STAR
            elif last == 0 and byte == _HASH and stream[i + 1] == _SPACE:  # no directive of C
                hashes += U8(stream[i + 2] - U8(65)) < U8(26) or stream[i + 2] >= 128
            before = last
            last = byte
    if slashes > hashes or (slashes == hashes and braces > colons):
        return BRACES
    return INDENTED if colons > braces else PLAIN


@kernel
def end_lines(stream, length):
    """Leave out the carriage return of each CR LF, also inside a string; return the new length."""
    end = 0
    for i in range(length):
        stream[end] = stream[i]
        end += 0 if stream[i] == 13 and i + 1 < length and stream[i + 1] == _LINE_END else 1
    return end


@kernel
def _end_of_word(stream, position):
    """Return where a word or a number ends: a point between digits is of the number."""
    is_number = U8(stream[position] - U8(48)) < U8(10)
    while True:
        byte = stream[position]
        point = is_number and byte == 46 and U8(stream[position + 1] - U8(48)) < U8(10)
        if not (point or _is_word(byte)):
            return position
        position += 1


@kernel
def _end_of_sign(stream, position):
    """Return where an operator or another sign ends: == != <= += -> => && :: and their like are
    one.
    """
    byte = stream[position]
    following = stream[position + 1]
    if following == 61:  # = after one of = ! < > + - * / % & | ^ : ~
        pair = byte in (61, 33, 60, 62, 43, 45, 42, 47, 37, 38, 124, 94, 58, 126)
    elif following == byte:  # the same twice, of & | + - < > : * / . ?
        pair = byte in (38, 124, 43, 45, 60, 62, 58, 42, 47, 46, 63)
    else:
        pair = following == 62 and (byte == 45 or byte == 61)
    return position + 2 if pair else position + 1


@kernel
def _end_of_string(stream, position, length, hopeless):
    """Return where the string that begins with a quote ends; the same position if nothing closes
    it.

    Three quotes, and backticks, go across lines. hopeless : int64 (6,), where a search by each kind
    of quotes has failed up to, so that the time is linear in the text.
    """
    quote = stream[position]
    triple = quote != _BACKTICK and stream[position + 1] == quote and stream[position + 2] == quote
    width = 3 if triple else 1
    which = (0 if quote == _DOUBLE else 1 if quote == _SINGLE else 2) + (3 if triple else 0)
    i = position + width
    if position < hopeless[which]:
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
    hopeless[which] = i
    return position


@kernel
def _end_of_comment(stream, position, length, kind):
    """Return where the comment that begins at a position ends; the same position if none begins."""
    byte = stream[position]
    following = stream[position + 1]
    block = kind == BRACES and byte == _SLASH and following == _STAR
    if not block and not (
        byte == _SLASH and following == _SLASH if kind == BRACES else byte == _HASH
    ):
        return position
    i = position + 2 if block else position
    while i < length and not (
        stream[i] == _STAR and stream[i + 1] == _SLASH if block else stream[i] == _LINE_END
    ):
        i += 1
    return min(i + 2, length) if block else i


@kernel(allocates=True)
def find_code_tokens(stream, length, with_comments, edges):  # noqa: C901
    """Write where tokens begin and end, in turn; return their number.

    Tokens are words, numbers, strings with their quotes, signs, the words and signs of comments if
    they count, and in an INDENTED text, outside brackets, the line end and the white space before a
    line that is indented unlike the one before. Requires: two zeros after `length`.
    """
    kind = kind_of(stream, length)
    hopeless = np.zeros(6, I64)
    count = 0
    position = 0
    comment = 0
    depth = 0
    # the white space before this line and the one before
    line = 0
    line_size = 0
    last = 0
    last_size = 0
    is_first = False  # on an indented line
    while position < length:
        byte = stream[position]
        if byte <= _SPACE:
            start = position
            position = position + 1
            if byte == _LINE_END:
                while position < length and (stream[position] == _SPACE or stream[position] == 9):
                    position += 1
                line = start
                line_size = position - start
                is_first = kind == INDENTED and depth == 0
            continue
        if position >= comment:
            comment = max(comment, _end_of_comment(stream, position, length, kind))
            if comment > position and not with_comments:
                position = comment
                continue
        if is_first:
            is_first = False
            same = line_size == max(last_size, 1)
            for i in range(1, line_size if same else 0):
                same = same and stream[line + i] == stream[last + i]
            if not same:
                edges[2 * count] = line
                edges[2 * count + 1] = line + line_size
                count += 1
            last = line
            last_size = line_size
        stop = position
        if _is_word(byte):
            stop = _end_of_word(stream, position)
        elif position >= comment and (byte in (_DOUBLE, _SINGLE, _BACKTICK)):
            stop = _end_of_string(stream, position, length, hopeless)
        if stop == position:
            stop = min(_end_of_sign(stream, position), comment if position < comment else length)
            depth += 1 if byte in (40, 91, 123) else 0
            depth -= 1 if byte in (41, 93, 125) and depth > 0 else 0
        edges[2 * count] = position
        edges[2 * count + 1] = stop
        count += 1
        position = stop
    return count
