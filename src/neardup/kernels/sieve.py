"""The sieve: documents pass in order, and each kept document removes its later near-duplicates.

The candidates of a document come from buckets of bands for Jaccard similarity, from postings of
sampled shingles for containment, or from lists of near fingerprints for Hamming distance. The
decision is the same for all three.

    position     0      1      2      3      4      5
    kept         1      1      0      1      ?      .
                 |_____________|             |      positions before `ahead.floor` may be measured
                 found.best: 0 removes 2     |      by `measure_ahead`, in other threads
                                             next: measured against its candidates that are kept
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup.kernels.bands import LAST_MEMBER, NO_BUCKET
from neardup.kernels.compiled import kernel
from neardup.kernels.intrinsics import address_of, prefetch
from neardup.kernels.mixing import find_slot, mix
from neardup.kernels.sorted_sets import (
    COSINE,
    HAMMING,
    Sets,
    may_reach,
    measure_sets,
    shared_above_chance_kernel,
    similarity_of_sets,
    sketch_words,
)

U64 = np.uint64
NO_NODE = np.uint32(0xFFFFFFFF)
NONE = np.int64(-1)
# Bits of `Ahead.state`.
_MEASURED = 1
_OPEN = 2
_FULL = 4
# Indices of `Found.counters`.
PAIRS, COMPARED, REJECTED = range(3)


class Compared(NamedTuple):
    """The sets of shingles of all documents, and a second set that some rules need.

    structure : the runs of tags of web pages; with `above_chance` the shingles that occur an even
    number of times; otherwise the shingles again.
    """

    shingles: Sets
    structure: Sets


class Order(NamedTuple):
    """Documents in the order of the sieve, all by position.

    documents : uint32, the document at each position; representative : uint32, the first position
    of equal content; kept : uint8, written by the sieve, zeros before, or ones if nothing is
    removed: 0 for a removed document; 2 for a kept one with an earlier document in a bucket that
    does not list it; 1 for other kept ones.
    """

    documents: np.ndarray
    representative: np.ndarray
    kept: np.ndarray


class Buckets(NamedTuple):
    """The buckets of all positions.

    first : uint32 (num_bands, num_positions), a bucket's first entry within its band, or NO_BUCKET;
    members : uint32, all bands one after the other, see `bands.list_members`; band_starts : int64
    (num_bands,).
    """

    first: np.ndarray
    members: np.ndarray
    band_starts: np.ndarray


class Rules(NamedTuple):
    """The rules of a duplicate.

    threshold : the minimum similarity, or the maximum distance; inclusive. similarity : JACCARD,
    CONTAINMENT, HAMMING or COSINE. max_bucket_size : the documents that a bucket lists, its
    earliest. num_against : leading positions that are always kept. all_pairs : whether pairs are
    only measured, and nothing is removed. bits : of a fingerprint, if there is one. structure : the
    minimum cosine of the structure of two pages; 0 for none. skips_copies : whether copies are not
    compared with each other, since they are in one cluster anyway. above_chance : whether two
    documents must share more shingles than unrelated texts do.
    """

    threshold: float
    similarity: int
    max_bucket_size: int
    num_against: int
    all_pairs: bool
    bits: int = 64
    structure: float = 0.0
    skips_copies: bool = False
    above_chance: bool = False


class Found(NamedTuple):
    """Results, appended. left, right : uint32 positions; similarity : float64; distance : uint16;
    structure : float64; exact : uint8; best : uint8, 1 on the pair that removed `right`. counters :
    int64: pairs in use, pairs compared, pairs near by fingerprint and below the threshold.
    """

    left: np.ndarray
    right: np.ndarray
    similarity: np.ndarray
    distance: np.ndarray
    structure: np.ndarray
    exact: np.ndarray
    best: np.ndarray
    counters: np.ndarray


class Ahead(NamedTuple):
    """The results of `measure_ahead` for a stretch of positions.

    begin : its first position. floor : the first undecided position; pairs with documents before it
    are measured. state : uint8 by position, zeros before: _MEASURED, the pairs are in `found`;
    _OPEN, there are candidates from `floor` on; _FULL, a bucket has an earlier document that it
    does not list. ends : int64 by position, the end of its pairs in `found`.
    """

    begin: int
    floor: int
    state: np.ndarray
    ends: np.ndarray
    found: Found


class Postings(NamedTuple):
    """The earliest kept documents of each sampled shingle.

    keys : uint64 (num_slots,), a power of two, 0 in a free slot (a hash of 0 is never sampled);
    head : int64 (num_slots,), the latest entry; lengths : int64 (num_slots,), the number of
    documents that have it, kept or removed, listed or not; unlisted : uint32 (num_slots,), the
    first document that is not listed. next : int64, member : uint32, (capacity,). used : int64
    (1,), entries in use.

        keys[slot], head[slot] -> member, next -> member, next -> NONE
    """

    keys: np.ndarray
    head: np.ndarray
    lengths: np.ndarray
    unlisted: np.ndarray
    next: np.ndarray
    member: np.ndarray
    used: np.ndarray


class Probes(NamedTuple):
    """The look-ups in postings.

    needed : int64 (num_samples + 1,), the hits that make a candidate, by the size of a sample.
    queries : bool by position, whether the document is compared with earlier ones. hits : int32 by
    position, zeros between two look-ups.
    """

    needed: np.ndarray
    queries: np.ndarray
    hits: np.ndarray


class Neighbours(NamedTuple):
    """A graph of near fingerprints: each is a node.

    node : uint32 by position, the node of a document's fingerprint, or NO_NODE. The neighbours of
    node i are others[starts[i]:starts[i + 1]], uint32, at `distances`, uint8; each pair is there
    twice.
    """

    node: np.ndarray
    starts: np.ndarray
    others: np.ndarray
    distances: np.ndarray


class Listed(NamedTuple):
    """The earliest kept documents of each fingerprint, in their order: chains of positions.

    first, last : int64 by node, NONE for an empty chain; num_members : uint32 by node, its
    documents, kept or removed, listed or not; next : int64 by position.
    """

    first: np.ndarray
    last: np.ndarray
    num_members: np.ndarray
    next: np.ndarray


def make_postings(num_keys: int, capacity: int) -> Postings:
    """Return empty postings for `num_keys` sampled shingles, the table at most half full."""
    num_slots = 1 << max(4, (2 * num_keys).bit_length())
    return Postings(
        keys=np.zeros(num_slots, np.uint64),
        head=np.full(num_slots, NONE),
        lengths=np.zeros(num_slots, np.int64),
        unlisted=np.empty(num_slots, np.uint32),
        next=np.empty(capacity, np.int64),
        member=np.empty(capacity, np.uint32),
        used=np.zeros(1, np.int64),
    )


def grow(postings: Postings) -> Postings:
    """Return the same postings with room for twice as many entries."""
    free = np.empty(len(postings.member), np.int64)
    return postings._replace(
        next=np.concatenate([postings.next, free]),
        member=np.concatenate([postings.member, free.astype(np.uint32)]),
    )


class _Pair(NamedTuple):
    """A pair of positions, as in `Found`."""

    left: int
    right: int
    similarity: float
    distance: int
    structure: float
    exact: bool


@kernel(allocates=True)
def measure_ahead(stop, order, compared, buckets, rules, ahead):
    """Measure positions from `ahead.begin` to `stop` with the documents before `ahead.floor` that
    are kept.

    Nothing is decided, and nothing is measured that `sieve` would not: a copy is skipped unless the
    first document with its content is removed already. Stops early when `ahead.found` is nearly
    full.
    """
    candidates = np.empty(buckets.first.shape[0] * rules.max_bucket_size + 1, np.uint32)
    table = np.empty(4 * len(candidates), U64)
    span = (0, ahead.floor)
    found = ahead.found
    for position in range(ahead.begin, stop):
        if len(found.left) - found.counters[PAIRS] < len(candidates):
            break  # no space for all candidates: `sieve` measures the rest
        index = position - ahead.begin
        if rules.all_pairs or _may_be_decided(position, order, rules, ahead.floor):
            limit = rules.max_bucket_size
            lefts = found.left[:0]
            count, ahead.state[index] = _gather(
                buckets, position, span, lefts, order.kept, limit, candidates, table
            )
            if count:
                _judge(position, candidates[:count], (0, 0), order, compared, rules, found, found)
        ahead.ends[index] = found.counters[PAIRS]


@kernel
def _may_be_decided(position, order, rules, floor):
    """Return whether `sieve` may have to compare a document: not if it is always kept, nor if it is
    a copy whose first document is kept or not yet decided.
    """
    first = np.int64(order.representative[position])
    needs_comparison = first == position or (first < floor and not order.kept[first])
    return needs_comparison and position >= rules.num_against


@kernel(allocates=True)
def sieve(begin, stop, order, compared, buckets, rules, ahead, found):
    """Decide positions `begin` to `stop`; return the first position that is not decided: earlier if
    `found` is nearly full.

    Each document is compared with the kept ones among the earliest `max_bucket_size` of each of its
    buckets; the most similar that reaches the threshold removes it (ties: the earlier). A copy of a
    kept document is removed without a comparison. Pairs measured in `ahead` are taken from there;
    the answer is the same if nothing was measured.
    """
    candidates = np.empty(buckets.first.shape[0] * rules.max_bucket_size + 1, np.uint32)
    table = np.empty(4 * len(candidates), U64)
    for position in range(begin, stop):
        if len(found.left) - found.counters[PAIRS] < len(candidates) + 1:
            return position
        is_copy = order.representative[position] != position
        if is_copy and _is_plain_copy(position, order, rules, found):
            continue
        is_full = False
        if position >= rules.num_against or rules.all_pairs:
            count, state, known = _propose(
                position, order.kept, buckets, rules, ahead, candidates, table
            )
            # A call with these arrays takes longer than all the rest of a document without
            # candidates.
            if count and _judge(
                position, candidates[:count], known, order, compared, rules, ahead.found, found
            ):
                continue
            is_full = (state & _FULL) != 0
        order.kept[position] = 1 + is_full
    return stop


@kernel(inline=True)
def _propose(position, kept, buckets, rules, ahead, candidates, table):
    """List the candidates of a position: measured ones in `ahead`, and later ones from its buckets.

    Return their number, the state of `Ahead`, and the first position that is not measured with the
    first measured pair.
    """
    index = position - ahead.begin
    state = ahead.state[index]
    floor = 0
    pair = np.int64(0)
    end = np.int64(0)
    if state & _MEASURED:
        floor = ahead.floor
        pair = ahead.ends[index - 1] if index else np.int64(0)
        end = ahead.ends[index]
    lefts = ahead.found.left[pair:end]
    count = end - pair
    if state & _MEASURED and not state & _OPEN:
        for i in range(count):
            candidates[i] = lefts[i]
    else:
        span = (floor, position)
        limit = rules.max_bucket_size
        count, state = _gather(buckets, position, span, lefts, kept, limit, candidates, table)
    return count, state, (floor, pair)


@kernel
def _gather(buckets, position, span, lefts, kept, max_bucket_size, candidates, table):  # noqa: C901
    """List the kept documents in the buckets of a position, each once; return their number, and the
    state of `Ahead`.

    span : the positions whose `kept` counts. lefts : uint32, rising: the listed documents before
    the span, in the order of the buckets.
    """
    count = 0
    state = _MEASURED
    num_lefts = 0
    for band in range(buckets.first.shape[0]):
        if buckets.first[band, position] == NO_BUCKET:
            continue
        entry = buckets.band_starts[band] + np.int64(buckets.first[band, position])
        # Members rise, and the one after the listed ones shows whether the bucket is full.
        for rank in range(max_bucket_size + 1):
            member = buckets.members[entry]
            other = np.int64(member & ~LAST_MEMBER)
            if other >= position:
                break
            is_listed = False
            if rank == max_bucket_size:
                state |= _FULL
            elif other >= span[1]:
                state |= _OPEN
            elif other >= span[0]:
                is_listed = kept[other] != 0
            elif num_lefts < len(lefts) and lefts[num_lefts] == other:
                is_listed = True
                num_lefts += 1
            if is_listed:
                candidates[count] = other
                count += 1
            if member & LAST_MEMBER:
                break
            entry += 1
    return _drop_repeated(candidates[:count], table), state


@kernel
def _drop_repeated(candidates, table):
    """Keep the first occurrence of each candidate; return their number. table : uint64, four times
    as long or more.
    """
    # A table of this document's size, at most half full: clearing all of it would take longer.
    size = 4
    count = 0
    while size < 2 * len(candidates):
        size *= 2
    for slot in range(size):
        table[slot] = U64(0)
    for candidate in candidates:
        key = mix(U64(candidate) + U64(1))  # never 0, the free key: `mix` is one to one
        slot = find_slot(table[:size], table, U64(0), key)
        if table[slot] == U64(0):
            table[slot] = key
            candidates[count] = candidate
            count += 1
    return count


@kernel
def _judge(position, candidates, known, order, compared, rules, earlier, found):
    """Measure a document against its candidates; return whether one of them removes it.

    known : a position, and a number of a pair: candidates before the position are the pairs of
    `earlier` from that number on, in their order.
    """
    floor, pair = known
    first = np.int64(order.representative[position])
    document = order.documents[first]
    best = -1
    count = _sift(position, candidates, floor, order, compared.shingles, rules, found)
    for candidate in candidates[:count]:
        other = np.int64(candidate)
        other_first = np.int64(order.representative[other])
        exact = other_first == first
        similarity = 1.0
        structure = 1.0
        if other < floor:
            similarity = earlier.similarity[pair]
            structure = earlier.structure[pair]
            pair += 1
        elif not exact:
            similarity, structure = _measure(
                compared, document, order.documents[other_first], rules
            )
        # All candidates are measured, since the most similar one removes the document.
        if similarity >= rules.threshold and structure >= rules.structure:
            added = _append(found, _Pair(other, position, similarity, 0, structure, exact))
            best = _better(best, added, found)
    return _removes(best, rules, found)


@kernel
def _sift(position, candidates, floor, order, sets, rules, found):
    """Filter candidates from `floor` on by size and bitmap, and prefetch their sets; return the
    number of all candidates left.

    The parts of a set lie far apart in memory, so each is prefetched some steps before.
    """
    _prefetch_sketches(candidates, floor, order, sets)
    first = np.int64(order.representative[position])
    document = order.documents[first]
    hashes = address_of(sets.hashes)
    count = 0
    for candidate in candidates:
        other_first = np.int64(order.representative[np.int64(candidate)])
        if candidate >= floor and other_first != first:
            found.counters[COMPARED] += 1
            other = order.documents[other_first]
            if not may_reach(sets, document, other, rules.similarity, rules.threshold):
                continue
            begin = sets.starts[other]
            for word in range(begin, begin + np.int64(sets.sizes[other]), 8):
                prefetch(hashes + 8 * word)
        candidates[count] = candidate
        count += 1
    return count


@kernel
def _prefetch_sketches(candidates, floor, order, sets):
    """Prefetch the starts and sizes, and then the sketches, of candidates from `floor` on."""
    starts = address_of(sets.starts)
    sizes = address_of(sets.sizes)
    hashes = address_of(sets.hashes)
    for candidate in candidates:
        if candidate >= floor:
            other = np.int64(order.documents[np.int64(order.representative[np.int64(candidate)])])
            prefetch(starts + 8 * other)
            prefetch(sizes + 4 * other)
    for candidate in candidates:
        if candidate >= floor:
            other = np.int64(order.documents[np.int64(order.representative[np.int64(candidate)])])
            begin = sets.starts[other]
            for word in range(begin - sketch_words(np.int64(sets.sizes[other])), begin, 8):
                prefetch(hashes + 8 * word)


@kernel
def _measure(compared, document, other, rules):
    """Return the similarity of two documents, and of their structure if the rules need it."""
    min_shared = _min_shared(compared, document, other, rules)
    similarity = similarity_of_sets(
        compared.shingles, document, other, rules.similarity, rules.threshold, min_shared
    )
    structure = 1.0
    if similarity >= rules.threshold and rules.structure > 0.0:
        structure = measure_sets(compared.structure, document, other, COSINE, rules.structure)
    return similarity, structure


@kernel
def _min_shared(compared, document, other, rules):
    """Return the minimum number of shingles that two documents must share at any threshold."""
    if not rules.above_chance:
        return np.int64(0)
    even = np.int64(compared.structure.sizes[document])
    other_even = np.int64(compared.structure.sizes[other])
    return np.int64(np.ceil(shared_above_chance_kernel(even, other_even)))


@kernel
def _append(found, pair):
    """Append a pair; return its number."""
    number = found.counters[PAIRS]
    found.left[number] = pair.left
    found.right[number] = pair.right
    found.similarity[number] = pair.similarity
    found.distance[number] = pair.distance
    found.structure[number] = pair.structure
    found.exact[number] = pair.exact
    found.best[number] = 0
    found.counters[PAIRS] = number + 1
    return number


@kernel
def _better(best, pair, found):
    """Return which of two pairs removes a document: the more similar; of equally similar ones, the
    one with the earlier document.
    """
    if best < 0 or found.similarity[pair] > found.similarity[best]:
        return pair
    is_equal = found.similarity[pair] == found.similarity[best]
    return pair if is_equal and found.left[pair] < found.left[best] else best


@kernel
def _removes(best, rules, found):
    """Mark the pair that removes a document; return whether there is one."""
    if best < 0 or rules.all_pairs:
        return False
    found.best[best] = 1
    return True


@kernel
def _is_plain_copy(position, order, rules, found):
    """Decide a copy of a kept document without a comparison; return whether it was one."""
    first = np.int64(order.representative[position])
    if first == position or not order.kept[first] or rules.all_pairs:
        return False
    if position < rules.num_against:
        order.kept[position] = 1
    else:
        found.best[_append(found, _Pair(first, position, 1.0, 0, 1.0, True))] = 1
    return True


@kernel
def enter_samples(postings, sets, documents, num_samples):
    """Enter the least `num_samples` shingles of each document as keys. Requires: sorted sets."""
    for document in documents:
        start = sets.starts[document]
        for i in range(start, start + min(np.int64(sets.sizes[document]), num_samples)):
            key = sets.hashes[i]
            if key != U64(0):
                postings.keys[find_slot(postings.keys, postings.keys, U64(0), key)] = key


@kernel
def _hits(postings, sample, floor, probes, max_bucket_size, candidates):
    """List the kept documents from position `floor` on that have enough of a sample; return their
    number, and 1 if a shingle has an earlier document that it does not list.

    candidates : uint32, with room for all entries of the postings of a sample.
    """
    hits = probes.hits
    touched = 0
    full = 0
    for key in sample:
        slot = find_slot(postings.keys, postings.keys, U64(0), key)
        if postings.keys[slot] != key or key == U64(0):
            continue
        if postings.lengths[slot] > max_bucket_size:
            full = 1
        entry = postings.head[slot]
        while entry != NONE:
            member = postings.member[entry]
            if hits[member] == 0:
                candidates[touched] = member
                touched += 1
            hits[member] += 1
            entry = postings.next[entry]
    needed = probes.needed[len(sample)]
    count = 0
    for i in range(touched):
        member = candidates[i]
        if hits[member] >= needed and member >= floor:
            candidates[count] = member
            count += 1
        hits[member] = 0
    return count, full


@kernel
def _post(postings, position, hashes, kept, max_bucket_size):
    """Enter a document under its shingles, except shingles with `max_bucket_size` documents."""
    for key in hashes:
        slot = find_slot(postings.keys, postings.keys, U64(0), key)
        if postings.keys[slot] != key or key == U64(0):
            continue
        postings.lengths[slot] += 1
        if postings.lengths[slot] == max_bucket_size + 1:
            postings.unlisted[slot] = position
        if kept and postings.lengths[slot] <= max_bucket_size:
            entry = postings.used[0]
            postings.member[entry] = position
            postings.next[entry] = postings.head[slot]
            postings.head[slot] = entry
            postings.used[0] = entry + 1


@kernel(allocates=True)
def sieve_contained(span, order, compared, postings, probes, rules, found):
    """Decide positions span[0] to span[1]; return the first position that is not decided: earlier
    if `found` or the postings are full.

    As `sieve`, but a document is compared with the kept ones that have enough of the shingles
    sampled from it, among the earliest `max_bucket_size` documents of each.
    """
    sets = compared.shingles
    num_samples = len(probes.needed) - 1
    candidates = np.empty(num_samples * rules.max_bucket_size + 1, np.uint32)
    for position in range(span[0], span[1]):
        first = np.int64(order.representative[position])
        document = order.documents[first]
        start = sets.starts[document]
        hashes = sets.hashes[start : start + np.int64(sets.sizes[document])]
        has_room = len(found.left) - found.counters[PAIRS] > len(candidates) + 1
        if not has_room or len(postings.member) - postings.used[0] < len(hashes):
            return position
        if _is_plain_copy(position, order, rules, found):
            continue
        order.kept[position] = 1
        if not probes.queries[position]:
            continue
        is_skipped = rules.skips_copies and first != position
        if position >= rules.num_against or rules.all_pairs:
            sample = hashes[: min(len(hashes), num_samples)]
            # The first document with this content was compared with the documents before it.
            floor = first + 1 if is_skipped else 0
            count, full = _hits(postings, sample, floor, probes, rules.max_bucket_size, candidates)
            if count and _judge(
                position, candidates[:count], (0, 0), order, compared, rules, found, found
            ):
                order.kept[position] = 0
            else:
                order.kept[position] += full
        if first == position or (rules.all_pairs and not is_skipped):
            _post(postings, position, hashes, order.kept[position], rules.max_bucket_size)
    return span[1]


@kernel
def sieve_near(span, order, sets, near, listed, rules, found):
    """Decide positions span[0] to span[1]; return the first position that is not decided: earlier
    if `found` is nearly full.

    As `sieve`, but a document is compared with the kept ones whose fingerprints are near its own,
    among the earliest `max_bucket_size` of each fingerprint.
    """
    limit = 1 if _needs_one(rules) else rules.max_bucket_size
    for position in range(span[0], span[1]):
        room = len(found.left) - found.counters[PAIRS]
        if room < 2:
            return position
        if _is_plain_copy(position, order, rules, found):
            continue
        order.kept[position] = 1
        if near.node[position] == NO_NODE:
            continue
        node = np.int64(near.node[position])
        if room < _num_listed(node, near, listed, rules.max_bucket_size) + 2:
            return position
        if position >= rules.num_against or rules.all_pairs:
            _judge_near(position, order, sets, near, listed, rules, found)
        if np.int64(order.representative[position]) == position or rules.all_pairs:
            _list_member(listed, node, position, order.kept[position], limit)
    return span[1]


@kernel
def _needs_one(rules):
    """Return whether the earliest document of each fingerprint is enough: all its documents are at
    the same distance, and only the distance counts.
    """
    return rules.similarity == HAMMING and not rules.all_pairs


@kernel
def _list_member(listed, node, position, is_kept, limit):
    """List a document under its fingerprint, if it is kept and among the first `limit`."""
    if listed.num_members[node] < limit and is_kept:
        if listed.first[node] == NONE:
            listed.first[node] = position
        else:
            listed.next[listed.last[node]] = position
        listed.last[node] = position
    if listed.num_members[node] <= limit:  # limit + 1 shows that one is not listed
        listed.num_members[node] += 1


@kernel
def _num_listed(node, near, listed, max_bucket_size):
    """Return an upper bound of the documents listed for a fingerprint and near ones."""
    # Removed documents count, too: the bound needs no walk along the chains.
    total = min(np.int64(listed.num_members[node]), max_bucket_size)
    for i in range(near.starts[node], near.starts[node + 1]):
        total += min(np.int64(listed.num_members[near.others[i]]), max_bucket_size)
    return total


@kernel
def _judge_near(position, order, sets, near, listed, rules, found):
    """Measure a document against the kept ones with near fingerprints, and decide about it."""
    node = np.int64(near.node[position])
    first = near.starts[node] - 1  # for the fingerprint itself, at distance 0
    best = -1
    is_full = False
    for i in range(first, near.starts[node + 1]):
        other_node = node if i == first else np.int64(near.others[i])
        distance = np.int64(0) if i == first else np.int64(near.distances[i])
        is_full |= _has_unlisted(listed, other_node, rules)
        member = listed.first[other_node]
        while member != NONE:
            pair = _pair_at(position, member, distance, order, sets, rules, found)
            if rules.similarity == HAMMING or pair.similarity >= rules.threshold:
                best = _better(best, _append(found, pair), found)
            else:
                found.counters[REJECTED] += 1
            member = listed.next[member]
    order.kept[position] = 0 if _removes(best, rules, found) else 1 + is_full


@kernel
def _has_unlisted(listed, node, rules):
    """Return whether a fingerprint has a document that is not listed, and may be needed."""
    return listed.num_members[node] > rules.max_bucket_size and not _needs_one(rules)


@kernel
def _pair_at(position, member, distance, order, sets, rules, found):
    """Return the pair of a document and an earlier one, whose fingerprints have a distance."""
    first = np.int64(order.representative[position])
    exact = np.int64(order.representative[member]) == first
    similarity = 1.0
    if not exact:
        found.counters[COMPARED] += 1
        similarity = _similarity_at(distance, first, member, order, sets, rules)
    return _Pair(
        left=member,
        right=position,
        similarity=similarity,
        distance=distance,
        structure=1.0,
        exact=exact,
    )


@kernel
def _similarity_at(distance, first, member, order, sets, rules):
    """Return the similarity of two positions: by the distance of their fingerprints, or of their
    sets.
    """
    if rules.similarity == HAMMING:
        return 1.0 - distance / rules.bits
    document = order.documents[first]
    other = order.documents[np.int64(order.representative[member])]
    return measure_sets(sets, document, other, rules.similarity, rules.threshold)
