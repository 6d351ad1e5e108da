"""Columns by their names; one inside of structs has the path to it, as in `doc.body`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

ColumnTypes: TypeAlias = dict[str, pa.DataType]
"""The types of columns by name."""


def nested_types(types: Mapping[str, pa.DataType]) -> ColumnTypes:
    """Return the types of columns and of the fields inside them; a column comes before a field of
    the same name.
    """
    found, waiting = dict(types), list(types.items())
    for name, kind in waiting:
        if pa.types.is_struct(kind):
            fields = [
                (f"{name}.{kind[place].name}", kind[place].type) for place in range(kind.num_fields)
            ]
            waiting += fields
            found = dict(fields) | found
    return {name: found[name] for name, _ in waiting}


def path_of(fields: pa.Schema | pa.StructType, name: str) -> tuple[int, ...] | None:
    """Return the numbers of a field and of the fields inside it that lead to a name; None if there
    is no single one.
    """
    position = fields.get_field_index(name)
    if position >= 0:
        return (position,)
    for end in (place for place, letter in enumerate(name) if letter == "."):
        outer = fields.get_field_index(name[:end])
        kind = None if outer < 0 else fields.field(outer).type
        inner = (
            path_of(kind, name[end + 1 :])
            if kind is not None and pa.types.is_struct(kind)
            else None
        )
        if inner is not None:
            return outer, *inner
    return None


def outer_names(schema: pa.Schema, names: Sequence[str]) -> list[str]:
    """Return the columns, each once, that contain some columns."""
    paths = {name: path_of(schema, name) for name in names}
    return list(
        dict.fromkeys(schema.names[path[0]] if path else name for name, path in paths.items())
    )


def column_of(rows: pa.RecordBatch, name: str) -> pa.Array | None:
    """Return a column, null where a struct around it is null; None if there is no single one of
    that name.
    """
    path = path_of(rows.schema, name)
    if path is None:
        return None
    column = rows.column(path[0])
    return pc.struct_field(column, path[1:]) if path[1:] else column


def value_of(record: Mapping[str, Any], name: str) -> Any:
    """Return the value of a row in a column, which may be inside of objects; None if there is
    none.
    """
    if name in record:
        return record[name]
    for end in (place for place, letter in enumerate(name) if letter == "."):
        inner = record.get(name[:end])
        value = value_of(inner, name[end + 1 :]) if isinstance(inner, dict) else None
        if value is not None:
            return value
    return None


def with_column(rows: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Return rows with other values in a column. Requires: there is a single one of that name."""
    path = path_of(rows.schema, name)
    assert path is not None
    column, field = _with_field(rows.column(path[0]), path[1:], values), rows.schema.field(path[0])
    return rows.set_column(path[0], field.with_type(column.type), column)


def _with_field(column: pa.Array, path: tuple[int, ...], values: pa.Array) -> pa.Array:
    """Return a struct with other values in the field to which a path leads."""
    if not path:
        return values
    kind = column.type
    arrays, fields = [column.field(place) for place in range(kind.num_fields)], list(kind)
    arrays[path[0]] = _with_field(arrays[path[0]], path[1:], values)
    fields[path[0]] = fields[path[0]].with_type(arrays[path[0]].type)
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=column.is_null())
