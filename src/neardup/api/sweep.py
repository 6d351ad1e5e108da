"""Compare thresholds without labels: how many documents each removes, with examples next to it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.api.choose import choose
from neardup.decide.outcome import Outcome
from neardup.decide.rules import rule_of
from neardup.documents.batch import Corpus
from neardup.engines.local import pipeline
from neardup.errors import SettingError
from neardup.files import AnyPath, JsonObject
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.methods.registry import method_of
from neardup.output.job import open_job
from neardup.output.tables import check_output
from neardup.output.write import read_texts
from neardup.report.contents import describe_cost, describe_losses
from neardup.report.items import Marker
from neardup.results import Sweep, SweepExample
from neardup.runs import reading
from neardup.runs.run import BatchOptions, Source, Unpack, run_of, spelled_out
from neardup.runs.scratch import Scratch
from neardup.schemas import SIMILARITY, sweep_schema
from neardup.settings.methods import MethodSettings, MinHash, named_as
from neardup.settings.run import Keep, SelectionSettings

THRESHOLDS = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
_MAX_THRESHOLDS, _EXAMPLES = 50, 3


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
    """Count the documents that `dedup` would remove at each of several thresholds, with examples on
    both sides of each.

    Parameters
    ----------
    source, keep, within : as in `dedup`.
    thresholds : numbers above 0 and at most 1, at most 50. Default: None; 0.5 to 0.95 in steps of
        0.05, and the result has a suggestion.
    method : settings of MinHash or their name, as in `dedup`; their threshold is not used.
    plot : an SVG file for the plot of the removed documents at each threshold. An existing file is
        replaced.
    text_column, id_column, text_unit, in_format, max_document_bytes : as in `dedup`.
    threads, batch_rows, on_error, max_unreadable, progress : as in `dedup`.

    Returns
    -------
    Sweep

    Raises
    ------
    SettingError
        If there is no threshold, a threshold is outside its limits, or the method has none.
    InputError, ColumnError
        As in `dedup`.
    OutputError
        If the plot cannot be written, or does not end in .svg.

    Notes
    -----
    The inputs are read once, then searched at each threshold as `dedup` searches them, so the
    counts equal its counts. For the suggestion they are read and searched once more, with shingles
    of 2 words or 1, from similarity 0.1 on.

    Examples
    --------
    >>> import neardup
    >>> start = "one two three four five six seven"
    >>> texts = [start + " eight", start + " nine", "other words"]
    >>> counts = neardup.sweep(texts, thresholds=[0.5, 0.9]).counts
    >>> counts.select(["threshold", "removed"]).to_pylist()
    [{'threshold': 0.5, 'removed': 1}, {'threshold': 0.9, 'removed': 0}]
    """
    limits = _checked(THRESHOLDS if thresholds is None else thresholds)
    path = None if plot is None else check_output(plot, (".svg",), overwrite=True)
    selection = SelectionSettings(keep=keep, within=within)
    selection.refuse_copies("sweep")
    run = run_of(
        source, options, method=named_as(MinHash, method), selection=selection, outputs=(path,)
    )
    inputs = run.find()
    tasks, settings = inputs.tasks, inputs.method.settings
    rows: list[JsonObject] = []
    chosen: list[_Chosen] = []
    # One run below the first threshold finds what it just keeps.
    below = max(round(limits[0] - 0.05, 4), limits[0] / 2)

    def method_at(limit: float) -> Method:
        return method_of(replace(settings, threshold=limit)).resolve()

    with open_job(run) as job:
        methods = [method_at(limit) for limit in limits]
        try:
            lowest = method_at(below)
            _ = lowest.lookup  # may need more bands than there may be
        except SettingError:
            lowest = methods[0]
        searches = [
            pipeline.Search(each, selection, rule_of(selection)) for each in (lowest, *methods)
        ]
        with closing(
            pipeline.run_searches(tasks, searches, run.settings, job.scratch, job.stages)
        ) as found:
            for removed_at, kept_at, outcome in zip(
                [None, *limits], [*limits, None], found, strict=True
            ):
                chosen += _choose(outcome, removed_at, kept_at)
                if removed_at is not None:
                    rows.append(_counts(removed_at, outcome))
            examples = _mark(tasks, lowest, outcome.corpus, job.scratch, chosen)
        suggestion = ask = None
        if thresholds is None:
            suggestion, ask = choose(job, tasks, settings, outcome.corpus)
        report = {
            "command": "sweep",
            "thresholds": rows,
            "suggestion": None if suggestion is None else suggestion.record(),
            **describe_losses(outcome.corpus.tally.losses, outcome.corpus.num_documents),
            **describe_cost(job.stages, outcome.corpus.num_documents),
        }
        job.finished = report
    result = Sweep(pa.Table.from_pylist(rows, sweep_schema()), examples, suggestion, report, ask)
    if path is not None:
        result.plot(path)
    return result


def _checked(thresholds: Sequence[float]) -> list[float]:
    """Return the thresholds in rising order, each once."""
    try:
        limits = sorted({float(threshold) for threshold in thresholds})
    except (TypeError, ValueError):
        limits = []
    if not 1 <= len(limits) <= _MAX_THRESHOLDS or not 0 < limits[0] <= limits[-1] <= 1:
        raise SettingError(
            f"thresholds must be 1 to {_MAX_THRESHOLDS} numbers above 0 and at most 1: got "
            f"{thresholds!r:.80}. "
            "Change thresholds (--thresholds 0.5..0.95, or 0.6,0.8)."
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

    The most similar one is a near miss of the next threshold; of a run below the first threshold,
    the only one.
    """
    documents, kept, measured, _ = outcome.removals
    similarity = measured[SIMILARITY.name]
    near = np.flatnonzero(~measured.exact & (similarity < (np.inf if kept_at is None else kept_at)))
    near = near[np.argsort(similarity[near], kind="stable")]
    if removed_at is None:
        near = near[-1:]
    rows = (
        near[np.unique(np.linspace(0, len(near) - 1, _EXAMPLES).astype(np.int64))]
        if len(near)
        else near
    )
    return [
        _Chosen(removed_at, kept_at, int(documents[row]), int(kept[row]), float(similarity[row]))
        for row in rows.tolist()
    ]


def _mark(
    tasks: list[Task], method: Method, corpus: Corpus, scratch: Scratch, chosen: list[_Chosen]
) -> list[SweepExample]:
    """Return the removals with their ids and texts, which are read in one pass."""
    documents = np.array([(each.document, each.kept) for each in chosen], np.uint32).reshape(-1, 2)
    texts = read_texts(tasks, corpus.part_ends, np.unique(documents))
    marker = Marker(dict(texts), method.settings.shingling)
    locations = reading.locations(tasks, corpus, scratch)
    ids, kept_ids = (locations.ids(side).to_pylist() for side in documents.T)
    return [
        SweepExample(
            each.removed_at,
            each.kept_at,
            id,
            kept_id,
            each.similarity,
            marker.mark(each.document, each.kept),
        )
        for each, id, kept_id in zip(chosen, ids, kept_ids, strict=True)
    ]
