"""Cut texts into features as other SimHash programs do, character for character."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import kernels
from neardup.arrays import Uint32s, arrow_of_bytes, flatten_strings
from neardup.kernels.token_arrays import Text
from neardup.settings.methods import SimHash

_SETTINGS: dict[str, dict[str, Any]] = {
    "mfonda": {"tokens": "whitespace", "hash": "fnv1"},
    "simhash": {"tokens": "chars", "ngram": 4, "hash": "md5"},
}
_NUM_CODE_POINTS = 0x110000


def resolve_scheme(method: SimHash) -> SimHash:
    """Return the native settings that a scheme of another program means, on the texts of
    `preprocess`.
    """
    if method.scheme == "native":
        return method
    return replace(method, scheme="native", nfkc=False, case_fold=False, **_SETTINGS[method.scheme])


def tie_bit(method: SimHash) -> int:
    """Return the bit that a fingerprint has where the votes are even."""
    return 0 if method.scheme == "simhash" else 1


def preprocess(texts: pa.Array, method: SimHash) -> pa.Array:
    """Return a text as the settings of `resolve_scheme` expect it: words between spaces, or
    letters.
    """
    if method.scheme == "mfonda":
        return mfonda_words(texts)
    if method.scheme == "simhash":
        return simhash_letters(texts)
    return texts


def mfonda_words(texts: pa.Array) -> pa.Array:
    """Return the words of WordFeatureSet in mfonda/simhash (Go), a space behind each: of ASCII
    letters, or URLs.
    """
    return _kept(texts, kernels.feature_hashes.keep_words, r"[a-z0-9_']")


def simhash_letters(texts: pa.Array) -> pa.Array:
    """Return the letters that the Python package simhash cuts into runs of four."""
    # What this letter becomes depends on its place in a word; no other does.
    sigma = pc.match_substring(texts, "\u03a3")
    if pc.any(sigma).as_py():
        lowered = [text.lower() for text in texts.filter(sigma).to_pylist()]
        texts = pc.replace_with_mask(texts, sigma, pa.array(lowered, texts.type))
    return _kept(texts, kernels.feature_hashes.keep_letters, r"\w")


@cache
def _letters(pattern: str) -> Uint32s:
    r"""Return the table of kernels/feature_hashes.py: the code points that in lower case match a
    pattern.
    """
    # Go lower-cases one code point at a time; Python makes two of this one, of which the second is
    # no letter.
    every = np.arange(_NUM_CODE_POINTS, dtype="<u4").tobytes().decode("utf-32-le", "surrogatepass")
    lowered = every.replace("\u0130", "i").lower()
    letters = np.zeros(_NUM_CODE_POINTS, np.uint32)
    for found in re.finditer(pattern, lowered):
        letters[found.start()] = int.from_bytes(found[0].encode(), "little")
    return letters


def _kept(texts: pa.Array, keep: Callable[..., None], pattern: str) -> pa.Array:
    """Return the letters of texts that match a pattern, as a kernel keeps them."""
    text = Text(*flatten_strings(texts))
    kept = Text(
        np.empty(2 * len(text.data), np.uint8), np.empty_like(text.offsets)
    )  # memory costs where it is written
    keep(text, _letters(pattern), kept)
    return arrow_of_bytes(kept.data, kept.offsets).view(pa.large_string())
