"""Move tables between workers as blocks: one row of Spark has the rows that a task sends to a cell.

    tables of a task          blocks (schemas.BLOCKS)         tables of a cell
    row, row, row, ...   ->   cell 0 | 310 rows, packed  ->   row, row, row, ...
                              cell 1 | 287 rows, packed

`scatter` makes blocks in the task that sends, `exchange` moves them, and `gather` reads them in the
task that receives.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame

from neardup import schemas
from neardup.arrays import Integers, Ints, arrow_of, arrow_of_bytes, begins_run, find_in, stream_of
from neardup.candidates.cells import GOLDEN
from neardup.methods.stages import batch_of


class Routed(NamedTuple):
    """The rows of a table, and the cell to which each goes; a row may go to several cells."""

    rows: Integers
    cells: Integers


def route_rows(cells: Integers) -> Routed:
    """Route each row to one cell."""
    return Routed(np.arange(len(cells)), cells)


Route = Callable[[pa.RecordBatch], Routed]
"""Chooses the cells of the rows of a table."""

_SORTED_BYTES = 64 << 20  # bytes of tables that a worker sorts by cell at once


def exchange(blocks: DataFrame, num_cells: int) -> DataFrame:
    """Shuffle blocks so that all blocks of a cell are in one partition."""
    # Since Spark 4.1, cell i is partition i. A hash leaves a third of the partitions empty.
    if hasattr(blocks, "repartitionById"):
        return blocks.repartitionById(num_cells, "cell")
    return blocks.repartition(num_cells, "cell")


def scatter(tables: Iterable[pa.RecordBatch], route: Route) -> Iterator[pa.RecordBatch]:
    """Yield the rows of tables as blocks, schemas.BLOCKS; the rows of a cell keep their order."""
    for table in _join_small(tables):
        routed = route(table)
        # Narrow integers are sorted by their digits, in linear time.
        narrow = np.min_scalar_type(routed.cells.max(initial=0))
        order = np.argsort(routed.cells.astype(narrow), kind="stable")
        rows = routed.rows[order]
        cells = routed.cells[order]
        starts = np.flatnonzero(begins_run(cells)).tolist()
        for start, stop in itertools.pairwise([*starts, len(order)]):
            part = table.take(arrow_of(rows[start:stop]))
            packed = _pack(part)
            binary = arrow_of_bytes(packed, np.array([0, packed.size]))
            yield batch_of(
                schemas.BLOCKS,
                cells[start : start + 1],
                np.array([len(part)]),
                binary,
            )


def gather(batches: Iterable[pa.RecordBatch], *tables: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the tables in blocks; each has one of the schemas `tables`."""
    for batch in batches:
        for block in batch["rows"]:
            yield _unpack(block.as_buffer(), tables)


def collect(blocks: DataFrame, table: pa.Schema) -> pa.Table:
    """Return the rows in blocks of one schema, on the driver."""
    batches = blocks.select("rows").toArrow().to_batches()
    return pa.Table.from_batches(gather(batches, table), table)


def route_by_hash(name: str, num_cells: int) -> Route:
    """Route rows by the hash of an int64 column."""
    return lambda table: route_rows(hash_cells(table[name].to_numpy(), num_cells))


def route_to_one(table: pa.RecordBatch) -> Routed:
    """Route all rows to one cell."""
    return route_rows(np.zeros(len(table), np.int64))


class Cells(NamedTuple):
    """The cells of documents.

    known : int64, rising, the positions whose cells were chosen. cells : the cell of each of them.
    A hash chooses the cell of any other position.
    """

    num_cells: int
    known: Integers
    cells: Integers

    def of(self, positions: Integers) -> Integers:
        """Return the cell of each position."""
        cells = hash_cells(positions, self.num_cells)
        rows, is_known = find_in(self.known, positions)
        cells[is_known] = self.cells[rows[is_known]]
        return cells


def hash_cells(values: Integers, num_cells: int) -> Ints:
    """Return a cell for each number, by its hash: int64, in [0, num_cells)."""
    mixed = values.astype(np.int64).view(np.uint64) * GOLDEN
    # The product spreads into the upper bits; the remainder would see the lower ones most.
    folded = mixed ^ mixed >> np.uint64(32)
    return (folded % np.uint64(num_cells)).astype(np.int64)


def _join_small(tables: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Join consecutive tables into tables of about _SORTED_BYTES; leave out empty ones."""
    waiting = []
    num_bytes = 0
    for table in tables:
        if not len(table):
            continue
        waiting.append(table)
        num_bytes += table.nbytes
        if num_bytes >= _SORTED_BYTES:
            yield _concatenate(waiting)
            waiting = []
            num_bytes = 0
    if waiting:
        yield _concatenate(waiting)


def _concatenate(tables: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(tables).combine_chunks().to_batches()[0]


def _pack(table: pa.RecordBatch) -> pa.Buffer:
    """Return a table as an Arrow stream whose integers are as narrow as their values allow.

    An int64 column is stored as differences of consecutive values, since positions mostly rise; its
    first value is in the metadata of the schema, under the name of the column.
    """
    columns = []
    first_values = {}
    for name, column in zip(table.schema.names, table.columns, strict=True):
        if pa.types.is_integer(column.type) and not column.null_count:
            values = column.to_numpy()
            # Positions mostly rise, so their differences need fewer bytes.
            if column.type == pa.int64():
                first_values[name] = str(values[0])
                values = np.diff(values, prepend=values[0])
            # ~x maps a maximum to the negative number that needs as many bits.
            extreme = min(int(values.min()), ~int(values.max()))
            column = arrow_of(values.astype(np.min_scalar_type(extreme)))
        columns.append(column)
    batch = pa.RecordBatch.from_arrays(columns, table.schema.names, metadata=first_values)
    return stream_of(batch)


def _unpack(block: pa.Buffer, tables: tuple[pa.Schema, ...]) -> pa.RecordBatch:
    """Return the table of a block, as the schema of `tables` with the same names."""
    batch = pa.ipc.open_stream(block).read_next_batch()
    # Two tables may come in one stream: their names tell which one.
    schema = next(table for table in tables if table.names == batch.schema.names)
    first_values = batch.schema.metadata or {}
    columns = []
    for name, column in zip(schema.names, batch.columns, strict=True):
        first = first_values.get(name.encode())
        if first is not None:
            column = arrow_of(np.cumsum(column.to_numpy(), dtype=np.int64) + int(first))
        columns.append(column)
    return batch_of(schema, *columns)
