"""Read the columns of answers and of hits as records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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


def columns_of(table: pa.Table) -> dict[str, pa.Array]:
    """Return the columns of a table by name."""
    return dict(zip(table.column_names, map(array_of, table.columns), strict=True))


def rows_of(columns: Mapping[str, pa.Array], names: Sequence[str]) -> Iterable[tuple[Any, ...]]:
    """Return columns as rows; a column that is missing is null, and a time a datetime in UTC.

    columns : by name, at least one, of equal lengths.
    """
    size = len(next(iter(columns.values())))
    if not size:
        return []
    values = [_values_of(columns[name]) if name in columns else [None] * size for name in names]
    return zip(*values, strict=True)


def _values_of(array: pa.Array) -> list[Any]:
    """Return the values of an array.

    Arrow would return times as well, but takes ten times as long.
    """
    if array.null_count == len(array):
        return [None] * len(array)
    if array.type == TIME:
        moments = array.view(_INT64).to_pylist()
        return [None if moment is None else time_of(moment) for moment in moments]
    values: list[Any] = array.to_pylist()
    return values


def time_of(microseconds: int) -> datetime:
    """Return a time, in microseconds since 1970, as a datetime in UTC."""
    return _EPOCH + timedelta(microseconds=microseconds)
