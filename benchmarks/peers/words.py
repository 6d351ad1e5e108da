"""Cut a text into the words that the benchmark calls words.

This is the plain-Python reading of neardup's default tokens: lower-cased runs of `\\w` with their
accents, and each letter of a script written without spaces by itself. It shares no code with
neardup, because the truth is computed from it.
"""

from __future__ import annotations

import re
from itertools import islice

# Thai, Lao, Myanmar, Khmer, kana, Bopomofo and Han: letters that stand alone.
_ALONE = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u302d\u3031-\u3035\u3038-\u303c\u3040-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f\uf900-\ufaff\uff66-\uff9f"
    "\U0001aff0-\U0001b16f\U00020000-\U0003ffff"
)
# no `\w`, and left alone where no letter includes them, as in the lower case of U+0130
_ACCENTS = "\u0300-\u036f"
_WORD = re.compile(rf"(?:[^\W{_ALONE}]|[\d{_ACCENTS}])+|(?![\W\d])[{_ALONE}]")
_ASCII_WORD = re.compile(r"\w+", re.ASCII)


def words(text: str) -> list[str]:
    """Return the lower-cased words of a text, in order."""
    text = text.lower()
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


def shingles(text: str, size: int = 5) -> set[str]:
    """Return the word n-grams of a text; fewer words than `size` make one n-gram of all, no words
    none.
    """
    tokens = words(text)
    if not tokens:
        return set()
    if len(tokens) <= size:
        return {" ".join(tokens)}
    return set(
        map(" ".join, zip(*(islice(tokens, start, None) for start in range(size)), strict=False))
    )
