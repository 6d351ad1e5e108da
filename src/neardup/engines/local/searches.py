"""The searches of a run on one machine: propose pairs, measure them and decide.

Bands, samples and fingerprints each have a kernel that proposes, measures and decides in one pass
over the documents, for speed. Any other method runs its own stages in `ComposedSearch`. A test
checks that both give the same result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from neardup import kernels, schemas
from neardup.arrays import Array, Bytes, Integers, Ints, Mask, Positions, Words, find_in, ranges
from neardup.candidates.hamming_join import HammingNeighbours, find_neighbours
from neardup.candidates.hamming_join import Pairs as NearPairs
from neardup.candidates.lookups import BandLookup, DistanceLookup, SampleLookup
from neardup.candidates.sorted_members import NO_BUCKET, fill_buckets, propose
from neardup.decide.rule import Confirmed, Queue
from neardup.decide.sieve import Sifted, sift
from neardup.engines.local.sets import stretches
from neardup.executor import map_ordered
from neardup.features.described import Features, Keys, Lists
from neardup.methods.base import Described, Method
from neardup.progress import Progress
from neardup.runs.scratch import Scratch
from neardup.settings.run import SelectionSettings
from neardup.verify.measured import Measured, Rule

if TYPE_CHECKING:
    from neardup.kernels.sieve import Ahead, Compared, Found, Order, Rules

_STRETCH = 8192  # documents between two releases of the mapped pages
_FEW = 16_384  # documents that one thread settles without others
_STRETCH_AHEAD, _PAIRS_AHEAD = (
    1024,
    1 << 16,
)  # documents that a thread measures before their turn; pairs it may find
_PAIRS_AT_ONCE = 65_536
_BYTES_OF_BANDS, _BYTES_OF_BAND = (
    1 << 25,
    20,
)  # of the bands grouped at once, for each thread; of one, by document
# Of mapped sets and buckets, for each document: with the other arrays of the sieve, as much as
# `propose` needs. With less, most sets of 10 million short documents are released before they are
# compared again, which doubles the time.
_MAPPED_BYTES = 44


class Scope(NamedTuple):
    """The scope of a search. all_pairs : measure all pairs, and remove nothing. connected : measure
    all pairs except copies, which are in one cluster anyway. max_bucket_size : the greatest number
    of members that a bucket lists.
    """

    all_pairs: bool
    connected: bool
    max_bucket_size: int
    threads: int


class LocalSearch(ABC):
    """The candidates of one run. `propose` first, then `sieve`, once the sets of the `wanted`
    documents are built.
    """

    wanted: Mask
    """By document: whether its set will be compared."""
    near: HammingNeighbours | None = None
    """What is near among fingerprints, if there are any."""
    lookup: Any
    compiles_first: ClassVar[bool] = False
    """Whether a default run needs its kernels, which are then compiled before it begins."""

    def __init__(self, scratch: Scratch, method: Method, queue: Queue, scope: Scope) -> None:
        self.scratch, self.method, self.queue, self.scope = scratch, method, queue, scope
        self.lookup = method.lookup

    @abstractmethod
    def propose(self) -> None:
        """Find the candidates of each document."""

    @abstractmethod
    def sieve(self, compared: Compared, progress: Progress) -> Confirmed:
        """Run the sieve over all documents."""

    @abstractmethod
    def unlisted(self) -> Iterable[tuple[Array, Array]]:
        """Yield the first position that a bucket does not list, with each that looks up the bucket,
        earlier or later.

        Requires: `sieve` has run, and copies of a document were not compared.
        """

    def _order_by_size(self, sizes: Integers) -> None:
        """Put the larger document of each pair first, so that a search for all pairs finds what it
        contains.

        sizes : by document, of its set. Of equal sizes the content decides, since the sample of the
        later one counts.
        """
        if not (self.scope.all_pairs and self.method.directed):
            return
        order, representative, *_ = self.queue
        content = self.scratch.column(schemas.CONTENT)[
            order, 0
        ].byteswap()  # ordered as bytes, as on Spark
        by_size = np.lexsort((content, -sizes[order].astype(np.int64)))
        position = np.empty_like(order)
        position[by_size] = np.arange(len(order), dtype=order.dtype)
        self.queue = self.queue._replace(
            order=order[by_size], representative=position[representative[by_size]]
        )

    def _rules(self) -> Rules:
        """Return the rules of a method for the kernels of kernels/sieve.py."""
        rule = self.method.rule or Rule("jaccard", 1.0)
        return kernels.sieve.Rules(
            rule.threshold,
            kernels.sorted_sets.MEASURES[rule.similarity],
            self.scope.max_bucket_size,
            self.queue.num_against,
            self.scope.all_pairs or self.scope.connected,
            rule.bits,
            rule.min_structure,
            self.scope.connected,
            rule.above_chance,
        )

    def _pass(
        self, step: Step, capacity: int, progress: Progress, measure: Measure | None = None
    ) -> Confirmed:
        """Run a kernel over the documents in ranges, and write its pairs to the scratch files.

        A step without progress has grown its buffers, or finds more pairs with one document than
        `capacity`. `measure` looks at ranges before their turn, on other threads: at what is
        settled by then.
        """
        order, representative, _, _ = self.queue
        end, keeps_all = len(order), self.scope.all_pairs or self.scope.connected
        documents = kernels.sieve.Order(order, representative, np.full(end, keeps_all, np.uint8))
        found = _empty_found(max(1 << 18, capacity))
        settled = end if keeps_all else 0
        pending: Iterable[tuple[slice, Ahead | None]] = (
            (stretch, None) for stretch in stretches(end, _STRETCH)
        )
        if measure is not None and self.scope.threads > 1 and end > _FEW:
            parts = stretches(end, _STRETCH_AHEAD)
            pending = map_ordered(
                parts, lambda part: measure(part, settled, documents), self.scope.threads
            )
        for stretch, ahead in pending:
            begin = stretch.start
            while begin < stretch.stop:
                reached = step(begin, stretch.stop, documents, found, ahead)
                if reached < stretch.stop:
                    _spill(self.scratch, found)
                if reached == begin and capacity == 0:
                    found = _empty_found(2 * len(found.left))._replace(counters=found.counters)
                begin = reached
            if ahead is not None:
                found.counters[1] += ahead.found.counters[1]
            settled = max(settled, stretch.stop)
            progress.advance(stretch.stop - stretch.start, 0)
            self.scratch.release_pages(_MAPPED_BYTES * end)
        _spill(self.scratch, found)
        self.scratch.release_all_pages()  # of the sets, which the output does not need
        return _confirmed(self.scratch, documents.kept, found)


Step = Callable[[int, int, "Order", "Found", "Ahead | None"], int]
Measure = Callable[[slice, int, "Order"], "Ahead"]


class BandSearch(LocalSearch):
    """Documents that share the key of a band."""

    lookup: BandLookup
    compiles_first = True

    def propose(self) -> None:
        """Group documents by band, a few bands at a time, and write the bucket of each to the
        columns `buckets`.
        """
        assert kernels.bands.NO_BUCKET == NO_BUCKET
        num_bands, scope, scratch = self.lookup.bands.num_bands, self.scope, self.scratch
        order, representative, featured, _ = self.queue
        positions = np.arange(len(order), dtype=np.uint32)
        copies = np.flatnonzero(representative != positions).astype(np.uint32)
        members = featured[order]
        if not scope.all_pairs:
            members &= representative == positions
        positions = positions[members]
        documents = order[positions]
        self.wanted = np.zeros(len(order), np.bool_)
        self._starts = np.zeros(num_bands, np.int64)

        def fill(band: int) -> Positions:
            keys = scratch.column(schemas.KEYS.at(band))
            first, listed = fill_buckets(
                keys[documents], positions, len(order), scope.max_bucket_size
            )
            self.wanted[order[first != NO_BUCKET]] = True
            if not (scope.all_pairs or scope.connected):  # a copy queries like its representative
                first[copies] = first[representative[copies]]
            scratch.write(schemas.BUCKETS, first, band * len(order))
            return listed

        most = scope.threads * _BYTES_OF_BANDS // (_BYTES_OF_BAND * max(1, len(order)))
        at_once = max(1, min(scope.threads, num_bands, most))
        scratch.append(schemas.BUCKETS, np.empty(0, np.uint32))
        num_members = 0
        for band, listed in map_ordered(range(num_bands), fill, at_once, ahead=at_once - 1):
            scratch.append(schemas.MEMBERS, listed)
            scratch.release_pages()
            self._starts[band] = num_members
            num_members += len(listed)
        scratch.close_columns()

    def sieve(self, compared: Compared, progress: Progress) -> Confirmed:
        rules, starts = self._rules(), self._starts
        members = self.scratch.column(schemas.MEMBERS)
        first = self.scratch.column(schemas.BUCKETS).reshape(len(starts), -1)
        buckets, capacity = (
            kernels.sieve.Buckets(first, members, starts),
            4 * len(starts) * rules.max_bucket_size,
        )

        def measure(stretch: slice, floor: int, order: Order) -> Ahead:
            ahead = _empty_ahead(stretch, floor, max(_PAIRS_AHEAD, capacity))
            kernels.sieve.measure_ahead(stretch.stop, order, compared, buckets, rules, ahead)
            return ahead

        def step(begin: int, stop: int, order: Order, found: Found, ahead: Ahead | None) -> int:
            if ahead is None:
                ahead = _empty_ahead(slice(begin, stop), 0, 0)
            return int(
                kernels.sieve.sieve(begin, stop, order, compared, buckets, rules, ahead, found)
            )

        return self._pass(step, capacity, progress, measure)

    def unlisted(self) -> Iterable[tuple[Array, Array]]:
        members, last_mark = self.scratch.column(schemas.MEMBERS), kernels.bands.LAST_MEMBER
        lasts = np.flatnonzero(members & last_mark)
        buckets = self.scratch.column(schemas.BUCKETS).reshape(len(self._starts), -1)
        for bucket, start in zip(buckets, self._starts, strict=True):
            positions = np.flatnonzero(bucket != NO_BUCKET)
            first = start + bucket[positions]
            last = lasts[np.searchsorted(lasts, first)]
            full = last - first == self.scope.max_bucket_size
            yield members[last[full]] ^ last_mark, positions[full]


class SampleSearch(LocalSearch):
    """Documents that share enough of the sampled shingles of another document."""

    lookup: SampleLookup

    def propose(self) -> None:
        """Do nothing: the sieve finds the candidates."""
        self.wanted = self.queue.featured

    def sieve(self, compared: Compared, progress: Progress) -> Confirmed:
        rules, samples = self._rules(), self.lookup.samples
        sizes = compared.shingles.sizes
        self._order_by_size(sizes)
        order = self.queue.order
        needed = np.array(self.lookup.needed)
        originals = order[self.queue.representative == np.arange(len(order))]
        num_keys = int(np.minimum(sizes[originals], samples.num_samples).astype(np.int64).sum())
        postings = kernels.sieve.make_postings(
            num_keys, max(1 << 16, 2 * num_keys, int(sizes.max(initial=0)))
        )
        kernels.sieve.enter_samples(postings, compared.shingles, originals, samples.num_samples)
        hits = np.zeros(len(order), np.int32)
        self._sets = compared.shingles

        def step(begin: int, stop: int, order: Order, found: Found, _: Ahead | None) -> int:
            nonlocal postings
            span = (begin, stop)
            reached = int(
                kernels.sieve.sieve_contained(
                    span, order, compared, postings, needed, hits, rules, found
                )
            )
            if reached == begin:
                postings = kernels.sieve.grow(postings)
            return reached

        confirmed = self._pass(step, 4 * samples.num_samples * rules.max_bucket_size, progress)
        self._postings = postings
        return confirmed

    def unlisted(self) -> Iterable[tuple[Array, Array]]:
        sets, order, postings = self._sets, self.queue.order, self._postings
        full = np.flatnonzero(postings.lengths > self.scope.max_bucket_size)
        full = full[np.argsort(postings.keys[full])]
        positions = np.flatnonzero(self.queue.representative == np.arange(len(order)))
        for rank in range(self.lookup.samples.num_samples):
            positions = positions[sets.sizes[order[positions]] > rank]
            at, found = find_in(
                postings.keys[full], sets.hashes[sets.starts[order[positions]] + rank]
            )
            yield postings.unlisted[full][at[found]], positions[found]


class DistanceSearch(LocalSearch):
    """Documents whose fingerprints are within a Hamming distance."""

    near: HammingNeighbours
    lookup: DistanceLookup

    def propose(self) -> None:
        """Join the distinct fingerprints of all documents with features."""
        radius, queue = self.lookup.radius, self.queue
        members = queue.featured[queue.order]
        if self.scope.connected:
            members &= queue.representative == np.arange(len(queue.order))
        keys, collect = read_keys(self.scratch), partial(collect_near, self.scratch)
        self.near = find_neighbours(
            keys, queue.order, members, radius, threads=self.scope.threads, collect=collect
        )
        self.wanted = (
            self.near.wanted if self.method.confirms_sets else np.zeros_like(queue.featured)
        )

    def sieve(self, compared: Compared, progress: Progress) -> Confirmed:
        near, rules = self.near.neighbours, self._rules()
        num_nodes, num_positions = len(near.starts) - 1, len(self.queue.order)
        first, last = np.full((2, num_nodes), kernels.sieve.NONE, np.int64)
        after = np.full(num_positions, kernels.sieve.NONE, np.int64)
        listed = kernels.sieve.Listed(first, last, np.zeros(num_nodes, np.uint32), after)

        def step(begin: int, stop: int, order: Order, found: Found, _: Ahead | None) -> int:
            return int(
                kernels.sieve.sieve_near(
                    (begin, stop), order, compared.shingles, near, listed, rules, found
                )
            )

        return self._pass(step, 0, progress)

    def unlisted(self) -> Iterable[tuple[Array, Array]]:
        near, most = self.near.neighbours, self.scope.max_bucket_size
        positions = np.flatnonzero(near.node != kernels.sieve.NO_NODE)
        positions = positions[np.argsort(near.node[positions], kind="stable")]
        nodes, rank = near.node[positions], ranges(0, np.bincount(near.node[positions]))
        unlisted = np.full(len(near.starts) - 1, len(near.node))
        unlisted[nodes[rank == most]] = positions[rank == most]
        degree = np.diff(near.starts)[nodes]
        yield unlisted[nodes], positions
        yield (
            unlisted[near.others[ranges(near.starts[nodes], degree)]],
            np.repeat(positions, degree),
        )


class ComposedSearch(LocalSearch):
    """Any method, with the stages one after the other: `propose`, `measure`, `decide`."""

    def propose(self) -> None:
        """Propose the candidates by the look-up of the method."""
        self._documents = read_described(self.scratch, self.queue.featured)
        self._order_by_size(self.method.compact(self._documents.features.sets).sizes)
        keys, scope = self._documents.keys, self.scope
        self._candidates = propose(
            self.method.lookup,
            keys,
            self.queue.order,
            scope.max_bucket_size,
            all_pairs=scope.all_pairs,
        )
        self.wanted = np.zeros_like(self.queue.featured)
        if not self.method.ordered:  # no set is sorted
            self.wanted[
                self.queue.order[np.concatenate([self._candidates.left, self._candidates.right])]
            ] = True

    def sieve(self, compared: Compared, progress: Progress) -> Confirmed:
        left, right, unlisted = self._candidates
        queue, kept = self.queue, np.ones(len(self.queue.order), np.bool_)
        first = queue.representative
        if self.scope.connected:  # copies are of one cluster anyway
            original = first == np.arange(len(first))
            left, right = left[original[right]], right[original[right]]
            unlisted = unlisted[original[unlisted >> 32]]
        measured = measure_pairs(
            self.method, self._documents, queue.order[left], queue.order[right]
        )
        confirmed = self.method.is_duplicate(measured) | measured.exact
        left, right, measured = left[confirmed], right[confirmed], measured.take(confirmed)
        if self.scope.all_pairs or self.scope.connected:
            by_right, start = np.lexsort((left, right)), 0
            best = np.zeros(len(left), np.bool_)
            sifted = Sifted(kept, left[by_right], right[by_right], measured.take(by_right), best)
        else:
            start = queue.num_against
            sifted = sift(self.method, left, right, measured, queue)
        left_out = np.zeros_like(kept)
        left_out[unlisted >> 32] = True
        left_out &= sifted.kept
        left_out[:start] = False
        progress.advance(len(queue.order), 0)
        return Confirmed(*sifted, left_out, len(self._candidates.left), 0)

    def unlisted(self) -> Iterable[tuple[Array, Array]]:
        unlisted, right = self._candidates.unlisted & 0xFFFFFFFF, self._candidates.unlisted >> 32
        original = self.queue.representative[right] == right
        return [(unlisted[original], right[original])]


FUSED: dict[str, type[LocalSearch]] = {
    "bands": BandSearch,
    "samples": SampleSearch,
    "fingerprints": DistanceSearch,
}
"""The searches with a kernel, by the name of a look-up."""


def search_of(method: Method) -> type[LocalSearch]:
    """Return the search with a kernel for the look-up of a method, if its rule is one of kernels;
    else its stages.
    """
    return ComposedSearch if method.rule is None else FUSED.get(method.lookup.name, ComposedSearch)


def stores_sets(method: Method, selection: SelectionSettings, compares_more: bool) -> bool:
    """Return whether the first reading stores the shingles of all documents, instead of cutting the
    candidates again.

    Not if a kernel cuts them: of 500 MB of text, the 600 MB of shingles took longer to write than
    to compute again. Some rules and searches without a kernel measure pairs that are not among the
    candidates; groups are part of the shingles. compares_more : as in `Rule`.
    """
    if not method.confirms_sets:
        return False
    needs_all = search_of(method) is ComposedSearch or compares_more
    return needs_all or selection.within is not None or not method.describes_again


def key_columns(scratch: Scratch) -> list[Words]:
    """Return the columns of the keys, one for each band or word."""
    columns: list[Words] = []
    while len(column := scratch.column(schemas.KEYS.at(len(columns)))):
        columns.append(column)
    return columns


def read_keys(scratch: Scratch) -> Words:
    """Return the keys of all documents, uint64 (num_documents, num_keys)."""
    columns = key_columns(scratch)
    if len(columns) == 1:
        return columns[0].reshape(-1, 1)
    return np.stack(columns, axis=1) if columns else np.empty((0, 0), np.uint64)


def read_described(scratch: Scratch, featured: Mask) -> Described:
    """Return all documents of a run as input of the method's stages, mapped from the scratch
    columns.
    """
    content = scratch.column(schemas.CONTENT)
    sets = Lists(*_read_lists(scratch, schemas.SHINGLES, schemas.SHINGLE_STARTS))
    structure = None
    if len(scratch.column(schemas.TAG_STARTS)):
        structure = Lists(*_read_lists(scratch, schemas.TAGS, schemas.TAG_STARTS))
    keys = read_keys(scratch)
    if len(keys) != len(content):
        keys = np.empty((len(content), 0), np.uint64)
    return Described(Features(content, sets, structure), Keys(keys, content, featured, sets))


def _read_lists(
    scratch: Scratch, hashes: schemas.Column, starts: schemas.Column
) -> tuple[Words, Ints]:
    values = scratch.column(hashes)
    return values, np.append(scratch.column(starts), len(values))


def measure_pairs(
    method: Method, documents: Described, left: Positions, right: Positions
) -> Measured:
    """Return the measures of pairs of documents of a run, computed in batches; `left` may remove
    `right`.

    Parameters
    ----------
    left, right : uint32 (num_pairs,), documents.
    """
    slices = stretches(max(1, len(left)), _PAIRS_AT_ONCE)
    parts = [method.measure(documents, documents, left[part], right[part]) for part in slices]
    return Measured(
        {name: np.concatenate([part[name] for part in parts]) for name in parts[0].columns}
    )


def collect_near(scratch: Scratch, batches: Iterable[NearPairs]) -> NearPairs:
    """Return pairs of fingerprints within the distance, stored in scratch columns."""
    columns = (schemas.NEAR_LEFT, schemas.NEAR_RIGHT, schemas.NEAR_DISTANCE)
    for batch in batches:
        for column, values in zip(columns, (batch.left, batch.right, batch.distance), strict=True):
            scratch.append(column, np.asarray(values))
    scratch.close_columns()
    return NearPairs(*(scratch.column(column) for column in columns))


def _confirmed(scratch: Scratch, kept: Bytes, found: Found) -> Confirmed:
    """Return the result of the sieve from the scratch files."""
    scratch.close_columns()
    left, right, *columns, exact, best = (scratch.column(column) for column in schemas.PAIR)
    measures = schemas.SIMILARITY, schemas.DISTANCE, schemas.STRUCTURE, schemas.EXACT
    measured = {
        each.name: values
        for each, values in zip(measures, (*columns, exact.view(np.bool_)), strict=True)
    }
    counters = map(int, found.counters[1:])
    return Confirmed(
        kept > 0, left, right, Measured(measured), best.view(np.bool_), kept > 1, *counters
    )


def _empty_found(size: int) -> kernels.sieve.Found:
    columns = [np.empty(size, column.dtype) for column in schemas.PAIR]
    return kernels.sieve.Found._make([*columns, np.zeros(3, np.int64)])


def _empty_ahead(stretch: slice, floor: int, capacity: int) -> Ahead:
    size = stretch.stop - stretch.start
    state, ends = np.zeros(size, np.uint8), np.empty(size, np.int64)
    return kernels.sieve.Ahead(stretch.start, floor, state, ends, _empty_found(capacity))


def _spill(scratch: Scratch, found: Found) -> None:
    """Move the pairs found so far to the scratch files."""
    count = int(found.counters[0])
    arrays: Sequence[Array] = list(found)[:-1]
    for column, values in zip(schemas.PAIR, arrays, strict=True):
        scratch.append(column, values[:count])
    found.counters[0] = 0
