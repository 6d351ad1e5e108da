"""Tables of document frequencies are saved, versioned, and bound to their features."""

from __future__ import annotations

import functools
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import neardup
from neardup import IdfTable, SimHash
from neardup.errors import InputError, SchemeError, SettingError
from neardup.features.idf import inverse_frequencies, name_callable
from neardup.lsh import keywords
from reference import simhash as reference

METHOD = SimHash()


def as_dict(table: IdfTable) -> dict[int, int]:
    return dict(zip(table.hashes.tolist(), table.counts.tolist(), strict=True))


def test_idf_is_the_logarithm_of_all_by_those_with_the_feature_and_one_more():
    values = inverse_frequencies(np.array([0, 1, 9, 49, 98, 99, 100]), 100)
    assert values[:4].tolist() == pytest.approx(
        [math.log(100 / (df + 1)) for df in (0, 1, 9, 49)], abs=1e-9
    )
    # log(100 / 99) = 0.01005; log(100 / 100) = 0; log(100 / 101) < 0: no feature weighs less than
    # 0.01.
    assert values[4:].tolist() == pytest.approx([math.log(100 / 99), 0.01, 0.01], abs=1e-9)
    assert (values * 2**32 == np.rint(values * 2**32)).all()


def test_a_saved_table_is_the_same_when_opened(tmp_path):
    table = IdfTable.from_counts({"a b": 1, "b c": 2}, num_documents=3, method=SimHash(ngram=2))
    table.save(tmp_path / "idf.parquet")
    again = IdfTable.open(tmp_path / "idf.parquet")
    assert as_dict(again) == as_dict(table)
    assert (again.num_documents, again.scheme, again.max_undercount) == (3, table.scheme, 0)
    assert again.version == table.version
    assert [file.name for file in tmp_path.iterdir()] == ["idf.parquet"]


def test_the_version_changes_with_any_count_or_the_number_of_documents():
    words = {"a": 1, "b": 2}
    tables = [
        IdfTable.from_counts(words, num_documents=3),
        IdfTable.from_counts(words, num_documents=4),
        IdfTable.from_counts({"a": 1, "b": 3}, num_documents=3),
        IdfTable.from_counts({"a": 1, "c": 2}, num_documents=3),
        IdfTable.from_counts(words, num_documents=3, method=SimHash(ngram=2)),
    ]
    assert len({table.version for table in tables}) == 5
    assert all(len(table.version) == 12 for table in tables)
    assert IdfTable.from_counts({"b": 2, "a": 1}, num_documents=3).version == tables[0].version


@pytest.mark.parametrize("damage", ["missing", "text", "other", "later", "changed", "list"])
def test_what_is_no_table_is_refused_with_its_name(tmp_path, damage):
    path = tmp_path / "idf.parquet"
    IdfTable.from_counts({"a": 1, "b": 2}, num_documents=3).save(path)
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[b"neardup"])
    if damage == "missing":
        path.unlink()
    elif damage == "text":
        path.write_text("word,1\n")
    elif damage == "other":
        pq.write_table(table.replace_schema_metadata(None), path)
    elif damage == "later":
        pq.write_table(
            table.replace_schema_metadata({"neardup": json.dumps(about | {"format_version": 2})}),
            path,
        )
    elif damage == "list":
        pq.write_table(table.replace_schema_metadata({"neardup": "[]"}), path)
    else:
        changed = table.set_column(
            1, table.schema.field(1), pa.array([7] * len(table), pa.uint32())
        )
        pq.write_table(changed, path)
    with pytest.raises(
        InputError, match=r"idf\.parquet is not a table of document frequencies .* Create one with"
    ):
        IdfTable.open(path)


@pytest.mark.parametrize(
    "method",
    [SimHash(ngram=2), SimHash(tokens="chars"), SimHash(nfkc=False), SimHash(tokens=str.split)],
)
def test_a_table_of_other_features_is_refused_and_both_are_named(method):
    table = IdfTable.from_counts({"a": 1}, num_documents=2)
    table.require(SimHash(bits=128, hash="md5", weights="tfidf"))
    name = next(
        name
        for name in ("ngram", "tokens", "nfkc")
        if getattr(method, name) != getattr(METHOD, name)
    )
    with pytest.raises(
        SchemeError, match=rf"it has {name}=.*, the method {name}=.*Use a table made with"
    ):
        table.require(method)


def test_words_that_become_one_feature_are_added_up_and_others_are_nothing():
    table = IdfTable.from_counts({"The": 3, "the": 4, "ＴＨＥ": 9, "...": 1}, num_documents=10)
    assert as_dict(table) == {reference.features_of("the")[0]: 10}


def test_words_of_a_callable_are_taken_as_they_are():
    table = IdfTable.from_counts(
        {"New York": 3}, num_documents=9, method=SimHash(tokens=lambda text: text.split(","))
    )
    assert len(table.hashes) == 1


@pytest.mark.parametrize(
    ("counts", "message"),
    [
        (
            {"a": -1},
            r"must be a whole number from 0 to num_documents=5: got -1 for 'a'\. Count each",
        ),
        ({"a": 6}, r"must be a whole number from 0 to num_documents=5: got 6 for 'a'\. Count each"),
        (
            {"a": 1.5},
            r"must be a whole number from 0 to num_documents=5: got 1\.5 for 'a'\. Count each",
        ),
        ({"a": True}, r"must be a whole number .* got True for 'a'"),
        ({"a": "1"}, r"must be a whole number .* got '1' for 'a'"),
        ({5: 1}, r"^A word of counts must be a string: got int 5"),
        (["a"], r"^counts maps words to document counts: got list \['a'\]"),
        (
            {"a": 1, "New York": 2},
            r"must be one feature: got 'New York', which is several .* Leave it out",
        ),
    ],
)
def test_counts_that_cannot_be_are_refused(counts, message):
    with pytest.raises(InputError, match=message):
        IdfTable.from_counts(counts, num_documents=5)


@pytest.mark.parametrize("count", [2**32, 5 * 10**9, 2**80])
def test_a_count_beyond_32_bits_is_the_largest(count):
    table = IdfTable.from_counts({"the": count, "THE": 1, "a": 7}, num_documents=2**80)
    assert sorted(table.counts.tolist()) == [7, 2**32 - 1]
    assert table.lookup(table.hashes).max() == pytest.approx(math.log(2**80 / 8))


def test_a_wrapped_lambda_has_its_line():
    tokens = functools.cache(lambda text: text.split())
    name = name_callable(tokens)
    assert name.endswith(f"<lambda>:{tokens.__wrapped__.__code__.co_firstlineno}")
    assert neardup.sign(["a b"], method=SimHash(tokens=tokens)).scheme["features"]["tokens"] == name


@pytest.mark.parametrize("num_documents", [-1, 1.5, "5", None, True])
def test_the_number_of_documents_is_a_whole_number(num_documents):
    with pytest.raises(
        SettingError, match=r"^num_documents must be a whole number of 0 or more: got "
    ):
        IdfTable.from_counts({}, num_documents=num_documents)


def test_keywords_are_cut_as_the_table_was():
    table = neardup.document_frequencies(
        ["the cat sat", "the dog sat", "a bird"], method=SimHash(tokens="whitespace", ngram=2)
    )
    assert {word for word, _ in keywords("the cat sat", table)} == {"the cat", "cat sat"}
    assert keywords("the cat sat", table) == keywords(
        "the cat sat", table, method=SimHash(tokens="whitespace", ngram=2)
    )
