"""The rows of an index in Redis, as far as this client has read them."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Array, Bytes, Rows, Uint32s, grow
from neardup.errors import StoreError
from neardup.stores.base import Counts
from neardup.stores.redis import scripts
from neardup.stores.redis.connection import Connection

_NEVER = 2**32 - 1


class Header(NamedTuple):
    """The state of an index at one moment.

    states, forgotten_at, num_rows, num_forgotten : as in `kernels.packed_entries.Alive`. dropping :
    the number of forgotten rows whose entries and documents are dropped, or are being dropped.
    counts : of the rows that were not forgotten. buckets, entries : int64, their number in each
    table of keys.
    """

    states: Bytes
    forgotten_at: Uint32s
    num_rows: int
    num_forgotten: int
    dropping: int
    counts: Counts
    buckets: Rows
    entries: Rows


def alive_of(header: Header) -> kernels.packed_entries.Alive:
    """Return the rows of a state for kernels."""
    return kernels.packed_entries.Alive(
        header.states, header.forgotten_at, header.num_rows, header.num_forgotten
    )


class _Answer(NamedTuple):
    """The answer of `scripts.STATE`, in its order."""

    num_rows: bytes
    num_forgotten: bytes
    dropping: bytes
    dropped: bytes
    kept: bytes
    removed: bytes
    buckets: bytes
    states: bytes
    forgotten: bytes
    entries: bytes
    index_id: bytes


class _Known(NamedTuple):
    """The rows that a client knows when it asks. num_resets : how often it has forgotten all."""

    num_resets: int
    num_rows: int
    num_forgotten: int


class KnownRows:
    """The states of rows and the order in which they were forgotten: at most five bytes a row.

    May be used by several threads at once. States are appended and never change, and each forgotten
    row has its number, so a snapshot keeps the rows of its moment.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._num_connections = 0
        self._num_resets = 0
        self._index_id = b""
        self._reset(num_forgotten=0)

    def read(self) -> Header:
        """Return the latest state, usually in one round trip."""
        while True:
            with self._lock:
                num_connections = self._connection.made
                if num_connections != self._num_connections:
                    self._reset(num_forgotten=0)
                    self._num_connections = num_connections
                known = _Known(self._num_resets, self._num_rows, self._num_forgotten)
            answer = self._connection.run(scripts.STATE, known.num_rows, known.num_forgotten)
            # A new connection was made for this call: the server may have restarted, so all is read
            # again.
            if self._connection.made == num_connections:
                header = self._header_of(answer, known)
                if header is not None:
                    return header

    def _header_of(self, values: list[bytes | None] | None, known: _Known) -> Header | None:
        """Return the state in an answer; None if another thread has forgotten `known` since."""
        answer = self._checked(values)
        with self._lock:
            if self._num_resets != known.num_resets:
                return None
            self._append(answer, known)
            # Later calls append to the same arrays. A snapshot reads them up to its own numbers
            # only, and rows that are forgotten later have greater numbers than its `num_forgotten`.
            return Header(
                states=self._states,
                forgotten_at=self._forgotten_at,
                num_rows=int(answer.num_rows),
                num_forgotten=int(answer.num_forgotten),
                dropping=int(answer.dropping),
                counts=Counts(int(answer.kept), int(answer.removed)),
                buckets=np.frombuffer(answer.buckets, ">u4").astype(np.int64),
                entries=np.frombuffer(answer.entries, "<u8").astype(np.int64),
            )

    def _checked(self, values: list[bytes | None] | None) -> _Answer:
        """Return an answer by name. Raises StoreError if it is not about the index, or has gaps."""
        if values is None:
            raise self._gone()
        if None in values:
            raise self._damaged("a part of its state is missing")
        answer = _Answer._make(values)
        # Another index may have been created under the name.
        if self._index_id not in (b"", answer.index_id):
            raise self._gone()
        self._index_id = answer.index_id
        return answer

    def _append(self, answer: _Answer, known: _Known) -> None:
        """Append the rows of an answer to a client that knew `known`. Requires: the lock."""
        dropped = int(answer.dropped)
        # The server no longer lists dropped rows. If this client does not know all of them, the
        # answer is complete.
        if known.num_forgotten < dropped:
            self._reset(num_forgotten=dropped)
            known = _Known(self._num_resets, num_rows=0, num_forgotten=dropped)
        states = np.frombuffer(answer.states, np.uint8)
        forgotten = np.frombuffer(answer.forgotten, "<u4")
        self._append_states(_new_values(states, known.num_rows, self._num_rows))
        # Snapshots read a state of each row, and kernels would read beyond the array.
        if self._num_rows < int(answer.num_rows):
            raise self._damaged("rows have no state")
        self._append_forgotten(_new_values(forgotten, known.num_forgotten, self._num_forgotten))

    def _reset(self, num_forgotten: int) -> None:
        """Forget all rows. `num_forgotten` of them are gone. Snapshots keep their arrays."""
        self._num_resets += 1
        self._states = np.empty(0, np.uint8)
        self._forgotten_at = np.empty(0, np.uint32)
        self._num_rows = 0
        self._num_forgotten = num_forgotten

    def _append_states(self, states: Bytes) -> None:
        end = self._num_rows + len(states)
        self._states = grow(self._states, end)
        self._states[self._num_rows : end] = states
        self._num_rows = end

    def _append_forgotten(self, rows: Uint32s) -> None:
        if not len(rows):
            return
        if len(self._forgotten_at) < self._num_rows:
            grown = np.full(len(self._states), _NEVER, np.uint32)
            grown[: len(self._forgotten_at)] = self._forgotten_at
            self._forgotten_at = grown
        self._forgotten_at[rows] = self._num_forgotten + np.arange(len(rows))
        self._num_forgotten += len(rows)

    def _gone(self) -> StoreError:
        address = self._connection.address
        return StoreError(
            f"The index is gone: {address.shown}, keys neardup:{address.name}:*. It was there when "
            "it was opened. Restore the server's files from a backup, or open the index again if "
            "another has its name now."
        )

    def _damaged(self, reason: str) -> StoreError:
        address = self._connection.address
        return StoreError(
            f"The index is damaged at {address.shown}, keys neardup:{address.name}:*: {reason}. "
            "Restore the server's files from a backup."
        )


def _new_values(values: Array, first: int, num_known: int) -> Array:
    """Return the values from number `num_known` on, none if they do not follow the known ones.

    values : from number `first` on. Another thread may have read more, or reset the rows, since.
    """
    return values[num_known - first :] if num_known >= first else values[:0]
