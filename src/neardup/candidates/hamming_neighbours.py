"""Find the fingerprints that are near one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.candidates.hamming_join import join
from neardup.engines.local.scratch import Scratch
from neardup.settings.methods import SimHash

if TYPE_CHECKING:
    from neardup.kernels.sieve_arrays import Neighbours


class Near(NamedTuple):
    """Which documents have near fingerprints.

    representative : uint32 by position, the first position of equal content. neighbours : of each fingerprint.
    wanted : bool by document, True where another document is near, whose set may be compared. num_fingerprints :
    distinct ones. num_pairs : of distinct fingerprints that are near.
    """

    representative: npt.NDArray[np.uint32]
    neighbours: Neighbours
    wanted: npt.NDArray[np.bool_]
    num_fingerprints: int
    num_pairs: int


def find_near(
    scratch: Scratch,
    order: npt.NDArray[np.uint32],
    featured: npt.NDArray[np.bool_],
    representative: npt.NDArray[np.uint32],
    method: SimHash,
    threads: int,
    *,
    copies_join: bool,
) -> Near:
    """Join the distinct fingerprints of all documents with features.

    copies_join : whether copies have a fingerprint of their own, or only the first of them has.
    """
    from neardup.kernels.sieve_arrays import NO_NODE, Neighbours

    fingerprints = fingerprints_of(scratch, method.bits)
    members = featured[order]
    if not copies_join:
        members &= representative == np.arange(len(order))
    positions = np.flatnonzero(members)
    distinct, inverse, num_documents = _distinct(fingerprints[order[positions]])
    node = np.full(len(order), NO_NODE, np.uint32)
    node[positions] = inverse
    left, right, distance = join_all(scratch, distinct, method, threads)
    starts = np.zeros(len(distinct) + 1, np.int64)
    np.cumsum(np.bincount(left, minlength=len(distinct)) + np.bincount(right, minlength=len(distinct)), out=starts[1:])
    by_node = np.argsort(np.concatenate([left, right]), kind="stable")
    others = np.concatenate([right, left])[by_node]
    neighbours = Neighbours(node, starts, others, np.concatenate([distance, distance])[by_node])
    wanted = np.zeros(len(order), np.bool_)
    wanted[order[positions]] = ((np.diff(starts) > 0) | (num_documents > 1))[inverse]
    return Near(representative, neighbours, wanted, len(distinct), len(left))


def fingerprints_of(scratch: Scratch, bits: int) -> npt.NDArray[np.uint64]:
    """Return the fingerprints of all documents, uint64 (num_documents, num_words)."""
    column: npt.NDArray[np.uint64] = scratch.column("fingerprints", np.uint64)
    return column.reshape(-1, (bits + 63) // 64)


def join_all(
    scratch: Scratch, fingerprints: npt.NDArray[np.uint64], method: SimHash, threads: int
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.uint8]]:
    """Return all pairs of near fingerprints, in scratch files."""
    for pairs in join(fingerprints, method.bits, method.max_distance, method.num_blocks, threads):
        for name, values in pairs._asdict().items():
            scratch.append(f"near-{name}", values)
    scratch.close_columns()
    return (
        scratch.column("near-left", np.uint32),
        scratch.column("near-right", np.uint32),
        scratch.column("near-distance", np.uint8),
    )


def _distinct(
    fingerprints: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Return the distinct rows, the number of each row among them, and how many rows each of them has."""
    order = np.lexsort(fingerprints.T) if fingerprints.shape[1] > 1 else np.argsort(fingerprints[:, 0])
    ordered = fingerprints[order]
    first = np.ones(len(ordered), np.bool_)
    first[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    number = np.cumsum(first) - 1
    inverse = np.empty(len(ordered), np.uint32)
    inverse[order] = number
    return ordered[first], inverse, np.bincount(number, minlength=int(first.sum()))
