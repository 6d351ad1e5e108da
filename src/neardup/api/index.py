"""The durable index: add, query and remove documents."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, TypedDict

import pyarrow as pa
import pyarrow.compute as pc

from neardup import schemas
from neardup.answers import Answer, Document, Hit
from neardup.api.index_files import FileJobs
from neardup.arrays import join_tables
from neardup.errors import InputError
from neardup.executor import SMALL_BYTES, count_threads, map_ordered
from neardup.features.idf import IdfTable
from neardup.files import AnyPath, JsonObject
from neardup.index import maintenance, meta
from neardup.index.documents import Origin, batch_of_text, batches_of
from neardup.index.open_index import OpenIndex, now
from neardup.index.records import ANSWER_COLUMNS, HIT_COLUMNS, columns_of, rows_of
from neardup.index.sources import check_date, refuse_untracked_source
from neardup.methods.registry import method_of
from neardup.runs.run import Source, Unpack, spelled_out
from neardup.settings.constraints import (
    ColumnNames,
    check_age,
    check_flag,
    check_import_name,
    check_kind,
    check_limit,
    check_path,
    check_text,
    plain,
    shown,
)
from neardup.settings.methods import MethodSettings, method_named
from neardup.settings.run import IndexSettings, Storage
from neardup.stores.base import Import


class StageOptions(TypedDict, total=False):
    """The columns of documents, as in `dedup`, and the column that is stored with them."""

    text_column: ColumnNames
    roles: ColumnNames
    id_column: ColumnNames
    payload_column: ColumnNames
    sources: str | None
    dates: str | None
    in_format: str | None


class AddOptions(StageOptions, total=False):
    """Options of documents that are added to an index, as in `Index.add_many_if_new`."""

    import_name: str | None
    threads: int | None


class Index(FileJobs):
    """A durable index of documents, which finds out whether a similar document was seen before.

    `add_if_new` decides as `dedup` does on the same documents in the same order, for any batch
    sizes. An index is a context manager, and closes on exit. Threads can share it.

    Attributes
    ----------
    address : the address as given, without its password. method : the settings of the comparison.
    settings : the other settings.

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

    def __init__(self, opened: OpenIndex) -> None:
        """Wrap an open index; `create` and `open` call this."""
        self.opened = opened
        self.address = opened.address
        self.method = opened.method
        self.settings = opened.settings

    @classmethod
    def create(
        cls,
        address: AnyPath,
        *,
        method: MethodSettings | str = "minhash",
        threshold: float | None = None,
        max_distance: int | None = None,
        storage: Storage = "features",
        max_bucket_size: int | None = None,
        expected_documents: int = 10_000_000,
        track_sources: bool = False,
        track_dates: bool = False,
        idf: IdfTable | AnyPath | None = None,
    ) -> Index:
        """Create an index, and open it.

        Parameters
        ----------
        address : a new folder; `postgresql://...` or `redis://...`; or `memory:`, which lasts as
            long as the process.
        method, threshold, max_distance : as in `dedup`.
        storage : the data stored for a kept document: its fingerprint (fingerprints; SimHash with
            confirm=hamming), also the hashes of its features, which confirm duplicates exactly
            (features), or its text, in a third of the space and twice the time (text). `get` and
            the page of the service show texts.
        max_bucket_size : as in `dedup`.
        expected_documents : the number of documents for which the blocks of SimHash are chosen.
        track_sources : store the source of each document: answers and the export then have the
            columns sources and num_sources.
        track_dates : store the source and the date of each document: answers and the export then
            also have the columns first_date and last_date, as strings.
        idf : the document frequencies for the weights of the method, from `document_frequencies`,
            or their file. Required with boost_rare, thus for structure and page.

        Raises
        ------
        SettingError
            If an index cannot use the method, or `idf` is missing or not for the method.
        SchemeError
            If `idf` counts other features than the method has.
        StoreError
            If the index exists, or cannot be created.
        """
        settings = IndexSettings(
            storage=storage,
            max_bucket_size=max_bucket_size,
            expected_documents=expected_documents,
            track_sources=track_sources or track_dates,
            track_dates=track_dates,
        )
        prepared = meta.prepare(method_named(method, threshold, max_distance), settings, idf)
        return cls(OpenIndex.create(check_path("address", address), prepared, settings))

    @classmethod
    def open(
        cls, address: AnyPath, *, read_only: bool = False, method: MethodSettings | None = None
    ) -> Index:
        """Open an index.

        Parameters
        ----------
        address : as in `create`.
        read_only : whether it is only queried. A folder has one writing process, and any number of
            readers.
        method : the settings that the index must have been created with. Default: any.

        Raises
        ------
        StoreError
            If there is no index, it is damaged or of another version, or another process writes to
            it.
        SchemeError
            If it was created with another method, or by a version with other fingerprints.
        """
        address = check_path("address", address)
        read_only = check_flag("read_only", read_only)
        return cls(OpenIndex.open(address, read_only=read_only, method=method))

    @classmethod
    def from_run(
        cls,
        address: AnyPath,
        folder: AnyPath,
        *,
        idf: IdfTable | AnyPath | None = None,
        payload_column: ColumnNames = None,
        **settings: Any,
    ) -> Index:
        """Create an index of the documents that a run of `dedup` kept, with its method; open it.

        Parameters
        ----------
        address, idf, settings : as in `create`.
        folder : the output of the run.
        payload_column : as in `add_many_if_new`.
        """
        from neardup.index.from_run import make_index

        address = check_path("address", address)
        run = Path(check_path("folder", folder))
        return cls(make_index(address, run, idf, payload_column, settings))

    def __enter__(self) -> Index:
        """Return the index."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the index."""
        self.close()

    def close(self) -> None:
        """Release the files, connections and locks."""
        self.opened.store.close()

    def __len__(self) -> int:
        """Return the number of kept documents."""
        with self.opened.store.reading() as snapshot:
            return snapshot.count().kept

    def __contains__(self, id: object) -> bool:
        """Return whether the index has a document of this id, kept or removed."""
        try:
            # Another object is in no index; `in` does not raise.
            check_text("id", id)
        except InputError:
            return False
        with self.opened.store.reading() as snapshot:
            return bool(snapshot.rows_of_ids(pa.array([id], pa.large_string()))[0] >= 0)

    def __repr__(self) -> str:
        """Return the address, the method and the number of documents."""
        return (
            f"Index({self.address!r}, {type(self.method).__name__}, {len(self):,} kept documents)"
        )

    # One document.

    def add(
        self,
        text: str | Sequence[float],
        *,
        id: str | None = None,
        payload: str | None = None,
        source: str | None = None,
        date: str | None = None,
    ) -> Answer:
        """Add a document without looking for similar ones. Parameters and errors as in
        `add_if_new`.
        """
        self._check_origin(source, date)
        length = self.method.vector_length
        batch = batch_of_text(text, id, payload, length, source=source, date=date)
        return _answer(self.opened.add(batch, if_new=False))

    def add_if_new(
        self,
        text: str | Sequence[float],
        *,
        id: str | None = None,
        payload: str | None = None,
        source: str | None = None,
        date: str | None = None,
    ) -> Answer:
        """Add a document unless a kept one is similar to it; the index remembers its id and the
        answer.

        Parameters
        ----------
        text : the text; the HTML of a page or the numbers of a vector, if the method compares
            these.
        id : its id. Default: one that no other document of any index has. If the index has the id
            with the same content, nothing changes and the first answer is returned; with other
            content, the document is replaced.
        payload : a text to return with answers about this document.
        source : the place it comes from, if the index tracks sources.
        date : its date, time or number, such as "2026-11-28", if the index tracks dates.

        Raises
        ------
        StoreError
            If the index cannot be written.
        """
        self._check_origin(source, date)
        length = self.method.vector_length
        batch = batch_of_text(text, id, payload, length, source=source, date=date)
        return _answer(self.opened.add(batch))

    def _check_origin(self, source: str | None, date: str | None) -> None:
        settings = self.settings
        refuse_untracked_source("source", source, self.address, tracks=settings.track_sources)
        check_date("date", date, self.address, tracks=settings.track_dates)

    def query(self, text: str | Sequence[float], limit: int = 10) -> list[Hit]:
        """Return the kept documents that are similar to a text, the most similar first.

        Parameters
        ----------
        text : as in `add_if_new`.
        limit : the maximum number of documents, 1 or more.
        """
        # A query needs no id; None would ask for a new one.
        batch = batch_of_text(text, "", None, self.method.vector_length)
        hits = self.opened.hits(self.opened.describe(batch), check_limit(limit))
        return [Hit(*row) for row in rows_of(hits, HIT_COLUMNS)]

    # Many documents.

    @spelled_out(AddOptions)
    def add_many(self, source: Source, **options: Unpack[AddOptions]) -> pa.Table:
        """Add documents without looking for similar ones. Parameters, result and errors as in
        `add_many_if_new`.
        """
        return self.opened.collect(self.add_batches(source, if_new=False, **options))

    @spelled_out(AddOptions)
    def add_many_if_new(self, source: Source, **options: Unpack[AddOptions]) -> pa.Table:
        """Add the documents that are new; each batch is written at once.

        Parameters
        ----------
        source : documents, as in `dedup`.
        text_column, roles, id_column, in_format : as in `dedup`. Documents without an id column get
            ids of their own; the index does not recognise them if they are sent again.
        payload_column : the column to store with the documents, or several, which become a JSON
            object. Default: `payload`, if it exists.
        sources : the column of the sources of documents, or "input" for the names of the inputs, if
            the index tracks sources.
        dates : the column of the dates of documents, or of numbers such as the year, if the index
            tracks dates.
        import_name : a name for these documents, by which `remove_import` removes them.
        threads : worker threads. Default: one per processor.

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
        return self.opened.collect(self.add_batches(source, **options))

    def add_batches(
        self,
        source: Source,
        *,
        if_new: bool = True,
        import_name: str | None = None,
        threads: int | None = None,
        **options: Unpack[StageOptions],
    ) -> Iterator[pa.Table]:
        """Add documents and yield the answers batch by batch, each after it is stored.

        Parameters
        ----------
        source, import_name, threads, options : as in `add_many_if_new`.
        if_new : whether similar documents are removed.
        """
        index = self.opened
        if_new = check_flag("if_new", if_new)
        threads = count_threads(None if threads is None else check_limit(threads, "threads"))
        Origin.of(options).refuse_untracked(self.opened)
        batches = batches_of(source, self.method, **options)
        # A single thread computes nothing in parallel: no batch is large enough to leave the
        # thread of the caller.
        min_bytes = SMALL_BYTES if threads > 1 else sys.maxsize
        for batch, described in map_ordered(
            batches,
            index.describe,
            threads,
            bytes_of=lambda batch: batch.texts.nbytes,
            min_bytes=min_bytes,
        ):
            yield index.add(batch, if_new=if_new, import_name=import_name, described=described)

    def query_many(
        self,
        source: Source,
        *,
        text_column: ColumnNames = None,
        roles: ColumnNames = None,
        limit: int = 10,
    ) -> pa.Table:
        """Return the kept documents that are similar to each of many texts.

        Parameters
        ----------
        source, text_column, roles : as in `dedup`.
        limit : the maximum number of documents for each, the most similar.

        Returns
        -------
        pyarrow.Table
            By query, the most similar first: `schemas.hits_schema`.
        """
        limit = check_limit(limit)
        first = 0
        tables = []
        for batch in batches_of(source, self.method, text_column=text_column, roles=roles):
            hits = self.opened.query(self.opened.describe(batch), limit)
            # Queries are numbered within their batch; `query` is the first column.
            numbers = pc.add(hits["query"], first)
            tables.append(hits.set_column(0, hits.schema.field("query"), numbers))
            first += len(batch.texts)
        return join_tables(tables, schemas.hits_schema(self.opened.measures))

    # Documents of the index.

    def get(self, id: str) -> Document | None:
        """Return a document by its id, or None."""
        check_text("id", id)
        with self.opened.store.reading() as snapshot:
            row = maintenance.document(self.opened.rules, snapshot, id)
        return None if row is None else Document(**row)

    def remove(self, ids: str | Iterable[str]) -> int:
        """Forget documents by id; return their number. Unknown ids are ignored."""
        return self.opened.remove(array_of_ids(ids)).num_documents

    def remove_import(self, import_name: str) -> int:
        """Forget all documents that an import brought; return their number."""
        check_import_name(import_name)
        return self.opened.forget(lambda writer: maintenance.rows_of_import(writer, import_name))

    def expire(
        self,
        *,
        older_than: timedelta | float | None = None,
        unseen_for: timedelta | float | None = None,
        max_documents: int | None = None,
    ) -> int:
        """Forget old documents, both kept and removed; return their number.

        Parameters
        ----------
        older_than : forget documents that were added longer ago, in seconds if a number.
        unseen_for : forget documents that were neither sent nor found as the original of a sent
            duplicate for this long.
        max_documents : forget the oldest documents until no more are left.
        """
        added_before = _moment_before(older_than)
        seen_before = _moment_before(unseen_for)
        if max_documents is not None:
            # 0 forgets all.
            check_limit(max_documents, "max_documents", least=0)
        return self.opened.forget(
            lambda writer: maintenance.expired_rows(
                writer, added_before, seen_before, max_documents
            )
        )

    # Imports.

    def open_import(self, import_name: str) -> None:
        """Open an import: documents are staged in it, and enter the index when it is committed."""
        self.opened.open_import(import_name)

    def stage(self, import_name: str, source: Source, **options: Unpack[StageOptions]) -> int:
        """Store documents durably in an open import, found by no query before `commit_import`;
        return their number.

        Parameters
        ----------
        import_name : the name of an open import.
        source, options : as in `add_many_if_new`.
        """
        Origin.of(options).refuse_untracked(self.opened)
        return self.opened.stage(import_name, batches_of(source, self.method, **options))

    def commit_import(self, import_name: str) -> pa.Table:
        """Add the documents of an import that are new, all at once; return the answers as
        `add_many_if_new` does.
        """
        return self.opened.commit_import(import_name)

    def cancel_import(self, import_name: str) -> None:
        """Drop an open import with its documents."""
        self.opened.cancel_import(import_name)

    def imports(self) -> list[Import]:
        """Return the open imports."""
        return self.opened.imports()

    # The index as a whole.

    def info(self) -> JsonObject:
        """Return counts, sizes and settings, as values for JSON."""
        return self.opened.describe_all()

    def growth(self, *, points: int = 64) -> list[tuple[datetime, int]]:
        """Return how many documents the index had at `points` moments, without the forgotten ones.

        Returns
        -------
        list of (datetime in UTC, number of documents), from the first document to now; reads one
        column of all documents.
        """
        check_limit(points, "points")
        with self.opened.store.reading() as snapshot:
            counts = maintenance.growth(snapshot, now(), points)
        return [
            (datetime.fromtimestamp(moment / 1e6, timezone.utc), count) for moment, count in counts
        ]

    def verify(self) -> list[str]:
        """Return a sentence for each damaged part.

        The files are compared with their checksums; if they are whole, each document is looked up
        by its own keys.
        """
        with self.opened.store.reading() as snapshot:
            # Damaged files are reported alone: keys cannot be checked in them.
            return self.opened.store.verify() or maintenance.verify(self.opened.rules, snapshot)

    def compact(self) -> None:
        """Drop forgotten documents and merge files, so that queries look into fewer."""
        self.opened.store.compact()

    def backup(self, path: AnyPath) -> None:
        """Write a copy of the index to a new folder, while it is in use. Raises StoreError if the
        folder exists.
        """
        self.opened.store.backup(check_path("path", path))

    def merge(self, other: Index) -> pa.Table:
        """Add the kept documents of another index that are new here; return the answers.

        Raises
        ------
        SchemeError
            If the other index was made with another method.
        """
        check_kind("other", other, Index, "an Index")
        return self.opened.merge(other.opened)

    def documents(self) -> Iterator[pa.Table]:
        """Yield all documents by the thousand.

        It has the columns of `neardup index export`, see docs/file-formats.md.
        """
        with self.opened.store.reading() as snapshot:
            yield from maintenance.documents(self.opened.rules, snapshot)

    def rebuild(self, address: AnyPath, *, method: MethodSettings) -> Index:
        """Make another index of the same documents with other bands or blocks, without texts.

        Parameters
        ----------
        address : of the new index, which appears when it is complete.
        method : settings of the same scheme: the same features, seed and bits. Limits, bands and
            blocks may differ; bands take no more hashes than stored signatures have.

        Returns
        -------
        Index, open
        """
        return Index(self.opened.rebuild(check_path("address", address), method_of(method)))


def array_of_ids(ids: Any) -> pa.Array:
    """Return one id or several as large_string, or raise InputError."""
    ids = plain(ids)
    # Bytes can be iterated over, too, but yield integers.
    if isinstance(ids, bytes) or not isinstance(ids, Iterable):
        raise InputError(
            f"ids must be a string or a list of strings: got {type(ids).__name__} {shown(ids)}."
        )
    id_list = [ids] if isinstance(ids, str) else list(ids)
    for id in id_list:
        check_text("id", id)
    return pa.array(id_list, pa.large_string())


def _moment_before(age: timedelta | float | None) -> int | None:
    """Return the moment of an age in microseconds since 1970, in UTC; None without an age."""
    return None if age is None else now() - check_age(age)


def _answer(table: pa.Table) -> Answer:
    """Return the only row of a table of answers."""
    [row] = rows_of(columns_of(table), ANSWER_COLUMNS)
    return Answer(*row)
