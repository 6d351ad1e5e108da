"""A store of dictionaries and lists, and random changes: what every store is compared with."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from neardup import schemas
from neardup.candidates.lookups import Entries, Found, Layout
from neardup.stores.base import Changes, Counts, Import, StoreSettings, Writer, join_changes

MEASURES = (schemas.SIMILARITY, schemas.DISTANCE)
SCHEMA = schemas.indexed_schema(MEASURES)
NONE_STAGED = pa.table({"id": pa.array([], pa.string())})
PROMOTED = {"promote_options": "default"}


def made_for(
    layout: Layout,
    meta: Mapping[str, Any] | None = None,
    attachments: Mapping[str, bytes] | None = None,
) -> StoreSettings:
    """Return the settings of a store of random documents."""
    return StoreSettings(meta or {}, layout, SCHEMA, attachments or {})


class ReferenceStore(Writer):
    """Rows are dictionaries, by number; entries are a list."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.rows = {}
        self.entries = []
        self.written = 0
        self.open_imports: dict[str, tuple[int, list[pa.Table]]] = {}

    @property
    def num_rows(self) -> int:
        return self.written

    def find(self, lookups: Entries, limit: int) -> Found:
        entry = []
        row = []
        truncated = []
        for number, (table, key) in enumerate(
            zip(lookups.table.tolist(), lookups.key.tolist(), strict=True)
        ):
            bits = self.layout.prefix_bits[table]
            listed: dict[int, list[int]] = {}
            for other_table, other, at in self.entries:
                near = other_table == table and (other ^ key) >> (64 - bits) == 0
                if (
                    near
                    and (other ^ key).bit_count() <= self.layout.max_distance
                    and at in self.rows
                ):
                    listed.setdefault(other, []).append(at)
            truncated.append(any(len(rows) > limit for rows in listed.values()))
            found = sorted(at for rows in listed.values() for at in sorted(rows)[:limit])
            entry += [number] * len(found)
            row += found
        kept = [self.rows[at]["state"] == schemas.KEPT for at in row]
        return Found(
            np.array(entry, np.int64),
            np.array(row, np.int64),
            np.array(kept, bool),
            np.array(truncated, bool),
        )

    def rows_of_ids(self, ids: pa.Array) -> np.ndarray:
        rows = {document["id"]: row for row, document in self.rows.items()}
        return np.array([rows.get(id, -1) for id in ids.to_pylist()], np.int64)

    def rows_of_contents(self, contents: np.ndarray) -> np.ndarray:
        result = []
        for content in contents:
            same = [
                (document["state"] != schemas.KEPT, row)
                for row, document in self.rows.items()
                if document["member"] and document["content"] == content.tobytes()
            ]
            result.append(min(same)[1] if same else -1)
        return np.array(result, np.int64)

    def without(self, rows: np.ndarray) -> ReferenceStore:
        store = copy(self)
        store.rows = {
            row: document for row, document in self.rows.items() if row not in rows.tolist()
        }
        return store

    def take(self, rows: np.ndarray, columns: Sequence[str]) -> pa.Table:
        return table_of([self.rows[row] for row in rows.tolist()]).select(columns)

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        yield self.take(np.array(sorted(self.rows), np.int64), columns)

    def count(self) -> Counts:
        kept = sum(document["state"] == schemas.KEPT for document in self.rows.values())
        return Counts(kept, len(self.rows) - kept)

    def imports(self) -> list[Import]:
        imports = [
            Import(name, opened, sum(map(len, tables)))
            for name, (opened, tables) in self.open_imports.items()
        ]
        return sorted(imports, key=lambda staged: staged.opened)

    def staged(self, import_name: str) -> Iterator[pa.Table]:
        yield from self.open_imports[import_name][1] if import_name in self.open_imports else ()

    def write_all(self, parts: Iterable[Changes]) -> None:
        changes = join_changes(parts)
        if changes.documents is not None:
            for document in changes.documents.to_pylist():
                self.rows[document["row"]] = document
            if changes.entries is not None:
                for at, table, key in zip(
                    *(array.tolist() for array in changes.entries), strict=True
                ):
                    self.entries.append((table, key, self.written + at))
            self.written += len(changes.documents)
        for row in changes.seen.tolist():
            if row in self.rows:
                self.rows[row]["last_seen"] = pa.scalar(changes.seen_at, schemas.TIME).as_py()
        for row in changes.forgotten.tolist():
            self.rows.pop(row, None)
        self.open_imports.pop(changes.ended_import, None)

    def stage(self, import_name: str, opened: int, documents: pa.Table | None) -> None:
        self.open_imports.setdefault(import_name, (opened, []))[1].extend(
            [] if documents is None else [documents]
        )


