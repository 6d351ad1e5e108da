"""Remove near-duplicates: the call that does the main job."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from neardup.api.incomplete import warn_if_incomplete
from neardup.api.inputs import Inputs, Source
from neardup.api.runs import FilesRun, NamedMethod, Run, open_files_run, open_stages, row_mask, workspace
from neardup.documents.reading import MAX_DOCUMENT_BYTES
from neardup.errors import SettingError
from neardup.output import rows
from neardup.output import write as writing
from neardup.output.annotated import Annotations, write_annotated
from neardup.output.directory import OutputDirectory
from neardup.output.losses import warn_of_losses
from neardup.output.report import build_report
from neardup.output.report_html import render_report
from neardup.output.report_items import Example
from neardup.output.tables import pair_batches, removed_batches
from neardup.progress import Progress, Stages
from neardup.results import Deduplication
from neardup.schemas import ANNOTATIONS, ids_schema, mask_schema, pairs_schema, removed_schema
from neardup.settings.methods import MethodSettings
from neardup.settings.presets import method_named, with_preset
from neardup.settings.run import OutputSettings, RunSettings, SelectionSettings

if TYPE_CHECKING:
    from neardup.api.against_index import IndexRun


def dedup(
    source: Source,
    *,
    preset: str | None = None,
    method: MethodSettings | str | None = None,
    threshold: float | None = None,
    max_distance: int | None = None,
    against: Source | None = None,
    update: bool = False,
    output: str | os.PathLike[str] | None = None,
    write: str = "kept",
    keep: str = "first",
    within: str | None = None,
    count_by: str | None = None,
    lang: str = "en",
    linkage: str = "sieve",
    max_bucket_size: int | None = None,
    audit_sample: int = 0,
    text_column: str | Sequence[str] | None = None,
    id_column: str | None = None,
    text_unit: str = "auto",
    in_format: str | None = None,
    max_document_bytes: int = MAX_DOCUMENT_BYTES,
    tables: bool = True,
    overwrite: bool = False,
    scratch: str | os.PathLike[str] | None = None,
    resume: bool = False,
    threads: int | None = None,
    batch_rows: int | None = None,
    cache_bytes: int | None = None,
    on_error: str = "reject",
    progress: bool | Progress = False,
) -> Deduplication:
    """Remove the near-duplicates of a collection, keep one of each, and show why.

    Parameters
    ----------
    source : a path, a glob, an address (`s3://...`), or a list of them; a list of texts; or any object with Arrow's
        PyCapsule interface (pyarrow, polars, pandas, duckdb, Hugging Face Dataset), or a Hugging Face
        DatasetDict, whose splits are inputs in their order. A str is a path. A list of str is a list of paths if each
        of them exists, has a known suffix, or is a pattern or an address; otherwise it is a list of texts.
    preset : lossless removes a document if a longer kept one contains at least 0.95 of its shingles; it sets method and
        keep.
    method : settings of the comparison, or their name: minhash, simhash, structure, content, page. Default: minhash, or
        the method of the index passed as `against`; another method is then an error.
    threshold, max_distance : the limit of a duplicate, instead of that of the named method: the minimum similarity, or
        the maximum number of differing bits (SimHash). If `method` is an object, set them there.
    against : an earlier collection, read as `source` is. Its documents are never removed, and come before all others.
        Or an Index, or its address: documents are decided one after the other, as by `Index.add_if_new`; unless it is
        updated, their ids do not matter. `pairs` then contains the pairs that removed a document.
    update : whether to add the documents to the index once the output is complete. They need ids: one that the index
        has already, with the same text, gets its earlier answer, so that a run that is repeated has the same output.
    output : a folder to write kept/, removed.parquet, rejected.jsonl, report.json and report.html to; or its address on
        remote storage (`s3://...`): the files are written to `scratch` and copied there at the end, report.json last.
        Default: None, which only returns the result.
    write : the contents of the folder instead of kept/: kept, the kept documents; mask, mask.parquet, a row for each
        input row; ids, ids.parquet with the ids of the kept documents; annotated, annotated/ with all documents and
        the columns duplicate_of, similarity and cluster; removed, nothing.
    keep : the document of a cluster that is kept: first, last, longest, shortest, max:COLUMN, min:COLUMN, or source for
        the order of the inputs; or several, such as "max:date,longest", where each decides the ties of those before it.
    within : a column; only documents with the same value in it are compared, such as those of one language or site.
    count_by : a column; the report counts the removed documents for each of its values. Default: that of `within`.
    lang : the language of report.html: en, or zh for simplified Chinese.
    linkage : sieve, which removes documents similar to a kept one; or connected, for chains of similar documents.
    max_bucket_size : the maximum number of documents in one bucket, the earliest ones. Default: by the method.
    audit_sample : the number of documents to compare exactly with all others, to measure the recall.
    text_column, id_column : names of columns. Default: the first of text, content, body, raw_content and html; of id,
        doc_id, document_id, _id and url. The texts of several columns, such as ["title", "body"], are joined by line
        ends. If `against` has none of the named columns, its default is used.
    text_unit : whether a document of a text file is a line or the whole file. auto: a line if the input is a single
        file.
    in_format : the format of all inputs. Default: detected from the suffix, or from the first bytes of standard input.
    max_document_bytes : longer documents are rejected.
    tables : fill `removed` and `pairs` of the result. Use False with `output` if they do not fit into memory; accessing
        them then raises SettingError.
    overwrite : replace the output folder, if it exists, once the new result is complete. Remote storage is never
        overwritten.
    scratch : an existing folder for temporary files; use a fast local disk. Default: next to the output, or the
        temporary folder of the system. Resuming an interrupted run needs the same folder.
    resume : continue an interrupted run with the same inputs, settings and output.
    threads : worker threads. Default: one per processor available to this process.
    batch_rows : documents per batch. Default: chosen from their size. It does not change the result.
    cache_bytes : memory for caching the input documents, in bytes; inputs that do not fit are read and decoded again
        when needed. Default: a quarter of the memory.
    on_error : reject documents that cannot be read, and warn with IncompleteWarning if a file cannot be read to its
        end; skip both without a warning; or stop at the first.
    progress : True for progress bars on stderr (plain lines if it is no terminal), or an object with the methods of
        neardup.Progress.

    Returns
    -------
    Deduplication

    Raises
    ------
    SettingError
        If a value is outside its limits, or does not apply to the method.
    InputError, ColumnError
        If an input cannot be read, or has no such column.
    OutputError
        If the output exists, or cannot be written.
    MissingExtraError
        If remote storage needs a package that is not installed.
    ResumeError
        If the interrupted run had other inputs or settings.

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
    method, threshold, keep = with_preset(preset, method, threshold, keep)
    selection = SelectionSettings(
        keep=keep, within=within, linkage=linkage, max_bucket_size=max_bucket_size, audit_sample=audit_sample
    )
    wanted = _wanted(OutputSettings(write=write, count_by=count_by, lang=lang), output, scratch)
    run_settings = RunSettings(threads=threads, batch_rows=batch_rows, cache_bytes=cache_bytes, on_error=on_error)
    inputs = Inputs(source, None, text_column, id_column, text_unit, in_format, max_document_bytes)
    inputs = inputs._replace(reserved=ANNOTATIONS if wanted == "annotated" else (), count_by=count_by)
    chosen = NamedMethod(method, threshold, max_distance)
    copies = output is not None and wanted in ("kept", "annotated")
    with _decider(
        inputs, against, chosen, selection, run_settings, update=update, resume=resume, copies=copies
    ) as decider:
        folder = (
            None if output is None else OutputDirectory(output, overwrite=overwrite, resume=resume, scratch=scratch)
        )
        with (
            open_stages(progress) as stages,
            workspace(folder, can_resume=decider.can_resume, scratch_folder=scratch) as files,
        ):
            run = decider.decide(folder, files, stages)
            shown = None if folder is None else _write(folder, run, wanted, stages)
            warnings = [*run.warnings, *warn_of_losses(run.tasks, run.outcome, run.by_value)]
            report = build_report("dedup", run.tasks, run.method, selection, run.outcome, stages, warnings)
            report |= {"write": wanted, "by_value": run.by_value, "lang": lang}
            decider.complete(report)
            if folder is not None and shown is not None:
                writing.write_report(report, render_report(report, shown), folder.result)
            removed, pairs = _tables(run) if tables else (None, None)
            mask = row_mask(run)
            if folder is not None:
                folder.publish()
            decider.commit(report, folder)
            files.close()
            if folder is not None:
                folder.clear()
    warn_if_incomplete(report, on_error)
    tasks, kept = [task for task in run.tasks if not task.against], run.outcome.kept[run.outcome.corpus.num_against :]
    path = None if folder is None else folder.path
    return Deduplication(removed, pairs, mask, report, path, lambda: writing.kept_table(tasks, kept), source)


