"""The comparison of two texts: the measures of the pair, and the passages that they share."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup.errors import InputError
from neardup.features.described import Lists
from neardup.features.shingles import extract_text
from neardup.features.spans import token_spans
from neardup.settings.methods import Shingling
from neardup.verify.alignment import Passage, mark_passages
from neardup.verify.measured import count_shared, similarity_of_counts


def measure_shared(sets: Lists) -> tuple[int, int, int, float, float, float]:
    """Return the first six fields of PairMeasures for two lists of features."""
    shared, left, right = count_shared(sets, sets, np.array([0]), np.array([1]))
    measures = [
        similarity_of_counts(shared, left, right, "jaccard"),
        similarity_of_counts(shared, left, right, "containment"),
        similarity_of_counts(shared, right, left, "containment"),
    ]
    jaccard, left_in_right, right_in_left = (float(measure[0]) for measure in measures)
    return int(left[0]), int(right[0]), int(shared[0]), jaccard, left_in_right, right_in_left


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
            f"The {name} text contains a lone surrogate at position {error.start}, which is "
            "not valid Unicode. "
            "Decode it with errors='replace'."
        ) from error


def shown(left: str, right: str, shingling: Shingling) -> tuple[str, str]:
    """Return the compared text of two documents: the text of a page, if the settings compare
    that.
    """
    if shingling.html is None:
        return left, right
    first, second = extract_text(pa.array([left, right], "large_string"), shingling).to_pylist()
    return first, second


def mark(left: str, right: str, shingling: Shingling) -> tuple[list[Passage], list[Passage]]:
    """Return the shared and differing passages of two texts."""
    return mark_passages(
        left, token_spans(left, shingling), right, token_spans(right, shingling), shingling.ngram
    )
