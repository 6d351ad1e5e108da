"""The order in which documents pass the sieve."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def priority_order(
    keep: str,
    num_documents: int,
    num_against: int,
    lengths: npt.NDArray[np.int64],
    ranks: npt.NDArray[np.float64],
) -> npt.NDArray[np.uint32]:
    """Return the documents in the order in which they pass the sieve.

    Parameters
    ----------
    keep : first, last, longest, shortest, max:COLUMN or min:COLUMN.
    num_documents, num_against : all documents; those of the earlier corpus, which always come first.
    lengths : int64 array of shape (num_documents,), bytes of UTF-8, used by longest and shortest.
    ranks : float64 array of shape (num_documents,), the column's values, used by max and min; nan comes last.

    Returns
    -------
    uint32 array of shape (num_documents,). Equal documents keep the order in which they were read.
    """
    documents = np.arange(num_documents, dtype=np.uint32)
    new = documents[num_against:]
    if keep == "last":
        new = new[::-1]
    elif keep != "first":
        values = lengths if keep in ("longest", "shortest") else ranks
        values = values[num_against:]
        if keep == "longest" or keep.startswith("max:"):
            values = -values
        new = new[np.argsort(values, kind="stable")]
    documents[num_against:] = new.copy()
    return documents
