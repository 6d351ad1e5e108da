"""Write the shingles of the documents in candidate pairs as sorted sets to scratch columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from neardup import kernels, schemas
from neardup.engines.local.scratch import Scratch
from neardup.executor import map_ordered
from neardup.progress import Progress
from neardup.schemas import Column

_STRETCH = 1024  # documents at a time
_RELEASE_EVERY = 8  # stretches


def build_sets(
    scratch: Scratch,
    num_shingles: int,
    wanted: npt.NDArray[np.bool_],
    threads: int,
    progress: Progress,
    name: str,
    columns: tuple[Column, Column] = (schemas.SHINGLES, schemas.SHINGLE_STARTS),
) -> kernels.sorted_sets.Sets:
    """Write the shingles of the selected documents as sorted sets to a new column, on a pool of threads.

    The shingles stay unchanged, so that an interrupted run can resume. columns : the shingles, and the offset of each
    document; name : of the sets.
    """
    hashes, starts = (scratch.column(column) for column in columns)
    sizes = np.zeros(len(starts), np.uint32)

    def build(stretch: slice) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        stops = np.append(starts[stretch][1:], starts[stretch.stop] if stretch.stop < len(starts) else num_shingles)
        lengths = (stops - starts[stretch])[wanted[stretch]]
        sets = np.empty(int(lengths.sum() + np.maximum(1, lengths // 4 + 1).sum()), np.uint64)
        set_starts = np.empty(stretch.stop - stretch.start, np.int64)
        used = kernels.sorted_sets.write_sets(
            hashes, starts[stretch], stops, wanted[stretch], sets, set_starts, sizes[stretch]
        )
        return sets[:used], set_starts

    set_hashes, set_starts = schemas.SET_HASHES.of(name), schemas.SET_STARTS.of(name)
    written = 0
    for number, (_, (sets, begins)) in enumerate(map_ordered(stretches(len(starts), _STRETCH), build, threads), 1):
        scratch.append(set_hashes, sets)
        scratch.append(set_starts, begins + written)
        written += len(sets)
        progress.advance(len(begins), 0)
        if number % _RELEASE_EVERY == 0:
            scratch.release_pages()
    return kernels.sorted_sets.Sets(scratch.column(set_hashes), scratch.column(set_starts), sizes)


def stretches(count: int, size: int) -> Iterator[slice]:
    """Yield slices of `size` that cover `count` rows."""
    for start in range(0, count, size):
        yield slice(start, min(count, start + size))
