"""Check containment with the longest kept: a removed document is contained in a longer kept one."""

from __future__ import annotations

import random
import re

import neardup

RANDOM = random.Random(7)
LOSSLESS = {"method": neardup.MinHash(similarity="containment", threshold=0.95), "keep": "longest"}
STRICTER = {"method": neardup.MinHash(similarity="containment", threshold=0.98), "keep": "longest"}
WORDS = [f"word{number}" for number in range(3000)]


def sentences(count: int) -> list[str]:
    return [" ".join(RANDOM.choices(WORDS, k=12)) + "." for _ in range(count)]


def lost_sentences(texts: list[str], result: neardup.Deduplication) -> list[str]:
    """Return the sentences that no kept text contains."""
    kept = {
        part for text in result.kept["text"].to_pylist() for part in re.split(r"(?<=\.)\s", text)
    }
    return [part for text in texts for part in re.split(r"(?<=\.)\s", text) if part not in kept]


def test_a_text_inside_of_a_longer_one_goes_whatever_their_order() -> None:
    chapter = sentences(20)
    rest = sentences(60)
    texts = [" ".join(chapter), " ".join([*rest, *chapter]), " ".join(sentences(20))]
    result = neardup.dedup(texts, **LOSSLESS)
    assert result.mask.tolist() == [False, True, True]
    assert lost_sentences(texts, result) == []
    assert neardup.dedup(
        texts
    ).mask.all()  # 20 sentences of 80 are no duplicate by Jaccard similarity


def test_rows_of_a_template_stay_where_each_has_its_own_values() -> None:
    template = "On {} the customer {} ordered {} of the article and paid by card. " + " ".join(
        sentences(4)
    )
    texts = [template.format(f"day{n}", f"name{n} surname{n}", n) for n in range(50)]
    plain = neardup.dedup(texts, threshold=0.4)
    lossless = neardup.dedup(texts, **LOSSLESS)
    assert plain.report["counts"]["removed"] > 40
    assert lossless.report["counts"]["removed"] == 0


def test_dumps_of_a_compiler_stay_unless_their_messages_are_all_in_another() -> None:
    head = " ".join(sentences(30))  # flags, include paths and notes that all dumps begin with
    errors = [f"error {n}: symbol{n} is not declared in scope{n} at line {n}." for n in range(8)]
    dumps = [f"{head} {error}" for error in errors]
    everything = f"{head} {' '.join(errors)}"
    assert (
        neardup.dedup(dumps).report["counts"]["removed"] == 7
    )  # similar by 0.9: seven messages are lost
    assert neardup.dedup(dumps, **STRICTER).report["counts"]["removed"] == 0
    result = neardup.dedup([*dumps, everything], **STRICTER)
    assert result.kept["text"].to_pylist() == [everything]


def test_a_chain_of_overlapping_books_joins_no_two_that_share_nothing() -> None:
    chapters = [" ".join(sentences(10)) for _ in range(20)]
    books = [" ".join(chapters[start : start + 10]) for start in range(0, 11)]
    chained = neardup.dedup(books, threshold=0.7, linkage="connected")
    assert chained.report["counts"]["kept"] == 1  # the last book shares no chapter with the first
    result = neardup.dedup(books, **LOSSLESS)
    assert result.report["counts"]["removed"] == 0
    assert lost_sentences(books, result) == []