def _wanted(
    settings: OutputSettings, output: str | os.PathLike[str] | None, scratch: str | os.PathLike[str] | None
) -> str:
    """Return the `write` of the settings. Raise SettingError if it needs an output, or if scratch is no folder."""
    if scratch is not None and not (isinstance(scratch, (str, os.PathLike)) and os.path.isdir(scratch)):
        raise SettingError(
            f"scratch must be an existing folder: got {scratch!s:.200}. Create it, or change scratch (--scratch)."
        )
    if settings.write != "kept" and output is None:
        raise SettingError(
            f"write sets the contents of an output folder: got write={settings.write!r} without one. Pass output, or "
            "use the mask of the result."
        )
    return settings.write


def _decider(
    inputs: Inputs,
    against: Any,
    chosen: NamedMethod,
    selection: SelectionSettings,
    run_settings: RunSettings,
    *,
    update: bool,
    resume: bool,
    copies: bool,
) -> AbstractContextManager[FilesRun | IndexRun]:
    """Return the decider: a local run, or a run on top of an index."""
    if against is not None:
        from neardup.api import against_index  # loads the stores

        index = against_index.index_in(against)
        if index is not None:
            against_index.refuse_selection(selection, inputs.count_by)
            return against_index.open_index_run(
                index, chosen, inputs, selection, run_settings, update=update, resume=resume
            )
    if update:
        raise SettingError(
            "update adds the documents to an index as against: got update=True without one. Name an index as against "
            "(--against INDEX), or leave update (--update) out."
        )
    method, threshold, max_distance = chosen
    settings = method_named("minhash" if method is None else method, threshold, max_distance)
    inputs = inputs._replace(against=against)
    return open_files_run(inputs, settings, selection, run_settings, resume=resume, copies=copies)


