"""Evaluate a method against known duplicates: at its settings, over a curve of limits, and for its
clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Array, Floats, Ints, Mask, Positions, arrow_of_strings, find_in
from neardup.decide.clusters import first_members
from neardup.decide.outcome import Outcome, Removals
from neardup.decide.rules import Every, rule_of
from neardup.engines.local import pipeline
from neardup.engines.local.pipeline import Search
from neardup.errors import InputError
from neardup.features.described import distinct_lists
from neardup.files import JsonObject
from neardup.formats.reading import Task
from neardup.methods.base import Described, Method
from neardup.output import write
from neardup.output.job import Job
from neardup.progress import NullProgress
from neardup.report.contents import Findings, warn_of_bound
from neardup.report.dedup_html import Errors
from neardup.report.items import Example
from neardup.report.wording import plural
from neardup.runs import reading
from neardup.runs.ids import find_repeated_id
from neardup.runs.labels import Verdicts, read_labels
from neardup.runs.locations import DocumentLocations
from neardup.runs.reading import count_or_open
from neardup.runs.scratch import Scratch
from neardup.schemas import ID_HASHES
from neardup.settings.run import SelectionSettings
from neardup.verify import scores
from neardup.verify.scores import Judgements, Labels, Score, Truth

_MOST_NAMED = 100
_LEAST_LIMIT = 0.05
NUM_EXAMPLES = 20
_SEED = 20261122  # fixed: the same corpus and settings give the same pairs


class Evaluated(NamedTuple):
    """The result of an evaluation. by_length : for each class of length, the least number of
    characters, how many documents have a label, the scores. clusters : the adjusted Rand index of
    the sieve's ones and of connected ones; None for judged pairs. found : of the search at the
    threshold. truth : its counts. rejected : as in the report. errors : None unless requested. The
    other fields are as in `results.Evaluation`.
    """

    at_threshold: Score
    best: Score
    curve: list[Score]
    by_length: list[tuple[int, int, Score]]
    clusters: tuple[float | None, float | None]
    found: Findings
    truth: JsonObject
    rejected: list[JsonObject]
    errors: Errors | None


class _Known(NamedTuple):
    """The truth, and the length class of each document, by document. counts : of the truth, for the
    report.
    """

    truth: Truth
    classes: Ints
    counts: JsonObject
    warnings: list[str]


class _Pairs(NamedTuple):
    """Found pairs whose truth is known. limits : the similarity or distance of each."""

    left: Positions
    right: Positions
    same: Mask
    limits: Floats


def evaluate(
    job: Job,
    tasks: list[Task],
    given_truth: str | Verdicts,
    method: Method,
    *,
    curve_from: float | None = None,
    with_errors: bool = False,
) -> Evaluated:
    """Read once, search three times, and score the found pairs.

    given_truth : the column of labels, or judged pairs. curve_from : the threshold where the curve
    begins; None is the method's own choice. with_errors : whether to read examples of wrong and of
    missed pairs.
    """
    run = job.run
    selection = run.selection
    stages = job.stages
    scratch = job.scratch
    limits, loosest = method.curve(curve_from)
    errors, wide = None, method.in_all_pairs(selection)
    searches = [
        Search(method, wide, Every()),
        Search(loosest, wide, Every()),
        Search(method, selection, rule_of(selection)),
    ]
    with closing(pipeline.run_searches(tasks, searches, run.settings, scratch, stages)) as outcomes:
        outcome = next(outcomes)
        with stages.stage("labels"):
            known = _read_known(tasks, given_truth, outcome, scratch)
        positives = known.truth.count_positives(known.classes)
        if with_errors:
            with stages.stage("errors"):
                errors = _find_errors(
                    tasks, known.truth, outcome, int(positives.sum()), method, scratch, run.threads
                )
        found = _known_pairs(outcome, known.truth, method)
        at_threshold = Score(
            method.limit.value, len(found.same), int(found.same.sum()), int(positives.sum())
        )
        curve, warnings = _score_curve(
            next(outcomes), known.truth, method, limits, at_threshold, wide
        )
        clusters = _score_clusters(known.truth, outcome, outcomes)
    best = scores.best_of(curve, at_least=method.limit.at_least)
    if method.limit.at_least and best.f1 and best.limit == curve[0].limit > _LEAST_LIMIT:
        known.warnings.append(
            f"The best threshold is the first one of the curve, {best.limit:g}; a lower one "
            "may be better. Start "
            f"lower: curve_from={max(_LEAST_LIMIT, best.limit / 2):g} (--curve-from "
            f"{max(_LEAST_LIMIT, best.limit / 2):g})."
        )
    unknown = len(outcome.pairs.left) - at_threshold.found
    return Evaluated(
        at_threshold=at_threshold,
        best=best,
        curve=curve,
        by_length=_by_length(found, positives, known, at_threshold.limit),
        clusters=clusters,
        found=Findings(
            tasks=tasks,
            method=method,
            selection=wide,
            outcome=outcome,
            stages=stages,
            warnings=[*warnings, *known.warnings],
        ),
        truth=known.counts | {"pairs": known.truth.num_pairs, "found_unknown": unknown},
        rejected=job.rejected(),
        errors=errors,
    )


def _known_pairs(outcome: Outcome, truth: Truth, method: Method) -> _Pairs:
    """Return the pairs of an outcome whose truth is known."""
    pairs = outcome.pairs
    verdicts = truth.judge(pairs.left, pairs.right)
    known = np.flatnonzero(verdicts != scores.UNKNOWN)
    values = pairs.measured[method.limit.measure]
    same = verdicts[known] == scores.SAME
    return _Pairs(pairs.left[known], pairs.right[known], same, values[known].astype(np.float64))


def _score_curve(
    outcome: Outcome,
    truth: Truth,
    method: Method,
    limits: Array,
    at_threshold: Score,
    wide: SelectionSettings,
) -> tuple[list[Score], list[str]]:
    """Count the pairs of a search at the loosest limit at each limit; return the scores and the
    warnings.

    Bands of the settings stay. Other bands are chosen for the lowest threshold, and find nearly all
    pairs at higher thresholds. At the limit of the method itself the score is that of the method,
    with its own bands.
    """
    found = _known_pairs(outcome, truth, method)
    at_least = method.limit.at_least
    all_found = scores.count_within(limits, found.limits, at_least=at_least)
    correct = scores.count_within(limits, found.limits[found.same], at_least=at_least)
    rows = zip(limits.tolist(), all_found.tolist(), correct.tolist(), strict=True)
    curve = [
        at_threshold if row[0] == at_threshold.limit else Score(*row, at_threshold.positives)
        for row in rows
    ]
    most = wide.max_bucket_size or method.max_bucket_size
    warnings = warn_of_bound(documents=outcome.num_bucket_overflows, max_bucket_size=most)
    return curve, [f"In the search for the curve, {warning}" for warning in warnings]


def _score_clusters(
    truth: Truth, outcome: Outcome, sieves: Iterator[Outcome]
) -> tuple[float | None, float | None]:
    """Return the adjusted Rand index of the sieve's clusters, and of the connected ones; None for
    judged pairs.
    """
    if isinstance(truth, Judgements):
        return None, None
    removals = next(sieves).removals
    sieved = np.arange(len(truth.codes))
    sieved[removals.documents] = removals.kept
    connected = first_members(len(truth.codes), outcome.pairs.left, outcome.pairs.right)
    known = truth.codes >= 0
    clusters = (firsts.astype(np.int64)[known] for firsts in (sieved, connected))
    of_sieve, of_chains = (scores.adjusted_rand(each, truth.codes[known]) for each in clusters)
    return of_sieve, of_chains


def _by_length(
    found: _Pairs, positives: Ints, known: _Known, limit: float
) -> list[tuple[int, int, Score]]:
    """Score the pairs of each class of length; a pair is in the class of its shorter text."""
    lesser = np.minimum(known.classes[found.left], known.classes[found.right])
    all_found, correct = (
        np.bincount(part, minlength=len(positives)) for part in (lesser, lesser[found.same])
    )
    if isinstance(known.truth, Labels):
        members = known.classes[known.truth.codes >= 0]
    else:
        members = known.classes[np.union1d(known.truth.left, known.truth.right)]
    documents = np.bincount(members, minlength=len(positives))
    shown = np.flatnonzero(documents)
    counts = zip(
        *(column[shown].tolist() for column in (all_found, correct, positives)), strict=True
    )
    least = [1 << index >> 1 for index in shown.tolist()]
    return list(
        zip(least, documents[shown].tolist(), (Score(limit, *row) for row in counts), strict=True)
    )


def _read_known(
    tasks: list[Task], given_truth: str | Verdicts, outcome: Outcome, scratch: Scratch
) -> _Known:
    """Return the labels, or the documents of the judged pairs, with the length class of each
    document.
    """
    locations = reading.locations(tasks, outcome.corpus, scratch)
    column = given_truth if isinstance(given_truth, str) else None
    documents = np.arange(outcome.corpus.num_documents, dtype=np.uint32)
    rows, first = locations.rows(documents), 0
    lengths, labels = np.zeros(len(rows), np.int64), []
    for task, end in zip(tasks, outcome.corpus.part_ends.tolist(), strict=True):
        read = read_labels(task.part, task.columns, column)
        # The first pass may have rejected other rows than this pass.
        index, there = find_in(read.rows, rows[first:end])
        lengths[first:end][there] = read.lengths[index[there]]
        if read.labels is not None:
            labels.append(read.labels.take(pa.array(index, mask=~there)))
        first = end
    # Class c contains lengths of c binary digits: 0, 1, 2 to 3, 4 to 7, ...
    classes = np.frexp(lengths.astype(np.float64))[1].astype(np.int64)
    if isinstance(given_truth, str):
        truth, counts = _truth_of_labels(pa.concat_arrays(labels), given_truth)
        return _Known(truth, classes, counts, [])
    repeated = find_repeated_id(scratch.column(ID_HASHES), outcome.corpus, locations)
    if repeated is not None:
        raise InputError(
            f"{repeated} Judged pairs refer to documents by id. Use another id_column "
            "(--id-column)."
        )
    judgements, counts, warnings = _truth_of_verdicts(given_truth, locations.ids(documents))
    return _Known(judgements, classes, counts, warnings)


def _truth_of_labels(labels: pa.Array, column: str) -> tuple[Labels, JsonObject]:
    labels = pc.if_else(pc.equal(labels, ""), pa.scalar(None, labels.type), labels)
    if labels.null_count == len(labels):
        raise InputError(
            f"No document has a label: the column {column!r} is null or empty in all "
            f"{len(labels):,} of them. Pass the "
            "column of labels (--label), or judged pairs (--pairs)."
        )
    encoded = labels.dictionary_encode()
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    counts = {
        "label": column,
        "documents": len(labels) - labels.null_count,
        "labels": len(encoded.dictionary),
    }
    return Labels(codes), counts


def _truth_of_verdicts(
    verdicts: Verdicts, ids: pa.Array
) -> tuple[Judgements, JsonObject, list[str]]:
    """Return the judged pairs of documents of the corpus; count and name the ids that are not in
    the corpus.
    """
    left, right = (
        pc.index_in(column, value_set=ids) for column in (verdicts.left_ids, verdicts.right_ids)
    )
    there = pc.and_(left.is_valid(), right.is_valid())
    sides = (verdicts.left_ids, left), (verdicts.right_ids, right)
    absent = pa.concat_arrays([column.filter(at.is_null()) for column, at in sides]).unique()
    num_lost = len(there) - there.true_count
    if there.true_count == 0:
        raise InputError(
            f"{verdicts.name} judges no pair of documents of the corpus: its "
            f"{plural(num_lost, 'pair')} name "
            f"{_named(absent)}; ids of the corpus are {_named(ids)}. Pass the id column "
            "(--id-column)."
        )
    left, right = (column.filter(there).to_numpy().astype(np.uint32) for column in (left, right))
    judgements = _once(
        left, right, verdicts.same[there.to_numpy(zero_copy_only=False)], verdicts.name, ids
    )
    counts = {
        "judged_by": verdicts.name,
        "documents": len(np.union1d(judgements.left, judgements.right)),
        "absent_ids": len(absent),
        "absent_named": absent[:_MOST_NAMED].to_pylist(),
        "pairs_lost": num_lost,
    }
    warning = (
        f"{verdicts.name} names {plural(len(absent), 'id')} that the corpus does not have: "
        f"{_named(absent)}. "
        f"{plural(num_lost, 'pair')} with such an id counted for nothing."
    )
    return judgements, counts, [warning] if num_lost else []


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
        is_one = left[example] == right[example]
        problem = (
            "although they are one document" if is_one else "both as duplicates and as different"
        )
        raise InputError(
            f"{name} judges {pair} {problem}, {plural(len(wrong), 'such pair')} in all. "
            "Remove these pairs."
        )
    return Judgements((keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32), agreed)


def _named(ids: pa.Array) -> str:
    shown = ", ".join(repr(value) for value in ids[:5].to_pylist())
    return f"{shown} and {len(ids) - 5:,} more" if len(ids) > 5 else shown


def _find_errors(
    tasks: list[Task],
    truth: Truth,
    outcome: Outcome,
    positives: int,
    method: Method,
    scratch: Scratch,
    threads: int,
) -> Errors:
    """Return twenty pairs of each kind, or all of them if there are fewer.

    Wrong pairs are evenly spaced from the most to the least similar; missed pairs are drawn at
    random.

    Parameters
    ----------
    outcome : of the search that is judged. positives : the number of duplicate pairs, found or not.
    """
    found, locations = outcome.pairs, reading.locations(tasks, outcome.corpus, scratch)
    if method.counted is not None:  # the search has counted the corpus already
        method = method.with_idf(
            count_or_open(method.counted, tasks, scratch, threads, NullProgress())
        )
    verdicts = truth.judge(found.left, found.right)
    wrong = np.flatnonzero(verdicts == scores.DIFFERENT)
    by_strength = wrong[np.argsort(-method.strength(found.measured.take(wrong)), kind="stable")]
    spaced = np.linspace(0, len(wrong) - 1, min(len(wrong), NUM_EXAMPLES)).astype(np.int64)
    picked = by_strength[spaced]
    left, right = truth.draw_missed(
        np.sort(scores.pair_keys(found.left, found.right)), NUM_EXAMPLES, _SEED
    )
    documents = np.unique(
        np.concatenate([found.left[picked], found.right[picked], left, right])
    ).astype(np.uint32)
    texts = dict(write.read_texts(tasks, locations.part_ends, documents))
    features = method.describe(
        arrow_of_strings([texts[document] for document in documents.tolist()])
    )
    described = Described(features, method.summarise(features))
    rows = [np.searchsorted(documents, side) for side in (left, right)]
    if method.directed:  # as in a search for all pairs
        sizes = distinct_lists(features.sets).sizes
        rows = [np.where(sizes[rows[0]] < sizes[rows[1]], *ends) for ends in (rows[::-1], rows)]
    picked_pairs = Removals(found.left[picked], found.right[picked], found.measured.take(picked))
    missed = Removals(left, right, method.measure(described, described, *rows))
    wrong_shown, missed_shown = (
        _examples(one, texts, locations, method) for one in (picked_pairs, missed)
    )
    correct = int(np.count_nonzero(verdicts > scores.DIFFERENT))
    return Errors(wrong_shown, missed_shown, len(wrong), positives - correct)


def _examples(
    pairs: Removals, texts: dict[int, str], locations: DocumentLocations, method: Method
) -> list[Example]:
    """Return pairs as the examples of a report, most similar first."""
    pairs = pairs.take(np.argsort(-method.strength(pairs.measured), kind="stable"))
    documents = np.union1d(pairs.documents, pairs.kept).astype(np.uint32)
    own = {document: texts[document] for document in documents.tolist()}
    ones = np.ones(len(pairs.documents), np.int64)
    return (
        write.examples(write.Shown(pairs, documents, own, ones, ones), locations, method)
        if own
        else []
    )
