"""Fingerprint every document of a corpus, in one pass or two."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from neardup.documents.batch import Rejected
from neardup.documents.reading import Task
from neardup.engines.local.batches import map_batches
from neardup.fingerprints.files import to_binary, to_hex
from neardup.fingerprints.simhash_documents import Fingerprinted, fingerprint_documents
from neardup.progress import Progress
from neardup.settings.methods import IdfSource, SimHash


@dataclass
class Counts:
    """What was fingerprinted so far. short : documents of fewer features than SimHash needs."""

    read: int = 0
    without_features: int = 0
    short: int = 0
    text_bytes: int = 0
    rejected: list[Rejected] = field(default_factory=list)


def fingerprint_corpus(
    tasks: list[Task],
    method: SimHash,
    idf: IdfSource | None,
    schema: pa.Schema,
    threads: int,
    short: int,
    counts: Counts,
    progress: Progress,
    reject: Callable[[Rejected], None],
) -> Iterator[pa.RecordBatch]:
    """Yield ids and fingerprints, in the order of the documents; see fingerprint_files.fingerprint_schema.

    counts is kept up to date on the way.
    """

    def work(texts: pa.Array) -> Fingerprinted:
        return fingerprint_documents(texts, method, idf)

    for batch, made in map_batches(tasks, work, threads, progress, reject):
        sizes = np.diff(made.offsets)
        featured = sizes > 0
        ids = batch.ids
        if ids is None:
            ids = pa.array(np.arange(counts.read, counts.read + len(sizes))).cast(pa.string())
        columns = {"id": ids.cast(pa.string())}
        if "fingerprint" in schema.names:
            columns["fingerprint"] = to_binary(made.fingerprints, method.bits, featured)
        if "hex" in schema.names:
            columns["hex"] = to_hex(made.fingerprints, method.bits, featured)
        counts.read += len(sizes)
        counts.without_features += int(np.count_nonzero(~featured))
        counts.short += int(np.count_nonzero(featured & (sizes < short)))
        counts.text_bytes += int(batch.text.nbytes)
        yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
