"""Find copies by their content, and put the other documents into buckets by the keys of their bands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.candidates.bands import bits_for, pack_keys
from neardup.engines.local.scratch import Scratch


class Proposed(NamedTuple):
    """Who may resemble whom.

    representative : uint32 by position, the first position of equal content.
    wanted : bool by document, True for those whose set will be compared.
    members : uint32, those of the buckets of all bands, one band after the other; band_starts : int64 (num_bands,).
    """

    representative: npt.NDArray[np.uint32]
    wanted: npt.NDArray[np.bool_]
    members: npt.NDArray[np.uint32]
    band_starts: npt.NDArray[np.int64]


def find_copies(
    scratch: Scratch, order: npt.NDArray[np.uint32], featured: npt.NDArray[np.bool_]
) -> npt.NDArray[np.uint32]:
    """Return for each position the first position of equal content; a document without features is its own.

    Parameters
    ----------
    scratch : with the column `content`.
    order : uint32, the document at each position.
    featured : bool by document.
    """
    from neardup.kernels import bands as kernel

    content = scratch.column("content", np.uint64).reshape(-1, 2)
    representative = np.arange(len(order), dtype=np.uint32)
    positions = np.flatnonzero(featured[order]).astype(np.uint32)
    packed = pack_keys(content[order[positions], 0], positions, len(order))
    kernel.find_copies(packed, bits_for(len(order)), content, order, representative)
    scratch.release_pages()
    return representative


def fill_buckets(
    scratch: Scratch,
    num_bands: int,
    order: npt.NDArray[np.uint32],
    featured: npt.NDArray[np.bool_],
    representative: npt.NDArray[np.uint32],
    copies_share: str,
    max_bucket: int,
) -> Proposed:
    """Group documents by band, one band at a time, and leave each one's bucket in the columns `buckets-BAND`.

    copies_share : what a copy shares with its representative. "bucket": the bucket, without being a member, for the
    sieve, in which a copy of a removed document is never kept; "membership": it is a member as well, so that all pairs
    are measured; "nothing": copies have no bucket. max_bucket : how many members a bucket lists, its earliest.
    """
    from neardup.kernels import bands as kernel

    positions = np.arange(len(order), dtype=np.uint32)
    copies = np.flatnonzero(representative != positions).astype(np.uint32)
    members = featured[order]
    if copies_share != "membership":
        members &= representative == positions
    positions = positions[members]
    wanted = np.zeros(len(order), np.bool_)
    band_starts = np.zeros(num_bands, np.int64)
    num_members = 0
    for band in range(num_bands):
        keys = scratch.column(f"keys-{band}", np.uint64)
        packed = pack_keys(keys[order[positions]], positions, len(order))
        buckets = np.full(len(order), kernel.NO_BUCKET, np.uint32)
        listed = np.empty(kernel.count_members(packed, bits_for(len(order)), max_bucket), np.uint32)
        kernel.list_members(packed, bits_for(len(order)), max_bucket, buckets, listed)
        wanted[order[buckets != kernel.NO_BUCKET]] = True
        if copies_share == "bucket":
            buckets[copies] = buckets[representative[copies]]
        scratch.append(f"buckets-{band}", buckets)
        scratch.append("members", listed)
        scratch.release_pages()
        band_starts[band] = num_members
        num_members += len(listed)
    scratch.close_columns()
    return Proposed(representative, wanted, scratch.column("members", np.uint32), band_starts)
