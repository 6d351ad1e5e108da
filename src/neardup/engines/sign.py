"""Sign the rows of a column, batch by batch on threads: texts, lists of tokens, or tokens with weights."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import local

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import flatten_strings
from neardup.config import MinHash, Running
from neardup.documents.texts import as_text, is_number, is_text, storage_type
from neardup.engines.local import thread_count
from neardup.errors import InputError
from neardup.features.idf import FEATURES_VERSION, describe_features
from neardup.features.shingles import Workspace, shingle_documents
from neardup.features.token_lists import limits_of_counts, shingle_strings
from neardup.features.weights import add_own_weights, distinct_features
from neardup.fingerprints import minhash
from neardup.fingerprints.signatures import Signatures
from neardup.kernels.token_arrays import Shingles, TokenStrings

_BATCH_BYTES = 1 << 20  # small enough for the hashes of a batch to stay in the cache
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100

Signer = Callable[[pa.Array, int], npt.NDArray[np.uint32]]
"""(rows, the number of the first) -> their signatures."""


def sign_column(column: pa.ChunkedArray, method: MinHash, num_hashes: int, threads: int | None) -> Signatures:
    """Return the signatures of a column of texts, lists of strings, or lists of strings with weights.

    Raises
    ------
    InputError
        If it is of another type, a text is not UTF-8, or a weight out of its limits.
    """
    kind, scheme = column.type, {"seed": method.seed, "num_hashes": num_hashes}
    given = {"tokens": "given", "version": FEATURES_VERSION}
    if is_text(kind):
        name, features, signer = minhash.SCHEME_NAME, describe_features(method), _text_signer(method, num_hashes)
    elif is_list(kind) and is_text(kind.value_type):
        name, features, signer = minhash.SCHEME_NAME, given, _token_signer(method, num_hashes)
    elif is_list(kind) and _is_weighted(kind.value_type):
        name, features, signer = minhash.WEIGHTED_SCHEME_NAME, given, _weighted_signer(method, num_hashes)
    else:
        raise InputError(
            f"A column to sign holds texts, lists of strings, or lists of a string and its weight (struct or map): got "
            f"{kind}. Pass one such column: table['text']."
        )
    values = np.empty((len(column), num_hashes), np.uint32)

    def work(first: int, rows: pa.Array) -> None:
        values[first : first + len(rows)] = signer(rows, first)

    with ThreadPoolExecutor(thread_count(Running(threads=threads))) as pool:
        list(pool.map(work, *_batches(column)))
    return Signatures(values, {"name": name, "version": minhash.SCHEME_VERSION, **scheme, "features": features})


def is_list(kind: pa.DataType) -> bool:
    """Whether a column holds lists; a map is a list of pairs."""
    t = pa.types
    return bool(
        t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind) or t.is_map(kind)
        or t.is_list_view(kind) or t.is_large_list_view(kind)
    )  # fmt: skip


def _is_weighted(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and kind.num_fields == 2 and is_text(kind[0].type) and is_number(kind[1].type)


def _batches(column: pa.ChunkedArray) -> tuple[list[int], list[pa.Array]]:
    """Return where each batch of about `_BATCH_BYTES` begins, and its rows, without a copy."""
    firsts, batches, first = [], [], 0
    for chunk in column.chunks:
        step = max(1, _BATCH_BYTES * len(chunk) // max(1, chunk.nbytes))
        for start in range(0, len(chunk), step):
            firsts.append(first + start)
            batches.append(chunk[start : start + step])
        first += len(chunk)
    return firsts, batches


def _text_signer(method: MinHash, num_hashes: int) -> Signer:
    kept = local()

    def sign(texts: pa.Array, first: int) -> npt.NDArray[np.uint32]:
        if not hasattr(kept, "workspace"):
            kept.workspace = Workspace()
        texts, bad = as_text(texts, "the text")
        if bad:
            raise InputError(f"The text in row {first + min(bad):,} is not UTF-8. Mend it, or leave it out.")
        shingles = shingle_documents(texts, method, kept.workspace)
        return minhash.sign(shingles.hashes, shingles.offsets, num_hashes, method.seed)

    return sign


def _token_signer(method: MinHash, num_hashes: int) -> Signer:
    def sign(lists: pa.Array, first: int) -> npt.NDArray[np.uint32]:
        shingles = _hash_strings(lists.flatten(), _limits(lists))
        return minhash.sign(shingles.hashes, shingles.offsets, num_hashes, method.seed)

    return sign


def _weighted_signer(method: MinHash, num_hashes: int) -> Signer:
    def sign(lists: pa.Array, first: int) -> npt.NDArray[np.uint32]:
        features, column = lists.flatten().flatten()
        limits = _limits(lists)
        weights = column.cast(pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False)
        wrong = ~((weights == 0) | ((weights >= _LEAST_WEIGHT) & (weights <= _MOST_WEIGHT)))
        if wrong.any():
            place = int(np.argmax(wrong))
            row = first + int(np.searchsorted(limits, place, side="right")) - 1
            raise InputError(
                f"A weight is 0 or a number from {_LEAST_WEIGHT} to {_MOST_WEIGHT}: got {column[place].as_py()!r} for "
                f"{features[place].as_py()!r} in row {row:,}. Leave such features out, or scale all weights."
            )
        shingles = _hash_strings(features, limits)
        if len(shingles.hashes) < len(weights):  # an empty feature is none
            weights = weights[np.diff(_strings_of(features)[1]) > 0]
        distinct = distinct_features(shingles.hashes, shingles.offsets)
        if len(distinct.hashes) < len(weights):
            weights = add_own_weights(weights, shingles.hashes, shingles.offsets)
        else:
            weights = weights[distinct.firsts]
        return minhash.sign_weighted(distinct.hashes, weights, distinct.offsets, num_hashes, method.seed)

    return sign


def _limits(lists: pa.Array) -> npt.NDArray[np.int64]:
    return limits_of_counts(pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False))


def _hash_strings(strings: pa.Array, limits: npt.NDArray[np.int64]) -> Shingles:
    data, offsets = _strings_of(strings)
    return shingle_strings(TokenStrings(data, offsets, limits), 1)


def _strings_of(strings: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    kind = storage_type(strings.type)
    in_place = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return flatten_strings(strings if in_place and kind == strings.type else as_text(strings, "the tokens")[0])
