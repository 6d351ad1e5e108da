"""Measure the recall of the candidates: a random sample of documents is compared exactly with all others."""

from __future__ import annotations

import numpy as np

from neardup import kernels, schemas
from neardup.engines.local.searches import key_columns
from neardup.engines.local.sets import SetSource, build_sets
from neardup.progress import Progress
from neardup.verify.recall import Recall, audit_recall

_SEED = 20261121  # fixed: the same corpus and settings draw the same documents
_STRETCH = 8192


def audit(source: SetSource, threshold: float, num_documents: int, threads: int, progress: Progress) -> Recall | None:
    """Return the share of true pairs of sampled documents that the bands propose, or None if there are none.

    Copies share every band; they are left out here and in the estimate.
    """
    total, scratch = source.corpus.num_documents, source.scratch
    sets = build_sets(source, np.ones(total, np.bool_), threads, progress, "all-sets")
    featured = np.flatnonzero(sets.sizes > 0)
    drawn = np.random.default_rng(_SEED).permutation(len(featured))[:num_documents]
    samples = np.sort(featured[drawn]).astype(np.int64)
    if len(samples) == 0:
        return None
    num_hashes = int(sets.sizes[samples].astype(np.int64).sum())
    postings = kernels.sieve.make_postings(num_hashes, num_hashes)
    kernels.audit.fill(postings, sets.hashes, sets.starts[samples], sets.sizes[samples])
    content = scratch.column(schemas.CONTENT)
    columns = key_columns(scratch)
    sample_keys = np.stack([column[samples] for column in columns])
    found, true = np.zeros(len(samples), np.int64), np.zeros(len(samples), np.int64)
    sampled = kernels.audit.Sample(samples, sets.sizes[samples], content[samples], sample_keys)
    for first in range(0, total, _STRETCH):
        stop = min(total, first + _STRETCH)
        stretch = kernels.audit.Stretch(
            first, content[first:stop], np.stack([column[first:stop] for column in columns])
        )
        kernels.audit.compare(postings, sampled, stretch, sets, threshold, kernels.audit.Counts(found, true))
        progress.advance(stop - first, 0)
        scratch.release_pages()
    return audit_recall(found, true)
