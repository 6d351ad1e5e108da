"""Columns of views (string_view, binary_view), as polars exports them: checked, and converted
before they are used.
"""

from __future__ import annotations

import pyarrow as pa

from neardup.errors import InputError


def has_views(kind: pa.DataType) -> bool:
    """Return whether a type is of views, or contains one."""
    return "string_view" in str(kind) or "binary_view" in str(kind)


def check_views(table: pa.Table, name: str) -> None:
    """Raise InputError if a column of views points outside of its buffers, which would be read all
    the same.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        if not has_views(field.type):
            continue
        try:
            for chunk in column.chunks:
                # That text is UTF-8 is checked by row, when it is read.
                (
                    chunk.view(pa.binary_view()) if pa.types.is_string_view(field.type) else chunk
                ).validate(full=True)
        except (pa.ArrowException, ValueError, IndexError) as error:
            raise InputError(
                f"Column '{field.name}' of {name} is damaged: {error}. Create the table again."
            ) from error


def num_bytes(array: pa.Array) -> int:
    """Return the bytes of the rows of an array; those of its whole buffers if it has views and
    Arrow is before 24.
    """
    try:
        return int(array.nbytes)
    except pa.ArrowTypeError:
        return int(array.get_total_buffer_size())


def without_views(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with plain columns in place of views, for which Arrow has no filter, and no
    Parquet before 21.
    """
    schema = plain_schema(rows.schema)
    if schema is rows.schema:
        return rows
    columns = [
        _cast(column, field.type) for field, column in zip(schema, rows.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_string_view(
        column.type
    ):  # a cast to strings would stop at the first text that is not UTF-8
        return column.cast("large_binary").view(kind)
    return column.cast(kind) if column.type != kind else column


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with plain types in place of views; itself if it has none."""
    if not any(map(has_views, schema.types)):
        return schema
    return pa.schema(
        [field.with_type(_plain_type(field.type)) for field in schema], schema.metadata
    )


def _plain_type(kind: pa.DataType) -> pa.DataType:
    t = pa.types
    if t.is_string_view(kind) or t.is_binary_view(kind):
        return pa.large_string() if t.is_string_view(kind) else pa.large_binary()
    if t.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _plain_type(kind.value_type), kind.ordered)
    if not t.is_nested(kind):
        return kind
    fields = [
        field.with_type(_plain_type(field.type))
        for field in map(kind.field, range(kind.num_fields))
    ]
    if t.is_struct(kind):
        return pa.struct(fields)
    if t.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    if t.is_list(kind) or t.is_large_list(kind):
        return (pa.list_ if t.is_list(kind) else pa.large_list)(fields[0])
    if t.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_type(kind.item_type), kind.keys_sorted)
    return kind
