"""SimHash of one text: its fingerprint, its keywords, and how the one follows from the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from neardup.errors import InputError, SettingError
from neardup.features.feature_strings import split_pairs
from neardup.features.foreign_schemes import resolve_scheme
from neardup.features.idf import IdfTable, resolve_idf
from neardup.features.token_lists import pack_tokens, shingle_strings
from neardup.fingerprints.simhash import Sums, to_integers
from neardup.fingerprints.simhash_documents import Described, Summands, add_up, describe, describe_weighted, weigh
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import MethodSettings, SimHash
from neardup.settings.presets import simhash_named
from neardup.settings.shingling import PAGE_TOKENS

WeightedFeature = tuple[str, float]


@dataclass(frozen=True)
class Explanation:
    """How a text becomes a fingerprint: for each feature that counts, by its first place in the text, and for each bit.

    features : the feature; counts : how often it occurs; idf : its inverse document frequency, None where that does
    not weigh; weights : what it weighs; hashes : its hash, of which each bit votes. sums : the sum of the votes of each
    bit, the most significant bit first, as its digits are written; whole numbers where the weights are. fingerprint :
    a one where the sum is positive, or zero and even votes give a one.
    """

    features: tuple[str, ...]
    counts: tuple[int, ...]
    idf: tuple[float, ...] | None
    weights: tuple[float, ...]
    hashes: tuple[int, ...]
    sums: tuple[float, ...]
    fingerprint: int
    bits: int


def simhash(text: str | Iterable[str] | Iterable[WeightedFeature], *, method: SimHash | None = None) -> int:
    """Return the SimHash fingerprint of a text, or of features.

    Parameters
    ----------
    text : a text, which method cuts into features; or features: strings, or pairs of a string and its weight. Those
        are taken as they are. The weights of repeated ones add up.
    method : how, with its bits; `SimHash()` when None.

    Returns
    -------
    int of `method.bits` bits.

    Raises
    ------
    InputError
        If there is no feature, and so nothing that could be alike: leave such texts out, as `dedup` does.
    SettingError
        If method weighs by the document frequencies of a corpus, and holds no table.

    Notes
    -----
    Charikar (2002); Manku, Jain and Das Sarma (2007).

    Examples
    --------
    >>> bin(simhash("a cat sat on the mat") ^ simhash("the cat sat on a mat")).count("1")
    0
    """
    method = method or SimHash()
    _, sums = _work(text, method, None, with_strings=False)
    return to_integers(sums.fingerprints)[0]


def keywords(
    text: str, idf: IdfTable | None = None, *, top: int = 20, method: SimHash | None = None
) -> list[WeightedFeature]:
    """Return the features of a text with the greatest TF-IDF weights, in falling order.

    Parameters
    ----------
    text : a text.
    idf : the document frequencies. Default: those that method names, or those among the lines of the text.
    top : the greatest number of features to return.
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
    method = method or _method_of(idf)
    source = idf or ("lines" if method.idf == "corpus" else method.idf)
    summands, _ = _work(
        text,
        replace(method, weights="tfidf", idf=source, max_features=top, weight_levels=False),
        None,
        may_be_empty=True,
    )
    weights = summands.weighed.weights
    order = np.lexsort((summands.features.hashes, -weights))
    assert summands.strings is not None
    features = summands.strings.to_list()
    return [(features[place], float(weights[place])) for place in order.tolist()]


def _method_of(idf: IdfTable | None) -> SimHash:
    """Return the settings that a table of document frequencies was made with, where its scheme names them."""
    scheme = {} if idf is None else dict(idf.scheme)
    scheme.pop("version", None)
    return SimHash(**scheme) if scheme.get("tokens") in constraints_of(SimHash)["tokens"].choices else SimHash()


def explain(
    text: str | Iterable[str] | Iterable[WeightedFeature],
    *,
    method: MethodSettings | str = "simhash",
    idf: IdfTable | None = None,
) -> Explanation:
    """Return how a text becomes its SimHash fingerprint, step by step: features, weights, hashes, sums of votes.

    Parameters
    ----------
    text : a text, or features, as in `simhash`.
    method : settings of fingerprints, or their name.
    idf : the document frequencies, if method weighs by them. Default: those that method names.

    Returns
    -------
    Explanation

    Raises
    ------
    InputError
        If there is no feature.
    SettingError
        If method makes no SimHash fingerprints of words, or weighs by the document frequencies of a corpus that are
        not given.

    Examples
    --------
    >>> explain("to be or not to be").counts
    (2, 2, 1, 1)
    """
    method = simhash_named(method)
    summands, sums = _work(text, method, idf)
    order = np.argsort(summands.features.firsts)
    weights = summands.weighed.weights[order]
    signed = sums.last_sums[: method.bits][::-1]
    assert summands.strings is not None
    features = summands.strings.to_list()
    mask = (1 << method.bits) - 1
    return Explanation(
        features=tuple(features[place] for place in order.tolist()),
        counts=tuple(summands.features.counts[order].tolist()),
        idf=None if summands.idf is None else tuple(summands.idf[order].tolist()),
        weights=tuple(_plain(weights)),
        hashes=tuple(value & mask for value in to_integers(summands.words[order])),
        sums=tuple(_plain(signed)),
        fingerprint=to_integers(sums.fingerprints)[0],
        bits=method.bits,
    )


def _plain(values: np.ndarray) -> list[float]:
    """Return numbers as Python's, whole ones as int where all are whole."""
    whole = bool((values == np.rint(values)).all())
    return [int(value) if whole else value for value in values.tolist()]


def _work(
    text: str | Iterable[str] | Iterable[WeightedFeature],
    method: SimHash,
    idf: IdfTable | None,
    *,
    may_be_empty: bool = False,
    with_strings: bool = True,
) -> tuple[Summands, Sums]:
    if with_strings and method.tokens in PAGE_TOKENS:
        raise SettingError(
            f"Tags of a page have no words to show: got tokens={method.tokens!r}. Explain a method of texts, or "
            "compare two pages (neardup compare), which shows their outlines."
        )
    if isinstance(text, str):
        described = describe(pa.array([text], pa.large_string()), method, with_strings=with_strings)
    else:
        described = _describe_given(list(text), resolve_scheme(method))
    if described.shingles.offsets[-1] == 0 and not may_be_empty:
        raise InputError(
            f"There are no features, and so no fingerprint: got {_shorten(text)}. Leave such texts out: nothing says "
            "that two of them are alike."
        )
    summands = weigh(described, idf or resolve_idf(described.method), with_strings=with_strings)
    return summands, add_up(summands, method)


def _describe_given(features: list[str | WeightedFeature], method: SimHash) -> Described:
    """Return features that were given instead of a text, with the settings that still apply to them."""
    method = replace(method, tokens="whitespace" if method.weights != "given" else method.tokens, ngram=1)
    if all(isinstance(feature, str) for feature in features):
        if method.weights == "given" or (method.weights == "tfidf" and method.idf == "lines"):
            raise SettingError(
                f"Features without weights and without lines cannot be weighed with weights={method.weights!r}, "
                f"idf={method.idf!r}. Give pairs of a feature and its weight, or use weights='tf'."
            )
        tokens = pack_tokens([features])
        return Described(shingle_strings(tokens, 1), tokens, None, method)
    names, weights = split_pairs([features], "the features given")
    return describe_weighted(names, weights, method)


def _shorten(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
