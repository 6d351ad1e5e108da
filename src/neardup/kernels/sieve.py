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
from neardup.kernels.compiled import I64, U32, U64, kernel
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

NO_NODE = U32(0xFFFFFFFF)
NONE = I64(-1)
# Values of `Order.kept`; the last is for a kept document that may be similar to an earlier one that
# a full bucket does not list.
REMOVED, KEPT, KEPT_WITH_UNLISTED = range(3)
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
    of equal content; kept : uint8, written by the sieve: REMOVED, KEPT, or KEPT_WITH_UNLISTED for a
    kept document with an earlier one in a bucket that does not list it. REMOVED before, or KEPT if
    nothing is removed.
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
        keys=np.zeros(num_slots, U64),
        head=np.full(num_slots, NONE),
        lengths=np.zeros(num_slots, I64),
        unlisted=np.empty(num_slots, U32),
        next=np.empty(capacity, I64),
        member=np.empty(capacity, U32),
        used=np.zeros(1, I64),
    )


def grow(postings: Postings) -> Postings:
    """Return the same postings with room for twice as many entries."""
    free = np.empty(len(postings.member), I64)
    return postings._replace(
        next=np.concatenate([postings.next, free]),
        member=np.concatenate([postings.member, free.astype(U32)]),
    )


class _Pair(NamedTuple):
    """A pair of positions, as in `Found`."""

    left: int
    right: int
    similarity: float
    distance: int
    structure: float
    exact: bool


class _Span(NamedTuple):
    """Positions from `begin` on, before `stop`."""

    begin: int
    stop: int


class _Known(NamedTuple):
    """The candidates of a position that are measured: all before the position `floor`. Their pairs
    begin at the number `pair` of `Ahead.found`, in the order of the candidates.
    """

    floor: int
    pair: int


_NONE_KNOWN = _Known(floor=0, pair=0)


class _NearNode(NamedTuple):
    """A node of `Neighbours`, and its distance from the fingerprint of a document."""

    node: int
    distance: int


@kernel(allocates=True)
def measure_ahead(stop, order, compared, buckets, rules, ahead):
    """Measure positions from `ahead.begin` to `stop` with the documents before `ahead.floor` that
    are kept.

    Nothing is decided, and nothing is measured that `sieve` would not: a copy is skipped unless the
    first document with its content is removed already. Stops early when `ahead.found` is nearly
    full.
    """
    candidates = np.empty(buckets.first.shape[0] * rules.max_bucket_size + 1, U32)
    table = np.empty(4 * len(candidates), U64)
    span = _Span(0, ahead.floor)
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
                _judge(
                    position, candidates[:count], _NONE_KNOWN, order, compared, rules, found, found
                )
        ahead.ends[index] = found.counters[PAIRS]


@kernel
def _may_be_decided(position, order, rules, floor):
    """Return whether `sieve` may have to compare a document: not if it is always kept, nor if it is
    a copy whose first document is kept or not yet decided.
    """
    first = I64(order.representative[position])
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
    candidates = np.empty(buckets.first.shape[0] * rules.max_bucket_size + 1, U32)
    table = np.empty(4 * len(candidates), U64)
    for position in range(begin, stop):
        if len(found.left) - found.counters[PAIRS] < len(candidates) + 1:
            return position
        is_copy = order.representative[position] != position
        if is_copy and _decide_copy(position, order, rules, found):
            continue
        has_unlisted = False
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
            has_unlisted = (state & _FULL) != 0
        _keep(position, has_unlisted, order.kept)
    return stop


@kernel(inline=True)
def _keep(position, has_unlisted, kept):
    """Mark a document as kept; a removed one keeps its mark. has_unlisted : whether one
    of its buckets has an earlier document that it does not list.
    """
    kept[position] = KEPT_WITH_UNLISTED if has_unlisted else KEPT


