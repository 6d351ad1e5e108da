"""Move tables between workers as blocks: Spark moves one row for each cell that a task has rows
for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from neardup import schemas
from neardup.arrays import Integers, Ints, arrow_of, arrow_of_bytes, begins_run, find_in
from neardup.methods.stages import batch_of

Placed = tuple[Integers, Integers]
"""Rows of a table, and the cell of each; a row may go to several cells."""
Place = Callable[[pa.RecordBatch], Placed]
_AT_ONCE = 64 << 20  # bytes of tables that a worker sorts by cell
_MIX = np.uint64(0x9E3779B97F4A7C15)


def exchange(blocks: DataFrame, num_cells: int) -> DataFrame:
    """Shuffle blocks, so that all blocks of a cell are in one partition."""
    if hasattr(
        blocks, "repartitionById"
    ):  # Spark 4.1; a hash leaves a third of the partitions empty
        return blocks.repartitionById(num_cells, "cell")
    return blocks.repartition(num_cells, "cell")


def scatter(tables: Iterable[pa.RecordBatch], place: Place) -> Iterator[pa.RecordBatch]:
    """Yield the rows of tables by cell, as schemas.BLOCKS; those of a cell keep their order."""
    for table in _joined(tables):
        rows, cells = place(table)
        order = np.argsort(
            cells.astype(np.min_scalar_type(cells.max(initial=0))), kind="stable"
        )  # a radix sort
        edges = np.flatnonzero(begins_run(cells[order]))
        for start, stop in itertools.pairwise([*edges.tolist(), len(order)]):
            part = table.take(arrow_of(rows[order[start:stop]]))
            packed = _pack(part)
            row = arrow_of_bytes(packed, np.array([0, packed.size]))
            yield batch_of(
                schemas.BLOCKS, cells[order[start : start + 1]], np.array([len(part)]), row
            )


def gather(batches: Iterable[pa.RecordBatch], *tables: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the tables in blocks, which are of one of these schemas."""
    for batch in batches:
        for block in batch["rows"]:
            yield _unpack(block.as_buffer(), tables)


def collect(blocks: DataFrame, table: pa.Schema) -> pa.Table:
    """Return the rows in blocks of a table, on the driver."""
    return pa.Table.from_batches(gather(blocks.select("rows").toArrow().to_batches(), table), table)


def hashed(name: str, num_cells: int) -> Place:
    """Place rows by the hash of a column of int64."""
    return lambda table: (np.arange(len(table)), cells_of(table[name].to_numpy(), num_cells))


class Cells(NamedTuple):
    """The cells of documents. known : int64, rising, positions whose cells were chosen; of others,
    a hash decides.
    """

    num_cells: int
    known: Integers
    cells: Integers

    def of(self, positions: Integers) -> Integers:
        """Return the cell of each position."""
        found = cells_of(positions, self.num_cells)
        at, is_known = find_in(self.known, positions)
        found[is_known] = self.cells[at[is_known]]
        return found


def cells_of(values: Integers, num_cells: int) -> Ints:
    """Return the cell of each number by its hash, int64."""
    mixed = values.astype(np.int64).view(np.uint64) * _MIX
    return ((mixed ^ mixed >> np.uint64(32)) % np.uint64(num_cells)).astype(np.int64)


def _joined(tables: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield tables one after the other as larger ones."""
    waiting: list[pa.RecordBatch] = []
    num_bytes = 0
    for table in itertools.chain(tables, [None]):
        if waiting and (table is None or num_bytes >= _AT_ONCE):
            yield pa.Table.from_batches(waiting).combine_chunks().to_batches()[0]
            waiting, num_bytes = [], 0
        if table is not None and len(table):
            waiting.append(table)
            num_bytes += table.nbytes


def _pack(table: pa.RecordBatch) -> pa.Buffer:
    """Return a table as a stream of Arrow: int64 as differences, each integer as narrow as its
    column allows.
    """
    columns, first = [], {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if pa.types.is_integer(column.type) and not column.null_count:
            values = column.to_numpy()
            if column.type == pa.int64():
                first[name] = str(values[0])
                values = np.diff(values, prepend=values[0])
            column = arrow_of(
                values.astype(np.min_scalar_type(min(int(values.min()), ~int(values.max()))))
            )
        columns.append(column)
    batch = pa.RecordBatch.from_arrays(columns, table.schema.names, metadata=first)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    return sink.getvalue()


def _unpack(block: pa.Buffer, tables: tuple[pa.Schema, ...]) -> pa.RecordBatch:
    batch = pa.ipc.open_stream(block).read_next_batch()
    schema, first = (
        next(table for table in tables if table.names == batch.schema.names),
        batch.schema.metadata or {},
    )
    columns = [
        arrow_of(np.cumsum(column.to_numpy(), dtype=np.int64) + int(first[name.encode()]))
        if name.encode() in first
        else column
        for name, column in zip(schema.names, batch.columns, strict=True)
    ]
    return batch_of(schema, *columns)
