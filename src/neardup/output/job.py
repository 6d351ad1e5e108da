"""The job of a run: the order in which an output is written, published and cleared."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import pyarrow as pa

from neardup.files import JsonObject, Output, json_lines, write_bytes, write_text
from neardup.output.tables import parquet_writer
from neardup.output.write import REPORT, report_bytes, write_rejected
from neardup.progress import Progress, Stages
from neardup.report.contents import warn_if_incomplete
from neardup.report.record import Report
from neardup.report.stages import open_stages
from neardup.runs.directory import OutputDirectory
from neardup.runs.run import Run
from neardup.runs.scratch import Scratch, workspace

Result = TypeVar("Result", covariant=True)


class Table(NamedTuple):
    """A table of a product, which becomes `name`.parquet. batches : yields it, each time it is
    called.
    """

    name: str
    schema: pa.Schema
    batches: Callable[[], Iterable[pa.RecordBatch]]

    def read(self) -> pa.Table:
        """Return the table in memory."""
        return pa.Table.from_batches(self.batches(), self.schema)


class Product(ABC, Generic[Result]):
    """The output of a command: tables, documents, a report and its pages, and the result for the
    caller.

    A job calls the methods in this order. Without an output folder, it calls `report` and `result`
    alone.
    """

    num_documents: int = 0
    """The documents that `write_documents` passes, for the progress of writing."""
    writes_tables_beside: bool = False
    """Whether the tables are written on a thread beside the documents."""

    def tables(self) -> Sequence[Table]:
        """Return the tables of the output folder."""
        return ()

    def write_documents(self, folder: Path, progress: Progress, beside: Executor) -> None:
        """Write the documents of the output folder, if the product has any. beside : a thread for
        other work.
        """

    @abstractmethod
    def report(self) -> Report:
        """Return the report, once tables and documents are written."""

    @abstractmethod
    def pages(self, report: JsonObject, output: Output) -> dict[str, str]:
        """Return the pages of the report, by the names of their files. output : the folder as it
        will be.
        """

    @abstractmethod
    def result(self, report: JsonObject, output: Output) -> Result:
        """Return the result of the command, before scratch files are deleted."""


class Committing(Protocol):
    """The part of an engine that a job uses."""

    def commit(self, report: JsonObject, folder: OutputDirectory | None) -> None:
        """Apply side effects, such as documents added to an index, once the output is complete.

        report : the report of the output after the side effects.
        """


@dataclass
class Job:
    """A run from its folder to its result: a lock on the output, scratch files, stages."""

    run: Run
    folder: OutputDirectory | None
    scratch: Scratch
    stages: Stages
    finished: JsonObject | None = None
    """The report, once the job is finished. `open_job` warns if inputs were not read completely."""

    def rejected(self) -> list[JsonObject]:
        """Return the rows that could not be read."""
        source = self.scratch.directory / "rejected.jsonl"
        return list(json_lines(source.read_bytes())) if source.exists() else []

    def finish(self, product: Product[Result], engine: Committing | None = None) -> Result:
        """Write a product, publish it, and clear the scratch files; return its result.

        engine : commits the side effects of the run.
        """
        folder = self.folder
        if folder is not None:
            self._write(product, folder)
        record = product.report()
        report = record.to_dict()
        output = None if folder is None else folder.path
        if folder is not None:
            for name, page in product.pages(report, output).items():
                write_text(folder.result / name, page)
            # Until `commit`, report.json states that the index was not changed yet.
            write_bytes(folder.result / REPORT, report_bytes(record.before_update().to_dict()))
        result = product.result(report, output)
        if folder is not None:
            folder.publish()
        # The index changes after the output is complete: after a crash in between, the same run
        # with overwrite decides as before.
        if engine is not None:
            engine.commit(report, folder)
        self.scratch.close()
        if folder is not None:
            folder.clear()
        # Last: only a finished job warns.
        self.finished = report
        return result

    def _write(self, product: Product[Any], folder: OutputDirectory) -> None:
        """Write the tables, the rejected rows and the documents."""
        with (
            self.stages.stage("write", product.num_documents or None) as progress,
            ThreadPoolExecutor(1) as beside,
        ):
            listed = beside.submit(_write_tables, product.tables(), folder.result)
            if not product.writes_tables_beside:
                # Tables and documents at once would take more memory.
                listed.result()
            write_rejected(self.scratch.directory, folder.result / "rejected.jsonl")
            product.write_documents(folder.result, progress, beside)
            listed.result()  # raises an error of the thread


def _write_tables(tables: Sequence[Table], folder: Path) -> None:
    for table in tables:
        with parquet_writer(folder / f"{table.name}.parquet", table.schema) as writer:
            for batch in table.batches():
                writer.write_batch(batch)


@contextmanager
def open_job(run: Run, inputs: Iterable[str] = ()) -> Iterator[Job]:
    """Open the job of a run, and discard the unfinished output on an error.

    inputs : the names of the inputs.

    Raises
    ------
    OutputError
        If the output exists, is being written by another run, or an input is in it.
    """
    wanted = run.folder
    folder = None
    if wanted.output is not None:
        folder = OutputDirectory(
            wanted.output,
            overwrite=wanted.overwrite,
            resume=wanted.resume,
            scratch=wanted.scratch,
        )
    with open_stages(run.progress) as stages, workspace(folder, wanted.scratch) as files:
        if folder is not None:
            folder.refuse_inputs_inside(inputs)
        job = Job(run, folder, files, stages)
        yield job
    # Outside of the contexts: a warning that a filter turns into an error must not discard the
    # output.
    if job.finished is not None:
        warn_if_incomplete(job.finished, run.settings.on_error)
