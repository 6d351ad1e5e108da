"""Look up the shingles of documents in a table of those of short items, and find the stretches that
hold most of them.

Numbers as in candidates/items.py: a key is a shingle or a sequence that some items have; a place is
a shingle of one item, a field one of its texts.
"""

import numpy as np

from neardup.kernels.compiled import I64, U64, kernel
from neardup.kernels.intrinsics import address_of, prefetch
from neardup.kernels.mixing import double
from neardup.kernels.tokens import hash_ascii, roll, shingle_document

_AHEAD = 12  # so many keys or hashes before it is used, memory is fetched
_MOST_DOCUMENTS = 2**31 - 1
_FARTHEST = 256
_ROOM = 1 << 14  # for the numbers of matches; more is made when it is needed


@kernel(allocates=True)
def number_hashes(hashes, slots, count):
    """Put hashes into a table of so many, zeros before; see `Lookup`.

    Returns their numbers, int32, by first occurrence, and how many the table has then.
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
    """Return the slot of a hash, or the empty one where it would be."""
    slot = value & mask
    while slots[slot] != U64(0) and (slots[slot] ^ value) & ~mask != U64(0):
        slot = (slot + U64(1)) & mask
    return slot


@kernel
def drop_keys(slots, is_counted, offsets):
    """Have the hashes of keys found no more that are not counted and have no posting."""
    mask = U64(len(slots) - 1)
    for i in range(len(slots)):
        key = I64(slots[i] & mask) - 1
        if (
            key >= 0
            and slots[i] > mask
            and not is_counted[key]
            and offsets[key] == offsets[key + 1]
        ):
            slots[i] &= ~mask  # not 0, which would end the search for others


@kernel(allocates=True)
def invert(keys, num_keys):
    """Return where each key occurs, int32: offsets by key, and the places of each, rising."""
    offsets = np.zeros(num_keys + 2, np.int32)
    places = np.empty(len(keys), np.int32)
    for key in keys:
        offsets[key + 2] += 1
    for i in range(2, len(offsets)):
        offsets[i] += offsets[i - 1]
    for i in range(len(keys)):
        places[offsets[keys[i] + 1]] = i
        offsets[keys[i] + 1] += 1
    return offsets[:-1], places


@kernel
def _bits_of(value):
    """Return the bits of a hash in its word of a filter: two, or one."""
    return (U64(1) << (value & U64(63))) | (U64(1) << ((value >> U64(6)) & U64(63)))


@kernel
def fill_filter(hashes, bits, shift):
    """Set the bits of hashes; see `Lookup`."""
    for value in hashes:
        bits[value >> shift] |= _bits_of(value)


@kernel
def _select(hashes, count, bits, shift, chosen):
    """Write which of the first hashes a filter lets through; return their number."""
    num_chosen = 0
    for i in range(count):
        wanted = _bits_of(hashes[i])
        chosen[num_chosen] = i
        num_chosen += 1 if bits[hashes[i] >> shift] & wanted == wanted else 0
    return num_chosen


@kernel
def _find(hashes, chosen, slots, keys, positions, count):
    """Append the keys of chosen hashes that are in the table, and which these are; return the
    count.
    """
    base = address_of(slots)
    mask = U64(len(slots) - 1)
    for i in range(len(chosen)):
        if i + _AHEAD < len(chosen):
            prefetch(base + 8 * I64(hashes[chosen[i + _AHEAD]] & mask))
        slot = _slot_of(hashes[chosen[i]], slots, mask)
        keys[count] = I64(slots[slot] & mask) - 1
        positions[count] = chosen[i]
        count += 1 if slots[slot] & mask != U64(0) else 0
    return count


@kernel
def _find_runs(chosen, least, runs):
    """Write the first and the last of each run of at least so many successive numbers; return the
    number of runs.
    """
    num_runs = first = 0
    for i in range(1, len(chosen) + 1):
        if i == len(chosen) or chosen[i] != chosen[i - 1] + 1:
            runs[num_runs, 0] = chosen[first]
            runs[num_runs, 1] = chosen[i - 1]
            num_runs += 1 if i - first >= least else 0
            first = i
    return num_runs


@kernel
def _hash_runs(tokens, runs, num_tokens, length, hashes, chosen):
    """Write the hash of each sequence of so many words inside runs of shingles, where it begins;
    return their number.

    num_tokens : of a shingle. chosen : int32, set to where they begin.
    """
    count = 0
    for i in range(len(runs)):
        begin = I64(runs[i, 0])
        size = runs[i, 1] - runs[i, 0] + num_tokens
        if size >= length:
            for place in range(begin, roll(tokens[begin:], size, length, hashes, begin)):
                chosen[count] = place
                count += 1
    return count


@kernel(allocates=True)
def look_up(scan, lookup, buffers, spaces, keys, positions, flagged):
    """Write the key and the position, a token number, of each shingle and sequence of documents
    that is in the table.

    spaces : uint64, int32, and int32 with two columns, for the shingles of a document. keys,
    positions : int32, with room for every shingle and sequence. flagged : see `shingle_document`.
    Returns where those of each document end, int64.
    """
    text, tables, mode = scan
    lengths, slots, bits, shift = lookup
    hashes, chosen, runs = spaces
    of_ascii = hash_ascii(mode)
    shortest = lengths[0]
    count = 0
    ends = np.empty(len(text.offsets) - 1, I64)
    for document in range(len(ends)):
        data = text.data[text.offsets[document] : text.offsets[document + 1]]
        _, end, flagged[document] = shingle_document(
            data, tables, mode, shortest, buffers, of_ascii, hashes, 0
        )
        num_chosen = _select(hashes, end, bits, shift, chosen)
        count = _find(hashes, chosen[:num_chosen], slots, keys, positions, count)
        # What is longer consists of the shortest shingles of items, so that little is looked up.
        num_runs = _find_runs(chosen[:num_chosen], lengths[1] - shortest + 1, runs)
        for length in lengths[1:]:
            num_chosen = _hash_runs(
                buffers.tokens, runs[:num_runs], shortest, length, hashes, chosen
            )
            count = _find(hashes, chosen[:num_chosen], slots, keys, positions, count)
        ends[document] = count
    return ends


@kernel
def _collect(keys, positions, document, first, end, postings, own, found, count):
    """Append the document, place and position of the items whose `own` is 1, as long as there is
    room.

    found : int32, `count` numbers. Returns the first key that is left, and the count.
    """
    offsets, places, items = postings
    for i in range(first, end):
        begin = offsets[keys[i]]
        stop = offsets[keys[i] + 1]
        if count + 3 * (stop - begin) > len(found):
            return i, count
        for posting in range(begin, stop):
            if own[items[posting]] == 1:
                found[count] = document
                found[count + 1] = places[posting]
                found[count + 2] = positions[i]
                count += 3
    return end, count


@kernel(allocates=True)
def gather(keys, positions, ends, postings, least, is_counted, workspace):  # noqa: C901
    """Return the distinct counted keys of each document, and the matches of the items that have
    enough shingles in it.

    Parameters
    ----------
    postings : offsets by key, places and items by posting.
    least : int32 by item, the fewest of its shingles.
    is_counted : bool by key.
    workspace : int32, how many of an item were found, zeros by item; by key the number of the last
        document that has it, and at the end that of the last document of all; items touched.

    Returns
    -------
    keys : int32. matches : int32, the document, place and position of each, one after the other.
    """
    offsets, _, items = postings
    own, seen, touched = workspace
    distinct = np.empty(len(keys), np.int32)
    num_distinct = 0
    begin = 0
    found = np.empty(_ROOM, np.int32)
    count = 0
    bases = address_of(offsets), address_of(seen), address_of(items)
    if seen[-1] > _MOST_DOCUMENTS - len(ends):
        seen[:] = 0
    for document in range(len(ends)):
        num_touched = 0
        number = seen[-1] + 1
        seen[-1] = number
        for i in range(begin, ends[document]):
            if i + 2 * _AHEAD < len(keys):
                prefetch(bases[0] + 4 * I64(keys[i + 2 * _AHEAD]))
                prefetch(bases[1] + 4 * I64(keys[i + 2 * _AHEAD]))
                prefetch(bases[2] + 4 * I64(offsets[keys[i + _AHEAD]]))
            key = keys[i]
            if seen[key] == number:
                continue
            seen[key] = number
            distinct[num_distinct] = key
            num_distinct += 1 if is_counted[key] else 0
            for posting in range(offsets[key], offsets[key + 1]):
                item = items[posting]
                touched[num_touched] = item
                num_touched += 1 if own[item] == 0 else 0
                own[item] += 1
        chosen = False
        for i in range(num_touched):
            item = touched[i]
            own[item] = 1 if own[item] >= least[item] else 0
            chosen |= own[item] == 1
        while chosen:
            begin, count = _collect(
                keys, positions, document, begin, ends[document], postings, own, found, count
            )
            if begin == ends[document]:
                break
            found = double(found)
        for i in range(num_touched):
            own[touched[i]] = 0
        begin = ends[document]
    return distinct[:num_distinct], found[:count]


@kernel(allocates=True)
def greatest(counts, keys, first, sizes):
    """Return the greatest count of the keys from each `first` on, so many; counts : int64 by
    key.
    """
    result = np.empty(len(first), I64)
    for i in range(len(first)):
        result[i] = counts[keys[first[i]]]
        for j in range(first[i] + 1, first[i] + sizes[i]):
            result[i] = max(result[i], counts[keys[j]])
    return result


@kernel
def mark_ranges(keys, first, sizes, marks):
    """Set the marks of the keys from each `first` on, so many; marks : bool by key."""
    for i in range(len(first)):
        for j in range(first[i], first[i] + sizes[i]):
            marks[keys[j]] = True


@kernel
def best_stretches(group_ends, places, positions, is_rare, widths, counts, best):
    """Find the stretch of at most so many tokens that holds most shingles of one field, for each
    group of matches.

    Parameters
    ----------
    group_ends : int64, where the matches of each group, of one field in one document, end;
        positions rise in each.
    places, positions : int32 by match. is_rare : bool by match. widths : int64 by group, of the
        stretch, in starts of shingles. counts : int32 zeros by place, working space.
    best : int64 (num_groups, 4): the distinct rare shingles, all distinct shingles, the first and
        the last match of the best stretch; of several that are as good the shortest, and of these
        the first.
    """
    begin = 0
    for group in range(len(group_ends)):
        end = group_ends[group]
        first = begin
        rare = own = 0
        best[group] = 0
        top = shortest = I64(-1)
        for last in range(begin, end):
            place = places[last]
            counts[place] += 1
            if counts[place] == 1:
                own += 1
                rare += 1 if is_rare[last] else 0
            # A shingle that comes again in the stretch is not needed at its beginning.
            while positions[last] - positions[first] >= widths[group] or counts[places[first]] > 1:
                place = places[first]
                counts[place] -= 1
                if counts[place] == 0:
                    own -= 1
                    rare -= 1 if is_rare[first] else 0
                first += 1
            length = positions[last] - positions[first]
            if own > top or (own == top and length < shortest):
                top = own
                shortest = length
                best[group, 0] = rare
                best[group, 1] = own
                best[group, 2] = first
                best[group, 3] = last
        for i in range(first, end):
            counts[places[i]] = 0
        begin = end


@kernel
def extend(words, limits, positions, item_words, item_limits, item_positions, ngrams, edges):
    """Extend matches over the words beside them that the item has there, too, as far as `_FARTHEST`
    words.

    A word that differs is passed over if two that agree follow, or the item's first or last one;
    that may differ.

    Parameters
    ----------
    words, item_words : uint64, the words of all documents, and of all fields of items.
    limits, item_limits : int64 (2, num_matches), where the words of its document, and of its field,
        begin and end.
    positions, item_positions : int64 by match, its first word among all. ngrams : its words.
    edges : int64 (num_matches, 2), set to the first and the last word of the document.
    """
    num_matches = len(positions)
    for side in range(2):
        step = 1 if side else -1
        for i in range(num_matches):
            match = num_matches - 1 - i if side else i
            last = (ngrams[match] - 1) * side
            beside = match + step
            here = positions[match] + last
            there = item_positions[match] + last
            reached = 0
            agreed = 0
            has_gap = False
            left = abs(item_limits[side, match] - side - there)  # the item's words on this side
            most = min(left, abs(limits[side, match] - side - here))
            if (
                most <= _FARTHEST
                and 0 <= beside < num_matches
                and positions[beside] == positions[match] + step
                and item_positions[beside] == item_positions[match] + step
                and limits[side, beside] == limits[side, match]
                and item_limits[side, beside] == item_limits[side, match]
            ):  # the match one word further reaches as far
                edges[match, side] = edges[beside, side]
                continue
            for far in range(1, min(most, _FARTHEST) + 1):
                if words[here + step * far] == item_words[there + step * far]:
                    agreed += 1
                    if not has_gap or agreed >= 2 or far == left:
                        reached = far
                        has_gap = False
                elif far == left and reached == far - 1:
                    reached = far
                elif has_gap:
                    break
                else:
                    has_gap = True
                    agreed = 0
            edges[match, side] = here + step * reached
