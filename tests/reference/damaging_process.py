"""A process that damages the files of an index at random and uses it: a crash of compiled code
would end it.
"""

from __future__ import annotations

import json
import random
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from neardup.errors import StoreError
from neardup.stores import embedded
from neardup.stores.base import Store
from reference.store import SCHEMA, random_lookups
from reference.writing_process import LAYOUT


def arrays_of(path: Path) -> list[tuple[int, int, int]]:
    """Return where the arrays of a file begin, how many elements they have, and the bytes of
    one.
    """
    head = path.read_bytes()[:20]
    if head[:8] != b"ndarrays":
        return [
            (0, path.stat().st_size, 1),
            (0, path.stat().st_size // 4, 4),
            (0, path.stat().st_size // 8, 8),
        ]
    arrays = json.loads(path.read_bytes()[20 : 20 + struct.unpack("<I", head[16:])[0]])["arrays"]
    return [
        (array["offset"], array["size"], int(array["type"][-1]))
        for array in arrays
        if array["size"]
    ]


def damage(path: Path, rng: random.Random) -> bool:
    """Overwrite some elements of an array with great, small or any numbers; return whether they
    were others.
    """
    offset, size, width = rng.choice(arrays_of(path))
    at = offset + width * rng.randrange(size)
    value = rng.choice(
        [b"\xff" * width, b"\xff" * (width - 1) + b"\x7f", bytes(width), rng.randbytes(width)]
    )
    whole = path.read_bytes()
    value = (value * rng.choice([1, 4, 64]))[: len(whole) - at]
    path.write_bytes(whole[:at] + value + whole[at + len(value) :])
    return whole[at : at + len(value)] != value


def complaint_of(call: Callable[[], object]) -> str:
    """Call a function; return its StoreError, the only error that is allowed, or nothing."""
    try:
        call()
    except StoreError as error:
        return str(error)
    return ""


def use(store: Store, rng: random.Random) -> None:
    """Ask an index, whatever it answers."""
    with store.reading() as snapshot:
        lookups = random_lookups(LAYOUT, rng, 60)
        ids = pa.array(
            [f"document {row}" for row in range(0, snapshot.num_rows, 3)], pa.large_string()
        )
        calls = [
            lambda: snapshot.find(lookups, 3),
            lambda: snapshot.take(
                snapshot.rows_of_ids(ids)[snapshot.rows_of_ids(ids) >= 0], SCHEMA.names
            ).to_pylist(),
            lambda: snapshot.rows_of_contents(
                np.array([[i, j] for i in range(4) for j in range(4)], np.uint64)
            ),
            lambda: [table.to_pylist() for table in snapshot.scan(SCHEMA.names)],
        ]
        complaints = [complaint_of(call) for call in calls]
        assert all("is damaged: " in complaint for complaint in complaints if complaint), complaints


def damage_and_use(source: Path, seed: int, times: int) -> None:
    """Damage a copy of an index many times; print the file that was damaged, before it is used."""
    rng = random.Random(seed)
    copy = source.with_name("copy")
    for _ in range(times):
        shutil.copytree(source, copy)
        path = rng.choice(sorted(copy.glob("*-0*")))
        print(path.name, flush=True)
        if damage(path, rng):
            complaint = complaint_of(lambda: embedded.open(str(copy), read_only=True).close())
            assert path.name in complaint or not complaint, complaint
            if not complaint:
                store = embedded.open(str(copy), read_only=True)
                problems = store.verify()
                assert (
                    len([problem for problem in problems if path.name in problem])
                    == len(problems)
                    > 0
                ), problems
                use(store, rng)
                store.close()
        shutil.rmtree(copy)


if __name__ == "__main__":
    damage_and_use(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
