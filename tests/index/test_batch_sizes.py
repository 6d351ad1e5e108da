"""Answers and stored documents do not depend on the sizes of batches: one document or many, from a
list or a table.
"""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from neardup import Index, MinHash, SimHash
from reference.index_cases import Make, make_texts, table

METHODS = {
    "jaccard": {"method": MinHash(threshold=0.6, ngram=2)},
    "crowded": {"method": MinHash(threshold=0.5, ngram=1), "max_bucket_size": 2},
    "containment": {"method": MinHash(threshold=0.7, ngram=2, similarity="containment")},
    "texts": {"method": MinHash(threshold=0.6, ngram=2), "storage": "text"},
    "fingerprints": {
        "method": SimHash(confirm="hamming", max_distance=10, ngram=2),
        "storage": "fingerprints",
    },
    "simhash": {"method": SimHash(max_distance=10, ngram=2)},
}


def rows_of(index: Index) -> list[dict]:
    return [row for part in index.documents() for row in part.to_pylist()]


def without_sketches(rows: list[dict]) -> list[dict]:
    return [{name: value for name, value in row.items() if name != "sketch"} for row in rows]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", METHODS)
def test_one_by_one_and_in_any_batches_answers_and_documents_are_equal(
    name: str, seed: int, make: Make, clock
) -> None:
    draw = random.Random(seed)
    texts = make_texts(seed, 36)
    ids = [f"d{draw.randrange(30)}" for _ in texts]
    payloads = [draw.choice([None, f"payload {number}"]) for number in range(len(texts))]
    single = make(**METHODS[name])
    batched = make(**METHODS[name])
    begin = 0
    while begin < len(texts):
        stop = begin + draw.randrange(1, 20)
        chosen = slice(begin, min(stop, len(texts)))
        batch = pa.table(
            {"id": ids[chosen], "text": texts[chosen], "payload": payloads[chosen]},
            schema=pa.schema([(name, pa.string()) for name in ("id", "text", "payload")]),
        )
        expected = [
            vars(single.add_if_new(row["text"], id=row["id"], payload=row["payload"]))
            for row in batch.to_pylist()
        ]
        answers = batched.add_many_if_new(batch).to_pylist()
        # A batch answers with the times at which keepers were seen before it.
        names = answers[0].keys() - {"last_seen"}
        answers = [{name: row[name] for name in names} for row in answers]
        assert [{name: row[name] for name in names} for row in expected] == answers
        clock(60)
        gone = draw.sample(ids, 2)
        assert single.remove(gone) == batched.remove(gone)
        assert single.expire(older_than=150) == batched.expire(older_than=150)
        begin = stop
    assert without_sketches(rows_of(single)) == without_sketches(rows_of(batched))
    for text in texts:
        assert single.query(text) == batched.query(text)


@pytest.mark.parametrize("size", [1, 48])
def test_a_list_of_texts_is_read_as_a_table_of_them(size: int, make: Make) -> None:
    texts = make_texts(3, size)
    listed = make()
    tabled = make()
    from_list = listed.add_many_if_new(texts)
    from_table = tabled.add_many_if_new(pa.table({"text": texts}))
    assert from_list["kept"] == from_table["kept"]
    assert from_list["similarity"] == from_table["similarity"]
    assert (
        listed.query_many(texts)["query"] == tabled.query_many(pa.table({"text": texts}))["query"]
    )


def test_a_list_of_paths_is_read_from_files(make: Make, tmp_path) -> None:
    path = tmp_path / "one.jsonl"
    path.write_text('{"text": "a text of a file with several words"}\n')
    assert len(make().add_many_if_new([str(path)])) == 1


def test_the_answers_about_no_documents_have_the_columns_of_others(make: Make) -> None:
    index = make()
    none = index.add_many_if_new([])
    assert len(none) == 0
    assert none.schema == index.add_many_if_new(table(("a", "some words"))).schema
