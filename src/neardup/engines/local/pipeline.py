"""Run all stages on one machine: read, propose, confirm, decide; output/write.py writes the
result.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from neardup import kernels, schemas
from neardup.arrays import Floats, Ints, Positions, Uint32s
from neardup.candidates.sorted_members import find_copies
from neardup.decide.outcome import SHORT
from neardup.decide.priority import priority_order, rank_columns
from neardup.decide.rule import Confirmed, Found, Queue, Rule
from neardup.documents.batch import Corpus
from neardup.documents.batch_cache import BatchCache
from neardup.engines.base import Engine, Search, Searched, SearchOutcome
from neardup.engines.local import searches
from neardup.engines.local.searches import LocalSearch, Scope
from neardup.engines.local.sets import SetSource, build_sets, build_structure_sets, stretches
from neardup.executor import count_threads
from neardup.features.described import Features, Keys
from neardup.formats.reading import Task, identified, known_total
from neardup.methods.base import Method
from neardup.progress import Progress, Stages, trim_heap
from neardup.runs.directory import OutputDirectory
from neardup.runs.ids import FirstIds, check_ids, first_ids_of
from neardup.runs.locations import DocumentLocations
from neardup.runs.reading import (
    Reading,
    count_or_open,
    describe_all,
    described_values,
    locations,
)
from neardup.runs.scratch import Scratch, ScratchOfSearch, prepare
from neardup.settings.run import RunSettings, SelectionSettings
from neardup.verify.measured import Measured
from neardup.verify.recall import Recall, measure_recall
from neardup.verify.recall_sample import ComparedDocuments, RecallSample, draw_sample

_SAMPLED_AT_ONCE = 8192  # documents that are compared with the sample


@dataclass
class LocalEngine(Engine):
    """The engine that decides about documents in their order, after an earlier collection, on this
    machine.
    """

    cache: BatchCache

    def find(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Searched:
        """Read the inputs, and find the pairs that the rule of the run needs."""
        run = self.run
        inputs = self.inputs()
        tasks = identified(inputs.tasks, self.cache)
        settings = inputs.method.all_settings(inputs.selection)
        prepare(scratch, tasks, settings, run.folder.resume, folder)
        source = _read(
            tasks,
            inputs.method,
            inputs.selection,
            settings=run.settings,
            scratch=scratch,
            stages=stages,
            compares_more=run.rule.compares_more,
            first_ids=first_ids_of(run),
        )
        located = locations(tasks, source.corpus, scratch)
        id_hashes = scratch.column(schemas.ID_HASHES)
        return _find(
            source,
            run.rule,
            inputs.selection,
            stages=stages,
            threads=run.threads,
            located=located,
            warnings=inputs.warnings + check_ids(run, id_hashes, source.corpus, located),
        )


def run_searches(
    tasks: list[Task],
    requested: Sequence[Search],
    run_settings: RunSettings,
    scratch: Scratch,
    stages: Stages,
) -> Generator[SearchOutcome, None, None]:
    """Yield the decisions of each search; the documents are read once.

    Requires: the selections of all searches have the same settings of reading.
    """
    methods = _methods_of(requested)
    source = _read(
        tasks,
        methods[0],
        requested[0].selection,
        settings=run_settings,
        scratch=scratch,
        stages=stages,
        compares_more=any(search.rule.compares_more for search in requested),
        limits=methods,
    )
    located = locations(tasks, source.corpus, scratch)
    columns_of = _columns_of_keys(source.method, methods)
    for search in requested:
        number = next(n for n, method in enumerate(methods) if method is search.method)
        with (
            tempfile.TemporaryDirectory(dir=scratch.directory) as path,
            ScratchOfSearch(Path(path), scratch, columns_of[number]) as columns,
        ):
            method = search.method.with_idf(source.method.idf)
            method = method.for_corpus(source.corpus.num_documents)
            documents = source._replace(method=method, scratch=columns)
            # No name: the generator would hold the features of this search during the next one.
            yield _find(
                documents,
                search.rule,
                search.selection,
                stages=stages,
                threads=count_threads(run_settings.threads),
                located=located,
            ).decide(search.rule)


def _methods_of(requested: Sequence[Search]) -> list[Method]:
    """Return the methods of searches, each once."""
    methods: list[Method] = []
    for search in requested:
        # By identity: methods hold tables, which are not compared.
        if all(search.method is not method for method in methods):
            methods.append(search.method)
    return methods


def _counted(limits: Sequence[Method], method: Method) -> list[Method]:
    """Return methods with the document frequencies of another one."""
    return [limit.with_idf(method.idf) for limit in limits]


def _columns_of_keys(method: Method, limits: Sequence[Method]) -> list[range]:
    """Return the numbers of the columns of keys of each method, which are stored one after the
    other.
    """
    # An empty text is enough to count the keys of each method.
    features = method.describe(pa.array([""], pa.large_string()))
    keys_of_limits = method.summarise_at(_counted(limits, method), features)
    num_keys = [keys.values.shape[1] for keys in keys_of_limits]
    ends = list(accumulate(num_keys, initial=0))
    return [range(start, end) for start, end in pairwise(ends)]


def _find(
    source: SetSource,
    rule: Rule,
    selection: SelectionSettings,
    *,
    stages: Stages,
    threads: int,
    located: DocumentLocations,
    warnings: Sequence[str] = (),
) -> Searched:
    """Find the pairs that a rule needs among documents that were read."""
    corpus = source.corpus
    method = source.method
    scratch = source.scratch
    with stages.stage("propose"):
        search = _search(source, rule, selection, threads)
        search.propose()
    with stages.stage("sort", corpus.num_documents) as progress:
        compared = _compared(source, search, threads, progress)
    with stages.stage("confirm", corpus.num_documents) as progress:
        confirmed = search.sieve(compared, progress)
    # The memory of the sieve goes back to the system before the output is written.
    trim_heap()
    near = search.near
    return Searched(
        tasks=source.tasks,
        method=method,
        corpus=corpus,
        locations=located,
        warnings=list(warnings),
        found=_found(source, search, confirmed, rule),
        described=described_values(source.tasks, scratch),
        short=_num_short(scratch, corpus),
        num_fingerprints=0 if near is None else near.num_fingerprints,
        num_near_pairs=0 if near is None else near.num_pairs,
        expected=_expect(method, search.queue, compared.shingles.sizes),
        sampled_recall=_measure_recall(source, selection.recall_sample, threads, stages),
    )


def _search(
    source: SetSource, rule: Rule, selection: SelectionSettings, threads: int
) -> LocalSearch:
    method = source.method
    queue = _queue(source.scratch, source.corpus, selection, rule)
    max_bucket_size = selection.max_bucket_size
    scope = Scope(
        all_pairs=rule.pairs == "all",
        connected=rule.pairs == "distinct",
        max_bucket_size=method.max_bucket_size if max_bucket_size is None else max_bucket_size,
        threads=threads,
    )
    return searches.search_of(method)(source.scratch, method, queue, scope)


def _found(source: SetSource, search: LocalSearch, confirmed: Confirmed, rule: Rule) -> Found:
    scratch = source.scratch
    return Found(
        queue=search.queue,
        confirmed=confirmed,
        method=source.method,
        lengths=scratch.column(schemas.LENGTHS),
        values=scratch.column(schemas.VALUES),
        unlisted=search.unlisted,
        measure=partial(_measure, scratch, source.method, search.queue),
        sieved=rule.pairs == "sieve",
    )


def _measure(
    scratch: Scratch, method: Method, queue: Queue, kept: Positions, documents: Positions
) -> Measured:
    """Return the measures of pairs of documents."""
    return searches.measure_pairs(
        method, searches.read_described(scratch, method, queue.featured), kept, documents
    )


def _read(
    tasks: list[Task],
    method: Method,
    selection: SelectionSettings,
    *,
    settings: RunSettings,
    scratch: Scratch,
    stages: Stages,
    compares_more: bool,
    limits: Sequence[Method] = (),
    first_ids: FirstIds | None = None,
) -> SetSource:
    """Read all documents, after a pass that counts their features if needed.

    compares_more : see `Rule`. limits : methods whose keys are stored one after the other, instead
    of the keys of `method`.
    """
    threads = count_threads(settings.threads)
    total = known_total(tasks)
    # Each search compares other candidates: cutting their texts again would take a pass for each.
    for_limits = bool(limits) and method.confirms_sets
    stores_sets = for_limits or searches.stores_sets(method, selection, compares_more)
    if method.counted is not None:
        with stages.stage("count", total) as progress:
            idf = count_or_open(method.counted, tasks, scratch, threads, progress)
            method = method.with_idf(idf)
    reading = Reading(
        tasks,
        method,
        scratch,
        selection,
        settings,
        stores_sets=stores_sets,
        summarise=_summarise_at(method, limits) if limits else None,
        first_ids=first_ids,
    )
    # Kernels are compiled while the first files are decoded.
    with stages.stage("read", total) as progress, ThreadPoolExecutor(1) as compiler:
        is_needed = searches.search_of(method).compiles_first
        compiled = compiler.submit(lambda: is_needed and kernels.first_run.compile_kernels())
        corpus = describe_all(reading, progress, compiled.result)
    return SetSource(
        tasks=tasks,
        corpus=corpus,
        method=method.for_corpus(corpus.num_documents),
        scratch=scratch,
        stored=stores_sets,
    )


def _summarise_at(method: Method, limits: Sequence[Method]) -> Callable[[Features], Keys]:
    """Return a function that returns the keys of all limits, one after the other."""
    limits = _counted(limits, method)

    def summarise(features: Features) -> Keys:
        keys = method.summarise_at(limits, features)
        # The keys of all limits differ in their values only.
        return keys[0]._replace(values=np.concatenate([part.values for part in keys], axis=1))

    return summarise


def _queue(scratch: Scratch, corpus: Corpus, selection: SelectionSettings, rule: Rule) -> Queue:
    """Return the documents in the order in which a rule decides about them."""
    lengths = scratch.column(schemas.LENGTHS)
    num_ranks = len(rank_columns(selection.keep))
    ranks = [scratch.column(schemas.RANKS.at(number)) for number in range(num_ranks)]
    order = priority_order(selection.keep, corpus, lengths, ranks)
    order = rule.order(order, corpus.num_against, scratch.column(schemas.VALUES))
    featured = _sizes(scratch, corpus) > 0
    representative = find_copies(scratch.column(schemas.CONTENT), order, featured)
    scratch.release_pages()
    return Queue(
        order=order,
        representative=representative,
        featured=featured,
        num_against=corpus.num_against,
    )


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
    structure = sets
    if rule is not None and (rule.min_structure or rule.above_chance):
        structure = build_structure_sets(source, search.wanted, threads, progress)
    return kernels.sieve.Compared(sets, structure)


def _expect(
    method: Method, queue: Queue, sizes: Uint32s
) -> Callable[[Positions, Positions, Measured], Floats]:
    """Return a function that returns the similarities that determine the probability of pairs to be
    proposed.
    """

    def sizes_at(positions: Positions) -> Floats:
        # A copy has the size of the first document of its content.
        return sizes[queue.order[queue.representative[positions]]].astype(np.float64)

    def expected(left: Positions, right: Positions, measured: Measured) -> Floats:
        similarity = measured[schemas.SIMILARITY.name]
        return method.proposed_similarity(similarity, sizes_at(left), sizes_at(right))

    return expected


def _measure_recall(
    source: SetSource, sample_size: int, threads: int, stages: Stages
) -> Recall | None:
    """Return the share of true pairs of sampled documents that the bands propose, or None if there
    are no such pairs.
    """
    if not sample_size:
        return None
    scratch = source.scratch
    total = source.corpus.num_documents
    with stages.stage("recall_sample", 2 * total) as progress:  # documents to sort, then to compare
        # Sampled documents are compared with all: all sets are needed.
        sets = build_sets(source, np.ones(total, np.bool_), threads, progress, "all-sets")
        samples = draw_sample(sets.sizes > 0, sample_size)
        # No document has features.
        if len(samples) == 0:
            return None
        content = scratch.column(schemas.CONTENT)
        columns = searches.key_columns(scratch)
        keys = np.stack([column[samples] for column in columns])
        threshold = source.method.settings.threshold
        sample = RecallSample(ComparedDocuments(content[samples], keys, sets), samples, threshold)
        # A part at a time, so that the mapped pages can be released between.
        for part in stretches(total, _SAMPLED_AT_ONCE):
            keys = np.stack([column[part] for column in columns])
            sample.compare(ComparedDocuments(content[part], keys, sets, part.start))
            progress.advance(len(keys[0]), 0)
            scratch.release_pages()
    return measure_recall(sample.found, sample.true)
