"""Tables and Parquet files of signatures or fingerprints: ids, the bytes of each, and the scheme in the metadata."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.arrays import arrow_of
from neardup.atomic import AtomicFile
from neardup.errors import ColumnError, InputError, OutputError, SchemeError

SCHEME_KEY, INDEX_KEY = b"neardup.scheme", b"neardup.index"
UNKNOWN = "unknown"  # the name of the scheme where none is recorded
_BATCH_ROWS = 1 << 16
_SEAL, _DIGEST_BYTES = b"neardup.metadata", 16


class Rows(NamedTuple):
    """The rows of a table. ids : Arrow (n,); data : uint8 (n, num_bytes); empty : bool (n,), rows without features."""

    ids: pa.Array
    data: npt.NDArray[np.uint8]
    empty: npt.NDArray[np.bool_]


def make_table(column: str, rows: Rows, scheme: Mapping[str, Any], *, with_hex: bool = False) -> pa.Table:
    """Return a table of `id` and a column of fixed-size binary, null where a row is empty; the scheme in its metadata.

    Parameters
    ----------
    column : the name of the column of bytes.
    with_hex : adds a column `hex`, the bytes as hexadecimal digits.
    """
    schema = make_schema(column, rows.data.shape[1], scheme, rows.ids.type, with_hex=with_hex)
    valid = pa.py_buffer(np.packbits(~rows.empty, bitorder="little")) if rows.empty.any() else None
    buffers = [valid, pa.py_buffer(np.ascontiguousarray(rows.data))]
    column_bytes = pa.FixedSizeBinaryArray.from_buffers(schema.field(column).type, len(rows.ids), buffers)
    columns = [rows.ids, column_bytes]
    if with_hex:
        digits = [None if value is None else value.hex() for value in column_bytes.to_pylist()]
        columns.append(pa.array(digits, pa.string()))
    return pa.table(columns, schema=schema)


def make_schema(
    column: str, num_bytes: int, scheme: Mapping[str, Any], id_type: pa.DataType, *, with_hex: bool = False
) -> pa.Schema:
    """Return the schema of `make_table`."""
    fields = [pa.field("id", id_type), pa.field(column, pa.binary(num_bytes)), pa.field("hex", pa.string())]
    fields = fields if with_hex else fields[:2]
    return pa.schema(fields, {SCHEME_KEY: json.dumps(dict(scheme)).encode()})


def read_rows(table: pa.Table, column: str, name: str) -> Rows:
    """Return the rows of a table with a column of fixed-size binary; ids are row numbers, as text, where it has none.

    Raises
    ------
    ColumnError
        If there is no such column, or the id of a row that is not empty is null.
    """
    data, empty = read_cells(table, column, name)
    return Rows(read_ids(table, empty, name), data, empty)


def read_cells(table: pa.Table, column: str, name: str) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.bool_]]:
    """Return the bytes of a column of fixed-size binary, uint8 (n, num_bytes), and its nulls; else ColumnError."""
    kind = table.schema.field(column).type if column in table.schema.names else None
    if kind is None or not pa.types.is_fixed_size_binary(kind):
        raise ColumnError(
            f"{name} has no column {column!r} of fixed-size binary: it has {list_columns(table.schema)}. Create one "
            "with neardup.sign (neardup sign)."
        )
    cells = one_chunk(table[column])
    empty = cells.is_null().to_numpy(zero_copy_only=False)
    start, num_bytes = kind.byte_width * cells.offset, kind.byte_width * len(cells)
    data = np.frombuffer(cells.buffers()[1] or b"", np.uint8)[start : start + num_bytes]
    return data.reshape(len(cells), kind.byte_width), empty


def read_ids(table: pa.Table, empty: npt.NDArray[np.bool_], name: str) -> pa.Array:
    """Return the column `id` of a table as int64 or text, or row numbers as text; ColumnError as of `read_rows`."""
    if "id" not in table.schema.names:
        return arrow_of(np.arange(table.num_rows)).cast(pa.string())
    ids = one_chunk(table["id"])
    if ids.null_count and (ids.is_null().to_numpy(zero_copy_only=False) & ~empty).any():
        raise ColumnError(f"{name} has a null in the column 'id'. Give every row an id.")
    if pa.types.is_integer(ids.type):
        return ids.cast(pa.int64())
    return ids if pa.types.is_large_string(ids.type) else ids.cast(pa.string())


def read_json(schema: pa.Schema, key: bytes) -> tuple[dict[str, Any] | None, str]:
    """Return the JSON object under a key of the metadata, None if there is none, and the beginning of its text."""
    text = (schema.metadata or {}).get(key, b"nothing")
    try:
        value = json.loads(text)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else None, text[:200].decode(errors="replace")


def read_table(path: str | os.PathLike[str]) -> pa.Table:
    """Return the rows of a Parquet file, or raise InputError."""
    with _readable(path):
        return _open(path).read()


def read_batches(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """Yield the rows of a Parquet file, some 65,000 at a time and at least one table, or raise InputError.

    columns : the columns to read; None for all.
    """
    with _readable(path):
        file = _open(path)
        empty = file.schema_arrow.empty_table()
        yield empty if columns is None else empty.select(columns)
        for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
            yield pa.Table.from_batches([batch])


def _open(path: str | os.PathLike[str]) -> pq.ParquetFile:
    """Open a Parquet file whose pages have checksums; raise OSError if its metadata differ from those written."""
    metadata, seal = _metadata_of(Path(path))
    if seal.startswith(_SEAL) and seal != _seal(metadata):
        raise OSError("its metadata are damaged. Restore the file from a backup, or create it again")
    # A buffer would keep all columns read until the end.
    return pq.ParquetFile(path, pre_buffer=False, page_checksum_verification=True)


def _metadata_of(path: Path) -> tuple[bytes, bytes]:
    """Return the metadata at the end of a Parquet file, with their length, and the seal that may precede them."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 8))
        length = min(size, int.from_bytes(file.read(4), "little") + 8)
        file.seek(max(0, size - length - len(_SEAL) - _DIGEST_BYTES))
        data = file.read()
    return data[-length:], data[:-length]


