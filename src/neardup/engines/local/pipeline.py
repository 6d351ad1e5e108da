"""The whole run on one machine: read, propose, confirm, decide. What is written is in engines/write.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from neardup.candidates.bands import Bands, candidate_probability, choose_bands
from neardup.candidates.buckets import fill_buckets, find_copies
from neardup.candidates.hamming_neighbours import Near, find_near, fingerprints_of
from neardup.candidates.samples import Samples, choose_samples, hit_probability
from neardup.decide.connected import connect, roots
from neardup.decide.priority import priority_order
from neardup.documents.reading import Task
from neardup.engines.local.audit import audit
from neardup.engines.local.document_frequencies import given_idf, idf_of, needs_count
from neardup.engines.local.reading import Corpus, Reading, describer_of, read_all
from neardup.engines.local.scratch import Scratch
from neardup.engines.local.sieve import (
    Confirmed,
    Line,
    exact_similarity,
    pass_contained,
    pass_near,
    pass_sieve,
    rules_of,
    sort_wanted,
)
from neardup.executor import count_processors
from neardup.output.tables import Measured, Pairs, Removals
from neardup.progress import Progress, Stages
from neardup.settings.methods import Method, MinHash, SimHash, max_bucket_of
from neardup.settings.running import Running, Sieve
from neardup.verify.hamming import hamming_distances
from neardup.verify.recall import Recall, estimate_recall

if TYPE_CHECKING:
    from neardup.kernels.sieve_arrays import Sets

SHORT = 32  # features under which SimHash is unreliable: docs/accuracy.md


@dataclass(frozen=True)
class Outcome:
    """What a run decided.

    bands, samples, near : how candidates were proposed, by the similarity or the fingerprints; the others are None.
    kept : bool by document. removals : the removed documents. pairs : all pairs measured at or above the threshold.
    compared, bound_met, collisions : as in Confirmed. recall : estimated; None where no pair can be missed.
    short : documents of fewer than SHORT features.
    """

    corpus: Corpus
    bands: Bands | None
    samples: Samples | None
    near: Near | None
    kept: npt.NDArray[np.bool_]
    removals: Removals
    pairs: Pairs
    compared: int
    bound_met: int
    collisions: int
    recall: Recall | None
    audited: Recall | None
    short: int


def bands_of(method: MinHash) -> Bands:
    """Return the bands of a method: those given, or the cheapest that reach its recall."""
    rows = method.rows_per_band
    if method.num_bands is not None and rows is not None:
        return Bands(method.num_bands, rows)
    return choose_bands(method.jaccard_threshold, method.recall, rows_per_band=rows)


def thread_count(running: Running) -> int:
    """Return the number of worker threads: as asked, or one for each processor this process may use."""
    if running.threads is not None:
        return running.threads
    return count_processors()


def run(
    tasks: list[Task],
    method: Method,
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
    bands, samples = _proposers(method)
    connected = sieve.linkage == "connected" and not all_pairs
    threads = thread_count(running)
    corpus = _read(tasks, method, bands, sieve, running, scratch, stages, resume)
    near = None
    with stages.stage("propose"):
        order = _order(scratch, corpus, sieve.keep)
        sizes = np.diff(scratch.column("starts", np.int64), append=corpus.tally.shingles)
        featured = sizes > 0
        representative = find_copies(scratch, order, featured)
        if isinstance(method, SimHash):
            near = find_near(scratch, order, featured, representative, method, threads, copies_join=not connected)
            wanted = near.wanted if method.compares_features else np.zeros_like(featured)
        else:
            copies_share = "membership" if all_pairs else "nothing" if connected else "bucket"
            num_bands = 0 if bands is None else bands.num_bands
            proposed = fill_buckets(
                scratch, num_bands, order, featured, representative, copies_share, max_bucket_of(method, sieve)
            )
            wanted = featured if bands is None else proposed.wanted
    with stages.stage("sort", corpus.num_documents) as progress:
        sets, structure = _sort(scratch, corpus, method, wanted, threads, progress)
    with stages.stage("confirm", corpus.num_documents) as progress:
        rules = rules_of(method, sieve, corpus.num_against, all_pairs or connected)
        line = Line(order, representative, sets, structure, rules)
        if near is not None:
            confirmed = pass_near(scratch, line, near.neighbours, progress)
        elif bands is not None:
            confirmed = pass_sieve(scratch, line, proposed, progress)
        elif isinstance(method, MinHash):
            confirmed = pass_contained(scratch, line, method, progress)
    if connected:
        removals = _connected_removals(scratch, line, confirmed, corpus.num_against, method)
    else:
        removals = _sieve_removals(order, confirmed)
    kept = np.ones(corpus.num_documents, np.bool_)
    kept[removals.documents] = False
    audited = None
    if sieve.audit and bands is not None and isinstance(method, MinHash):
        with stages.stage("audit", 2 * corpus.num_documents) as progress:  # sorted, then compared
            audited = audit(scratch, corpus, bands, method, sieve.audit, threads, progress)
    return Outcome(
        corpus, bands, samples, near, kept, removals,
        Pairs(order[confirmed.left], order[confirmed.right], confirmed.measured),
        confirmed.compared, confirmed.bound_met, confirmed.collisions,
        _recall(confirmed, bands, samples, _jaccard_of(method, sets.sizes[order[representative]])), audited,
        int(np.count_nonzero(featured & (sizes < SHORT))),
    )  # fmt: skip


def _sort(
    scratch: Scratch, corpus: Corpus, method: Method, wanted: npt.NDArray[np.bool_], threads: int, progress: Progress
) -> tuple[Sets, Sets]:
    """Return the sets of the wanted documents, and those of their structure, or the same again."""
    sets = sort_wanted(scratch, corpus.tally.shingles, wanted, threads, progress, "sets")
    if not isinstance(method, MinHash) or method.structure is None:
        return sets, sets
    columns = "structure", "structure-starts"
    return sets, sort_wanted(scratch, corpus.tally.structure, wanted, threads, progress, "structure-sets", columns)


def _proposers(method: Method) -> tuple[Bands | None, Samples | None]:
    """Return the bands or the samples that propose pairs; neither for fingerprints."""
    if isinstance(method, SimHash):
        return None, None
    if method.similarity == "containment":
        return None, choose_samples(method.threshold, method.recall)
    return bands_of(method), None


def _read(
    tasks: list[Task], method: Method, bands: Bands | None, sieve: Sieve, running: Running, scratch: Scratch,
    stages: Stages, resume: bool,
) -> Corpus:  # fmt: skip
    """Read all documents, twice where their words are to be counted before."""
    reading = Reading(tasks, scratch, sieve.keep, running.on_error)
    if resume:
        reading.resume()
    threads, total = thread_count(running), known_total(tasks)
    idf = None
    if needs_count(method):
        with stages.stage("count", total) as progress:
            idf = idf_of(method, tasks, scratch, threads, progress)
    else:
        idf = given_idf(method)
    with stages.stage("read", total) as progress:
        return read_all(reading, describer_of(method, bands, idf), threads, running.batch_rows, progress)


Jaccard = Callable[[npt.NDArray[np.float64], npt.NDArray[np.uint32], npt.NDArray[np.uint32]], npt.NDArray[np.float64]]


def _jaccard_of(method: Method, sizes: npt.NDArray[np.uint32]) -> Jaccard:
    """Return what turns similarities of pairs of positions into what signatures see; sizes : of sets, by position."""

    def from_cosine(
        cosine: npt.NDArray[np.float64], left: npt.NDArray[np.uint32], right: npt.NDArray[np.uint32]
    ) -> npt.NDArray[np.float64]:
        one, other = sizes[left].astype(np.float64), sizes[right].astype(np.float64)
        shared = cosine * np.sqrt(one * other)
        return shared / np.maximum(one + other - shared, 1.0)

    return from_cosine if isinstance(method, MinHash) and method.similarity == "cosine" else lambda value, *_: value


def _recall(confirmed: Confirmed, bands: Bands | None, samples: Samples | None, jaccard_of: Jaccard) -> Recall | None:
    """Estimate the run's recall from the pairs it found; copies, which are always found, left out."""
    if bands is None and samples is None:
        return None
    near = ~confirmed.measured.exact
    similarity = jaccard_of(confirmed.measured.similarity[near], confirmed.left[near], confirmed.right[near])
    # Pairs of one cluster share signatures: they are found together, or missed together.
    parents = np.arange(len(confirmed.kept), dtype=np.uint32)
    connect(parents, confirmed.left[near], confirmed.right[near])
    group = roots(parents)[confirmed.left[near]]
    if bands is not None:
        return estimate_recall(similarity, group, lambda values: candidate_probability(values, bands))
    assert samples is not None
    return estimate_recall(similarity, group, lambda values: hit_probability(values, samples))


