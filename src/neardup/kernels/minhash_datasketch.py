"""Sign a set as datasketch does: its hashes mixed, and the permutations that are not of 32 bits."""

from neardup.kernels.compiled import U32, U64, kernel

BITS_32 = (U32(16), U32(13), U32(16)), (U32(0x85EBCA6B), U32(0xC2B2AE35))
BITS_64 = (U64(33), U64(33), U64(33)), (U64(0xFF51AFD7ED558CCD), U64(0xC4CEB9FE1A85EC53))
_MERSENNE = U64((1 << 61) - 1)
_LOW_32 = U64(0xFFFFFFFF)


@kernel
def mix(hashes, shifts, factors, mixed):
    """Fill mixed, uint32 or uint64, with the last step of MurmurHash3 (Appleby) of each hash; the
    others : BITS_32, 64.

    hashes : of any unsigned type; below 2^32 if mixed to 32 bits.
    """
    kind = mixed.dtype.type
    for i in range(len(hashes)):
        x = kind(hashes[i])
        x = kind((x ^ x >> shifts[0]) * factors[0])
        x = kind((x ^ x >> shifts[1]) * factors[1])
        mixed[i] = x ^ x >> shifts[2]


@kernel
def sign_affine(hashes, multipliers, addends, signature):
    """Fill signature[i] with the minimum of a_i x + b_i, modulo 2^32 or 2^64: all arrays uint32, or
    all uint64.

    No hashes: all ones.
    """
    kind = signature.dtype.type
    signature[:] = ~kind(0)
    for x in hashes:
        for row in range(len(multipliers)):
            signature[row] = min(signature[row], kind(multipliers[row] * x + addends[row]))


@kernel
def sign_mersenne(hashes, multipliers, addends, signature):
    """Fill signature[i] with the minimum of ((a_i x + b_i) mod 2^64 mod (2^61 - 1)) mod 2^32; all
    arrays uint64.
    """
    for row in range(len(multipliers)):
        a = multipliers[row]
        b = addends[row]
        minimum = _LOW_32
        for i in range(len(hashes)):
            x = a * hashes[i] + b
            # 2^61 is 1 modulo the prime; the sum is below twice the prime.
            x = (x & _MERSENNE) + (x >> U64(61))
            if x >= _MERSENNE:
                x -= _MERSENNE
            minimum = min(minimum, x & _LOW_32)
        signature[row] = minimum
