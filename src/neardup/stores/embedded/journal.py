"""Records of the journal: one change of rows each, and many read as one."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import Rows
from neardup.candidates.entries import Entries
from neardup.stores.base import Changes
from neardup.stores.documents import Seen, as_batch, seen_at

_HEAD = struct.Struct(
    "<qqqqqq"
)  # documents, bytes of their batch, entries, seen, its time, forgotten; or minus the bytes of bits
_ROW, _TABLE, _KEY, _BITS = np.dtype("<u4"), np.dtype("<u2"), np.dtype("<u8"), np.dtype("|u1")
_ENTRY: tuple[np.dtype[Any], ...] = (_ROW, _TABLE, _KEY)


class Replayed(NamedTuple):
    """Several changes as one, in the arguments of `State.apply_all`."""

    documents: pa.Table | None
    entries: Entries | None
    seen: Seen
    forgotten: Rows


def encode(changes: Changes) -> bytes:
    """Return the record of a change: the documents as a message of Arrow IPC without the schema, then arrays.

    changes : documents, entries, times and forgotten rows; the rest is not in the journal.
    """
    documents, entries = changes.documents, changes.entries
    num_documents = 0 if documents is None else len(documents)
    batch = as_batch(documents).serialize() if documents is not None and num_documents else b""
    num_entries = 0 if entries is None else len(entries.key)
    columns: tuple[npt.NDArray[Any], ...] = entries or ()
    keys = [column.astype(kind) for column, kind in zip(columns, _ENTRY, strict=False)]
    forgotten = _encode_rows(changes.forgotten)
    num_forgotten = len(forgotten) if forgotten.dtype == _ROW else -len(forgotten)
    head = (num_documents, len(batch), num_entries, len(changes.seen), changes.seen_at, num_forgotten)
    arrays = (*keys, changes.seen.astype(_ROW), forgotten)
    return b"".join([_HEAD.pack(*head), batch, *(array.data for array in arrays)])


def _encode_rows(rows: Rows) -> npt.NDArray[Any]:
    """Return rows; or a bit for each row, the lowest first, if these are fewer bytes."""
    if not len(rows) or rows.max() // 8 + 1 >= _ROW.itemsize * len(rows):
        return rows.astype(_ROW)
    bits = np.zeros(rows.max() + 1, np.bool_)
    bits[rows] = True
    return np.packbits(bits, bitorder="little")


def replay(records: Iterable[bytes], schema: pa.Schema) -> Replayed:
    """Return the changes of records as one.

    Parameters
    ----------
    records : as `encode` returned them, in their order.
    schema : of the documents.
    """
    batches: list[pa.RecordBatch] = []
    columns: tuple[list[npt.NDArray[Any]], ...] = ([], [], [], [], [], [])
    num_documents = 0
    for record in records:
        size, batch_bytes, num_entries, num_seen, time, num_forgotten = _HEAD.unpack_from(record)
        offset = _HEAD.size
        if batch_bytes:
            message = pa.py_buffer(record).slice(offset, batch_bytes)
            batches.append(pa.ipc.read_record_batch(message, schema))
            offset += batch_bytes
        counts = (num_entries, num_entries, num_entries, num_seen, abs(num_forgotten))
        kinds = (*_ENTRY, _ROW, _ROW if num_forgotten > 0 else _BITS)
        for column, count, kind in zip(columns, counts, kinds, strict=False):
            if count:
                column.append(np.frombuffer(record, kind, count, offset))
            offset += count * kind.itemsize
        if num_entries:
            columns[0][-1] = columns[0][-1].astype(np.int64) + num_documents
        if num_forgotten < 0:
            columns[4][-1] = np.flatnonzero(np.unpackbits(columns[4][-1], bitorder="little"))
        if num_seen:
            columns[5].append(np.full(num_seen, time, np.int64))
        num_documents += size
    document, table, key, seen, forgotten, times = (
        np.concatenate(column) if column else np.empty(0, kind)
        for column, kind in zip(columns, (np.int64, np.uint16, np.uint64, np.int64, np.int64, np.int64), strict=True)
    )
    return Replayed(
        pa.Table.from_batches(batches) if batches else None,
        Entries(document, table, key),
        seen_at(seen, times),
        forgotten.astype(np.int64),
    )
