"""Write all documents with columns added: the kept document, similarity, cluster, duplicates."""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import ExitStack
from itertools import chain, count
from pathlib import Path

import numpy as np
import pyarrow as pa

from neardup.arrays import arrow_of, find_in
from neardup.decide.outcome import Removals
from neardup.documents.added_columns import append_columns, append_keys
from neardup.documents.batch import DocumentBatch, RawLines
from neardup.documents.sinks import Sink
from neardup.formats.parquet import ParquetLayout, ParquetSink
from neardup.formats.reading import Part, Task
from neardup.output.tables import as_rows
from neardup.progress import Progress
from neardup.runs.locations import DocumentLocations
from neardup.schemas import EXACT, Measures, annotation_schema


class Annotations:
    """The columns that are added to documents, for any range of them.

    removals : of the run, in input order. measures : of the method.
    """

    def __init__(
        self, removals: Removals, locations: DocumentLocations, measures: Measures
    ) -> None:
        self.removals = removals
        self.locations = locations
        self.measures = [measure for measure in measures if measure is not EXACT]
        # Sorted, so that the number of a document's removals is found by two searches.
        self._keepers = np.sort(removals.kept)
        self.schema = annotation_schema(self.measures)

    def between(self, start: int, stop: int) -> pa.RecordBatch:
        """Return the columns of the documents in [start, stop)."""
        # Removals are in the order of documents.
        low, high = np.searchsorted(self.removals.documents, [start, stop])
        part = self.removals.take(slice(low, high))
        documents = np.arange(start, stop)
        row, is_removed = find_in(part.documents, documents)
        # Taking a null row gives null: a kept document has no keeper and no measures.
        rows = pa.array(row, mask=~is_removed)
        cluster = documents.copy()
        cluster[is_removed] = part.clusters
        num_duplicates = np.searchsorted(self._keepers, documents, "right")
        num_duplicates -= np.searchsorted(self._keepers, documents)
        columns = [
            self.locations.ids(part.kept).take(rows),
            *(column.take(rows) for column in part.measured.arrow(self.measures)),
            arrow_of(cluster),
            pa.array(num_duplicates, mask=is_removed),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)


def write_annotated(
    tasks: list[Task], annotations: Annotations, first: int, directory: Path, progress: Progress
) -> None:
    """Write the documents of the inputs with the columns; JSON lines stay JSON lines, other formats
    become Parquet.

    Parameters
    ----------
    tasks : the inputs without an earlier collection; their documents are numbered from `first`.
    """
    tables: dict[str, Sink] = {}  # of documents that are files, by name
    names = _names_of([task.part for task in tasks])
    with ExitStack() as all_inputs:
        for task, name in zip(tasks, names, strict=True):
            is_file = task.part.unit == "file"
            # At once: many inputs must not keep as many files open.
            with ExitStack() as this_input:
                sink = tables.get(name) if is_file else None
                for batch in task.read(with_payload=True):
                    stop = first + len(batch.rows)
                    rows = _annotated(batch, task, annotations.between(first, stop))
                    if sink is None:
                        sink = _open(task, rows, directory / name)
                        (all_inputs if is_file else this_input).callback(sink.close)
                    sink.write(rows)
                    progress.advance(len(batch.rows), batch.text_bytes)
                    first = stop
                if is_file and sink is not None:
                    tables[name] = sink


def _names_of(parts: Sequence[Part]) -> list[str]:
    """Return the name of the output of each input. Documents that are files are the rows of one
    table for each format.
    """
    # Tables and JSON lines keep their names, which no other output may have.
    used = {part.relative_name for part in parts if part.unit != "file"}
    chosen: dict[tuple[bool, str], str] = {}
    names = []
    for part in parts:
        is_file = part.unit == "file"
        stem = part.format if is_file else part.relative_name
        if not is_file and (part.format == "jsonl" or stem.endswith(".parquet")):
            names.append(stem)
            continue
        if (is_file, stem) not in chosen:
            name = _unused(stem, used)
            chosen[is_file, stem] = name
            used.add(name)
        names.append(chosen[is_file, stem])
    return names


def _unused(stem: str, used: Container[str]) -> str:
    """Return the name of a table that no other output has: stem.parquet, or stem-2.parquet."""
    endings = chain([""], (f"-{number}" for number in count(2)))
    names = (f"{stem}{ending}.parquet" for ending in endings)
    return next(name for name in names if name not in used)


def _open(task: Task, rows: pa.RecordBatch | RawLines, path: Path) -> Sink:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(rows, RawLines):
        return task.part.make_sink()(str(path))
    return ParquetSink(str(path), ParquetLayout(rows.schema))


def _annotated(
    batch: DocumentBatch, task: Task, added: pa.RecordBatch
) -> pa.RecordBatch | RawLines:
    if isinstance(batch.payload, RawLines) and task.part.format == "jsonl":
        return append_keys(batch.payload, added)
    return append_columns(as_rows(batch, task), added)
