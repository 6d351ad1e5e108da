"""How other SimHash programs cut texts, in Python's regular expressions."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[\w']+(?:://[\w./]+)?", re.ASCII)
_LETTERS = re.compile(r"[\w\u4e00-\u9fcc]+")


def mfonda_words(text: str) -> list[str]:
    """Return the words of WordFeatureSet in mfonda/simhash: Go's regexp
    `[\\w']+(?:\\://[\\w\\./]+){0,1}`.
    """
    # Go lower-cases one code point at a time; Python makes two of this one.
    return _WORD.findall(text.replace("\u0130", "i").lower())


def mfonda_unicode_words(text: str) -> list[str]:
    """Return the words of UnicodeWordFeatureSet in mfonda/simhash: Go's regexp `[\\pL-_']+` on
    bytes.ToLower of norm.NFC.
    """
    letters = unicodedata.normalize("NFC", text).replace("\u0130", "i")
    # One code point at a time: the lower case of a final sigma is no other letter in Go.
    lowered = [letter.lower() for letter in letters]
    is_letter = [unicodedata.category(letter)[0] == "L" or letter in "-_'" for letter in lowered]
    pairs = zip(lowered, is_letter, strict=True)
    return "".join(letter if keeps else " " for letter, keeps in pairs).split()


def simhash_letters(text: str) -> str:
    """Return the letters that the Python package simhash cuts into runs of four."""
    return "".join(_LETTERS.findall(text.lower()))