def _seal(metadata: bytes) -> bytes:
    return _SEAL + hashlib.blake2b(metadata, digest_size=_DIGEST_BYTES).digest()


def write_tables(path: str | os.PathLike[str], tables: Iterable[pa.Table], overwrite: bool) -> None:
    """Write tables of one schema, at least one, to a Parquet file that appears only when it is complete.

    Raises
    ------
    OutputError
        If the file exists and is not to be replaced, or cannot be written.
    """
    target = Path(path)
    if target.exists() and not overwrite:
        raise OutputError(f"The output {target} already exists. Use another file, or pass overwrite=True.")
    rows = iter(tables)
    first = next(rows)
    # Hashes do not compress.
    codecs = {name: "zstd" if name == "id" else "none" for name in first.schema.names}
    with AtomicFile(target) as partial:
        options = {"compression": codecs, "use_dictionary": ["id"], "write_page_checksum": True}
        with pq.ParquetWriter(partial, first.schema, **options) as writer:
            for table in chain([first], rows):
                writer.write_table(table)
        # Checksums of Parquet are those of pages. Between pages and metadata, readers ignore what nothing refers to.
        metadata, _ = _metadata_of(partial)
        with open(partial, "r+b") as file:
            file.seek(-len(metadata), os.SEEK_END)
            file.write(_seal(metadata) + metadata)


def require_same(
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    first_name: str,
    second_name: str,
    *,
    kind: str = "Fingerprints",
) -> None:
    """Raise SchemeError unless two schemes are equal; kind : the plural that names what has them."""
    different = sorted(name for name in {*first, *second} if first.get(name) != second.get(name))
    if different:
        ours = ", ".join(f"{name}={first.get(name)!r}" for name in different)
        theirs = ", ".join(f"{name}={second.get(name)!r}" for name in different)
        raise SchemeError(
            f"{kind} of different schemes cannot be compared: {first_name} has {ours}; {second_name} has {theirs}. "
            "Create both with the same settings."
        )


def list_columns(schema: pa.Schema) -> str:
    """Return names and types of the columns, for errors."""
    return ", ".join(f"{field.name} ({field.type})" for field in schema)


def one_chunk(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column in one piece: `combine_chunks` would copy a single one, too."""
    if isinstance(column, pa.Array):
        return column
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


@contextmanager
def _readable(path: str | os.PathLike[str]) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{os.fspath(path)} cannot be read as Parquet: {error}. Pass a file of signatures or fingerprints."
        ) from error
