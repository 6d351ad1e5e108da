"""Normalise whole texts with Python's Unicode data.

The kernels map one code point at a time. A text in which neighbours combine needs this module.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Ints, Uint32s, offsets_from_lengths, ranges
from neardup.features.unicode_tables import (
    COMPOSE,
    EXPAND,
    LOW_MASK,
    RANK_SHIFT,
    TRANSPARENT,
    classes_of,
    code_points,
    folded_characters,
    load_tables,
    moved_tones,
)
from neardup.settings.methods import CODE_TOKENS, Shingling

_BROKEN_LINE = re.compile("[-\u2010\u00ad][ \t]*[\r\n]")
"""A line end that may divide a word; the kernel decides."""
_MAX_PIECE = 100  # code points of a run of combining marks that are normalised at once


class Reduced(NamedTuple):
    """A text without the characters that no token has.

    kept : int64, the positions of its characters in the original text; None for all.
    """

    text: str
    kept: Ints | None


def normalise(text: str, shingling: Shingling) -> str:
    """Return a text normalised and folded according to `shingling`.

    Notes
    -----
    NFKC(casefold(NFKC(text))). The compatibility caseless matching of Unicode 15.1, section 3.13,
    folds twice and decomposes. Python orders combining marks in time quadratic in their number, so
    a run of more than _MAX_PIECE of them is normalised _MAX_PIECE at a time; no language has such
    runs.
    """
    text = reduce(text, shingling).text
    result = map_characters(text, shingling)
    if result is None:
        pieces = _cut_long_runs(text, shingling)
        result = "".join(_normalise_piece(piece, shingling) for piece in pieces)
    return move_tones(fold_characters(result, shingling), shingling)


def reduce(text: str, shingling: Shingling) -> Reduced:
    """Return a text without transparent characters, and with words joined that a hyphen divides at
    the end of a line.
    """
    joins = "hyphens" in shingling.fold and _BROKEN_LINE.search(text) is not None
    if text.isascii() and not joins:
        return Reduced(text, None)
    codes = code_points(text)
    # In source code, invisible characters are part of the tokens.
    is_dropped = np.zeros(len(codes), np.bool_)
    if shingling.tokens not in CODE_TOKENS:
        is_dropped = classes_of(_entries_of(codes, shingling)) == TRANSPARENT
    if joins:
        is_dropped[_find_breaks(text)] = True
    if not is_dropped.any():
        return Reduced(text, None)
    kept = np.flatnonzero(~is_dropped)
    return Reduced(_string_of(codes[kept]), kept)


def _entries_of(codes: Uint32s, shingling: Shingling) -> Uint32s:
    """Return the entries of code points in the table of the normal form of `shingling`."""
    return load_tables(nfkc=shingling.nfkc, case_fold=shingling.case_fold).entries[codes]


def _find_breaks(text: str) -> Ints:
    """Return the positions of characters that divide words at the ends of lines."""
    data = np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
    # By break, the first byte and the byte after the last one.
    limits = np.empty((text.count("\n") + text.count("\r") + 1, 2), np.int64)
    entries = load_tables(nfkc=False, case_fold=False).entries
    count = kernels.line_ends.find_breaks(data, entries, limits)
    # From bytes to characters: the number of characters that begin before.
    num_before = offsets_from_lengths(data & 0xC0 != 0x80)
    starts = num_before[limits[:count, 0]]
    stops = num_before[limits[:count, 1]]
    return ranges(starts, stops - starts)


def map_characters(text: str, shingling: Shingling) -> str | None:
    """Return a text normalised by table, but not folded; None unless each character alone becomes
    one character.

    Most texts need no more. The table is several times as fast as `unicodedata`, which decomposes
    every text with a full-width comma.
    """
    if text.isascii():
        return text.lower() if shingling.case_fold else text
    entries = _entries_of(code_points(text), shingling)
    is_special = entries & np.uint32(COMPOSE | EXPAND) != 0
    is_special |= entries >> np.uint32(RANK_SHIFT) != 0
    if is_special.any():
        return None
    return _string_of(entries & np.uint32(LOW_MASK))


def _string_of(codes: Uint32s) -> str:
    """Return the text of code points."""
    return codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _cut_long_runs(text: str, shingling: Shingling) -> Iterator[str]:
    """Yield the parts of a text, cut only in runs of _MAX_PIECE code points that may combine."""
    limits = piece_limits(text, shingling)
    # A run of exactly this length is cut at its end, where a new piece begins anyway.
    cuts = limits[1:][np.diff(limits) == _MAX_PIECE].tolist()
    return (text[start:end] for start, end in pairwise([0, *cuts, len(text)]))


def piece_limits(text: str, shingling: Shingling) -> Ints:
    """Return the offsets that cut a text into the shortest pieces that are normalised alone, both
    ends included.

    A piece is a character and the characters after it that may combine with it, _MAX_PIECE at most.
    """
    entries = _entries_of(code_points(text), shingling)
    has_rank = entries >> np.uint32(RANK_SHIFT) != 0
    expands = entries & np.uint32(EXPAND) != 0
    may_compose = entries & np.uint32(COMPOSE) != 0
    # A character with a rank is a combining mark. If it expands, however, the rank is the rank of
    # the last character of its expansion, and the first one begins a piece.
    is_mark = has_rank & ~expands
    begins = ~(may_compose | is_mark)
    # A slice, since an empty text has no first character.
    begins[:1] = True
    # A run is cut every _MAX_PIECE characters, counted from its start.
    positions = np.arange(len(text))
    run_starts = np.maximum.accumulate(np.where(begins, positions, 0))
    is_limit = (positions - run_starts) % _MAX_PIECE == 0
    return np.append(np.flatnonzero(is_limit), len(text))


def _normalise_piece(text: str, shingling: Shingling) -> str:
    """Return a text normalised by `unicodedata`."""
    if shingling.nfkc:
        text = unicodedata.normalize("NFKC", text)
    if shingling.case_fold:
        text = text.casefold()
        # Case folding may undo the normal form.
        if shingling.nfkc:
            text = unicodedata.normalize("NFKC", text)
    return text


def fold_characters(text: str, shingling: Shingling) -> str:
    """Return a normalised text with each character folded alone."""
    folded = folded_characters(shingling.fold)
    return text.translate(folded) if folded and not text.isascii() else text


def move_tones(text: str, shingling: Shingling) -> str:
    """Return a normalised text with the tone marks of Vietnamese on the second of two vowels; its
    length stays.
    """
    if "vietnamese" not in shingling.fold or text.isascii():
        return text
    return _toned_pairs().sub(lambda found: moved_tones()[found[0]], text)


@cache
def _toned_pairs() -> re.Pattern[str]:
    return re.compile("|".join(moved_tones()))
