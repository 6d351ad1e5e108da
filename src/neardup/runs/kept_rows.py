"""Match the rows that another tool kept with the rows of the original: by ids, or by texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

from neardup.arrays import Ints, Mask, Words, find_in, rank_in_run
from neardup.documents.batch import DocumentBatch, Reject, Rejected
from neardup.errors import InputError
from neardup.features.grouping import NO_ID, hash_ids, hash_values
from neardup.formats.reading import Task, read_tasks
from neardup.progress import Progress

Key = Literal["id", "text"]
_NO_ENDS = np.empty(0, np.int64)


class Rows(NamedTuple):
    """The documents of a collection, in input order.

    ids : uint64 (num_documents,), the hash of each id; empty if there is no id column. texts :
    uint64, the hash of each text. numbers : int64, the row of each in its part. part_ends : int64
    (num_parts,), the end of the documents of each part.
    """

    ids: Words
    texts: Words
    numbers: Ints
    part_ends: Ints

    def parts(self, documents: Ints) -> Ints:
        """Return the number of the part of each document."""
        return np.searchsorted(self.part_ends, documents, side="right")


def read_rows(tasks: Sequence[Task], threads: int, progress: Progress, reject: Reject) -> Rows:
    """Read all documents, and return their hashes.

    reject : is called with each row that cannot be read.
    """
    empty = np.empty(0, np.uint64)
    parts = [Rows(ids=empty, texts=empty, numbers=empty.view(np.int64), part_ends=_NO_ENDS)]
    part_ends: list[int] = []
    total = 0
    for _, entry in read_tasks(tasks, threads):
        if isinstance(entry, Rejected):
            reject(entry)
        elif entry is None:
            part_ends.append(total)
        else:
            parts.append(_hash(entry))
            total += len(entry.rows)
            progress.advance(len(entry.rows), entry.text_bytes)
    ids = np.concatenate([part.ids for part in parts])
    return Rows(
        # A collection of tables and plain texts has ids for some documents only.
        ids=ids if len(ids) == total else empty,
        texts=np.concatenate([part.texts for part in parts]),
        numbers=np.concatenate([part.numbers for part in parts]),
        part_ends=np.array(part_ends, np.int64),
    )


def _hash(batch: DocumentBatch) -> Rows:
    """Return the hashes of the documents of a batch."""
    ids = np.empty(0, np.uint64) if batch.ids is None else hash_ids(batch.ids)
    return Rows(ids=ids, texts=hash_values(batch.text), numbers=batch.rows, part_ends=_NO_ENDS)


class Matched(NamedTuple):
    """The rows of the original that were kept.

    is_kept : bool by document of the original. key : the column by which rows were matched.
    unmatched : int64, the documents of the kept side that are not in the original. num_changed :
    kept documents with the id of one of the original and another text.
    """

    is_kept: Mask
    key: str
    unmatched: Ints
    num_changed: int = 0


def match_rows(original: Rows, kept: Rows, key: Key | Literal["auto"]) -> Matched:
    """Match kept documents with the original.

    key : auto is id if both sides share ids and no id of the original repeats or is null, otherwise
        text. The ids of files are their paths, which two folders do not share.

    Raises
    ------
    InputError
        If no kept document is in the original.
    """
    # A tool that kept nothing may have an id column all the same.
    has_ids = len(original.ids) > 0 and len(kept.ids) == len(kept.texts)
    if key == "auto":
        can_match = has_ids and _differ(original.ids) and np.isin(kept.ids, original.ids).any()
        key = "id" if can_match else "text"
    elif key == "id" and not has_ids:
        raise InputError(
            "match='id' needs an id column on both sides: got none. Name it (id_column, "
            "--id-column), or use match='text' (--match text)."
        )
    sides = (original.ids, kept.ids) if key == "id" else (original.texts, kept.texts)
    is_kept = _contained(*sides)
    is_known = _contained(sides[1], sides[0])
    if not is_kept.any() and len(kept.texts):
        raise InputError(
            f"None of the {len(kept.texts):,} kept documents is in the original, matched by {key}. "
            "Check the paths and the columns (--id-column, --text-column), or match by the other "
            "key: match (--match id, --match text)."
        )
    num_changed = _count_changed(original, kept) if key == "id" else 0
    return Matched(
        is_kept=is_kept,
        key=key,
        unmatched=np.flatnonzero(~is_known),
        num_changed=num_changed,
    )


def _differ(ids: Words) -> bool:
    """Return whether all ids differ and none is missing."""
    return len(np.unique(ids)) == len(ids) and NO_ID not in ids


def _contained(keys: Words, others: Words) -> Mask:
    """Return which keys have a partner among others: of n equal keys with m partners, the first m.

    A missing id has none.
    """
    order = np.argsort(keys, kind="stable")
    rank = np.empty(len(keys), np.int64)
    rank[order] = rank_in_run(keys[order])
    distinct, counts = np.unique(others, return_counts=True)
    index, is_found = find_in(distinct, keys)
    num_partners = np.zeros(len(keys), np.int64)
    num_partners[is_found] = counts[index[is_found]]
    contained: Mask = (rank < num_partners) & (keys != NO_ID)
    return contained


def _count_changed(original: Rows, kept: Rows) -> int:
    """Return the number of kept documents whose text is no text of their id."""
    is_known = np.isin(kept.ids, original.ids) & (kept.ids != NO_ID)
    # An id may belong to several documents of the original.
    is_same = np.isin(_pair_hashes(kept), _pair_hashes(original))
    return int(np.count_nonzero(is_known & ~is_same))


def _pair_hashes(rows: Rows) -> Words:
    """Return a hash of the id and the text of each document."""
    # Multiplied by an odd number, so that the id and the text are not interchangeable.
    return rows.ids * np.uint64(3) + rows.texts