def known_total(tasks: list[Task]) -> int | None:
    """Return how many documents there are, if every part knows it beforehand."""
    counts = [task.part.num_rows() for task in tasks]
    return None if None in counts else sum(count for count in counts if count is not None)


def _order(scratch: Scratch, corpus: Corpus, keep: str) -> npt.NDArray[np.uint32]:
    lengths = scratch.column("lengths", np.int64)
    ranks = scratch.column("ranks", np.float64)
    return priority_order(keep, corpus.num_documents, corpus.num_against, lengths, ranks)


def _sieve_removals(order: npt.NDArray[np.uint32], confirmed: Confirmed) -> Removals:
    best = np.flatnonzero(confirmed.best)
    best = best[np.argsort(order[confirmed.right[best]], kind="stable")]
    return Removals(order[confirmed.right[best]], order[confirmed.left[best]], confirmed.measured.take(best))


def _connected_removals(
    scratch: Scratch, line: Line, confirmed: Confirmed, num_against: int, method: Method
) -> Removals:
    """Remove all but the first of each cluster; what is measured is that to the first, which may be unlike."""
    order, representative = line.order, line.representative
    parents = np.arange(len(order), dtype=np.uint32)
    connect(parents, representative, parents.copy())
    connect(parents, confirmed.left, confirmed.right)
    first = roots(parents)
    removed = np.flatnonzero(first != np.arange(len(order)))
    removed = removed[removed >= num_against]
    removed = removed[np.argsort(order[removed], kind="stable")]
    kept = first[removed]
    twin, kept_twin = representative[removed], representative[kept]
    distance = np.zeros(len(removed), np.uint16)
    if isinstance(method, SimHash):
        fingerprints = fingerprints_of(scratch, method.bits)
        distance = hamming_distances(fingerprints[order[twin]], fingerprints[order[kept_twin]]).astype(np.uint16)
    if isinstance(method, SimHash) and not method.compares_features:
        similarity = 1.0 - distance / method.bits
    else:
        measure = "jaccard" if isinstance(method, SimHash) else method.similarity
        similarity = exact_similarity(line.sets, order[twin], order[kept_twin], measure)
    structure = None
    if isinstance(method, MinHash) and method.structure is not None:
        structure = exact_similarity(line.structure, order[twin], order[kept_twin], "cosine")
    return Removals(order[removed], order[kept], Measured(similarity, distance, twin == kept_twin, structure))
