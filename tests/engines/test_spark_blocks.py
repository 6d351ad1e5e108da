"""Tables come out of blocks as they went in, in their cells."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from neardup import schemas
from neardup.methods.stages import batch_of
from spark_session import require_spark

require_spark()
from neardup.engines.spark import blocks  # noqa: E402
from neardup.engines.spark.workers import find_copies  # noqa: E402

EXTREMES = np.array([-(2**63), 2**63 - 1, 0, -1, 2**62, 5, 5, 127, -128])


def test_a_table_comes_out_of_blocks_as_it_went_in(monkeypatch):
    monkeypatch.setattr(
        blocks, "_SORTED_BYTES", 200
    )  # several tables together, and several blocks of a cell
    small = np.array([0, 1, 2, 127, 128, -1, -129, 2**31 - 1, -(2**31)], np.int32)
    numbers = EXTREMES, EXTREMES[::-1], EXTREMES, small, small[::-1]
    table = batch_of(schemas.ENTRIES, *numbers, EXTREMES > 0, EXTREMES < 5)
    route = blocks.route_by_hash("bucket", 3)
    moved = list(blocks.scatter([table, table, table.slice(0, 0), table], route))
    assert len(moved) > 3
    for block in moved:
        (part,) = blocks.gather([block], schemas.CANDIDATES, schemas.ENTRIES)
        assert part.schema == schemas.ENTRIES
        assert len(part) == block["count"][0].as_py()
        assert set(route(part).cells.tolist()) == {block["cell"][0].as_py()}
    rows = pa.Table.from_batches(blocks.gather(moved, schemas.ENTRIES))
    order = [(name, "ascending") for name in rows.column_names]
    assert rows.sort_by(order).equals(pa.Table.from_batches([table] * 3).sort_by(order))


def test_nulls_and_rows_for_several_cells_are_moved():
    cells = pa.array([[0, 1], [], [1]], pa.list_(pa.int64()))
    content = pa.array([b"a" * 16] * 3, pa.binary())
    hashes = pa.array([b"", b"12345678", None], pa.binary())
    sets = batch_of(schemas.SETS, *([np.arange(3)] * 3), content, hashes, hashes, hashes, cells)

    def route(table: pa.RecordBatch) -> blocks.Routed:
        return blocks.Routed(np.array([0, 0, 2]), np.array([0, 1, 1]))

    found = [
        table.to_pylist() for table in blocks.gather(blocks.scatter([sets], route), schemas.SETS)
    ]
    assert found == [sets.take(pa.array(rows)).to_pylist() for rows in ([0], [0, 2])]


def test_the_cell_of_a_document_is_the_chosen_one_or_that_of_its_hash():
    cells = blocks.Cells(7, np.array([3, 10]), np.array([6, 5]))
    positions = np.array([10, 2, 3, 11, 2])
    hashed = blocks.hash_cells(positions, 7)
    assert cells.of(positions).tolist() == [5, hashed[1], 6, hashed[3], hashed[1]]
    assert (
        blocks.Cells(7, np.empty(0, np.int64), np.empty(0, np.int64)).of(positions).tolist()
        == hashed.tolist()
    )


@pytest.mark.parametrize("copies", [0, 3])
def test_documents_of_one_content_get_the_first_and_the_last_of_them(copies):
    content = pa.array(
        [b"%16d" % min(number, 5) for number in range(5 + copies)][::-1], pa.binary()
    )
    tables = [batch_of(schemas.CONTENTS, content, np.arange(5 + copies)[::-1])]
    (found,) = find_copies(iter(tables), SimpleNamespace())
    assert found.to_pylist() == [
        {"position": 5 + at, "first": 5, "last": 7} for at in range(copies)
    ]
