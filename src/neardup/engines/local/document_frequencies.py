"""Count the document frequencies of a corpus, for TF-IDF."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from neardup.documents.batch import Rejected
from neardup.engines.local.reading import map_batches
from neardup.engines.local.scratch import Scratch
from neardup.features.document_counts import DocumentCounts
from neardup.features.idf import IdfTable
from neardup.features.shingles import shingle_documents
from neardup.features.weights import DistinctFeatures, distinct_features
from neardup.formats.reading import Task, ignore
from neardup.progress import Progress
from neardup.settings.shingling import Shingling

_FILE = "idf.parquet"


def count_corpus(
    tasks: list[Task], shingling: Shingling, threads: int, progress: Progress, reject: Callable[[Rejected], None]
) -> IdfTable:
    """Return the document frequencies of all features of the documents of all tasks.

    Notes
    -----
    One pass. A pool of threads computes the features, which are counted in input order, so that the table does not
    depend on the number of threads.
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
    file = scratch.directory / _FILE
    if file.exists():
        return IdfTable.open(file)
    table = count_corpus(tasks, counted, threads, progress, ignore)
    table.save(file)
    return table
