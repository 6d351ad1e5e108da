"""Normalise a text as a whole, with Python's own Unicode data: what the kernels cannot do one code
point at a time.
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

_MAX_PIECE = 100


def normalise(text: str, shingling: Shingling) -> str:
    """Return a text normalised according to `shingling`.

    Notes
    -----
    NFKC(casefold(NFKC(text))), as Unicode 15.1, section 3.13, has it for caseless matching. Python
    orders combining marks in time quadratic in their number, so a run of more than 100 of them is
    normalised 100 at a time; no language has such runs.
    """
    result = map_characters(text, shingling)
    if result is None:
        result = "".join(_normalise(piece, shingling) for piece in _pieces(text, shingling))
    return result.translate(_simplified()) if shingling.fold_chinese else result


def map_characters(text: str, shingling: Shingling) -> str | None:
    """Return a text in which each character becomes one character whatever is around it, else None.

    Most texts are so. By table this is several times as fast as by `unicodedata`, which takes every
    text apart that has a full-width comma.
    """
    if text.isascii():
        return text.lower() if shingling.case_fold else text
    tables = load_tables(nfkc=shingling.nfkc, case_fold=shingling.case_fold, fold_chinese=False)
    entries = tables.entries[code_points(text)]
    if (entries & np.uint32(COMPOSE | EXPAND) != 0).any() or (
        entries >> np.uint32(RANK_SHIFT) != 0
    ).any():
        return None
    return (
        (entries & np.uint32(LOW_MASK)).astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    )


def _normalise(text: str, shingling: Shingling) -> str:
    if shingling.nfkc:
        text = unicodedata.normalize("NFKC", text)
    if shingling.case_fold:
        text = text.casefold()
        if shingling.nfkc:
            text = unicodedata.normalize("NFKC", text)
    return text


def piece_limits(text: str, shingling: Shingling) -> Ints:
    """Return where a text can be cut into the shortest pieces that are normalised by themselves,
    its ends included.

    A piece is a character and those after it that may combine with it, at most 100 in all.
    """
    tables = load_tables(nfkc=shingling.nfkc, case_fold=shingling.case_fold, fold_chinese=False)
    entries = tables.entries[code_points(text)]
    is_mark = (entries >> np.uint32(RANK_SHIFT) != 0) & (entries & np.uint32(EXPAND) == 0)
    begins = ~(is_mark | (entries & np.uint32(COMPOSE) != 0))
    begins[:1] = True
    positions = np.arange(len(text))
    in_run = positions - np.maximum.accumulate(np.where(begins, positions, 0))
    return np.append(np.flatnonzero(in_run % _MAX_PIECE == 0), len(text))


def _pieces(text: str, shingling: Shingling) -> Iterator[str]:
    """Cut a text inside runs of 100 code points or more that may combine, and nowhere else."""
    limits = piece_limits(text, shingling)
    cuts = limits[1:][np.diff(limits) == _MAX_PIECE].tolist()
    return (text[start:end] for start, end in pairwise([0, *cuts, len(text)]))


@cache
def _simplified() -> dict[int, int]:
    """Return the map from traditional to simplified characters."""
    plain = load_tables(nfkc=False, case_fold=False, fold_chinese=False).entries
    folded = load_tables(nfkc=False, case_fold=False, fold_chinese=True).entries
    changed = np.flatnonzero(plain != folded)
    return dict(
        zip(changed.tolist(), (folded[changed] & np.uint32(0x1FFFFF)).tolist(), strict=True)
    )
