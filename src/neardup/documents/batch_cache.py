"""Batches of documents that stay in memory between the passes of a run."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from neardup.documents.batch import Entry, bytes_of
from neardup.files import read_text

_MEMORY_DIVISOR = 4  # the cache has a quarter of the memory by default
# Growth of most files when they are decoded. With files that grow more, the cache is cleared.
_GROWTH = 2
_ENTRY_BYTES = 4096  # memory of the objects around the data of a batch
# The memory limit of a container, in version 2 and 1 of Linux cgroups.
_CGROUP_FILES = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class BatchCache:
    """The batches of all parts of a run, in memory if all of them fit, otherwise none of them.

    Parameters
    ----------
    max_bytes : the largest number of bytes to keep; 0 keeps nothing.
    with_payload : whether a later pass copies the documents, so that the first pass reads their
        payload.
    """

    def __init__(self, max_bytes: int | None, *, with_payload: bool) -> None:
        self.with_payload = with_payload
        self._free_bytes = default_cache_bytes() if max_bytes is None else max_bytes
        self._parts: dict[Hashable, list[Entry]] = {}

    def may_fit(self, file_bytes: int) -> bool:
        """Return whether files of this size may fit after they are decoded."""
        return _GROWTH * file_bytes <= self._free_bytes

    def reserve(self, num_bytes: int) -> bool:
        """Reserve memory for another use, to the end of the run; return False if there is too
        little.
        """
        if num_bytes >= self._free_bytes:
            return False
        self._free_bytes -= num_bytes
        return True

    def clear(self) -> None:
        """Release everything; later reads decode the files."""
        self._free_bytes = 0
        self._parts.clear()

    def stored(self, key: Hashable) -> list[Entry] | None:
        """Return the batches and rejected rows of a part that was read to its end, if they are in
        memory.
        """
        return self._parts.get(key)

    def store(self, key: Hashable, read: Iterable[Entry]) -> Iterator[Entry]:
        """Yield the batches and rejected rows of a part, and keep them if there is enough
        memory.
        """
        entries: list[Entry] = []
        for entry in read:
            if self._free_bytes > 0:
                entries.append(entry)
                self._free_bytes -= bytes_of(entry) + _ENTRY_BYTES
            if self._free_bytes <= 0:
                # All parts are dropped, not only this one. No bytes are free then, so later parts
                # are not kept either.
                self.clear()
                entries.clear()
            yield entry
        # Only parts that were read to their end are kept: a reader may stop early.
        if self._free_bytes > 0:
            self._parts[key] = entries


def default_cache_bytes() -> int:
    """Return a quarter of the memory of this process; 0 if the system does not report it."""
    limits = []
    with suppress(AttributeError, OSError, ValueError):
        limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for file in _CGROUP_FILES:
        with suppress(OSError, ValueError):  # no such file, or "max": no limit
            limits.append(int(read_text(Path(file))))
    # Version 1 of cgroups has a number near 2**63 for no limit: the smallest counts.
    return min(limits, default=0) // _MEMORY_DIVISOR
