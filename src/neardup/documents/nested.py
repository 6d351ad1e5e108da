"""Columns by name; a field inside structs and lists is named by its path, as in `doc.body`,
`tags[]` and `messages[].content`.

    rows        messages = [{role: user, content: a}, {role: gpt, content: b}]   []   [{...: c}]
    column_of   messages[].content = [a, b]  []  [c]        a list of each row, whatever its depth
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Ints, arrow_of, offsets_from_lengths

ColumnTypes: TypeAlias = dict[str, pa.DataType]
"""The types of columns by name."""

ELEMENTS = "[]"
"""The name of the elements of a list in a path."""


def is_list(kind: pa.DataType) -> bool:
    """Return whether a type is a list, of any kind."""
    t = pa.types
    return bool(t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind))


def nested_types(types: Mapping[str, pa.DataType]) -> ColumnTypes:
    """Return the types of columns and of the fields inside them; a column comes before a field of
    the same name.

    A field inside lists has a type of lists, as `column_of` returns it. Numbers of a list have no
    name: they are a vector.
    """
    found = dict(types)
    waiting = [(name, kind, False) for name, kind in types.items()]
    for name, kind, is_in_list in waiting:  # grows while it is read: breadth first
        if pa.types.is_struct(kind):
            waiting += [(f"{name}.{field.name}", field.type, is_in_list) for field in kind]
        elif is_list(kind):
            waiting.append((name + ELEMENTS, kind.value_type, True))
        elif is_in_list and not (name.endswith(ELEMENTS) and pa.types.is_primitive(kind)):
            found.setdefault(name, pa.large_list(kind))
        if not is_in_list:
            found.setdefault(name, kind)
    return {name: found[name] for name, _, _ in waiting if name in found}


def outermost(types: Mapping[str, pa.DataType]) -> ColumnTypes:
    """Return the columns themselves, of the types that `nested_types` returns."""
    return {
        name: kind
        for name, kind in types.items()
        if not any(pa.types.is_nested(types.get(outer, pa.null())) for outer, _ in _splits(name))
    }


def path_of(fields: pa.Schema | pa.DataType, name: str) -> tuple[int, ...] | None:
    """Return the indices of the fields, outermost first, that lead to a name; None if there is no
    such field, or several. The elements of a list are its field 0.
    """
    index = _index_of(fields, name)
    if index is not None:
        return (index,)
    for outer_name, inner_name in _splits(name):
        index = _index_of(fields, outer_name)
        if index is None:
            continue
        inner = path_of(fields.field(index).type, inner_name)
        if inner is not None:
            return index, *inner
    return None


def _index_of(fields: pa.Schema | pa.DataType, name: str) -> int | None:
    """Return the index of a field of a schema, a struct or a list; None if there is no such field,
    or several.
    """
    if isinstance(fields, pa.DataType):
        if is_list(fields):
            return 0 if name == ELEMENTS else None
        if not pa.types.is_struct(fields):
            return None
    index: int = fields.get_field_index(name)
    return index if index >= 0 else None


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a name before and after each of its dots, and before brackets."""
    for end, letter in enumerate(name):
        if letter == ".":
            yield name[:end], name[end + 1 :]
        elif end > 0 and name.startswith(ELEMENTS, end):
            yield name[:end], name[end:]


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

    Of a field inside lists, a LargeListArray with the values of each row.
    """
    path = path_of(rows.schema, name)
    if path is None:
        return None
    outer, *inner = path
    return _field_of(rows.column(outer), inner)


def _field_of(column: pa.Array, path: Sequence[int]) -> pa.Array:
    """Return the field of a column to which a path leads."""
    for depth, index in enumerate(path):
        if is_list(column.type):
            return _field_of_elements(column, path[depth + 1 :])
        column = pc.struct_field(column, index)
    return column


def _field_of_elements(lists: pa.Array, path: Sequence[int]) -> pa.LargeListArray:
    """Return the field of the elements of lists to which a path leads, in one list for each row."""
    offsets = element_offsets(lists)
    # Not `values`, which also has elements outside a slice and in null rows.
    values = _field_of(lists.flatten(), path)
    if path and is_list(values.type):
        # Lists in lists become one: where the inner lists of a row begin, its values begin.
        offsets = element_offsets(values)[offsets]
        values = values.flatten()
    return pa.LargeListArray.from_arrays(arrow_of(offsets), values, mask=lists.is_null())


def element_offsets(lists: pa.Array) -> Ints:
    """Return where the elements of each list begin among all of them; a null has none."""
    sizes = pc.list_value_length(lists).fill_null(0)
    return offsets_from_lengths(sizes.to_numpy(zero_copy_only=False))


ROLE_NAMES = ("role", "from")
"""The fields of a turn that name its speaker: of OpenAI's chats, and of ShareGPT's."""


def value_of(record: Any, name: str, roles: Sequence[str] = ()) -> Any:
    """Return the value of a row in a column, which may be inside objects; None if there is none.

    Of a field inside lists, a list of its values. roles : the roles whose turns are in the
    list; all turns if there are none.
    """
    if isinstance(record, list):
        inner_name = name.removeprefix(ELEMENTS)
        if inner_name == name:
            return None
        chosen = [element for element in record if _has_role(element, roles)]
        if not inner_name:
            return chosen
        # Lists inside a turn have its role.
        values = [value_of(element, inner_name.removeprefix(".")) for element in chosen]
        if ELEMENTS not in inner_name:
            return values
        # Lists in lists become one, as in `column_of`.
        return [inner for value in values if isinstance(value, list) for inner in value]
    if not isinstance(record, Mapping):
        return None
    if name in record:
        return record[name]
    for outer_name, inner_name in _splits(name):
        value = value_of(record.get(outer_name), inner_name, roles)
        if value is not None:
            return value
    return None


def role_of(turn: Mapping[str, Any]) -> Any:
    """Return the role of a turn: the first of ROLE_NAMES that is not null, or None."""
    roles = [turn[name] for name in ROLE_NAMES if turn.get(name) is not None]
    return next(iter(roles), None)


def _has_role(element: Any, roles: Sequence[str]) -> bool:
    """Return whether an element of a list is a turn of one of the roles, or no turn."""
    return not roles or not isinstance(element, Mapping) or role_of(element) in roles


def with_column(rows: pa.RecordBatch, name: str, values: pa.Array) -> pa.RecordBatch:
    """Return rows with other values in a column. Requires: the name is unique.

    values : of a field inside lists, the values of all lists, as `column_of(...).flatten()`.
    """
    path = path_of(rows.schema, name)
    assert path is not None
    outer, *inner = path
    column = _with_field(rows.column(outer), inner, values)
    field = rows.schema.field(outer).with_type(column.type)
    return rows.set_column(outer, field, column)


def _with_field(column: pa.Array, path: Sequence[int], values: pa.Array) -> pa.Array:
    """Return a column with other values in the field to which a path leads."""
    if not path:
        return values
    index, *inner = path
    if is_list(column.type):
        return _with_elements(column, _with_field(column.flatten(), inner, values))
    fields = list(column.type)
    arrays = [column.field(number) for number in range(len(fields))]
    # As in `_field_of`: null in a null struct, so that the lists of both have the same elements.
    arrays[index] = _with_field(pc.struct_field(column, index), inner, values)
    fields[index] = fields[index].with_type(arrays[index].type)
    # Without the mask, a struct that is null would become one of nulls.
    return pa.StructArray.from_arrays(arrays, fields=fields, mask=column.is_null())


def _with_elements(lists: pa.Array, values: pa.Array) -> pa.Array:
    """Return lists of the same kind and the same sizes with other elements."""
    kind = lists.type
    field = kind.value_field.with_type(values.type)
    # Lists of a fixed size have elements in null rows too, and `values` has none: a plain list
    # has the same rows, and is cast.
    is_fixed = pa.types.is_fixed_size_list(kind)
    is_large = pa.types.is_large_list(kind)
    made: Any = pa.LargeListArray if is_large else pa.ListArray
    made_type = pa.large_list(field) if is_large else pa.list_(field)
    offsets = element_offsets(lists).astype("i8" if is_large else "i4")
    column = made.from_arrays(arrow_of(offsets), values, type=made_type, mask=lists.is_null())
    return column.cast(pa.list_(field, kind.list_size)) if is_fixed else column
