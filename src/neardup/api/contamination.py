"""Find the items of benchmarks in a corpus."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from neardup.api.index_sources import open_documents
from neardup.candidates.items import ItemTable, build_items
from neardup.documents.turns import role_columns
from neardup.engines.capabilities import LOCAL, SPARK
from neardup.engines.choose import is_spark
from neardup.engines.local.contamination import find_items
from neardup.errors import ColumnError, SettingError
from neardup.files import JsonObject, Output
from neardup.formats.tables import TablePart, rereadable
from neardup.output.contamination import ItemTables
from neardup.output.job import Job, Product, Table, open_job
from neardup.progress import Progress
from neardup.report.contamination_html import render_contamination
from neardup.report.contents import (
    describe_cost,
    describe_inputs,
    describe_losses,
    warn_of_textless,
)
from neardup.report.record import ContaminationReport
from neardup.results import Contamination
from neardup.runs.items import Items, read_items
from neardup.runs.refusals import refuse_together
from neardup.runs.run import (
    CorpusOptions,
    Found,
    Inputs,
    Run,
    Source,
    Unpack,
    named_paths,
    run_of,
    spelled_out,
)
from neardup.settings.constraints import ColumnNames, check_columns
from neardup.settings.contamination import ContaminationOutput, ContaminationSettings
from neardup.settings.methods import MinHash
from neardup.settings.run import Language

if TYPE_CHECKING:
    from neardup.engines.spark.contamination import SparkItems


@spelled_out(CorpusOptions, is_reported=True)
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
    fold: Sequence[str] = (),
    markup: bool = True,
    answers: bool = True,
    structure: bool = False,
    max_documents: int = 100,
    write: Literal["none", "items", "corpus"] = "none",
    lang: Language = "en",
    tables: bool = True,
    **options: Unpack[CorpusOptions],
) -> Contamination:
    """Find which items of benchmarks are in the documents of a corpus, and where.

    Parameters
    ----------
    items : the test items, read as the source of `dedup`.
    corpus : the documents, as the source of `dedup`; read once. Or an index with storage="text", or
        its address. Default: the inputs themselves, such as the splits of a DatasetDict, each
        searched for the items of the others.
    item_columns : the columns of an item; a list, each perhaps with its weight, as in "answer:0.5".
        Default: the first of question, problem, prompt, query, instruction, input, text, content
        and sentence; and choices, options, answer, answers, solution, solutions, target, output,
        canonical_solution and code.
    item_id_column : the id column of the items. Default: as of a corpus.
    benchmark_column : the column of the benchmark. Default: the name of the input.
    threshold : the minimum containment: the share of an item's shingles in a stretch of a document.
    ngram : words in a shingle of an item; of an item in Chinese, Japanese or Thai, 2N - 1
        characters.
    min_shingles : the fewest shingles that show an item, half of them rare; a shorter item must be
        whole.
    common : the most documents that may have a sequence of eight words of an item, and the most
        items that may have a shingle. Beyond that it is boilerplate, which is listed and does not
        count.
    fold : spellings to treat as one in items and documents: one or several of chinese, arabic,
        hebrew, greek, turkish, vietnamese, german and hyphens.
    markup : fold markup of items and documents: decode HTML entities, and compare formulas in LaTeX
        with rendered ones.
    answers : find long answers alone: enough of an answer, 20 rare shingles or more, shows an item
        without its question.
    structure : find code with other names: compare the kinds of its tokens, too, so that names,
        numbers and strings are each alike.
    max_documents : the most documents to list for one item, the best first; among documents with at
        least 0.95 of a long item, the first. All are counted.
    output : a folder for hits.parquet, items.parquet, boilerplate.parquet and the report.
    write : the clean copies to write: the items that were not found (items), the documents of the
        corpus without items (corpus), or none. Both are in kept/.
    lang : the language of output: English, or simplified Chinese, the default of commands in a
        Chinese locale.
    tables, overwrite, scratch, resume, engine, master : as in `dedup`.
    text_column, roles, id_column, text_unit, in_format, quote, max_document_bytes : of the corpus,
        as in `dedup`. text_unit, quote and roles also apply to the items.
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
    >>> page = f"Quiz night. Question 3: {item} Mercury!"
    >>> found = neardup.find_contamination([item], [page, "Nothing of it here."])
    >>> found.hits.select(["item_id", "document_id", "start", "end", "rule"]).to_pylist()
    [{'item_id': '0', 'document_id': '0', 'start': 24, 'end': 91, 'rule': 'perfect'}]
    """
    settings = ContaminationSettings(
        threshold=threshold,
        ngram=ngram,
        min_shingles=min_shingles,
        common=common,
        fold=fold,
        markup=markup,
        answers=answers,
        structure=structure,
        max_documents=max_documents,
    )
    refuse_together("find_contamination", output=options.get("output"), write=write)
    is_between = corpus is None
    items = rereadable(items)  # read for their columns, and for their texts
    with open_documents(corpus, "corpus") as documents:
        run = run_of(
            "find_contamination",
            items if is_between else documents,
            options,
            method=MinHash(ngram=ngram, fold=settings.fold),
        )
        on_spark = _uses_spark(run, documents)
        with open_job(run, [*named_paths(items), *_paths_of(documents)]) as job:
            with job.stages.stage("items"):
                test_items = _read_items(run, items, item_columns, item_id_column, benchmark_column)
                parts = _find_corpus(run, test_items, between=is_between)
                table = _table_of(test_items, parts, settings)
            with _workers(job, parts, on_spark=on_spark) as workers:
                return job.finish(
                    _ContaminationProduct(
                        job=job,
                        item_tables=_search(
                            job, test_items, parts, table, workers, between=is_between
                        ),
                        output_settings=ContaminationOutput(write=write, lang=lang),
                        workers=workers,
                        fills_tables=tables,
                    )
                )


def _uses_spark(run: Run, documents: Source) -> bool:
    """Return whether the engine is Spark. Raise SettingError if it does not take the options of a
    run, or this corpus.
    """
    uses_spark = is_spark(run)
    corpus = "an index" if _is_index(documents) else "a collection"
    (SPARK if uses_spark else LOCAL).refuse(run.command, run.options | {"corpus": corpus})
    return uses_spark


def _paths_of(documents: Source) -> list[str]:
    """Return the paths of a corpus; an index is a table with its address as the name."""
    return [documents.name] if _is_index(documents) else named_paths(documents)


def _is_index(documents: Source) -> bool:
    """Return whether a corpus is an index, as `open_documents` returns it."""
    return isinstance(documents, TablePart) and documents.format == "index"


def _read_items(
    run: Run,
    source: Source,
    columns: ColumnNames,
    id_column: str | None,
    benchmark_column: str | None,
) -> Items:
    """Return the items of a run; columns : the columns of an item."""
    items = read_items(
        Inputs(
            source,
            roles=run.inputs.roles,
            id_column=id_column,
            text_unit=run.inputs.text_unit,
            quote=run.inputs.quote,
        ),
        columns,
        benchmark_column,
        run.settings.on_error,
        run.settings.max_unreadable,
    )
    run.refuse_replacing(items.tasks)
    return items


def _named(inputs: Inputs) -> list[str]:
    """Return the columns of the text that the user named."""
    return [] if inputs.text_column is None else check_columns(inputs.text_column)


def _find_corpus(run: Run, items: Items, *, between: bool) -> Found:
    """Return the parts of the corpus; between : whether they are the inputs of the items.

    The text of a document is the text column of the run, or the usual columns of texts. If the
    corpus has neither, or is the items, the text is all columns of an item.

    Raises
    ------
    SettingError
        If there is one input, which has no other to be searched in.
    """
    if between and len(items.tasks) == 1:
        name = items.tasks[0].part.name
        raise SettingError(
            f"Nothing to search: got one input, {name}. Pass corpus (--corpus PATH)."
        )
    text_column = run.inputs.text_column or items.text_columns or None
    run_as_items = replace(run, inputs=run.inputs._replace(text_column=text_column))
    # Items of turns may be searched in documents without any.
    if any(map(role_columns, items.columns)) and not any(map(role_columns, _named(run.inputs))):
        run = replace(run, inputs=run.inputs._replace(roles=None))
    if between:
        return run_as_items.find()
    try:
        return run.find()
    except ColumnError:
        # A corpus may have the columns of the items. If it has not, raise the first error, which
        # names the columns of the run.
        with suppress(ColumnError):
            return run_as_items.find()
        raise


def _table_of(items: Items, corpus: Found, settings: ContaminationSettings) -> ItemTable:
    """Return the shingles of items, cut as the texts of the corpus; add the warnings about the
    corpus to the items.
    """
    # If the items are the corpus, both give the same warnings.
    items.warnings += [new for new in corpus.warnings if new not in items.warnings]
    return build_items(
        *items.fields(with_structure=settings.structure),
        num_items=len(items.ids),
        settings=settings,
        shingling=corpus.settings.shingling,
    )


def _workers(
    job: Job, corpus: Found, *, on_spark: bool
) -> AbstractContextManager[SparkItems | None]:
    """Return the search on a cluster, a context; of None on this machine. Spark is imported only
    for it.
    """
    if not on_spark:
        return nullcontext()
    from neardup.engines.spark.contamination import SparkItems

    return SparkItems.of(job, corpus)


def _search(
    job: Job,
    items: Items,
    corpus: Found,
    table: ItemTable,
    workers: SparkItems | None,
    *,
    between: bool,
) -> ItemTables:
    """Search a corpus for items, and decide which it contains.

    workers : the search on a cluster; None on this machine. between : as in `_find_corpus`.
    """
    found = workers.find(table) if workers else find_items(job, corpus, table)
    with job.stages.stage("decide"):
        return ItemTables(items, table, found, between=between)


@dataclass
class _ContaminationProduct(Product[Contamination]):
    """The product of `find_contamination`.

    workers : writes the clean corpus on a cluster; None on this machine. fills_tables : whether the
    result has its tables in memory.
    """

    job: Job
    item_tables: ItemTables
    output_settings: ContaminationOutput
    workers: SparkItems | None
    fills_tables: bool

    def tables(self) -> Sequence[Table]:
        """Return hits.parquet, items.parquet and boilerplate.parquet."""
        return [
            Table(name, table.schema, table.to_batches)
            for name, table in self.item_tables.tables.items()
        ]

    def write_documents(self, folder: Path, progress: Progress, beside: Executor) -> None:
        """Write the clean copies."""
        item_tables = self.item_tables
        if self.output_settings.write == "corpus" and self.workers is not None:
            corpus = item_tables.found.corpus
            self.workers.write_corpus(corpus, item_tables.documents_with_items(), progress)
        elif self.output_settings.write != "none":
            item_tables.write_copies(
                folder / "kept",
                progress,
                self.job.run.threads,
                of_items=self.output_settings.write == "items",
            )

    def report(self) -> ContaminationReport:
        """Return the report."""
        job = self.job
        item_tables = self.item_tables
        items = item_tables.items
        corpus = item_tables.found.corpus
        tally = corpus.tally
        losses = items.losses + tally.losses
        return ContaminationReport(
            options=job.run.given,
            settings=asdict(item_tables.settings),
            columns={"items": items.columns, "text": job.run.inputs.text_column},
            counts=item_tables.counts(),
            benchmarks=item_tables.benchmarks(),
            between=item_tables.between(),
            inputs=describe_inputs(item_tables.found.tasks, corpus),
            losses=describe_losses(losses, len(items.ids) + tally.documents),
            cost=describe_cost(job.stages, corpus.num_documents, tally.text_bytes),
            warnings=items.warnings + warn_of_textless(losses),
            rejected=[row._asdict() for row in items.rejected] + job.rejected(),
            write=self.output_settings.write,
            lang=self.output_settings.lang,
        )

    def pages(self, report: JsonObject, output: Output) -> dict[str, str]:
        """Return the page of the best hits."""
        return {"report.html": render_contamination(report, self.item_tables.examples())}

    def result(self, report: JsonObject, output: Output) -> Contamination:
        """Return the result."""
        return Contamination(self.item_tables.tables if self.fills_tables else {}, report, output)
