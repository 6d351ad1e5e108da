"""The order in which documents pass the sieve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neardup.arrays import Array, Floats, Ints, Positions
from neardup.settings.run import split_copies


def priority_order(
    keep: str,
    num_documents: int,
    num_against: int,
    lengths: Ints,
    ranks: Sequence[Floats],
    part_ends: Ints,
) -> Positions:
    """Return the documents in the order in which they pass the sieve.

    Parameters
    ----------
    keep : first, last, longest, shortest, source, max:COLUMN or min:COLUMN; or several with commas,
        each for documents that are equal by those before. How many documents stay does not matter.
    num_documents, num_against : all documents; those of the earlier corpus, which always come
        first.
    lengths : int64 array of shape (num_documents,), bytes of UTF-8, used by longest and shortest.
    ranks : float64 arrays of shape (num_documents, 2), the columns of max and min, each once; nan
        comes last.
    part_ends : int64 (num_parts,), the number of documents up to the end of each input, used by
        source.

    Returns
    -------
    uint32 array of shape (num_documents,). Equal documents keep the order in which they were read.
    """
    documents = np.arange(num_documents, dtype=np.uint32)
    new = documents[num_against:]
    if split_copies(keep)[0] == "last":
        documents[num_against:] = new[::-1].copy()
        return documents
    keys: list[Array] = []
    for key in sort_keys(keep):
        values: Array = lengths[num_against:]
        if key.of == "position":
            values = new.astype(np.int64)
        elif key.of == "source":
            values = np.searchsorted(part_ends, new, side="right")
        elif key.of == "column":
            # The nearest double decides, then the rest.
            values = ranks[key.column][num_against:]
        columns = np.atleast_2d(values.T)
        keys += [-column if key.descending else column for column in columns]
    if keys:
        new = new[np.lexsort(keys[::-1])]
    documents[num_against:] = new.copy()
    return documents


class SortKey(NamedTuple):
    """A key of `keep`. of : position, length, source or column; the number of the column among
    `rank_columns`.
    """

    of: str
    descending: bool
    column: int = 0


_KEYS = {"last": "position", "longest": "length", "shortest": "length", "source": "source"}


def sort_keys(keep: str) -> list[SortKey]:
    """Return the keys by which `keep` orders documents, before their position; nan comes last in
    both directions.
    """
    keys, columns = [], rank_columns(keep)
    for word in split_copies(keep)[0].split(","):
        name, _, column = word.partition(":")
        if name != "first":
            descending = name in ("last", "longest", "max")
            keys.append(
                SortKey(
                    _KEYS.get(word, "column"), descending, columns.index(column) if column else 0
                )
            )
        if name in ("first", "last"):  # no two documents are equal by their position
            break
    return keys


def rank_columns(keep: str) -> list[str]:
    """Return the columns that `keep` orders by, each once."""
    words = split_copies(keep)[0].split(",")
    return list(dict.fromkeys(column for word in words if (column := word.partition(":")[2])))
