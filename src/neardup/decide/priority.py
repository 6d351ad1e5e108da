"""The order in which documents pass the sieve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def priority_order(
    keep: str,
    num_documents: int,
    num_against: int,
    lengths: npt.NDArray[np.int64],
    ranks: Sequence[npt.NDArray[np.float64]],
    part_ends: npt.NDArray[np.int64],
) -> npt.NDArray[np.uint32]:
    """Return the documents in the order in which they pass the sieve.

    Parameters
    ----------
    keep : first, last, longest, shortest, source, max:COLUMN or min:COLUMN; or several with commas, each for documents
        that are equal by those before.
    num_documents, num_against : all documents; those of the earlier corpus, which always come first.
    lengths : int64 array of shape (num_documents,), bytes of UTF-8, used by longest and shortest.
    ranks : float64 arrays of shape (num_documents,), the columns of max and min, each once; nan comes last.
    part_ends : int64 (num_parts,), the number of documents up to the end of each input, used by source.

    Returns
    -------
    uint32 array of shape (num_documents,). Equal documents keep the order in which they were read.
    """
    documents = np.arange(num_documents, dtype=np.uint32)
    new = documents[num_against:]
    if keep == "last":
        documents[num_against:] = new[::-1].copy()
        return documents
    columns = rank_columns(keep)
    keys: list[npt.NDArray[Any]] = []
    for word in keep.split(","):
        if word == "last":
            keys.append(-new.astype(np.int64))
        elif word == "source":
            keys.append(np.searchsorted(part_ends, new, side="right"))
        elif word != "first":
            column = word.partition(":")[2]
            values = (ranks[columns.index(column)] if column else lengths)[num_against:]
            keys.append(-values if word == "longest" or word.startswith("max:") else values)
        if word in ("first", "last"):  # no two documents are equal by their position
            break
    if keys:
        new = new[np.lexsort(keys[::-1])]
    documents[num_against:] = new.copy()
    return documents


def rank_columns(keep: str) -> list[str]:
    """Return the columns that `keep` orders by, each once."""
    return list(dict.fromkeys(column for word in keep.split(",") if (column := word.partition(":")[2])))
