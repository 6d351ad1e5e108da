"""Cut texts into features as other SimHash programs do, character for character."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa

from neardup.config import SimHash

_MFONDA_WORD = re.compile(r"[\w']+(?:://[\w./]+)?", re.ASCII)
_SIMHASH_LETTERS = re.compile(r"[\w\u4e00-\u9fcc]+")
_WIDTH = 4


def mfonda_words(text: str) -> list[str]:
    """Return the words of WordFeatureSet in mfonda/simhash (Go): runs of ASCII letters, digits, _ and ', or URLs."""
    # Go lower-cases one code point at a time; Python makes two of this one.
    return _MFONDA_WORD.findall(text.replace("\u0130", "i").lower())


def simhash_letters(text: str) -> str:
    """Return the letters that the Python package simhash cuts into runs of four."""
    return "".join(_SIMHASH_LETTERS.findall(text.lower()))


def settle(method: SimHash) -> SimHash:
    """Return the native settings that a scheme of another program stands for."""
    if method.scheme == "mfonda":
        plain = replace(method, scheme="native")
        return replace(plain, tokens=mfonda_words, hash="fnv1", nfkc=False, case_fold=False)
    if method.scheme == "simhash":
        plain = replace(method, scheme="native")
        return replace(plain, tokens="chars", ngram=_WIDTH, hash="md5", nfkc=False, case_fold=False)
    return method


def tie_of(method: SimHash) -> int:
    """Return the bit that a fingerprint has where the votes are even."""
    return 0 if method.scheme == "simhash" else 1


def prepare(texts: pa.Array, method: SimHash) -> pa.Array:
    """Return what the settings of `settle` are to be applied to."""
    if method.scheme != "simhash":
        return texts
    return pa.array([simhash_letters(text or "") for text in texts.to_pylist()], pa.large_string())
