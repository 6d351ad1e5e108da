"""Count in how many documents of a corpus each feature occurs: what TF-IDF weighs by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa

from neardup.documents.batch import Rejected
from neardup.documents.reading import Task
from neardup.engines.local.batches import map_batches
from neardup.engines.local.scratch import Scratch
from neardup.errors import SettingError
from neardup.features.document_counts import DocumentCounts
from neardup.features.extract import readable
from neardup.features.idf import IdfTable
from neardup.features.shingles import shingle_documents
from neardup.features.weights import Features, distinct_features
from neardup.progress import Progress
from neardup.settings.methods import IdfSource, Method, MinHash, SimHash
from neardup.settings.shingling import Shingling

_FILE = "idf.parquet"


def count_corpus(
    tasks: list[Task], shingling: Shingling, threads: int, progress: Progress, reject: Callable[[Rejected], None]
) -> IdfTable:
    """Return the document frequencies of all features of the documents of all tasks.

    Notes
    -----
    One pass; features are found on a pool of threads and counted in the order of the documents, so that the table
    does not depend on the threads.
    """
    counts = DocumentCounts()

    def features_of(texts: pa.Array) -> Features:
        shingles = shingle_documents(readable(texts, shingling), shingling)
        return distinct_features(shingles.hashes, shingles.offsets)

    for _, features in map_batches(tasks, features_of, threads, progress, reject):
        counts.add(features)
    return counts.table(shingling)


def needs_count(method: Method) -> bool:
    """Return whether a corpus must be read once to be weighed, before it is read to be compared."""
    if isinstance(method, MinHash):
        return method.rarity or method.structure is not None
    return method.weights == "tfidf" and method.idf == "corpus"


def idf_of(method: Method, tasks: list[Task], scratch: Scratch, threads: int, progress: Progress) -> IdfSource:
    """Count a corpus, or take what an interrupted run counted of it."""
    file = scratch.directory / _FILE
    if file.exists():
        return IdfTable.open(file)
    structure = method.of_structure if isinstance(method, MinHash) else None
    table = count_corpus(tasks, structure or method, threads, progress, _ignore)
    table.save(file)
    return table


def with_table(method: Method) -> Method:
    """Return a method with the table of document frequencies whose file it names, if it names one.

    Its version is then part of the scheme, so that a run is not resumed with another table in the same place.
    """
    if not isinstance(method, SimHash) or method.weights != "tfidf" or method.idf in ("corpus", "lines"):
        return method
    table = given_idf(method)
    assert table is not None
    return replace(method, idf=table)


def given_idf(method: Method) -> IdfSource | None:
    """Return the table that a method names, or None if it names none: rarity counts where there is a corpus only.

    Raises
    ------
    SettingError
        If frequencies of a corpus are asked for: here is none to count.
    """
    if isinstance(method, MinHash) or method.weights != "tfidf" or method.idf == "lines":
        return None
    if method.idf == "corpus":
        raise SettingError(
            "weights='tfidf' takes document frequencies from a corpus, and single texts are none: got idf='corpus'. "
            "Give a table as idf (--idf TABLE, made by neardup idf), or idf='lines' to count lines of the text itself."
        )
    table = method.idf if isinstance(method.idf, IdfTable) else IdfTable.open(str(method.idf))
    table.require(method)
    return table


def _ignore(_: Rejected) -> None:
    """Rows that cannot be read are listed when the documents are read to be compared."""
