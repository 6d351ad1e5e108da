"""File jobs on an index: add, query or stage the documents of files, and export its documents."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.api.index_lines import LineAnswers, LineOptions
from neardup.arrays import Mask, flatten_strings
from neardup.documents.batch import Losses, Rejected
from neardup.errors import OutputError
from neardup.executor import map_ordered
from neardup.files import AnyPath, JsonObject, writing_to
from neardup.formats.reading import InputFile, Part, Task, known_total
from neardup.formats.registry import format_of
from neardup.index import maintenance
from neardup.index.documents import (
    Origin,
    Piece,
    find,
    group_batches,
    names_of_inputs,
    read_batches,
)
from neardup.index.incoming import Incoming
from neardup.index.open_index import Batch, OpenIndex
from neardup.output.kept import KeptWriter
from neardup.output.tables import TableFile
from neardup.progress import Progress, Stages
from neardup.report.contents import describe_cost, describe_losses, warn_of_textless
from neardup.report.stages import open_stages
from neardup.runs.directory import name_of, refuse_address, refuse_stdout
from neardup.runs.overlap import refuse_replacing
from neardup.runs.run import ReadingOptions, Source, Unpack, run_of, spelled_out
from neardup.schemas import hits_schema
from neardup.settings.constraints import ColumnNames, check_kind, check_limit
from neardup.settings.run import OnError, RunSettings
from neardup.version import __version__

_MAX_REJECTED = 100  # that a report lists
_COUNTS = ("read", "kept", "removed", "removed_exact", "repeated", "truncated")


class _Group(NamedTuple):
    """Pieces that are added at once, and their documents as one batch, None if they have none."""

    pieces: list[Piece]
    batch: Batch | None

    @property
    def num_bytes(self) -> int:
        return 0 if self.batch is None else int(self.batch.texts.nbytes)


class FileHits(NamedTuple):
    """The result of `Index.query_files`.

    hits : `schemas.hits_schema` with the id of each query; no rows if they are in a file. report :
    values for JSON.
    """

    hits: pa.Table
    report: JsonObject


class _Reading:
    """Read the documents of files; count the rows that cannot be read.

    Parameters
    ----------
    index : whose method describes the documents.
    source, payload_column, options : as in `Index.add_files`.
    origin : its options `sources` and `dates`.
    with_payload : whether rows are to be copied to kept files.
    """

    def __init__(
        self,
        index: OpenIndex,
        source: Source,
        options: ReadingOptions,
        payload_column: ColumnNames = None,
        *,
        origin: Origin = Origin(),  # noqa: B008 - immutable
        with_payload: bool = False,
    ) -> None:
        self.index = index
        self.stages = Stages()
        origin.refuse_untracked(index)
        self._run = run_of(
            "index",
            source,
            options,
            method=index.method,
            described=origin.columns,
            ordered=origin.ordered,
        )
        self.tasks, _, self.warnings = find(self._run)
        if self._run.inputs.text_unit == "auto":
            self.warnings += _warn_of_lines(self.tasks)
        self._input_names = names_of_inputs(source, self.tasks, origin.sources)
        self._origin = origin
        self.text_bytes = 0
        self.rejected: list[Rejected] = []
        self._losses = Losses()
        self._payload_column = payload_column
        self._with_payload = with_payload

    @contextmanager
    def stage(self, name: str) -> Iterator[Progress]:
        """Open the only stage of a job."""
        with (
            open_stages(self._run.progress) as self.stages,
            self.stages.stage(name, known_total(self.tasks)) as progress,
        ):
            yield progress

    def __iter__(self) -> Iterator[tuple[_Group, Incoming | None]]:
        """Yield the pieces of all parts in order, described on threads."""
        yield from map_ordered(
            self.groups(), self._describe, self._run.threads, bytes_of=lambda group: group.num_bytes
        )

    def groups(self) -> Iterator[_Group]:
        """Yield the pieces of all parts in order, small files together."""
        for pieces in group_batches(self._pieces(), lambda piece: piece.batch):
            batches = [piece.batch for piece in pieces if piece.batch is not None]
            yield _Group(pieces, Batch.join(batches) if batches else None)

    def _pieces(self) -> Iterator[Piece]:
        reject = self._run.rejecter(self._reject, "those before it are stored")
        for piece in read_batches(
            self.tasks,
            self._payload_column,
            reject,
            self._run.threads,
            with_payload=self._with_payload,
            input_names=self._input_names,
            origin=self._origin,
        ):
            if piece.batch is not None:
                part = piece.task.part
                self._losses.add_documents(part.name, part.format, piece.batch.texts)
                self.text_bytes += flatten_strings(piece.batch.texts)[0].nbytes
            yield piece

    def _describe(self, group: _Group) -> Incoming | None:
        return None if group.batch is None else self.index.describe(group.batch)

    def _reject(self, row: Rejected) -> None:
        self._losses.add(row)
        self.rejected.append(row)
        # All are counted; the first ones are listed.
        del self.rejected[_MAX_REJECTED:]

    def report(self, command: str, counts: dict[str, int]) -> JsonObject:
        """Return the report of a command, as values for JSON."""
        return {
            "version": __version__,
            "command": command,
            "index": self.index.address,
            "counts": {**counts, "rejected": self._losses.rejected},
            **describe_losses(self._losses, counts["read"]),
            "promise": self.index.store.promise,
            **describe_cost(self.stages, counts["read"], self.text_bytes),
            "rejected": [row._asdict() for row in self.rejected],
            "warnings": self.warnings + warn_of_textless(self._losses),
        }


def _warn_of_lines(tasks: Sequence[Task]) -> list[str]:
    """Warn that a text file is read by lines as it comes alone.

    An index gets files at different times: the same file beside another one is a single document.
    """
    return [
        f"Each line of {task.part.name} is a document, as it is the only text file here; of "
        "several files each is one document. --text-unit file or line settles it."
        for task in tasks
        if isinstance(task.part, InputFile)
        and task.part.unit == "line"
        and task.part.name != "-"  # standard input is always one file
    ]


class _KeptFiles(ExitStack):
    """The rows that were kept, in files of the format of their inputs; no files without `output`.

    only_new : as in `Index.add_files`. paths : the files.
    """

    def __init__(
        self, output: str | None, tasks: Sequence[Task], *, only_new: bool, overwrite: bool
    ) -> None:
        super().__init__()
        self._only_new = only_new
        parts = [task.part for task in tasks]
        self._path = None if output is None else _kept_path(output, parts, overwrite)
        # A name with a known suffix is a file, any other one a folder.
        self._is_file = self._path is not None and format_of(self._path.name)[0] is not None
        # `path / ""` is the path itself.
        names = [""] if self._is_file else [part.relative_name for part in parts]
        self.paths = [] if self._path is None else [self._path / name for name in names]
        _refuse_replacing(self.paths, tasks)
        self._overwrite = overwrite
        self._writer: KeptWriter | None = None

    def write(self, pieces: Sequence[Piece], answers: pa.Table | None) -> None:
        """Append the rows that were kept. answers : about the documents of all pieces, if any."""
        kept = np.empty(0, np.bool_) if answers is None else self._is_written(answers)
        start = 0
        for piece in pieces:
            # Also for a part without documents: its file is made, and empty.
            if self._writer is None and self._path is not None:
                self._writer = self._open(self._path, piece.task.part)
            if piece.documents is None:
                # The end of the part: its file is finished before the next one begins.
                self.close()
                self._writer = None
                continue
            stop = start + len(piece.documents.rows)
            if self._writer is not None:
                assert piece.documents.payload is not None  # read with payload
                self._writer.write(piece.documents.payload, kept[start:stop])
            start = stop

    def _is_written(self, answers: pa.Table) -> Mask:
        kept: Mask = answers["kept"].to_numpy()
        return kept & ~answers["repeated"].to_numpy() if self._only_new else kept

    def _open(self, path: Path, part: Part) -> KeptWriter:
        folder = path.parent if self._is_file else path
        name = path.name if self._is_file else None
        return self.enter_context(KeptWriter(part, folder, name=name, overwrite=self._overwrite))


def _refuse_replacing(outputs: Iterable[Path], tasks: Sequence[Task]) -> None:
    """Raise OutputError if an input is one of the files that are written."""
    refuse_replacing(outputs, [task.part for task in tasks if isinstance(task.part, InputFile)])


def _kept_path(output: str, parts: Sequence[Part], overwrite: bool) -> Path:
    """Return the file of kept rows, or the folder of such files.

    Raises
    ------
    OutputError
        If it exists, or is a file for several inputs, or for an input of another format.
    """
    refuse_address(output, "file or folder")
    refuse_stdout(output)
    path = Path(output)
    wanted = format_of(output)
    with writing_to(path):  # the system may refuse so long a name
        is_there = path.exists()
    if is_there and not overwrite:
        raise OutputError(
            f"The output {output} already exists. Use another name, or pass --overwrite."
        )
    if wanted[0] is None:
        return path
    if len(parts) > 1:
        raise OutputError(
            f"The kept rows of {len(parts)} inputs are written to one file per input: got the file "
            f"{output}. Pass a folder."
        )
    found = format_of(parts[0].relative_name)
    # Rows are written in the format of the input, compression included.
    if wanted != found:
        suffix = "".join(Path(parts[0].relative_name).suffixes[-2 if found[1] else -1 :])
        raise OutputError(
            f"Kept rows have the format of their input, {parts[0].name}: got {output}. Use a name "
            f"that ends in {suffix}, or a folder."
        )
    return path


def _count(counts: dict[str, int], answers: pa.Table) -> None:
    kept = answers["kept"].to_numpy()
    exact = np.zeros_like(kept)
    if "exact" in answers.column_names:
        exact = answers["exact"].fill_null(False).to_numpy()
    masks = {
        "read": np.ones_like(kept),
        "kept": kept,
        "removed": ~kept,
        "removed_exact": exact & ~kept,
        "repeated": answers["repeated"].to_numpy(),
        "truncated": answers["truncated"].to_numpy(),
    }
    for name, mask in masks.items():
        counts[name] += int(mask.sum())


def _refuse_one_file(answers: TableFile | None, kept: Iterable[Path]) -> None:
    """Raise OutputError if the file of answers is a file of kept rows."""
    # The files need not exist yet, so they have no identity to compare.
    if answers is not None and os.path.realpath(answers.path) in map(os.path.realpath, kept):
        raise OutputError(
            f"The answers and the kept rows would be one file: got {answers.path}. Use another "
            "name for answers (--answers)."
        )


def _refuse_lists(file: TableFile | None, index: OpenIndex) -> None:
    """Raise OutputError if a file cannot have the sources that an index tracks."""
    if file is None or not index.rules.tracks_sources:
        return
    if file.path.suffix.lower() == ".csv":
        raise OutputError(
            f"CSV has no lists, and the index {index.address} tracks lists of sources: got "
            f"{file.path}. Use a name that ends in .parquet or .jsonl."
        )


def _table_file(
    output: AnyPath | None, tasks: Sequence[Task], *, overwrite: bool
) -> TableFile | None:
    """Return the file of a table, if there is one. Raise OutputError if it is an input."""
    if output is None:
        return None
    file = TableFile(output, overwrite=overwrite)
    _refuse_replacing([file.path], tasks)
    return file


def _added(
    reading: _Reading, add: Callable[..., pa.Table], files: _KeptFiles, counts: dict[str, int]
) -> Iterator[pa.Table]:
    """Add documents, write the rows that are kept, and yield the answers; counts : are updated."""
    with reading.stage("add") as progress:
        for group, incoming in reading:
            if group.batch is None or incoming is None:
                files.write(group.pieces, None)
                continue
            table = add(group.batch, described=incoming)
            _count(counts, table)
            files.write(group.pieces, table)
            progress.advance(len(table), group.num_bytes)
            yield table


def _queried(
    reading: _Reading,
    query: Callable[[Incoming], pa.Table],
    schema: pa.Schema,
    counts: dict[str, int],
) -> Iterator[pa.Table]:
    """Yield the hits of documents, with the ids of the queries; counts : are updated."""
    with reading.stage("query") as progress:
        for group, incoming in reading:
            if group.batch is None or incoming is None:
                continue
            table = _numbered(query(incoming), group.batch, counts["read"], schema)
            counts["read"] += len(group.batch.texts)
            counts["hits"] += len(table)
            counts["found"] += len(table["query"].unique())
            progress.advance(len(group.batch.texts), group.num_bytes)
            yield table


def _write(file: TableFile | None, tables: Iterator[pa.Table], schema: pa.Schema) -> None:
    """Write tables to a file, or only draw them if it is None."""
    batches = chain.from_iterable(table.cast(schema).to_batches() for table in tables)
    if file is None:
        # Runs the iterator to its end without keeping anything.
        deque(batches, maxlen=0)
    else:
        file.write(batches, schema)


def _numbered(hits: pa.Table, batch: Batch, first: int, schema: pa.Schema) -> pa.Table:
    """Return hits with the positions of their queries in all inputs, and their ids."""
    query = hits["query"].to_numpy()
    positions = pa.array(query + first)
    ids = positions.cast(pa.large_string()) if batch.is_unnamed else batch.ids.take(pa.array(query))
    columns = {name: hits[name] for name in hits.column_names} | {
        "query": positions,
        "query_id": ids,
    }
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _with_hex(table: pa.Table) -> pa.Table:
    """Return documents with their signatures as hexadecimal digits."""
    at = table.schema.get_field_index("sketch")
    digits = pa.array([row.hex() for row in table["sketch"].to_pylist()], pa.large_string())
    return table.set_column(at, "sketch", digits)


class FileJobs:
    """The jobs of an index on files, and on lines as they arrive."""

    opened: OpenIndex

    @spelled_out(ReadingOptions)
    def add_files(
        self,
        source: Source,
        *,
        if_new: bool = True,
        output: AnyPath | None = None,
        only_new: bool = False,
        answers: AnyPath | None = None,
        overwrite: bool = False,
        payload_column: ColumnNames = None,
        sources: str | None = None,
        dates: str | None = None,
        import_name: str | None = None,
        **options: Unpack[ReadingOptions],
    ) -> JsonObject:
        """Add the documents of files, write the rows of the kept ones, and return a report.

        Parameters
        ----------
        source : files, as in `dedup`.
        if_new : whether documents similar to a kept one are removed.
        output : a file in the format of the only input, or a folder, for the rows of kept
            documents.
        only_new : leave out of `output` the documents that the index had already.
        answers : a file (.parquet, .jsonl, .csv) for the answers, `schemas.answers_schema`.
        overwrite : whether the two may replace files.
        payload_column, sources, dates, import_name : as in `add_many_if_new`.
        text_column, roles, id_column : as in `dedup`.
        text_unit, in_format, quote, max_document_bytes : as in `dedup`.
        threads, on_error, max_unreadable, progress : as in `dedup`.

        Raises
        ------
        InputError, StoreError
            As in `add_many_if_new`.
        """
        kept = None if output is None else name_of(output)
        reading = _Reading(
            self.opened,
            source,
            options,
            payload_column,
            origin=Origin(sources, dates),
            with_payload=kept is not None,
        )
        file = _table_file(answers, reading.tasks, overwrite=overwrite)
        _refuse_lists(file, self.opened)
        counts = dict.fromkeys(_COUNTS, 0)
        add = partial(self.opened.add, if_new=if_new, import_name=import_name)
        with _KeptFiles(kept, reading.tasks, only_new=only_new, overwrite=overwrite) as files:
            _refuse_one_file(file, files.paths)
            tables = _added(reading, add, files, counts)
            _write(file, tables, self.opened.rules.answers)
        return reading.report("index add-if-new" if if_new else "index add", counts)

    @spelled_out(ReadingOptions)
    def query_files(
        self,
        source: Source,
        *,
        limit: int = 10,
        output: AnyPath | None = None,
        overwrite: bool = False,
        **options: Unpack[ReadingOptions],
    ) -> FileHits:
        """Find the kept documents similar to each document of files; return `.hits` and `.report`.

        Parameters
        ----------
        source, options : as in `add_files`.
        limit : the maximum number of hits for each, the most similar.
        output : a file for the hits (.parquet, .jsonl, .csv). Default: they are returned.
        overwrite : whether it may replace a file.
        """
        limit = check_limit(limit)
        reading = _Reading(self.opened, source, options)
        file = _table_file(output, reading.tasks, overwrite=overwrite)
        query_id = pa.field(
            "query_id",
            pa.large_string(),
            nullable=False,
            metadata={"meaning": "The id of the query: its id column, else its number."},
        )
        schema = hits_schema(self.opened.measures).insert(1, query_id)
        counts = {"read": 0, "found": 0, "hits": 0}
        tables = _queried(reading, partial(self.opened.query, limit=limit), schema, counts)
        found = [schema.empty_table()]
        if file is None:
            found += tables
        else:
            _write(file, tables, schema)
        return FileHits(pa.concat_tables(found), reading.report("index query", counts))

    @spelled_out(ReadingOptions)
    def stage_files(
        self,
        import_name: str,
        source: Source,
        *,
        payload_column: ColumnNames = None,
        sources: str | None = None,
        dates: str | None = None,
        **options: Unpack[ReadingOptions],
    ) -> JsonObject:
        """Store the documents of files in an open import, and return a report. Parameters as in
        `add_files`.
        """
        # Before files are read: a misspelt name is an error at once.
        self.opened.require_open(import_name)
        origin = Origin(sources, dates)
        reading = _Reading(self.opened, source, options, payload_column, origin=origin)
        count = 0
        with reading.stage("stage") as progress:
            for group in reading.groups():
                if group.batch is not None:
                    count += self.opened.stage(import_name, [group.batch])
                    progress.advance(len(group.batch.texts), group.num_bytes)
        return reading.report("index imports stage", {"read": count})

    @spelled_out(LineOptions)
    def answer_lines(
        self,
        groups: Iterable[Sequence[bytes]],
        *,
        on_error: OnError = "reject",
        **options: Unpack[LineOptions],
    ) -> Iterator[list[tuple[bytes, JsonObject]]]:
        """Add the documents of JSON lines that are new, and yield each group of lines with answers.

        Parameters
        ----------
        groups : lines without line ends; a group is stored at once.
        on_error : reject, or stop at the first line that has no document.
        text_column, id_column : the fields of the text and of the id, as columns in `dedup`.
            Default: the first usual name in the first document. Documents without an id get one.
        roles : as in `dedup`.
        payload_column, import_name : as in `add_many_if_new`.
        sources, dates : the fields of the sources and dates of documents, if the index tracks them.
        max_document_bytes : longer texts are refused.

        Returns
        -------
        iterator of list of (line, dict): the columns of `schemas.answers_schema`; or `error`, for a
        line without a document.
        """
        check_kind("groups", groups, Iterable, "lists of lines, which are bytes")
        stops = RunSettings(on_error=on_error).on_error == "stop"
        answers = LineAnswers(self.opened, options)
        return (answers.answer(lines, stop_at_error=stops) for lines in groups)

    def export(
        self, output: AnyPath, *, overwrite: bool = False, progress: bool | Progress = False
    ) -> JsonObject:
        """Write all documents, with the columns of `documents`, to a file, and return a report.

        Parameters
        ----------
        output : the file (.parquet, .jsonl, .csv). Signatures and fingerprints are bytes in
            Parquet, and hexadecimal digits elsewhere.
        overwrite : whether it may replace a file.
        progress : as in `dedup`.
        """
        file = TableFile(output, overwrite=overwrite)
        _refuse_lists(file, self.opened)
        plain: Callable[[pa.Table], pa.Table] = _with_hex if file.is_text else lambda table: table

        def tables() -> Iterator[pa.Table]:
            with (
                self.opened.store.reading() as snapshot,
                open_stages(progress) as stages,
                stages.stage("export", sum(snapshot.count())) as bar,
            ):
                for table in maintenance.documents(self.opened.rules, snapshot):
                    bar.advance(len(table), int(table.nbytes))
                    yield plain(table)

        # The schema must be known before the first rows.
        schema = plain(maintenance.no_documents(self.opened.rules)).schema
        _write(file, tables(), schema)
        return {
            "version": __version__,
            "command": "index export",
            "index": self.opened.address,
            "counts": {"exported": file.num_rows},
            "output": str(file.path),
        }
