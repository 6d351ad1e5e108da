"""The writer of a store whose rows are in a `State`: it reads the latest view."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.stores.base import Changes, Counts, Entries, Found, Rows, Run, Writer
from neardup.stores.documents import Sketched
from neardup.stores.state import View


class StateWriter(Writer):
    """A writer that reads the latest view of a store.

    Parameters
    ----------
    latest : returns the view.
    write : applies changes.
    stage : appends documents to a run.
    write_all : applies several changes. Default: as one.
    """

    def __init__(
        self,
        latest: Callable[[], View],
        write: Callable[[Changes], None],
        stage: Callable[[str, int, pa.Table | None], None],
        write_all: Callable[[Iterable[Changes]], None] | None = None,
    ) -> None:
        self._latest, self._write, self._stage, self._write_all = latest, write, stage, write_all

    @property
    def num_rows(self) -> int:
        """The number of rows ever written."""
        return self._latest().num_rows

    def find(self, lookups: Entries, limit: int) -> Found:
        """Return the rows in the buckets of keys."""
        return self._latest().find(lookups, limit)

    def rows_of_ids(self, ids: pa.Array) -> Rows:
        """Return the row of each id; -1 if there is none."""
        return self._latest().rows_of_ids(ids)

    def rows_of_contents(self, contents: npt.NDArray[np.uint64]) -> Rows:
        """Return the row of each content; -1 if there is none."""
        return self._latest().rows_of_contents(contents)

    def without(self, rows: Rows) -> View:
        """Return the state as if some rows had been forgotten."""
        return self._latest().without(rows)

    def take(self, rows: Rows, columns: Sequence[str]) -> pa.Table:
        """Return columns of some rows, in this order."""
        return self._latest().take(rows, columns)

    def take_sketched(
        self, rows: Rows, details: Sequence[str], columns: Sequence[str]
    ) -> tuple[Sketched, list[pa.Array]]:
        """Return the features of some rows that comparisons read, and columns."""
        return self._latest().take_sketched(rows, details, columns)

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield columns of all rows in their order."""
        return self._latest().scan(columns)

    def count(self) -> Counts:
        """Return the number of documents."""
        return self._latest().count()

    def runs(self) -> list[Run]:
        """Return the open runs, by the time they were opened."""
        return self._latest().runs()

    def staged(self, run: str) -> Iterator[pa.Table]:
        """Yield the tables that were staged in an open run."""
        return self._latest().staged(run)

    def write(self, changes: Changes) -> None:
        """Apply all changes or none."""
        self._write(changes)

    def write_all(self, parts: Iterable[Changes]) -> None:
        """Apply several changes or none."""
        (self._write_all or super().write_all)(parts)

    def stage(self, run: str, opened: int, documents: pa.Table | None) -> None:
        """Append documents to a run, which is opened by the first call."""
        self._stage(run, opened, documents)
