"""How alike two sets are."""

from __future__ import annotations

import math
from collections.abc import Set


def overlap(left: Set, right: Set) -> int:
    """Return how many elements both have."""
    return len(left & right)


def jaccard(left: Set, right: Set) -> float:
    """Return the share of all elements that both have; of two empty sets 0."""
    union = len(left | right)
    return len(left & right) / union if union else 0.0


def containment(left: Set, right: Set) -> float:
    """Return the share of the elements of `left` that `right` has; of an empty `left` 0."""
    return len(left & right) / len(left) if left else 0.0


def cosine(left: Set, right: Set) -> float:
    """Return the geometric mean of both containments; where one is empty 0."""
    return len(left & right) / math.sqrt(len(left) * len(right)) if left and right else 0.0
