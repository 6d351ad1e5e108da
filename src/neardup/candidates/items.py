"""A table of the shingles of short items, which documents of any number stream past."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import kernels
from neardup.arrays import (
    Array,
    Floats,
    Int32s,
    Mask,
    Rows,
    Words,
    arrow_of,
    begins_run,
    offsets_from_lengths,
)
from neardup.features.described import Lists, distinct_features
from neardup.features.feature_strings import token_strings
from neardup.features.shingles import Scan, Workspace, scan_flagged, scan_strings, shingle_documents
from neardup.kernels.token_arrays import longest_of, make_buffers
from neardup.settings.contamination import ContaminationSettings
from neardup.settings.methods import Shingling

LONG = 20
"""From so many shingles on, an item that a document has whole is found there, however many have it.
"""
WHOLE = 0.95
"""The share of the shingles of a long item that is all of it."""
_BITS_PER_SHINGLE, _MOST_BITS = 16, 1 << 23  # of a filter, which the caches of a processor hold
_LONG_CHARACTER = 0xE0  # the first byte of characters that are a word each, and of few others


class Lookup(NamedTuple):
    """Where hashes of shingles and sequences are found.

    lengths : int64, in words, of the shortest shingles, and then of longer ones and of sequences.
    slots : uint64, open addressing, of a hash the first bits, and instead of the others the number
    of its key plus 1, or 0 if no document needs the key. bits : uint64, a filter: two bits, of the
    word hash >> shift, of each of the shortest shingles of any field.
    """

    lengths: Rows
    slots: Words
    bits: Words
    shift: np.uint64


class Around(NamedTuple):
    """The sequences of words around places: those of place i are keys[first[i] : first[i] +
    sizes[i]], at least one.

    A shingle of a field that is shorter than a sequence is its own. is_counted : bool by key, those
    around any place.
    """

    keys: Int32s
    first: Rows
    sizes: Rows
    is_counted: Mask


class Matches(NamedTuple):
    """Shingles of items found in documents: integers, the document, the place and the token number
    of each.

    Rising by document, and by token number within a field of a document.
    """

    documents: Array
    places: Int32s
    positions: Int32s

    def take(self, rows: Array) -> Matches:
        """Return some of the matches."""
        return Matches(*(column[rows] for column in self))


@dataclass
class ItemTable:
    """The shingles of all items.

    A *field* is one text of an item. A *place* is a distinct shingle of an item, at its first
    occurrence. Places are those of an item's *own* shingles: such as no more than `settings.common`
    different items have. A *key* is a distinct shingle or sequence.

    texts : of all fields. field_items : int32 by field, rising. weights : float64 by field. ngrams
    : int64 by field. words : the hashes of the words of each field. items, fields, positions :
    int32 by place, in the order of the items; positions are token numbers. shared : places of the
    same kind, int64 (num_shared, 3) of field, position and items, of shingles not own. postings :
    int32, offsets by key; and by posting its place, and the item of it.
    """

    settings: ContaminationSettings
    shingling: Shingling
    num_items: int
    texts: pa.LargeStringArray
    field_items: Int32s
    weights: Floats
    ngrams: Rows
    words: Lists
    items: Int32s
    fields: Int32s
    positions: Int32s
    shared: Rows
    postings: tuple[Int32s, ...]
    around: Around
    lookup: Lookup

    def most_around(self, counts: Rows, places: Array | slice) -> Rows:
        """Return the greatest count of a sequence around each of some places; counts : int64 by
        key.
        """
        around = self.around
        most: Rows = kernels.item_shingles.greatest(
            counts, around.keys, around.first[places], around.sizes[places]
        )
        return most

    @cached_property
    def num_tokens(self) -> Rows:
        """Return by field its words."""
        return np.diff(self.words.offsets)

    @cached_property
    def num_own(self) -> Rows:
        """Return by item its own shingles."""
        return np.bincount(self.items, minlength=self.num_items)

    @cached_property
    def is_first(self) -> Mask:
        """Return by field whether it is the first of its item."""
        return begins_run(self.field_items)

    @cached_property
    def num_first(self) -> Rows:
        """Return by item how many of its own shingles are of its first field."""
        return np.bincount(self.items[self.is_first[self.fields]], minlength=self.num_items)

    @cached_property
    def parts(self) -> list[tuple[Mask, Rows, Floats]]:
        """Return the parts that can show an item, the first field and all: by field whether it is
        in it; by item its own shingles, and their weight.
        """
        whole = np.ones_like(self.is_first)
        weights = [self.weights * part for part in (self.is_first, whole)]
        totals = [
            np.bincount(self.items, one[self.fields], self.num_items).astype(np.float64)
            for one in weights
        ]
        return [(self.is_first, self.num_first, totals[0]), (whole, self.num_own, totals[1])]

    def most_documents(self, is_whole: Mask) -> Rows:
        """Return by place how many documents may have it before it is boilerplate.

        Half of the setting if no document has the whole item: what several have without the rest of
        it, is a phrase.
        """
        return np.where(is_whole[self.items], self.settings.common, (self.settings.common + 1) // 2)

    def least_of(self, num_own: Rows) -> Rows:
        """Return how many of so many own shingles a document must have to be worth a look; at least
        1.
        """
        share = np.ceil(self.settings.threshold * num_own - 1e-9).astype(np.int64)
        least = np.maximum(share, np.minimum(self.settings.min_shingles, num_own))
        fewest: Rows = np.maximum(1, np.minimum(least, least_whole(num_own)))
        return fewest

    @cached_property
    def least_own(self) -> Int32s:
        """Return by item how many of its shingles a document must have, be they of the first field
        alone.
        """
        least = self.least_of(np.where(self.num_first > 0, self.num_first, self.num_own))
        fewest: Int32s = np.minimum(least, self.least_of(self.num_own)).astype(np.int32)
        is_even = not len(self.weights) or np.ptp(self.weights) == 0
        return (
            fewest if is_even else np.minimum(fewest, self.settings.min_shingles)
        )  # a few may weigh enough


def sequence_lengths(ngrams: Rows) -> Rows:
    """Return how many words a sequence has of which too many documents make its shingles
    boilerplate.

    It is 8 for shingles of 3 words. An ordinary phrase of 3 words is in many documents of a large
    corpus, one of 8 is not.
    """
    return 2 * ngrams + 2


def least_whole(num_own: Rows) -> Rows:
    """Return how many of so many own shingles are all of an item."""
    return np.where(num_own < LONG, num_own, np.ceil(WHOLE * num_own - 1e-9)).astype(np.int64)


def build_items(
    texts: pa.LargeStringArray,
    field_items: Int32s,
    weights: Floats,
    num_items: int,
    settings: ContaminationSettings,
    shingling: Shingling,
) -> ItemTable:
    """Return the table of items.

    Parameters
    ----------
    texts : of all fields, in the order of their items. field_items, weights : by field.
    """
    words = shingle_documents(texts, replace(shingling, ngram=1, html=None))
    num_tokens, ngrams = np.diff(words.offsets), _ngrams(texts, settings, shingling)
    hashes, counts = _shingles(texts, ngrams, num_tokens, shingling)
    offsets, items = (
        offsets_from_lengths(counts),
        np.searchsorted(field_items, np.arange(num_items + 1)),
    )
    first, is_new = _distinct(hashes, offsets[items])
    fields = np.repeat(np.arange(len(texts), dtype=np.int32), counts)[first]
    positions = (first - offsets[fields]).astype(np.int32)
    lengths = np.where(num_tokens < sequence_lengths(ngrams), ngrams, sequence_lengths(ngrams))
    around, sizes = _shingles(texts, lengths, num_tokens, shingling)
    every = np.unique(np.append(ngrams, settings.ngram))
    others = np.setdiff1d(np.append(every, sequence_lengths(every)), settings.ngram)
    long = np.flatnonzero(ngrams > settings.ngram)
    shortest, _ = _shingles(
        texts.take(arrow_of(long)), np.full(len(long), settings.ngram), num_tokens[long], shingling
    )
    shortest = np.append(shortest, hashes[np.repeat(ngrams == settings.ngram, counts)])
    lookup, keys, numbers, num_keys = _lookup(
        hashes[first], around, np.append(settings.ngram, others), shortest
    )
    num_different = np.bincount(keys[is_new[field_items[fields]]], minlength=num_keys)[keys]
    own = num_different <= settings.common
    shared = np.stack([fields[~own], positions[~own], num_different[~own]], axis=1)
    fields, positions, keys = fields[own], positions[own], keys[own]
    low = np.maximum(0, positions - (lengths - ngrams).astype(np.int32)[fields])
    size = np.minimum(positions, sizes.astype(np.int32)[fields] - 1) - low + 1
    low, is_counted = low + offsets_from_lengths(sizes)[fields], np.zeros(num_keys, np.bool_)
    kernels.item_shingles.mark_ranges(numbers, low, size, is_counted)
    of_key, places = kernels.item_shingles.invert(keys, num_keys)
    kernels.item_shingles.drop_keys(lookup.slots, is_counted, of_key)
    return ItemTable(
        settings,
        shingling,
        num_items,
        texts,
        field_items,
        weights,
        ngrams,
        Lists(words.hashes, words.offsets),
        field_items[fields],
        fields,
        positions,
        shared,
        (of_key, places, field_items[fields[places]]),
        Around(numbers, low, size, is_counted),
        lookup,
    )


def _distinct(hashes: Words, offsets: Rows) -> tuple[Rows, Mask]:
    """Return where each distinct shingle of an item occurs first; and by item whether none before
    has the same ones.
    """
    distinct = distinct_features(hashes, offsets)
    sums = np.append(np.uint64(0), np.cumsum(distinct.hashes))[distinct.offsets]
    different = np.unique(np.diff(sums), return_index=True)[1]
    is_first = np.zeros(len(hashes), np.bool_)
    is_first[distinct.firsts] = True
    return np.flatnonzero(is_first), np.bincount(different, minlength=len(sums) - 1) > 0


def _ngrams(
    texts: pa.LargeStringArray, settings: ContaminationSettings, shingling: Shingling
) -> Rows:
    """Return the length of the shingles of each field."""
    ngrams = np.full(len(texts), settings.ngram)
    rows = np.flatnonzero(~np.asarray(pc.string_is_ascii(texts), np.bool_))
    tokens = token_strings(texts.take(arrow_of(rows)), shingling)
    first = np.append(tokens.data, np.uint8(0))[tokens.offsets[:-1]]
    is_character = offsets_from_lengths((first >= _LONG_CHARACTER) & (np.diff(tokens.offsets) <= 4))
    is_mostly = 2 * np.diff(is_character[tokens.document_offsets]) > np.diff(
        tokens.document_offsets
    )
    ngrams[rows[is_mostly]] = 2 * settings.ngram - 1
    return ngrams


def _shingles(
    texts: pa.LargeStringArray, ngrams: Rows, num_tokens: Rows, shingling: Shingling
) -> tuple[Words, Rows]:
    """Return the hashes of the shingles of each field, one after the other, and how many each has.

    Fields of fewer words than a shingle have none.
    """
    sizes = np.maximum(0, num_tokens - ngrams + 1)
    hashes = np.empty(sizes.sum(), np.uint64)
    for ngram in np.unique(ngrams).tolist():
        chosen = (ngrams == ngram) & (sizes > 0)
        found = shingle_documents(
            texts.filter(arrow_of(chosen)), replace(shingling, ngram=ngram, html=None)
        )
        hashes[np.repeat(chosen, sizes)] = found.hashes
    return hashes, sizes


def _lookup(
    shingles: Words, sequences: Words, lengths: Rows, shortest: Words
) -> tuple[Lookup, Int32s, Int32s, int]:
    """Return where hashes are found, the keys of the shingles and of the sequences, and the number
    of keys.

    shortest : of all shingles of lengths[0] words.
    """
    size = len(shingles) + len(sequences)
    slots = np.zeros(1 << (size + size // 2 + 16).bit_length(), np.uint64)
    keys, num_keys = kernels.item_shingles.number_hashes(shingles, slots, 0)
    numbers, num_keys = kernels.item_shingles.number_hashes(sequences, slots, num_keys)
    bits = np.zeros(
        min(_MOST_BITS, 1 << (_BITS_PER_SHINGLE * len(shortest) + 64).bit_length()) // 64, np.uint64
    )
    shift = np.uint64(64 - (len(bits) - 1).bit_length())
    kernels.item_shingles.fill_filter(shortest, bits, shift)
    return Lookup(lengths, slots, bits, shift), keys, numbers, num_keys


class Finder:
    """Finds the shingles of items in batches of documents; for one thread at a time."""

    def __init__(self, table: ItemTable) -> None:
        self._table = table
        self._room, sizes = (
            Workspace(),
            (table.num_items, len(table.around.is_counted) + 1, table.num_items + 1),
        )
        self._workspace = tuple(np.zeros(size, np.int32) for size in sizes)

    def find(self, texts: pa.Array) -> tuple[Int32s, Matches]:
        """Return the distinct counted keys of each document, and the matches of items worth a look.

        Parameters
        ----------
        texts : as `extract_text` returns them.
        """
        keys, matches, flagged = self._find(scan_strings(texts, self._table.shingling))
        if flagged.any():  # they have no matches yet
            others, found, _ = self._find(scan_flagged(texts, flagged, self._table.shingling))
            keys, found = (
                np.append(keys, others),
                found._replace(documents=np.flatnonzero(flagged)[found.documents]),
            )
            matches = Matches(*map(np.append, matches, found))
        return keys, matches.take(
            np.lexsort((self._table.fields[matches.places], matches.documents))
        )

    def _find(self, scan: Scan) -> tuple[Int32s, Matches, Mask]:
        table, num_documents, longest = (
            self._table,
            len(scan.text.offsets) - 1,
            longest_of(scan.text),
        )
        size, flagged = 3 * longest + 2, np.zeros(num_documents, np.bool_)
        spaces = np.empty(size, np.uint64), np.empty(size, np.int32), np.empty((size, 2), np.int32)
        room = (3 * len(scan.text.data) + num_documents) * len(
            table.lookup.lengths
        )  # never written, never given out
        keys, positions = self._room.hashes(room).view(np.int32).reshape(2, -1)
        buffers = make_buffers(longest)
        ends = kernels.item_shingles.look_up(
            scan, table.lookup, buffers, spaces, keys, positions, flagged
        )
        looked_up = keys[: ends.max(initial=0)], positions, ends
        known = table.postings, table.least_own, table.around.is_counted
        distinct, found = kernels.item_shingles.gather(*looked_up, *known, self._workspace)
        return distinct, Matches(*found.reshape(-1, 3).T), flagged
