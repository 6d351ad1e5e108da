"""Read every document once, and write its features and keys to scratch columns."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from neardup import schemas
from neardup.arrays import (
    Ints,
    Words,
    arrow_of,
    find_in,
    flatten_strings,
    join_arrays,
    offsets_from_lengths,
)
from neardup.decide.priority import rank_columns
from neardup.documents.batch import (
    Columns,
    Corpus,
    DocumentBatch,
    Losses,
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
from neardup.features.divided_words import count_divided_words
from neardup.features.grouping import hash_ids, hash_values
from neardup.features.idf import DocumentCounts, IdfTable
from neardup.features.shingles import shingle_documents
from neardup.features.workspaces import Workspace, Workspaces
from neardup.formats.reading import Task, ignore, read_tasks
from neardup.methods.base import Method
from neardup.methods.stages import set_apart
from neardup.progress import Progress
from neardup.runs.ids import FirstIds
from neardup.runs.locations import DocumentLocations
from neardup.runs.scratch import Scratch
from neardup.settings.methods import Shingling
from neardup.settings.run import RunSettings, SelectionSettings

_MAX_REMEMBERED = 10_000  # values of a column that are not stored again when they recur
MAX_DOCUMENTS = 2**31 - 2  # a slot of a bucket is a position of 31 bits; all ones mark a free slot
_CHECKPOINT_EVERY = 64  # groups of batches between two checkpoints
_MAX_WAITING = 1024  # rejected rows in a piece; a file may consist of them
_REJECTED_BYTES = 512  # memory of a rejected row, roughly
_ENCODER = json.JSONEncoder(ensure_ascii=False)
_FREQUENCIES = "idf.parquet"
T = TypeVar("T")


class Piece(NamedTuple):
    """The next piece of a part: rejected rows, then documents, then the end of the part. Each may
    be missing.
    """

    task: Task
    rejected: list[Rejected]
    batch: DocumentBatch | None
    is_end: bool


class _PartEnd(NamedTuple):
    """The number of documents of all parts up to the end of one, and of its rejected rows."""

    documents: int
    rejected: int


class _Rejections:
    """The rejected rows of a part since the last piece; the first `num_stored` rows of the part
    were stored before the run was interrupted.
    """

    def __init__(self, num_stored: int) -> None:
        self.num_stored = num_stored
        self.rows: list[Rejected] = []

    def take(self) -> list[Rejected]:
        """Return the rows that are not stored yet, and forget them."""
        fresh = self.rows[self.num_stored :]
        # The first rows may be spread over several pieces.
        self.num_stored = max(0, self.num_stored - len(self.rows))
        self.rows.clear()
        return fresh


class Reading:
    """The reading of all parts into scratch columns, from the last checkpoint if there is one.

    stores_sets : whether to store the shingles. summarise : returns the keys of features; by
    default the `summarise` of the method. first_ids : checks the ids of the first documents. See
    `read_all`.
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
        self.tasks = tasks
        self.method = method
        self.scratch = scratch
        self.settings = settings
        self.stores_sets = stores_sets
        self.first_ids = first_ids
        self._keys = schemas.KEYS
        self.summarise = summarise or method.summarise
        if method.awaits_count:  # the search makes the keys, after all documents are counted
            self._keys = schemas.SALTS
            self.summarise = _salts
        self.num_ranks = len(rank_columns(selection.keep))
        self.columns = _new_columns(tasks)
        self.is_within = selection.within is not None
        self.has_ids = any(task.columns.id is not None for task in tasks)
        # Empty after a resumption, too: some values are stored twice then, which does no harm.
        self._remembered = np.empty(0, np.uint64)  # hashes of values that are stored, rising
        state = scratch.restore()
        self.tally = Tally() if state is None else Tally.restore(state["tally"])

    def checkpoint(self) -> None:
        """Write a checkpoint."""
        self.scratch.checkpoint({"tally": asdict(self.tally)})

    def pieces(self, threads: int) -> Iterator[Piece]:
        """Yield the pieces that are still to be read."""
        num_stored = self.tally.part_documents  # documents of the part to pass over
        rejections = _Rejections(self.tally.part_rejected)
        reject = rejecter(self.settings.on_error, rejections.rows.append)
        tasks = self.tasks[self.tally.part :]
        for number, entry in read_tasks(tasks, threads):
            if isinstance(entry, Rejected):
                reject(entry)
                if len(rejections.rows) >= _MAX_WAITING:
                    # A file of nothing but unreadable rows must not fill the memory.
                    yield Piece(tasks[number], rejections.take(), None, is_end=False)
            elif entry is None:
                yield Piece(tasks[number], rejections.take(), None, is_end=True)
                # The next part is read from its beginning.
                rejections.num_stored = 0
                num_stored = 0
            else:
                # Before rows are passed over: also the ids of rows that an interrupted run has
                # stored.
                self._compare_ids(tasks[number], entry)
                for batch in _cut(entry, self.settings.batch_rows):
                    num_rows = len(batch.rows)
                    num_skipped = min(num_stored, num_rows)
                    num_stored -= num_skipped
                    if num_skipped < num_rows:
                        rest = batch.slice(num_skipped, num_rows) if num_skipped else batch
                        yield Piece(tasks[number], rejections.take(), rest, is_end=False)

    def _compare_ids(self, task: Task, batch: DocumentBatch) -> None:
        """Raise InputError if an id repeats among the first new documents."""
        if self.first_ids is not None and not task.against:
            self.first_ids.add(task.part.name, batch)

    def store(self, pieces: list[Piece]) -> None:
        """Append pieces to the columns."""
        batches = _batches_of(pieces)
        offsets = self._store_documents(batches) if batches else np.zeros(1, np.int64)
        ends = []
        first = 0
        for piece in pieces:
            if piece.rejected:
                self._store_rejected(piece.rejected)
            if piece.batch is not None:
                count = len(piece.batch.rows)
                part = piece.task.part
                self.tally.losses.add_documents(part.name, part.format, piece.batch.text)
                self.tally.text_bytes += int(offsets[first + count] - offsets[first])
                self.tally.documents += count
                self.tally.part_documents += count
                first += count
            if piece.is_end:
                ends.append(self._end_part())
        if ends:
            self._store_ends(ends)
        if self.tally.documents > MAX_DOCUMENTS:
            raise InputError(
                f"A run can process at most {MAX_DOCUMENTS:,} documents. Split the corpus, and run "
                "the parts one after the other with --against."
            )

    def store_features(self, features: Features, keys: Keys) -> None:
        """Append the features and keys of the documents of the pieces that are stored next."""
        scratch = self.scratch
        tally = self.tally
        if self.stores_sets:
            scratch.append(schemas.SHINGLES, features.sets.hashes)
        if features.structure is not None:
            scratch.append(schemas.TAGS, features.structure.hashes)
            # Starts count over all documents: the last offset of a batch is the first one of the
            # next.
            scratch.append(schemas.TAG_STARTS, features.structure.offsets[:-1] + tally.structure)
            tally.structure += int(features.structure.offsets[-1])
        scratch.append(schemas.SHINGLE_STARTS, features.sets.offsets[:-1] + tally.shingles)
        scratch.append(schemas.CONTENT, features.content)
        # A column for each band, so that the search reads one after the other.
        for part in range(keys.values.shape[1]):
            scratch.append(self._keys.at(part), keys.values[:, part])
        tally.shingles += int(features.sets.offsets[-1])
        tally.without_features += int(np.count_nonzero(~keys.featured))

    def _store_documents(self, batches: list[DocumentBatch]) -> Ints:
        """Append the rows, lengths, ids and ranks of documents; return the offsets of their
        texts.
        """
        texts = join_arrays([batch.text for batch in batches])
        _, text_offsets = flatten_strings(texts)
        if self.method.settings.vector_length is None:
            count_divided_words(texts, self.method.settings.shingling, self.tally.divided)
        rows = np.concatenate([batch.rows for batch in batches])
        self.scratch.append(schemas.LENGTHS, np.diff(text_offsets))
        self.scratch.append(schemas.ROWS, rows.astype(np.int64, copy=False))
        if self.has_ids:
            self._store_ids(_ids_of(batches, self.tally.documents))
        for number in range(self.num_ranks):
            # The earlier collection has no ranks.
            ranks = [
                batch.ranks[number] if batch.ranks else np.full((len(batch.rows), 2), np.nan)
                for batch in batches
            ]
            self.scratch.append(schemas.RANKS.at(number), np.concatenate(ranks))
        if self.columns.stored:
            self._store_values(batches)
        return text_offsets

    def _store_ids(self, ids: pa.Array) -> None:
        data, offsets = flatten_strings(ids)
        self.scratch.append(schemas.IDS, data)
        self.scratch.append(schemas.ID_HASHES, hash_ids(ids))
        # The column of offsets begins with 0 once.
        new_offsets = offsets[1:] if self.tally.documents else offsets
        self.scratch.append(schemas.ID_OFFSETS, new_offsets + self.tally.id_bytes)
        self.tally.id_bytes += int(offsets[-1])

    def _store_values(self, batches: list[DocumentBatch]) -> None:
        """Append the hash of each stored value of the documents, 0 if it is not read, and append
        the values.
        """
        names = self.columns.values
        for batch in batches:
            is_read = len(batch.values) == len(names)  # not of the earlier corpus, if it has fewer
            values = dict(zip(names, batch.values, strict=True)) if is_read else {}
            for name, place in _columns_of_values(self.columns):
                if name in values:
                    hashes = hash_values(values[name])
                    self._store_names(values[name], hashes)
                else:
                    hashes = np.zeros(len(batch.rows), np.uint64)
                self.scratch.append(place, hashes)

    def _store_names(self, column: pa.Array, hashes: Words) -> None:
        """Append the distinct values of documents, except remembered ones, which are stored
        already.
        """
        rows = np.flatnonzero(~find_in(self._remembered, hashes)[1])
        if not len(rows):
            return
        distinct, first = np.unique(hashes[rows], return_index=True)
        names = column.take(arrow_of(rows[first])).cast(pa.large_string()).fill_null("")
        data, offsets = flatten_strings(names)
        self.scratch.append(schemas.NAME_HASHES, distinct)
        self.scratch.append(schemas.NAME_LENGTHS, np.diff(offsets))
        self.scratch.append(schemas.NAMES, data)
        if len(self._remembered) < _MAX_REMEMBERED:
            self._remembered = np.union1d(self._remembered, distinct)

    def _store_rejected(self, rejected: list[Rejected]) -> None:
        """Append rejected rows to rejected.jsonl."""
        lines = "".join(_ENCODER.encode(row._asdict()) + "\n" for row in rejected)
        # A file name may contain lone surrogates, which UTF-8 cannot encode.
        data = lines.encode("utf-8", "replace")
        self.scratch.append(schemas.REJECTED, np.frombuffer(data, np.uint8))
        for row in rejected:
            self.tally.losses.add(row)
        self.tally.part_rejected += len(rejected)

    def _end_part(self) -> _PartEnd:
        """Count the end of a part, and return its record for the scratch columns."""
        end = _PartEnd(self.tally.documents, self.tally.part_rejected)
        if self.tasks[self.tally.part].against:
            self.tally.against_bytes = self.tally.text_bytes
        self.tally.part += 1
        self.tally.part_documents = 0
        self.tally.part_rejected = 0
        return end

    def _store_ends(self, ends: list[_PartEnd]) -> None:
        """Append the ends of parts, many at once, since each part may be a small file."""
        documents, rejected = np.array(ends, np.int64).T
        self.scratch.append(schemas.PART_ENDS, documents)
        self.scratch.append(schemas.PART_REJECTED, rejected)

    def corpus(self) -> Corpus:
        """Return the corpus, after all parts are read."""
        # Copies: small, and used after the mapped files are closed.
        ends = self.scratch.column(schemas.PART_ENDS).copy()
        rejected = self.scratch.column(schemas.PART_REJECTED).copy()
        num_parts_against = sum(1 for task in self.tasks if task.against)
        num_against = int(ends[num_parts_against - 1]) if num_parts_against else 0
        return Corpus(
            part_ends=ends,
            part_rejected=rejected,
            num_against=num_against,
            tally=self.tally,
            names=self._names(),
        )

    def _names(self) -> ValueNames:
        """Return the values of the stored columns."""
        lengths = self.scratch.column(schemas.NAME_LENGTHS)
        offsets = pa.py_buffer(offsets_from_lengths(lengths))
        data = pa.py_buffer(self.scratch.column(schemas.NAMES))
        texts = pa.LargeStringArray.from_buffers(len(lengths), offsets, data)
        return ValueNames(self.scratch.column(schemas.NAME_HASHES), texts)


