"""An index decides as `dedup` does on the same documents, whatever the method, the store and the
batches.
"""

from __future__ import annotations

import pyarrow as pa
import pytest

import neardup
from neardup import Index
from reference.index_cases import METHODS, documents_for, idf_for


def removals(table: pa.Table, measures: list[str]) -> list[tuple]:
    return [tuple(row.values()) for row in table.select(["id", "kept_id", *measures]).to_pylist()]


@pytest.fixture(params=METHODS)
def case(request):
    return METHODS[request.param]


@pytest.mark.parametrize(
    ("batch_rows", "storage", "address"),
    [
        pytest.param(1, "features", "memory:", marks=pytest.mark.slow),
        pytest.param(7, "text", "folder", marks=pytest.mark.slow),
        (1000, "features", "folder"),
    ],
)
def test_add_if_new_is_the_sieve(case, batch_rows, storage, address, tmp_path):
    method, options = case
    documents = documents_for(method, 3, 100 if batch_rows == 1 else 240)
    expected = neardup.dedup(documents, method=method, **options)
    storage = "fingerprints" if getattr(method, "confirm", None) == "hamming" else storage
    address = "memory:" if address == "memory:" else tmp_path / "a.index"
    with Index.create(
        address, method=method, storage=storage, idf=idf_for(method, documents), **options
    ) as index:
        answers = pa.concat_tables(
            index.add_many_if_new(documents.slice(start, batch_rows))
            for start in range(0, len(documents), batch_rows)
        )
    measures = [
        name
        for name in ("similarity", "distance", "structure", "exact")
        if name in expected.removed.schema.names
    ]
    found = answers.filter(pa.compute.invert(answers["kept"]))
    assert removals(found, measures) == removals(expected.removed, measures)
    assert answers["kept"].to_pylist() == expected.mask.tolist()
    assert len(found) > 5
    hidden = pa.compute.and_(answers["truncated"], answers["kept"])
    assert int(pa.compute.sum(hidden).as_py() or 0) == expected.report["bound"]["documents"]
