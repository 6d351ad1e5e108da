"""Remove near-duplicates: the call that does the main job."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path

from neardup.api.inputs import Inputs, Source, named_paths, tasks_of
from neardup.config import Method, MinHash, Running, Sieve, SimHash
from neardup.engines import local, write
from neardup.engines.count import with_table
from neardup.engines.describe import Corpus, Task
from neardup.engines.ids import find_repeated_id
from neardup.engines.report import build_report
from neardup.engines.resume import prepare
from neardup.engines.scratch import Scratch
from neardup.engines.stages import Nobody, Stages, Watcher
from neardup.engines.tell import Places, pair_batches, removed_batches
from neardup.errors import InputError, NeardupError, OutputError, SettingError
from neardup.formats import FILE_FORMATS
from neardup.output.directory import OutputDirectory
from neardup.output.report_items import Example
from neardup.results import Deduplication
from neardup.schemas import pairs_schema, removed_schema


def dedup(
    source: Source,
    *,
    method: Method = MinHash(),  # noqa: B008 - frozen
    against: Source | None = None,
    output: str | os.PathLike[str] | None = None,
    keep: str = "first",
    clusters: str = "sieve",
    max_bucket: int = 1000,
    audit: int = 0,
    text_column: str | None = None,
    id_column: str | None = None,
    text_unit: str = "auto",
    out_format: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    threads: int | None = None,
    batch_rows: int | None = None,
    on_error: str = "reject",
    watcher: Watcher | None = None,
) -> Deduplication:
    """Remove the near-duplicates of a collection, keep one of each, and say why.

    Parameters
    ----------
    source : a path, a glob, an address (`s3://...`), or a list of them; a list of texts; or anything that speaks
        Arrow's PyCapsule stream (pyarrow, polars, pandas, duckdb, Hugging Face datasets). A str is a path, and a
        list of str is a list of paths if each of them exists, has a known suffix, or is a pattern or an address, else a
        list of texts.
    method : how texts are compared, and from when two are duplicates.
    against : an earlier collection, read the same way. Its documents are never removed, and come before all others.
    output : a folder to write kept/, removed.parquet, rejected.jsonl, report.json and report.html to; None to only
        return the result.
    keep : which document of several alike stays: first, last, longest, shortest, max:COLUMN or min:COLUMN.
    clusters : sieve, or connected for chains of resemblances.
    max_bucket : kept documents that one bucket lists at most.
    audit : documents to compare with all others exactly, to measure the recall.
    text_column, id_column : columns; guessed when obvious.
    text_unit : for text files, whether a document is a line or a file; auto: lines when one file is named.
    out_format : format of the kept files; default: that of each input.
    overwrite : replace the output folder, if it exists, once the new result is whole.
    resume : go on where an interrupted run with the same inputs, settings and output stopped.
    threads : worker threads; default: all processors of this process.
    batch_rows : documents worked on at once; default: by their size. Changes no answer.
    on_error : reject a document that cannot be read, or stop.
    watcher : told of the progress.

    Returns
    -------
    Deduplication

    Raises
    ------
    NeardupError
        Of the kind that fits; see neardup.errors.

    Examples
    --------
    >>> import neardup
    >>> texts = ["the quick brown fox jumps over it", "The quick brown fox jumps over it!", "another text"]
    >>> result = neardup.dedup(texts)
    >>> result.kept["text"].to_pylist()
    ['the quick brown fox jumps over it', 'another text']
    >>> result.removed.select(["id", "kept_id", "similarity"]).to_pylist()
    [{'id': '1', 'kept_id': '0', 'similarity': 1.0}]
    """
    return run_dedup(
        Inputs(source, against, text_column, id_column, text_unit),
        method,
        Sieve(keep=keep, clusters=clusters, max_bucket=max_bucket, audit=audit),
        Running(threads=threads, batch_rows=batch_rows, on_error=on_error),
        None if output is None else OutputDirectory(output, overwrite=overwrite, resume=resume),
        out_format=out_format,
        resume=resume,
        watcher=watcher,
        with_tables=True,
    )


def run_dedup(
    inputs: Inputs,
    method: Method,
    sieve: Sieve,
    running: Running,
    folder: OutputDirectory | None,
    *,
    out_format: str | None,
    resume: bool,
    watcher: Watcher | None,
    with_tables: bool,
) -> Deduplication:
    """Do what `dedup` does; without tables `removed` and `pairs` stay empty, as they may not fit into memory."""
    stages = Stages(watcher or Nobody())
    with (
        tempfile.TemporaryDirectory(prefix="neardup-") if folder is None else _Folder(folder) as scratch_path,
        Scratch(Path(scratch_path)) as scratch,
    ):
        _refuse_audit(method, sieve)
        method = with_table(method)
        if folder is not None:
            folder.refuse_inputs_inside(named_paths(inputs.source) + named_paths(inputs.against))
            _check_format(out_format)
        tasks = tasks_of(inputs, sieve.keep)
        identities = [task.part.identity() for task in tasks]
        resuming = prepare(scratch, identities, method, sieve, resume)
        outcome = local.run(tasks, method, sieve, running, scratch, stages, resume=resuming)
        places = Places(tasks, outcome.corpus, scratch)
        warnings = _check_ids(scratch, outcome.corpus, places, inputs.id_column)
        if folder is not None:
            shown = _write(folder, tasks, identities, method, outcome, places, out_format, stages)
        report = build_report("dedup", tasks, method, sieve, outcome, stages, warnings)
        if folder is not None:
            write.write_report(report, shown, folder.result)
        measures = method.measures
        removed = removed_batches(outcome.removals, places, measures) if with_tables else ()
        pairs = pair_batches(outcome.pairs, places, measures) if with_tables else ()
        tables = write.to_table(removed, removed_schema(measures)), write.to_table(pairs, pairs_schema(measures))
        if folder is not None:
            folder.finish()
    kept = outcome.kept
    return Deduplication(
        *tables, report, None if folder is None else folder.path, lambda: write.kept_table(tasks, kept)
    )


def _refuse_audit(method: Method, sieve: Sieve) -> None:
    """Raise SettingError if an audit is asked for where there is nothing that it measures."""
    if sieve.audit and isinstance(method, SimHash):
        raise SettingError(
            f"audit measures the recall of MinHash: got audit={sieve.audit} with SimHash, whose search misses no pair "
            "within max_distance. Leave audit (--audit) at 0."
        )
    if sieve.audit and isinstance(method, MinHash) and method.similarity != "jaccard":
        raise SettingError(
            f"audit measures the recall of jaccard similarity: got audit={sieve.audit} with "
            f"similarity={method.similarity!r}. "
            "Leave audit (--audit) at 0; the run estimates its recall all the same."
        )


def _write(
    folder: OutputDirectory,
    tasks: list[Task],
    identities: list[tuple[str, int, float]],
    method: Method,
    outcome: local.Outcome,
    places: Places,
    out_format: str | None,
    stages: Stages,
) -> list[Example]:
    """Write everything but the reports; return the removals that the page shows."""
    shown = write.pick_examples(outcome.removals)
    with stages.stage("write", outcome.corpus.num_documents) as watcher:
        write.write_removed(outcome.removals, places, method.measures, folder.result / "removed.parquet")
        write.write_rejected(folder.scratch, folder.result / "rejected.jsonl")
        write.write_kept(tasks, identities, outcome, folder.result / "kept", out_format, shown, watcher)
    with stages.stage("report"):
        return write.examples(shown, places, method)


def _check_ids(scratch: Scratch, corpus: Corpus, places: Places, id_column: str | None) -> list[str]:
    """Return a warning if ids repeat; raise InputError if the user named the column."""
    repeated = find_repeated_id(scratch, corpus, places)
    if repeated is None:
        return []
    if id_column is not None:
        raise InputError(
            f"{repeated} Ids in the column {id_column!r} must differ. Name another id_column (--id-column), or none: "
            "documents are then known by their running number."
        )
    return [f"{repeated} removed.parquet tells them apart by source_file and row."]


def _check_format(out_format: str | None) -> None:
    """Raise OutputError if there is no such format, before hours of work, not after."""
    if out_format is not None and out_format not in FILE_FORMATS:
        raise OutputError(
            f"Unknown output format {out_format!r}. Known are {', '.join(FILE_FORMATS)}. Leave out_format "
            "(--out-format) unset to keep each file's own format."
        )


class _Folder:
    """Turns what goes wrong while a folder is written into an error that says what is left and what to do."""

    def __init__(self, folder: OutputDirectory) -> None:
        self.folder = folder

    def __enter__(self) -> Path:
        return self.folder.scratch

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None:
            return
        self.folder.discard_result()
        if isinstance(error, OSError) and not isinstance(error, NeardupError):
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise OutputError(
                    f"The disk is full: {self.folder.partial} could not grow. Nothing was written to "
                    f"{self.folder.path}. Free some space and run again with resume=True (--resume), or delete "
                    f"{self.folder.partial}."
                ) from error
            raise OutputError(
                f"{error.strerror or error}: {error.filename or self.folder.partial}. Nothing was written to "
                f"{self.folder.path}. Run again with resume=True (--resume) once this is mended."
            ) from error
        if isinstance(error, NeardupError) and not (self.folder.scratch / "checkpoint.json").exists():
            self.folder.discard()
