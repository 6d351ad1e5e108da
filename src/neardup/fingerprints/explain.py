"""Explain the fingerprint of one text: the votes of SimHash, the minima of MinHash; keywords."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.arrays import Array
from neardup.errors import InputError, SettingError
from neardup.features.described import DistinctFeatures, distinct_features
from neardup.features.feature_strings import split_pairs, strings_of, token_strings
from neardup.features.idf import FEATURES_VERSION, IdfTable, resolve_idf
from neardup.features.shingles import extract_text, shingle_documents
from neardup.features.token_lists import pack_tokens, shingle_strings
from neardup.fingerprints import simhash_documents as fingerprinting
from neardup.fingerprints.minhash import band_keys, sign
from neardup.fingerprints.simhash import to_integers
from neardup.settings.constraints import check_kind, check_text, constraints_of
from neardup.settings.methods import MinHash, SimHash, named_as

WeightedFeature = tuple[str, float]


@dataclass(frozen=True)
class Explanation:
    """The computation of a fingerprint, by feature in order of first occurrence, and by bit.

    features : the features. counts : their frequencies. idf : their inverse document frequencies;
    None if the weights do not use them. weights : their weights. hashes : their hashes, whose bits
    vote. sums : the sum of the votes of each bit, the most significant first. fingerprint : a bit
    is 1 if its sum is positive, or zero and the scheme sets such bits.
    """

    features: tuple[str, ...]
    counts: tuple[int, ...]
    idf: tuple[float, ...] | None
    weights: tuple[float, ...]
    hashes: tuple[int, ...]
    sums: tuple[float, ...]
    fingerprint: int
    bits: int

    def __str__(self) -> str:
        """Return a line for each feature, then the fingerprint."""
        hashes = [f"{value:0{self.bits // 4}x}" for value in self.hashes]
        columns = {
            "feature": self.features,
            "count": self.counts,
            "weight": self.weights,
            "hash": hashes,
        }
        return f"{_aligned(columns)}\nfingerprint {self.fingerprint:0{self.bits // 4}x}"


@dataclass(frozen=True)
class SignatureExplanation:
    """The computation of a signature, by shingle in order of first occurrence, hash and band.

    features : the shingles. counts : their frequencies, which have no effect. hashes : their
    hashes. signature : the minimum of all shingles, for each permutation. minima : the index in
    `features` of the shingle with this minimum. keys : the key of each band; documents that share
    the key of a band are compared.
    """

    features: tuple[str, ...]
    counts: tuple[int, ...]
    hashes: tuple[int, ...]
    signature: tuple[int, ...]
    minima: tuple[int, ...]
    keys: tuple[int, ...]

    def __str__(self) -> str:
        """Return a line for each shingle, with the number of its minima, then the keys."""
        minima = np.bincount(self.minima, minlength=len(self.features)).tolist()
        hashes = [f"{value:016x}" for value in self.hashes]
        columns = {"shingle": self.features, "count": self.counts, "minima": minima, "hash": hashes}
        keys = {"band": range(1, len(self.keys) + 1), "key": [f"{key:016x}" for key in self.keys]}
        return f"{_aligned(columns)}\n\n{_aligned(keys)}"


def _aligned(columns: Mapping[str, Iterable[object]]) -> str:
    """Return a table as lines."""
    cells = [[head, *map(str, column)] for head, column in columns.items()]
    widths = [max(map(len, column)) for column in cells]
    rows = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in zip(*cells, strict=True))
    return "\n".join(rows)


def keywords(
    text: str, idf: IdfTable | None = None, *, top: int = 20, method: SimHash | None = None
) -> list[WeightedFeature]:
    """Return the features of a text with the highest TF-IDF weights, in descending order.

    Parameters
    ----------
    text : a text.
    idf : the document frequencies. Default: the table of the method, or counts of the lines of the
        text.
    top : the maximum number of features.
    method : the settings of the features, which must match the table. Default: of the table (except
        jieba and callables), or `SimHash()`.

    Returns
    -------
    list of (feature, weight).

    Examples
    --------
    >>> table = IdfTable.from_counts({"the": 900, "cat": 9}, num_documents=1000)
    >>> [word for word, weight in keywords("The cat is the one", table, top=4)][-2:]
    ['cat', 'the']
    """
    _check_idf(idf)
    method = named_as(SimHash, _method_of(idf) if method is None else method)
    # A text alone has no corpus: its lines take the place of the documents.
    source = idf or ("lines" if method.idf == "corpus" else method.idf)
    weighed = replace(method, weights="tfidf", idf=source, max_features=top, weight_levels=False)
    summands = _summands_of(text, weighed, None, may_be_empty=True)
    weights = summands.weighed.weights
    order = np.lexsort((summands.features.hashes, -weights))
    assert summands.strings is not None  # requested by `_summands_of`
    features = summands.strings.to_list()
    return [(features[index], float(weights[index])) for index in order.tolist()]


def _check_idf(idf: object) -> None:
    if idf is not None:
        check_kind("idf", idf, IdfTable, "an IdfTable, as document_frequencies returns it, or None")


def _method_of(idf: IdfTable | None) -> SimHash:
    """Return the settings of a table of document frequencies, if its scheme has them; default ones
    for a table of another version, which `IdfTable.require` refuses.
    """
    scheme = {} if idf is None else dict(idf.scheme)
    is_current = scheme.pop("version", None) == FEATURES_VERSION
    has_settings = is_current and scheme["tokens"] in constraints_of(SimHash)["tokens"].choices
    return SimHash(**scheme) if has_settings else SimHash()


def explain_fingerprint(
    text: str | Iterable[str] | Iterable[WeightedFeature],
    method: SimHash,
    idf: IdfTable | None = None,
) -> Explanation:
    """Return the computation of a SimHash fingerprint; arguments and errors as in `explain`."""
    _check_idf(idf)
    summands = _summands_of(text, method, idf)
    sums = fingerprinting.add_up(summands, method)
    order = np.argsort(summands.features.firsts)
    weights = summands.weighed.weights[order]
    # The lowest bit comes first in the sums, and last in the explanation.
    sums_of_bits = sums.last_sums[: method.bits][::-1]
    assert summands.strings is not None  # requested by `_summands_of`
    features = summands.strings.to_list()
    mask = (1 << method.bits) - 1
    return Explanation(
        features=tuple(features[index] for index in order.tolist()),
        counts=tuple(summands.features.counts[order].tolist()),
        idf=None if summands.idf is None else tuple(summands.idf[order].tolist()),
        weights=tuple(_plain(weights)),
        hashes=tuple(value & mask for value in to_integers(summands.words[order])),
        sums=tuple(_plain(sums_of_bits)),
        fingerprint=to_integers(sums.fingerprints)[0],
        bits=method.bits,
    )


def explain_signature(
    text: str | Iterable[str], method: MinHash, num_bands: int, rows_per_band: int
) -> SignatureExplanation:
    """Return the computation of a MinHash signature; arguments and errors as in `explain`."""
    if method.boost_rare:
        raise SettingError(
            "boost_rare (--boost-rare) counts shingles by the document frequencies of a corpus, "
            "which a text alone lacks: got boost_rare=True (--boost-rare), which noise (--noise) "
            "may set. Explain the text with boost_rare=False (--no-boost-rare)."
        )
    features, strings = _shingles_of(text, method)
    order = np.argsort(features.firsts)
    hashes = features.hashes[order]
    offsets = np.arange(len(order) + 1)  # each shingle is a document of its own
    values = sign(hashes, offsets, num_bands * rows_per_band, method.seed)
    signature = values.min(axis=0)
    return SignatureExplanation(
        features=tuple(strings[index] for index in order.tolist()),
        counts=tuple(features.counts[order].tolist()),
        hashes=tuple(hashes.tolist()),
        signature=tuple(signature.tolist()),
        minima=tuple(values.argmin(axis=0).tolist()),
        keys=tuple(band_keys(signature[None], num_bands)[:, 0].tolist()),
    )


def _shingles_of(text: str | Iterable[str], method: MinHash) -> tuple[DistinctFeatures, list[str]]:
    """Return the distinct shingles, and their strings. Raises InputError if there are none."""
    given = _checked(text, method.tokens)
    if isinstance(given, str):
        texts = extract_text(pa.array([given], "large_string"), method)
        method = replace(method, html=None)
        tokens = token_strings(texts, method)
        shingles = shingle_documents(texts, method)
    else:
        _check_features(given)
        method = replace(method, ngram=1)
        tokens = pack_tokens([given])
        shingles = shingle_strings(tokens, 1)
    if not len(shingles.hashes):
        raise _no_features(text)
    features = distinct_features(shingles.hashes, shingles.offsets)
    strings = strings_of(tokens, method, features, shingles.offsets)
    return features, strings.to_list()


def _plain(values: Array) -> list[float]:
    """Return numbers as Python values; as int if all are whole."""
    # A sum of large weights may be infinite, which no int is.
    are_whole = bool((np.isfinite(values) & (values == np.rint(values))).all())
    return [int(value) if are_whole else value for value in values.tolist()]


def _summands_of(
    text: object, method: SimHash, idf: IdfTable | None, *, may_be_empty: bool = False
) -> fingerprinting.Summands:
    """Return the weighed features of a text, or of features given, with their strings.

    Raises InputError if there are none and there must be some.
    """
    given = _checked(text, method.tokens)
    if isinstance(given, str):
        texts = pa.array([given], "large_string")
        described = fingerprinting.describe(texts, method, with_strings=True)
    else:
        described = _describe_given(given, method)
    if described.shingles.offsets[-1] == 0 and not may_be_empty:
        raise _no_features(text)
    idf_source = idf or resolve_idf(described.method)
    return fingerprinting.weigh(described, idf_source, with_strings=True)


def _checked(text: object, tokens: object) -> str | list[Any]:
    """Return a text, or features as a list."""
    if tokens == "tags":
        raise SettingError(
            "Shingles of tags have no words to show: got tokens='tags'. Explain method='decay' or "
            "a method of texts, or compare two pages (neardup compare), which shows their outlines."
        )
    if isinstance(text, (bytes, bytearray)) or not isinstance(text, Iterable):
        raise InputError(
            "A text is a string; features are strings, or pairs of a string and its weight: got "
            f"{text!r:.80}. Decode bytes first."
        )
    return check_text("text", text) if isinstance(text, str) else list(text)


def _check_features(features: list[Any]) -> None:
    """Raise InputError unless all features are strings of Unicode text."""
    for feature in features:
        check_text("A feature", feature, " Weighted features go with SimHash.")


def _no_features(text: object) -> InputError:
    text = repr(text)
    got = text if len(text) <= 60 else f"{text[:57]}..."
    return InputError(
        f"There are no features, so there is no fingerprint: got {got}. Leave such texts out."
    )


def _describe_given(
    features: list[str | WeightedFeature], method: SimHash
) -> fingerprinting.Described:
    """Return features passed instead of a text, with the settings that apply to them."""
    if method.weights == "depth":
        raise SettingError(
            "Depth is known of the elements of a page alone: got features with weights='depth'. "
            "Pass the HTML as one string, or use weights='tf'."
        )
    if all(isinstance(feature, str) for feature in features):
        if method.weights == "given" or (method.weights == "tfidf" and method.idf == "lines"):
            raise SettingError(
                "Features without weights and without lines cannot be weighted with "
                f"weights={method.weights!r}, idf={method.idf!r}. Pass pairs of a feature and its "
                "weight, or use weights='tf'."
            )
        _check_features(features)
        return fingerprinting.describe_tokens(pack_tokens([features]), None, method)
    return fingerprinting.describe_weighted(*split_pairs([features], "the features given"), method)
