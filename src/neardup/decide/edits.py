"""Edits: what is cut from each document."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import arrow_of, arrow_of_bytes, flatten_strings, offsets_from_lengths


class Cuts(NamedTuple):
    """Ranges to cut from the texts of documents, none of which overlap.

    documents : uint32 (num_cuts,), rising; a document may have several cuts. starts, ends : int64 (num_cuts,), in bytes
    of its UTF-8 text, starts < ends, rising within a document.
    """

    documents: npt.NDArray[np.uint32]
    starts: npt.NDArray[np.int64]
    ends: npt.NDArray[np.int64]


class Edits(NamedTuple):
    """The edits of consecutive documents: ranges of a text are cut, or all of it, which removes the document.

    kept : bool (num_documents,), whether the document stays. cuts : of kept documents; None if there are none.
    """

    kept: npt.NDArray[np.bool_]
    cuts: Cuts | None = None

    def between(self, start: int, stop: int) -> Edits:
        """Return the edits of the documents in [start, stop), which are then numbered from 0."""
        kept = self.kept[start:stop]
        if self.cuts is None:
            return Edits(kept)
        documents, starts, ends = self.cuts
        chosen = slice(*np.searchsorted(documents, [start, stop]))
        cuts = Cuts(documents[chosen] - np.uint32(start), starts[chosen], ends[chosen])
        return Edits(kept, cuts if len(cuts.documents) else None)


def cut_texts(texts: pa.LargeStringArray, cuts: Cuts) -> tuple[npt.NDArray[np.uint32], pa.LargeStringArray]:
    """Return the rows of the texts that have cuts, rising, and the rest of each of these texts.

    Raises
    ------
    ValueError
        If a range is empty, overlaps another, exceeds its text, or divides a character.
    """
    rows, first = np.unique(cuts.documents, return_index=True)
    data, offsets = flatten_strings(texts.take(arrow_of(rows)))
    text = np.searchsorted(rows, cuts.documents)
    bounds = np.stack([cuts.starts, cuts.ends], axis=1) + offsets[text][:, None]
    _check(bounds, data, offsets, text, cuts)
    edges = np.concatenate([[0], bounds.ravel(), [len(data)]])
    is_left = np.tile([True, False], len(edges) // 2)[: len(edges) - 1]
    left = data[np.repeat(is_left, np.diff(edges))]
    sizes = np.diff(offsets) - np.add.reduceat(cuts.ends - cuts.starts, first)
    return rows, arrow_of_bytes(left, offsets_from_lengths(sizes)).view(pa.large_string())


def _check(
    bounds: npt.NDArray[np.int64],
    data: npt.NDArray[np.uint8],
    offsets: npt.NDArray[np.int64],
    text: npt.NDArray[np.int64],
    cuts: Cuts,
) -> None:
    """Refuse a cut that is no range of characters. bounds : (num_cuts, 2), in `data`; text : of each cut."""
    starts, ends = bounds.T
    previous = np.maximum(offsets[text], np.append(0, np.where(text[1:] == text[:-1], ends[:-1], 0)))
    wrong = (starts < previous) | (starts >= ends) | (ends > offsets[text + 1])
    inside = np.append(data, np.uint8(0))[np.minimum(bounds, len(data))] & 0xC0 == 0x80  # continues a character
    wrong |= inside.any(axis=1)
    if wrong.any():
        number = int(np.argmax(wrong))
        document, start, end = (int(column[number]) for column in cuts)
        size = int(np.diff(offsets)[text[number]])
        raise ValueError(
            f"Bytes {start} to {end} cannot be cut from document {document}, a text of {size} bytes: cuts must be "
            "ranges of whole characters that rise and do not overlap."
        )
