"""Columns of views (string_view, binary_view), as polars exports them: checked, and converted
before they are used.
"""

from __future__ import annotations

import pyarrow as pa

from neardup.documents.bounds import check_lists
from neardup.errors import InputError

_PLAIN = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}


def has_views(kind: pa.DataType) -> bool:
    """Return whether a type is a view, or contains a view."""
    # The text of a type names all types inside it. A field with this name is taken for a view as
    # well, which costs a look at the column and changes nothing.
    return "string_view" in str(kind) or "binary_view" in str(kind)


def check_memory(table: pa.Table, name: str) -> None:
    """Raise InputError if a column of lists or views points outside its buffers: Arrow reads
    unchecked.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        check_lists(column.chunks, f"column '{field.name}' of {name}")
        if not has_views(field.type):
            continue
        try:
            for chunk in column.chunks:
                # As binary: invalid UTF-8 costs a row, when it is read.
                if pa.types.is_string_view(field.type):
                    chunk = chunk.view(pa.binary_view())
                chunk.validate(full=True)
        except (pa.ArrowException, ValueError, IndexError) as error:
            raise InputError(
                f"Column '{field.name}' of {name} is damaged: {error}. Create the table again."
            ) from error


def num_bytes(array: pa.Array) -> int:
    """Return the bytes of the rows of an array; with views and an Arrow before 24, of its whole
    buffers.
    """
    try:
        return int(array.nbytes)
    except pa.ArrowTypeError:
        return int(array.get_total_buffer_size())


def without_views(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with plain columns in place of views: Arrow cannot filter views, nor, before 21,
    write them to Parquet.
    """
    schema = plain_schema(rows.schema)
    if schema is rows.schema:
        return rows
    columns = list(map(_cast, rows.columns, schema.types))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_string_view(column.type):
        # A cast to strings would stop at the first text that is not UTF-8.
        return column.cast("large_binary").view(kind)
    return column.cast(kind) if column.type != kind else column


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return a schema with plain types in place of views; the schema itself if it has none."""
    if not any(map(has_views, schema.types)):
        return schema
    fields = [field.with_type(replace_types(field.type, _PLAIN)) for field in schema]
    return pa.schema(fields, schema.metadata)


def replace_types(kind: pa.DataType, new: dict[pa.DataType, pa.DataType]) -> pa.DataType:
    """Return a type with other types of its values, also in lists, structs and dictionaries."""
    t = pa.types
    if t.is_dictionary(kind):
        return pa.dictionary(kind.index_type, replace_types(kind.value_type, new), kind.ordered)
    if not t.is_nested(kind):
        return new.get(kind, kind)
    inner = map(kind.field, range(kind.num_fields))
    fields = [field.with_type(replace_types(field.type, new)) for field in inner]
    if t.is_struct(kind):
        return pa.struct(fields)
    if t.is_fixed_size_list(kind):
        return pa.list_(fields[0], kind.list_size)
    if t.is_list(kind):
        return pa.list_(fields[0])
    if t.is_large_list(kind):
        return pa.large_list(fields[0])
    # The only field of a map is a struct of its keys and items, so their types are asked for.
    if t.is_map(kind):
        key_type = replace_types(kind.key_type, new)
        return pa.map_(key_type, replace_types(kind.item_type, new), kind.keys_sorted)
    return kind
