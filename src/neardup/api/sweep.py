"""Compare thresholds without labels: how many documents each removes, with examples next to it."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.api.incomplete import warn_if_incomplete
from neardup.api.inputs import Inputs, Source, for_pages, tasks_of
from neardup.api.runs import open_stages
from neardup.decide.decisions import Removals
from neardup.decide.outcome import Outcome
from neardup.documents.reading import MAX_DOCUMENT_BYTES, Task
from neardup.engines.local import pipeline
from neardup.engines.local.scratch import Scratch
from neardup.errors import SettingError
from neardup.methods.base import Method
from neardup.methods.registry import method_of
from neardup.output.marked_pairs import Marker
from neardup.output.report import describe_cost, describe_incomplete
from neardup.output.write import read_texts
from neardup.progress import Progress
from neardup.results import Sweep, SweepExample
from neardup.schemas import SIMILARITY, sweep_schema
from neardup.settings.methods import MethodSettings
from neardup.settings.presets import minhash_named
from neardup.settings.run import RunSettings, SelectionSettings

THRESHOLDS = tuple(round(0.5 + 0.05 * step, 2) for step in range(10))
_MAX_THRESHOLDS, _EXAMPLES = 50, 3


def sweep(
    source: Source,
    *,
    thresholds: Sequence[float] = THRESHOLDS,
    method: MethodSettings | str = "minhash",
    keep: str = "first",
    within: str | None = None,
    text_column: str | Sequence[str] | None = None,
    id_column: str | None = None,
    text_unit: str = "auto",
    in_format: str | None = None,
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    threads: int | None = None,
    batch_rows: int | None = None,
    on_error: str = "reject",
    progress: bool | Progress = False,
) -> Sweep:
    """Count the documents that `dedup` would remove at each of several thresholds, with examples on both sides of each.

    Parameters
    ----------
    source, text_column, id_column, text_unit, in_format, max_document_bytes : as in `dedup`.
    thresholds : numbers above 0 and at most 1, at most 50.
    method : settings of MinHash or their name, as in `dedup`; their threshold is not used.
    keep, within, threads, batch_rows, on_error, progress : as in `dedup`.

    Returns
    -------
    Sweep

    Raises
    ------
    SettingError
        If there is no threshold, a threshold is outside its limits, or the method has none.
    InputError, ColumnError
        As in `dedup`.

    Notes
    -----
    Each threshold takes a run of its own over the inputs, so its counts equal those of `dedup`.

    Examples
    --------
    >>> import neardup
    >>> texts = ["one two three four five six seven eight", "one two three four five six seven nine", "other words"]
    >>> neardup.sweep(texts, thresholds=[0.5, 0.9]).counts.select(["threshold", "removed"]).to_pylist()
    [{'threshold': 0.5, 'removed': 1}, {'threshold': 0.9, 'removed': 0}]
    """
    limits = _checked(thresholds)
    settings = minhash_named(method)
    selection = SelectionSettings(keep=keep, within=within)
    run_settings = RunSettings(threads=threads, batch_rows=batch_rows, on_error=on_error)
    tasks = tasks_of(Inputs(source, None, text_column, id_column, text_unit, in_format, max_document_bytes), keep,
                     within=within)  # fmt: skip
    settings = for_pages(settings, tasks)
    rows: list[dict[str, Any]] = []
    examples: list[SweepExample] = []
    # One run below the first threshold finds what it just keeps.
    below = max(round(limits[0] - 0.05, 4), limits[0] / 2)
    with open_stages(progress) as stages:
        for place, threshold in enumerate([below, *limits]):
            chosen = method_of(replace(settings, threshold=threshold)).resolve()
            with tempfile.TemporaryDirectory(prefix="neardup-") as path, Scratch(Path(path)) as scratch:
                outcome = pipeline.run_pipeline(tasks, chosen, selection, run_settings, scratch, stages)
                until = [*limits, np.inf][place]
                examples += _examples(tasks, chosen, outcome, scratch, threshold, until, is_below=place == 0)
            if place:
                rows.append(_counts(threshold, outcome))
        report = {
            "command": "sweep",
            "thresholds": rows,
            "incomplete": describe_incomplete(outcome.corpus.tally.unread_files, outcome.corpus.unread),
            **describe_cost(stages, outcome.corpus.num_documents * (1 + len(limits))),
        }
    warn_if_incomplete(report, on_error)
    return Sweep(pa.Table.from_pylist(rows, sweep_schema()), examples, report)


def _checked(thresholds: Sequence[float]) -> list[float]:
    """Return the thresholds in rising order, each once."""
    try:
        limits = sorted({float(threshold) for threshold in thresholds})
    except (TypeError, ValueError):
        limits = []
    if not 1 <= len(limits) <= _MAX_THRESHOLDS or not 0 < limits[0] <= limits[-1] <= 1:
        raise SettingError(
            f"thresholds must be 1 to {_MAX_THRESHOLDS} numbers above 0 and at most 1: got {thresholds!r:.80}. "
            "Change thresholds (--thresholds 0.5..0.95, or 0.6,0.8)."
        )
    return limits


def _counts(threshold: float, outcome: Outcome) -> dict[str, Any]:
    removed = len(outcome.removals.documents)
    exact = int(np.count_nonzero(outcome.removals.measured.exact))
    kept = outcome.corpus.num_documents - removed
    return {"threshold": threshold, "kept": kept, "removed": removed, "removed_exact": exact}


def _examples(
    tasks: list[Task],
    method: Method,
    outcome: Outcome,
    scratch: Scratch,
    threshold: float,
    until: float,
    *,
    is_below: bool,
) -> list[SweepExample]:
    """Return removals of a run that the next threshold would keep: three, from the least similar to the most.

    The most similar one is a near miss of the next threshold; of a run below the first threshold, the only one.
    """
    removals = outcome.removals
    similarity = removals.measured[SIMILARITY.name]
    near = np.flatnonzero(~removals.measured.exact & (similarity < until))
    near = near[np.argsort(similarity[near], kind="stable")]
    if is_below:
        near = near[-1:]
    chosen = near[np.unique(np.linspace(0, len(near) - 1, _EXAMPLES).astype(np.int64))] if len(near) else near
    part = removals.take(chosen)
    return _marked(tasks, method, outcome, scratch, part, threshold, None if until == np.inf else until, is_below)


def _marked(
    tasks: list[Task],
    method: Method,
    outcome: Outcome,
    scratch: Scratch,
    removals: Removals,
    threshold: float,
    kept_at: float | None,
    is_below: bool,
) -> list[SweepExample]:
    locations = pipeline.locations(tasks, outcome.corpus, scratch)
    documents = np.union1d(removals.documents, removals.kept).astype(np.uint32)
    identities = [task.part.identity() for task in tasks]
    marker = Marker(dict(read_texts(tasks, identities, outcome.corpus.part_ends, documents)), method.settings)
    ids, kept_ids = (locations.ids(side).to_pylist() for side in (removals.documents, removals.kept))
    pairs = zip(removals.documents.tolist(), removals.kept.tolist(), strict=True)
    return [
        SweepExample(
            None if is_below else threshold, kept_at, ids[i], kept_ids[i],
            float(removals.measured[SIMILARITY.name][i]), marker.mark(*pair),
        )
        for i, pair in enumerate(pairs)
    ]  # fmt: skip
