"""Find repeated passages on this machine: the documents are read twice, and their text around
anchors is stored.
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
from neardup.documents.batch import BatchCache, Corpus, DocumentBatch
from neardup.engines.base import Cleaned, Decided
from neardup.engines.local.sets import numbered
from neardup.errors import InputError
from neardup.executor import group_small, map_ordered
from neardup.features.shingles import extract_text
from neardup.formats.reading import Task, identified, known_total
from neardup.output.job import Job
from neardup.progress import Progress
from neardup.runs.reading import Reading, locations, read_all
from neardup.runs.run import Found
from neardup.runs.scratch import Scratch, prepare
from neardup.settings.methods import Shingling
from neardup.settings.passages import PassageSettings

if TYPE_CHECKING:
    from neardup.kernels.passages import Pieces

_HASHES = 1 << 20  # that are counted at a time
_MAX_ANCHORS = 1 << 30  # their numbers, and those of their groups, have 31 bits


_SCRATCH = (
    schemas.PIECES,
    schemas.PIECE_TEXTS,
    schemas.PIECE_ANCHORS,
    schemas.PIECE_HASHES,
    schemas.CHARACTERS,
)
T = TypeVar("T")


def find_passages(job: Job, inputs: Found, settings: PassageSettings, *, marked: bool) -> Cleaned:
    """Read the documents, find their repeated passages, and decide which are cut, or marked."""
    run = job.run
    method = inputs.method
    scratch = job.scratch
    tasks = identified(
        inputs.tasks, BatchCache(run.settings.cache_bytes, with_payload=run.inputs.cuts)
    )
    prepare(scratch, tasks, asdict(settings), run.resume, job.folder)
    anchoring = (
        Units(settings) if settings.unit else Anchoring(settings.min_length, settings.bridge)
    )
    reading = Reading(tasks, method, scratch, run.selection, run.settings, stores_sets=False)
    with job.stages.stage("read", known_total(tasks)) as progress:
        shingling, store = method.settings.shingling, partial(scratch.append, schemas.ANCHOR_HASHES)
        corpus = read_all(
            reading,
            progress,
            lambda batches: anchoring.hashes(_texts_of(batches, shingling)),
            store,
        )
    documents = _Documents(tasks, corpus, scratch, shingling, run.threads)
    with job.stages.stage("propose", corpus.num_documents) as progress:
        pieces = _select(documents, anchoring, progress)
    with job.stages.stage("decide", corpus.num_documents) as progress:
        if isinstance(anchoring, Units):
            first, num_against = anchoring.first_equal(pieces, run.threads), corpus.num_against
            passages = decide_units(pieces, first, _sites(pieces, scratch), settings, num_against)
        elif settings.keep == "none":
            places, hashes = (
                scratch.column(schemas.PIECE_ANCHORS),
                scratch.column(schemas.PIECE_HASHES),
            )
            sites = _sites(pieces, scratch)
            passages = decide_common(
                pieces, places, hashes, sites, settings, gram_size=anchoring.size
            )
        else:
            passages = _decide(documents, pieces, settings, anchoring, progress)
    edits = passages.edits(corpus.num_documents, marked=marked)
    return Cleaned(tasks, corpus, locations(tasks, corpus, scratch), passages, pieces, edits)


def find_among_kept(job: Job, decided: Decided, settings: PassageSettings) -> Cleaned:
    """Find the repeated passages of the documents that a run kept, and decide which are cut."""
    tasks, corpus, kept = decided.tasks, decided.outcome.corpus, decided.outcome.edits.kept
    scratch = job.scratch
    documents = _Documents(
        tasks, corpus, scratch, decided.method.settings.shingling, job.run.threads, kept
    )
    anchoring = Anchoring(settings.min_length, settings.bridge)
    scratch.remove(schemas.ANCHOR_HASHES)  # of a run that was interrupted here
    with job.stages.stage("passages", 3 * corpus.num_documents) as progress:
        for count, num_bytes, hashes in documents.map(anchoring.hashes):
            scratch.append(schemas.ANCHOR_HASHES, hashes)
            progress.advance(count, num_bytes)
        scratch.close_columns()
        pieces = _select(documents, anchoring, progress)
        passages = _decide(documents, pieces, settings, anchoring, progress)
    edits = passages.edits(corpus.num_documents, marked=False)
    return Cleaned(tasks, corpus, decided.locations, passages, pieces, edits)


class _Documents(NamedTuple):
    """Documents that were read before. kept : bool (num_documents,), those whose texts are read
    again; None for all.
    """

    tasks: list[Task]
    corpus: Corpus
    scratch: Scratch
    shingling: Shingling
    threads: int
    kept: Mask | None = None

    def map(self, work: Callable[[pa.LargeStringArray], T]) -> Iterator[tuple[int, int, T]]:
        """Yield how many documents and bytes groups of batches have, with what `work` returns for
        their texts.
        """
        for task in self.tasks:
            task.refuse_changed()

        def describe(group: list[tuple[slice, DocumentBatch]]) -> T:
            texts = _texts_of([batch for _, batch in group], self.shingling)
            if self.kept is not None:
                kept = arrow_of(np.concatenate([self.kept[span] for span, _ in group]))
                texts = pc.if_else(kept, texts, pa.scalar("", pa.large_string()))
            return work(texts)

        groups = group_small(
            numbered(self.tasks, self.corpus, self.threads), lambda one: one[1].text_bytes
        )
        mapped = map_ordered(groups, describe, self.threads, bytes_of=_bytes_of)
        for group, found in mapped:
            yield sum(len(batch.rows) for _, batch in group), _bytes_of(group), found


def _bytes_of(group: list[tuple[slice, DocumentBatch]]) -> int:
    return sum(batch.text_bytes for _, batch in group)


def _decide(
    documents: _Documents,
    pieces: Pieces,
    settings: PassageSettings,
    anchoring: Anchoring,
    progress: Progress,
) -> Passages:
    scratch, num_against = documents.scratch, documents.corpus.num_against
    places, hashes = scratch.column(schemas.PIECE_ANCHORS), scratch.column(schemas.PIECE_HASHES)
    groups = group_anchors(
        pieces, places, hashes, settings.min_length, anchoring.size, num_against, documents.threads
    )
    lengths, done = scratch.column(schemas.LENGTHS), 0
    found = None
    for count, found in decide_passages(  # noqa: B007
        pieces, places, groups, settings, gram_size=anchoring.size, num_against=num_against
    ):
        progress.advance(count - done, int(lengths[done:count].sum()))
        done = count
    assert found is not None  # the last one
    return found


def _sites(pieces: Pieces, scratch: Scratch) -> Words:
    sites: Words = scratch.column(schemas.VALUES)
    return sites if len(sites) else np.zeros(len(pieces.characters), np.uint64)


def _texts_of(batches: list[DocumentBatch], shingling: Shingling) -> pa.LargeStringArray:
    return extract_text(join_arrays([batch.text for batch in batches]), shingling)


def _select(documents: _Documents, anchoring: Anchoring | Units, progress: Progress) -> Pieces:
    """Read the documents again, and store the text around the anchors that may repeat."""
    scratch = documents.scratch
    for column in _SCRATCH:
        scratch.remove(column)  # of a run that was interrupted here
    all_hashes = scratch.column(schemas.ANCHOR_HASHES)
    counts = Counts(len(all_hashes))
    for first in range(0, len(all_hashes), _HASHES):
        counts.add(all_hashes[first : first + _HASHES])
        scratch.release_pages()
    text_bytes = num_documents = num_anchors = 0
    for count, num_bytes, found in documents.map(
        lambda texts: anchoring.select(texts, counts.table)
    ):
        scratch.append(
            schemas.PIECES, found.pieces + np.array([num_documents, 0, 0, 0, num_anchors, 0])
        )
        scratch.append(schemas.PIECE_ANCHORS, found.places + text_bytes)
        scratch.append(schemas.PIECE_TEXTS, found.text)
        scratch.append(schemas.PIECE_HASHES, found.hashes)
        scratch.append(schemas.CHARACTERS, found.characters)
        text_bytes += len(found.text)
        num_documents += len(found.characters)
        num_anchors += len(found.places)
        progress.advance(count, num_bytes)
        if num_anchors > _MAX_ANCHORS:
            raise InputError(
                f"A run can decide about {_MAX_ANCHORS:,} places that may repeat at most, and "
                "there are more. Split "
                "the corpus, and run the parts one after the other with --against."
            )
    scratch.close_columns()
    columns = np.ascontiguousarray(scratch.column(schemas.PIECES).T)
    owners, lengths, offsets, before, up_to, bounded = columns
    text, characters = scratch.column(schemas.PIECE_TEXTS), scratch.column(schemas.CHARACTERS)
    starts, is_bounded = offsets_from_lengths(lengths), bounded.astype(np.uint8)
    return kernels.passages.Pieces(
        text, starts, owners, offsets, before, up_to, is_bounded, characters
    )
