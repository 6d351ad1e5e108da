"""Compute SimHash fingerprints of texts: features, weights, hashes and votes.

    texts --describe--> Described --weigh--> Summands --add_up--> fingerprints

Two settings take part: the settings of the user, and the native settings that are equal to a scheme
of another program (`resolve_scheme`). Features, weights and hashes follow the native settings,
which `Described.method` has; the bits and the tie follow the settings of the user.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Floats, Words, offsets_from_lengths
from neardup.errors import SettingError
from neardup.features.described import (
    DistinctFeatures,
    Weighed,
    choose,
    distinct_features,
    line_frequencies,
    sum_weights,
)
from neardup.features.feature_strings import (
    Strings,
    hash_features,
    strings_of,
    token_strings,
    weighted_tokens,
)
from neardup.features.foreign_schemes import preprocess, resolve_scheme, tie_bit
from neardup.features.idf import IdfTable, describe_features, inverse_frequencies, name_callable
from neardup.features.page_structure import weigh_tags
from neardup.features.segmenters import cutter_of
from neardup.features.shingles import extract_text, shingle_documents
from neardup.features.token_lists import pack_tokens, shingle_strings
from neardup.features.workspaces import Workspace
from neardup.files import JsonObject
from neardup.fingerprints.simhash import (
    SCHEME,
    Sums,
    extend,
    num_words,
    summarise,
    summarise_weighted,
)
from neardup.kernels.token_arrays import Shingles, TokenStrings
from neardup.settings.methods import IdfSource, SimHash


class Described(NamedTuple):
    """The features of documents before they are weighed.

    shingles : all features, repeats included. tokens : the tokens as strings, if available.
    given_weights : float64, the weight of each occurrence, if the input has weights. method : the
    native settings of the scheme. texts : the texts after extraction; None if the input was not
    texts.
    """

    shingles: Shingles
    tokens: TokenStrings | None
    given_weights: Floats | None
    method: SimHash
    texts: pa.Array | None = None


class Summands(NamedTuple):
    """The summands of fingerprints: distinct features, their weights, and their hashes.

    idf : float64 (num_features,), the inverse document frequencies if the weights use them.
    strings : the features, if requested or needed for hashes.
    words : uint64 (num_features, num_words), the hashes.
    """

    features: DistinctFeatures
    idf: Floats | None
    weighed: Weighed
    strings: Strings | None
    words: Words


def summarise_described(
    described: Described, method: SimHash, idf: IdfSource | None = None
) -> Words:
    """Return the fingerprints of described documents.

    Parameters
    ----------
    described : the result of `describe`.
    method : the settings of fingerprints.
    idf : the document frequencies of a corpus, if the method needs them.

    Returns
    -------
    uint64 (num_documents, num_words), bit i in bit i % 64 of word i // 64; zeros without features.

    Raises
    ------
    SettingError
        If the method needs the document frequencies of a corpus, and there is no table.
    SchemeError
        If the table is for other features.
    """
    if not _has_plain_votes(described.method):
        return add_up(weigh(described, idf), method).fingerprints
    hashes = described.shingles.hashes
    offsets = described.shingles.offsets
    if described.method.weights == "one":  # repeats of a feature do not vote
        features = distinct_features(hashes, offsets)
        hashes = features.hashes
        offsets = features.offsets
    return summarise(hashes, offsets, method.bits, tie=tie_bit(method))


def _has_plain_votes(native: SimHash) -> bool:
    """Return whether each feature votes once, or once per occurrence.

    Hashes are then counted as they are, without weights in floating point.
    """
    chooses_features = native.num_features or native.weight_levels
    return native.hash == "native" and native.weights in ("one", "tf") and not chooses_features


def describe(
    texts: pa.Array,
    method: SimHash,
    workspace: Workspace | None = None,
    *,
    with_strings: bool = False,
) -> Described:
    """Return the features of documents; also as strings if requested, or if the hash needs them.

    workspace : the buffer of the hashes, which are valid until it is used again. None allocates new
    memory.
    """
    texts = preprocess(extract_text(texts, method), method)
    native = resolve_scheme(method)
    # The text is extracted from pages already.
    of_text = native if native.html is None else replace(native, html=None)
    described = _describe(texts, of_text, workspace, with_strings=with_strings)
    return described._replace(method=native)


def _describe(
    texts: pa.Array,
    method: SimHash,
    workspace: Workspace | None = None,
    *,
    with_strings: bool = False,
) -> Described:
    """Return the features of extracted and preprocessed texts, with native settings."""
    with_strings = with_strings or method.hash != "native"
    if method.weights == "given":
        return describe_weighted(*weighted_tokens(texts, method), method)
    if method.weights == "depth":
        by_path = method.tokens == "paths"
        tags = weigh_tags(texts, method.decay, paths=by_path, with_strings=with_strings)
        shingles = Shingles(
            hashes=tags.hashes,
            offsets=tags.offsets,
            content=tags.content,
            flagged=np.zeros(len(texts), np.bool_),  # tags are not normalised
        )
        return Described(
            shingles=shingles, tokens=tags.strings, given_weights=tags.weights, method=method
        )
    tokens = None
    if cutter_of(method) is not None:  # a segmenter cuts texts into strings, no kernel
        tokens = token_strings(texts, method)
        shingles = shingle_strings(tokens, method.ngram)
    else:
        if with_strings:
            tokens = token_strings(texts, method)
        shingles = shingle_documents(texts, method, workspace)
    return Described(
        shingles=shingles, tokens=tokens, given_weights=None, method=method, texts=texts
    )


def describe_weighted(
    features: list[list[str]], weights: list[list[float]], method: SimHash
) -> Described:
    """Return features with their given weights."""
    given_weights = np.array([weight for document in weights for weight in document], np.float64)
    return describe_tokens(pack_tokens(features), given_weights, method)


def describe_tokens(tokens: TokenStrings, weights: Floats | None, method: SimHash) -> Described:
    """Return tokens as features, each of one token, with their weights if they have some."""
    kind = method.tokens if method.weights == "given" else "whitespace"
    return Described(
        shingles=shingle_strings(tokens, 1),
        tokens=tokens,
        given_weights=weights,
        method=replace(resolve_scheme(method), tokens=kind, ngram=1),
    )


def weigh(described: Described, idf: IdfSource | None, *, with_strings: bool = False) -> Summands:
    """Weigh and hash the distinct features of documents.

    Settings may limit them to the heaviest features.
    """
    method = described.method
    shingles = described.shingles
    features = distinct_features(shingles.hashes, shingles.offsets)
    frequencies = None
    if method.weights == "tfidf" and described.given_weights is None:
        frequencies = _idf(described.texts, features, method, idf)
    weights = _weights_of(described, features, frequencies)
    weighed = choose(
        weights, features.offsets, top=method.num_features, levels=method.weight_levels
    )
    chosen = weighed.indices
    if chosen is not None:
        features = DistinctFeatures(
            hashes=features.hashes[chosen],
            counts=features.counts[chosen],
            firsts=features.firsts[chosen],
            offsets=weighed.offsets,
        )
        frequencies = None if frequencies is None else frequencies[chosen]
    strings = None
    if with_strings or method.hash != "native":
        assert described.tokens is not None  # requested of `describe`, or needed by the hash
        strings = strings_of(described.tokens, method, features, shingles.offsets)
    return Summands(
        features=features,
        idf=frequencies,
        weighed=weighed,
        strings=strings,
        words=_words_of(features, strings, method),
    )


def _weights_of(
    described: Described, features: DistinctFeatures, frequencies: Floats | None
) -> Floats:
    """Return the weights of features. frequencies : inverse document frequencies, if used."""
    if described.given_weights is not None:
        shingles = described.shingles
        return sum_weights(described.given_weights, shingles.hashes, shingles.offsets)
    if described.method.weights == "one":
        return np.ones(len(features.hashes))
    weights = features.counts.astype(np.float64)
    return weights if frequencies is None else weights * frequencies


def _words_of(features: DistinctFeatures, strings: Strings | None, method: SimHash) -> Words:
    """Return the hashes of features, uint64 (num_features, num_words)."""
    if method.hash == "native":
        return extend(features.hashes, method.bits)
    assert strings is not None
    return hash_features(strings, features.hashes, method.hash, num_words(method.bits))


def add_up(summands: Summands, method: SimHash) -> Sums:
    """Return the fingerprints of documents from their summands."""
    weighed = summands.weighed
    return summarise_weighted(
        summands.words, weighed.weights, weighed.offsets, method.bits, tie=tie_bit(method)
    )


def _idf(
    texts: pa.Array | None, features: DistinctFeatures, method: SimHash, idf: IdfSource | None
) -> Floats:
    """Return the inverse document frequency of each feature: from a table, or with idf="lines"
    from the lines of the document itself, each taken as a document.

    texts : the texts after extraction, or None; only lines are read from them.
    """
    if method.idf == "lines":
        lines = pc.split_pattern(pc.fill_null(texts, ""), "\n")
        num_lines = pc.list_value_length(lines).to_numpy(zero_copy_only=False)
        line_offsets = offsets_from_lengths(num_lines).astype(np.int64)
        # Every line is described as a document of its own, by the same settings.
        shingles = _describe(lines.flatten(), replace(method, html=None)).shingles
        line_features = distinct_features(shingles.hashes, shingles.offsets)
        counts, totals = line_frequencies(features, line_features, line_offsets)
        return inverse_frequencies(counts, totals)
    if not isinstance(idf, IdfTable):
        raise SettingError(
            f"weights='tfidf' needs the document frequencies of a corpus: got idf={method.idf!r} "
            "and no table. Pass an IdfTable, or use idf='lines' to count the lines of each "
            "document."
        )
    idf.require(method)
    return idf.lookup(features.hashes)


def scheme_of(method: SimHash, idf_version: str | None = None) -> JsonObject:
    """Return the scheme of fingerprints, as values for JSON.

    Fingerprints of equal schemes are comparable.

    Parameters
    ----------
    method : the settings of fingerprints.
    idf_version : the version of the table of document frequencies, if there is one.
    """
    scheme = {**SCHEME, "bits": method.bits, "scheme": method.scheme}
    if method.scheme != "native":
        return scheme
    function = name_callable(method.hash) if callable(method.hash) else method.hash
    scheme |= {"features": describe_features(method), "hash": function, "weights": method.weights}
    if method.weights == "depth":
        scheme["decay"] = method.decay
    if method.weights == "tfidf":
        scheme["idf"] = idf_version if idf_version is not None else method.idf
    return scheme | {"max_features": method.num_features, "weight_levels": method.weight_levels}
