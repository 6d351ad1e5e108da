"""The store of an index in Redis or Valkey, under one prefix of keys for each index."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from neardup.errors import MissingExtraError
from neardup.stores.base import Layout, Store


def create(
    address: str, meta: Mapping[str, Any], layout: Layout, attachments: Mapping[str, bytes] | None = None
) -> Store:
    """Create an index on a server and open it for writing.

    Parameters
    ----------
    address : redis://user:password@host:port/database?index=NAME; rediss:// for TLS; other options of redis-py may
        follow. NAME is "index" if it is left out.
    meta : settings of the index, values for JSON.
    layout : the tables of keys.
    attachments : files by name.

    Raises
    ------
    StoreError
        If the index exists, or the server cannot be reached.
    MissingExtraError
        If redis-py is not installed.
    """
    store: Store = _module().create(address, meta, layout, attachments)
    return store


def open(address: str, read_only: bool = False) -> Store:
    """Open an index on a server.

    Parameters
    ----------
    address : as in `create`.
    read_only : whether `writing` is refused.

    Raises
    ------
    StoreError
        If there is no such index, it is of another format, or the server cannot be reached.
    MissingExtraError
        If redis-py is not installed.
    """
    store: Store = _module().open_store(address, read_only)
    return store


def _module() -> Any:
    try:
        import_module("redis")
    except ImportError as error:
        raise MissingExtraError(
            "An address that begins with redis:// needs the package redis, which is not installed. "
            'Install it: pip install "neardup[redis]". Or use an index in a folder of this machine.'
        ) from error
    return import_module("neardup.stores.redis.store")
