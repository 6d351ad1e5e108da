"""The fingerprint or signature of one text, or of its features, as `sign` makes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

import neardup


def fingerprint_of(text: Any, method: neardup.SimHash | None = None) -> int:
    """Return the fingerprint as an integer."""
    [value] = neardup.sign([_row(text)], method=method or neardup.SimHash()).to_integers()
    return value


def signature_of(text: Any, method: neardup.MinHash | None = None) -> npt.NDArray[np.uint32]:
    """Return the hashes of the signature."""
    [hashes] = neardup.sign([_row(text)], method=method or neardup.MinHash()).values
    return hashes


def _row(text: Any) -> Any:
    return text if isinstance(text, (str, Mapping)) else list(text)
