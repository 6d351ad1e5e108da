"""Indexes in folders: SQLite as the journal and list of files, with sorted runs of keys mapped into memory.

docs/index-format.md describes the files.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from neardup.stores.base import Layout, Store
from neardup.stores.embedded.backup import check_new
from neardup.stores.embedded.database import NAME, create_database
from neardup.stores.embedded.failures import store_errors
from neardup.stores.embedded.folder import sync_folder
from neardup.stores.embedded.loading import COUNTERS, Counters
from neardup.stores.embedded.lock import WriterLock
from neardup.stores.embedded.settings import LAYOUT, META, attachment_name, dump, dump_layout
from neardup.stores.embedded.store import MEMORY_BYTES, EmbeddedStore


def create(
    address: str,
    meta: Mapping[str, Any],
    layout: Layout,
    attachments: Mapping[str, bytes] | None = None,
    memory_bytes: int = MEMORY_BYTES,
) -> Store:
    """Create an index in a folder, which appears when it is complete, and open it for writing.

    Parameters
    ----------
    address : the folder, which is not there yet or empty.
    meta : settings of the index, values for JSON.
    layout : of the tables of keys.
    attachments : files by name.
    memory_bytes : as for `open`.

    Raises
    ------
    StoreError
        If there is something at the address, or it cannot be written.
    """
    folder = Path(address)
    check_new(folder)
    settings = {META: dump(meta), LAYOUT: dump_layout(layout), COUNTERS: dump(Counters()._asdict())}
    settings |= {attachment_name(name): data for name, data in (attachments or {}).items()}
    partial = folder.with_name(f".{folder.name}.partial-{os.getpid()}")
    with store_errors(folder):
        try:
            partial.mkdir(parents=True)
            create_database(partial / NAME, settings)
            sync_folder(partial)
            partial.rename(folder)
            sync_folder(folder.parent)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return EmbeddedStore(address, False, memory_bytes)


def create_filled(
    address: str,
    meta: Mapping[str, Any],
    layout: Layout,
    attachments: Mapping[str, bytes] | None,
    fill: Callable[[Store], None],
) -> Store:
    """Create an index in a folder, which appears when `fill` has written its documents, and open it for writing.

    Until then it is in the folder NAME.partial, which is replaced if it is there from an interrupted call.

    Parameters
    ----------
    address, meta, layout, attachments : as for `create`.
    fill : writes documents to the store.

    Raises
    ------
    StoreError
        If there is something at the address, or it cannot be written, or another process creates it.
    """
    folder = Path(address)
    check_new(folder)
    partial = folder.with_name(f"{folder.name}.partial")
    with store_errors(folder):
        if partial.exists():
            WriterLock(partial).release()
            shutil.rmtree(partial)
    store = create(str(partial), meta, layout, attachments)
    try:
        fill(store)
        store.close()
        with store_errors(folder):
            partial.rename(folder)
            sync_folder(folder.parent)
    except BaseException:
        store.close()
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return open(address)


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
