"""The corpus that measures contamination: every item is where the truth says, and nowhere else."""

from __future__ import annotations

import html
import re
from collections import Counter
from functools import cache
from typing import Any

import pytest

from reference.places import REPOSITORY, SHARED_DATA

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not SHARED_DATA.exists(), reason="needs the texts of ../shared"),
]
PER_FORM = 10


@pytest.fixture(autouse=True)
def _benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))


@cache
def built() -> tuple[Any, dict[str, Any], dict[str, str], list[dict]]:
    import contamination_corpus

    items, documents, truth = contamination_corpus.build(SHARED_DATA, 7, PER_FORM)
    by_name = {item.id: item for item in items}
    return contamination_corpus, by_name, {one.id: one.text for one in documents}, truth


def words(text: str) -> list[str]:
    return built()[0].tokens_of(text)


def test_each_form_has_as_many_items_each_in_one_document() -> None:
    _, items, texts, truth = built()
    placed = [row for row in truth if row["form"] != "related"]
    corpus = built()[0]
    per_kind = PER_FORM // len(corpus.KINDS)
    assert Counter((row["form"], row["kind"]) for row in placed) == {
        (form, kind): per_kind
        for form in corpus.FORMS
        for kind in corpus.KINDS_OF_FORM.get(form, corpus.KINDS)
    }
    assert (
        len({row["item_id"] for row in placed})
        == len(placed)
        == len({row["document_id"] for row in placed})
    )
    assert all(row["item_id"] in items and row["document_id"] in texts for row in truth)


def test_the_span_of_an_item_has_its_words() -> None:
    _, items, texts, truth = built()
    for row in truth:
        if row["form"] == "related":
            continue
        text = texts[row["document_id"]]
        question = words(items[row["item_id"]].question)
        passage = text[row["start"] : row["question_end"]]
        found = words(html.unescape(passage) if row["form"] == "entities" else passage)
        if row["form"] == "first half":
            assert found == question[: len(found)]
            assert 2 * len(found) in (len(question), len(question) + 1)
        elif row["form"] == "words changed":
            changed = sum((Counter(question) - Counter(found)).values())
            assert changed <= len(question) / 4
            assert changed or len(question) < 16 or row["kind"] in ("code", "mathematics")
        elif row["form"] == "answer alone":
            assert found == words(items[row["item_id"]].answer)
        elif row["form"] == "rendered":
            assert sum((Counter(found) & Counter(question)).values()) > len(found) / 2
        elif row["form"] == "renamed":
            name = re.search(r"def (\w+)", items[row["item_id"]].question)[1]
            assert "alfa_0" in passage
            assert f"def {name}(" not in passage
        else:
            assert found == question
            if row["form"] == "long document":
                assert len(words(text)) > 3900


def test_an_item_that_is_clean_or_a_hard_negative_is_in_no_document() -> None:
    corpus, items, texts, truth = built()
    related = {row["item_id"] for row in truth if row["form"] == "related"}
    whole = [" ".join(words(text)) for text in texts.values()]
    common = [text for family, _ in corpus.FAMILIES.values() for text in family]
    for item in items.values():
        if item.role == "planted" or item.role == "stem" or item.id in related:
            continue
        own = item.question
        for text in common:
            own = own.removeprefix(text)
        if len(words(own)) < 5:
            continue  # such as "Neural networks:", which other texts contain, too
        assert not any(" ".join(words(own)) in text for text in whole), item.id


def test_the_texts_of_each_family_are_in_forty_documents() -> None:
    corpus, items, texts, _ = built()
    whole = [" ".join(words(text)) for text in texts.values()]
    for family, (common, _) in corpus.FAMILIES.items():
        assert any(item.role == family for item in items.values())
        assert (
            sum(any(" ".join(words(one)) in text for one in common) for text in whole)
            >= corpus.HARD_DOCUMENTS
        )


def test_true_hits_are_judged_right_and_others_wrong(tmp_path) -> None:
    import run_contamination
    from contamination_peers import Hit

    corpus, items, texts, truth = built()
    documents = [corpus.Document(name, text) for name, text in texts.items()]
    corpus.write(tmp_path, list(items.values()), documents, truth)
    known = run_contamination.Truth(tmp_path)
    placed = [row for row in truth if row["form"] != "related"]
    hits = [
        Hit(row["item_id"], row["document_id"], row["start"], row["question_end"], 1.0)
        for row in placed
    ]
    perfect = run_contamination.judge("all", hits, known)
    assert run_contamination.faults(perfect, known) == []
    assert perfect.right == perfect.found == perfect.asked

    moved = run_contamination.judge(
        "moved", [hit._replace(end=hit.end + 40) for hit in hits[1:]], known
    )
    assert sum(moved.found.values()) == len(hits) - 1
    assert moved.right.total() < len(hits) / 4

    wrong = [
        Hit(item.id, placed[0]["document_id"], 0, 9, 1.0)
        for item in items.values()
        if item.role != "planted"
    ]
    score = run_contamination.judge(run_contamination.STRUCTURE, wrong, known)
    assert len(score.false_items) == len(known.clean)
    assert sum(score.hard.values()) == sum(item.role in corpus.FAMILIES for item in items.values())
    assert len(run_contamination.faults(score, known)) == len(corpus.FORMS) + 2


def test_the_same_seed_gives_the_same_files() -> None:
    corpus, items, texts, truth = built()
    again_items, again_documents, again_truth = corpus.build(SHARED_DATA, 7, PER_FORM)
    assert [item.id for item in again_items] == list(items)
    assert {one.id: one.text for one in again_documents} == texts
    assert again_truth == truth