def _tables(run: Run) -> tuple[pa.Table, pa.Table]:
    """Return the removed documents and the pairs."""
    measures = run.method.measures
    removed = removed_batches(run.outcome.removals, run.locations, measures)
    pairs = pair_batches(run.outcome.pairs, run.locations, measures)
    return writing.to_table(removed, removed_schema(measures)), writing.to_table(pairs, pairs_schema(measures))


def _write(folder: OutputDirectory, run: Run, wanted: str, stages: Stages) -> list[Example]:
    """Write everything but the reports; return the removals that the page shows."""
    removals, result = run.outcome.removals, folder.result
    shown = writing.pick_examples(removals, run.method.strength(removals.measured))
    with stages.stage("write", run.outcome.corpus.num_documents) as progress:
        batches = removed_batches(removals, run.locations, run.method.measures)
        writing.write_parquet(batches, removed_schema(run.method.measures), result / "removed.parquet")
        writing.write_rejected(folder.scratch, result / "rejected.jsonl")
        if wanted == "kept":
            writing.write_kept(run.tasks, run.identities, run.outcome, result / "kept", shown, progress)
        else:
            ends = run.outcome.corpus.part_ends
            shown.texts.update(writing.read_texts(run.tasks, run.identities, ends, shown.documents))
        if wanted == "mask":
            masks = rows.mask_batches(run.tasks, run.outcome, run.locations)
            writing.write_parquet(masks, mask_schema(), result / "mask.parquet")
        elif wanted == "annotated":
            new = [task for task in run.tasks if not task.against]
            columns = Annotations(removals, run.locations, run.method.measures)
            write_annotated(new, columns, run.outcome.corpus.num_against, result / "annotated", progress)
        elif wanted == "ids":
            writing.write_parquet(rows.id_batches(run.outcome, run.locations), ids_schema(), result / "ids.parquet")
    with stages.stage("report"):
        return writing.examples(shown, run.locations, run.method)
