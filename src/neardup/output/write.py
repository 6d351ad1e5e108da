"""Write the result of a run: kept documents in their format, removed.parquet, rejected.jsonl and
the reports.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import closing, nullcontext
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import Floats, Ints, Positions, arrow_of
from neardup.decide.outcome import Edited, Edits, Removals
from neardup.documents.batch import DocumentBatch, bytes_of, filter_rows
from neardup.errors import ColumnError
from neardup.executor import Encoders, chain_ahead, group_small, open_encoders
from neardup.features.vectors import shortened, text_of
from neardup.files import JsonObject, json_lines
from neardup.formats.reading import Task, read_tasks
from neardup.methods.base import Method
from neardup.output.kept import KeptWriter, apply_edits
from neardup.output.tables import as_rows, parquet_writer
from neardup.progress import Progress
from neardup.report.items import Example, Marker
from neardup.runs.locations import DocumentLocations
from neardup.schemas import DISTANCE, SIMILARITY

MAX_EXAMPLES = 100
REPORT = "report.json"
_MAX_FILES, _FEW, _LARGE = 16, 16, 4 << 20


class Shown(NamedTuple):
    """The removals that the report shows, in input order.

    families, near_families : int64 by removal, the documents that the same kept document removed,
    and those of them that are no copies.
    """

    removals: Removals
    documents: Positions
    texts: dict[int, str]
    families: Ints
    near_families: Ints


def pick_examples(removals: Removals, nearness: Floats, limit: int = MAX_EXAMPLES) -> Shown:
    """Pick the removals to show: all of them, or `limit`.

    Of more, a third are those nearest to the threshold, where errors are likeliest. One each is of
    the kept documents that removed most documents and most near-duplicates. The others are evenly
    spaced by similarity.

    Parameters
    ----------
    nearness : float64, increasing with the similarity of each removed document to its kept
        document.
    """
    picked = np.lexsort((removals.documents, nearness))
    _, family, sizes = np.unique(removals.kept, return_inverse=True, return_counts=True)
    near_sizes = np.bincount(family[~removals.measured.exact], minlength=len(sizes))
    if len(picked) > limit:
        largest = [
            int(np.argmax(family == np.argmax(counts)))
            for counts in (sizes, near_sizes)
            if counts.any()
        ]
        near, spaced = (
            picked[: limit // 3],
            np.linspace(limit // 3, len(picked) - 1, limit - limit // 3 - len(largest)),
        )
        picked = np.union1d(np.concatenate([near, picked[spaced.astype(np.int64)]]), largest)
    rows = np.sort(picked)
    chosen = removals.take(rows)
    documents = np.union1d(chosen.documents, chosen.kept).astype(np.uint32)
    return Shown(chosen, documents, {}, sizes[family[rows]], near_sizes[family[rows]])


def write_kept(
    tasks: list[Task],
    outcome: Edited,
    directory: Path,
    shown: Shown | None,
    progress: Progress,
    threads: int,
) -> None:
    """Read the new documents again and write the kept ones; collect the texts of the examples,
    unless they are there.

    Several files are written at once; the first error in their order ends all.

    Raises
    ------
    InputError
        If an input has changed since the first pass.
    """
    num_against, ends = sum(task.against for task in tasks), outcome.corpus.part_ends
    if shown is not None and shown.texts:
        shown = None
    if shown is not None:
        shown.texts.update(
            read_texts(tasks[:num_against], ends[:num_against], shown.documents, threads)
        )
    parts = [_Part(task, first) for task, first in zip(tasks, [0, *ends.tolist()], strict=False)][
        num_against:
    ]
    groups = list(group_small(parts, _Part.num_bytes, _LARGE))
    # Many small files, such as pages, take time in Python, which more threads would only share.
    files = max(1, min(threads, _MAX_FILES, sum(len(group) <= _FEW for group in groups)))
    with open_encoders(threads, files) as encoders:

        def write(group: list[_Part]) -> Iterator[tuple[int, int]]:
            with encoders or nullcontext():
                yield from _write_parts(
                    group, outcome, directory, shown, encoders, threads // files
                )

        streams = [partial(write, group) for group in groups]
        with closing(chain_ahead(streams, files, bytes_of=lambda _: 0)) as written:
            for num_documents, num_bytes in written:
                progress.advance(num_documents, num_bytes)


class _Part(NamedTuple):
    """An input to write, of which the first document has the number `first`."""

    task: Task
    first: int

    def num_bytes(self) -> int:
        return _LARGE if self.task.identity is None else self.task.identity[1]


def _write_parts(
    parts: list[_Part],
    outcome: Edited,
    directory: Path,
    shown: Shown | None,
    encoders: Encoders | None,
    threads: int,
) -> Iterator[tuple[int, int]]:
    """Write the kept documents of inputs; yield how many documents and bytes of text each batch
    has.
    """
    for part in parts:
        part.task.refuse_changed()
    readers = threads if len(parts) == 1 else min(threads, 2)
    entries = read_tasks([part.task for part in parts], readers, with_payload=True)
    for index, entries_of_part in groupby(entries, itemgetter(0)):
        task, start = parts[index]
        with KeptWriter(task.part, directory, encoders=encoders) as writer:
            for _, batch in entries_of_part:
                if not isinstance(batch, DocumentBatch):
                    continue
                edits = outcome.edits.between(start, start + len(batch.rows))
                edited, kept = apply_edits(task, batch, edits)
                assert edited.payload is not None  # read with payload
                writer.write(edited.payload, kept, bytes_of(edited))
                if shown is not None:
                    shown.texts.update(_texts_in(batch, start, shown.documents))
                start += len(batch.rows)
                yield len(kept), batch.text_bytes


def read_texts(
    tasks: list[Task], part_ends: Ints, documents: Positions, threads: int = 1
) -> Iterator[tuple[int, str]]:
    """Read some documents again; yield each number with its text. Requires: `documents` sorted.

    threads : stretches of a large file that are read at once.

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
    for batch in task.read(threads=threads) if low < high else ():
        yield from _texts_in(batch, first, documents)
        first += len(batch.rows)
        if documents[high - 1] < first:
            break


