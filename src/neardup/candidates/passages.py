"""Find the anchors of texts, and the text around those that may repeat."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import (
    Bytes,
    Int32s,
    Ints,
    Uint32s,
    Words,
    begins_run,
    flatten_strings,
    offsets_from_lengths,
)
from neardup.executor import map_ordered
from neardup.settings.passages import MIN_LENGTH

if TYPE_CHECKING:
    from neardup.kernels.passages import Pieces

_SEED = 20261124  # of the hashes, on which no answer depends
_MARGIN = 66, 2  # characters before and behind a passage by which its ends are chosen
_FIELDS = 16  # of the table of counts, for each anchor: of those that are alone, 2 % seem to repeat
_MIN_WORDS = 1 << 10
_LARGE = 512  # anchors of a group
_PIECES = 1 << 16  # or groups, for a thread at a time
Hashes = Uint32s  # with some collisions, which cost time only


class Selected(NamedTuple):
    """The text of documents around the anchors that may repeat, in pieces.

    text : uint8, all pieces. pieces : int64 (num_pieces, 6): document, length, bytes and characters
    of the document before it, anchors up to its end, 1 if it begins the document plus 2 if it ends
    it. places : int64, of the anchors, in the text. hashes : uint32, of the anchors. characters :
    int64 by document. They count from 0 in each batch.
    """

    text: Bytes
    pieces: Ints
    places: Ints
    hashes: Hashes
    characters: Ints


class Anchoring:
    """Finds the anchors of passages of at least so many characters; called by several threads.

    bridge : characters between two passages that are in one piece.
    """

    def __init__(
        self, min_length: int, bridge: int = 0, *, size: int | None = None, seed: int = _SEED
    ) -> None:
        self.size = (64 if min_length >= 2 * 64 else 32) if size is None else size
        assert min_length >= min(MIN_LENGTH, self.size)
        self._reach = min_length + bridge + _MARGIN[0], min_length - self.size + 1 + _MARGIN[1]
        bases = np.random.default_rng(seed).integers(0, 2**64, 256, np.uint64)
        self._grams = kernels.passage_anchors.Grams(bases, self.size, min_length - self.size + 1)

    def hashes(self, texts: pa.LargeStringArray) -> Hashes:
        """Return the hashes of all anchors of texts."""
        data, offsets = flatten_strings(texts)
        ends = np.empty(len(texts), np.int64)
        hashes: Hashes = kernels.passage_anchors.find_anchors(data, offsets, self._grams, ends)[1]
        return hashes

    def select(self, texts: pa.LargeStringArray, counts: Words) -> Selected:
        """Return the text around the anchors that may repeat; counts : the table of `Counts`."""
        data, offsets = flatten_strings(texts)
        ends, characters = np.empty(len(texts), np.int64), np.empty(len(texts), np.int64)
        places, hashes = kernels.passage_anchors.find_anchors(data, offsets, self._grams, ends)
        edges = np.empty((len(places), 5), np.int64)
        anchors = places, hashes, ends
        num_pieces, count = kernels.passage_anchors.select_pieces(
            data, offsets, anchors, counts, self._reach, edges, characters
        )
        documents, starts, stops, before, up_to = edges[:num_pieces].T
        lengths = stops - starts
        bounded = (starts == offsets[documents]) + 2 * (stops == offsets[documents + 1])
        text = np.concatenate(
            [np.empty(0, np.uint8), *(data[start:stop] for start, stop in edges[:num_pieces, 1:3])]
        )
        moved = np.cumsum(lengths) - lengths - starts
        at = places[:count] + np.repeat(moved, np.diff(up_to, prepend=0))
        columns = (documents, lengths, starts - offsets[documents], before, up_to, bounded)
        return Selected(
            text, np.stack(columns, axis=1).astype(np.int64), at, hashes[:count], characters
        )


class Counts:
    """Counts anchors up to two, in little memory: another hash may count as one of them.

    num_anchors : that will be counted.
    """

    def __init__(self, num_anchors: int) -> None:
        words = _FIELDS * num_anchors // 32
        self.table = np.zeros(max(_MIN_WORDS, 1 << words.bit_length()), np.uint64)

    def add(self, hashes: Hashes) -> None:
        """Count anchors."""
        kernels.passage_anchors.count_hashes(hashes, self.table)


class Groups(NamedTuple):
    """Groups of anchors around which texts may agree.

    numbers : int32 by anchor, its group; -1 for one that is alone. sizes : int64, the anchors of
    each group. contexts : uint64 (num_anchors, 2), hashes of the text around each, by which most
    others of its group are passed over.
    """

    numbers: Int32s
    sizes: Ints
    contexts: Words


def group_anchors(
    pieces: Pieces,
    places: Ints,
    hashes: Hashes,
    length: int,
    size: int,
    num_against: int = 0,
    threads: int = 1,
) -> Groups:
    """Group the anchors of pieces by the text around them: those with a window of `length`
    characters in common.

    Those of a group that is not large may have three quarters of one in common, and a few only the
    hashed bytes. size : bytes that are hashed. num_against : documents that are kept whole: of
    copies in them, the first is enough.
    """
    named = kernels.passage_groups
    members, offsets = equal_anchors(hashes)
    contexts, parents = (
        np.empty((len(places), 2), np.uint64),
        np.arange(len(members), dtype=np.uint32),
    )
    is_hashed, sizes = np.zeros(len(places), np.bool_), np.diff(offsets)
    is_hashed[members[np.repeat(sizes > named.FEW, sizes)]] = True

    def hash_around(first: int) -> None:
        span = first, min(first + _PIECES, len(pieces.anchors))
        named.hash_around(pieces, span, places, is_hashed, length, size, contexts)

    def connect(first: int) -> None:
        named.connect_around(offsets[first : first + _PIECES + 1], members, contexts, parents)

    for work, count in ((hash_around, len(pieces.anchors)), (connect, len(offsets) - 1)):
        deque(map_ordered(range(0, count, _PIECES), work, threads), 0)
    kernels.decisions.flatten(parents)
    numbers = np.full(len(places), -1, np.int32)
    numbers[members], sizes = _without_single(parents.view(np.int32))
    large = np.flatnonzero(sizes > _LARGE)
    of_large = np.flatnonzero(np.append(sizes > _LARGE, False)[numbers])  # of number -1, none
    of_large = of_large[np.argsort(numbers[of_large], kind="stable")]

    def split(group: Ints) -> tuple[Int32s, Ints]:
        owners = np.searchsorted(pieces.anchors, group, "right")
        parents, leads = np.arange(len(group), dtype=np.uint32), np.zeros(len(group), np.bool_)
        named.connect_equal(
            pieces.text, pieces.starts, owners, places[group], length, size, parents, leads
        )
        chosen = leads | (pieces.documents[owners] >= num_against)
        return _without_single(np.where(chosen, parents.view(np.int32), np.int32(-1)))

    groups, count = (
        np.split(of_large, np.cumsum(sizes[large])[:-1]) if len(large) else (),
        len(sizes),
    )
    sizes[large], all_sizes = 0, [sizes]
    for group, (inner, inner_sizes) in map_ordered(groups, split, threads):
        numbers[group] = np.where(inner < 0, inner, inner + np.int32(count))
        count += len(inner_sizes)
        all_sizes.append(inner_sizes)
    return Groups(numbers, np.concatenate(all_sizes), contexts)


def _without_single(numbers: Int32s) -> tuple[Int32s, Ints]:
    """Return the numbers of groups of more than one, counted anew, -1 for others; and the sizes of
    these groups.
    """
    sizes = np.bincount(numbers[numbers >= 0])
    anew = np.append(np.where(sizes > 1, np.cumsum(sizes > 1) - 1, -1), -1).astype(np.int32)
    return anew[numbers], sizes[sizes > 1]  # of number -1, the last one


def equal_anchors(hashes: Hashes) -> tuple[Uint32s, Ints]:
    """Return the anchors whose hash others have, those of one hash together, and where these begin
    and the last end.
    """
    packed = hashes.astype(np.uint64) << np.uint64(32) | np.arange(len(hashes), dtype=np.uint64)
    packed.sort()
    begins = np.flatnonzero(begins_run(packed >> np.uint64(32)))
    sizes = np.diff(begins, append=len(packed))
    return packed.astype(np.uint32)[np.repeat(sizes > 1, sizes)], offsets_from_lengths(
        sizes[sizes > 1]
    )
