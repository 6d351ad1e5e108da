"""Cut repeated passages from documents."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from neardup.arrays import Ints
from neardup.engines.base import Cleaned
from neardup.engines.capabilities import LOCAL
from neardup.engines.local.passages import find_passages
from neardup.files import JsonObject, Output
from neardup.output import write as writing
from neardup.output.job import Job, Product, Table, open_job
from neardup.output.kept import refuse_unwritable
from neardup.output.passages import examples_of, passages_table
from neardup.progress import Progress, Stages
from neardup.report.contents import (
    describe_cost,
    describe_inputs,
    describe_losses,
    roles_of,
    warn_of_textless,
)
from neardup.report.passages_html import render_passages
from neardup.report.record import PassagesReport
from neardup.results import PassageRemoval
from neardup.runs.ids import check_ids
from neardup.runs.refusals import refuse_together
from neardup.runs.run import CacheOptions, Source, Unpack, named_paths, run_of, spelled_out
from neardup.schemas import ID_HASHES
from neardup.settings.constraints import Options
from neardup.settings.passages import CutAt, PassageOutput, PassageSettings, Unit
from neardup.settings.run import Language, SelectionSettings


@spelled_out(CacheOptions, is_reported=True)
def remove_passages(
    source: Source,
    *,
    against: Source | None = None,
    min_length: int | None = None,
    unit: Unit | None = None,
    normalise: bool = False,
    fold: Sequence[str] = (),
    cut_at: CutAt = "word",
    bridge: int = 0,
    keep: Literal["first", "none"] = "first",
    min_share: float = 0.0,
    within: str | None = None,
    max_loss: float = 1.0,
    write: Literal["kept", "marked", "removed"] = "kept",
    lang: Language = "en",
    tables: bool = True,
    **options: Unpack[CacheOptions],
) -> PassageRemoval:
    """Cut the passages of documents that occurred before, in this document or an earlier one; the
    first copy stays.

    Parameters
    ----------
    source : as in `dedup`.
    against : an earlier collection, read as `source` is, which comes first and from which nothing
        is cut.
    min_length : the fewest characters of a passage, before its ends move to whole words, or of a
        unit. Default: 200, with unit 20.
    unit : cut whole paragraphs (between blank lines), lines or sentences, instead of passages that
        may begin anywhere.
    normalise : with unit, compare words as dedup does: without case, width, white space and
        punctuation. Default: compare their characters, but for white space at their ends.
    fold : with normalise, spellings to treat as one, as in `find_contamination`.
    cut_at : the places where cuts end: between characters as readers see them, words, sentences or
        lines.
    bridge : also cut the text between two passages, if it has at most this many characters. Less
        than min_length.
    keep : the copy of a passage that stays: the first one; or none, which cuts passages of at least
        min_share of the documents from all of them.
    min_share : with keep=none, the least share of the documents (with within, of equal value) that
        have a passage; at least two documents.
    within : with keep="none", a column, such as the site of a page: min_share is of its values.
    max_loss : drop a document that loses more than this share of its characters, or all of them.
    output : a folder for kept/, passages.parquet and the report.
    write : the output besides passages.parquet: the documents without the passages, in the format
        of the input (kept), all documents with each passage between ⟦ and ⟧ (marked), or nothing
        (removed).
    lang : the language of output: English, or simplified Chinese, the default of commands in a
        Chinese locale.
    tables, overwrite, scratch, resume : as in `dedup`.
    text_column, roles, id_column, text_unit, in_format, quote, max_document_bytes : as in `dedup`;
        the text must be one column.
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
    >>> notice = "We use cookies to give you the best experience on our site. Please accept them all."
    >>> texts = [notice + " Trains are late.", "Apples! " + notice]
    >>> result = neardup.remove_passages(texts, min_length=60)
    >>> result.kept["text"].to_pylist() == [notice + " Trains are late.", "Apples! "]
    True
    """  # noqa: E501
    # `PassageSettings.min_length` is an int once the settings are made; None chooses its default.
    lengths: Any = {"min_length": min_length}
    settings = PassageSettings(
        unit=unit,
        normalise=normalise,
        fold=fold,
        cut_at=cut_at,
        bridge=bridge,
        keep=keep,
        min_share=min_share,
        max_loss=max_loss,
        **lengths,
    )
    output = options.get("output")
    output_settings = PassageOutput(write=write, lang=lang)
    refuse_together(
        "remove_passages", keep=keep, within=within, against=against, output=output, write=write
    )
    run = run_of(
        "remove_passages",
        source,
        options,
        against=against,
        selection=SelectionSettings(within=within),
        copies=write != "removed" and output is not None,
        cuts=write != "removed",
    )
    LOCAL.refuse(run.command, run.options)
    paths = [*named_paths(source), *named_paths(against)]
    with open_job(run, paths) as job:
        return job.finish(_Passages.of(job, settings, output_settings, tables=tables))


@dataclass
class _Passages(Product[PassageRemoval]):
    """The product of `remove_passages`. fills_tables : its parameter `tables`."""

    job: Job
    cleaned: Cleaned
    settings: PassageSettings
    output_settings: PassageOutput
    warnings: list[str]
    fills_tables: bool

    @classmethod
    def of(
        cls, job: Job, settings: PassageSettings, output_settings: PassageOutput, *, tables: bool
    ) -> _Passages:
        """Find the passages of the inputs of a run."""
        found = job.run.find()
        # Before the search, which may take hours.
        refuse_unwritable(found.tasks, job.run.inputs)
        cleaned = find_passages(job, found, settings, marked=output_settings.write == "marked")
        hashes = job.scratch.column(ID_HASHES)
        repeated = check_ids(job.run, hashes, cleaned.corpus, cleaned.locations)
        return cls(
            job=job,
            cleaned=cleaned,
            settings=settings,
            output_settings=output_settings,
            warnings=found.warnings + repeated,
            fills_tables=tables,
        )

    def __post_init__(self) -> None:
        self.num_documents = self.cleaned.corpus.num_documents

    def tables(self) -> Sequence[Table]:
        """Return passages.parquet."""
        return [passages_table(self.cleaned.passages, self.cleaned.locations)]

    def write_documents(self, folder: Path, progress: Progress, beside: Executor) -> None:
        """Write the documents without the passages, or with marks around them."""
        if self.output_settings.write != "removed":
            writing.write_kept(
                self.cleaned.tasks,
                self.cleaned,
                folder / "kept",
                shown=None,
                progress=progress,
                threads=self.job.run.threads,
            )

    def report(self) -> PassagesReport:
        """Return the report."""
        return passages_report(
            asdict(self.settings) | {"within": self.job.run.selection.within},
            self.cleaned,
            self.job.stages,
            self.warnings,
            options=self.job.run.given,
            rejected=self.job.rejected(),
            **asdict(self.output_settings),
        )

    def pages(self, report: JsonObject, output: Output) -> dict[str, str]:
        """Return the report page, which shows the passages that repeat most text."""
        examples = examples_of(self.cleaned.passages, self.cleaned.pieces, self.cleaned.locations)
        return {"report.html": render_passages(report, examples)}

    def result(self, report: JsonObject, output: Output) -> PassageRemoval:
        """Return the result, which reads the documents again on each use."""
        corpus = self.cleaned.corpus
        edits = self.cleaned.edits.between(corpus.num_against, corpus.num_documents)
        new = [task for task in self.cleaned.tasks if not task.against]
        table = self.tables()[0].read() if self.fills_tables else None
        return PassageRemoval(table, report, output, partial(writing.kept_table, new, edits))


def passages_report(
    settings: JsonObject,
    cleaned: Cleaned,
    stages: Stages,
    warnings: list[str],
    *,
    write: str,
    lang: str,
    options: Options | None = None,
    rejected: list[JsonObject] | None = None,
) -> PassagesReport:
    """Return the report; rejected : the rows that could not be read, if it lists them."""
    tally = cleaned.corpus.tally
    lost = _lost_characters(cleaned)
    by_part = np.split(lost, cleaned.corpus.part_ends[:-1])
    columns = next((task.columns for task in cleaned.tasks if not task.against), None)
    return PassagesReport(
        options=options,
        settings=settings,
        columns={"text": columns and columns.text, "id": columns and columns.id},
        counts=_counts(cleaned, lost),
        source_bytes=tally.text_bytes - tally.against_bytes,
        inputs=describe_inputs(
            cleaned.tasks,
            cleaned.corpus,
            characters=[int(part.sum()) for part in by_part],
            role=roles_of(cleaned.tasks),
        ),
        losses=describe_losses(tally.losses, tally.documents),
        cost=describe_cost(stages, cleaned.corpus.num_documents, tally.text_bytes),
        warnings=warnings + warn_of_textless(tally.losses),
        write=write,
        lang=lang,
        rejected=rejected,
    )


def _lost_characters(cleaned: Cleaned) -> Ints:
    """Return the number of cut characters of each document, int64 (num_documents,)."""
    passages = cleaned.passages
    sizes = passages.last - passages.first
    # Weighted counts are floats, exact up to 2^53.
    lost = np.bincount(passages.documents, sizes, cleaned.corpus.num_documents).astype(np.int64)
    # A dropped document loses all of its characters.
    lost[passages.dropped] = cleaned.pieces.characters[passages.dropped]
    return lost


def _counts(cleaned: Cleaned, lost: Ints) -> dict[str, int]:
    """Return the counts of the report. lost : the number of cut characters of each document."""
    corpus = cleaned.corpus
    passages = cleaned.passages
    num_bridges = int(np.count_nonzero(passages.is_bridge))
    return {
        "read": corpus.num_documents - corpus.num_against,
        "changed": len(np.unique(passages.documents)),
        "dropped": len(passages.dropped),
        "passages": len(passages.is_bridge) - num_bridges,
        "bridges": num_bridges,
        "characters": int(lost.sum()),
        "characters_read": int(cleaned.pieces.characters[corpus.num_against :].sum()),
        "rejected": corpus.tally.losses.rejected,
        "against": corpus.num_against,
    }
