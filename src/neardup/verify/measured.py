"""The measures of pairs of documents, as columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import arrow_of, numpy_type
from neardup.schemas import EXACT, Measures

Rows = slice | npt.NDArray[Any]


@dataclass(frozen=True)
class Measured:
    """The measures of pairs, row by row.

    columns : arrays of shape (num_pairs,), by the name of the measure (schemas.Measure).
    """

    columns: Mapping[str, npt.NDArray[Any]]

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """Return the column of a measure."""
        return self.columns[name]

    @property
    def exact(self) -> npt.NDArray[np.bool_]:
        """Whether both documents are the same text after normalisation."""
        return self.columns[EXACT.name]

    def take(self, rows: Rows) -> Measured:
        """Return some of the rows."""
        return Measured({name: values[rows] for name, values in self.columns.items()})

    def select(self, measures: Measures) -> Measured:
        """Return some of the measures."""
        return Measured({measure.name: self.columns[measure.name] for measure in measures})

    def arrow(self, measures: Measures) -> list[pa.Array]:
        """Return measures as Arrow columns."""
        return [arrow_of(self.columns[measure.name]) for measure in measures]


def measured_of_copies(count: int, measures: Measures) -> Measured:
    """Return the measures of `count` pairs of copies, in writable arrays."""
    return Measured({each.name: np.full(count, each.of_itself, numpy_type(each.type)) for each in measures})
