"""Normalise a text as a whole, with Python's own Unicode data: what the kernels cannot do one code point at a time."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache

import numpy as np

from neardup.features.unicode_tables import COMPOSE, EXPAND, LOW_MASK, RANK_SHIFT, load_tables
from neardup.settings.shingling import Shingling

_MAX_PIECE = 100


def normalise(text: str, shingling: Shingling) -> str:
    """Return a text normalised as `shingling` says.

    Notes
    -----
    NFKC(casefold(NFKC(text))), as Unicode 15.1, section 3.13, has it for caseless matching. Python orders combining
    marks in time quadratic in their number, so a run of more than 100 of them is normalised 100 at a time; no
    language has such runs.
    """
    result = _map(text, shingling)
    if result is None:
        result = "".join(_normalise(piece, shingling) for piece in _pieces(text, shingling))
    return result.translate(_simplified()) if shingling.fold_chinese else result


def _map(text: str, shingling: Shingling) -> str | None:
    """Return a text in which each character becomes one character whatever stands around it, else None.

    Most texts are so. By table this is several times as fast as by `unicodedata`, which takes every text
    apart that has a full-width comma.
    """
    if text.isascii():
        return text.lower() if shingling.case_fold else text
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    entries = load_tables(nfkc=shingling.nfkc, case_fold=shingling.case_fold, fold_chinese=False).entries[codes]
    if (entries & np.uint32(COMPOSE | EXPAND) != 0).any() or (entries >> np.uint32(RANK_SHIFT) != 0).any():
        return None
    return (entries & np.uint32(LOW_MASK)).astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")


def _normalise(text: str, shingling: Shingling) -> str:
    if shingling.nfkc:
        text = unicodedata.normalize("NFKC", text)
    if shingling.case_fold:
        text = text.casefold()
        if shingling.nfkc:
            text = unicodedata.normalize("NFKC", text)
    return text


def _pieces(text: str, shingling: Shingling) -> Iterator[str]:
    """Cut a text inside runs of more than 100 code points that may combine, and nowhere else."""
    if not shingling.nfkc or len(text) <= _MAX_PIECE or text.isascii():
        yield text
        return
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    entries = load_tables(nfkc=True, case_fold=shingling.case_fold, fold_chinese=False).entries[codes]
    is_mark = (entries >> np.uint32(RANK_SHIFT) != 0) & (entries & np.uint32(EXPAND) == 0)
    begins = np.flatnonzero(~(is_mark | (entries & np.uint32(COMPOSE) != 0)))
    limits = np.concatenate([[0], begins, [len(text)]])
    last = 0
    for run in np.flatnonzero(np.diff(limits) > _MAX_PIECE):
        for cut in range(int(limits[run]), int(limits[run + 1]), _MAX_PIECE):
            yield text[last:cut]
            last = cut
    yield text[last:]


@cache
def _simplified() -> dict[int, int]:
    """Return the map from traditional to simplified characters."""
    plain = load_tables(nfkc=False, case_fold=False, fold_chinese=False).entries
    folded = load_tables(nfkc=False, case_fold=False, fold_chinese=True).entries
    changed = np.flatnonzero(plain != folded)
    return dict(zip(changed.tolist(), (folded[changed] & np.uint32(0x1FFFFF)).tolist(), strict=True))
