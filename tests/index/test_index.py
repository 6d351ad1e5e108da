"""An index: what is added, answered and found, and which ids documents get; the same over every
store.
"""

from __future__ import annotations

import json
import re
from datetime import timedelta

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup import Index, MinHash, SimHash
from neardup.errors import ColumnError, InputError, StoreError
from neardup.index.documents import batches_of, group_batches
from neardup.index.open_index import Batch, OpenIndex
from neardup.stores.embedded.store import EmbeddedStore
from neardup.stores.memory import MemoryStore
from reference.index_cases import BIGRAMS, FOX, NEAR_FOX, OTHER, table

# Answers.


def test_an_answer_names_the_kept_document_its_similarity_times_and_payload(make, clock):
    index = make()
    first = index.add_if_new(FOX, id="fox", payload="https://example.org/fox")
    assert (first.id, first.kept, first.kept_id, first.similarity, first.repeated) == (
        "fox",
        True,
        None,
        None,
        False,
    )
    clock(60)
    answer = index.add_if_new(NEAR_FOX, id="near")
    expected = neardup.compare(FOX, NEAR_FOX, method=BIGRAMS)
    assert (answer.kept, answer.kept_id, answer.exact) == (False, "fox", False)
    assert answer.similarity == expected.similarity
    assert answer.payload == "https://example.org/fox"
    assert answer.first_seen == answer.last_seen == first.first_seen
    clock(60)
    again = index.add_if_new(NEAR_FOX.upper(), id="third")
    assert again.last_seen - again.first_seen == timedelta(seconds=60)
    assert again.exact is False
    assert (len(index), "near" in index, "none" in index, 7 in index) == (1, True, False, False)


def test_a_query_returns_the_most_similar_kept_documents_and_stores_nothing(make):
    index = make()
    index.add_if_new(FOX, id="fox")
    index.add(NEAR_FOX, id="near")
    index.add(OTHER, id="other")
    hits = index.query(FOX + " today")
    assert {hit.id for hit in hits} == {"fox", "near"}
    assert hits[0].similarity >= hits[1].similarity
    assert [hit.id for hit in index.query(FOX, limit=1)] == ["fox"]
    assert index.query("") == index.query("nothing like it at all here") == []
    found = index.query_many([OTHER, "", FOX])
    assert found["query"].to_pylist() == [0, 2, 2]
    assert found["id"].to_pylist() == ["other", "fox", "near"]
    assert len(index) == 3


def test_simhash_answers_with_distances(make):
    index = make(method=SimHash(max_distance=3, confirm="hamming"), storage="fingerprints")
    words = " ".join(f"word{i}" for i in range(200))
    index.add_if_new(words, id="a")
    answer = index.add_if_new(words + " and", id="b")
    assert (answer.kept, answer.distance, answer.similarity) == (False, 0 + answer.distance, None)
    assert index.query(words)[0].distance == 0
    document = index.get("a")
    assert document.sketch.dtype == np.uint64
    assert document.sketch.tolist() == neardup.sign([words], method=index.method).values[0].tolist()


def test_documents_without_features_are_kept_and_similar_to_nothing(make):
    index = make()
    assert [index.add_if_new(text, id=text or "empty").kept for text in ("", "...", "!")] == [
        True
    ] * 3
    assert index.add_if_new("", id="empty").repeated


def test_a_crowded_bucket_is_told(make):
    index = make(method=MinHash(threshold=0.9, ngram=1), max_bucket_size=2)
    template = " ".join(f"word{i}" for i in range(60))
    answers = index.add_many(table(*((str(i), f"{template} number{i}") for i in range(6))))
    assert not any(answers["truncated"].to_pylist())  # nothing was compared
    assert index.add_if_new(f"{template} another", id="x").truncated


# The same again.


def test_a_document_sent_again_gets_its_first_answer_and_changes_nothing(make, clock):
    index = make()
    documents = table(("a", FOX), ("b", NEAR_FOX), ("c", OTHER), ("d", ""))
    first = index.add_many_if_new(documents)
    clock(5)
    second = index.add_many_if_new(documents)
    assert second["repeated"].to_pylist() == [True] * 4
    same = ["id", "kept", "kept_id", "similarity", "exact", "truncated", "first_seen"]
    assert second.select(same).to_pylist() == first.select(same).to_pylist()
    assert index.info()["documents"] == {"kept": 3, "removed": 1}


