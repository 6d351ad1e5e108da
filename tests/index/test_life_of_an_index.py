"""What becomes of an index: it is rebuilt, merged, staged and forgets; the same over every
store.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pyarrow as pa
import pytest

import neardup
from neardup import Index, MinHash, SimHash
from neardup.errors import InputError, SchemeError, SettingError, StoreError, UnknownImportError
from neardup.index import open_index
from neardup.index.documents import batches_of
from neardup.stores.base import Changes
from neardup.stores.embedded.store import EmbeddedStore
from reference.index_cases import BIGRAMS, FOX, NEAR_FOX, OTHER, table

# Another index of the same documents.


@pytest.mark.parametrize("after", range(4))
def test_an_index_that_is_rebuilt_appears_when_it_is_complete(tmp_path, monkeypatch, after):
    monkeypatch.setattr("neardup.stores.documents._ROWS_PER_SCAN", 20)
    with Index.create(tmp_path / "old.index", method=BIGRAMS) as index:
        index.add_many_if_new(
            [f"{FOX} {' '.join(f'w{number}x{i}' for i in range(20))}" for number in range(50)]
        )
        write = EmbeddedStore._write_all
        written = []

        def failing(self, parts):
            if len(written) == after:
                raise KeyboardInterrupt
            written.append(parts)
            write(self, parts)

        monkeypatch.setattr(EmbeddedStore, "_write_all", failing)
        if after < 3:
            with pytest.raises(KeyboardInterrupt):
                index.rebuild(tmp_path / "new.index", method=index.method)
            assert [path.name for path in tmp_path.iterdir()] == ["old.index"]
            monkeypatch.setattr(EmbeddedStore, "_write_all", write)
        with index.rebuild(tmp_path / "new.index", method=index.method) as rebuilt:
            assert (len(rebuilt), rebuilt.verify(), rebuilt.address) == (
                50,
                [],
                str(tmp_path / "new.index"),
            )
        assert sorted(path.name for path in tmp_path.iterdir()) == ["new.index", "old.index"]
        with pytest.raises(StoreError, match=r"There is something at .*new\.index already"):
            index.rebuild(tmp_path / "new.index", method=index.method)


def test_two_processes_do_not_make_the_same_index(tmp_path):
    index = Index.create("memory:", method=BIGRAMS)
    being_made = Index.create(tmp_path / "new.index.partial")
    with pytest.raises(
        StoreError, match=r"new\.index\.partial is open for writing already, in process"
    ):
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
    assert sorted(row for part in index.documents() for row in part["id"].to_pylist()) == [
        "n6",
        "n7",
        "n8",
        "n9",
    ]
    clock(10)
    assert index.expire(older_than=5.0) == 4
    assert len(index) == 0


@pytest.mark.parametrize("in_a_run", [False, True])
def test_a_kept_document_is_seen_when_its_duplicate_is_sent_again(
    make, clock, monkeypatch, in_a_run
):
    index = make()
    index.add_if_new(FOX, id="fox")
    index.add_if_new(NEAR_FOX, id="near")
    clock(3600)
    again = table(("near", NEAR_FOX))
    if in_a_run:
        monkeypatch.setattr("neardup.engines.index.engine.now", open_index.now)
        assert neardup.dedup(again, against=index, update=True).report["counts"]["repeated"] == 1
    else:
        assert index.add_many_if_new(again)["repeated"].to_pylist() == [True]
    assert index.expire(unseen_for=timedelta(minutes=30)) == 0
    assert index.get("fox").last_seen == index.get("near").last_seen


@pytest.mark.parametrize("age", [-1, "day", True])
def test_what_is_no_age_is_refused(make, age):
    with pytest.raises(
        SettingError, match="An age is a timedelta, or a number of seconds of 0 or more: got"
    ):
        make().expire(older_than=age)


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


@pytest.mark.parametrize("end", ["commit_import", "cancel_import"])
def test_documents_that_come_after_the_end_of_an_import_do_not_open_it_again(make, end):
    index = make()
    index.open_import("crawl")

    def batches() -> Iterator[pa.Table]:
        yield table(("a", FOX), ("b", OTHER))
        getattr(index, end)("crawl")
        yield table(("c", OTHER + " again"))

    staging = (batch for rows in batches() for batch in batches_of(rows, index.method))
    message = (
        "There is no open import 'crawl': got none. It ended after 2 documents of this call were "
        "staged"
    )
    with pytest.raises(UnknownImportError, match=message):
        index.opened.stage("crawl", staging)
    assert index.imports() == []
    assert len(index) == (2 if end == "commit_import" else 0)


@pytest.mark.parametrize("call", ["open_import", "commit_import", "cancel_import"])
def test_an_import_is_looked_up_in_the_change_that_ends_or_opens_it(make, monkeypatch, call):
    index = make()
    is_open = call != "open_import"
    if is_open:
        index.open_import("crawl")
    writing = index.opened.store.writing

    @contextmanager
    def after_another_call():
        """Let another call end or open the import just before the change of this one begins."""
        with writing() as writer:
            if is_open:
                writer.write(Changes(ended_import="crawl"))
            else:
                writer.stage("crawl", 1, None)
        with writing() as writer:
            yield writer

    monkeypatch.setattr(index.opened.store, "writing", after_another_call)
    with pytest.raises(
        InputError, match="There is no open import" if is_open else "is already open"
    ):
        getattr(index, call)("crawl")


def test_a_committed_import_decides_as_if_its_documents_had_just_come(make):
    rows = [(f"d{i}", f"{FOX if i % 2 else OTHER} part {i % 7} of {i % 3}") for i in range(60)]
    plain = make()
    staged = make()
    for index in (plain, staged):
        index.add_many_if_new(table(*rows[:20]))
    expected = plain.add_many_if_new(table(*rows[20:], *rows[5:8], ("d3", OTHER)))
    staged.open_import("r")
    for start in range(20, 60, 7):
        staged.stage("r", table(*rows[start : start + 7]))
    staged.stage("r", table(*rows[5:8], ("d3", OTHER)))
    columns = ["id", "kept", "kept_id", "similarity", "repeated"]
    assert (
        staged.commit_import("r").select(columns).to_pylist()
        == expected.select(columns).to_pylist()
    )
    assert staged.info()["documents"] == plain.info()["documents"]
    assert staged.verify() == []


# The index as a whole.


def test_indexes_merge_by_the_sieve(make):
    left = make()
    right = make()
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


def test_indexes_of_fingerprints_merge(make):
    left, right = (
        make(method=SimHash(confirm="hamming"), storage="fingerprints") for _ in range(2)
    )
    left.add_if_new(FOX, id="a")
    right.add_many_if_new(table(("b", FOX), ("c", OTHER), ("d", "")))
    assert left.merge(right)["kept"].to_pylist() == [False, True, True]
    assert left.query(OTHER)[0].id == "c"
    assert left.add_if_new(OTHER, id="c").repeated
    assert left.query("") == []


def test_an_index_is_rebuilt_with_other_bands_from_its_signatures(make):
    index = make(method=MinHash(threshold=0.6, ngram=2, num_hashes=256))
    rows = [(f"d{i}", f"{FOX if i % 2 else OTHER} part {i % 11} of {i % 3}") for i in range(50)]
    index.add_many_if_new(table(*rows))
    index.remove("d1")
    rebuilt = index.rebuild(
        "memory:", method=MinHash(threshold=0.4, ngram=2, num_bands=64, rows_per_band=2)
    )
    with rebuilt:
        assert rebuilt.info()["documents"] == index.info()["documents"]
        assert rebuilt.verify() == []
        kept = [row for row in rows if row[0] in index and index.get(row[0]).kept]
        assert kept
        assert all(any(hit.id == id for hit in rebuilt.query(text)) for id, text in kept)
        assert len(rebuilt.query(FOX)) >= len(index.query(FOX))
    with pytest.raises(
        SchemeError,
        match=r"The method takes 400 hashes, and the index .* stored 256 of each document",
    ):
        index.rebuild(
            "memory:", method=MinHash(threshold=0.6, ngram=2, num_bands=200, rows_per_band=2)
        )
    with pytest.raises(
        SchemeError, match=r"cannot be compared: the index .* has ngram=2; the method has ngram=3"
    ):
        index.rebuild("memory:", method=MinHash(threshold=0.6, ngram=3))


@pytest.mark.parametrize("storage", ["features", "text"])
def test_an_index_with_fewer_bands_finds_documents_from_before_and_after_the_rebuild(make, storage):
    index = make(storage=storage)
    index.add_if_new(FOX, id="before")
    with index.rebuild("memory:", method=MinHash(threshold=0.4, ngram=2)) as rebuilt:
        rebuilt.add_if_new(OTHER, id="after")
        assert rebuilt.query_many([FOX, OTHER])["id"].to_pylist() == ["before", "after"]
        assert len(rebuilt.get("before").sketch) == len(rebuilt.get("after").sketch)


def test_longer_signatures_than_stored_ones_are_refused(make):
    longer = MinHash(threshold=0.6, ngram=2, num_hashes=512)
    with pytest.raises(SchemeError, match="The method takes 512 hashes, and the index"):
        make().rebuild("memory:", method=longer)


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


@pytest.mark.slow
def test_threads_share_an_index(make):
    index = make()
    rows = [(f"d{i}", f"{FOX if i % 2 else OTHER} part {i % 11} of {i % 3}") for i in range(120)]
    answers = []
    failures = []

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
