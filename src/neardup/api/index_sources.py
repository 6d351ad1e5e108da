"""Recognise an index as a source, without loading the stores."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from neardup.errors import SettingError
from neardup.files import public_address
from neardup.formats.tables import rereadable
from neardup.runs.run import named_paths
from neardup.stores.addresses import is_index

if TYPE_CHECKING:
    from neardup.api.index import Index


def index_in(source: Any, name: str = "against") -> Index | str | None:
    """Return the index that a source is, or its address; None if it is a collection, or nothing.
    name : of the source.

    Raises
    ------
    SettingError
        If it lists an index beside other sources.
    """
    module = sys.modules.get("neardup.api.index")  # without it, there is no open index
    items = list(source) if isinstance(source, (list, tuple)) else [source]
    opened = [item for item in items if module is not None and isinstance(item, module.Index)]
    found = [item.address for item in opened] + [
        path for path in named_paths(source) if is_index(path)
    ]
    if found and len(items) > 1:
        raise SettingError(
            f"{name} is either one index or files and tables: got {len(items)} names, with the "
            f"index {public_address(found[0])}. Add the others to the index first."
        )
    named: list[Index | str] = opened or found
    return named[0] if named else None


@contextmanager
def open_documents(source: Any, name: str) -> Iterator[Any]:
    """Open the index that a source is, as an input that has its documents; any other source is an
    input that can be read again.

    Raises SettingError as `index_in`, or if the index stores no texts.
    """
    found = index_in(source, name)
    if found is None:
        yield rereadable(source)
        return
    from neardup.api.index import Index  # loads the stores
    from neardup.index.part import IndexPart

    with (
        nullcontext(found)
        if isinstance(found, Index)
        else Index.open(found, read_only=True) as index
    ):
        yield IndexPart(index.opened)