def _texts_in(batch: DocumentBatch, start: int, documents: Positions) -> Iterator[tuple[int, str]]:
    """Yield the documents of a batch, whose first number is `start`, with their texts."""
    low, high = np.searchsorted(documents, [start, start + len(batch.rows)])
    for document in documents[low:high].tolist():
        yield document, text_of(batch.text[document - start].as_py())


def examples(shown: Shown, locations: DocumentLocations, method: Method) -> list[Example]:
    """Return the removed documents to show, each with its kept document and their shared
    passages.
    """
    removals, measured = shown.removals, shown.removals.measured
    places, kept_places = locations.places(removals.documents), locations.places(removals.kept)
    is_text = method.settings.vector_length is None
    texts = {
        document: text if is_text else shortened(text) for document, text in shown.texts.items()
    }
    marker = Marker(texts, method.settings.shingling)
    result = []
    has_similarity = SIMILARITY in method.measures
    for i, (place, kept_place) in enumerate(zip(places, kept_places, strict=True)):
        pair = marker.mark(int(removals.documents[i]), int(removals.kept[i]))
        similarity = (
            float(measured[SIMILARITY.name][i]) if SIMILARITY.name in measured.columns else 0.0
        )
        distance = None if has_similarity else int(measured[DISTANCE.name][i])
        families = int(shown.families[i]), int(shown.near_families[i])
        result.append(
            Example(
                place, kept_place, pair, similarity, bool(measured.exact[i]), distance, *families
            )
        )
    return result


def write_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, path: Path) -> None:
    """Write a table to a Parquet file."""
    with parquet_writer(path, schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


def write_rejected(scratch_directory: Path, path: Path) -> None:
    """Write rejected.jsonl; it is empty if no document was rejected."""
    source = scratch_directory / "rejected.jsonl"
    if source.exists():
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
            start, first = first, first + len(batch.rows)
            edited, kept = apply_edits(task, batch, edits.between(start, first))
            tables.append(
                pa.Table.from_batches([filter_rows(as_rows(edited, task), arrow_of(kept))])
            )
    if not tables:
        types = [task.part.column_types() or {task.columns.text: pa.string()} for task in tasks]
        tables = [pa.schema(list(names.items())).empty_table() for names in types]
    # Only equal schemas may have a name twice.
    is_same = all(table.schema == tables[0].schema for table in tables)
    try:
        return pa.concat_tables(tables, promote_options="none" if is_same else "permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise ColumnError(
            "The kept rows of these inputs have columns that cannot be in one table: "
            f"{error}. Read them from the "
            "files of an output folder (output), or give the columns the same types."
        ) from error


def read_rejected(scratch_directory: Path) -> list[JsonObject]:
    """Return the rows that could not be read."""
    source = scratch_directory / "rejected.jsonl"
    return list(json_lines(source.read_bytes())) if source.exists() else []
