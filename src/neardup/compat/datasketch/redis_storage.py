"""Lists and sets of a Redis server by key, in the layout of datasketch: each finds what the other wrote.

A storage has a name. The hash of that name has a field for each key, whose value is the name followed by the key: there
the server keeps the list or set.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from neardup.errors import MissingExtraError, SettingError

if TYPE_CHECKING:
    from typing_extensions import Self


class Server:
    """A client, and the commands of a session that wait to be sent together.

    Parameters
    ----------
    config : "redis", the parameters of `redis.Redis`, each a value or {"env": NAME, "default": value}; "redis_buffer",
        with "transaction", whether what waits is sent as one transaction; true by default.

    Attributes
    ----------
    buffer_size : commands that wait at most.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
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
        self.buffer_size = 50000
        self.client: Any = redis.Redis(**_resolved(config["redis"]))
        self.waiting: Any = self.client.pipeline(**{"transaction": True} | _resolved(config.get("redis_buffer", {})))

    def send_when_full(self) -> None:
        """Send what waits, if it is much."""
        if len(self.waiting) >= self.buffer_size:
            self.waiting.execute()

    def __reduce__(self) -> tuple[type[Self], tuple[Mapping[str, Any]]]:
        return type(self), (self.config,)


def _resolved(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: os.environ.get(value["env"], value.get("default"))
        if isinstance(value, dict) and "env" in value
        else value
        for name, value in parameters.items()
    }


class RedisListStorage:
    """Lists by key."""

    _count, _add = "LLEN", "RPUSH"

    def __init__(self, server: Server, name: bytes) -> None:
        self._server = server
        self._name = name

    @property
    def _redis(self) -> Any:
        return self._server.client

    def _place(self, key: bytes) -> bytes:
        return self._name + key

    def __getitem__(self, key: bytes) -> Any:
        return self.get(key)

    def __len__(self) -> int:
        return self.size()

    def __iter__(self) -> Any:
        return iter(self.keys())

    def __contains__(self, key: object) -> bool:
        return self.has_key(key)

    def keys(self) -> set[bytes]:
        """Return the keys."""
        return set(self._redis.hkeys(self._name))

    def _read(self, client: Any, key: bytes) -> Any:
        return client.lrange(self._place(key), 0, -1)

    def get(self, key: bytes) -> Any:
        """Return the values of a key; none if it is missing."""
        return self._read(self._redis, key)

    def getmany(self, *keys: bytes) -> list[Any]:
        """Return the values of each key."""
        return self.get_each([self] * len(keys), keys)

    @staticmethod
    def get_each(storages: Sequence[RedisListStorage], keys: Iterable[bytes]) -> list[Any]:
        """Return the values of one key in each storage, in one round trip."""
        if not storages:
            return []
        pipeline = storages[0]._redis.pipeline(transaction=False)
        for storage, key in zip(storages, keys, strict=True):
            storage._read(pipeline, key)
        return list(pipeline.execute())

    def insert(self, key: bytes, *vals: bytes, buffer: bool = False) -> None:
        """Add values under a key, at once or, with buffer, when the session sends them."""
        pipeline = self._server.waiting if buffer else self._redis.pipeline()
        pipeline.hset(self._name, key, self._place(key))
        pipeline.execute_command(self._add, self._place(key), *vals)
        if buffer:
            self._server.send_when_full()
        else:
            pipeline.execute()

    def remove(self, *keys: bytes) -> None:
        """Take keys out."""
        pipeline = self._redis.pipeline()
        pipeline.hdel(self._name, *keys)
        pipeline.delete(*map(self._place, keys))
        pipeline.execute()

    def remove_val(self, key: bytes, val: bytes) -> None:
        """Take one value of a key out."""
        self._redis.lrem(self._place(key), 0, val)

    def size(self) -> int:
        """Return the number of keys."""
        return int(self._redis.hlen(self._name))

    def has_key(self, key: object) -> bool:
        """Return whether a key is there."""
        return bool(self._redis.hexists(self._name, key))

    def itemcounts(self, **_: Any) -> dict[bytes, int]:
        """Return the number of values of each key."""
        keys = list(self.keys())
        pipeline = self._redis.pipeline(transaction=False)
        for key in keys:
            pipeline.execute_command(self._count, self._place(key))
        return dict(zip(keys, pipeline.execute(), strict=True))

    @property
    def buffer_size(self) -> int:
        """Return how many commands wait at most."""
        return self._server.buffer_size

    @buffer_size.setter
    def buffer_size(self, value: int) -> None:
        self._server.buffer_size = value

    def empty_buffer(self) -> None:
        """Send what waits."""
        self._server.waiting.execute()


class RedisSetStorage(RedisListStorage):
    """Sets by key."""

    _count, _add = "SCARD", "SADD"

    def _read(self, client: Any, key: bytes) -> Any:
        return client.smembers(self._place(key))

    def remove_val(self, key: bytes, val: bytes) -> None:
        """Take one value of a key out."""
        self._redis.srem(self._place(key), val)
