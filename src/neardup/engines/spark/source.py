"""The documents of a run on Spark, as workers read them: from files, or from a DataFrame."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from neardup.arrays import arrow_of, begins_run
from neardup.documents.batch import BLOCK_BYTES, DocumentBatch, Rejected, rejecter
from neardup.documents.texts import as_documents, slices_of
from neardup.engines.spark.blocks import gather
from neardup.errors import InputError
from neardup.formats.reading import Task
from neardup.methods.stages import Batches, Read
from neardup.schemas import NEEDED, READ

PART_SHIFT = 32
"""A document of a file is known by part << PART_SHIFT | its number among the documents of the part.
"""

NEW = (
    1 << 61
)  # positions from here on are of new documents; those of the earlier corpus come before
PART = f"cast(shiftright(document, {PART_SHIFT}) as int)"
SLICES_PER_CORE = 64


@dataclass(frozen=True)
class Files:
    """Files, which workers open as the local engine does. tasks : the files of the earlier corpus
    come first.

    all : rows of which `read` reads all documents, in a worker. key_type : of the column
    `document`, in Spark's words. within : whether documents are compared within the first column of
    values. in_order : whether documents are numbers in the order of the corpus, those of the
    earlier collection first.
    """

    spark: SparkSession
    tasks: Broadcast[list[Task]]
    on_error: str = "reject"
    within: bool = False

    key_type, in_order = "long", True

    @property
    def read(self) -> Read:
        return partial(read_files, tasks=self.tasks, on_error=self.on_error, within=self.within)

    @property
    def read_listed(self) -> Read:
        """Read the documents in blocks of schemas.NEEDED, whose positions are those of the
        corpus.
        """
        return partial(read_listed, tasks=self.tasks, on_error=self.on_error, within=self.within)

    def all(self) -> DataFrame:
        return self.spark.range(0, len(self.tasks.value), 1, self.num_slices).selectExpr(
            "cast(id as int) as part"
        )

    def chosen(self, documents: DataFrame, *, broadcast: bool = True) -> DataFrame:
        """Return the parts of some documents: the column document, against and others."""
        names = [name for name in documents.columns if name != "against"]
        entries = F.array_sort(F.collect_list(F.struct(*names))).alias("chosen")
        return self.spread(documents.groupBy(F.expr(PART).alias("part")).agg(entries))

    def spread(self, parts: DataFrame) -> DataFrame:
        """Return parts over many partitions: Spark would put the short lists together, and read all
        files in a task.
        """
        return parts.repartitionByRange(self.num_slices, "part")

    @property
    def num_slices(self) -> int:
        return int(
            min(len(self.tasks.value), SLICES_PER_CORE * self.spark.sparkContext.defaultParallelism)
        )


def read_files(
    batches: Batches, tasks: Broadcast[list[Task]], on_error: str, within: bool
) -> Iterator[pa.RecordBatch]:
    """Read the documents of parts; of those with a column `chosen`, only the documents that it
    lists.
    """
    for batch in batches:
        chosen = batch.column("chosen") if "chosen" in batch.schema.names else [None] * len(batch)
        for part, some in zip(batch.column("part").to_pylist(), chosen, strict=True):
            entries = None if some is None else some.values
            yield from read_part(part, tasks.value[part], on_error, entries, within=within)


def read_listed(
    batches: Batches, tasks: Broadcast[list[Task]], on_error: str, within: bool
) -> Iterator[pa.RecordBatch]:
    """Read documents in blocks of schemas.NEEDED, each once, with the columns position, last and
    cells.
    """
    rows = [
        (table["position"].to_numpy(), table["cell"].to_numpy())
        for table in gather(batches, NEEDED)
    ]
    if not rows:
        return
    position, cell = (np.concatenate(column) for column in zip(*rows, strict=True))
    order = np.lexsort((cell, position))
    order = order[begins_run(position[order], cell[order])]
    first = np.flatnonzero(begins_run(position[order]))
    offsets = arrow_of(np.append(first, len(order)).astype(np.int32))
    position, cells = (
        position[order][first],
        pa.ListArray.from_arrays(offsets, arrow_of(cell[order])),
    )
    document = position & NEW - 1
    columns = [arrow_of(document), arrow_of(position), arrow_of(position), cells]
    chosen = pa.StructArray.from_arrays(columns, ["document", "position", "last", "cells"])
    edges = np.flatnonzero(begins_run(document >> PART_SHIFT))
    for start, stop in itertools.pairwise([*edges.tolist(), len(document)]):
        part = int(document[start]) >> PART_SHIFT
        yield from read_part(
            part, tasks.value[part], on_error, chosen.slice(start, stop - start), within=within
        )


@dataclass(frozen=True)
class Frame:
    """A DataFrame with the columns document, against, text, ranks and within. vector_length : as of
    `Columns`.
    """

    frame: DataFrame
    vector_length: int | None = None

    in_order = False

    @property
    def read(self) -> Read:
        return partial(read_rows, vector_length=self.vector_length)

    @property
    def key_type(self) -> str:
        return str(self.frame.schema["document"].dataType.simpleString())

    def all(self) -> DataFrame:
        none = {"id": "string", "row": "long", "count_by": "string", "rejected": "string"}
        return self.frame.withColumns({name: F.lit(None).cast(kind) for name, kind in none.items()})

    def chosen(self, documents: DataFrame, *, broadcast: bool = True) -> DataFrame:
        """Return the rows of some documents, as of Files. broadcast : whether they, and not the
        texts, are moved.
        """
        return self.frame.join(
            F.broadcast(documents) if broadcast else documents, ["document", "against"]
        )


Corpus = Files | Frame


def read_part(
    part: int,
    task: Task,
    on_error: str,
    chosen: pa.StructArray | None = None,
    *,
    within: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a part, as schemas.READ, and the rows that could not be read.

    Parameters
    ----------
    part : the number of the part.
    on_error : of the run.
    chosen : structs with a field `document`, rising: the documents to read. Their other fields
        follow the columns.
    within : whether the first column of values is that within which documents are compared.
    """
    rejected: list[Rejected] = []
    first = part << PART_SHIFT
    for batch in task.read(rejecter(on_error, rejected.append)):
        documents = _rows(batch, first, task.against, within)
        yield documents if chosen is None else _choose(documents, first, chosen)
        first += len(documents)
    if rejected and chosen is None:
        lines = [json.dumps(row._asdict(), ensure_ascii=False) for row in rejected]
        rows = [
            {"document": part << PART_SHIFT, "against": task.against, "rejected": line}
            for line in lines
        ]
        yield pa.RecordBatch.from_pylist(rows, READ)


