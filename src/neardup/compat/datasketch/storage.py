"""Storage of the keys and buckets of an index: lists and sets by key, in dicts or on Redis.

On Redis, the layout is the same as in datasketch, so that each reads the data of the other:

    NAME       hash, a field for each key: KEY -> NAME + KEY
    NAME+KEY   list or set of the values of the key
"""

from __future__ import annotations

import os
import secrets
import struct
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, KeysView, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from neardup.errors import MissingExtraError, SettingError
from neardup.settings.constraints import check_kind

if TYPE_CHECKING:
    from typing_extensions import Self

Config: TypeAlias = Mapping[str, Any]
"""The configuration of a storage, as datasketch has it."""

_MAX_BUFFERED = 50000  # commands


class _Storage:
    """Base of the storages: values by key, with the operators of a mapping."""

    # Methods of each storage: keys in memory are any hashable values, on Redis bytes.
    get: Any
    get_each: Any
    has_key: Any
    keys: Any
    size: Any

    def __getitem__(self, key: Any) -> Any:
        return self.get(key)

    def __len__(self) -> int:
        return int(self.size())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.keys())

    def __contains__(self, key: object) -> bool:
        return bool(self.has_key(key))

    def getmany(self, *keys: Any) -> Any:
        """Return the values of each key."""
        return self.get_each([self] * len(keys), keys)


class DictListStorage(_Storage):
    """Lists by key."""

    buffer_size = _MAX_BUFFERED  # has no effect in memory
    _make: type[Any] = list

    def __init__(self) -> None:
        self._dict: dict[Hashable, Any] = defaultdict(self._make)

    def keys(self) -> KeysView[Hashable]:
        """Return the keys."""
        return self._dict.keys()

    def size(self) -> int:
        """Return the number of keys."""
        return len(self._dict)

    def has_key(self, key: Hashable) -> bool:
        """Return whether a key exists."""
        return key in self._dict

    @staticmethod
    def get_each(storages: Sequence[DictListStorage], keys: Iterable[Hashable]) -> list[Any]:
        """Return the values of one key in each storage."""
        return [storage.get(key) for storage, key in zip(storages, keys, strict=True)]

    def get(self, key: Hashable) -> Any:
        """Return the values of a key, empty if it does not exist."""
        # Not by [ ], which would add an empty entry.
        found = self._dict.get(key)
        return self._make() if found is None else found

    def insert(self, key: Hashable, *vals: Any, **_: Any) -> None:
        """Add values under a key."""
        self._dict[key].extend(vals)

    def remove(self, *keys: Hashable, **_: Any) -> None:
        """Remove keys."""
        for key in keys:
            del self._dict[key]

    def remove_val(self, key: Hashable, val: Any, **_: Any) -> None:
        """Remove one value of a key."""
        self._dict[key].remove(val)

    def empty_buffer(self) -> None:
        """Do nothing: no change is buffered."""

    def itemcounts(self, **_: Any) -> dict[Hashable, int]:
        """Return the number of values of each key."""
        return {key: len(values) for key, values in self._dict.items()}


class DictSetStorage(DictListStorage):
    """Sets by key."""

    _make = set

    def insert(self, key: Hashable, *vals: Any, **_: Any) -> None:
        """Add values under a key."""
        self._dict[key].update(vals)


class Server:
    """A client, and the buffered commands of a session.

    Parameters
    ----------
    config : "redis", the parameters of `redis.Redis`, each a value or {"env": NAME, "default":
        value}; "redis_buffer", with "transaction", whether the buffer is sent as one transaction;
        true by default.

    Attributes
    ----------
    buffer_size : the greatest number of buffered commands.
    """

    def __init__(self, config: Config) -> None:
        try:
            import redis
        except ImportError:
            raise MissingExtraError(
                'An index on Redis needs redis-py. Install it: pip install "neardup[redis]".'
            ) from None
        if "redis" not in config:
            raise SettingError(
                f"storage_config lacks the server: it has {sorted(config)}. "
                'Give {"type": "redis", "redis": {"host": "localhost", "port": 6379}}, for example.'
            )
        self.config = config
        self.buffer_size = _MAX_BUFFERED
        # Connects at the first command.
        self.client: Any = redis.Redis(**_resolved(config["redis"]))
        buffer_config = {"transaction": True, **_resolved(config.get("redis_buffer", {}))}
        self.buffer: Any = self.client.pipeline(**buffer_config)

    def __reduce__(self) -> tuple[type[Self], tuple[Config]]:
        # A client has sockets and locks, which cannot be pickled: the copy connects anew.
        return type(self), (self.config,)


def _resolved(parameters: Config) -> Config:
    """Return parameters with the values of their environment variables."""
    return {
        name: os.environ.get(value["env"], value.get("default"))
        if isinstance(value, dict) and "env" in value
        else value
        for name, value in parameters.items()
    }


class _Command(NamedTuple):
    """A command of Redis on one key. arguments : its arguments after the key."""

    name: str
    arguments: tuple[Any, ...] = ()


