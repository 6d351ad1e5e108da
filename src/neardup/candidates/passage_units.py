"""Find paragraphs, lines or sentences that may repeat, and decide which are equal."""

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
from neardup.candidates.passages import Hashes, Selected, piece_rows
from neardup.executor import map_all
from neardup.features.boundaries import boundary_classes
from neardup.features.shingles import shingle_documents
from neardup.settings.methods import Shingling
from neardup.settings.passages import PassageSettings, Unit

# As kernels/passage_units.py numbers them.
_KINDS: dict[Unit, int] = {"sentence": 2, "line": 3, "paragraph": 4}
_UNITS_AT_ONCE = 1 << 16


class _Found(NamedTuple):
    """The units of texts.

    data : uint8, the bytes of all texts. bounds : int64 (num_units + 1,), the units are
    data[bounds[i]:bounds[i + 1]]. ends : int64 by text, the number of units up to its end.
    """

    data: Bytes
    bounds: Ints
    ends: Ints

    @property
    def first_units(self) -> Ints:
        """The first unit of each text, and the number of all units."""
        return np.append(0, self.ends)


class _Measured(NamedTuple):
    """Measures of units.

    keys : uint64 (num_units, 2), equal for equal units. spans : int64 (num_units, 2), the begin and
    the end without white space. characters : int64 (num_units, 2), all, and without white space.
    """

    keys: Words
    spans: Ints
    characters: Ints

    @property
    def num_characters(self) -> Ints:
        """The characters of each unit, a view."""
        return self.characters[:, 0]

    @property
    def num_visible(self) -> Ints:
        """The characters of each unit without white space, a view."""
        return self.characters[:, 1]

    @property
    def hashes(self) -> Hashes:
        """The upper 32 bits of the keys, uint32 (num_units,)."""
        return (self.keys[:, 0] >> np.uint64(32)).astype(np.uint32)


class Units:
    """Finds the units of texts that may repeat; threads may share it, as `Anchoring`."""

    def __init__(self, settings: PassageSettings) -> None:
        assert settings.unit is not None
        self._kind = _KINDS[settings.unit]
        self._settings = settings

    def hashes(self, texts: pa.LargeStringArray) -> Hashes:
        """Return the hashes of all units of texts that are long enough."""
        found = self._find(texts)
        measured = self._measure(found.data, found.bounds)
        return measured.hashes[self._is_long(measured)]

    def select(self, texts: pa.LargeStringArray, counts: Words) -> Selected:
        """Return the units that may repeat, each a piece without anchors.

        counts : the table of `Counts`.
        """
        found = self._find(texts)
        measured = self._measure(found.data, found.bounds)
        is_chosen = self._is_long(measured) & _may_repeat(measured, counts)
        units = np.flatnonzero(is_chosen)

        documents = np.searchsorted(found.ends, units, "right")
        first = found.first_units[documents]
        characters = offsets_from_lengths(measured.num_characters)
        rows = piece_rows(
            documents=documents,
            lengths=np.diff(found.bounds)[units],
            bytes_before=found.bounds[units] - found.bounds[first],
            characters_before=characters[units] - characters[first],
            anchors=np.zeros_like(units),
            bounded=_bounded_on_both_sides(len(units)),
        )
        all_units = arrow_of_bytes(found.data, found.bounds)
        return Selected(
            text=flatten_strings(all_units.filter(arrow_of(is_chosen)))[0],
            pieces=rows,
            positions=np.empty(0, np.int64),
            hashes=np.empty(0, np.uint32),
            characters=np.diff(characters[found.first_units]),
        )

    def first_equal(self, pieces: kernels.passages.Pieces, threads: int) -> Ints:
        """Return the first piece with the same text, by piece.

        Texts are the same if their bytes are equal, or with `normalise` their hashes of 128 bits.
        """
        first = np.arange(len(pieces.documents))
        if not len(first):
            return first
        keys, spans = self._measure_pieces(pieces, threads)
        rest = first.copy()
        while len(rest):  # again for texts whose hash is the hash of another text
            order = rest[np.lexsort(keys[rest].T)]
            begins = begins_run(*keys[order].T)
            first_of_run = np.maximum.accumulate(np.where(begins, np.arange(len(order)), 0))
            first[order] = order[first_of_run]
            if self._settings.normalise:
                break
            is_equal = np.zeros(len(rest), np.bool_)
            kernels.passage_units.compare_units(pieces.text, spans, rest, first[rest], is_equal)
            rest = rest[~is_equal]
        return first

    def _measure_pieces(self, pieces: kernels.passages.Pieces, threads: int) -> tuple[Words, Ints]:
        """Return the keys and the spans of pieces."""

        def measure(start: int) -> _Measured:
            bounds = pieces.starts[start : start + _UNITS_AT_ONCE + 1]
            measured = self._measure(pieces.text[bounds[0] : bounds[-1]], bounds - bounds[0])
            return measured._replace(spans=measured.spans + bounds[0])

        parts = map_all(range(0, len(pieces.documents), _UNITS_AT_ONCE), measure, threads)
        keys = np.concatenate([part.keys for part in parts])
        return keys, np.concatenate([part.spans for part in parts])

    def _find(self, texts: pa.LargeStringArray) -> _Found:
        """Return the units of texts."""
        data, offsets = flatten_strings(texts)
        ends = np.empty(len(texts), np.int64)
        starts = kernels.passage_units.find_units(
            data, offsets, boundary_classes(), self._kind, ends
        )
        return _Found(data, np.append(starts, len(data)), ends)

    def _measure(self, data: Bytes, bounds: Ints) -> _Measured:
        shape = (len(bounds) - 1, 2)
        measured = _Measured(
            keys=np.empty(shape, np.uint64),
            spans=np.empty(shape, np.int64),
            characters=np.empty(shape, np.int64),
        )
        kernels.passage_units.measure_units(
            data, bounds, boundary_classes(), measured.spans, measured.characters, measured.keys
        )
        if not self._settings.normalise:
            return measured
        units = arrow_of_bytes(data, bounds).view(pa.large_string())
        shingles = shingle_documents(units, Shingling(fold=self._settings.fold))
        is_empty = np.diff(shingles.offsets) == 0
        measured.num_visible[is_empty] = 0  # there is nothing to compare
        return measured._replace(keys=shingles.content)

    def _is_long(self, measured: _Measured) -> Mask:
        return measured.num_visible >= self._settings.min_length


def _may_repeat(measured: _Measured, counts: Words) -> Mask:
    may_repeat = np.empty(len(measured.keys), np.bool_)
    kernels.passage_anchors.mark_repeats(measured.hashes, counts, may_repeat)
    return may_repeat


def _bounded_on_both_sides(num_units: int) -> Ints:
    """Return `Pieces.bounded` of whole units."""
    both = kernels.passages.BEGINS_DOCUMENT | kernels.passages.ENDS_DOCUMENT
    return np.full(num_units, both, np.int64)
