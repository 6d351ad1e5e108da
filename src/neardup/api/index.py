"""The durable index: add, query and remove documents."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import schemas
from neardup.answers import Answer, Hit
from neardup.api.documents_of_index import Batch, batch_of_text, batches_of
from neardup.api.inputs import Source
from neardup.errors import InputError, SettingError, UnknownRunError
from neardup.executor import count_threads, map_ordered
from neardup.features.idf import IdfTable
from neardup.index import collection, maintenance, meta
from neardup.index.incoming import Incoming, describe, new_prefix
from neardup.index.overlay import Overlay
from neardup.methods.base import Method
from neardup.methods.registry import method_of
from neardup.methods.stored import IDF
from neardup.results import Document
from neardup.settings.constraints import check_limit, check_run, check_text
from neardup.settings.index import IndexSettings
from neardup.settings.methods import MethodSettings
from neardup.settings.presets import method_named
from neardup.stores.addresses import create_store, open_store, shown_address
from neardup.stores.base import Changes, Run, Store, Writer


class Index:
    """A durable index of documents, which finds out whether a similar document was seen before.

    `add_if_new` decides as `dedup` does on the same documents in the same order: it keeps a document unless its
    measured similarity to a kept one reaches the threshold, whatever the batch sizes. `Index.create` creates an index,
    `Index.open` opens one; an index is a context manager, and closes on exit. Threads can share it.

    Attributes
    ----------
    address : as it was named, without a password. method : of the comparison. settings : the other settings.

    Examples
    --------
    >>> index = Index.create("memory:")
    >>> index.add_if_new("the quick brown fox jumps over the lazy dog", id="fox").kept
    True
    >>> answer = index.add_if_new("The quick brown fox jumps over the lazy dog!", id="again")
    >>> answer.kept, answer.kept_id, answer.similarity
    (False, 'fox', 1.0)
    >>> [hit.id for hit in index.query("the quick brown fox jumps over the lazy dog")]
    ['fox']
    """

    def __init__(self, store: Store) -> None:
        """Wrap an open store; `create` and `open` call this."""
        self._store, self.address = store, shown_address(store.address)
        self._rules = meta.rules_of(store.meta, meta.table_of(store.attachment(IDF)), self.address)
        self.method: MethodSettings = self._rules.method.settings
        self.settings = IndexSettings(**store.meta["index"])
        self._prefix = new_prefix()

    @classmethod
    def create(
        cls,
        address: str | os.PathLike[str],
        *,
        method: MethodSettings | str = "minhash",
        threshold: float | None = None,
        max_distance: int | None = None,
        storage: str = "features",
        max_bucket_size: int | None = None,
        expected_documents: int = 10_000_000,
        idf: IdfTable | str | os.PathLike[str] | None = None,
    ) -> Index:
        """Create an index, and open it.

        Parameters
        ----------
        address : a new folder; `postgresql://...` or `redis://...`; or `memory:`, which lasts as long as the process.
        method, threshold, max_distance : as in `dedup`.
        storage : the data stored for a kept document: fingerprints alone, if these decide; features, which confirm
            duplicates exactly; or text, from which the features are computed again: this takes a third of the space and
            twice the time to confirm a pair, and `get` and the page of the service can show the text.
        max_bucket_size : as in `dedup`.
        expected_documents : the number of documents to choose the blocks of SimHash for; does not change the answers.
        idf : the document frequencies for the weights of the method, as returned by `document_frequencies`, or their
            file. Required by methods that boost rare features: boost_rare, structure and page.

        Raises
        ------
        SettingError
            If a value is outside its limits, an index cannot use the method, or `idf` is missing or not for the method.
        SchemeError
            If `idf` counts other features than those of the method.
        StoreError
            If the index exists, or cannot be created.
        """
        settings = IndexSettings(
            storage=storage, max_bucket_size=max_bucket_size, expected_documents=expected_documents
        )
        prepared = meta.prepare(method_named(method, threshold, max_distance), settings, idf)
        return cls._make(address, prepared, settings)

    @classmethod
    def _make(
        cls,
        address: str | os.PathLike[str],
        method: Method,
        settings: IndexSettings,
        fill: Callable[[Index], None] | None = None,
    ) -> Index:
        """Create an index, and open it. If `fill`, which adds its first documents, does not return, there is none."""
        assert method.lookup is not None
        about, attachments = meta.meta_of(method, settings, _now()), meta.attachments_of(method)
        filled = None if fill is None else lambda store: fill(cls(store))
        return cls._of(create_store(os.fspath(address), about, method.lookup.layout, attachments, filled))

    @classmethod
    def open(
        cls,
        address: str | os.PathLike[str],
        *,
        read_only: bool = False,
        method: MethodSettings | None = None,
    ) -> Index:
        """Open an index.

        Parameters
        ----------
        address : as in `create`.
        read_only : whether it is only queried. One process can write to a folder, and any number can read.
        method : the settings that the index must have been created with; None accepts any.

        Raises
        ------
        StoreError
            If there is no index, it is damaged or has another version, or another process writes to it.
        SchemeError
            If it was created with another method, or by a version that computes other fingerprints.
        """
        return cls._of(open_store(os.fspath(address), read_only=read_only), method)

    @classmethod
    def _of(cls, store: Store, method: MethodSettings | None = None) -> Index:
        """Return the index of an open store, which is closed if its method is not `method` or cannot be used."""
        try:
            if method is not None:
                meta.require_method(store.meta, method, shown_address(store.address))
            return cls(store)
        except BaseException:
            store.close()
            raise

    @classmethod
    def from_run(
        cls,
        address: str | os.PathLike[str],
        folder: str | os.PathLike[str],
        *,
        idf: IdfTable | str | os.PathLike[str] | None = None,
        payload_column: str | Sequence[str] | None = None,
        **settings: Any,
    ) -> Index:
        """Create an index of the documents that a run of `dedup` kept, with its method and their ids, and open it.

        Parameters
        ----------
        address, idf, settings : as in `create`, which has the errors.
        folder : the output of the run.
        payload_column : as in `add_many_if_new`.
        """
        from neardup.api.index_from_run import make_index

        return make_index(os.fspath(address), Path(folder), idf, payload_column, settings)

    def __enter__(self) -> Index:
        """Return the index."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the index."""
        self.close()

    def close(self) -> None:
        """Release the files, connections and locks."""
        self._store.close()

    def __len__(self) -> int:
        """Return the number of kept documents."""
        with self._store.reading() as snapshot:
            return snapshot.count().kept

    def __contains__(self, id: object) -> bool:
        """Return whether the index has a document of this id, kept or removed."""
        if not isinstance(id, str):
            return False
        with self._store.reading() as snapshot:
            return bool(snapshot.rows_of_ids(pa.array([id], pa.large_string()))[0] >= 0)

    def __repr__(self) -> str:
        """Return the address, the method and the number of documents."""
        return f"Index({self.address!r}, {type(self.method).__name__}, {len(self):,} kept documents)"

    # One document.

    def add(self, text: str, *, id: str | None = None, payload: str | None = None) -> Answer:
        """Add a document without looking for similar ones. Parameters and errors as in `add_if_new`."""
        return _answer(self._add_batch(batch_of_text(text, id, payload), if_new=False, run=None))

    def add_if_new(self, text: str, *, id: str | None = None, payload: str | None = None) -> Answer:
        """Add a document unless a kept one is similar to it; either way the index remembers its id and the answer.

        Parameters
        ----------
        text : the text, or the HTML of a page if the method compares pages.
        id : its id; by default one that no other document of any index has: "#", random letters and a number. If the
            index has the id with the same content, nothing changes and the first answer is returned; with other
            content, the document is replaced.
        payload : a text to return with answers about this document, such as its address.

        Raises
        ------
        StoreError
            If the index cannot be written.
        InputError
            If a value is not a string.
        """
        return _answer(self._add_batch(batch_of_text(text, id, payload), if_new=True, run=None))

    def query(self, text: str, limit: int = 10) -> list[Hit]:
        """Return the kept documents that are similar to a text, the most similar first. Nothing is stored.

        Parameters
        ----------
        text : as in `add_if_new`.
        limit : the maximum number of documents returned, 1 or more.
        """
        hits = self._query_batch(batch_of_text(text, "", None), check_limit(limit)).hits
        return [Hit(**_with_all_measures(row)) for row in hits.drop_columns(["query"]).to_pylist()]

    # Many documents.

    def add_many(self, source: Source, **options: Any) -> pa.Table:
        """Add documents without looking for similar ones. Parameters, result and errors as in `add_many_if_new`."""
        return self._collect(self.add_batches(source, if_new=False, **options))

    def add_many_if_new(
        self,
        source: Source,
        *,
        text_column: str | Sequence[str] | None = None,
        id_column: str | None = None,
        payload_column: str | Sequence[str] | None = None,
        run: str | None = None,
        threads: int | None = None,
    ) -> pa.Table:
        """Add the documents that are new; each batch is written at once.

        Parameters
        ----------
        source : documents, as in `dedup`.
        text_column, id_column : as in `dedup`. Documents without an id column get ids as in `add_if_new`, so that the
            index does not recognise them when they are sent again.
        payload_column : the column to store with the documents, or several, which become a JSON object; by default the
            column `payload`, if it exists.
        run : a name for the documents of this call, by which `remove_run` removes them.
        threads : worker threads that compute features. Default: one per processor available to this process.

        Returns
        -------
        pyarrow.Table
            A row for each document: `schemas.answers_schema`.

        Raises
        ------
        InputError
            If a document cannot be read.
        StoreError
            If the index cannot be written. Batches before the failure are stored.
        """
        return self._collect(
            self.add_batches(
                source, text_column=text_column, id_column=id_column, payload_column=payload_column, run=run,
                threads=threads,
            )
        )  # fmt: skip

    def add_batches(
        self, source: Source, *, if_new: bool = True, run: str | None = None, **options: Any
    ) -> Iterator[pa.Table]:
        """Add documents and yield the answers batch by batch, each after it is stored.

        Parameters
        ----------
        source, run, options : as in `add_many_if_new`.
        if_new : whether similar documents are removed.
        """
        threads = count_threads(options.pop("threads", None))
        batches = batches_of(source, self.method, **options)
        if threads == 1:  # no other thread: handing over a few documents takes longer than describing them
            yield from (self._write(self._describe(batch), batch, if_new, run) for batch in batches)
            return
        for batch, incoming in map_ordered(batches, self._describe, threads, bytes_of=lambda batch: batch.texts.nbytes):
            yield self._write(incoming, batch, if_new, run)

    def query_many(
        self, source: Source, *, text_column: str | Sequence[str] | None = None, limit: int = 10
    ) -> pa.Table:
        """Return the kept documents that are similar to each of many texts.

        Parameters
        ----------
        source, text_column : as in `dedup`.
        limit : the maximum number of documents returned for each, the most similar.

        Returns
        -------
        pyarrow.Table
            By query, the most similar first: `schemas.hits_schema`.
        """
        limit, first = check_limit(limit), 0
        tables = [schemas.hits_schema(self._rules.method.measures).empty_table()]
        for batch in batches_of(source, self.method, text_column=text_column):
            hits = self._query_batch(batch, limit).hits
            numbers = pc.add(hits["query"], first)
            tables.append(hits.set_column(0, hits.schema.field(0), numbers))
            first += len(batch.texts)
        return pa.concat_tables(tables)

    # Documents of the index.

    def get(self, id: str) -> Document | None:
        """Return a document by its id, or None."""
        check_text("id", id)
        with self._store.reading() as snapshot:
            row = maintenance.document(self._rules, snapshot, id)
        return None if row is None else Document(**row)

    def remove(self, ids: str | Iterable[str]) -> int:
        """Forget documents by id; ids that are not in the index are ignored.

        Returns
        -------
        int
            The number of documents forgotten.
        """
        several = [ids] if isinstance(ids, str) else list(ids)
        for id in several:
            check_text("id", id)
        array = pa.array(several, pa.large_string())
        with self._store.writing() as writer:
            return maintenance.forget(writer, np.unique(writer.rows_of_ids(array)))

    def remove_run(self, run: str) -> int:
        """Forget all documents that a run brought; return their number."""
        check_run(run)
        with self._store.writing() as writer:
            return maintenance.forget(writer, maintenance.rows_of_run(writer, run))

    def expire(
        self,
        *,
        older_than: timedelta | float | None = None,
        unseen_for: timedelta | float | None = None,
        max_documents: int | None = None,
    ) -> int:
        """Forget old documents, both kept and removed.

        Parameters
        ----------
        older_than : forget documents that were added longer ago than this, in seconds if a number.
        unseen_for : forget documents that were neither added, nor found as a duplicate, nor sent again for so long.
        max_documents : forget the oldest until no more than so many are left.

        Returns
        -------
        int
            The number of documents forgotten.
        """
        now = _now()
        ages = [None if age is None else now - _microseconds(age) for age in (older_than, unseen_for)]
        if max_documents is not None and (isinstance(max_documents, bool) or max_documents < 0):
            raise SettingError(f"max_documents must be 0 or more: got {max_documents!r}. Change max_documents.")
        with self._store.writing() as writer:
            return maintenance.forget(writer, maintenance.expired_rows(writer, ages[0], ages[1], max_documents))

    # Runs.

    def open_run(self, run: str) -> None:
        """Open a run: documents are staged in it, and enter the index when it is committed."""
        self._refuse_open(run)
        with self._store.writing() as writer:
            writer.stage(run, _now(), None)

    def stage(self, run: str, source: Source, **options: Any) -> int:
        """Store documents in an open run, durable, but found by no query before `commit_run`; return their number.

        Parameters
        ----------
        run : the name of an open run.
        source, options : as in `add_many_if_new`.
        """
        self._require_open(run)
        count = 0
        for batch in batches_of(source, self.method, **options):
            with self._store.writing() as writer:
                writer.stage(run, _now(), batch.table())
            count += len(batch.texts)
        return count

    def commit_run(self, run: str) -> pa.Table:
        """Add the documents of a run that are new, all at once, and return the answers as `add_many_if_new` does."""
        self._require_open(run)
        with self._store.writing() as writer:
            overlay = Overlay(writer, self._store.layout)
            decided = [
                step
                for table in writer.staged(run)
                for step in collection.steps(
                    self._rules, overlay, self._incoming(Batch.of(table), overlay), _now(), run=run
                )
            ]
            writer.write_all([*(step.changes for step in decided), Changes(ended_run=run)])
        return self._collect(step.answers for step in decided)

    def cancel_run(self, run: str) -> None:
        """Drop an open run with its documents."""
        self._require_open(run)
        with self._store.writing() as writer:
            writer.write(Changes(ended_run=run))

    def runs(self) -> list[Run]:
        """Return the open runs."""
        with self._store.reading() as snapshot:
            return snapshot.runs()

    # The index as a whole.

    def info(self) -> dict[str, Any]:
        """Return counts, sizes and settings, as values for JSON."""
        with self._store.reading() as snapshot:
            counts = snapshot.count()
        stored = self._store.describe()
        total = counts.kept + counts.removed
        return {
            "address": self.address,
            "documents": {"kept": counts.kept, "removed": counts.removed},
            "bytes": stored.get("bytes"),
            "bytes_per_document": round(stored["bytes"] / total, 1) if total and stored.get("bytes") else None,
            "durable": self._store.durable,
            "promise": self._store.promise,
            **{name: self._store.meta[name] for name in ("created", "neardup", "format_version", "method", "index")},
            "idf": None if self._rules.method.idf is None else self._rules.method.idf.describe(),
            "runs": [run._asdict() for run in self.runs()],
            "store": stored,
        }

    def growth(self, *, points: int = 64) -> list[tuple[datetime, int]]:
        """Return how many documents the index had at `points` moments, as far as they were not forgotten.

        Returns
        -------
        list of (datetime in UTC, number of documents), from the first document to now; empty for an empty index. Reads
        one column of all documents.
        """
        with self._store.reading() as snapshot:
            counts = maintenance.growth(snapshot, _now(), points)
        return [(datetime.fromtimestamp(moment / 1e6, timezone.utc), count) for moment, count in counts]

    def verify(self) -> list[str]:
        """Return a sentence for each damaged part; an empty list if there is none.

        First the files are compared with their checksums. Only if they are whole, each document is looked up by its own
        keys.
        """
        with self._store.reading() as snapshot:
            return self._store.verify() or maintenance.verify(self._rules, snapshot)

    def compact(self) -> None:
        """Drop forgotten documents and merge files, so that queries look into fewer."""
        self._store.compact()

    def backup(self, path: str | os.PathLike[str]) -> None:
        """Write a copy of the index to a new folder, while it is in use. Raises StoreError if the folder exists."""
        self._store.backup(os.fspath(path))

    def merge(self, other: Index) -> pa.Table:
        """Add the kept documents of another index that are new here; return the answers.

        Raises
        ------
        SchemeError
            If the other index was made with another method.
        """
        meta.require_method(other._store.meta, self._rules.method, other.address)
        with other._store.reading() as snapshot, self._store.writing() as writer:
            parts = maintenance.kept_documents(other._rules, snapshot, self.settings.storage)
            return self._collect(collection.add(self._rules, writer, part, _now()) for part in parts)

    def documents(self) -> Iterator[pa.Table]:
        """Yield all documents, some thousand at a time: id, state, kept_id, times, payload, run, text and sketch."""
        with self._store.reading() as snapshot:
            yield from maintenance.documents(self._rules, snapshot)

    def rebuild(self, address: str | os.PathLike[str], *, method: MethodSettings) -> Index:
        """Make another index of the same documents with other bands or blocks, from the stored data, without texts.

        Parameters
        ----------
        address : of the new index, which appears when it is complete.
        method : settings of the same scheme: the same features, seed and bits. Limits, bands and blocks may differ;
            bands take no more hashes than the stored signatures have.

        Returns
        -------
        Index
            The new index, open.
        """
        prepared = meta.with_table(meta.fixed(method_of(method), self.settings), self._rules.method.idf)
        meta.require_features(self._rules.method, prepared, self.address)

        def fill(made: Index) -> None:
            with self._store.reading() as snapshot, made._store.writing() as writer:
                maintenance.copy(made._rules, snapshot, writer)

        return Index._make(address, prepared, self.settings, fill)

    def _describe(self, batch: Batch) -> Incoming:
        return describe(self._rules.method, batch.texts, batch.ids, batch.payloads)

    def _incoming(self, batch: Batch, writer: Writer) -> Incoming:
        incoming = self._describe(batch)
        return incoming.numbered(self._prefix, writer.num_rows) if batch.is_unnamed else incoming

    def _add_batch(self, batch: Batch, *, if_new: bool, run: str | None) -> pa.Table:
        return self._write(self._describe(batch), batch, if_new, run)

    def _write(self, incoming: Incoming, batch: Batch, if_new: bool, run: str | None) -> pa.Table:
        with self._store.writing() as writer:
            if batch.is_unnamed:
                incoming = incoming.numbered(self._prefix, writer.num_rows)
            return collection.add(self._rules, writer, incoming, _now(), if_new=if_new, run=run)

    def _query_batch(self, batch: Batch, limit: int) -> collection.Hits:
        incoming = self._describe(batch)
        with self._store.reading() as snapshot:
            return collection.query(self._rules, snapshot, incoming, limit)

    def _collect(self, tables: Iterable[pa.Table]) -> pa.Table:
        return pa.concat_tables([schemas.answers_schema(self._rules.method.measures).empty_table(), *tables])

    def _refuse_open(self, run: str) -> None:
        check_run(run)
        if any(known.name == run for known in self.runs()):
            raise InputError(f"The run {run!r} is already open. Commit or cancel it, or use another name.")

    def _require_open(self, run: str) -> None:
        check_run(run)
        names = [known.name for known in self.runs()]
        if run not in names:
            raise UnknownRunError(
                f"There is no open run {run!r}: got {', '.join(names) or 'none'}. Open it with open_run "
                "(neardup index runs open)."
            )


def _now() -> int:
    """Return the time in microseconds since 1970."""
    return time.time_ns() // 1000


def _microseconds(age: timedelta | float) -> int:
    seconds = age.total_seconds() if isinstance(age, timedelta) else age
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or not 0 <= seconds < 1e12:
        raise SettingError(f"An age is a timedelta, or a number of seconds of 0 or more: got {age!r}. Change the age.")
    return int(seconds * 1_000_000)


def _answer(table: pa.Table) -> Answer:
    return Answer(**_with_all_measures(table.to_pylist()[0]))


def _with_all_measures(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with all measures, None for those that the method does not have."""
    return {"similarity": None, "distance": None, "structure": None} | row
