"""Documents for the oracle, from texts: tokens, shingles, and the keys of their bands or
samples.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from functools import cache

from neardup.fingerprints.minhash import draw_permutations
from neardup.settings.methods import MinHash, SimHash
from reference import minhash, near, samples, shingles, simhash
from reference.sieve import Document


def documents_of(texts: Sequence[str | None], method: MinHash) -> list[Document]:
    """Return the documents of texts, as a method with bands of its own describes them."""
    described = [_shingled(text, method) for text in texts]
    keys = _sample_keys if method.similarity == "containment" else _band_keys
    times = (
        _times([set(hashes.values()) for _, hashes in described])
        if method.boost_rare
        else dict[int, int]()
    )
    return [
        Document(
            tokens,
            frozenset(
                (gram, copy)
                for gram, value in hashes.items()
                for copy in range(times.get(value, 1))
            ),
            *keys(
                frozenset(
                    copy
                    for value in hashes.values()
                    for copy in _copies(value, times.get(value, 1))
                ),
                method,
            ),
        )
        for tokens, hashes in described
    ]


def _times(sets: list[set[int]]) -> dict[int, int]:
    """Return how often a shingle counts: thrice in 2 to the fourth root of all documents, twice to
    the square root.
    """
    counts = Counter(value for one in sets for value in one)
    root = math.isqrt(len(sets))
    return {
        value: 1 + (2 <= count <= root) + (2 <= count <= math.isqrt(root))
        for value, count in counts.items()
    }


def _copies(value: int, times: int) -> list[int]:
    """Return the hashes of a shingle that counts so often, each made from the one before."""
    copies = [value]
    while len(copies) < times:
        copies.append(shingles.mix((copies[-1] + 0x9E3779B97F4A7C15) % 2**64))
    return copies


def fingerprinted(texts: Sequence[str | None], method: SimHash) -> list[near.Document]:
    """Return the documents of texts with their fingerprints, of native features or of weighted
    ones.
    """
    return [(_weighted if method.weights == "given" else _native)(text, method) for text in texts]


def _weighted(text: str | None, method: SimHash) -> near.Document:
    assert callable(method.tokens)
    assert callable(method.hash)
    pairs = list(method.tokens(text or ""))
    totals = simhash.sums(
        [(method.hash(token.encode()), weight) for token, weight in pairs], method.bits
    )
    tokens = tuple(token for token, _ in pairs)
    return near.Document(tokens, frozenset(tokens), simhash.reduce(totals))


@cache
def _native(text: str | None, method: SimHash) -> near.Document:
    tokens = shingles.tokens_of(text, method.tokens, method.nfkc, method.case_fold, method.fold)
    hashes = shingles.shingle_hashes(tokens, method.ngram, method.tokens)
    fingerprint = simhash.fingerprint(simhash.weigh(hashes, method.weights), method.bits)
    return near.Document(tokens, frozenset(hashes), fingerprint)


def _shingled(
    text: str | None, method: MinHash
) -> tuple[tuple[str, ...], dict[tuple[str, ...], int]]:
    """Return the tokens of a text, and its shingles with their hashes."""
    tokens = shingles.tokens_of(text, method.tokens, method.nfkc, method.case_fold, method.fold)
    hashes = shingles.shingle_hashes(tokens, method.ngram, method.tokens)
    return tokens, dict(zip(shingles.ngrams(tokens, method.ngram), hashes, strict=True))


@cache  # plain Python takes long, and tests pass the same texts again and again
def _band_keys(hashes: frozenset[int], method: MinHash) -> tuple:
    assert method.num_bands is not None
    assert method.rows_per_band is not None
    num_hashes = method.num_bands * method.rows_per_band
    drawn = draw_permutations(num_hashes, method.seed)
    signature = minhash.sign(
        hashes, drawn.factors.tolist(), drawn.multipliers[:num_hashes].tolist()
    )
    keys = tuple(minhash.bands(signature, method.rows_per_band))
    return keys, keys, 1


def _sample_keys(hashes: frozenset[int], method: MinHash) -> tuple:
    needed = samples.needed_hits(method.threshold, method.recall)
    sample = tuple(sorted(hashes)[: len(needed) - 1])
    return sample, tuple(hashes), needed[len(sample)]
