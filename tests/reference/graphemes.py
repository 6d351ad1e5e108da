"""Grapheme clusters by a regular expression, as in table 1c of Unicode Standard Annex 29."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

# One letter for each class of code points, in which the expression is written.
LETTERS = {
    "other": "o",
    "pictograph": "P",
    "consonant": "C",
    "cr": "r",
    "lf": "l",
    "control": "c",
    "extend": "e",
    "non_joiner": "n",
    "linker": "k",
    "joiner": "z",
    "spacing": "s",
    "prepend": "p",
    "linker_letter": "K",
    "flag": "F",
    "leading": "L",
    "vowel": "V",
    "trailing": "T",
    "open_syllable": "a",
    "closed_syllable": "b",
}
CONJUNCT = "[kK][ez]*C"
HANGUL = "L*(?:V+|aV*|b)T*|L+|T+"
PICTOGRAPHS = "P(?:[enk]*zP)*"
CORE = f"{CONJUNCT}|{HANGUL}|{PICTOGRAPHS}|FF|[^rlc]"
CLUSTER = re.compile(f"rl|[rlc]|p*(?:{CORE})(?:[enkzs]*k[ez]*C|[enkzs])*|p+")


@cache
def table() -> tuple[list[int], list[str]]:
    """Return where ranges of code points begin, and the class of each."""
    path = Path(__file__).parents[2] / "src" / "neardup" / "kernels" / "grapheme_classes.npz"
    with np.load(path) as arrays:
        names = arrays["names"].tolist()
        return arrays["starts"].tolist(), [names[number] for number in arrays["classes"].tolist()]


def class_of(character: str) -> str:
    """Return the name of the class of a character."""
    starts, names = table()
    return names[bisect_right(starts, ord(character)) - 1]


@lru_cache(1 << 10)
def starts_of_clusters(text: str) -> set[int]:
    """Return the places in a text at which a cluster begins."""
    return {
        match.start()
        for match in CLUSTER.finditer("".join(LETTERS[class_of(each)] for each in text))
    }
