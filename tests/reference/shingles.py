"""Shingles in the plainest Python: tuples of tokens, and the hashes of their features by integer
arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from reference import tokens as token_twins
from reference.strings import hash_string

_ALL = 2**64 - 1
_MIX_1 = 0x3C79AC492BA7B653
_MIX_2 = 0x1C69B3F74AC4AE35
_CHAIN = 0x9E3779B97F4A7C15
_BASE = 0xD6E8FEB86659FD93
_LANE_1 = 0xA0761D6478BD642F
_LANE_2 = 0xE7037ED1A0B428DB

TOKENISERS: dict[str, Callable[[str], list[str]]] = {
    "words": token_twins.words,
    "chars": token_twins.characters,
    "whitespace": token_twins.whitespace_words,
    "letters": token_twins.letters,
    "code": token_twins.code,
    "uncommented": token_twins.uncommented,
}


def tokens_of(
    text: str | None,
    tokens: str | Callable[[str], Sequence[str]] = "words",
    nfkc: bool = True,
    case_fold: bool = True,
    fold: Sequence[str] = (),
) -> tuple[str, ...]:
    """Return the tokens of a text; none of a null. An empty token of a callable does not count."""
    is_code = tokens in ("code", "uncommented")
    normal = token_twins.normalise(text or "", nfkc, case_fold, fold, is_code=is_code)
    cut = tokens if callable(tokens) else TOKENISERS[tokens]
    return tuple(token for token in cut(normal) if token)


def ngrams(tokens: Sequence, ngram: int) -> list[tuple]:
    """Return the runs of `ngram` tokens in their order; of fewer tokens, all as one; of none,
    none.
    """
    if not tokens:
        return []
    if len(tokens) <= ngram:
        return [tuple(tokens)]
    return [tuple(tokens[i : i + ngram]) for i in range(len(tokens) - ngram + 1)]


def hash_token(token: str) -> int:
    """Return the hash of a token."""
    return hash_string(token.encode("utf-8", "surrogatepass"))


def hash_character(character: str) -> int:
    """Return the hash of a code point that is a token of `tokens="chars"`."""
    return mix(_CHAIN ^ int.from_bytes(character.encode("utf-8", "surrogatepass"), "little"))


def hash_shingle(token_hashes: Sequence[int]) -> int:
    """Return the hash of n tokens: n B^n + t1 B^(n-1) + ... + tn modulo 2^64, mixed."""
    value = len(token_hashes)
    for one in token_hashes:
        value = (value * _BASE + one) & _ALL
    return mix(value)


def hash_content(token_hashes: Sequence[int]) -> tuple[int, int]:
    """Return the 128-bit hash of a sequence of tokens."""
    left = len(token_hashes)
    right = ~len(token_hashes) & _ALL
    for one in token_hashes:
        left = _rotate(((left ^ (one * _LANE_1)) * _MIX_1) & _ALL, 31)
        right = _rotate(((right ^ (one * _LANE_2)) * _MIX_2) & _ALL, 27)
    return mix(left), mix(right)


def token_hashes(tokens: Sequence[str], kind: object = "words") -> list[int]:
    """Return the hash of each token."""
    return [
        hash_character(token) if kind in ("chars", "letters") else hash_token(token)
        for token in tokens
    ]


def shingle_hashes(tokens: Sequence[str], ngram: int, kind: object = "words") -> list[int]:
    """Return the hash of each n-gram, in order, repeats included."""
    return [hash_shingle(run) for run in ngrams(token_hashes(tokens, kind), ngram)]


def _rotate(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _ALL


def mix(value: int) -> int:
    value ^= value >> 27
    value = (value * _MIX_1) & _ALL
    value ^= value >> 33
    value = (value * _MIX_2) & _ALL
    return value ^ (value >> 27)
