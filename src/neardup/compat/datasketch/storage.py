"""Where an index keeps its keys and its buckets: in dicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, KeysView, Mapping
from typing import Any

from neardup.errors import SettingError


class DictListStorage:
    """Lists by key."""

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
        """Return what a key has; nothing, if it is not there."""
        found = self._dict.get(key)
        return self._make() if found is None else found

    def getmany(self, *keys: Hashable) -> list[Any]:
        """Return what each of some keys has."""
        return [self.get(key) for key in keys]

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


def require_dict(config: Mapping[str, Any] | None) -> None:
    """Refuse a configuration of any other storage."""
    kind = "dict" if not config else config.get("type")
    if kind != "dict":
        raise SettingError(
            f"storage_config with type {kind!r} is not supported: an index of neardup.compat.datasketch is in memory. "
            "Use {'type': 'dict'}, or leave storage_config out; for a server keep using datasketch."
        )
