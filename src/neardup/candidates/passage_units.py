"""Find the paragraphs, lines or sentences that may repeat, and those that are equal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import (
    Bytes,
    Ints,
    Mask,
    Words,
    arrow_of,
    arrow_of_bytes,
    begins_run,
    flatten_strings,
    offsets_from_lengths,
)
from neardup.candidates.passages import Hashes, Selected
from neardup.executor import map_ordered
from neardup.features.boundaries import boundary_classes
from neardup.features.shingles import shingle_documents
from neardup.settings.methods import Shingling
from neardup.settings.passages import PassageSettings, Unit

_KINDS: dict[Unit, int] = {
    "sentence": 2,
    "line": 3,
    "paragraph": 4,
}  # numbered as in kernels/passages.py
_STRETCH = 1 << 16  # units that are hashed at a time
_BOTH = 3  # of `Pieces.bounded`


class _Measured(NamedTuple):
    """keys : uint64 (num_units, 2), of equal units equal. spans, characters : as of
    `measure_units`.
    """

    keys: Words
    spans: Ints
    characters: Ints


class Units:
    """Finds the units of texts that may repeat; called by several threads, as `Anchoring` is."""

    def __init__(self, settings: PassageSettings) -> None:
        assert settings.unit is not None
        self._kind, self._settings = _KINDS[settings.unit], settings

    def hashes(self, texts: pa.LargeStringArray) -> Hashes:
        """Return the hashes of all units of texts that are long enough."""
        data, bounds, _ = self._find(texts)
        measured = self._measure(data, bounds)
        return _hashes(measured)[self._is_long(measured)]

    def select(self, texts: pa.LargeStringArray, counts: Words) -> Selected:
        """Return the units that may repeat, each a piece without anchors; counts : the table of
        `Counts`.
        """
        data, bounds, ends = self._find(texts)
        measured = self._measure(data, bounds)
        chosen = np.empty(len(measured.keys), np.bool_)
        kernels.passage_anchors.mark_repeats(_hashes(measured), counts, chosen)
        chosen &= self._is_long(measured)
        units, before = np.flatnonzero(chosen), offsets_from_lengths(measured.characters[:, 0])
        documents = np.searchsorted(ends, units, "right")
        first = np.append(0, ends)
        begins = first[documents]
        places = bounds[units] - bounds[begins], before[units] - before[begins]
        columns = (
            documents,
            np.diff(bounds)[units],
            *places,
            np.zeros(len(units)),
            np.full(len(units), _BOTH),
        )
        text = flatten_strings(arrow_of_bytes(data, bounds).filter(arrow_of(chosen)))[0]
        nothing = np.empty(0, np.int64), np.empty(0, np.uint32)
        return Selected(
            text, np.stack(columns, axis=1).astype(np.int64), *nothing, np.diff(before[first])
        )

    def first_equal(self, pieces: kernels.passages.Pieces, threads: int) -> Ints:
        """Return the first piece with the text of each: equal bytes, or with `normalise` equal
        hashes of 128 bits.
        """
        count = len(pieces.documents)

        def measure(start: int) -> _Measured:
            bounds = pieces.starts[start : start + _STRETCH + 1]
            found = self._measure(pieces.text[bounds[0] : bounds[-1]], bounds - bounds[0])
            return found._replace(spans=found.spans + bounds[0])

        found = [part for _, part in map_ordered(range(0, count, _STRETCH), measure, threads)]
        first = np.arange(count)
        if not found:
            return first
        keys, spans = (np.concatenate([part[column] for part in found]) for column in (0, 1))
        rest = first.copy()
        while len(rest):  # again for those whose hash is that of another text
            order = rest[np.lexsort(keys[rest].T)]
            begins = begins_run(*keys[order].T)
            first[order] = order[np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))]
            equal = np.full(len(rest), self._settings.normalise)
            if not self._settings.normalise:
                kernels.passage_units.compare_units(pieces.text, spans, rest, first[rest], equal)
            rest = rest[~equal]
        return first

    def _find(self, texts: pa.LargeStringArray) -> tuple[Bytes, Ints, Ints]:
        """Return the bytes of texts, where units begin and the last ends, and the units up to the
        end of each text.
        """
        (data, offsets), ends = flatten_strings(texts), np.empty(len(texts), np.int64)
        starts = kernels.passage_units.find_units(
            data, offsets, boundary_classes(), self._kind, ends
        )
        return data, np.append(starts, len(data)), ends

    def _measure(self, data: Bytes, bounds: Ints) -> _Measured:
        shape = len(bounds) - 1, 2
        found = _Measured(
            np.empty(shape, np.uint64), np.empty(shape, np.int64), np.empty(shape, np.int64)
        )
        kernels.passage_units.measure_units(
            data, bounds, boundary_classes(), found.spans, found.characters, found.keys
        )
        if not self._settings.normalise:
            return found
        shingles = shingle_documents(
            arrow_of_bytes(data, bounds).view(pa.large_string()), Shingling()
        )
        found.characters[np.diff(shingles.offsets) == 0, 1] = 0  # there is nothing to compare
        return found._replace(keys=shingles.content)

    def _is_long(self, measured: _Measured) -> Mask:
        return measured.characters[:, 1] >= self._settings.min_length


def _hashes(measured: _Measured) -> Hashes:
    return (measured.keys[:, 0] >> np.uint64(32)).astype(np.uint32)
