"""Files of an index of signatures: Parquet with an id and a signature in bytes, scheme and settings in the metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.errors import InputError
from neardup.fingerprints.files import SCHEME_KEY
from neardup.output.table_file import TableFile

INDEX_KEY = b"neardup.index"
_BATCH_ROWS = 1 << 16

Values = npt.NDArray[np.uint32]


class Rows(NamedTuple):
    """Some rows of an index. ids : Arrow; values : uint32 (n, num_hashes); sizes : int64 (n,), where it has them."""

    ids: pa.Array
    values: Values
    sizes: npt.NDArray[np.int64] | None = None


class IndexFile(NamedTuple):
    """A file of an index: how the index was made, what its signatures were made with, and its rows, in stretches."""

    settings: dict[str, Any]
    scheme: dict[str, Any] | None
    rows: Iterator[Rows]


def write_index(
    path: str | os.PathLike[str],
    rows: Rows,
    settings: Mapping[str, Any],
    scheme: Mapping[str, Any] | None,
    *,
    overwrite: bool,
) -> None:
    """Write an index: columns `id`, `signature` (num_hashes uint32, the lowest byte first) and perhaps `size`.

    Parameters
    ----------
    settings : of the index; "kind" is its class. scheme : of its signatures, or None.
    """
    metadata = {INDEX_KEY: json.dumps(dict(settings)).encode()}
    if scheme is not None:
        metadata[SCHEME_KEY] = json.dumps(dict(scheme)).encode()
    width = max(4 * rows.values.shape[1], 1)
    fields = [pa.field("id", rows.ids.type, False), pa.field("signature", pa.binary(width), False)]
    fields += [] if rows.sizes is None else [pa.field("size", pa.int64(), False)]
    schema = pa.schema(fields, metadata)

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, len(rows.ids), _BATCH_ROWS):
            part = slice(start, start + _BATCH_ROWS)
            data = pa.py_buffer(np.ascontiguousarray(rows.values[part], "<u4"))
            ids = rows.ids[part]
            columns = [ids, pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(ids), [None, data])]
            columns += [] if rows.sizes is None else [pa.array(rows.sizes[part])]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    TableFile(Path(path), overwrite=overwrite).write(batches(), schema)


def read_index(path: str | os.PathLike[str], kind: str) -> IndexFile:
    """Open a file that `write_index` wrote.

    Raises
    ------
    InputError
        If it cannot be read, is no file of an index, or is one of another kind.
    """
    name = os.fspath(path)
    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{name} cannot be read as Parquet: {error}. Name a file that {kind}.save wrote.") from error
    metadata = file.schema_arrow.metadata or {}
    settings, scheme = (_read_json(metadata.get(key)) for key in (INDEX_KEY, SCHEME_KEY))
    if settings is None or "kind" not in settings or not {"id", "signature"} <= set(file.schema_arrow.names):
        raise InputError(
            f"{name} is no file of an index: it has no {INDEX_KEY.decode()} in its metadata, or lacks a "
            f"column. Name a file that {kind}.save wrote."
        )
    made_by = settings.pop("kind")
    if made_by != kind:
        raise InputError(f"{name} was saved by {made_by}: got {kind}.open. Open it with {made_by}.open.")
    return IndexFile(settings, scheme, _read_rows(file))


def _read_rows(file: pq.ParquetFile) -> Iterator[Rows]:
    for batch in file.iter_batches(_BATCH_ROWS):
        column = batch.column("signature")
        width = column.type.byte_width
        data = np.frombuffer(column.buffers()[1], "<u4", len(column) * width // 4, column.offset * width)
        sizes = batch.column("size").to_numpy() if "size" in batch.schema.names else None
        yield Rows(batch.column("id"), data.astype(np.uint32, copy=False).reshape(len(column), width // 4), sizes)


def _read_json(written: bytes | None) -> dict[str, Any] | None:
    try:
        value = json.loads(written or b"null")
    except ValueError:
        return None
    return value if isinstance(value, dict) else None
