"""An index: what is added, asked, forgotten, staged, merged, and what is refused; the same over every store."""

from __future__ import annotations

import dataclasses
import json
import re
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import count

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup import Index, MinHash, SimHash
from neardup.errors import ColumnError, InputError, SchemeError, SettingError, StoreError
from neardup.index.documents import batches_of, group_batches
from neardup.index.open_index import Batch, OpenIndex
from neardup.stores.embedded.store import EmbeddedStore
from neardup.stores.memory import MemoryStore

FOX = "the quick brown fox jumps over the lazy dog near the river bank"
NEAR_FOX = "The quick brown fox jumps over the lazy dog near the river bank today!"
OTHER = "an entirely different sentence about databases and their journals"
BIGRAMS = MinHash(threshold=0.6, ngram=2)

Make = Callable[..., Index]


@pytest.fixture(params=["memory", "folder"])
def make(request, tmp_path) -> Iterator[Make]:
    """Return a function that makes an empty index in a store of each kind."""
    opened, numbers = [], count()

    def make_index(**options) -> Index:
        address = "memory:" if request.param == "memory" else tmp_path / f"{next(numbers)}.index"
        opened.append(Index.create(address, **{"method": BIGRAMS, **options}))
        return opened[-1]

    yield make_index
    for index in opened:
        index.close()


@pytest.fixture
def clock(monkeypatch) -> Callable[[float], None]:
    """Return a function that moves the clock of indexes by seconds."""
    now = [1_800_000_000_000_000]
    for module in ("neardup.api.index", "neardup.index.open_index"):
        monkeypatch.setattr(f"{module}.now", lambda: now[0])

    def move(seconds: float) -> None:
        now[0] += int(seconds * 1_000_000)

    return move


def table(*rows: tuple[str, str]) -> pa.Table:
    return pa.table({"id": [id for id, _ in rows], "text": [text for _, text in rows]})


# Answers.


def test_an_answer_names_the_kept_document_its_similarity_times_and_payload(make, clock):
    index = make()
    first = index.add_if_new(FOX, id="fox", payload="https://example.org/fox")
    assert (first.id, first.kept, first.kept_id, first.similarity, first.repeated) == ("fox", True, None, None, False)
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
    assert [index.add_if_new(text, id=text or "empty").kept for text in ("", "...", "!")] == [True] * 3
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
    whole, broken = make(), make()
    expected = whole.add_many_if_new(table(*rows))
    broken.add_many_if_new(table(*rows[:23]))
    found = broken.add_many_if_new(table(*rows))
    assert found.select(["id", "kept", "kept_id"]).equals(expected.select(["id", "kept", "kept_id"]))
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
        index.add_many_if_new(table(*rows[start : start + batch_rows])) for start in range(0, len(rows), batch_rows)
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
    ids = [*index.add_many_if_new([FOX, OTHER, FOX])["id"].to_pylist(), index.add("one more text of its own").id]
    assert all(map(GIVEN.fullmatch, ids))
    assert ids_in(index) == ids
    assert len(set(ids)) == 4


def numbered_texts(begin: int, end: int) -> list[str]:
    return [" ".join(f"text{number}word{place}" for place in range(9)) for number in range(begin, end)]


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
    index, other = make(), make()
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
    index.opened.store.settings.meta["format_version"] = 1  # its documents without ids have the numbers of rows
    with pytest.raises(StoreError, match="format neardup-index 2: got neardup-index 1"):
        OpenIndex(index.opened.store)


def test_columns_become_payloads(make):
    index = make()
    documents = pa.table({"id": ["1"], "text": [FOX], "url": ["u"], "year": [2026], "payload": ["p"]})
    index.add_many(documents)
    index.add_many(documents.set_column(0, "id", pa.array(["2"])), payload_column="url")
    index.add_many(documents.set_column(0, "id", pa.array(["3"])), payload_column=["url", "year"])
    assert [index.get(id).payload for id in "123"] == ["p", "u", '{"url": "u", "year": 2026}']
    with pytest.raises(ColumnError, match="has no column 'date': it has id, text, url, year, payload"):
        index.add_many(documents, payload_column="date")


