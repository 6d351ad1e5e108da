"""Find the items of benchmarks in a corpus."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Literal

from neardup.api.index_sources import open_documents
from neardup.candidates.items import build_items
from neardup.documents.batch import Losses
from neardup.engines.capabilities import LOCAL
from neardup.engines.local.contamination import find_items
from neardup.errors import ColumnError, SettingError
from neardup.files import AnyPath
from neardup.formats.tables import TablePart
from neardup.output import write as writing
from neardup.output.contamination import Found, ItemTables
from neardup.progress import Stages
from neardup.report.contamination_html import render_contamination
from neardup.report.contents import describe_cost, describe_inputs, describe_losses, warn_if_incomplete
from neardup.report.stages import open_stages
from neardup.results import Contamination
from neardup.runs.directory import OutputDirectory
from neardup.runs.items import Items, read_items
from neardup.runs.refusals import refuse_together
from neardup.runs.run import BatchOptions, Inputs, Run, Source, Unpack, named_paths, run_of, spelled_out
from neardup.runs.run import Found as FoundInputs
from neardup.runs.scratch import workspace
from neardup.settings.constraints import ColumnNames
from neardup.settings.contamination import ContaminationOutput, ContaminationSettings
from neardup.settings.methods import MinHash
from neardup.settings.run import Language
from neardup.version import __version__


@spelled_out(BatchOptions, is_reported=True)
def find_contamination(
    items: Source,
    corpus: Source | None = None,
    *,
    item_columns: ColumnNames = None,
    item_id_column: str | None = None,
    benchmark_column: str | None = None,
    threshold: float = 0.4,
    ngram: int = 3,
    min_shingles: int = 5,
    common: int = 10,
    max_documents: int = 100,
    output: AnyPath | None = None,
    write: Literal["none", "items", "corpus"] = "none",
    lang: Language = "en",
    overwrite: bool = False,
    resume: bool = False,
    **options: Unpack[BatchOptions],
) -> Contamination:
    """Find which items of benchmarks are in the documents of a corpus, and where.

    Parameters
    ----------
    items : the test items, as the source of `dedup`: short texts of one column or of several.
    corpus : the documents, as the source of `dedup`; read once, however many they are. Or an index with storage="text",
        or its address; its kept documents are read. Default: the items themselves; then the inputs, such as the splits
        of a DatasetDict, are searched for the items of each other.
    item_columns : the columns of an item; a list, each perhaps with its weight, as in "answer:0.5". Default: the first
        of question, problem, prompt, query, instruction, input, text, content and sentence; and choices, options,
        answer, answers, solution, target, output and canonical_solution where they exist.
    item_id_column : the id column of the items. Default: as of a corpus.
    benchmark_column : the column with the benchmark of an item. Default: the name of the input.
    threshold : the minimum containment: the share of an item's shingles in a stretch of a document.
    ngram : words in a shingle of an item; of an item in Chinese, Japanese or Thai, 2N - 1 characters.
    min_shingles : the fewest shingles that show an item, half of them rare; one with fewer must be whole.
    common : the most documents that may have a sequence of eight words of an item, and the most items that may have a
        shingle of it. What more have is boilerplate, which is listed and does not count.
    max_documents : the most documents that are listed for one item, the best first; of those that have at least 0.95 of
        a long item, the first. All are counted.
    output : a folder to write hits.parquet, items.parquet, boilerplate.parquet, report.json and report.html to.
        Default: None, which only returns the result.
    write : the clean copies to write: of the items without those that were found (items), of the corpus without the
        documents that contain items (corpus), or none. Both are in kept/.
    lang : the language of the report: English or simplified Chinese.
    overwrite, resume : as in `dedup`.
    text_column, id_column, text_unit, in_format, max_document_bytes : of the corpus, as in `dedup`.
    threads, batch_rows, on_error, max_unreadable, progress : as in `dedup`.

    Returns
    -------
    Contamination

    Raises
    ------
    SettingError, InputError, ColumnError, OutputError, ResumeError
        As in `dedup`.

    Examples
    --------
    >>> import neardup
    >>> item = "Which planet of the solar system has the shortest year of all eight?"
    >>> page = "Quiz night. Question 3: Which planet of the solar system has the shortest year of all eight? Mercury!"
    >>> found = neardup.find_contamination([item], [page, "Nothing of it here."])
    >>> found.hits.select(["item_id", "document_id", "start", "end", "rule"]).to_pylist()
    [{'item_id': '0', 'document_id': '0', 'start': 24, 'end': 91, 'rule': 'perfect'}]
    """
    settings = ContaminationSettings(
        threshold=threshold, ngram=ngram, min_shingles=min_shingles, common=common, max_documents=max_documents
    )
    wanted = ContaminationOutput(write=write, lang=lang)
    refuse_together("find_contamination", output=output, write=write, resume=resume)
    with open_documents(corpus, "corpus") as documents:
        run = run_of(
            items if corpus is None else documents,
            options,
            method=MinHash(ngram=ngram),
            resume=resume,
            outputs=() if output is None else (output,),
        )
        LOCAL.refuse("find_contamination", run.options)
        with open_stages(run.progress) as stages:
            with stages.stage("items"):
                inputs = Inputs(items, id_column=item_id_column, text_unit=run.inputs.text_unit)
                read = read_items(inputs, item_columns, benchmark_column, run.rejecter, run.settings.max_unreadable)
                run.refuse_replacing(read.tasks)
                if corpus is None and len(read.tasks) == 1:
                    raise SettingError(
                        f"Nothing to search: got one input, {read.tasks[0].part.name}. Pass corpus (--corpus PATH)."
                    )
                found = _find(run, read, between=corpus is None)
                read.warnings += [warning for warning in found.warnings if warning not in read.warnings]
                table = build_items(*read.fields(), len(read.ids), settings, found.settings.shingling)
            folder = None if output is None else OutputDirectory(output, overwrite=overwrite, resume=resume)
            if folder is not None:
                searched = [documents.name] if isinstance(documents, TablePart) else named_paths(documents)
                folder.refuse_inputs_inside([*named_paths(items), *searched])
            with workspace(folder) as scratch:
                result = find_items(run, found, table, folder, scratch, stages)
                with stages.stage("write"):
                    made = ItemTables(read, table, result, between=corpus is None)
                    rejected = [row._asdict() for row in read.rejected] + writing.read_rejected(scratch.directory)
                    if folder is not None:
                        made.write(folder, wanted.write, stages, run.threads)
                        writing.write_rejected(scratch.directory, folder.result / "rejected.jsonl")
                report = _report(run, read, settings, result, made, stages) | {"rejected": rejected, **asdict(wanted)}
                if folder is not None:
                    writing.write_report(report, render_contamination(report, made.examples()), folder.result)
                    folder.finish()
    warn_if_incomplete(report, run.settings.on_error)
    return Contamination(made.hits, made.items, made.boilerplate, report, None if folder is None else folder.path)


def _find(run: Run, items: Items, *, between: bool) -> FoundInputs:
    """Find the corpus; between : whether it is the items, whose documents are then the texts of all their columns.

    So are those of another corpus that has these columns, and none that is known as a column of texts.
    """
    text_column = run.inputs.text_column or items.text_columns or None
    as_items = replace(run, inputs=run.inputs._replace(text_column=text_column))
    try:
        return (as_items if between else run).find()
    except ColumnError:
        with suppress(ColumnError):
            return as_items.find()
        raise


def _report(
    run: Run, items: Items, settings: ContaminationSettings, found: Found, made: ItemTables, stages: Stages
) -> dict[str, Any]:
    """Return the report, as values for JSON."""
    corpus, tally = found.corpus, found.corpus.tally
    losses = Losses.of(items.rejected) + tally.losses
    return {
        "version": __version__,
        "command": "contamination",
        "options": run.given,
        "settings": asdict(settings),
        "columns": {"items": items.columns, "text": run.inputs.text_column},
        "counts": made.counts(),
        "benchmarks": made.benchmarks(),
        "between": made.between(),
        **describe_inputs(found.tasks, corpus),
        **describe_losses(losses, len(items.ids) + tally.documents),
        **describe_cost(stages, corpus.num_documents, tally.text_bytes),
        "warnings": items.warnings,
    }
