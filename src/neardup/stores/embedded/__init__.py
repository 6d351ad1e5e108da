"""Indexes in folders: SQLite as the journal and list of files, with sorted runs of keys mapped into memory.

docs/index-format.md describes the files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from neardup.stores.base import Store
from neardup.stores.embedded.backup import check_new
from neardup.stores.embedded.database import NAME, create_database
from neardup.stores.embedded.failures import store_errors
from neardup.stores.embedded.folder import sync_folder
from neardup.stores.embedded.loading import COUNTERS, Counters
from neardup.stores.embedded.lock import WriterLock
from neardup.stores.embedded.store import MEMORY_BYTES, EmbeddedStore
from neardup.stores.settings import StoreSettings, dump


def create(
    address: str, settings: StoreSettings, fill: Callable[[Store], None] | None = None, memory_bytes: int = MEMORY_BYTES
) -> Store:
    """Create an index in a folder, which appears when it is complete, and open it for writing.

    Parameters
    ----------
    address : the folder, which is not there yet or empty.
    settings : of the store.
    fill : writes the first documents. Until it has returned, the index is in the folder NAME.partial, which is replaced
        if it is there from an interrupted call.
    memory_bytes : as for `open`.

    Raises
    ------
    StoreError
        If there is something at the address, or it cannot be written, or another process fills it.
    """
    folder = Path(address)
    check_new(folder)
    if fill is None:
        _create_empty(folder, settings)
    else:
        _create_filled(folder, settings, fill)
    return EmbeddedStore(address, False, memory_bytes)


def _create_empty(folder: Path, settings: StoreSettings) -> None:
    partial = folder.with_name(f".{folder.name}.partial-{os.getpid()}")
    with store_errors(folder):
        try:
            partial.mkdir(parents=True)
            create_database(partial / NAME, settings.encode() | {COUNTERS: dump(Counters()._asdict())})
            sync_folder(partial)
            partial.rename(folder)
            sync_folder(folder.parent)
        finally:
            shutil.rmtree(partial, ignore_errors=True)


def _create_filled(folder: Path, settings: StoreSettings, fill: Callable[[Store], None]) -> None:
    partial = folder.with_name(f"{folder.name}.partial")
    with store_errors(folder):
        if partial.exists():
            WriterLock(partial).release()
            shutil.rmtree(partial)
    _create_empty(partial, settings)
    try:
        with closing(EmbeddedStore(str(partial), False)) as store:
            fill(store)
        with store_errors(folder):
            partial.rename(folder)
            sync_folder(folder.parent)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def open(address: str, read_only: bool = False, memory_bytes: int = MEMORY_BYTES) -> Store:
    """Open an index in a folder.

    Parameters
    ----------
    address : the folder.
    read_only : whether `writing` is refused; other processes may read and write meanwhile.
    memory_bytes : about the most memory of documents and keys that are not in files yet.

    Raises
    ------
    StoreError
        If there is no index, or it is damaged, open for writing elsewhere, or of a later version.
    """
    return EmbeddedStore(address, read_only, memory_bytes)
