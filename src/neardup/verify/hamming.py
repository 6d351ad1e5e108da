"""Exact Hamming distances."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.errors import InputError

_MAX_BITS = 256


def hamming_distance(left: int, right: int) -> int:
    """Return the number of bits in which two fingerprints differ.

    Parameters
    ----------
    left : a fingerprint of up to 256 bits, 0 or more.
    right : a fingerprint of up to 256 bits, 0 or more.

    Returns
    -------
    int
        0 to 256.

    Raises
    ------
    InputError
        If a value is not an integer from 0 to 2^256 - 1.

    Examples
    --------
    >>> hamming_distance(0b1011, 0b0010)
    2
    """
    for name, value in (("left", left), ("right", right)):
        if not isinstance(value, (int, np.integer)) or not 0 <= int(value) < 1 << _MAX_BITS:
            raise InputError(
                f"{name} must be a fingerprint, an integer from 0 to 2^{_MAX_BITS} - 1: got {value!r}. "
                "Add 2^bits to a negative value, which was read as a signed number."
            )
    return (int(left) ^ int(right)).bit_count()


def hamming_distances(left: npt.NDArray[np.uint64], right: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint16]:
    """Return the Hamming distance of each row of two arrays of fingerprints.

    Parameters
    ----------
    left, right : uint64 arrays of one shape, (num_rows,) or (num_rows, num_words).

    Returns
    -------
    uint16 array of shape (num_rows,).
    """
    if left.shape != right.shape or left.dtype != np.uint64 or right.dtype != np.uint64 or left.ndim not in (1, 2):
        raise TypeError(
            f"hamming_distances needs two uint64 arrays of one shape: got {left.dtype} {left.shape} and "
            f"{right.dtype} {right.shape}. Compare row by row."
        )
    shape = (len(left), -1 if len(left) else 1)
    distances = np.empty(len(left), np.uint16)
    kernels.matches.row_distances(left.reshape(shape), right.reshape(shape), distances)
    return distances
