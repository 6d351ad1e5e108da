"""Sign texts, sets of tokens and weighted sets with MinHash."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set, Sized
from functools import partial
from itertools import chain
from types import NoneType
from typing import Any

import pyarrow as pa

from neardup.engines.local.sign import Rows, sign_rows
from neardup.errors import InputError, SettingError
from neardup.features.feature_strings import split_pairs
from neardup.features.token_lists import STRING_LISTS, limits_of_counts, list_strings
from neardup.fingerprints.signatures import Signatures
from neardup.settings.methods import MinHash

_ROWS_AT_ONCE, _SAMPLE = 4096, 16
_CHARACTERS_AT_ONCE, _FEATURES_AT_ONCE = 1 << 21, 1 << 17  # of fewer features, threads wait for one another
_WEIGHTED = pa.large_list(pa.struct([("feature", pa.large_string()), ("weight", pa.float64())]))
MAX_HASHES = 65_536


def minhash(
    text_or_features: str | Iterable[str] | Iterable[tuple[str, float]] | Mapping[str, float],
    *,
    method: MinHash | None = None,
    num_hashes: int = 128,
) -> Signatures:
    """Return the MinHash signature of a text, or of features.

    Parameters
    ----------
    text_or_features : a text, which method cuts into shingles; or features, taken as they are: strings, or pairs of a
        string and its weight, or a mapping of these. Weights of repeated ones add up.
    method : how, with its seed; `MinHash()` when None. Of features given, only the seed matters.
    num_hashes : 1 to 65536.

    Returns
    -------
    Signatures of one row; all ones where there is no feature.

    Raises
    ------
    InputError
        If it is none of these.
    SettingError
        If num_hashes is out of its limits.

    Notes
    -----
    Broder (1997); of weighted features, see `sign`.

    Examples
    --------
    >>> left, right = (minhash(letters, num_hashes=1024) for letters in (set("abcd"), set("cdef")))
    >>> left.estimate_jaccard(right).round(1).tolist()  # truly 2 of 6
    [0.3]
    """
    row: Any = text_or_features
    if isinstance(row, bytes) or not isinstance(row, Iterable):
        raise _refuse(row)
    if not isinstance(row, (str, Mapping)):
        row = list(row)
    return sign([row], method=method or MinHash(), num_hashes=num_hashes, threads=1)


def sign(
    column: Any,
    *,
    method: MinHash = MinHash(),  # noqa: B008 - frozen
    num_hashes: int = 128,
    threads: int | None = None,
) -> Signatures:
    """Return the MinHash signature of every row of a column.

    Parameters
    ----------
    column : an Arrow array or chunked array, whatever hands one out (`__arrow_c_stream__`, `__arrow_c_array__`: polars,
        pandas), or an iterable. Of texts, which method cuts into shingles; of sets of tokens, lists of strings that are
        taken as they are; or of weighted sets: lists of struct<feature: string, weight: double>, maps, in Python also
        dictionaries and lists of pairs. A null row is an empty set; a null or empty token is none.
    method : how a text becomes shingles, and the seed. Of tokens given, only the seed matters.
    num_hashes : 1 to 65536.
    threads : worker threads; all processors of this process when None. Changes no value.

    Returns
    -------
    Signatures, a row each; those of weighted sets have a scheme of their own, "weighted-minhash".

    Raises
    ------
    InputError
        If the column holds anything else, or a weight that is neither 0 nor from 1e-100 to 1e100.
    SettingError
        If num_hashes or threads is out of its limits.

    Notes
    -----
    Broder (1997): two signatures agree in a place with probability J, the Jaccard similarity of the sets, up to 2^-32
    times their size. Weighted sets: Christiani (2020), with the weighted Jaccard similarity, up to 2^-23.

    Examples
    --------
    >>> texts = ["a cat sat on the mat today", "the cat sat on the mat today"]
    >>> signatures = sign(texts, method=MinHash(ngram=2), num_hashes=1024)
    >>> signatures[0].estimate_jaccard(signatures[1]).round(1).tolist()  # truly 5 of 7
    [0.7]
    >>> sign([{"a": 1.0, "b": 2.0}, {"a": 2.0}]).scheme["name"]
    'weighted-minhash'
    """
    if not isinstance(method, MinHash):
        raise SettingError(f"method must be MinHash: got {method!r:.80}. Use MinHash(ngram=5), say.")
    if method.rarity or method.structure is not None:
        raise SettingError(
            "A signature is of one document; how rare its shingles are, or a second likeness, is asked of a run: got "
            f"rarity={method.rarity}, structure={method.structure!r}. Leave both unset, or use dedup or find_pairs."
        )
    if isinstance(num_hashes, bool) or not isinstance(num_hashes, int) or not 1 <= num_hashes <= MAX_HASHES:
        raise SettingError(
            f"num_hashes must be a whole number of 1 or more and at most {MAX_HASHES}: got {num_hashes!r}. Use 128."
        )
    return sign_rows(_to_rows(column), method, num_hashes, threads)


def _to_rows(column: Any) -> Rows:
    if not isinstance(column, (pa.Array, pa.ChunkedArray)):
        if hasattr(column, "__arrow_c_stream__"):
            column = pa.chunked_array(column)
        elif hasattr(column, "__arrow_c_array__"):
            column = pa.array(column)
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return Rows(column.type, len(column), column.chunks if isinstance(column, pa.ChunkedArray) else [column])
    if isinstance(column, (str, bytes, Mapping, Set)) or not isinstance(column, Iterable):
        raise _refuse(column)
    rows = list(column)
    kind, convert = _converter_of(rows)
    size = _CHARACTERS_AT_ONCE if kind == pa.large_string() else _FEATURES_AT_ONCE
    return Rows(kind, len(rows), _blocks(rows, size), partial(_convert, convert=convert))


def _blocks(rows: list[Any], size: int) -> Iterator[list[Any]]:
    """Yield rows that are together about so long, if they are as long as the first of them."""
    start = 0
    while start < len(rows):
        length = sum(len(row) for row in rows[start : start + _SAMPLE] if hasattr(row, "__len__"))
        step = min(_ROWS_AT_ONCE, max(1, _SAMPLE * size // max(1, length)))
        yield rows[start : start + step]
        start += step


def _converter_of(rows: list[Any]) -> tuple[pa.DataType, Callable[[list[Any]], pa.Array]]:
    """Return the type of Python rows, as the first of them tells, and what converts them to it."""
    given = [row for row in rows if row is not None]
    filled = (row for row in given if not isinstance(row, Sized) or isinstance(row, str) or len(row))
    first: Any = next(filled, given[0] if given else "")
    if isinstance(first, (str, bytes)) or not isinstance(first, Iterable):
        return pa.large_string(), lambda block: pa.array(block, pa.large_string())
    if isinstance(first, Mapping):
        return _WEIGHTED, _from_mappings
    if isinstance(next(iter(first), ""), (str, NoneType)):
        return STRING_LISTS, _from_sets
    return _WEIGHTED, _from_pairs


def _convert(block: list[Any], first: int, convert: Callable[[list[Any]], pa.Array]) -> pa.Array:
    try:
        return convert(block)
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
        if len(block) > 1:
            for place, row in enumerate(block):
                _convert([row], first + place, convert)
        raise InputError(
            f"Row {first:,} cannot be signed: got {block[0]!r:.80} ({error}). All rows are texts, lists of strings, or "
            "dictionaries of a string and its weight, as the first one is."
        ) from error


def _from_sets(rows: list[Any]) -> pa.Array:
    # A string would pass for a list of characters.
    if any(issubclass(kind, (str, bytes, Mapping)) for kind in set(map(type, rows))):
        raise TypeError("it is no list of strings")
    return list_strings(rows)


def _from_mappings(rows: list[Any]) -> pa.Array:
    features = [feature for row in rows if row is not None for feature in row]
    weights = [weight for row in rows if row is not None for weight in row.values()]
    return _weighted([0 if row is None else len(row) for row in rows], features, weights)


def _from_pairs(rows: list[Any]) -> pa.Array:
    features, weights = split_pairs([row or [] for row in rows], "the column")
    return _weighted([len(row) for row in features], list(chain(*features)), list(chain(*weights)))


def _weighted(counts: list[int], features: list[Any], weights: list[Any]) -> pa.Array:
    pairs = pa.StructArray.from_arrays(
        [pa.array(features, pa.large_string()), pa.array(weights, pa.float64())], fields=list(_WEIGHTED.value_type)
    )
    return pa.LargeListArray.from_arrays(pa.array(limits_of_counts(counts)), pairs).cast(_WEIGHTED)


def _refuse(column: object) -> InputError:
    return InputError(
        f"Cannot sign {type(column).__name__}: {column!r:.80}. Pass an Arrow column or a list, of texts, lists of "
        "strings, or dictionaries of a string and its weight; one text or one set goes to neardup.minhash."
    )
