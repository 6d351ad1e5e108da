"""The whole run on one machine: read, propose, confirm, decide. output/write.py writes the
result.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels, schemas
from neardup.arrays import Floats, Ints, Positions
from neardup.candidates.sorted_members import find_copies
from neardup.decide.outcome import SHORT, Outcome
from neardup.decide.priority import priority_order, rank_columns
from neardup.decide.rule import Found, Queue, Rule
from neardup.documents.batch import BatchCache, Corpus
from neardup.engines.base import Engine, Searched
from neardup.engines.local import searches
from neardup.engines.local.searches import LocalSearch, Scope
from neardup.engines.local.sets import SetSource, build_sets, build_structure_sets
from neardup.executor import count_threads
from neardup.features.described import Features, Keys
from neardup.formats.reading import Task, identified, known_total
from neardup.methods.base import Method
from neardup.progress import Progress, Stages, trim_heap
from neardup.runs.directory import OutputDirectory
from neardup.runs.ids import FirstIds, check_ids
from neardup.runs.locations import DocumentLocations
from neardup.runs.reading import Reading, count_or_open, describe_all, locations
from neardup.runs.scratch import Scratch, ScratchOfSearch, prepare
from neardup.settings.run import RunSettings, SelectionSettings
from neardup.verify.audit import Audit, Audited, draw_sample
from neardup.verify.measured import Measured
from neardup.verify.recall import Recall, audit_recall

_AUDITED_AT_ONCE = 8192


@dataclass
class LocalEngine(Engine):
    """Decides about documents in their order, after those of an earlier collection, on this
    machine.
    """

    cache: BatchCache

    def find(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Searched:
        """Read the inputs, and find the pairs that the rule of the run needs."""
        run = self.run
        tasks, method, selection, warnings = self.inputs()
        tasks = identified(tasks, self.cache)
        prepare(scratch, tasks, method.all_settings(selection), run.resume, folder)
        named = (
            None
            if run.rule.pairs == "all" or run.inputs.id_column is None
            else FirstIds(run.inputs.id_column)
        )
        more = run.rule.compares_more
        given = tasks, method, selection, run.settings, scratch, stages
        source = _read(*given, compares_more=more, first_ids=named)
        located = locations(tasks, source.corpus, scratch)
        warnings = warnings + check_ids(
            run, scratch.column(schemas.ID_HASHES), source.corpus, located
        )
        return _find(source, run.rule, selection, stages, run.threads, located, warnings)


class Search(NamedTuple):
    """A search among documents that are read once. method : differs from the others in its limit
    only.
    """

    method: Method
    selection: SelectionSettings
    rule: Rule


def run_searches(
    tasks: list[Task],
    requested: Sequence[Search],
    run_settings: RunSettings,
    scratch: Scratch,
    stages: Stages,
) -> Generator[Outcome, None, None]:
    """Yield the decisions of each search; the documents are read once.

    Requires: the selections of all differ in nothing that reading depends on.
    """
    methods: list[Method] = []
    threads = count_threads(run_settings.threads)
    for search in requested:
        if all(search.method is not method for method in methods):
            methods.append(search.method)
    more = any(search.rule.compares_more for search in requested)
    selection = requested[0].selection
    source = _read(
        tasks,
        methods[0],
        selection,
        run_settings,
        scratch,
        stages,
        compares_more=more,
        limits=methods,
    )
    empty = source.method.describe(pa.array([""], pa.large_string()))
    num_keys = [keys.values.shape[1] for keys in source.method.summarise_at(methods, empty)]
    for search in requested:
        place = next(place for place, method in enumerate(methods) if method is search.method)
        keys = range(sum(num_keys[:place]), sum(num_keys[: place + 1]))
        with (
            tempfile.TemporaryDirectory(dir=scratch.directory) as path,
            ScratchOfSearch(Path(path), scratch, keys) as columns,
        ):
            documents = source._replace(
                method=search.method.with_idf(source.method.idf), scratch=columns
            )
            located = locations(tasks, source.corpus, scratch)
            # No name: the generator would hold the features of this search during the next one.
            yield _decided(
                search.rule,
                _find(documents, search.rule, search.selection, stages, threads, located, []),
            )


def _decided(rule: Rule, searched: Searched) -> Outcome:
    return searched.outcome(rule.decide(searched.found))


def _find(
    source: SetSource,
    rule: Rule,
    selection: SelectionSettings,
    stages: Stages,
    threads: int,
    located: DocumentLocations,
    warnings: list[str],
) -> Searched:
    """Find the pairs that a rule needs among documents that were read."""
    tasks, corpus, method, scratch, _ = source
    with stages.stage("propose"):
        queue = _queue(scratch, corpus, selection, rule)
        most = (
            method.max_bucket_size
            if selection.max_bucket_size is None
            else selection.max_bucket_size
        )
        scope = Scope(rule.pairs == "all", rule.pairs == "distinct", most, threads)
        search = searches.search_of(method)(scratch, method, queue, scope)
        search.propose()
    with stages.stage("sort", corpus.num_documents) as progress:
        compared = _compared(source, search, threads, progress)
    with stages.stage("confirm", corpus.num_documents) as progress:
        confirmed = search.sieve(compared, progress)
    trim_heap()
    audited = None
    if selection.audit_sample:
        with stages.stage("audit", 2 * corpus.num_documents) as progress:  # sorted, then compared
            audited = _audit(
                source, method.settings.threshold, selection.audit_sample, threads, progress
            )
    found = Found(
        queue=search.queue,
        confirmed=confirmed,
        method=method,
        lengths=scratch.column(schemas.LENGTHS),
        values=scratch.column(schemas.VALUES),
        unlisted=search.unlisted,
        measure=partial(_measure, scratch, method, search.queue),
        sieved=rule.pairs == "sieve",
    )
    near = search.near
    return Searched(
        tasks=tasks,
        method=method,
        corpus=corpus,
        locations=located,
        warnings=warnings,
        found=found,
        short=_num_short(scratch, corpus),
        num_fingerprints=0 if near is None else near.num_fingerprints,
        num_near_pairs=0 if near is None else near.num_pairs,
        expected=partial(_expected, method, search.queue, compared),
        audited=audited,
    )


def _measure(
    scratch: Scratch, method: Method, queue: Queue, kept: Positions, documents: Positions
) -> Measured:
    """Return the measures of pairs of documents."""
    return searches.measure_pairs(
        method, searches.read_described(scratch, queue.featured), kept, documents
    )


def _read(
    tasks: list[Task],
    method: Method,
    selection: SelectionSettings,
    run_settings: RunSettings,
    scratch: Scratch,
    stages: Stages,
    *,
    compares_more: bool,
    limits: Sequence[Method] = (),
    first_ids: FirstIds | None = None,
) -> SetSource:
    """Read all documents, after a pass that counts their features if needed.

    compares_more : as in `Rule`. limits : methods whose keys are stored instead of those of
    `method`, one after the other.
    """
    threads, total = count_threads(run_settings.threads), known_total(tasks)
    stored = bool(limits and method.confirms_sets) or searches.stores_sets(
        method, selection, compares_more
    )
    if method.counted is not None:
        with stages.stage("count", total) as progress:
            method = method.with_idf(
                count_or_open(method.counted, tasks, scratch, threads, progress)
            )

    limits = [limit.with_idf(method.idf) for limit in limits]

    def summarise(features: Features) -> Keys:
        keys = method.summarise_at(limits, features)
        return keys[0]._replace(values=np.concatenate([part.values for part in keys], axis=1))

    given = tasks, method, scratch, selection, run_settings
    keys_of = summarise if limits else None
    reading = Reading(*given, stores_sets=stored, summarise=keys_of, first_ids=first_ids)
    with stages.stage("read", total) as progress, ThreadPoolExecutor(1) as beside:
        is_needed = searches.search_of(method).compiles_first
        compiled = beside.submit(
            lambda: is_needed and kernels.first_run.compile_kernels()
        )  # files are decoded already
        corpus = describe_all(reading, progress, compiled.result)
    return SetSource(tasks, corpus, method, scratch, stored)


def _queue(scratch: Scratch, corpus: Corpus, selection: SelectionSettings, rule: Rule) -> Queue:
    """Return the documents in the order in which a rule decides about them."""
    lengths = scratch.column(schemas.LENGTHS)
    ranks = [
        scratch.column(schemas.RANKS.at(place))
        for place in range(len(rank_columns(selection.keep)))
    ]
    order = priority_order(selection.keep, corpus, lengths, ranks)
    order = rule.order(order, corpus.num_against, scratch.column(schemas.VALUES))
    featured = _sizes(scratch, corpus) > 0
    representative = find_copies(scratch.column(schemas.CONTENT), order, featured)
    scratch.release_pages()
    return Queue(order, representative, featured, corpus.num_against)


def _sizes(scratch: Scratch, corpus: Corpus) -> Ints:
    """Return the number of features of each document."""
    return np.diff(scratch.column(schemas.SHINGLE_STARTS), append=corpus.tally.shingles)


def _num_short(scratch: Scratch, corpus: Corpus) -> int:
    """Return the number of short documents."""
    sizes = _sizes(scratch, corpus)
    return int(np.count_nonzero((sizes > 0) & (sizes < SHORT)))


def _compared(
    source: SetSource, search: LocalSearch, threads: int, progress: Progress
) -> kernels.sieve.Compared:
    """Return the sets of the documents in candidate pairs, and their second sets, or the same sets
    again.
    """
    sets = build_sets(source, search.wanted, threads, progress, "sets")
    rule = source.method.rule
    if rule is None or not (rule.min_structure or rule.above_chance):
        return kernels.sieve.Compared(sets, sets)
    return kernels.sieve.Compared(
        sets, build_structure_sets(source, search.wanted, threads, progress)
    )


def _expected(
    method: Method,
    queue: Queue,
    compared: kernels.sieve.Compared,
    left: Positions,
    right: Positions,
    measured: Measured,
) -> Floats:
    """Return the similarities by which the chance of pairs to be proposed is known."""
    sizes = compared.shingles.sizes

    def sizes_at(positions: Positions) -> Floats:
        return sizes[queue.order[queue.representative[positions]]].astype(np.float64)

    return method.proposed_similarity(
        measured[schemas.SIMILARITY.name], sizes_at(left), sizes_at(right)
    )


def _audit(
    source: SetSource, threshold: float, num_documents: int, threads: int, progress: Progress
) -> Recall | None:
    """Return the share of true pairs of sampled documents that the bands propose, or None if there
    are none.
    """
    total, scratch = source.corpus.num_documents, source.scratch
    sets = build_sets(source, np.ones(total, np.bool_), threads, progress, "all-sets")
    samples = draw_sample(sets.sizes > 0, num_documents)
    if len(samples) == 0:
        return None
    content = scratch.column(schemas.CONTENT)
    columns = searches.key_columns(scratch)
    sample = Audited(content[samples], np.stack([column[samples] for column in columns]), sets)
    audit = Audit(sample, samples, threshold)
    for first in range(0, total, _AUDITED_AT_ONCE):
        stop = min(total, first + _AUDITED_AT_ONCE)
        keys = np.stack([column[first:stop] for column in columns])
        audit.compare(Audited(content[first:stop], keys, sets, first))
        progress.advance(stop - first, 0)
        scratch.release_pages()
    return audit_recall(audit.found, audit.true)
