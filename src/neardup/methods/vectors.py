"""Vectors: the sides of random hyperplanes propose pairs, and the exact cosine confirms them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Array, Float32s, Floats, Integers, Ints, Uint32s, read_only
from neardup.candidates.bands import Bands, bands_needed, candidate_probability
from neardup.candidates.lookups import BandLookup
from neardup.decide.outcome import Totals
from neardup.errors import SettingError
from neardup.features.described import Features, Keys, Lists
from neardup.features.shingles import Workspace
from neardup.features.vectors import describe_vectors, vectors_of
from neardup.files import JsonObject
from neardup.fingerprints.hyperplanes import SCHEME_NAME, SCHEME_VERSION, find_sides, same_side
from neardup.fingerprints.minhash import band_keys
from neardup.fingerprints.signatures import Signatures
from neardup.methods.base import Curve, Described, Method, is_exact
from neardup.schemas import EXACT, SIMILARITY
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import Vectors
from neardup.verify.measured import Measured

_MAX_PLANES, _MAX_BANDS = (
    int(constraints_of(Vectors)["planes"].high or 0),
    512,
)  # more were not measured
# A band costs about as much as half a pair compared. Of 600,000 unrelated vectors, half come before
# a vector, and a band proposes 2^-planes of them: measured 2 us a pair and 1.2 us a band of 20
# planes of 256 numbers.
_UNRELATED = 300_000
_CURVE_FROM, _CURVE_STEPS = 0.5, 20


@dataclass(frozen=True)
class VectorsMethod(Method):
    """Cosine of vectors."""

    settings: Vectors

    feature_name: ClassVar[str] = "vectors"
    scheme_fields: ClassVar[frozenset[str]] = frozenset(Vectors.sketch_options)
    sketches: ClassVar[type[Signatures]] = Signatures
    ordered: ClassVar[bool] = True

    @cached_property
    def bands(self) -> Bands:
        """The cheapest bands of hyperplanes that reach the recall at the threshold.

        Raises
        ------
        SettingError
            If _MAX_BANDS bands do not reach it.
        """
        planes = self.settings.planes
        side = float(same_side(self.settings.threshold))
        numbers = range(1, _MAX_PLANES + 1) if planes is None else (planes,)
        choices = [Bands(bands_needed(side**num, self.settings.recall), num) for num in numbers]
        fitting = [bands for bands in choices if bands.num_bands <= _MAX_BANDS]
        if not fitting:
            raise SettingError(
                f"recall={self.settings.recall} at threshold={self.settings.threshold} needs "
                f"more than {_MAX_BANDS} "
                f"bands of {planes} hyperplanes. Set fewer planes (--planes), or leave planes "
                "unset."
            )
        return min(
            fitting,
            key=lambda bands: bands.num_bands * (1.0 + _UNRELATED * 0.5**bands.rows_per_band),
        )

    @property
    def lookup(self) -> BandLookup:
        return BandLookup(self.bands)

    def for_index(self, expected_documents: int) -> VectorsMethod:
        return replace(self, settings=replace(self.settings, planes=self.bands.rows_per_band))

    def describe(self, texts: pa.Array, workspace: Workspace | None = None) -> Features:
        return describe_vectors(texts, self.settings.vector_length, by_direction=True)

    def sketch(self, features: Features) -> Uint32s:
        """Return the sides of the hyperplanes of each band; all ones for a document without
        features.
        """
        sides = find_sides(vectors_of(features.sets), *self.bands, self.settings.seed)
        sides[features.sets.sizes == 0] = ~np.uint32(0)
        return sides

    def summarise(self, features: Features) -> Keys:
        return self.keys_of(self.sketch(features), features)

    def keys_of(self, sketch: Array, features: Features) -> Keys:
        keys = band_keys(np.ascontiguousarray(sketch), self.bands.num_bands)
        return Keys(keys.T, features.content, features.sets.sizes > 0)

    def measure(
        self, left: Described, right: Described, left_rows: Integers, right_rows: Integers
    ) -> Measured:
        exact = is_exact(left, right, left_rows, right_rows)
        sides = (_rows_of(left.features.sets, left_rows), _rows_of(right.features.sets, right_rows))
        cosines = np.zeros(len(exact))
        if all(len(vectors) for vectors, _ in sides):
            kernels.vectors.fill_cosines(*sides[0], *sides[1], cosines)
        return Measured({SIMILARITY.name: np.where(exact, 1.0, cosines), EXACT.name: exact})

    @property
    def hit_probability(self) -> Callable[[Floats], Floats]:
        return partial(_hit_probability, bands=self.bands)

    def refuse_audit(self, audit_sample: int) -> None:
        raise SettingError(
            "audit_sample measures the recall of Jaccard similarity only: got "
            f"audit_sample={audit_sample} with "
            "Vectors. Leave audit_sample (--audit-sample) at 0; every run estimates its recall."
        )

    def curve(self, lowest: float | None = None) -> Curve:
        """Return thresholds up to 1, with bands for the lowest one."""
        lowest = _CURVE_FROM if lowest is None else lowest
        limits = (
            np.arange(math.floor(lowest * _CURVE_STEPS + 1e-9), _CURVE_STEPS + 1) / _CURVE_STEPS
        )
        return Curve(limits, VectorsMethod(replace(self.settings, threshold=float(limits[0]))))

    def scheme_settings(self) -> JsonObject:
        return super().scheme_settings() | {"planes": self.bands.rows_per_band}

    def scheme(self) -> JsonObject:
        return {"name": SCHEME_NAME, "version": SCHEME_VERSION, **self.scheme_settings()}

    def describe_search(self, outcome: Totals) -> JsonObject:
        return super().describe_search(outcome) | {self.lookup.name: self.bands._asdict()}


def _rows_of(features: Lists, rows: Integers) -> tuple[Float32s, Ints]:
    """Return the vectors of all documents with features, and the row of each document there, -1 if
    it has none.
    """
    length = int(features.sizes.max(initial=0))
    sizes, starts = features.sizes[rows], features.offsets[rows]
    vectors = read_only(features.hashes).view(np.float32).reshape(-1, max(1, 2 * length))
    return vectors, np.where(sizes > 0, starts // max(1, length), -1)


def _hit_probability(cosine: Floats, bands: Bands) -> Floats:
    return candidate_probability(same_side(cosine), bands)
