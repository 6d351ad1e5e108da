"""Sum up the votes of features, bit by bit, into SimHash fingerprints.

Where every feature has the same weight, a bit is one in the fingerprint if more than half of the
features have it, and equal to `tie` if exactly half of them do. The counts of all 64 bits of a word
are kept side by side, one bit of each count in a *plane*, so that one logical operation works on
all of them: some five operations a feature instead of sixty-four additions.
"""

import numpy as np

from neardup.kernels.compiled import U64, kernel
from neardup.kernels.mixing import max_length, mix

_ALL = U64(0xFFFFFFFFFFFFFFFF)
_STEP = U64(0x9E3779B97F4A7C15)  # added w times to a hash, before word w is mixed
_NUM_PLANES = 48  # counts below 2^48
_GROUP = 16  # features that are added up before their carry reaches the planes


@kernel(allocates=True)
def vote(hashes, offsets, tie, fingerprints):
    """Fill the fingerprints of documents whose features, repeats included, have one vote each.

    hashes : uint64; offsets : int64 (num_documents + 1,); tie : the bit, 0 or 1, where as many
    features have it as have it not; fingerprints : uint64 (num_documents, num_words), zeros for a
    document without features.
    """
    scratch = np.empty(max_length(offsets) if fingerprints.shape[1] > 1 else 0, U64)
    all_planes = np.empty(_NUM_PLANES, U64)
    for document in range(len(offsets) - 1):
        span = hashes[offsets[document] : offsets[document + 1]]
        planes = all_planes[: _num_planes(len(span))]
        majority = (len(span) + 1) // 2 if tie else len(span) // 2 + 1
        for word in range(fingerprints.shape[1]):
            values = span
            if word:
                values = scratch[: len(span)]
                for i in range(len(span)):
                    values[i] = _word_of(span[i], word)
            _count(values, planes)
            fingerprints[document, word] = _reach(planes, majority) if len(span) else U64(0)


@kernel
def _num_planes(count):
    """Return the number of planes that `_count` needs for counts up to `count`."""
    num_planes = 5  # for the carry of 16 values
    while count >> num_planes:
        num_planes += 1
    return num_planes


@kernel
def _count(values, planes):
    """Set the planes to how many values have each bit: Harley and Seal's method, 16 values at a
    time.
    """
    planes[:] = U64(0)
    ones = U64(0)
    twos = U64(0)
    fours = U64(0)
    eights = U64(0)
    for i in range(0, len(values) - _GROUP + 1, _GROUP):
        four_a, ones, twos = _add_four(ones, twos, values, i)
        four_b, ones, twos = _add_four(ones, twos, values, i + 4)
        eight_a, fours = _add_three(fours, four_a, four_b)
        four_a, ones, twos = _add_four(ones, twos, values, i + 8)
        four_b, ones, twos = _add_four(ones, twos, values, i + 12)
        eight_b, fours = _add_three(fours, four_a, four_b)
        sixteen, eights = _add_three(eights, eight_a, eight_b)
        _add_up(planes, 4, sixteen)
    planes[0] = ones
    planes[1] = twos
    planes[2] = fours
    planes[3] = eights
    for i in range(len(values) - len(values) % _GROUP, len(values)):
        _add_up(planes, 0, values[i])


@kernel
def _add_four(ones, twos, values, first):
    """Return the carry of weight 4, and the new ones and twos, after adding values first to first +
    3.
    """
    two_a, ones = _add_three(ones, values[first], values[first + 1])
    two_b, ones = _add_three(ones, values[first + 2], values[first + 3])
    four, twos = _add_three(twos, two_a, two_b)
    return four, ones, twos


@kernel
def _add_three(a, b, c):
    """Return the sum of three bits as (carry, rest), in every lane: a carry-save adder."""
    either = a ^ b
    return (a & b) | (either & c), either ^ c


@kernel
def _add_up(planes, level, carry):
    """Add a number of weight 2^level to the counts."""
    while carry != U64(0):
        plane = planes[level]
        planes[level] = plane ^ carry
        carry &= plane
        level += 1


@kernel
def _reach(planes, min_count):
    """Return the bits whose count is `min_count` or more."""
    above = U64(0)
    equal = _ALL
    for level in range(len(planes) - 1, -1, -1):
        plane = planes[level]
        if (min_count >> level) & 1:
            equal &= plane
        else:
            above |= equal & plane
            equal &= ~plane
    return above | equal


@kernel
def add_up(words, weights, offsets, tie, sums, fingerprints):
    """Fill the fingerprints of documents whose features have weights; leave the sums of the last
    one in `sums`.

    words : uint64 (num_features, num_words), the feature hashes; weights : float64 (num_features,);
    offsets : int64 (num_documents + 1,); tie : the bit where a sum is zero; sums : float64 (64 *
    num_words,); fingerprints : uint64 (num_documents, num_words), zeros for a document without
    features. Features are added in their order.
    """
    for document in range(len(offsets) - 1):
        first = offsets[document]
        stop = offsets[document + 1]
        sums[:] = 0.0
        if first == stop:
            fingerprints[document, :] = U64(0)
            continue
        for i in range(first, stop):
            weight = weights[i]
            for word in range(words.shape[1]):
                value = words[i, word]
                part = sums[64 * word : 64 * word + 64]
                for bit in range(64):
                    part[bit] += weight if (value >> U64(bit)) & U64(1) else -weight
        for word in range(words.shape[1]):
            part = sums[64 * word : 64 * word + 64]
            fingerprints[document, word] = _signs_of(part, tie)


@kernel
def _signs_of(sums, tie):
    """Return the word with a one for each positive sum, and `tie` for a sum of zero."""
    ones = U64(0)
    for bit in range(64):
        ones |= U64(sums[bit] > 0 or (sums[bit] == 0 and tie)) << U64(bit)
    return ones


@kernel
def extend_hashes(hashes, words):
    """Fill words[:, w] with word w of the 64-bit feature hashes: the hash itself, then mixes of it.

    hashes : uint64 (num_features,); words : uint64 (num_features, num_words).
    """
    for word in range(words.shape[1]):
        for i in range(len(hashes)):
            words[i, word] = _word_of(hashes[i], word)


@kernel
def _word_of(value, word):
    if word == 0:
        return value
    return mix(value + _STEP * U64(word))
