"""The tables of keys in which a method finds documents, and the one rule of their buckets.

A bucket lists its earliest `limit` distinct members. Engines list all documents of a corpus
(sorted_members.py), and an index looks up a few among many that are stored; both ask the same
`Lookup`.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Ints, Mask, Rows, Uint16s, Words, begins_run, ranges, read_only
from neardup.candidates.bands import Bands
from neardup.candidates.blocks import Radius
from neardup.candidates.hamming_join import make_masks
from neardup.candidates.samples import Samples
from neardup.features.described import Keys, Lists, distinct_lists


class Layout(NamedTuple):
    """The tables of keys.

    prefix_bits : for each table, the number of upper bits of a key that a bucket shares: 64 where
    only equal keys are wanted. max_distance : the greatest number of bits in which a key found
    differs from the key looked up.
    """

    prefix_bits: tuple[int, ...]
    max_distance: int


class Entries(NamedTuple):
    """Keys of documents in tables, by document.

    document : int64 (num_entries,), positions in a batch, not falling. table : uint16. key :
    uint64.
    """

    document: Rows
    table: Uint16s
    key: Words

    def take(self, chosen: Mask) -> Entries:
        """Return the entries where `chosen`, bool (num_entries,), is true."""
        return Entries(self.document[chosen], self.table[chosen], self.key[chosen])


class Found(NamedTuple):
    """The rows that lookups found, by lookup and then by row.

    entry : int64 (num_found,), the lookup. row : int64. kept : bool, whether the document of the
    row was kept. truncated : bool (num_lookups,), whether a bucket has more rows than were listed.
    """

    entry: Rows
    row: Rows
    kept: Mask
    truncated: Mask

    def take(self, chosen: Mask) -> Found:
        """Return the rows where `chosen`, bool (num_found,), is true; `truncated` stays."""
        return Found(self.entry[chosen], self.row[chosen], self.kept[chosen], self.truncated)


class CandidateRows(NamedTuple):
    """Candidates among stored rows, by query and then by row, each pair once. query, row : int64;
    kept : bool.
    """

    query: Ints
    row: Ints
    kept: Mask

    def take(self, chosen: Mask) -> CandidateRows:
        """Return the candidates where `chosen`, bool (num_candidates,), is true."""
        return CandidateRows(self.query[chosen], self.row[chosen], self.kept[chosen])


def distinct_pairs(probes: Entries, found: Found) -> tuple[CandidateRows, Ints]:
    """Return each pair of a query and a row once, with the number of probes that found it."""
    query = probes.document[found.entry]
    if len(query) < 2:
        return CandidateRows(query, found.row, found.kept), np.ones(len(query), np.int64)
    if query[0] == query[-1] and bool(
        (found.row == found.row[0]).all()
    ):  # one document, of one row: the usual hit
        return CandidateRows(query[:1], found.row[:1], found.kept[:1]), np.array([len(query)])
    order = np.argsort(found.row) if query[0] == query[-1] else np.lexsort((found.row, query))
    query, row, kept = query[order], found.row[order], found.kept[order]
    new = begins_run(query, row)
    hits = np.diff(np.append(np.flatnonzero(new), len(query)))
    return CandidateRows(query[new], row[new], kept[new]), hits


def dense_entries(values: Words) -> Entries:
    """Return entries of a key for each document and table: uint64 (num_documents, num_tables)."""
    num_documents, num_tables = values.shape
    if num_documents == 1:
        return Entries(*_entries_of_one(num_tables), np.ascontiguousarray(values).reshape(-1))
    document, table = np.empty(values.shape, np.int64), np.empty(values.shape, np.uint16)
    document[:], table[:] = np.arange(num_documents)[:, None], np.arange(num_tables)
    return Entries(
        document.reshape(-1), table.reshape(-1), np.ascontiguousarray(values).reshape(-1)
    )


@cache
def _entries_of_one(num_tables: int) -> tuple[Ints, Uint16s]:
    return np.zeros(num_tables, np.int64), np.arange(num_tables, dtype=np.uint16)


def take_entries(entries: Entries, documents: Mask) -> Entries:
    """Return the entries of some documents, which keep their positions. documents : bool
    (num_documents,).
    """
    whole = documents.item() if len(documents) == 1 else documents.all()
    return entries if whole else entries.take(documents[entries.document])


_KEY_BITS = 64


class Lookup(ABC):
    """How a method finds documents in tables of keys.

    name : of the kind of look-up, for reports; an engine may have a kernel for it. bands : of the
    signature, if each table is of a band. needed : the probes of a document that must find another
    one, by the number of its probes; the last for all more. radius : of fingerprints, if those
    within a distance are found too; None if keys must be equal. by_sets : whether the keys are the
    features of documents.
    """

    name: ClassVar[str]
    bands: Bands | None = None
    needed: tuple[int, ...] = (0, 1)
    radius: Radius | None = None
    by_sets: ClassVar[bool] = False

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The tables."""

    @abstractmethod
    def entries(self, keys: Keys) -> Entries:
        """Return the keys under which documents are entered."""

    def probes(self, keys: Keys) -> Entries:
        """Return the keys that documents look up: the first ones of their entries."""
        return self.entries(keys)

    def limit(self, max_bucket_size: int, *, all_pairs: bool = False) -> int:
        """Return how many members a bucket lists. all_pairs : whether all duplicates of a document
        are wanted.
        """
        return max_bucket_size

    def select(self, probes: Entries, found: Found) -> CandidateRows:
        """Return the candidates among the rows that probes found."""
        return distinct_pairs(probes, found)[0]


