"""Classes of code points, by which kernels find the ends of words, sentences and characters."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np

from neardup import kernels
from neardup.arrays import Bytes, Uint16s, Uint32s
from neardup.features.unicode_tables import (
    NUM_CODE_POINTS,
    WHITESPACE,
    WORD,
    classes_of,
    load_tables,
)

_CLASSES_PATH = Path(__file__).resolve().parent.parent / "kernels" / "grapheme_classes.npz"
# Punctuation at the end of a sentence. Full stops, question and exclamation marks, the ellipsis; of
# Arabic and Urdu, too, and the danda of Indic scripts:
_STOPS = ".!?\u2026\u203c\u203d\u061f\u06d4\u0964"
# Full-width marks of Chinese and Japanese, which have no space after them:
_WIDE_STOPS = "\u3002\uff01\uff1f\uff61"
# Closing quotation marks and brackets, which may follow a stop:
_CLOSERS = "\"')]}\u2019\u201d\u00bb\u203a\u300d\u300f\u3011\u300b\uff09"


@cache
def boundary_classes() -> Uint16s:
    """Return the class of each code point: shape (0x110000,).

    The low byte has bits of `kernels.passages`, the high byte a class of `kernels.graphemes`.

    Notes
    -----
    A character is an extended grapheme cluster of Unicode Standard Annex 29. The property is not in
    `unicodedata`, whose version also depends on the running Python: the table is made by
    tools/build_grapheme_table.py. Words are the words of shingles: each character of a script
    written without spaces is a word.
    """
    bits = kernels.passages
    entries = load_tables(nfkc=False, case_fold=False).entries
    classes = grapheme_classes().astype(np.uint16) << np.uint16(kernels.graphemes.CLASS_SHIFT)
    classes[classes_of(entries) == WORD] |= bits.LETTER
    classes[entries & np.uint32(WHITESPACE) != 0] |= bits.SPACE
    punctuation = {_STOPS: bits.STOP, _WIDE_STOPS: bits.WIDE_STOP, _CLOSERS: bits.CLOSER}
    for characters, bit in punctuation.items():
        classes[[ord(character) for character in characters]] |= np.uint16(bit)
    classes.flags.writeable = False
    return classes


def grapheme_classes() -> Bytes:
    """Return the grapheme class of each code point, of `kernels.graphemes`: shape (0x110000,)."""
    # The file has the first code point of each run of one class, and its class.
    with np.load(_CLASSES_PATH, allow_pickle=False) as arrays:
        starts: Uint32s = arrays["starts"]
        classes: Bytes = arrays["classes"]
    stops = np.append(starts[1:], NUM_CODE_POINTS)
    return np.repeat(classes, stops.astype(np.int64) - starts)
