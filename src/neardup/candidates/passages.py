"""Find the anchors of texts, and the text around those that may repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Bytes, Ints, Words, flatten_strings
from neardup.settings.passages import MIN_LENGTH

if TYPE_CHECKING:
    from neardup.kernels.passages import Pieces

_SEED = 20261124  # of the hashes, on which no answer depends
_MARGIN = 66, 2  # characters before and behind a passage by which its ends are chosen
_FIELDS = 16  # of the table of counts, for each anchor: of those that are alone, 2 % seem to repeat
_MIN_WORDS = 1 << 10
_LARGE = 128  # anchors of a group
Hashes = npt.NDArray[np.uint32]  # with some collisions, which cost time only


class Selected(NamedTuple):
    """The text of documents around the anchors that may repeat, in pieces.

    text : uint8, all pieces. pieces : int64 (num_pieces, 6): document, length, bytes and characters of the document
    before it, anchors up to its end, 1 if it begins the document plus 2 if it ends it. places : int64, of the anchors,
    in the text. hashes : uint32, of the anchors. characters : int64 by document. They count from 0 in each batch.
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

    def __init__(self, min_length: int, bridge: int = 0, *, size: int | None = None, seed: int = _SEED) -> None:
        self.size = (64 if min_length >= 2 * 64 else 32) if size is None else size
        assert min_length >= min(MIN_LENGTH, self.size)
        self._reach = min_length + bridge + _MARGIN[0], min_length - self.size + 1 + _MARGIN[1]
        bases = np.random.default_rng(seed).integers(0, 2**64, 256, np.uint64)
        self._grams = kernels.passage_anchors.Grams(bases, self.size, min_length - self.size + 1)

    def hashes(self, texts: pa.LargeStringArray) -> Hashes:
        """Return the hashes of all anchors of texts."""
        data, offsets = flatten_strings(texts)
        hashes: Hashes = kernels.passage_anchors.find_anchors(
            data, offsets, self._grams, np.empty(len(texts), np.int64)
        )[1]
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
        text = np.concatenate([np.empty(0, np.uint8), *(data[start:stop] for start, stop in edges[:num_pieces, 1:3])])
        moved = np.cumsum(lengths) - lengths - starts
        at = places[:count] + np.repeat(moved, np.diff(up_to, prepend=0))
        columns = (documents, lengths, starts - offsets[documents], before, up_to, bounded)
        return Selected(text, np.stack(columns, axis=1).astype(np.int64), at, hashes[:count], characters)


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

    numbers : int32 by anchor, its group; -1 for one that is alone. sizes : int64, the anchors of each group.
    """

    numbers: npt.NDArray[np.int32]
    sizes: Ints


def group_anchors(pieces: Pieces, places: Ints, hashes: Hashes, length: int, size: int, num_against: int = 0) -> Groups:
    """Group the anchors of pieces by their hashes, and large groups by the windows of `length` characters around them.

    Without that, each anchor of a short text that many documents have would be compared with all others. size : bytes
    that are hashed. num_against : documents that are kept whole: of copies in them, the first one is enough.
    """
    numbers = number_anchors(hashes)
    sizes = np.bincount(numbers[numbers >= 0])
    large = np.flatnonzero(sizes > _LARGE)
    members = np.flatnonzero(np.append(sizes > _LARGE, False)[numbers])  # of number -1, none
    members = members[np.argsort(numbers[members], kind="stable")]
    owners = np.repeat(np.arange(len(pieces.anchors), dtype=np.int32), np.diff(pieces.anchors, prepend=0))
    count = len(sizes)
    for group in np.split(members, np.cumsum(sizes[large])[:-1]) if len(large) else ():
        owner = owners[group]
        parents, leads = np.arange(len(group), dtype=np.uint32), np.zeros(len(group), np.bool_)
        text = pieces.text, pieces.starts
        kernels.passage_anchors.connect_equal(*text, owner, places[group], length, size, parents, leads)
        chosen = leads | (pieces.documents[owner] >= num_against)
        numbers[group] = np.where(chosen, count + parents.astype(np.int32), np.int32(-1))
        count += len(group)
    return _without_single(numbers)


def _without_single(numbers: npt.NDArray[np.int32]) -> Groups:
    """Return the groups of more than one anchor, numbered anew."""
    sizes = np.bincount(numbers[numbers >= 0])
    anew = np.where(sizes > 1, np.cumsum(sizes > 1) - 1, -1).astype(np.int32)
    return Groups(
        np.where(numbers >= 0, anew[numbers], -1).astype(np.int32) if len(anew) else numbers, sizes[sizes > 1]
    )


def number_anchors(hashes: Hashes) -> npt.NDArray[np.int32]:
    """Return the number of the hash of each anchor, -1 for one that no other has."""
    packed = hashes.astype(np.uint64) << np.uint64(32) | np.arange(len(hashes), dtype=np.uint64)
    packed.sort()
    keys = packed >> np.uint64(32)
    begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.empty(0, np.int64)
    sizes = np.diff(begins, append=len(keys))
    numbers = np.where(sizes > 1, np.cumsum(sizes > 1) - 1, -1).astype(np.int32)
    found = np.empty(len(hashes), np.int32)
    found[packed & np.uint64(0xFFFFFFFF)] = np.repeat(numbers, sizes)
    return found
