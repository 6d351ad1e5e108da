"""Items of test sets in a corpus: the rule against a naive twin, and what a user meets."""

from __future__ import annotations

import html
import json
import math
import random
import shutil
from collections import Counter
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from statistics import median_low

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import neardup
from neardup.candidates.items import Finder, build_items
from neardup.cli.main import cli
from neardup.decide.item_rules import LONG, WHOLE, min_entries_of, rules_of
from neardup.errors import (
    ColumnError,
    InputError,
    NeardupError,
    OutputError,
    ResumeError,
    SettingError,
)
from neardup.settings.contamination import ContaminationSettings
from neardup.settings.methods import Shingling

SMALL = ContaminationSettings(ngram=2, min_shingles=3, common=4, threshold=0.5)


def least_whole(count: int) -> int:
    return count if count < LONG else math.ceil(WHOLE * count - 1e-9)


class Naive:
    """The rule of docs/contamination.md, item by item, document by document, stretch by stretch."""

    def __init__(
        self, items: list[list[str]], documents: list[str], settings: ContaminationSettings
    ) -> None:
        self.settings = settings
        self.n = settings.ngram
        self.fields = [[text.split() for text in item if text] for item in items]
        self.words = [document.split() for document in documents]
        every = [
            {shingle for field in item for shingle in self.shingles(field)} for item in self.fields
        ]
        different = Counter(shingle for one in {frozenset(one) for one in every} for shingle in one)
        self.different = different
        self.own = [{one for one in found if different[one] <= settings.common} for found in every]
        self.long = 2 * self.n + 2
        lengths = {self.n, self.long}
        self.in_documents = Counter(
            one
            for words in self.words
            for size in lengths
            for one in set(self.sequences(words, size))
        )
        self.whole_items = {
            item
            for item in range(len(items))
            for words in self.words
            if self.shows_all(item, words)
        }

    def sequences(self, words: list[str], size: int) -> list[tuple[str, ...]]:
        return [tuple(words[i : i + size]) for i in range(len(words) - size + 1)]

    def shingles(self, words: list[str]) -> list[tuple[str, ...]]:
        return self.sequences(words, self.n)

    def by_field(self, item: int) -> list[set[tuple[str, ...]]]:
        """The own shingles of each field, each where it first stands."""
        left = set(self.own[item])
        found = []
        for field in self.fields[item]:
            found.append(left & set(self.shingles(field)))
            left -= found[-1]
        return found

    def is_rare(self, item: int, shingle: tuple[str, ...]) -> bool:
        common = (
            self.settings.common if item in self.whole_items else (self.settings.common + 1) // 2
        )
        return self.num_around(item, shingle) <= common

    def num_around(self, item: int, shingle: tuple[str, ...]) -> int:
        """The most documents that have a long sequence around a shingle of an item."""
        field = next(words for words in self.fields[item] if shingle in self.shingles(words))
        if len(field) < self.long:
            return self.in_documents[shingle]
        place = self.shingles(field).index(shingle)
        around = [
            sequence
            for start, sequence in enumerate(self.sequences(field, self.long))
            if start <= place <= start + self.long - self.n
        ]
        return max(self.in_documents[sequence] for sequence in around)

    def num_documents(self, item: int, document: int) -> int:
        """The documents that have the words of a hit."""
        found = [
            self.best(item, field, self.words[document]) for field in range(len(self.fields[item]))
        ]
        return max(1, median_low(self.num_around(item, shingle) for shingle in set().union(*found)))

    def grade(self, item: int, document: int, rule: str) -> str:
        """possible if all that is found is in other items, too, or a part of the field shown is
        missing.
        """
        fields = self.by_field(item)
        found = [self.best(item, field, self.words[document]) for field in range(len(fields))]
        if all(self.different[shingle] > 1 for shingle in set().union(*found)):
            return "possible"
        judged = [1] if rule == "answer" else range(len(fields))
        least = [self.settings.threshold * len(own) - 1e-9 for own in fields]
        enough = [field for field in judged if found[field] and len(found[field]) >= least[field]]
        shown = enough[0] if enough else max(judged, key=lambda field: len(found[field]))
        in_order = dict.fromkeys(self.shingles(self.fields[item][shown]))
        marks = [
            shingle in found[shown]
            for shingle in in_order
            if shingle in found[shown] or (shingle in fields[shown] and self.is_rare(item, shingle))
        ]
        gaps = [len(list(run)) for is_found, run in groupby(marks) if not is_found]
        outer = max(marks.index(True), marks[::-1].index(True))
        part = max(min(self.long, len(marks) // 4), self.n + 1)
        return "possible" if max(gaps, default=0) >= part or outer > self.n else "clear"

    def best(self, item: int, field: int, words: list[str]) -> set[tuple[str, ...]]:
        """The own shingles in the stretch that has most, of several the shortest, of these the
        first.
        """
        wanted = self.by_field(item)[field]
        found = self.shingles(words)
        size = len(self.fields[item][field])
        width = size + max(size // 2, 5) - self.n + 1
        places = [place for place, one in enumerate(found) if one in wanted]
        options = [(0, 0, 0, set())]
        for first in places:
            for last in (place for place in places if first <= place < first + width):
                inside = {found[place] for place in places if first <= place <= last}
                options.append((len(inside), first - last, -first, inside))
        return max(options, key=lambda option: option[:3])[3]

    def shows_all(self, item: int, words: list[str]) -> bool:
        sizes = [len(one) for one in self.by_field(item)]
        own = [len(self.best(item, field, words)) for field in range(len(sizes))]
        if not sizes or own[0] < math.ceil(self.settings.threshold / 2 * sizes[0]):
            of_all = False
        else:
            of_all = sum(sizes) >= self.settings.min_rare and sum(own) >= least_whole(sum(sizes))
        alone = len(sizes) == 1 or sizes[0] == sum(sizes) if sizes else False
        is_first = (
            bool(sizes) and sizes[0] >= self.settings.min_rare and own[0] >= least_whole(sizes[0])
        )
        return of_all or (is_first and (sizes[0] >= LONG or alone))

    def hit(self, item: int, document: int) -> tuple[str, float] | None:
        """The rule that shows an item in a document, and its containment."""
        words = self.words[document]
        settings = self.settings
        found = []
        fields = range(len(self.fields[item]))
        own = [self.best(item, field, words) for field in fields]
        for part in ([0], list(fields)) if fields else ():
            shingles = set().union(*(self.by_field(item)[field] for field in part))
            there = set().union(*(own[field] for field in part))
            rare, all_rare = (
                {one for one in some if self.is_rare(item, one)} for some in (there, shingles)
            )
            if len(part) > 1 and len(own[0]) < math.ceil(
                settings.threshold / 2 * len(self.by_field(item)[0])
            ):
                continue
            is_whole = len(shingles) >= settings.min_rare and len(there) >= least_whole(
                len(shingles)
            )
            if is_whole and (len(shingles) >= LONG or rare):
                found.append(
                    (len(there) / len(shingles), "whole" if len(shingles) >= LONG else "perfect")
                )
                continue
            enough = (
                len(there) >= settings.min_shingles
                and len(there) / len(shingles) >= settings.threshold - 1e-9
            )
            is_rare = (
                len(rare) >= settings.min_rare
                and len(rare) / len(all_rare) >= settings.threshold / 2 - 1e-9
            )
            if is_rare and (enough or is_whole):
                found.append((len(there) / len(shingles), "containment"))
        best = max(found, key=lambda one: one[0], default=None)
        return self.answer(item, own) if best is None else (best[1], best[0])

    def answer(self, item: int, own: list[set[tuple[str, ...]]]) -> tuple[str, float] | None:
        """The answer alone, the last of two fields, and its containment."""
        if len(own) < 2 or not own[1]:
            return None
        share = len(own[1]) / len(self.by_field(item)[1])
        rare = [shingle for shingle in own[1] if self.is_rare(item, shingle)]
        is_found = len(rare) >= LONG and share >= self.settings.threshold - 1e-9
        return ("answer", share) if is_found else None


def random_corpus(seed: int) -> tuple[list[list[str]], list[str]]:
    """Items of one or two fields over a few letters, and documents in which some of them stand,
    changed or not.
    """
    draw = random.Random(seed)
    letters = "abcdefghijklmnop"[: draw.choice([3, 6, 16])]

    def words(low: int, high: int) -> list[str]:
        return [draw.choice(letters) for _ in range(draw.randint(low, high))]

    longest = draw.choice([8, 60])
    items = [
        [" ".join(words(0, 30)), " ".join(words(0, longest))] for _ in range(draw.randint(1, 6))
    ]
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
    "seeds", [range(6), pytest.param(range(6, 200), marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_the_hits_are_those_of_a_naive_search(seeds):
    num_hits = 0
    rules = set()
    grades = set()
    for seed in seeds:
        items, documents = random_corpus(seed)
        if not any(text for item in items for text in item):
            continue
        settings = replace(
            SMALL, threshold=(0.3, 0.5, 0.8)[seed % 3], common=(1, 4, 50)[seed % 5 % 3]
        )
        table = pa.table(
            {"question": [item[0] for item in items], "answer": [item[1] for item in items]}
        )
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
            (item, document): (
                *hit,
                naive.num_documents(item, document),
                naive.grade(item, document, hit[0]),
            )
            for item in range(len(items))
            for document in range(len(documents))
            if (hit := naive.hit(item, document)) is not None
        }
        rows = {
            (int(row["item_id"]), int(row["document_id"])): (
                row["rule"],
                pytest.approx(row["containment"]),
                row["num_documents"],
                row["grade"],
            )
            for row in found.to_pylist()
        }
        assert wanted == rows, seed
        num_hits += len(rows)
        rules |= {rule for rule, *_ in rows.values()}
        grades |= {grade for *_, grade in rows.values()}
    assert num_hits > 2 * len(seeds)
    assert grades == {"clear", "possible"}
    assert len(seeds) < 100 or rules == {"containment", "whole", "perfect", "answer"}


def test_the_first_field_names_the_rule_if_all_fields_show_as_much():
    question = " ".join(f"q{number}" for number in range(LONG))
    answer = " ".join(f"a{number}" for number in range(2 * LONG))
    items = pa.table({"question": [question], "answer": [answer]})
    [both] = hits_of(items, [f"{question} {answer}", *OTHERS])
    [alone] = hits_of(items, [f"{question} and no answer", *OTHERS])
    assert (both["rule"], both["containment"]) == (alone["rule"], 1.0) == ("perfect", 1.0)


@pytest.mark.parametrize(
    ("item", "passage"),
    [
        ("Is a < b && c > d, if 'x' is at least as good as y?", None),
        (
            r"Find $\frac{1}{2} x^2 + \sqrt{3}$ for all real numbers x with $x \le 2\pi$.",
            "Find 1/2 x² + √3 for all real numbers x with x ≤ 2π.",
        ),
        (
            "Find 1/2 x² + √3 for all real numbers x with x ≤ 2π.",
            r"Find $\dfrac12 x^{2}+\sqrt{3}$ for all real numbers x with $x\leq2\pi$.",
        ),
    ],
    ids=["entities", "rendered page", "page in LaTeX"],
)
def test_an_item_is_found_under_other_markup_and_its_place_is_that_in_the_page(item, passage):
    passage = passage or html.escape(item).replace(" ", "&nbsp;", 3)
    page = f"&quot;Quiz&quot; {passage} More &amp; more."
    [hit] = hits_of([item], [page, *OTHERS])
    assert (hit["rule"], hit["containment"]) == ("perfect", 1.0)
    assert page[hit["start"] : hit["end"]] == passage.rstrip("?.$")
    as_they_are = hits_of([item], [page, *OTHERS], markup=False)
    assert all(hit["containment"] < 0.7 for hit in as_they_are)


SOLUTION = """\
    seen, best, start = {}, 0, 0
    for index, character in enumerate(text):
        if seen.get(character, -1) >= start:
            start = seen[character] + 1
        seen[character] = index
        best = max(best, index - start + 1)
    return best"""


@pytest.mark.parametrize("column", ["answer", "solution", "canonical_solution", "code"])
def test_a_long_answer_alone_shows_its_item(column):
    items = pa.table({"prompt": ["def longest(text): # without repeats"], column: [SOLUTION]})
    page = f"class Page:\n    def run(self, text):\n{SOLUTION}\n"
    [hit] = hits_of(items, [*OTHERS, page])
    assert (hit["rule"], hit["containment"]) == ("answer", 1.0)
    assert page[hit["start"] : hit["end"]] == SOLUTION.strip()
    assert hit["missing"] == "def longest text without repeats"
    assert not hits_of(items, [*OTHERS, page], answers=False)


@pytest.mark.parametrize(
    ("column", "answer", "is_found"),
    [
        ("answer", " ".join(f"a{number}" for number in range(LONG + 2)), True),
        ("answer", " ".join(f"a{number}" for number in range(LONG + 1)), False),
        ("choices", " ".join(f"a{number}" for number in range(50)), False),
    ],
    ids=["20 shingles", "19 shingles", "choices"],
)
def test_short_answers_and_choices_alone_show_no_item(column, answer, is_found):
    items = pa.table({"question": [ITEM], column: [answer]})
    assert bool(hits_of(items, [*OTHERS, f"Page: {answer}. End."])) == is_found


def test_an_answer_of_many_documents_is_boilerplate():
    items = pa.table({"question": [ITEM], "answer": [SOLUTION]})
    corpus = [f"{one} {SOLUTION}" for one in OTHERS[:6]]
    assert neardup.find_contamination(items, corpus).items["status"].to_pylist() == ["boilerplate"]
    assert len(hits_of(items, corpus[:5])) == 5


ITEM = "Which planet of the solar system has the shortest year of all eight planets?"
LONG_ITEM = " ".join(f"word{number}" for number in range(60))
OTHERS = [f"A page about topic {number} and nothing else, number {number}." for number in range(30)]


def hits_of(items, corpus, **options):
    return neardup.find_contamination(items, corpus, **options).hits.to_pylist()


@pytest.mark.parametrize("before", ["", "Seite: ½ ﬁne é́ ", "前言。", "x\u00ad\u200b "])
@pytest.mark.parametrize(
    "item", [ITEM, "中文的题目需要足够长才能被找到，哪一颗行星的一年最短，请问是哪一颗？"]
)
def test_the_place_of_an_item_is_that_of_its_words_in_characters(before, item):
    [hit] = hits_of([item], [f"{before}{item} And more."])
    assert hit["start"] == len(before)
    assert hit["end"] == len(before) + len(item) - 1  # without the question mark


def test_the_place_covers_changed_words_and_boilerplate_at_the_ends():
    animals = [
        "aardvark",
        "bongo",
        "caracal",
        "dingo",
        "eland",
        "fossa",
        "gaur",
        "hyrax",
        "ibex",
        "jerboa",
        "kudu",
        "lynx",
    ]
    stem = "Answer the following question carefully"
    items = [f"{stem}: {name} is what sort of animal and where does it live?" for name in animals]
    changed = items[3].replace("animal", "creature")
    [hit] = hits_of(items, [f"Quiz 3. {changed} Yes."])
    assert (hit["item_id"], hit["start"], hit["end"]) == ("3", 8, 8 + len(changed) - 1)
    assert "animal" in hit["missing"]


def test_text_that_more_documents_have_than_common_is_listed_and_does_not_count():
    stem = (
        "Construct a complete truth table for the following argument and then determine whether it "
        "is valid"
    )
    item = f"{stem}: brown foxes jump / lazy dogs sleep // quick cats run"
    documents = [f"Exercise {number}. {stem}: p{number} or q{number}." for number in range(11)]
    found = neardup.find_contamination([item], documents)
    assert found.hits.num_rows == 0
    assert found.items["status"].to_pylist() == ["boilerplate"]
    [row] = found.boilerplate.to_pylist()
    assert (row["text"], row["documents"]) == (stem, 11)
    assert neardup.find_contamination([item], [*documents, item]).items["status"].to_pylist() == [
        "contaminated"
    ]


PROVERB = (
    "A stitch in time saves nine, and he who laughs last laughs longest, but pride comes before a "
    "fall."
)


@pytest.mark.parametrize(
    ("num_documents", "status"),
    [(1, "contaminated"), (3, "contaminated"), (5, "contaminated"), (6, "boilerplate")],
)
def test_a_hit_says_in_how_many_documents_its_words_are_since_boilerplate_of_few_documents_is_found(
    num_documents, status
):
    item = f"{PROVERB} Who was the first to write this down?"
    found = neardup.find_contamination(
        [item], [f"{one} {PROVERB}" for one in OTHERS[:num_documents]]
    )
    assert found.items["status"].to_pylist() == [status]
    assert set(found.hits["num_documents"].to_pylist()) == (
        {num_documents} if status == "contaminated" else set()
    )


@pytest.mark.parametrize(
    ("text", "grade"),
    [
        (f"{PROVERB} The thing that was given to him was a pound of fresh apples.", "possible"),
        (f"What was given in return to him? {PROVERB}", "possible"),
        (f"{PROVERB} Who has been the first to write this down?", "clear"),
        (PROVERB.replace("time", "rhyme"), "possible"),
    ],
    ids=["other end", "other beginning", "two words changed", "no end"],
)
def test_a_hit_that_lacks_a_whole_part_of_its_item_is_possible_only(text, grade):
    item = f"{PROVERB} Who was the first to write this down?"
    found = neardup.find_contamination([item], [text, *OTHERS])
    assert found.hits["grade"].to_pylist() == found.items["grade"].to_pylist() == [grade]
    assert found.report["counts"]["possible"] == (grade == "possible")
    assert found.report["benchmarks"][0]["possible"] == (grade == "possible")


def test_a_question_that_two_items_ask_is_possible_of_each_without_its_choices():
    items = pa.table(
        {
            "question": [ITEM, ITEM],
            "choices": ["Mercury, the innermost planet of all", "Venus, or Mars, or even Jupiter"],
        }
    )
    found = neardup.find_contamination(items, [ITEM, *OTHERS])
    assert found.items["grade"].to_pylist() == ["possible", "possible"]
    found = neardup.find_contamination(items, [" ".join(map(str, items.to_pylist()[0].values()))])
    assert found.items["grade"].to_pylist() == ["clear", "possible"]


def test_the_grade_of_an_item_is_that_of_its_best_hit_listed_or_not():
    words = LONG_ITEM.split()
    most_of_it = " ".join(words[:48])
    changed = " ".join("new" if number % 6 == 5 else word for number, word in enumerate(words))
    found = neardup.find_contamination([LONG_ITEM], [most_of_it, changed], max_documents=1)
    assert found.hits["grade"].to_pylist() == ["possible"]
    assert found.items["grade"].to_pylist() == ["clear"]
    assert found.report["counts"]["possible"] == 0


def test_an_item_without_a_hit_has_no_grade():
    assert neardup.find_contamination([ITEM], OTHERS).items["grade"].to_pylist() == [None]


def test_the_words_of_a_hit_are_in_one_document_though_a_phrase_is_in_others_and_others_are_changed():  # noqa: E501
    phrase = " ".join(LONG_ITEM.split()[:9])
    [hit] = hits_of(
        [LONG_ITEM], [f"{LONG_ITEM} So it is.", *(f"{one} {phrase}" for one in OTHERS[:4])]
    )
    assert (hit["document_id"], hit["num_documents"]) == ("0", 1)
    changed = " ".join(
        "new" if number % 7 == 6 else word for number, word in enumerate(LONG_ITEM.split())
    )
    [hit] = hits_of([LONG_ITEM], [changed])
    assert hit["num_documents"] == 1


def test_the_report_says_in_how_many_documents_the_words_of_a_hit_are(tmp_path):
    neardup.find_contamination(
        [PROVERB], [PROVERB, f"So: {PROVERB}", *OTHERS], output=tmp_path / "out"
    )
    assert "words in 2 documents" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


def test_the_report_names_a_possible_hit(tmp_path):
    item = f"{PROVERB} Who was the first to write this down?"
    neardup.find_contamination([item], [PROVERB, *OTHERS], output=tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "possible, words in 1 document<" in page
    assert "in 1 document; 1 of them possible" in page


def test_a_long_item_that_many_documents_have_whole_is_found_in_all_and_listed_to_the_limit():
    found = neardup.find_contamination([LONG_ITEM], [LONG_ITEM] * 50 + OTHERS, max_documents=7)
    assert found.hits["rule"].to_pylist() == ["whole"] * 7
    assert found.items["documents"].to_pylist() == [50]


@pytest.mark.parametrize("batch_rows", [1, 100])
def test_the_place_is_that_in_the_document_whatever_document_stands_before_it(batch_rows):
    item = " ".join(f"w{i}" for i in range(14))
    found = neardup.find_contamination(
        [item], [item, f"\u0301\u0323{item}"], batch_rows=batch_rows
    ).hits
    assert found.select(["start", "end"]).to_pylist() == [
        {"start": 0, "end": len(item)},
        {"start": 0, "end": len(item) + 2},
    ]


def test_marks_at_the_beginning_of_a_document_are_placed_alike_in_any_batch():
    item = f"\u0307\u0308\u0334{ITEM}"
    first, second = hits_of([item], [item, item], fold=["turkish"])
    assert (first["start"], first["end"]) == (second["start"], second["end"])


@pytest.mark.parametrize(("threshold", "place"), [(0.28, (0, 26)), (0.56, (66, 215))])
def test_shares_at_the_threshold_are_enough(threshold, place):
    question, answer = (
        " ".join(f"{name}{i}" for i in range(size)) for name, size in (("q", 27), ("a", 40))
    )
    document = " ".join(question.split()[:9]) + " filler " * 5 + answer  # 7 of 25 shingles, 0.28
    items = pa.table({"question": [question], "answer": [answer]})
    (found,) = neardup.find_contamination(items, [document], threshold=threshold).hits.to_pylist()
    assert (found["start"], found["end"]) == place


def test_columns_are_looked_for_apart_and_weigh_what_they_are_given():
    table = pa.table(
        {
            "question": [LONG_ITEM],
            "choices": [["alpha beta gamma delta", "one two three four five six"]],
        }
    )
    apart = f"{LONG_ITEM} {OTHERS[0] * 20} alpha beta gamma delta one two three four five six"
    [hit] = hits_of(table, [apart])
    assert (hit["start"], hit["end"], hit["missing"]) == (0, len(LONG_ITEM), "")
    answers = "alpha beta gamma delta one two three four five six"
    weights = ["question:0.1", "choices:10"]
    begun = [f"{LONG_ITEM[: len(LONG_ITEM) // 4]} {answers}"]
    assert hits_of(table, begun) == []
    assert len(hits_of(table, begun, item_columns=weights)) == 1
    assert hits_of(table, [answers], item_columns=weights) == []  # nothing of the question


def test_the_splits_of_a_dataset_are_searched_for_the_items_of_each_other():
    datasets = pytest.importorskip("datasets")
    train = datasets.Dataset.from_dict({"question": [ITEM, OTHERS[0]]})
    test = datasets.Dataset.from_dict({"question": [f"So {ITEM}", LONG_ITEM]})
    found = neardup.find_contamination(datasets.DatasetDict(train=train, test=test))
    assert found.items["status"].to_pylist() == ["contaminated", "clean", "contaminated", "clean"]
    assert {
        (row["items_of"], row["found_in"], row["items"]) for row in found.report["between"]
    } == {
        ("train", "test", 1),
        ("test", "train", 1),
    }
    assert len(hits_of(test, train)) == 1


def test_pages_are_searched_in_their_main_text():
    page = f"<html><body><p>Some words before it.</p><p>{ITEM}</p></body></html>"
    [hit] = hits_of([ITEM], pa.table({"html": [page]}))
    assert (hit["document_id"], hit["containment"]) == ("0", 1.0)


@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_an_index_that_stores_texts_is_searched_as_the_table_of_its_kept_documents(kind, tmp_path):
    texts = [f"{one} {ITEM}" if number % 7 == 0 else one for number, one in enumerate(OTHERS)]
    rows = pa.table({"id": [f"page {number}" for number in range(len(texts))], "text": texts})
    address = "memory:" if kind == "memory" else tmp_path / "pages.index"
    with neardup.Index.create(address, storage="text") as index:
        index.add_many_if_new(rows)
        copies = rows.set_column(
            0, "id", pa.array([f"copy {number}" for number in range(len(texts))])
        )
        assert not any(index.add_many_if_new(copies)["kept"].to_pylist())
        index.remove(["page 7"])
        found = neardup.find_contamination([ITEM], index)
        documents = pa.concat_tables(index.documents())
        kept = documents.filter(documents["kept"]).select(["id", "text"])
        assert 2 < len(kept) < len(texts)
        expected = neardup.find_contamination([ITEM], kept)
        assert found.hits.drop_columns("source_file") == expected.hits.drop_columns("source_file")
        assert found.hits["source_file"].unique().to_pylist() == [str(address)]
        assert found.report["inputs"][0]["documents"] == len(kept)
    if kind == "folder":
        assert neardup.find_contamination([ITEM], address).hits == found.hits


@pytest.mark.parametrize("kept", ["out/pages.index", "pages.index"])
def test_an_index_is_not_overwritten_by_the_search_for_items_in_it(kept, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    output = {"out/pages.index": "out", "pages.index": "pages.index"}[kept]
    with neardup.Index.create(kept, storage="text") as index:
        index.add(ITEM)
        for corpus in (index, [index], kept, [kept]):
            for folder in (output, f"{kept}/out"):
                with pytest.raises(OutputError, match=r"overlap|is not replaced"):
                    neardup.find_contamination([ITEM], corpus, output=folder, overwrite=True)
        assert len(index) == 1


def test_a_folder_with_the_name_of_a_kind_of_server_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "redis").mkdir()
    (tmp_path / "redis" / "page.txt").write_text(ITEM)
    assert len(hits_of([ITEM], "redis")) == 1


def test_a_search_does_not_resume_in_another_index_of_the_same_name(tmp_path, monkeypatch):
    from neardup.runs import found_items

    monkeypatch.chdir(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(found_items.ItemCollection, "finish", lambda *_: 1 / 0)
        with neardup.Index.create("pages.index", storage="text") as index:
            index.add(ITEM, id="a")
            with pytest.raises(ZeroDivisionError):
                neardup.find_contamination([ITEM], index, output="out")
    shutil.rmtree("pages.index")
    with neardup.Index.create("pages.index", storage="text") as index:
        index.add(LONG_ITEM, id="a")
        with pytest.raises(ResumeError, match="other inputs"):
            neardup.find_contamination([ITEM], index, output="out", resume=True)


def test_the_pages_of_an_index_are_searched_in_their_main_text():
    page = f"<html><body><p>Some words before it.</p><p>{ITEM}</p></body></html>"
    with neardup.Index.create("memory:", method="content", storage="text") as index:
        index.add(page, id="quiz")
        [hit] = hits_of([ITEM], index)
    assert (hit["document_id"], hit["containment"]) == ("quiz", 1.0)


def test_an_index_without_texts_or_beside_others_is_refused():
    vectors = neardup.Vectors(dimensions=4, threshold=0.9)
    with (
        neardup.Index.create("memory:") as index,
        pytest.raises(SettingError, match="storage='features'"),
    ):
        neardup.find_contamination([ITEM], index)
    with neardup.Index.create("memory:", method=vectors, storage="text") as index:
        with pytest.raises(SettingError, match="with vectors"):
            neardup.find_contamination([ITEM], index)
        with pytest.raises(SettingError, match="corpus is either one index"):
            neardup.find_contamination([ITEM], [index, "train.parquet"])


def test_documents_are_counted_anew_before_their_numbers_overflow():
    texts = pa.array([f"{ITEM} {one}" for one in OTHERS], pa.large_string())
    fields = (
        pa.array([ITEM, LONG_ITEM], pa.large_string()),
        np.arange(2, dtype=np.int32),
        np.ones(2),
        np.zeros(2, np.uint8),
    )
    table = build_items(
        *fields, num_items=2, settings=ContaminationSettings(), shingling=Shingling()
    )
    min_entries = min_entries_of(rules_of(table))
    fresh = Finder(table, min_entries)
    used = Finder(table, min_entries)
    used._workspace[1][:] = 2**31 - 1 - len(texts)
    for _ in range(3):
        for expected, found in zip(fresh.find(texts)[1], used.find(texts)[1], strict=True):
            assert len(found)
            np.testing.assert_array_equal(found, expected)


def test_every_form_of_item_has_a_row_that_says_what_became_of_it():
    items = [ITEM, "", None, "two words", "\0" * 50, "x" * 1_000_000, "🙂" * 100]
    found = neardup.find_contamination(items, [ITEM, "", None])
    assert found.items["status"].to_pylist() == ["contaminated", *["short"] * 6]
    assert neardup.find_contamination([ITEM], []).items["status"].to_pylist() == ["clean"]


@pytest.mark.parametrize("name", ["question", "question:0.5", "question,answer"])
def test_lines_of_text_are_items_under_any_name_of_a_column(tmp_path: Path, name: str) -> None:
    path = tmp_path / "items.txt"
    path.write_text(f"{ITEM}\n")
    found = neardup.find_contamination(path, [f"before {ITEM} after"], item_columns=name)
    assert found.items["status"].to_pylist() == ["contaminated"]


@pytest.mark.parametrize("value", ["9" * 5000, "[" * 90_000 + "]" * 90_000])
def test_an_item_beside_a_value_that_python_does_not_read_has_its_text(
    tmp_path: Path, value: str
) -> None:
    paths = [tmp_path / "first.jsonl", tmp_path / "second.jsonl"]
    for path, other in zip(paths, ["1", value], strict=True):
        path.write_text(f'{{"question": "{ITEM}", "other": {other}}}\n')
    found = neardup.find_contamination(paths, [f"before {ITEM} after"])
    assert found.items["status"].to_pylist() == ["contaminated"] * 2


def test_a_column_may_have_a_name_that_ends_like_a_weight() -> None:
    items = pa.table({"question": ["another one"], "q:2": [ITEM]})
    for name in ("q:2", "q:2:0.5"):
        found = neardup.find_contamination(items, [f"before {ITEM} after"], item_columns=name)
        assert found.items["status"].to_pylist() == ["contaminated"]


@pytest.mark.parametrize(
    ("items", "options", "error", "says"),
    [
        ([], {}, InputError, "no item"),
        (pa.table({"foo": [ITEM]}), {}, ColumnError, "Looked for question"),
        (pa.table({"question": [ITEM]}), {"item_columns": "qestion"}, ColumnError, "'qestion'"),
        (pa.table({"question": [1]}), {}, ColumnError, "column of strings"),
        (pa.table({"question": [ITEM]}), {"item_columns": ","}, ColumnError, "got ','"),
        (
            pa.table({"question": [ITEM]}),
            {"item_columns": "question:1" + 400 * "0"},
            ColumnError,
            "No column 'question:1",
        ),
        (
            pa.table({"question": [ITEM]}),
            {"item_columns": "question:0"},
            ColumnError,
            "more than 0: got 'question:0'",
        ),
        (
            pa.table({"question": [ITEM]}),
            {"benchmark_column": "task"},
            ColumnError,
            "benchmark_column",
        ),
        ([ITEM], {"threshold": 2}, SettingError, "threshold"),
        (
            [ITEM],
            {"corpus": None},
            SettingError,
            "Nothing to search: got one input, source. Pass corpus",
        ),
        ([ITEM], {"write": "items"}, SettingError, "output"),
        ([ITEM], {"write": "all", "output": "out"}, SettingError, "write"),
    ],
)
def test_errors_name_what_was_wrong(items, options, error, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=says):
        neardup.find_contamination(items, **{"corpus": [ITEM]} | options)


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Items in two files, and a corpus of two files; the first item of one benchmark is in each
    file of the corpus.
    """
    monkeypatch.chdir(tmp_path)
    rows = [
        {"id": "a", "question": ITEM, "task": "space"},
        {"id": "b", "question": LONG_ITEM, "task": "words"},
    ]
    (tmp_path / "quiz.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, text in (("one", f"Quiz. {ITEM} Mercury!"), ("two", f"{ITEM} again, elsewhere")):
        pq.write_table(
            pa.table({"id": [f"{name}-0", f"{name}-1"], "text": [text, OTHERS[0]]}),
            f"{name}.parquet",
        )
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, ["contamination", *arguments])


def test_the_paths_behind_corpus_are_of_the_corpus_and_a_rate_above_the_limit_ends_with_3(files):
    arguments = [
        "quiz.jsonl",
        "--benchmark-column",
        "task",
        "--corpus",
        "one.parquet",
        "two.parquet",
        "-o",
        "out",
    ]
    ended = run(*arguments, "--fail-above", "0.4")
    assert ended.exit_code == 3
    assert "1 of 1 items of space" in ended.output
    assert run(*arguments, "--fail-above", "1", "--overwrite").exit_code == 0
    hits = pq.read_table("out/hits.parquet").to_pylist()
    assert [(hit["document_id"], hit["source_file"], hit["row"]) for hit in hits] == [
        ("one-0", "one.parquet", 0),
        ("two-0", "two.parquet", 0),
    ]
    assert "Which planet" in (files / "out" / "report.html").read_text()


def test_an_index_is_searched_by_its_path_and_its_documents_are_copied(files):
    with neardup.Index.create("quiz.index", storage="text") as index:
        index.add_files("one.parquet")
    assert (
        run("quiz.jsonl", "--corpus", "quiz.index", "-o", "out", "--write", "corpus").exit_code == 0
    )
    hits = pq.read_table("out/hits.parquet").to_pylist()
    assert [(hit["document_id"], hit["source_file"], hit["row"]) for hit in hits] == [
        ("one-0", "quiz.index", 0)
    ]
    assert pq.read_table("out/kept/index.parquet").to_pylist() == [
        {"id": "one-1", "text": OTHERS[0]}
    ]
    ended = run("quiz.jsonl", "--corpus", "quiz.index", "one.parquet", "-o", "other")
    assert ended.exit_code == 2
    assert "corpus is either one index" in ended.output


@pytest.mark.parametrize(
    ("write", "kept"), [("items", {"quiz.jsonl": ["b"]}), ("corpus", {"one": 1, "two": 1})]
)
def test_clean_copies_leave_out_what_was_found(files, write, kept):
    assert (
        run(
            "quiz.jsonl", "--corpus", "one.parquet", "two.parquet", "-o", "out", "--write", write
        ).exit_code
        == 0
    )
    if write == "items":
        lines = (files / "out/kept/quiz.jsonl").read_text().splitlines()
        assert [json.loads(line)["id"] for line in lines] == kept["quiz.jsonl"]
    else:
        tables = {
            name: pq.read_table(f"out/kept/{name}.parquet")["id"].to_pylist() for name in kept
        }
        assert tables == {"one": ["one-1"], "two": ["two-1"]}


def test_an_interrupted_search_resumes_with_the_same_tables(files, monkeypatch):
    from neardup.runs import found_items, reading

    monkeypatch.setattr(reading, "_CHECKPOINT_EVERY", 1)
    corpus = ["one.parquet", "two.parquet"]
    whole = neardup.find_contamination("quiz.jsonl", corpus)
    add = found_items.ItemCollection.add
    calls = []

    def stop_at_the_second(collection, found, first):
        calls.append(found)
        if len(calls) == 2:
            raise KeyboardInterrupt
        add(collection, found, first)

    monkeypatch.setattr(found_items.ItemCollection, "add", stop_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        neardup.find_contamination("quiz.jsonl", corpus, output="out", batch_rows=1)
    monkeypatch.setattr(found_items.ItemCollection, "add", add)
    resumed = neardup.find_contamination(
        "quiz.jsonl", corpus, output="out", batch_rows=1, resume=True
    )
    for name in ("hits", "items", "boilerplate"):
        assert getattr(resumed, name).equals(getattr(whole, name))
    with pytest.raises(NeardupError):
        neardup.find_contamination("one.parquet", corpus, output="out")


@pytest.mark.parametrize(("num_documents", "num_hits"), [(2, 2), (4, 4), (5, 0)])
def test_a_short_item_that_documents_have_whole_is_rare_up_to_common(num_documents, num_hits):
    corpus = [f"Question {number}: {ITEM}" for number in range(num_documents)]
    hits = hits_of([ITEM], [*corpus, *OTHERS], common=4)
    assert [hit["rule"] for hit in hits] == ["perfect"] * num_hits


def test_documents_that_are_not_listed_count_and_are_no_part_of_the_clean_corpus(tmp_path):
    corpus = [LONG_ITEM] * 9 + [f"{LONG_ITEM} {ITEM}"] * 3 + OTHERS
    found = neardup.find_contamination(
        [LONG_ITEM, ITEM],
        pa.table({"text": corpus}),
        max_documents=2,
        output=tmp_path / "out",
        write="corpus",
    )
    assert found.items["documents"].to_pylist() == [12, 3]
    assert found.hits.num_rows == 4
    assert found.report["counts"]["documents_with_items"] == 12
    [file] = (tmp_path / "out" / "kept").iterdir()
    assert pq.read_table(file)["text"].to_pylist() == OTHERS


def test_copies_in_the_own_input_do_not_hide_those_in_another(tmp_path):
    for name, rows in (("train", [LONG_ITEM] * 6), ("test", [LONG_ITEM, OTHERS[0]])):
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(json.dumps({"question": row}) + "\n" for row in rows)
        )
    paths = [tmp_path / "train.jsonl", tmp_path / "test.jsonl"]
    found = neardup.find_contamination(paths, max_documents=3)
    assert found.items["status"].to_pylist() == ["contaminated"] * 7 + ["clean"]
    assert found.items["documents"].to_pylist() == [1] * 6 + [6, 0]
    assert [row["items"] for row in found.report["between"]] == [6, 1]
    assert min(found.items["containment"].to_pylist()[:7]) >= WHOLE


def test_files_of_one_name_are_benchmarks_of_their_own(files):
    for folder, item in (("quiz", ITEM), ("sums", OTHERS[1])):
        (files / "evals" / folder).mkdir(parents=True)
        (files / "evals" / folder / "test.v1.jsonl").write_text(
            json.dumps({"question": item}) + "\n"
        )
    ended = run(
        "evals", "quiz.jsonl", "--corpus", "one.parquet", "-o", "out", "--fail-above", "0.5"
    )
    assert ended.exit_code == 3
    assert "1 of 1 items of evals/quiz/test.v1.jsonl, above" in ended.output
    benchmarks = pq.read_table("out/items.parquet")["benchmark"].to_pylist()
    assert benchmarks == ["evals/quiz/test.v1.jsonl", "evals/sums/test.v1.jsonl", "quiz", "quiz"]


def test_the_answers_of_one_input_are_looked_for_though_another_has_none(files):
    with open("code.jsonl", "w") as file:
        file.write(json.dumps({"question": OTHERS[1], "Answer": SOLUTION, "choices": ["a", "b"]}))
    corpus = [f"class Page:\n{SOLUTION}\n"]
    found = neardup.find_contamination(["quiz.jsonl", "code.jsonl"], corpus)
    assert found.report["columns"]["items"] == {"question": 1.0, "choices": 1.0, "Answer": 1.0}
    assert found.items["status"].to_pylist() == ["clean", "clean", "contaminated"]
    alone = neardup.find_contamination("code.jsonl", corpus).hits
    assert found.hits.drop_columns("item_id") == alone.drop_columns("item_id")


def test_inputs_whose_questions_have_two_names_are_refused_with_both(files):
    (files / "prompts.jsonl").write_text(json.dumps({"prompt": ITEM}))
    with pytest.raises(
        ColumnError,
        match=r"No column of items that all inputs have: quiz.jsonl has 'id', 'question', 'task'; "
        r"prompts.jsonl has 'prompt'. Looked for question, .* Run such inputs separately",
    ):
        neardup.find_contamination(["quiz.jsonl", "prompts.jsonl"], "one.parquet")


def test_half_a_surrogate_pair_in_an_answer_is_no_text(files):
    row = {"question": ITEM, "answer": "\ud83d yes", "task": "\ud800"}
    (files / "half.jsonl").write_text(json.dumps(row))
    found = neardup.find_contamination("half.jsonl", "one.parquet", benchmark_column="task")
    assert found.items.select(["status", "benchmark"]).to_pylist() == [
        {"status": "contaminated", "benchmark": "\ufffd"}
    ]


def test_items_that_cannot_be_read_are_refused_with_the_reason(files):
    (files / "latin.csv").write_bytes("id,text\n1,caf\xe9\n".encode("latin-1"))
    with pytest.raises(
        InputError,
        match=r"There is no item in latin.csv: the text is not valid UTF-8: it is not UTF-8",
    ):
        neardup.find_contamination("latin.csv", "one.parquet")


def test_rejected_items_are_named(files):
    with open("quiz.jsonl", "a") as file:
        file.write("{broken\n")
    report = neardup.find_contamination("quiz.jsonl", "one.parquet", on_error="skip").report
    assert report["counts"]["items_rejected"] == 1
    assert report["rejected"][0]["file"] == "quiz.jsonl"


def test_items_and_corpora_may_be_streams_that_are_read_once():
    item = "Which planet of the solar system has the shortest year of all eight planets?"
    items = pa.table({"question": [item]})
    corpus = pa.table({"question": [item, "Nothing of it here."]})
    expected = neardup.find_contamination(items, corpus)
    assert expected.report["counts"]["contaminated"] == 1
    found = neardup.find_contamination(items.to_reader(), corpus.to_reader())
    assert found.hits.equals(expected.hits)
    with pytest.raises(SettingError, match="Nothing to search: got one input"):
        neardup.find_contamination(iter([item]))
