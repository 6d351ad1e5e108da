"""The errors of a method on labelled documents, to read: pairs that it finds wrongly, and pairs that it misses."""

from __future__ import annotations

import numpy as np

from neardup.arrays import arrow_of_strings
from neardup.decide.decisions import Pairs, Removals
from neardup.engines.local.document_frequencies import count_or_open
from neardup.engines.local.scratch import Scratch
from neardup.features.weights import distinct_lists
from neardup.formats.reading import Task
from neardup.methods.base import Described, Method
from neardup.output import write
from neardup.output.tables import DocumentLocations
from neardup.progress import NullProgress
from neardup.report.evaluation_html import Errors
from neardup.report.items import Example
from neardup.verify.scores import DIFFERENT, Truth, pair_keys

NUM_EXAMPLES = 20
_SEED = 20261122  # fixed: the same corpus and settings give the same pairs


def find_errors(
    tasks: list[Task],
    truth: Truth,
    found: Pairs,
    positives: int,
    method: Method,
    locations: DocumentLocations,
    scratch: Scratch,
    threads: int,
) -> Errors:
    """Return twenty pairs of each kind, or all of them if there are fewer.

    Wrong pairs are evenly spaced from the most to the least similar; missed pairs are drawn at random.

    Parameters
    ----------
    found : all found pairs. positives : the number of duplicate pairs, found or not.
    """
    if method.counted is not None:  # the search has counted the corpus already
        method = method.with_idf(count_or_open(method.counted, tasks, scratch, threads, NullProgress()))
    verdicts = truth.judge(found.left, found.right)
    wrong = np.flatnonzero(verdicts == DIFFERENT)
    by_strength = wrong[np.argsort(-method.strength(found.measured.take(wrong)), kind="stable")]
    spaced = np.linspace(0, len(wrong) - 1, min(len(wrong), NUM_EXAMPLES)).astype(np.int64)
    picked = by_strength[spaced]
    left, right = truth.draw_missed(np.sort(pair_keys(found.left, found.right)), NUM_EXAMPLES, _SEED)
    documents = np.unique(np.concatenate([found.left[picked], found.right[picked], left, right])).astype(np.uint32)
    identities = [task.part.identity() for task in tasks]
    texts = dict(write.read_texts(tasks, identities, locations.part_ends, documents))
    features = method.describe(arrow_of_strings([texts[document] for document in documents.tolist()]))
    described = Described(features, method.summarise(features))
    rows = [np.searchsorted(documents, side) for side in (left, right)]
    if method.directed:  # as in a search for all pairs
        sizes = distinct_lists(features.sets).sizes
        rows = [np.where(sizes[rows[0]] < sizes[rows[1]], *ends) for ends in (rows[::-1], rows)]
    samples = (
        Removals(found.left[picked], found.right[picked], found.measured.take(picked)),
        Removals(left, right, method.measure(described, described, *rows)),
    )
    wrong_shown, missed_shown = (_examples(one, texts, locations, method) for one in samples)
    correct = int(np.count_nonzero(verdicts > DIFFERENT))
    return Errors(wrong_shown, missed_shown, len(wrong), positives - correct)


def _examples(pairs: Removals, texts: dict[int, str], locations: DocumentLocations, method: Method) -> list[Example]:
    """Return pairs as the examples of a report, most similar first."""
    pairs = pairs.take(np.argsort(-method.strength(pairs.measured), kind="stable"))
    documents = np.union1d(pairs.documents, pairs.kept).astype(np.uint32)
    own = {document: texts[document] for document in documents.tolist()}
    ones = np.ones(len(pairs.documents), np.int64)
    return write.examples(write.Shown(pairs, documents, own, ones, ones), locations, method) if own else []
