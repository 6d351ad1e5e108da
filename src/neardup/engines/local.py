"""The whole run on one machine: read, propose, confirm, decide. What is written is in engines/write.py."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.candidates.bands import Bands, candidate_probability, choose_bands
from neardup.candidates.samples import Samples, choose_samples, hit_probability
from neardup.config import MinHash, Running, Sieve
from neardup.decide.connected import connect, roots
from neardup.decide.priority import priority_order
from neardup.engines.audit import audit
from neardup.engines.confirm import Confirmed, exact_similarity, pass_contained, pass_sieve, sort_wanted
from neardup.engines.describe import Corpus, Reading, Task, read_all
from neardup.engines.propose import Proposed, fill_buckets, find_copies
from neardup.engines.scratch import Scratch
from neardup.engines.stages import Stages
from neardup.engines.tell import Removals
from neardup.verify.recall import Recall, estimate_recall


@dataclass(frozen=True)
class Outcome:
    """What a run decided.

    bands, samples : how candidates were proposed, for Jaccard similarity and for containment; the other is None.
    kept : bool by document. removals : the removed documents. left, right : uint32 documents of all pairs measured
    at or above the threshold, with `similarity` and `exact`. compared, bound_met : as in Confirmed.
    """

    corpus: Corpus
    bands: Bands | None
    samples: Samples | None
    kept: npt.NDArray[np.bool_]
    removals: Removals
    left: npt.NDArray[np.uint32]
    right: npt.NDArray[np.uint32]
    similarity: npt.NDArray[np.float64]
    exact: npt.NDArray[np.bool_]
    compared: int
    bound_met: int
    recall: Recall | None
    audited: Recall | None


def bands_of(method: MinHash) -> Bands:
    """Return the bands of a method: those given, or the cheapest that reach its recall."""
    if method.num_bands is not None and method.rows_per_band is not None:
        return Bands(method.num_bands, method.rows_per_band)
    return choose_bands(method.threshold, method.recall)


def thread_count(running: Running) -> int:
    """Return the number of worker threads: as asked, or one for each processor this process may use."""
    if running.threads is not None:
        return running.threads
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(
    tasks: list[Task],
    method: MinHash,
    sieve: Sieve,
    running: Running,
    scratch: Scratch,
    stages: Stages,
    *,
    resume: bool = False,
    all_pairs: bool = False,
) -> Outcome:
    """Find the duplicates among the documents of all tasks; those of the earlier corpus come first.

    With `all_pairs` every proposed pair is measured and nothing is removed.
    """
    bands = bands_of(method) if method.similarity == "jaccard" else None
    samples = None if bands is not None else choose_samples(method.threshold, method.recall)
    connected = sieve.clusters == "connected" and not all_pairs
    reading = Reading(tasks, scratch, sieve.keep, running.on_error)
    threads = thread_count(running)
    if resume:
        reading.resume()
    with stages.stage("read", _known_total(tasks)) as watcher:
        corpus = read_all(reading, method, bands, threads, running.batch_rows, watcher)
    with stages.stage("propose"):
        order = _order(scratch, corpus, sieve.keep)
        featured = np.diff(scratch.column("starts", np.int64), append=corpus.tally.shingles) > 0
        representative = find_copies(scratch, order, featured)
        copies_share = "slots" if all_pairs else "nothing" if connected else "bucket"
        num_bands = 0 if bands is None else bands.num_bands
        proposed = fill_buckets(scratch, num_bands, order, featured, representative, copies_share)
    with stages.stage("sort", corpus.num_documents) as watcher:
        wanted = featured if bands is None else proposed.wanted
        sets = sort_wanted(scratch, corpus.tally.shingles, wanted, threads, watcher)
    with stages.stage("confirm", corpus.num_documents) as watcher:
        pass_all = pass_contained if bands is None else pass_sieve
        confirmed = pass_all(
            scratch, order, proposed, sets, corpus.num_against, method, sieve, watcher, all_pairs or connected
        )
    if connected:
        removals = _connected_removals(order, proposed, confirmed, sets, corpus.num_against, method)
    else:
        removals = _sieve_removals(order, confirmed)
    kept = np.ones(corpus.num_documents, np.bool_)
    kept[removals.documents] = False
    audited = None
    if sieve.audit and bands is not None:
        with stages.stage("audit", 2 * corpus.num_documents) as watcher:  # sorted, then compared
            audited = audit(scratch, corpus, bands, method, sieve.audit, threads, watcher)
    return Outcome(
        corpus, bands, samples, kept, removals, order[confirmed.left], order[confirmed.right], confirmed.similarity,
        confirmed.exact, confirmed.compared, confirmed.bound_met, _recall(confirmed, bands, samples), audited,
    )  # fmt: skip


def _recall(confirmed: Confirmed, bands: Bands | None, samples: Samples | None) -> Recall | None:
    """Estimate the run's recall from the pairs it found; copies, which are always found, left out."""
    near = ~confirmed.exact
    similarity = confirmed.similarity[near]
    # Pairs of one cluster share signatures: they are found together, or missed together.
    parents = np.arange(len(confirmed.kept), dtype=np.uint32)
    connect(parents, confirmed.left[near], confirmed.right[near])
    group = roots(parents)[confirmed.left[near]]
    if bands is not None:
        return estimate_recall(similarity, group, lambda values: candidate_probability(values, bands))
    assert samples is not None
    return estimate_recall(similarity, group, lambda values: hit_probability(values, samples))


def _known_total(tasks: list[Task]) -> int | None:
    """Return how many documents there are, if every part knows it beforehand."""
    counts = [task.part.num_rows() for task in tasks]
    return None if None in counts else sum(count for count in counts if count is not None)


def _order(scratch: Scratch, corpus: Corpus, keep: str) -> npt.NDArray[np.uint32]:
    lengths = scratch.column("lengths", np.int64)
    ranks = scratch.column("ranks", np.float64)
    return priority_order(keep, corpus.num_documents, corpus.num_against, lengths, ranks)


def _sieve_removals(order: npt.NDArray[np.uint32], confirmed: Confirmed) -> Removals:
    best = np.flatnonzero(confirmed.best)
    documents = order[confirmed.right[best]]
    best = best[np.argsort(documents, kind="stable")]
    return Removals(
        order[confirmed.right[best]],
        order[confirmed.left[best]],
        confirmed.similarity[best],
        confirmed.exact[best],
    )


def _connected_removals(
    order: npt.NDArray[np.uint32],
    proposed: Proposed,
    confirmed: Confirmed,
    sets: Any,
    num_against: int,
    method: MinHash,
) -> Removals:
    """Remove all but the first of each cluster; the similarity is that to the first, which may be low."""
    parents = np.arange(len(order), dtype=np.uint32)
    connect(parents, proposed.representative, parents.copy())
    connect(parents, confirmed.left, confirmed.right)
    first = roots(parents)
    removed = np.flatnonzero(first != np.arange(len(order)))
    removed = removed[removed >= num_against]
    removed = removed[np.argsort(order[removed], kind="stable")]
    kept = first[removed]
    twin, kept_twin = proposed.representative[removed], proposed.representative[kept]
    similarity = exact_similarity(sets, order[twin], order[kept_twin], method.similarity)
    return Removals(order[removed], order[kept], similarity, twin == kept_twin)
