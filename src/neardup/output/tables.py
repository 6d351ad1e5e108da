"""Build the tables of removed documents, pairs and kept rows, with their ids and locations, and
write one to a file.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc_csv
import pyarrow.parquet as pq

from neardup.arrays import Mask, Positions, arrow_file, arrow_of
from neardup.decide.outcome import Outcome, Pairs, Removals
from neardup.documents.batch import DocumentBatch, Pages
from neardup.errors import NeardupError, OutputError
from neardup.files import AnyPath, AtomicFile, JsonObject, advice_on, reason_of
from neardup.formats.reading import Task
from neardup.runs.directory import refuse_address
from neardup.runs.locations import DocumentLocations
from neardup.schemas import Measures, ids_schema, mask_schema, pairs_schema, removed_schema
from neardup.settings.constraints import check_flag


def json_line(row: JsonObject) -> str:
    """Return a row as a line of JSON; times as in ISO 8601, bytes in hexadecimal digits."""
    return json.dumps(row, ensure_ascii=False, default=_json_value) + "\n"


def _json_value(value: Any) -> str:
    if isinstance(value, bytes):
        return value.hex()
    if hasattr(value, "isoformat"):
        text: str = value.isoformat()
        return text
    return str(value)


class _JsonLines(AbstractContextManager["_JsonLines"]):
    """Writes one JSON object per line."""

    def __init__(self, path: Path, _: pa.Schema) -> None:
        # Not the encoding of the locale.
        self._file = open(path, "w", encoding="utf-8")  # noqa: SIM115 - closed on exit

    def write(self, batch: pa.RecordBatch) -> None:
        """Append a line for each row."""
        self._file.writelines(json_line(row) for row in batch.to_pylist())

    def __exit__(self, *_: object) -> None:
        self._file.close()


@contextmanager
def parquet_writer(path: Path, schema: pa.Schema) -> Iterator[pq.ParquetWriter]:
    """Open a Parquet file for rows, as neardup writes its own tables."""
    with (
        arrow_file(path, "wb") as file,
        pq.ParquetWriter(file, schema, compression="zstd") as writer,
    ):
        yield writer


@contextmanager
def _csv_writer(path: Path, schema: pa.Schema) -> Iterator[pc_csv.CSVWriter]:
    with arrow_file(path, "wb") as file, pc_csv.CSVWriter(file, schema) as writer:
        yield writer


_WRITERS: dict[str, Callable[[Path, pa.Schema], AbstractContextManager[Any]]] = {
    ".parquet": parquet_writer,
    ".jsonl": _JsonLines,
    ".csv": _csv_writer,
}


SUFFIXES = tuple(_WRITERS)


def check_output(output: AnyPath, suffixes: tuple[str, ...], *, overwrite: bool) -> Path:
    """Return the path of a file that may be written.

    Raises
    ------
    OutputError
        If it is no path, the file exists without `overwrite`, its suffix is not one of `suffixes`,
        or its folder cannot be written to.
    """
    refuse_address(output, "file")
    path = Path(output)
    if path.suffix.lower() not in suffixes:
        raise OutputError(
            f"The output {path} must end in "
            f"{'one of ' * (len(suffixes) > 1)}{', '.join(suffixes)}: got "
            f"{repr(path.suffix) if path.suffix else 'a name without a suffix'}. Use "
            f"{path.stem.strip('-.') or 'out'}{suffixes[0]}, for example."
        )
    try:
        if not check_flag("overwrite", overwrite) and _is_there(path):
            raise OutputError(
                f"The output {path} already exists. Use another file, or pass --overwrite."
            )
        _refuse_obstacle(path)
    except NeardupError:
        raise
    except OSError as error:
        raise OutputError(
            f"The output {path} cannot be written: {reason_of(error)}. {advice_on(error)}"
        ) from error
    return path


def _is_there(path: Path) -> bool:
    """Return whether there is a file or folder. Raises OSError if there cannot be: a name is too
    long, say.
    """
    try:
        path.stat()
    except FileNotFoundError:
        return False
    return True


def _refuse_obstacle(path: Path) -> None:
    """Raise the OSError that writing a file would meet, as far as it can be known without
    writing.
    """
    number = None
    if path.is_dir():
        number = errno.EISDIR
    elif not os.access(path.parent, os.W_OK):
        path.parent.stat()  # raises unless it is there
        number = errno.EACCES if path.parent.is_dir() else errno.ENOTDIR
    if number is not None:
        raise OSError(number, os.strerror(number))


class TableFile:
    """A file of rows that appears only when it is complete; its suffix sets the format. Raises as
    `check_output` does.

    Attributes
    ----------
    num_rows : the number of rows written.
    """

    def __init__(self, output: AnyPath, *, overwrite: bool) -> None:
        self.path = check_output(output, SUFFIXES, overwrite=overwrite)
        self.num_rows = 0

    @property
    def is_text(self) -> bool:
        """Return whether the format is text, which has no bytes."""
        return self.path.suffix.lower() != ".parquet"

    def write(self, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> None:
        """Write all rows, then move the file into place."""
        with (
            AtomicFile(self.path) as partial,
            _WRITERS[self.path.suffix.lower()](partial, schema) as writer,
        ):
            for batch in batches:
                writer.write(batch)
                self.num_rows += batch.num_rows


_ROWS = 65_536
_MASK_ROWS = 1 << 20


def as_rows(batch: DocumentBatch, task: Task) -> pa.RecordBatch:
    """Return all columns of a batch with its payload; for formats of lines, the columns that were
    read.
    """
    if isinstance(batch.payload, pa.RecordBatch):
        return batch.payload
    if isinstance(batch.payload, Pages):
        return batch.payload.rows()
    columns = {task.columns.text: batch.text.cast(pa.string())}
    if batch.ids is not None and task.columns.id is not None:
        columns = {":".join(task.columns.ids): batch.ids.cast(pa.string())} | columns
    return pa.RecordBatch.from_pydict(columns)


def removed_batches(
    removals: Removals, locations: DocumentLocations, measures: Measures
) -> Iterator[pa.RecordBatch]:
    """Yield the table of removed documents, in input order; see schemas.removed_schema."""
    for start in range(0, len(removals.documents), _ROWS):
        part = removals.take(slice(start, start + _ROWS))
        columns = [
            *locations.columns(part.documents),
            *locations.columns(part.kept),
            locations.roles(part.kept),
            *part.measured.arrow(measures),
            arrow_of(part.clusters.astype(np.int64)),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=removed_schema(measures))
        locations.release()


def pair_batches(
    pairs: Pairs, ids: Callable[[Positions], pa.Array], measures: Measures
) -> Iterator[pa.RecordBatch]:
    """Yield the table of duplicate pairs, left before right, by left and then by right; see
    schemas.pairs_schema.
    """
    first = np.minimum(pairs.left, pairs.right)
    second = np.maximum(pairs.left, pairs.right)
    order = np.lexsort((second, first))
    for start in range(0, len(order), _ROWS):
        part = order[start : start + _ROWS]
        columns = [ids(first[part]), ids(second[part]), *pairs.measured.take(part).arrow(measures)]
        yield pa.RecordBatch.from_arrays(columns, schema=pairs_schema(measures))


def row_masks(
    tasks: list[Task], outcome: Outcome, locations: DocumentLocations
) -> Iterator[tuple[str, Mask]]:
    """Yield for each input its name, and for each of its rows whether it is kept; a rejected row is
    not.
    """
    corpus = outcome.corpus
    kept = outcome.edits.kept
    start = 0
    for task, end, rejected in zip(
        tasks, corpus.part_ends.tolist(), corpus.part_rejected.tolist(), strict=True
    ):
        documents = np.arange(start, end, dtype=np.uint32)
        start = end
        if task.against:
            continue
        # The rows of a part rise, so the last document has the last row.
        last_row = int(locations.rows(documents[-1:]).max(initial=-1))
        mask = np.zeros(max(len(documents) + rejected, last_row + 1), np.bool_)
        # Without rejected rows, row i is document i.
        rows = slice(None) if len(mask) == len(documents) else locations.rows(documents)
        mask[rows] = kept[documents]
        yield task.part.name, mask


def mask_batches(
    tasks: list[Task], outcome: Outcome, locations: DocumentLocations
) -> Iterator[pa.RecordBatch]:
    """Yield the table of all rows of the inputs; see schemas.mask_schema."""
    for name, mask in row_masks(tasks, outcome, locations):
        for start in range(0, len(mask), _MASK_ROWS):
            part = mask[start : start + _MASK_ROWS]
            rows = np.arange(start, start + len(part), dtype=np.int64)
            columns = [pa.repeat(pa.scalar(name), len(part)), arrow_of(rows), arrow_of(part)]
            yield pa.RecordBatch.from_arrays(columns, schema=mask_schema())
    locations.release()


def id_batches(outcome: Outcome, locations: DocumentLocations) -> Iterator[pa.RecordBatch]:
    """Yield the table of kept documents; see schemas.ids_schema."""
    kept = outcome.edits.kept
    for start in range(outcome.corpus.num_against, len(kept), _ROWS):
        documents = (start + np.flatnonzero(kept[start : start + _ROWS])).astype(np.uint32)
        yield pa.RecordBatch.from_arrays(locations.columns(documents), schema=ids_schema())
        locations.release()
