"""The order in which documents pass the sieve."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from neardup.arrays import Array, Floats, Ints, Positions
from neardup.documents.batch import Corpus
from neardup.settings.run import split_copies


def priority_order(keep: str, corpus: Corpus, lengths: Ints, ranks: Sequence[Floats]) -> Positions:
    """Return the documents in the order in which they pass the sieve.

    Equal documents keep the order in which they were read.

    Parameters
    ----------
    keep : first, last, longest, shortest, source, max:COLUMN or min:COLUMN; or several with commas,
        each for documents that are equal by the keys before it. A number of documents to keep, as
        in "longest:3", is ignored.
    corpus : the documents; the earlier collection always comes first.
    lengths : int64 array of shape (num_documents,), bytes of UTF-8, used by longest and shortest.
    ranks : float64 arrays of shape (num_documents, 2), the columns of max and min, each once; nan
        comes last.

    Returns
    -------
    uint32 array of shape (num_documents,).
    """
    num_against = corpus.num_against
    documents = np.arange(corpus.num_documents, dtype=np.uint32)
    new = documents[num_against:]
    if _order_of(keep) == "last":
        # The reverse, without a sort. A copy, because `new` is a view of `documents`.
        documents[num_against:] = new[::-1].copy()
        return documents
    columns: list[Array] = []
    for key in sort_keys(keep):
        if key.by == "position":
            values: Array = new.astype(np.int64)
        elif key.by == "source":
            values = np.searchsorted(corpus.part_ends, new, side="right")
        elif key.by == "column":
            # Two columns for each value: the nearest double decides, then the rest.
            values = ranks[key.column][num_against:].T
        else:
            values = lengths[num_against:]
        signed = -values if key.descending else values
        columns.extend(np.atleast_2d(signed))
    if columns:
        # `lexsort` sorts by its last column first.
        documents[num_against:] = new[np.lexsort(columns[::-1])]
    return documents


class SortKey(NamedTuple):
    """A key of `keep`. by : position, length, source or column. column : the number of the column
    among `rank_columns`.
    """

    by: str
    descending: bool
    column: int = 0


# All other words name a column: max:COLUMN, min:COLUMN.
_KEYS = {"last": "position", "longest": "length", "shortest": "length", "source": "source"}


def sort_keys(keep: str) -> list[SortKey]:
    """Return the keys by which `keep` orders documents, before their position; nan comes last in
    both directions.
    """
    keys = []
    columns = rank_columns(keep)
    for word in _order_of(keep).split(","):
        name, _, column = word.partition(":")
        if name != "first":
            descending = name in ("last", "longest", "max")
            number = columns.index(column) if column else 0
            by = _KEYS.get(word, "column")
            keys.append(SortKey(by=by, descending=descending, column=number))
        # No two documents have one position, so the keys after it have no effect.
        if name in ("first", "last"):
            break
    return keys


def rank_columns(keep: str) -> list[str]:
    """Return the columns that `keep` orders by, each once."""
    columns = [word.partition(":")[2] for word in _order_of(keep).split(",")]
    return list(dict.fromkeys(column for column in columns if column))


def _order_of(keep: str) -> str:
    """Return `keep` without the number of documents to keep."""
    order, _ = split_copies(keep)
    return order
