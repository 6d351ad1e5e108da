"""The documents of a run on Spark, as workers read them: from files, or from a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from neardup.formats.reading import Task
from neardup.formats.rows import PART_SHIFT, read_part, read_rows
from neardup.methods.stages import Batches, Read

PART = f"cast(shiftright(document, {PART_SHIFT}) as int)"
SLICES_PER_CORE = 64


@dataclass(frozen=True)
class Files:
    """Files, which workers open as the local engine does. tasks : the files of the earlier corpus come first.

    all : rows of which `read` reads all documents, in a worker. key_type : of the column `document`, in Spark's words.
    within : whether documents are compared within the first column of values. in_order : whether documents are numbers
    in the order of the corpus, those of the earlier collection first.
    """

    spark: SparkSession
    tasks: Broadcast[list[Task]]
    on_error: str = "reject"
    within: bool = False

    key_type, in_order = "long", True

    @property
    def read(self) -> Read:
        return partial(read_files, tasks=self.tasks, on_error=self.on_error, within=self.within)

    def all(self) -> DataFrame:
        return self.spark.range(0, len(self.tasks.value), 1, self._num_slices).selectExpr("cast(id as int) as part")

    def chosen(self, documents: DataFrame, *, broadcast: bool = True) -> DataFrame:
        """Return the parts of some documents: the columns document, against, position and last."""
        entries = F.array_sort(F.collect_list(F.struct("document", "position", "last"))).alias("chosen")
        return self.spread(documents.groupBy(F.expr(PART).alias("part")).agg(entries))

    def spread(self, parts: DataFrame) -> DataFrame:
        """Return parts over many partitions: Spark would put the short lists together, and read all files in a task."""
        return parts.repartitionByRange(self._num_slices, "part")

    @property
    def _num_slices(self) -> int:
        return int(min(len(self.tasks.value), SLICES_PER_CORE * self.spark.sparkContext.defaultParallelism))


def read_files(batches: Batches, tasks: Broadcast[list[Task]], on_error: str, within: bool) -> Iterator[pa.RecordBatch]:
    """Read the documents of parts; of those with a column `chosen`, only the documents that it lists."""
    for batch in batches:
        chosen = batch.column("chosen") if "chosen" in batch.schema.names else [None] * len(batch)
        for part, some in zip(batch.column("part").to_pylist(), chosen, strict=True):
            entries = None if some is None else some.values
            yield from read_part(part, tasks.value[part], on_error, entries, within=within)


@dataclass(frozen=True)
class Frame:
    """A DataFrame with the columns document, against, text, ranks and within. vector_length : as of `Columns`."""

    frame: DataFrame
    vector_length: int | None = None

    in_order = False

    @property
    def read(self) -> Read:
        return partial(read_rows, vector_length=self.vector_length)

    @property
    def key_type(self) -> str:
        return str(self.frame.schema["document"].dataType.simpleString())

    def all(self) -> DataFrame:
        none = {"id": "string", "row": "long", "count_by": "string", "rejected": "string"}
        return self.frame.withColumns({name: F.lit(None).cast(kind) for name, kind in none.items()})

    def chosen(self, documents: DataFrame, *, broadcast: bool = True) -> DataFrame:
        """Return the rows of some documents, as of Files. broadcast : whether they, and not the texts, are moved."""
        return self.frame.join(F.broadcast(documents) if broadcast else documents, ["document", "against"])


Corpus = Files | Frame
