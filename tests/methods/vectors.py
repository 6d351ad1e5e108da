"""A method in one module: the cosine of given vectors, such as embeddings. It touches no other file of neardup."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.methods import (
    EXACT,
    SIMILARITY,
    BandLookup,
    Bands,
    Constraint,
    Described,
    Features,
    Keys,
    Measured,
    Method,
    Signatures,
    VectorSettings,
    band_keys,
    describe_vectors,
    is_exact,
    parameter,
    register,
    vectors_of,
)

_PAIRS_AT_ONCE = 4096
_EMPTY = np.uint32(0xFFFFFFFF)  # the signature of a document without features


@dataclass(frozen=True, kw_only=True)
class GivenVectors(VectorSettings):
    """Vectors of one length, compared by their cosine."""

    sketch_options: ClassVar[tuple[str, ...]] = ("dimensions", "planes", "seed")

    threshold: float = parameter(0.9, Constraint("The cosine of duplicates.", exclusive_min=0.0, high=1.0))
    recall: float = parameter(
        0.99, Constraint("The share of the pairs at the threshold to find.", exclusive_min=0.0, high=0.999999)
    )
    planes: int = parameter(16, Constraint("Hyperplanes of a band.", int, low=1, high=31))
    seed: int = parameter(1, Constraint("Seed of the hyperplanes.", int, low=0, high=2**32 - 1))


@dataclass(frozen=True)
class GivenVectorsMethod(Method):
    """Cosine of vectors, found by the sides of random hyperplanes on which they lie (Charikar 2002)."""

    settings: GivenVectors

    feature_name: ClassVar[str] = "vectors"
    scheme_fields: ClassVar[frozenset[str]] = Method.scheme_fields | {"dimensions", "planes", "seed"}
    sketches: ClassVar[type[Signatures]] = Signatures
    ordered: ClassVar[bool] = True

    @cached_property
    def bands(self) -> Bands:
        """As many bands as the recall needs, each of the sides of `bits` hyperplanes as one hash."""
        of_a_band = float(_agreement(self.settings.threshold)) ** self.settings.planes
        missed = math.log(1 - self.settings.recall)
        return Bands(1 if of_a_band == 1.0 else math.ceil(missed / math.log1p(-of_a_band)), 1)

    @property
    def lookup(self) -> BandLookup:
        return BandLookup(self.bands)

    @property
    def hit_probability(self) -> Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]:
        return partial(_candidate_probability, bits=self.settings.planes, num_bands=self.bands.num_bands)

    def describe(self, texts: pa.Array, workspace: object = None) -> Features:
        return describe_vectors(texts, self.settings.vector_length)

    def sketch(self, features: Features) -> npt.NDArray[np.uint32]:
        vectors = vectors_of(features.sets)
        num_bands, bits = self.bands.num_bands, self.settings.planes
        # Of an odd length, the last component is 0, and so its plane does not count.
        planes = np.random.default_rng(self.settings.seed).standard_normal((vectors.shape[1], num_bands * bits))
        sides = (vectors.astype(np.float64) @ planes >= 0).reshape(-1, num_bands, bits)
        hashes = sides @ (np.uint32(1) << np.arange(bits, dtype=np.uint32))
        hashes[features.sets.sizes == 0] = _EMPTY
        return np.ascontiguousarray(hashes, np.uint32)

    def summarise(self, features: Features) -> Keys:
        return self.keys_of(self.sketch(features), features)

    def keys_of(self, sketch: npt.NDArray[np.uint32], features: Features) -> Keys:
        keys = band_keys(np.ascontiguousarray(sketch), self.bands.num_bands)
        return Keys(keys.T, features.content, features.sets.sizes > 0)

    def measure(
        self, left: Described, right: Described, left_rows: npt.NDArray[np.integer], right_rows: npt.NDArray[np.integer]
    ) -> Measured:
        exact = is_exact(left, right, left_rows, right_rows)
        similarity = np.empty(len(exact))
        for start in range(0, len(exact), _PAIRS_AT_ONCE):
            part = slice(start, start + _PAIRS_AT_ONCE)
            similarity[part] = _cosine(
                vectors_of(left.features.sets, left_rows[part]).astype(np.float64),
                vectors_of(right.features.sets, right_rows[part]).astype(np.float64),
            )
        return Measured({SIMILARITY.name: np.where(exact, 1.0, similarity), EXACT.name: exact})


def _cosine(left: npt.NDArray[np.float64], right: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the cosine of each row of one array with that of another."""
    if left.shape != right.shape:  # no document of one side has features
        return np.zeros(len(left))
    product = np.einsum("ij,ij->i", left, right)
    lengths = np.sqrt(np.einsum("ij,ij->i", left, left) * np.einsum("ij,ij->i", right, right))
    return np.clip(np.divide(product, lengths, out=np.zeros_like(product), where=lengths > 0), -1.0, 1.0)


def _agreement(cosine: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the probability that two vectors lie on the same side of a random hyperplane."""
    return np.asarray(1 - np.arccos(np.asarray(cosine, np.float64)) / math.pi)


def _candidate_probability(similarity: npt.NDArray[np.float64], bits: int, num_bands: int) -> npt.NDArray[np.float64]:
    """Return the probability that two vectors lie on the same sides of all hyperplanes of a band."""
    return np.asarray(1 - (1 - _agreement(similarity) ** bits) ** num_bands)


register(GivenVectors, GivenVectorsMethod, {"given-vectors": GivenVectors()})