@kernel(inline=True)
def _propose(position, kept, buckets, rules, ahead, candidates, table):
    """List the candidates of a position: measured ones in `ahead`, and later ones from its buckets.

    Return their number, the state of `Ahead`, and which of them are known.
    """
    index = position - ahead.begin
    state = ahead.state[index]
    floor = 0
    pair = I64(0)
    end = I64(0)
    if state & _MEASURED:
        floor = ahead.floor
        pair = ahead.ends[index - 1] if index else I64(0)
        end = ahead.ends[index]
    lefts = ahead.found.left[pair:end]
    count = end - pair
    if state & _MEASURED and not state & _OPEN:
        for i in range(count):
            candidates[i] = lefts[i]
    else:
        span = _Span(floor, position)
        limit = rules.max_bucket_size
        count, state = _gather(buckets, position, span, lefts, kept, limit, candidates, table)
    return count, state, _Known(floor, pair)


@kernel
def _gather(buckets, position, span, lefts, kept, max_bucket_size, candidates, table):  # noqa: C901
    """List the kept documents in the buckets of a position, each once; return their number, and the
    state of `Ahead`.

    span : the positions whose `kept` counts. lefts : uint32, the candidates before the span, each
    once, in the order in which the buckets first list them.
    """
    count = 0
    state = _MEASURED
    num_lefts = 0
    for band in range(buckets.first.shape[0]):
        if buckets.first[band, position] == NO_BUCKET:
            continue
        entry = buckets.band_starts[band] + I64(buckets.first[band, position])
        # Members rise, and the one after the listed ones shows whether the bucket is full.
        for rank in range(max_bucket_size + 1):
            member = buckets.members[entry]
            other = I64(member & ~LAST_MEMBER)
            if other >= position:
                break
            is_listed = False
            if rank == max_bucket_size:
                state |= _FULL
            elif other >= span.stop:
                state |= _OPEN
            elif other >= span.begin:
                is_listed = kept[other] != REMOVED
            # `lefts` has the order of this walk: a member that is not the next of them is not a
            # candidate, or was listed before.
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

    earlier : the pairs of the known candidates.
    """
    pair = known.pair
    first = I64(order.representative[position])
    document = order.documents[first]
    best = -1
    count = _sift(position, candidates, known.floor, order, compared.shingles, rules, found)
    for candidate in candidates[:count]:
        other = I64(candidate)
        other_first = I64(order.representative[other])
        exact = other_first == first
        similarity = 1.0
        structure = 1.0
        if other < known.floor:
            similarity = earlier.similarity[pair]
            structure = earlier.structure[pair]
            pair += 1
        elif not exact:
            similarity, structure = _measure(
                compared, document, order.documents[other_first], rules
            )
        # All candidates are measured, since the most similar one removes the document.
        if similarity >= rules.threshold and structure >= rules.structure:
            added = _Pair(
                left=other,
                right=position,
                similarity=similarity,
                distance=0,
                structure=structure,
                exact=exact,
            )
            best = _better(best, _append(found, added), found)
    return _mark_remover(best, rules, found)


@kernel
def _sift(position, candidates, floor, order, sets, rules, found):
    """Filter candidates from `floor` on by size and bitmap, and prefetch their sets; return the
    number of all candidates left.

    The parts of a set lie far apart in memory, so each is prefetched some steps before.
    """
    _prefetch_sketches(candidates, floor, order, sets)
    first = I64(order.representative[position])
    document = order.documents[first]
    hashes = address_of(sets.hashes)
    count = 0
    for candidate in candidates:
        other_first = I64(order.representative[I64(candidate)])
        if candidate >= floor and other_first != first:
            found.counters[COMPARED] += 1
            other = order.documents[other_first]
            if not may_reach(sets, document, other, rules.similarity, rules.threshold):
                continue
            begin = sets.starts[other]
            for word in range(begin, begin + I64(sets.sizes[other]), 8):
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
            other = I64(order.documents[I64(order.representative[I64(candidate)])])
            prefetch(starts + 8 * other)
            prefetch(sizes + 4 * other)
    for candidate in candidates:
        if candidate >= floor:
            other = I64(order.documents[I64(order.representative[I64(candidate)])])
            begin = sets.starts[other]
            for word in range(begin - sketch_words(I64(sets.sizes[other])), begin, 8):
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
        return I64(0)
    even = I64(compared.structure.sizes[document])
    other_even = I64(compared.structure.sizes[other])
    return I64(np.ceil(shared_above_chance_kernel(even, other_even)))


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
def _mark_remover(best, rules, found):
    """Mark the pair that removes a document; return whether there is one."""
    if best < 0 or rules.all_pairs:
        return False
    found.best[best] = 1
    return True


@kernel
def _decide_copy(position, order, rules, found):
    """Decide a copy of a kept document without a comparison; return whether it was one."""
    first = I64(order.representative[position])
    if first == position or not order.kept[first] or rules.all_pairs:
        return False
    if position < rules.num_against:
        _keep(position, False, order.kept)
    else:
        pair = _Pair(
            left=first,
            right=position,
            similarity=1.0,
            distance=0,
            structure=1.0,
            exact=True,
        )
        _mark_remover(_append(found, pair), rules, found)
    return True


@kernel
def enter_samples(postings, sets, documents, num_samples):
    """Enter the least `num_samples` shingles of each document as keys. Requires: sorted sets."""
    for document in documents:
        start = sets.starts[document]
        for i in range(start, start + min(I64(sets.sizes[document]), num_samples)):
            key = sets.hashes[i]
            if key != U64(0):
                postings.keys[find_slot(postings.keys, postings.keys, U64(0), key)] = key


@kernel
def _hits(postings, sample, floor, probes, max_bucket_size, candidates):
    """List the kept documents from position `floor` on that have enough of a sample; return their
    number, and whether a shingle has an earlier document that it does not list.

    candidates : uint32, with room for all entries of the postings of a sample.
    """
    hits = probes.hits
    touched = 0
    has_unlisted = False
    for key in sample:
        slot = find_slot(postings.keys, postings.keys, U64(0), key)
        if postings.keys[slot] != key or key == U64(0):
            continue
        if postings.lengths[slot] > max_bucket_size:
            has_unlisted = True
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
    return count, has_unlisted


@kernel
def _post(postings, position, hashes, is_kept, max_bucket_size):
    """Enter a document under its shingles, except shingles with `max_bucket_size` documents."""
    for key in hashes:
        slot = find_slot(postings.keys, postings.keys, U64(0), key)
        if postings.keys[slot] != key or key == U64(0):
            continue
        postings.lengths[slot] += 1
        if postings.lengths[slot] == max_bucket_size + 1:
            postings.unlisted[slot] = position
        if is_kept and postings.lengths[slot] <= max_bucket_size:
            entry = postings.used[0]
            postings.member[entry] = position
            postings.next[entry] = postings.head[slot]
            postings.head[slot] = entry
            postings.used[0] = entry + 1


@kernel(allocates=True)
def sieve_contained(begin, stop, order, compared, postings, probes, rules, found):
    """Decide positions `begin` to `stop`; return the first position that is not decided: earlier
    if `found` or the postings are full.

    As `sieve`, but a document is compared with the kept ones that have enough of the shingles
    sampled from it, among the earliest `max_bucket_size` documents of each.
    """
    sets = compared.shingles
    num_samples = len(probes.needed) - 1
    candidates = np.empty(num_samples * rules.max_bucket_size + 1, U32)
    for position in range(begin, stop):
        first = I64(order.representative[position])
        document = order.documents[first]
        start = sets.starts[document]
        hashes = sets.hashes[start : start + I64(sets.sizes[document])]
        has_room = len(found.left) - found.counters[PAIRS] > len(candidates) + 1
        if not has_room or len(postings.member) - postings.used[0] < len(hashes):
            return position
        if _decide_copy(position, order, rules, found):
            continue
        if not probes.queries[position]:
            _keep(position, False, order.kept)
            continue
        is_removed = False
        has_unlisted = False
        is_skipped = rules.skips_copies and first != position
        if position >= rules.num_against or rules.all_pairs:
            sample = hashes[: min(len(hashes), num_samples)]
            # The first document with this content was compared with the documents before it.
            floor = first + 1 if is_skipped else 0
            count, has_unlisted = _hits(
                postings, sample, floor, probes, rules.max_bucket_size, candidates
            )
            is_removed = count > 0 and _judge(
                position, candidates[:count], _NONE_KNOWN, order, compared, rules, found, found
            )
        if not is_removed:
            _keep(position, has_unlisted, order.kept)
        if first == position or (rules.all_pairs and not is_skipped):
            _post(postings, position, hashes, not is_removed, rules.max_bucket_size)
    return stop


@kernel
def sieve_near(begin, stop, order, sets, near, listed, rules, found):
    """Decide positions `begin` to `stop`; return the first position that is not decided: earlier
    if `found` is nearly full.

    As `sieve`, but a document is compared with the kept ones whose fingerprints are near its own,
    among the earliest `max_bucket_size` of each fingerprint.
    """
    limit = 1 if _needs_one(rules) else rules.max_bucket_size
    for position in range(begin, stop):
        room = len(found.left) - found.counters[PAIRS]
        if room < 2:
            return position
        if _decide_copy(position, order, rules, found):
            continue
        if near.node[position] == NO_NODE:
            _keep(position, False, order.kept)
            continue
        node = I64(near.node[position])
        if room < _num_listed(node, near, listed, rules.max_bucket_size) + 2:
            return position
        # The kernels called here are inlined, since a call with these arrays takes longer than the
        # rest of a document without near fingerprints.
        is_compared = position >= rules.num_against or rules.all_pairs
        is_removed = is_compared and _judge_near(position, order, sets, near, listed, rules, found)
        if not is_removed:
            has_unlisted = is_compared and _has_unlisted(node, near, listed, rules)
            _keep(position, has_unlisted, order.kept)
        if I64(order.representative[position]) == position or rules.all_pairs:
            _list_member(listed, node, position, not is_removed, limit)
    return stop


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
    total = min(I64(listed.num_members[node]), max_bucket_size)
    for i in range(near.starts[node], near.starts[node + 1]):
        total += min(I64(listed.num_members[near.others[i]]), max_bucket_size)
    return total


@kernel(inline=True)
def _judge_near(position, order, sets, near, listed, rules, found):
    """Measure a document against the kept ones with near fingerprints; return whether one of them
    removes it.
    """
    node = I64(near.node[position])
    own = _NearNode(node, I64(0))
    best = _best_of_node(position, own, -1, order, sets, listed, rules, found)
    for i in range(near.starts[node], near.starts[node + 1]):
        other = _NearNode(I64(near.others[i]), I64(near.distances[i]))
        best = _best_of_node(position, other, best, order, sets, listed, rules, found)
    return _mark_remover(best, rules, found)


@kernel(inline=True)
def _best_of_node(position, near_node, best, order, sets, listed, rules, found):
    """Measure a document against the listed ones of a node; return the better of `best` and the
    pairs with them.
    """
    member = listed.first[near_node.node]
    while member != NONE:
        pair = _pair_at(position, member, near_node.distance, order, sets, rules, found)
        if rules.similarity == HAMMING or pair.similarity >= rules.threshold:
            best = _better(best, _append(found, pair), found)
        else:
            found.counters[REJECTED] += 1
        member = listed.next[member]
    return best


@kernel(inline=True)
def _has_unlisted(node, near, listed, rules):
    """Return whether a fingerprint, or a near one, has a document that is not listed and may be
    needed.
    """
    if _needs_one(rules):
        return False
    has_unlisted = listed.num_members[node] > rules.max_bucket_size
    for i in range(near.starts[node], near.starts[node + 1]):
        has_unlisted |= listed.num_members[near.others[i]] > rules.max_bucket_size
    return has_unlisted


@kernel
def _pair_at(position, member, distance, order, sets, rules, found):
    """Return the pair of a document and an earlier one, whose fingerprints have a distance."""
    first = I64(order.representative[position])
    exact = I64(order.representative[member]) == first
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
    other = order.documents[I64(order.representative[member])]
    return measure_sets(sets, document, other, rules.similarity, rules.threshold)
