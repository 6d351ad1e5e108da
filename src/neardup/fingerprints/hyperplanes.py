"""Random hyperplanes of a seed, and the sides on which vectors lie."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.arrays import Float32s, Floats, Uint32s

SCHEME_NAME = "hyperplanes"
SCHEME_VERSION = 1
# Components are rounded to multiples of 1 / _GRID: logarithms of two libraries may differ in the
# last bit.
_GRID = 2.0**16


def same_side(cosine: npt.ArrayLike) -> Floats:
    """Return the probability that two vectors lie on the same side of a random hyperplane.

    Parameters
    ----------
    cosine : array of any shape, values in [-1, 1].

    Returns
    -------
    float64 array of the same shape, 1 - angle / pi.

    Notes
    -----
    Charikar (2002), section 3, after Goemans and Williamson (1995).

    Examples
    --------
    >>> same_side([1.0, 0.5, 0.0]).round(4).tolist()
    [1.0, 0.6667, 0.5]
    """
    clipped = np.clip(np.asarray(cosine, np.float64), -1.0, 1.0)
    return np.asarray(1.0 - np.arccos(clipped) / math.pi)


@lru_cache(maxsize=4)
def draw_planes(num_planes: int, dimensions: int, seed: int) -> Float32s:
    """Draw the normals of hyperplanes; the first n do not depend on their number.

    Parameters
    ----------
    num_planes : the number of hyperplanes.
    dimensions : the length of the vectors, an even number.
    seed : seed of the hyperplanes.

    Returns
    -------
    float32 array of shape (num_blocks, dimensions, LANES). The last block is complete.

    Notes
    -----
    Independent normal components (Box and Muller 1958), so that all directions are equally likely.
    Philox counters as in `fingerprints.minhash.draw_permutations`, two words for each two
    components, plane by plane.
    """
    generator = np.random.Philox(key=seed)
    lanes = kernels.vectors.LANES
    planes = np.empty((-(-num_planes // lanes), dimensions, lanes), np.float32)
    for block in planes:
        words = generator.random_raw(lanes * dimensions).reshape(lanes, -1, 2)
        uniform = ((words >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53
        radius = np.sqrt(-2.0 * np.log(uniform[..., 0]))
        angle = 2.0 * math.pi * uniform[..., 1]
        pairs = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
        block[:] = (np.rint(pairs * _GRID) / _GRID).reshape(lanes, dimensions).T
    return planes


def to_directions(vectors: Float32s) -> Float32s:
    """Return vectors, float32 (num_rows, dimensions), divided by their lengths; zeros stay."""
    directions = np.empty_like(vectors)
    kernels.vectors.to_directions(vectors, directions)
    return directions


def find_sides(vectors: Float32s, num_bands: int, num_bits: int, seed: int) -> Uint32s:
    """Return the sides of hyperplanes on which vectors lie.

    Parameters
    ----------
    vectors : float32 array of shape (num_rows, dimensions), dimensions even.
    num_bands : the number of bands of a row.
    num_bits : the number of hyperplanes of a band, up to 31.
    seed : seed of the hyperplanes.

    Returns
    -------
    uint32 array of shape (num_rows, num_bands).
    """
    sides = np.zeros((len(vectors), num_bands), np.uint32)
    if vectors.size:
        planes = draw_planes(num_bands * num_bits, vectors.shape[1], seed)
        kernels.vectors.find_sides(to_directions(vectors), planes, num_bits, sides)
    return sides
