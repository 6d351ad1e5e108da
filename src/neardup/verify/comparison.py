"""Compare two texts: how alike they are, by which measure, and where."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.candidates.bands import Bands, candidate_probability
from neardup.engines.local.document_frequencies import given_idf
from neardup.errors import InputError
from neardup.features.extract import readable
from neardup.features.shingles import shingle_documents
from neardup.fingerprints.minhash import sign
from neardup.fingerprints.simhash import to_integers
from neardup.fingerprints.simhash_documents import fingerprint_documents
from neardup.output.write import marked_passages, spans_of
from neardup.settings.methods import Method, MinHash, SimHash
from neardup.verify.passages import Passage


class Measures(NamedTuple):
    """How alike two texts are.

    num_left, num_right, num_shared : distinct shingles or features. jaccard : shared out of all. left_in_right,
    right_in_left : containment. estimated_jaccard : from MinHash signatures of the run's length.
    candidate_probability : the chance that the bands propose the pair. fingerprints : of SimHash; distance : the
    bits in which they differ. What the method does not have, or a text without features has not, is None.
    same_text : equal after normalisation. structure : of web pages, how alike their tags are, where that counts too.
    """

    num_left: int
    num_right: int
    num_shared: int
    jaccard: float
    left_in_right: float
    right_in_left: float
    estimated_jaccard: float | None
    candidate_probability: float | None
    fingerprints: tuple[int, int] | None
    distance: int | None
    same_text: bool
    structure: float | None

    @property
    def cosine(self) -> float:
        """Return the geometric mean of both containments."""
        return math.sqrt(self.left_in_right * self.right_in_left)


def measure(left: str, right: str, method: Method, bands: Bands | None) -> Measures:
    """Return how alike two texts are; no likeness where one has no features.

    Raises
    ------
    InputError
        If a text holds half of a surrogate pair, which is no Unicode text.
    """
    _refuse_half_surrogates("left", left)
    _refuse_half_surrogates("right", right)
    texts = pa.array([left, right], pa.large_string())
    fingerprints = None
    if isinstance(method, SimHash):
        made = fingerprint_documents(texts, method, given_idf(method))
        hashes, offsets, content = made.hashes, made.offsets, made.content
        fingerprints = to_integers(made.fingerprints)
    else:
        hashes, offsets, content, _ = shingle_documents(readable(texts, method), method)
    first, second = (np.unique(hashes[offsets[i] : offsets[i + 1]]) for i in (0, 1))
    shared = len(np.intersect1d(first, second, assume_unique=True))
    jaccard = shared / max(1, len(first) + len(second) - shared)
    both = len(first) > 0 and len(second) > 0
    estimated = chance = structure = None
    if isinstance(method, MinHash) and method.of_structure is not None:
        structure = measure(left, right, method.of_structure, None).cosine
    if bands is not None and isinstance(method, MinHash):
        signatures = sign(hashes, offsets, bands.num_hashes, method.seed)
        estimated = float(np.mean(signatures[0] == signatures[1])) if both else 0.0
        chance = float(candidate_probability(jaccard, bands)) if both else 0.0
    return Measures(
        num_left=len(first),
        num_right=len(second),
        num_shared=shared,
        jaccard=jaccard,
        left_in_right=shared / max(1, len(first)),
        right_in_left=shared / max(1, len(second)),
        estimated_jaccard=estimated,
        candidate_probability=chance,
        fingerprints=(fingerprints[0], fingerprints[1]) if fingerprints and both else None,
        distance=(fingerprints[0] ^ fingerprints[1]).bit_count() if fingerprints and both else None,
        same_text=both and bool(np.array_equal(content[0], content[1])) and structure in (None, 1.0),
        structure=structure,
    )


def similarity_of(measures: Measures, method: Method) -> float:
    """Return the similarity that the method holds against its threshold."""
    if isinstance(method, SimHash) or method.similarity == "jaccard":
        return measures.jaccard
    return measures.cosine if method.similarity == "cosine" else measures.left_in_right


def are_duplicates(measures: Measures, similarity: float, method: Method) -> bool:
    """Return whether a run would take two texts for duplicates, once it compares them."""
    if isinstance(method, MinHash):
        enough = measures.structure is None or measures.structure >= (method.structure or 0.0)
        return similarity >= method.threshold and enough
    near = measures.distance is not None and measures.distance <= method.max_distance
    return near and (not method.compares_features or similarity >= method.threshold)


def _refuse_half_surrogates(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The {name} text holds half of a surrogate pair at position {error.start}, so it is no Unicode text. "
            "Decode it with errors='replace'."
        ) from error


def shown(left: str, right: str, method: Method) -> tuple[str, str]:
    """Return what is compared of two documents: of a page its text, if the method takes that."""
    if method.html is None:
        return left, right
    one, other = readable(pa.array([left, right], pa.large_string()), method).to_pylist()
    return one, other


def mark(left: str, right: str, method: Method) -> tuple[list[Passage], list[Passage]]:
    """Return the shared and differing passages of two texts."""
    return marked_passages(left, spans_of(left, method), right, spans_of(right, method), method.ngram)
