"""Write all documents with columns added: the kept document, similarity, cluster, duplicates."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa

from neardup.arrays import arrow_of, find_in
from neardup.decide.outcome import Removals
from neardup.documents.added_columns import append_columns, append_keys
from neardup.documents.batch import DocumentBatch, RawLines
from neardup.documents.sinks import Sink
from neardup.formats.parquet import ParquetLayout, ParquetSink
from neardup.formats.reading import Task
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
    # Documents that are files are the rows of one table for each format.
    shared: dict[str, Sink] = {}
    with ExitStack() as stack:
        for task in tasks:
            own: Sink | None = None
            sinks = shared if task.part.unit == "file" else {}
            for batch in task.read(with_payload=True):
                stop = first + len(batch.rows)
                rows = _annotated(batch, task, annotations.between(first, stop))
                own = sinks.get(task.part.format)
                if own is None:
                    own = sinks[task.part.format] = _open(task, rows, directory)
                    if sinks is shared:
                        stack.callback(own.close)
                own.write(rows)
                progress.advance(len(batch.rows), batch.text_bytes)
                first = stop
            if own is not None and sinks is not shared:
                # At once: many inputs must not keep as many files open.
                own.close()


def _open(task: Task, rows: pa.RecordBatch | RawLines, directory: Path) -> Sink:
    part = task.part
    name = f"{part.format}.parquet" if part.unit == "file" else part.relative_name
    if isinstance(rows, RawLines):
        make = part.make_sink()
    else:
        name += "" if name.endswith(".parquet") else ".parquet"

        def make(path: str) -> Sink:
            return ParquetSink(path, ParquetLayout(rows.schema))

    (directory / name).parent.mkdir(parents=True, exist_ok=True)
    return make(str(directory / name))


def _annotated(
    batch: DocumentBatch, task: Task, added: pa.RecordBatch
) -> pa.RecordBatch | RawLines:
    if isinstance(batch.payload, RawLines) and task.part.format == "jsonl":
        return append_keys(batch.payload, added)
    return append_columns(as_rows(batch, task), added)
