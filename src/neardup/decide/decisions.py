"""The decisions of a run: removed documents and duplicate pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.verify.measured import Measured, Rows


class Removals(NamedTuple):
    """Removed documents in input order, each with the kept document that removed it. documents, kept : uint32."""

    documents: npt.NDArray[np.uint32]
    kept: npt.NDArray[np.uint32]
    measured: Measured

    def take(self, rows: Rows) -> Removals:
        """Return some of the rows."""
        return Removals(self.documents[rows], self.kept[rows], self.measured.take(rows))


class Pairs(NamedTuple):
    """Pairs of documents at or above the threshold, each once. left, right : uint32, either may be the earlier."""

    left: npt.NDArray[np.uint32]
    right: npt.NDArray[np.uint32]
    measured: Measured
