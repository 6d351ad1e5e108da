"""Compare thresholds without labels: count the documents that each removes, with examples."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.api.choose import Choice, choose, has_rule
from neardup.arrays import is_real
from neardup.decide.outcome import Outcome
from neardup.decide.rules import rule_of
from neardup.documents.batch import Corpus
from neardup.engines.base import Search
from neardup.engines.local import pipeline
from neardup.errors import SettingError
from neardup.files import AnyPath, JsonObject
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.methods.registry import method_of
from neardup.output.job import Job, open_job
from neardup.output.tables import check_output
from neardup.output.write import read_texts
from neardup.report.contents import describe_cost, describe_losses, warn_of_textless
from neardup.report.items import Marker
from neardup.results import Sweep, SweepExample
from neardup.runs import reading
from neardup.runs.run import BatchOptions, Found, Source, Unpack, run_of, spelled_out
from neardup.runs.scratch import Scratch
from neardup.schemas import SIMILARITY, sweep_schema
from neardup.settings.methods import MethodSettings, MinHash, named_as
from neardup.settings.run import Keep, SelectionSettings

THRESHOLDS = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
_MAX_THRESHOLDS = 50
_EXAMPLES = 3  # of a threshold


@spelled_out(BatchOptions)
def sweep(
    source: Source,
    *,
    thresholds: Sequence[float] | None = None,
    method: MethodSettings | str = "minhash",
    keep: Keep = "first",
    within: str | None = None,
    plot: AnyPath | None = None,
    **options: Unpack[BatchOptions],
) -> Sweep:
    """Count the documents that `dedup` would remove at each of several thresholds, with examples.

    Parameters
    ----------
    source, keep, within : as in `dedup`.
    thresholds : at most 50 numbers above 0 and at most 1. Default: 0.5 to 0.95 in steps of 0.05,
        and the result has two grades and a suggestion.
    method : settings of MinHash or their name, as in `dedup`; the grade of copies has their
        threshold.
    plot : an SVG file for the removed documents at each threshold, replaced if it exists.
    text_column, roles, id_column, text_unit, in_format, quote, max_document_bytes : as in `dedup`.
    threads, batch_rows, on_error, max_unreadable, progress : as in `dedup`.

    Returns
    -------
    Sweep

    Raises
    ------
    InputError, ColumnError
        As in `dedup`.
    SettingError
        If there is no threshold, or a threshold is outside its limits.
    OutputError
        As in `dedup`.

    Notes
    -----
    The inputs are read once, then searched at each threshold as `dedup` does, so the counts equal
    its counts. For the suggestion they are read and searched twice more.

    Examples
    --------
    >>> import neardup
    >>> start = "one two three four five six seven"
    >>> texts = [start + " eight", start + " nine", "other words"]
    >>> counts = neardup.sweep(texts, thresholds=[0.5, 0.9]).counts
    >>> counts.select(["threshold", "removed"]).to_pylist()
    [{'threshold': 0.5, 'removed': 1}, {'threshold': 0.9, 'removed': 0}]
    """
    settings = named_as(MinHash, method)
    limits = _limits(thresholds, settings)
    path = None if plot is None else check_output(plot, (".svg",), overwrite=True)
    selection = SelectionSettings(keep=keep, within=within)
    selection.refuse_copies("sweep")
    run = run_of(
        "sweep",
        source,
        options,
        method=settings,
        selection=selection,
        outputs=(path,),
    )
    inputs = run.find()
    with open_job(run) as job:
        found = _search(job, inputs, limits)
        choice = Choice() if thresholds is not None else _choose_settings(job, inputs, found)
        report = _report(job, inputs, found, choice)
        job.finished = report
    counts = pa.Table.from_pylist(found.rows, sweep_schema())
    result = Sweep(
        counts=counts,
        examples=found.examples,
        suggestion=choice.suggestion,
        report=report,
        grades=choice.grades,
        _asking=choice.chooser,
    )
    if path is not None:
        result.plot(path)
    return result


def _choose_settings(job: Job, inputs: Found, found: _Swept) -> Choice:
    """Return the grades and the suggestion."""
    settings = inputs.method.settings
    removed = {row["threshold"]: row["removed"] for row in found.rows}
    # Settings without a rule have no grades, and perhaps no count.
    count = removed.get(settings.threshold, 0)
    return choose(job, inputs.tasks, settings, found.corpus, removed=count)


class _Swept(NamedTuple):
    """The results of the searches. rows : the counts at each threshold, as values for JSON."""

    corpus: Corpus
    rows: list[JsonObject]
    examples: list[SweepExample]


def _report(job: Job, inputs: Found, found: _Swept, choice: Choice) -> JsonObject:
    suggestion = choice.suggestion
    grades = choice.grades
    num_documents = found.corpus.num_documents
    losses = found.corpus.tally.losses
    return {
        "command": "sweep",
        "thresholds": found.rows,
        "grades": grades and grades.record(),
        "suggestion": suggestion and suggestion.record(),
        **describe_losses(losses, num_documents),
        **describe_cost(job.stages, num_documents),
        "warnings": inputs.warnings + warn_of_textless(losses),
    }


def _methods(settings: MinHash, limits: Sequence[float]) -> list[Method]:
    """Return the methods of the thresholds, after one below the first threshold if there can be
    one.
    """

    def method_at(limit: float) -> Method:
        return method_of(replace(settings, threshold=limit)).resolve()

    methods = [method_at(limit) for limit in limits]
    lowest = methods[0]
    with suppress(SettingError):
        # A step of 0.05 below, but at least half of the first threshold.
        below = method_at(max(round(limits[0] - 0.05, 4), limits[0] / 2))
        if below.lookup is not None:  # raises if the threshold needs more bands than are allowed
            lowest = below
    return [lowest, *methods]


def _search(job: Job, inputs: Found, limits: Sequence[float]) -> _Swept:
    """Search at each threshold, and below the first one for near misses of it."""
    run = job.run
    methods = _methods(inputs.method.settings, limits)
    searches = [Search(method, run.selection, rule_of(run.selection)) for method in methods]
    rows: list[JsonObject] = []
    chosen: list[_Chosen] = []
    found = pipeline.run_searches(inputs.tasks, searches, run.settings, job.scratch, job.stages)
    with closing(found):
        # Each search removes documents that the next threshold keeps. The first search is below all
        # thresholds, and after the last one there is no threshold.
        for removed_at, kept_at, searched in zip(
            [None, *limits], [*limits, None], found, strict=True
        ):
            outcome = searched.outcome
            corpus = outcome.corpus
            chosen += _choose(outcome, removed_at, kept_at)
            if removed_at is not None:
                rows.append(_counts(removed_at, outcome))
        examples = _mark(inputs.tasks, methods[0], corpus, job.scratch, chosen)
    return _Swept(corpus=corpus, rows=rows, examples=examples)


def _limits(thresholds: Sequence[float] | None, settings: Any) -> list[float]:
    """Return the thresholds of a sweep in rising order."""
    if thresholds is not None:
        return _checked(thresholds)
    if has_rule(settings):
        # The grade of copies needs the count of the given threshold.
        return _checked({*THRESHOLDS, settings.threshold})
    return _checked(THRESHOLDS)


def _checked(thresholds: Iterable[float]) -> list[float]:
    """Return the thresholds in rising order, each once."""
    try:
        given = list(thresholds)
        limits = sorted(map(float, set(given))) if all(map(is_real, given)) else []
    except (TypeError, OverflowError):
        limits = []
    # Each, not the first and the last: the order of numbers with a NaN is any.
    if not 1 <= len(limits) <= _MAX_THRESHOLDS or not all(0 < limit <= 1 for limit in limits):
        raise SettingError(
            f"thresholds must be 1 to {_MAX_THRESHOLDS} numbers above 0 and at most 1: got "
            f"{thresholds!r:.80}. Change thresholds (--thresholds 0.5..0.95, or 0.6,0.8)."
        )
    return limits


def _counts(threshold: float, outcome: Outcome) -> JsonObject:
    removed = len(outcome.removals.documents)
    exact = int(np.count_nonzero(outcome.removals.measured.exact))
    kept = outcome.corpus.num_documents - removed
    return {"threshold": threshold, "kept": kept, "removed": removed, "removed_exact": exact}


class _Chosen(NamedTuple):
    """A removal to be shown, with the thresholds on both sides of it."""

    removed_at: float | None
    kept_at: float | None
    document: int
    kept: int
    similarity: float


def _choose(outcome: Outcome, removed_at: float | None, kept_at: float | None) -> list[_Chosen]:
    """Return removals of a run that the next threshold would keep: three, from the least similar to
    the most.

    The most similar one is a near miss of the next threshold. Of the search below the first
    threshold, it is the only one.
    """
    removals = outcome.removals
    similarity = removals.measured[SIMILARITY.name]
    limit = np.inf if kept_at is None else kept_at
    near = np.flatnonzero(~removals.measured.exact & (similarity < limit))
    near = near[np.argsort(similarity[near], kind="stable")]
    if removed_at is None:
        # Below all thresholds only the nearest miss is shown.
        near = near[-1:]
    if len(near):
        spaced = np.linspace(0, len(near) - 1, _EXAMPLES).astype(np.int64)
        # Few removals would be chosen several times.
        near = near[np.unique(spaced)]
    return [
        _Chosen(
            removed_at=removed_at,
            kept_at=kept_at,
            document=int(removals.documents[row]),
            kept=int(removals.kept[row]),
            similarity=float(similarity[row]),
        )
        for row in near.tolist()
    ]


def _mark(
    tasks: list[Task], method: Method, corpus: Corpus, scratch: Scratch, chosen: list[_Chosen]
) -> list[SweepExample]:
    """Return the removals with their ids and texts, which are read in one pass."""
    removed = np.array([each.document for each in chosen], np.uint32)
    kept = np.array([each.kept for each in chosen], np.uint32)
    texts = read_texts(tasks, corpus.part_ends, np.union1d(removed, kept))
    marker = Marker(dict(texts), method.settings.shingling)
    locations = reading.locations(tasks, corpus, scratch)
    ids = locations.ids(removed).to_pylist()
    kept_ids = locations.ids(kept).to_pylist()
    return [
        SweepExample(
            removed_at=each.removed_at,
            kept_at=each.kept_at,
            id=id,
            kept_id=kept_id,
            similarity=each.similarity,
            pair=marker.mark(each.document, each.kept),
        )
        for each, id, kept_id in zip(chosen, ids, kept_ids, strict=True)
    ]
