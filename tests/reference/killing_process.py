"""A process that performs an operation of an index in forks of itself, each killed a little later
than the one before.

A fork stops at a statement of SQL, or when a file is written, synced, renamed or removed. It leaves
the index as it was before the operation, or as it is after it.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa

from neardup import Index, MinHash
from neardup.stores.embedded import array_files, maintenance
from neardup.stores.embedded.database import Database
from neardup.stores.embedded.store import EmbeddedStore

METHOD = MinHash(threshold=0.7, ngram=2)


def texts(first: int, stop: int) -> pa.Table:
    """Return documents, every third of which is a near-duplicate of the one before."""
    rng = [random.Random(number - (number % 3 == 2)) for number in range(first, stop)]
    words = [" ".join(f"w{one.randrange(5000)}" for _ in range(30)) for one in rng]
    return pa.table({"id": [f"d{number}" for number in range(first, stop)], "text": words})


def create(folder: Path) -> None:
    """Write the index, and the output of a run, that operations begin with."""
    with Index.create(folder / "index", method=METHOD, storage="text") as index:
        for first in range(0, 300, 60):
            index.add_many_if_new(texts(first, first + 60), import_name=f"r{first}")
        index.remove([f"d{number}" for number in range(0, 60, 7)])
        index.open_import("night")
        index.stage("night", texts(600, 640))
    with Index.create(folder / "other", method=METHOD, storage="text") as index:
        index.add_many(texts(1000, 1040))


def _open(folder: Path) -> Index:
    return Index.open(folder / "index")


def _with_index(work: Callable[[Index], Any]) -> Callable[[Path], Any]:
    def call(folder: Path) -> None:
        with _open(folder) as index:
            work(index)

    return call


def _merge(folder: Path) -> None:
    with _open(folder) as index, Index.open(folder / "other", read_only=True) as other:
        index.merge(other)


OPERATIONS: dict[str, Callable[[Path], Any]] = {
    "add": _with_index(lambda index: index.add("a text that the index does not have", id="new")),
    "add_many_if_new": _with_index(lambda index: index.add_many_if_new(texts(290, 380))),
    "remove": _with_index(lambda index: index.remove(["d1", "d4", "d100"])),
    "remove_import": _with_index(lambda index: index.remove_import("r60")),
    "expire": _with_index(lambda index: index.expire(max_documents=100)),
    "compact": _with_index(lambda index: index.compact()),
    "commit_import": _with_index(
        lambda index: [index.commit_import(staged.name) for staged in index.imports()]
    ),
    "merge": _merge,
    "backup": _with_index(lambda index: index.backup(Path(index.address).with_name("made"))),
    "rebuild": _with_index(
        lambda index: index.rebuild(Path(index.address).with_name("made"), method=METHOD).close()
    ),
}


def state_of(address: Path) -> list[tuple[Any, ...]] | None:
    """Return what an index has, which must be undamaged; None if there is none."""
    if not address.exists():
        return None
    with Index.open(address) as index:
        problems = index.verify()
        assert problems == [], problems
        names = ("id", "kept", "kept_id", "payload", "import_name", "text")
        rows = [row for table in index.documents() for row in table.select(names).to_pylist()]
        imports = [(staged.name, staged.num_documents) for staged in index.imports()]
        return sorted(tuple(str(row[name]) for name in names) for row in rows) + sorted(imports)


def states_of(folder: Path) -> list[Any]:
    """Return what the index has, and the one that is made of it."""
    return [state_of(folder / name) for name in ("index", "made")]


def kill_after(moments: int) -> None:
    """Let this process end at a moment of those that are counted."""
    left = moments

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal left
            left -= 1
            if left <= 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for owner, name in (
        (Database, "_run"),
        (array_files, "write_at"),
        (maintenance, "sync"),
        (Path, "rename"),
        (Path, "unlink"),
        (os, "link"),
        (shutil, "rmtree"),
        (EmbeddedStore, "close"),
    ):
        setattr(owner, name, counted(getattr(owner, name)))


def kill_everywhere(source: Path, operation: str, step: int) -> int:
    """Kill an operation at each `step`-th moment, from the first to the end; return how often it
    was killed.
    """
    folder = source.with_name("work")
    before = None
    after = None
    moments = 0
    work = OPERATIONS[operation]
    killed = True
    while killed:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder)
        if before is None:
            before = states_of(folder)
            work(folder)
            after = states_of(folder)
            continue
        moments += 1
        child = os.fork()
        if not child:
            kill_after(1 + (moments - 1) * step)
            work(folder)
            os._exit(0)
        killed = os.waitpid(child, 0)[1] == signal.SIGKILL
        found = states_of(folder)
        for one, *allowed in zip(found, before, after, strict=True):
            assert one in allowed, (
                f"{operation}, killed at moment {1 + (moments - 1) * step}: neither before nor "
                "after"
            )
        assert killed or found == after
        shutil.rmtree(folder / "made", ignore_errors=True)
        work(folder)  # again, over what was left
        assert states_of(folder)[1] is not None or after[1] is None
    return moments - 1


if __name__ == "__main__":
    create(Path(sys.argv[1]))
    for name in sys.argv[3:]:
        print(name, kill_everywhere(Path(sys.argv[1]), name, int(sys.argv[2])), flush=True)
