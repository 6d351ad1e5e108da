"""Keep the documents of a run in memory, so that their files are decoded once."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

import pyarrow as pa

from neardup.documents.batch import DocumentBatch, Pages, Payload, RawLines, Rejected

_SHARE = 4  # of the memory, a quarter
_GROWTH = 2  # of most files; compressed ones may grow more, and are released when they do
_ENTRY_BYTES = 4096  # of the objects around the data of a batch
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


Entry: TypeAlias = DocumentBatch | Rejected


class BatchCache:
    """The batches of all parts of a run, in memory if they fit; as soon as they do not, none of them.

    Parameters
    ----------
    max_bytes : the greatest number of bytes to keep; 0 keeps nothing.
    with_payload : whether a later pass copies the documents, so that the first pass reads their payload.
    """

    def __init__(self, max_bytes: int, *, with_payload: bool) -> None:
        self.with_payload = with_payload
        self._free_bytes = max_bytes
        self._parts: dict[Hashable, list[Entry]] = {}

    def may_fit(self, file_bytes: int) -> bool:
        """Return whether it is worth trying to keep files of this size, which grow when they are decoded."""
        return _GROWTH * file_bytes <= self._free_bytes

    def take(self, num_bytes: int) -> bool:
        """Take memory for something else of the run, for as long as it lasts; return whether there is enough."""
        if num_bytes >= self._free_bytes:
            return False
        self._free_bytes -= num_bytes
        return True

    def clear(self) -> None:
        """Release everything; later reads decode the files."""
        self._free_bytes = 0
        self._parts.clear()

    def stored(self, key: Hashable) -> list[Entry] | None:
        """Return the batches and rejected rows of a part that was read to its end, if they are in memory."""
        return self._parts.get(key)

    def store(self, key: Hashable, read: Iterable[Entry]) -> Iterator[Entry]:
        """Yield the batches and rejected rows of a part, and keep them if there is enough memory."""
        entries: list[Entry] = []
        for entry in read:
            if self._free_bytes > 0:
                entries.append(entry)
                self._free_bytes -= bytes_of(entry) + _ENTRY_BYTES
            if self._free_bytes <= 0:
                self.clear()
                entries.clear()
            yield entry
        if self._free_bytes > 0:
            self._parts[key] = entries


def default_cache_bytes() -> int:
    """Return a quarter of the memory that this process may use; 0 if the system does not report it."""
    limits = []
    with suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in _LIMITS:
        with suppress(OSError, ValueError):  # "max" is no number
            limits.append(int(Path(file).read_text()))
    return min(limits, default=0) // _SHARE


def bytes_of(entry: Entry | None) -> int:
    """Return the memory that the data of a batch take; 0 for a rejected row, and for none."""
    if not isinstance(entry, DocumentBatch):
        return 0
    ids = 0 if entry.ids is None else int(entry.ids.nbytes)
    return int(entry.text.nbytes) + ids + entry.rows.nbytes + _payload_bytes(entry.payload, entry.text)


def _payload_bytes(payload: Payload | None, text: pa.Array) -> int:
    """Return the memory of a payload besides that of the text, which is one of its columns in most tables."""
    if payload is None:
        return 0
    if isinstance(payload, RawLines):
        return len(payload.data) + payload.offsets.nbytes
    if isinstance(payload, Pages):
        return sum(map(len, payload.records))
    return sum(column.nbytes for column in payload.columns if not _addresses(column) & _addresses(text))


def _addresses(array: pa.Array) -> set[int]:
    return {buffer.address for buffer in array.buffers() if buffer is not None and buffer.size}
