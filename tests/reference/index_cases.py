"""Documents and methods on which an index is compared with `dedup`."""

from __future__ import annotations

import random
from collections.abc import Callable

import pyarrow as pa

import neardup
from neardup import Index, MinHash, SimHash, method

FOX = "the quick brown fox jumps over the lazy dog near the river bank"
NEAR_FOX = "The quick brown fox jumps over the lazy dog near the river bank today!"
OTHER = "an entirely different sentence about databases and their journals"
BIGRAMS = MinHash(threshold=0.6, ngram=2)

Make = Callable[..., Index]


def table(*rows: tuple[str, str]) -> pa.Table:
    return pa.table({"id": [id for id, _ in rows], "text": [text for _, text in rows]})


WORDS = [
    f"{a}{b}"
    for a in ("red", "blue", "stone", "cloud", "river", "glass")
    for b in ("bird", "fish", "tree", "song")
]


def make_texts(seed: int, count: int, length: int = 40) -> list[str]:
    """Return texts of which many are near-duplicates, copies, parts of others, or empty."""
    draw = random.Random(seed)
    texts = [" ".join(draw.choices(WORDS, k=length)) for _ in range(max(1, count // 8))]
    while len(texts) < count:
        words = draw.choice(texts).split()
        kind = draw.randrange(10)
        if kind == 0:
            words = []
        elif kind == 1:
            words = draw.choices(WORDS, k=length)
        elif kind == 2:
            words = words[: draw.randrange(len(words) + 1)]
        elif kind > 3:
            for _ in range(draw.randrange(1, 6)):
                if words:
                    words[draw.randrange(len(words))] = draw.choice(WORDS)
        texts.append(" ".join(words))
    return texts


def make_pages(seed: int, count: int) -> list[str]:
    draw = random.Random(seed)
    templates = [
        [draw.choice(("div", "p", "section", "ul", "table")) for _ in range(12)] for _ in range(6)
    ]
    texts = make_texts(seed, count)
    pages = []
    for text in texts:
        tags = list(draw.choice(templates))
        if draw.random() < 0.3:
            tags[draw.randrange(len(tags))] = "span"
        pages.append(
            "<html><body>"
            + "".join(f"<{tag} class=c{tag}>" for tag in tags)
            + f"<p>{text}</p></body></html>"
        )
    return pages


METHODS = {
    "minhash": (MinHash(threshold=0.5, ngram=2), {}),
    "minhash in crowded buckets": (MinHash(threshold=0.3, ngram=1), {"max_bucket_size": 3}),
    "cosine": (MinHash(threshold=0.6, ngram=2, similarity="cosine"), {}),
    "containment": (MinHash(threshold=0.7, ngram=2, similarity="containment"), {}),
    "containment in crowded buckets": (
        MinHash(threshold=0.7, ngram=1, similarity="containment"),
        {"max_bucket_size": 4},
    ),
    "above chance": (MinHash(threshold=0.2, ngram=1, above_chance=True), {}),
    "rare words": (MinHash(threshold=0.5, ngram=1, boost_rare=True), {}),
    "simhash": (SimHash(max_distance=8, threshold=0.3), {}),
    "simhash in crowded buckets": (
        SimHash(bits=32, max_distance=8, threshold=0.1),
        {"max_bucket_size": 2},
    ),
    "fingerprints alone": (SimHash(confirm="hamming", max_distance=6), {}),
    "fingerprints of 128 bits": (SimHash(confirm="hamming", bits=128, max_distance=10), {}),
    "tfidf": (SimHash(weights="tfidf", max_distance=8, threshold=0.3), {}),
    "mfonda": (SimHash(scheme="mfonda", confirm="hamming", max_distance=5), {}),
    "structure": (method("structure"), {}),
    "page": (method("page", min_structure=0.6, threshold=0.5), {}),
}


def documents_for(method, seed: int, count: int) -> pa.Table:
    pages = method.html is not None or method.tokens == "tags"
    texts = (make_pages if pages else make_texts)(seed, count)
    return pa.table({"id": [f"d{i}" for i in range(count)], "text": texts})


def idf_for(method, documents: pa.Table):
    counted = method.of_structure or method if isinstance(method, MinHash) else method
    needed = getattr(counted, "boost_rare", False) or getattr(counted, "weights", "") == "tfidf"
    return neardup.document_frequencies(documents, method=counted) if needed else None
