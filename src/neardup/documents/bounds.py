"""Columns of lists that refer to memory outside of them: refused before their elements are read.

Arrow does not check offsets when it takes a column from another library, and neither Arrow nor
kernels check bounds when they read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.arrays import string_offsets
from neardup.errors import InputError

_VIEWS = (pa.ListViewArray, pa.LargeListViewArray)
_LISTS = (pa.ListArray, pa.LargeListArray, *_VIEWS)  # a map is a list of pairs
_STRINGS = (pa.StringArray, pa.LargeStringArray, pa.BinaryArray, pa.LargeBinaryArray)


def check_lists(chunks: Iterable[pa.Array], column: str = "the column") -> None:
    """Raise InputError if a row of a column refers to memory outside of it.

    Lists are checked, lists and strings in them, and the fields of structs. Strings in no list are
    checked by row when they are read.
    """
    first = 0
    for chunk in chunks:
        row = _damaged_row(chunk) if pa.types.is_nested(chunk.type) else -1
        if row >= 0:
            raise InputError(
                f"Row {first + row:,} of {column} refers to memory outside of the column. The "
                "column is damaged: column.validate(full=True) locates the fault. Create it again "
                "from its source."
            )
        first += len(chunk)


def _damaged_row(column: Any) -> int:
    """Return a row that refers to memory outside of the column, -1 if there is none."""
    if isinstance(column, pa.StructArray):
        return max(map(_damaged_row, column.flatten()), default=-1)
    if not isinstance(column, (*_LISTS, *_STRINGS)) or len(column) == 0:
        return -1
    offsets = _offsets_of(column)
    elements = column.values if isinstance(column, _LISTS) else column.buffers()[2] or b""
    starts = offsets[: len(column)]
    stops = starts + column.sizes.to_numpy() if isinstance(column, _VIEWS) else offsets[1:]
    # Rows that are null, too: Arrow adds up their sizes.
    is_damaged = (starts < 0) | (stops < starts) | (stops > len(elements))
    if not is_damaged.any():
        # Of a slice, only its own elements.
        first = int(starts.min())
        position = first + _damaged_row(elements[first : int(stops.max())])
        if position >= first:
            is_damaged = (starts <= position) & (position < stops)
    return int(np.argmax(is_damaged)) if is_damaged.any() else -1


def _offsets_of(column: Any) -> Any:
    if isinstance(column, _STRINGS):
        return string_offsets(column)
    return column.offsets.to_numpy().astype(np.int64)
