"""Look up the shingles of documents in a table of the shingles of short items, and find the
stretches with most of them.

Numbers are as in candidates/items.py: a key is a shingle or a sequence that some items have. An
entry is a distinct shingle of an item. A field is one of the texts of an item. A position is the
number of a token in a document.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.compiled import I64, U64, kernel
from neardup.kernels.intrinsics import address_of, prefetch
from neardup.kernels.mixing import double
from neardup.kernels.tokens import hash_ascii, roll, shingle_document

_AHEAD = 12  # keys or hashes that memory is fetched ahead of its use
_MAX_DOCUMENTS = 2**31 - 1  # the largest number of a document in `_Workspace.seen`, int32
_MAX_EXTENSION = 256  # words on one side of a match
_INITIAL_NUMBERS = 1 << 14  # of found matches, three each; the array doubles when it is full


class Spaces(NamedTuple):
    """Working space for the shingles of one document. hashes : uint64; chosen : int32, indices of
    hashes; runs : int32 (.., 2).
    """

    hashes: np.ndarray
    chosen: np.ndarray
    runs: np.ndarray


class Workspace(NamedTuple):
    """Working space of `gather`, int32, zeros at first.

    counts : by item, its distinct shingles in the document; zeros between documents.
    seen : by key, the number of the last document that has it; the last entry is the number of the
        last document of all.
    touched : the items with a count, with room for all and one more.
    """

    counts: np.ndarray
    seen: np.ndarray
    touched: np.ndarray


class _Keys(NamedTuple):
    """Keys of documents, and the position of each, int32."""

    keys: np.ndarray
    positions: np.ndarray


class _Span(NamedTuple):
    """The keys of one document: keys[start:stop]."""

    start: int
    stop: int


class _Matches(NamedTuple):
    """Matches in the order of positions. entries, positions : int32; is_rare : bool."""

    entries: np.ndarray
    positions: np.ndarray
    is_rare: np.ndarray


class _Window(NamedTuple):
    """A window of matches. first : its first match; num_distinct, num_rare : its distinct entries,
    and the rare ones.
    """

    first: int
    num_distinct: int
    num_rare: int


class _Texts(NamedTuple):
    """Words, and by match the text of its words. words : uint64; limits : int64 (2, num_matches),
    the first word of the text and the one after its last; positions : int64, its first word.
    """

    words: np.ndarray
    limits: np.ndarray
    positions: np.ndarray


@kernel(allocates=True)
def number_hashes(hashes, slots, count):
    """Insert hashes into a table that already has `count`; an empty slot is 0. See `Lookup`.

    Return their numbers, int32, by first occurrence, and the new number of hashes in the table.
    """
    base = address_of(slots)
    mask = U64(len(slots) - 1)
    numbers = np.empty(len(hashes), np.int32)
    for i in range(len(hashes)):
        if i + _AHEAD < len(hashes):
            prefetch(base + 8 * I64(hashes[i + _AHEAD] & mask))
        slot = _slot_of(hashes[i], slots, mask)
        if slots[slot] == U64(0):
            count += 1
            slots[slot] = (hashes[i] & ~mask) | U64(count)
        numbers[i] = I64(slots[slot] & mask) - 1
    return numbers, count


@kernel
def _slot_of(value, slots, mask):
    """Return the slot of a hash, or the empty slot for it."""
    slot = value & mask
    while slots[slot] != U64(0) and (slots[slot] ^ value) & ~mask != U64(0):
        slot = (slot + U64(1)) & mask
    return slot


@kernel
def drop_keys(slots, is_counted, offsets):
    """Remove the hashes of keys that are not counted and have no posting."""
    mask = U64(len(slots) - 1)
    for i in range(len(slots)):
        key = I64(slots[i] & mask) - 1
        if key < 0 or slots[i] <= mask:
            continue
        if not is_counted[key] and offsets[key] == offsets[key + 1]:
            slots[i] &= ~mask  # not 0, which would end the search for other hashes


@kernel(allocates=True)
def invert(keys, num_keys):
    """Return the entries of each key, int32, rising: offsets by key, and entries.

    keys : int32 by entry.
    """
    # A counting sort. offsets[key + 1] is the start of a key until its entries are written, and
    # then its end, which is the start of the next key.
    offsets = np.zeros(num_keys + 2, np.int32)
    entries = np.empty(len(keys), np.int32)
    for key in keys:
        offsets[key + 2] += 1
    for i in range(2, len(offsets)):
        offsets[i] += offsets[i - 1]
    for i in range(len(keys)):
        entries[offsets[keys[i] + 1]] = i
        offsets[keys[i] + 1] += 1
    return offsets[:-1], entries


@kernel
def _bits_of(value):
    """Return the bits of a hash in its word of a filter: two bits, which may coincide."""
    return (U64(1) << (value & U64(63))) | (U64(1) << ((value >> U64(6)) & U64(63)))


@kernel
def fill_filter(hashes, bits, shift):
    """Set the bits of hashes; see `Lookup`."""
    for value in hashes:
        bits[value >> shift] |= _bits_of(value)


@kernel
def _select(hashes, count, bits, shift, chosen):
    """Write the indices of the first `count` hashes that pass a filter; return their number."""
    num_chosen = 0
    for i in range(count):
        wanted = _bits_of(hashes[i])
        chosen[num_chosen] = i  # always, and counted if the hash passes: no branch to mispredict
        num_chosen += 1 if bits[hashes[i] >> shift] & wanted == wanted else 0
    return num_chosen


@kernel
def _find(hashes, chosen, slots, keys, positions, count):
    """Append the keys of chosen hashes that are in the table, and their indices; return the
    count.
    """
    base = address_of(slots)
    mask = U64(len(slots) - 1)
    for i in range(len(chosen)):
        if i + _AHEAD < len(chosen):
            prefetch(base + 8 * I64(hashes[chosen[i + _AHEAD]] & mask))
        slot = _slot_of(hashes[chosen[i]], slots, mask)
        # Written always, and counted if the hash is in the table: see `_select`.
        keys[count] = I64(slots[slot] & mask) - 1
        positions[count] = chosen[i]
        count += 1 if slots[slot] & mask != U64(0) else 0
    return count


@kernel
def _find_runs(chosen, min_length, runs):
    """Write the first and the last of each run of `min_length` or more successive numbers; return
    the number of runs.
    """
    num_runs = first = 0
    for i in range(1, len(chosen) + 1):
        if i == len(chosen) or chosen[i] != chosen[i - 1] + 1:
            runs[num_runs, 0] = chosen[first]
            runs[num_runs, 1] = chosen[i - 1]
            num_runs += 1 if i - first >= min_length else 0
            first = i
    return num_runs


@kernel
def _hash_runs(tokens, runs, num_tokens, length, hashes, chosen):
    """Write the hash of each sequence of `length` words inside runs of shingles, at its first word;
    return their number.

    num_tokens : the length of a shingle. chosen : int32, set to the first word of each sequence.
    """
    count = 0
    for i in range(len(runs)):
        begin = I64(runs[i, 0])
        size = runs[i, 1] - runs[i, 0] + num_tokens
        if size >= length:
            # The hashes of shingles are no longer needed: hashes of sequences replace them.
            for position in range(begin, roll(tokens[begin:], size, length, hashes, begin)):
                chosen[count] = position
                count += 1
    return count


@kernel(allocates=True)
def look_up(scan, lookup, buffers, spaces, keys, positions, flagged):
    """Write the key and the position, a token number, of each shingle and sequence of documents
    that is in the table.

    scan, lookup : `Scan` and `Lookup`. spaces : Spaces. keys, positions : int32, with room for
    every shingle and sequence. flagged : see `shingle_document`.

    Return the number of keys up to the end of each document, int64.
    """
    text = scan.text
    hashes = spaces.hashes
    chosen = spaces.chosen
    ascii_hashes = hash_ascii(scan.mode)
    shortest = lookup.lengths[0]
    count = 0
    ends = np.empty(len(text.offsets) - 1, I64)
    for document in range(len(ends)):
        data = text.data[text.offsets[document] : text.offsets[document + 1]]
        _, end, flagged[document] = shingle_document(
            data, scan.tables, scan.mode, shortest, buffers, ascii_hashes, hashes, 0
        )
        num_chosen = _select(hashes, end, lookup.bits, lookup.shift, chosen)
        count = _find(hashes, chosen[:num_chosen], lookup.slots, keys, positions, count)
        count = _find_sequences(buffers.tokens, lookup, spaces, num_chosen, keys, positions, count)
        ends[document] = count
    return ends


@kernel
def _find_sequences(tokens, lookup, spaces, num_chosen, keys, positions, count):
    """Append the keys and positions of sequences to the first `count`; return the new count.

    Sequences consist of the shortest shingles of items, so that few are looked up: in runs of
    chosen shingles with as many as the shortest sequence has, or more.
    """
    shortest = lookup.lengths[0]
    min_run = lookup.lengths[1] - shortest + 1
    num_runs = _find_runs(spaces.chosen[:num_chosen], min_run, spaces.runs)
    runs = spaces.runs[:num_runs]
    for length in lookup.lengths[1:]:
        num_hashes = _hash_runs(tokens, runs, shortest, length, spaces.hashes, spaces.chosen)
        chosen = spaces.chosen[:num_hashes]
        count = _find(spaces.hashes, chosen, lookup.slots, keys, positions, count)
    return count


@kernel(allocates=True)
def gather(keys, positions, ends, postings, min_shingles, is_counted, work):
    """Return the distinct counted keys of each document, and the matches of the items that have
    enough shingles in it.

    Parameters
    ----------
    ends : int64 by document, the number of keys up to its end.
    postings : `Postings`: offsets by key, entries and items by posting.
    min_shingles : int32 by item, the number of its shingles that a document must have.
    is_counted : bool by key.
    work : Workspace.

    Returns
    -------
    keys : int32. matches : int32, three numbers each: document | entry | position | document | ...
    """
    occurrences = _Keys(keys=keys, positions=positions)
    distinct = np.empty(len(keys), np.int32)
    num_distinct = 0
    found = np.empty(_INITIAL_NUMBERS, np.int32)
    num_found = 0
    if work.seen[-1] > _MAX_DOCUMENTS - len(ends):  # numbers would overflow: begin again at 0
        work.seen[:] = 0
    start = 0
    for document in range(len(ends)):
        span = _Span(start=start, stop=ends[document])
        num_touched, num_distinct = _count_items(
            keys, span, postings, is_counted, work, distinct, num_distinct
        )
        if _choose_items(work, num_touched, min_shingles):
            found, num_found = _collect(
                occurrences, document, span, postings, work.counts, found, num_found
            )
        for i in range(num_touched):
            work.counts[work.touched[i]] = 0
        start = span.stop
    return distinct[:num_distinct], found[:num_found]


@kernel
def _prefetch_keys(keys, i, postings, seen):
    """Prefetch the memory of later keys: first their offsets, then their postings."""
    if i + 2 * _AHEAD < len(keys):
        later = I64(keys[i + 2 * _AHEAD])
        prefetch(address_of(postings.offsets) + 4 * later)
        prefetch(address_of(seen) + 4 * later)
        sooner = keys[i + _AHEAD]
        prefetch(address_of(postings.items) + 4 * I64(postings.offsets[sooner]))


@kernel
def _count_items(keys, span, postings, is_counted, work, distinct, num_distinct):
    """Count the distinct keys of a document by item, and append the counted ones; return the number
    of items touched, and of distinct counted keys.
    """
    offsets = postings.offsets
    num_touched = 0
    number = work.seen[-1] + 1
    work.seen[-1] = number
    for i in range(span.start, span.stop):
        _prefetch_keys(keys, i, postings, work.seen)
        key = keys[i]
        if work.seen[key] == number:
            continue
        work.seen[key] = number
        distinct[num_distinct] = key  # counted or not: see `_select`
        num_distinct += 1 if is_counted[key] else 0
        for posting in range(offsets[key], offsets[key + 1]):
            item = postings.items[posting]
            work.touched[num_touched] = item
            num_touched += 1 if work.counts[item] == 0 else 0
            work.counts[item] += 1
    return num_touched, num_distinct


@kernel
def _choose_items(work, num_touched, min_shingles):
    """Set the counts of the items that have enough shingles to 1, of others to 0; return whether
    there are any.
    """
    has_items = False
    for i in range(num_touched):
        item = work.touched[i]
        is_chosen = work.counts[item] >= min_shingles[item]
        work.counts[item] = 1 if is_chosen else 0
        has_items |= is_chosen
    return has_items


@kernel(allocates=True)
def _collect(occurrences, document, span, postings, counts, found, num_found):
    """Append the matches of the items whose count is 1; return the matches, in a longer array if
    needed, and the new `num_found`.

    found : int32, `num_found` numbers: document | entry | position | document | ...
    """
    while True:
        start, num_found = _collect_some(
            occurrences, document, span, postings, counts, found, num_found
        )
        if start == span.stop:
            return found, num_found
        span = _Span(start=start, stop=span.stop)
        found = double(found)


@kernel
def _collect_some(occurrences, document, span, postings, counts, found, num_found):
    """Append matches as long as there is room; return the index of the first key that is left, and
    the new `num_found`.
    """
    for i in range(span.start, span.stop):
        key = occurrences.keys[i]
        first = postings.offsets[key]
        stop = postings.offsets[key + 1]
        if num_found + 3 * (stop - first) > len(found):
            return i, num_found
        for posting in range(first, stop):
            if counts[postings.items[posting]] == 1:
                found[num_found] = document
                found[num_found + 1] = postings.entries[posting]
                found[num_found + 2] = occurrences.positions[i]
                num_found += 3
    return span.stop, num_found


@kernel(allocates=True)
def max_counts(counts, keys, first, sizes):
    """Return the largest count of the keys in each range, sizes[i] keys from first[i] on.

    counts : int64 by key.
    """
    result = np.empty(len(first), I64)
    for i in range(len(first)):
        result[i] = counts[keys[first[i]]]
        for j in range(first[i] + 1, first[i] + sizes[i]):
            result[i] = max(result[i], counts[keys[j]])
    return result


@kernel
def mark_ranges(keys, first, sizes, marks):
    """Set the marks of the keys in ranges, sizes[i] keys from first[i] on; marks : bool by key."""
    for i in range(len(first)):
        for j in range(first[i], first[i] + sizes[i]):
            marks[keys[j]] = True


@kernel
def best_stretches(group_ends, entries, positions, is_rare, widths, counts, best):
    """Find, for each group of matches, the stretch with most shingles of one field among the
    stretches of limited width.

    Parameters
    ----------
    group_ends : int64, the end of the matches of each group, of one field in one document;
        positions rise in each.
    entries, positions : int32 by match. is_rare : bool by match. widths : int64 by group, of the
        stretch, in starts of shingles. counts : int32 zeros by entry, working space.
    best : int64 (num_groups, 4): the distinct rare shingles, all distinct shingles, the first and
        the last match of the best stretch; of several that are as good the shortest, and of these
        the first.
    """
    matches = _Matches(entries=entries, positions=positions, is_rare=is_rare)
    begin = 0
    for group in range(len(group_ends)):
        end = group_ends[group]
        _find_stretch(matches, begin, end, widths[group], counts, best[group])
        begin = end


@kernel
def _find_stretch(matches, begin, end, width, counts, best):
    """Find the best stretch of one group, the matches from `begin` to `end`: a window slides over
    them.
    """
    positions = matches.positions
    best[:] = 0
    max_distinct = I64(0)
    min_length = I64(0)
    window = _Window(first=begin, num_distinct=I64(0), num_rare=I64(0))
    for last in range(begin, end):
        window = _enter(matches, counts, window, last)
        # A shingle that comes again in the stretch is not needed at its beginning.
        while (
            positions[last] - positions[window.first] >= width
            or counts[matches.entries[window.first]] > 1
        ):
            window = _leave(matches, counts, window)
        length = positions[last] - positions[window.first]
        is_shorter = window.num_distinct == max_distinct and length < min_length
        if window.num_distinct > max_distinct or is_shorter:
            max_distinct = window.num_distinct
            min_length = length
            best[0] = window.num_rare
            best[1] = window.num_distinct
            best[2] = window.first
            best[3] = last
    for i in range(window.first, end):
        counts[matches.entries[i]] = 0


@kernel
def _enter(matches, counts, window, match):
    """Return the window with one match more at its end. counts : int32 by entry, in the window."""
    entry = matches.entries[match]
    counts[entry] += 1
    is_new = counts[entry] == 1
    return _Window(
        first=window.first,
        num_distinct=window.num_distinct + is_new,
        num_rare=window.num_rare + (is_new and matches.is_rare[match]),
    )


@kernel
def _leave(matches, counts, window):
    """Return the window without its first match."""
    entry = matches.entries[window.first]
    counts[entry] -= 1
    is_last = counts[entry] == 0
    return _Window(
        first=window.first + 1,
        num_distinct=window.num_distinct - is_last,
        num_rare=window.num_rare - (is_last and matches.is_rare[window.first]),
    )


@kernel
def extend(words, limits, positions, item_words, item_limits, item_positions, ngrams, edges):
    """Extend matches over the words beside them that agree with the item's, up to `_MAX_EXTENSION`
    words on each side.

    A differing word is skipped if the next two words agree, or if the next word agrees and is the
    first or the last one of the item. The first or the last word of the item may itself differ.

    Parameters
    ----------
    words, item_words : uint64, the words of all documents, and of all fields of items.
    limits, item_limits : int64 (2, num_matches), the begin and the end of the document, and of the
        field, of each match.
    positions, item_positions : int64 by match, its first word among all. ngrams : the number of its
        words.
    edges : int64 (num_matches, 2), set to the first and the last word of the document.
    """
    documents = _Texts(words=words, limits=limits, positions=positions)
    items = _Texts(words=item_words, limits=item_limits, positions=item_positions)
    num_matches = len(positions)
    # Side 0 extends to the left, in rising order, so that the match that is continued is already
    # extended; side 1 to the right, in falling order.
    for side in range(2):
        for i in range(num_matches):
            match = num_matches - 1 - i if side else i
            edges[match, side] = _edge_of(documents, items, ngrams[match], match, side, edges)


@kernel
def _edge_of(documents, items, ngram, match, side, edges):
    """Return the outermost word of an extended match on one side."""
    step = 1 if side else -1
    last = (ngram - 1) * side  # from the first word of the match to its last word on this side
    position = documents.positions[match] + last
    item_position = items.positions[match] + last
    num_left = abs(documents.limits[side, match] - side - position)
    num_left_of_item = abs(items.limits[side, match] - side - item_position)
    reaches_end = min(num_left, num_left_of_item) <= _MAX_EXTENSION
    if reaches_end and _continues(documents, items, match, match + step, side):
        return edges[match + step, side]
    max_reach = min(num_left, num_left_of_item, _MAX_EXTENSION)
    reached = _reach(
        documents.words, position, items.words, item_position, step, max_reach, num_left_of_item
    )
    return position + step * reached


@kernel
def _continues(documents, items, match, beside, side):
    """Return whether a match one word further, in the same texts, continues a match."""
    step = beside - match
    return (
        0 <= beside < len(documents.positions)
        and documents.positions[beside] == documents.positions[match] + step
        and items.positions[beside] == items.positions[match] + step
        and documents.limits[side, beside] == documents.limits[side, match]
        and items.limits[side, beside] == items.limits[side, match]
    )


@kernel
def _reach(words, position, item_words, item_position, step, max_reach, num_left_of_item):
    """Return the number of words, up to `max_reach`, by which a match extends in the direction of a
    step.
    """
    reached = 0
    agreed = 0
    has_gap = False
    for i in range(1, max_reach + 1):
        is_last = i == num_left_of_item
        if words[position + step * i] == item_words[item_position + step * i]:
            agreed += 1
            if not has_gap or agreed >= 2 or is_last:
                reached = i
                has_gap = False
        elif is_last and reached == i - 1:
            reached = i
        elif has_gap:
            break
        else:
            has_gap = True
            agreed = 0
    return reached
