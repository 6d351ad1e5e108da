"""Find items in files on a cluster: workers search, the driver decides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Array, Ints, Positions, arrow_of
from neardup.candidates.items import ItemTable, Matches
from neardup.documents.batch import Corpus
from neardup.engines.base import Inputs
from neardup.engines.spark import output
from neardup.engines.spark.engine import SparkEngine, put_rejected
from neardup.engines.spark.source import PART_SHIFT
from neardup.engines.spark.workers import PARTS
from neardup.formats.reading import Task
from neardup.methods.stages import batch_of
from neardup.output.job import Job
from neardup.progress import Progress
from neardup.runs.found_items import FoundItems, ItemCollection, ItemsInTexts
from neardup.runs.locations import DocumentLocations
from neardup.runs.run import Found


@dataclass
class SparkItems:
    """A search for items on a cluster. A context: after an error it deletes the documents that
    workers have copied to remote storage.

    inputs : the files of the corpus. has_begun : whether the output was found to be new.
    """

    job: Job
    inputs: Inputs
    has_begun: bool = False

    @classmethod
    def of(cls, job: Job, found: Found) -> SparkItems:
        """Return the search in files; their changes during the run are noticed."""
        tasks = [task.identified() for task in found.tasks]
        inputs = Inputs(tasks, found.method, job.run.selection, found.warnings)
        return cls(job, inputs)

    def __enter__(self) -> SparkItems:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        folder = self.job.folder
        if error is None or folder is None or folder.is_published:
            return
        if self.has_begun and folder.remote is not None:
            folder.remote.delete()

    def find(self, table: ItemTable) -> FoundItems:
        """Let workers search the corpus, and decide which items it contains."""
        job = self.job
        tasks = self.inputs.tasks
        if job.folder is not None:
            job.folder.begin(resume=False)
            self.has_begun = True
        engine = SparkEngine(job.run)
        with engine.open(self.inputs, job.stages) as (flow, _), flow.named("search"):
            rows = flow.search_items(table).toArrow()
        with job.stages.stage("decide"):
            lines = _rejected_lines(rows)
            put_rejected(job.scratch, lines)
            corpus = output.corpus_of(_parts(rows), lines, tasks)
            collection = ItemCollection(table, job.scratch)
            located = []
            for batch in _in_order(rows):
                first = int(output.numbers_of(batch.numbers("document"), corpus)[0])
                collection.add(batch.items(), first)
                located.append(batch.located(first))
            return collection.finish(tasks, corpus, _locations(located, tasks, corpus))

    def write_corpus(self, corpus: Corpus, left_out: Positions, progress: Progress) -> None:
        """Let workers write the documents of the corpus, except some. left_out : rising."""
        folder = self.job.folder
        assert folder is not None  # only a run with an output writes copies
        ends = corpus.part_ends
        removed = np.bincount(np.searchsorted(ends, left_out, "right"), minlength=len(ends))
        sizes = output.PartSizes(ends, removed.tolist())
        engine = SparkEngine(self.job.run)
        with engine.open(self.inputs, self.job.stages) as (flow, files):
            keys = output.keys_of(left_out.astype(np.int64), corpus)
            lists = output.lists_of_removed(files, keys)
            with flow.labelled("write", progress):
                output.write_kept(files, lists, sizes, folder)


class _Located(NamedTuple):
    """Documents with items: their numbers, int64, with repeats; their ids and rows."""

    documents: Ints
    ids: pa.Array
    rows: Ints


class _Batch(NamedTuple):
    """The items in a batch of documents: a table of schemas.SEARCHED of one row."""

    row: pa.RecordBatch

    def numbers(self, name: str) -> Array:
        """Return the numbers in a column: of a list, or a single one."""
        column = self.row[name]
        values: Array = (column.flatten() if pa.types.is_list(column.type) else column).to_numpy()
        return values

    def strings(self, name: str) -> pa.Array:
        """Return the strings in a column of lists."""
        return self.row[name].flatten()

    def items(self) -> ItemsInTexts:
        """Return the items that were found."""
        return ItemsInTexts(
            keys=self.numbers("keys"),
            items=self.numbers("items"),
            states=self.numbers("states"),
            matches=Matches(
                documents=self.numbers("found"),
                entries=self.numbers("entries"),
                positions=self.numbers("tokens"),
            ),
            ranges=np.column_stack([self.numbers("begins"), self.numbers("ends")]),
            excerpts=self.strings("excerpts").to_pylist(),
            num_textless=int(self.numbers("without_features")[0]),
        )

    def located(self, first: int) -> _Located:
        """Return the documents with matches. first : the number of the first document."""
        return _Located(
            documents=self.numbers("found") + first,
            ids=self.strings("ids"),
            rows=self.numbers("rows"),
        )


def _in_order(rows: pa.Table) -> Iterator[_Batch]:
    """Yield the rows of a table in the order of their documents."""
    # Not `sort_by`: the lists of a column may have more values than an array of Arrow.
    for number in np.argsort(rows["document"].to_numpy(), kind="stable").tolist():
        yield _Batch(rows.slice(number, 1).to_batches()[0])


def _rejected_lines(rows: pa.Table) -> list[str]:
    """Return the lines of rejected.jsonl, by file and row."""
    documents = rows["document"].take(pc.list_parent_indices(rows["unread"]))
    return output.in_order(
        pa.table({"document": documents, "rejected": pc.list_flatten(rows["unread"])})
    )


def _parts(rows: pa.Table) -> pa.Table:
    """Return the counts of parts, PARTS, a row for each batch."""
    return pa.Table.from_batches(
        [
            batch_of(
                PARTS,
                batch["document"].to_numpy() >> PART_SHIFT,
                batch["documents"],
                pc.list_value_length(batch["unread"]),
                batch["bytes"],
                batch["without_features"],
            )
            for batch in rows.to_batches()
        ],
        PARTS,
    )


def _locations(located: list[_Located], tasks: list[Task], corpus: Corpus) -> DocumentLocations:
    """Return the locations of the documents with matches."""
    # An empty array first, because nothing may have been found.
    documents = np.concatenate([np.empty(0, np.int64), *(each.documents for each in located)])
    rows = np.concatenate([np.empty(0, np.int64), *(each.rows for each in located)])
    # A document is listed once for each of its matches.
    known, first = np.unique(documents, return_index=True)
    ids = None
    if any(task.columns.id is not None for task in tasks):
        ids = pa.concat_arrays([pa.array([], pa.string()), *(each.ids for each in located)])
        # The documents of an input without ids are numbered.
        ids = pc.coalesce(ids.take(arrow_of(first)), arrow_of(known).cast(pa.string()))
    return DocumentLocations(
        names=[task.part.name for task in tasks],
        corpus=corpus,
        rows=rows[first],
        ids=ids,
        release=lambda: None,  # all is in memory of its own, nothing is mapped
        known=known,
    )
