"""Features as strings, and their hashes by foreign functions: for fingerprints of other programs,
keywords and explanations.

The string of a feature is its tokens joined by one space, or its characters side by side.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Bytes, Ints, Mask, Words, offsets_from_lengths, ranges, read_only
from neardup.errors import InputError
from neardup.features.described import DistinctFeatures
from neardup.features.normalise import normalise
from neardup.features.segmenters import cutter_of
from neardup.features.shingles import Scan, scan_flagged, scan_strings
from neardup.features.token_lists import cut_documents
from neardup.kernels.token_arrays import TokenStrings, longest_of, make_buffers
from neardup.settings.constraints import check_text
from neardup.settings.methods import FeatureHash, Shingling, SimHash


def hash_features(
    strings: Strings, keys: Words, function: str | FeatureHash, num_words: int
) -> Words:
    """Return the hashes of features, bit i in bit i % 64 of word i // 64.

    Parameters
    ----------
    strings : the features of a batch.
    keys : uint64 array of shape (num_features,), the native hashes, by which repeated features are
        known.
    function : "fnv1" or "fnv1a", 64 bits; "md5", whose digest is read as one big-endian number; or
        a callable from bytes to an integer, whose lower bits count.
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
        # A batch repeats most features; Python is called once for each distinct feature.
        _, firsts, indices = np.unique(keys, return_index=True, return_inverse=True)
        distinct = _call_each(strings.to_bytes(firsts), function, num_words)
        return np.ascontiguousarray(distinct[indices])
    data = read_only(strings.data)
    if function == "md5":
        digests = np.empty((len(strings.offsets) - 1, 4), np.uint32)
        kernels.feature_hashes.md5(data, strings.offsets, keys, digests)
        # The 16 bytes of a digest are a big-endian number: its last word is word 0.
        words = digests.astype("<u4", copy=False).view(">u8")[:, ::-1]
        return words[:, :num_words].astype(np.uint64, order="C")
    hashes = np.empty(len(strings.offsets) - 1, np.uint64)
    kernels.feature_hashes.fnv(data, strings.offsets, function == "fnv1", hashes)
    return hashes[:, None]


def _call_each(features: list[bytes], function: FeatureHash, num_words: int) -> Words:
    mask = (1 << 64 * num_words) - 1
    packed = []
    for feature in features:
        value: Any = function(feature)
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
            raise InputError(
                f"A feature hash must be an integer of 0 or more: got {value!r} from {function!r} "
                f"for the feature {feature!r}. Return an int, for example int.from_bytes(digest, "
                "'big')."
            )
        packed.append((int(value) & mask).to_bytes(8 * num_words, "little"))
    return np.frombuffer(b"".join(packed), "<u8").astype(np.uint64).reshape(-1, num_words)


_SPACE = 0x20
_NOTHING = -1  # no separator


class Strings(NamedTuple):
    """UTF-8 strings in one buffer. data : uint8; offsets : int64 (num_strings + 1,)."""

    data: Bytes
    offsets: Ints

    def to_list(self) -> list[str]:
        """Return the strings as Python strings."""
        data = self.data.tobytes()
        return [data[start:stop].decode() for start, stop in pairwise(self.offsets.tolist())]

    def to_bytes(self, indices: Ints) -> list[bytes]:
        """Return some of the strings as bytes."""
        data = self.data.tobytes()
        starts = self.offsets[indices].tolist()
        stops = self.offsets[indices + 1].tolist()
        return [data[start:stop] for start, stop in zip(starts, stops, strict=True)]


def token_strings(texts: pa.Array, shingling: Shingling) -> TokenStrings:
    """Return the tokens of documents, from which `shingle_documents` makes shingles, as strings.

    Parameters
    ----------
    texts : string array of any Arrow string type; a null has no tokens.
    shingling : how texts become tokens; the length of a shingle does not matter.
    """
    cut = cutter_of(shingling)
    if cut is not None:
        return cut_documents(texts, cut, shingling)
    whole, flagged = _write(scan_strings(texts, shingling))
    if not flagged.any():
        return whole
    part, _ = _write(scan_flagged(texts, flagged, shingling))
    return _replace_documents(whole, part, flagged)


def _write(scan: Scan) -> tuple[TokenStrings, Mask]:
    """Return the tokens of a scan, and which documents must be normalised as a whole instead."""
    num_documents = len(scan.text.offsets) - 1
    max_bytes = 3 * len(scan.text.data)  # `unicode_tables.MAX_GROWTH`
    tokens = TokenStrings(
        data=np.empty(max_bytes, np.uint8),
        offsets=np.empty(max_bytes + 1, np.int64),
        document_offsets=np.empty(num_documents + 1, np.int64),
    )
    flagged = np.zeros(num_documents, np.bool_)
    kernels.tokens.write_tokens(*scan, make_buffers(longest_of(scan.text)), tokens, flagged)
    # Copies release the memory of the worst case.
    offsets = tokens.offsets[: tokens.document_offsets[-1] + 1].copy()
    data = tokens.data[: offsets[-1]].copy()
    return TokenStrings(data, offsets, tokens.document_offsets), flagged


