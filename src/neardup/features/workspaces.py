"""Memory that batches reuse, and a pool of it for threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import Empty, LifoQueue
from typing import Generic, TypeVar

import numpy as np

from neardup.arrays import Words

T = TypeVar("T")


class Workspace:
    """Memory for the hashes of a batch, which the next batch reuses: new pages of memory take as
    long as hashing.
    """

    def __init__(self) -> None:
        self._hashes = np.empty(0, np.uint64)

    def hashes(self, count: int) -> Words:
        """Return an array of at least `count` hashes, with undefined content."""
        if len(self._hashes) < count:
            self._hashes = np.empty(count, np.uint64)
        return self._hashes


class Workspaces(Generic[T]):
    """Pool of workspaces for threads; it grows to the number in use at once.

    make : returns a new workspace.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._free: LifoQueue[T] = LifoQueue()

    @contextmanager
    def borrow(self) -> Iterator[T]:
        """Lend a workspace until the end of the block."""
        try:
            workspace = self._free.get_nowait()
        except Empty:
            workspace = self._make()
        # After an error the workspace is not put back: its content may be inconsistent.
        yield workspace
        self._free.put(workspace)
