"""The whole run on one machine: read, propose, confirm, decide. output/write.py writes the result."""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import kernels, schemas
from neardup.arrays import Array, Floats, Ints, Mask, Positions
from neardup.candidates.sorted_members import find_copies
from neardup.decide.clusters import first_members
from neardup.decide.copies import keep_copies
from neardup.decide.groups import Groups, decide_groups, order_by_group
from neardup.decide.outcome import SHORT, Outcome, Pairs, Removals, count_decisions
from neardup.decide.priority import priority_order, rank_columns
from neardup.decide.sieve import NONE, EveryPair, Sifted
from neardup.documents.batch import BatchCache, Corpus
from neardup.engines.base import Decided, Engine, count_by_value
from neardup.engines.local import searches
from neardup.engines.local.passages import find_among_kept
from neardup.engines.local.searches import Confirmed, LocalSearch, Queue, Scope
from neardup.engines.local.sets import SetSource, build_sets, build_structure_sets
from neardup.engines.local.sifting import sift_every
from neardup.errors import SettingError
from neardup.executor import count_threads
from neardup.features.described import Features, Keys
from neardup.formats.reading import Task, known_total
from neardup.methods.base import Method
from neardup.methods.registry import method_of
from neardup.output.kept import refuse_cuts, try_sinks
from neardup.progress import Progress, Stages, trim_heap
from neardup.runs.directory import OutputDirectory
from neardup.runs.ids import FirstIds, check_ids
from neardup.runs.reading import Reading, count_or_open, describe_all, locations
from neardup.runs.scratch import Scratch, ScratchOfSearch, prepare
from neardup.settings.passages import PassageSettings
from neardup.settings.run import RunSettings, SelectionSettings
from neardup.verify.measured import measured_of_copies
from neardup.verify.recall import Recall, audit_recall, estimate_recall

_AUDIT_SEED = 20261121  # fixed: the same corpus and settings draw the same documents
_AUDITED_AT_ONCE = 8192