def test_files_are_read_and_payloads_taken_from_their_lines(make, tmp_path):
    file = tmp_path / "documents.jsonl"
    rows = [{"id": "a", "text": FOX, "url": "u"}, {"id": "b", "text": OTHER, "url": None}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    index = make()
    answers = index.add_many_if_new(file, payload_column="url", import_name="monday")
    assert answers["id"].to_pylist() == ["a", "b"]
    assert (index.get("a").payload, index.get("b").payload, index.get("a").import_name) == ("u", None, "monday")


def test_web_pages_are_refused_by_an_index_of_texts(make, tmp_path):
    (tmp_path / "page.html").write_text("<p>one</p>")
    with pytest.raises(
        InputError, match=r"contains web pages, and this index compares texts\. Create an index with method='co"
    ):
        make().add_many(tmp_path / "page.html")


@pytest.fixture
def writes(monkeypatch) -> list[int]:
    """Return a list that gets the number of documents of each change of a store."""
    sizes: list[int] = []

    def counted(write):
        def call(self, changes):
            sizes.append(0 if changes.documents is None else len(changes.documents))
            write(self, changes)

        return call

    for store in (MemoryStore, EmbeddedStore):
        monkeypatch.setattr(store, "_write", counted(store._write))
    return sizes


def test_small_files_are_added_with_one_change(make, tmp_path, writes):
    for number in range(40):
        (tmp_path / f"{number:02}.html").write_text(f"<p>{' '.join(f'word{number}x{i}' for i in range(40))}</p>")
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
    table_of_ids, without_ids = table(("a", FOX), ("b", OTHER)), pa.table({"text": ["one two three four five six"]})
    for batch in group_batches(
        [batch for source in (table_of_ids, without_ids, table_of_ids) for batch in batches_of(source, BIGRAMS)],
        lambda batch: batch,
    ):
        index.opened.add(Batch.join(batch))
    assert len(index) == 3


def test_structure_of_pages_is_compared(make):
    index = make(method=neardup.method("structure", threshold=0.8, boost_rare=False))
    page = "<html><body><h1>One</h1><ul>" + "<li><a href=x>y</a></li>" * 20 + "</ul></body></html>"
    index.add_if_new(page, id="one")
    assert index.add_if_new(page.replace("One", "Two"), id="two").kept_id == "one"


# Another index of the same documents.


@pytest.mark.parametrize("after", range(4))
def test_an_index_that_is_rebuilt_appears_when_it_is_complete(tmp_path, monkeypatch, after):
    monkeypatch.setattr("neardup.stores.documents._ROWS_A_SCAN", 20)
    with Index.create(tmp_path / "old.index", method=BIGRAMS) as index:
        index.add_many_if_new([f"{FOX} {' '.join(f'w{number}x{i}' for i in range(20))}" for number in range(50)])
        write, written = EmbeddedStore._write, []

        def failing(self, changes):
            if len(written) == after:
                raise KeyboardInterrupt
            written.append(changes)
            write(self, changes)

        monkeypatch.setattr(EmbeddedStore, "_write", failing)
        if after < 3:
            with pytest.raises(KeyboardInterrupt):
                index.rebuild(tmp_path / "new.index", method=index.method)
            assert [path.name for path in tmp_path.iterdir()] == ["old.index"]
            monkeypatch.setattr(EmbeddedStore, "_write", write)
        with index.rebuild(tmp_path / "new.index", method=index.method) as rebuilt:
            assert (len(rebuilt), rebuilt.verify(), rebuilt.address) == (50, [], str(tmp_path / "new.index"))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["new.index", "old.index"]
        with pytest.raises(StoreError, match=r"There is something at .*new\.index already"):
            index.rebuild(tmp_path / "new.index", method=index.method)


def test_two_processes_do_not_make_the_same_index(tmp_path):
    index = Index.create("memory:", method=BIGRAMS)
    being_made = Index.create(tmp_path / "new.index.partial")
    with pytest.raises(StoreError, match=r"new\.index\.partial is open for writing already, in process"):
        index.rebuild(tmp_path / "new.index", method=index.method)
    being_made.close()


# Forgetting.


def test_a_document_is_not_seen_before_it_was_added_although_the_clock_is_set_back(make, clock):
    index = make()
    index.add_if_new(FOX, id="fox")
    clock(3600)
    index.add_if_new(OTHER, id="other")
    clock(-7200)
    for text, id in ((NEAR_FOX, "near"), (OTHER, "other"), (FOX, "fox"), (NEAR_FOX, "near")):
        index.add_if_new(text, id=id)
    for id in ("fox", "near", "other"):
        found = index.get(id)
        assert found.last_seen >= found.first_seen


def test_removed_documents_are_found_no_more(make):
    index = make()
    index.add_many_if_new(table(("a", FOX), ("b", NEAR_FOX), ("c", OTHER)))
    assert index.remove(["a", "nothing"]) == 1
    assert index.query(FOX) == []
    assert "a" not in index
    assert index.get("b").kept_id == "a"
    repeated = index.add_if_new(NEAR_FOX, id="b")
    assert (repeated.kept, repeated.kept_id, repeated.first_seen) == (False, "a", None)
    assert index.add_if_new(NEAR_FOX, id="d").kept, "its remover is gone"
    assert index.add_if_new(NEAR_FOX, id="e").kept_id == "d"
    assert index.verify() == []


def test_all_that_an_import_brought_can_be_removed(make):
    index = make()
    index.add_many_if_new(table(("a", FOX)), import_name="monday")
    index.add_many_if_new(table(("b", NEAR_FOX), ("c", OTHER)), import_name="tuesday")
    assert index.remove_import("tuesday") == 2
    assert index.remove_import("tuesday") == 0
    assert [id in index for id in "abc"] == [True, False, False]


def test_documents_expire_by_age_by_last_hit_and_by_number(make, clock):
    index = make()
    index.add_if_new(FOX, id="fox")
    clock(3600)
    index.add_if_new(OTHER, id="other")
    clock(3600)
    assert not index.add_if_new(NEAR_FOX, id="near").kept
    clock(60)
    assert index.expire(unseen_for=timedelta(minutes=30)) == 1
    assert ["fox" in index, "other" in index] == [True, False]
    index.add_many(table(*((f"n{i}", f"text number {i} of many others") for i in range(10))))
    assert index.expire(max_documents=4) == 8
    assert sorted(row for part in index.documents() for row in part["id"].to_pylist()) == ["n6", "n7", "n8", "n9"]
    clock(10)
    assert index.expire(older_than=5.0) == 4
    assert len(index) == 0
    for age in (-1, "day", True):
        with pytest.raises(SettingError, match="An age is a timedelta, or a number of seconds of 0 or more: got"):
            index.expire(older_than=age)


# Runs.


def test_an_import_is_staged_unseen_and_committed_at_once(make):
    index = make()
    index.add_if_new(FOX, id="fox")
    index.open_import("crawl")
    assert index.stage("crawl", table(("a", NEAR_FOX), ("b", OTHER))) == 2
    assert index.stage("crawl", table(("c", OTHER + " again"), ("fox", FOX))) == 2
    assert index.query(OTHER) == []
    assert [(staged.name, staged.num_documents) for staged in index.imports()] == [("crawl", 4)]
    answers = index.commit_import("crawl")
    assert answers["kept"].to_pylist() == [False, True, False, True]
    assert answers["kept_id"].to_pylist() == ["fox", None, "b", None]
    assert answers["repeated"].to_pylist() == [False, False, False, True]
    assert index.imports() == []
    assert index.get("b").import_name == "crawl"
    assert index.verify() == []


def test_a_cancelled_import_leaves_nothing(make):
    index = make()
    index.open_import("crawl")
    index.stage("crawl", table(("a", FOX)))
    index.cancel_import("crawl")
    assert (len(index), index.imports()) == (0, [])
    with pytest.raises(InputError, match="There is no open import 'crawl': got none"):
        index.commit_import("crawl")
    index.open_import("crawl")
    with pytest.raises(InputError, match="The import 'crawl' is already open"):
        index.open_import("crawl")
    index.stage("crawl", table(("a", FOX)))
    assert index.commit_import("crawl")["kept"].to_pylist() == [True]


def test_a_committed_import_decides_as_if_its_documents_had_just_come(make):
    rows = [(f"d{i}", f"{FOX if i % 2 else OTHER} part {i % 7} of {i % 3}") for i in range(60)]
    plain, staged = make(), make()
    for index in (plain, staged):
        index.add_many_if_new(table(*rows[:20]))
    expected = plain.add_many_if_new(table(*rows[20:], *rows[5:8], ("d3", OTHER)))
    staged.open_import("r")
    for start in range(20, 60, 7):
        staged.stage("r", table(*rows[start : start + 7]))
    staged.stage("r", table(*rows[5:8], ("d3", OTHER)))
    columns = ["id", "kept", "kept_id", "similarity", "repeated"]
    assert staged.commit_import("r").select(columns).to_pylist() == expected.select(columns).to_pylist()
    assert staged.info()["documents"] == plain.info()["documents"]
    assert staged.verify() == []


# The index as a whole.


def test_indexes_merge_by_the_sieve(make):
    left, right = make(), make()
    left.add_many_if_new(table(("a", FOX)))
    right.add_many_if_new(table(("b", NEAR_FOX), ("c", OTHER), ("d", OTHER)))
    answers = left.merge(right)
    assert answers.select(["id", "kept", "kept_id"]).to_pylist() == [
        {"id": "b", "kept": False, "kept_id": "a"},
        {"id": "c", "kept": True, "kept_id": None},
    ]
    assert left.query(OTHER)[0].id == "c"
    with pytest.raises(SchemeError, match=r"was created with .*ngram=5.*: got .*ngram=2"):
        left.merge(make(method=MinHash()))


def test_an_index_is_rebuilt_with_other_bands_from_its_signatures(make):
    index = make(method=MinHash(threshold=0.6, ngram=2, num_hashes=256))
    rows = [(f"d{i}", f"{FOX if i % 2 else OTHER} part {i % 11} of {i % 3}") for i in range(50)]
    index.add_many_if_new(table(*rows))
    index.remove("d1")
    rebuilt = index.rebuild("memory:", method=MinHash(threshold=0.4, ngram=2, num_bands=64, rows_per_band=2))
    with rebuilt:
        assert rebuilt.info()["documents"] == index.info()["documents"]
        assert rebuilt.verify() == []
        kept = [row for row in rows if row[0] in index and index.get(row[0]).kept]
        assert kept
        assert all(any(hit.id == id for hit in rebuilt.query(text)) for id, text in kept)
        assert len(rebuilt.query(FOX)) >= len(index.query(FOX))
    with pytest.raises(SchemeError, match=r"The bands take 400 hashes, and the index .* stored 256 of each document"):
        index.rebuild("memory:", method=MinHash(threshold=0.6, ngram=2, num_bands=200, rows_per_band=2))
    with pytest.raises(SchemeError, match=r"cannot be compared: the index .* has ngram=2; the method has ngram=3"):
        index.rebuild("memory:", method=MinHash(threshold=0.6, ngram=3))


def test_texts_are_stored_if_asked(make):
    index = make(storage="text")
    index.add_many_if_new(table(("a", FOX + " £€"), ("b", FOX + " £€")))
    assert (index.get("a").text, index.get("b").text) == (FOX + " £€", None)
    assert [part.select(["id", "text", "kept"]).to_pylist() for part in index.documents()] == [
        [{"id": "a", "text": FOX + " £€", "kept": True}, {"id": "b", "text": None, "kept": False}]
    ]


def test_info_tells_counts_bytes_and_settings(make):
    index = make()
    index.add_many_if_new(table(("a", FOX), ("b", NEAR_FOX)))
    info = index.info()
    assert info["documents"] == {"kept": 1, "removed": 1}
    assert info["method"]["ngram"] == 2
    assert info["bytes"] > 0
    assert info["promise"].endswith(".")


def test_threads_share_an_index(make):
    index = make()
    rows = [(f"d{i}", f"{FOX if i % 2 else OTHER} part {i % 11} of {i % 3}") for i in range(120)]
    answers, failures = [], []

    def add(part):
        try:
            answers.extend(index.add_if_new(text, id=id) for id, text in part)
        except Exception as error:
            failures.append(error)

    def ask():
        try:
            for _, text in rows:
                index.query(text)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=add, args=(rows[start::4],)) for start in range(4)]
    threads += [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(answers) == len(rows)
    kept = {answer.id for answer in answers if answer.kept}
    assert all(answer.kept_id in kept for answer in answers if not answer.kept)
    assert index.info()["documents"] == {"kept": len(kept), "removed": len(rows) - len(kept)}
    assert index.verify() == []


# What is refused.


def test_what_an_index_cannot_store_is_refused(make):
    for options, message in (
        ({"storage": "fingerprints"}, "storage='fingerprints' requires SimHash\\(confirm='hamming'\\)"),
        ({"method": MinHash(tokens=str.split)}, "An index stores its settings, and tokens is a Python function"),
        ({"method": SimHash(weights="tfidf")}, r"the index needs the table of these counts: got none\. Count"),
        ({"method": "minhash", "max_distance": 3}, "max_distance does not go with method='minhash'"),
        ({"storage": "all"}, "storage must be one of 'fingerprints', 'features', 'text': got 'all'"),
        ({"max_bucket_size": 0}, "max_bucket_size must be a whole number of 1 or more"),
    ):
        with pytest.raises(SettingError, match=message):
            make(**options)


def test_what_is_no_document_is_refused(make):
    index = make()
    for call in (
        lambda: index.add_if_new(None),
        lambda: index.add_if_new(FOX, id=7),
        lambda: index.query(["a"]),
        lambda: index.add_if_new(FOX, payload={}),
        lambda: index.add_if_new("\ud800"),
    ):
        with pytest.raises(InputError):
            call()
    with pytest.raises(SettingError, match="limit must be a whole number of 1 or more: got 0"):
        index.query(FOX, limit=0)
    with pytest.raises(InputError, match="The id of row 1 is null"):
        index.add_many(pa.table({"id": ["a", None], "text": [FOX, OTHER]}))
    assert len(index) == 0


def test_an_index_of_other_settings_is_refused_and_both_are_named(tmp_path):
    Index.create(tmp_path / "a.index", method=BIGRAMS).close()
    with pytest.raises(StoreError, match=r"There is something at .*a.index already"):
        Index.create(tmp_path / "a.index")
    with pytest.raises(SchemeError, match=r"was created with ngram=2: got ngram=3"):
        Index.open(tmp_path / "a.index", method=MinHash(threshold=0.6, ngram=3))
    with Index.open(tmp_path / "a.index", method=BIGRAMS) as index:
        assert index.method.threshold == 0.6
    with pytest.raises(StoreError, match=r"none\.index"):
        Index.open(tmp_path / "none.index")
    with Index.open(tmp_path / "a.index", read_only=True) as index, pytest.raises(StoreError, match="read"):
        index.add_if_new(FOX)


def test_document_frequencies_are_stored_with_the_index(tmp_path):
    documents = [f"{FOX} {i}" for i in range(20)] + [OTHER]
    method = SimHash(weights="tfidf")
    table_of = neardup.document_frequencies(documents, method=method)
    table_of.save(tmp_path / "idf.parquet")
    Index.create(tmp_path / "a.index", method=method, idf=tmp_path / "idf.parquet").close()
    (tmp_path / "idf.parquet").unlink()
    with Index.open(tmp_path / "a.index") as index:
        assert index.method.idf.version == table_of.version
        told = index.info()["idf"]
        assert (told["documents"], told["version"], told["scheme"]["ngram"]) == (21, table_of.version, 1)
        index.add_if_new(OTHER, id="o")
        assert index.query(OTHER)[0].id == "o"


WEIGHING = {
    "boost_rare": MinHash(boost_rare=True, ngram=2),
    "structure": neardup.method("structure"),
    "page": neardup.method("page"),
    "tfidf": SimHash(weights="tfidf", ngram=2),
}


@pytest.mark.parametrize("method", WEIGHING.values(), ids=WEIGHING)
def test_a_table_of_other_features_or_none_is_refused(make, method):
    pages = [f"<html><body><div><p class=c{i}>{FOX} {i}</p></div></body></html>" for i in range(20)]
    fitting = neardup.document_frequencies(pages, method=method)
    empty = dataclasses.replace(fitting, num_documents=0, hashes=fitting.hashes[:0], counts=fitting.counts[:0])
    options = f"--tokens {fitting.scheme['tokens']} --ngram {fitting.scheme['ngram']} -o idf.parquet"
    for table, message in ((None, "got none"), (empty, r"got IdfTable\(0 documents, 0 features\)")):
        command = rf"`neardup document-frequencies INPUT\.\.\. {options}`"
        with pytest.raises(SettingError, match=rf"{message}\. Count documents by {command}"):
            make(method=method, idf=table)
    for other in (MinHash(ngram=7), MinHash(tokens="chars", ngram=2)):
        with pytest.raises(
            SchemeError, match=r"counts other features: it has .*, the method .*neardup document-frequencies"
        ):
            make(method=method, idf=neardup.document_frequencies(pages, method=other))
    index = make(method=method, idf=fitting)
    assert index.info()["idf"] == fitting.describe()
    expected = neardup.dedup(pages, method=method)
    assert index.add_many_if_new(pages)["kept"].to_pylist() == expected.mask.tolist()


def test_a_table_that_the_method_does_not_use_is_refused(make):
    table = neardup.document_frequencies([FOX], method=BIGRAMS)
    with pytest.raises(SettingError, match=r"got IdfTable\(1 documents, .* for MinHash, which weighs all alike"):
        make(method=BIGRAMS, idf=table)


def test_indexes_with_two_tables_are_not_merged(make):
    method = WEIGHING["boost_rare"]
    tables = [neardup.document_frequencies([text], method=method) for text in (FOX, OTHER)]
    indexes = [make(method=method, idf=table) for table in tables]
    with pytest.raises(SchemeError, match="weighs features by another table of document frequencies"):
        indexes[0].merge(indexes[1])


def test_settings_of_jieba_are_stored(tmp_path):
    pytest.importorskip("rjieba")
    method = MinHash(tokens=neardup.Jieba(mode="search", words=("近似去重",)), ngram=1, threshold=0.5)
    Index.create(tmp_path / "a.index", method=method).close()
    with Index.open(tmp_path / "a.index", method=method) as index:
        assert index.method.tokens == method.tokens
        index.add_if_new("海量文本近似去重的方法与实践", id="a")
        assert index.add_if_new("海量文本近似去重的方法和实践", id="b").kept_id == "a"
