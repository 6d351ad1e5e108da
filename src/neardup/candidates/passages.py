"""Find the anchors of texts, and the text around anchors that may repeat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import (
    Bytes,
    Int32s,
    Ints,
    Mask,
    Uint32s,
    Words,
    begins_run,
    flatten_strings,
    mask_of,
    offsets_from_lengths,
)
from neardup.executor import map_all, map_ordered
from neardup.settings.passages import MIN_LENGTH

if TYPE_CHECKING:
    from neardup.kernels.passages import Pieces

_SEED = 20261124  # of the hashes; no answer depends on it
# Characters before and after a passage by which its ends are chosen.
_MARGIN_BEFORE = 66
_MARGIN_AFTER = 2
# Of the table of counts, for each anchor: 2 % of the anchors that do not repeat seem to.
_FIELDS_PER_ANCHOR = 16
_MIN_WORDS = 1 << 10
_LARGE_GROUP = 512  # anchors
_ITEMS_PER_TASK = 1 << 16  # pieces or groups
Hashes = Uint32s  # with some collisions, which cost time only


class Selected(NamedTuple):
    """The text of documents around the anchors that may repeat, in pieces.

    text : uint8, all pieces. pieces : int64 (num_pieces, 6), see `piece_rows`. positions : int64,
    the anchors in the text. hashes : uint32, the hash of each anchor. characters : int64 by
    document.
    Documents, anchors and positions are numbered from 0 in each batch.
    """

    text: Bytes
    pieces: Ints
    positions: Ints
    hashes: Hashes
    characters: Ints


def piece_rows(
    *,
    documents: Ints,
    lengths: Ints,
    bytes_before: Ints,
    characters_before: Ints,
    anchors: Ints,
    bounded: Ints,
) -> Ints:
    """Return the rows of pieces, int64 (num_pieces, 6), the columns in the order of the parameters.

    Parameters
    ----------
    documents : the document of each piece.
    lengths : the bytes of the piece.
    bytes_before, characters_before : the bytes and characters of the document before the piece.
    anchors : the number of anchors up to the end of the piece.
    bounded : 1 if the piece begins its document, plus 2 if it ends it.
    """
    columns = [documents, lengths, bytes_before, characters_before, anchors, bounded]
    return np.stack(columns, axis=1).astype(np.int64)


class _Edges(NamedTuple):
    """The pieces that `select_pieces` chooses, int64 by piece.

    starts, stops : offsets in the bytes of the batch. characters_before : the characters of the
    document before the piece. anchors : the number of anchors up to its end.
    """

    documents: Ints
    starts: Ints
    stops: Ints
    characters_before: Ints
    anchors: Ints

    def join(self, data: Bytes) -> Bytes:
        """Return the bytes of all pieces, one after the other."""
        edges = zip(self.starts.tolist(), self.stops.tolist(), strict=True)
        return np.concatenate([np.empty(0, np.uint8), *(data[start:end] for start, end in edges)])

    def rows(self, offsets: Ints) -> Ints:
        """Return the rows of pieces. offsets : int64, the offsets of the documents in the batch."""
        begins = offsets[self.documents]
        ends = offsets[self.documents + 1]
        return piece_rows(
            documents=self.documents,
            lengths=self.stops - self.starts,
            bytes_before=self.starts - begins,
            characters_before=self.characters_before,
            anchors=self.anchors,
            bounded=(self.starts == begins) + 2 * (self.stops == ends),
        )

    def move(self, positions: Ints) -> Ints:
        """Return offsets in the joined pieces. positions : the anchors' offsets in the batch."""
        lengths = self.stops - self.starts
        shifts = np.cumsum(lengths) - lengths - self.starts
        return np.asarray(positions + np.repeat(shifts, np.diff(self.anchors, prepend=0)))