def _salts(features: Features) -> Keys:
    """Return 0 for each document in place of keys. `set_apart` salts it like a key, so that it is
    the hash of the group.
    """
    num_documents = len(features.content)
    zeros = np.zeros((num_documents, 1), np.uint64)
    return Keys(zeros, features.content, features.sets.sizes > 0)


def _new_columns(tasks: Sequence[Task]) -> Columns:
    """Return the columns of the new documents, or of the earlier ones if there are no others."""
    tasks = [task for task in tasks if not task.against] or tasks
    return tasks[0].columns if tasks else Columns("text")


def _columns_of_values(columns: Columns) -> list[tuple[str, schemas.Column]]:
    """Return the columns whose values are stored, each with its scratch column."""
    described = [
        (name, schemas.DESCRIBED_VALUES.at(number)) for number, name in enumerate(columns.described)
    ]
    return described if columns.counted is None else [(columns.counted, schemas.VALUES), *described]


def described_values(tasks: Sequence[Task], scratch: Scratch) -> dict[str, Words]:
    """Return the hashes of the values that describe documents, uint64 by document, by column."""
    columns = _new_columns(tasks)
    stored = _columns_of_values(columns)
    return {name: scratch.column(place) for name, place in stored if place != schemas.VALUES}


def describe_all(reading: Reading, progress: Progress, ready: Callable[[], object]) -> Corpus:
    """Read all parts, and store the features and keys of their documents.

    ready : waits until the kernels are compiled; called by the threads that compute features.
    """
    workspaces = Workspaces(Workspace)

    def describe(batches: list[DocumentBatch], _: list[Task]) -> tuple[Features, Keys]:
        # The first groups wait here for the kernels, which are compiled while files are decoded.
        ready()
        texts = join_arrays([batch.text for batch in batches])
        with workspaces.borrow() as workspace:
            features = reading.method.describe(texts, workspace)
            keys = reading.summarise(features)
            if reading.is_within:
                groups = [
                    # Documents without a value form a group, like an empty value.
                    batch.values[0].cast(pa.large_string()).fill_null("")
                    for batch in batches
                ]
                features, keys = set_apart(reading.method, features, keys, pa.concat_arrays(groups))
            hashes, offsets = features.sets
            # A copy, because the next batch overwrites the workspace.
            stored = hashes.copy() if reading.stores_sets else hashes[:0].copy()
            features = features._replace(sets=Lists(stored, offsets), weighed=None)
            # Views of the workspace, too.
            return features, keys._replace(samples=None)

    return read_all(reading, progress, describe, lambda found: reading.store_features(*found))


