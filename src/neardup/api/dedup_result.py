"""The result of `dedup`, and what it answers later without a new run."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.arrays import Floats, Ints, Positions, arrow_of
from neardup.engines.base import Decided, count_by_value
from neardup.engines.local.pipeline import decide_again
from neardup.errors import InputError, NeardupError, SettingError
from neardup.formats.reading import Task
from neardup.methods.registry import method_of
from neardup.output import write as writing
from neardup.output.tables import pair_batches, removed_batches
from neardup.progress import Stages
from neardup.report.contents import build_report, warn_of_losses
from neardup.results import Deduplication
from neardup.runs.run import Run
from neardup.schemas import least_similar_schema, pairs_schema, removed_schema
from neardup.settings.constraints import constraints_of

_DECIDED = (
    *("settings", "method", "inputs", "removed_by_inputs", "counts", "similarities", "distances", "cluster_sizes"),
    *("bound", "removed_bytes", "warnings"),
)
"""The parts of a report that depend on the limit; the others are of the search."""


def refuse_rethreshold(run: Run) -> None:
    """Raise SettingError if the pairs of a run do not answer at other limits."""
    selection, directed = run.selection, method_of(run.method).directed
    groups = run.groups.group_by
    if selection.linkage != "sieve" or run.passages is not None or groups is not None or directed:
        raise SettingError(
            "rethreshold=True keeps pairs, which do not decide about chains, passages, groups or containment: got "
            f"keep={selection.keep!r}, linkage={selection.linkage!r}, passages={run.passages!r}, group_by={groups!r}"
            f"{', similarity=' + repr('containment') if directed else ''}. Leave rethreshold out, and run dedup again "
            "for each limit."
        )


def result_of(
    run: Run,
    decided: Decided,
    report: dict[str, Any],
    output: Path | str | None,
    *,
    tables: bool,
    source: Any,
    cut: pa.Table | None = None,
    groups: pa.Table | None = None,
) -> Deduplication:
    """Return the result of a run.

    Parameters
    ----------
    tables, source : as in `dedup`. output : the folder that is written. cut : what was cut from kept documents.
    groups : those that were decided about.
    """
    outcome, measures = decided.outcome, decided.method.measures
    removed = pairs = least = again = None
    if tables:
        removals, located = outcome.removals, decided.locations
        removed = pa.Table.from_batches(removed_batches(removals, located, measures), removed_schema(measures))
        pairs = pa.Table.from_batches(pair_batches(outcome.pairs, located.ids, measures), pairs_schema(measures))
        # The texts of an index are not read again: it may change, or be closed.
        tasks = [None if task.part.format == "index" else task for task in decided.tasks]
        sides = np.stack([removals.documents, removals.kept], axis=1)
        strength = decided.method.strength(removals.measured)
        least = partial(_least_similar, removed, strength, sides, tasks, outcome.corpus.part_ends)
    if outcome.every is not None:
        kept = decided._replace(locations=decided.locations.in_memory())
        again = partial(_rethreshold, run, kept, report, source)
    new, corpus = [task for task in decided.tasks if not task.against], outcome.corpus
    edits = outcome.edits.between(corpus.num_against, corpus.num_documents)
    read_kept = partial(writing.kept_table, new, edits)
    return Deduplication(
        removed, pairs, decided.row_mask(), report, output, read_kept, source, cut, groups, least, again
    )


def _least_similar(
    removed: pa.Table, strength: Floats, sides: Positions, tasks: list[Task | None], part_ends: Ints, count: int
) -> pa.Table:
    """Return the removals of least strength with their texts. sides : (num_removed, 2), the removed and the kept."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InputError(f"n must be a number of removals, 1 or more: got {count!r}. Change n.")
    rows = np.argsort(strength, kind="stable")[:count]
    asked, first = np.unique(sides[rows]), 0
    texts: dict[int, str] = {}
    for task, stop in zip(tasks, part_ends.tolist(), strict=True):
        with suppress(NeardupError, OSError):  # an input that is gone, or has changed, has no texts
            if task is not None:
                task.refuse_changed()
                texts.update(writing.texts_of(task, first, stop, asked, 1))
        first = stop
    columns = [pa.array([texts.get(document) for document in side], pa.string()) for side in sides[rows].T.tolist()]
    shown = removed.take(arrow_of(rows))
    return pa.table([*shown.columns, *columns], least_similar_schema(removed.schema))


def _rethreshold(
    run: Run, decided: Decided, report: dict[str, Any], source: Any, limits: dict[str, Any]
) -> Deduplication:
    """Return the result at other limits; those that are None are of the run."""
    method, given = decided.method, {name: value for name, value in limits.items() if value is not None}
    known = constraints_of(type(method.settings))
    if not given or not given.keys() <= known.keys():
        raise SettingError(
            f"rethreshold takes {' or '.join(limit for limit in limits if limit in known)} with this method: got "
            f"{limits}. Give a limit that the method has."
        )
    before, method = method.settings, replace(method, settings=replace(method.settings, **given))
    for name, value in given.items():
        least = getattr(before, name)
        if value < least if name == "threshold" else value > least:
            raise SettingError(
                f"rethreshold answers at limits as strict as that of the run, {name}={least:g}: got {name}={value!r}. "
                f"Run dedup(..., {name}={value!r}, rethreshold=True) for pairs that reach so far."
            )
    outcome = decide_again(decided.outcome, method, run.selection)
    assert outcome.every is not None
    by_value = count_by_value(run, outcome, outcome.every.values)
    warnings = [*decided.warnings, *warn_of_losses(decided.tasks, outcome, by_value)]
    new = build_report("dedup", decided.tasks, method, run.selection, outcome, Stages(), warnings)
    report = {**report, **{name: new[name] for name in _DECIDED}, "by_value": by_value}
    report["options"] = report["options"] | given
    decided_again = decided._replace(method=method, outcome=outcome)
    result = result_of(run, decided_again, report, None, tables=True, source=source)
    return replace(result, _again=partial(_rethreshold, run, decided, report, source))  # its pairs reach as far
