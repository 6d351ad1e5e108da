"""Compare what was proposed, exactly, and decide: sets are sorted, then documents pass the sieve in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.candidates.buckets import Proposed
from neardup.candidates.samples import choose_samples, needed_by_size
from neardup.engines.local.scratch import Scratch
from neardup.output.tables import Measured
from neardup.progress import Progress
from neardup.settings.methods import Method, MinHash, SimHash, max_bucket_of
from neardup.settings.running import Sieve

if TYPE_CHECKING:
    from neardup.kernels.sieve_arrays import Found, Neighbours, Order, Rules, Sets

_STRETCH = 8192  # documents between two releases of the mapped pages


class Confirmed(NamedTuple):
    """What the sieve found.

    kept : bool by position. left, right : uint32 positions of every pair measured at or above the threshold, in the
    order of `right`, and what was measured of it; best : bool, on the pair that removed its right document.
    compared : pairs measured. bound_met : documents that a bucket kept from an earlier one. collisions : pairs whose
    fingerprints are near and whose features are not.
    """

    kept: npt.NDArray[np.bool_]
    left: npt.NDArray[np.uint32]
    right: npt.NDArray[np.uint32]
    measured: Measured
    best: npt.NDArray[np.bool_]
    compared: int
    bound_met: int
    collisions: int


def sort_wanted(
    scratch: Scratch,
    num_shingles: int,
    wanted: npt.NDArray[np.bool_],
    threads: int,
    progress: Progress,
    name: str,
    columns: tuple[str, str] = ("shingles", "starts"),
) -> Sets:
    """Write the shingles of the wanted documents as sorted sets, on a pool of threads, into a column of their own.

    A run that is killed meanwhile finds the shingles as they were. columns : the names of the shingles and of where
    those of each document begin; name : of the sets.
    """
    from neardup.kernels import sets as kernel
    from neardup.kernels.sieve_arrays import Sets

    hashes, starts = scratch.column(columns[0], np.uint64), scratch.column(columns[1], np.int64)
    sizes = np.zeros(len(starts), np.uint32)

    def work(stretch: slice) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        stops = np.append(starts[stretch][1:], starts[stretch.stop] if stretch.stop < len(starts) else num_shingles)
        lengths = (stops - starts[stretch])[wanted[stretch]]
        sets = np.empty(int(lengths.sum() + np.maximum(1, lengths // 4 + 1).sum()), np.uint64)
        set_starts = np.empty(stretch.stop - stretch.start, np.int64)
        used = kernel.write_sets(hashes, starts[stretch], stops, wanted[stretch], sets, set_starts, sizes[stretch])
        return sets[:used], set_starts

    written = 0
    with ThreadPoolExecutor(threads) as pool:
        stretches = list(_stretches(len(starts), 1024))
        for group in range(0, len(stretches), 4 * threads):
            for sets, set_starts in pool.map(work, stretches[group : group + 4 * threads]):
                scratch.append(name, sets)
                scratch.append(f"{name}-starts", set_starts + written)
                written += len(sets)
                progress.advance(len(set_starts), 0)
            scratch.release_pages()
    return Sets(scratch.column(name, np.uint64), scratch.column(f"{name}-starts", np.int64), sizes)


class Line(NamedTuple):
    """The documents that are to pass, in order, and what decides.

    order, representative : uint32 by position. sets, structure : what is compared. rules : what removes a document.
    """

    order: npt.NDArray[np.uint32]
    representative: npt.NDArray[np.uint32]
    sets: Sets
    structure: Sets
    rules: Rules


def rules_of(method: Method, sieve: Sieve, num_against: int, all_pairs: bool) -> Rules:
    """Return what decides: similarity of the sets, distance of the fingerprints, or both."""
    from neardup.kernels.sieve_arrays import CONTAINMENT, COSINE, HAMMING, JACCARD, Rules

    if isinstance(method, SimHash):
        measure = JACCARD if method.compares_features else HAMMING
        return Rules(method.threshold, measure, max_bucket_of(method, sieve), num_against, all_pairs, method.bits)
    measure = {"jaccard": JACCARD, "containment": CONTAINMENT, "cosine": COSINE}[method.similarity]
    structure = method.structure or 0.0
    return Rules(method.threshold, measure, max_bucket_of(method, sieve), num_against, all_pairs, structure=structure)


def pass_sieve(scratch: Scratch, line: Line, proposed: Proposed, progress: Progress) -> Confirmed:
    """Let all documents pass the sieve, each compared with those in its buckets."""
    from neardup.kernels import sieve as kernel
    from neardup.kernels.sieve_arrays import Buckets, Compared

    compared = Compared(line.sets, line.structure)
    num_bands = len(proposed.band_starts)
    columns = [scratch.column(f"buckets-{band}", np.uint32) for band in range(num_bands)]

    def step(begin: int, stop: int, order: Order, found: Found) -> int:
        first = np.stack([column[begin:stop] for column in columns])
        buckets = Buckets(first, proposed.members, proposed.band_starts)
        return int(kernel.sieve(begin, stop, order, compared, buckets, line.rules, found))

    return _pass(scratch, line, step, 4 * num_bands * line.rules.max_bucket, progress)


def pass_contained(scratch: Scratch, line: Line, method: MinHash, progress: Progress) -> Confirmed:
    """Let all documents pass the sieve for containment; candidates come from samples of their shingles."""
    from neardup.kernels import sieve as kernel
    from neardup.kernels.sieve_arrays import Compared, grow, make_postings

    compared = Compared(line.sets, line.structure)
    samples = choose_samples(method.threshold, method.recall)
    needed = needed_by_size(method.threshold, method.recall, samples)
    sizes = line.sets.sizes
    originals = line.order[line.representative == np.arange(len(line.order))]
    num_keys = int(np.minimum(sizes[originals], samples.num_samples).astype(np.int64).sum())
    postings = make_postings(num_keys, max(1 << 16, 2 * num_keys, int(sizes.max(initial=0))))
    kernel.enter_samples(postings, line.sets, originals, samples.num_samples)
    hits = np.zeros(len(line.order), np.int32)

    def step(begin: int, stop: int, order: Order, found: Found) -> int:
        nonlocal postings
        span = (begin, stop)
        reached = int(kernel.sieve_contained(span, order, compared, postings, needed, hits, line.rules, found))
        if reached == begin:
            postings = grow(postings)
        return reached

    return _pass(scratch, line, step, 4 * samples.num_samples * line.rules.max_bucket, progress)


def pass_near(scratch: Scratch, line: Line, near: Neighbours, progress: Progress) -> Confirmed:
    """Let all documents pass the sieve, each compared with those whose fingerprints are near its own."""
    from neardup.kernels import sieve as kernel
    from neardup.kernels.sieve_arrays import NONE, Listed

    num_nodes = len(near.starts) - 1
    first, last, after = (np.full(size, NONE, np.int64) for size in (num_nodes, num_nodes, len(line.order)))
    listed = Listed(first, last, np.zeros(num_nodes, np.uint32), after)

    def step(begin: int, stop: int, order: Order, found: Found) -> int:
        return int(kernel.sieve_near((begin, stop), order, line.sets, near, listed, line.rules, found))

    return _pass(scratch, line, step, 0, progress)


Step = Callable[[int, int, "Order", "Found"], int]


def _pass(scratch: Scratch, line: Line, step: Step, room: int, progress: Progress) -> Confirmed:
    """Take the documents through a kernel, stretch by stretch, and its pairs to the scratch files.

    A step that gets nowhere has made room for itself, or finds more pairs with one document than `room`.
    """
    from neardup.kernels.sieve_arrays import Order

    kept = np.zeros(len(line.order), np.uint8)
    order = Order(line.order, line.representative, kept, np.zeros(len(kept), np.uint32))
    found = _empty_found(max(1 << 18, room))
    for stretch in _stretches(len(line.order), _STRETCH):
        begin = stretch.start
        while begin < stretch.stop:
            reached = step(begin, stretch.stop, order, found)
            _spill(scratch, found)
            if reached == begin and room == 0:
                found = _empty_found(2 * len(found.left))._replace(counters=found.counters)
            begin = reached
        progress.advance(stretch.stop - stretch.start, 0)
        scratch.release_pages()
    return _confirmed(scratch, kept, found)


def exact_similarity(
    sets: Sets, documents: npt.NDArray[np.uint32], others: npt.NDArray[np.uint32], similarity: str
) -> npt.NDArray[np.float64]:
    """Return the exact similarity of each document to another, row by row. Requires: their sets are sorted.

    A document that stands for its own copies shares all with itself, sorted or not.
    """
    from neardup.kernels import sets as kernel

    shared = np.empty(len(documents), np.int64)
    kernel.pair_overlaps(*sets, documents, others, shared)
    size, other_size = sets.sizes[documents].astype(np.int64), sets.sizes[others].astype(np.int64)
    out_of: npt.NDArray[Any] = size if similarity == "containment" else size + other_size - shared
    if similarity == "cosine":
        out_of = np.sqrt(size.astype(np.float64) * other_size)
    result: npt.NDArray[np.float64] = shared / np.maximum(out_of, 1)
    result[documents == others] = 1.0
    return result


def _confirmed(scratch: Scratch, kept: npt.NDArray[np.uint8], found: Found) -> Confirmed:
    """Return what the sieve left in the scratch files."""
    scratch.close_columns()
    return Confirmed(
        kept.view(np.bool_),
        scratch.column("pair-left", np.uint32),
        scratch.column("pair-right", np.uint32),
        Measured(
            scratch.column("pair-similarity", np.float64),
            scratch.column("pair-distance", np.uint16),
            scratch.column("pair-exact", np.uint8).view(np.bool_),
            scratch.column("pair-structure", np.float64),
        ),
        scratch.column("pair-best", np.uint8).view(np.bool_),
        *map(int, found.counters[1:]),
    )


def _stretches(count: int, size: int) -> Iterator[slice]:
    for start in range(0, count, size):
        yield slice(start, min(count, start + size))


def _empty_found(size: int) -> Found:
    from neardup.kernels.sieve_arrays import Found

    left, right = np.empty(size, np.uint32), np.empty(size, np.uint32)
    similarity, distance = np.empty(size, np.float64), np.empty(size, np.uint16)
    structure, exact, best = np.empty(size, np.float64), np.empty(size, np.uint8), np.empty(size, np.uint8)
    return Found(left, right, similarity, distance, structure, exact, best, np.zeros(4, np.int64))


def _spill(scratch: Scratch, found: Found) -> None:
    """Move the pairs found so far to the scratch files."""
    count = int(found.counters[0])
    for name in ("left", "right", "similarity", "distance", "structure", "exact", "best"):
        scratch.append(f"pair-{name}", getattr(found, name)[:count])
    found.counters[0] = 0
