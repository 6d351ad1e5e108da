"""Packed rows: what is packed comes back, and damage is noticed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from neardup.schemas import DISTANCE, EXACT, SIMILARITY, indexed_schema
from neardup.stores.packed_rows import pack_table, unpack_table

SCHEMA = indexed_schema((SIMILARITY, DISTANCE, EXACT))


def value(field: pa.Field, i: int) -> object:
    """Return some value of a type, of lengths around those where a varint grows; a null now and
    then.
    """
    if field.nullable and i % 3 == 0:
        return None
    if pa.types.is_boolean(field.type):
        return i % 2 == 0
    if pa.types.is_floating(field.type):
        return i / 7
    if pa.types.is_fixed_size_binary(field.type):
        return bytes(range(i % 100, i % 100 + 16))
    if pa.types.is_large_binary(field.type):
        return bytes(i % 251 for _ in range((0, 1, 126, 127, 128, 16_383, 16_384)[i % 7]))
    if pa.types.is_large_string(field.type):
        return ("", "\0", "n\u00fa", "\U0001f600" * 40)[i % 4]
    return i % 200


def make_table(num_rows: int) -> pa.Table:
    columns = [pa.array([value(field, i) for i in range(num_rows)], field.type) for field in SCHEMA]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


@pytest.mark.slow
@pytest.mark.parametrize("num_rows", [0, 1, 200])
def test_compact_rows_come_back_equal(num_rows):
    table = make_table(num_rows)
    for part in (table, table.slice(1), pa.concat_tables([table, table.slice(3, 9)])):
        packed = pack_table(part, compact=True)
        assert packed.offsets[-1] == len(packed.data)
        assert unpack_table(packed.data, part.num_rows, list(SCHEMA), compact=True).equals(
            part.combine_chunks()
        )


@pytest.mark.slow
def test_every_cut_of_packed_rows_is_noticed():
    packed = pack_table(make_table(3).select(["id", "content", "similarity"]), compact=True).data
    fields = [SCHEMA.field(name) for name in ("id", "content", "similarity")]
    for size in range(len(packed)):
        with pytest.raises(ValueError, match="of 3 packed rows is damaged"):
            unpack_table(packed[:size], 3, fields, compact=True)
    with pytest.raises(ValueError, match="row 3 of 3 packed rows is damaged"):
        unpack_table(np.append(packed, np.uint8(0)), 3, fields, compact=True)


def test_a_number_of_another_width_is_noticed():
    packed = pack_table(make_table(3).select(["row"]), compact=True).data
    with pytest.raises(ValueError, match="a value of 4 bytes where double has 8"):
        unpack_table(packed, 3, [pa.field("row", pa.float64())], compact=True)
