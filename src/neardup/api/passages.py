"""Cut repeated passages from documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from neardup.documents.batch import BatchCache
from neardup.engines.base import Cleaned
from neardup.engines.capabilities import LOCAL
from neardup.engines.local.passages import find_passages
from neardup.files import AnyPath
from neardup.formats.reading import Task
from neardup.output import write as writing
from neardup.output.kept import refuse_cuts, try_sinks
from neardup.output.passages import examples_of, passage_batches
from neardup.progress import Stages
from neardup.report.contents import describe_cost, describe_inputs, describe_losses, roles_of, warn_if_incomplete
from neardup.report.passages_html import render_passages
from neardup.report.stages import open_stages
from neardup.results import PassageRemoval
from neardup.runs.directory import OutputDirectory
from neardup.runs.ids import check_ids
from neardup.runs.refusals import refuse_together
from neardup.runs.run import CacheOptions, Run, Source, Unpack, named_paths, run_of, spelled_out
from neardup.runs.scratch import workspace
from neardup.schemas import ID_HASHES, passages_schema
from neardup.settings.passages import CutAt, PassageOutput, PassageSettings, Unit
from neardup.settings.run import Language, SelectionSettings
from neardup.version import __version__


@spelled_out(CacheOptions, is_reported=True)
def remove_passages(
    source: Source,
    *,
    against: Source | None = None,
    min_length: int | None = None,
    unit: Unit | None = None,
    normalise: bool = False,
    cut_at: CutAt = "word",
    bridge: int = 0,
    keep: Literal["first", "none"] = "first",
    min_share: float = 0.0,
    within: str | None = None,
    max_loss: float = 1.0,
    output: AnyPath | None = None,
    write: Literal["kept", "marked", "removed"] = "kept",
    lang: Language = "en",
    overwrite: bool = False,
    resume: bool = False,
    **options: Unpack[CacheOptions],
) -> PassageRemoval:
    """Cut the passages of documents that occurred before, in this document or an earlier one; the first copy stays.

    Parameters
    ----------
    source : as in `dedup`.
    against : an earlier collection, read as `source` is. Nothing is cut from it, and it comes before all others.
    min_length : the fewest characters of a passage that is cut, counted before its ends move to whole words; or of a
        unit. Default: 200, with unit 20.
    unit : cut whole paragraphs, which are separated by blank lines, lines or sentences, instead of passages that may
        begin anywhere.
    normalise : with unit, compare words as dedup does: without case, width, white space and punctuation. Default:
        compare their characters, but for white space at their ends.
    cut_at : where cuts end: between characters as readers see them, words, sentences or lines. What is not whole stays.
    bridge : cut the text between two passages, too, if it has at most so many characters. Less than min_length.
    keep : the copy of a passage that stays: the first one; or none, which cuts the passages that at least min_share of
        the documents have from all of them.
    min_share : with keep=none, the least share of the documents (with within, of those of equal value) that have a
        passage, and two at least.
    within : with keep="none", a column, such as the site of a page.
    max_loss : drop a document that loses more than this share of its characters. With 1, only one that loses all of
        them.
    output : a folder to write kept/, passages.parquet, rejected.jsonl, report.json and report.html to. Default: None,
        which only returns the result.
    write : the output besides passages.parquet: the documents without the passages, in the format of the input (kept),
        all documents with each passage between ⟦ and ⟧ (marked), or nothing (removed).
    lang : the language of the report: English or simplified Chinese.
    overwrite, resume : as in `dedup`.
    text_column, id_column, text_unit, in_format, max_document_bytes : as in `dedup`; the text must be one column.
    threads, batch_rows, cache_bytes, on_error, max_unreadable, progress : as in `dedup`.

    Returns
    -------
    PassageRemoval

    Raises
    ------
    SettingError, InputError, ColumnError, OutputError, ResumeError
        As in `dedup`.

    Examples
    --------
    >>> import neardup
    >>> notice = "We use cookies to give you the best experience on our site. By going on you accept them all."
    >>> result = neardup.remove_passages([notice + " Trains are late.", "Apples! " + notice], min_length=60)
    >>> result.kept["text"].to_pylist()
    ['We use cookies to give you the best experience on our site. By going on you accept them all. Trains are late.', \
'Apples! ']
    """
    limits: Any = {"min_length": min_length, "bridge": bridge, "min_share": min_share, "max_loss": max_loss}
    settings = PassageSettings(unit=unit, normalise=normalise, cut_at=cut_at, keep=keep, **limits)
    wanted = PassageOutput(write=write, lang=lang)
    of_output: Any = {"output": output, "write": write, "resume": resume}
    refuse_together("remove_passages", keep=keep, within=within, against=against, **of_output)
    selection, table = SelectionSettings(within=within), "passages.parquet"
    run = run_of(
        source,
        options,
        against=against,
        selection=selection,
        resume=resume,
        copies=write != "removed",
        table=table,
        outputs=() if output is None else (output,),
    )
    LOCAL.refuse("remove_passages", run.options)
    cache = BatchCache(run.settings.cache_bytes, with_payload=run.copies)
    with open_stages(run.progress) as stages:
        found = run.find()
        _refuse_unwritable(run, found.tasks, to_files=output is not None)
        folder = None if output is None else OutputDirectory(output, overwrite=overwrite, resume=resume)
        if folder is not None:
            folder.refuse_inputs_inside([*named_paths(source), *named_paths(against)])
        with workspace(folder) as scratch:
            cleaned = find_passages(
                run, found.tasks, found.method, settings, cache, folder, scratch, stages, marked=write == "marked"
            )
            hashes = scratch.column(ID_HASHES)
            warnings = found.warnings + check_ids(run, hashes, cleaned.corpus, cleaned.locations)
            batches = list(passage_batches(cleaned.passages, cleaned.locations))
            if folder is not None:
                _write(folder, cleaned, batches, write, stages, run.threads)
            report = report_passages(asdict(settings) | {"within": within}, cleaned, stages, warnings) | asdict(wanted)
            report["options"] = run.given
            report["rejected"] = writing.read_rejected(scratch.directory)
            if folder is not None:
                examples = examples_of(cleaned.passages, cleaned.pieces, cleaned.locations)
                writing.write_report(report, render_passages(report, examples), folder.result)
                folder.finish()
    warn_if_incomplete(report, run.settings.on_error)
    first, stop = cleaned.corpus.num_against, cleaned.corpus.num_documents
    new = [task for task in cleaned.tasks if not task.against]
    read_kept = partial(writing.kept_table, new, cleaned.edits.between(first, stop))
    removed = pa.Table.from_batches(batches, passages_schema())
    return PassageRemoval(removed, report, None if folder is None else folder.path, read_kept)


def _write(
    folder: OutputDirectory, cleaned: Cleaned, batches: list[pa.RecordBatch], write: str, stages: Stages, threads: int
) -> None:
    """Write everything but the reports."""
    with stages.stage("write", cleaned.corpus.num_documents) as progress:
        writing.write_parquet(batches, passages_schema(), folder.result / "passages.parquet")
        writing.write_rejected(folder.scratch, folder.result / "rejected.jsonl")
        if write != "removed":
            writing.write_kept(cleaned.tasks, cleaned, folder.result / "kept", None, progress, threads)


def _refuse_unwritable(run: Run, tasks: Sequence[Task], *, to_files: bool) -> None:
    """Raise OutputError if the kept documents cannot be cut, or written."""
    for task in tasks if run.copies else ():
        if not task.against:
            refuse_cuts(task)
    if run.copies and to_files:
        try_sinks(tasks)


def report_passages(settings: dict[str, Any], cleaned: Cleaned, stages: Stages, warnings: list[str]) -> dict[str, Any]:
    """Return the report, as values for JSON."""
    passages, corpus, tally = cleaned.passages, cleaned.corpus, cleaned.corpus.tally
    characters = cleaned.pieces.characters
    lost = np.bincount(passages.documents, passages.last - passages.first, corpus.num_documents).astype(np.int64)
    lost[passages.dropped] = characters[passages.dropped]  # what is left of them goes, too
    by_part = [int(part.sum()) for part in np.split(lost, corpus.part_ends[:-1])]
    columns = next((task.columns for task in cleaned.tasks if not task.against), None)
    return {
        "version": __version__,
        "command": "passages",
        "settings": settings,
        "columns": {"text": columns and columns.text, "id": columns and columns.id},
        "counts": {
            "read": corpus.num_documents - corpus.num_against,
            "changed": len(np.unique(passages.documents)),
            "dropped": len(passages.dropped),
            "passages": int(np.count_nonzero(~passages.is_bridge)),
            "bridges": int(np.count_nonzero(passages.is_bridge)),
            "characters": int(lost.sum()),
            "characters_read": int(characters[corpus.num_against :].sum()),
            "rejected": tally.losses.rejected,
            "against": corpus.num_against,
        },
        "source_bytes": tally.text_bytes - tally.against_bytes,
        **describe_inputs(cleaned.tasks, corpus, characters=by_part, role=roles_of(cleaned.tasks)),
        **describe_losses(tally.losses, tally.documents),
        **describe_cost(stages, corpus.num_documents, tally.text_bytes),
        "warnings": warnings,
    }
