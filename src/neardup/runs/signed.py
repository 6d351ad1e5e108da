"""Count the documents that were signed, wherever they were."""

from __future__ import annotations

from dataclasses import dataclass, field

from neardup.documents.batch import Rejected


@dataclass
class SignedCounts:
    """The documents signed so far. short : documents of fewer features than SimHash needs."""

    read: int = 0
    without_features: int = 0
    short: int = 0
    text_bytes: int = 0
    rejected: list[Rejected] = field(default_factory=list)