class RedisListStorage(_Storage):
    """Lists by key."""

    _count = _Command("LLEN")
    _add = _Command("RPUSH")
    _remove = _Command("LREM", (0,))
    _read = _Command("LRANGE", (0, -1))

    def __init__(self, server: Server, name: bytes) -> None:
        self._server = server
        self._name = name

    @property
    def _redis(self) -> Any:
        return self._server.client

    def _run(self, client: Any, command: _Command, key: bytes, *vals: bytes) -> Any:
        # The methods of the client by name would need one class for each: only the commands of
        # lists and sets differ.
        return client.execute_command(command.name, self._name + key, *command.arguments, *vals)

    def keys(self) -> set[bytes]:
        """Return the keys."""
        return set(self._redis.hkeys(self._name))

    def get(self, key: bytes) -> Any:
        """Return the values of a key, empty if it does not exist."""
        return self._run(self._redis, self._read, key)

    @staticmethod
    def get_each(storages: Sequence[RedisListStorage], keys: Iterable[bytes]) -> list[Any]:
        """Return the values of one key in each storage, in one round trip."""
        if not storages:
            return []
        # No transaction: it would block other clients until all reads are done.
        pipeline = storages[0]._redis.pipeline(transaction=False)
        for storage, key in zip(storages, keys, strict=True):
            storage._run(pipeline, storage._read, key)
        return list(pipeline.execute())

    def insert(self, key: bytes, *vals: bytes, buffer: bool = False) -> None:
        """Add values under a key: now or, with buffer, when the session sends its buffer."""
        pipeline = self._server.buffer if buffer else self._redis.pipeline()
        # The hash lists the keys of this storage: Redis has no cheap way to list keys by prefix.
        pipeline.hset(self._name, key, self._name + key)
        self._run(pipeline, self._add, key, *vals)
        # The length counts commands; an insertion has two.
        if not buffer or len(pipeline) >= self.buffer_size:
            pipeline.execute()

    def remove(self, *keys: bytes) -> None:
        """Remove keys."""
        # In one transaction: the list of keys and their values stay in step.
        pipeline = self._redis.pipeline()
        pipeline.hdel(self._name, *keys)
        pipeline.delete(*(self._name + key for key in keys))
        pipeline.execute()

    def remove_val(self, key: bytes, val: bytes) -> None:
        """Remove one value of a key."""
        self._run(self._redis, self._remove, key, val)

    def size(self) -> int:
        """Return the number of keys."""
        return int(self._redis.hlen(self._name))

    def has_key(self, key: object) -> bool:
        """Return whether a key exists."""
        return bool(self._redis.hexists(self._name, key))

    def itemcounts(self, **_: Any) -> dict[bytes, int]:
        """Return the number of values of each key."""
        keys = list(self.keys())
        pipeline = self._redis.pipeline(transaction=False)
        for key in keys:
            self._run(pipeline, self._count, key)
        return dict(zip(keys, pipeline.execute(), strict=True))

    @property
    def buffer_size(self) -> int:
        """Return the greatest number of buffered commands."""
        return self._server.buffer_size

    @buffer_size.setter
    def buffer_size(self, value: int) -> None:
        self._server.buffer_size = value

    def empty_buffer(self) -> None:
        """Send the buffered commands."""
        self._server.buffer.execute()


class RedisSetStorage(RedisListStorage):
    """Sets by key."""

    _count = _Command("SCARD")
    _add = _Command("SADD")
    _remove = _Command("SREM")
    _read = _Command("SMEMBERS")


Tables = (
    tuple[DictListStorage, list[DictSetStorage]] | tuple[RedisListStorage, list[RedisSetStorage]]
)


def open_storage(config: Config | None, num_bands: int) -> Tables:
    """Return the storage of the bands of keys, and for each band the storage of its buckets.

    Raises
    ------
    SettingError
        If the configuration names another storage than a dict or Redis.
    InputError
        If the base of the names on Redis is not bytes.
    """
    kind = config.get("type") if config else "dict"
    if config is None or kind == "dict":
        return DictListStorage(), [DictSetStorage() for _ in range(num_bands)]
    if kind != "redis":
        raise SettingError(
            f"storage_config with type {kind!r} is not supported. Use {{'type': 'dict'}} or "
            "'redis', or leave storage_config out; for another server keep using datasketch."
        )
    base = base_name(config)
    server = Server(config)
    buckets = [
        # The names of datasketch.
        RedisSetStorage(server, base + b"_bucket_" + struct.pack(">H", band))
        for band in range(num_bands)
    ]
    return RedisListStorage(server, base + b"_keys"), buckets


def base_name(config: Config) -> bytes:
    """Return the name of an index on Redis: the configured one, or a random name.

    Raises
    ------
    InputError
        If the configured name is not bytes.
    """
    base: bytes = config.get("basename", secrets.token_hex(6).encode())
    check_kind("basename", base, bytes, "bytes")
    return base
