"""Read the input of an index: one text, or documents with ids and payloads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import arrow_of_bytes, arrow_of_strings
from neardup.documents.batch import (
    BLOCK_BYTES,
    DocumentBatch,
    Pages,
    RawLines,
    Reject,
    Rejected,
    describe_rejected,
)
from neardup.documents.nested import column_of, outer_names, value_of
from neardup.errors import ColumnError, InputError
from neardup.executor import group_small
from neardup.features.vectors import array_of_documents
from neardup.files import JsonObject
from neardup.formats.reading import Task, read_tasks
from neardup.index.open_index import PAYLOAD, Batch, OpenIndex
from neardup.index.sources import SOURCE, refuse_undated, refuse_untracked
from neardup.runs.input_names import input_names
from neardup.runs.run import Found, Inputs, Run, Source, named_paths
from neardup.settings.constraints import ColumnNames, check_columns, check_text
from neardup.settings.methods import MethodSettings
from neardup.settings.run import INPUT

T = TypeVar("T")
_STRING = pa.large_string()
_NULL = pa.nulls(1, _STRING)
_MAX_SHORT_LIST = 1000  # texts of a list that becomes one batch without a run


def batch_of_text(
    text: str | Sequence[float],
    id: str | None,
    payload: str | None,
    vector_length: int | None = None,
    *,
    source: str | None = None,
    date: str | None = None,
) -> Batch:
    """Return one document as a batch. vector_length : as in `Columns`.

    Raises
    ------
    InputError
        If a value is not a string of Unicode text, or the document is not a vector of this length.
    """
    if vector_length is None:
        check_text("text", text, " Pass several to add_many_if_new or query_many.")
    for name, value in (("id", id), (PAYLOAD, payload), (SOURCE, source)):
        if value is not None:
            check_text(name, value)
    return Batch(
        texts=array_of_documents([text], vector_length),
        ids=_NULL if id is None else arrow_of_strings([id]),
        payloads=_NULL if payload is None else arrow_of_strings([payload]),
        is_unnamed=id is None,
        sources=arrow_of_strings([source]) if source else None,
        dates=None if date is None else arrow_of_strings([date]),
    )


def batches_of(
    source: Source,
    method: MethodSettings,
    *,
    text_column: ColumnNames = None,
    roles: ColumnNames = None,
    id_column: ColumnNames = None,
    payload_column: ColumnNames = None,
    sources: str | None = None,
    dates: str | None = None,
    in_format: str | None = None,
) -> Iterator[Batch]:
    """Yield the documents of a source.

    Parameters
    ----------
    source, text_column, roles, id_column, in_format : as in `dedup`.
    method : the settings of the index.
    payload_column : the columns of payloads; if None, the column `payload` if there is one.
    sources, dates : as in `Origin`.

    Raises
    ------
    InputError
        If a document cannot be read, or the source has web pages and the method compares texts.
    ColumnError
        If a column is missing.
    """
    columns = (text_column, roles, id_column, payload_column, sources, dates, in_format)
    if method.vector_length is None and all(name is None for name in columns):
        batch = _batch_of_texts(source)
        if batch is not None:
            yield batch
            return
    origin = Origin(sources, dates)
    inputs = Inputs(
        source,
        text_column=text_column,
        roles=roles,
        id_column=id_column,
        in_format=in_format,
        described=origin.columns,
        ordered=origin.ordered,
    )
    tasks = find(Run(inputs, method)).tasks
    names = names_of_inputs(source, tasks, sources)
    pieces = read_batches(
        tasks, payload_column, _raise, threads=1, input_names=names, origin=origin
    )
    batches = (piece.batch for piece in pieces if piece.batch is not None)
    yield from joined_batches(batches)


def _batch_of_texts(source: Source) -> Batch | None:
    """Return a list of a few short texts as a batch; None for any other source.

    It saves the run over the list, which takes a quarter of a millisecond.
    """
    if not isinstance(source, list) or not 0 < len(source) <= _MAX_SHORT_LIST:
        return None
    if not all(isinstance(text, str) for text in source) or named_paths(source):
        return None
    if sum(map(len, source)) > BLOCK_BYTES:
        return None
    try:
        texts = arrow_of_strings(source)
    except UnicodeEncodeError:
        return None  # the run names the documents
    nulls = pa.nulls(len(texts), _STRING)
    return Batch(texts=texts, ids=nulls, payloads=nulls, is_unnamed=True)


def joined_batches(batches: Iterable[Batch]) -> Iterator[Batch]:
    """Yield batches joined to larger ones, by `group_batches`."""
    yield from map(Batch.join, group_batches(batches, lambda batch: batch))


def group_batches(items: Iterable[T], batch_of: Callable[[T], Batch | None]) -> Iterator[list[T]]:
    """Yield items in lists whose batches can be joined, of a mebibyte or more.

    Each list becomes one change that is synced to disk. An error of `items` is raised after the
    items before it.
    """

    def size(item: T) -> int:
        batch = batch_of(item)
        return 0 if batch is None else int(batch.texts.nbytes)

    def fits(group: list[T], item: T) -> bool:
        batch = batch_of(item)
        previous = next(filter(None, map(batch_of, reversed(group))), None)
        # `is_unnamed` applies to a whole batch: documents with and without ids need two.
        return batch is None or previous is None or batch.is_unnamed == previous.is_unnamed

    yield from group_small(items, size, fits=fits)


def find(run: Run) -> Found:
    """Return the parts of a source to read for an index. run : a run by the method of the index.

    Raises
    ------
    InputError
        If the source has web pages and the method compares texts.
    """
    found = run.find()
    if found.settings != run.method:
        raise InputError(
            f"{found.tasks[0].part.name} contains web pages, and this index compares texts. Create "
            "an index with method='content' for their main text (--method content), or "
            "'structure' for their templates."
        )
    return found


class Origin(NamedTuple):
    """The options that name the origin of documents.

    sources : the column of sources, or "input". dates : the column of dates.
    """

    sources: str | None = None
    dates: str | None = None

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Origin:
        """Return the options among others."""
        return cls(options.get("sources"), options.get("dates"))

    def refuse_untracked(self, index: OpenIndex) -> None:
        """Raise SettingError if the index does not track them."""
        refuse_untracked(self.sources, index.address, tracks=index.rules.tracks_sources)
        refuse_undated(self.dates, index.address, tracks=index.rules.tracks_dates)

    @property
    def source_column(self) -> str | None:
        """The column of sources, None if inputs are sources."""
        return None if self.sources == INPUT else self.sources

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns to read."""
        names = dict.fromkeys((self.source_column, self.dates))
        return tuple(name for name in names if name is not None)

    @property
    def ordered(self) -> tuple[str, ...]:
        """The columns that have dates or numbers."""
        return () if self.dates is None else (self.dates,)