def test_a_stream_that_broke_off_can_be_sent_again(make):
    rows = [(f"d{i}", f"{FOX if i % 3 else OTHER} part {i % 5}") for i in range(40)]
    whole = make()
    broken = make()
    expected = whole.add_many_if_new(table(*rows))
    broken.add_many_if_new(table(*rows[:23]))
    found = broken.add_many_if_new(table(*rows))
    assert found.select(["id", "kept", "kept_id"]).equals(
        expected.select(["id", "kept", "kept_id"])
    )
    assert found["repeated"].to_pylist() == [True] * 23 + [False] * 17


def test_an_id_with_other_content_replaces_its_document(make):
    index = make()
    index.add_if_new(FOX, id="page", payload="old")
    answer = index.add_if_new(OTHER, id="page", payload="new")
    assert (answer.kept, answer.repeated) == (True, False)
    assert index.query(FOX) == []
    assert index.get("page").payload == "new"
    assert index.info()["documents"] == {"kept": 1, "removed": 0}
    assert index.add_if_new(NEAR_FOX, id="near").kept


@pytest.mark.parametrize("batch_rows", [1, 2, 100])
def test_replacements_within_a_batch_are_those_of_documents_one_by_one(make, batch_rows):
    rows = [
        ("a", FOX),
        ("b", NEAR_FOX),
        ("a", OTHER),
        ("c", NEAR_FOX),
        ("d", FOX),
        ("b", FOX),
        ("a", FOX),
        ("e", OTHER),
        ("a", FOX),
        ("f", ""),
        ("f", OTHER),
        ("g", NEAR_FOX),
    ]
    index = make()
    answers = pa.concat_tables(
        index.add_many_if_new(table(*rows[start : start + batch_rows]))
        for start in range(0, len(rows), batch_rows)
    )
    expected = make()
    one_by_one = [expected.add_if_new(text, id=id) for id, text in rows]
    assert answers["kept"].to_pylist() == [answer.kept for answer in one_by_one]
    assert answers["kept_id"].to_pylist() == [answer.kept_id for answer in one_by_one]
    assert answers["repeated"].to_pylist() == [answer.repeated for answer in one_by_one]
    assert index.verify() == expected.verify() == []


# Sources.


GIVEN = re.compile(r"#[a-z2-7]{12}-\d+")


def ids_in(index: Index) -> list[str]:
    return [id for part in index.documents() for id in part["id"].to_pylist()]


def test_documents_without_ids_get_ids_of_no_other_document(make):
    index = make()
    ids = [
        *index.add_many_if_new([FOX, OTHER, FOX])["id"].to_pylist(),
        index.add("one more text of its own").id,
    ]
    assert all(map(GIVEN.fullmatch, ids))
    assert ids_in(index) == ids
    assert len(set(ids)) == 4


def numbered_texts(begin: int, end: int) -> list[str]:
    return [
        " ".join(f"text{number}word{place}" for place in range(9)) for number in range(begin, end)
    ]


@pytest.mark.parametrize("taken", ["#0", "#1", "0", "1"])
def test_an_id_that_a_caller_chose_is_never_given_to_another_document(make, taken):
    index = make()
    index.add(OTHER, id=taken)
    index.add_many(numbered_texts(0, 3))
    index.open_import("monday")
    index.stage("monday", numbered_texts(3, 5))
    index.commit_import("monday")
    assert len(index) == 6
    assert index.get(taken).kept


def test_a_new_document_never_takes_the_id_of_one_that_was_copied_by_rebuild(make):
    index = make()
    given = index.add_many(numbered_texts(0, 5))["id"].to_pylist()
    index.remove(given[:2])
    with index.rebuild("memory:", method=index.method) as rebuilt:
        rebuilt.add_many(numbered_texts(5, 8))
        assert len(rebuilt) == 6
        assert all(rebuilt.query(text) for text in numbered_texts(2, 8))


def test_documents_without_ids_of_two_indexes_do_not_replace_each_other_when_they_are_merged(make):
    index = make()
    other = make()
    index.add_many(numbered_texts(0, 3))
    given = other.add_many(numbered_texts(50, 53))["id"].to_pylist()
    assert index.merge(other)["id"].to_pylist() == given
    assert len(index) == 6
    assert index.merge(other)["repeated"].to_pylist() == [True] * 3


def test_a_backup_that_grew_on_its_own_merges_with_the_index(tmp_path):
    with Index.create(tmp_path / "a.index", method=BIGRAMS) as index:
        index.add_many(numbered_texts(0, 3))
        index.backup(tmp_path / "b.index")
        index.add_many(numbered_texts(3, 5))
        with Index.open(tmp_path / "b.index") as other:
            other.add_many(numbered_texts(5, 7))
            index.merge(other)
        assert len(index) == 7


