"""Upkeep of an index: list its documents, choose the ones to forget, copy them, check them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Ints, Rows, arrow_of, find_in
from neardup.candidates.lookups import take_entries
from neardup.errors import SettingError
from neardup.features.binary import binary_rows
from neardup.index.decisions import Rules
from neardup.index.incoming import (
    DETAILS,
    SETS,
    Incoming,
    decompress,
    replace_column,
    stored_described,
    stored_keys,
    stored_sketches,
)
from neardup.index.sources import SOURCE, AllSources, all_sources, entries_of_rows
from neardup.methods.sketcher import Sketcher
from neardup.schemas import KEPT
from neardup.stores.base import Changes, StoredSnapshot, Writer, join_entries
from neardup.stores.documents import SKETCHED, array_of, sketched_of

_SHOWN = (
    "id",
    "state",
    "kept_id",
    "first_seen",
    "last_seen",
    "payload",
    "import_name",
    "text",
    "sketch",
)


def document(rules: Rules, snapshot: StoredSnapshot, id: str) -> dict[str, Any] | None:
    """Return a document by its id, or None."""
    row = snapshot.rows_of_ids(pa.array([id], "large_string"))
    if row[0] < 0:
        return None
    found: dict[str, Any] = shown(snapshot.take(row, _SHOWN)).to_pylist()[0]
    sketched, _ = snapshot.take_sketched(row, (), ())
    return found | {"sketch": stored_sketches(sketched, rules.method)[0]}


def documents(rules: Rules, snapshot: StoredSnapshot) -> Iterator[pa.Table]:
    """Yield all documents with decompressed texts, the number of documents that each removed, and
    their sources, if the index tracks them.

    Scans the index twice, or three times.
    """
    sources = all_sources(snapshot) if rules.tracks_sources else None
    removed = np.zeros(snapshot.num_rows, np.int64)
    for table in snapshot.scan(["kept_row"]):
        rows, counts = np.unique(table["kept_row"].drop_null().to_numpy(), return_counts=True)
        # `rows` has no repeats, so that `+=` counts all.
        removed[rows] += counts
    for table in snapshot.scan(["row", *_SHOWN]):
        rows = table["row"].to_numpy()
        documents = with_duplicates(shown(table), removed[rows])
        yield documents if sources is None else with_sources(rules, documents, sources, rows)


def no_documents(rules: Rules) -> pa.Table:
    """Return the columns of `documents`, without rows."""
    table = with_duplicates(shown(rules.schema.empty_table()), np.empty(0, np.int64))
    for name in rules.tracked:
        table = table.append_column(name, pa.nulls(0, rules.answers.field(name).type))
    return table


def with_sources(rules: Rules, table: pa.Table, sources: AllSources, rows: Rows) -> pa.Table:
    """Return shown documents with the columns of their sources, null for a removed document."""
    kept = table["kept"].to_numpy()
    columns = sources.columns(rows.astype(np.int64), kept, dated=rules.tracks_dates)
    for name, column in zip(rules.tracked, columns, strict=True):
        table = table.append_column(name, column)
    return table


def kept_texts(snapshot: StoredSnapshot) -> Iterator[tuple[pa.ChunkedArray, pa.Array]]:
    """Yield the ids of the kept documents and their texts, empty if the index stores no text."""
    for table in snapshot.scan(["id", "state", "text"]):
        table = _kept(table)
        yield table["id"], _texts(table)


def with_duplicates(table: pa.Table, removed: Ints) -> pa.Table:
    """Return shown documents with the column `duplicates`: the number that each removed.

    The number is null for a removed document.
    """
    counts = pa.array(removed, "int64", mask=~table["kept"].to_numpy())
    return table.append_column("duplicates", counts)


def shown(table: pa.Table) -> pa.Table:
    """Return stored rows for a user: `kept` instead of the state, texts decompressed."""
    kept = pc.equal(table["state"], pa.scalar(KEPT, "uint8"))
    texts = pa.array(decompress(table["text"].to_pylist()), "large_string")
    table = table.select(_SHOWN).set_column(_SHOWN.index("state"), "kept", kept)
    return table.set_column(_SHOWN.index("text"), "text", texts)


def rows_of_import(snapshot: StoredSnapshot, import_name: str) -> Rows:
    """Return the rows of the documents that an import brought."""
    found = [np.empty(0, np.int64)]
    for table in snapshot.scan(["row", "import_name"]):
        # Most documents belong to no import.
        is_of_import = pc.fill_null(pc.equal(table["import_name"], import_name), False)
        found.append(table.filter(is_of_import)["row"].to_numpy())
    return np.concatenate(found).astype(np.int64)


def expired_rows(
    snapshot: StoredSnapshot,
    added_before: int | None,
    seen_before: int | None,
    max_documents: int | None,
) -> Rows:
    """Return the rows of the documents to forget.

    Parameters
    ----------
    added_before, seen_before : microseconds since 1970.
    max_documents : the number of documents that may stay, the latest ones.
    """
    expired_parts = [np.empty(0, np.int64)]
    row_parts = [np.empty(0, np.int64)]
    first_seen_parts = [np.empty(0, np.int64)]
    for table in snapshot.scan(["row", "first_seen", "last_seen"]):
        row = table["row"].cast("int64").to_numpy()
        first_seen = table["first_seen"].cast("int64").to_numpy()
        last_seen = table["last_seen"].cast("int64").to_numpy()
        # No time is before 0: without a limit nothing expires.
        is_expired = (first_seen < (added_before or 0)) | (last_seen < (seen_before or 0))
        expired_parts.append(row[is_expired])
        row_parts.append(row[~is_expired])
        first_seen_parts.append(first_seen[~is_expired])
    if max_documents is not None:
        staying = np.concatenate(row_parts)
        # The oldest first; of equal times the lower row, which was added first.
        by_age = np.lexsort((staying, np.concatenate(first_seen_parts)))
        num_excess = max(0, len(staying) - max_documents)
        expired_parts.append(staying[by_age[:num_excess]])
    return np.concatenate(expired_parts)


def growth(snapshot: StoredSnapshot, now: int, points: int) -> list[tuple[int, int]]:
    """Return moments with the number of stored documents that were added up to each.

    now : microseconds since 1970, the last moment. points : the number of moments.
    """
    moments = np.zeros(0, np.int64)
    counts = np.zeros(0, np.int64)
    for table in snapshot.scan(["first_seen"]):
        first_seen = table["first_seen"].cast("int64").to_numpy()
        if not len(moments) and len(first_seen):
            # At least a microsecond between two moments.
            start = min(first_seen[0], now - points)
            moments = np.linspace(start, now, points).astype(np.int64)
            counts = np.zeros(points, np.int64)
        # A document that was added after `now` counts for the last moment.
        index = np.minimum(np.searchsorted(moments, first_seen), points - 1)
        counts += np.bincount(index, minlength=len(counts))
    return list(zip(moments.tolist(), np.cumsum(counts).tolist(), strict=True))


def kept_documents(rules: Rules, snapshot: StoredSnapshot, storage: str) -> Iterator[Incoming]:
    """Yield the kept documents of an index as documents to add to another index.

    storage : the storage of the other index.

    Raises
    ------
    SettingError
        If the other index stores more than this one has.
    """
    levels = ("fingerprints", "features", "text")
    if levels.index(storage) > levels.index(rules.storage):
        raise SettingError(
            f"An index that stores {storage} can add documents only from an index that also does: "
            f"got storage={rules.storage!r}. Add the documents from their source."
        )
    details = DETAILS[rules.storage]
    columns = dict.fromkeys(("id", "state", "payload", *SKETCHED, "text", *details))
    if rules.tracks_sources:
        columns[SOURCE] = None
    for table in snapshot.scan(list(columns)):
        table = _kept(table)
        if not table.num_rows:
            continue
        sketched = sketched_of(table, details)
        described = stored_described(sketched, rules.method)
        sketch = stored_sketches(sketched, rules.method)
        keys = rules.method.keys_of(sketch, described.features)
        none = pa.nulls(len(table), "large_string")
        yield Incoming(
            ids=table["id"].combine_chunks(),
            texts=_texts(table),
            payloads=table["payload"].combine_chunks(),
            described=described._replace(keys=keys._replace(featured=sketched.featured)),
            sketch=sketch,
            sources=array_of(table[SOURCE]) if rules.tracks_sources else none,
        )


def _kept(table: pa.Table) -> pa.Table:
    return table.filter(pc.equal(table["state"], pa.scalar(KEPT, "uint8")))


def _texts(table: pa.Table) -> pa.Array:
    return pa.array([text or "" for text in decompress(table["text"].to_pylist())], "large_string")


def copy(rules: Rules, snapshot: StoredSnapshot, writer: Writer) -> None:
    """Copy all documents to a new, empty index, which has other tables of keys.

    rules : the rules of the new index.
    """
    width = Sketcher(rules.method).width
    old_rows = np.empty(0, np.int64)  # the old row of each new row
    for table in snapshot.scan(rules.schema.names):
        old_rows = np.concatenate([old_rows, table["row"].to_numpy().astype(np.int64)])
        new_rows = np.arange(writer.num_rows, len(old_rows), dtype=np.uint32)
        # -1 is no row, so that it is not found below.
        old_removers = table["kept_row"].cast("int64").fill_null(-1).to_numpy()
        removers, is_copied = find_in(old_rows, old_removers)
        # A remover that was forgotten has no row.
        new_removers = pa.array(removers.astype(np.uint32), mask=~is_copied)
        table = replace_column(table, "row", arrow_of(new_rows))
        table = replace_column(table, "kept_row", new_removers)
        # All sketches of an index have one width, and the new bands may take fewer hashes.
        sketch = stored_sketches(sketched_of(table, ()), rules.method)
        table = replace_column(table, "sketch", binary_rows(sketch[:, :width]))
        writer.write(changes_of(rules, table, 0))


def changes_of(rules: Rules, table: pa.Table, first: int) -> Changes:
    """Return the change that adds documents of a scan of all columns.

    first : the number to add to their rows.
    """
    keys = stored_keys(sketched_of(table, SETS), rules.method)
    entries = take_entries(rules.lookup.entries(keys), table["member"].to_numpy())
    if rules.tracks_sources:
        sources = entries_of_rows(rules.source_table, table)
        entries = join_entries([(entries, 0), (sources, 0)])
    table = replace_column(table, "row", pc.add(table["row"], pa.scalar(first, "uint32")))
    return Changes(table.cast(rules.schema), entries)


def verify(rules: Rules, snapshot: StoredSnapshot) -> list[str]:
    """Return a sentence for each document that its own keys do not find, at most ten."""
    damaged = []
    for table in snapshot.scan(("row", "id", "member", *SKETCHED, *SETS)):
        # Buckets list members only.
        table = table.filter(table["member"])
        if not table.num_rows:
            continue
        keys = stored_keys(sketched_of(table, SETS), rules.method)
        probes = rules.lookup.entries(keys)
        found = snapshot.find(probes, rules.max_bucket_size)
        rows = table["row"].to_numpy().astype(np.int64)
        finds_itself = found.row == rows[probes.document[found.entry]]
        # A full bucket need not list the document: no damage.
        is_missing = ~found.truncated
        is_missing[found.entry[finds_itself]] = False
        missing = np.unique(probes.document[is_missing])
        ids = table["id"].take(arrow_of(missing)).to_pylist()
        damaged += [
            f"The document {id!r} is not found by its own keys. Rebuild the index." for id in ids
        ]
        if len(damaged) >= 10:
            break
    return damaged[:10]
