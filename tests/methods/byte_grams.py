"""A method in one module: Jaccard similarity of runs of seven bytes. It touches no other file of
neardup.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
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
    Lists,
    Measured,
    Method,
    MethodSettings,
    Signatures,
    band_keys,
    is_exact,
    parameter,
    register,
    sign,
    similarity_of_lists,
)

_MIX = np.uint64(0x9E3779B97F4A7C15)
_BANDS = Bands(64, 1)


@dataclass(frozen=True, kw_only=True)
class ByteGrams(MethodSettings):
    """Runs of `width` bytes of UTF-8, compared as sets."""

    sketch_options: ClassVar[tuple[str, ...]] = ("width",)

    width: int = parameter(7, Constraint("Bytes in a run.", int, low=1, high=8))
    threshold: float = parameter(
        0.5, Constraint("The similarity of duplicates.", exclusive_min=0.0, high=1.0)
    )


@dataclass(frozen=True)
class ByteGramsMethod(Method):
    """Jaccard similarity of sets of byte runs, found by bands of one row."""

    settings: ByteGrams

    feature_name: ClassVar[str] = "runs"
    scheme_fields: ClassVar[frozenset[str]] = Method.scheme_fields | {"width"}
    sketches: ClassVar[type[Signatures]] = Signatures

    @property
    def lookup(self) -> BandLookup:
        return BandLookup(_BANDS)

    def describe(self, texts: pa.Array, workspace: object = None) -> Features:
        documents = [(text or "").encode() for text in texts.to_pylist()]
        runs = [self._runs(np.frombuffer(data, np.uint8)) for data in documents]
        digests = b"".join(hashlib.blake2b(data, digest_size=16).digest() for data in documents)
        offsets = np.concatenate([[0], np.cumsum([len(run) for run in runs], dtype=np.int64)])
        hashes = np.concatenate([np.empty(0, np.uint64), *runs])
        return Features(np.frombuffer(digests, np.uint64).reshape(-1, 2), Lists(hashes, offsets))

    def _runs(self, data: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint64]:
        width = min(self.settings.width, len(data))
        values = np.zeros(len(data) - width + 1 if width else 0, np.uint64)
        for first in range(width):
            values = values * np.uint64(257) + data[first : first + len(values)] + np.uint64(1)
        return values * _MIX ^ (values * _MIX >> np.uint64(29))

    def summarise(self, features: Features) -> Keys:
        return self.keys_of(self.sketch(features), features)

    def sketch(self, features: Features) -> npt.NDArray[np.uint32]:
        return sign(*features.sets, _BANDS.num_hashes, 1)

    def keys_of(self, sketch: npt.NDArray[np.uint32], features: Features) -> Keys:
        keys = band_keys(np.ascontiguousarray(sketch), _BANDS.num_bands)
        return Keys(keys.T, features.content, features.sets.sizes > 0)

    def measure(
        self,
        left: Described,
        right: Described,
        left_rows: npt.NDArray[np.integer],
        right_rows: npt.NDArray[np.integer],
    ) -> Measured:
        exact = is_exact(left, right, left_rows, right_rows)
        sets = left.features.sets, right.features.sets
        similarity = similarity_of_lists(*sets, left_rows, right_rows, "jaccard")
        return Measured({SIMILARITY.name: np.where(exact, 1.0, similarity), EXACT.name: exact})


register(ByteGrams, ByteGramsMethod, {"bytes": ByteGrams()})
