"""Columns of lists that point outside of their memory, and a process that uses them: a read of
foreign memory would end it.
"""

from __future__ import annotations

import sys

import numpy as np
import pyarrow as pa

import neardup

STRINGS = pa.array(["a", "b", "c"])
FIRST_AND_LAST = pa.py_buffer(bytes([0b101]))  # the second row is null
TEXTS = pa.list_(pa.string())


def numbers(*values: int, dtype: type = np.int32) -> pa.Buffer:
    return pa.py_buffer(np.array(values, dtype))


def lists(kind: pa.DataType, *buffers: pa.Buffer | None, values: pa.Array = STRINGS) -> pa.Array:
    """Return three lists, which Arrow checks at their ends only."""
    return pa.Array.from_buffers(kind, 3, list(buffers), children=[values])


def damaged_columns() -> dict[str, pa.Array]:
    """Return columns of lists, of which the second of three is damaged."""
    text = pa.py_buffer(b"abc")
    strings = pa.Array.from_buffers(pa.string(), 3, [None, numbers(0, 1, 1 << 30, 3), text])
    pairs = pa.StructArray.from_arrays([STRINGS, pa.array([1.0, 2.0, 3.0])], ["token", "weight"])
    far = numbers(0, 2, 1 << 60, 3, dtype=np.int64)
    views = pa.list_view(pa.string())
    return {
        "lists": lists(TEXTS, None, numbers(0, 2, 100, 3)),
        "falling": lists(TEXTS, None, numbers(0, 2, 1, 3)),
        "null": lists(TEXTS, FIRST_AND_LAST, numbers(0, 2, 100, 3)),
        "large": lists(pa.large_list(pa.string()), FIRST_AND_LAST, far),
        "view": lists(views, None, numbers(0, 50, 1), numbers(1, 1, 1)),
        "size": lists(views, None, numbers(0, 1, 1), numbers(1, 1 << 30, 1)),
        "strings": lists(TEXTS, None, numbers(0, 1, 2, 3), values=strings),
        "slice": lists(TEXTS, FIRST_AND_LAST, numbers(0, 2, 100, 3))[1:],
        "structs": lists(pa.list_(pairs.type), None, numbers(0, 2, 100, 3), values=pairs),
    }


def error_of(call: str, column: pa.Array) -> str:
    try:
        if call == "sign":
            neardup.sign(column, method="simhash")
        else:
            neardup.dedup(pa.table({"text": column}))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


if __name__ == "__main__":
    for name, column in damaged_columns().items():
        print(name, error_of(sys.argv[1], column), flush=True)
