"""Items of test sets in a corpus: the rule against a naive twin, and what a user meets."""

from __future__ import annotations

import math
import random
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

import neardup
from neardup.candidates.items import LONG, WHOLE
from neardup.settings.contamination import ContaminationSettings

SMALL = ContaminationSettings(ngram=2, min_shingles=3, common=4, threshold=0.5)


def least_whole(count: int) -> int:
    return count if count < LONG else math.ceil(WHOLE * count - 1e-9)


class Naive:
    """The rule of docs/contamination.md, item by item, document by document, stretch by stretch."""

    def __init__(self, items: list[list[str]], documents: list[str], settings: ContaminationSettings) -> None:
        self.settings, self.n = settings, settings.ngram
        self.fields = [[text.split() for text in item if text] for item in items]
        self.words = [document.split() for document in documents]
        every = [{shingle for field in item for shingle in self.shingles(field)} for item in self.fields]
        different = Counter(shingle for one in {frozenset(one) for one in every} for shingle in one)
        self.own = [{one for one in found if different[one] <= settings.common} for found in every]
        self.in_documents = Counter(one for words in self.words for one in set(self.shingles(words)))
        self.whole_items = {item for item in range(len(items)) for words in self.words if self.shows_all(item, words)}

    def shingles(self, words: list[str]) -> list[tuple[str, ...]]:
        return [tuple(words[i : i + self.n]) for i in range(len(words) - self.n + 1)]

    def by_field(self, item: int) -> list[set[tuple[str, ...]]]:
        """The own shingles of each field, each where it first stands."""
        left, found = set(self.own[item]), []
        for field in self.fields[item]:
            found.append(left & set(self.shingles(field)))
            left -= found[-1]
        return found

    def is_rare(self, item: int, shingle: tuple[str, ...]) -> bool:
        common = self.settings.common if item in self.whole_items else (self.settings.common + 1) // 2
        return self.in_documents[shingle] <= common

    def best(self, item: int, field: int, words: list[str], *, prefers_rare: bool) -> tuple[int, int, int, int]:
        """Rare and own shingles of the best stretch, and its first and last start of a shingle."""
        wanted, found = self.by_field(item)[field], self.shingles(words)
        size = len(self.fields[item][field])
        width = size + max(size // 2, 5) - self.n + 1
        places = [place for place, one in enumerate(found) if one in wanted]
        options = []
        for first in places:
            for last in (place for place in places if first <= place < first + width):
                inside = {found[place] for place in places if first <= place <= last}
                rare = sum(self.is_rare(item, one) for one in inside) if prefers_rare is not None else 0
                score = (rare, len(inside)) if prefers_rare else (len(inside),)
                options.append(((*score, first - last, -first), (rare, len(inside), first, last)))
        return max(options)[1] if options else (0, 0, 0, -1)

    def shows_all(self, item: int, words: list[str]) -> bool:
        self.whole_items = getattr(self, "whole_items", set())
        own = [self.best(item, field, words, prefers_rare=False)[1] for field in range(len(self.fields[item]))]
        sizes = [len(one) for one in self.by_field(item)]
        of_all = sum(sizes) > 0 and sum(own) >= least_whole(sum(sizes))
        return of_all or (sizes[:1] > [LONG - 1] and own[0] >= least_whole(sizes[0]))

    def hit(self, item: int, document: int) -> tuple[str, float] | None:
        """The rule that shows an item in a document, and its containment."""
        words, settings, found = self.words[document], self.settings, []
        fields = range(len(self.fields[item]))
        own = [self.best(item, field, words, prefers_rare=False) for field in fields]
        rare = [self.best(item, field, words, prefers_rare=True) for field in fields]
        for part in ([0], list(fields)):
            shingles = set().union(*(self.by_field(item)[field] for field in part)) if fields else set()
            num_rare = sum(self.is_rare(item, one) for one in shingles)
            num_own = sum(own[field][1] for field in part) if fields else 0
            if shingles and num_own >= least_whole(len(shingles)) and (len(shingles) >= LONG or num_rare):
                found.append((num_own / len(shingles), "whole" if len(shingles) >= LONG else "perfect"))
                continue
            found_rare, near = (sum(rare[field][column] for field in part) if fields else 0 for column in (0, 1))
            least = found_rare >= settings.min_rare and near >= settings.min_shingles
            if least and found_rare >= settings.threshold * num_rare - 1e-9:
                found.append((found_rare / num_rare, "containment"))
        best = max(found, key=lambda one: one[0], default=None)
        return None if best is None else (best[1], best[0])


def random_corpus(seed: int) -> tuple[list[list[str]], list[str]]:
    """Items of one or two fields over a few letters, and documents in which some of them stand, changed or not."""
    draw = random.Random(seed)
    letters = "abcdefghijklmnop"[: draw.choice([3, 6, 16])]

    def words(low: int, high: int) -> list[str]:
        return [draw.choice(letters) for _ in range(draw.randint(low, high))]

    items = [[" ".join(words(0, 30)), " ".join(words(0, 8))] for _ in range(draw.randint(1, 6))]
    if draw.random() < 0.3:
        items += [items[0]] * draw.randint(1, 6)
    documents = []
    for _ in range(draw.randint(1, 10)):
        text = words(0, 12)
        for _ in range(draw.randint(0, 3)):
            piece = " ".join(draw.choice(items)).split()
            piece = piece[draw.randint(0, len(piece) // 2) :] if draw.random() < 0.4 else piece
            piece = [draw.choice(letters) if draw.random() < 0.08 else word for word in piece]
            text += piece + words(0, 6)
        documents.append(" ".join(text))
    return items, documents


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 1000), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_the_hits_are_those_of_a_naive_search(seeds):
    num_hits = 0
    for seed in seeds:
        items, documents = random_corpus(seed)
        if not any(text for item in items for text in item):
            continue
        settings = replace(SMALL, threshold=(0.3, 0.5, 0.8)[seed % 3], common=(1, 4, 50)[seed % 5 % 3])
        table = pa.table({"question": [item[0] for item in items], "answer": [item[1] for item in items]})
        found = neardup.find_contamination(
            table,
            pa.table({"text": documents}),
            threshold=settings.threshold,
            ngram=settings.ngram,
            min_shingles=settings.min_shingles,
            common=settings.common,
            threads=1 + seed % 2,
            batch_rows=1 + seed % 3,
        ).hits
        naive = Naive(items, documents, settings)
        wanted = {
            (item, document): hit
            for item in range(len(items))
            for document in range(len(documents))
            if (hit := naive.hit(item, document)) is not None
        }
        rows = {
            (int(row["item_id"]), int(row["document_id"])): (row["rule"], pytest.approx(row["containment"]))
            for row in found.to_pylist()
        }
        assert wanted == rows, seed
        num_hits += len(rows)
    assert num_hits > 2 * len(seeds)