def _rows(batch: DocumentBatch, first: int, against: bool, within: bool) -> pa.RecordBatch:
    count, none = len(batch.rows), pa.nulls(len(batch.rows), pa.string())
    values = [column.cast(pa.string()).fill_null("") for column in batch.values]
    ranks = np.concatenate(batch.ranks, axis=1).reshape(-1) if batch.ranks else np.empty(0)
    places = np.arange(count + 1, dtype=np.int32) * 2 * len(batch.ranks)
    columns = [
        arrow_of(np.arange(first, first + count)),
        arrow_of(np.full(count, against)),
        batch.text,
        none if batch.ids is None else batch.ids.cast(pa.string()),
        arrow_of(batch.rows.astype(np.int64, copy=False)),
        pa.ListArray.from_arrays(arrow_of(places), arrow_of(ranks)),
        values[0] if within else none,
        values[-1] if values and not against else none,
        none,
    ]
    return pa.RecordBatch.from_arrays(
        columns, names=READ.names
    )  # the text is bytes if it is a vector


def _choose(documents: pa.RecordBatch, first: int, chosen: pa.StructArray) -> pa.RecordBatch:
    """Return the documents that are in a list, with the other columns of the list. first : the
    first document.
    """
    wanted = chosen.field("document").to_numpy()
    low, high = np.searchsorted(wanted, [first, first + len(documents)])
    documents, chosen = (
        documents.take(arrow_of(wanted[low:high] - first)),
        chosen.slice(low, high - low),
    )
    for number, field in enumerate(chosen.type):
        if field.name != "document":
            documents = documents.append_column(field.name, chosen.field(number))
    return documents


def read_rows(batches: Batches, vector_length: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield batches with a column `text` in pieces of a few mebibytes; a text that is not UTF-8
    becomes a null.

    Raises
    ------
    InputError
        If a vector has another length, or a number that is not finite.
    """
    for whole in batches:
        for batch in slices_of(whole, "text", BLOCK_BYTES):
            text, bad = as_documents(batch.column("text"), vector_length)
            if bad and vector_length is not None:
                row, reason = next(iter(bad.items()))
                raise InputError(
                    f"Document {batch['document'][row].as_py()}: {reason}. Correct it, or "
                    "leave it out."
                )
            if bad:
                valid = np.ones(len(text), np.bool_)
                valid[list(bad)] = False
                text = pc.if_else(arrow_of(valid), text, pa.scalar(None, text.type))
            yield batch.set_column(batch.schema.get_field_index("text"), "text", text)
