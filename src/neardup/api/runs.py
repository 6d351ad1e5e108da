"""Set up a run over a collection and decide about its documents: the common start of dedup and cluster."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import schemas
from neardup.api.inputs import Inputs, for_pages, named_paths, tasks_of
from neardup.api.progress_lines import StageLines
from neardup.decide.outcome import Outcome
from neardup.documents.batch_cache import BatchCache, default_cache_bytes
from neardup.documents.corpus import Corpus
from neardup.documents.reading import Task
from neardup.engines.local import pipeline
from neardup.engines.local.duplicate_ids import find_repeated_id
from neardup.engines.local.resume import prepare
from neardup.engines.local.scratch import Scratch
from neardup.errors import InputError, NeardupError, OutputError, SettingError
from neardup.methods.base import Method
from neardup.methods.registry import method_of
from neardup.output.directory import OutputDirectory
from neardup.output.losses import removed_by_value
from neardup.output.rows import row_masks
from neardup.output.tables import DocumentLocations
from neardup.progress import Progress, Stages
from neardup.settings.methods import MethodSettings
from neardup.settings.run import RunSettings, SelectionSettings


class Run(NamedTuple):
    """The inputs, method and outcome of a run.

    identities : what the inputs were when they were read. method : with the table of document frequencies it names.
    warnings : what the user should know of the inputs. by_value : the removals for each value of a column, if counted.
    """

    tasks: list[Task]
    identities: list[tuple[str, int, float]]
    method: Method
    outcome: Outcome
    locations: DocumentLocations
    warnings: list[str]
    by_value: dict[str, Any] | None = None


class NamedMethod(NamedTuple):
    """The method that a user named as in `dedup`; or nothing."""

    method: MethodSettings | str | None = None
    threshold: float | None = None
    max_distance: int | None = None


@contextmanager
def open_stages(progress: bool | Progress) -> Iterator[Stages]:
    """Open the stages of a run that reports to `progress`; True draws bars on stderr, or lines if it is no terminal.

    Raises
    ------
    SettingError
        If it is neither True or False nor has the methods of Progress.
    """
    if isinstance(progress, bool):
        if not progress:
            yield Stages()
            return
        from rich.console import Console

        from neardup.api.progress_bars import StageBars

        console = Console(stderr=True)
        if not (console.is_terminal or console.is_jupyter):
            yield Stages(StageLines())
            return
        with StageBars(console) as bars:
            yield Stages(bars)
        return
    if not all(callable(getattr(progress, name, None)) for name in ("begin", "advance", "end")):
        raise SettingError(
            "progress must be True, False or an object with the methods begin, advance and end: got "
            f"{progress!r:.80}. Use True for progress bars on stderr; neardup.Progress documents the methods."
        )
    yield Stages(progress)


@contextmanager
def workspace(
    folder: OutputDirectory | None, scratch_folder: str | os.PathLike[str] | None = None, *, can_resume: bool = True
) -> Iterator[Scratch]:
    """Open the scratch files of a run, in the output folder or a temporary one.

    can_resume : whether the scratch files of an interrupted run are of use.
    scratch_folder : where the temporary one is. Default: that of the system.

    Raises
    ------
    OutputError
        If the folder cannot be written to; what is left then can be resumed.
    """
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="neardup-", dir=scratch_folder) as path, Scratch(Path(path)) as scratch:
            yield scratch
        return
    try:
        with Scratch(folder.scratch) as scratch:
            yield scratch
    except BaseException as error:
        folder.discard_result()
        if not can_resume:
            folder.discard()
        if isinstance(error, NeardupError):
            if not folder.can_resume:
                folder.discard()
        elif isinstance(error, OSError):
            raise OutputError(_cannot_write(folder, error)) from error
        raise
    finally:
        folder.unlock()


@contextmanager
def open_cache(run_settings: RunSettings, *, with_payload: bool) -> Iterator[BatchCache]:
    """Open the memory of a run for its documents; it is released at the end.

    with_payload : whether the run copies documents.
    """
    max_bytes = default_cache_bytes() if run_settings.cache_bytes is None else run_settings.cache_bytes
    cache = BatchCache(max_bytes, with_payload=with_payload)
    try:
        yield cache
    finally:
        cache.clear()


def decide(
    inputs: Inputs,
    settings: MethodSettings,
    selection: SelectionSettings,
    run_settings: RunSettings,
    folder: OutputDirectory | None,
    scratch: Scratch,
    stages: Stages,
    cache: BatchCache,
    *,
    resume: bool,
    table: str,
) -> Run:
    """Read the inputs and decide about their documents; table : the file that has source_file and row of each."""
    refuse_resume(folder, resume=resume)
    if selection.audit_sample:
        method_of(settings).refuse_audit(selection.audit_sample)
    if selection.within is not None and not method_of(settings).confirms_sets:
        raise SettingError(
            f"within needs a method that compares the features of documents: got within={selection.within!r} with "
            "confirm='hamming'. Use confirm='jaccard' (--confirm jaccard), or method='minhash' (--method minhash)."
        )
    if folder is not None:
        folder.refuse_inputs_inside(named_paths(inputs.source) + named_paths(inputs.against))
    warnings: list[str] = []
    tasks = tasks_of(inputs, selection.keep, warnings, within=selection.within)
    method = method_of(for_pages(settings, tasks)).resolve()
    identities = [task.part.identity() for task in tasks]
    if cache.may_fit(sum(size for _, size, _ in identities)):
        tasks = [task._replace(cache=cache) for task in tasks]
    resuming = prepare(scratch, tasks, identities, method, selection, resume)
    if folder is not None:
        folder.begin(resume=resuming)
    outcome = pipeline.run_pipeline(tasks, method, selection, run_settings, scratch, stages, resume=resuming)
    locations = pipeline.locations(tasks, outcome.corpus, scratch)
    warnings += _check_ids(scratch, outcome.corpus, locations, inputs.id_column, table)
    by_value = None
    if (column := inputs.count_by or selection.within) is not None:
        by_value = removed_by_value(outcome, scratch.column(schemas.VALUES), column)
    return Run(tasks, identities, method, outcome, locations, warnings, by_value)


def refuse_resume(folder: OutputDirectory | None, *, resume: bool) -> None:
    """Raise SettingError if there is no output whose run can be resumed."""
    if resume and folder is None:
        raise SettingError("resume continues the run of an output folder: got resume=True without output. Pass output.")


@contextmanager
def open_files_run(
    inputs: Inputs,
    settings: MethodSettings,
    selection: SelectionSettings,
    run_settings: RunSettings,
    *,
    resume: bool,
    copies: bool,
) -> Iterator[FilesRun]:
    """Open a run over collections; copies : whether the kept documents are written."""
    with open_cache(run_settings, with_payload=copies) as cache:
        yield FilesRun(inputs, settings, selection, run_settings, resume, cache)


class FilesRun(NamedTuple):
    """A run that decides about documents in their order, after those of an earlier collection."""

    inputs: Inputs
    settings: MethodSettings
    selection: SelectionSettings
    run_settings: RunSettings
    resume: bool
    cache: BatchCache
    can_resume: bool = True

    def decide(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Run:
        """Read the inputs and decide about their documents."""
        return decide(
            self.inputs, self.settings, self.selection, self.run_settings, folder, scratch, stages, self.cache,
            resume=self.resume, table="removed.parquet",
        )  # fmt: skip

    def complete(self, report: dict[str, Any]) -> None:
        """Leave the report as it is."""

    def commit(self, report: dict[str, Any], folder: OutputDirectory | None) -> None:
        """Write nothing else."""


def row_mask(run: Run) -> npt.NDArray[np.bool_]:
    """Return for each row of the source whether it is kept; a rejected row is not.

    Returns
    -------
    bool array of shape (num_rows,), the rows of the inputs one after the other.
    """
    masks = [mask for _, mask in row_masks(run.tasks, run.outcome, run.locations)]
    return np.concatenate([np.empty(0, np.bool_), *masks])


def _check_ids(
    scratch: Scratch, corpus: Corpus, locations: DocumentLocations, id_column: str | None, table: str
) -> list[str]:
    """Return a warning if ids repeat; raise InputError if the user named the column."""
    repeated = find_repeated_id(scratch, corpus, locations)
    if repeated is None:
        return []
    if id_column is not None:
        raise InputError(
            f"{repeated} Ids in the column {id_column!r} must differ. Name another id_column (--id-column), or none: "
            "documents are then identified by their row numbers."
        )
    return [f"{repeated} {table} distinguishes them by source_file and row."]


def _cannot_write(folder: OutputDirectory, error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return (
            f"The disk is full: {folder.partial} could not be extended. Nothing was written to {folder.path}. Free "
            f"some space and run again with resume=True (--resume), or delete {folder.partial}."
        )
    return (
        f"{error.strerror or error}: {error.filename or folder.partial}. Nothing was written to {folder.path}. Run "
        "again with resume=True (--resume) once this is fixed."
    )