def _replace_documents(whole: TokenStrings, part: TokenStrings, flagged: Mask) -> TokenStrings:
    """Return the tokens of all documents, the flagged documents from `part`."""
    # The tokens of `part` are appended, then all tokens are put into the order of the documents.
    both = Strings(
        data=np.concatenate([whole.data, part.data]),
        offsets=np.concatenate([whole.offsets, part.offsets[1:] + whole.offsets[-1]]),
    )
    part_offsets = part.document_offsets + whole.document_offsets[-1]
    starts = whole.document_offsets[:-1].copy()
    starts[flagged] = part_offsets[:-1]
    stops = whole.document_offsets[1:].copy()
    stops[flagged] = part_offsets[1:]
    order = ranges(starts, stops - starts)
    one_each = np.ones(len(order), np.int64)
    joined = _join(both, order, one_each, _NOTHING)
    return TokenStrings(joined.data, joined.offsets, offsets_from_lengths(stops - starts))


def weighted_tokens(texts: pa.Array, method: SimHash) -> tuple[list[list[str]], list[list[float]]]:
    """Return the features that the callable `method.tokens` finds in documents, and their
    weights.
    """
    assert callable(method.tokens)
    lists = [method.tokens(normalise(text or "", method)) for text in texts.to_pylist()]
    # A value that is not iterable, such as None, is refused as a pair.
    pairs = [found if isinstance(found, Iterable) else [found] for found in lists]
    return split_pairs(pairs, method.tokens)


def split_pairs(
    lists: Sequence[Iterable[Any]], source: object
) -> tuple[list[list[str]], list[list[float]]]:
    """Return the features and the weights of lists of pairs (feature, weight), without empty
    features.
    """
    features: list[list[str]] = []
    weights: list[list[float]] = []
    for pairs in lists:
        checked = [_check_pair(pair, source) for pair in pairs]
        features.append([feature for feature, _ in checked if feature])
        weights.append([weight for feature, weight in checked if feature])
    return features, weights


def _check_pair(pair: Any, source: object) -> tuple[str, float]:
    try:
        feature, weight = pair
        is_weighted = isinstance(weight, Real) and math.isfinite(weight)
    except (TypeError, ValueError, OverflowError):
        is_weighted = False
    if not is_weighted or not isinstance(feature, str):
        raise InputError(
            f"Weighted features must be pairs of a string and a finite number: got {pair!r} from "
            f"{source!r}. Give an iterable of (str, number)."
        )
    return check_text("A feature", feature), float(weight)


def strings_of(
    tokens: TokenStrings, shingling: Shingling, features: DistinctFeatures, offsets: Any
) -> Strings:
    """Return distinct features as strings.

    Parameters
    ----------
    tokens : the tokens of the documents.
    shingling : its `ngram` is the number of tokens in a feature; a document with fewer tokens is
        one feature. A space separates tokens that are not characters.
    features : the distinct features, with the first occurrence of each.
    offsets : int64 array of shape (num_documents + 1,), the range of all features of each document.
    """
    documents = np.repeat(np.arange(len(offsets) - 1), np.diff(features.offsets))
    # A feature of n tokens begins at the token of its number in the document.
    firsts = features.firsts - offsets[documents] + tokens.document_offsets[documents]
    # A document with fewer tokens than a feature has one feature, of all of them.
    sizes = np.minimum(shingling.ngram, np.diff(tokens.document_offsets))[documents]
    separator = _NOTHING if shingling.tokens in ("chars", "letters") else _SPACE
    return _join(Strings(tokens.data, tokens.offsets), firsts, sizes, separator)


def _join(strings: Strings, firsts: Ints, sizes: Ints, separator: int) -> Strings:
    """Join runs of strings: `sizes[i]` strings from `firsts[i]` on, with a separator between."""
    lengths = strings.offsets[firsts + sizes] - strings.offsets[firsts]
    if separator != _NOTHING:
        lengths += sizes - 1
    offsets = offsets_from_lengths(lengths)
    joined = np.empty(offsets[-1], np.uint8)
    kernels.feature_hashes.join_runs(
        read_only(strings.data), strings.offsets, firsts, sizes, separator, joined, offsets
    )
    return Strings(joined, offsets)
