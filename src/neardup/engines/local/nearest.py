"""Compare a sample of documents with all kept ones exactly, in two passes over the texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import Ints, Mask, arrow_of, offsets_from_lengths
from neardup.documents.batch import Corpus
from neardup.engines.local.sets import numbered
from neardup.executor import map_ordered
from neardup.features.described import Lists
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.progress import Progress
from neardup.verify.nearest import NearestDocuments


class Collection(NamedTuple):
    """The documents of a run, to be read again. threads : that describe them."""

    tasks: list[Task]
    corpus: Corpus
    method: Method
    threads: int


def find_nearest(
    collection: Collection, sample: Ints, is_kept: Mask, progress: Progress
) -> NearestDocuments:
    """Return the most similar kept document of each sampled one.

    sample : int64, documents, rising, none of them kept. is_kept : bool by document.
    """
    is_sampled = np.zeros(len(is_kept), np.bool_)
    is_sampled[sample] = True
    parts = [sets for _, sets in _described(collection, is_sampled)]
    nearest = NearestDocuments(
        Lists(
            np.concatenate([np.empty(0, np.uint64), *(part.hashes for part in parts)]),
            offsets_from_lengths(np.concatenate([part.sizes for part in parts])),
        )
    )
    for documents, sets in _described(collection, is_kept):
        nearest.compare(documents, sets)
        progress.advance(len(documents), 0)
    return nearest


class _Texts(NamedTuple):
    """Some documents, int64, rising, and their texts."""

    documents: Ints
    texts: pa.Array


def _described(collection: Collection, wanted: Mask) -> Iterator[tuple[Ints, Lists]]:
    """Yield the wanted documents, with their distinct shingles."""

    def describe(item: _Texts) -> Lists:
        features = collection.method.describe(item.texts)
        return collection.method.compact(features.sets)

    described = map_ordered(
        _chosen(collection, wanted),
        describe,
        collection.threads,
        bytes_of=lambda item: int(item.texts.nbytes),
    )
    return ((item.documents, sets) for item, sets in described)


def _chosen(collection: Collection, wanted: Mask) -> Iterator[_Texts]:
    """Yield the wanted documents of each batch."""
    for documents, batch in numbered(collection.tasks, collection.corpus, collection.threads):
        is_wanted = wanted[documents]
        if is_wanted.any():
            numbers = documents.start + np.flatnonzero(is_wanted)
            yield _Texts(numbers, batch.text.filter(arrow_of(is_wanted)))
