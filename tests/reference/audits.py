"""Collections to audit, and the verdicts about removals as a plain loop."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from typing import NamedTuple

from reference.sets import jaccard

NGRAM = 3
WORDS = [f"w{number}" for number in range(4000)]


class Planted(NamedTuple):
    """A collection, and the documents of it that were kept, by number."""

    texts: list[str]
    kept: list[int]

    @property
    def kept_texts(self) -> list[str]:
        return [self.texts[number] for number in self.kept]


def made_up(rng: random.Random, num_words: int = 100) -> str:
    return " ".join(rng.choice(WORDS) for _ in range(num_words))


def with_changes(text: str, num_changes: int) -> str:
    """Return a text with other words at its end: each change leaves one shingle less in common."""
    words = text.split()
    for number in range(1, num_changes + 1):
        words[-number] = f"x{number}{words[-number]}"
    return " ".join(words)


def with_duplicates(rng: random.Random, num_groups: int = 120) -> Planted:
    """Return a collection in which the first document of each group was kept, as is right."""
    texts: list[str] = []
    kept: list[int] = []
    for _ in range(num_groups):
        kept.append(len(texts))
        first = made_up(rng)
        texts.append(first)
        num_duplicates = rng.choice([0, 0, 0, 1, 1, 2])
        texts += [with_changes(first, rng.choice([0, 1, 3, 5])) for _ in range(num_duplicates)]
    return Planted(texts, kept)


def shingles(text: str) -> frozenset[tuple[str, ...]]:
    words = text.split()
    return frozenset(tuple(words[i : i + NGRAM]) for i in range(len(words) - NGRAM + 1))


def verdicts_of(
    texts: Sequence[str], kept: Collection[int], threshold: float
) -> list[tuple[str, float]]:
    """Return the verdict about each document, and the similarity of its nearest kept one.

    Copies of a text have one set of shingles here.
    """
    sets = [shingles(text) for text in texts]
    similar = [
        [other for other in range(len(texts)) if jaccard(one, sets[other]) >= threshold]
        for one in sets
    ]
    found = []
    for number, one in enumerate(sets):
        if number in kept:
            found.append(("kept", 0.0))
            continue
        nearest = max((jaccard(one, sets[other]) for other in kept), default=0.0)
        component = {number}
        waiting = [number]
        while waiting:
            for other in similar[waiting.pop()]:
                if other not in component:
                    component.add(other)
                    waiting.append(other)
        if any(texts[other] == texts[number] for other in kept):
            verdict = "copy"
        elif nearest >= threshold:
            verdict = "near"
        elif component & set(kept):
            verdict = "chain"
        else:
            verdict = "group" if len(component) > 1 else "alone"
        found.append((verdict, nearest))
    return found
