"""Addresses of stores: a folder, `memory:`, `postgresql://...`, `redis://...`."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

from neardup.errors import MissingExtraError, StoreError
from neardup.files import public_address
from neardup.stores.base import Store, StoreSettings
from neardup.stores.memory import MemoryStore

_SERVERS = {
    "postgresql": "postgres",
    "postgres": "postgres",
    "redis": "redis",
    "rediss": "redis",
    "valkey": "redis",
    "unix": "redis",
}
"""The kind of server by scheme: the name of an extra of neardup, and of a package of `stores`."""
_CLIENTS = {"postgres": "psycopg", "redis": "redis"}
"""The package of the client of each kind of server."""
_MEMORY = "memory:"
# The file that makes a folder an index. `stores.embedded`, which names it too, is imported only to
# open one.
_DATABASE = "index.db"


def create_store(
    address: str, settings: StoreSettings, fill: Callable[[Store], None] | None = None
) -> Store:
    """Create a store and open it for writing.

    Parameters
    ----------
    address : a folder that does not exist yet, `memory:`, `postgresql://...` or `redis://...`.
    settings : the settings of the store, which it keeps.
    fill : writes the first documents. If it fails, no store can be opened at the address.

    Raises
    ------
    StoreError
        If the address exists, or cannot be written.
    MissingExtraError
        If the client of the server is not installed.
    """
    if not address.startswith(_MEMORY):
        created: Store = _module_of(address).create(address, settings, fill)
        return created
    store = MemoryStore(address, settings)
    if fill is not None:
        fill(store)
    return store


def open_store(address: str, *, read_only: bool = False) -> Store:
    """Open a store.

    Parameters
    ----------
    address : as for `create_store`.
    read_only : whether `writing` is refused.

    Raises
    ------
    StoreError
        If there is no store at the address, or it is incomplete, damaged, in use, of a later
        version, or out of reach.
    MissingExtraError
        If the client of the server is not installed.
    """
    if address.startswith(_MEMORY):
        raise StoreError(
            "An index in memory lives in the process that created it and cannot be opened: got "
            f"{address}. Create it, or open a folder, postgresql://... or redis://..."
        )
    store: Store = _module_of(address).open(address, read_only)
    return store


def _module_of(address: str) -> Any:
    """Return the module that creates and opens the stores of an address, imported only now.

    Raises
    ------
    StoreError
        If no store has the scheme of the address.
    MissingExtraError
        If the client of the server is not installed.
    """
    scheme, separator, _ = address.partition("://")
    if not separator:
        return import_module("neardup.stores.embedded")
    if scheme not in _SERVERS:
        raise StoreError(
            f"No store is known for the address {public_address(address)}: a folder, memory:, "
            "postgresql://... and redis://... are accepted. Name one of these."
        )
    extra = _SERVERS[scheme]
    client = _CLIENTS[extra]
    try:
        # The client, not our store, is imported in `try`: an ImportError inside our own modules is
        # a fault of neardup, not a missing package.
        import_module(client)
    except ImportError as error:
        raise MissingExtraError(
            f"An address that begins with {scheme}:// needs the package {client}, which is "
            "not installed. Install it: "
            f'pip install "neardup[{extra}]". Or use an index in a folder of this machine.'
        ) from error
    return import_module(f"neardup.stores.{extra}.store")


def is_index(address: str) -> bool:
    """Return whether an address names a server, `memory:`, or a folder with an index."""
    scheme, separator, _ = address.partition("://")
    if address.startswith(_MEMORY) or (separator and scheme in _SERVERS):
        return True
    return "\0" not in address and os.path.isfile(os.path.join(address, _DATABASE))
