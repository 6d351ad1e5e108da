"""Find ids of more than one document."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.candidates.bands import bits_for, pack_keys
from neardup.documents.corpus import Corpus
from neardup.output.tables import DocumentLocations

_MOST_SHOWN = 1000


class RepeatedId(NamedTuple):
    """An id of two documents, their locations, and the number of documents with an id of an earlier document."""

    id: str
    first: str
    second: str
    num_repeats: int

    def __str__(self) -> str:
        """Return the message as a sentence."""
        others = f" {self.num_repeats:,} documents repeat an id." if self.num_repeats > 1 else ""
        return f"The id {self.id!r} belongs to two documents, {self.first} and {self.second}.{others}"


def find_repeated_id(hashes: npt.NDArray[np.uint64], corpus: Corpus, locations: DocumentLocations) -> RepeatedId | None:
    """Return the first id of two new documents, or None if there is none or no id column.

    hashes : uint64 by document, of its id.
    """
    hashes = hashes[corpus.num_against :]
    if len(hashes) == 0:
        return None
    bits = np.uint64(bits_for(len(hashes)))
    packed = pack_keys(hashes, np.arange(len(hashes), dtype=np.uint32), len(hashes))
    same = np.flatnonzero(packed[1:] >> bits == packed[:-1] >> bits)
    mask = (np.uint64(1) << bits) - np.uint64(1)
    left, right = (packed[same] & mask).astype(np.uint32), (packed[same + 1] & mask).astype(np.uint32)
    truly = hashes[left] == hashes[right]
    left, right = left[truly] + np.uint32(corpus.num_against), right[truly] + np.uint32(corpus.num_against)
    for first, second in sorted(zip(left[:_MOST_SHOWN].tolist(), right[:_MOST_SHOWN].tolist(), strict=True)):
        pair = np.array([first, second], np.uint32)
        ids = locations.ids(pair).to_pylist()
        if ids[0] == ids[1]:
            first_place, second_place = (
                f"row {row} of {part}"
                for row, part in zip(locations.rows(pair).tolist(), locations.parts(pair).to_pylist(), strict=True)
            )
            return RepeatedId(ids[0], first_place, second_place, len(left))
    return None