def test_an_index_of_an_earlier_format_is_refused(make):
    index = make()
    index.opened.store.settings.meta["format_version"] = (
        1  # its documents without ids have the numbers of rows
    )
    with pytest.raises(StoreError, match="format neardup-index 2: got neardup-index 1"):
        OpenIndex(index.opened.store)


def test_columns_become_payloads(make):
    index = make()
    documents = pa.table(
        {"id": ["1"], "text": [FOX], "url": ["u"], "year": [2026], "payload": ["p"]}
    )
    index.add_many(documents)
    index.add_many(documents.set_column(0, "id", pa.array(["2"])), payload_column="url")
    index.add_many(documents.set_column(0, "id", pa.array(["3"])), payload_column=["url", "year"])
    assert [index.get(id).payload for id in "123"] == ["p", "u", '{"url": "u", "year": 2026}']
    with pytest.raises(
        ColumnError, match="has no column 'date': it has id, text, url, year, payload"
    ):
        index.add_many(documents, payload_column="date")


def test_files_are_read_and_payloads_taken_from_their_lines(make, tmp_path):
    file = tmp_path / "documents.jsonl"
    rows = [{"id": "a", "text": FOX, "url": "u"}, {"id": "b", "text": OTHER, "url": None}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    index = make()
    answers = index.add_many_if_new(file, payload_column="url", import_name="monday")
    assert answers["id"].to_pylist() == ["a", "b"]
    assert (index.get("a").payload, index.get("b").payload, index.get("a").import_name) == (
        "u",
        None,
        "monday",
    )


def test_a_payload_with_half_a_character_is_stored_with_a_question_mark(make, tmp_path):
    file = tmp_path / "documents.jsonl"
    rows = [
        {"id": "a", "text": FOX, "url": "u\ud800"},
        {"id": "b", "text": OTHER, "url": {"n": "\udc00"}},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    index = make()
    index.add_many(file, payload_column="url")
    assert [index.get(id).payload for id in "ab"] == ["u?", '{"n": "?"}']


def test_web_pages_are_refused_by_an_index_of_texts(make, tmp_path):
    (tmp_path / "page.html").write_text("<p>one</p>")
    with pytest.raises(
        InputError,
        match=r"contains web pages, and this index compares texts\. Create an index with method='co",  # noqa: E501
    ):
        make().add_many(tmp_path / "page.html")


@pytest.fixture
def writes(monkeypatch) -> list[int]:
    """Return a list that gets the number of documents of each change of a store."""
    sizes: list[int] = []

    def counted(write):
        def call(self, parts):
            changes = list(parts)
            sizes.append(
                sum(0 if part.documents is None else len(part.documents) for part in changes)
            )
            write(self, changes)

        return call

    for store in (MemoryStore, EmbeddedStore):
        monkeypatch.setattr(store, "_write_all", counted(store._write_all))
    return sizes


def test_small_files_are_added_with_one_change(make, tmp_path, writes):
    for number in range(40):
        (tmp_path / f"{number:02}.html").write_text(
            f"<p>{' '.join(f'word{number}x{i}' for i in range(40))}</p>"
        )
    answers = make(method="content").add_many_if_new(tmp_path / "*.html")
    assert answers["kept"].to_pylist() == [True] * 40
    assert writes == [40]


def test_documents_before_one_that_cannot_be_read_are_stored(make, tmp_path, writes):
    (tmp_path / "a.jsonl").write_text(json.dumps({"id": "a", "text": FOX}))
    (tmp_path / "b.jsonl").write_text(json.dumps({"id": "b", "text": OTHER}))
    (tmp_path / "c.jsonl").write_text(json.dumps({"id": None, "text": OTHER}))
    index = make()
    with pytest.raises(InputError, match="The id of row 0 is null"):
        index.add_many([tmp_path / f"{name}.jsonl" for name in "abc"])
    assert "a" in index
    assert "b" in index
    assert writes == [2]


def test_batches_with_and_without_ids_are_not_joined(make):
    index = make()
    table_of_ids = table(("a", FOX), ("b", OTHER))
    without_ids = pa.table({"text": ["one two three four five six"]})
    for batch in group_batches(
        [
            batch
            for source in (table_of_ids, without_ids, table_of_ids)
            for batch in batches_of(source, BIGRAMS)
        ],
        lambda batch: batch,
    ):
        index.opened.add(Batch.join(batch))
    assert len(index) == 3


def test_structure_of_pages_is_compared(make):
    index = make(method=neardup.method("structure", threshold=0.8, boost_rare=False))
    page = "<html><body><h1>One</h1><ul>" + "<li><a href=x>y</a></li>" * 20 + "</ul></body></html>"
    index.add_if_new(page, id="one")
    assert index.add_if_new(page.replace("One", "Two"), id="two").kept_id == "one"
