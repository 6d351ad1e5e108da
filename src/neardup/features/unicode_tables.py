"""Load the tables by which kernels normalise text and separate tokens, one code point at a time.

The normalisation N is NFKC(casefold(NFKC(text))) with both options, NFKC or casefold with one, and
the identity with none; ``fold_chinese`` then maps each traditional Chinese character to its
simplified form. An entry word holds

==========  =======================================================================================
bits 0-20   the code point that the character becomes; with EXPAND, an index ``i`` into
            ``expansions``, where ``expansions[i]`` is a count and as many words follow, each the
            entry of a resulting code point
bits 21-22  token class of the result: SEPARATOR, WORD, SINGLE, TRANSPARENT
bit 23      EXPAND: the character becomes several (bits 21, 22, 24 are 0 here, and set in the
            expansion)
bit 24      WHITESPACE: ``str.isspace`` of the result; also of U+0000, which kernels keep for
            themselves
bit 25      COMPOSE: the result may depend on the neighbours; never set in an expansion
bits 26-31  rank of the result's canonical combining class; 0 for class 0. With EXPAND, of its last
            code point
==========  =======================================================================================

**Token classes.** WORD: letters, numbers, marks and connecting punctuation (categories L, N, M,
Pc); words are runs of them. SINGLE: letters, marks and letter-like numbers (L, M, Nl) of the
scripts written without spaces: Han, Hiragana, Katakana, Bopomofo, Thai, Lao, Khmer, Myanmar; each
is a token. Digits are WORD in every script. TRANSPARENT: format characters (Cf, without U+200B ZERO
WIDTH SPACE) and variation selectors; they are dropped and do not end a word. SEPARATOR: all others,
with surrogates, noncharacters, private and unassigned code points.

**The invariant.** In a document in which no character has COMPOSE, and in which no character of
nonzero rank is followed at once by one of a smaller nonzero rank, mapping each character alone
gives N(document). Any other document must be normalised by ``unicodedata``, and then be read with
``load_tables(nfkc=False, case_fold=False, ...)``.

Notes
-----
Unicode Standard Annex 15, section 9: a text whose characters all answer Yes to the NFKC quick
check, and whose combining classes never fall, is in NFKC. COMPOSE marks a character whose result
starts with a character that answers Maybe; a Maybe inside an expansion has met its neighbour
already. So the joined results are in NFKC after each of the two NFKC steps, and equal to the result
of the step for the whole text. COMPOSE also marks a character whose result has more than
``MAX_GROWTH`` times its UTF-8 bytes, whose combining classes are not the same at both steps, or
whose result starts with a mark and goes on. ``tests/features/test_unicode_tables.py`` tests the
claim.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neardup.arrays import Uint16s, Uint32s

LOW_MASK = 0x1FFFFF
CLASS_SHIFT = 21
CLASS_MASK = 3
EXPAND = 1 << 23
WHITESPACE = 1 << 24
COMPOSE = 1 << 25
RANK_SHIFT = 26
PLAIN = LOW_MASK | CLASS_MASK << CLASS_SHIFT | WHITESPACE
"""The bits of the entry of a character that is mapped alone, to one character."""

SEPARATOR = 0
WORD = 1
SINGLE = 2
TRANSPARENT = 3

_PAGE_SIZE = 128
NUM_CODE_POINTS = 0x110000
MAX_GROWTH = 3
"""No result without COMPOSE has more than this many times the UTF-8 bytes of its character."""

_PATH = Path(__file__).resolve().parent.parent / "kernels" / "unicode_tables.npz"


class UnicodeTables(NamedTuple):
    """The table of one normalisation; both arrays are read-only."""

    entries: Uint32s
    """Shape (0x110000,): the entry word of each code point."""
    expansions: Uint32s
    """Counts, each followed by that many entry words; never empty."""


@cache
def load_tables(*, nfkc: bool, case_fold: bool, fold_chinese: bool) -> UnicodeTables:
    """Return the tables of a normalisation, shared: about 4.5 MB for each combination of options
    used.

    Parameters
    ----------
    nfkc : compatibility composition (Unicode Standard Annex 15). Without it, no entry has COMPOSE
        or a rank.
    case_fold : full case folding, as `str.casefold`.
    fold_chinese : traditional to simplified Chinese, character by character, after the other two
        (OpenCC's TSCharacters; the first of several forms).
    """
    name = f"nfkc{nfkc:d}_fold{case_fold:d}"
    with np.load(_PATH, allow_pickle=False) as arrays:
        pages: Uint16s = arrays[f"{name}_pages"]
        relative: Uint32s = arrays[f"{name}_entries"]
        expansions: Uint32s = arrays[f"{name}_expansions"]
        traditional: Uint32s = arrays["chinese_from"]
        simplified: Uint32s = arrays["chinese_to"]
    entries = _make_absolute(pages, relative)
    if fold_chinese:
        _overlay(entries, traditional, simplified)
        _overlay(expansions, traditional, simplified)
    if not len(expansions):
        expansions = np.zeros(1, np.uint32)
    for array in (entries, expansions):
        array.flags.writeable = False
    return UnicodeTables(entries, expansions)


def code_points(text: str) -> Uint32s:
    """Return the code points of a text, halves of surrogate pairs among them: shape
    (len(text),).
    """
    data = text.encode("utf-32-le", "surrogatepass")
    return np.frombuffer(data, "<u4").astype(np.uint32, copy=False)


def classes_of(entries: Uint32s) -> Uint32s:
    """Return the token class of each entry."""
    return entries >> np.uint32(CLASS_SHIFT) & np.uint32(CLASS_MASK)


def unicode_version() -> str:
    """Return the version of the Unicode Character Database in the tables, such as ``"15.1.0"``."""
    with np.load(_PATH, allow_pickle=False) as arrays:
        return ".".join(str(part) for part in arrays["unicode_version"])


def _make_absolute(pages: Uint16s, relative: Uint32s) -> Uint32s:
    """Return one entry per code point; in the file the low bits are relative to it, modulo
    2**21.
    """
    entries = relative.reshape(-1, _PAGE_SIZE)[pages].reshape(-1)
    low = np.arange(NUM_CODE_POINTS, dtype=np.uint32)
    low += entries
    low &= np.uint32(LOW_MASK)
    low |= entries & ~np.uint32(LOW_MASK)
    return low


def _overlay(words: Uint32s, traditional: Uint32s, simplified: Uint32s) -> None:
    """Replace traditional by simplified characters in ``words``, in place.

    Requires: every traditional and simplified character is SINGLE, without flag and of rank 0, so
    that only the low bits differ, and a whole word is compared: an index or a count is then never
    mistaken for a character.
    """
    simplified_of = np.zeros(NUM_CODE_POINTS, np.uint32)  # 0 for all other characters
    simplified_of[traditional] = simplified
    # The shift keeps all bits above the class: any flag or rank makes the comparison false.
    indices = np.flatnonzero(words >> np.uint32(CLASS_SHIFT) == SINGLE)
    targets = simplified_of[words[indices] & np.uint32(LOW_MASK)]
    is_changed = targets != 0
    words[indices[is_changed]] = targets[is_changed] | np.uint32(SINGLE << CLASS_SHIFT)
