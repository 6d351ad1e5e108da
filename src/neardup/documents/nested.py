"""Columns by name; a field inside structs is named by its path, as in `doc.body`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

ColumnTypes: TypeAlias = dict[str, pa.DataType]
"""The types of columns by name."""


def nested_types(types: Mapping[str, pa.DataType]) -> ColumnTypes:
    """Return the types of columns and of the fields inside them; a column comes before a field of
    the same name.
    """
    found = dict(types)
    waiting = list(types.items())  # grows while it is read: breadth first
    for name, kind in waiting:
        if pa.types.is_struct(kind):
            fields = [(f"{name}.{field.name}", field.type) for field in kind]
            waiting += fields
            found = dict(fields) | found
    return {name: found[name] for name, _ in waiting}


def path_of(fields: pa.Schema | pa.StructType, name: str) -> tuple[int, ...] | None:
    """Return the indices of the fields, outermost first, that lead to a name; None if there is no
    such field, or several.
    """
    index = fields.get_field_index(name)
    if index >= 0:
        return (index,)
    for outer_name, inner_name in _splits(name):
        index = fields.get_field_index(outer_name)
        if index < 0 or not pa.types.is_struct(fields.field(index).type):
            continue
        inner = path_of(fields.field(index).type, inner_name)
        if inner is not None:
            return index, *inner
    return None


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a name before and after each of its dots."""
    for end, letter in enumerate(name):
        if letter == ".":
            yield name[:end], name[end + 1 :]


def outer_names(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    """Return the outermost columns that contain some columns, each once."""
    outer = []
    for name in names:
        path = path_of(schema, name)
        outer.append(schema.names[path[0]] if path else name)
    return list(dict.fromkeys(outer))


def column_of(rows: pa.RecordBatch, name: str) -> pa.Array | None:
    """Return a column, null if a struct around it is null; None if there is no such column, or
    several.
    """
    path = path_of(rows.schema, name)
    if path is None:
        return None
    outer, *inner = path
    column = rows.column(outer)
    return pc.struct_field(column, inner) if inner else column


def value_of(record: Mapping[str, Any], name: str) -> Any:
    """Return the value of a row in a column, which may be inside objects; None if there is none."""
    if name in record:
        return record[name]
    for outer_name, inner_name in _splits(name):
        inner = record.get(outer_name)
        value = value_of(inner, inner_name) if isinstance(inner, dict) else None
        if value is not None:
            return value
    return None


def with_column(rows: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Return rows with other values in a column. Requires: the name is unique."""
    path = path_of(rows.schema, name)
    assert path is not None
    outer, *inner = path
    column = _with_field(rows.column(outer), inner, values)
    field = rows.schema.field(outer).with_type(column.type)
    return rows.set_column(outer, field, column)


def _with_field(column: pa.Array, path: Sequence[int], values: pa.Array) -> pa.Array:
    """Return a struct with other values in the field to which a path leads."""
    if not path:
        return values
    index, *inner = path
    fields = list(column.type)
    arrays = [column.field(number) for number in range(len(fields))]
    arrays[index] = _with_field(arrays[index], inner, values)
    fields[index] = fields[index].with_type(arrays[index].type)
    # Without the mask, a struct that is null would become one of nulls.
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=column.is_null())
