"""An open index, whose documents come and go in batches: the interface that surfaces and engines
use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import schemas
from neardup.arrays import Rows, arrow_of
from neardup.errors import InputError, UnknownImportError
from neardup.features.vectors import texts_of
from neardup.files import JsonObject
from neardup.index import collection, maintenance, meta
from neardup.index.incoming import Incoming, describe, new_prefix, store_settings
from neardup.index.overlay import Overlay
from neardup.methods.base import Method
from neardup.methods.registry import IDF
from neardup.settings.constraints import check_import_name
from neardup.settings.methods import MethodSettings
from neardup.settings.run import IndexSettings
from neardup.stores.addresses import create_store, open_store, shown_address
from neardup.stores.base import Changes, Import, Store, StoredSnapshot, Writer

PAYLOAD = "payload"


class Batch(NamedTuple):
    """Documents: large_string arrays of shape (num_documents,). is_unnamed : whether they have no
    ids yet.
    """

    texts: pa.Array
    ids: pa.Array
    payloads: pa.Array
    is_unnamed: bool = False

    @classmethod
    def of(cls, table: pa.Table) -> Batch:
        """Return the documents that `table` wrote."""
        texts, ids, payloads = (table[name].combine_chunks() for name in ("text", "id", PAYLOAD))
        return cls(texts, ids, payloads, ids.null_count > 0)

    @classmethod
    def join(cls, batches: Sequence[Batch]) -> Batch:
        """Return one batch or more as one. Requires: all of them are unnamed, or none."""
        if len(batches) == 1:
            return batches[0]
        texts, ids, payloads = (pa.concat_arrays([batch[i] for batch in batches]) for i in range(3))
        return cls(texts, ids, payloads, batches[0].is_unnamed)

    def table(self) -> pa.Table:
        """Return the documents as a table to be stored; documents without ids have nulls."""
        ids = pa.nulls(len(self.texts), "large_string") if self.is_unnamed else self.ids
        return pa.table({"id": ids, "text": texts_of(self.texts), PAYLOAD: self.payloads})


class OpenIndex:
    """An open index. Threads can share it.

    Attributes
    ----------
    store : of its documents and keys. address : as it was named, without a password. rules : of its
        decisions, with the
    method. settings : the other settings.
    """

    def __init__(self, store: Store) -> None:
        """Wrap an open store; `create` and `open` call this."""
        self.store, self.address = store, shown_address(store.address)
        self.rules = meta.rules_of(
            store.settings.meta, meta.table_of(store.attachment(IDF)), self.address
        )
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
        """Create an index, and open it. If `fill`, which adds its first documents, does not return,
        there is none.
        """
        about = meta.meta_of(method, settings, now())
        made = store_settings(about, method, meta.attachments_of(method))
        filled = None if fill is None else lambda store: fill(cls(store))
        return cls._of(create_store(address, made, filled))

    @classmethod
    def open(
        cls, address: str, *, read_only: bool, method: MethodSettings | None = None
    ) -> OpenIndex:
        """Open an index. method : the settings that it must have been created with; None accepts
        any.
        """
        return cls._of(open_store(address, read_only=read_only), method)

    @classmethod
    def _of(cls, store: Store, method: MethodSettings | None = None) -> OpenIndex:
        """Return the index of an open store, which is closed if its method is not `method` or
        cannot be used.
        """
        try:
            if method is not None:
                meta.require_method(store.settings.meta, method, shown_address(store.address))
            return cls(store)
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
        """Return documents with their features and keys, which takes most of the time and no
        lock.
        """
        return describe(self.rules.method, batch.texts, batch.ids, batch.payloads)

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
        described : as `describe` returned it, if it was called before.
        """
        if import_name is not None:
            check_import_name(import_name)
        incoming = self.describe(batch) if described is None else described
        with self.store.writing() as writer:
            if batch.is_unnamed:
                incoming = incoming.numbered(self._prefix, writer.num_rows)
            return collection.add(
                self.rules, writer, incoming, now(), if_new=if_new, import_name=import_name
            )

    def query(self, incoming: Incoming, limit: int) -> pa.Table:
        """Return the kept documents that are similar to each document, at most `limit`:
        `schemas.hits_schema`.
        """
        with self.store.reading() as snapshot:
            return collection.query(self.rules, snapshot, incoming, limit)

    def collect(self, tables: Iterable[pa.Table]) -> pa.Table:
        """Return answers as one table, of no rows if there are none."""
        return pa.concat_tables([schemas.answers_schema(self.measures).empty_table(), *tables])

    # The index as a whole.

    def describe_all(self) -> JsonObject:
        """Return counts, sizes and settings, as values for JSON."""
        with self.store.reading() as snapshot:
            counts = snapshot.count()
        stored, total, idf = (
            self.store.describe(),
            counts.kept + counts.removed,
            self.rules.method.idf,
        )
        about = self.store.settings.meta
        return {
            "address": self.address,
            "documents": {"kept": counts.kept, "removed": counts.removed},
            "bytes": stored.get("bytes"),
            "bytes_per_document": round(stored["bytes"] / total, 1)
            if total and stored.get("bytes")
            else None,
            "durable": self.store.durable,
            "promise": self.store.promise,
            **{
                name: about[name]
                for name in ("created", "neardup", "format_version", "method", "index")
            },
            "idf": None if idf is None else idf.describe(),
            "imports": [staged._asdict() for staged in self.imports()],
            "store": stored,
        }

    def remove(self, ids: pa.Array) -> Removed:
        """Forget documents by id, large_string without nulls."""
        rows = np.empty(0, np.int64)

        def choose(writer: Writer) -> Rows:
            nonlocal rows
            rows = writer.rows_of_ids(ids)
            return np.unique(rows)

        count = self.forget(choose)
        return Removed(count, ids.filter(arrow_of(rows < 0)).unique())

    def forget(self, choose: Callable[[Writer], Rows]) -> int:
        """Forget the rows that a function chooses, of which -1 is none; return their number."""
        with self.store.writing() as writer:
            rows = choose(writer)
            rows = rows[rows >= 0]
            if len(rows):
                writer.write(Changes(forgotten=rows))
            return len(rows)

    def merge(self, other: OpenIndex) -> pa.Table:
        """Add the kept documents of another index of the same method that are new here; return the
        answers.
        """
        meta.require_method(other.store.settings.meta, self.rules.method, other.address)
        with other.store.reading() as snapshot, self.store.writing() as writer:
            parts = maintenance.kept_documents(other.rules, snapshot, self.settings.storage)
            return self.collect(collection.add(self.rules, writer, part, now()) for part in parts)

    def rebuild(self, address: str, method: Method) -> OpenIndex:
        """Make another index of the same documents, with the bands or blocks of another method of
        the same scheme.
        """
        prepared = meta.with_table(meta.fixed(method, self.settings), self.rules.method.idf)
        meta.require_features(self.rules.method, prepared, self.address)

        def fill(made: OpenIndex) -> None:
            with self.store.reading() as snapshot, made.store.writing() as writer:
                maintenance.copy(made.rules, snapshot, writer)

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
        """Store documents durably in an open import, found by no query before it is committed;
        return their number.

        Raises
        ------
        UnknownImportError
            If there is no such import, also if it was committed or cancelled while this call stages
            documents.
        """
        self.require_open(import_name)
        count = 0
        for batch in batches:
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
            overlay, decided = Overlay(writer, self.rules), list[collection.Step]()
            for batch in map(Batch.of, writer.staged(import_name)):
                incoming = self.describe(batch)
                if batch.is_unnamed:
                    incoming = incoming.numbered(self._prefix, overlay.num_rows)
                decided += collection.steps(
                    self.rules, overlay, incoming, now(), import_name=import_name
                )
            writer.write_all(
                [*(step.changes for step in decided), Changes(ended_import=import_name)]
            )
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
    """Raise UnknownImportError if there is no open import of a name; num_staged : by this call,
    before it ended.
    """
    names = [known.name for known in snapshot.imports()]
    if import_name in names:
        return
    ended = (
        f" It ended after {num_staged:,} documents of this call were staged." if num_staged else ""
    )
    raise UnknownImportError(
        f"There is no open import {import_name!r}: got {', '.join(names) or 'none'}.{ended} "
        "Open it with open_import "
        "(neardup index imports open)."
    )


class Removed(NamedTuple):
    """The number of documents that were forgotten. unknown : the ids that the index did not have,
    each once.
    """

    num_documents: int
    unknown: pa.Array


def now() -> int:
    """Return the time in microseconds since 1970."""
    return time.time_ns() // 1000
