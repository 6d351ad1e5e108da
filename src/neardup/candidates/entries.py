"""The entries of documents in tables of keys, and the rows that lookups find in them."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.arrays import begins_run

Rows = npt.NDArray[np.int64]


class Layout(NamedTuple):
    """The tables of keys.

    prefix_bits : for each table, the number of upper bits of a key that a bucket shares: 64 where only equal keys are
    wanted. max_distance : the greatest number of bits in which a key found differs from the key looked up.
    """

    prefix_bits: tuple[int, ...]
    max_distance: int


class Entries(NamedTuple):
    """Keys of documents in tables, by document.

    document : int64 (num_entries,), positions in a batch, not falling. table : uint16. key : uint64.
    """

    document: Rows
    table: npt.NDArray[np.uint16]
    key: npt.NDArray[np.uint64]

    def take(self, chosen: npt.NDArray[np.bool_]) -> Entries:
        """Return the entries where `chosen`, bool (num_entries,), is true."""
        return Entries(self.document[chosen], self.table[chosen], self.key[chosen])


class Found(NamedTuple):
    """The rows that lookups found, by lookup and then by row.

    entry : int64 (num_found,), the lookup. row : int64. kept : bool, whether the document of the row was kept.
    truncated : bool (num_lookups,), whether a bucket has more rows than were listed.
    """

    entry: Rows
    row: Rows
    kept: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]

    def take(self, chosen: npt.NDArray[np.bool_]) -> Found:
        """Return the rows where `chosen`, bool (num_found,), is true; `truncated` stays."""
        return Found(self.entry[chosen], self.row[chosen], self.kept[chosen], self.truncated)


class CandidateRows(NamedTuple):
    """Candidates among stored rows, by query and then by row, each pair once. query, row : int64; kept : bool."""

    query: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    kept: npt.NDArray[np.bool_]

    def take(self, chosen: npt.NDArray[np.bool_]) -> CandidateRows:
        """Return the candidates where `chosen`, bool (num_candidates,), is true."""
        return CandidateRows(self.query[chosen], self.row[chosen], self.kept[chosen])


def distinct_pairs(probes: Entries, found: Found) -> tuple[CandidateRows, npt.NDArray[np.int64]]:
    """Return each pair of a query and a row once, with the number of probes that found it."""
    query = probes.document[found.entry]
    if len(query) < 2:
        return CandidateRows(query, found.row, found.kept), np.ones(len(query), np.int64)
    if query[0] == query[-1] and bool((found.row == found.row[0]).all()):  # one document, of one row: the usual hit
        return CandidateRows(query[:1], found.row[:1], found.kept[:1]), np.array([len(query)])
    order = np.argsort(found.row) if query[0] == query[-1] else np.lexsort((found.row, query))
    query, row, kept = query[order], found.row[order], found.kept[order]
    new = begins_run(query, row)
    hits = np.diff(np.append(np.flatnonzero(new), len(query)))
    return CandidateRows(query[new], row[new], kept[new]), hits


def dense_entries(values: npt.NDArray[np.uint64]) -> Entries:
    """Return entries of a key for each document and table: uint64 (num_documents, num_tables)."""
    num_documents, num_tables = values.shape
    if num_documents == 1:
        return Entries(*_entries_of_one(num_tables), np.ascontiguousarray(values).reshape(-1))
    document, table = np.empty(values.shape, np.int64), np.empty(values.shape, np.uint16)
    document[:], table[:] = np.arange(num_documents)[:, None], np.arange(num_tables)
    return Entries(document.reshape(-1), table.reshape(-1), np.ascontiguousarray(values).reshape(-1))


@cache
def _entries_of_one(num_tables: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint16]]:
    return np.zeros(num_tables, np.int64), np.arange(num_tables, dtype=np.uint16)


def take_entries(entries: Entries, documents: npt.NDArray[np.bool_]) -> Entries:
    """Return the entries of some documents, which keep their positions. documents : bool (num_documents,)."""
    whole = documents.item() if len(documents) == 1 else documents.all()
    return entries if whole else entries.take(documents[entries.document])