class Anchoring:
    """Finds the anchors of passages of at least `min_length` characters; threads may share it.

    bridge : the maximum number of characters between two passages that are in one piece.
    """

    def __init__(
        self, min_length: int, bridge: int = 0, *, size: int | None = None, seed: int = _SEED
    ) -> None:
        self.size = (64 if min_length >= 2 * 64 else 32) if size is None else size
        assert min_length >= min(MIN_LENGTH, self.size)
        window = min_length - self.size + 1
        self._reach = kernels.passage_anchors.Reach(
            before=min_length + bridge + _MARGIN_BEFORE, after=window + _MARGIN_AFTER
        )
        bases = np.random.default_rng(seed).integers(0, 2**64, 256, np.uint64)
        self._grams = kernels.passage_anchors.Grams(bases, self.size, window)

    def hashes(self, texts: pa.LargeStringArray) -> Hashes:
        """Return the hashes of all anchors of texts."""
        data, offsets = flatten_strings(texts)
        ends = np.empty(len(texts), np.int64)
        hashes: Hashes = kernels.passage_anchors.find_anchors(data, offsets, self._grams, ends)[1]
        return hashes

    def select(self, texts: pa.LargeStringArray, counts: Words) -> Selected:
        """Return the text around the anchors that may repeat. counts : the table of `Counts`."""
        data, offsets = flatten_strings(texts)
        ends = np.empty(len(texts), np.int64)
        characters = np.empty(len(texts), np.int64)
        positions, hashes = kernels.passage_anchors.find_anchors(data, offsets, self._grams, ends)
        anchors = kernels.passage_anchors.Anchors(positions=positions, hashes=hashes, ends=ends)
        edges = np.empty((len(positions), len(_Edges._fields)), np.int64)
        # The chosen anchors replace the first ones.
        num_pieces, num_anchors = kernels.passage_anchors.select_pieces(
            data, offsets, anchors, counts, self._reach, edges, characters
        )
        found = _Edges(*edges[:num_pieces].T)
        return Selected(
            text=found.join(data),
            pieces=found.rows(offsets),
            positions=found.move(positions[:num_anchors]),
            hashes=hashes[:num_anchors],
            characters=characters,
        )


class Counts:
    """Counts anchors up to two, in little memory: a different anchor may be counted with one.

    num_anchors : the number of anchors that will be counted.
    """

    def __init__(self, num_anchors: int) -> None:
        words = _FIELDS_PER_ANCHOR * num_anchors // 32
        self.table = np.zeros(max(_MIN_WORDS, 1 << words.bit_length()), np.uint64)

    def add(self, hashes: Hashes) -> None:
        """Count anchors."""
        kernels.passage_anchors.count_hashes(hashes, self.table)


class Groups(NamedTuple):
    """Groups of anchors around which texts may agree.

    numbers : int32 by anchor, its group; -1 for an anchor without a group. sizes : int64, the
    anchors of each group. contexts : uint64 (num_anchors, 2), hashes of the text around each
    anchor, by which nearly all other anchors of its group are skipped.
    """

    numbers: Int32s
    sizes: Ints
    contexts: Words


def group_anchors(
    pieces: Pieces,
    positions: Ints,
    hashes: Hashes,
    length: int,
    size: int,
    *,
    num_against: int = 0,
    threads: int = 1,
) -> Groups:
    """Group the anchors of pieces that have a window of `length` characters around them in common.

    Anchors of a group that is not large may have three quarters of a window in common, and a few
    anchors only the hashed bytes.

    Parameters
    ----------
    pieces : the text of the anchors.
    positions, hashes : the offset and the hash of each anchor.
    length : the characters of a window.
    size : the bytes that are hashed.
    num_against : the number of documents that are kept whole: of copies in them, the first is
        enough.
    threads : worker threads.
    """
    anchors = _Anchors(pieces, positions, length, size)
    members, offsets = equal_anchors(hashes)
    sizes = np.diff(offsets)
    is_hashed = mask_of(
        members[np.repeat(sizes > kernels.passage_groups.FEW, sizes)], len(positions)
    )
    contexts = anchors.hash_contexts(is_hashed, threads)

    roots = _connect(members, offsets, contexts, threads)
    numbers = np.full(len(positions), -1, np.int32)
    numbers[members], sizes = _without_single(roots)
    groups = Groups(numbers, sizes, contexts)
    return _split_large(groups, anchors, num_against, threads)