def read_all(
    reading: Reading,
    progress: Progress,
    describe: Callable[[list[DocumentBatch], list[Task]], T],
    use: Callable[[T], None],
) -> Corpus:
    """Read all parts, a mebibyte or more at a time, and store the documents in order.

    Parameters
    ----------
    describe : is called with batches, and the task of each, on a pool of threads.
    use : is called with the results of `describe` in order, before the documents are stored.
    """
    threads = count_threads(reading.settings.threads)
    batch_rows = reading.settings.batch_rows

    def work(pieces: list[Piece]) -> T | None:
        batches = _batches_of(pieces)
        tasks = [piece.task for piece in pieces if piece.batch is not None]
        return describe(batches, tasks) if batches else None

    groups = group_small(reading.pieces(threads), _bytes_of, rows_of=_rows_of, max_rows=batch_rows)
    described = map_ordered(
        groups, work, threads, bytes_of=lambda pieces: sum(map(_bytes_of, pieces))
    )
    for number, (pieces, found) in enumerate(described, 1):
        if found is not None:
            use(found)
        reading.store(pieces)
        if found is not None:
            texts = [batch.text_bytes for batch in _batches_of(pieces)]
            progress.advance(sum(map(_rows_of, pieces)), sum(texts))
        if number % _CHECKPOINT_EVERY == 0:
            reading.checkpoint()
    reading.checkpoint()
    reading.scratch.close_columns()
    return reading.corpus()


