"""Find the items of benchmarks in a corpus."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from neardup.arrays import flatten_strings, offsets_from_lengths
from neardup.candidates.items import ItemTable, build_items
from neardup.engines.capabilities import LOCAL
from neardup.engines.local.contamination import Found, find_items
from neardup.engines.local.scratch import workspace
from neardup.errors import ColumnError, SettingError
from neardup.features.grouping import hash_strings
from neardup.output import contamination as tables_of
from neardup.output import write as writing
from neardup.output.contamination import CONTAMINATED, STATUSES
from neardup.output.directory import OutputDirectory
from neardup.progress import Stages
from neardup.report.contamination_html import render_contamination
from neardup.report.contents import MAX_INPUTS, describe_cost, describe_incomplete, warn_if_incomplete
from neardup.report.items import Example
from neardup.report.stages import open_stages
from neardup.results import Contamination
from neardup.runs.items import Items, read_items
from neardup.runs.run import BatchOptions, Inputs, Run, Source, Unpack, named_paths, run_of, spelled_out
from neardup.runs.run import Found as FoundInputs
from neardup.settings.contamination import ContaminationOutput, ContaminationSettings
from neardup.settings.methods import MinHash
from neardup.settings.run import Language
from neardup.version import __version__


@spelled_out(BatchOptions)
def find_contamination(
    items: Source,
    corpus: Source | None = None,
    *,
    item_columns: str | Sequence[str] | None = None,
    item_id_column: str | None = None,
    benchmark_column: str | None = None,
    threshold: float = 0.4,
    ngram: int = 3,
    min_shingles: int = 5,
    common: int = 10,
    max_documents: int = 100,
    output: str | os.PathLike[str] | None = None,
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
    corpus : the documents, as the source of `dedup`; read once, however many they are. Default: the items themselves;
        then the inputs, such as the splits of a DatasetDict, are searched for the items of each other.
    item_columns : the columns of an item; a list, each perhaps with its weight, as in "answer:0.5". Default: the first
        of question, problem, prompt, query, instruction, input, text, content and sentence; and choices, options,
        answer, answers, solution, target, output and canonical_solution where they exist.
    item_id_column : the column of their ids. Default: as the id_column of `dedup`.
    benchmark_column : the column with the name of an item's benchmark. Default: the name of the input.
    threshold : the minimum containment: the share of an item's shingles within one stretch of a document.
    ngram : words in a shingle; of an item in Chinese, Japanese or Thai, 2 ngram - 1 characters.
    min_shingles : the fewest shingles that show an item, half of them rare; one with fewer must be found whole.
    common : the most documents that may have a sequence of eight words of an item, and the most items that may have a
        shingle of it; what more have is boilerplate.
    max_documents : the most documents that are listed for one item.
    output : a folder to write hits.parquet, items.parquet, boilerplate.parquet, report.json and report.html to.
        Default: None, which only returns the result.
    write : besides, items: copies of the items without those that were found; or corpus: copies of the corpus without
        the documents that contain items; both in kept/. Or none.
    lang : the language of report.html: en, or zh for simplified Chinese.
    overwrite, resume : as in `dedup`.
    text_column, id_column, text_unit, in_format, max_document_bytes : of the corpus, as in `dedup`.
    threads, batch_rows, on_error, progress : as in `dedup`.

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
    if output is None and (write != "none" or resume):
        raise SettingError(
            f"write and resume need an output folder: got write={write!r}, resume={resume!r} without one. Pass output."
        )
    run = run_of(items if corpus is None else corpus, options, method=MinHash(ngram=ngram), resume=resume)
    LOCAL.refuse("find_contamination", run.options)
    with open_stages(run.progress) as stages:
        with stages.stage("items"):
            inputs = Inputs(items, id_column=item_id_column, text_unit=run.inputs.text_unit)
            read = read_items(inputs, item_columns, benchmark_column, run.rejecter)
            found = _find(run, read, between=corpus is None)
            texts, field_items, weights = read.fields()
            table = build_items(texts, field_items, weights, len(read.ids), settings, found.settings.shingling)
        folder = None if output is None else OutputDirectory(output, overwrite=overwrite, resume=resume)
        if folder is not None:
            folder.refuse_inputs_inside([*named_paths(items), *named_paths(corpus)])
        digest = int(hash_strings(*flatten_strings(pa.array([repr(read.texts)]))).sum())
        identity = asdict(settings) | {"items": digest}
        with workspace(folder) as scratch:
            result = find_items(run, found.tasks, found.method, table, identity, folder, scratch, stages)
            with stages.stage("write"):
                made = _Tables(read, table, result, between=corpus is None)
                rejected = [row._asdict() for row in read.rejected] + writing.read_rejected(scratch.directory)
                if folder is not None:
                    made.write(folder, wanted.write, stages, run.threads)
                    writing.write_rejected(scratch.directory, folder.result / "rejected.jsonl")
            report = _report(run, read, settings, result, made, stages) | {"rejected": rejected, **asdict(wanted)}
            if folder is not None:
                writing.write_report(report, render_contamination(report, made.examples(table)), folder.result)
                folder.finish()
    warn_if_incomplete(report, run.settings.on_error)
    return Contamination(made.hits, made.items, made.boilerplate, report, None if folder is None else folder.path)


def _find(run: Run, items: Items, *, between: bool) -> FoundInputs:
    """Find the corpus; between : whether it is the items, whose documents are then the texts of all their columns.

    So are those of another corpus that has these columns, and none that is known as a column of texts.
    """
    as_items = replace(run, inputs=run.inputs._replace(text_column=items.text_columns or None))
    if run.inputs.text_column is not None or not items.text_columns:
        return run.find()
    if between:
        return as_items.find()
    try:
        return run.find()
    except ColumnError:
        with suppress(ColumnError):
            return as_items.find()
        raise


class _Tables:
    """The tables of a search, and what is counted from them."""

    def __init__(self, items: Items, table: ItemTable, found: Found, *, between: bool) -> None:
        hits, further, enough = found.hits, found.further, found.enough
        if between:  # an item is not looked for in its own input
            parts = np.searchsorted(found.corpus.part_ends, hits.documents, "right")
            hits = hits.take(np.flatnonzero(parts != np.array(items.parts)[hits.items]))
            further, enough = np.zeros_like(further), enough - 1
        self._found, self._items, self._hits = found, items, hits
        counts = np.bincount(hits.items, minlength=table.num_items)
        documents = counts + further * (counts > 0)
        place = np.arange(len(hits.items)) - np.repeat(offsets_from_lengths(counts)[:-1], counts)
        listed = hits.take(np.flatnonzero(place < table.settings.max_documents))
        self._listed, self._texts = listed, tables_of.ItemTexts(items, table)
        self.hits = tables_of.hits_table(items, self._texts, listed, found.locations)
        self.items = tables_of.items_table(items, table, hits, documents, enough, found.num_documents, found.is_whole)
        self.boilerplate = tables_of.boilerplate_table(items, self._texts, table, found.num_documents, found.is_whole)

    def counts(self) -> dict[str, int]:
        """Return the numbers of items by status, of hits, and of documents that have some."""
        status = Counter(self.items["status"].to_pylist())
        documents = len(np.unique(self._hits.documents))
        return {"items": self.items.num_rows, **{name: status[name] for name in STATUSES}} | {
            "hits": len(self._hits.items),
            "documents_with_items": documents,
        }

    def benchmarks(self) -> list[dict[str, Any]]:
        """Return the numbers of items by benchmark, the most contaminated first."""
        counts: dict[str, Counter[str]] = {}
        for row in self.items.select(["benchmark", "status"]).to_pylist():
            counts.setdefault(row["benchmark"], Counter())[row["status"]] += 1
        rows = [
            {"benchmark": name, "items": found.total(), **{status: found[status] for status in STATUSES}}
            | {"rate": found[CONTAMINATED] / found.total()}
            for name, found in counts.items()
        ]
        return sorted(rows, key=lambda row: -row["rate"])

    def between(self) -> list[dict[str, Any]]:
        """Return how many items of each input are in each input of the corpus."""
        names = [task.part.name for task in self._found.tasks]
        parts = np.searchsorted(self._found.corpus.part_ends, self._hits.documents, "right").tolist()
        pairs = {
            (self._items.parts[item], part, item) for item, part in zip(self._hits.items.tolist(), parts, strict=True)
        }
        counted = Counter(pair[:2] for pair in pairs)
        return [
            {"items_of": self._items.tasks[of].part.name, "found_in": names[part], "items": count}
            for (of, part), count in counted.most_common()
        ]

    def write(self, folder: OutputDirectory, wanted: str, stages: Stages, threads: int) -> None:
        """Write the tables, and the copies without what was found."""
        for name in ("hits", "items", "boilerplate"):
            table = getattr(self, name)
            writing.write_parquet(table.to_batches(), table.schema, folder.result / f"{name}.parquet")
        if wanted == "none":
            return
        if wanted == "items":
            found = np.unique(self._hits.items)
            tasks, parts, rows = (
                self._items.tasks,
                np.array(self._items.parts)[found],
                np.array(self._items.rows)[found],
            )
        else:
            documents = np.unique(self._hits.documents)
            tasks, rows = self._found.tasks, self._found.locations.rows(documents)
            parts = np.searchsorted(self._found.corpus.part_ends, documents, "right")
        with stages.stage("copy") as progress:
            tables_of.write_without(tasks, parts, rows, folder.result / "kept", progress, threads)

    def examples(self, table: ItemTable) -> list[Example]:
        """Return the hits for the report, the best first."""
        return tables_of.examples_of(self._items, table, self._listed, self._found.excerpts, self._found.locations)


def _report(
    run: Run, items: Items, settings: ContaminationSettings, found: Found, made: _Tables, stages: Stages
) -> dict[str, Any]:
    """Return the report, as values for JSON."""
    corpus, tally = found.corpus, found.corpus.tally
    unread = [row.file for row in items.rejected if row.rest_of_file]
    ends = np.diff([0, *corpus.part_ends]).tolist()
    return {
        "version": __version__,
        "command": "contamination",
        "settings": asdict(settings),
        "columns": {"items": items.columns, "text": run.inputs.text_column},
        "counts": made.counts()
        | {"read": corpus.num_documents, "rejected": tally.rejected}
        | {"items_rejected": len(items.rejected)},
        "benchmarks": made.benchmarks(),
        "between": made.between(),
        "inputs": [
            {"name": task.part.name, "format": task.part.format, "documents": count, "rejected": rejected}
            for task, count, rejected in zip(found.tasks, ends, corpus.part_rejected.tolist(), strict=True)
        ][:MAX_INPUTS],
        "num_inputs": len(found.tasks),
        "incomplete": describe_incomplete(tally.unread_files + len(unread), [*unread, *tally.unread]),
        **describe_cost(stages, corpus.num_documents, tally.text_bytes),
        "warnings": items.warnings,
    }
