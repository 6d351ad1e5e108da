"""MinHash signatures of many sets, with the scheme that they were made with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, eq=False)
class Signatures:
    """The signatures of sets, a row each; two compare where their schemes are equal.

    Attributes
    ----------
    values : uint32 array of shape (num_sets, num_hashes).
    scheme : what they were made with, in values that JSON can hold: name, version, seed, num_hashes, and what a
        feature is.
    """

    values: npt.NDArray[np.uint32]
    scheme: Mapping[str, Any]

    def __len__(self) -> int:
        """Return how many sets there are."""
        return len(self.values)
