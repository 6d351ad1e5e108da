"""Copy an index while it is in use."""

from __future__ import annotations

import os
import shutil
from contextlib import closing
from pathlib import Path

from neardup.stores.damage import damaged
from neardup.stores.embedded.database import NAME, Database
from neardup.stores.embedded.folder import check_new, publish_folder

_ATTEMPTS = 100


def copy_index(folder: Path, target: Path) -> None:
    """Write a copy of an index to a new folder, which appears when it is complete.

    Files that never change are linked where the file system allows it, else copied.

    Raises
    ------
    StoreError
        If there is something at the target, or files are missing.
    OSError
        If it cannot be written.
    """
    check_new(target)
    partial = target.with_name(f".{target.name}.partial-{os.getpid()}")
    try:
        for _ in range(_ATTEMPTS):
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            try:
                _copy(folder, partial)
                break
            except FileNotFoundError as error:  # the writer has replaced a file since
                missing = error
        else:
            raise damaged(Path(str(missing.filename)), "it is missing") from missing
        publish_folder(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _copy(folder: Path, partial: Path) -> None:
    with closing(Database(folder, True)) as source:
        source.backup(partial / NAME)
    with closing(Database(partial, True)) as copied:
        infos = copied.files()
    for path in partial.glob(f"{NAME}-*"):
        path.unlink()
    for info in infos:
        _link(folder / info.name, partial / info.name)
    _sync(partial / NAME)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
        _sync(target)


def _sync(path: Path) -> None:
    with path.open("rb") as file:
        os.fsync(file.fileno())
