"""Find the shingles of short items in documents: a table of items, past which documents stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import kernels
from neardup.arrays import (
    Array,
    Bytes,
    Floats,
    Int32s,
    Mask,
    Rows,
    Words,
    arrow_of,
    begins_run,
    offsets_from_lengths,
)
from neardup.candidates.item_views import View, views_of
from neardup.features.described import Lists, distinct_features
from neardup.features.feature_strings import token_strings
from neardup.features.shingles import Scan, scan_flagged, scan_strings, shingle_documents
from neardup.features.workspaces import Workspace
from neardup.kernels.token_arrays import longest_of, make_buffers
from neardup.settings.contamination import ContaminationSettings
from neardup.settings.methods import Shingling

WORDS, ANSWER, STRUCTURE = range(3)
"""The kinds of fields: a text; the text of an answer; the tokens of code by their kinds."""
_STRUCTURE_FACTOR = 4  # shingles of structure have as many times the words
_MAX_NGRAM = 64  # of any field
_BITS_PER_SHINGLE = 16  # of the filter
_MAX_FILTER_BITS = 1 << 23  # 1 MiB, which the caches of a processor hold
_LONG_CHARACTER = 0xE0  # the first byte of characters that are a word each, and of few others


class Lookup(NamedTuple):
    """The tables in which hashes of shingles and sequences are looked up.

    lengths : int64, the lengths in words of shingles and sequences, the shortest shingles first.
    slots : uint64, a hash table with open addressing. A slot has the upper bits of a hash, and in
    its lower bits the number of the hash's key plus 1, or 0 if no document needs the key. bits :
    uint64, a filter. Each of the shortest shingles of any field has two bits in the word hash >>
    shift.
    """

    lengths: Rows
    slots: Words
    bits: Words
    shift: np.uint64


class Around(NamedTuple):
    """The sequences of words around entries.

    The keys around entry i are keys[first[i] : first[i] + sizes[i]], at least one. In a field that
    is shorter than a sequence, the shingle itself is the sequence. is_counted : bool by key,
    whether it is around any entry.
    """

    keys: Int32s
    first: Rows
    sizes: Rows
    is_counted: Mask


class Postings(NamedTuple):
    """The entries of each key.

    offsets : int32, the postings of key i are offsets[i] to offsets[i + 1]. entries, items : int32
    by posting, the entry, and its item.
    """

    offsets: Int32s
    entries: Int32s
    items: Int32s


class Matches(NamedTuple):
    """Shingles of items found in documents, sorted by document.

    documents : integers. entries : int32, the entry of the item. positions : int32, the token
    number in the document, rising within a field of a document.
    """

    documents: Array
    entries: Int32s
    positions: Int32s

    def take(self, rows: Array) -> Matches:
        """Return some of the matches."""
        return Matches(*(column[rows] for column in self))


class CommonShingles(NamedTuple):
    """Shingles that do not count, in the order of the fields.

    fields, positions : integers (num_shingles,), the field and the position in it. counts : int64
    (num_shingles,), the documents or the items that have the shingle.
    """

    fields: Array
    positions: Array
    counts: Rows

    def take(self, rows: Array) -> CommonShingles:
        """Return some of the shingles. rows : their indices, or a mask."""
        return CommonShingles(*(column[rows] for column in self))


@dataclass(kw_only=True)
class ItemTable:
    """The shingles of all items.

    A *field* is one text of an item. An *entry* is a distinct shingle of an item, at its first
    occurrence, which no more than `settings.common` different items have. A *key* is a distinct
    shingle or sequence, of any item.

        item      | item 0                    | item 1          |
        field     | question    | answer      | question        |      texts, weights, ngrams
        entry     | 0 | 1 | 2   | 3 | 4       | 5 | 6 | 7 | 8   |      items, fields, positions
        key       | 0 | 1 | 2   | 0 | 3       | 4 | 1 | 5 | 6   |      entries 1 and 6 are equal

    texts : the texts of all fields, as their views read them. views, lookups : by view, words
    first. field_items : int32 by field, its item, rising. kinds : uint8 by field, WORDS, ANSWER or
    STRUCTURE. weights : float64 by field. ngrams : int64 by field, the
    words of a shingle. words : the hashes of the words of each field. items, fields, positions :
    int32 by entry, sorted by item; positions are token numbers. is_own : bool by entry, whether no
    other item has it, except items of the same shingles. shared : the distinct shingles of items
    that too many items have for an entry.
    """

    settings: ContaminationSettings
    shingling: Shingling
    num_items: int
    texts: pa.LargeStringArray
    views: list[View]
    field_items: Int32s
    kinds: Bytes
    weights: Floats
    ngrams: Rows
    words: Lists
    items: Int32s
    fields: Int32s
    positions: Int32s
    is_own: Mask
    shared: CommonShingles
    postings: Postings
    around: Around
    lookups: list[Lookup]

    def max_around(self, counts: Rows, entries: Array | slice) -> Rows:
        """Return the largest count of a sequence around each of some entries.

        counts : int64 by key.
        """
        around = self.around
        return np.asarray(
            kernels.item_shingles.max_counts(
                counts, around.keys, around.first[entries], around.sizes[entries]
            )
        )

    @cached_property
    def num_tokens(self) -> Rows:
        """The number of words, by field."""
        return np.diff(self.words.offsets)

    @cached_property
    def has_words(self) -> Mask:
        """Mask of the fields whose shingles are words."""
        return np.asarray(self.kinds != STRUCTURE)

    @cached_property
    def view_numbers(self) -> Rows:
        """The view of each field, int64."""
        return _view_numbers(self.kinds)

    @cached_property
    def is_first(self) -> Mask:
        """Mask of the fields that are the first of their item."""
        return begins_run(self.field_items)

    def count_entries(self, fields: Mask) -> Rows:
        """Return the number of entries in some fields, by item. fields : bool by field."""
        return np.bincount(self.items[fields[self.fields]], minlength=self.num_items)

    @cached_property
    def num_entries(self) -> Rows:
        """The number of entries of words, by item."""
        return self.count_entries(self.has_words)

    @cached_property
    def num_first(self) -> Rows:
        """The number of entries in the first field, by item."""
        return self.count_entries(self.is_first)

    def max_documents(self, is_whole: Mask) -> Rows:
        """Return the number of documents that may have each entry before it is boilerplate.

        Half of the setting if no document has the whole item: a text that several documents have
        without the rest of the item is a phrase. is_whole : bool by item.
        """
        common = self.settings.common
        return np.where(is_whole[self.items], common, (common + 1) // 2)


def sequence_lengths(ngrams: Rows) -> Rows:
    """Return the words of the sequences whose frequency shows that a shingle is boilerplate.

    It is 8 for shingles of 3 words. An ordinary phrase of 3 words is in many documents of a large
    corpus, one of 8 is not.
    """
    return 2 * ngrams + 2


def build_items(
    texts: pa.LargeStringArray,
    field_items: Int32s,
    weights: Floats,
    kinds: Bytes,
    *,
    num_items: int,
    settings: ContaminationSettings,
    shingling: Shingling,
) -> ItemTable:
    """Return the table of items.

    Parameters
    ----------
    texts : the texts of all fields, sorted by item.
    field_items, weights, kinds : the item, the weight and the kind of each field.
    """
    views = views_of(settings, shingling)
    all_fields = _read_fields(texts, _view_numbers(kinds), views)
    words = all_fields.shingles(np.ones(len(texts), np.int64))
    cut = _cut_fields(all_fields, _ngrams(all_fields, settings))

    distinct = _distinct(cut.shingles, field_items, num_items)
    numbered = _number_keys(distinct.hashes, cut.sequences.hashes)
    num_sharing = _count_items(distinct, numbered, field_items)
    is_entry = num_sharing <= settings.common
    fields = distinct.fields[is_entry]
    positions = distinct.positions[is_entry]

    around = _find_around(fields, positions, cut, numbered)
    postings = _list_postings(numbered, is_entry, field_items[fields])
    kernels.item_shingles.drop_keys(numbered.slots, around.is_counted, postings.offsets)
    return ItemTable(
        settings=settings,
        shingling=shingling,
        num_items=num_items,
        texts=all_fields.texts,
        views=views,
        field_items=field_items,
        kinds=kinds,
        weights=weights,
        ngrams=cut.ngrams,
        words=Lists(words.hashes, offsets_from_lengths(words.counts)),
        items=field_items[fields],
        fields=fields,
        positions=positions,
        is_own=num_sharing[is_entry] == 1,
        shared=CommonShingles(distinct.fields, distinct.positions, num_sharing).take(~is_entry),
        postings=postings,
        around=around,
        lookups=[
            _make_lookup(all_fields, view, cut.ngrams, numbered.slots) for view in range(len(views))
        ],
    )


def _list_postings(numbered: _Numbered, is_entry: Mask, items: Int32s) -> Postings:
    """Return the entries of each key. is_entry : by shingle; items : by entry."""
    keys = numbered.shingles[is_entry]
    offsets, entries = kernels.item_shingles.invert(keys, numbered.num_keys)
    return Postings(offsets, entries, items[entries])


def _view_numbers(kinds: Bytes) -> Rows:
    """Return the view of fields by their kinds, as numbers of `views_of`."""
    return np.asarray(kinds == STRUCTURE, np.int64)


def _read_fields(texts: pa.LargeStringArray, view_numbers: Rows, views: list[View]) -> _FieldTexts:
    """Return the texts of fields as their views read them. view_numbers : int64 by field."""
    num_tokens = np.empty(len(texts), np.int64)
    for number, view in enumerate(views):
        is_viewed = view_numbers == number
        read = view.read(texts.filter(arrow_of(is_viewed)))
        texts = pc.replace_with_mask(texts, arrow_of(is_viewed), read)
        words = shingle_documents(read, replace(view.shingling, ngram=1))
        num_tokens[is_viewed] = np.diff(words.offsets)
    return _FieldTexts(texts, num_tokens, view_numbers, [view.shingling for view in views])


def _ngrams(all_fields: _FieldTexts, settings: ContaminationSettings) -> Rows:
    """Return the words of a shingle of each field: more where words are mostly one character, and
    for the structure of code.
    """
    ngrams = np.full(len(all_fields.texts), settings.ngram)
    is_words = all_fields.view_numbers == 0
    is_ascii = np.asarray(pc.string_is_ascii(all_fields.texts), np.bool_)
    rows = np.flatnonzero(is_words & ~is_ascii)
    tokens = token_strings(all_fields.texts.take(arrow_of(rows)), all_fields.shinglings[0])
    first_bytes = np.append(tokens.data, np.uint8(0))[tokens.offsets[:-1]]
    is_character = (first_bytes >= _LONG_CHARACTER) & (np.diff(tokens.offsets) <= 4)
    num_characters = np.diff(offsets_from_lengths(is_character)[tokens.document_offsets])
    num_tokens = np.diff(tokens.document_offsets)
    ngrams[rows[2 * num_characters > num_tokens]] = 2 * settings.ngram - 1
    ngrams[~is_words] = _STRUCTURE_FACTOR * settings.ngram
    return ngrams


class _Shingles(NamedTuple):
    """The hashes of the shingles of all fields, uint64, and their number by field, int64."""

    hashes: Words
    counts: Rows


@dataclass(frozen=True)
class _FieldTexts:
    """The texts of fields as their views read them.

    num_tokens, view_numbers : int64 by field. shinglings : by view.
    """

    texts: pa.LargeStringArray
    num_tokens: Rows
    view_numbers: Rows
    shinglings: list[Shingling]

    def of_view(self, view: int) -> _FieldTexts:
        """Return the fields of one view."""
        rows = np.flatnonzero(self.view_numbers == view)
        return replace(
            self,
            texts=self.texts.take(arrow_of(rows)),
            num_tokens=self.num_tokens[rows],
            view_numbers=self.view_numbers[rows],
        )

    def shingles(self, ngrams: Rows) -> _Shingles:
        """Return the shingles of each field. Fields of fewer words than a shingle have none.

        ngrams : int64 by field, the words of a shingle.
        """
        counts = np.maximum(0, self.num_tokens - ngrams + 1)
        hashes = np.empty(counts.sum(), np.uint64)
        for view, shingling in enumerate(self.shinglings):
            may_be_cut = (self.view_numbers == view) & (counts > 0)
            for ngram in np.unique(ngrams[may_be_cut]).tolist():
                chosen = may_be_cut & (ngrams == ngram)
                options = replace(shingling, ngram=ngram)
                found = shingle_documents(self.texts.filter(arrow_of(chosen)), options)
                hashes[np.repeat(chosen, counts)] = found.hashes
        return _Shingles(hashes, counts)


class _CutFields(NamedTuple):
    """The shingles and the sequences of all fields.

    ngrams : int64 by field, the words of a shingle. num_later : int32 by field, the shingles that a
    sequence has after its first.
    """

    ngrams: Rows
    shingles: _Shingles
    sequences: _Shingles
    num_later: Int32s


def _cut_fields(all_fields: _FieldTexts, ngrams: Rows) -> _CutFields:
    """Return the shingles and the sequences of fields; short fields have shingles as sequences."""
    lengths = sequence_lengths(ngrams)
    lengths = np.where(all_fields.num_tokens < lengths, ngrams, lengths)
    return _CutFields(
        ngrams=ngrams,
        shingles=all_fields.shingles(ngrams),
        sequences=all_fields.shingles(lengths),
        num_later=(lengths - ngrams).astype(np.int32),
    )


class _DistinctShingles(NamedTuple):
    """The distinct shingles of each item, at their first occurrence.

    hashes : uint64. fields, positions : int32. is_new : bool by item, false if an earlier item has
    the same shingles.
    """

    hashes: Words
    fields: Int32s
    positions: Int32s
    is_new: Mask


def _distinct(shingles: _Shingles, field_items: Int32s, num_items: int) -> _DistinctShingles:
    """Return the distinct shingles of each item."""
    field_offsets = offsets_from_lengths(shingles.counts)
    first_fields = np.searchsorted(field_items, np.arange(num_items + 1))
    distinct = distinct_features(shingles.hashes, field_offsets[first_fields])
    is_first = np.zeros(len(shingles.hashes), np.bool_)
    is_first[distinct.firsts] = True
    first = np.flatnonzero(is_first)

    # Items of the same shingles are recognised by the sum of their hashes.
    sums = np.append(np.uint64(0), np.cumsum(distinct.hashes))[distinct.offsets]
    new_items = np.unique(np.diff(sums), return_index=True)[1]
    is_new = np.zeros(len(sums) - 1, np.bool_)
    is_new[new_items] = True

    all_fields = np.arange(len(shingles.counts), dtype=np.int32)
    fields = np.repeat(all_fields, shingles.counts)[first]
    positions = (first - field_offsets[fields]).astype(np.int32)
    return _DistinctShingles(
        hashes=shingles.hashes[first],
        fields=fields,
        positions=positions,
        is_new=is_new,
    )


class _Numbered(NamedTuple):
    """Numbered hashes.

    slots : see `Lookup`. shingles, sequences : int32, the key of each. num_keys : their number.
    """

    slots: Words
    shingles: Int32s
    sequences: Int32s
    num_keys: int


def _number_keys(shingles: Words, sequences: Words) -> _Numbered:
    """Number the distinct hashes of shingles and sequences."""
    size = len(shingles) + len(sequences)
    slots = np.zeros(1 << (size + size // 2 + 16).bit_length(), np.uint64)
    number_hashes = kernels.item_shingles.number_hashes
    of_shingles, num_keys = number_hashes(shingles, slots, 0)
    of_sequences, num_keys = number_hashes(sequences, slots, num_keys)
    return _Numbered(
        slots=slots,
        shingles=of_shingles,
        sequences=of_sequences,
        num_keys=num_keys,
    )


def _find_around(fields: Int32s, positions: Int32s, cut: _CutFields, numbered: _Numbered) -> Around:
    """Return the sequences that contain each entry. fields, positions : by entry."""
    num_sequences = cut.sequences.counts
    first = np.maximum(0, positions - cut.num_later[fields])
    last = np.minimum(positions, num_sequences.astype(np.int32)[fields] - 1)
    around = Around(
        keys=numbered.sequences,
        first=first + offsets_from_lengths(num_sequences)[fields],
        sizes=last - first + 1,
        is_counted=np.zeros(numbered.num_keys, np.bool_),
    )
    kernels.item_shingles.mark_ranges(around.keys, around.first, around.sizes, around.is_counted)
    return around


def _make_lookup(all_fields: _FieldTexts, view: int, ngrams: Rows, slots: Words) -> Lookup:
    """Return the tables in which hashes of one view are looked up. ngrams : int64 by field."""
    fields = all_fields.of_view(view)
    ngrams = ngrams[all_fields.view_numbers == view]
    # Fields with longer shingles are found by their shortest ones, too.
    shortest = int(ngrams.min(initial=_MAX_NGRAM))
    bits, shift = _make_filter(fields.shingles(np.full(len(ngrams), shortest)).hashes)
    return Lookup(_lookup_lengths(ngrams, shortest), slots, bits, shift)


def _count_items(distinct: _DistinctShingles, numbered: _Numbered, field_items: Int32s) -> Rows:
    """Return the number of different items that have each distinct shingle."""
    is_counted = distinct.is_new[field_items[distinct.fields]]
    num_items = np.bincount(numbered.shingles[is_counted], minlength=numbered.num_keys)
    return num_items[numbered.shingles]


def _lookup_lengths(ngrams: Rows, shortest: int) -> Rows:
    """Return the lengths of shingles and sequences, the shortest shingles first."""
    of_shingles = np.unique(np.append(ngrams, shortest))
    lengths = np.append(of_shingles, sequence_lengths(of_shingles))
    return np.append(shortest, np.setdiff1d(lengths, shortest))


def _make_filter(shortest: Words) -> tuple[Words, np.uint64]:
    """Return the filter of `Lookup`, and its shift.

    shortest : uint64, the shortest shingles of all fields.
    """
    num_bits = 1 << (_BITS_PER_SHINGLE * len(shortest) + 64).bit_length()
    bits = np.zeros(min(_MAX_FILTER_BITS, num_bits) // 64, np.uint64)
    shift = np.uint64(64 - (len(bits) - 1).bit_length())
    kernels.item_shingles.fill_filter(shortest, bits, shift)
    return bits, shift


class Finder:
    """Finds the shingles of items in batches of documents; for one thread at a time.

    min_entries : by view, int32 by item, the minimum number of entries in a document that is worth
    a look.
    """

    def __init__(self, table: ItemTable, min_entries: Sequence[Int32s]) -> None:
        self._table = table
        self._min_entries = min_entries
        self._buffer = Workspace()
        num_keys = len(table.around.is_counted)
        self._workspace = kernels.item_shingles.Workspace(
            counts=np.zeros(table.num_items, np.int32),
            seen=np.zeros(num_keys + 1, np.int32),
            touched=np.zeros(table.num_items + 1, np.int32),
        )

    def find(self, texts: pa.Array) -> tuple[Int32s, Matches]:
        """Return the distinct counted keys of each document, and the matches of items worth a look.

        Parameters
        ----------
        texts : string array, as `extract_text` returns it.
        """
        parts = [part for view in range(len(self._table.views)) for part in self._find(texts, view)]
        keys = np.concatenate([part.keys for part in parts])
        matches = Matches(*map(np.concatenate, zip(*(part.matches for part in parts), strict=True)))
        order = np.lexsort((self._table.fields[matches.entries], matches.documents))
        return keys, matches.take(order)

    def _find(self, texts: pa.Array, view: int) -> Iterator[_Found]:
        """Yield the findings in one view: of most texts, then of flagged ones."""
        shingling = self._table.views[view].shingling
        texts = self._table.views[view].read(texts)
        found = self._scan(scan_strings(texts, shingling), view)
        yield found
        if found.is_flagged.any():  # flagged documents have no matches yet
            others = self._scan(scan_flagged(texts, found.is_flagged, shingling), view)
            documents = np.flatnonzero(found.is_flagged)[others.matches.documents]
            yield others._replace(matches=others.matches._replace(documents=documents))

    def _scan(self, scan: Scan, view: int) -> _Found:
        table = self._table
        lookup = table.lookups[view]
        num_documents = len(scan.text.offsets) - 1
        longest = longest_of(scan.text)
        # Room for the worst case; the system allocates only the pages that are written.
        max_keys = (3 * len(scan.text.data) + num_documents) * len(lookup.lengths)
        keys, positions = self._buffer.hashes(max_keys).view(np.int32).reshape(2, -1)
        is_flagged = np.zeros(num_documents, np.bool_)
        ends = kernels.item_shingles.look_up(
            scan,
            lookup,
            make_buffers(longest),
            _make_spaces(3 * longest + 2),
            keys,
            positions,
            is_flagged,
        )
        distinct, found = kernels.item_shingles.gather(
            keys[: ends.max(initial=0)],
            positions,
            ends,
            table.postings,
            self._min_entries[view],
            table.around.is_counted,
            self._workspace,
        )
        return _Found(distinct, Matches(*found.reshape(-1, 3).T), is_flagged)


def _make_spaces(size: int) -> kernels.item_shingles.Spaces:
    """Return working space for a document of up to `size` shingles."""
    return kernels.item_shingles.Spaces(
        hashes=np.empty(size, np.uint64),
        chosen=np.empty(size, np.int32),
        runs=np.empty((size, 2), np.int32),
    )


class _Found(NamedTuple):
    """The result of one scan.

    keys : int32, the distinct counted keys of each document. is_flagged : bool by document, see
    `scan_flagged`; flagged documents are not searched.
    """

    keys: Int32s
    matches: Matches
    is_flagged: Mask
