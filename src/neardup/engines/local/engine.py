"""Set up a run over a collection and decide about its documents: the common start of dedup and cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from neardup import schemas
from neardup.documents.batch_cache import BatchCache, default_cache_bytes
from neardup.engines.base import Decided, Engine, check_ids, count_by_value
from neardup.engines.local import pipeline
from neardup.engines.local.resume import prepare
from neardup.engines.local.scratch import Scratch
from neardup.methods.registry import method_of
from neardup.output.directory import OutputDirectory
from neardup.progress import Stages
from neardup.runs.run import Run


@contextmanager
def open_cache(run: Run) -> Iterator[BatchCache]:
    """Open the memory of a run for its documents; it is released at the end."""
    max_bytes = run.settings.cache_bytes
    cache = BatchCache(default_cache_bytes() if max_bytes is None else max_bytes, with_payload=run.copies)
    try:
        yield cache
    finally:
        cache.clear()


@dataclass
class LocalEngine(Engine):
    """Decides about documents in their order, after those of an earlier collection, on this machine."""

    cache: BatchCache

    def perform(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Decided:
        """Read the inputs and decide about their documents."""
        run, selection = self.run, self.run.selection
        if selection.audit_sample:
            method_of(run.method).refuse_audit(selection.audit_sample)
        found = run.find()
        tasks, method, warnings = found.tasks, found.method.resolve(), found.warnings
        if run.all_pairs:
            selection = method.in_all_pairs(selection)
        tasks = [task.identified() for task in tasks]
        if self.cache.may_fit(sum(task.identity[1] for task in tasks if task.identity)):
            tasks = [task._replace(cache=self.cache) for task in tasks]
        resuming = prepare(scratch, tasks, method, selection, run.resume)
        if folder is not None:
            folder.begin(resume=resuming)
        outcome = pipeline.run_pipeline(
            tasks, method, selection, run.settings, scratch, stages, resume=resuming, all_pairs=run.all_pairs
        )
        locations = pipeline.locations(tasks, outcome.corpus, scratch)
        warnings += check_ids(run, scratch.column(schemas.ID_HASHES), outcome.corpus, locations)
        by_value = count_by_value(run, outcome, scratch.column(schemas.VALUES))
        return Decided(tasks, method, outcome, locations, warnings, by_value)
