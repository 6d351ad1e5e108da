"""Add files of documents to an index, look them up in it, stage them in a run; write the kept rows and the answers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.api.documents_of_index import Batch, group_batches, read_batches, tasks_for
from neardup.api.index import Index
from neardup.api.inputs import Inputs
from neardup.documents.batch import DocumentBatch, Rejected
from neardup.documents.corpus import MAX_UNREAD_NAMED, rejecter
from neardup.documents.formats import format_of
from neardup.documents.input_file import Part
from neardup.documents.reading import Task, known_total
from neardup.errors import OutputError
from neardup.executor import count_threads, map_ordered
from neardup.index import collection, maintenance
from neardup.index.incoming import Incoming
from neardup.output.directory import refuse_address
from neardup.output.kept import KeptWriter
from neardup.output.report import describe_cost, describe_incomplete
from neardup.output.table_file import TableFile
from neardup.progress import Stages
from neardup.schemas import answers_schema, hits_schema, indexed_schema
from neardup.settings.run import RunSettings
from neardup.version import __version__

_MAX_REJECTED = 100  # that a report lists
_COUNTS = ("read", "kept", "removed", "removed_exact", "repeated", "truncated")


class _Piece(NamedTuple):
    """The beginning of a part; or documents of it, as they were read, and as they enter an index."""

    task: Task
    documents: DocumentBatch | None = None
    batch: Batch | None = None


class _Group(NamedTuple):
    """Pieces that are added at once, and their documents as one batch, None if they have none."""

    pieces: list[_Piece]
    batch: Batch | None

    @property
    def num_bytes(self) -> int:
        return 0 if self.batch is None else int(self.batch.texts.nbytes)


class _Reading:
    """The reading of the documents of files; counts what cannot be read.

    Parameters
    ----------
    index : whose method describes the documents.
    inputs, payload_column : as in `Index.add_many_if_new`.
    settings : threads, and what happens to documents that cannot be read.
    with_payload : whether rows are to be copied to kept files.
    """

    def __init__(
        self,
        index: Index,
        inputs: Inputs,
        settings: RunSettings,
        payload_column: Sequence[str] = (),
        *,
        with_payload: bool = False,
    ) -> None:
        self.index, self.settings = index, settings
        self.warnings: list[str] = []
        self.tasks = tasks_for(inputs, index.method, self.warnings)
        self.total = known_total(self.tasks)
        self.text_bytes = self.num_rejected = 0
        self.rejected: list[Rejected] = []
        self._unread: list[str] = []
        self._payload_column, self._with_payload = list(payload_column) or None, with_payload

    def __iter__(self) -> Iterator[tuple[_Group, Incoming | None]]:
        """Yield the pieces of all parts in order, described on threads."""
        threads = count_threads(self.settings.threads)
        yield from map_ordered(self.groups(), self._describe, threads, bytes_of=lambda group: group.num_bytes)

    def groups(self) -> Iterator[_Group]:
        """Yield the pieces of all parts in order, those of small files together."""
        for pieces in group_batches(self._pieces(), lambda piece: piece.batch):
            batches = [piece.batch for piece in pieces if piece.batch is not None]
            yield _Group(pieces, Batch.join(batches) if batches else None)

    def _pieces(self) -> Iterator[_Piece]:
        reject = rejecter(self.settings.on_error, self._reject, "those before it are stored")
        for task in self.tasks:
            yield _Piece(task)
            for documents, batch in read_batches(task, self._payload_column, reject, with_payload=self._with_payload):
                self.text_bytes += int(batch.texts.nbytes)
                yield _Piece(task, documents, batch)

    def _describe(self, group: _Group) -> Incoming | None:
        return None if group.batch is None else self.index._describe(group.batch)

    def _reject(self, row: Rejected) -> None:
        if row.rest_of_file:
            self._unread.append(row.file)
        else:
            self.num_rejected += 1
        self.rejected.append(row)
        del self.rejected[_MAX_REJECTED:]

    def report(self, command: str, counts: dict[str, int], stages: Stages) -> dict[str, Any]:
        """Return the report of a command, as values for JSON."""
        return {
            "version": __version__,
            "command": command,
            "index": self.index.address,
            "counts": {**counts, "rejected": self.num_rejected},
            "incomplete": describe_incomplete(len(self._unread), self._unread[:MAX_UNREAD_NAMED]),
            "promise": self.index._store.promise,
            **describe_cost(stages, counts["read"], self.text_bytes),
            "rejected": [row._asdict() for row in self.rejected],
            "warnings": self.warnings,
        }


class _KeptFiles(AbstractContextManager["_KeptFiles"]):
    """The rows that were kept, in files of the format of their inputs; of nothing, if `output` is None."""

    def __init__(self, output: str | None, tasks: Sequence[Task], *, overwrite: bool) -> None:
        self._path = None if output is None else _kept_path(output, [task.part for task in tasks], overwrite)
        self._is_file = self._path is not None and format_of(self._path.name)[0] is not None
        self._overwrite = overwrite
        self._writer: KeptWriter | None = None

    def write(self, pieces: Sequence[_Piece], kept: npt.NDArray[np.bool_]) -> None:
        """Append the rows that were kept. kept : of the documents of all pieces."""
        start = 0
        for piece in pieces:
            if piece.documents is None:
                self._begin(piece.task.part)
                continue
            stop = start + len(piece.documents.rows)
            if self._writer is not None:
                assert piece.documents.payload is not None  # read with payload
                self._writer.write(piece.documents.payload, kept[start:stop])
            start = stop

    def _begin(self, part: Part) -> None:
        """Finish the file of the part before, and open that of the next part."""
        self._finish()
        if self._path is None:
            return
        folder, name = (self._path.parent, self._path.name) if self._is_file else (self._path, None)
        self._writer = KeptWriter(part, folder, name=name, overwrite=self._overwrite)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._finish()
        elif self._writer is not None:
            self._writer.discard()

    def _finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


def _kept_path(output: str, parts: Sequence[Part], overwrite: bool) -> Path:
    """Return the file of kept rows, or the folder of such files.

    Raises
    ------
    OutputError
        If it exists, or is a file for several inputs, or for an input of another format.
    """
    refuse_address(output, "file or folder")
    path, wanted = Path(output), format_of(output)
    if path.exists() and not overwrite:
        raise OutputError(f"The output {output} already exists. Use another name, or pass --overwrite.")
    if wanted[0] is None:
        return path
    if len(parts) > 1:
        raise OutputError(
            f"The kept rows of {len(parts)} inputs are written to one file per input: got the file {output}. Pass a "
            "folder."
        )
    found = format_of(parts[0].relative_name)
    if wanted != found:
        suffix = "".join(Path(parts[0].relative_name).suffixes[-2 if found[1] else -1 :])
        raise OutputError(
            f"Kept rows have the format of their input, {parts[0].name}: got {output}. Use a name that ends in "
            f"{suffix}, or a folder."
        )
    return path


def add_files(
    index: Index,
    inputs: Inputs,
    settings: RunSettings,
    stages: Stages,
    *,
    command: str,
    if_new: bool = True,
    run: str | None = None,
    payload_column: Sequence[str] = (),
    kept: str | None = None,
    only_new: bool = False,
    answers: str | None = None,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Add the documents of files to an index, and return the report.

    Parameters
    ----------
    index : to add to; each batch is stored when its answers are written.
    inputs, run, payload_column : as in `Index.add_many_if_new`.
    settings : threads, and what happens to documents that cannot be read.
    stages : of the progress.
    command : its name in the report.
    if_new : whether documents that are similar to a kept one are removed.
    kept : a file in the format of the only input, or a folder, for the rows of the documents that were kept.
    only_new : whether to leave out of them the documents that the index had already.
    answers : a file (.parquet, .jsonl, .csv) for a row about each document: `schemas.answers_schema`.
    overwrite : whether the two may replace files.

    Raises
    ------
    OutputError
        If a file exists without `overwrite`, or cannot be written.
    InputError, StoreError
        As in `Index.add_many_if_new`.
    """
    reading = _Reading(index, inputs, settings, payload_column, with_payload=kept is not None)
    file = None if answers is None else TableFile(Path(answers), overwrite=overwrite)
    counts = dict.fromkeys(_COUNTS, 0)

    def decided(files: _KeptFiles) -> Iterator[pa.Table]:
        with stages.stage("add", reading.total) as progress:
            for group, incoming in reading:
                if group.batch is None or incoming is None:
                    files.write(group.pieces, np.empty(0, np.bool_))
                    continue
                table = index._write(incoming, group.batch, if_new, run)
                _count(counts, table)
                repeated = table["repeated"].to_numpy()
                files.write(group.pieces, table["kept"].to_numpy() & ~(repeated & only_new))
                progress.advance(len(table), group.num_bytes)
                yield table

    with _KeptFiles(kept, reading.tasks, overwrite=overwrite) as files:
        _write(file, decided(files), answers_schema(index._rules.method.measures))
    return reading.report(command, counts, stages)


