"""The writer of a store whose rows are in a `State`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from neardup.stores.base import Changes, Writer
from neardup.stores.state import Moment, View


class StateWriter(View, Writer):
    """A writer that reads the latest view of a store.

    Parameters
    ----------
    latest : returns the view.
    write : applies changes.
    stage : appends documents to an import.
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
    def moment(self) -> Moment:
        """The latest rows."""
        return self._latest().moment

    def write(self, changes: Changes) -> None:
        """Apply all changes or none."""
        self._write(changes)

    def write_all(self, parts: Iterable[Changes]) -> None:
        """Apply several changes or none."""
        (self._write_all or super().write_all)(parts)

    def stage(self, import_name: str, opened: int, documents: pa.Table | None) -> None:
        """Append documents to an import, which is opened by the first call."""
        self._stage(import_name, opened, documents)
