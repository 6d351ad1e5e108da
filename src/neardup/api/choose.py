"""Suggest a shingle length and a threshold for a collection."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from neardup.api.chooser import Chooser, similarities_of, texts_of
from neardup.api.grades import ComparedPool, Counted, Drawn, compare_pool, describe_grades
from neardup.arrays import Floats, Ints, arrow_of_strings
from neardup.decide.outcome import Outcome, Pairs
from neardup.decide.rules import Every, rule_of
from neardup.documents.batch import Corpus
from neardup.engines.base import Search, SearchOutcome
from neardup.engines.local import pipeline
from neardup.features.shingles import extract_text, shingle_documents
from neardup.formats.reading import Task
from neardup.methods.registry import method_of
from neardup.output.job import Job
from neardup.output.write import read_texts
from neardup.runs.locations import DocumentLocations
from neardup.runs.scratch import workspace
from neardup.schemas import SIMILARITY
from neardup.settings.methods import MinHash
from neardup.settings.run import SelectionSettings
from neardup.suggestion import Grades, Suggestion
from neardup.verify import asking, choosing

_RECALL = 0.9  # at the lowest similarity; more similar pairs are found more often
_FEW_WORDS = 20  # different words of a text; of the rule in docs/choosing-a-threshold.md
_SAMPLE = 1_000  # texts for the median number of words
# Limits of the time and the memory of the search from similarity 0.1 on.
_MAX_DOCUMENTS = 300_000
_MAX_PAIRS = 30_000_000
_MIN_BUCKET = 64
_MAX_BUCKET = 100_000
_WIDER = 10  # times, the next bound of buckets

# Settings that may differ from the default ones: the rule was measured for all others.
_FREE_SETTINGS = ("nfkc", "case_fold", "fold", "html", "seed", "recall", "threshold", "ngram")
NO_RULE = "Only the Jaccard similarity of words has a rule that was measured."


def has_rule(given: object) -> bool:
    """Return whether settings can be chosen for a method."""
    free = {name: value for name, value in vars(given).items() if name in _FREE_SETTINGS}
    # An object without all of these settings is of another method.
    return len(free) == len(_FREE_SETTINGS) and given == replace(MinHash(), **free)


class Choice(NamedTuple):
    """The settings to suggest, the grades, and the object that asks, each None if it is missing."""

    suggestion: Suggestion | None = None
    grades: Grades | None = None
    chooser: Chooser | None = None


def choose(job: Job, tasks: list[Task], given: MinHash, corpus: Corpus, *, removed: int) -> Choice:
    """Return the settings to suggest and both grades. removed : the documents that the given
    settings remove.

    Notes
    -----
    One search from similarity 0.1 on. The shingles are of 2 words, of 1 word if half of the texts
    have fewer than 20 different words, or of as many as the settings give, if not the default. The
    bound of the buckets limits the pairs to about 30 million. If the bound hides pairs, it is
    raised tenfold while there are fewer than 3 million; if pairs are still hidden, nothing is
    suggested. A second search, at the settings of versions, counts the documents that they remove.
    """
    if not has_rule(given):
        return Choice(Suggestion(given, changes=False, reason=NO_RULE))
    copies = Counted(given, removed)
    loosest = replace(
        given, ngram=_ngram(tasks, given, corpus), threshold=choosing.LOWEST, recall=_RECALL
    )
    general = replace(given, ngram=loosest.ngram, threshold=choosing.GENERAL)
    if corpus.num_documents > _MAX_DOCUMENTS:
        reason = (
            f"{corpus.num_documents:,} documents are more than {_MAX_DOCUMENTS:,}. Choose on a "
            "part of the collection."
        )
        versions = Counted(general, _count_removed(job, tasks, general))
        grades = describe_grades(copies, versions, None, loosest)
        return Choice(Suggestion(given, changes=False, reason=reason), grades)
    searched = _search(job, tasks, given, loosest, corpus)
    clearest = searched.suggestion.clearest
    method = general if clearest is None else clearest
    versions = Counted(method, _count_removed(job, tasks, method))
    grades = describe_grades(copies, versions, searched.pool, loosest)
    return Choice(searched.suggestion, grades, searched.chooser)


class _Searched(NamedTuple):
    """The results of the search from the lowest similarity on."""

    suggestion: Suggestion
    chooser: Chooser
    pool: ComparedPool


def _search(
    job: Job, tasks: list[Task], given: MinHash, loosest: MinHash, corpus: Corpus
) -> _Searched:
    """Search from the lowest similarity on; return the settings to suggest and the pairs to ask
    about.
    """
    found = _find_pairs(job, tasks, loosest, corpus)
    outcome = found.outcome
    lengths = asking.LENGTHS if given.ngram == MinHash().ngram else (given.ngram,)
    methods = {ngram: replace(given, ngram=ngram) for ngram in lengths}
    texts = texts_of(tasks, outcome.corpus, found.drawn)
    pool = compare_pool(found.drawn, found.weight, texts, loosest, methods)
    chooser = Chooser(
        tasks=tasks,
        corpus=outcome.corpus,
        given=given,
        loosest=loosest,
        sample=pool.sample,
        pool=found.drawn,
    )
    suggestion = chooser.suggest(outcome.pairs, hidden=outcome.num_bucket_overflows)
    return _Searched(suggestion=suggestion, chooser=chooser, pool=pool)


class _Found(NamedTuple):
    """The pairs of a search. drawn, weight : the pairs that may be asked about; see `Pool`."""

    outcome: Outcome
    drawn: list[Drawn]
    weight: Floats


def _find_pairs(job: Job, tasks: list[Task], loosest: MinHash, corpus: Corpus) -> _Found:
    """Search with larger and larger buckets, and draw pairs to ask about."""
    method = method_of(loosest).resolve()
    searches = [
        Search(method, selection, Every())
        for selection in _widening(job.run.selection.within, corpus.num_documents)
    ]
    with _searching(job, tasks, searches) as outcomes:
        last = _first_sufficient(outcomes)
        pairs = last.outcome.pairs
        pool = asking.draw_pool(similarities_of(pairs))
        # The ids are in the scratch folder.
        drawn = _draw(pairs, pool.rows, last.locations)
    return _Found(outcome=last.outcome, drawn=drawn, weight=pool.weight)


def _first_sufficient(outcomes: Iterator[SearchOutcome]) -> SearchOutcome:
    """Return the first outcome in which no bucket hides a document, or after which the next search
    would find too many pairs; otherwise the last one.
    """
    for outcome in outcomes:
        found = outcome.outcome
        # The next search finds up to _WIDER times as many pairs.
        is_last = len(found.pairs.left) * _WIDER > _MAX_PAIRS
        if is_last or not found.num_bucket_overflows:
            break
    return outcome


def _count_removed(job: Job, tasks: list[Task], settings: MinHash) -> int:
    """Return the number of documents that settings remove."""
    selection = job.run.selection
    search = Search(method_of(settings).resolve(), selection, rule_of(selection))
    with _searching(job, tasks, [search]) as outcomes:
        return len(next(outcomes).outcome.removals.documents)


@contextmanager
def _searching(
    job: Job, tasks: list[Task], searches: Sequence[Search]
) -> Iterator[Iterator[SearchOutcome]]:
    """Run searches in a scratch folder of their own, each when its outcome is requested."""
    with workspace() as scratch:
        found = pipeline.run_searches(tasks, searches, job.run.settings, scratch, job.stages)
        with closing(found) as outcomes:
            yield outcomes


def _widening(within: str | None, num_documents: int) -> list[SelectionSettings]:
    """Return the settings of the searches, each with larger buckets than the one before."""
    # About _MAX_PAIRS pairs if each document has a full bucket.
    bound = max(_MIN_BUCKET, _MAX_PAIRS // max(1, num_documents))
    bounds = (bound, _WIDER * bound, _WIDER**2 * bound)
    return [
        SelectionSettings(within=within, max_bucket_size=min(bound, _MAX_BUCKET))
        for bound in bounds
    ]


def _ngram(tasks: list[Task], given: MinHash, corpus: Corpus) -> int:
    """Return the given length of shingles; in place of the default, 1 if half of the texts have few
    different words, and 2 if not.
    """
    if given.ngram != MinHash().ngram:
        return given.ngram
    if not corpus.num_documents:
        return 1
    # Fewer than _SAMPLE documents give some numbers twice.
    sample = np.unique(np.linspace(0, corpus.num_documents - 1, _SAMPLE).astype(np.uint32))
    texts = [text for _, text in read_texts(tasks, corpus.part_ends, sample)]
    single = replace(given, ngram=1)
    words = shingle_documents(extract_text(arrow_of_strings(texts), single), single)
    ends = words.offsets.tolist()
    num_words = [len(np.unique(words.hashes[start:end])) for start, end in pairwise(ends)]
    return 1 if np.median(num_words) < _FEW_WORDS else 2


def _draw(pairs: Pairs, rows: Ints, locations: DocumentLocations) -> list[Drawn]:
    """Return some pairs with the ids of their documents, the earlier document first."""
    left = np.minimum(pairs.left, pairs.right)[rows]
    right = np.maximum(pairs.left, pairs.right)[rows]
    left_ids = locations.ids(left).to_pylist()
    right_ids = locations.ids(right).to_pylist()
    similarities = pairs.measured[SIMILARITY.name][rows].tolist()
    documents = zip(left.tolist(), right.tolist(), strict=True)
    ids = zip(left_ids, right_ids, strict=True)
    return [
        Drawn(documents=numbers, ids=names, similarity=similarity)
        for numbers, names, similarity in zip(documents, ids, similarities, strict=True)
    ]
