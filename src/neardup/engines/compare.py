"""Compare two texts: how alike they are, by which measure, and where."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.candidates.bands import Bands, candidate_probability
from neardup.config import MinHash
from neardup.engines.write import marked_passages, spans_of
from neardup.errors import InputError
from neardup.features.shingles import shingle_documents
from neardup.fingerprints.minhash import sign
from neardup.verify.passages import Passage


class Measures(NamedTuple):
    """How alike two texts are.

    num_left, num_right, num_shared : distinct shingles. jaccard : shared out of all. left_in_right, right_in_left :
    containment. estimated_jaccard : from MinHash signatures of the run's length. candidate_probability : the chance
    that the bands propose the pair. same_text : equal after normalisation.
    """

    num_left: int
    num_right: int
    num_shared: int
    jaccard: float
    left_in_right: float
    right_in_left: float
    estimated_jaccard: float
    candidate_probability: float
    same_text: bool


def measure(left: str, right: str, method: MinHash, bands: Bands) -> Measures:
    """Return how alike two texts are; all zero when one has no features.

    Raises
    ------
    InputError
        If a text holds half of a surrogate pair, which is no Unicode text.
    """
    _refuse_half_surrogates("left", left)
    _refuse_half_surrogates("right", right)
    shingles = shingle_documents(pa.array([left, right], pa.large_string()), method)
    first, second = (np.unique(shingles.hashes[shingles.offsets[i] : shingles.offsets[i + 1]]) for i in (0, 1))
    shared = len(np.intersect1d(first, second, assume_unique=True))
    signatures = sign(shingles.hashes, shingles.offsets, bands.num_hashes, method.seed)
    jaccard = shared / max(1, len(first) + len(second) - shared)
    both = len(first) > 0 and len(second) > 0
    return Measures(
        num_left=len(first),
        num_right=len(second),
        num_shared=shared,
        jaccard=jaccard,
        left_in_right=shared / max(1, len(first)),
        right_in_left=shared / max(1, len(second)),
        estimated_jaccard=float(np.mean(signatures[0] == signatures[1])) if both else 0.0,
        candidate_probability=float(candidate_probability(jaccard, bands)) if both else 0.0,
        same_text=both and bool(np.array_equal(shingles.content[0], shingles.content[1])),
    )


def _refuse_half_surrogates(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The {name} text holds half of a surrogate pair at position {error.start}, so it is no Unicode text. "
            "Decode it with errors='replace'."
        ) from error


def mark(left: str, right: str, method: MinHash) -> tuple[list[Passage], list[Passage]]:
    """Return the shared and differing passages of two texts."""
    return marked_passages(left, spans_of(left, method), right, spans_of(right, method), method.ngram)
