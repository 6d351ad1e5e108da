"""Where words, sentences and what a reader takes for one character end: the classes of all code points."""

from __future__ import annotations

import unicodedata
from functools import cache

import numpy as np

from neardup import kernels
from neardup.arrays import Bytes
from neardup.features.unicode_tables import NUM_CODE_POINTS, WHITESPACE, WORD, classes_of, load_tables

_ZERO_WIDTH_JOINER, _SKIN_TONES, _FLAGS = 0x200D, range(0x1F3FB, 0x1F400), range(0x1F1E6, 0x1F200)
_HANGUL_VOWELS = (range(0x1160, 0x1200), range(0xD7B0, 0xD800))  # and finals, of syllables that are written apart
_TAGS = range(0xE0020, 0xE0080)
_MARKS_END = 0x20000  # and then from 0xE0000 on
_STOPS, _WIDE_STOPS = ".!?\u2026\u203c\u203d\u061f\u06d4\u0964", "\u3002\uff01\uff1f\uff61"
_CLOSERS = "\"')]}\u2019\u201d\u00bb\u203a\u300d\u300f\u3011\u300b\uff09"


@cache
def boundary_classes() -> Bytes:
    """Return the class of each code point, bits of `kernels.passages`: shape (0x110000,).

    Notes
    -----
    A cluster of characters is that of Unicode Standard Annex 29 without its rules for Prepend and for conjuncts, and
    with Hangul syllables only where a vowel or a final follows. Words are those of the shingles: a character of a
    script written without spaces is one.
    """
    named = kernels.passages
    entries = load_tables(nfkc=False, case_fold=False, fold_chinese=False).entries
    classes = np.where(classes_of(entries) == WORD, named.LETTER, 0).astype(np.uint8)
    classes[entries & np.uint32(WHITESPACE) != 0] |= named.SPACE
    code_points = [*range(_MARKS_END), *range(0xE0000, 0xE0200)]
    marks = [code for code in code_points if unicodedata.category(chr(code))[0] == "M"]
    for place in (marks, _ZERO_WIDTH_JOINER, _SKIN_TONES, *_HANGUL_VOWELS, _TAGS):
        classes[np.array(place)] |= named.EXTENDS
    classes[_ZERO_WIDTH_JOINER] |= named.JOINS
    classes[np.array(_FLAGS)] |= named.FLAG
    for characters, kind in ((_STOPS, named.STOP), (_WIDE_STOPS, named.WIDE_STOP), (_CLOSERS, named.CLOSER)):
        classes[[ord(character) for character in characters]] |= np.uint8(kind)
    assert len(classes) == NUM_CODE_POINTS
    classes.flags.writeable = False
    return classes
