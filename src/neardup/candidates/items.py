"""A table of the shingles of short items, which documents of any number stream past."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import kernels
from neardup.arrays import offsets_from_lengths, ranges
from neardup.features.described import Lists
from neardup.features.feature_strings import token_strings
from neardup.features.shingles import Scan, scan_flagged, scan_strings, shingle_documents
from neardup.kernels.token_arrays import longest_of, make_buffers
from neardup.settings.contamination import ContaminationSettings
from neardup.settings.methods import Shingling

LONG = 20
"""From so many shingles on, an item that a document has whole is found there, however many have it."""
WHOLE = 0.95
"""The share of the shingles of a long item that is all of it."""
_BITS_PER_KEY = 16
_LONG_CHARACTER = 0xE0  # the first byte of characters that are a word each, and of few others


class Lookup(NamedTuple):
    """Where hashes of shingles are found. slots : uint64, open addressing; numbers : int32, the key of each slot.

    bits : uint64 words, a filter that the first bits of each hash are set in.
    """

    slots: npt.NDArray[np.uint64]
    numbers: npt.NDArray[np.int32]
    bits: npt.NDArray[np.uint64]


class Coverage(NamedTuple):
    """Which places a key covers: places[offsets[key] : offsets[key + 1]].

    A key of a sequence of words covers the shingles in it, where an item has it. Fields that are shorter than a
    sequence have none: their shingles cover themselves.
    """

    offsets: npt.NDArray[np.int64]
    places: npt.NDArray[np.int32]


class Matches(NamedTuple):
    """Shingles of items found in documents: int32 arrays of the document, the place and the token number of each.

    Rising by document, and by token number within a field of a document.
    """

    documents: npt.NDArray[np.int32]
    places: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int32]

    def take(self, rows: npt.NDArray[Any]) -> Matches:
        """Return some of the matches."""
        return Matches(*(column[rows] for column in self))


@dataclass
class ItemTable:
    """The shingles of all items.

    A *field* is one text of an item. A *place* is a distinct shingle of an item, at its first occurrence. Places are
    those of an item's *own* shingles: such as no more than `settings.common` different items have.

    field_items : int32 by field, rising. ngrams, num_tokens : int64 by field. weights : float64 by field.
    items, fields, positions, keys : int32 by place, in the order of the items; positions are token numbers.
    coverage : which sequences of words are around which places.
    shared : places of the same kind, int64 (num_shared, 3) of field, position and items, of shingles not own.
    num_own : int64 by item. words : the hashes of the words of each field.
    """

    settings: ContaminationSettings
    shingling: Shingling
    num_items: int
    field_items: npt.NDArray[np.int32]
    ngrams: npt.NDArray[np.int64]
    num_tokens: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64]
    items: npt.NDArray[np.int32]
    fields: npt.NDArray[np.int32]
    positions: npt.NDArray[np.int32]
    keys: npt.NDArray[np.int32]
    shared: npt.NDArray[np.int64]
    num_own: npt.NDArray[np.int64]
    words: Lists
    lookup: Lookup
    posting_offsets: npt.NDArray[np.int64]
    posting_places: npt.NDArray[np.int32]
    coverage: Coverage

    @property
    def num_keys(self) -> int:
        """The distinct shingles and sequences."""
        return len(self.posting_offsets) - 1

    @cached_property
    def is_counted(self) -> npt.NDArray[np.bool_]:
        """Return by key whether it covers any place, so that the documents that have it are counted."""
        counted: npt.NDArray[np.bool_] = np.diff(self.coverage.offsets) > 0
        return counted

    def covered_by(self, keys: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
        """Return the places that keys cover, with repeats."""
        offsets = self.coverage.offsets
        return self.coverage.places[ranges(offsets[keys], offsets[keys + 1] - offsets[keys])]

    def around(self, counts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return by place the greatest count of a key that covers it; counts : int64 by key."""
        greatest = np.zeros(len(self.items), np.int64)
        np.maximum.at(greatest, self.coverage.places, np.repeat(counts, np.diff(self.coverage.offsets)))
        return greatest

    @cached_property
    def is_first(self) -> npt.NDArray[np.bool_]:
        """Return by field whether it is the first of its item."""
        first: npt.NDArray[np.bool_] = np.diff(self.field_items, prepend=-1) != 0
        return first

    @cached_property
    def num_first(self) -> npt.NDArray[np.int64]:
        """Return by item how many of its own shingles are of its first field."""
        return np.bincount(self.items[self.is_first[self.fields]], minlength=self.num_items)

    @cached_property
    def parts(self) -> list[tuple[npt.NDArray[np.bool_], npt.NDArray[np.int64], npt.NDArray[np.float64]]]:
        """Return the parts that can show an item, the first field and all: by field whether it is in it; by item its
        own shingles, and their weight."""
        whole = np.ones_like(self.is_first)
        weights = [self.weights * part for part in (self.is_first, whole)]
        totals = [np.bincount(self.items, one[self.fields], self.num_items).astype(np.float64) for one in weights]
        return [(self.is_first, self.num_first, totals[0]), (whole, self.num_own, totals[1])]

    def most_documents(self, is_whole: npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
        """Return by place how many documents may have it before it is boilerplate.

        Half of the setting if no document has the whole item: what several have without the rest of it, is a phrase.
        """
        common = self.settings.common
        most: npt.NDArray[np.int64] = np.where(is_whole, common, (common + 1) // 2)[self.items]
        return most

    def is_decidable(self, num_own: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Return whether so many own shingles are enough to show an item: as many as must be rare."""
        return num_own >= self.settings.min_rare

    def least_of(self, num_own: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Return how many of so many own shingles a document must have to be worth a look; at least 1."""
        share = np.ceil(self.settings.threshold * num_own - 1e-9).astype(np.int64)
        least = np.maximum(share, np.minimum(self.settings.min_shingles, num_own))
        fewest: npt.NDArray[np.int64] = np.maximum(1, np.minimum(least, least_whole(num_own)))
        return fewest

    @cached_property
    def least_own(self) -> npt.NDArray[np.int32]:
        """Return by item how many of its shingles a document must have, be they of the first field alone."""
        least = self.least_of(np.where(self.num_first > 0, self.num_first, self.num_own))
        fewest: npt.NDArray[np.int32] = np.minimum(least, self.least_of(self.num_own)).astype(np.int32)
        is_even = not len(self.weights) or np.ptp(self.weights) == 0
        return fewest if is_even else np.minimum(fewest, self.settings.min_shingles)  # a few may weigh enough

    def widths(self, fields: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """Return in how many positions the shingles of fields must begin: those of half as many words again."""
        tokens = self.num_tokens[fields]
        widths: npt.NDArray[np.int64] = tokens + np.maximum(tokens // 2, 5) - self.ngrams[fields] + 1
        return widths


def sequence_lengths(ngrams: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how many words a sequence has of which too many documents make its shingles boilerplate.

    It is 8 for shingles of 3 words. An ordinary phrase of 3 words is in many documents of a large corpus, one of 8
    is not.
    """
    return 2 * ngrams + 2


def least_whole(num_own: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return how many of so many own shingles are all of an item."""
    return np.where(num_own < LONG, num_own, np.ceil(WHOLE * num_own - 1e-9)).astype(np.int64)


def build_items(
    texts: pa.LargeStringArray,
    field_items: npt.NDArray[np.int32],
    weights: npt.NDArray[np.float64],
    num_items: int,
    settings: ContaminationSettings,
    shingling: Shingling,
) -> ItemTable:
    """Return the table of items.

    Parameters
    ----------
    texts : of all fields, in the order of their items. field_items, weights : by field.
    """
    ngrams, num_tokens = _ngrams(texts, settings, shingling)
    hashes, fields, positions = _shingles(texts, ngrams, num_tokens, shingling)
    words = shingle_documents(texts, replace(shingling, ngram=1, html=None))
    distinct, numbers = np.unique(hashes, return_inverse=True)
    first = np.unique(numbers * num_items + field_items[fields], return_index=True)[1]  # of each shingle of an item
    numbers, fields, positions, items = numbers[first], fields[first], positions[first], field_items[fields[first]]
    same = np.sort(numbers * num_items + _contents(distinct[numbers], items, num_items)[items])
    same = same[np.diff(same, prepend=-1) != 0] // max(1, num_items)
    num_different = np.bincount(same, minlength=len(distinct))
    is_own = num_different <= settings.common
    own = is_own[numbers]
    shared = np.stack([fields[~own], positions[~own], num_different[numbers[~own]]], axis=1).astype(np.int64)
    fields, positions, items, keys = fields[own], positions[own], items[own], (np.cumsum(is_own) - 1)[numbers[own]]
    by_item = np.lexsort((positions, fields))
    places = np.empty(len(by_item), np.int32)
    places[by_item] = np.arange(len(by_item))  # by posting: sorted by key
    key_hashes = distinct[is_own]
    offsets = offsets_from_lengths(np.bincount(keys, minlength=len(key_hashes)))
    places_of = [column[by_item].astype(np.int32) for column in (items, fields, positions, keys)]
    sequences, coverage = _cover(texts, places_of, ngrams, num_tokens, len(key_hashes), shingling)
    offsets = np.append(offsets, np.repeat(offsets[-1:], len(sequences)))  # they have no postings
    return ItemTable(
        settings,
        shingling,
        num_items,
        field_items,
        ngrams,
        num_tokens,
        weights,
        places_of[0],
        places_of[1],
        places_of[2],
        places_of[3],
        shared,
        np.bincount(items, minlength=num_items),
        Lists(words.hashes.copy(), words.offsets),
        _lookup(np.append(key_hashes, sequences)),
        offsets,
        places,
        coverage,
    )


def _cover(
    texts: pa.LargeStringArray,
    places: list[npt.NDArray[np.int32]],
    ngrams: npt.NDArray[np.int64],
    num_tokens: npt.NDArray[np.int64],
    num_keys: int,
    shingling: Shingling,
) -> tuple[npt.NDArray[np.uint64], Coverage]:
    """Return the hashes of the sequences around places, and which cover which.

    places : the items, fields, positions and keys of all places. Sequences are numbered from num_keys on.
    """
    _, fields, positions, keys = places
    lengths = sequence_lengths(ngrams)
    hashes, of_field, starts = _shingles(texts, lengths, num_tokens, shingling)
    at = fields.astype(np.int64) << 32 | positions
    low = np.searchsorted(at, of_field << 32 | starts)
    high = np.searchsorted(at, of_field << 32 | (starts + (lengths - ngrams)[of_field]), "right")
    sequences, numbers = np.unique(hashes[high > low], return_inverse=True)
    sizes = (high - low)[high > low]
    short = np.flatnonzero((num_tokens < lengths)[fields])
    covering = np.append(np.repeat(numbers + num_keys, sizes), keys[short])
    covered = np.append(ranges(low[high > low], sizes), short)
    order = np.argsort(covering, kind="stable")
    counts = np.bincount(covering, minlength=num_keys + len(sequences))
    return sequences, Coverage(offsets_from_lengths(counts), covered[order].astype(np.int32))


def _ngrams(
    texts: pa.LargeStringArray, settings: ContaminationSettings, shingling: Shingling
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the length of the shingles of each field, and its tokens."""
    tokens = token_strings(texts, shingling)
    counts = np.diff(tokens.document_offsets)
    first = np.append(tokens.data, np.uint8(0))[tokens.offsets[:-1]]
    is_character = (first >= _LONG_CHARACTER) & (np.diff(tokens.offsets) <= 4)
    of_field = np.repeat(np.arange(len(texts)), counts)
    characters = np.bincount(of_field, is_character, minlength=len(texts))
    return np.where(2 * characters > counts, 2 * settings.ngram - 1, settings.ngram), counts


def _shingles(
    texts: pa.LargeStringArray, ngrams: npt.NDArray[np.int64], num_tokens: npt.NDArray[np.int64], shingling: Shingling
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the hash, the field and the position of each shingle; fields of fewer words than one have none."""
    parts = []
    for ngram in np.unique(ngrams).tolist():
        chosen = np.flatnonzero((ngrams == ngram) & (num_tokens >= ngram))
        found = shingle_documents(texts.take(pa.array(chosen)), replace(shingling, ngram=ngram))
        sizes = np.diff(found.offsets)
        parts.append((found.hashes.copy(), np.repeat(chosen, sizes), ranges(0, sizes)))
    if not parts:
        return np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64)
    hashes, fields, positions = (np.concatenate(column) for column in zip(*parts, strict=True))
    return hashes, fields, positions


def _contents(hashes: npt.NDArray[np.uint64], items: npt.NDArray[Any], num_items: int) -> npt.NDArray[np.int64]:
    """Return a number for each item, the same for items with the same shingles."""
    sums = np.zeros(num_items, np.uint64)
    np.add.at(sums, items, hashes)  # modulo 2^64; the sets are of hashes already
    return np.unique(sums, return_inverse=True)[1]


def _lookup(hashes: npt.NDArray[np.uint64]) -> Lookup:
    size = 1 << max(4, (2 * len(hashes)).bit_length())
    words = 1 << max(4, (_BITS_PER_KEY * len(hashes) // 64).bit_length())
    lookup = Lookup(np.zeros(size, np.uint64), np.full(size, -1, np.int32), np.zeros(words, np.uint64))
    kernels.item_shingles.fill_table(hashes, *lookup)
    return lookup


class Finder:
    """Finds the shingles of items in batches of documents; for one thread at a time."""

    def __init__(self, table: ItemTable) -> None:
        self._table = table
        ngrams = table.ngrams if len(table.ngrams) else np.array([table.settings.ngram])
        self._ngrams = np.stack([np.unique(ngrams), sequence_lengths(np.unique(ngrams))], axis=1).ravel()
        sizes = table.num_items, table.num_keys, table.num_items
        self._workspace = tuple(np.zeros(size, np.int32) for size in sizes)

    def find(self, texts: pa.Array) -> tuple[npt.NDArray[np.int32], Matches]:
        """Return the distinct counted keys of each document, and the matches of items worth a look.

        Parameters
        ----------
        texts : as `extract_text` returns them.
        """
        table = self._table
        scan = scan_strings(texts, table.shingling)
        keys, positions, ends, flagged = self._look_up(scan)
        if flagged.any():
            keys, positions, ends = self._with_flagged(texts, keys, positions, ends, flagged)
        postings = table.posting_offsets, table.posting_places, table.items
        most = int((table.posting_offsets[keys + 1] - table.posting_offsets[keys]).sum())
        distinct, found = np.empty(len(keys), np.int32), tuple(np.empty(most, np.int32) for _ in range(3))
        num_distinct, num_found = kernels.item_shingles.gather(
            keys, positions, ends, table.is_counted, postings, table.least_own, self._workspace, distinct, found
        )
        return distinct[:num_distinct], Matches(*(column[:num_found] for column in found))

    def _look_up(self, scan: Scan) -> tuple[npt.NDArray[Any], ...]:
        num_documents, ngrams = len(scan.text.offsets) - 1, self._ngrams
        room = (3 * len(scan.text.data) + num_documents) * len(ngrams)  # never written, never given out
        keys, positions = np.empty(room, np.int32), np.empty(room, np.int32)
        ends, flagged = np.empty(num_documents, np.int64), np.zeros(num_documents, np.bool_)
        longest = longest_of(scan.text)
        hashes = np.empty(3 * longest + 2, np.uint64)
        kernels.item_shingles.look_up(
            scan, ngrams, self._table.lookup, make_buffers(longest), hashes, keys, positions, ends, flagged
        )
        count = int(ends[-1]) if num_documents else 0
        return keys[:count], positions[:count], ends, flagged

    def _with_flagged(
        self,
        texts: pa.Array,
        keys: npt.NDArray[np.int32],
        positions: npt.NDArray[np.int32],
        ends: npt.NDArray[np.int64],
        flagged: npt.NDArray[np.bool_],
    ) -> tuple[npt.NDArray[Any], ...]:
        """Return the same with the shingles of the documents that are normalised as a whole."""
        others, other_positions, other_ends, _ = self._look_up(scan_flagged(texts, flagged, self._table.shingling))
        sizes = np.diff(ends, prepend=0)
        documents = np.repeat(np.arange(len(ends)), sizes)
        sizes[flagged] = np.diff(other_ends, prepend=0)
        documents = np.append(documents, np.repeat(np.flatnonzero(flagged), sizes[flagged]))
        order = np.argsort(documents, kind="stable")
        both = np.append(keys, others)[order], np.append(positions, other_positions)[order]
        return *both, np.cumsum(sizes)
