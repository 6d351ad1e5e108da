"""Indexes in folders: SQLite as the journal and list of files, with sorted runs of keys mapped into
memory.

docs/index-format.md describes the files.
"""

from neardup.stores.embedded.store import EmbeddedStore, create

__all__ = ["create", "open"]
open = EmbeddedStore
