"""Columns that are added to rows: of tables, and of lines of JSON."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Bytes, Ints, Mask, arrow_of, arrow_of_bytes, arrow_of_strings
from neardup.documents.batch import Payload, RawLines

_FEATURES_KEY = b"huggingface"
"""The metadata in which `datasets` describes all columns; it refuses a table with other columns."""

# `pa.array` and `pa.scalar` would load pandas.
_EMPTY = arrow_of_bytes(b"", np.zeros(2, np.int64))
_NULL = arrow_of_strings(["null"])[0]
_COMMA = arrow_of_strings([", "])[0]
_BLANKS = list(b" \t\r\n")
_FEW_BLANKS = 4  # blanks at the end of a line, skipped in all lines at once
_BLOCK_BYTES = 1 << 16  # bytes of a line with more blanks that are copied at once


def widened_schema(schema: pa.Schema, added: pa.Schema) -> pa.Schema:
    """Return the schema of rows with further columns."""
    metadata = schema.metadata or {}
    kept = {key: value for key, value in metadata.items() if key != _FEATURES_KEY}
    return pa.schema([*schema, *added], kept)


def append_columns(rows: Payload, added: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows of a table with further columns."""
    assert isinstance(rows, pa.RecordBatch)
    schema = widened_schema(rows.schema, added.schema)
    return pa.RecordBatch.from_arrays([*rows.columns, *added.columns], schema=schema)


def append_keys(lines: Payload, added: pa.RecordBatch) -> RawLines:
    """Return JSON objects, a line each, with keys added before the closing brace; the rest byte for
    byte.

    The bytes of all lines are cut before each closing brace, and joined again with the keys:

        {"a": 1 | , "key": 2 | }\\n{"a": 3 | , "key": 4 | }\\n
    """
    assert isinstance(lines, RawLines)
    data = np.frombuffer(lines.data, np.uint8)
    offsets = lines.offsets
    braces = _last_positions(data, offsets[1:])
    # An object without keys has no comma before its first one.
    is_bare = data[_last_positions(data, braces)] == ord("{")
    keys = _keys_of(added, is_bare)

    cuts = np.concatenate([offsets[:1], braces, offsets[-1:]])
    joined = pc.binary_join_element_wise(
        arrow_of_bytes(lines.data, cuts),
        pa.concat_arrays([keys, _EMPTY]),  # the last piece is followed by no keys
        _EMPTY[0],
    )
    _, offset_buffer, joined_data = joined.buffers()
    new_cuts = np.frombuffer(offset_buffer, np.int64)[: len(cuts)]
    ends = new_cuts[1:-1] + offsets[1:] - braces
    return RawLines(joined_data, np.append(new_cuts[:1], ends))


def _keys_of(added: pa.RecordBatch, is_bare: Mask) -> pa.LargeBinaryArray:
    """Return columns as keys of JSON, after a comma. is_bare : whether a row has no other keys."""
    texts: list[pa.LargeStringArray | str] = [_commas(is_bare) if is_bare.any() else ", "]
    for name, column in zip(added.schema.names, added.columns, strict=True):
        separator = ", " if len(texts) > 1 else ""
        texts += [f'{separator}"{name}": ', pc.coalesce(as_json(column), _NULL)]
    return _joined(*texts).view(pa.large_binary())


def _commas(is_bare: Mask) -> pa.LargeStringArray:
    """Return a comma for each row, except for objects without keys."""
    return pc.if_else(arrow_of(is_bare), "", ", ").cast(pa.large_string())


def _last_positions(data: Bytes, ends: Ints) -> Ints:
    """Return the position of the last byte before each end that is not blank.

    Requires: there is such a byte.
    """
    positions = ends - 1
    for _ in range(_FEW_BLANKS):
        is_blank = np.isin(data[positions], _BLANKS)
        if not is_blank.any():
            return positions
        positions = positions - is_blank
    # Few lines end with more blanks: each is searched backwards in blocks.
    for row in np.flatnonzero(np.isin(data[positions], _BLANKS)).tolist():
        while data[positions[row]] in _BLANKS:
            start = max(0, int(positions[row]) - _BLOCK_BYTES)
            before = data[start : positions[row]].tobytes()
            positions[row] = start + len(before.rstrip(bytes(_BLANKS))) - 1
    return positions


def as_json(column: pa.Array) -> pa.LargeStringArray:
    """Return the values of a column, numbers, strings or lists of strings, as JSON.

    A null number or string stays null. Requires: numbers are finite; no list is null or has a null.
    """
    kind = column.type
    if pa.types.is_list(kind):
        quoted = as_json(column.flatten()).cast(pa.string())
        offsets = pc.subtract(column.offsets, column.offsets[0])
        lists = pa.ListArray.from_arrays(offsets, quoted)
        contents = pc.binary_join(lists, _COMMA.cast(pa.string()))
        return _joined("[", contents.cast(pa.large_string()), "]")
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return _quoted(column.cast(pa.large_string()))
    return column.cast(pa.large_string())


def _quoted(texts: pa.LargeStringArray) -> pa.LargeStringArray:
    """Return texts as strings of JSON; null stays null."""
    if pc.any(pc.match_substring_regex(texts, r'["\\\x00-\x1f]')).as_py():
        quoted = [
            None if text is None else json.dumps(text, ensure_ascii=False)
            for text in texts.to_pylist()
        ]
        return pa.array(quoted, pa.large_string())
    return _joined('"', texts, '"')


def _joined(*parts: pa.LargeStringArray | str) -> pa.LargeStringArray:
    """Return the texts of several columns joined row by row; null if one is null.

    parts : columns, or a text that is the same in all rows.
    """
    columns = [arrow_of_strings([part])[0] if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*columns, arrow_of_strings([""])[0])
