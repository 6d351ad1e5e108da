"""Find repeated passages on this machine: read the documents twice, and store the text around
anchors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import kernels, schemas
from neardup.arrays import Mask, Words, arrow_of, join_arrays, offsets_from_lengths
from neardup.candidates.passage_units import Units
from neardup.candidates.passages import Anchoring, Counts, group_anchors
from neardup.decide.passages import Passages, decide_common, decide_passages, decide_units
from neardup.documents.batch import Corpus, DocumentBatch
from neardup.documents.batch_cache import BatchCache
from neardup.engines.base import Cleaned, Decided
from neardup.engines.local.sets import numbered
from neardup.errors import InputError
from neardup.executor import group_small, map_ordered
from neardup.features.shingles import extract_text
from neardup.formats.reading import Task, identified, known_total
from neardup.methods.base import Method
from neardup.output.job import Job
from neardup.progress import Progress
from neardup.runs.reading import Reading, locations, read_all
from neardup.runs.run import Found
from neardup.runs.scratch import Scratch, prepare
from neardup.settings.methods import Shingling
from neardup.settings.passages import PassageSettings

if TYPE_CHECKING:
    from neardup.kernels.passages import Pieces

_COUNTED_AT_ONCE = 1 << 20  # hashes between two releases of the mapped pages
_MAX_ANCHORS = 1 << 30  # the numbers of anchors and of their groups have 31 bits
_COLUMNS_OF_PIECES = (
    schemas.PIECES,
    schemas.PIECE_TEXTS,
    schemas.PIECE_ANCHORS,
    schemas.PIECE_HASHES,
    schemas.CHARACTERS,
)
T = TypeVar("T")


def find_passages(job: Job, inputs: Found, settings: PassageSettings, *, marked: bool) -> Cleaned:
    """Read the documents, find their repeated passages, and decide which to cut or mark."""
    run = job.run
    cache = BatchCache(run.settings.cache_bytes, with_payload=run.inputs.cuts)
    tasks = identified(inputs.tasks, cache)
    prepare(job.scratch, tasks, asdict(settings), run.folder.resume, job.folder)
    anchoring = (
        Units(settings) if settings.unit else Anchoring(settings.min_length, settings.bridge)
    )
    documents = _read(job, tasks, inputs.method, anchoring)
    num_documents = documents.corpus.num_documents
    with job.stages.stage("propose", num_documents) as progress:
        pieces = _select(documents, anchoring, progress)
    with job.stages.stage("decide", num_documents) as progress:
        passages = _decide(documents, pieces, settings, anchoring, progress)
    return Cleaned(
        tasks=tasks,
        corpus=documents.corpus,
        locations=locations(tasks, documents.corpus, job.scratch),
        passages=passages,
        pieces=pieces,
        edits=passages.edits(num_documents, marked=marked),
    )


def _read(job: Job, tasks: list[Task], method: Method, anchoring: Anchoring | Units) -> _Documents:
    """Read all documents, and store the hashes of their anchors."""
    run = job.run
    shingling = method.settings.shingling
    reading = Reading(tasks, method, job.scratch, run.selection, run.settings, stores_sets=False)
    with job.stages.stage("read", known_total(tasks)) as progress:
        corpus = read_all(
            reading,
            progress,
            lambda batches, _: anchoring.hashes(_texts_of(batches, shingling)),
            partial(job.scratch.append, schemas.ANCHOR_HASHES),
        )
    return _Documents(tasks, corpus, job.scratch, shingling, run.threads)


def find_among_kept(job: Job, decided: Decided, settings: PassageSettings) -> Cleaned:
    """Find the repeated passages of the documents that a run kept, and decide which to cut."""
    scratch = job.scratch
    corpus = decided.outcome.corpus
    documents = _Documents(
        tasks=decided.tasks,
        corpus=corpus,
        scratch=scratch,
        shingling=decided.method.settings.shingling,
        threads=job.run.threads,
        kept=decided.outcome.edits.kept,
    )
    anchoring = Anchoring(settings.min_length, settings.bridge)
    scratch.remove(schemas.ANCHOR_HASHES)  # written if the run was interrupted here
    # Three passes over the documents: hash, select, decide.
    with job.stages.stage("passages", 3 * corpus.num_documents) as progress:
        for hashes in documents.map(anchoring.hashes, progress):
            scratch.append(schemas.ANCHOR_HASHES, hashes)
        # The values must be in their files before the columns are read.
        scratch.close_columns()
        pieces = _select(documents, anchoring, progress)
        passages = _decide_in_order(documents, pieces, settings, anchoring, progress)
    return Cleaned(
        tasks=decided.tasks,
        corpus=corpus,
        locations=decided.locations,
        passages=passages,
        pieces=pieces,
        edits=passages.edits(corpus.num_documents, marked=False),
    )


class _Documents(NamedTuple):
    """Documents that were read before.

    kept : bool (num_documents,), the documents whose texts are read again; None for all.
    """

    tasks: list[Task]
    corpus: Corpus
    scratch: Scratch
    shingling: Shingling
    threads: int
    kept: Mask | None = None

    def map(self, work: Callable[[pa.LargeStringArray], T], progress: Progress) -> Iterator[T]:
        """Yield the result of `work` on the texts of each group of batches; threads call it."""
        for task in self.tasks:
            task.refuse_changed()

        def describe(group: list[tuple[slice, DocumentBatch]]) -> T:
            texts = _texts_of([batch for _, batch in group], self.shingling)
            if self.kept is not None:
                kept = arrow_of(np.concatenate([self.kept[span] for span, _ in group]))
                # An empty text has no anchors, and keeps the numbers of the documents.
                texts = pc.if_else(kept, texts, pa.scalar("", pa.large_string()))
            return work(texts)

        groups = group_small(
            numbered(self.tasks, self.corpus, self.threads),
            lambda numbered_batch: numbered_batch[1].text_bytes,
        )
        for group, result in map_ordered(groups, describe, self.threads, bytes_of=_bytes_of):
            yield result
            progress.advance(sum(len(batch.rows) for _, batch in group), _bytes_of(group))


def _bytes_of(group: list[tuple[slice, DocumentBatch]]) -> int:
    return sum(batch.text_bytes for _, batch in group)


def _decide(
    documents: _Documents,
    pieces: Pieces,
    settings: PassageSettings,
    anchoring: Anchoring | Units,
    progress: Progress,
) -> Passages:
    """Decide by the rule of the settings."""
    scratch = documents.scratch
    if isinstance(anchoring, Units):
        first = anchoring.first_equal(pieces, documents.threads)
        sites = _sites(pieces, scratch)
        return decide_units(pieces, first, sites, settings, documents.corpus.num_against)
    if settings.keep == "none":
        return decide_common(
            pieces,
            scratch.column(schemas.PIECE_ANCHORS),
            scratch.column(schemas.PIECE_HASHES),
            _sites(pieces, scratch),
            settings,
            gram_size=anchoring.size,
        )
    return _decide_in_order(documents, pieces, settings, anchoring, progress)


def _decide_in_order(
    documents: _Documents,
    pieces: Pieces,
    settings: PassageSettings,
    anchoring: Anchoring,
    progress: Progress,
) -> Passages:
    """Decide document by document: the first copy of a passage is kept."""
    scratch = documents.scratch
    num_against = documents.corpus.num_against
    ends = scratch.column(schemas.PIECE_ANCHORS)
    groups = group_anchors(
        pieces,
        ends,
        scratch.column(schemas.PIECE_HASHES),
        settings.min_length,
        anchoring.size,
        num_against=num_against,
        threads=documents.threads,
    )
    lengths = scratch.column(schemas.LENGTHS)
    num_done = 0

    def advance(count: int) -> None:
        nonlocal num_done
        progress.advance(count - num_done, int(lengths[num_done:count].sum()))
        num_done = count

    passages = decide_passages(
        pieces,
        ends,
        groups,
        settings,
        gram_size=anchoring.size,
        num_against=num_against,
        on_done=advance,
    )
    advance(len(lengths))
    return passages


def _sites(pieces: Pieces, scratch: Scratch) -> Words:
    """Return the hash of the site of each document; zeros if sites are not read."""
    sites: Words = scratch.column(schemas.VALUES)
    return sites if len(sites) else np.zeros(len(pieces.characters), np.uint64)


def _texts_of(batches: list[DocumentBatch], shingling: Shingling) -> pa.LargeStringArray:
    return extract_text(join_arrays([batch.text for batch in batches]), shingling)


def _select(documents: _Documents, anchoring: Anchoring | Units, progress: Progress) -> Pieces:
    """Read the documents again, and store the text around the anchors that may repeat."""
    scratch = documents.scratch
    for column in _COLUMNS_OF_PIECES:
        scratch.remove(column)  # written if the run was interrupted here
    counts = _count_hashes(scratch)
    text_bytes = 0
    num_documents = 0
    num_anchors = 0
    for found in documents.map(lambda texts: anchoring.select(texts, counts.table), progress):
        # Numbers of documents and of anchors count from 0 in each batch; see schemas.PIECES.
        offsets = np.array([num_documents, 0, 0, 0, num_anchors, 0])
        scratch.append(schemas.PIECES, found.pieces + offsets)
        scratch.append(schemas.PIECE_ANCHORS, found.positions + text_bytes)
        scratch.append(schemas.PIECE_TEXTS, found.text)
        scratch.append(schemas.PIECE_HASHES, found.hashes)
        scratch.append(schemas.CHARACTERS, found.characters)
        text_bytes += len(found.text)
        num_documents += len(found.characters)
        num_anchors += len(found.positions)
        if num_anchors > _MAX_ANCHORS:
            raise InputError(
                f"A run can decide about {_MAX_ANCHORS:,} places that may repeat at most, and "
                "there are more. Split the corpus, and run the parts one after the other with "
                "--against."
            )
    scratch.close_columns()
    return _read_pieces(scratch)


def _count_hashes(scratch: Scratch) -> Counts:
    """Return the counts of the hashes of all anchors."""
    hashes = scratch.column(schemas.ANCHOR_HASHES)
    counts = Counts(len(hashes))
    for first in range(0, len(hashes), _COUNTED_AT_ONCE):
        counts.add(hashes[first : first + _COUNTED_AT_ONCE])
        scratch.release_pages()
    return counts


def _read_pieces(scratch: Scratch) -> Pieces:
    """Return the pieces from the scratch columns; see candidates/passages.Selected."""
    # A column of Pieces is read from its beginning to its end: rows become columns.
    columns = np.ascontiguousarray(scratch.column(schemas.PIECES).T)
    documents, lengths, offsets, before, anchors, bounded = columns
    return kernels.passages.Pieces(
        text=scratch.column(schemas.PIECE_TEXTS),
        starts=offsets_from_lengths(lengths),
        documents=documents,
        offsets=offsets,
        before=before,
        anchors=anchors,
        bounded=bounded.astype(np.uint8),
        characters=scratch.column(schemas.CHARACTERS),
    )
