"""Look-ups: the tables of keys in which a method finds documents, and the rule of their buckets.

A bucket lists its earliest `limit` distinct members. Engines list all documents of a corpus
(sorted_members.py), and an index looks up a few documents among many stored ones; both use the same
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

_KEY_BITS = 64
_WORD_BITS = 64  # of a word of a fingerprint


class Layout(NamedTuple):
    """The tables of keys.

    prefix_bits : for each table, the number of upper bits of a key that a bucket shares; 64 if keys
    must be equal. max_distance : the greatest number of bits in which a key found differs from the
    key looked up.
    """

    prefix_bits: tuple[int, ...]
    max_distance: int


class Entries(NamedTuple):
    """Keys of documents, each with its table, sorted by document.

    document : int64 (num_entries,), positions in a batch, not falling. table : uint16. key :
    uint64.
    """

    document: Rows
    table: Uint16s
    key: Words

    def take(self, chosen: Mask) -> Entries:
        """Return the entries where `chosen`, bool (num_entries,), is true."""
        return Entries(
            document=self.document[chosen], table=self.table[chosen], key=self.key[chosen]
        )


class Found(NamedTuple):
    """The rows that lookups found, sorted by lookup and then by row.

    entry : int64 (num_found,), the lookup. row : int64. kept : bool, whether the row's document was
    kept. truncated : bool (num_lookups,), whether a bucket has more rows than were listed.
    """

    entry: Rows
    row: Rows
    kept: Mask
    truncated: Mask

    def take(self, chosen: Mask) -> Found:
        """Return the rows where `chosen`, bool (num_found,), is true; `truncated` stays."""
        return self._replace(entry=self.entry[chosen], row=self.row[chosen], kept=self.kept[chosen])


class CandidateRows(NamedTuple):
    """Candidates among stored rows, each pair once, sorted by query and then by row.

    query, row : int64 (num_candidates,). kept : bool, whether the row's document was kept.
    """

    query: Ints
    row: Ints
    kept: Mask

    def take(self, chosen: Mask | Ints | slice) -> CandidateRows:
        """Return the candidates of a mask, bool (num_candidates,), of indices, or of a slice."""
        return CandidateRows(query=self.query[chosen], row=self.row[chosen], kept=self.kept[chosen])


class Lookup(ABC):
    """The search of a method in tables of keys.

    name : the kind of look-up, for reports; an engine may have a kernel for it. bands : the bands
    of the signature, if there is a table for each. needed : the number of a document's probes that
    must find another document, by the number of its probes; the last is for all greater numbers.
    radius : the distance within which fingerprints are found; None if keys must be equal. by_sets :
    whether the keys are the features of documents.
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
        """Return the keys under which documents are stored."""

    def probes(self, keys: Keys) -> Entries:
        """Return the keys that documents look up: the first ones of their entries."""
        return self.entries(keys)

    def limit(self, max_bucket_size: int, *, all_pairs: bool = False) -> int:
        """Return the number of members that a bucket lists.

        all_pairs : whether all duplicates of a document are requested.
        """
        return max_bucket_size

    def select(self, probes: Entries, found: Found) -> CandidateRows:
        """Return the candidates among the rows that probes found."""
        return distinct_pairs(probes, found)[0]


def distinct_pairs(probes: Entries, found: Found) -> tuple[CandidateRows, Ints]:
    """Return each pair of a query and a row once, with the number of probes that found it."""
    query = probes.document[found.entry]
    pairs = CandidateRows(query=query, row=found.row, kept=found.kept)
    if len(query) < 2:
        return pairs, np.ones(len(query), np.int64)

    # Two shortcuts for the usual look-ups of an index: one query, and all probes found one row.
    is_one_query = query[0] == query[-1]  # probes are sorted by document
    if is_one_query and bool((found.row == found.row[0]).all()):
        return pairs.take(slice(1)), np.array([len(query)])
    order = np.argsort(found.row) if is_one_query else np.lexsort((found.row, query))

    pairs = pairs.take(order)
    is_first = begins_run(pairs.query, pairs.row)
    hits = np.diff(np.append(np.flatnonzero(is_first), len(query)))
    return pairs.take(is_first), hits


def dense_entries(values: Words) -> Entries:
    """Return entries of a key for each document and table: uint64 (num_documents, num_tables)."""
    num_documents, num_tables = values.shape
    key = np.ascontiguousarray(values).reshape(-1)
    if num_documents == 1:
        document, table = _entries_of_one(num_tables)
        return Entries(document=document, table=table, key=key)
    document = np.empty(values.shape, np.int64)
    document[:] = np.arange(num_documents)[:, None]
    table = np.empty(values.shape, np.uint16)
    table[:] = np.arange(num_tables)
    return Entries(document=document.reshape(-1), table=table.reshape(-1), key=key)


@cache
def _entries_of_one(num_tables: int) -> tuple[Ints, Uint16s]:
    """Return `document` and `table` of one document's entries: queries of an index use them."""
    return np.zeros(num_tables, np.int64), np.arange(num_tables, dtype=np.uint16)


def take_entries(entries: Entries, documents: Mask) -> Entries:
    """Return the entries of some documents, which keep their positions.

    documents : bool (num_documents,).
    """
    # `item` of one document is faster than `all`.
    are_all_taken = documents.item() if len(documents) == 1 else documents.all()
    if are_all_taken:
        return entries
    return entries.take(documents[entries.document])


