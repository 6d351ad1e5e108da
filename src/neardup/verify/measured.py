"""Measures of pairs of documents, as columns, and the rule of a duplicate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import (
    Array,
    Floats,
    Ints,
    Mask,
    Uint16s,
    Words,
    arrow_of,
    filled,
    numpy_type,
    writable,
)
from neardup.errors import InputError
from neardup.features.described import Lists
from neardup.schemas import EXACT, Measures

_MAX_BITS = 256


def hamming_distance(left: int, right: int) -> int:
    """Return the number of bits in which two fingerprints differ.

    Parameters
    ----------
    left, right : fingerprints of up to 256 bits, 0 or more.

    Returns
    -------
    int
        0 to 256.

    Raises
    ------
    InputError
        If a value is not an integer from 0 to 2^256 - 1.

    Examples
    --------
    >>> hamming_distance(0b1011, 0b0010)
    2
    """
    for name, value in (("left", left), ("right", right)):
        if not isinstance(value, (int, np.integer)) or not 0 <= int(value) < 1 << _MAX_BITS:
            raise InputError(
                f"{name} must be a fingerprint, an integer from 0 to 2^{_MAX_BITS} - 1: got "
                f"{value!r}. Add 2^bits to a negative value, which was read as a signed number."
            )
    return (int(left) ^ int(right)).bit_count()


def hamming_distances(left: Words, right: Words) -> Uint16s:
    """Return the Hamming distance of each row of two arrays of fingerprints.

    Parameters
    ----------
    left, right : uint64 arrays of one shape, (num_rows,) or (num_rows, num_words).

    Returns
    -------
    uint16 array of shape (num_rows,).
    """
    are_words = left.dtype == np.uint64 and right.dtype == np.uint64
    if not are_words or left.shape != right.shape or left.ndim not in (1, 2):
        raise TypeError(
            f"hamming_distances needs two uint64 arrays of one shape: got {left.dtype} "
            f"{left.shape} and {right.dtype} {right.shape}. Compare row by row."
        )
    shape = (len(left), -1 if len(left) else 1)
    distances = np.empty(len(left), np.uint16)
    kernels.matches.row_distances(left.reshape(shape), right.reshape(shape), distances)
    return distances


class Rule(NamedTuple):
    """The condition of a duplicate pair.

    similarity : jaccard, containment or cosine of the sets, which must reach `threshold`; or
    hamming, if the distance of the fingerprints decides alone. bits : the bits of a fingerprint; 0
    without fingerprints. min_structure : the minimum cosine of the structure of two pages; 0 if it
    is not compared. above_chance : whether two documents must also share more shingles than
    unrelated texts do.
    """

    similarity: str
    threshold: float
    bits: int = 0
    min_structure: float = 0.0
    above_chance: bool = False


def similarity_of_counts(shared: Ints, sizes: Ints, other_sizes: Ints, similarity: str) -> Floats:
    """Return the similarity of sets, from the number of shared elements; 0 for empty sets."""
    measure = kernels.sorted_sets.MEASURES[similarity]
    return np.asarray(kernels.sorted_sets.similarity_of_counts(shared, sizes, other_sizes, measure))


def can_reach(rule: Rule | None, size: Array, other_size: Array) -> Mask:
    """Return whether two sets can be as similar as a rule demands, by their sizes alone.

    Parameters
    ----------
    rule : the rule of a duplicate. Sets of any sizes can be duplicates if it is None, or if the
        distance decides alone.
    size, other_size : integers (num_pairs,). Containment is the containment of the second set.
    """
    if rule is None or rule.similarity == "hamming":
        return np.ones(len(size), np.bool_)
    first = size.astype(np.int64)
    second = other_size.astype(np.int64)
    max_shared = np.minimum(first, second)
    return similarity_of_counts(max_shared, second, first, rule.similarity) >= rule.threshold


def similarity_of_lists(
    left: Lists, right: Lists, left_rows: Array, right_rows: Array, similarity: str
) -> Floats:
    """Return the exact similarity of unsorted lists, pair by pair.

    Containment is the containment of the right list.

    Parameters
    ----------
    left, right : the lists, which may be the same.
    left_rows, right_rows : integers (num_pairs,), rows of `left` and of `right`.
    """
    shared, sizes, other_sizes = count_shared(left, right, left_rows, right_rows)
    return similarity_of_counts(shared, other_sizes, sizes, similarity)


def similarity_above_chance(
    sets: tuple[Lists, Lists], even: tuple[Lists, Lists], rows: tuple[Array, Array], similarity: str
) -> Floats:
    """Return the exact similarity of lists, pair by pair, but 0 for pairs that share no more than
    unrelated texts do.

    Parameters
    ----------
    sets : the features of the left and of the right documents.
    even : the features that occur an even number of times in each.
    rows : integers (num_pairs,), rows of the left and of the right documents.
    """
    left_rows, right_rows = rows
    shared, left_sizes, right_sizes = count_shared(*sets, left_rows, right_rows)
    found = similarity_of_counts(shared, right_sizes, left_sizes, similarity)
    min_shared = kernels.sorted_sets.shared_above_chance(
        even[0].sizes[left_rows], even[1].sizes[right_rows]
    )
    return np.where(shared >= min_shared, found, 0.0)


def count_shared(left: Lists, right: Lists, left_rows: Array, right_rows: Array) -> Ints:
    """Return the sizes of lists as sets, pair by pair.

    Returns
    -------
    int64 (3, num_pairs) : the shared elements, the left list's and the right list's.
    """
    counts = np.empty((3, len(left_rows)), np.int64)
    kernels.sorted_sets.list_overlaps(
        writable(left.hashes),
        writable(left.offsets),
        writable(left_rows, np.int64),
        writable(right.hashes),
        writable(right.offsets),
        writable(right_rows, np.int64),
        counts,
    )
    return counts


Rows = slice | Array


@dataclass(frozen=True)
class Measured:
    """The measures of pairs, row by row.

    columns : arrays of shape (num_pairs,), by the name of the measure (schemas.Measure).
    """

    columns: Mapping[str, Array]

    def __getitem__(self, name: str) -> Array:
        """Return the column of a measure."""
        return self.columns[name]

    @property
    def exact(self) -> Mask:
        """Mask of the pairs whose texts are the same after normalisation."""
        return self.columns[EXACT.name]

    @staticmethod
    def join(parts: Sequence[Measured]) -> Measured:
        """Return the rows of parts, at least one, one after the other."""
        if len(parts) == 1:
            return parts[0]
        names = parts[0].columns
        return Measured({name: np.concatenate([part[name] for part in parts]) for name in names})

    def take(self, rows: Rows) -> Measured:
        """Return some of the rows."""
        return Measured({name: values[rows] for name, values in self.columns.items()})

    def select(self, measures: Measures) -> Measured:
        """Return some of the measures."""
        return Measured({measure.name: self.columns[measure.name] for measure in measures})

    def arrow(self, measures: Measures) -> list[pa.Array]:
        """Return measures as Arrow columns."""
        return [arrow_of(self.columns[measure.name]) for measure in measures]


def measured_of_copies(count: int, measures: Measures) -> Measured:
    """Return the measures of `count` pairs of copies, in writable arrays."""
    return Measured(
        {each.name: filled(count, each.of_itself, numpy_type(each.type)) for each in measures}
    )
