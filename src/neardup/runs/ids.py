"""Find repeated ids: early among the first documents, and at the end among all documents."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup.arrays import Ints, Positions, Words
from neardup.candidates.bands import bits_for, pack_keys
from neardup.documents.batch import Corpus, DocumentBatch
from neardup.errors import InputError
from neardup.features.grouping import NO_ID
from neardup.runs.locations import DocumentLocations, Place
from neardup.runs.run import Run

_MAX_COMPARED = 1000  # pairs of equal hashes whose ids are compared
_ADVICE = {
    "dedup": "removed.parquet distinguishes them by source_file and row.",
    "cluster": "clusters.parquet distinguishes them by source_file and row.",
    "remove_passages": "passages.parquet distinguishes them by source_file and row.",
    "audit": "removals.parquet distinguishes them by source_file and row.",
    "find_pairs": "Pairs name documents by id alone. Name another id_column (--id-column).",
}
"""What to do about ids that repeat, by command; other commands have no ids in their output."""
_FIRST_CHECK = 1000  # ids before the first comparison of FirstIds
_MAX_ID_BYTES = 64 << 20  # ids and rows that FirstIds remembers


def check_ids(run: Run, hashes: Words, corpus: Corpus, locations: DocumentLocations) -> list[str]:
    """Return a warning if ids repeat; raise InputError if the user named the column.

    hashes : uint64 (num_documents,), the hash of each id; empty if there is no id column.
    """
    if run.command not in _ADVICE:
        return []
    repeated = find_repeated_id(hashes, corpus, locations)
    if repeated is None:
        return []
    if run.inputs.id_column is not None:
        raise _refusal(repeated, run.inputs.id_column)
    return [f"{repeated} {_ADVICE[run.command]}"]


def first_ids_of(run: Run) -> FirstIds | None:
    """Return the object that ends a run early; None if its ids may repeat.

    Only a column that the user named must not repeat ids; a guessed one gets a warning at the end.
    """
    column = run.inputs.id_column
    return FirstIds(column) if run.command in _ADVICE and column is not None else None


def _refusal(repeated: str, id_column: object) -> InputError:
    return InputError(
        f"{repeated} Ids in the column {id_column!r} must differ. Name another id_column "
        "(--id-column), or none: documents are then identified by their row numbers."
    )


class FirstIds:
    """The ids of the first documents of a run: a repeated id ends the run early. `check_ids` finds
    all others.

    id_column : the column as the user named it.
    """

    def __init__(self, id_column: object) -> None:
        self._id_column = id_column
        self._ids: list[pa.Array] = []
        self._rows: list[tuple[str, Ints]] = []  # the part and the rows of each array of ids
        self._count = 0
        self._next_check = _FIRST_CHECK
        self._free_bytes = _MAX_ID_BYTES

    def add(self, part: str, batch: DocumentBatch) -> None:
        """Add the next documents.

        Raises
        ------
        InputError
            If an id repeats. Ids are compared each time their number has grown fourfold, until
            they need more memory than _MAX_ID_BYTES.
        """
        # Without ids, rows are numbered. Beyond the memory, the check at the end has to do.
        if batch.ids is None or self._free_bytes <= 0:
            return
        self._ids.append(batch.ids.cast(pa.large_string()))
        self._rows.append((part, batch.rows))
        self._count += len(batch.rows)
        self._free_bytes -= batch.ids.nbytes + batch.rows.nbytes
        if self._count >= self._next_check:
            self._compare()
            # Each comparison reads all ids again: growing steps keep the sum linear.
            self._next_check = 4 * self._count
        # After the last comparison that fits: the ids are not needed any more.
        if self._free_bytes <= 0:
            self._ids.clear()
            self._rows.clear()

    def _compare(self) -> None:
        ids = pa.concat_arrays(self._ids)
        # A null repeats no other id.
        present = np.flatnonzero(ids.is_valid().to_numpy(zero_copy_only=False))
        encoded = ids.drop_null().dictionary_encode()
        numbers = encoded.indices.to_numpy(zero_copy_only=False)
        # Ids are numbered in the order of their first occurrence: a new id has a number above all
        # earlier ones.
        is_repeated = numbers[1:] <= np.maximum.accumulate(numbers)[:-1]
        if not is_repeated.any():
            return
        second = int(np.argmax(is_repeated)) + 1
        first = int(np.argmax(numbers == numbers[second]))
        id = encoded[second].as_py()
        repeated = _both(
            self._place(id, int(present[first])), self._place(id, int(present[second]))
        )
        raise _refusal(repeated, self._id_column)

    def _place(self, id: str, document: int) -> Place:
        """Return the place of a document."""
        for part, rows in self._rows:
            if document < len(rows):
                return Place(id=id, file=part, row=int(rows[document]))
            document -= len(rows)
        raise IndexError(document)


def _both(first: Place, second: Place) -> str:
    """Return the sentence about two documents of one id."""
    return (
        f"The id {first.id!r} belongs to two documents, row {first.row} of {first.file} and row "
        f"{second.row} of {second.file}."
    )


def find_repeated_id(hashes: Words, corpus: Corpus, locations: DocumentLocations) -> str | None:
    """Return a sentence that names the first id of two new documents; None if there is none, or no
    id column.

    hashes : uint64 (num_documents,), the hash of each id.
    """
    # Ids of the earlier collection may repeat ids of the new one.
    left, right = _equal_hashes(hashes[corpus.num_against :])
    left += np.uint32(corpus.num_against)
    right += np.uint32(corpus.num_against)
    compared = zip(left[:_MAX_COMPARED].tolist(), right[:_MAX_COMPARED].tolist(), strict=True)
    # By document, not by hash: of the compared pairs, the first one in the input is named.
    for pair in sorted(compared):
        first, second = locations.places(np.array(pair, np.uint32))
        # Hashes of different ids may be equal.
        if first.id == second.id:
            both = _both(first, second)
            return f"{both} {len(left):,} documents repeat an id." if len(left) > 1 else both
    return None


def _equal_hashes(hashes: Words) -> tuple[Positions, Positions]:
    """Return the positions of each two neighbours of equal hashes, in the order of hashes."""
    count = len(hashes)
    if count == 0:
        return np.empty(0, np.uint32), np.empty(0, np.uint32)
    # A packed key is the upper bits of a hash above the position, which needs the lower bits.
    position_mask = (np.uint64(1) << np.uint64(bits_for(count))) - np.uint64(1)
    packed = pack_keys(hashes.copy(), np.arange(count, dtype=np.uint32), count)
    is_near = (packed[1:] ^ packed[:-1]) <= position_mask
    left = (packed[:-1][is_near] & position_mask).astype(np.uint32)
    right = (packed[1:][is_near] & position_mask).astype(np.uint32)
    # A missing id repeats none.
    is_equal = (hashes[left] == hashes[right]) & (hashes[left] != NO_ID)
    return left[is_equal], right[is_equal]
