"""The stages of a run on Spark that only this engine has, as workers perform them.

A stage takes and returns batches of one table of schemas.py. `run_stage` performs the stages of
methods/stages.py and of this module on rows of Spark, or on the tables in blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Accumulator, Broadcast
from pyspark.sql.pandas.types import from_arrow_schema

from neardup import schemas
from neardup.arrays import Array, Integers, arrow_of, begins_run, find_in, flatten_strings
from neardup.candidates.items import ItemTable
from neardup.engines.spark.blocks import (
    Cells,
    Route,
    Routed,
    gather,
    hash_cells,
    route_rows,
    scatter,
)
from neardup.engines.spark.source import NEW, PART_SHIFT
from neardup.features.binary import rows_of
from neardup.methods import stages
from neardup.methods.base import Method
from neardup.methods.stages import Batches, Read, batch_of
from neardup.progress import compile_seconds
from neardup.runs.found_items import ItemSearch, ItemsInTexts

Stage = Callable[[Batches, Method], Iterator[pa.RecordBatch]]

_DOCUMENT = pa.field("document", pa.int64())
DESCRIBED = schemas.DESCRIBED.insert(0, _DOCUMENT)
"""Documents of files and rejected rows, without their texts."""
PLACED = schemas.PLACED.insert(0, _DOCUMENT)
"""Documents of files with features."""

# The columns that the driver collects.
_LISTED_NAMES = (
    "document",
    "id",
    "row",
    "bytes",
    "size",
    "count_by",
    "described",
    "rejected",
    "ranks",
)
LISTED = pa.schema(map(DESCRIBED.field, _LISTED_NAMES))
"""Columns of DESCRIBED."""
POSITIONS = pa.schema(map(PLACED.field, ("position", "first")))
"""Columns of PLACED, for the rows of a DataFrame."""
DOCUMENT_POSITIONS = pa.schema(map(PLACED.field, ("document", "position", "first")))
"""Columns of PLACED, for the documents of files."""
_PART_NAMES = ("part", "documents", "rejected", "bytes", "without_features")
PARTS = pa.schema((name, pa.int64()) for name in _PART_NAMES)
"""The counts of parts; a part may be in several rows, which are to be added up."""


def declare(schema: pa.Schema) -> str:
    """Return the columns of a table in the language of Spark."""
    fields = from_arrow_schema(schema)
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in fields)


def run_stage(
    batches: Batches,
    stage: Stage,
    method: Broadcast[Method],
    seconds: Accumulator[float],
    *,
    reads: tuple[pa.Schema, ...] = (),
    route: Route | None = None,
) -> Iterator[pa.RecordBatch]:
    """Perform a stage on batches of rows or blocks, and yield rows or blocks.

    Parameters
    ----------
    seconds : adds up the time in which workers compile kernels.
    reads : the tables in the blocks of `batches`; none if these are rows.
    route : the cells of the rows, which are then yielded as blocks.
    """
    before = compile_seconds()
    try:
        tables = gather(batches, *reads) if reads else batches
        results = stage(tables, method.value)
        yield from results if route is None else scatter(results, route)
    finally:
        seconds.add(compile_seconds() - before)


# Describe and place documents.


def describe_documents(
    batches: Batches, method: Method, read: Read, num_features: Accumulator[int]
) -> Iterator[pa.RecordBatch]:
    """Describe documents, and count their features; tasks that are run again count twice."""
    for rows in stages.describe_documents(batches, method, read):
        num_features.add(int(rows["distinct"].to_numpy().sum()))
        yield rows


def select_columns(
    batches: Batches, method: Method, names: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Return some of the columns."""
    for batch in batches:
        yield batch.select(names)


def count_parts(batches: Batches, method: Method | None = None) -> Iterator[pa.RecordBatch]:
    """Count the documents of each part in rows of LISTED; return PARTS, a part once a batch."""
    for rows in batches:
        is_read = rows["rejected"].is_null().to_numpy(zero_copy_only=False)
        is_empty = is_read & (rows["size"].to_numpy() == 0)
        numbers = rows["document"].to_numpy() >> PART_SHIFT
        parts, of_row = np.unique(numbers, return_inverse=True)
        values = [is_read, ~is_read, rows["bytes"].to_numpy(), is_empty]
        sums = [np.bincount(of_row, value) for value in values]
        yield batch_of(PARTS, parts, *sums)


