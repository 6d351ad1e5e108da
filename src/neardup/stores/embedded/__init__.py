"""Indexes in folders: SQLite as the journal and list of files, with sorted runs of keys mapped into memory.

docs/index-format.md describes the files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from neardup.stores.base import Store, StoreSettings, dump
from neardup.stores.embedded.database import NAME, create_database
from neardup.stores.embedded.folder import check_new, lock_for_writing, publish_folder, store_errors
from neardup.stores.embedded.loading import COUNTERS, Counters
from neardup.stores.embedded.store import MEMORY_BYTES, EmbeddedStore


def create(
    address: str, settings: StoreSettings, fill: Callable[[Store], None] | None = None, memory_bytes: int = MEMORY_BYTES
) -> EmbeddedStore:
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
    partial = folder.with_name(f".{folder.name}.partial-{os.getpid()}" if fill is None else f"{folder.name}.partial")
    with store_errors(folder):
        if fill is not None and partial.exists():
            os.close(lock_for_writing(partial))
            shutil.rmtree(partial)
        partial.mkdir(parents=True)
    try:
        with store_errors(folder):
            create_database(partial / NAME, settings.encode() | {COUNTERS: dump(Counters()._asdict())})
        if fill is not None:
            with closing(EmbeddedStore(str(partial))) as store:
                fill(store)
        with store_errors(folder):
            publish_folder(partial, folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return EmbeddedStore(address, memory_bytes=memory_bytes)


open = EmbeddedStore