@dataclass(frozen=True)
class _Anchors:
    """The anchors of pieces and the size of their windows; see `group_anchors`."""

    pieces: Pieces
    positions: Ints
    length: int
    size: int

    def hash_contexts(self, is_hashed: Mask, threads: int) -> Words:
        """Return hashes of the text around anchors: `Groups.contexts`."""
        contexts = np.empty((len(self.positions), 2), np.uint64)
        num_pieces = len(self.pieces.anchors)

        def hash_pieces(first: int) -> None:
            span = (first, min(first + _ITEMS_PER_TASK, num_pieces))
            kernels.passage_groups.hash_around(
                self.pieces, span, self.positions, is_hashed, self.length, self.size, contexts
            )

        map_all(range(0, num_pieces, _ITEMS_PER_TASK), hash_pieces, threads)
        return contexts

    def split(self, group: Ints, num_against: int) -> tuple[Int32s, Ints]:
        """Return the groups of equal windows within a group of anchors: numbers and sizes."""
        owners = np.searchsorted(self.pieces.anchors, group, "right")
        parents = np.arange(len(group), dtype=np.uint32)
        is_needed = np.zeros(len(group), np.bool_)
        kernels.passage_groups.connect_equal(
            self.pieces.text,
            self.pieces.starts,
            owners,
            self.positions[group],
            self.length,
            self.size,
            parents,
            is_needed,
        )
        is_needed |= self.pieces.documents[owners] >= num_against
        return _without_single(np.where(is_needed, parents.view(np.int32), np.int32(-1)))


def _connect(members: Uint32s, offsets: Ints, contexts: Words, threads: int) -> Int32s:
    """Connect the anchors of each hash whose contexts are similar; return their roots."""
    parents = np.arange(len(members), dtype=np.uint32)

    def connect(first: int) -> None:
        kernels.passage_groups.connect_around(
            offsets[first : first + _ITEMS_PER_TASK + 1], members, contexts, parents
        )

    map_all(range(0, len(offsets) - 1, _ITEMS_PER_TASK), connect, threads)
    kernels.decisions.flatten(parents)
    return parents.view(np.int32)


def _split_large(groups: Groups, anchors: _Anchors, num_against: int, threads: int) -> Groups:
    """Split each large group into groups of equal windows, numbered after all others."""
    numbers = groups.numbers
    sizes = groups.sizes
    is_large = sizes > _LARGE_GROUP
    if not is_large.any():
        return groups
    in_large = np.flatnonzero(np.append(is_large, False)[numbers])  # number -1 is in none
    in_large = in_large[np.argsort(numbers[in_large], kind="stable")]
    large_groups = np.split(in_large, np.cumsum(sizes[is_large])[:-1])
    sizes[is_large] = 0

    def split(group: Ints) -> tuple[Int32s, Ints]:
        return anchors.split(group, num_against)

    count = len(sizes)
    all_sizes = [sizes]
    for group, (numbers_in_group, sizes_in_group) in map_ordered(large_groups, split, threads):
        is_single = numbers_in_group < 0
        numbers[group] = np.where(is_single, numbers_in_group, numbers_in_group + np.int32(count))
        count += len(sizes_in_group)
        all_sizes.append(sizes_in_group)
    return groups._replace(sizes=np.concatenate(all_sizes))


def _without_single(roots: Int32s) -> tuple[Int32s, Ints]:
    """Number the groups of two or more anchors.

    Parameters
    ----------
    roots : int32 by anchor, its group; -1 for an anchor without a group.

    Returns
    -------
    numbers : int32 by anchor, the number of its group; -1 for an anchor that is alone.
    sizes : int64, the anchors of each group.
    """
    sizes = np.bincount(roots[roots >= 0])
    is_group = sizes > 1
    number_of_root = np.where(is_group, np.cumsum(is_group) - 1, -1)
    number_of_root = np.append(number_of_root, -1).astype(np.int32)  # the last one is for root -1
    return number_of_root[roots], sizes[is_group]


def equal_anchors(hashes: Hashes) -> tuple[Uint32s, Ints]:
    """Return the anchors that share their hash with others.

    Returns
    -------
    members : uint32, the anchors, hash by hash.
    offsets : int64, the range of each hash in `members`.
    """
    numbers = np.arange(len(hashes), dtype=np.uint64)
    packed = hashes.astype(np.uint64) << np.uint64(32) | numbers
    packed.sort()
    begins = np.flatnonzero(begins_run(packed >> np.uint64(32)))
    sizes = np.diff(begins, append=len(packed))
    is_shared = sizes > 1
    members = packed.astype(np.uint32)[np.repeat(is_shared, sizes)]
    return members, offsets_from_lengths(sizes[is_shared])
