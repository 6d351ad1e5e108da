"""Find the stretches of documents that contain most of the shingles of an item."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from neardup import kernels
from neardup.arrays import Array, Int32s, Mask, Rows, begins_run, writable
from neardup.candidates.items import ItemTable, Matches

ROUNDING = 1e-9  # of shares, so that 0.1 of 30 shingles are 3

# The best stretch of a field in a document, as a kernel writes it: the distinct rare shingles, all
# distinct shingles, the first and the last match.
_BEST_FIELDS = ("rare", "shingles", "first", "last")
_BEST = np.dtype([(name, np.int64) for name in _BEST_FIELDS])


class Stretches(NamedTuple):
    """The best stretch of each field in each document, in the order of the matches.

    The stretches of one item in one document follow each other: they are a hit.

    begins : int64, the first match of the field in the document. items, fields : int32. best : rows
    of _BEST. starts : int64 (num_hits,), the first stretch of each hit.
    """

    begins: Rows
    items: Int32s
    fields: Int32s
    best: np.ndarray
    starts: Rows

    @property
    def sizes(self) -> Rows:
        """Return the number of stretches of each hit."""
        return np.diff(self.starts, append=len(self.items))

    @property
    def items_found(self) -> Int32s:
        """Return the item of each hit."""
        return self.items[self.starts]

    def total(self, column: str, weights: Array) -> Array:
        """Return the sum of a column of `best` for each hit.

        weights : by field.
        """
        values = self.best[column] * weights[self.fields]
        return np.add.reduceat(values, self.starts) if len(values) else values[:0]

    def shown(self, table: ItemTable, may_be_shown: Mask) -> Rows:
        """Return the stretch to show of each hit.

        It is the stretch of the first field with enough shingles, or the one with most shingles.
        may_be_shown : bool by stretch, whether it is of a field that its rule judges.
        """
        shingles = self.best["shingles"]
        sizes = np.bincount(table.fields, minlength=len(table.field_items))[self.fields]
        needed = table.settings.threshold * np.maximum(sizes, 1)
        is_enough = shingles >= needed - ROUNDING
        hit = np.repeat(np.arange(len(self.starts)), self.sizes)
        rank = np.where(is_enough, 0, -shingles)
        # By hit first, so that the best stretch of a hit comes to its start. Equal ones stay in the
        # order of the fields.
        order = np.lexsort((rank, ~is_enough, ~may_be_shown, hit))
        return order[self.starts]


def find_stretches(table: ItemTable, matches: Matches, is_rare: Mask) -> Stretches:
    """Return the stretch of each field in each document that contains most of its shingles.

    Parameters
    ----------
    matches : by document and field, in each by position.
    is_rare : bool by match.
    """
    field_of_match = table.fields[matches.entries]
    begins = np.flatnonzero(begins_run(matches.documents, field_of_match))
    fields = field_of_match[begins]
    # The slice is for no matches, where `append` would still return one end.
    ends = np.append(begins[1:], len(field_of_match))[: len(begins)]

    num_tokens = table.num_tokens[fields]
    # Half as many words again as the field, and at least five more: a copy may have more words.
    num_words = num_tokens + np.maximum(num_tokens // 2, 5)
    widths = num_words - table.ngrams[fields] + 1

    counts = np.zeros(len(table.items), np.int32)
    best = np.empty((len(begins), len(_BEST_FIELDS)), np.int64)
    kernels.item_shingles.best_stretches(
        ends, writable(matches.entries), writable(matches.positions), is_rare, widths, counts, best
    )

    items = table.field_items[fields]
    return Stretches(
        begins=begins,
        items=items,
        fields=fields,
        best=best.view(_BEST)[:, 0],
        starts=np.flatnonzero(begins_run(matches.documents[begins], items)),
    )