def names_of_inputs(
    source: Source, tasks: Sequence[Task], sources: str | None
) -> Sequence[str] | None:
    """Return the input of each part as its source; None if inputs are no sources."""
    if sources != INPUT:
        return None
    return input_names(source, [task.part.name for task in tasks])


class Piece(NamedTuple):
    """Documents of a part: `documents` as they were read, `batch` as they enter an index.

    Both are None at the end of a part.
    """

    task: Task
    documents: DocumentBatch | None = None
    batch: Batch | None = None


def read_batches(
    tasks: list[Task],
    payload_column: ColumnNames,
    reject: Reject,
    threads: int,
    *,
    with_payload: bool = False,
    input_names: Sequence[str] | None = None,
    origin: Origin = Origin(),  # noqa: B008 - immutable
) -> Iterator[Piece]:
    """Yield the documents of parts in pieces, and an empty piece at the end of each part.

    Parameters
    ----------
    tasks : the parts.
    payload_column : as in `batches_of`.
    reject : called with each row that cannot be read.
    threads : as in `read_tasks`.
    with_payload : whether the caller copies the rows to a kept file.
    input_names : the source of all documents of each part, if inputs are sources.
    origin : the columns of sources and dates.

    Raises
    ------
    ColumnError
        If a column is missing.
    InputError
        If an id is null.
    """
    # Before the first document: a missing column is reported before anything is stored.
    names = [_payload_names(task, payload_column) for task in tasks]
    for number, entry in read_tasks(tasks, threads, with_payload=with_payload or any(names)):
        if isinstance(entry, Rejected):
            reject(entry)
        elif entry is None:
            yield Piece(tasks[number])
        else:
            batch = batch_of_documents(entry, names[number])
            name = None if input_names is None else input_names[number]
            batch = with_origin(batch, tasks[number], entry, origin, name)
            yield Piece(tasks[number], entry, batch)


