"""The store of an index in a PostgreSQL database, a schema for each index."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from neardup.errors import MissingExtraError
from neardup.stores.base import Layout, Store


def create(
    address: str, meta: Mapping[str, Any], layout: Layout, attachments: Mapping[str, bytes] | None = None
) -> Store:
    """Create an index in a database and open it for writing.

    Parameters
    ----------
    address : postgresql://user@host:port/database?index=NAME; other options of libpq may follow. NAME is "index" if it
        is left out.
    meta : settings of the index, values for JSON.
    layout : the tables of keys.
    attachments : files by name.

    Raises
    ------
    StoreError
        If the index exists, the server cannot be reached, or the user may not create a schema.
    MissingExtraError
        If psycopg is not installed.
    """
    store: Store = _module().create(address, meta, layout, attachments)
    return store


def open(address: str, read_only: bool = False) -> Store:
    """Open an index in a database.

    Parameters
    ----------
    address : as in `create`.
    read_only : whether `writing` is refused.

    Raises
    ------
    StoreError
        If there is no such index, it is of another format, or the server cannot be reached.
    MissingExtraError
        If psycopg is not installed.
    """
    store: Store = _module().open_store(address, read_only)
    return store


def _module() -> Any:
    try:
        import_module("psycopg")
    except ImportError as error:
        raise MissingExtraError(
            "An address that begins with postgresql:// needs the package psycopg, which is not installed. "
            'Install it: pip install "neardup[postgres]". Or use an index in a folder of this machine.'
        ) from error
    return import_module("neardup.stores.postgres.store")
