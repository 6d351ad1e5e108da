"""An index on a server decides as one in memory does, whatever the method and the batches."""

from __future__ import annotations

import itertools

import pyarrow as pa
import pytest

from neardup import Index
from neardup.errors import StoreError
from neardup.index import maintenance
from reference.index_cases import METHODS, documents_for, idf_for

NUMBERS = itertools.count()
QUICK = ("minhash in crowded buckets", "simhash")


@pytest.fixture(params=["postgres", "redis"])
def address(request):
    return request.getfixturevalue(f"{request.param}_server").address(f"sieve-{next(NUMBERS)}")


def answers_of(address, name, sizes, count):
    """Add documents to a new index in batches of some sizes, over and over; return its answers and
    what it is then.
    """
    method, options = METHODS[name]
    documents = documents_for(method, 5, count)
    storage = "fingerprints" if getattr(method, "confirm", None) == "hamming" else "features"
    with Index.create(
        address, method=method, storage=storage, idf=idf_for(method, documents), **options
    ) as index:
        answers = []
        start = 0
        for size in itertools.cycle(sizes):
            if start >= len(documents):
                break
            answers.append(index.add_many_if_new(documents.slice(start, size)))
            start += size
        hits = index.query_many(documents.slice(0, 50))
        assert index.verify() == []
    return pa.concat_tables(answers).drop_columns(
        ["first_seen", "last_seen"]
    ).to_pylist(), hits.drop_columns(["first_seen", "last_seen"]).to_pylist()


def assert_same(address, name, sizes, count):
    for found, expected in zip(
        *(answers_of(place, name, sizes, count) for place in (address, "memory:")), strict=True
    ):
        assert found == expected


@pytest.mark.parametrize("name", QUICK)
def test_an_index_on_a_server_answers_as_one_in_memory(address, name):
    assert_same(address, name, [1, 50, 9], 80)


def test_an_index_on_a_server_tracks_sources_as_one_in_memory(address):
    documents = documents_for(METHODS["minhash"][0], 5, 60)
    sources = pa.array([["c4", "hplt", None, "web"][row % 4] for row in range(len(documents))])
    documents = documents.append_column("from", sources)
    again = documents.slice(0, 20).set_column(2, "from", pa.array(["books"] * 20))
    documents = pa.concat_tables([documents, again])
    exported = []
    for place in (address, "memory:"):
        with Index.create(place, method=METHODS["minhash"][0], track_sources=True) as index:
            found = [
                index.add_many_if_new(documents.slice(start, 7), sources="from")
                for start in range(0, len(documents), 7)
            ]
            index.compact()
            # Copies of documents that were sent again have random ids.
            kept = [stored.filter(stored["kept"]) for stored in index.documents()]
            tables = [*found, *kept]
            exported.append([table.select(["id", "sources", "num_sources"]) for table in tables])
            assert index.verify() == []
    of_server, of_memory = (
        [row for table in tables for row in table.to_pylist()] for tables in exported
    )
    assert of_server == of_memory
    assert max(row["num_sources"] or 0 for row in of_memory) > 1
    assert sum("books" in (row["sources"] or []) for row in of_memory) > 20


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[1], [7, 50]], ids=str)
@pytest.mark.parametrize("name", METHODS)
def test_every_method_answers_the_same_on_a_server(address, name, sizes):
    assert_same(address, name, sizes, 200)


def test_an_index_that_was_not_filled_is_refused_and_one_that_was_is_opened(address, monkeypatch):
    with Index.create("memory:") as index:
        index.add_many_if_new(documents_for(index.method, 5, 40))

        def fail(*_: object) -> None:
            raise KeyboardInterrupt

        monkeypatch.setattr(maintenance, "copy", fail)
        with pytest.raises(KeyboardInterrupt):
            index.rebuild(address, method=index.method)
        for call in (Index.open, lambda address: Index.open(address, read_only=True)):
            with pytest.raises(
                StoreError,
                match="is incomplete: the process that filled it is not done, or was inter",
            ):
                call(address)
        with pytest.raises(StoreError, match=r"exists already: .* (DROP SCHEMA|redis-cli)"):
            index.rebuild(address, method=index.method)
        monkeypatch.undo()
        with index.rebuild(f"{address}2", method=index.method) as rebuilt:
            assert (len(rebuilt), rebuilt.verify()) == (len(index), [])
        with Index.open(f"{address}2", read_only=True) as opened:
            assert len(opened) == len(index)