def with_origin(
    batch: Batch,
    task: Task,
    documents: DocumentBatch,
    origin: Origin,
    input_name: str | None,
) -> Batch:
    """Return documents with their sources and dates.

    Parameters
    ----------
    documents : as the task has read them.
    origin : the columns of sources and dates.
    input_name : the source of all documents, if inputs are sources.
    """
    sources = _values_in(task, documents, origin.source_column)
    if input_name is not None:
        sources = pa.repeat(pa.scalar(input_name, _STRING), len(documents.rows))
    return batch._replace(sources=sources, dates=_values_in(task, documents, origin.dates))


def _values_in(task: Task, documents: DocumentBatch, column: str | None) -> pa.Array | None:
    """Return the values of a column, large_string, null for empty values; None without one."""
    if column is None:
        return None
    texts = documents.values[task.columns.values.index(column)].cast(_STRING)
    # An empty value is no source. `if_else` of pyarrow 18 damages a slice of strings.
    return pc.replace_with_mask(texts, pc.equal(texts, ""), pa.scalar(None, texts.type))


def _payload_names(task: Task, payload_column: ColumnNames) -> list[str]:
    """Return the columns of the payloads of a part. Raises ColumnError if one is missing."""
    types = task.part.column_types()
    existing = types or {}
    if payload_column is None:
        return [PAYLOAD] if PAYLOAD in existing else []
    names = check_columns(payload_column)
    missing = next((name for name in names if name not in existing), None)
    # Reading the part reports this.
    is_empty_or_damaged = types == {}
    if missing is not None and not is_empty_or_damaged:
        raise ColumnError(
            f"{task.part.name} has no column {missing!r}: it has {', '.join(existing) or 'none'}. "
            "Name one of these."
        )
    return names


def _raise(row: Rejected) -> None:
    """Raise InputError for a row that cannot be read."""
    raise InputError(f"{describe_rejected(row)}. Correct the document, or leave it out.")


def batch_of_documents(batch: DocumentBatch, names: list[str]) -> Batch:
    """Return documents as they enter an index.

    names : the columns of payloads. Raises InputError if an id is null.
    """
    ids = pa.nulls(len(batch.rows), _STRING) if batch.ids is None else batch.ids.cast(_STRING)
    if batch.ids is not None and ids.null_count:
        row = int(np.flatnonzero(ids.is_null().to_numpy(zero_copy_only=False))[0])
        raise InputError(
            f"The id of row {int(batch.rows[row])} is null. Give all documents an id, or none."
        )
    return Batch(
        texts=batch.text,
        ids=ids,
        payloads=_payloads(batch, names),
        is_unnamed=batch.ids is None,
    )


def _payloads(batch: DocumentBatch, names: list[str]) -> pa.Array:
    """Return the payload of each document, large_string, as `payload_of` does."""
    if not names:
        return pa.nulls(len(batch.rows), _STRING)
    payload = batch.payload.rows() if isinstance(batch.payload, Pages) else batch.payload
    if isinstance(payload, RawLines):
        rows = [_record(line) for line in arrow_of_bytes(payload.data, payload.offsets).to_pylist()]
    else:
        assert payload is not None
        column = column_of(payload, names[0]) if len(names) == 1 else None
        # Strings stay as they are, without a dictionary for each row.
        if column is not None and column.type in (pa.string(), pa.large_string()):
            return pc.cast(column, _STRING)
        rows = payload.select(outer_names(payload.schema, names)).to_pylist()
    return pa.array([_without_surrogates(payload_of(row, names)) for row in rows], _STRING)


def _without_surrogates(text: str | None) -> str | None:
    """Return a text with "?" for lone surrogates, which JSON may escape."""
    return None if text is None else text.encode("utf-8", "replace").decode()


def _record(line: bytes) -> JsonObject:
    """Return the fields of a line of JSON; none if it nests so deeply that only Arrow reads it."""
    try:
        record: JsonObject = json.loads(line.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        return {}
    return record


def payload_of(record: JsonObject, names: Sequence[str]) -> str | None:
    """Return the payload of a row: the value of one column, or an object of several columns.

    A value that is not a string becomes JSON.
    """
    values = {name: value_of(record, name) for name in names}
    value = next(iter(values.values()), None) if len(names) < 2 else values
    if value is None or isinstance(value, str):
        return value
    # `default=str` writes dates and other types of Arrow as text.
    return json.dumps(value, ensure_ascii=False, default=str)
