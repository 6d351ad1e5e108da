"""Features as strings, or the hashes of these: for a hash of another program, a list of keywords or
an explanation.

A feature of several tokens is these joined by one space; of several characters, these side by side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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
        a callable from bytes to an integer, of which the lower bits count.
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
        kernels.feature_hashes.md5(read_only(strings.data), strings.offsets, keys, digests)
        return (
            digests.astype("<u4", copy=False)
            .view(">u8")[:, ::-1][:, :num_words]
            .astype(np.uint64, order="C")
        )
    hashes = np.empty(len(strings.offsets) - 1, np.uint64)
    kernels.feature_hashes.fnv(read_only(strings.data), strings.offsets, function == "fnv1", hashes)
    return hashes[:, None]


def _call(features: list[bytes], function: FeatureHash, num_words: int) -> Words:
    mask = (1 << 64 * num_words) - 1
    packed = []
    for feature in features:
        value: Any = function(feature)
        if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
            raise InputError(
                f"A feature hash must be an integer of 0 or more: got {value!r} from "
                f"{function!r} for the feature "
                f"{feature!r}. Return an int, for example int.from_bytes(digest, 'big')."
            )
        packed.append((int(value) & mask).to_bytes(8 * num_words, "little"))
    return np.frombuffer(b"".join(packed), "<u8").astype(np.uint64).reshape(-1, num_words)


_SPACE, _NOTHING = 0x20, -1


class Strings(NamedTuple):
    """UTF-8 strings, one after the other. data : uint8; offsets : int64 (num_strings + 1,)."""

    data: Bytes
    offsets: Ints

    def to_list(self) -> list[str]:
        """Return them as Python strings."""
        data = self.data.tobytes()
        return [data[start:stop].decode() for start, stop in pairwise(self.offsets.tolist())]

    def to_bytes(self, places: Ints) -> list[bytes]:
        """Return those at some places as they are."""
        data = self.data.tobytes()
        starts, stops = self.offsets[places].tolist(), self.offsets[places + 1].tolist()
        return [data[start:stop] for start, stop in zip(starts, stops, strict=True)]


def token_strings(texts: pa.Array, shingling: Shingling) -> TokenStrings:
    """Return the tokens of documents, those whose hashes `shingle_documents` rolls, as strings.

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
    starts, stops = whole.document_offsets[:-1].copy(), whole.document_offsets[1:].copy()
    limits = part.document_offsets + stops[-1]
    starts[flagged], stops[flagged] = limits[:-1], limits[1:]
    order = ranges(starts, stops - starts)
    offsets = np.concatenate([whole.offsets, part.offsets[1:] + whole.offsets[-1]])
    both = Strings(np.concatenate([whole.data, part.data]), offsets)
    joined = _join(both, order, np.ones(len(order), np.int64), _NOTHING)
    return TokenStrings(*joined, offsets_from_lengths(stops - starts))


def _write(scan: Scan) -> tuple[TokenStrings, Mask]:
    num_documents, size = len(scan.text.offsets) - 1, 3 * len(scan.text.data)
    tokens = TokenStrings(
        np.empty(size, np.uint8),
        np.empty(size + 1, np.int64),
        np.empty(num_documents + 1, np.int64),
    )
    flagged = np.zeros(num_documents, np.bool_)
    kernels.tokens.write_tokens(*scan, make_buffers(longest_of(scan.text)), tokens, flagged)
    offsets = tokens.offsets[: tokens.document_offsets[-1] + 1].copy()
    return TokenStrings(
        tokens.data[: offsets[-1]].copy(), offsets, tokens.document_offsets
    ), flagged


def weighted_tokens(texts: pa.Array, method: SimHash) -> tuple[list[list[str]], list[list[float]]]:
    """Return the features of documents with the weights that the callable `method.tokens` gave
    them.
    """
    assert callable(method.tokens)
    pairs = [list(method.tokens(normalise(text or "", method))) for text in texts.to_pylist()]
    return split_pairs(pairs, method.tokens)


def split_pairs(
    lists: Sequence[Sequence[Any]], source: object
) -> tuple[list[list[str]], list[list[float]]]:
    """Return the features and the weights of lists of (feature, weight), pairs of an empty feature
    left out.
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
        if isinstance(weight, Real) and math.isfinite(weight):
            check_text("A feature", feature)
            return feature, float(weight)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(
        f"Weighted features must be pairs of a string and a finite number: got {pair!r} from "
        f"{source!r}. "
        "Give an iterable of (str, number)."
    )


def strings_of(
    tokens: TokenStrings, shingling: Shingling, places: DistinctFeatures, offsets: Any
) -> Strings:
    """Return distinct features as strings.

    Parameters
    ----------
    tokens : the tokens of the documents.
    shingling : with the number of tokens in a feature, which has all of a document with fewer; a
        space separates them unless they are characters.
    places : the distinct features, with where each occurs first.
    offsets : int64 array of shape (num_documents + 1,), the range of all features of each document.
    """
    documents = np.repeat(np.arange(len(offsets) - 1), np.diff(places.offsets))
    firsts = places.firsts - offsets[documents] + tokens.document_offsets[documents]
    sizes = np.minimum(shingling.ngram, np.diff(tokens.document_offsets))[documents]
    strings = Strings(tokens.data, tokens.offsets)
    return _join(
        strings, firsts, sizes, _NOTHING if shingling.tokens in ("chars", "letters") else _SPACE
    )


def _join(strings: Strings, firsts: Ints, sizes: Ints, separator: int) -> Strings:
    lengths = strings.offsets[firsts + sizes] - strings.offsets[firsts]
    offsets = offsets_from_lengths(lengths + (sizes - 1 if separator >= 0 else 0))
    joined = Strings(np.empty(offsets[-1], np.uint8), offsets)
    data = read_only(strings.data)
    kernels.feature_hashes.join_runs(
        data, strings.offsets, firsts, sizes, separator, joined.data, offsets
    )
    return joined
