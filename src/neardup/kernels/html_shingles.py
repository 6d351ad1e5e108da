"""Turn the tags and elements of HTML pages into features: shingles of start tags, tags or tag paths
by depth.
"""

import numpy as np

from neardup.kernels.compiled import U8, U64, kernel
from neardup.kernels.html_tokens import START
from neardup.kernels.html_tree import MAX_DEPTH
from neardup.kernels.mixing import mix

_BASE = U64(0xD6E8FEB86659FD93)  # random and odd: products are one to one modulo 2**64
_START = U8(START)
_NUM_DEPTHS = MAX_DEPTH + 1


@kernel(allocates=True)
def shingle_tags(tags, ngram, shingles):
    """Fill `shingles` with the n-grams of the start tags of each page; fewer than n tags make one
    shingle of all.

    The content hash covers the sequence of all start tags. Two hashes that are independent of each
    other make its 128 bits. Requires: room for a hash for each tag.
    """
    window = np.zeros(ngram, U64)  # a ring of the last n tokens
    end = shingles.offsets[0] = 0
    for document in range(len(tags.offsets) - 1):
        end = _shingle_page(
            tags, document, window, shingles.hashes, end, shingles.content[document]
        )
        shingles.offsets[document + 1] = end


@kernel
def _shingle_page(tags, document, window, hashes, end, content):
    """Append the shingles of a page to hashes[:end], and write its content hash; return the new
    end.
    """
    ngram = len(window)
    count = 0
    content_low = U64(0)
    content_high = ~U64(0)
    for i in range(tags.offsets[document], tags.offsets[document + 1]):
        if not tags.kinds[i] & _START:
            continue
        token = tags.tokens[i]
        window[count % ngram] = token
        content_low = mix(content_low + token)
        content_high = mix(content_high * _BASE + token)
        count += 1
        if count >= ngram:
            hashes[end] = _hash_window(window, count, ngram)
            end += 1
    if 0 < count < ngram:  # a short page has one shingle of all its tags
        hashes[end] = _hash_window(window, count, count)
        end += 1
    content[0] = content_low
    content[1] = content_high
    return end


@kernel
def _hash_window(window, count, size):
    """Hash the last `size` of `count` tokens, which are in a ring."""
    state = U64(size)
    for i in range(count - size, count):
        state = state * _BASE + window[i % len(window)]
    return mix(state)


@kernel
def hash_sequences(hashes, weights, offsets, content):
    """Fill content (uint64 (num_documents, 2)) with the hash of each document's sequence of weighed
    features.

    weights : uint64, the bits of float64 weights.
    """
    for document in range(len(offsets) - 1):
        content_low = U64(0)
        content_high = ~U64(0)
        for i in range(offsets[document], offsets[document + 1]):
            token = mix(hashes[i] * _BASE + weights[i])
            content_low = mix(content_low + token)
            content_high = mix(content_high * _BASE + token)
        content[document, 0] = content_low
        content[document, 1] = content_high


@kernel(allocates=True)
def hash_elements(elements, by_path, hashes):
    """Fill hashes (uint64) with the hash of each element's tag, or of its tag path from html down
    to it.
    """
    # path[d] is the hash of the open element at depth d, or of the tag path to it.
    path = np.zeros(_NUM_DEPTHS, U64)
    for i in range(len(hashes)):
        depth = elements.depths[i]
        path[depth] = mix(
            (path[depth - 1] if by_path and depth else U64(0)) * _BASE + elements.names[i]
        )
        hashes[i] = path[depth]
