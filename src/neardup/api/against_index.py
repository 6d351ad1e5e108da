"""Open the index that a run of dedup is decided on top of."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from neardup.api.index import Index
from neardup.engines.base import Engine
from neardup.engines.capabilities import index_of
from neardup.engines.index.engine import IndexEngine
from neardup.errors import SchemeError
from neardup.index import meta
from neardup.index.documents import Origin
from neardup.index.open_index import OpenIndex
from neardup.runs.run import Run
from neardup.settings.constraints import Options, constraints_of, without_none
from neardup.settings.methods import MethodSettings, method_named
from neardup.stores.base import StoredSnapshot


@contextmanager
def open_engine(
    found: Index | str,
    run: Run,
    method: MethodSettings | str | None,
    limits: Options,
    *,
    update: bool,
    sources: str | None,
    dates: str | None,
) -> Iterator[Engine]:
    """Open an index for a run of dedup; an index that was passed stays open afterwards.

    Parameters
    ----------
    found : as `index_sources.index_in` returns it.
    run : is performed by the method of the index.
    method, limits : the index must have been made with these, unless they are None; the limits by
        name, as in `dedup`.
    update : whether the index is opened for writing.
    sources, dates : as in `dedup`; an index that tracks them stores them when it is updated.

    Raises
    ------
    SchemeError
        If the index was made with another method.
    SettingError
        If it was made with another bound of its buckets, or an index does not take an option.
    """
    opened: AbstractContextManager[Index] = (
        nullcontext(found) if isinstance(found, Index) else Index.open(found, read_only=not update)
    )
    with opened as public:
        index = public.opened
        index_of(index.rules.max_bucket_size).refuse("dedup", run.options)
        named = _named(index, method, limits)
        if named is not None:
            meta.require_method(index.store.settings.meta, named, index.address)
        # The lock is held for the whole run: documents that are decided on top of the index enter
        # the same index.
        state: AbstractContextManager[StoredSnapshot] = (
            index.store.writing() if update else index.store.reading()
        )
        with state as snapshot:
            run = dataclasses.replace(run, method=index.method)
            yield IndexEngine(run, index, snapshot, Origin(sources, dates))


def _named(
    index: OpenIndex, method: MethodSettings | str | None, limits: Options
) -> MethodSettings | None:
    """Return the method that the user named beside the index, if any."""
    if method is not None:
        return method_named(method, **limits)
    named = without_none(limits)
    unknown = next((name for name in named if name not in constraints_of(type(index.method))), None)
    if unknown is not None:
        raise SchemeError(
            f"The index {index.address} was made with {type(index.method).__name__}, which has no "
            f"{unknown}: got {unknown}={named[unknown]!r}. Leave it out."
        )
    return dataclasses.replace(index.method, **named) if named else None
