"""Sign weighted sets of features: consistent weighted sampling by darts.

Every feature is a board without end: across it lies the weight, upwards the rank, and darts stick
in it as evenly as rain, the same ones in every set that has the feature. A set owns the darts to
the left of its weight. Each dart belongs to one place of a signature, and in each place the owned
dart of least rank is the sample.
"""

import math

import numpy as np

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.mixing import mix

_STEP = U64(0x9E3779B97F4A7C15)
_NUM_STRIPS = 24  # darts below 2^-24 of a weight are left out
_MARGIN = (
    3.0  # so much beyond log(num_hashes) leaves some place without a dart in one set of twenty
)


@kernel
def _uniform(value):
    """Return a number above 0 and at most 1."""
    return np.float64((value >> U64(11)) + U64(1)) * 2.0**-53


@kernel
def _throw(feature, weight, limit, ranks, signature):
    """Keep in `signature` the darts of one feature that have the least rank so far, none above the
    limit.

    The weights are cut into strips from a power of two to the next, whose darts are drawn one after
    the other by rising rank; so any set draws the same ones, wherever it stops.
    """
    num_hashes = len(ranks)
    fraction, exponent = math.frexp(weight)
    top = (
        exponent - 2 if fraction == 0.5 else exponent - 1
    )  # the strip that holds the last owned dart
    width = math.ldexp(1.0, top)
    spacing = 1.0 / (num_hashes * width)
    for level in range(top, top - _NUM_STRIPS, -1):
        draw = mix(feature + _STEP * U64(2048 + level))
        # -log(u) >= 1 - u spares most strips their only logarithm.
        if (1.0 - _uniform(draw)) * spacing <= limit:
            state = draw
            rank = -math.log(_uniform(draw)) * spacing
            while rank <= limit:
                position = mix(state + _STEP)
                if width + width * (np.float64(position >> U64(32)) * 2.0**-32) < weight:
                    index = I64(((position & U64(0xFFFFFFFF)) * U64(num_hashes)) >> U64(32))
                    if rank < ranks[index]:
                        ranks[index] = rank
                        signature[index] = U32(draw)
                state += _STEP + _STEP
                draw = mix(state)
                rank -= math.log(_uniform(draw)) * spacing
        width *= 0.5
        spacing *= 2.0


@kernel(allocates=True)
def sign_weighted(hashes, weights, offsets, seed, signatures):
    """Fill signatures[document, i] with the name of the dart of least rank among those of place i.

    hashes : uint64, distinct in each document; weights : float64, 0 or more; offsets : int64
    (num_documents + 1,); seed : uint64; signatures : uint32 (num_documents, num_hashes). No weight:
    all ones. The rank up to which darts are drawn is guessed from the sum of the weights, and
    doubled where a place has none.
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
                    _throw(mix(hashes[i] ^ salt), weights[i], limit, ranks, signatures[document])
            limit *= 2.0
