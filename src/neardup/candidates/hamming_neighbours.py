"""Find the fingerprints within a Hamming distance of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.arrays import begins_run, offsets_from_lengths
from neardup.candidates.blocks import Radius
from neardup.candidates.hamming_join import Pairs, join
from neardup.fingerprints.simhash import num_words

if TYPE_CHECKING:
    from neardup.kernels.sieve import Neighbours


class HammingNeighbours(NamedTuple):
    """The documents with neighbouring fingerprints.

    neighbours : of each distinct fingerprint. wanted : bool by document, whether another document is within the
    distance, so that their sets may be compared. num_fingerprints : the distinct fingerprints. num_pairs : the pairs of
    distinct fingerprints within the distance.
    """

    neighbours: Neighbours
    wanted: npt.NDArray[np.bool_]
    num_fingerprints: int
    num_pairs: int


def find_neighbours(
    fingerprints: npt.NDArray[np.uint64],
    order: npt.NDArray[np.uint32],
    members: npt.NDArray[np.bool_],
    radius: Radius,
    *,
    threads: int = 1,
    collect: Callable[[Iterable[Pairs]], Pairs] | None = None,
) -> HammingNeighbours:
    """Join the distinct fingerprints of documents.

    Parameters
    ----------
    fingerprints : uint64 (num_documents, num_words), by document.
    order : uint32, the document at each position.
    members : bool by position, whether the fingerprint takes part in the join.
    radius : the bits of a fingerprint, and the distance.
    threads : worker threads.
    collect : concatenates the pairs, in scratch columns for example; None for arrays in memory.
    """
    positions = np.flatnonzero(members)
    words = num_words(radius.bits)
    distinct, inverse, num_documents = _distinct(fingerprints[order[positions]].reshape(len(positions), words))
    node = np.full(len(order), kernels.sieve.NO_NODE, np.uint32)
    node[positions] = inverse
    left, right, distance = (collect or collect_pairs)(join(distinct, *radius, threads))
    degree = np.bincount(left, minlength=len(distinct)) + np.bincount(right, minlength=len(distinct))
    starts = offsets_from_lengths(degree)
    by_node = np.argsort(np.concatenate([left, right]), kind="stable")
    others = np.concatenate([right, left])[by_node]
    neighbours = kernels.sieve.Neighbours(node, starts, others, np.concatenate([distance, distance])[by_node])
    wanted = np.zeros(len(order), np.bool_)
    wanted[order[positions]] = ((degree > 0) | (num_documents > 1))[inverse]
    return HammingNeighbours(neighbours, wanted, len(distinct), len(left))


def collect_pairs(batches: Iterable[Pairs]) -> Pairs:
    """Return all pairs as one table in memory."""
    parts = [Pairs(np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0, np.uint8)), *batches]
    return Pairs(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _distinct(
    fingerprints: npt.NDArray[np.uint64],
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Return the distinct rows, the index of each row among them, and the number of rows equal to each."""
    order = np.lexsort(fingerprints.T) if fingerprints.shape[1] > 1 else np.argsort(fingerprints[:, 0])
    ordered = fingerprints[order]
    first = begins_run(*ordered.T)
    index = np.cumsum(first) - 1
    inverse = np.empty(len(ordered), np.uint32)
    inverse[order] = index
    return ordered[first], inverse, np.bincount(index, minlength=int(first.sum()))
