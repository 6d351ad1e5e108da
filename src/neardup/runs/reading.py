"""Read every document once, and write its features and keys to scratch columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from neardup import schemas
from neardup.arrays import Ints, Words, arrow_of, flatten_strings, join_arrays, offsets_from_lengths
from neardup.decide.priority import rank_columns
from neardup.documents.batch import (
    Corpus,
    DocumentBatch,
    Reject,
    Rejected,
    Tally,
    ValueNames,
    concatenate,
    rejecter,
)
from neardup.errors import InputError
from neardup.executor import count_threads, group_small, map_ordered
from neardup.features.described import DistinctFeatures, Features, Keys, Lists, distinct_features
from neardup.features.grouping import hash_ids, hash_values
from neardup.features.idf import DocumentCounts, IdfTable
from neardup.features.shingles import Workspace, Workspaces, shingle_documents
from neardup.formats.reading import Task, ignore, read_tasks
from neardup.methods.base import Method
from neardup.methods.stages import set_apart
from neardup.progress import Progress
from neardup.runs.ids import FirstIds
from neardup.runs.locations import DocumentLocations
from neardup.runs.scratch import Scratch
from neardup.settings.methods import Shingling
from neardup.settings.run import RunSettings, SelectionSettings

_MOST_REMEMBERED = 10_000  # values of a column that are not stored again when they recur
MAX_DOCUMENTS = 2**31 - 2  # a slot of a bucket is a position of 31 bits; all ones mark a free slot
_CHECKPOINT_EVERY = 64
_MAX_WAITING = 1024  # rejected rows; a file may have nothing else
_REJECTED_BYTES = 512
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_FREQUENCIES = "idf.parquet"
T = TypeVar("T")


class Piece(NamedTuple):
    """The next piece of a part: rejected rows, then documents, then the end of the part, each
    optional.
    """

    rejected: list[Rejected]
    batch: DocumentBatch | None
    is_end: bool


class _PartEnd(NamedTuple):
    """The documents that are read at the end of a part, and the rejected rows of the part."""

    documents: int
    rejected: int


class Reading:
    """The reading of all parts into scratch columns, from their last checkpoint on if there is one;
    see `read_all`.
    """

    def __init__(
        self,
        tasks: list[Task],
        method: Method,
        scratch: Scratch,
        selection: SelectionSettings,
        settings: RunSettings,
        *,
        stores_sets: bool,
        summarise: Callable[[Features], Keys] | None = None,
        first_ids: FirstIds | None = None,
    ) -> None:
        self.tasks, self.method, self.scratch, self.stores_sets = (
            tasks,
            method,
            scratch,
            stores_sets,
        )
        self.summarise = summarise or method.summarise
        self.num_ranks = len(rank_columns(selection.keep))
        self.num_values = max((len(task.columns.values) for task in tasks), default=0)
        self.is_within = selection.within is not None
        self.has_ids = any(task.columns.id is not None for task in tasks)
        self.settings, self.first_ids = settings, first_ids
        self._remembered = np.empty(0, np.uint64)  # rising
        state = scratch.restore()
        self.tally = Tally() if state is None else Tally.restore(state["tally"])

    def checkpoint(self) -> None:
        """Write a checkpoint."""
        self.scratch.checkpoint({"tally": asdict(self.tally)})

    def pieces(self, threads: int) -> Iterator[Piece]:
        """Yield the pieces that are still to be read."""
        documents, old, seen = self.tally.part_documents, self.tally.part_rejected, 0
        rejected: list[Rejected] = []
        reject = rejecter(self.settings.on_error, rejected.append)
        tasks = self.tasks[self.tally.part :]
        for number, entry in read_tasks(tasks, threads):
            if isinstance(entry, Rejected):
                reject(entry)
                if len(rejected) >= _MAX_WAITING:
                    fresh, old = rejected[old:], max(0, old - len(rejected))
                    rejected.clear()
                    yield Piece(fresh, None, False)
            elif entry is None:
                yield Piece(rejected[old:], None, True)
                documents = old = seen = 0
                rejected.clear()
            else:
                if self.first_ids is not None and not tasks[number].against:
                    self.first_ids.add(tasks[number].part.name, entry)
                for piece in _cut(entry, self.settings.batch_rows):
                    seen += len(piece.rows)
                    if seen <= documents:
                        continue
                    skip = max(0, len(piece.rows) - (seen - documents))
                    fresh, old = rejected[old:], max(0, old - len(rejected))
                    rejected.clear()
                    yield Piece(fresh, piece.slice(skip, len(piece.rows)) if skip else piece, False)

    def store(self, pieces: list[Piece]) -> None:
        """Append pieces to the columns."""
        batches = [piece.batch for piece in pieces if piece.batch is not None]
        offsets = self._store_documents(batches) if batches else np.zeros(1, np.int64)
        # A column gets the numbers of all pieces at once: each may be a small file.
        ends: list[_PartEnd] = []
        first = 0
        for piece in pieces:
            if piece.rejected:
                self._store_rejected(piece.rejected)
            if piece.batch is not None:
                count = len(piece.batch.rows)
                self.tally.text_bytes += int(offsets[first + count] - offsets[first])
                self.tally.documents += count
                self.tally.part_documents += count
                first += count
            if piece.is_end:
                ends.append(self._end_part())
        if ends:
            self.scratch.append(
                schemas.PART_ENDS, np.array([end.documents for end in ends], np.int64)
            )
            self.scratch.append(
                schemas.PART_REJECTED, np.array([end.rejected for end in ends], np.int64)
            )
        if self.tally.documents > MAX_DOCUMENTS:
            raise InputError(
                f"A run can process at most {MAX_DOCUMENTS:,} documents. Split the corpus, "
                "and run the parts one "
                "after the other with --against."
            )

    def store_features(self, features: Features, keys: Keys) -> None:
        """Append the features and keys of the documents of the pieces that are stored next."""
        scratch, tally = self.scratch, self.tally
        if self.stores_sets:
            scratch.append(schemas.SHINGLES, features.sets.hashes)
        if features.structure is not None:
            scratch.append(schemas.TAGS, features.structure.hashes)
            scratch.append(schemas.TAG_STARTS, features.structure.offsets[:-1] + tally.structure)
            tally.structure += int(features.structure.offsets[-1])
        scratch.append(schemas.SHINGLE_STARTS, features.sets.offsets[:-1] + tally.shingles)
        scratch.append(schemas.CONTENT, features.content)
        for part in range(keys.values.shape[1]):
            scratch.append(schemas.KEYS.at(part), keys.values[:, part])
        tally.shingles += int(features.sets.offsets[-1])
        tally.without_features += int(np.count_nonzero(~keys.featured))

    def _store_documents(self, batches: list[DocumentBatch]) -> Ints:
        """Append the rows, lengths, ids and ranks of documents; return the offsets of their
        texts.
        """
        scratch, tally = self.scratch, self.tally
        text_offsets = flatten_strings(join_arrays([batch.text for batch in batches]))[1]
        scratch.append(schemas.LENGTHS, np.diff(text_offsets))
        scratch.append(
            schemas.ROWS,
            np.concatenate([batch.rows for batch in batches]).astype(np.int64, copy=False),
        )
        if self.has_ids:
            ids = _ids_of(batches, tally.documents)
            data, offsets = flatten_strings(ids)
            scratch.append(schemas.IDS, data)
            scratch.append(schemas.ID_HASHES, hash_ids(ids))
            scratch.append(
                schemas.ID_OFFSETS, offsets[1 if tally.documents else 0 :] + tally.id_bytes
            )
            tally.id_bytes += int(offsets[-1])
        for place in range(self.num_ranks):
            ranks = [
                batch.ranks[place] if batch.ranks else np.full((len(batch.rows), 2), np.nan)
                for batch in batches
            ]
            scratch.append(schemas.RANKS.at(place), np.concatenate(ranks))
        if self.num_values:
            self._store_values(batches)
        return text_offsets

    def _store_values(self, batches: list[DocumentBatch]) -> None:
        """Append the hash of the counted value of each document, 0 where it is not read, and note
        the values.
        """
        for batch in batches:
            if len(batch.values) < self.num_values:  # of the earlier corpus
                self.scratch.append(schemas.VALUES, np.zeros(len(batch.rows), np.uint64))
                continue
            column = batch.values[-1]
            hashes = hash_values(column)
            self.scratch.append(schemas.VALUES, hashes)
            self._store_names(column, hashes)

    def _store_names(self, column: pa.Array, hashes: Words) -> None:
        """Append the values of documents, each once, but those that are remembered from other
        documents.
        """
        distinct, first = np.unique(hashes, return_index=True)
        is_new = ~np.isin(distinct, self._remembered)
        names = column.take(arrow_of(first[is_new])).cast(pa.large_string()).fill_null("")
        data, offsets = flatten_strings(names)
        self.scratch.append(schemas.NAME_HASHES, distinct[is_new])
        self.scratch.append(schemas.NAME_LENGTHS, np.diff(offsets))
        self.scratch.append(schemas.NAMES, data)
        if len(self._remembered) < _MOST_REMEMBERED:
            self._remembered = np.union1d(self._remembered, distinct)

    def _store_rejected(self, rejected: list[Rejected]) -> None:
        """Append rejected rows to rejected.jsonl."""
        lines = "".join(_ENCODER.encode(row._asdict()) + "\n" for row in rejected)
        self.scratch.append(
            schemas.REJECTED, np.frombuffer(lines.encode("utf-8", "replace"), np.uint8)
        )
        for row in rejected:
            self.tally.losses.add(row)
        self.tally.part_rejected += len(rejected)

    def _end_part(self) -> _PartEnd:
        """Note the end of a part; return what the scratch columns record of it."""
        end = _PartEnd(self.tally.documents, self.tally.part_rejected)
        if self.tasks[self.tally.part].against:
            self.tally.against_bytes = self.tally.text_bytes
        self.tally.part += 1
        self.tally.part_documents = self.tally.part_rejected = 0
        return end

    def corpus(self) -> Corpus:
        """Return the corpus, after all parts are read."""
        ends = self.scratch.column(schemas.PART_ENDS).copy()
        rejected = self.scratch.column(schemas.PART_REJECTED).copy()
        num_parts_against = sum(1 for task in self.tasks if task.against)
        num_against = int(ends[num_parts_against - 1]) if num_parts_against else 0
        return Corpus(ends, rejected, num_against, self.tally, self._names())

    def _names(self) -> ValueNames:
        """Return the values of the counted column."""
        lengths = self.scratch.column(schemas.NAME_LENGTHS)
        buffers = [
            pa.py_buffer(offsets_from_lengths(lengths)),
            pa.py_buffer(self.scratch.column(schemas.NAMES)),
        ]
        texts = pa.LargeStringArray.from_buffers(len(lengths), *buffers)
        return ValueNames(self.scratch.column(schemas.NAME_HASHES), texts)


def describe_all(reading: Reading, progress: Progress, ready: Callable[[], object]) -> Corpus:
    """Read all parts, and store the features and keys of their documents; ready : waits for what is
    needed to do so.
    """
    workspaces = Workspaces(Workspace)

    def describe(batches: list[DocumentBatch]) -> tuple[Features, Keys]:
        ready()
        texts = join_arrays([batch.text for batch in batches])
        with workspaces.borrow() as workspace:
            features = reading.method.describe(texts, workspace)
            keys = reading.summarise(features)
            if reading.is_within:
                groups = [
                    batch.values[0].cast(pa.large_string()).fill_null("") for batch in batches
                ]
                features, keys = set_apart(reading.method, features, keys, pa.concat_arrays(groups))
            hashes, offsets = features.sets
            hashes = (
                hashes.copy() if reading.stores_sets else hashes[:0].copy()
            )  # the workspace is used again
            return features._replace(sets=Lists(hashes, offsets), weighed=None), keys._replace(
                samples=None
            )

    return read_all(reading, progress, describe, lambda found: reading.store_features(*found))


def read_all(
    reading: Reading,
    progress: Progress,
    describe: Callable[[list[DocumentBatch]], T],
    use: Callable[[T], None],
) -> Corpus:
    """Read all parts, a mebibyte or more at a time, and store the documents in order.

    Parameters
    ----------
    describe : is called with batches on a pool of threads.
    use : is called in order with what it returned, before the documents are stored.
    """
    threads, batch_rows = count_threads(reading.settings.threads), reading.settings.batch_rows

    def work(pieces: list[Piece]) -> T | None:
        batches = [piece.batch for piece in pieces if piece.batch is not None]
        return describe(batches) if batches else None

    groups = group_small(reading.pieces(threads), _bytes_of, rows_of=_rows_of, most_rows=batch_rows)
    described = map_ordered(
        groups, work, threads, bytes_of=lambda pieces: sum(map(_bytes_of, pieces))
    )
    for number, (pieces, found) in enumerate(described, 1):
        if found is not None:
            use(found)
        reading.store(pieces)
        if found is not None:
            texts = [piece.batch.text_bytes for piece in pieces if piece.batch is not None]
            progress.advance(sum(map(_rows_of, pieces)), sum(texts))
        if number % _CHECKPOINT_EVERY == 0:
            reading.checkpoint()
    reading.checkpoint()
    reading.scratch.close_columns()
    return reading.corpus()


def _bytes_of(piece: Piece) -> int:
    return _REJECTED_BYTES * len(piece.rejected) + (
        0 if piece.batch is None else piece.batch.text_bytes
    )


def _rows_of(piece: Piece) -> int:
    return 0 if piece.batch is None else len(piece.batch.rows)


def _ids_of(batches: list[DocumentBatch], first: int) -> pa.Array:
    """Return the ids of documents. Without an id column, ids are running numbers from `first`."""
    arrays = []
    for batch in batches:
        ids = (
            arrow_of(np.arange(first, first + len(batch.rows))) if batch.ids is None else batch.ids
        )
        arrays.append(ids.cast(pa.large_string()))
        first += len(batch.rows)
    return join_arrays(arrays)


def _cut(batch: DocumentBatch, batch_rows: int | None) -> Iterator[DocumentBatch]:
    count = len(batch.rows)
    if batch_rows is None or count <= batch_rows:
        return iter([batch])
    return (batch.slice(start, start + batch_rows) for start in range(0, count, batch_rows))


def locations(tasks: list[Task], corpus: Corpus, scratch: Scratch) -> DocumentLocations:
    """Return the locations of the documents of a run."""
    ids = None
    if any(task.columns.id is not None for task in tasks):
        offsets, data = scratch.column(schemas.ID_OFFSETS), scratch.column(schemas.IDS)
        ids = pa.LargeStringArray.from_buffers(
            corpus.num_documents, pa.py_buffer(offsets), pa.py_buffer(data)
        )
    names = [task.part.name for task in tasks]
    return DocumentLocations(
        names, corpus, scratch.column(schemas.ROWS), ids, scratch.release_pages
    )


def map_batches(
    tasks: list[Task],
    work: Callable[[pa.Array], T],
    threads: int,
    progress: Progress,
    reject: Reject,
) -> Iterator[tuple[DocumentBatch, T]]:
    """Yield batches with the result of `work` on their texts, in input order.

    Small batches are merged first, also across parts: each HTML file is a batch.
    """
    grouped = map(
        concatenate, group_small(_batches(tasks, threads, reject), _text_bytes, fits=_same_columns)
    )
    for batch, result in map_ordered(
        grouped, lambda batch: work(batch.text), threads, bytes_of=_text_bytes
    ):
        progress.advance(len(batch.rows), batch.text_bytes)
        yield batch, result


def _batches(tasks: list[Task], threads: int, reject: Reject) -> Iterator[DocumentBatch]:
    for _, entry in read_tasks(tasks, threads):
        if isinstance(entry, Rejected):
            reject(entry)
        elif entry is not None:
            yield entry


def _text_bytes(batch: DocumentBatch) -> int:
    return batch.text_bytes


def _same_columns(group: list[DocumentBatch], batch: DocumentBatch) -> bool:
    kinds = [
        (None if one.ids is None else one.ids.type, len(one.ranks), len(one.values))
        for one in (group[0], batch)
    ]
    return bool(kinds[0] == kinds[1])


def count_corpus(
    tasks: list[Task], shingling: Shingling, threads: int, progress: Progress, reject: Reject
) -> IdfTable:
    """Return the document frequencies of all features of the documents of all tasks.

    Notes
    -----
    One pass. A pool of threads computes the features, which are counted in input order, so that the
    table does not depend on the number of threads.
    """
    counts = DocumentCounts()

    def features_of(texts: pa.Array) -> DistinctFeatures:
        shingles = shingle_documents(texts, shingling)
        return distinct_features(shingles.hashes, shingles.offsets)

    for _, features in map_batches(tasks, features_of, threads, progress, reject):
        counts.add(features)
    return counts.table(shingling)


def count_or_open(
    counted: Shingling, tasks: list[Task], scratch: Scratch, threads: int, progress: Progress
) -> IdfTable:
    """Count a corpus, or read the table of an interrupted run."""
    file = scratch.directory / _FREQUENCIES
    if file.exists():
        return IdfTable.open(file)
    table = count_corpus(tasks, counted, threads, progress, ignore)
    table.save(file)
    return table
