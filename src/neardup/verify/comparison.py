"""Compare two texts: the measures of the pair, and its shared passages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup.errors import InputError
from neardup.features.described import Lists
from neardup.features.shingles import extract_text
from neardup.features.spans import token_spans
from neardup.settings.methods import Shingling
from neardup.verify.alignment import Passage, mark_passages
from neardup.verify.measured import count_shared, similarity_of_counts


class SharedFeatures(NamedTuple):
    """The fields of PairMeasures that count features."""

    num_left: int
    num_right: int
    num_shared: int
    jaccard: float
    left_in_right: float
    right_in_left: float


def measure_shared(sets: Lists) -> SharedFeatures:
    """Measure two lists of features as sets."""
    shared, left, right = count_shared(sets, sets, np.array([0]), np.array([1]))
    return SharedFeatures(
        num_left=int(left[0]),
        num_right=int(right[0]),
        num_shared=int(shared[0]),
        jaccard=float(similarity_of_counts(shared, left, right, "jaccard")[0]),
        left_in_right=float(similarity_of_counts(shared, left, right, "containment")[0]),
        right_in_left=float(similarity_of_counts(shared, right, left, "containment")[0]),
    )


def read_pair(left: str, right: str) -> pa.Array:
    """Return two texts as an array.

    Raises
    ------
    InputError
        If a text contains a lone surrogate, which is not valid Unicode.
    """
    _refuse_lone_surrogates("left", left)
    _refuse_lone_surrogates("right", right)
    return pa.array([left, right], "large_string")


def _refuse_lone_surrogates(name: str, text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"The {name} text contains a lone surrogate at position {error.start}, which is not "
            "valid Unicode. Decode it with errors='replace'."
        ) from error


def shown(left: str, right: str, shingling: Shingling) -> tuple[str, str]:
    """Return the compared texts of two documents: their page texts if settings are for pages."""
    if shingling.html is None:
        return left, right
    first, second = extract_text(pa.array([left, right], "large_string"), shingling).to_pylist()
    return first, second


def mark(left: str, right: str, shingling: Shingling) -> tuple[list[Passage], list[Passage]]:
    """Return the shared and differing passages of two texts."""
    return mark_passages(
        left, token_spans(left, shingling), right, token_spans(right, shingling), shingling.ngram
    )
