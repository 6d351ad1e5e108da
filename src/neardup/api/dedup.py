"""Remove near-duplicates: the call that does the main job."""

from __future__ import annotations

import os

from neardup.api.incomplete import warn_if_incomplete
from neardup.api.inputs import Inputs, Source
from neardup.api.runs import Run, decide, workspace
from neardup.documents.reading import MAX_DOCUMENT_BYTES
from neardup.output import write
from neardup.output.directory import OutputDirectory
from neardup.output.report import build_report
from neardup.output.report_html import render_report
from neardup.output.report_items import Example
from neardup.output.tables import pair_batches, removed_batches
from neardup.progress import Nobody, Stages, Watcher
from neardup.results import Deduplication
from neardup.schemas import pairs_schema, removed_schema
from neardup.settings.methods import Method
from neardup.settings.presets import method_named
from neardup.settings.running import Running, Sieve


def dedup(
    source: Source,
    *,
    method: Method | str = "minhash",
    against: Source | None = None,
    output: str | os.PathLike[str] | None = None,
    keep: str = "first",
    clusters: str = "sieve",
    max_bucket: int | None = None,
    audit: int = 0,
    text_column: str | None = None,
    id_column: str | None = None,
    text_unit: str = "auto",
    in_format: str | None = None,
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
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
    method : how texts are compared, and from when two are duplicates; or the name of such settings: minhash, simhash,
        structure, content, page.
    against : an earlier collection, read the same way. Its documents are never removed, and come before all others.
    output : a folder to write kept/, removed.parquet, rejected.jsonl, report.json and report.html to; None to only
        return the result.
    keep : which document of several alike stays: first, last, longest, shortest, max:COLUMN or min:COLUMN.
    clusters : sieve, or connected for chains of resemblances.
    max_bucket : documents that one bucket lists at most, its earliest; default: by the method.
    audit : documents to compare with all others exactly, to measure the recall.
    text_column, id_column : columns; guessed when obvious.
    text_unit : for text files, whether a document is a line or a file; auto: lines when one file is named.
    in_format : the format of all inputs, whatever their names; default: by suffix, of standard input by its beginning.
    max_document_bytes : longer documents are rejected.
    overwrite : replace the output folder, if it exists, once the new result is whole.
    resume : go on where an interrupted run with the same inputs, settings and output stopped.
    threads : worker threads; default: all processors of this process.
    batch_rows : documents worked on at once; default: by their size. Changes no answer.
    on_error : reject documents that cannot be read, with an IncompleteWarning if a file cannot be read to its end; skip
        both; or stop at the first.
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
    result = run_dedup(
        Inputs(source, against, text_column, id_column, text_unit, in_format, max_document_bytes),
        method_named(method),
        Sieve(keep=keep, clusters=clusters, max_bucket=max_bucket, audit=audit),
        Running(threads=threads, batch_rows=batch_rows, on_error=on_error),
        None if output is None else OutputDirectory(output, overwrite=overwrite, resume=resume),
        resume=resume,
        watcher=watcher,
        with_tables=True,
    )
    warn_if_incomplete(result.summary, on_error)
    return result


def run_dedup(
    inputs: Inputs,
    method: Method,
    sieve: Sieve,
    running: Running,
    folder: OutputDirectory | None,
    *,
    resume: bool,
    watcher: Watcher | None,
    with_tables: bool,
) -> Deduplication:
    """Do what `dedup` does; without tables `removed` and `pairs` stay empty, as they may not fit into memory."""
    stages = Stages(watcher or Nobody())
    with workspace(folder) as scratch:
        run = decide(
            inputs, method, sieve, running, folder, scratch, stages, resume=resume, table="removed.parquet"
        )  # fmt: skip
        if folder is not None:
            shown = _write(folder, run, stages)
        report = build_report("dedup", run.tasks, run.method, sieve, run.outcome, stages, run.warnings)
        if folder is not None:
            write.write_report(report, render_report(report, shown), folder.result)
        measures = run.method.measures
        removed = removed_batches(run.outcome.removals, run.places, measures) if with_tables else ()
        pairs = pair_batches(run.outcome.pairs, run.places, measures) if with_tables else ()
        tables = write.to_table(removed, removed_schema(measures)), write.to_table(pairs, pairs_schema(measures))
        if folder is not None:
            folder.finish()
    tasks, kept = run.tasks, run.outcome.kept
    return Deduplication(
        *tables, report, None if folder is None else folder.path, lambda: write.kept_table(tasks, kept)
    )


def _write(folder: OutputDirectory, run: Run, stages: Stages) -> list[Example]:
    """Write everything but the reports; return the removals that the page shows."""
    removals = run.outcome.removals
    shown = write.pick_examples(removals)
    with stages.stage("write", run.outcome.corpus.num_documents) as watcher:
        write.write_removed(removals, run.places, run.method.measures, folder.result / "removed.parquet")
        write.write_rejected(folder.scratch, folder.result / "rejected.jsonl")
        write.write_kept(run.tasks, run.identities, run.outcome, folder.result / "kept", shown, watcher)
    with stages.stage("report"):
        return write.examples(shown, run.places, run.method)
