"""Check that the work on near-identical documents, counted in pairs, grows with their number."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import neardup

WORDS = [f"w{number}" for number in range(50_000)]


def filled(count: int, fillings: int) -> list[str]:
    """Return texts of one template of 60 words, with `fillings` words of each its own."""
    random = np.random.default_rng(3)
    template = random.choice(WORDS, 60, replace=False).tolist()
    places = np.linspace(5, 55, fillings).astype(int).tolist()
    texts = []
    for words in random.integers(0, len(WORDS), (count, fillings)).tolist():
        text = template.copy()
        for place, word in zip(places, words, strict=True):
            text[place] = WORDS[word]
        texts.append(" ".join(text))
    return texts


def counts_of(texts: list[str], method: neardup.MinHash | neardup.SimHash) -> dict[str, int]:
    table = pa.table({"id": np.arange(len(texts)), "text": texts})
    counts: dict[str, int] = neardup.dedup(table, method=method, tables=False).report["counts"]
    return counts


SIMHASH = neardup.SimHash(max_distance=3, confirm="jaccard", threshold=0.8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fillings", "method"),
    [(1, neardup.MinHash()), (4, neardup.MinHash()), (1, SIMHASH)],
    ids=["alike", "below-the-threshold", "simhash"],
)
def test_a_template_with_many_fillings_takes_pairs_in_proportion_to_its_documents(fillings, method):
    few, many = (counts_of(filled(count, fillings), method) for count in (25_000, 200_000))
    assert few["read"] * 8 == many["read"]
    assert few["compared"] > 0
    assert many["compared"] / many["read"] <= 1.1 * few["compared"] / few["read"]


@pytest.mark.slow
@pytest.mark.parametrize("method", [neardup.MinHash(), SIMHASH], ids=["minhash", "simhash"])
def test_exact_copies_are_compared_with_the_first_alone(method):
    text = filled(1, 1)[0]
    counts = counts_of([text] * 100_000, method)
    assert counts["removed_exact"] == 99_999
    assert counts["compared"] <= 100_000
