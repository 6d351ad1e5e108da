"""What an index does besides answering: forget documents, copy them, check them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Ints, Rows, arrow_of, find_in
from neardup.candidates.lookups import take_entries
from neardup.errors import SettingError
from neardup.index.decisions import Rules
from neardup.index.incoming import (
    DETAILS,
    SETS,
    Incoming,
    decompress,
    stored_described,
    stored_keys,
    stored_sketches,
)
from neardup.schemas import KEPT, indexed_schema
from neardup.stores.base import Changes, StoredSnapshot, Writer
from neardup.stores.documents import SKETCHED, sketched_of

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
    return found | {
        "sketch": stored_sketches(snapshot.take_sketched(row, (), ())[0], rules.method)[0]
    }


def documents(snapshot: StoredSnapshot) -> Iterator[pa.Table]:
    """Yield all documents, their texts decompressed, with the number of those that each removed;
    two scans.
    """
    removed = np.zeros(snapshot.num_rows, np.int64)
    for table in snapshot.scan(["kept_row"]):
        rows, counts = np.unique(table["kept_row"].drop_null().to_numpy(), return_counts=True)
        removed[rows] += counts
    for table in snapshot.scan(["row", *_SHOWN]):
        yield with_duplicates(shown(table), removed[table["row"].to_numpy()])


def kept_texts(snapshot: StoredSnapshot) -> Iterator[tuple[pa.ChunkedArray, pa.Array]]:
    """Yield the ids of the kept documents and their texts, empty where the index has none."""
    for table in snapshot.scan(["id", "state", "text"]):
        table = _kept(table)
        yield table["id"], _texts(table)


def with_duplicates(table: pa.Table, removed: Ints) -> pa.Table:
    """Return shown documents with the column `duplicates`: how many each removed, null if it was
    removed itself.
    """
    counts = pa.array(removed, "int64", mask=~table["kept"].to_numpy())
    return table.append_column("duplicates", counts)


def shown(table: pa.Table) -> pa.Table:
    """Return stored rows as they are shown: `kept` instead of the state, texts decompressed."""
    kept = pc.equal(table["state"], pa.scalar(KEPT, "uint8"))
    texts = pa.array(decompress(table["text"].to_pylist()), "large_string")
    table = table.select(_SHOWN).set_column(_SHOWN.index("state"), "kept", kept)
    return table.set_column(_SHOWN.index("text"), "text", texts)


def rows_of_import(snapshot: StoredSnapshot, import_name: str) -> Rows:
    """Return the rows of the documents that an import brought."""
    found = [
        table.filter(pc.fill_null(pc.equal(table["import_name"], import_name), False))[
            "row"
        ].to_numpy()
        for table in snapshot.scan(["row", "import_name"])
    ]
    return np.concatenate([np.empty(0, np.int64), *found]).astype(np.int64)


def expired_rows(
    snapshot: StoredSnapshot,
    added_before: int | None,
    seen_before: int | None,
    max_documents: int | None,
) -> Rows:
    """Return the rows of the documents to forget.

    Parameters
    ----------
    added_before, seen_before : microseconds since 1970. max_documents : how many may stay, the
        latest ones.
    """
    parts = []
    for table in snapshot.scan(["row", "first_seen", "last_seen"]):
        row, first, last = (table[name].cast("int64").to_numpy() for name in table.column_names)
        parts.append((row, (first < (added_before or 0)) | (last < (seen_before or 0)), first))
    if not parts:
        return np.empty(0, np.int64)
    rows, expired, first = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    if max_documents is not None:
        staying = np.flatnonzero(~expired)
        oldest = staying[np.lexsort((rows[staying], first[staying]))]
        expired[oldest[: max(0, len(staying) - max_documents)]] = True
    return np.asarray(rows[expired], np.int64)


def growth(snapshot: StoredSnapshot, now: int, points: int) -> list[tuple[int, int]]:
    """Return the number of documents, of those not forgotten, that were added up to some moments.

    now : microseconds since 1970, the last moment. points : the number of moments.
    """
    edges = counts = np.zeros(0, np.int64)
    for table in snapshot.scan(["first_seen"]):
        first_seen = table["first_seen"].cast("int64").to_numpy()
        if not len(edges) and len(first_seen):
            edges = np.linspace(min(first_seen[0], now - points), now, points).astype(np.int64)
            counts = np.zeros(points, np.int64)
        places = np.minimum(np.searchsorted(edges, first_seen), points - 1)
        counts += np.bincount(places, minlength=len(counts))
    return list(zip(edges.tolist(), np.cumsum(counts).tolist(), strict=True))


def kept_documents(rules: Rules, snapshot: StoredSnapshot, storage: str) -> Iterator[Incoming]:
    """Yield the kept documents of an index as documents to add to another one that stores
    `storage`.

    Raises
    ------
    SettingError
        If the other one stores more than this one has.
    """
    levels = ("fingerprints", "features", "text")
    if levels.index(storage) > levels.index(rules.storage):
        raise SettingError(
            f"An index that stores {storage} can add documents only from an index that also "
            "does: got "
            f"storage={rules.storage!r}. Add the documents from their source."
        )
    details = DETAILS[rules.storage]
    for table in snapshot.scan(
        ("id", "state", "payload", *SKETCHED, *dict.fromkeys(("text", *details)))
    ):
        table = _kept(table)
        if table.num_rows:
            sketched = sketched_of(table, details)
            described = stored_described(sketched, rules.method)
            sketch = stored_sketches(sketched, rules.method)
            keys = rules.method.keys_of(sketch, described.features)._replace(
                featured=sketched.featured
            )
            ids, payloads = (table[name].combine_chunks() for name in ("id", "payload"))
            yield Incoming(ids, _texts(table), payloads, described._replace(keys=keys), sketch)


def _kept(table: pa.Table) -> pa.Table:
    return table.filter(pc.equal(table["state"], pa.scalar(KEPT, "uint8")))


def _texts(table: pa.Table) -> pa.Array:
    return pa.array([text or "" for text in decompress(table["text"].to_pylist())], "large_string")


def copy(rules: Rules, snapshot: StoredSnapshot, writer: Writer) -> None:
    """Copy all documents to a new index, whose tables of keys differ.

    rules : of the new index.
    """
    old = np.empty(0, np.int64)
    for table in snapshot.scan(indexed_schema(rules.method.measures).names):
        rows = table["row"].to_numpy().astype(np.int64)
        old = np.concatenate([old, rows])
        place, there = find_in(old, table["kept_row"].cast("int64").fill_null(-1).to_numpy())
        moved = pa.array(place.astype(np.uint32), mask=~there)
        new_rows = arrow_of((writer.num_rows + np.arange(len(rows))).astype(np.uint32))
        for name, column in (("row", new_rows), ("kept_row", moved)):
            at = table.schema.get_field_index(name)
            table = table.set_column(at, table.schema.field(at), column)
        writer.write(changes_of(rules, table, 0))


def changes_of(rules: Rules, table: pa.Table, first: int) -> Changes:
    """Return the change that adds documents of a scan of all columns; first : is added to their
    rows.
    """
    keys = stored_keys(sketched_of(table, SETS), rules.method)
    entries = take_entries(rules.lookup.entries(keys), table["member"].to_numpy())
    at = table.schema.get_field_index("row")
    table = table.set_column(
        at, table.schema.field(at), pc.add(table["row"], pa.scalar(first, "uint32"))
    )
    return Changes(table.cast(indexed_schema(rules.method.measures)), entries)


def verify(rules: Rules, snapshot: StoredSnapshot) -> list[str]:
    """Return the documents that their own keys do not find, a sentence each, at most ten."""
    damaged = []
    for table in snapshot.scan(("row", "id", "member", *SKETCHED, *SETS)):
        table = table.filter(table["member"])
        if not table.num_rows:
            continue
        probes = rules.lookup.entries(stored_keys(sketched_of(table, SETS), rules.method))
        found = snapshot.find(probes, rules.max_bucket_size)
        rows = table["row"].to_numpy().astype(np.int64)
        missing = ~found.truncated
        missing[found.entry[found.row == rows[probes.document[found.entry]]]] = False
        ids = table["id"].take(arrow_of(np.unique(probes.document[missing]))).to_pylist()
        damaged += [
            f"The document {id!r} is not found by its own keys. Rebuild the index." for id in ids
        ]
        if len(damaged) >= 10:
            break
    return damaged[:10]
