"""What an index refuses, and the settings and tables that it stores; the same over every store."""

from __future__ import annotations

import dataclasses

import numpy as np
import pyarrow as pa
import pytest

import neardup
from neardup import Index, MinHash, SimHash
from neardup.errors import InputError, SchemeError, SettingError, StoreError
from reference.index_cases import BIGRAMS, FOX, OTHER

# What is refused.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"storage": "fingerprints"},
            "storage='fingerprints' requires SimHash\\(confirm='hamming'\\)",
        ),
        (
            {"method": MinHash(tokens=str.split)},
            "An index stores its settings, and tokens is a Python function",
        ),
        (
            {"method": SimHash(weights="tfidf")},
            r"the index needs the table of these counts: got none\. Count",
        ),
        (
            {"method": "minhash", "max_distance": 3},
            "max_distance does not go with method='minhash'",
        ),
        (
            {"storage": "all"},
            "storage must be one of 'fingerprints', 'features', 'text': got 'all'",
        ),
        ({"max_bucket_size": 0}, "max_bucket_size must be a whole number of 1 or more"),
    ],
)
def test_what_an_index_cannot_store_is_refused(make, options, message):
    with pytest.raises(SettingError, match=message):
        make(**options)


@pytest.mark.parametrize(
    "call",
    [
        lambda index: index.add_if_new(None),
        lambda index: index.add_if_new(FOX, id=7),
        lambda index: index.query(["a"]),
        lambda index: index.add_if_new(FOX, payload={}),
        lambda index: index.add_if_new("\ud800"),
    ],
    ids=["null", "numeric id", "list", "payload", "lone surrogate"],
)
def test_what_is_no_document_is_refused(make, call):
    index = make()
    with pytest.raises(InputError):
        call(index)
    assert len(index) == 0


def test_a_limit_of_none_and_a_null_id_are_refused(make):
    index = make()
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
    with (
        Index.open(tmp_path / "a.index", read_only=True) as index,
        pytest.raises(StoreError, match="read"),
    ):
        index.add_if_new(FOX)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda index: index.add_many([FOX], threads=0),
            r"threads must be a whole number of 1 or more: got 0\.",
        ),
        (
            lambda index: index.expire(max_documents=float("nan")),
            r"max_documents must be .* 0 or more: got nan",
        ),
        (
            lambda index: index.growth(points=-1),
            r"points must be a whole number of 1 or more: got -1\.",
        ),
    ],
    ids=["threads", "max_documents", "points"],
)
def test_numbers_out_of_their_range_are_refused(make, call, message):
    index = make()
    with pytest.raises(SettingError, match=message):
        call(index)
    assert len(index) == 0


@pytest.mark.parametrize("name", ["", 5])
def test_what_is_no_name_of_an_import_is_refused(make, name):
    index = make()
    with pytest.raises(InputError, match=r"The name of an import must"):
        index.add_many([FOX], import_name=name)
    assert len(index) == 0


def test_an_id_that_is_no_unicode_text_is_in_no_index(make):
    assert "\ud800" not in make()


def test_an_id_may_be_a_scalar_of_numpy(make):
    index = make()
    index.add(FOX, id="a")
    assert index.remove(np.array("a")) == 1


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
        assert (told["documents"], told["version"], told["scheme"]["ngram"]) == (
            21,
            table_of.version,
            1,
        )
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
    empty = dataclasses.replace(
        fitting, num_documents=0, hashes=fitting.hashes[:0], counts=fitting.counts[:0]
    )
    options = (
        f"--tokens {fitting.scheme['tokens']} --ngram {fitting.scheme['ngram']} -o idf.parquet"
    )
    for table, message in ((None, "got none"), (empty, r"got IdfTable\(0 documents, 0 features\)")):
        command = rf"`neardup document-frequencies INPUT\.\.\. {options}`"
        with pytest.raises(SettingError, match=rf"{message}\. Count documents by {command}"):
            make(method=method, idf=table)
    for other in (MinHash(ngram=7), MinHash(tokens="chars", ngram=2)):
        with pytest.raises(
            SchemeError,
            match=r"counts other features: it has .*, the method .*neardup document-frequencies",
        ):
            make(method=method, idf=neardup.document_frequencies(pages, method=other))
    index = make(method=method, idf=fitting)
    assert index.info()["idf"] == fitting.describe()
    expected = neardup.dedup(pages, method=method)
    assert index.add_many_if_new(pages)["kept"].to_pylist() == expected.mask.tolist()


def test_a_table_that_the_method_does_not_use_is_refused(make):
    table = neardup.document_frequencies([FOX], method=BIGRAMS)
    with pytest.raises(
        SettingError, match=r"got IdfTable\(1 documents, .* for MinHash, which weighs all alike"
    ):
        make(method=BIGRAMS, idf=table)


def test_indexes_with_two_tables_are_not_merged(make):
    method = WEIGHING["boost_rare"]
    tables = [neardup.document_frequencies([text], method=method) for text in (FOX, OTHER)]
    indexes = [make(method=method, idf=table) for table in tables]
    with pytest.raises(
        SchemeError, match="weighs features by another table of document frequencies"
    ):
        indexes[0].merge(indexes[1])


def test_settings_of_jieba_are_stored(tmp_path):
    pytest.importorskip("rjieba")
    method = MinHash(
        tokens=neardup.Jieba(mode="search", words=("近似去重",)), ngram=1, threshold=0.5
    )
    Index.create(tmp_path / "a.index", method=method).close()
    with Index.open(tmp_path / "a.index", method=method) as index:
        assert index.method.tokens == method.tokens
        index.add_if_new("海量文本近似去重的方法与实践", id="a")
        assert index.add_if_new("海量文本近似去重的方法和实践", id="b").kept_id == "a"
