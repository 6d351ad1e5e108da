"""Compute the directions of vectors, the sides of hyperplanes on which they lie, and cosines.

Each sum has a fixed order and no fused operations, so that a result depends neither on the other
rows of a batch nor on the processor: the inner loops run over independent sums, which registers add
side by side.
"""

import math

import numpy as np

from neardup.kernels.compiled import U32, kernel

LANES = 64  # hyperplanes whose sums are computed together
_SUMS = 8  # partial sums of a cosine


@kernel
def to_directions(vectors, directions):
    """Fill directions with vectors divided by their lengths; zeros for one of zeros.

    vectors, directions : float32 (num_rows, dimensions).
    """
    for row in range(len(vectors)):
        total = 0.0
        for i in range(vectors.shape[1]):
            total += np.float64(vectors[row, i]) * np.float64(vectors[row, i])
        length = math.sqrt(total) if total > 0.0 else 1.0
        for i in range(vectors.shape[1]):
            directions[row, i] = np.float32(np.float64(vectors[row, i]) / length)


@kernel
def _project(direction, planes, sums):
    """Set sums to the products of a direction, float32 (dimensions,), with planes, float32
    (dimensions, LANES).
    """
    sums[:] = np.float32(0)
    # Two coordinates a step: a sum is loaded and stored half as often.
    for i in range(0, len(direction), 2):
        first = direction[i]
        second = direction[i + 1]
        for lane in range(LANES):
            sums[lane] = (sums[lane] + first * planes[i, lane]) + second * planes[i + 1, lane]


@kernel(allocates=True)
def find_sides(directions, planes, num_bits, hashes):
    """Fill hashes with the sides of hyperplanes, bit by bit: 1 where the product is 0 or more.

    directions : float32 (num_rows, dimensions), dimensions even; planes : float32 (num_blocks,
    dimensions, LANES); hashes : uint32 (num_rows, num_bands), num_bits up to 31 in each, of
    successive planes.
    """
    sums = np.empty(LANES, np.float32)
    hashes[:] = U32(0)
    for block in range(len(planes)):
        start = block * LANES
        num_lanes = min(LANES, hashes.shape[1] * num_bits - start)
        for row in range(len(directions)):
            _project(directions[row], planes[block], sums)
            band = start // num_bits
            bit = start % num_bits
            word = U32(0)
            # A band may continue in the next block, so its word is added to.
            for lane in range(num_lanes):
                word |= U32(sums[lane] >= np.float32(0)) << U32(bit)
                bit += 1
                if bit == num_bits:
                    hashes[row, band] |= word
                    band += 1
                    bit = 0
                    word = U32(0)
            if bit:
                hashes[row, band] |= word


@kernel(allocates=True)
def fill_cosines(left, left_rows, right, right_rows, cosines):
    """Fill cosines, float64 (num_pairs,), for rows of left and right.

    left, right : float32 (num_rows, dimensions), without vectors of zeros; left_rows, right_rows :
    int64 (num_pairs,).
    """
    sums = np.empty((3, _SUMS))
    for pair in range(len(cosines)):
        cosines[pair] = _cosine(left[left_rows[pair]], right[right_rows[pair]], sums)


@kernel
def _cosine(left, right, sums):
    sums[:] = 0.0
    whole = len(left) - len(left) % _SUMS
    for i in range(0, whole, _SUMS):
        for lane in range(_SUMS):
            _add_products(left[i + lane], right[i + lane], sums, lane)
    for i in range(whole, len(left)):
        _add_products(left[i], right[i], sums, 0)
    product = 0.0
    length = 0.0
    other = 0.0
    for lane in range(_SUMS):
        product += sums[0, lane]
        length += sums[1, lane]
        other += sums[2, lane]
    return max(-1.0, min(1.0, product / math.sqrt(length * other)))


@kernel(inline=True)
def _add_products(left, right, sums, lane):
    """Add the products of two coordinates: of both, and the square of each."""
    x = np.float64(left)
    y = np.float64(right)
    sums[0, lane] += x * y
    sums[1, lane] += x * x
    sums[2, lane] += y * y
