"""Tables and files of signatures: an id, the signature in bytes, and the scheme in the metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.atomic import AtomicFile
from neardup.errors import ColumnError, InputError, OutputError
from neardup.fingerprints.files import SCHEME_KEY


class Rows(NamedTuple):
    """The bytes of signatures. data : uint8 (num_sets, num_bytes); empty : bool (num_sets,), a null in the table."""

    data: npt.NDArray[np.uint8]
    empty: npt.NDArray[np.bool_]


def make_table(rows: Rows, scheme: Mapping[str, Any], ids: Sequence[Any] | pa.Array | None) -> pa.Table:
    """Return a table of `id` and `signature`, fixed-size binary, with the scheme in the metadata.

    Raises
    ------
    InputError
        If there are not as many ids as signatures.
    """
    num_sets, num_bytes = rows.data.shape
    column = ids if isinstance(ids, (pa.Array, pa.ChunkedArray)) else pa.array(range(num_sets) if ids is None else ids)
    if len(column) != num_sets:
        raise InputError(f"There are {num_sets:,} signatures: got {len(column):,} ids. Give each signature one id.")
    valid = pa.py_buffer(np.packbits(~rows.empty, bitorder="little")) if rows.empty.any() else None
    data = pa.py_buffer(np.ascontiguousarray(rows.data))
    signatures = pa.FixedSizeBinaryArray.from_buffers(pa.binary(num_bytes), num_sets, [valid, data])
    schema = pa.schema(
        [pa.field("id", column.type), pa.field("signature", signatures.type)],
        {SCHEME_KEY: json.dumps(dict(scheme)).encode()},
    )
    return pa.table([column, signatures], schema=schema)


def read_rows(table: pa.Table, name: str, packed: bool) -> tuple[Rows, dict[str, Any]]:
    """Return the bytes of the signatures of a table, and their scheme.

    Parameters
    ----------
    table : as `make_table` has it; other columns do not matter.
    name : what errors call it.
    packed : whether they must be packed.

    Raises
    ------
    ColumnError
        If there is no column `signature` of fixed-size binary.
    InputError
        If the scheme is missing, or is that of signatures of another length or kind.
    """
    kind = table.schema.field("signature").type if "signature" in table.schema.names else None
    if kind is None or not pa.types.is_fixed_size_binary(kind):
        raise ColumnError(
            f"{name} has no column 'signature' of fixed-size binary: it has "
            f"{', '.join(f'{field.name} ({field.type})' for field in table.schema)}. Make one with Signatures.save."
        )
    written = (table.schema.metadata or {}).get(SCHEME_KEY, b"nothing")
    try:
        scheme = json.loads(written)
        num_bytes = scheme["bits"] * -(-scheme["num_hashes"] // 8) if packed else 4 * scheme["num_hashes"]
        fits = num_bytes == kind.byte_width and ("bits" in scheme) == packed
    except (ValueError, KeyError, TypeError):
        fits = False
    if not fits:
        raise InputError(
            f"The scheme in the metadata of {name} is not that of {'packed ' * packed}signatures of {kind.byte_width} "
            f"bytes: got {written[:200].decode(errors='replace')}. Open packed ones with PackedSignatures.open, others "
            "with Signatures.open; what was not written by their save must be signed again."
        )
    column = table["signature"].combine_chunks()
    start, stop = kind.byte_width * column.offset, kind.byte_width * (column.offset + len(column))
    data = np.frombuffer(column.buffers()[1] or b"", np.uint8)[start:stop].reshape(len(column), kind.byte_width)
    return Rows(data.copy(), column.is_null().to_numpy(zero_copy_only=False)), scheme


def read_table(path: str | os.PathLike[str]) -> pa.Table:
    """Return the rows of a Parquet file, or raise InputError."""
    try:
        return pq.read_table(Path(path), partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{os.fspath(path)} cannot be read as Parquet: {error}. Name a file of signatures.") from error


def write_table(table: pa.Table, path: str | os.PathLike[str], overwrite: bool) -> None:
    """Write a Parquet file, which is whole once it has its name.

    Raises
    ------
    OutputError
        If the file exists and is not to be replaced, or cannot be written.
    """
    target = Path(path)
    if target.exists() and not overwrite:
        raise OutputError(f"The output {target} exists already. Name another file, or pass overwrite=True.")
    with AtomicFile(target) as partial:
        # Hashes do not compress.
        pq.write_table(table, partial, compression="none", use_dictionary=False)
