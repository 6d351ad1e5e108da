"""Write the result of a run: kept documents in their format, removed.parquet, rejected.jsonl and
the reports.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing, nullcontext
from functools import partial
from itertools import groupby, starmap
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import Floats, Ints, Positions, arrow_of
from neardup.decide.outcome import Edited, Edits, Removals
from neardup.documents.added_columns import append_columns
from neardup.documents.batch import DocumentBatch, bytes_of, filter_rows
from neardup.documents.nested import outermost
from neardup.errors import ColumnError
from neardup.executor import Encoders, chain_ahead, group_small, open_encoders
from neardup.features.vectors import shortened, text_of
from neardup.files import JsonObject
from neardup.formats.reading import Task, read_tasks
from neardup.methods.base import Method
from neardup.output.kept import KeptWriter, apply_edits
from neardup.output.tables import as_rows
from neardup.progress import Progress
from neardup.report.items import Example, Marker
from neardup.runs.locations import DocumentLocations
from neardup.schemas import DISTANCE, SIMILARITY

MAX_EXAMPLES = 100
REPORT = "report.json"
_MAX_FILES = 16  # written at once
_FEW = 16  # files of a group whose time is not spent in Python
_LARGE = 4 << 20  # bytes of a file that is a group of its own


class Shown(NamedTuple):
    """The removals that the report shows, in input order.

    documents : uint32, the documents of these removals, rising. texts : their texts by document, as
    they are read. families, near_families : int64 by removal, the number of documents that the same
    kept document removed, and the number without copies.
    """

    removals: Removals
    documents: Positions
    texts: dict[int, str]
    families: Ints
    near_families: Ints


def pick_examples(removals: Removals, nearness: Floats) -> Shown:
    """Pick the removals to show: all of them, or MAX_EXAMPLES.

    Of more, a third are the nearest to the threshold, where errors are likeliest. Two are of the
    kept documents that removed most documents and most near-duplicates. The others are evenly
    spaced by similarity.

    Parameters
    ----------
    nearness : float64, increasing with the similarity of each removed document to its kept
        document.
    """
    _, family, sizes = np.unique(removals.kept, return_inverse=True, return_counts=True)
    near_sizes = np.bincount(family[~removals.measured.exact], minlength=len(sizes))
    count = len(nearness)
    rows = np.arange(count)
    if count > MAX_EXAMPLES:
        largest = [
            _first_of_largest(family, counts) for counts in (sizes, near_sizes) if counts.any()
        ]
        by_nearness = np.lexsort((removals.documents, nearness))
        num_near = MAX_EXAMPLES // 3
        others = np.linspace(
            num_near, count - 1, MAX_EXAMPLES - num_near - len(largest), dtype=np.int64
        )
        rows = np.unique([*by_nearness[:num_near], *by_nearness[others], *largest])
    chosen = removals.take(rows)
    return Shown(
        removals=chosen,
        documents=np.union1d(chosen.documents, chosen.kept).astype(np.uint32),
        texts={},
        families=sizes[family[rows]],
        near_families=near_sizes[family[rows]],
    )


def _first_of_largest(family: Ints, sizes: Ints) -> int:
    """Return the first removal of the largest family."""
    return int(np.argmax(family == np.argmax(sizes)))


def write_kept(
    tasks: list[Task],
    outcome: Edited,
    directory: Path,
    *,
    shown: Shown | None,
    progress: Progress,
    threads: int,
) -> None:
    """Read the new documents again and write the kept ones, in the format of their inputs.

    Several files are written at once, the largest ones first; the first error in this order ends
    all.

    Parameters
    ----------
    shown : the examples of the report. Their texts are collected on the way, unless they are there.

    Raises
    ------
    InputError
        If an input has changed since the first pass.
    """
    ends = outcome.corpus.part_ends
    # Texts that were collected before are not read again.
    if shown is not None and shown.texts:
        shown = None
    if shown is not None:
        # The texts of the earlier collection, which is not written.
        against = [task for task in tasks if task.against]
        shown.texts.update(read_texts(against, ends[: len(against)], shown.documents, threads))
    # One more than there are tasks: the end of the last part.
    firsts = [0, *ends.tolist()]
    parts = [
        _Part(task, first) for task, first in zip(tasks, firsts, strict=False) if not task.against
    ]
    groups = list(group_small(parts, _Part.num_bytes, _LARGE))
    # The largest first: begun last, it would be written while no other thread has work.
    groups.sort(key=lambda group: sum(part.num_bytes() for part in group), reverse=True)
    # Many small files, such as pages, take time in Python, which more threads would only share.
    num_large = sum(len(group) <= _FEW for group in groups)
    num_files = max(1, min(threads, _MAX_FILES, num_large))
    with open_encoders(threads, num_files) as encoders:

        def write(group: list[_Part]) -> Iterator[tuple[int, int]]:
            with encoders or nullcontext():
                yield from _write_parts(
                    group,
                    outcome,
                    directory,
                    shown=shown,
                    encoders=encoders,
                    threads=threads // num_files,
                )

        streams = [partial(write, group) for group in groups]
        # Also after an error: the threads that read ahead end, and unfinished files are discarded.
        with closing(chain_ahead(streams, num_files, bytes_of=lambda _: 0)) as written:
            for num_documents, num_bytes in written:
                progress.advance(num_documents, num_bytes)


class _Part(NamedTuple):
    """An input to write. first : the number of its first document."""

    task: Task
    first: int

    def num_bytes(self) -> int:
        # A table has no size: a group of its own.
        return _LARGE if self.task.identity is None else self.task.identity[1]


def _write_parts(
    parts: list[_Part],
    outcome: Edited,
    directory: Path,
    *,
    shown: Shown | None,
    encoders: Encoders | None,
    threads: int,
) -> Iterator[tuple[int, int]]:
    """Write the kept documents of inputs; yield the numbers of kept documents and of bytes of text
    of each batch.
    """
    for part in parts:
        # All before the first is written.
        part.task.refuse_changed()
    added = outcome.edits.added
    readers = threads if len(parts) == 1 else min(threads, 2)
    entries = read_tasks([part.task for part in parts], readers, with_payload=True)
    # Entries of one part follow each other.
    for index, entries_of_part in groupby(entries, itemgetter(0)):
        task, start = parts[index]
        with KeptWriter(task.part, directory, encoders=encoders, added=added) as writer:
            for _, batch in entries_of_part:
                # Rejected rows and ends of parts: the first pass has stored them.
                if not isinstance(batch, DocumentBatch):
                    continue
                edits = outcome.edits.between(start, start + len(batch.rows))
                edited, kept = apply_edits(task, batch, edits)
                assert edited.payload is not None  # read with payload
                writer.write(edited.payload, kept, bytes_of(edited), edits.added)
                if shown is not None:
                    shown.texts.update(texts_in(batch, start, shown.documents))
                start += len(batch.rows)
                yield len(kept), batch.text_bytes


def read_texts(
    tasks: list[Task], part_ends: Ints, documents: Positions, threads: int = 1
) -> Iterator[tuple[int, str]]:
    """Read some documents again; yield each number with its text. Requires: `documents` sorted.

    threads : the number of stretches of a large file that are read at once.

    Raises
    ------
    InputError
        If an input has changed since the first pass.
    """
    first = 0
    for task, stop in zip(tasks, part_ends.tolist(), strict=True):
        task.refuse_changed()
        yield from texts_of(task, first, stop, documents, threads)
        first = stop


def texts_of(
    task: Task, first: int, stop: int, documents: Positions, threads: int
) -> Iterator[tuple[int, str]]:
    """Yield the documents of a part, whose numbers are [first, stop), with their texts."""
    low, high = np.searchsorted(documents, [first, stop])
    # A part without a wanted document is not opened.
    for batch in task.read(threads=threads) if low < high else ():
        yield from texts_in(batch, first, documents)
        first += len(batch.rows)
        # The rest of the part has no wanted document.
        if documents[high - 1] < first:
            break


def texts_in(batch: DocumentBatch, start: int, documents: Positions) -> Iterator[tuple[int, str]]:
    """Yield the documents of a batch, whose first number is `start`, with their texts."""
    low, high = np.searchsorted(documents, [start, start + len(batch.rows)])
    for document in documents[low:high].tolist():
        yield document, text_of(batch.text[document - start].as_py())


def examples(shown: Shown, locations: DocumentLocations, method: Method) -> list[Example]:
    """Return the removed documents to show, each with its kept document and their shared
    passages.
    """
    removals = shown.removals
    texts = shown.texts
    if method.settings.vector_length is not None:
        texts = {document: shortened(text) for document, text in texts.items()}
    marker = Marker(texts, method.settings.shingling)
    columns = removals.measured.columns
    similarities = columns.get(SIMILARITY.name, np.zeros(len(removals.documents)))
    distances: list[int | None] = [None] * len(removals.documents)
    if SIMILARITY not in method.measures:
        distances = columns[DISTANCE.name].tolist()
    places = list(locations.places(removals.documents))
    kept_places = list(locations.places(removals.kept))
    pairs = zip(removals.documents.tolist(), removals.kept.tolist(), strict=True)
    return [
        Example(
            removed=places[row],
            kept=kept_places[row],
            pair=marker.mark(removed, kept),
            similarity=float(similarities[row]),
            exact=bool(removals.measured.exact[row]),
            distance=distances[row],
            family=int(shown.families[row]),
            family_near=int(shown.near_families[row]),
        )
        for row, (removed, kept) in enumerate(pairs)
    ]


def write_rejected(scratch_directory: Path, path: Path) -> None:
    """Write rejected.jsonl; it is empty if no document was rejected."""
    source = scratch_directory / "rejected.jsonl"
    if source.exists():
        # A copy: the scratch file is needed if the run is interrupted here.
        shutil.copyfile(source, path)
    else:
        path.touch()


def report_bytes(report: JsonObject) -> bytes:
    """Return the contents of report.json. A file name that is not UTF-8 becomes an escape of
    JSON.
    """
    return (json.dumps(report, indent=1, ensure_ascii=False) + "\n").encode(
        errors="backslashreplace"
    )


def kept_table(tasks: list[Task], edits: Edits) -> pa.Table:
    """Read the kept documents of new inputs again, with all their columns. Raises InputError if one
    has changed.
    """
    tables = []
    first = 0
    for task in tasks:
        task.refuse_changed()
        for batch in task.read(with_payload=True):
            stop = first + len(batch.rows)
            rows = _kept_rows(task, batch, edits.between(first, stop))
            tables.append(pa.Table.from_batches([rows]))
            first = stop
    if not tables:
        tables = [pa.schema(_fields_of(task, edits)).empty_table() for task in tasks]
    # Only equal schemas may have a name twice.
    is_same = all(table.schema == tables[0].schema for table in tables)
    try:
        return pa.concat_tables(tables, promote_options="none" if is_same else "permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise ColumnError(
            f"The kept rows of these inputs have columns that cannot be in one table: {error}. "
            "Read them from the files of an output folder (output), or give the columns the same "
            "types."
        ) from error


def _kept_rows(task: Task, batch: DocumentBatch, edits: Edits) -> pa.RecordBatch:
    """Return the rows of the kept documents of a batch, with the columns that are added to them."""
    edited, kept = apply_edits(task, batch, edits)
    rows = as_rows(edited, task)
    if edits.added is not None:
        rows = append_columns(rows, edits.added.rows())
    kept_rows: pa.RecordBatch = filter_rows(rows, arrow_of(kept))
    return kept_rows


def _fields_of(task: Task, edits: Edits) -> list[pa.Field]:
    """Return the columns of the kept rows of an input."""
    types = outermost(task.part.column_types() or {task.columns.text: pa.string()})
    added = [] if edits.added is None else list(edits.added.schema)
    return [*starmap(pa.field, types.items()), *added]
