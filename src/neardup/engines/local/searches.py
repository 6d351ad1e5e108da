"""The searches of a run on one machine: propose pairs, measure them and decide.

Bands, samples and fingerprints each have a kernel that proposes, measures and decides in one pass
over the documents, for speed. Any other method runs its own stages in `ComposedSearch`. A test
checks that both give the same result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from neardup import kernels, schemas
from neardup.arrays import Array, Bytes, Integers, Mask, Positions, Words, find_in, mask_of, ranges
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
    from neardup.kernels.sieve import Ahead, Compared, Found, Order, Postings, Rules
    from neardup.kernels.sorted_sets import Sets

_STRETCH = 8192  # documents between two releases of the mapped pages
_FEW = 16_384  # documents that one thread sieves alone
_STRETCH_AHEAD = 1024  # documents that a thread measures before their turn
_PAIRS_AHEAD = 1 << 16  # pairs that it may find among them
_PAIRS_AT_ONCE = 65_536  # pairs that are measured in one batch
_STRETCH_OF_KEYS = 4096  # documents whose keys a thread makes at a time
_BYTES_OF_BANDS = 1 << 25  # memory to group bands at once, for each thread
_BYTES_OF_BAND = 20  # memory to group one band, for each document
_MIN_FOUND = 1 << 18  # pairs that a kernel finds before they are written
# Mapped sets and buckets that stay in memory, for each document: with the other arrays of the
# sieve, as much as `propose` needs. With less, most sets of 10 million short documents are released
# before they are compared again, which doubles the time.
_MAPPED_BYTES = 44

# The counters of kernels.sieve.Found; the third is the number of collisions.
_NUM_FOUND = 0
_NUM_COMPARED = 1


class Scope(NamedTuple):
    """The scope of a search.

    all_pairs : measure all pairs, and remove nothing. connected : measure all pairs except copies,
    which are in one cluster anyway, and remove nothing. max_bucket_size : the maximum number of
    members that a bucket lists.
    """

    all_pairs: bool
    connected: bool
    max_bucket_size: int
    threads: int

    @property
    def keeps_all(self) -> bool:
        """True if the search removes no document."""
        return self.all_pairs or self.connected


class LocalSearch(ABC):
    """The candidates of one run. `propose` first, then `sieve`, once the sets of the `wanted`
    documents are built.
    """

    wanted: Mask
    """By document: whether its set will be compared."""
    near: HammingNeighbours | None = None
    """The documents with neighbouring fingerprints, if the method has fingerprints."""
    lookup: Any
    compiles_first: ClassVar[bool] = False
    """Whether a default run needs its kernels, which are then compiled before it begins."""

    def __init__(self, scratch: Scratch, method: Method, queue: Queue, scope: Scope) -> None:
        self.scratch = scratch
        self.method = method
        self.queue = queue
        self.scope = scope
        self.lookup = method.lookup

    @abstractmethod
    def propose(self) -> None:
        """Find the candidates of each document."""

    @abstractmethod
    def sieve(self, compared: Compared, progress: Progress) -> Confirmed:
        """Run the sieve over all documents."""

    @abstractmethod
    def unlisted(self) -> Iterable[tuple[Array, Array]]:
        """Yield the first position that a bucket does not list, with each position that looks up
        the bucket, earlier or later; of each content one position.

        Requires: `sieve` has run, and copies of a document were not compared.
        """

    def _order_by_size(self, sizes: Integers) -> None:
        """Reorder the queue by falling size, so that a search for all pairs finds contained sets.

        sizes : by document, the size of its set. The content decides between equal sizes, since the
        sample of the later document counts.
        """
        if not (self.scope.all_pairs and self.method.directed):
            return
        order = self.queue.order
        content = self.scratch.column(schemas.CONTENT)[order, 0]
        content = content.byteswap()  # little-endian words, compared as bytes as on Spark
        by_size = np.lexsort((content, -sizes[order].astype(np.int64)))
        new_position = np.empty_like(order)
        new_position[by_size] = np.arange(len(order), dtype=order.dtype)
        # Representatives are positions, too, and move with the order.
        representative = new_position[self.queue.representative[by_size]]
        self.queue = self.queue._replace(order=order[by_size], representative=representative)

    def _rules(self) -> Rules:
        """Return the rules of a method for the kernels of kernels/sieve.py."""
        rule = self.method.rule or Rule("jaccard", 1.0)
        return kernels.sieve.Rules(
            threshold=rule.threshold,
            similarity=kernels.sorted_sets.MEASURES[rule.similarity],
            max_bucket_size=self.scope.max_bucket_size,
            num_against=self.queue.num_against,
            all_pairs=self.scope.keeps_all,
            bits=rule.bits,
            structure=rule.min_structure,
            skips_copies=self.scope.connected,
            above_chance=rule.above_chance,
        )

    def _pass(
        self, step: Step, capacity: int, progress: Progress, measure: Measure | None = None
    ) -> Confirmed:
        """Run a kernel over the documents in stretches, and write its pairs to the scratch files.

        Parameters
        ----------
        step : runs the kernel over a stretch, until its buffers are full.
        capacity : the maximum number of pairs with one document; 0 if there is no limit.
        measure : measures the pairs of a stretch before its turn, on another thread, with the
            documents that are decided by then.
        """
        sieve = _SievePass(self.queue, self.scope.keeps_all, step, capacity, self.scratch)
        num_documents = len(self.queue.order)
        stretches_ahead: Iterable[tuple[slice, Ahead | None]]
        if measure is None or self.scope.threads == 1 or num_documents <= _FEW:
            stretches_ahead = ((part, None) for part in stretches(num_documents, _STRETCH))
        else:
            # Threads measure only with documents before `num_decided`: decisions about later ones
            # may change while they run.
            stretches_ahead = map_ordered(
                stretches(num_documents, _STRETCH_AHEAD),
                lambda part: measure(part, sieve.num_decided, sieve.order),
                self.scope.threads,
            )
        for stretch, ahead in stretches_ahead:
            sieve.run(stretch, ahead)
            progress.advance(stretch.stop - stretch.start, 0)
            self.scratch.release_pages(_MAPPED_BYTES * num_documents)
        return sieve.finish()


Step = Callable[[int, int, "Order", "Found", "Ahead | None"], int]
"""Runs a kernel on the positions from a first to a last one; returns the position it reached. If
this is the first position, the kernel needs larger buffers.
"""

Measure = Callable[[slice, int, "Order"], "Ahead"]
"""Measures the pairs of a stretch with the documents before a position."""


class _SievePass:
    """A pass of a kernel over all documents, whose pairs are moved to the scratch files.

    num_decided : the number of positions, from the first, that are decided. Other threads read it.
    """

    def __init__(
        self, queue: Queue, keeps_all: bool, step: Step, capacity: int, scratch: Scratch
    ) -> None:
        num_documents = len(queue.order)
        kept = np.full(num_documents, keeps_all, np.uint8)
        self.order = kernels.sieve.Order(queue.order, queue.representative, kept)
        self.num_decided = num_documents if keeps_all else 0
        self._found = _empty_found(max(_MIN_FOUND, capacity))
        self._step = step
        self._grows = capacity == 0
        self._scratch = scratch

    def run(self, stretch: slice, ahead: Ahead | None) -> None:
        """Decide about the next documents. ahead : their pairs that are measured already."""
        begin = stretch.start
        while begin < stretch.stop:
            reached = self._step(begin, stretch.stop, self.order, self._found, ahead)
            # The buffers are full.
            if reached < stretch.stop:
                _spill(self._scratch, self._found)
            if reached == begin and self._grows:  # one document has more pairs than fit
                larger = _empty_found(2 * len(self._found.left))
                # The counters go on; the pairs were written by `_spill`.
                self._found = larger._replace(counters=self._found.counters)
            begin = reached
        if ahead is not None:
            self._found.counters[_NUM_COMPARED] += ahead.found.counters[_NUM_COMPARED]
        self.num_decided = max(self.num_decided, stretch.stop)  # already all if all are kept

    def finish(self) -> Confirmed:
        """Return the result, after all documents."""
        _spill(self._scratch, self._found)
        self._scratch.release_all_pages()  # pages of the sets, which the output does not need
        return _confirmed(self._scratch, self.order.kept, self._found)


class BandSearch(LocalSearch):
    """Documents that share the key of a band.

    The scratch columns contain all bands one after the other; `_starts` has the first entry of each
    band in `members`:

        buckets   | by position, the first entry of its bucket within the band | next band ...
        members   | bucket, bucket, ...: positions, the last one marked        | next band ...
    """

    lookup: BandLookup
    compiles_first = True

    def propose(self) -> None:
        """Group documents by band, a few bands at a time, and write the bucket of each to the
        columns `buckets`.
        """
        assert kernels.bands.NO_BUCKET == NO_BUCKET
        scratch = self.scratch
        num_documents = len(self.queue.order)
        num_bands = self.lookup.bands.num_bands
        self.wanted = np.zeros(num_documents, np.bool_)
        self._starts = np.zeros(num_bands, np.int64)

        threads = self.scope.threads
        fitting = threads * _BYTES_OF_BANDS // (_BYTES_OF_BAND * max(1, num_documents))
        at_once = max(1, min(threads, num_bands, fitting))
        fill = partial(self._fill_band, self._members())
        scratch.append(schemas.BUCKETS, np.empty(0, np.uint32))  # `write` needs the file
        num_members = 0
        # No more than `at_once` bands are in memory, with the one that is written.
        for band, listed in map_ordered(range(num_bands), fill, at_once, ahead=at_once - 1):
            scratch.append(schemas.MEMBERS, listed)
            scratch.release_pages()
            self._starts[band] = num_members
            num_members += len(listed)
        scratch.close_columns()

    def _members(self) -> _Members:
        """Return the members of buckets: all documents with features, or each content once."""
        is_first = self.queue.is_first
        is_member = self.queue.featured[self.queue.order]
        if not self.scope.all_pairs:
            is_member &= is_first
        positions = np.flatnonzero(is_member).astype(np.uint32)
        return _Members(
            positions=positions,
            documents=self.queue.order[positions],
            copies=np.flatnonzero(~is_first).astype(np.uint32),
        )

    def _fill_band(self, members: _Members, band: int) -> Positions:
        """Write the buckets of a band, and return the members that they list."""
        num_documents = len(self.queue.order)
        keys = self.scratch.column(schemas.KEYS.at(band))[members.documents]
        first, listed = fill_buckets(
            keys, members.positions, num_documents, self.scope.max_bucket_size
        )
        self.wanted[self.queue.order[first != NO_BUCKET]] = True
        if not self.scope.keeps_all:  # a copy looks up the bucket of its representative
            first[members.copies] = first[self.queue.representative[members.copies]]
        # Threads write disjoint ranges of the file.
        self.scratch.write(schemas.BUCKETS, first, band * num_documents)
        return listed

    def sieve(self, compared: Compared, progress: Progress) -> Confirmed:
        """Run the sieve over all documents; threads measure ahead of it."""
        rules = self._rules()
        buckets = kernels.sieve.Buckets(
            first=self.scratch.column(schemas.BUCKETS).reshape(len(self._starts), -1),
            members=self.scratch.column(schemas.MEMBERS),
            band_starts=self._starts,
        )
        # A document has at most one pair with each listed member of its buckets.
        capacity = 4 * len(self._starts) * rules.max_bucket_size

        def measure(stretch: slice, num_decided: int, order: Order) -> Ahead:
            ahead = _empty_ahead(stretch, num_decided, max(_PAIRS_AHEAD, capacity))
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
        members = self.scratch.column(schemas.MEMBERS)
        last_mark = kernels.bands.LAST_MEMBER
        last_entries = np.flatnonzero(members & last_mark)
        buckets = self.scratch.column(schemas.BUCKETS).reshape(len(self._starts), -1)
        for bucket, start in zip(buckets, self._starts, strict=True):
            positions = np.flatnonzero(bucket != NO_BUCKET)
            first = start + bucket[positions]
            last = last_entries[np.searchsorted(last_entries, first)]
            # The last entry of a full bucket is one more than it lists: the first unlisted member.
            is_full = last - first == self.scope.max_bucket_size
            yield members[last[is_full]] ^ last_mark, positions[is_full]


class _Members(NamedTuple):
    """The members of buckets. positions, documents : uint32, row by row. copies : uint32, positions
    that are not the first of their content.
    """

    positions: Positions
    documents: Positions
    copies: Positions


class SampleSearch(LocalSearch):
    """Documents that share enough of the sampled shingles of another document."""

    lookup: SampleLookup

    def propose(self) -> None:
        """Do nothing: the sieve finds the candidates."""
        self.wanted = self.queue.featured

    def sieve(self, compared: Compared, progress: Progress) -> Confirmed:
        """Run the sieve over all documents, which enters the samples of kept ones as it goes."""
        num_samples = self.lookup.samples.num_samples
        self._sets = compared.shingles
        self._order_by_size(self._sets.sizes)
        self._postings = self._make_postings(self._sets)
        rules = self._rules()
        num_positions = len(self.queue.order)
        queries = np.ones(num_positions, np.bool_)
        if self.scope.connected:
            queries = self.queue.queries(directed=self.method.directed)
        probes = kernels.sieve.Probes(
            needed=np.array(self.lookup.needed),
            queries=queries,
            hits=np.zeros(num_positions, np.int32),
        )

        def step(begin: int, stop: int, order: Order, found: Found, _: Ahead | None) -> int:
            reached = int(
                kernels.sieve.sieve_contained(
                    begin, stop, order, compared, self._postings, probes, rules, found
                )
            )
            # No progress: the postings are full.
            if reached == begin:
                self._postings = kernels.sieve.grow(self._postings)
            return reached

        return self._pass(step, 4 * num_samples * rules.max_bucket_size, progress)

    def _make_postings(self, sets: Sets) -> Postings:
        """Return postings with the samples of all contents as keys."""
        num_samples = self.lookup.samples.num_samples
        documents = self.queue.order[self.queue.is_first]
        sampled = np.minimum(sets.sizes[documents], num_samples)
        num_keys = int(sampled.astype(np.int64).sum())
        max_size = int(sets.sizes.max(initial=0))
        postings = kernels.sieve.make_postings(num_keys, max(1 << 16, 2 * num_keys, max_size))
        kernels.sieve.enter_samples(postings, sets, documents, num_samples)
        return postings

    def unlisted(self) -> Iterable[tuple[Array, Array]]:
        sets = self._sets
        order = self.queue.order
        is_full = self._postings.lengths > self.scope.max_bucket_size
        full_keys = self._postings.keys[is_full]
        by_key = np.argsort(full_keys)
        full_keys = full_keys[by_key]
        first_unlisted = self._postings.unlisted[is_full][by_key]
        # The last copy of a content has all documents before it that another copy has.
        positions = np.flatnonzero(self.queue.is_last)
        documents = order[self.queue.representative[positions]]
        for rank in range(self.lookup.samples.num_samples):
            has_sample = sets.sizes[documents] > rank
            positions = positions[has_sample]
            documents = documents[has_sample]
            sampled = sets.hashes[sets.starts[documents] + rank]
            index, is_found = find_in(full_keys, sampled)
            yield first_unlisted[index[is_found]], positions[is_found]


class DistanceSearch(LocalSearch):
    """Documents whose fingerprints are within a Hamming distance."""

    near: HammingNeighbours
    lookup: DistanceLookup

    def propose(self) -> None:
        """Join the distinct fingerprints of all documents with features."""
        queue = self.queue
        is_member = queue.featured[queue.order]
        if self.scope.connected:
            is_member &= queue.is_first
        self.near = find_neighbours(
            read_keys(self.scratch),
            queue.order,
            is_member,
            self.lookup.radius,
            threads=self.scope.threads,
            collect=partial(collect_near, self.scratch),
        )
        confirms = self.method.confirms_sets
        self.wanted = self.near.wanted if confirms else np.zeros_like(queue.featured)

    def sieve(self, compared: Compared, progress: Progress) -> Confirmed:
        """Run the sieve over all documents."""
        rules = self._rules()
        near = self.near.neighbours
        num_nodes = len(near.starts) - 1
        listed = kernels.sieve.Listed(
            first=np.full(num_nodes, kernels.sieve.NONE, np.int64),
            last=np.full(num_nodes, kernels.sieve.NONE, np.int64),
            num_members=np.zeros(num_nodes, np.uint32),
            next=np.full(len(self.queue.order), kernels.sieve.NONE, np.int64),
        )

        def step(begin: int, stop: int, order: Order, found: Found, _: Ahead | None) -> int:
            return int(
                kernels.sieve.sieve_near(
                    begin, stop, order, compared.shingles, near, listed, rules, found
                )
            )

        return self._pass(step, 0, progress)

    def unlisted(self) -> Iterable[tuple[Array, Array]]:
        near = self.near.neighbours
        num_nodes = len(near.starts) - 1
        positions = np.flatnonzero(near.node != kernels.sieve.NO_NODE)
        positions = positions[np.argsort(near.node[positions], kind="stable")]
        nodes = near.node[positions]
        rank = ranges(0, np.bincount(nodes))  # rank of each position in its node

        first_unlisted = np.full(num_nodes, len(near.node))  # beyond all positions: none
        is_first_unlisted = rank == self.scope.max_bucket_size
        first_unlisted[nodes[is_first_unlisted]] = positions[is_first_unlisted]

        # A position looks up its own fingerprint, and all neighbours of it.
        yield first_unlisted[nodes], positions
        degree = np.diff(near.starts)[nodes]
        neighbours = near.others[ranges(near.starts[nodes], degree)]
        yield first_unlisted[neighbours], np.repeat(positions, degree)


class ComposedSearch(LocalSearch):
    """Any method, with the stages one after the other: `propose`, `measure`, `decide`."""

    def propose(self) -> None:
        """Propose the candidates by the look-up of the method."""
        self._documents = read_described(self.scratch, self.method, self.queue.featured)
        if self.method.awaits_count:
            self._store_keys()
        self._order_by_size(self.method.compact(self._documents.features.sets).sizes)
        self._candidates = propose(
            self.method.lookup,
            self._documents.keys,
            self.queue.order,
            self.scope.max_bucket_size,
            all_pairs=self.scope.all_pairs,
            bands=self._bands(),
        )
        self.wanted = np.zeros_like(self.queue.featured)
        if not self.method.ordered:  # the sets of an ordered method are not sorted
            for positions in (self._candidates.left, self._candidates.right):
                self.wanted[self.queue.order[positions]] = True

    def _store_keys(self) -> None:
        """Store the keys of all documents, which were not made while they were read."""
        features = self._documents.features
        salts = self.scratch.column(schemas.SALTS.at(0))

        def make(documents: slice) -> Words:
            part = features.take(np.arange(documents.start, documents.stop))
            return self.method.summarise(part).values ^ salts[documents, None]

        parts = stretches(len(salts), _STRETCH_OF_KEYS)
        for _, keys in map_ordered(parts, make, self.scope.threads):
            for band, column in enumerate(keys.T):
                self.scratch.append(schemas.KEYS.at(band), column)
            self.scratch.release_pages()
        self.scratch.close_columns()

    def _bands(self) -> Iterator[Words]:
        """Yield the keys of each band, one band at a time in memory."""
        for column in key_columns(self.scratch):
            yield column
            self.scratch.release_pages()

    def sieve(self, compared: Compared, progress: Progress) -> Confirmed:
        """Measure the candidates, and decide."""
        queue = self.queue
        left = self._candidates.left
        right = self._candidates.right
        if self.scope.connected:  # copies are in one cluster anyway
            # A copy was not compared, or its first document with the documents before it.
            is_new = queue.is_first[right] | (left > queue.representative[right])
            is_compared = is_new & queue.queries(directed=self.method.directed)[right]
            left = left[is_compared]
            right = right[is_compared]

        confirmed, measured = self._confirm(queue.order[left], queue.order[right])
        sifted = self._sift(left[confirmed], right[confirmed], measured)
        progress.advance(len(queue.order), 0)
        return Confirmed(
            kept=sifted.kept,
            left=sifted.left,
            right=sifted.right,
            measured=sifted.measured,
            best=sifted.best,
            left_out=self._has_full_bucket() & sifted.kept,
            compared=len(self._candidates.left),
            collisions=0,
        )

    def _confirm(self, left: Positions, right: Positions) -> tuple[Mask, Measured]:
        """Measure pairs of documents on a pool of threads.

        Returns
        -------
        confirmed : bool (num_pairs,), whether a pair is a duplicate.
        measured : the measures of the confirmed pairs.
        """

        def confirm(part: slice) -> tuple[Mask, Measured]:
            measured = self.method.measure(
                self._documents, self._documents, left[part], right[part]
            )
            confirmed = self.method.is_duplicate(measured) | measured.exact
            return confirmed, measured.take(confirmed)

        # One slice also without pairs, so that the result has its columns.
        parts = stretches(max(1, len(left)), _PAIRS_AT_ONCE)
        found = [result for _, result in map_ordered(parts, confirm, self.scope.threads)]
        confirmed = np.concatenate([mask for mask, _ in found])
        return confirmed, Measured.join([measured for _, measured in found])

    def _has_full_bucket(self) -> Mask:
        """Return whether a bucket of each position does not list an earlier document."""
        positions = self._candidates.unlisted.document
        if self.scope.connected:
            positions = positions[self.queue.queries(directed=self.method.directed)[positions]]
        is_full = mask_of(positions, len(self.queue.order))
        if not self.scope.keeps_all:
            is_full[: self.queue.num_against] = False
        return is_full

    def _sift(self, left: Positions, right: Positions, measured: Measured) -> Sifted:
        """Return the decisions about confirmed pairs."""
        queue = self.queue
        if not self.scope.keeps_all:
            return sift(self.method, left, right, measured, queue)
        by_right = np.lexsort((left, right))
        return Sifted(
            kept=np.ones(len(queue.order), np.bool_),
            left=left[by_right],
            right=right[by_right],
            measured=measured.take(by_right),
            best=np.zeros(len(left), np.bool_),
        )

    def unlisted(self) -> Iterable[tuple[Array, Array]]:
        unlisted = self._candidates.unlisted
        # Of a directed method, the last copy of a content has all members before it.
        queue = self.queue
        looks_up = queue.is_last if self.method.directed else queue.is_first
        chosen = looks_up[unlisted.document]
        return [(unlisted.member[chosen], unlisted.document[chosen])]


FUSED: dict[str, type[LocalSearch]] = {
    "bands": BandSearch,
    "samples": SampleSearch,
    "fingerprints": DistanceSearch,
}
"""The searches with a kernel, by the name of a look-up."""


def search_of(method: Method) -> type[LocalSearch]:
    """Return the search with a kernel for the look-up and the rule of a method, or its stages."""
    return ComposedSearch if method.rule is None else FUSED.get(method.lookup.name, ComposedSearch)


def stores_sets(method: Method, selection: SelectionSettings, compares_more: bool) -> bool:
    """Return whether the first reading stores the shingles of all documents, instead of cutting the
    candidates again.

    compares_more : see `Rule`.
    """
    # A kernel cuts them again: of 500 MB of text, the 600 MB of shingles took longer to write than
    # to compute again. Some rules and searches without a kernel measure pairs that are not among
    # the candidates; groups are part of the shingles.
    if not method.confirms_sets:
        return False
    needs_all = search_of(method) is ComposedSearch or compares_more
    return needs_all or selection.within is not None or not method.describes_again


def key_columns(scratch: Scratch) -> list[Words]:
    """Return the columns of the keys, one for each band or word."""
    columns: list[Words] = []
    # A column that was never written is empty.
    while len(column := scratch.column(schemas.KEYS.at(len(columns)))):
        columns.append(column)
    return columns


def read_keys(scratch: Scratch) -> Words:
    """Return the keys of all documents, uint64 (num_documents, num_keys)."""
    columns = key_columns(scratch)
    # Without a copy: the keys of all documents may be large.
    if len(columns) == 1:
        return columns[0].reshape(-1, 1)
    return np.stack(columns, axis=1) if columns else np.empty((0, 0), np.uint64)


def read_described(scratch: Scratch, method: Method, featured: Mask) -> Described:
    """Return all documents of a run as input of the method's stages, mapped from scratch
    columns; without keys of bands, which no method measures and which may not fit in memory.
    """
    content = scratch.column(schemas.CONTENT)
    sets = _read_lists(scratch, schemas.SHINGLES, schemas.SHINGLE_STARTS)
    structure = None
    if len(scratch.column(schemas.TAG_STARTS)):
        structure = _read_lists(scratch, schemas.TAGS, schemas.TAG_STARTS)
    keys = np.empty((len(content), 0), np.uint64)
    # A method without keys, such as containment, has no columns.
    if method.lookup.bands is None and len(scratch.column(schemas.KEYS.at(0))):
        keys = read_keys(scratch)
    return Described(Features(content, sets, structure), Keys(keys, content, featured, sets))


def _read_lists(scratch: Scratch, hashes: schemas.Column, starts: schemas.Column) -> Lists:
    values = scratch.column(hashes)
    return Lists(values, np.append(scratch.column(starts), len(values)))


def measure_pairs(
    method: Method, documents: Described, left: Positions, right: Positions
) -> Measured:
    """Return the measures of pairs of documents of a run, computed in batches; `left` may remove
    `right`.

    Parameters
    ----------
    left, right : uint32 (num_pairs,), documents.
    """
    # One slice also without pairs, so that the result has its columns.
    slices = stretches(max(1, len(left)), _PAIRS_AT_ONCE)
    parts = [method.measure(documents, documents, left[part], right[part]) for part in slices]
    return Measured.join(parts)


def collect_near(scratch: Scratch, batches: Iterable[NearPairs]) -> NearPairs:
    """Return pairs of fingerprints within the distance, stored in scratch columns."""
    for batch in batches:
        scratch.append(schemas.NEAR_LEFT, np.asarray(batch.left))
        scratch.append(schemas.NEAR_RIGHT, np.asarray(batch.right))
        scratch.append(schemas.NEAR_DISTANCE, np.asarray(batch.distance))
    scratch.close_columns()
    return NearPairs(
        left=scratch.column(schemas.NEAR_LEFT),
        right=scratch.column(schemas.NEAR_RIGHT),
        distance=scratch.column(schemas.NEAR_DISTANCE),
    )


def _confirmed(scratch: Scratch, kept: Bytes, found: Found) -> Confirmed:
    """Return the result of the sieve from the scratch files.

    kept : uint8 by position, as in kernels.sieve.Order.
    """
    scratch.close_columns()
    measured = Measured(
        {
            schemas.SIMILARITY.name: scratch.column(schemas.PAIR_SIMILARITY),
            schemas.DISTANCE.name: scratch.column(schemas.PAIR_DISTANCE),
            schemas.STRUCTURE.name: scratch.column(schemas.PAIR_STRUCTURE),
            schemas.EXACT.name: scratch.column(schemas.PAIR_EXACT).view(np.bool_),
        }
    )
    _, num_compared, num_collisions = found.counters.tolist()
    return Confirmed(
        kept=kept != kernels.sieve.REMOVED,
        left=scratch.column(schemas.PAIR_LEFT),
        right=scratch.column(schemas.PAIR_RIGHT),
        measured=measured,
        best=scratch.column(schemas.PAIR_BEST).view(np.bool_),
        left_out=kept == kernels.sieve.KEPT_WITH_UNLISTED,
        compared=num_compared,
        collisions=num_collisions,
    )


def _empty_found(size: int) -> kernels.sieve.Found:
    columns = [np.empty(size, column.dtype) for column in schemas.PAIR]
    return kernels.sieve.Found._make([*columns, np.zeros(3, np.int64)])


def _empty_ahead(stretch: slice, num_decided: int, capacity: int) -> Ahead:
    size = stretch.stop - stretch.start
    return kernels.sieve.Ahead(
        begin=stretch.start,
        floor=num_decided,
        state=np.zeros(size, np.uint8),
        ends=np.empty(size, np.int64),
        found=_empty_found(capacity),
    )


def _spill(scratch: Scratch, found: Found) -> None:
    """Move the pairs found so far to the scratch files."""
    count = int(found.counters[_NUM_FOUND])
    # The last field is the counters.
    columns: Sequence[Array] = list(found)[:-1]
    for column, values in zip(schemas.PAIR, columns, strict=True):
        scratch.append(column, values[:count])
    found.counters[_NUM_FOUND] = 0
