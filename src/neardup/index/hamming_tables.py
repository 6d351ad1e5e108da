"""Tables of fingerprints, sorted by blocks of their bits: all rows within a Hamming distance of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.candidates.block_levels import make_tables
from neardup.candidates.blocks import BlockPlan, plan_blocks
from neardup.executor import map_all
from neardup.index.row_store import RowStore

if TYPE_CHECKING:
    from neardup.kernels.blocks import Records, Rows, Tables

_MAX_TABLES = 16  # without a limit on memory
_TAIL_ROWS = 1024  # rows that are scanned before they get tables
_SCAN_COST = 0.35  # nanoseconds for a row that is compared in a scan of all
_MAX_CELL_BITS, _ROUGH_BITS = 24, 9
_QUERIES_AT_ONCE = 1 << 14

Words = npt.NDArray[np.uint64]


class Matches(NamedTuple):
    """Rows near to queries, by query, then distance, then row. query, row : int64; distance : uint8."""

    query: npt.NDArray[np.int64]
    row: npt.NDArray[np.int64]
    distance: npt.NDArray[np.uint8]


class HammingTables:
    """The rows of a store in segments with tables, and a tail of rows that queries scan.

    Segments are merged so that each is at least twice as large as the next: to add n rows one by one takes O(n log n).

    Attributes
    ----------
    segments : the first row of each, and its tables.
    """

    def __init__(self, bits: int, max_distance: int, memory_bytes: float | None) -> None:
        self.bits, self.max_distance, self.memory_bytes = bits, max_distance, memory_bytes
        self.segments: list[tuple[int, Tables]] = []
        self._tail = 0  # the first row that is in no segment
        self._scanned: Tables | None = None  # the rows from there on, made when queries come

    def add(self, store: RowStore, first: int) -> None:
        """Take in the rows of a store from `first` on: into the tail, which becomes a segment when it is long."""
        self._scanned = None
        if store.num_rows - self._tail >= _TAIL_ROWS:
            self._make_segment(store)

    def find(self, queries: Words, store: RowStore, threads: int) -> Matches:
        """Return the rows within the distance of each query."""
        tables = [tables for _, tables in self.segments]
        if self._tail < store.num_rows:
            if self._scanned is None:
                self._scanned = scan_all(store.values[: store.num_rows], self._tail, self.max_distance)
            tables.append(self._scanned)
        return find_near(queries, tables, kernels.blocks.Rows(store.values, store.alive), self.max_distance, threads)

    def _make_segment(self, store: RowStore) -> None:
        """Give tables to the tail, together with segments that are less than twice as large."""
        first, stop = self._tail, store.num_rows
        while self.segments and first - self.segments[-1][0] < 2 * (stop - first):
            first = self.segments.pop()[0]
        rows = store.values[:stop]
        share = None if self.memory_bytes is None else self.memory_bytes * (stop - first) / stop
        plan = choose_tables(stop - first, self.bits, self.max_distance, share)
        if plan is None:
            tables = scan_all(rows, first, self.max_distance)
        else:
            tables = build_tables(rows, first, self.bits, self.max_distance, plan)
        self.segments.append((first, tables))
        self._tail, self._scanned = stop, None


def choose_tables(num_rows: int, bits: int, max_distance: int, memory_bytes: float | None) -> BlockPlan | None:
    """Return the plan of the fastest tables within the memory allowed, or None where a scan of all rows is faster."""
    plans = [plan for plan in plan_blocks(num_rows, bits, max_distance, memory_bytes) if plan.fits]
    if memory_bytes is None:
        plans = [plan for plan in plans if plan.num_tables <= max(_MAX_TABLES, max_distance + 1)]
    best = min(plans, key=lambda plan: (plan.query_cost, plan.num_tables), default=None)
    return best if best is not None and best.query_cost < _SCAN_COST * num_rows else None


def scan_all(fingerprints: Words, start: int, max_distance: int) -> Tables:
    """Return one table of all rows from `start` on, for queries to go through one by one."""
    num_words = fingerprints.shape[1]
    return kernels.blocks.Tables(
        np.zeros((1, num_words), np.uint64),
        np.zeros((1, max_distance, num_words), np.uint64),
        np.zeros(1, np.int64),
        np.ascontiguousarray(fingerprints[start:, 0])[None],
        np.arange(start, len(fingerprints), dtype=np.uint32)[None],
        # The hash of no bits is 0: all rows are in the first of two cells.
        np.array([[0, len(fingerprints) - start, len(fingerprints) - start]], np.uint32),
    )


def build_tables(fingerprints: Words, start: int, bits: int, max_distance: int, plan: BlockPlan) -> Tables:
    """Return the tables of all rows from `start` on."""
    agree, differ, _ = make_tables(bits, max_distance, plan.num_blocks)
    segment = fingerprints[start:]
    # Four cells for each key, where there are that many rows, so that few keys share one.
    cell_bits = max(1, min(plan.key_bits + 2, len(segment).bit_length() - 1, _MAX_CELL_BITS))
    # The word that keys leave the most bits of tells the most apart.
    word = np.argmin(np.array([[int(word).bit_count() for word in mask] for mask in agree.tolist()]), axis=1)
    words = np.empty((len(agree), len(segment)), np.uint64)
    rows = np.empty((len(agree), len(segment)), np.uint32)
    starts = np.zeros((len(agree), (1 << cell_bits) + 1), np.uint32)
    for table, mask in enumerate(agree):
        # A rough sort first: one pass that writes to 2^18 places in turn waits for the memory at each, two do not.
        rough, _ = _sort_rows(segment, mask, min(cell_bits, _ROUGH_BITS))
        fine, edges = _sort_rows(rough.fingerprints, mask, cell_bits)
        starts[table] = edges
        words[table] = fine.fingerprints[:, word[table]]
        rows[table] = rough.positions[fine.positions]
    rows += np.uint32(start)
    return kernels.blocks.Tables(agree, differ, word, words, rows, starts)


def _sort_rows(fingerprints: Words, mask: Words, cell_bits: int) -> tuple[Records, npt.NDArray[np.int64]]:
    """Return rows in the order of their cells, and where each cell begins, the end last."""
    size = len(fingerprints)
    records = kernels.blocks.Records(np.empty(fingerprints.shape, np.uint64), np.empty(size, np.uint32))
    counts = np.zeros(1 << cell_bits, np.int64)
    kernels.radix_partition.count_parts(fingerprints, (0, size), mask, counts)
    edges = np.concatenate([[0], counts.cumsum()])
    kernels.radix_partition.scatter_parts(fingerprints, (0, size), mask, edges[:-1].copy(), records)
    return records, edges


def find_near(queries: Words, segments: Sequence[Tables], rows: Rows, max_distance: int, threads: int) -> Matches:
    """Return the rows within the distance of each query."""
    edges = list(range(0, len(queries), _QUERIES_AT_ONCE))
    spans = [(first, min(first + _QUERIES_AT_ONCE, len(queries))) for first in edges]
    found = map_all(spans, lambda span: _find_span(queries, span, segments, rows, max_distance), threads)
    if not found:
        return Matches(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8))
    return Matches(*(np.concatenate(columns) for columns in zip(*found, strict=True)))


def _find_span(
    queries: Words, span: tuple[int, int], segments: Sequence[Tables], rows: Rows, max_distance: int
) -> Matches:
    """Return the rows near to some queries, in order."""
    parts: list[list[npt.NDArray[np.generic]]] = []
    size = 64 + 2 * (span[1] - span[0])
    for tables in segments:
        cells = np.empty((len(tables.word), span[1] - span[0]), np.uint32)
        for table, mask in enumerate(tables.agree):
            kernels.radix_partition.find_cells(queries, span[0], mask, tables.starts.shape[1] - 1, cells[table])
        begin = span[0]
        while begin < span[1]:
            kinds = (np.uint32, np.uint32, np.uint8)
            left, right, distance = (np.empty(size, kind) for kind in kinds)
            found = kernels.blocks.Found(left, right, distance, np.zeros(1, np.int64))
            part = (span[0], begin, span[1])
            reached = kernels.blocks.query_tables(queries, part, cells, tables, rows, max_distance, found)
            used = int(found.used[0])
            if used:
                parts.append([left[:used], right[:used], distance[:used]])
            if reached == begin:
                size *= 4  # the next query alone has more
            begin = reached
    if not parts:
        return Matches(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.uint8))
    query, row, distance = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    order = np.lexsort((row, distance, query))
    return Matches(query[order].astype(np.int64), row[order].astype(np.int64), distance[order].astype(np.uint8))
