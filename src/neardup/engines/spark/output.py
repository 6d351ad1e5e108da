"""The output of a run over files on Spark: the counts of its reports, and the kept documents.

Workers write the kept documents of their parts. Of more documents than the driver can collect, they
also write the rows of removed.parquet, which the driver reads a block at a time.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
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

from neardup.arrays import Ints, Mask, Positions, arrow_of, stream_of
from neardup.decide.clusters import first_members, number_ends
from neardup.decide.outcome import SHORT, Counts, Pairs, Removals, Totals, count_decisions
from neardup.documents.batch import Corpus, DocumentBatch, Losses, Rejected, Tally, ValueNames
from neardup.documents.sources import resolve
from neardup.engines.spark.pipeline import Outcome, Search
from neardup.engines.spark.session import first_line
from neardup.engines.spark.source import PART, PART_SHIFT, Files
from neardup.engines.spark.workers import declare
from neardup.errors import ClusterError, OutputError
from neardup.features.grouping import hash_values
from neardup.features.vectors import texts_of
from neardup.files import AnyPath, JsonObject
from neardup.formats.reading import Part, Task, input_changed
from neardup.methods.base import Method
from neardup.methods.stages import Batches, Read
from neardup.output import write
from neardup.output.kept import KeptWriter
from neardup.report.contents import describe_values
from neardup.report.items import Example
from neardup.runs.directory import OutputDirectory, RemoteFolder
from neardup.runs.locations import DocumentLocations
from neardup.schemas import Measures
from neardup.verify.measured import Measured, measured_of_copies
from neardup.verify.recall import Recall, estimate_recall

_NUMBER = (1 << PART_SHIFT) - 1
"""The bits of a key that are the number of the document in its part."""
_ADDED = "added"
"""The column of the columns that are added to the documents of a part."""
# Of more rows than these, the driver collects a sample.
_MAX_EXAMPLES = 100_000  # removed documents among which the report shows some
_MAX_RECALL_PAIRS = 10_000_000  # duplicate pairs from which the recall is estimated


def summarise(
    search: Search,
    outcome: Outcome,
    corpus: Corpus,
    method: Method,
    removed: Iterable[RemovedBlock],
) -> Totals:
    """Count the pairs and decisions of a run. removed : all removed documents."""
    nothing = measured_of_copies(0, method.measures)
    counts = _count_pairs(outcome, nothing)
    no_pairs = Pairs(np.empty(0, np.uint32), np.empty(0, np.uint32), nothing)
    no_sizes = np.empty(0, np.int64)
    for block in removed:
        # A cluster may be in several blocks, so its size is not counted here.
        counts += count_decisions(block.removals, no_pairs, corpus, block.bytes_of, no_sizes)
    num_overflows = _num_overflows(search, outcome)
    return Totals(
        corpus=corpus,
        counts=counts,
        short=search.documents.filter(F.col("size") < SHORT).count(),
        compared=search.compared,
        num_bucket_overflows=num_overflows,
        recall=None if num_overflows else _recall(outcome.found, counts.pairs, method),
    )


def _count_pairs(outcome: Outcome, nothing: Measured) -> Counts:
    """Return the counts of pairs and clusters alone, whose rows are on the cluster.

    nothing : the measures of no pairs.
    """
    num_pairs = F.count("*").alias("pairs")
    found = outcome.found.agg(num_pairs, F.count_if("exact").alias("exact")).first()
    assert found is not None  # an aggregate of all rows
    # And the kept document itself.
    size = (F.count("*") + 1).alias("size")
    clusters = outcome.removed.groupBy("left").agg(size)
    num_clusters = clusters.groupBy("size").count().orderBy("size").collect()
    return Counts(
        removed=0,
        removed_exact=0,
        pairs=int(found["pairs"]),
        pairs_exact=int(found["exact"]),
        near=nothing,
        repeats=np.empty(0, np.int64),
        cluster_sizes=[list(row) for row in num_clusters],
        by_inputs=np.empty((0, 4), np.int64),
    )


def measured_of(rows: pa.Table, measures: Measures) -> Measured:
    """Return the columns of measures."""
    columns = {measure.name: rows[measure.name].cast(measure.type) for measure in measures}
    return Measured({name: column.to_numpy() for name, column in columns.items()})


def _recall(found: DataFrame, num_pairs: int, method: Method) -> Recall | None:
    """Estimate the recall from the pairs that are no copies, or from a sample of them."""
    if method.hit_probability is None:
        return None
    # The sample has all pairs of a left document or none, because they are found or missed
    # together.
    # At least 1, also without pairs.
    step = -(-num_pairs // _MAX_RECALL_PAIRS) or 1
    is_sampled = F.pmod(F.xxhash64("left"), F.lit(step)) == 0
    near = found.filter("not exact").filter(is_sampled)
    pairs = near.select("left", "right", "expected").toArrow()
    left, right, similarity = (column.to_numpy() for column in pairs.columns)
    order = np.lexsort((left, right))  # the order of a local run: sums of floats depend on it
    numbered = number_ends(left, right)
    clusters = first_members(len(numbered.ends), numbered.left, numbered.right)[numbered.left]
    return estimate_recall(similarity[order], clusters[order], method.hit_probability)


def corpus_of(parts: pa.Table, lines: list[str], tasks: list[Task]) -> Corpus:
    """Return the corpus.

    parts : workers.PARTS. lines : the lines of rejected.jsonl.
    """
    part = parts["part"].to_numpy()
    counts = {
        name: np.bincount(part, parts[name].to_numpy(), len(tasks)).astype(np.int64)
        for name in ("documents", "rejected", "bytes", "without_features")
    }
    documents = counts["documents"]
    num_bytes = counts["bytes"]
    num_against_parts = sum(task.against for task in tasks)
    losses = Losses.of(Rejected(**json.loads(line)) for line in lines)
    without_text = np.flatnonzero((documents > 0) & (num_bytes == 0)).tolist()
    add_textless(losses, [tasks[number].part for number in without_text])
    tally = Tally(
        documents=int(documents.sum()),
        losses=losses,
        without_features=int(counts["without_features"].sum()),
        text_bytes=int(num_bytes.sum()),
        against_bytes=int(num_bytes[:num_against_parts].sum()),
    )
    num_against = int(documents[:num_against_parts].sum())
    return Corpus(np.cumsum(documents), counts["rejected"], num_against, tally)


def add_textless(losses: Losses, parts: Sequence[Part]) -> None:
    """Count the PDF files among parts without text."""
    for part in parts:
        if part.format == "pdf":
            losses.add_textless(part.name)


def rejected_lines(described: DataFrame) -> list[str]:
    """Return the lines of rejected.jsonl, by file and row. described : with a column `rejected`."""
    rows = described.filter("rejected is not null").select("document", "rejected")
    return in_order(rows.toArrow())


def in_order(rejected: pa.Table) -> list[str]:
    """Return the lines of rejected.jsonl, by file and row; the loss of a file comes after its rows.

    rejected : the columns document and rejected.
    """

    def sort_key(entry: tuple[int, str]) -> list[int]:
        document, line = entry
        row = json.loads(line)
        # The loss of a file has neither row nor line.
        numbers = (sys.maxsize if row[name] is None else row[name] for name in ("row", "line"))
        return [document, *numbers]

    documents = rejected["document"].to_pylist()
    entries = zip(documents, rejected["rejected"].to_pylist(), strict=True)
    return [line for _, line in sorted(entries, key=sort_key)]


def _num_overflows(search: Search, outcome: Outcome) -> int:
    """Return the number of documents with an earlier one in a bucket that does not list it.

    Documents that the sieve removed are not counted. With linkage="connected", a content counts
    once, and documents of the same cluster do not count.
    """
    hidden = outcome.hidden.select("left", "right")
    if outcome.clusters is not None:
        for end in ("left", "right"):
            firsts = outcome.clusters.selectExpr(f"right as {end}", f"left as first_{end}")
            hidden = hidden.join(firsts, end, "left")
        first_of_left = F.coalesce("first_left", "left")
        is_apart = first_of_left != F.coalesce("first_right", "right")
        return int(hidden.filter(is_apart).select("right").distinct().count())
    first = F.col("right").alias("first")  # its copies look up the same buckets
    unlisted = hidden.groupBy(first).agg(F.min("left").alias("unlisted"))
    new = search.documents.filter("not against")
    later = new.join(unlisted, "first").filter("position > unlisted")
    return int(later.join(outcome.removed_positions, "position", "left_anti").count())


def count_by_value(search: Search, outcome: Outcome, column: str | None) -> JsonObject | None:
    """Return the documents and removals of each value of the counted column; see
    report.contents.removed_by_value.
    """
    if column is None:
        return None
    new = search.described.filter("rejected is null").filter("not against")
    documents = new.groupBy("count_by").agg(F.count("*").alias("documents"))
    removed = removed_documents(search, outcome).groupBy("count_by")
    counts = documents.join(removed.agg(F.count("*").alias("removed")), "count_by", "left")
    rows = counts.fillna(0, ["removed"]).toArrow()
    values = rows["count_by"].combine_chunks()
    names = ValueNames(hash_values(values), values)
    return describe_values(
        column, names.hashes, rows["documents"].to_numpy(), rows["removed"].to_numpy(), names
    )


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
        self.delete()  # files of a driver that was killed
        try:
            spark.sparkContext.setCheckpointDir(f"{self.address}/rounds")
        except Exception as error:  # py4j raises many types
            raise ClusterError(
                f"Spark cannot write to {self.address}: {first_line(error)}. Give Spark a client "
                "of this storage, such as the package org.apache.hadoop:hadoop-aws for s3a://, or "
                "pass scratch (--scratch), a folder that the driver and all workers share. For "
                "names beyond ASCII, start Java with LC_ALL=C.UTF-8."
            ) from error

    def read(self, name: str) -> pyarrow.dataset.Dataset:
        """Return the Parquet files in a folder inside, in their order."""
        if self._remote:
            filesystem, path = resolve(f"{self.address}/{name}", self._remote.options)
        else:
            filesystem = pafs.LocalFileSystem()
            path = str(self._local / name)
        infos = filesystem.get_file_info(pafs.FileSelector(path))
        files = sorted(info.path for info in infos if info.path.endswith(".parquet"))
        return pyarrow.dataset.dataset(files, filesystem=filesystem, format="parquet")

    def delete(self) -> None:
        """Delete remote files; a local folder is part of the temporary folder of the output."""
        if self._remote:
            RemoteFolder(self.address + self._remote.options).delete()


def sort_removed(search: Search, outcome: Outcome, shared: SharedFolder) -> None:
    """Let the workers write the removed documents in order, with the keys, ids and rows of both."""
    documents = search.documents
    right = documents.selectExpr("position as right", "document", "id", "row", "bytes")
    left = documents.selectExpr(
        "position as left", "document as kept_document", "id as kept_id", "row as kept_row"
    )
    located = outcome.removed.join(right, "right").join(left, "left")
    located.orderBy("document").write.parquet(f"{shared.address}/removed")


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


def numbers_of(keys: Ints, corpus: Corpus) -> Positions:
    """Return the running numbers of documents, by their keys; see PART_SHIFT."""
    firsts: Ints = np.append(0, corpus.part_ends)
    numbers: Positions = (firsts[keys >> PART_SHIFT] + (keys & _NUMBER)).astype(np.uint32)
    return numbers


def keys_of(numbers: Ints, corpus: Corpus) -> Ints:
    """Return the keys of documents, by their running numbers; see PART_SHIFT."""
    firsts: Ints = np.append(0, corpus.part_ends)
    parts = np.searchsorted(corpus.part_ends, numbers, "right")
    keys: Ints = parts << PART_SHIFT | numbers - firsts[parts]
    return keys


def _numbered(rows: pa.Table, corpus: Corpus, tasks: list[Task], method: Method) -> RemovedBlock:
    """Return removed documents under their running numbers. rows : as `sort_removed` writes."""
    removed = numbers_of(rows["document"].to_numpy(), corpus)
    kept = numbers_of(rows["kept_document"].to_numpy(), corpus)
    # A kept document may remove several: each is located once.
    documents, at = np.unique(np.append(removed, kept), return_index=True)
    known = documents.astype(np.int64)
    row_numbers = _both(rows, "row").take(arrow_of(at)).to_numpy()
    ids = _both(rows, "id").take(arrow_of(at))
    # Without an id column, the number of the document is its id.
    ids = pc.coalesce(ids, arrow_of(known).cast(pa.string()))
    names = [task.part.name for task in tasks]
    locations = DocumentLocations(names, corpus, row_numbers, ids, lambda: None, known=known)
    removals = Removals(removed, kept, measured_of(rows, method.measures))
    return RemovedBlock(removals, locations, rows["bytes"].to_numpy())


def _both(rows: pa.Table, name: str) -> pa.Array:
    """Return a column of the removed documents, followed by that column of the kept ones."""
    columns = rows[name], rows[f"kept_{name}"]
    return pa.concat_arrays([column.combine_chunks() for column in columns])


def sample_removals(
    totals: Totals, tasks: list[Task], method: Method, shared: SharedFolder
) -> tuple[write.Shown, DocumentLocations]:
    """Return the removed documents that the report shows, of all of them or of a sample, and the
    locations of these.
    """
    step = -(-totals.counts.removed // _MAX_EXAMPLES) or 1
    removed = shared.read("removed")
    rows = [batch.take(arrow_of(np.arange(0, len(batch), step))) for batch in removed.to_batches()]
    block = _numbered(pa.Table.from_batches(rows, removed.schema), totals.corpus, tasks, method)
    strength = method.strength(block.removals.measured)
    return write.pick_examples(block.removals, strength), block.locations


def show_examples(
    corpus: Files, shown: write.Shown, locations: DocumentLocations, totals: Totals, method: Method
) -> list[Example]:
    """Return the removed documents that the report shows.

    Workers read the texts that `write_kept` has not returned.
    """
    numbers = np.array([n for n in shown.documents.tolist() if n not in shown.texts], np.int64)
    if len(numbers):
        keys = keys_of(numbers, totals.corpus)
        chosen = corpus.chosen(corpus.spark.createDataFrame(pa.table({"document": keys})))
        read = partial(_read_texts, read=corpus.read)
        for row in chosen.mapInArrow(read, "document long, text string").collect():
            number = numbers[np.searchsorted(keys, row["document"])]
            shown.texts[int(number)] = row["text"] or ""
    return write.examples(shown, locations, method)


def _read_texts(batches: Batches, read: Read) -> Iterator[pa.RecordBatch]:
    """Yield the keys and the texts of documents; in a worker."""
    for rows in read(batches):
        text = texts_of(rows["text"]).cast(pa.string())
        yield pa.record_batch({"document": rows["document"], "text": text})


class Written(NamedTuple):
    """A part whose kept documents a worker has written.

    file : the name of the file in its folder. documents, rows : the number of documents that were
    read, and of rows that were written. bytes : of the file; None if the part needs no file.
    texts : the numbers and the texts of documents that the report shows.
    """

    part: int
    file: str
    documents: int
    rows: int
    bytes: int | None
    texts: list[tuple[int, str]]


_WRITTEN = pa.schema(
    {
        "part": pa.int64(),
        "file": pa.string(),
        "documents": pa.int64(),
        "rows": pa.int64(),
        "bytes": pa.int64(),
        "texts": pa.map_(pa.int64(), pa.string()),
    }
)


def removed_documents(search: Search, outcome: Outcome) -> DataFrame:
    """Return the removed documents, as schemas.PLACED."""
    return search.documents.join(outcome.removed_positions, "position", "left_semi")


def list_removed(search: Search, outcome: Outcome) -> DataFrame:
    """Return the parts of removed documents, with the numbers of these in the part, rising."""
    numbers = F.collect_list(F.col("document").bitwiseAND(_NUMBER))
    removed = F.array_sort(numbers).alias("removed")
    part = F.expr(PART).alias("part")
    lists = removed_documents(search, outcome).groupBy(part).agg(removed)
    return lists.withColumn(_ADDED, F.lit(None).cast("binary"))


def lists_of_removed(corpus: Files, removed: Ints, outcome: Totals | None = None) -> DataFrame:
    """Return the same as `list_removed`, with the columns that are added to documents.

    removed : int64, rising, the keys of removed documents. outcome : has the columns, if there are
    any.
    """
    parts = np.arange(len(corpus.tasks.value))
    ends = np.searchsorted(removed >> PART_SHIFT, parts, "right").astype(np.int32)
    lists = pa.ListArray.from_arrays(
        arrow_of(np.append(np.int32(0), ends)), arrow_of(removed & _NUMBER)
    )
    added = [_added_columns(outcome, int(part)) for part in parts]
    columns = {
        "part": parts.astype(np.int32),
        "removed": lists,
        _ADDED: pa.array(added, pa.binary()),
    }
    return corpus.spark.createDataFrame(pa.table(columns))


def _added_columns(outcome: Totals | None, part: int) -> bytes | None:
    """Return the columns that are added to the documents of a part, as an Arrow stream."""
    if outcome is None or outcome.added is None:
        return None
    added = outcome.added
    first, stop = np.append(0, outcome.corpus.part_ends)[part : part + 2].tolist()
    return bytes(stream_of(added.between(first, stop).rows()))


class _Columns(NamedTuple):
    """Columns of a part that a worker adds to its documents; see decide.outcome.Added."""

    batch: pa.RecordBatch

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self.batch.schema

    def between(self, start: int, stop: int) -> _Columns:
        """Return the columns of the documents in [start, stop)."""
        return _Columns(self.batch.slice(start, stop - start))

    def rows(self) -> pa.RecordBatch:
        """Return the columns."""
        return self.batch


def _read_columns(stream: pa.BinaryScalar) -> _Columns | None:
    """Return the columns of a part, which the driver has sent; None if there are none."""
    if not stream.is_valid:
        return None
    with pa.ipc.open_stream(stream.as_buffer()) as reader:
        return _Columns(reader.read_next_batch())


class PartSizes(NamedTuple):
    """The documents of each part, and the number of removed ones. part_ends : as in Corpus."""

    part_ends: Ints
    removed: list[int]


def write_kept(
    corpus: Files,
    lists: DataFrame,
    sizes: PartSizes,
    output: OutputDirectory,
    shown: write.Shown | None = None,
) -> None:
    """Let the workers write the kept documents of each new part, in its format.

    Parameters
    ----------
    lists : as `list_removed` returns.
    shown : receives the texts of its documents, except documents of the earlier collection.

    Notes
    -----
    Spark may run several attempts of a task at once; the first to end counts. So each attempt
    writes files of its own, and the driver moves the files that count. Remote storage cannot move
    files, but they appear whole there, and each attempt writes the same bytes.
    """
    attempts = output.partial.absolute() / "attempts"
    attempts.mkdir()
    remote = None if output.remote is None else output.remote.address + output.remote.options
    function = partial(
        write_parts,
        tasks=corpus.tasks,
        attempts=attempts,
        remote=remote,
        wanted=None if shown is None else Wanted(shown.documents, sizes.part_ends),
    )
    parts = corpus.spread(corpus.all().join(lists, "part", "left"))
    rows = parts.mapInArrow(function, declare(_WRITTEN)).toArrow()
    written = [Written(**row) for row in rows.to_pylist()]
    place_kept(written, corpus.tasks.value, sizes, output)
    if shown is not None:
        for row in written:
            shown.texts.update(row.texts)


def place_kept(
    written: list[Written], tasks: list[Task], sizes: PartSizes, output: OutputDirectory
) -> None:
    """Check the files that count, and move them from `attempts` to `kept`.

    Raises
    ------
    InputError
        If an input had other documents when it was written than when they were decided about.
    OutputError
        If a file is missing, or has another size than its worker wrote.
    """
    _refuse_changed(written, tasks, sizes)
    attempts = output.partial / "attempts"
    files = {}
    for row in written:
        if row.bytes is not None:
            files[f"kept/{tasks[row.part].part.relative_name}"] = row
    if output.remote is None:
        paths = {name: attempts / row.file for name, row in files.items()}
        num_bytes = {name: path.stat().st_size for name, path in paths.items() if path.exists()}
    else:
        num_bytes = output.remote.sizes()
    for name, row in files.items():
        # A file that is missing, or was cut off.
        if num_bytes.get(name) != row.bytes:
            raise OutputError(
                f"The output {output.path} has no file {name} of {row.bytes:,} bytes, as a worker "
                "wrote it. Use a folder that the driver and all workers share, or an address such "
                "as s3a://bucket/clean."
            )
        if output.remote is None:
            target = output.result / name
            target.parent.mkdir(parents=True, exist_ok=True)
            os.replace(attempts / row.file, target)


def _refuse_changed(written: list[Written], tasks: list[Task], sizes: PartSizes) -> None:
    """Raise InputError if a part was written with other documents than were decided about."""
    documents = np.diff(sizes.part_ends, prepend=0).tolist()
    found = {row.part: (row.documents, row.rows) for row in written}
    expected = {
        part: (documents[part], documents[part] - sizes.removed[part])
        for part, task in enumerate(tasks)
        if not task.against
    }
    if found != expected:
        wrong = (part for part in expected if found.get(part) != expected[part])
        raise input_changed(tasks[next(wrong)].part.name)


class Wanted(NamedTuple):
    """Documents whose texts are returned. numbers : uint32, rising. part_ends : as in Corpus."""

    numbers: Positions
    part_ends: Ints

    def texts_in(self, batch: DocumentBatch, part: int, start: int) -> Iterator[tuple[int, str]]:
        """Yield the wanted documents of a batch. start : the number of its first in the part."""
        first = self.part_ends[part - 1] if part else 0
        return write.texts_in(batch, int(first) + start, self.numbers)


def write_parts(
    batches: Batches,
    tasks: Broadcast[list[Task]],
    attempts: Path,
    remote: str | None,
    *,
    wanted: Wanted | None = None,
) -> Iterator[pa.RecordBatch]:
    """Write the kept documents of parts, and yield rows of `Written`; in a worker.

    attempts : the folder of the files. remote : the address to write to instead.
    """
    for batch in batches:
        written = []
        parts = batch["part"].to_pylist()
        for part, removed, stream in zip(parts, batch["removed"], batch[_ADDED], strict=True):
            task = tasks.value[part]
            if task.against:
                continue
            numbers = np.empty(0, np.int64)
            # The left join gives a null to a part without removed documents.
            if removed.values is not None:
                numbers = removed.values.to_numpy()
            write_kept_rows = partial(
                _write_part,
                part,
                task,
                removed=numbers,
                added=_read_columns(stream),
                wanted=wanted,
            )
            if remote is None:
                _require_folder(attempts)
                # Spark may run a task twice: each attempt writes its own file, and `place_kept`
                # moves the file of the attempt that counts.
                written.append(write_kept_rows(attempts, uuid4().hex))
                continue
            with tempfile.TemporaryDirectory(prefix="neardup-") as folder:
                kept = Path(folder, "kept")
                # Remote attempts write the same bytes under the same name.
                written.append(write_kept_rows(kept, task.part.relative_name))
                RemoteFolder(remote).copy(Path(folder))
        yield pa.RecordBatch.from_pylist([row._asdict() for row in written], _WRITTEN)


def _require_folder(attempts: Path) -> None:
    """Raise OutputError if there is no folder to write to.

    The worker does not share it, or this is an attempt that outlives its run.
    """
    if not attempts.is_dir():
        raise OutputError(
            f"The worker {platform.node()} has no folder {attempts}. Use an output that the driver "
            "and all workers share, or an address such as s3a://bucket/clean."
        )


def _are_kept(removed: Ints, begin: int, end: int) -> Mask:
    """Return for each document from `begin` to `end` whether it stays. removed : rising."""
    kept = np.ones(end - begin, np.bool_)
    low, high = np.searchsorted(removed, [begin, end])
    kept[removed[low:high] - begin] = False
    return kept


def _write_part(
    part: int,
    task: Task,
    directory: Path,
    name: str,
    *,
    removed: Ints,
    added: _Columns | None,
    wanted: Wanted | None,
) -> Written:
    """Write the kept documents of a part.

    removed : the numbers of the documents that do not stay, rising. added : the columns that are
    added to its documents, or None.
    """
    num_documents = 0
    num_rows = 0
    texts: list[tuple[int, str]] = []
    with KeptWriter(task.part, directory, name=name, added=added) as writer:
        for batch in task.read(with_payload=True):
            end = num_documents + len(batch.rows)
            is_kept = _are_kept(removed, num_documents, end)
            columns = None if added is None else added.between(num_documents, end)
            if wanted is not None:
                texts += wanted.texts_in(batch, part, num_documents)
            num_documents = end
            num_rows += int(np.count_nonzero(is_kept))
            assert batch.payload is not None  # read with payload
            writer.write(batch.payload, is_kept, added=columns)
    size = writer.path.stat().st_size if writer.path.exists() else None
    return Written(
        part=part, file=name, documents=num_documents, rows=num_rows, bytes=size, texts=texts
    )
