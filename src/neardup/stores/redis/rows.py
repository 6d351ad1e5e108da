"""What a client knows of the rows of an index: their states and those that were forgotten, read once and continued."""

from __future__ import annotations

import threading
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.arrays import Bytes, Rows
from neardup.errors import StoreError
from neardup.stores.base import Counts
from neardup.stores.redis import scripts
from neardup.stores.redis.connection import Connection

_NEVER = 2**32 - 1


class Header(NamedTuple):
    """The state of an index at one moment.

    states, forgotten_at, num_rows, num_forgotten : as in `kernels.packed_entries.Alive`. dropped : how many of the
    forgotten rows have no entries and documents any more. counts : of the rows that were not forgotten. buckets,
    entries : int64, how many there are, by table of keys.
    """

    states: Bytes
    forgotten_at: npt.NDArray[np.uint32]
    num_rows: int
    num_forgotten: int
    dropped: int
    counts: Counts
    buckets: Rows
    entries: Rows


class KnownRows:
    """Rows as far as this client has read them: five bytes each at most. May be used by several threads at once.

    States are appended and never change, and each forgotten row is noted with its number, so that a snapshot goes on to
    see the rows of its moment.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection, self._lock = connection, threading.Lock()
        self._made, self._id = 0, b""
        self._num_rows = self._num_forgotten = 0
        self._states, self._forgotten_at = np.empty(0, np.uint8), np.empty(0, np.uint32)

    def read(self) -> Header:
        """Return the latest state, in one round trip as a rule."""
        while True:
            with self._lock:
                made = self._connection.made
                if made != self._made:
                    self._forget_all(0)
                    self._made = made
                known, forgotten = self._num_rows, self._num_forgotten
            answer = self._connection.run(scripts.STATE, known, forgotten)
            if self._connection.made == made:
                return self._take_answer(answer, known, forgotten)

    def _take_answer(self, answer: list[bytes] | None, known: int, forgotten: int) -> Header:
        """Return the state in the answer of `scripts.STATE` to a client that knew so much."""
        if answer is None or answer[10] != (self._id or answer[10]):
            shown = self._connection.address.shown
            raise StoreError(
                f"The index is gone: {shown}, keys neardup:{self._connection.address.name}:*. It was there when it was "
                "opened. Restore the server's files from a backup, or open the index again if another has its name now."
            )
        self._id = answer[10]
        num_rows, num_forgotten, dropping, dropped, kept, removed = (int(number) for number in answer[:6])
        states, rows = np.frombuffer(answer[7], np.uint8), np.frombuffer(answer[8], "<u4")
        with self._lock:
            if forgotten < dropped:  # some that are not known were dropped, so all was read
                self._forget_all(dropped)
                known, forgotten = 0, dropped
            self._learn(states, known, rows, forgotten)
            return Header(
                self._states,
                self._forgotten_at,
                num_rows,
                num_forgotten,
                dropping,
                Counts(kept, removed),
                np.frombuffer(answer[6], ">u4").astype(np.int64),
                np.frombuffer(answer[9], "<u8").astype(np.int64),
            )

    def _forget_all(self, dropped: int) -> None:
        """Know nothing but that so many rows were dropped. Snapshots keep their arrays."""
        self._states, self._forgotten_at = np.empty(0, np.uint8), np.empty(0, np.uint32)
        self._num_rows, self._num_forgotten = 0, dropped

    def _learn(self, states: Bytes, known: int, rows: npt.NDArray[np.uint32], forgotten: int) -> None:
        """Note the states from row `known` on, and the rows that were forgotten after so many."""
        new = states[self._num_rows - known :] if self._num_rows >= known else states[:0]
        if len(new):
            end = self._num_rows + len(new)
            if end > len(self._states):
                self._states = np.concatenate([self._states[: self._num_rows], np.zeros(end, np.uint8)])
            self._states[self._num_rows : end] = new
            self._num_rows = end
        later = rows[self._num_forgotten - forgotten :] if self._num_forgotten >= forgotten else rows[:0]
        if len(later):
            if len(self._forgotten_at) < self._num_rows:
                grown = np.full(len(self._states), _NEVER, np.uint32)
                grown[: len(self._forgotten_at)] = self._forgotten_at
                self._forgotten_at = grown
            self._forgotten_at[later] = self._num_forgotten + np.arange(len(later))
            self._num_forgotten += len(later)


def alive_of(header: Header) -> kernels.packed_entries.Alive:
    """Return the rows of a state for kernels."""
    return kernels.packed_entries.Alive(header.states, header.forgotten_at, header.num_rows, header.num_forgotten)
