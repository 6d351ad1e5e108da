"""Write the result of a run over files: kept documents, removed.parquet, rejected.jsonl and what
the reports need.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset
import pyarrow.fs as pafs
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from neardup.arrays import Ints, Positions, arrow_of
from neardup.decide.clusters import first_members, number_ends
from neardup.decide.outcome import SHORT, Counts, Pairs, Removals, Totals, count_decisions
from neardup.documents.batch import Corpus, Losses, Rejected, Tally, ValueNames
from neardup.documents.sources import resolve
from neardup.engines.spark.pipeline import Outcome, declare
from neardup.engines.spark.session import first_line
from neardup.engines.spark.source import PART, PART_SHIFT, Files
from neardup.errors import ClusterError, OutputError
from neardup.features.grouping import hash_values
from neardup.features.vectors import texts_of
from neardup.files import AnyPath, JsonObject
from neardup.formats.reading import Task, changed
from neardup.methods.base import Method
from neardup.methods.stages import Batches, Read
from neardup.output import write
from neardup.output.kept import KeptWriter
from neardup.report.contents import describe_values, removed_by_input
from neardup.report.items import Example
from neardup.runs.directory import OutputDirectory, RemoteFolder
from neardup.runs.locations import DocumentLocations
from neardup.schemas import Measures, confirmed_schema
from neardup.verify.measured import Measured
from neardup.verify.recall import Recall, estimate_recall

_INDEX = (1 << PART_SHIFT) - 1
_EXAMPLES_AMONG, _RECALL_AMONG = 100_000, 10_000_000
"""Removed documents, and duplicate pairs, that the driver collects at most; of more, a sample."""


def summarise(outcome: Outcome, tasks: list[Task], method: Method, shared: SharedFolder) -> Totals:
    """Count what was read and decided: decisions by the rows of removed.parquet, a block at a
    time.
    """
    corpus = corpus_of(outcome.light, tasks)
    sizes = (
        outcome.removed.groupBy("left")
        .count()
        .selectExpr("`count` + 1 as size")
        .groupBy("size")
        .count()
    )
    found = outcome.found.agg(
        F.count("*").alias("pairs"), F.count_if("exact").alias("exact")
    ).first()
    assert found is not None  # an aggregate of all rows
    no_documents, no_sizes = np.empty(0, np.uint32), np.empty(0, np.int64)
    none = measured_of(confirmed_schema(method.measures).empty_table(), method.measures)
    no_pairs = Pairs(no_documents, no_documents, none)
    counts = Counts(
        removed=0,
        removed_exact=0,
        pairs=int(found["pairs"]),
        pairs_exact=int(found["exact"]),
        near=none,
        repeats=np.empty(0, np.int64),
        cluster_sizes=[list(row) for row in sizes.orderBy("size").collect()],
        by_inputs=np.empty((0, 4), np.int64),
    )
    for block in removed_blocks(corpus, tasks, method, shared):
        # A cluster may be in several blocks, so its size is not counted here.
        counts += count_decisions(block.removals, no_pairs, corpus, block.bytes_of, no_sizes)
    num_overflows = _num_overflows(outcome)
    return Totals(
        corpus=corpus,
        counts=counts,
        short=outcome.documents.filter(F.col("size") < SHORT).count(),
        compared=outcome.compared,
        num_bucket_overflows=num_overflows,
        recall=None if num_overflows else _recall(outcome.found, counts.pairs, method),
    )


def measured_of(rows: pa.Table, measures: Measures) -> Measured:
    columns = {measure.name: rows[measure.name].cast(measure.type) for measure in measures}
    return Measured({name: column.to_numpy() for name, column in columns.items()})


def _sample(frame: DataFrame, count: int, most: int, column: str) -> DataFrame:
    """Return all rows, or some `most` of them: all with the same number, or none."""
    return frame.filter(F.pmod(F.xxhash64(column), F.lit(-(-count // most) or 1)) == 0)


def _recall(found: DataFrame, count: int, method: Method) -> Recall | None:
    if method.hit_probability is None:
        return None
    near = _sample(found.filter("not exact"), count, _RECALL_AMONG, "left").select(
        "left", "right", "expected"
    )
    left, right, similarity = (column.to_numpy() for column in near.toArrow().columns)
    order = np.lexsort((left, right))  # that of a local run: sums of floats depend on it
    ends, edges = number_ends(left, right)
    clusters = first_members(len(ends), *edges)[edges[0][order]]
    return estimate_recall(similarity[order], clusters, method.hit_probability)


def corpus_of(light: DataFrame, tasks: list[Task]) -> Corpus:
    read = F.isnull("rejected")
    rows = (
        light.groupBy(F.expr(PART).alias("part"))
        .agg(
            F.count_if(read).alias("documents"),
            F.count_if(~read).alias("rejected"),
            F.sum("bytes").alias("bytes"),
            F.count_if(read & (F.col("size") == 0)).alias("without"),
        )
        .toArrow()
    )
    counts = np.zeros((3, len(tasks)), np.int64)
    counts[:, rows["part"].to_numpy()] = [
        rows[name].to_numpy() for name in ("documents", "rejected", "bytes")
    ]
    return corpus_of_counts(counts, sum(rows["without"].to_pylist()), rejected_lines(light), tasks)


def corpus_of_counts(counts: Ints, without: int, lines: list[str], tasks: list[Task]) -> Corpus:
    """Return the corpus. counts : int64 (3, num_parts), documents, rejected rows and bytes. without
    : no features.
    """
    documents, rejected, num_bytes = counts
    num_against_parts = sum(task.against for task in tasks)
    tally = Tally(
        documents=int(documents.sum()),
        losses=Losses.of(Rejected(**json.loads(line)) for line in lines),
        without_features=without,
        text_bytes=int(num_bytes.sum()),
        against_bytes=int(num_bytes[:num_against_parts].sum()),
    )
    num_against = int(documents[:num_against_parts].sum())
    return Corpus(np.cumsum(documents), rejected, num_against, tally)


def rejected_lines(light: DataFrame) -> list[str]:
    """Return the lines of rejected.jsonl, by file and row."""
    return in_order(light.filter("rejected is not null").select("document", "rejected").toArrow())


def in_order(rejected: pa.Table) -> list[str]:
    """Return the lines of rejected.jsonl, by file and row."""

    def place(number: int) -> list[int]:
        row = json.loads(lines[number])
        # That a file is lost, which has neither, comes after its rows.
        numbers = (sys.maxsize if row[name] is None else row[name] for name in ("row", "line"))
        return [documents[number], *numbers]

    lines, documents = rejected["rejected"].to_pylist(), rejected["document"].to_pylist()
    return [lines[number] for number in sorted(range(len(lines)), key=place)]


def _num_overflows(outcome: Outcome) -> int:
    """Return the number of documents behind a member that a bucket does not list, except those that
    the sieve removed.

    With linkage="connected", copies do not query, and are left out, as are those of the same
    cluster.
    """
    hidden = outcome.hidden.select("left", "right")
    if outcome.clusters is not None:
        for end in ("left", "right"):
            hidden = hidden.join(
                outcome.clusters.selectExpr(f"right as {end}", f"left as first_{end}"), end, "left"
            )
        apart = F.coalesce("first_left", "left") != F.coalesce("first_right", "right")
        return int(hidden.filter(apart).select("right").distinct().count())
    unlisted = hidden.groupBy(F.col("right").alias("first")).agg(F.min("left").alias("unlisted"))
    behind = (
        outcome.documents.filter(~F.col("against"))
        .join(unlisted, "first")
        .filter("position > unlisted")
    )
    return int(
        behind.join(
            outcome.removed.selectExpr("right as position"), "position", "left_anti"
        ).count()
    )


def count_by_value(outcome: Outcome, column: str | None) -> JsonObject | None:
    """Return the documents and removals of each value of the counted column; see
    report.losses.removed_by_value.
    """
    if column is None:
        return None
    read = (
        outcome.light.filter("rejected is null")
        .filter(~F.col("against"))
        .selectExpr("count_by", "0 as removed")
    )
    gone = outcome.removed.selectExpr("right as position").join(outcome.documents, "position")
    both = read.unionByName(gone.selectExpr("count_by", "1 as removed")).groupBy("count_by")
    counts = both.agg(
        F.count_if(F.col("removed") == 0).alias("documents"), F.sum("removed").alias("removed")
    ).toArrow()
    values, documents, removed = (
        counts[name].combine_chunks() for name in ("count_by", "documents", "removed")
    )
    names = ValueNames(hash_values(values), values)
    return describe_values(column, names.hashes, documents.to_numpy(), removed.to_numpy(), names)


class SharedFolder:
    """The folder of the temporary files that the driver and all workers share.

    address : a URI that Spark writes to.
    """

    def __init__(self, output: OutputDirectory, scratch: AnyPath | None) -> None:
        self._remote = output.remote if scratch is None else None
        self._local = output.scratch.absolute()
        # Not `as_uri`: Hadoop would take the percent signs of an encoded path for a part of the
        # name.
        self.address = f"{output.path}.partial" if self._remote else f"file://{self._local}"

    def use(self, spark: SparkSession) -> None:
        """Let Spark keep its checkpoints here. Raises ClusterError if it cannot."""
        self.delete()  # what a driver that was killed has left
        try:
            spark.sparkContext.setCheckpointDir(f"{self.address}/rounds")
        except Exception as error:  # what py4j raises has no better name
            raise ClusterError(
                f"Spark cannot write to {self.address}: {first_line(error)}. Give Spark a "
                "client of this storage, such "
                "as the package org.apache.hadoop:hadoop-aws for s3a://, or pass scratch "
                "(--scratch), a folder that "
                "the driver and all workers share. For names beyond ASCII, start Java with "
                "LC_ALL=C.UTF-8."
            ) from error

    def read(self, name: str) -> pyarrow.dataset.Dataset:
        """Return the Parquet files in a folder inside, in their order."""
        filesystem, path = pafs.LocalFileSystem(), str(self._local / name)
        if self._remote:
            filesystem, path = resolve(f"{self.address}/{name}", self._remote.options)
        found = filesystem.get_file_info(pafs.FileSelector(path))
        parts = sorted(info.path for info in found if info.path.endswith(".parquet"))
        return pyarrow.dataset.dataset(parts, filesystem=filesystem, format="parquet")

    def delete(self) -> None:
        """Delete what is on remote storage; a local folder is part of the output's temporary
        folder.
        """
        if self._remote:
            RemoteFolder(self.address + self._remote.options).delete()


def sort_removed(outcome: Outcome, shared: SharedFolder) -> None:
    """Let the workers write the rows of removed.parquet, in order."""
    located(outcome, outcome.removed).orderBy("document").write.parquet(f"{shared.address}/removed")


@dataclass(frozen=True)
class RemovedBlock:
    """Some of the removed documents, in their order. num_bytes : int64, of the text of each."""

    removals: Removals
    locations: DocumentLocations
    num_bytes: Ints

    def bytes_of(self, documents: Positions) -> Ints:
        """Return the bytes of the texts of removed documents."""
        lengths: Ints = self.num_bytes[np.searchsorted(self.removals.documents, documents)]
        return lengths


def removed_blocks(
    corpus: Corpus, tasks: list[Task], method: Method, shared: SharedFolder
) -> Iterator[RemovedBlock]:
    """Yield the removed documents, which workers have written."""
    for batch in shared.read("removed").to_batches():
        if batch.num_rows:
            yield _numbered(pa.table(batch), corpus, tasks, method)


def located(outcome: Outcome, removed: DataFrame) -> DataFrame:
    """Return removed documents with the keys, ids and rows of both."""
    right = outcome.documents.selectExpr("position as right", "document", "id", "row", "bytes")
    left = outcome.documents.selectExpr(
        "position as left", "document as kept_document", "id as kept_id", "row as kept_row"
    )
    return removed.join(right, "right").join(left, "left")


def numbers_of(keys: Ints, corpus: Corpus) -> Positions:
    """Return the running numbers of documents, by their keys; see PART_SHIFT."""
    firsts: Ints = np.append(0, corpus.part_ends)
    numbers: Positions = (firsts[keys >> PART_SHIFT] + (keys & _INDEX)).astype(np.uint32)
    return numbers


def keys_of(numbers: Ints, corpus: Corpus) -> Ints:
    """Return the keys of documents, by their running numbers; see PART_SHIFT."""
    parts = np.searchsorted(corpus.part_ends, numbers, "right")
    keys: Ints = parts << PART_SHIFT | numbers - np.append(0, corpus.part_ends)[parts]
    return keys


def _numbered(rows: pa.Table, corpus: Corpus, tasks: list[Task], method: Method) -> RemovedBlock:
    """Return removed documents under their running numbers."""
    keys = np.concatenate([rows["document"].to_numpy(), rows["kept_document"].to_numpy()])
    numbers = numbers_of(keys, corpus)
    known, at = np.unique(numbers, return_index=True)
    both = [
        pa.concat_arrays([*rows[name].chunks, *rows[f"kept_{name}"].chunks])
        for name in ("id", "row")
    ]
    ids, places = (column.take(arrow_of(at)) for column in both)
    ids = pc.coalesce(ids, arrow_of(known.astype(np.int64)).cast(pa.string()))
    names = [task.part.name for task in tasks]
    locations = DocumentLocations(
        names, corpus, places.to_numpy(), ids, lambda: None, known=known.astype(np.int64)
    )
    removed, kept = np.split(numbers, 2)
    removals = Removals(removed, kept, measured_of(rows, method.measures))
    return RemovedBlock(removals, locations, rows["bytes"].to_numpy())


def sample_removals(
    outcome: Outcome, totals: Totals, tasks: list[Task], method: Method
) -> tuple[Removals, DocumentLocations]:
    """Return removed documents among which the report shows some: all of them, or a sample."""
    some = _sample(outcome.removed, totals.counts.removed, _EXAMPLES_AMONG, "right")
    rows = located(outcome, some).orderBy("document").toArrow()
    block = _numbered(rows, totals.corpus, tasks, method)
    return block.removals, block.locations


def show_examples(
    corpus: Files, removals: Removals, locations: DocumentLocations, totals: Totals, method: Method
) -> list[Example]:
    """Return the removed documents that the report shows, with their texts, which workers read
    again.
    """
    if not totals.counts.removed:
        return []
    shown = write.pick_examples(removals, method.strength(removals.measured))
    numbers = shown.documents.astype(np.int64)
    keys = keys_of(numbers, totals.corpus)
    chosen = corpus.spark.createDataFrame(pa.table({"document": keys}))
    texts = corpus.chosen(chosen).mapInArrow(
        partial(_read_texts, read=corpus.read), "document long, text string"
    )
    for row in texts.collect():
        shown.texts[int(numbers[np.searchsorted(keys, row["document"])])] = row["text"] or ""
    return write.examples(shown, locations, method)


def _read_texts(batches: Batches, read: Read) -> Iterator[pa.RecordBatch]:
    for texts in read(batches):
        yield pa.record_batch(
            {"document": texts["document"], "text": texts_of(texts["text"]).cast(pa.string())}
        )


class Written(NamedTuple):
    """A part whose kept documents a worker has written: to `file`, if any.

    documents, rows : that were read, and that were written. bytes : of the file; None if there is
    none.
    """

    part: int
    file: str
    documents: int
    rows: int
    bytes: int | None


_WRITTEN = pa.schema(
    {
        "part": pa.int64(),
        "file": pa.string(),
        "documents": pa.int64(),
        "rows": pa.int64(),
        "bytes": pa.int64(),
    }
)


def list_removed(outcome: Outcome) -> DataFrame:
    """Return the parts of removed documents, with the places of these in the part."""
    gone = outcome.documents.join(
        outcome.removed.selectExpr("right as position"), "position", "left_semi"
    )
    index = F.array_sort(F.collect_list(F.col("document").bitwiseAND(_INDEX))).alias("removed")
    return gone.groupBy(F.expr(PART).alias("part")).agg(index)


def lists_of_removed(corpus: Files, removed: Ints) -> DataFrame:
    """Return the same. removed : int64, rising, the keys of removed documents."""
    parts, first = np.unique(removed >> PART_SHIFT, return_index=True)
    offsets = arrow_of(np.append(first, len(removed)).astype(np.int32))
    lists = pa.ListArray.from_arrays(offsets, arrow_of(removed & _INDEX))
    return corpus.spark.createDataFrame(
        pa.table({"part": parts.astype(np.int32), "removed": lists})
    )


def write_kept(corpus: Files, lists: DataFrame, totals: Totals, output: OutputDirectory) -> None:
    """Let the workers write the kept documents of each new part, in its format, and put them in
    place.

    lists : the columns part and removed. Spark may run several attempts of a task at once; the
    first to end counts. So each attempt writes files of its own, and the driver moves those that
    count. Remote storage cannot move files, but they appear whole there, and each attempt writes
    the same bytes.
    """
    attempts = output.partial.absolute() / "attempts"
    attempts.mkdir()
    remote = None if output.remote is None else output.remote.address + output.remote.options
    function = partial(write_parts, tasks=corpus.tasks, attempts=attempts, remote=remote)
    rows = (
        corpus.spread(corpus.all().join(lists, "part", "left"))
        .mapInArrow(function, declare(_WRITTEN))
        .toArrow()
    )
    place_kept([Written(**row) for row in rows.to_pylist()], corpus.tasks.value, totals, output)


def place_kept(
    written: list[Written], tasks: list[Task], totals: Totals, output: OutputDirectory
) -> None:
    """Move the files that count from `attempts` to `kept`.

    Raises
    ------
    InputError
        If an input had other documents when it was written than when they were decided about.
    OutputError
        If a file is not what a worker wrote.
    """
    sizes = np.diff(totals.corpus.part_ends, prepend=0).tolist()
    decided = {
        part: (size, size - removed)
        for part, (task, size, removed) in enumerate(
            zip(tasks, sizes, removed_by_input(totals), strict=True)
        )
        if not task.against
    }
    found = {row.part: (row.documents, row.rows) for row in written}
    if found != decided:
        raise changed(
            next(tasks[part].part.name for part in decided if found.get(part) != decided[part])
        )
    files = {
        f"kept/{tasks[row.part].part.relative_name}": row
        for row in written
        if row.bytes is not None
    }
    folder = output.partial / "attempts"
    there = (
        {
            name: (folder / row.file).stat().st_size
            for name, row in files.items()
            if (folder / row.file).exists()
        }
        if output.remote is None
        else output.remote.sizes()
    )
    for name, row in files.items():
        if there.pop(name, None) != row.bytes:
            raise OutputError(
                f"The output {output.path} has no file {name} of {row.bytes:,} bytes, as a "
                "worker wrote it. Use a "
                "folder that the driver and all workers share, or an address such as "
                "s3a://bucket/clean."
            )
        if output.remote is None:
            (output.result / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(folder / row.file, output.result / name)


def write_parts(
    batches: Batches, tasks: Broadcast[list[Task]], attempts: Path, remote: str | None
) -> Iterator[pa.RecordBatch]:
    """Write the kept documents of parts, to the folder `attempts` or an address; in a worker."""
    for batch in batches:
        written = []
        for part, removed in zip(batch["part"].to_pylist(), batch["removed"], strict=True):
            task = tasks.value[part]
            if task.against:
                continue
            gone = np.empty(0, np.int64) if removed.values is None else removed.values.to_numpy()
            if remote is None:
                if (
                    not attempts.is_dir()
                ):  # of a worker without the folder, or of an attempt that outlives the run
                    raise OutputError(
                        f"The worker {platform.node()} has no folder {attempts}. Use an "
                        "output that the driver and all "
                        "workers share, or an address such as s3a://bucket/clean."
                    )
                written.append(_write_part(part, task, gone, attempts, uuid4().hex))
                continue
            with tempfile.TemporaryDirectory(prefix="neardup-") as own:
                written.append(
                    _write_part(part, task, gone, Path(own, "kept"), task.part.relative_name)
                )
                RemoteFolder(remote).copy(Path(own))
        yield pa.RecordBatch.from_pylist([row._asdict() for row in written], _WRITTEN)


def _write_part(part: int, task: Task, removed: Ints, directory: Path, name: str) -> Written:
    documents = rows = 0
    with KeptWriter(task.part, directory, name=name) as writer:
        for batch in task.read(with_payload=True):
            mask = np.ones(len(batch.rows), np.bool_)
            low, high = np.searchsorted(removed, [documents, documents + len(mask)])
            mask[removed[low:high] - documents] = False
            documents += len(mask)
            rows += int(np.count_nonzero(mask))
            assert batch.payload is not None  # read with payload
            writer.write(batch.payload, mask)
    size = writer.path.stat().st_size if writer.path.exists() else None
    return Written(part, name, documents, rows, size)
