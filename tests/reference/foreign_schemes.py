"""How other SimHash programs cut texts, in Python's regular expressions."""

from __future__ import annotations

import re

_WORD = re.compile(r"[\w']+(?:://[\w./]+)?", re.ASCII)
_LETTERS = re.compile(r"[\w\u4e00-\u9fcc]+")


def mfonda_words(text: str) -> list[str]:
    """Return the words of WordFeatureSet in mfonda/simhash: Go's regexp
    `[\\w']+(?:\\://[\\w\\./]+){0,1}`.
    """
    # Go lower-cases one code point at a time; Python makes two of this one.
    return _WORD.findall(text.replace("\u0130", "i").lower())


def simhash_letters(text: str) -> str:
    """Return the letters that the Python package simhash cuts into runs of four."""
    return "".join(_LETTERS.findall(text.lower()))