@dataclass
class LocalEngine(Engine):
    """Decides about documents in their order, after those of an earlier collection, on this machine."""

    cache: BatchCache

    def perform(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Decided:
        """Read the inputs and decide about their documents."""
        run, selection = self.run, self.run.selection
        if selection.audit_sample:
            method_of(run.method).refuse_audit(selection.audit_sample)
        found = run.find()
        tasks, method, warnings = found.tasks, found.method.resolve(), found.warnings
        both_ways = {"group_by": run.groups.group_by, "keep": "none" if selection.copies == 0 else None}
        for option, value in both_ways.items():
            if value is not None and method.directed:
                raise SettingError(
                    f"{option}={value!r} compares documents in both directions: got similarity='containment'. Use "
                    f"another similarity (--similarity), or leave {option} (--{option.replace('_', '-')}) out."
                )
        if run.passages is not None and (run.copies or folder is None):
            for task in [task for task in tasks if not task.against]:
                refuse_cuts(task)
        if run.copies:
            try_sinks(tasks)
        if run.all_pairs:
            selection = method.in_all_pairs(selection)
        tasks = [task.identified() for task in tasks]
        if self.cache.may_fit(sum(task.identity[1] for task in tasks if task.identity)):
            tasks = [task._replace(cache=self.cache) for task in tasks]
        prepare(scratch, tasks, method.all_settings(selection), run.resume, folder)
        named = None if run.all_pairs or run.inputs.id_column is None else FirstIds(run.inputs.id_column)
        share = None if run.groups.group_by is None else run.groups.group_share
        source = _read(tasks, method, selection, run.settings, scratch, stages, first_ids=named)
        located = locations(tasks, source.corpus, scratch)
        warnings += check_ids(run, scratch.column(schemas.ID_HASHES), source.corpus, located)
        outcome = _decide(
            source, selection, run.threads, stages, all_pairs=run.all_pairs, share=share, keeps_pairs=run.rethreshold
        )
        by_value = count_by_value(run, outcome, scratch.column(schemas.VALUES))
        decided = Decided(tasks, method, outcome, located, warnings, by_value)
        if run.passages is None:
            return decided
        cleaned = find_among_kept(decided, PassageSettings(min_length=run.passages), scratch, stages, run.threads)
        return decided._replace(outcome=replace(outcome, cuts=cleaned.edits), cleaned=cleaned)


class Search(NamedTuple):
    """A search among documents that are read once. method : differs from the others in its limit only."""

    method: Method
    selection: SelectionSettings
    all_pairs: bool = False


def run_searches(
    tasks: list[Task], requested: Sequence[Search], run_settings: RunSettings, scratch: Scratch, stages: Stages
) -> Generator[Outcome, None, None]:
    """Yield the decisions of each search; the documents are read once.

    Requires: the selections of all differ in nothing that reading depends on.
    """
    methods: list[Method] = []
    threads = count_threads(run_settings.threads)
    for search in requested:
        if all(search.method is not method for method in methods):
            methods.append(search.method)
    source = _read(tasks, methods[0], requested[0].selection, run_settings, scratch, stages, limits=methods)
    empty = source.method.describe(pa.array([""], pa.large_string()))
    num_keys = [keys.values.shape[1] for keys in source.method.summarise_at(methods, empty)]
    for search in requested:
        place = next(place for place, method in enumerate(methods) if method is search.method)
        keys = range(sum(num_keys[:place]), sum(num_keys[: place + 1]))
        with (
            tempfile.TemporaryDirectory(dir=scratch.directory) as path,
            ScratchOfSearch(Path(path), scratch, keys) as columns,
        ):
            found = source._replace(method=search.method.with_idf(source.method.idf), scratch=columns)
            yield _decide(found, search.selection, threads, stages, all_pairs=search.all_pairs)


def _decide(
    source: SetSource,
    selection: SelectionSettings,
    threads: int,
    stages: Stages,
    *,
    all_pairs: bool,
    share: float | None = None,
    keeps_pairs: bool = False,
) -> Outcome:
    """Find the duplicates among documents that were read.

    share : of a group that is removed, if groups are. keeps_pairs : whether pairs of removed ones are measured, too.
    """
    _, corpus, method, scratch, _ = source
    with stages.stage("propose"):
        queue, short = _queue(scratch, corpus, selection, by_group=share is not None)
        most = method.max_bucket_size if selection.max_bucket_size is None else selection.max_bucket_size
        connected = (selection.linkage == "connected" or share is not None) and not all_pairs
        scope = Scope(all_pairs, connected or keeps_pairs, most, threads)
        search = searches.search_of(method)(scratch, method, queue, scope)
        search.propose()
    with stages.stage("sort", corpus.num_documents) as progress:
        compared = _compared(source, search, threads, progress)
    with stages.stage("confirm", corpus.num_documents) as progress:
        confirmed = search.sieve(compared, progress)
    trim_heap()
    queue, every, groups = search.queue, None, None
    others = np.empty(0, np.uint32)
    if keeps_pairs:
        every = _every_pair(queue, confirmed, method, scratch)
        sifted = sift_every(method, every, queue.num_against)
        left_out = every.left_out & sifted.kept
        confirmed = Confirmed(*sifted, left_out, confirmed.compared, confirmed.collisions)
    if share is not None:
        removals, others, groups = _group_removals(scratch, method, queue, confirmed, share)
    elif connected:
        first = _first_connected(queue, confirmed)
        if confirmed.left_out.any():
            confirmed = confirmed._replace(left_out=_hidden(search.unlisted(), first))
        removals = _connected_removals(scratch, method, queue, first)
    else:
        removals = _sieve_removals(queue.order, confirmed, method)
    audited = None
    if selection.audit_sample:
        with stages.stage("audit", 2 * corpus.num_documents) as progress:  # sorted, then compared
            audited = _audit(source, method.settings.threshold, selection.audit_sample, threads, progress)
    near = search.near
    return Outcome(
        corpus=corpus,
        short=short,
        compared=confirmed.compared,
        num_bucket_overflows=int(np.count_nonzero(confirmed.left_out)),
        collisions=confirmed.collisions,
        num_fingerprints=0 if near is None else near.num_fingerprints,
        num_near_pairs=0 if near is None else near.num_pairs,
        recall=_recall(confirmed, method, queue, compared),
        audited=audited,
        others=others,
        groups=groups,
        every=every,
        **_counted(removals, confirmed, queue.order, selection, corpus, scratch.column(schemas.LENGTHS)),
    )


def decide_again(outcome: Outcome, method: Method, selection: SelectionSettings) -> Outcome:
    """Return the outcome of a run that kept every pair, at the limit of another method; its search is that of the run.

    Requires: this limit finds no pair that the limit of the run does not find.
    """
    every, corpus = outcome.every, outcome.corpus
    assert every is not None
    sifted = sift_every(method, every, corpus.num_against)
    removals, left_out = _sieve_removals(every.order, sifted, method), every.left_out & sifted.kept
    counted = _counted(removals, sifted, every.order, selection, corpus, every.lengths)
    return replace(outcome, num_bucket_overflows=int(np.count_nonzero(left_out)), **counted)


def _every_pair(queue: Queue, confirmed: Confirmed, method: Method, scratch: Scratch) -> EveryPair:
    """Return the pairs of documents with different contents, in memory."""
    original = queue.representative == np.arange(len(queue.order))
    chosen = original[confirmed.left] & original[confirmed.right]
    measured = confirmed.measured.select(method.measures).take(chosen)
    by_document = (scratch.column(column).copy() for column in (schemas.LENGTHS, schemas.VALUES))
    confirmed.left_out[: queue.num_against] = False
    ends = confirmed.left[chosen], confirmed.right[chosen]
    return EveryPair(queue.order, queue.representative, confirmed.left_out, *ends, measured, *by_document)


def _counted(
    removals: Removals,
    found: Confirmed | Sifted,
    order: Positions,
    selection: SelectionSettings,
    corpus: Corpus,
    lengths: Ints,
) -> dict[str, Any]:
    """Return the fields of an outcome that depend on the decisions."""
    sizes = None
    if selection.copies != 1:
        removals, sizes = keep_copies(removals, order, corpus.num_against, selection.copies)
    pairs = Pairs(order[found.left], order[found.right], found.measured)
    counts = count_decisions(removals, pairs, corpus, lengths, sizes)
    return {"removals": removals, "pairs": pairs, "counts": counts}


def _read(
    tasks: list[Task],
    method: Method,
    selection: SelectionSettings,
    run_settings: RunSettings,
    scratch: Scratch,
    stages: Stages,
    *,
    limits: Sequence[Method] = (),
    first_ids: FirstIds | None = None,
) -> SetSource:
    """Read all documents, after a pass that counts their features if needed.

    limits : methods whose keys are stored instead of those of `method`, one after the other.
    """
    threads, total = count_threads(run_settings.threads), known_total(tasks)
    stored = bool(limits and method.confirms_sets) or searches.stores_sets(method, selection)
    if method.counted is not None:
        with stages.stage("count", total) as progress:
            method = method.with_idf(count_or_open(method.counted, tasks, scratch, threads, progress))

    limits = [limit.with_idf(method.idf) for limit in limits]

    def summarise(features: Features) -> Keys:
        keys = method.summarise_at(limits, features)
        return keys[0]._replace(values=np.concatenate([part.values for part in keys], axis=1))

    given = tasks, method, scratch, selection, run_settings
    keys_of = summarise if limits else None
    reading = Reading(*given, stores_sets=stored, summarise=keys_of, first_ids=first_ids)
    with stages.stage("read", total) as progress, ThreadPoolExecutor(1) as beside:
        is_needed = searches.search_of(method).compiles_first
        compiled = beside.submit(lambda: is_needed and kernels.first_run.compile_kernels())  # files are decoded already
        corpus = describe_all(reading, progress, compiled.result)
    return SetSource(tasks, corpus, method, scratch, stored)


def _queue(scratch: Scratch, corpus: Corpus, selection: SelectionSettings, *, by_group: bool) -> tuple[Queue, int]:
    """Return the queue of documents, and the number of short ones."""
    lengths = scratch.column(schemas.LENGTHS)
    ranks = [scratch.column(schemas.RANKS.at(place)) for place in range(len(rank_columns(selection.keep)))]
    order = priority_order(selection.keep, corpus.num_documents, corpus.num_against, lengths, ranks, corpus.part_ends)
    if by_group:
        order = order_by_group(order, corpus.num_against, scratch.column(schemas.VALUES))
    sizes = np.diff(scratch.column(schemas.SHINGLE_STARTS), append=corpus.tally.shingles)
    featured = sizes > 0
    short = int(np.count_nonzero(featured & (sizes < SHORT)))
    representative = find_copies(scratch.column(schemas.CONTENT), order, featured)
    scratch.release_pages()
    return Queue(order, representative, featured, corpus.num_against), short


def _compared(source: SetSource, search: LocalSearch, threads: int, progress: Progress) -> kernels.sieve.Compared:
    """Return the sets of the documents in candidate pairs, and their second sets, or the same sets again."""
    sets = build_sets(source, search.wanted, threads, progress, "sets")
    rule = source.method.rule
    if rule is None or not (rule.min_structure or rule.above_chance):
        return kernels.sieve.Compared(sets, sets)
    return kernels.sieve.Compared(sets, build_structure_sets(source, search.wanted, threads, progress))


def _recall(confirmed: Confirmed, method: Method, queue: Queue, compared: kernels.sieve.Compared) -> Recall | None:
    """Estimate the recall of a run from its found pairs, without copies, which are always found.

    None if full buckets may have hidden pairs, whose number is not known.
    """
    probability = method.hit_probability
    if probability is None or confirmed.left_out.any():
        return None
    near = ~confirmed.measured.exact
    left, right = confirmed.left[near], confirmed.right[near]
    sizes = compared.shingles.sizes

    def sizes_at(positions: npt.NDArray[np.uint32]) -> Floats:
        return sizes[queue.order[queue.representative[positions]]].astype(np.float64)

    similarity = confirmed.measured[schemas.SIMILARITY.name][near]
    similarity = method.proposed_similarity(similarity, sizes_at(left), sizes_at(right))
    # Pairs of one cluster share signatures: they are found or missed together.
    return estimate_recall(similarity, first_members(len(confirmed.kept), left, right)[left], probability)


def _sieve_removals(order: Positions, confirmed: Confirmed | Sifted, method: Method) -> Removals:
    best = np.flatnonzero(confirmed.best)
    best = best[np.argsort(order[confirmed.right[best]], kind="stable")]
    left, right = order[confirmed.left[best]], order[confirmed.right[best]]
    return Removals(right, left, confirmed.measured.select(method.measures).take(best))


def _first_connected(queue: Queue, confirmed: Confirmed) -> Positions:
    """Return by position the first member of its cluster."""
    positions = np.arange(len(queue.order), dtype=np.uint32)
    ends = np.append(queue.representative, confirmed.left), np.append(positions, confirmed.right)
    return first_members(len(positions), *ends)


def _hidden(unlisted: Iterable[tuple[Array, Array]], first: Positions) -> Mask:
    """Return by position whether a bucket has an earlier document that it does not list, and of another cluster."""
    hidden = np.zeros(len(first), np.bool_)
    for left, right in unlisted:
        left, right = left[left < right], right[left < right]
        hidden[right[first[left] != first[right]]] = True
    return hidden


def _connected_removals(scratch: Scratch, method: Method, queue: Queue, first: Positions) -> Removals:
    """Remove all but the first of each cluster; the measures compare each with the first, which may be dissimilar."""
    order = queue.order
    removed = np.flatnonzero(first != np.arange(len(order)))
    removed = removed[removed >= queue.num_against]
    removed = removed[np.argsort(order[removed], kind="stable")]
    documents, kept = order[removed], order[first[removed]]
    measured = searches.measure_pairs(method, searches.read_described(scratch, queue.featured), kept, documents)
    return Removals(documents, kept, measured)


def _group_removals(
    scratch: Scratch, method: Method, queue: Queue, confirmed: Confirmed, share: float
) -> tuple[Removals, Positions, Groups]:
    """Remove whole groups: the documents with a near-duplicate in a kept group, and the others of the group."""
    order, strength = queue.order, method.strength(confirmed.measured)
    values = scratch.column(schemas.VALUES)[order[queue.num_against :]]
    pairs = confirmed.left, confirmed.right, strength
    decided = decide_groups(*pairs, queue.representative, values, share)
    others = order[decided.removed & (decided.keeper == NONE)]
    removed = np.flatnonzero(decided.removed & (decided.keeper != NONE))
    removed = removed[np.argsort(order[removed], kind="stable")]
    pair = decided.pair[removed]
    measured = measured_of_copies(len(removed), method.measures)
    for name, column in measured.columns.items():
        column[pair >= 0] = confirmed.measured[name][pair[pair >= 0]]
    return Removals(order[removed], order[decided.keeper[removed]], measured), others, decided.groups


def _audit(source: SetSource, threshold: float, num_documents: int, threads: int, progress: Progress) -> Recall | None:
    """Return the share of true pairs of sampled documents that the bands propose, or None if there are none.

    Copies share every band; they are left out here and in the estimate.
    """
    total, scratch = source.corpus.num_documents, source.scratch
    sets = build_sets(source, np.ones(total, np.bool_), threads, progress, "all-sets")
    featured = np.flatnonzero(sets.sizes > 0)
    drawn = np.random.default_rng(_AUDIT_SEED).permutation(len(featured))[:num_documents]
    samples = np.sort(featured[drawn]).astype(np.int64)
    if len(samples) == 0:
        return None
    num_hashes = int(sets.sizes[samples].astype(np.int64).sum())
    postings = kernels.sieve.make_postings(num_hashes, num_hashes)
    kernels.audit.fill(postings, sets.hashes, sets.starts[samples], sets.sizes[samples])
    content = scratch.column(schemas.CONTENT)
    columns = searches.key_columns(scratch)
    sample_keys = np.stack([column[samples] for column in columns])
    found, true = np.zeros(len(samples), np.int64), np.zeros(len(samples), np.int64)
    sampled = kernels.audit.Sample(samples, sets.sizes[samples], content[samples], sample_keys)
    for first in range(0, total, _AUDITED_AT_ONCE):
        stop = min(total, first + _AUDITED_AT_ONCE)
        keys = np.stack([column[first:stop] for column in columns])
        stretch = kernels.audit.Stretch(first, content[first:stop], keys)
        kernels.audit.compare(postings, sampled, stretch, sets, threshold, kernels.audit.Counts(found, true))
        progress.advance(stop - first, 0)
        scratch.release_pages()
    return audit_recall(found, true)
