"""Sign weighted sets of features: consistent weighted sampling by a Poisson process, whose points
are the darts of DartMinHash (Christiani 2020).

Each feature has a fixed Poisson process over (weight, rank), the same in every set that has the
feature: its points are spread evenly. A set owns the points whose weight is below its own. Each
point belongs to one value of a signature, which samples the owned point of minimum rank.

    rank ^
         |  o     .      .          o  owned, .  not owned
         |     o       .
         |  o       |        .      the points of one feature
         +----------+--------> weight
                  weight of the feature in this set
"""

import math

import numpy as np

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.mixing import mix

_STEP = U64(0x9E3779B97F4A7C15)
_NUM_STRIPS = 24  # points below 2^-24 of a weight are left out
# The expected points per value of the first round, beyond log(num_hashes): exp(-3) = 5 % of sets
# have a value without a point, and need a second round.
_MARGIN = 3.0


@kernel(allocates=True)
def sign_weighted(hashes, weights, offsets, seed, signatures):
    """Fill signatures[document, i] with the name of the owned point of minimum rank of value i.

    hashes : uint64, distinct in each document; weights : float64, 0 or from 1e-100 to 1e100;
    offsets : int64 (num_documents + 1,); seed : uint64; signatures : uint32 (num_documents,
    num_hashes). No weight: all ones. The rank up to which points are drawn is estimated from the
    sum of the weights, and doubled if a value has none: a sum that overflows, or a weight near the
    smallest number, would not end.
    """
    num_hashes = signatures.shape[1]
    ranks = np.empty(num_hashes)
    salt = mix(seed + _STEP)
    for document in range(len(offsets) - 1):
        total = 0.0
        for i in range(offsets[document], offsets[document + 1]):
            total += weights[i]
        signatures[document] = U32(0xFFFFFFFF)
        limit = (math.log(num_hashes) + _MARGIN) / total if total > 0 else 0.0
        ranks[:] = np.inf if total > 0 else 0.0
        while ranks.max() == np.inf:
            for i in range(offsets[document], offsets[document + 1]):
                if weights[i] > 0:
                    feature = mix(hashes[i] ^ salt)
                    _add_feature(feature, weights[i], limit, ranks, signatures[document])
            limit *= 2.0


@kernel
def _add_feature(feature, weight, limit, ranks, signature):
    """Keep in `signature` the owned points of one feature with the minimum rank of their value so
    far, up to the limit.

    The weights are cut into strips from a power of two to the next, whose points are drawn by
    rising rank; so every set draws the same points, whatever its limit.
    """
    fraction, exponent = math.frexp(weight)
    # The strip with the last owned point: (2^top, 2^(top + 1)].
    top = exponent - 2 if fraction == 0.5 else exponent - 1
    width = math.ldexp(1.0, top)
    spacing = 1.0 / (len(ranks) * width)  # the mean distance of the ranks of points
    for level in range(top, top - _NUM_STRIPS, -1):
        # Levels may be negative; a float64 has none below -2048.
        draw = mix(feature + _STEP * U64(2048 + level))
        # -log(u) >= 1 - u spares most strips their only logarithm.
        if (1.0 - _uniform(draw)) * spacing <= limit:
            _add_strip(draw, weight, width, spacing, limit, ranks, signature)
        width *= 0.5
        spacing *= 2.0


@kernel
def _add_strip(draw, weight, width, spacing, limit, ranks, signature):
    """Keep the owned points of one strip, drawn from the state `draw`, as `_add_feature` does."""
    num_hashes = U64(len(ranks))
    state = draw
    rank = -math.log(_uniform(draw)) * spacing
    while rank <= limit:
        position = mix(state + _STEP)
        share = np.float64(position >> U64(32)) * 2.0**-32  # of the strip, below the point
        if width + width * share < weight:
            index = I64(((position & U64(0xFFFFFFFF)) * num_hashes) >> U64(32))
            if rank < ranks[index]:
                ranks[index] = rank
                signature[index] = U32(draw)
        state += _STEP + _STEP
        draw = mix(state)
        rank -= math.log(_uniform(draw)) * spacing


@kernel
def _uniform(value):
    """Return a number above 0 and at most 1."""
    return np.float64((value >> U64(11)) + U64(1)) * 2.0**-53
