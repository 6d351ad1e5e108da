"""Count in how many documents each feature occurs, before they are weighed."""

from __future__ import annotations

from neardup.config import IdfSource, SimHash
from neardup.engines.describe import Task
from neardup.engines.scratch import Scratch
from neardup.engines.stages import Watcher


def idf_of(method: SimHash, tasks: list[Task], scratch: Scratch, threads: int, watcher: Watcher) -> IdfSource:
    """Return the document frequencies that a method weighs by."""
    raise NotImplementedError


def idf_of_texts(method: SimHash) -> IdfSource | None:
    """Return the document frequencies for single texts, which are no corpus; None where none are asked for."""
    raise NotImplementedError