@dataclass(frozen=True)
class BandLookup(Lookup):
    """A table for each band of a signature."""

    bands: Bands = field()
    name = "bands"

    @property
    def layout(self) -> Layout:
        return Layout((_KEY_BITS,) * self.bands.num_bands, 0)

    def entries(self, keys: Keys) -> Entries:
        return dense_entries(keys.values)


@dataclass(frozen=True)
class DistanceLookup(Lookup):
    """A table for each choice of blocks of a fingerprint; see candidates/blocks.py.

    confirmed : whether pairs are also compared by more than their distance.
    """

    radius: Radius = field()
    confirmed: bool = True
    name = "fingerprints"

    @property
    def layout(self) -> Layout:
        sizes = [sum(word.bit_count() for word in mask) for mask in self.masks.tolist()]
        prefix_bits = tuple(min(_KEY_BITS, size) for size in sizes)
        return Layout(prefix_bits, self.radius.max_distance)

    def entries(self, keys: Keys) -> Entries:
        return dense_entries(self.permute(np.ascontiguousarray(keys.values)).T)

    def limit(self, max_bucket_size: int, *, all_pairs: bool = False) -> int:
        # Documents of one fingerprint have equal distances: the earliest represents them.
        return max_bucket_size if self.confirmed or all_pairs else 1

    def permute(self, words: Words) -> Words:
        """Return the keys of fingerprints, uint64 (num_tables, num_rows).

        words : uint64 (num_rows, num_words).
        """
        keys = np.empty((len(self._moves), len(words)), np.uint64)
        kernels.blocks.permute_bits(read_only(words), self._moves, keys)
        return keys

    @cached_property
    def masks(self) -> Words:
        """Return the bits of the blocks of each table, uint64 (num_tables, num_words)."""
        bits, max_distance, num_blocks = self.radius
        if num_blocks is None:
            num_blocks = max_distance + 1
        return make_masks(bits, max_distance, num_blocks)

    @cached_property
    def _moves(self) -> Words:
        """Return the moves of `permute_bits`, uint64 (num_tables, num_moves, 3).

        They bring the bits of a table's blocks to the front of a key, then the others, in order.
        """
        bits = range(self.radius.bits)
        tables = []
        for mask in self.masks.tolist():
            chosen = [bit for bit in bits if mask[bit // _WORD_BITS] >> (bit % _WORD_BITS) & 1]
            others = sorted(set(bits) - set(chosen))
            key_bits = [*chosen, *others][:_KEY_BITS]
            tables.append(_moves_of(key_bits))
        num_moves = max(map(len, tables))
        moves = np.zeros((len(tables), num_moves, len(_Move._fields)), np.uint64)
        for table, moves_of_table in enumerate(tables):
            moves[table, : len(moves_of_table)] = moves_of_table
        return moves


class _Move(NamedTuple):
    """A move of `kernels.blocks.permute_bits`, which copies a run of bits to a key.

    word : the word of the fingerprint. mask : the bits of this word in reverse order. rotation :
    their rotation to the left.

        word, reversed    | bit 0 | ... | first ..... last | ... | bit 63 |
        mask              |      0      | 1 ............ 1 |      0       |
        key               | ........... | first ..... last | ............ |
                                        ^ its index in `key_bits`, from the upper end
    """

    word: int
    mask: int
    rotation: int


def _moves_of(key_bits: list[int]) -> list[_Move]:
    """Return a move for each run of successive bits of one word.

    key_bits : the bits of a fingerprint that make a key, the upper end of the key first.
    """
    starts = [
        index
        for index, bit in enumerate(key_bits)
        if index == 0 or bit != key_bits[index - 1] + 1 or bit % _WORD_BITS == 0
    ]
    moves = []
    for index, stop in itertools.pairwise([*starts, len(key_bits)]):
        word, first = divmod(key_bits[index], _WORD_BITS)
        num_bits = stop - index
        # The first bit of the run is the upper end of the mask, because the word is reversed.
        num_after = _WORD_BITS - first - num_bits
        mask = ((1 << num_bits) - 1) << num_after
        moves.append(_Move(word=word, mask=mask, rotation=(first - index) % _WORD_BITS))
    return moves


@dataclass(frozen=True)
class SampleLookup(Lookup):
    """One table of all features; a document looks up its sample.

    needed : the hits that make a candidate, by the size of the sample.
    """

    samples: Samples
    needed: tuple[int, ...] = field()
    name = "samples"
    by_sets = True

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
        # At most `num_samples` probes of a document, the last index of `needed`.
        num_probes = np.bincount(probes.document, minlength=1)
        needed = np.array(self.needed)[num_probes[pairs.query]]
        return pairs.take(hits >= needed)


def _set_entries(sets: Lists, limit: int | None = None) -> Entries:
    """Return entries of the distinct hashes of sets, in one table; 0 is no hash.

    limit : the number of hashes of a set that are entered, the smallest; None for all.
    """
    hashes, offsets = distinct_lists(sets)
    sizes = np.diff(offsets)
    entries = Entries(
        document=np.repeat(np.arange(len(sizes), dtype=np.int64), sizes),
        table=np.zeros(len(hashes), np.uint16),
        key=hashes,
    )
    is_entered = hashes != 0
    if limit is not None:
        is_entered &= ranges(0, sizes) < limit
    return entries.take(is_entered)
