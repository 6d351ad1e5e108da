"""Group documents by equal content, and by the keys of a band: the members of a bucket are candidates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.candidates.bands import bits_for, pack_keys

NO_BUCKET = np.uint32(0xFFFFFFFF)


class Buckets(NamedTuple):
    """The buckets of one band.

    first : uint32 by position, the first entry of its bucket in `members`, or NO_BUCKET. members : uint32, the earliest
    `max_bucket_size` positions of each bucket, rising, and one more if the bucket has more;
    kernels.bands.LAST_MEMBER marks the last entry of a bucket.
    """

    first: npt.NDArray[np.uint32]
    members: npt.NDArray[np.uint32]


def find_copies(
    content: npt.NDArray[np.uint64], order: npt.NDArray[np.uint32], featured: npt.NDArray[np.bool_]
) -> npt.NDArray[np.uint32]:
    """Return for each position the first position with the same content; itself for documents without features.

    Parameters
    ----------
    content : uint64 (num_documents, 2), by document.
    order : uint32, the document at each position.
    featured : bool by document.
    """
    representative = np.arange(len(order), dtype=np.uint32)
    positions = np.flatnonzero(featured[order]).astype(np.uint32)
    packed = pack_keys(content[order[positions], 0], positions, len(order))
    kernels.bands.find_copies(packed, bits_for(len(order)), content, order, representative)
    return representative


def fill_buckets(
    keys: npt.NDArray[np.uint64], positions: npt.NDArray[np.uint32], num_positions: int, max_bucket_size: int
) -> Buckets:
    """Group positions by the key of a band.

    Parameters
    ----------
    keys : uint64 (num_members,), the key of each of `positions`; written over.
    positions : uint32 (num_members,), rising.
    num_positions : the number of all documents, members or not.
    max_bucket_size : the greatest number of members that a bucket lists, the earliest ones.
    """
    packed, bits = pack_keys(keys, positions, num_positions), bits_for(num_positions)
    first = np.full(num_positions, NO_BUCKET, np.uint32)
    members = np.empty(kernels.bands.count_members(packed, bits, max_bucket_size), np.uint32)
    kernels.bands.list_members(packed, bits, max_bucket_size, first, members)
    return Buckets(first, members)
