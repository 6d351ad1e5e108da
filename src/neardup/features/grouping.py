"""Keep documents of different groups apart: their features, contents and keys never meet."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Bytes, Ints, Words, flatten_strings
from neardup.features.described import Features, Keys, Lists

NO_ID = np.uint64(2**64 - 1)  # 0 is the hash of the empty string


def hash_values(values: pa.Array) -> Words:
    """Return the hash of each value; a null and an empty value are equal."""
    strings = values.cast("large_string")
    if strings.null_count:  # filling loads pandas
        strings = strings.fill_null("")
    return hash_strings(*flatten_strings(strings))


def hash_ids(ids: pa.Array) -> Words:
    """Return the hash of each id, NO_ID for a null, which equals no id, not even the empty
    string.
    """
    hashes = hash_values(ids)
    if ids.null_count:
        hashes[ids.is_null().to_numpy(zero_copy_only=False)] = NO_ID
    return hashes


def hash_strings(data: Bytes, offsets: Ints) -> Words:
    """Return the hash of each string, as `flatten_strings` returns them."""
    hashes = np.empty(len(offsets) - 1, np.uint64)
    kernels.strings.hash_strings(data, offsets, hashes)
    return hashes


def partition_by_group(
    features: Features, keys: Keys, groups: Words, *, mixes_keys: bool, mixes_sets: bool = True
) -> tuple[Features, Keys]:
    """Salt features and keys with the group, so that groups never match.

    Parameters
    ----------
    groups : uint64 (num_documents,), the hash of the group of each document.
    mixes_keys : whether only equal keys find a document, as in bands. Words of fingerprints are not
        changed: the features separate the groups.
    mixes_sets : whether features are hashes. Vectors are not changed: the keys alone separate the
        groups.

    Notes
    -----
    The hash of the group is added by exclusive or: within a group, equal hashes stay equal and
    different hashes different, so similarities and candidates are the same as in a run over the
    group alone.
    """
    sets = features.sets
    if mixes_sets:
        sets = Lists(sets.hashes ^ np.repeat(groups, sets.sizes), sets.offsets)
    content = features.content ^ groups[:, None]
    values = keys.values ^ groups[:, None] if mixes_keys else keys.values
    samples = None if keys.samples is None else sets
    salted_keys = Keys(values=values, content=content, featured=keys.featured, samples=samples)
    return features._replace(content=content, sets=sets), salted_keys
