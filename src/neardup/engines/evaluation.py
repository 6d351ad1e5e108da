"""Evaluate a method against known duplicates: at its settings, at a range of limits, and by its
clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Array, Floats, Ints, Mask, Positions, arrow_of_strings, find_in
from neardup.decide.clusters import first_members
from neardup.decide.outcome import Outcome, Pairs, Removals
from neardup.decide.rules import Every, rule_of
from neardup.engines.base import Search, SearchOutcome
from neardup.errors import InputError
from neardup.features.described import distinct_lists
from neardup.features.grouping import hash_ids
from neardup.files import JsonObject
from neardup.formats.reading import Task
from neardup.methods.base import Described, Method
from neardup.output import write
from neardup.output.job import Job
from neardup.report.contents import Findings, warn_of_bound
from neardup.report.dedup_html import Errors
from neardup.report.items import Example
from neardup.report.wording import plural
from neardup.runs.ids import find_repeated_id
from neardup.runs.labels import Verdicts, read_labels
from neardup.runs.locations import DocumentLocations
from neardup.settings.run import SelectionSettings
from neardup.verify import scores
from neardup.verify.scores import Judgements, Labels, Score, Truth

_MAX_NAMED = 100  # absent ids in a report
_MIN_LIMIT = 0.05  # the lowest threshold that the warning about the curve advises
NUM_EXAMPLES = 20  # pairs of each kind of error
_SEED = 20261122  # fixed: the same corpus and settings give the same pairs


class LengthScore(NamedTuple):
    """The score of the documents of one class of length.

    min_length : the minimum number of characters. documents : the documents whose truth is known.
    """

    min_length: int
    documents: int
    score: Score


class ClusterScores(NamedTuple):
    """The adjusted Rand index of the clusters of the sieve, and of connected clusters; None for
    judged pairs.
    """

    sieved: float | None
    connected: float | None


class Evaluated(NamedTuple):
    """The result of an evaluation.

    by_length : one row per class of length. found : the search at the
    threshold. truth : the counts of the truth. rejected : as in the report. errors : None unless
    requested. The other fields are as in `results.Evaluation`.
    """

    at_threshold: Score
    best: Score
    curve: list[Score]
    by_length: list[LengthScore]
    clusters: ClusterScores
    found: Findings
    truth: JsonObject
    rejected: list[JsonObject]
    errors: Errors | None


RunSearches = Callable[[Sequence[Search]], Generator[SearchOutcome, None, None]]
"""Performs searches among the documents of a run, one after the other."""


class _Known(NamedTuple):
    """The truth, with its counts for the report.

    classes : int64 by document, the class of its length: class c has lengths of c binary digits,
    which are 0, 1, 2 to 3, 4 to 7, ...
    """

    truth: Truth
    classes: Ints
    counts: JsonObject
    warnings: list[str]


class _Pairs(NamedTuple):
    """Found pairs whose truth is known.

    same : bool, whether they are duplicates. limits : float64, their similarity or distance.
    """

    left: Positions
    right: Positions
    same: Mask
    limits: Floats


def evaluate(
    job: Job,
    tasks: list[Task],
    given_truth: str | Verdicts,
    method: Method,
    run_searches: RunSearches,
    *,
    curve_from: float | None = None,
    with_errors: bool = False,
) -> Evaluated:
    """Search three times, and score the found pairs.

    given_truth : the column of labels, or judged pairs. run_searches : of an engine. curve_from :
    the threshold where the curve begins; None is the method's own choice. with_errors : whether to
    read examples of wrong and of missed pairs.
    """
    limits, loosest = method.curve(curve_from)
    wide = method.in_all_pairs(job.run.selection)
    # The outcomes come in the order of `_searches`; each search runs when its outcome is requested.
    # The generator holds files of the scratch folder; closed, it ends the search under way.
    with closing(run_searches(_searches(method, loosest, wide, job.run.selection))) as found:
        judged = _judge(job, tasks, given_truth, next(found))
        errors = None
        if with_errors:
            with job.stages.stage("errors"):
                errors = _find_errors(tasks, judged)
        curve, warnings = _score_curve(next(found).outcome, judged, limits, wide)
        clusters = _score_clusters(judged, found)

    best = scores.best_of(curve, at_least=method.limit.at_least)
    warnings += [*judged.known.warnings, *_warn_of_first(curve, best, method)]
    return Evaluated(
        at_threshold=judged.at_threshold,
        best=best,
        curve=curve,
        by_length=_by_length(judged),
        clusters=clusters,
        found=Findings(
            tasks=tasks,
            method=method,
            selection=wide,
            outcome=judged.found.outcome,
            stages=job.stages,
            warnings=warnings,
        ),
        truth=judged.counts(),
        rejected=job.rejected(),
        errors=errors,
    )


def _searches(
    method: Method, loosest: Method, wide: SelectionSettings, selection: SelectionSettings
) -> list[Search]:
    """Return the searches for all pairs at the threshold, for all pairs at the loosest limit, and
    for the decisions of the sieve.
    """
    return [
        Search(method, wide, Every()),
        Search(loosest, wide, Every()),
        Search(method, selection, rule_of(selection)),
    ]


class _Judged(NamedTuple):
    """The search at the threshold of the method, beside the truth.

    pairs : the found pairs whose truth is known. positives : int64 by class of length, the number
    of duplicate pairs, found or not. at_threshold : the score of the search.
    """

    found: SearchOutcome
    known: _Known
    pairs: _Pairs
    positives: Ints
    at_threshold: Score

    def counts(self) -> JsonObject:
        """Return the counts of the truth for the report."""
        num_found = len(self.found.outcome.pairs.left)
        return self.known.counts | {
            "pairs": self.known.truth.num_pairs,
            "found_unknown": num_found - self.at_threshold.found,
        }


def _judge(
    job: Job, tasks: list[Task], given_truth: str | Verdicts, found: SearchOutcome
) -> _Judged:
    """Read the truth, and score a search at the threshold of its method."""
    method = found.method
    with job.stages.stage("labels"):
        known = _read_known(tasks, given_truth, found)
    pairs = _known_pairs(found.outcome, known.truth, method)
    positives = known.truth.count_positives(known.classes)
    at_threshold = Score(
        limit=method.limit.value,
        found=len(pairs.same),
        correct=int(pairs.same.sum()),
        positives=int(positives.sum()),
    )
    return _Judged(
        found=found,
        known=known,
        pairs=pairs,
        positives=positives,
        at_threshold=at_threshold,
    )


def _warn_of_first(curve: list[Score], best: Score, method: Method) -> list[str]:
    """Return a warning if the best threshold is the lowest one of the curve."""
    is_first = best.limit == curve[0].limit > _MIN_LIMIT
    if not (method.limit.at_least and best.f1 and is_first):
        return []
    lower = max(_MIN_LIMIT, best.limit / 2)
    return [
        f"The best threshold is the first one of the curve, {best.limit:g}; a lower one may be "
        f"better. Start lower: curve_from={lower:g} (--curve-from {lower:g})."
    ]


def _known_pairs(outcome: Outcome, truth: Truth, method: Method) -> _Pairs:
    """Return the pairs of an outcome whose truth is known."""
    pairs = outcome.pairs
    verdicts = truth.judge(pairs.left, pairs.right)
    known = np.flatnonzero(verdicts != scores.UNKNOWN)
    values = pairs.measured[method.limit.measure]
    return _Pairs(
        left=pairs.left[known],
        right=pairs.right[known],
        same=verdicts[known] == scores.SAME,
        limits=values[known].astype(np.float64),
    )


def _score_curve(
    outcome: Outcome, judged: _Judged, limits: Array, selection: SelectionSettings
) -> tuple[list[Score], list[str]]:
    """Return the score of the pairs of a search at the loosest limit, at each limit; and warnings.

    Bands that are set stay. Otherwise bands are chosen for the lowest threshold, and find nearly
    all pairs at higher thresholds. At its own limit, the method has the score of its own bands.
    """
    method = judged.found.method
    at_threshold = judged.at_threshold
    at_least = method.limit.at_least
    pairs = _known_pairs(outcome, judged.known.truth, method)
    found = scores.count_within(limits, pairs.limits, at_least=at_least)
    correct = scores.count_within(limits, pairs.limits[pairs.same], at_least=at_least)
    counts = zip(limits.tolist(), found.tolist(), correct.tolist(), strict=True)
    curve = [Score(*count, positives=at_threshold.positives) for count in counts]
    curve = [at_threshold if score.limit == at_threshold.limit else score for score in curve]
    warnings = warn_of_bound(
        documents=outcome.num_bucket_overflows,
        max_bucket_size=selection.max_bucket_size or method.max_bucket_size,
    )
    return curve, [f"In the search for the curve, {warning}" for warning in warnings]


def _score_clusters(judged: _Judged, sieves: Iterator[SearchOutcome]) -> ClusterScores:
    """Score the clusters of the next sieve, and connected clusters."""
    truth = judged.known.truth
    if isinstance(truth, Judgements):
        return ClusterScores(sieved=None, connected=None)
    pairs = judged.found.outcome.pairs
    num_documents = len(truth.codes)
    removals = next(sieves).outcome.removals
    sieved = np.arange(num_documents)
    sieved[removals.documents] = removals.kept
    connected = first_members(num_documents, pairs.left, pairs.right)
    known = truth.codes >= 0
    labels = truth.codes[known]
    return ClusterScores(
        sieved=scores.adjusted_rand(sieved.astype(np.int64)[known], labels),
        connected=scores.adjusted_rand(connected.astype(np.int64)[known], labels),
    )


def _by_length(judged: _Judged) -> list[LengthScore]:
    """Score the pairs of each class of length; a pair is in the class of its shorter text."""
    pairs = judged.pairs
    truth = judged.known.truth
    classes = judged.known.classes
    num_classes = len(judged.positives)
    shorter = np.minimum(classes[pairs.left], classes[pairs.right])
    found = np.bincount(shorter, minlength=num_classes)
    correct = np.bincount(shorter[pairs.same], minlength=num_classes)
    if isinstance(truth, Labels):
        members = classes[truth.codes >= 0]
    else:
        members = classes[np.union1d(truth.left, truth.right)]
    documents = np.bincount(members, minlength=num_classes)
    rows = []
    for number in np.flatnonzero(documents).tolist():
        score = Score(
            limit=judged.at_threshold.limit,
            found=int(found[number]),
            correct=int(correct[number]),
            positives=int(judged.positives[number]),
        )
        # Class n has the lengths of n binary digits: from 2^(n - 1) on, and class 0 the length 0.
        min_length = 1 << number >> 1
        rows.append(LengthScore(min_length, int(documents[number]), score))
    return rows


def _read_known(tasks: list[Task], given_truth: str | Verdicts, found: SearchOutcome) -> _Known:
    """Return the labels, or the documents of the judged pairs, with the length class of each
    document.
    """
    corpus = found.outcome.corpus
    locations = found.locations
    column = given_truth if isinstance(given_truth, str) else None
    documents = np.arange(corpus.num_documents, dtype=np.uint32)
    lengths, labels = _read_labels_of(tasks, column, corpus.part_ends, locations.rows(documents))
    # frexp returns the number of binary digits as the exponent.
    classes = np.frexp(lengths.astype(np.float64))[1].astype(np.int64)
    if isinstance(given_truth, str):
        truth, counts = _truth_of_labels(pa.concat_arrays(labels), given_truth)
        return _Known(truth, classes, counts, warnings=[])
    ids = locations.ids(documents)
    repeated = find_repeated_id(hash_ids(ids), corpus, locations)
    if repeated is not None:
        raise InputError(
            f"{repeated} Judged pairs refer to documents by id. Use another id_column "
            "(--id-column)."
        )
    return _truth_of_verdicts(given_truth, ids, classes)


def _read_labels_of(
    tasks: list[Task], column: str | None, part_ends: Ints, rows: Ints
) -> tuple[Ints, list[pa.Array]]:
    """Read the length of each document, and the labels of each part if a column is given.

    rows : int64 (num_documents,), the row of each document in its part.
    """
    lengths = np.zeros(len(rows), np.int64)
    labels = []
    first = 0
    for task, end in zip(tasks, part_ends.tolist(), strict=True):
        # Such as a file that cannot be opened: the first pass has reported it.
        if end == first:
            labels.append(pa.array([], pa.string()))
            continue
        read = read_labels(task.part, task.columns, column)
        # The first pass may have rejected other rows than this pass.
        index, is_found = find_in(read.rows, rows[first:end])
        lengths[first:end][is_found] = read.lengths[index[is_found]]
        if read.labels is not None:
            labels.append(read.labels.take(pa.array(index, mask=~is_found)))
        first = end
    return lengths, labels


def _truth_of_labels(labels: pa.Array, column: str) -> tuple[Labels, JsonObject]:
    # An empty label is unknown, like a missing one.
    labels = pc.if_else(pc.equal(labels, ""), pa.scalar(None, labels.type), labels)
    if labels.null_count == len(labels):
        raise InputError(
            f"No document has a label: the column {column!r} is null or empty in all "
            f"{len(labels):,} of them. Pass the column of labels (--label), or judged pairs "
            "(--pairs)."
        )
    encoded = labels.dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    counts = {
        "label": column,
        "documents": len(labels) - labels.null_count,
        "labels": len(encoded.dictionary),
    }
    return Labels(codes), counts


def _truth_of_verdicts(verdicts: Verdicts, ids: pa.Array, classes: Ints) -> _Known:
    """Return the judged pairs of documents of the corpus; count and name the ids that are not in
    the corpus.
    """
    # The position of an id is the number of its document.
    left = pc.index_in(verdicts.left_ids, value_set=ids)
    right = pc.index_in(verdicts.right_ids, value_set=ids)
    in_corpus = pc.and_(left.is_valid(), right.is_valid())
    absent = _absent_ids(verdicts, left, right)
    num_lost = in_corpus.false_count
    if in_corpus.true_count == 0:
        raise InputError(
            f"{verdicts.name} judges no pair of documents of the corpus: its "
            f"{plural(num_lost, 'pair')} name {_named(absent)}; ids of the corpus are "
            f"{_named(ids)}. Pass the id column (--id-column)."
        )
    judgements = _once(
        left.filter(in_corpus).to_numpy().astype(np.uint32),
        right.filter(in_corpus).to_numpy().astype(np.uint32),
        verdicts.same[in_corpus.to_numpy(zero_copy_only=False)],
        verdicts.name,
        ids,
    )
    counts = {
        "judged_by": verdicts.name,
        "documents": len(np.union1d(judgements.left, judgements.right)),
        "absent_ids": len(absent),
        "absent_named": absent[:_MAX_NAMED].to_pylist(),
        "pairs_lost": num_lost,
    }
    return _Known(judgements, classes, counts, _warn_of_lost(verdicts.name, absent, num_lost))


def _absent_ids(verdicts: Verdicts, left: pa.Array, right: pa.Array) -> pa.Array:
    """Return the ids that are not in the corpus. left, right : their positions there, or null."""
    left_ids = verdicts.left_ids.filter(left.is_null())
    right_ids = verdicts.right_ids.filter(right.is_null())
    return pa.concat_arrays([left_ids, right_ids]).unique()


def _warn_of_lost(name: str, absent: pa.Array, num_lost: int) -> list[str]:
    if num_lost == 0:
        return []
    return [
        f"{name} names {plural(len(absent), 'id')} that the corpus does not have: "
        f"{_named(absent)}. {plural(num_lost, 'pair')} with such an id counted for nothing."
    ]


def _once(left: Positions, right: Positions, same: Mask, name: str, ids: pa.Array) -> Judgements:
    """Return each pair once. Raise if a pair has two judgements or is a document with itself."""
    keys, first, inverse = np.unique(
        scores.pair_keys(left, right), return_index=True, return_inverse=True
    )
    agreed = same[first]
    wrong = np.flatnonzero((agreed[inverse] != same) | (left == right))
    if len(wrong):
        example = int(wrong[0])
        pair = f"{ids[int(left[example])].as_py()!r} and {ids[int(right[example])].as_py()!r}"
        if left[example] == right[example]:
            problem = "although they are one document"
        else:
            problem = "both as duplicates and as different"
        raise InputError(
            f"{name} judges {pair} {problem}, {plural(len(wrong), 'such pair')} in all. Remove "
            "these pairs."
        )
    # A key has the left document in its upper half.
    return Judgements(
        left=(keys >> np.uint64(32)).astype(np.uint32),
        right=keys.astype(np.uint32),
        same=agreed,
    )


def _named(ids: pa.Array) -> str:
    shown = ", ".join(repr(value) for value in ids[:5].to_pylist())
    return f"{shown} and {len(ids) - 5:,} more" if len(ids) > 5 else shown


def _find_errors(tasks: list[Task], judged: _Judged) -> Errors:
    """Return twenty pairs of each kind of error, or all of them if there are fewer.

    Wrong pairs are evenly spaced from the most to the least similar; missed pairs are drawn at
    random.
    """
    method = judged.found.method
    locations = judged.found.locations
    truth = judged.known.truth
    pairs = judged.found.outcome.pairs
    wrong = np.flatnonzero(truth.judge(pairs.left, pairs.right) == scores.DIFFERENT)
    drawn = _draw_wrong(pairs, wrong, method)
    missed_left, missed_right = _draw_missed(truth, pairs)

    shown = np.concatenate([drawn.documents, drawn.kept, missed_left, missed_right])
    documents = np.unique(shown).astype(np.uint32)
    texts = dict(write.read_texts(tasks, locations.part_ends, documents))
    missed = _measure(missed_left, missed_right, documents, texts, method)
    at_threshold = judged.at_threshold
    return Errors(
        wrong=_examples(drawn, texts, locations, method),
        missed=_examples(missed, texts, locations, method),
        num_wrong=len(wrong),
        num_missed=at_threshold.positives - at_threshold.correct,
    )


def _draw_missed(truth: Truth, pairs: Pairs) -> tuple[Positions, Positions]:
    """Return duplicate pairs that were not found, drawn at random."""
    found = np.sort(scores.pair_keys(pairs.left, pairs.right))
    return truth.draw_missed(found, NUM_EXAMPLES, _SEED)


def _draw_wrong(pairs: Pairs, wrong: Ints, method: Method) -> Removals:
    """Return wrong pairs, evenly spaced from the most to the least similar."""
    strength = method.strength(pairs.measured.take(wrong))
    earlier = np.minimum(pairs.left[wrong], pairs.right[wrong])
    later = np.maximum(pairs.left[wrong], pairs.right[wrong])
    by_strength = wrong[np.lexsort((later, earlier, -strength))]
    num_drawn = min(len(wrong), NUM_EXAMPLES)
    drawn = by_strength[np.linspace(0, len(wrong) - 1, num_drawn).astype(np.int64)]
    return Removals(pairs.left[drawn], pairs.right[drawn], pairs.measured.take(drawn))


def _measure(
    left: Positions,
    right: Positions,
    documents: Positions,
    texts: dict[int, str],
    method: Method,
) -> Removals:
    """Measure pairs of documents from their texts. documents : uint32, rising, the keys of
    `texts`.
    """
    strings = arrow_of_strings([texts[document] for document in documents.tolist()])
    features = method.describe(strings)
    described = Described(features, method.summarise(features))
    left_row = np.searchsorted(documents, left)
    right_row = np.searchsorted(documents, right)
    if method.directed:  # the larger set comes first, as in a search for all pairs
        sizes = distinct_lists(features.sets).sizes
        is_smaller = sizes[left_row] < sizes[right_row]
        larger_row = np.where(is_smaller, right_row, left_row)
        right_row = np.where(is_smaller, left_row, right_row)
        left_row = larger_row
    return Removals(left, right, method.measure(described, described, left_row, right_row))


def _examples(
    pairs: Removals, texts: dict[int, str], locations: DocumentLocations, method: Method
) -> list[Example]:
    """Return pairs as the examples of a report, most similar first."""
    if not len(pairs.documents):
        return []
    pairs = pairs.take(np.argsort(-method.strength(pairs.measured), kind="stable"))
    documents = np.union1d(pairs.documents, pairs.kept).astype(np.uint32)
    texts_of_pairs = {document: texts[document] for document in documents.tolist()}
    ones = np.ones(len(pairs.documents), np.int64)
    shown = write.Shown(
        removals=pairs,
        documents=documents,
        texts=texts_of_pairs,
        families=ones,
        near_families=ones,
    )
    return write.examples(shown, locations, method)
