"""The sieve: documents pass in order, and each that is kept strikes out its near-duplicates.

Three ways to propose whom a document is compared with share one way to decide: buckets of bands for Jaccard
similarity, postings of sampled shingles for containment, lists of near fingerprints for Hamming distance.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from neardup.kernels.bands import FREE_SLOT, LAST_SLOT, NO_BUCKET
from neardup.kernels.sieve_arrays import CONTAINMENT, COSINE, HAMMING, NO_NODE, NONE

U64 = np.uint64


@njit(nogil=True, cache=True)
def _overlap(left, right, needed):
    """Return the number of shared values of two rising arrays, or less than `needed` once that is out of reach."""
    i, j, shared = 0, 0, 0
    while i < len(left) and j < len(right):
        # Checked every 32 steps, in which at most 32 values can be shared.
        if shared + min(len(left) - i, len(right) - j) < needed:
            return shared
        for _ in range(32):
            if i >= len(left) or j >= len(right):
                break
            a, b = left[i], right[j]
            shared += a == b
            i += a <= b
            j += b <= a
    return shared


@njit(nogil=True, cache=True)
def _similarity(sets, document, other, measure, threshold):
    """Return the exact similarity of a document to an earlier one, or any value below the threshold."""
    size, other_size = np.int64(sets.sizes[document]), np.int64(sets.sizes[other])
    mine = sets.hashes[sets.starts[document] : sets.starts[document] + size]
    theirs = sets.hashes[sets.starts[other] : sets.starts[other] + other_size]
    # One less than the bound, so that rounding can not lose a pair that just reaches the threshold.
    if measure == CONTAINMENT:
        if other_size < threshold * size - 1:
            return -1.0
        return _overlap(mine, theirs, np.int64(threshold * size) - 1) / size
    if measure == COSINE:
        most = np.sqrt(np.float64(size) * np.float64(other_size))
        if most == 0.0 or min(size, other_size) < threshold * most - 1:
            return -1.0
        return _overlap(mine, theirs, np.int64(threshold * most) - 1) / most
    if min(size, other_size) < threshold * max(size, other_size) - 1:
        return -1.0
    needed = np.int64(threshold / (1.0 + threshold) * (size + other_size)) - 1
    shared = _overlap(mine, theirs, needed)
    return shared / (size + other_size - shared)


@njit(nogil=True, cache=True)
def _gather(buckets, column, max_bucket, candidates, ends):
    """List the kept documents of a position's buckets, rising, each once; return (their number, full buckets met).

    ends : int64 (num_bands,), set to the free slot where the position itself would be listed, or -1.
    """
    count, full = 0, 0
    for band in range(buckets.first.shape[0]):
        ends[band] = -1
        if buckets.first[band, column] == NO_BUCKET:
            continue
        slot = buckets.band_starts[band] + np.int64(buckets.first[band, column])
        for listed in range(max_bucket + 1):
            value = buckets.slots[slot]
            if value & ~LAST_SLOT == FREE_SLOT:
                ends[band] = slot if listed < max_bucket else -1
                full += listed == max_bucket
                break
            if listed < max_bucket:
                candidates[count] = value & ~LAST_SLOT
                count += 1
            else:
                full += 1
            if value & LAST_SLOT:
                break
            slot += 1
    candidates[:count].sort()
    unique = 0
    for i in range(count):
        if i == 0 or candidates[i] != candidates[i - 1]:
            candidates[unique] = candidates[i]
            unique += 1
    return unique, full


@njit(nogil=True, cache=True)
def _append(found, left, right, similarity, distance, structure, exact):
    """Append a pair; return its place."""
    place = found.counters[0]
    found.left[place] = left
    found.right[place] = right
    found.similarity[place] = similarity
    found.distance[place] = distance
    found.structure[place] = structure
    found.exact[place] = exact
    found.best[place] = 0
    found.counters[0] = place + 1
    return place


@njit(nogil=True, cache=True)
def _judge(position, candidates, order, compared, rules, found):
    """Measure a document against its candidates, rising positions; return whether one of them removes it."""
    first = np.int64(order.representative[position])
    document = order.documents[first]
    best = -1
    for candidate in candidates:
        other = np.int64(candidate)
        other_first = np.int64(order.representative[other])
        exact = other_first == first
        similarity, structure = 1.0, 1.0
        if not exact:
            earlier = order.documents[other_first]
            similarity = _similarity(compared.shingles, document, earlier, rules.similarity, rules.threshold)
            found.counters[1] += 1
            if similarity >= rules.threshold and rules.structure > 0.0:
                structure = _similarity(compared.structure, document, earlier, COSINE, rules.structure)
        if similarity >= rules.threshold and structure >= rules.structure:
            place = _append(found, other, position, similarity, 0, structure, exact)
            if best < 0 or similarity > found.similarity[best]:
                best = place
    if best >= 0 and not rules.all_pairs:
        found.best[best] = 1
        return True
    return False


@njit(nogil=True, cache=True)
def _is_plain_copy(position, order, rules, found):
    """Decide a copy of a kept document without a comparison; return whether it was one."""
    first = np.int64(order.representative[position])
    if first == position or not order.kept[first] or rules.all_pairs:
        return False
    if position < rules.num_against:
        order.kept[position] = 1
    else:
        found.best[_append(found, first, position, 1.0, 0, 1.0, True)] = 1
    return True


@njit(nogil=True, cache=True)
def sieve(begin, stop, order, compared, buckets, rules, found):
    """Decide positions `begin` to `stop`; return where it stopped, early when `found` is nearly full.

    buckets.first covers begin to stop. Each document is compared with the kept ones in its buckets, at most
    `max_bucket` a bucket; the most similar that reaches the threshold removes it (ties: the earlier). A document
    that is kept enters its buckets. A copy of a kept document is removed without a comparison.
    """
    num_bands = buckets.first.shape[0]
    candidates = np.empty(num_bands * rules.max_bucket + 1, np.uint32)
    ends = np.empty(num_bands, np.int64)
    room = num_bands * rules.max_bucket + 2
    for position in range(begin, stop):
        if len(found.left) - found.counters[0] < room:
            return position
        if _is_plain_copy(position, order, rules, found):
            continue
        count, full = _gather(buckets, position - begin, rules.max_bucket, candidates, ends)
        found.counters[2] += full > 0
        if (position >= rules.num_against or rules.all_pairs) and _judge(
            position, candidates[:count], order, compared, rules, found
        ):
            continue
        order.kept[position] = 1
        for band in range(num_bands):
            if ends[band] >= 0:
                slot = ends[band]
                buckets.slots[slot] = np.uint32(position) | (buckets.slots[slot] & LAST_SLOT)
    return stop


@njit(nogil=True, cache=True)
def _slot(keys, key):
    """Return the slot of a key, or the free one where it belongs."""
    mask = len(keys) - 1
    slot = np.int64(key & U64(mask))
    while keys[slot] != U64(0) and keys[slot] != key:
        slot = (slot + 1) & mask
    return slot


@njit(nogil=True, cache=True)
def enter_samples(postings, sets, documents, num_samples):
    """Enter the least `num_samples` shingles of each document as keys. Requires: sorted sets."""
    for document in documents:
        start = sets.starts[document]
        for i in range(start, start + min(np.int64(sets.sizes[document]), num_samples)):
            if sets.hashes[i] != U64(0):
                postings.keys[_slot(postings.keys, sets.hashes[i])] = sets.hashes[i]


@njit(nogil=True, cache=True)
def _hits(postings, sample, needed, hits, candidates):
    """List the kept documents that have `needed` or more of a sample, rising; return their number.

    hits : int32 by position, zero before and after. candidates : as long as all postings met may be.
    """
    touched = 0
    for key in sample:
        slot = _slot(postings.keys, key)
        entry = postings.head[slot] if postings.keys[slot] == key and key != U64(0) else NONE
        while entry != NONE:
            member = postings.member[entry]
            if hits[member] == 0:
                candidates[touched] = member
                touched += 1
            hits[member] += 1
            entry = postings.next[entry]
    count = 0
    for i in range(touched):
        member = candidates[i]
        if hits[member] >= needed:
            candidates[count] = member
            count += 1
        hits[member] = 0
    candidates[:count].sort()
    return count


@njit(nogil=True, cache=True)
def sieve_contained(span, order, compared, postings, needed, hits, rules, found):
    """Decide positions span[0] to span[1]; return where it stopped, early when `found` or the postings are full.

    As `sieve`, but a document is compared with the kept ones that hold needed[n] of the n shingles sampled from it.
    A key lists at most `max_bucket` documents. needed : int64 (num_samples + 1,); hits : int32 by position, zeros.
    """
    num_samples, sets = len(needed) - 1, compared.shingles
    candidates = np.empty(num_samples * rules.max_bucket + 1, np.uint32)
    for position in range(span[0], span[1]):
        document = order.documents[order.representative[position]]
        size = np.int64(sets.sizes[document])
        own = sets.hashes[sets.starts[document] : sets.starts[document] + size]
        room = len(found.left) - found.counters[0] > len(candidates) + 1
        if not room or len(postings.member) - postings.used[0] < size:
            return position
        if _is_plain_copy(position, order, rules, found):
            continue
        sampled = min(size, num_samples)
        count = _hits(postings, own[:sampled], needed[sampled], hits, candidates)
        if (position >= rules.num_against or rules.all_pairs) and _judge(
            position, candidates[:count], order, compared, rules, found
        ):
            continue
        order.kept[position] = 1
        full = False
        for key in own:
            slot = _slot(postings.keys, key)
            if postings.keys[slot] == key and key != U64(0):
                if postings.lengths[slot] >= rules.max_bucket:
                    full = True
                    continue
                entry = postings.used[0]
                postings.member[entry] = position
                postings.next[entry] = postings.head[slot]
                postings.head[slot] = entry
                postings.lengths[slot] += 1
                postings.used[0] = entry + 1
        found.counters[2] += full
    return span[1]


@njit(nogil=True, cache=True)
def _num_listed(node, near, listed, max_bucket):
    """Return how many kept documents are listed for this fingerprint and those near it."""
    total = min(np.int64(listed.num_kept[node]), max_bucket)
    for i in range(near.starts[node], near.starts[node + 1]):
        total += min(np.int64(listed.num_kept[near.others[i]]), max_bucket)
    return total


@njit(nogil=True, cache=True)
def _judge_near(position, order, sets, near, listed, rules, found):
    """Measure a document against the kept ones with near fingerprints; return whether one of them removes it."""
    first = np.int64(order.representative[position])
    document = order.documents[first]
    node = np.int64(near.node[position])
    begin = near.starts[node] - 1  # stands for the document's own fingerprint
    best = -1
    full = False
    for i in range(begin, near.starts[node + 1]):
        other = node if i == begin else np.int64(near.others[i])
        distance = np.int64(0) if i == begin else np.int64(near.distances[i])
        full |= listed.num_kept[other] > rules.max_bucket
        member = listed.first[other]
        while member != NONE:
            exact = np.int64(order.representative[member]) == first
            similarity = 1.0 if exact else 1.0 - distance / rules.bits
            if not exact:
                found.counters[1] += 1
                if rules.similarity != HAMMING:
                    kept = order.documents[np.int64(order.representative[member])]
                    similarity = _similarity(sets, document, kept, rules.similarity, rules.threshold)
            if rules.similarity == HAMMING or similarity >= rules.threshold:
                place = _append(found, member, position, similarity, distance, 1.0, exact)
                ahead = best < 0 or similarity > found.similarity[best]
                if ahead or (similarity == found.similarity[best] and member < found.left[best]):
                    best = place
            else:
                found.counters[3] += 1
            member = listed.next[member]
    found.counters[2] += full
    if best >= 0 and not rules.all_pairs:
        found.best[best] = 1
        return True
    return False


@njit(nogil=True, cache=True)
def sieve_near(span, order, sets, near, listed, rules, found):
    """Decide positions span[0] to span[1]; return where it stopped, early when `found` is nearly full.

    As `sieve`, but a document is compared with the kept ones whose fingerprints are near its own. A fingerprint
    lists at most `max_bucket` documents, of which one is enough where the distance alone decides: the earliest.
    """
    alone = rules.similarity == HAMMING and not rules.all_pairs
    for position in range(span[0], span[1]):
        if len(found.left) - found.counters[0] < 2:
            return position
        if _is_plain_copy(position, order, rules, found):
            continue
        order.kept[position] = 1
        if near.node[position] == NO_NODE:
            continue
        node = np.int64(near.node[position])
        if len(found.left) - found.counters[0] < _num_listed(node, near, listed, rules.max_bucket) + 2:
            return position
        if (position >= rules.num_against or rules.all_pairs) and _judge_near(
            position, order, sets, near, listed, rules, found
        ):
            order.kept[position] = 0
            continue
        if alone and listed.num_kept[node] > 0:
            continue
        listed.num_kept[node] += 1
        if listed.num_kept[node] > rules.max_bucket:
            continue
        if listed.first[node] == NONE:
            listed.first[node] = position
        else:
            listed.next[listed.last[node]] = position
        listed.last[node] = position
    return span[1]
