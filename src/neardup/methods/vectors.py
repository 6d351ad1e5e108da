"""Vectors: the sides of random hyperplanes propose pairs, and the exact cosine confirms them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import ClassVar, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Array, Float32s, Floats, Integers, Ints, Uint32s, read_only
from neardup.candidates.bands import Bands, bands_needed, candidate_probability
from neardup.candidates.lookups import BandLookup
from neardup.decide.outcome import Totals
from neardup.errors import SettingError
from neardup.features.described import Features, Keys, Lists
from neardup.features.vectors import describe_vectors, vectors_of
from neardup.features.workspaces import Workspace
from neardup.files import JsonObject
from neardup.fingerprints.hyperplanes import SCHEME_NAME, SCHEME_VERSION, find_sides, same_side
from neardup.fingerprints.minhash import band_keys
from neardup.fingerprints.signatures import Signatures
from neardup.methods.base import Curve, Described, Method, is_exact, thresholds_from
from neardup.schemas import EXACT, SIMILARITY
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import Vectors
from neardup.verify.measured import Measured

_MAX_PLANES = int(constraints_of(Vectors)["planes"].high or 0)  # it has a limit, so never 0
_MAX_BANDS = 512  # more were not measured
# For vectors that are not counted: an index grows, and `sign` does not compare.
_USUAL_DOCUMENTS = 300_000
# Processor time of a vector of 256 numbers, in units of a pair: measured 1 us for a pair, 0.016 us
# for a hyperplane, and 0.15 us to sort and group the key of a band.
_PLANE_COST = 0.015
_BAND_COST = 0.1
_CURVE_FROM = 0.5


@dataclass(frozen=True)
class VectorsMethod(Method):
    """Cosine of vectors.

    num_documents : the vectors among which the bands are the cheapest.
    """

    settings: Vectors
    num_documents: int = _USUAL_DOCUMENTS

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

        Notes
        -----
        A band with one more hyperplane proposes half as many pairs of unrelated vectors, but there
        are more bands. The number of vectors decides, so that the bands depend neither on their
        order nor on the engine.
        """
        planes = self.settings.planes
        same = float(same_side(self.settings.threshold))  # the probability, for one hyperplane
        numbers = range(1, _MAX_PLANES + 1) if planes is None else (planes,)
        choices = [
            Bands(bands_needed(same**number, self.settings.recall), number) for number in numbers
        ]
        fitting = [bands for bands in choices if bands.num_bands <= _MAX_BANDS]
        if not fitting:
            raise SettingError(
                f"recall={self.settings.recall} at threshold={self.settings.threshold} needs more "
                f"than {_MAX_BANDS} bands of {planes} hyperplanes. Set fewer planes (--planes), or "
                "leave planes unset."
            )
        return min(fitting, key=self._cost)

    def _cost(self, bands: Bands) -> float:
        """Return the cost of a vector, in units of a pair, if all vectors are unrelated."""
        # Half of the vectors come before another one, on average. Two unrelated vectors lie on the
        # same side of a hyperplane with probability 1/2.
        num_pairs = self.num_documents / 2 * 0.5**bands.rows_per_band
        return bands.num_bands * (_BAND_COST + _PLANE_COST * bands.rows_per_band + num_pairs)

    @property
    def awaits_count(self) -> bool:
        """True if the planes are not set: they are chosen for the number of vectors."""
        return self.settings.planes is None

    def for_corpus(self, num_documents: int) -> VectorsMethod:
        return replace(self, num_documents=num_documents)

    @property
    def lookup(self) -> BandLookup:
        return BandLookup(self.bands)

    def for_index(self, expected_documents: int) -> VectorsMethod:
        return replace(self, settings=replace(self.settings, planes=self.bands.rows_per_band))

    def describe(self, texts: pa.Array, workspace: Workspace | None = None) -> Features:
        return describe_vectors(texts, self.settings.vector_length, by_direction=True)

    def sketch(self, features: Features) -> Uint32s:
        """Return the sides of each band's hyperplanes; all ones for a document without features."""
        sides = find_sides(vectors_of(features.sets), *self.bands, self.settings.seed)
        # Of a vector of zeros no side is defined.
        sides[features.sets.sizes == 0] = ~np.uint32(0)
        return sides

    def summarise(self, features: Features) -> Keys:
        return self.keys_of(self.sketch(features), features)

    def keys_of(self, sketch: Array, features: Features) -> Keys:
        keys = band_keys(np.ascontiguousarray(sketch), self.bands.num_bands)
        return Keys(
            values=keys.T,
            content=features.content,
            featured=features.sets.sizes > 0,
        )

    def measure(
        self, left: Described, right: Described, left_rows: Integers, right_rows: Integers
    ) -> Measured:
        exact = is_exact(left, right, left_rows, right_rows)
        left_sets = left.features.sets
        right_sets = right.features.sets
        has_both = (left_sets.sizes[left_rows] > 0) & (right_sets.sizes[right_rows] > 0)
        # Documents without a vector have the cosine 0 with all.
        cosines = np.zeros(len(exact))
        if has_both.any():
            lefts = _vectors_of(left_sets, left_rows[has_both])
            rights = _vectors_of(right_sets, right_rows[has_both])
            measured = np.empty(len(lefts.rows))
            kernels.vectors.fill_cosines(*lefts, *rights, measured)
            cosines[has_both] = measured
        return Measured({SIMILARITY.name: np.where(exact, 1.0, cosines), EXACT.name: exact})

    @property
    def hit_probability(self) -> Callable[[Floats], Floats]:
        return partial(_hit_probability, bands=self.bands)

    def refuse_recall_sample(self, recall_sample: int) -> None:
        raise SettingError(
            "recall_sample measures the recall of Jaccard similarity only: got "
            f"recall_sample={recall_sample} with Vectors. Leave recall_sample (--recall-sample) at "
            "0; every run estimates its recall."
        )

    def curve(self, lowest: float | None = None) -> Curve:
        """Return thresholds up to 1, with bands for the lowest one."""
        limits = thresholds_from(_CURVE_FROM if lowest is None else lowest)
        return Curve(limits, VectorsMethod(replace(self.settings, threshold=float(limits[0]))))

    def scheme_settings(self) -> JsonObject:
        # The planes that were chosen, which change the sketch, also if None was set.
        return super().scheme_settings() | {"planes": self.bands.rows_per_band}

    def scheme(self) -> JsonObject:
        return {"name": SCHEME_NAME, "version": SCHEME_VERSION, **self.scheme_settings()}

    def describe_search(self, outcome: Totals) -> JsonObject:
        return super().describe_search(outcome) | {self.lookup.name: self.bands._asdict()}


class _Vectors(NamedTuple):
    """Vectors of documents: matrix, float32 (num_vectors, length); rows, int64, the wanted rows."""

    matrix: Float32s
    rows: Ints


def _vectors_of(features: Lists, documents: Integers) -> _Vectors:
    """Return the vectors of documents with features, in the matrix of all vectors."""
    num_words = int(features.sizes[documents[0]])  # of each vector, two numbers in a word
    matrix = read_only(features.hashes).view(np.float32).reshape(-1, 2 * num_words)
    # Vectors of one length follow each other, so the row of a vector is its offset divided by the
    # words.
    return _Vectors(matrix=matrix, rows=features.offsets[documents] // num_words)


def _hit_probability(cosine: Floats, bands: Bands) -> Floats:
    return candidate_probability(same_side(cosine), bands)
