"""Hash features as other programs do: FNV-1, FNV-1a, MD5, or a Python callable."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup import kernels
from neardup.errors import InputError
from neardup.features.feature_strings import Strings
from neardup.settings.methods import FeatureHash


def hash_features(
    strings: Strings, keys: npt.NDArray[np.uint64], function: str | FeatureHash, num_words: int
) -> npt.NDArray[np.uint64]:
    """Return the hashes of features, bit i in bit i % 64 of word i // 64.

    Parameters
    ----------
    strings : the features of a batch.
    keys : uint64 array of shape (num_features,), the native hashes, by which repeated features are known.
    function : "fnv1" or "fnv1a", 64 bits; "md5", whose digest is read as one big-endian number; or a callable from
        bytes to an integer, of which the lower bits count.
    num_words : 64-bit words of a hash.

    Returns
    -------
    uint64 array of shape (num_features, num_words).

    Raises
    ------
    InputError
        If a callable returns anything but an integer of 0 or more.
    """
    if callable(function):
        # A batch says most words many times over; Python is called once for each.
        _, firsts, indices = np.unique(keys, return_index=True, return_inverse=True)
        return np.ascontiguousarray(_call(strings.to_bytes(firsts), function, num_words)[indices])
    if function == "md5":
        digests = np.empty((len(strings.offsets) - 1, 4), np.uint32)
        kernels.feature_hashes.md5(strings.data, strings.offsets, keys, digests)
        return digests.astype("<u4", copy=False).view(">u8")[:, ::-1][:, :num_words].astype(np.uint64, order="C")
    hashes = np.empty(len(strings.offsets) - 1, np.uint64)
    kernels.feature_hashes.fnv(strings.data, strings.offsets, function == "fnv1", hashes)
    return hashes[:, None]


def _call(features: list[bytes], function: FeatureHash, num_words: int) -> npt.NDArray[np.uint64]:
    mask = (1 << 64 * num_words) - 1
    packed = []
    for feature in features:
        value: Any = function(feature)
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
            raise InputError(
                f"A feature hash must be an integer of 0 or more: got {value!r} from {function!r} for the feature "
                f"{feature!r}. Return an int, for example int.from_bytes(digest, 'big')."
            )
        packed.append((int(value) & mask).to_bytes(8 * num_words, "little"))
    return np.frombuffer(b"".join(packed), "<u8").astype(np.uint64).reshape(-1, num_words)
