"""Write and read files of fingerprints: Parquet with an id, the fingerprint in bytes, and the scheme beside them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.errors import ColumnError, InputError, SchemeError

SCHEME_KEY = b"neardup.scheme"
BITS = (32, 64, 128, 256)


class FingerprintFile(NamedTuple):
    """What a file of fingerprints holds.

    ids : Arrow array of strings or int64, (num_fingerprints,). fingerprints : uint64 (num_fingerprints, num_words).
    scheme : what they were made with. num_null : rows that were left out, of documents without features.
    """

    ids: pa.Array
    fingerprints: npt.NDArray[np.uint64]
    scheme: dict[str, Any]
    num_null: int


def fingerprint_schema(
    scheme: Mapping[str, Any], columns: tuple[str, ...] = ("fingerprint",), *, id_type: pa.DataType | None = None
) -> pa.Schema:
    """Return the schema of a file of fingerprints: bytes, hexadecimal digits, or both; null without features."""
    fields = [pa.field("id", id_type or pa.string(), nullable=False)]
    kinds = {"fingerprint": pa.binary(int(scheme["bits"]) // 8), "hex": pa.string()}
    return pa.schema(
        [*fields, *(pa.field(name, kinds[name]) for name in columns)], {SCHEME_KEY: json.dumps(dict(scheme)).encode()}
    )


def to_binary(
    fingerprints: npt.NDArray[np.uint64], bits: int, featured: npt.NDArray[np.bool_] | None = None
) -> pa.FixedSizeBinaryArray:
    """Return fingerprints as bytes, the most significant first, so that they read as the integer's digits do.

    Parameters
    ----------
    fingerprints : uint64 (num_fingerprints, num_words), bit i in bit i % 64 of word i // 64.
    featured : bool (num_fingerprints,), False where there is no fingerprint; None for all True.
    """
    num_bytes = 8 * fingerprints.shape[1]
    words = np.ascontiguousarray(fingerprints[:, ::-1]).astype(">u8").view(np.uint8).reshape(-1, num_bytes)
    data = np.ascontiguousarray(words[:, num_bytes - bits // 8 :])
    valid = None
    if featured is not None and not featured.all():
        valid = pa.py_buffer(np.packbits(featured, bitorder="little"))
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(bits // 8), len(data), [valid, pa.py_buffer(data)])


def to_hex(fingerprints: npt.NDArray[np.uint64], bits: int, featured: npt.NDArray[np.bool_]) -> pa.Array:
    """Return fingerprints as hexadecimal digits, null where there is none."""
    digits = to_binary(fingerprints, bits).to_pylist()
    return pa.array(
        [one.hex() if has else None for one, has in zip(digits, featured.tolist(), strict=True)], pa.string()
    )


def from_binary(column: pa.Array) -> npt.NDArray[np.uint64]:
    """Return fingerprints given as bytes, the most significant first, or as uint64; uint64 (n, num_words), no nulls."""
    if pa.types.is_uint64(column.type):
        return np.array(column.to_numpy(zero_copy_only=False), np.uint64).reshape(-1, 1)
    width = column.type.byte_width
    if len(column) == 0:
        return np.empty((0, -(-width // 8)), np.uint64)
    digits = np.dtype(">u8" if width >= 8 else ">u4")
    words = np.frombuffer(column.buffers()[1], digits, count=width * (column.offset + len(column)) // digits.itemsize)
    words = words.reshape(-1, width // digits.itemsize)[column.offset :]
    return words[:, ::-1].astype(np.uint64, order="C")


def from_column(column: pa.Array | pa.ChunkedArray, bits: int) -> npt.NDArray[np.uint64]:
    """Return the fingerprints of a column that someone gave, uint64 (n, num_words).

    Raises
    ------
    InputError
        If it is of another type or width, or has a null, as a document without features has.
    """
    if _bits(column.type) != bits:
        raise InputError(
            f"Fingerprints of {bits} bits are a column of {bits // 8} bytes each{' or of uint64' * (bits == 64)}: got "
            f"{column.type}. Make them with bits={bits}."
        )
    if column.null_count:
        raise InputError(
            f"{column.null_count:,} of {len(column):,} fingerprints are null: such documents have no features, and "
            "resemble nothing. Leave them out: table.filter(table['fingerprint'].is_valid())."
        )
    return from_binary(_one_chunk(column))


def is_fingerprint_file(path: str | os.PathLike[str]) -> bool:
    """Return whether a file is one that `neardup fingerprint` wrote, or has a column `fingerprint` of such bytes."""
    try:
        return holds_fingerprints(pq.read_schema(path))
    except (OSError, pa.ArrowException):
        return False


def holds_fingerprints(schema: pa.Schema) -> bool:
    """Return whether a table has a column `fingerprint` of 4, 8, 16 or 32 bytes, or of uint64."""
    return "fingerprint" in schema.names and _bits(schema.field("fingerprint").type) is not None


def read_fingerprints(path: str | os.PathLike[str]) -> FingerprintFile:
    """Read a file of fingerprints.

    Raises
    ------
    InputError
        If it cannot be read, or as `from_table` has it.
    """
    try:
        table = pq.read_table(path, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{os.fspath(path)} cannot be read as Parquet: {error}. Name a file of fingerprints."
        ) from error
    return from_table(table, os.fspath(path))


def from_table(table: pa.Table, name: str) -> FingerprintFile:
    """Return the fingerprints of a table; one without a scheme beside it has the scheme "unknown".

    Parameters
    ----------
    table : with a column `fingerprint`, and if it likes `id`; else ids are running numbers.
    name : what errors call it.

    Raises
    ------
    ColumnError
        If it has no column `fingerprint` of 4, 8, 16 or 32 bytes, or of uint64, or an id is null.
    InputError
        If the scheme beside it cannot be read, or is one of fingerprints of another length.
    """
    if not holds_fingerprints(table.schema):
        raise ColumnError(
            f"{name} has no column 'fingerprint' of {', '.join(str(bits // 8) for bits in BITS)} bytes or of uint64: "
            f"it has {', '.join(f'{field.name} ({field.type})' for field in table.schema)}. Make one with neardup "
            "fingerprint."
        )
    bits = _bits(table.schema.field("fingerprint").type)
    scheme = _scheme_of(table.schema, bits, name)
    ids = table["id"] if "id" in table.schema.names else pa.array(np.arange(table.num_rows)).cast(pa.string())
    column = table["fingerprint"]
    if column.null_count:
        featured = column.is_valid()
        column, ids = column.filter(featured), ids.filter(featured)
    if ids.null_count:
        raise ColumnError(f"{name} has a null in the column 'id'. Name every fingerprint.")
    ids = ids.cast(pa.int64() if pa.types.is_integer(ids.type) else pa.string())
    return FingerprintFile(_one_chunk(ids), from_binary(_one_chunk(column)), scheme, table.num_rows - len(column))


def _scheme_of(schema: pa.Schema, bits: int | None, name: str) -> dict[str, Any]:
    """Return the scheme that stands beside a column of so many bits."""
    written = (schema.metadata or {}).get(SCHEME_KEY)
    if written is None:
        return {"name": "unknown", "bits": bits}
    try:
        scheme = json.loads(written)
    except ValueError:
        scheme = None
    if not isinstance(scheme, dict) or scheme.get("bits") != bits:
        raise InputError(
            f"The scheme in the metadata of {name} is not that of fingerprints of {bits} bits: got "
            f"{written[:200].decode(errors='replace')}. Make the file again with neardup fingerprint."
        )
    return scheme


def require_same(
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    first_name: str,
    second_name: str,
    *,
    kind: str = "Fingerprints",
) -> None:
    """Raise SchemeError unless two schemes, of fingerprints or what `kind` says, are equal."""
    different = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    if different:
        ours = ", ".join(f"{name}={first.get(name)!r}" for name in different)
        theirs = ", ".join(f"{name}={second.get(name)!r}" for name in different)
        raise SchemeError(
            f"{kind} of two schemes do not compare: {first_name} has {ours}; {second_name} has {theirs}. Make "
            f"both with the same settings{' (neardup fingerprint)' if kind == 'Fingerprints' else ''}."
        )


def _bits(kind: pa.DataType) -> int | None:
    """Return how many bits the fingerprints of a column have, or None if it can hold none."""
    if pa.types.is_uint64(kind):
        return 64
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width * 8 in BITS:
        return int(kind.byte_width * 8)
    return None


def _one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column in one piece: `combine_chunks` would copy a single one, too."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