def _batches_of(pieces: list[Piece]) -> list[DocumentBatch]:
    return [piece.batch for piece in pieces if piece.batch is not None]


def _bytes_of(piece: Piece) -> int:
    text_bytes = 0 if piece.batch is None else piece.batch.text_bytes
    # Rejected rows wait in memory like texts.
    return text_bytes + _REJECTED_BYTES * len(piece.rejected)


def _rows_of(piece: Piece) -> int:
    return 0 if piece.batch is None else len(piece.batch.rows)


def _ids_of(batches: list[DocumentBatch], first: int) -> pa.Array:
    """Return the ids of documents. Without an id column, ids are running numbers from `first`."""
    arrays = []
    for batch in batches:
        end = first + len(batch.rows)
        ids = arrow_of(np.arange(first, end)) if batch.ids is None else batch.ids
        arrays.append(ids.cast(pa.large_string()))
        first = end
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
        offsets = pa.py_buffer(scratch.column(schemas.ID_OFFSETS))
        data = pa.py_buffer(scratch.column(schemas.IDS))
        # Arrow reads the mapped files in place.
        ids = pa.LargeStringArray.from_buffers(corpus.num_documents, offsets, data)
    return DocumentLocations(
        names=[task.part.name for task in tasks],
        corpus=corpus,
        rows=scratch.column(schemas.ROWS),
        ids=ids,
        release=scratch.release_pages,
    )


