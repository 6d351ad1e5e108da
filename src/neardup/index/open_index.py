"""An open index, to which surfaces and engines add batches of documents and from which they remove
them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import schemas
from neardup.arrays import Rows, arrow_of, join_tables
from neardup.errors import InputError, UnknownImportError
from neardup.features.vectors import texts_of
from neardup.files import JsonObject, public_address
from neardup.index import collection, maintenance, meta
from neardup.index.decisions import Rules
from neardup.index.incoming import Incoming, describe, new_prefix, store_settings
from neardup.index.overlay import Overlay
from neardup.index.sources import SOURCE, converted, origins_of
from neardup.methods.base import Method
from neardup.methods.registry import IDF
from neardup.settings.constraints import check_import_name
from neardup.settings.methods import MethodSettings
from neardup.settings.run import IndexSettings
from neardup.stores.addresses import create_store, open_store
from neardup.stores.base import Changes, Import, Store, StoredSnapshot, Writer
from neardup.stores.documents import array_of

PAYLOAD = "payload"
_DATE = "date"


class Batch(NamedTuple):
    """Documents to add or to look up.

    texts, ids, payloads : large_string arrays (num_documents,); texts of vectors are lists.
    is_unnamed : whether the documents have no ids yet: these are null. sources : large_string, null
    for documents without a source; None if none has one. dates : the same of the dates.
    """

    texts: pa.Array
    ids: pa.Array
    payloads: pa.Array
    is_unnamed: bool = False
    sources: pa.Array | None = None
    dates: pa.Array | None = None

    @classmethod
    def of(cls, table: pa.Table) -> Batch:
        """Return the documents from the result of `table`."""
        ids = table["id"].combine_chunks()
        return cls(
            texts=table["text"].combine_chunks(),
            ids=ids,
            payloads=table[PAYLOAD].combine_chunks(),
            is_unnamed=ids.null_count > 0,
            sources=array_of(table[SOURCE]) if SOURCE in table.column_names else None,
            dates=array_of(table[_DATE]) if _DATE in table.column_names else None,
        )

    @classmethod
    def join(cls, batches: Sequence[Batch]) -> Batch:
        """Return batches as one, at least one. Requires: all of them are unnamed, or none."""
        if len(batches) == 1:
            return batches[0]
        return cls(
            texts=pa.concat_arrays([batch.texts for batch in batches]),
            ids=pa.concat_arrays([batch.ids for batch in batches]),
            payloads=pa.concat_arrays([batch.payloads for batch in batches]),
            is_unnamed=batches[0].is_unnamed,
            sources=_joined([batch.sources for batch in batches], batches),
            dates=_joined([batch.dates for batch in batches], batches),
        )

    def table(self) -> pa.Table:
        """Return the documents as a table to store; the ids of unnamed documents are null."""
        columns = {"id": self.ids, "text": texts_of(self.texts), PAYLOAD: self.payloads}
        tracked = {SOURCE: self.sources, _DATE: self.dates}
        known = {name: values for name, values in tracked.items() if values is not None}
        return pa.table(columns | known)


def _joined(columns: Sequence[pa.Array | None], batches: Sequence[Batch]) -> pa.Array | None:
    """Return a column of several batches; None if no batch has it."""
    if all(column is None for column in columns):
        return None
    return pa.concat_arrays(
        [
            pa.nulls(len(batch.ids), "large_string") if column is None else column
            for column, batch in zip(columns, batches, strict=True)
        ]
    )


class OpenIndex:
    """An open index. Threads can share it.

    Attributes
    ----------
    store : the store of the documents and keys.
    address : the address of the store, without a password.
    rules : the rules of the decisions, with the method.
    settings : the other settings.
    """

    def __init__(self, store: Store) -> None:
        """Wrap an open store; `create` and `open` call this."""
        self.store = store
        self.address = public_address(store.address)
        idf = meta.table_of(store.attachment(IDF))
        self.rules = meta.rules_of(store.settings.meta, idf, self.address)
        self.settings = IndexSettings(**store.settings.meta["index"])
        self._prefix = new_prefix()

    @classmethod
    def create(
        cls,
        address: str,
        method: Method,
        settings: IndexSettings,
        fill: Callable[[OpenIndex], None] | None = None,
    ) -> OpenIndex:
        """Create an index, and open it.

        fill : adds the first documents; if it raises, no index is created.
        """
        stored_meta = meta.meta_of(method, settings, now())
        stored = store_settings(
            stored_meta,
            method,
            meta.attachments_of(method),
            tracks_sources=settings.track_sources,
        )
        fill_store = None if fill is None else lambda store: fill(cls(store))
        return cls._of(create_store(address, stored, fill_store))

    @classmethod
    def open(
        cls, address: str, *, read_only: bool, method: MethodSettings | None = None
    ) -> OpenIndex:
        """Open an index. method : the settings of its creation; None accepts any."""
        return cls._of(open_store(address, read_only=read_only), method)

    @classmethod
    def _of(cls, store: Store, method: MethodSettings | None = None) -> OpenIndex:
        """Return the index of an open store.

        The store is closed if its method is not `method` or cannot be used.
        """
        try:
            if method is not None:
                meta.require_method(store.settings.meta, method, public_address(store.address))
            return cls(store)
        # The lock of the store must not stay, also after Ctrl-C.
        except BaseException:
            store.close()
            raise

    @property
    def method(self) -> MethodSettings:
        """The settings of the comparison."""
        settings: MethodSettings = self.rules.method.settings
        return settings

    @property
    def measures(self) -> schemas.Measures:
        """The measures of the method, which are columns of answers and hits."""
        return self.rules.method.measures

    def describe(self, batch: Batch) -> Incoming:
        """Return documents with their features and keys.

        This takes most of the time of `add`, and needs no lock.
        """
        sources = batch.sources
        if self.rules.tracks_dates:
            sources = origins_of(sources, batch.dates, len(batch.ids))
        return describe(self.rules.method, batch.texts, batch.ids, batch.payloads, sources)

    def add(
        self,
        batch: Batch,
        *,
        if_new: bool = True,
        import_name: str | None = None,
        described: Incoming | None = None,
    ) -> pa.Table:
        """Add documents in one change, and return `schemas.answers_schema`.

        Parameters
        ----------
        if_new : whether a document that is similar to a kept one is removed.
        import_name : the name of the import that brings them.
        described : the result of `describe`, if it was called before.
        """
        if import_name is not None:
            check_import_name(import_name)
        # Before the lock: computing features takes most of the time, and other threads may write
        # meanwhile.
        incoming = self.describe(batch) if described is None else described
        with self.store.writing() as writer:
            if batch.is_unnamed:
                # Under the lock: the rows that follow are this batch's own.
                incoming = incoming.numbered(self._prefix, writer.num_rows)
            return collection.add(
                self.rules, writer, incoming, now(), if_new=if_new, import_name=import_name
            )

    def query(self, incoming: Incoming, limit: int) -> pa.Table:
        """Return at most `limit` similar kept documents of each: `schemas.hits_schema`."""
        columns = self.hits(incoming, limit)
        schema = schemas.hits_schema(self.measures)
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)

    def hits(self, incoming: Incoming, limit: int) -> dict[str, pa.Array]:
        """Return the columns of `query`, for a caller who needs no table."""
        with self.store.reading() as snapshot:
            return collection.query(self.rules, snapshot, incoming, limit)

    def collect(self, tables: Iterable[pa.Table]) -> pa.Table:
        """Return answers as one table, without rows if there are none."""
        return join_tables(list(tables), self.rules.answers)

    # The index as a whole.

    def describe_all(self) -> JsonObject:
        """Return counts, sizes and settings, as values for JSON."""
        with self.store.reading() as snapshot:
            counts = snapshot.count()
        stored = self.store.describe()
        idf = self.rules.method.idf
        stored_meta = self.store.settings.meta
        num_bytes = stored.get("bytes")
        num_documents = counts.kept + counts.removed
        bytes_per_document = None
        if num_documents and num_bytes:
            bytes_per_document = round(num_bytes / num_documents, 1)
        return {
            "address": self.address,
            "documents": {"kept": counts.kept, "removed": counts.removed},
            "bytes": num_bytes,
            "bytes_per_document": bytes_per_document,
            "durable": self.store.durable,
            "promise": self.store.promise,
            "created": stored_meta["created"],
            "neardup": stored_meta["neardup"],
            "format_version": stored_meta["format_version"],
            "method": stored_meta["method"],
            "index": stored_meta["index"],
            "idf": None if idf is None else idf.describe(),
            "imports": [staged._asdict() for staged in self.imports()],
            "store": stored,
        }

    def remove(self, ids: pa.Array) -> Removed:
        """Forget documents by id, large_string without nulls."""
        unknown = ids

        def choose(writer: Writer) -> Rows:
            nonlocal unknown
            # Under the lock: between looking up and forgetting nobody adds the id again.
            rows = writer.rows_of_ids(ids)
            unknown = ids.filter(arrow_of(rows < 0)).unique()
            return np.unique(rows)

        num_documents = self.forget(choose)
        return Removed(num_documents, unknown)

    def forget(self, choose: Callable[[Writer], Rows]) -> int:
        """Forget the rows that `choose` returns, and return their number; -1 is ignored."""
        with self.store.writing() as writer:
            rows = choose(writer)
            rows = rows[rows >= 0]
            if len(rows):
                writer.write(Changes(forgotten=rows))
            return len(rows)

    def merge(self, other: OpenIndex) -> pa.Table:
        """Add the new ones of the kept documents of another index, and return the answers.

        Both indexes must have the same method.
        """
        meta.require_method(other.store.settings.meta, self.rules.method, other.address)
        with other.store.reading() as snapshot, self.store.writing() as writer:
            parts = maintenance.kept_documents(other.rules, snapshot, self.settings.storage)
            return self.collect(
                collection.add(self.rules, writer, self._with_origins(part, other.rules), now())
                for part in parts
            )

    def _with_origins(self, incoming: Incoming, rules: Rules) -> Incoming:
        """Return documents of an index of other rules with their origins as this one has them."""
        sources = converted(
            incoming.sources, dated=rules.tracks_dates, to_dated=self.rules.tracks_dates
        )
        return replace(incoming, sources=sources)

    def rebuild(self, address: str, method: Method) -> OpenIndex:
        """Create another index of the same documents, with the bands or blocks of `method`.

        Both methods must have the same scheme.
        """
        prepared = meta.with_table(meta.fixed(method, self.settings), self.rules.method.idf)
        meta.require_features(self.rules.method, prepared, self.address)

        def fill(rebuilt: OpenIndex) -> None:
            with self.store.reading() as snapshot, rebuilt.store.writing() as writer:
                maintenance.copy(rebuilt.rules, snapshot, writer)

        return OpenIndex.create(address, prepared, self.settings, fill)

    # Imports.

    def open_import(self, import_name: str) -> None:
        """Open an import: documents are staged in it, and enter the index when it is committed."""
        check_import_name(import_name)
        with self.store.writing() as writer:
            if any(known.name == import_name for known in writer.imports()):
                raise InputError(
                    f"The import {import_name!r} is already open. Commit or cancel it, or use "
                    "another name."
                )
            writer.stage(import_name, now(), None)

    def stage(self, import_name: str, batches: Iterable[Batch]) -> int:
        """Store documents durably in an open import, and return their number.

        No query finds them before the import is committed.

        Raises
        ------
        UnknownImportError
            If there is no such import, also if another call committed or cancelled it during this
            call.
        """
        self.require_open(import_name)
        count = 0
        for batch in batches:
            # The lock is taken for each batch: a long source does not keep others from writing.
            with self.store.writing() as writer:
                # Staging in an import that another call has ended would open it again.
                _refuse_unknown(writer, import_name, count)
                writer.stage(import_name, now(), batch.table())
            count += len(batch.texts)
        return count

    def commit_import(self, import_name: str) -> pa.Table:
        """Add the documents of an import that are new, all at once, and return the answers."""
        check_import_name(import_name)
        with self.store.writing() as writer:
            _refuse_unknown(writer, import_name)
            # Staged documents are compared with each other, too; the store changes once, at the
            # end.
            overlay = Overlay(writer, self.rules)
            decided: list[collection.Step] = []
            for batch in map(Batch.of, writer.staged(import_name)):
                incoming = self.describe(batch)
                if batch.is_unnamed:
                    incoming = incoming.numbered(self._prefix, overlay.num_rows)
                decided += collection.steps(
                    self.rules, overlay, incoming, now(), import_name=import_name
                )
            changes = [step.changes for step in decided]
            # In the same change: an import is committed as a whole, or open as before.
            writer.write_all([*changes, Changes(ended_import=import_name)])
        return self.collect(step.answers for step in decided)

    def cancel_import(self, import_name: str) -> None:
        """Drop an open import with its documents."""
        check_import_name(import_name)
        with self.store.writing() as writer:
            _refuse_unknown(writer, import_name)
            writer.write(Changes(ended_import=import_name))

    def imports(self) -> list[Import]:
        """Return the open imports."""
        with self.store.reading() as snapshot:
            return snapshot.imports()

    def require_open(self, import_name: str) -> None:
        """Raise UnknownImportError if there is no open import of this name."""
        check_import_name(import_name)
        with self.store.reading() as snapshot:
            _refuse_unknown(snapshot, import_name)


def _refuse_unknown(snapshot: StoredSnapshot, import_name: str, num_staged: int = 0) -> None:
    """Raise UnknownImportError if there is no open import of a name.

    num_staged : the number of documents that this call staged before the import ended.
    """
    names = [known.name for known in snapshot.imports()]
    if import_name in names:
        return
    ended = ""
    if num_staged:
        ended = f" It ended after {num_staged:,} documents of this call were staged."
    raise UnknownImportError(
        f"There is no open import {import_name!r}: got {', '.join(names) or 'none'}.{ended} Open "
        "it with open_import (neardup index imports open)."
    )


class Removed(NamedTuple):
    """The result of `remove`.

    num_documents : the number of forgotten documents. unknown : the ids that the index did not
    have, each once.
    """

    num_documents: int
    unknown: pa.Array


def now() -> int:
    """Return the time in microseconds since 1970."""
    return time.time_ns() // 1000
