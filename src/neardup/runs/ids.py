"""Find ids that repeat: early among the first documents, and among all in the end."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup.arrays import Ints, Words
from neardup.candidates.bands import bits_for, pack_keys
from neardup.documents.batch import Corpus, DocumentBatch
from neardup.errors import InputError
from neardup.features.grouping import NO_ID
from neardup.runs.locations import DocumentLocations
from neardup.runs.run import Run

_MOST_SHOWN = 1000
_LOCATED_IN = {
    "dedup": "removed.parquet",
    "cluster": "clusters.parquet",
    "remove_passages": "passages.parquet",
}
"""The file of the output that has the file and the row of each document, by command."""
_FIRST_CHECK, _MOST_ID_BYTES = 1000, 64 << 20  # of FirstIds


def check_ids(run: Run, hashes: Words, corpus: Corpus, locations: DocumentLocations) -> list[str]:
    """Return a warning if ids repeat; raise InputError if the user named the column.

    hashes : uint64 by document, of its id; empty if there is no column of ids.
    """
    repeated = None if run.rule.pairs == "all" else find_repeated_id(hashes, corpus, locations)
    if repeated is None:
        return []
    if run.inputs.id_column is not None:
        raise _ids_repeat(repeated, run.inputs.id_column)
    return [f"{repeated} {_LOCATED_IN[run.command]} distinguishes them by source_file and row."]


def _ids_repeat(repeated: str, id_column: object) -> InputError:
    return InputError(
        f"{repeated} Ids in the column {id_column!r} must differ. Name another id_column "
        "(--id-column), "
        "or none: documents are then identified by their row numbers."
    )


class FirstIds:
    """The ids of the first documents of a run: those that repeat end it early. `check_ids` finds
    all others.

    id_column : as the user named it.
    """

    def __init__(self, id_column: object) -> None:
        self._id_column = id_column
        self._ids: list[pa.Array] = []
        self._places: list[tuple[str, Ints]] = []
        self._count, self._limit, self._free_bytes = 0, _FIRST_CHECK, _MOST_ID_BYTES

    def add(self, part: str, batch: DocumentBatch) -> None:
        """Add the next documents.

        Raises
        ------
        InputError
            If an id repeats. They are compared when they have become four times as many, as long as
            they are few.
        """
        if batch.ids is None or self._free_bytes <= 0:
            return
        self._ids.append(batch.ids.cast(pa.large_string()))
        self._places.append((part, batch.rows))
        self._count += len(batch.rows)
        self._free_bytes -= batch.ids.nbytes + batch.rows.nbytes
        if self._count >= self._limit:
            self._compare()
            self._limit = 4 * self._count
        if self._free_bytes <= 0:
            self._ids, self._places = [], []

    def _compare(self) -> None:
        ids = pa.concat_arrays(self._ids)
        present = np.flatnonzero(
            ids.is_valid().to_numpy(zero_copy_only=False)
        )  # a null repeats nothing
        encoded = ids.drop_null().dictionary_encode()
        numbers = encoded.indices.to_numpy(zero_copy_only=False)
        # Ids are numbered as they come, so that a new one has the number of those before it.
        second = np.flatnonzero(numbers[1:] <= np.maximum.accumulate(numbers)[:-1])[:1] + 1
        if len(second):
            first = np.flatnonzero(numbers == numbers[second])[:1]
            part, row = self._place(int(present[first[0]]))
            other_part, other_row = self._place(int(present[second[0]]))
            raise _ids_repeat(
                _belongs(encoded[int(second[0])].as_py(), part, row, other_part, other_row),
                self._id_column,
            )

    def _place(self, document: int) -> tuple[str, int]:
        for part, rows in self._places:
            if document < len(rows):
                return part, int(rows[document])
            document -= len(rows)
        raise IndexError(document)


def _belongs(id: object, part: object, row: int, other_part: object, other_row: int) -> str:
    return (
        f"The id {id!r} belongs to two documents, row {row} of {part} and row {other_row} of "
        f"{other_part}."
    )


def find_repeated_id(hashes: Words, corpus: Corpus, locations: DocumentLocations) -> str | None:
    """Return a sentence that names the first id of two new documents; None if there is none, or no
    id column.

    hashes : uint64 by document, of its id.
    """
    hashes = hashes[corpus.num_against :]
    if len(hashes) == 0:
        return None
    mask = (np.uint64(1) << np.uint64(bits_for(len(hashes)))) - np.uint64(1)
    packed = pack_keys(hashes.copy(), np.arange(len(hashes), dtype=np.uint32), len(hashes))
    same = np.flatnonzero((packed[1:] ^ packed[:-1]) <= mask)  # others differ above the mask
    left, right = (
        (packed[same] & mask).astype(np.uint32),
        (packed[same + 1] & mask).astype(np.uint32),
    )
    truly = (hashes[left] == hashes[right]) & (hashes[left] != NO_ID)
    left, right = (
        left[truly] + np.uint32(corpus.num_against),
        right[truly] + np.uint32(corpus.num_against),
    )
    for first, second in sorted(
        zip(left[:_MOST_SHOWN].tolist(), right[:_MOST_SHOWN].tolist(), strict=True)
    ):
        pair = np.array([first, second], np.uint32)
        (id, part, row), (other, other_part, other_row) = locations.places(pair)
        if id == other:
            both = _belongs(id, part, row, other_part, other_row)
            return f"{both} {len(left):,} documents repeat an id." if len(left) > 1 else both
    return None
