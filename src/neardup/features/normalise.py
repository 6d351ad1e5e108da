"""Normalise whole texts with Python's Unicode data.

The kernels map one code point at a time. A text in which neighbours combine needs this module.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import numpy as np

from neardup.arrays import Ints
from neardup.features.unicode_tables import (
    COMPOSE,
    EXPAND,
    LOW_MASK,
    RANK_SHIFT,
    code_points,
    load_tables,
)
from neardup.settings.methods import Shingling

_MAX_PIECE = 100  # code points of a run of combining marks that are normalised at once


def normalise(text: str, shingling: Shingling) -> str:
    """Return a text normalised according to `shingling`.

    Notes
    -----
    NFKC(casefold(NFKC(text))). The compatibility caseless matching of Unicode 15.1, section 3.13,
    folds twice and decomposes. Python orders combining marks in time quadratic in their number, so
    a run of more than _MAX_PIECE of them is normalised _MAX_PIECE at a time; no language has such
    runs.
    """
    result = map_characters(text, shingling)
    if result is None:
        pieces = _cut_long_runs(text, shingling)
        result = "".join(_normalise_piece(piece, shingling) for piece in pieces)
    return result.translate(_simplified()) if shingling.fold_chinese else result


def map_characters(text: str, shingling: Shingling) -> str | None:
    """Return a text normalised by table, None unless each character alone becomes one character.

    Most texts need no more. The table is several times as fast as `unicodedata`, which decomposes
    every text with a full-width comma.
    """
    if text.isascii():
        return text.lower() if shingling.case_fold else text
    tables = load_tables(nfkc=shingling.nfkc, case_fold=shingling.case_fold, fold_chinese=False)
    entries = tables.entries[code_points(text)]
    is_special = entries & np.uint32(COMPOSE | EXPAND) != 0
    is_special |= entries >> np.uint32(RANK_SHIFT) != 0
    if is_special.any():
        return None
    codes = (entries & np.uint32(LOW_MASK)).astype("<u4")
    return codes.tobytes().decode("utf-32-le", "surrogatepass")


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


def piece_limits(text: str, shingling: Shingling) -> Ints:
    """Return the offsets that cut a text into the shortest pieces that are normalised alone, both
    ends included.

    A piece is a character and the characters after it that may combine with it, at most 100 in all.
    """
    tables = load_tables(nfkc=shingling.nfkc, case_fold=shingling.case_fold, fold_chinese=False)
    entries = tables.entries[code_points(text)]
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


def _cut_long_runs(text: str, shingling: Shingling) -> Iterator[str]:
    """Yield the parts of a text, cut only in runs of _MAX_PIECE code points that may combine."""
    limits = piece_limits(text, shingling)
    cuts = limits[1:][np.diff(limits) == _MAX_PIECE].tolist()
    return (text[start:end] for start, end in pairwise([0, *cuts, len(text)]))


@cache
def _simplified() -> dict[int, int]:
    """Return the map from traditional to simplified characters."""
    plain = load_tables(nfkc=False, case_fold=False, fold_chinese=False).entries
    folded = load_tables(nfkc=False, case_fold=False, fold_chinese=True).entries
    changed = np.flatnonzero(plain != folded)
    simplified = folded[changed] & np.uint32(LOW_MASK)
    return dict(zip(changed.tolist(), simplified.tolist(), strict=True))