def map_batches(
    tasks: list[Task],
    work: Callable[[pa.Array], T],
    threads: int,
    progress: Progress,
    reject: Reject,
    *,
    losses: Losses,
) -> Iterator[tuple[DocumentBatch, T]]:
    """Yield batches with the result of `work` on their texts, in input order.

    Small batches are merged first, also across parts: each HTML file is a batch.

    losses : counts the files without text.
    """
    small = _batches(tasks, threads, reject, losses)
    merged = map(
        concatenate,
        group_small(
            small, _text_bytes, fits=lambda group, batch: _kinds_of(group[0]) == _kinds_of(batch)
        ),
    )
    results = map_ordered(merged, lambda batch: work(batch.text), threads, bytes_of=_text_bytes)
    for batch, result in results:
        progress.advance(len(batch.rows), batch.text_bytes)
        yield batch, result


def _batches(
    tasks: list[Task], threads: int, reject: Reject, losses: Losses
) -> Iterator[DocumentBatch]:
    for number, entry in read_tasks(tasks, threads):
        if isinstance(entry, Rejected):
            reject(entry)
        elif entry is not None:
            part = tasks[number].part
            losses.add_documents(part.name, part.format, entry.text)
            yield entry


def _text_bytes(batch: DocumentBatch) -> int:
    return batch.text_bytes


def _kinds_of(batch: DocumentBatch) -> list[Any]:
    """Return the type of the ids, None without ids, and the numbers of ranks and of values."""
    # Arrow cannot join ids of different types.
    return [None if batch.ids is None else batch.ids.type, len(batch.ranks), len(batch.values)]


def count_corpus(
    tasks: list[Task],
    shingling: Shingling,
    threads: int,
    progress: Progress,
    reject: Reject,
    *,
    losses: Losses,
) -> IdfTable:
    """Return the document frequencies of all features of the documents of all tasks.

    losses : counts the files without text.

    Notes
    -----
    One pass. A pool of threads computes the features, which are counted in input order, so that the
    table does not depend on the number of threads.
    """
    counts = DocumentCounts()

    def features_of(texts: pa.Array) -> DistinctFeatures:
        shingles = shingle_documents(texts, shingling)
        return distinct_features(shingles.hashes, shingles.offsets)

    for _, features in map_batches(tasks, features_of, threads, progress, reject, losses=losses):
        counts.add(features)
    return counts.table(shingling)


def count_or_open(
    counted: Shingling, tasks: list[Task], scratch: Scratch, threads: int, progress: Progress
) -> IdfTable:
    """Count a corpus, or read the table of an interrupted run."""
    file = scratch.directory / _FREQUENCIES
    if file.exists():
        return IdfTable.open(file)
    # Losses are reported by the pass that stores documents.
    table = count_corpus(tasks, counted, threads, progress, ignore, losses=Losses())
    table.save(file)
    return table