def list_contents(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    """Return the contents of the documents that have features, as schemas.CONTENTS."""
    for rows in batches:
        documents = _with_features(rows)
        yield batch_of(schemas.CONTENTS, documents["content"], _positions(documents))


def find_copies(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    """Return the documents that share a content with others, as schemas.COPIES.

    batches : schemas.CONTENTS, all documents of each content.
    """
    rows = pa.Table.from_batches(batches, schemas.CONTENTS).combine_chunks()
    words = rows_of(rows["content"].combine_chunks())
    positions = rows["position"].to_numpy()
    order = np.lexsort((positions, *words.T))
    words = words[order]
    positions = positions[order]

    # Documents of one content now follow one another, the first of them first.
    starts = np.flatnonzero(begins_run(*words.T)) if len(words) else np.empty(0, np.int64)
    sizes = np.diff(np.append(starts, len(words)))
    ends = starts + sizes - 1
    is_copied = np.repeat(sizes > 1, sizes)
    first = np.repeat(positions[starts], sizes)
    last = np.repeat(positions[ends], sizes)
    yield batch_of(schemas.COPIES, positions[is_copied], first[is_copied], last[is_copied])


def place_documents(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    """Return the documents that have features, as PLACED.

    batches : documents, DESCRIBED, and their rows of schemas.COPIES, in any order.
    """
    # Copies may arrive after the documents of their file, so all tables are read first.
    tables = list(batches)
    of_copies = [table for table in tables if table.schema == schemas.COPIES]
    copies = pa.Table.from_batches(of_copies, schemas.COPIES)
    copied, first_of_copies, last_of_copies = (column.to_numpy() for column in copies.columns)
    for table in tables:
        if table.schema == schemas.COPIES:
            continue
        documents = _with_features(table)
        positions = _positions(documents)
        # A document without copies is the first and the last of its content.
        first = positions.copy()
        last = positions.copy()
        rows, is_here = find_in(positions, copied)
        first[rows[is_here]] = first_of_copies[is_here]
        last[rows[is_here]] = last_of_copies[is_here]
        numbers = [arrow_of(column) for column in (positions, first, last)]
        yield pa.RecordBatch.from_arrays([*documents.columns, *numbers], schema=PLACED)


def _with_features(rows: pa.RecordBatch) -> pa.RecordBatch:
    return rows.filter(pc.greater(rows["size"], 0))


def _positions(rows: pa.RecordBatch) -> Integers:
    """Return the positions of documents of files: their keys; new documents come last."""
    is_new = ~rows["against"].to_numpy(zero_copy_only=False)
    positions: Integers = rows["document"].to_numpy() + NEW * is_new
    return positions


# Find pairs, and measure them.


def list_entries(
    batches: Batches, method: Method, *, copies_query: bool
) -> Iterator[pa.RecordBatch]:
    """Return the buckets of the first document of each content, PLACED, as schemas.ENTRIES.

    copies_query : whether copies look up buckets.
    """
    for rows in batches:
        contents = rows.filter(pc.equal(rows["position"], rows["first"]))
        if not copies_query:
            index = contents.schema.get_field_index("last")
            contents = contents.set_column(index, "last", contents["position"])
        yield from stages.list_entries([contents], method)


def list_needed(
    batches: Batches, method: Method, cells: Broadcast[Cells]
) -> Iterator[pa.RecordBatch]:
    """Return the documents of pairs with their cells, as schemas.NEEDED, each once a batch.

    A pair is measured in the cell of its right document. Pairs come by their right document.
    """
    num_cells = cells.value.num_cells
    for pairs in batches:
        left = pairs["left"].to_numpy()
        right = pairs["right"].to_numpy()
        cell = cells.value.of(right)
        # Pairs mostly come by their right document: an entry for each run is enough.
        is_first = begins_run(right)
        positions = np.append(left, right[is_first])
        cells_of_positions = np.append(cell, cell[is_first])
        distinct, numbers = np.unique(positions, return_inverse=True)
        # One number for each document and cell, so that a sort finds the distinct ones.
        keys = np.unique(numbers * num_cells + cells_of_positions)
        number, cell = np.divmod(keys, num_cells)
        yield batch_of(schemas.NEEDED, distinct[number], cell)


def compare_with_sample(
    batches: Batches,
    method: Method,
    read: Read,
    sample: Broadcast[list[pa.RecordBatch]],
    threshold: float,
) -> Iterator[pa.RecordBatch]:
    """Compare documents with a sample; see stages.compare_with_sample."""
    return stages.compare_with_sample(batches, method, read, sample.value, threshold)


def search_items(
    batches: Batches, method: Method, read: Read, table: Broadcast[ItemTable]
) -> Iterator[pa.RecordBatch]:
    """Find items in documents; return a row of schemas.SEARCHED for each batch."""
    num_documents = np.zeros(len(table.value.around.is_counted), np.int64)
    search = ItemSearch(table.value, num_documents)
    num_excerpts: Counter[int] = Counter()
    for texts in read(batches):
        found = search.find(texts["text"])
        np.add.at(num_documents, found.keys, 1)
        yield _searched(texts, found.without_further_excerpts(table.value, num_excerpts))


def _searched(texts: pa.RecordBatch, found: ItemsInTexts) -> pa.RecordBatch:
    """Return the items in documents, schemas.READ, as a row of schemas.SEARCHED."""
    is_read = texts["rejected"].is_null().to_numpy(zero_copy_only=False)
    num_bytes = np.diff(flatten_strings(texts["text"])[1])
    counts = (
        np.count_nonzero(is_read),
        num_bytes.sum(),
        # Rejected rows have no text, either.
        found.num_textless - np.count_nonzero(~is_read),
    )
    matches = found.matches
    located = texts.take(arrow_of(matches.documents))
    lists = (
        texts["rejected"].drop_null(),
        found.keys,
        found.items,
        found.states,
        *matches,
        *found.ranges.T,
        pa.array(found.excerpts, pa.string()),
        located["id"],
        located["row"],
    )
    return batch_of(
        schemas.SEARCHED,
        texts["document"][:1],
        *(np.array([count]) for count in counts),
        *map(_list_of, lists),
    )


def _list_of(values: Array | pa.Array) -> pa.ListArray:
    """Return one list of all values."""
    items = arrow_of(values) if isinstance(values, np.ndarray) else values
    return pa.ListArray.from_arrays(pa.array([0, len(items)], pa.int32()), items)


def same(batches: Batches, method: Method) -> Iterator[pa.RecordBatch]:
    """Return the batches: the stage that only packs or unpacks rows."""
    yield from batches


# The cells of rows; see blocks.Route.


def route_by_file(rows: pa.RecordBatch) -> Routed:
    """Route documents, or rejected rows, by their file."""
    return route_rows(rows["document"].to_numpy() >> PART_SHIFT)


def route_by_file_of_position(documents: pa.RecordBatch) -> Routed:
    """Route documents by their file, whose number is in their position."""
    keys = documents["position"].to_numpy() & NEW - 1
    return route_rows(keys >> PART_SHIFT)


def route_contents(rows: pa.RecordBatch, num_cells: int) -> Routed:
    """Route documents by the hash of their content."""
    words = rows_of(rows["content"])[:, 0].view(np.int64)
    return route_rows(hash_cells(words, num_cells))


def route_pairs(pairs: pa.RecordBatch, cells: Broadcast[Cells]) -> Routed:
    """Route pairs to the cells in which they are measured."""
    return route_rows(cells.value.of(pairs["right"].to_numpy()))


def route_sets(documents: pa.RecordBatch) -> Routed:
    """Route documents, schemas.SETS, to all of their cells."""
    cells = documents["cells"]
    num_cells = pc.list_value_length(cells).to_numpy()
    return Routed(np.repeat(np.arange(len(documents)), num_cells), cells.flatten().to_numpy())


def route_listed_first(pairs: pa.RecordBatch) -> Routed:
    """Route candidates that a bucket lists to cell 0, and the others to cell 1."""
    return route_rows(pc.invert(pairs["listed"]).cast("int64").to_numpy())