def table_of(documents: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(documents, schema=SCHEMA)


def document(row: int, rng: random.Random, **values: Any) -> dict[str, Any]:
    """Return a random document: one of few contents, sometimes with each optional column."""
    at = rng.randrange(10**15)
    return {
        "row": row,
        "id": f"document {row}",
        "state": rng.choice([schemas.KEPT, schemas.REMOVED]),
        "member": rng.random() < 0.8,
        "featured": rng.random() < 0.9,
        "truncated": False,
        "content": np.array([rng.randrange(3), rng.randrange(3)], np.uint64).tobytes(),
        "sketch": rng.randbytes(8),
        "first_seen": at,
        "last_seen": at,
        "features": rng.choice([None, rng.randbytes(8 * rng.randrange(3))]),
        "tags": None,
        "text": rng.choice([None, rng.randbytes(rng.randrange(9))]),
        "payload": rng.choice([None, "", '{"url": "https://example.org/\u00e9"}']),
        "import_name": rng.choice([None, "monday"]),
        "kept_row": rng.choice([None, rng.randrange(row + 1)]),
        "kept_id": rng.choice([None, "document 0"]),
        "similarity": rng.choice([None, rng.random()]),
        "distance": rng.choice([None, rng.randrange(4)]),
    } | values


def random_key(rng: random.Random) -> int:
    """Return one of few keys: their upper bits and their distances repeat."""
    return rng.randrange(4) << 62 | rng.randrange(2) << 56 | rng.randrange(4)


def random_changes(store: ReferenceStore, rng: random.Random, num_documents: int) -> Changes:
    """Return changes of a store: new documents, some seen again, some forgotten, also new ones."""
    first = store.num_rows
    documents = [document(first + i, rng) for i in range(num_documents)]
    members = [i for i in range(num_documents) if documents[i]["member"]]
    listed = [
        (i, table, random_key(rng))
        for i in members
        for table in range(len(store.layout.prefix_bits))
    ]
    alive = [*store.rows, *range(first, first + num_documents)]
    entries = [
        np.array([entry[field] for entry in listed], kind)
        for field, kind in enumerate(("i8", "u2", "u8"))
    ]
    return Changes(
        table_of(documents) if documents else None,
        Entries(*entries) if documents else None,
        np.array(rng.sample(alive, min(len(alive), rng.randrange(4))), np.int64),
        rng.randrange(10**15),
        np.array(rng.sample(alive, min(len(alive), rng.choice([0, 0, 0, 1, 3]))), np.int64),
    )


def random_lookups(layout: Layout, rng: random.Random, size: int) -> Entries:
    tables = [rng.randrange(len(layout.prefix_bits)) for _ in range(size)]
    keys = [random_key(rng) for _ in range(size)]
    return Entries(np.arange(size), np.array(tables, np.uint16), np.array(keys, np.uint64))


def assert_equal(store: Any, expected: ReferenceStore, rng: random.Random) -> None:
    """Check that every call of a snapshot answers as the reference does."""
    assert store.num_rows == expected.num_rows
    assert store.count() == expected.count()
    assert_found(store, expected, rng)
    hidden = np.array(rng.sample(list(expected.rows), len(expected.rows) // 3), np.int64)
    assert_found(store.without(hidden), expected.without(hidden), rng)
    rows = np.array(rng.choices(list(expected.rows), k=9) if expected.rows else [], np.int64)
    for columns in (SCHEMA.names, ["last_seen"], ["sketch", "id"]):
        assert store.take(rows, columns).equals(expected.take(rows, columns))
        scanned = [table.to_pylist() for table in store.scan(columns)]
        assert list(chain.from_iterable(scanned)) == next(expected.scan(columns)).to_pylist()
    for some in (rows, rows[:1], np.sort(rows)):
        wanted_rows = expected.take(some, ["content", "featured", "sketch"]).to_pylist()
        found_rows = [
            {"content": content.tobytes(), "featured": bool(featured), "sketch": sketch.tobytes()}
            for content, featured, sketch in zip(
                *store.take_sketched(some, (), ())[0][:3], strict=True
            )
        ]
        assert found_rows == wanted_rows
    assert store.imports() == expected.imports()
    for name in ("monday", "tuesday"):
        staged, wanted = (
            pa.concat_tables([NONE_STAGED, *one.staged(name)], **PROMOTED)
            for one in (store, expected)
        )
        assert staged.equals(wanted)


def assert_found(store: Any, expected: ReferenceStore, rng: random.Random) -> None:
    """Check that look-ups by keys, ids and contents find the rows that they find in the
    reference.
    """
    for limit in (1, 3, 10**6):
        lookups = random_lookups(expected.layout, rng, 9)
        found, wanted = (one.find(lookups, limit) for one in (store, expected))
        for name, array, other in zip(Found._fields, found, wanted, strict=True):
            assert array.tolist() == other.tolist(), (name, limit)
    ids = pa.array(
        [f"document {rng.randrange(expected.num_rows + 2)}" for _ in range(9)] + [""],
        pa.large_string(),
    )
    assert store.rows_of_ids(ids).tolist() == expected.rows_of_ids(ids).tolist()
    contents = np.array([[i, j] for i in range(4) for j in range(4)], np.uint64)
    assert store.rows_of_contents(contents).tolist() == expected.rows_of_contents(contents).tolist()


def random_step(
    stores: Sequence[Any], expected: ReferenceStore, rng: random.Random, num_documents: int
) -> None:
    """Apply one random operation to writers and to the reference."""
    choice = rng.random()
    if choice < 0.15:
        name = rng.choice(["monday", "tuesday"])
        opened = rng.randrange(10**15)
        documents = rng.choice([None, pa.table({"id": ["a", "b"], "any": [[1], None]})])
        for store in (*stores, expected):
            store.stage(name, opened, documents)
        return
    changes = random_changes(expected, rng, num_documents if choice < 0.9 else 0)
    if choice > 0.8:
        changes = Changes(
            *(getattr(changes, name) for name in list(changes.__dataclass_fields__)[:5]), "monday"
        )
    parts = [changes]
    expected.write(changes)
    for size in rng.choice([(), (), (num_documents, 0), (0, num_documents)]):
        parts.append(replace(random_changes(expected, rng, size), seen_at=changes.seen_at))
        expected.write(parts[-1])
    for store in stores:
        store.write_all(iter(parts))
