"""Write the result of a run over files: kept documents, removed.parquet, rejected.jsonl and what the reports need."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from neardup.arrays import arrow_of
from neardup.decide import outcome as local
from neardup.decide.connected import connect, roots
from neardup.decide.decisions import Pairs, Removals
from neardup.documents.batch import Rejected
from neardup.documents.corpus import MAX_UNREAD_NAMED, Corpus, Tally
from neardup.documents.reading import Task
from neardup.engines.spark.pipeline import Outcome
from neardup.engines.spark.source import PART_SHIFT, Files
from neardup.engines.spark.stages import read_text
from neardup.methods.base import Method
from neardup.output import write
from neardup.output.kept import KeptWriter
from neardup.output.report_items import Example
from neardup.schemas import EXACT, Measures, removed_schema
from neardup.verify.measured import Measured
from neardup.verify.recall import Recall, estimate_recall

_PART = f"shiftright(document, {PART_SHIFT})"


class Written(NamedTuple):
    """What the driver knows of a run: for the report, and the rows of removed.parquet with hidden columns."""

    outcome: local.Outcome
    table: pa.Table


def summarise(outcome: Outcome, tasks: list[Task], method: Method) -> Written:
    """Collect the removed documents, and count the others."""
    corpus = _corpus(outcome.light, tasks)
    short = outcome.documents.filter(F.col("size") < local.SHORT).count()
    table = _removed_table(outcome, corpus, tasks, method.measures)
    numbers = table["_number"].to_numpy(), table["cluster"].to_numpy()
    measured = Measured(
        {measure.name: table[measure.name].to_numpy(zero_copy_only=False) for measure in method.measures}
    )
    pairs, recall = _pairs(outcome, method)
    removals = Removals(*numbers, measured)
    found = local.Outcome(
        corpus, np.empty(0, np.bool_), removals, pairs,
        outcome.pairs.filter("left >= 0").count(), _num_overflows(outcome), 0, 0, 0, recall, None, short,
    )  # fmt: skip
    return Written(found, table)


def _pairs(outcome: Outcome, method: Method) -> tuple[Pairs, Recall | None]:
    """Return the confirmed pairs, copies of a kept document included, and the recall that they estimate."""
    assert outcome.removed is not None
    assert outcome.found is not None
    sizes = outcome.documents.select("position", "distinct")
    found = outcome.found.join(sizes, "position").join(sizes.toDF("left", "other"), "left")
    if "similarity" not in found.columns:
        found = found.withColumn("similarity", F.lit(0.0))
    table = found.select("left", "position", "similarity", "distinct", "other").toArrow()
    left, right, similarity, size, other = (column.to_numpy() for column in table.columns)
    order = np.lexsort((left, right))  # that of a local run: sums of floats depend on it
    left, right, similarity, size, other = (column[order] for column in (left, right, similarity, size, other))
    num_copies = 0 if outcome.connected else outcome.removed.filter("exact").count()
    exact = np.repeat([False, True], [len(left), num_copies])
    both = (
        np.concatenate([np.zeros(num_copies, np.int64), left]),
        np.concatenate([np.zeros(num_copies, np.int64), right]),
    )
    pairs = Pairs(*both, Measured({EXACT.name: exact}))
    if method.hit_probability is None or not len(left):
        return pairs, None
    nodes, ends = np.unique(np.concatenate([left, right]), return_inverse=True)
    earlier, later = np.split(ends.astype(np.uint32), 2)
    parents = np.arange(len(nodes), dtype=np.uint32)
    connect(parents, earlier, later)
    similarity = method.proposed_similarity(similarity, other.astype(np.float64), size.astype(np.float64))
    return pairs, estimate_recall(similarity, roots(parents)[earlier], method.hit_probability)


def _corpus(light: DataFrame, tasks: list[Task]) -> Corpus:
    read = F.isnull("rejected")
    rows = light.groupBy(F.expr(_PART).alias("part")).agg(
        F.count_if(read).alias("documents"), F.count_if(~read).alias("rejected"), F.sum("bytes").alias("bytes"),
        F.count_if(read & (F.col("size") == 0)).alias("without"),
    ).toArrow()  # fmt: skip
    counts = np.zeros((2, len(tasks)), np.int64)
    counts[:, rows["part"].to_numpy().astype(np.int64)] = rows["documents"].to_numpy(), rows["rejected"].to_numpy()
    lost = [row for row in map(json.loads, rejected_lines(light)) if row["rest_of_file"]]
    tally = Tally(
        documents=int(counts[0].sum()), rejected=int(counts[1].sum()) - len(lost), unread_files=len(lost),
        without_features=sum(rows["without"].to_pylist()), text_bytes=sum(filter(None, rows["bytes"].to_pylist())),
    )  # fmt: skip
    num_against = int(counts[0, : sum(task.against for task in tasks)].sum())
    names = tuple(row["file"] for row in lost[:MAX_UNREAD_NAMED])
    return Corpus(np.cumsum(counts[0]), counts[1], names, num_against, tally)


def rejected_lines(light: DataFrame) -> list[str]:
    """Return the lines of rejected.jsonl, by file and row."""
    rows = light.filter("rejected is not null").select("document", "rejected").collect()

    def place(line: tuple[int, str]) -> tuple[int, int, int]:
        row = json.loads(line[1])
        return line[0], -1 if row["row"] is None else row["row"], -1 if row["line"] is None else row["line"]

    return [line for _, line in sorted(((row[0], row[1]) for row in rows), key=place)]


def _num_overflows(outcome: Outcome) -> int:
    """Return the number of documents behind a member that a bucket does not list, except copies of a kept document."""
    hidden = outcome.pairs.filter("left < 0").groupBy(F.col("right").alias("first"))
    unlisted = hidden.agg(F.min(F.bitwise_not("left")).alias("unlisted"))
    new = outcome.documents.filter(~F.col("against")).select("position", "first")
    behind = new.join(unlisted, "first").filter("position > unlisted")
    if outcome.removed is None:
        return int(behind.count())
    plain = outcome.removed.filter("exact").select("position", F.col("kept").alias("first"))
    return int(behind.join(plain, ["position", "first"], "left_anti").count())


def _removed_table(outcome: Outcome, corpus: Corpus, tasks: list[Task], measures: Measures) -> pa.Table:
    """Return the rows of removed.parquet, with their running numbers."""
    assert outcome.removed is not None
    documents = outcome.documents.select("position", "document", "id", "row")
    kept = documents.toDF("kept", "kept_document", "kept_id", "kept_row")
    rows = outcome.removed.join(documents, "position").join(kept, "kept").orderBy("document").toArrow()
    starts = np.concatenate([[0], corpus.part_ends])
    names = pa.array([task.part.name for task in tasks], pa.string())
    roles = pa.array(["against" if task.against else "source" for task in tasks], pa.string())
    columns: dict[str, pa.Array] = {}
    schema = removed_schema(measures)
    for prefix in ("", "kept_"):
        document = rows[f"{prefix}document"].to_numpy()
        part = document >> PART_SHIFT
        number = arrow_of(starts[part] + (document & ((1 << PART_SHIFT) - 1)))
        columns[f"{prefix}number"] = number
        columns[f"{prefix}id"] = pc.coalesce(rows[f"{prefix}id"], number.cast(pa.string()))
        columns[f"{prefix}source_file"] = names.take(arrow_of(part))
        columns[f"{prefix}role"] = roles.take(arrow_of(part))
        columns[f"{prefix}row"] = rows[f"{prefix}row"]
    columns |= {measure.name: rows[measure.name].cast(measure.type) for measure in measures}
    columns["cluster"] = columns["kept_number"]
    table = pa.table([columns[field.name] for field in schema], schema=schema)
    hidden = {"_number": columns["number"], "_document": rows["document"], "_kept_document": rows["kept_document"]}
    for name, column in hidden.items():
        table = table.append_column(name, column)
    return table


def show_examples(corpus: Files, written: Written, method: Method) -> list[Example]:
    """Return the removed documents that the report shows, with their texts, which workers read again."""
    removals = written.outcome.removals
    shown = write.pick_examples(removals, method.strength(removals.measured))
    table, rows = written.table, np.searchsorted(removals.documents, shown.removals.documents)
    table = table.take(arrow_of(rows))
    keys = np.concatenate([table["_document"].to_numpy(), table["_kept_document"].to_numpy()])
    found, at = np.unique(keys, return_index=True)
    frame = corpus.spark.createDataFrame(pa.table({"document": found}))
    against = F.shiftright("document", PART_SHIFT) < sum(task.against for task in corpus.tasks.value)
    position = F.col("document").alias("position"), F.col("document").alias("last")
    parts, read = corpus.chosen(frame.select("document", against.alias("against"), *position))
    texts = parts.mapInArrow(partial(read_text, read=read), "document long, text string").toArrow()
    text_of = dict(zip(texts["document"].to_pylist(), texts["text"].to_pylist(), strict=True))
    # The examples are numbered from 0, as their locations are.
    shown.texts.update({number: text_of[key] or "" for number, key in enumerate(found.tolist())})
    numbered = np.searchsorted(found, keys).astype(np.uint32)
    first, second = np.split(numbered, 2)
    shown = shown._replace(removals=Removals(first, second, shown.removals.measured))
    return write.examples(shown, _Locations(table, at), method)  # type: ignore[arg-type]


class _Locations:
    """The locations of the documents of examples."""

    def __init__(self, table: pa.Table, at: npt.NDArray[np.int64]) -> None:
        names = (("id", "kept_id"), ("source_file", "kept_source_file"), ("row", "kept_row"))
        both = [pa.concat_arrays([*table[one].chunks, *table[other].chunks]) for one, other in names]
        self._ids, self._parts, self._rows = (column.take(arrow_of(at)) for column in both)

    def ids(self, documents: npt.NDArray[np.uint32]) -> pa.Array:
        return self._ids.take(arrow_of(documents))

    def parts(self, documents: npt.NDArray[np.uint32]) -> pa.Array:
        return self._parts.take(arrow_of(documents))

    def rows(self, documents: npt.NDArray[np.uint32]) -> npt.NDArray[np.int64]:
        return np.asarray(self._rows.to_numpy()[documents])


def write_kept(corpus: Files, outcome: Outcome, directory: Path) -> None:
    """Let the workers write the kept documents of each new part, in its format, to a folder that all of them share."""
    assert outcome.removed is not None
    gone = outcome.documents.join(outcome.removed.select("position"), "position", "left_semi")
    index = F.col("document").bitwiseAND((1 << PART_SHIFT) - 1)
    lists = gone.groupBy(F.expr(_PART).cast("int").alias("part")).agg(F.collect_list(index).alias("removed"))
    rows, _ = corpus.all()
    function = partial(_write_parts, tasks=corpus.tasks, directory=str(directory))
    corpus.spread(rows.join(lists, "part", "left")).mapInArrow(function, "part int").count()


def _write_parts(
    batches: Iterable[pa.RecordBatch], tasks: Broadcast[list[Task]], directory: str
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for part, removed in zip(batch.column("part").to_pylist(), batch.column("removed"), strict=True):
            task = tasks.value[part]
            if not task.against:
                gone = np.empty(0, np.int64) if removed.values is None else np.sort(removed.values.to_numpy())
                _write_part(task, gone, directory)
        yield batch.select(["part"])


def _write_part(task: Task, removed: npt.NDArray[np.int64], directory: str) -> None:
    Path(directory, task.part.relative_name).unlink(missing_ok=True)  # of an attempt that was lost
    first = 0
    with KeptWriter(task.part, directory) as writer:
        for batch in task.read(_ignore, with_payload=True):
            count = len(batch.rows)
            low, high = np.searchsorted(removed, [first, first + count])
            mask = np.ones(count, np.bool_)
            mask[removed[low:high] - first] = False
            assert batch.payload is not None  # read with payload
            writer.write(batch.payload, mask)
            first += count


def _ignore(_: Rejected) -> None:
    """The description of the documents has listed the rejected rows."""
