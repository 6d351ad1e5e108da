"""Where an index keeps its keys and its buckets: in dicts, or on a Redis server."""

from __future__ import annotations

import secrets
import struct
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, KeysView, Mapping, Sequence
from typing import Any

from neardup.compat.datasketch.redis_storage import RedisListStorage, RedisSetStorage, Server
from neardup.errors import SettingError


class DictListStorage:
    """Lists by key."""

    buffer_size = 50000  # of a server: in memory no change waits
    _make: type[Any] = list

    def __init__(self) -> None:
        self._dict: dict[Hashable, Any] = defaultdict(self._make)

    def __getitem__(self, key: Hashable) -> Any:
        return self.get(key)

    def __len__(self) -> int:
        return len(self._dict)

    def __iter__(self) -> Iterator[Hashable]:
        return iter(self._dict)

    def __contains__(self, key: object) -> bool:
        return key in self._dict

    def keys(self) -> KeysView[Hashable]:
        """Return the keys."""
        return self._dict.keys()

    def get(self, key: Hashable) -> Any:
        """Return the values of a key; none if it is missing."""
        found = self._dict.get(key)
        return self._make() if found is None else found

    def getmany(self, *keys: Hashable) -> list[Any]:
        """Return the values of each key."""
        return [self.get(key) for key in keys]

    @staticmethod
    def get_each(storages: Sequence[DictListStorage], keys: Iterable[Hashable]) -> list[Any]:
        """Return the values of one key in each storage."""
        return [storage.get(key) for storage, key in zip(storages, keys, strict=True)]

    def insert(self, key: Hashable, *vals: Any, **_: Any) -> None:
        """Add values under a key."""
        self._dict[key].extend(vals)

    def remove(self, *keys: Hashable, **_: Any) -> None:
        """Take keys out."""
        for key in keys:
            del self._dict[key]

    def remove_val(self, key: Hashable, val: Any, **_: Any) -> None:
        """Take one value of a key out."""
        self._dict[key].remove(val)

    def empty_buffer(self) -> None:
        """Do nothing: no change waits."""

    def size(self) -> int:
        """Return the number of keys."""
        return len(self._dict)

    def has_key(self, key: Hashable) -> bool:
        """Return whether a key is there."""
        return key in self._dict

    def itemcounts(self, **_: Any) -> dict[Hashable, int]:
        """Return the number of values of each key."""
        return {key: len(values) for key, values in self._dict.items()}


class DictSetStorage(DictListStorage):
    """Sets by key."""

    _make = set

    def insert(self, key: Hashable, *vals: Any, **_: Any) -> None:
        """Add values under a key."""
        self._dict[key].update(vals)


Tables = tuple[DictListStorage, list[DictSetStorage]] | tuple[RedisListStorage, list[RedisSetStorage]]


def open_storage(config: Mapping[str, Any] | None, num_bands: int) -> Tables:
    """Return where an index keeps the bands of its keys, and for each band the keys of its buckets.

    Raises
    ------
    SettingError
        If the configuration is of another storage than a dict or Redis.
    """
    kind = "dict" if not config else config.get("type")
    if kind == "dict":
        return DictListStorage(), [DictSetStorage() for _ in range(num_bands)]
    if kind != "redis" or config is None:
        raise SettingError(
            f"storage_config with type {kind!r} is not supported. Use {{'type': 'dict'}} or 'redis', or leave "
            "storage_config out; for another server keep using datasketch."
        )
    server, base = Server(config), config.get("basename", secrets.token_hex(6).encode())
    buckets = [RedisSetStorage(server, base + b"_bucket_" + struct.pack(">H", band)) for band in range(num_bands)]
    return RedisListStorage(server, base + b"_keys"), buckets