@dataclass(frozen=True)
class BandLookup(Lookup):
    """A table for each band of a signature."""

    bands: Bands = field()
    name: ClassVar[str] = "bands"

    @property
    def layout(self) -> Layout:
        return Layout((_KEY_BITS,) * self.bands.num_bands, 0)

    def entries(self, keys: Keys) -> Entries:
        return dense_entries(keys.values)


@dataclass(frozen=True)
class DistanceLookup(Lookup):
    """A table for each choice of blocks of a fingerprint; see candidates/blocks.py.

    confirmed : whether more is compared of a pair than its distance.
    """

    radius: Radius = field()
    confirmed: bool = True
    name: ClassVar[str] = "fingerprints"

    @property
    def layout(self) -> Layout:
        sizes = tuple(
            min(_KEY_BITS, sum(int(word).bit_count() for word in mask))
            for mask in self.masks.tolist()
        )
        return Layout(sizes, self.radius.max_distance)

    def entries(self, keys: Keys) -> Entries:
        return dense_entries(self.permute(np.ascontiguousarray(keys.values)).T)

    def limit(self, max_bucket_size: int, *, all_pairs: bool = False) -> int:
        # Documents of one fingerprint have equal distances: the earliest represents them.
        return max_bucket_size if self.confirmed or all_pairs else 1

    def permute(self, words: Words) -> Words:
        """Return the keys of fingerprints, uint64 (num_tables, num_rows). words : uint64 (num_rows,
        num_words).
        """
        keys = np.empty((len(self._moves), len(words)), np.uint64)
        kernels.blocks.permute_bits(read_only(words), self._moves, keys)
        return keys

    @cached_property
    def masks(self) -> Words:
        """Return the bits of the blocks of each table, uint64 (num_tables, num_words)."""
        bits, max_distance, num_blocks = self.radius
        return make_masks(
            bits, max_distance, max_distance + 1 if num_blocks is None else num_blocks
        )

    @cached_property
    def _moves(self) -> Words:
        """Return the moves of `permute_bits`: the bits of a table's blocks to the front, then the
        others, in order.
        """
        tables = []
        for mask in self.masks.tolist():
            chosen = [bit for bit in range(self.radius.bits) if mask[bit >> 6] >> (bit & 63) & 1]
            others = sorted(set(range(self.radius.bits)) - set(chosen))
            tables.append([_move(*run) for run in _runs_of([*chosen, *others][:_KEY_BITS])])
        most = max(map(len, tables))
        return np.array(
            [[*moves, *[(0, 0, 0)] * (most - len(moves))] for moves in tables], np.uint64
        )


def _runs_of(bits: list[int]) -> list[tuple[int, int, int]]:
    """Return the runs of successive bits of one word: the first bit, its place among all, the
    length.
    """
    edges = [i for i, bit in enumerate(bits) if i == 0 or bit != bits[i - 1] + 1 or bit % 64 == 0]
    return [
        (bits[first], first, stop - first)
        for first, stop in itertools.pairwise([*edges, len(bits)])
    ]


def _move(bit: int, place: int, length: int) -> tuple[int, int, int]:
    """Return the word of a run of bits, its bits in the reversed word, and the rotation to its
    place in a key.
    """
    low = 64 - bit % 64 - length
    return bit // 64, (1 << low + length) - (1 << low), (bit - place) % 64


@dataclass(frozen=True)
class SampleLookup(Lookup):
    """One table of all features; a document looks up its sample. needed : hits by the size of the
    sample.
    """

    samples: Samples
    needed: tuple[int, ...] = field()
    name: ClassVar[str] = "samples"
    by_sets: ClassVar[bool] = True

    @property
    def layout(self) -> Layout:
        return Layout((_KEY_BITS,), 0)

    def entries(self, keys: Keys) -> Entries:
        assert keys.samples is not None
        return _set_entries(keys.samples)

    def probes(self, keys: Keys) -> Entries:
        assert keys.samples is not None
        return _set_entries(keys.samples, self.samples.num_samples)

    def select(self, probes: Entries, found: Found) -> CandidateRows:
        pairs, hits = distinct_pairs(probes, found)
        sizes = np.bincount(probes.document, minlength=1)
        return pairs.take(hits >= np.array(self.needed)[sizes[pairs.query]])


def _set_entries(sets: Lists, most: int | None = None) -> Entries:
    """Return entries of the distinct hashes of sets, the least `most` of each, in one table; 0 is
    no hash.
    """
    hashes, offsets = distinct_lists(sets)
    sizes = np.diff(offsets)
    owner = np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)
    chosen = hashes != 0
    if most is not None:
        chosen &= ranges(0, sizes) < most
    return Entries(owner[chosen], np.zeros(int(chosen.sum()), np.uint16), hashes[chosen])
