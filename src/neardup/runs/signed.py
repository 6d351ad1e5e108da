"""Count the documents that were signed, wherever they were."""

from __future__ import annotations

from dataclasses import dataclass, field

from neardup.documents.batch import Losses, Rejected


@dataclass
class SignedCounts:
    """The documents signed so far.

    short : documents of fewer features than SimHash needs. rejected : rows that could not be read.
    losses : their counts.
    """

    read: int = 0
    without_features: int = 0
    short: int = 0
    text_bytes: int = 0
    rejected: list[Rejected] = field(default_factory=list)
    losses: Losses = field(default_factory=Losses)

    def reject(self, row: Rejected) -> None:
        """Take a row that could not be read."""
        self.rejected.append(row)
        self.losses.add(row)
