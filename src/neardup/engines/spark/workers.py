"""Run the stages of a method in workers, and declare their tables in Spark's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa
from pyspark import Accumulator, Broadcast

from neardup.methods.base import Method
from neardup.methods.stages import Batches
from neardup.progress import compile_seconds

Stage = Callable[[Batches, Method], Iterator[pa.RecordBatch]]
_WORDS = {
    pa.int64(): "long",
    pa.int32(): "int",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.string(): "string",
    pa.binary(): "binary",
}


def declare(schema: pa.Schema) -> str:
    """Return the columns of a table in Spark's words."""
    return ", ".join(f"{field.name} {_WORDS[field.type]}" for field in schema)


@contextmanager
def timing(seconds: Accumulator[float]) -> Iterator[None]:
    """Add the time in which a worker compiles kernels."""
    before = compile_seconds()
    try:
        yield
    finally:
        seconds.add(compile_seconds() - before)


def run_stage(
    batches: Batches, stage: Stage, method: Broadcast[Method], seconds: Accumulator[float]
) -> Iterator[pa.RecordBatch]:
    """Run a stage of methods/stages.py on batches."""
    with timing(seconds):
        yield from stage(batches, method.value)
