"""Look up the shingles of documents in a table of those of short items, and find the stretches that hold most of them.

Numbers as in candidates/items.py: a key is a shingle that some items have; a place is a shingle of one item, a field
one of its texts.
"""

import numpy as np

from neardup.kernels.compiled import kernel
from neardup.kernels.mixing import find_slot
from neardup.kernels.tokens import hash_ascii, roll, shingle_document

U64 = np.uint64
FREE = np.int32(-1)


@kernel
def fill_table(hashes, slots, numbers, bits):
    """Put hashes into a table and a filter; see `Lookup`. numbers : int32, filled with FREE; bits : zeros."""
    shift = U64(64 - 6) - U64(count_bits(len(bits)))
    for i in range(len(hashes)):
        slot = find_slot(slots, numbers, FREE, hashes[i])
        slots[slot], numbers[slot] = hashes[i], i
        bit = hashes[i] >> shift
        bits[bit >> U64(6)] |= U64(1) << (bit & U64(63))


@kernel
def count_bits(size):
    """Return the binary logarithm of a power of two."""
    bits = 0
    while size > 1:
        size >>= 1
        bits += 1
    return bits


@kernel
def look_up(scan, ngrams, lookup, buffers, hashes, keys, positions, ends, flagged):
    """Write the key and the position, a token number, of each shingle of the documents that is in the table.

    ngrams : int64, the lengths of shingles, each before that of the sequences around them.
    keys, positions : int32, with room for every shingle; ends : int64
    (num_documents,), where the shingles of each document end. flagged : see `shingle_document`.
    """
    text, tables, mode = scan
    slots, numbers, bits = lookup
    begin = 0
    shift = U64(64 - 6) - U64(count_bits(len(bits)))
    ascii_hashes, count = hash_ascii(), 0
    for document in range(len(text.offsets) - 1):
        data = text.data[text.offsets[document] : text.offsets[document + 1]]
        length, end, flagged[document] = shingle_document(
            data, tables, mode, ngrams[0], buffers, ascii_hashes, hashes, 0
        )
        for which in range(len(ngrams)):
            if which > 0:
                end = roll(buffers.tokens, length, ngrams[which], hashes, 0)
            # A sequence has a shingle that was found, which begins at most so much later.
            is_sequence, begin = which % 2 == 1, count if which % 2 == 0 else begin
            following, found = begin, count
            for i in range(end):
                if is_sequence:
                    while following < found and positions[following] < i:
                        following += 1
                    if following == found:
                        break
                    if positions[following] > i + ngrams[which] - ngrams[which - 1]:
                        continue
                bit = hashes[i] >> shift
                if bits[bit >> U64(6)] >> (bit & U64(63)) & U64(1) == U64(0):
                    continue
                slot = find_slot(slots, numbers, FREE, hashes[i])
                if numbers[slot] != FREE:
                    keys[count], positions[count] = numbers[slot], i
                    count += 1
        ends[document] = count


@kernel
def gather(keys, positions, ends, is_counted, postings, least, workspace, distinct, found):
    """Write the distinct counted keys of each document, and the matches of the items that have enough shingles in it.

    Parameters
    ----------
    is_counted : bool by key. postings : offsets by key, places by posting, items by place.
    least : int32 by item, the fewest of its shingles.
    workspace : int32 zeros: how many of an item were found, by item; stamp by key; items touched.
    distinct : int32, room for all keys. found : three int32 arrays, the document, place and position of each match,
    with room for every posting.

    Returns
    -------
    The number of distinct keys, and of matches.
    """
    offsets, places, items = postings
    own, stamps, touched = workspace
    documents, found_places, found_positions = found
    num_distinct = num_found = begin = 0
    for document in range(len(ends)):
        num_touched = 0
        for i in range(begin, ends[document]):
            key = keys[i]
            if stamps[key] == document + 1:
                continue
            stamps[key] = document + 1
            if is_counted[key]:
                distinct[num_distinct] = key
                num_distinct += 1
            for posting in range(offsets[key], offsets[key + 1]):
                item = items[places[posting]]
                if own[item] == 0:
                    touched[num_touched] = item
                    num_touched += 1
                own[item] += 1
        chosen = False
        for i in range(num_touched):
            item = touched[i]
            own[item] = 1 if own[item] >= least[item] else 0
            chosen |= own[item] == 1
        if chosen:
            for i in range(begin, ends[document]):
                for posting in range(offsets[keys[i]], offsets[keys[i] + 1]):
                    place = places[posting]
                    if own[items[place]] == 1:
                        documents[num_found], found_places[num_found] = document, place
                        found_positions[num_found] = positions[i]
                        num_found += 1
        for i in range(num_touched):
            own[touched[i]] = 0
        begin = ends[document]
    for key in keys:
        stamps[key] = 0
    return num_distinct, num_found


@kernel
def best_stretches(group_ends, places, positions, is_rare, widths, counts, best):
    """Find the stretch of at most so many tokens that holds most shingles of one field, for each group of matches.

    Parameters
    ----------
    group_ends : int64, where the matches of each group, of one field in one document, end; positions rise in each.
    places, positions : int32 by match. is_rare : bool by match. widths : int64 by group, of the stretch, in starts of
        shingles. counts : int32 zeros by place, working space.
    best : int64 (num_groups, 4): the distinct rare shingles, all distinct shingles, the first and the last match of the
        best stretch; of several that are as good the shortest, and of these the first.
    """
    begin = 0
    for group in range(len(group_ends)):
        end, first = group_ends[group], begin
        rare = own = 0
        best[group] = 0
        top = shortest = np.int64(-1)
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
                top, shortest = own, length
                best[group, 0], best[group, 1], best[group, 2], best[group, 3] = rare, own, first, last
        for i in range(first, end):
            counts[places[i]] = 0
        begin = end


@kernel
def extend(words, item_words, item_starts, item_ends, positions, item_positions, ngrams, edges):
    """Extend matches over the words beside them that the item has there, too, as far as 256 words.

    A word that differs is passed over if two that agree follow, or the item's first or last one; that may differ.

    Parameters
    ----------
    words, item_words : uint64, the words of the document, and of the fields of items.
    item_starts, item_ends : int64 by match, where the words of its field begin and end.
    positions, item_positions : int64 by match, its first word in the document and in its field. ngrams : its words.
    edges : int64 (num_matches, 2), set to the first and the last word of the document.
    """
    for match in range(len(positions)):
        for side in range(2):
            step = 1 if side else -1
            last = ngrams[match] - 1 if side else 0
            first = item_starts[match] + item_positions[match] + last
            here, reached, agreed, has_gap = positions[match] + last, 0, 0, False
            for i in range(1, 257):
                word, other = here + step * i, first + step * i
                if not (item_starts[match] <= other < item_ends[match] and 0 <= word < len(words)):
                    break
                is_edge = other == item_ends[match] - 1 if side else other == item_starts[match]
                if words[word] == item_words[other]:
                    agreed += 1
                    if not has_gap or agreed >= 2 or is_edge:
                        reached, has_gap = i, False
                elif is_edge and reached == i - 1:
                    reached = i
                elif has_gap:
                    break
                else:
                    has_gap, agreed = True, 0
            edges[match, side] = here + step * reached
