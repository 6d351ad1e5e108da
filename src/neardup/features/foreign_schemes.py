"""Cut texts into features as other SimHash programs do, character for character."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any
from unicodedata import normalize

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import kernels
from neardup.arrays import Uint32s, arrow_of_bytes, flatten_strings
from neardup.kernels.token_arrays import Text
from neardup.settings.methods import SimHash

_SETTINGS: dict[str, dict[str, Any]] = {
    "mfonda": {"tokens": "whitespace", "hash": "fnv1"},
    "mfonda-unicode": {"tokens": "whitespace", "hash": "fnv1"},
    "simhash": {"tokens": "chars", "ngram": 4, "hash": "md5"},
}
_NUM_CODE_POINTS = 0x110000


def resolve_scheme(method: SimHash) -> SimHash:
    """Return the native settings that are equal to a scheme of another program on the texts of
    `preprocess`.
    """
    if method.scheme == "native":
        return method
    return replace(method, scheme="native", nfkc=False, case_fold=False, **_SETTINGS[method.scheme])


def tie_bit(method: SimHash) -> int:
    """Return the bit of a fingerprint for a tied vote."""
    return 0 if method.scheme == "simhash" else 1


def preprocess(texts: pa.Array, method: SimHash) -> pa.Array:
    """Return texts in the form that the settings of `resolve_scheme` expect: words between spaces,
    or letters.
    """
    if method.scheme == "mfonda":
        return mfonda_words(texts)
    if method.scheme == "mfonda-unicode":
        return mfonda_unicode_words(texts)
    if method.scheme == "simhash":
        return simhash_letters(texts)
    return texts


def mfonda_words(texts: pa.Array) -> pa.Array:
    """Return the words of WordFeatureSet in mfonda/simhash (Go), each with a space after it: words
    of ASCII letters, or URLs.
    """
    return _kept(texts, kernels.feature_hashes.keep_words, _letters(r"[a-z0-9_']"))


def mfonda_unicode_words(texts: pa.Array) -> pa.Array:
    r"""Return the words of UnicodeWordFeatureSet in mfonda/simhash (Go), with spaces between them:
    runs of letters of any script, `-`, `_` and `'`, which its pattern `[\pL-_']+` allows, in
    Unicode's normalization form C.
    """
    # Not Arrow's `utf8_normalize`, which does not compose in earlier versions.
    has_others = pc.invert(pc.string_is_ascii(texts))
    if pc.any(has_others).as_py():
        composed = [normalize("NFC", text) for text in texts.filter(has_others).to_pylist()]
        texts = pc.replace_with_mask(texts, has_others, pa.array(composed, texts.type))
    return _kept(texts, kernels.feature_hashes.keep_letters, _unicode_words())


def simhash_letters(texts: pa.Array) -> pa.Array:
    """Return the letters that the Python package simhash cuts into runs of four."""
    # Only the lower case of this letter depends on its position in a word.
    sigma = pc.match_substring(texts, "\u03a3")
    if pc.any(sigma).as_py():
        lowered = [text.lower() for text in texts.filter(sigma).to_pylist()]
        texts = pc.replace_with_mask(texts, sigma, pa.array(lowered, texts.type))
    return _kept(texts, kernels.feature_hashes.keep_letters, _letters(r"\w"))


@cache
def _letters(pattern: str) -> Uint32s:
    r"""Return the table of kernels/feature_hashes.py: the lower case of the code points that match
    a pattern, as UTF-8; 0 for the others.
    """
    letters = np.zeros(_NUM_CODE_POINTS, np.uint32)
    for found in re.finditer(pattern, _all_lower_case()):
        letters[found.start()] = int.from_bytes(found[0].encode(), "little")
    return letters


@cache
def _unicode_words() -> Uint32s:
    """Return the table of `_letters` for letters of any script, `-`, `_` and `'`; a space for the
    other code points, which end a word.
    """
    letters = np.full(_NUM_CODE_POINTS, ord(" "), np.uint32)
    for code, letter in enumerate(_all_lower_case()):
        if letter.isalpha() or letter in "-_'":
            letters[code] = int.from_bytes(letter.encode(), "little")
    return letters


def _all_lower_case() -> str:
    """Return the lower case of each code point."""
    codes = np.arange(_NUM_CODE_POINTS, dtype="<u4")
    all_characters = codes.tobytes().decode("utf-32-le", "surrogatepass")
    # Go lower-cases one code point at a time; Python makes two of U+0130, the second is no letter.
    return all_characters.replace("\u0130", "i").lower()


def _kept(texts: pa.Array, keep: Callable[..., None], letters: Uint32s) -> pa.Array:
    """Return the letters of texts as a kernel keeps them. letters : the table of `_letters`."""
    text = Text(*flatten_strings(texts))
    max_bytes = 2 * len(text.data)  # only written memory costs anything
    kept = Text(np.empty(max_bytes, np.uint8), np.empty_like(text.offsets))
    keep(text, letters, kept)
    return arrow_of_bytes(kept.data, kept.offsets).view(pa.large_string())
