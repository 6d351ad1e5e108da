"""Read the tables of answers and of hits as records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa

from neardup.answers import Answer, Hit
from neardup.schemas import TIME
from neardup.stores.documents import array_of

ANSWER_COLUMNS = [field.name for field in fields(Answer)]
"""The columns of an answer, in the order of its fields."""
HIT_COLUMNS = [field.name for field in fields(Hit)]
"""The columns of a hit, as ANSWER_COLUMNS."""
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_INT64 = pa.int64()


def rows_of(table: pa.Table, names: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """Return columns as rows; a column that is missing is null, and a time a datetime in UTC."""
    known = table.schema.names
    values = [
        _values_of(table.column(name)) if name in known else [None] * len(table) for name in names
    ]
    return zip(*values, strict=True)


def _values_of(column: pa.ChunkedArray) -> list[Any]:
    """Return the values of a column.

    Arrow would return times as well, but takes ten times as long.
    """
    if column.null_count == len(column):
        return [None] * len(column)
    array = array_of(column)
    if column.type == TIME:
        moments = array.view(_INT64).to_pylist()
        return [None if moment is None else time_of(moment) for moment in moments]
    values: list[Any] = array.to_pylist()
    return values


def time_of(microseconds: int) -> datetime:
    """Return a time, in microseconds since 1970, as a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)
