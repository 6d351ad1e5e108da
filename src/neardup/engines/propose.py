"""Find copies by their content, and put the other documents into buckets by the keys of their bands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.candidates.bands import bits_for, pack_keys
from neardup.engines.scratch import Scratch


class Proposed(NamedTuple):
    """Who may resemble whom.

    representative : uint32 by position, the first position of equal content.
    wanted : bool by document, True for those whose set will be compared.
    slots : uint32, the slots of all bands, one band after the other; band_starts : int64 (num_bands,).
    """

    representative: npt.NDArray[np.uint32]
    wanted: npt.NDArray[np.bool_]
    slots: npt.NDArray[np.uint32]
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
) -> Proposed:
    """Group documents by band, one band at a time, and leave each one's bucket in the columns `buckets-BAND`.

    copies_share : what a copy shares with its representative. "bucket": the bucket, without a slot of its own, for
    the sieve, in which a copy of a removed document is never kept; "slots": the bucket and a slot, so that all pairs
    are measured; "nothing": copies have no bucket.
    """
    from neardup.kernels import bands as kernel

    positions = np.arange(len(order), dtype=np.uint32)
    copies = np.flatnonzero(representative != positions).astype(np.uint32)
    members = featured[order]
    if copies_share != "slots":
        members &= representative == positions
    positions = positions[members]
    wanted = np.zeros(len(order), np.bool_)
    band_starts = np.zeros(num_bands, np.int64)
    num_slots = 0
    for band in range(num_bands):
        keys = scratch.column(f"keys-{band}", np.uint64)
        packed = pack_keys(keys[order[positions]], positions, len(order))
        buckets = np.full(len(order), kernel.NO_BUCKET, np.uint32)
        count = kernel.assign_buckets(packed, bits_for(len(order)), buckets)
        slots = np.empty(count, np.uint32)
        kernel.close_buckets(buckets, slots)
        wanted[order[buckets != kernel.NO_BUCKET]] = True
        if copies_share == "bucket":
            buckets[copies] = buckets[representative[copies]]
        scratch.append(f"buckets-{band}", buckets)
        scratch.append("slots", slots)
        scratch.release_pages()
        band_starts[band] = num_slots
        num_slots += count
    scratch.close_columns()
    return Proposed(representative, wanted, scratch.column("slots", np.uint32), band_starts)
