"""Group documents that share a band key, or the hash of their content."""

import numpy as np

from neardup.kernels.compiled import I64, U32, U64, kernel
from neardup.kernels.mixing import double

NO_BUCKET = U32(0xFFFFFFFF)
LAST_MEMBER = U32(0x80000000)  # set in the last entry of a bucket


@kernel
def list_members(packed, position_bits, max_bucket_size, buckets, members):
    """Give each run of equal keys a bucket, and list its first `max_bucket_size` positions, and one
    more if there is.

    packed : uint64, rising, key in the upper bits, position in the lower `position_bits`; buckets :
    uint32 by position, set to the bucket's first entry in `members`, or unchanged if no other row
    has the key; members : uint32, as long as `packed`, positions, rising in each bucket, the last
    one marked. Returns how many there are.
    """
    shift = U64(position_bits)
    mask = (U64(1) << U64(position_bits)) - U64(1)
    entries = 0
    first = 0
    for stop in range(1, len(packed) + 1):
        if stop < len(packed) and packed[stop] >> shift == packed[first] >> shift:
            continue
        if stop - first > 1:
            for i in range(first, stop):
                buckets[packed[i] & mask] = entries
            listed = min(stop - first, max_bucket_size + 1)
            for i in range(first, first + listed):
                members[entries] = U32(packed[i] & mask)
                entries += 1
            members[entries - 1] |= LAST_MEMBER
        first = stop
    return entries


@kernel(allocates=True)
def find_copies(packed, position_bits, content, positions_to_documents, representative):
    """Set representative[position] to the first position with equal content.

    packed : uint64, rising: the upper bits of content[:, 0], then the position. content : uint64
    (num_documents, 2). A run of equal upper bits may hold several contents: each member is compared
    with the firsts of its run.
    """
    shift = U64(position_bits)
    mask = (U64(1) << U64(position_bits)) - U64(1)
    firsts = np.empty(16, I64)
    first = 0
    while first < len(packed):
        stop = first
        count = 0
        while stop < len(packed) and packed[stop] >> shift == packed[first] >> shift:
            position = I64(packed[stop] & mask)
            found = _first_equal(content, positions_to_documents, firsts[:count], position)
            if found == position:
                if count == len(firsts):
                    firsts = double(firsts)
                firsts[count] = position
                count += 1
            representative[position] = found
            stop += 1
        first = stop


@kernel
def _first_equal(content, positions_to_documents, firsts, position):
    """Return the position among `firsts` with the content of a position, or the position itself."""
    document = positions_to_documents[position]
    for first in firsts:
        other = positions_to_documents[first]
        if content[document, 0] == content[other, 0] and content[document, 1] == content[other, 1]:
            return first
    return position
