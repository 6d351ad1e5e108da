"""Documents as rows of Arrow, as workers of a cluster read them: those of a part of the input, or of a table."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import arrow_of
from neardup.documents.batch import BLOCK_BYTES, DocumentBatch, Rejected
from neardup.documents.corpus import rejecter
from neardup.documents.texts import as_documents, slices_of
from neardup.errors import InputError
from neardup.formats.reading import Task
from neardup.schemas import READ

PART_SHIFT = 32
"""A document of a file is known by part << PART_SHIFT | its number among the documents of the part."""


def read_part(
    part: int, task: Task, on_error: str, chosen: pa.StructArray | None = None, *, within: bool = False
) -> Iterator[pa.RecordBatch]:
    """Yield the documents of a part, as schemas.READ, and the rows that could not be read.

    Parameters
    ----------
    part : the number of the part.
    on_error : of the run.
    chosen : structs with a field `document`, rising: the documents to read. Their other fields follow the columns.
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
        rows = [{"document": part << PART_SHIFT, "against": task.against, "rejected": line} for line in lines]
        yield pa.RecordBatch.from_pylist(rows, READ)


def _rows(batch: DocumentBatch, first: int, against: bool, within: bool) -> pa.RecordBatch:
    count, none = len(batch.rows), pa.nulls(len(batch.rows), pa.string())
    values = [column.cast(pa.string()).fill_null("") for column in batch.values]
    ranks = np.stack(batch.ranks, axis=1).reshape(-1) if batch.ranks else np.empty(0)
    places = np.arange(count + 1, dtype=np.int32) * len(batch.ranks)
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
    return pa.RecordBatch.from_arrays(columns, names=READ.names)  # the text is bytes if it is a vector


def _choose(documents: pa.RecordBatch, first: int, chosen: pa.StructArray) -> pa.RecordBatch:
    """Return the documents that are in a list, with the other columns of the list. first : the first document."""
    wanted = chosen.field("document").to_numpy()
    low, high = np.searchsorted(wanted, [first, first + len(documents)])
    documents, chosen = documents.take(arrow_of(wanted[low:high] - first)), chosen.slice(low, high - low)
    for number, field in enumerate(chosen.type):
        if field.name != "document":
            documents = documents.append_column(field.name, chosen.field(number))
    return documents


def read_rows(batches: Iterable[pa.RecordBatch], vector_length: int | None = None) -> Iterator[pa.RecordBatch]:
    """Yield batches with a column `text` in pieces of a few mebibytes; a text that is not UTF-8 becomes a null.

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
                raise InputError(f"Document {batch['document'][row].as_py()}: {reason}. Correct it, or leave it out.")
            if bad:
                valid = np.ones(len(text), np.bool_)
                valid[list(bad)] = False
                text = pc.if_else(arrow_of(valid), text, pa.scalar(None, text.type))
            yield batch.set_column(batch.schema.get_field_index("text"), "text", text)
