"""SimHash of one text: its keywords, and the computation of its fingerprint step by step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from neardup.errors import InputError, SettingError
from neardup.features.feature_strings import split_pairs
from neardup.features.idf import IdfTable, resolve_idf
from neardup.features.segmenters import pack_tokens
from neardup.fingerprints import simhash_documents as fingerprinting
from neardup.fingerprints.simhash import Sums, to_integers
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import PAGE_TOKENS, MethodSettings, SimHash, named_as

WeightedFeature = tuple[str, float]


@dataclass(frozen=True)
class Explanation:
    """The computation of a fingerprint: for each feature, in order of first occurrence, and for each bit.

    features : the features. counts : their frequencies. idf : their inverse document frequencies, None if the weights
    do not use them. weights : their weights. hashes : their hashes; each bit votes. sums : the sums of the
    votes of each bit, the most significant bit first; integers if the weights are integers. fingerprint : a bit is 1
    if its sum is positive, or if the sum is zero and the scheme sets such bits.
    """

    features: tuple[str, ...]
    counts: tuple[int, ...]
    idf: tuple[float, ...] | None
    weights: tuple[float, ...]
    hashes: tuple[int, ...]
    sums: tuple[float, ...]
    fingerprint: int
    bits: int


def keywords(
    text: str, idf: IdfTable | None = None, *, top: int = 20, method: SimHash | None = None
) -> list[WeightedFeature]:
    """Return the features of a text with the highest TF-IDF weights, in descending order.

    Parameters
    ----------
    text : a text.
    idf : the document frequencies. Default: those of the method, or of the lines of the text.
    top : the maximum number of features to return.
    method : the settings that cut the text into features, as those of the table. Default: those of the table (jieba and
        callables excepted), or `SimHash()`.

    Returns
    -------
    list of (feature, weight).

    Examples
    --------
    >>> table = IdfTable.from_counts({"the": 900, "cat": 9}, num_documents=1000)
    >>> [word for word, weight in keywords("The cat is the one", table, top=4)][-2:]
    ['cat', 'the']
    """
    method = named_as(SimHash, method or _method_of(idf))
    source = idf or ("lines" if method.idf == "corpus" else method.idf)
    weighed = replace(method, weights="tfidf", idf=source, max_features=top, weight_levels=False)
    summands, _ = _work(text, weighed, None, may_be_empty=True)
    weights = summands.weighed.weights
    order = np.lexsort((summands.features.hashes, -weights))
    assert summands.strings is not None
    features = summands.strings.to_list()
    return [(features[index], float(weights[index])) for index in order.tolist()]


def _method_of(idf: IdfTable | None) -> SimHash:
    """Return the settings of a table of document frequencies, if its scheme has them."""
    scheme = {} if idf is None else dict(idf.scheme)
    scheme.pop("version", None)
    return SimHash(**scheme) if scheme.get("tokens") in constraints_of(SimHash)["tokens"].choices else SimHash()


def explain(
    text: str | Iterable[str] | Iterable[WeightedFeature],
    *,
    method: MethodSettings | str = "simhash",
    idf: IdfTable | None = None,
) -> Explanation:
    """Return the computation of a SimHash fingerprint step by step: features, weights, hashes, sums of votes.

    Parameters
    ----------
    text : a text, which the method cuts into features; or features: strings, or pairs of a string and its weight,
        which are used unchanged. The weights of repeated features are added.
    method : settings of fingerprints, or their name.
    idf : the document frequencies, if the weights use them. Default: those of the method.

    Returns
    -------
    Explanation

    Raises
    ------
    InputError
        If there are no features.
    SettingError
        If the method makes no SimHash fingerprints of words, or needs the document frequencies of a corpus and has
        none.

    Examples
    --------
    >>> explain("to be or not to be").counts
    (2, 2, 1, 1)
    """
    method = named_as(SimHash, method)
    summands, sums = _work(text, method, idf)
    order = np.argsort(summands.features.firsts)
    weights = summands.weighed.weights[order]
    signed = sums.last_sums[: method.bits][::-1]
    assert summands.strings is not None
    features = summands.strings.to_list()
    mask = (1 << method.bits) - 1
    return Explanation(
        features=tuple(features[index] for index in order.tolist()),
        counts=tuple(summands.features.counts[order].tolist()),
        idf=None if summands.idf is None else tuple(summands.idf[order].tolist()),
        weights=tuple(_plain(weights)),
        hashes=tuple(value & mask for value in to_integers(summands.words[order])),
        sums=tuple(_plain(signed)),
        fingerprint=to_integers(sums.fingerprints)[0],
        bits=method.bits,
    )


def _plain(values: np.ndarray) -> list[float]:
    """Return numbers as Python values; as int if all are whole."""
    whole = bool((values == np.rint(values)).all())
    return [int(value) if whole else value for value in values.tolist()]


def _work(
    text: object, method: SimHash, idf: IdfTable | None, *, may_be_empty: bool = False
) -> tuple[fingerprinting.Summands, Sums]:
    if method.tokens in PAGE_TOKENS:
        raise SettingError(
            f"Tags of a page have no words to show: got tokens={method.tokens!r}. Explain a method of texts, or "
            "compare two pages (neardup compare), which shows their outlines."
        )
    if isinstance(text, (bytes, bytearray)) or not isinstance(text, Iterable):
        raise InputError(
            f"A text is a string; features are strings, or pairs of a string and its weight: got {text!r:.80}. Decode "
            "bytes first."
        )
    if isinstance(text, str):
        described = fingerprinting.describe(pa.array([text], pa.large_string()), method, with_strings=True)
    else:
        described = _describe_given(list(text), method)
    if described.shingles.offsets[-1] == 0 and not may_be_empty:
        raise InputError(
            f"There are no features, so there is no fingerprint: got {_shorten(text)}. Leave such texts out."
        )
    summands = fingerprinting.weigh(described, idf or resolve_idf(described.method), with_strings=True)
    return summands, fingerprinting.add_up(summands, method)


def _describe_given(features: list[str | WeightedFeature], method: SimHash) -> fingerprinting.Described:
    """Return features passed instead of a text, with the settings that apply to them."""
    if all(isinstance(feature, str) for feature in features):
        if method.weights == "given" or (method.weights == "tfidf" and method.idf == "lines"):
            raise SettingError(
                f"Features without weights and without lines cannot be weighted with weights={method.weights!r}, "
                f"idf={method.idf!r}. Pass pairs of a feature and its weight, or use weights='tf'."
            )
        return fingerprinting.describe_tokens(pack_tokens([features]), None, method)
    return fingerprinting.describe_weighted(*split_pairs([features], "the features given"), method)


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