def _count(counts: dict[str, int], answers: pa.Table) -> None:
    kept, repeated = answers["kept"].to_numpy(), answers["repeated"].to_numpy()
    exact = answers["exact"].fill_null(False).to_numpy() if "exact" in answers.column_names else np.zeros_like(kept)
    truncated = answers["truncated"].to_numpy()
    found = (len(kept), kept.sum(), (~kept).sum(), (exact & ~kept).sum(), repeated.sum(), truncated.sum())
    for name, number in zip(_COUNTS, found, strict=True):
        counts[name] += int(number)


def _write(file: TableFile | None, tables: Iterator[pa.Table], schema: pa.Schema) -> None:
    """Write tables to a file, or only draw them if it is None."""
    if file is None:
        for _ in tables:
            pass
    else:
        file.write(_batches(tables, schema), schema)


def _batches(tables: Iterable[pa.Table], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    return chain.from_iterable(table.cast(schema).to_batches() for table in tables)


def stage_files(
    index: Index,
    inputs: Inputs,
    settings: RunSettings,
    stages: Stages,
    *,
    run: str,
    payload_column: Sequence[str] = (),
) -> dict[str, Any]:
    """Store the documents of files in an open run, and return the report. Parameters and errors as in `add_files`."""
    index._require_open(run)
    reading = _Reading(index, inputs, settings, payload_column)
    count = 0
    with stages.stage("stage", reading.total) as progress:
        for group in reading.groups():
            if group.batch is not None:
                with index._store.writing() as writer:
                    writer.stage(run, time.time_ns() // 1000, group.batch.table())
                count += len(group.batch.texts)
                progress.advance(len(group.batch.texts), group.num_bytes)
    return reading.report("index runs stage", {"read": count}, stages)


def query_files(
    index: Index,
    inputs: Inputs,
    settings: RunSettings,
    stages: Stages,
    *,
    limit: int = 10,
    output: str | None = None,
    overwrite: bool = False,
) -> tuple[dict[str, Any], pa.Table]:
    """Find the kept documents that are similar to each document of files.

    Parameters
    ----------
    index, inputs, settings, stages : as in `add_files`.
    limit : the greatest number of hits of a document, the most similar.
    output : a file for the hits (.parquet, .jsonl, .csv); without one they are returned.
    overwrite : whether it may replace a file.

    Returns
    -------
    The report; and the hits, `schemas.hits_schema` with the id of each query, of no rows if they are in the file.
    """
    reading = _Reading(index, inputs, settings)
    file = None if output is None else TableFile(output, overwrite=overwrite)
    schema = _with_query_ids(hits_schema(index._rules.method.measures))
    counts, found = {"read": 0, "found": 0, "hits": 0}, [schema.empty_table()]

    def hits() -> Iterator[pa.Table]:
        with stages.stage("query", reading.total) as progress:
            for group, incoming in reading:
                if group.batch is None or incoming is None:
                    continue
                table = _numbered(_hits(index, incoming, limit), group.batch, counts["read"], schema)
                counts["read"] += len(group.batch.texts)
                counts["hits"] += len(table)
                counts["found"] += len(table["query"].unique())
                progress.advance(len(group.batch.texts), group.num_bytes)
                yield table

    if file is None:
        found += hits()
    else:
        _write(file, hits(), schema)
    return reading.report("index query", counts, stages), pa.concat_tables(found)


def _hits(index: Index, incoming: Incoming, limit: int) -> pa.Table:
    with index._store.reading() as snapshot:
        return collection.query(index._rules, snapshot, incoming, limit).hits


def _with_query_ids(schema: pa.Schema) -> pa.Schema:
    meaning = {"meaning": "The id of the query: its id column, else its number."}
    return schema.insert(1, pa.field("query_id", pa.large_string(), nullable=False, metadata=meaning))


def _numbered(hits: pa.Table, batch: Batch, first: int, schema: pa.Schema) -> pa.Table:
    """Return hits with the positions of their queries in all inputs, and their ids."""
    query = hits["query"].to_numpy()
    positions = pa.array(query + first)
    ids = positions.cast(pa.large_string()) if batch.is_unnamed else batch.ids.take(pa.array(query))
    columns = {name: hits[name] for name in hits.column_names} | {"query": positions, "query_id": ids}
    return pa.table([columns[name] for name in schema.names], schema=schema)


def export_documents(index: Index, output: str, stages: Stages, *, overwrite: bool = False) -> dict[str, Any]:
    """Write all documents of an index to a file (.parquet, .jsonl, .csv), and return the report.

    Parameters
    ----------
    index : to read; documents that are added meanwhile are left out.
    output : the file. Signatures and fingerprints are bytes in Parquet, and hexadecimal digits elsewhere.
    stages : of the progress.
    overwrite : whether it may replace a file.
    """
    file = TableFile(output, overwrite=overwrite)
    counts = index.info()["documents"]
    plain: Callable[[pa.Table], pa.Table] = _with_hex if file.is_text else lambda table: table

    def tables() -> Iterator[pa.Table]:
        with stages.stage("export", sum(counts.values())) as progress:
            for table in index.documents():
                progress.advance(len(table), int(table.nbytes))
                yield plain(table)

    schema = plain(maintenance.shown(index._rules, _no_documents(index))).schema
    _write(file, tables(), schema)
    return {
        "version": __version__,
        "command": "index export",
        "index": index.address,
        "counts": {"exported": file.num_rows},
        "output": str(file.path),
    }


def _no_documents(index: Index) -> pa.Table:
    return indexed_schema(index._rules.method.measures).empty_table()


def _with_hex(table: pa.Table) -> pa.Table:
    """Return documents with their signatures as hexadecimal digits."""
    at = table.schema.get_field_index("sketch")
    digits = pa.array([row.hex() for row in table["sketch"].to_pylist()], pa.large_string())
    return table.set_column(at, "sketch", digits)
