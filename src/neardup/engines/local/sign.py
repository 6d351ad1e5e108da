"""Sign the rows of a column, batch by batch on threads: texts, lists of tokens, or tokens with weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock, local
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import arrow_of, view_strings
from neardup.documents.texts import as_text, is_number, is_text, storage_type
from neardup.errors import InputError
from neardup.executor import count_threads
from neardup.features.idf import FEATURES_VERSION, describe_features
from neardup.features.shingles import Workspace, scan_of, shingle_documents
from neardup.features.token_lists import limits_of_counts
from neardup.features.weights import add_own_weights, distinct_features
from neardup.fingerprints import minhash
from neardup.fingerprints.signatures import Signatures
from neardup.settings.methods import MinHash
from neardup.settings.running import Running

_LEAST_BYTES, _MOST_BYTES = 1 << 19, 1 << 24  # of a batch: of less, threads wait for one another between batches
_BATCHES_A_THREAD = 4
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100

Signer = Callable[[Any, int, Workspace, npt.NDArray[np.uint32]], None]
"""Takes rows, the number of the first, memory, and the array to fill with their signatures."""


class Rows(NamedTuple):
    """Rows to sign.

    chunks : a list of Arrow arrays of one type, or lists of Python's rows; convert : makes a column of such a list,
    given the number of its first row.
    """

    kind: pa.DataType
    num_rows: int
    chunks: Iterable[Any]
    convert: Callable[[list[Any], int], pa.Array] | None = None


def sign_rows(rows: Rows, method: MinHash, num_hashes: int, threads: int | None) -> Signatures:
    """Return the signatures of texts, lists of strings, or lists of strings with weights.

    Raises
    ------
    InputError
        If they are of another type, a text is not UTF-8, or a weight out of its limits.
    """
    name, scheme = minhash.SCHEME_NAME, {"seed": method.seed, "num_hashes": num_hashes}
    signer: Signer
    features = {"tokens": "given", "version": FEATURES_VERSION}
    element = _element_of(rows.kind)
    if is_text(rows.kind):
        features, signer = describe_features(method), partial(_sign_texts, method)
    elif element is not None and is_text(element):
        signer = partial(_sign_tokens, method.seed)
    elif element is not None and _is_weighted(element):
        name, signer = minhash.WEIGHTED_SCHEME_NAME, partial(_sign_weighted, method.seed)
    else:
        raise InputError(
            f"A column to sign holds texts, lists of strings, or lists of a string and its weight (struct or map): got "
            f"{rows.kind}. Pass one such column: table['text']."
        )
    # Of Arrow, which uses memory again: fresh pages would take a fifth of the time of signing sets.
    memory = pa.allocate_buffer(4 * rows.num_rows * num_hashes)
    values = np.frombuffer(memory, np.uint32).reshape(rows.num_rows, num_hashes)
    kept, turn = local(), Lock()
    workers = count_threads(Running(threads=threads).threads)
    size = _batch_bytes(rows, workers)

    def work(batch: tuple[int, Any]) -> None:
        first, part = batch
        if rows.convert is not None:
            with turn:  # it is Python's own work, one at a time; who signs what it converted has it in its cache
                part = rows.convert(part, first)
        if not hasattr(kept, "workspace"):
            kept.workspace = Workspace()
        for start, some in _batches([part], size):
            signer(some, first + start, kept.workspace, values[first + start : first + start + len(some)])

    with ThreadPoolExecutor(workers) as pool:
        # To start a thread takes longer than to sign one set, and to hand batches over a tenth of signing them.
        list((pool.map if workers > 1 else map)(work, _batches(rows.chunks, size)))
    return Signatures(values, {"name": name, "version": minhash.SCHEME_VERSION, **scheme, "features": features})


def _batch_bytes(rows: Rows, workers: int) -> int:
    if rows.convert is not None:  # they come in blocks
        return _MOST_BYTES
    num_bytes = sum(int(chunk.nbytes) for chunk in rows.chunks)
    return min(_MOST_BYTES, max(_LEAST_BYTES, num_bytes // (_BATCHES_A_THREAD * workers)))


def _element_of(kind: pa.DataType) -> pa.DataType | None:
    """Return what the lists of a column hold, None if it holds none; a map is a list of pairs."""
    t = pa.types
    if t.is_map(kind):
        return pa.struct([kind.key_field, kind.item_field])
    lists = (t.is_list, t.is_large_list, t.is_fixed_size_list, t.is_list_view, t.is_large_list_view)
    return kind.value_type if any(is_list(kind) for is_list in lists) else None


def _is_weighted(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and kind.num_fields == 2 and is_text(kind[0].type) and is_number(kind[1].type)


def _batches(chunks: Iterable[Any], size: int) -> Iterator[tuple[int, Any]]:
    """Yield where each batch of about `size` bytes begins, and its rows, without a copy; Python's rows whole."""
    first = 0
    for chunk in chunks:
        if isinstance(chunk, pa.Array):
            step = max(1, len(chunk) // max(1, round(chunk.nbytes / size)))
            yield from ((first + start, chunk[start : start + step]) for start in range(0, len(chunk), step))
        else:
            yield first, chunk
        first += len(chunk)


def _sign_texts(method: MinHash, rows: pa.Array, first: int, workspace: Workspace, out: npt.NDArray[np.uint32]) -> None:
    texts, bad = as_text(rows, "the text")
    if bad:
        raise InputError(f"The text in row {first + min(bad):,} is not UTF-8. Mend it, or leave it out.")
    scan = scan_of(texts, method)
    if scan is None:
        shingles = shingle_documents(texts, method, workspace)
        minhash.sign(shingles.hashes, shingles.offsets, out.shape[1], method.seed, out)
        return
    flagged = minhash.sign_texts(*scan, method.ngram, method.seed, out)
    if flagged.any():
        shingles = shingle_documents(texts.filter(arrow_of(flagged)), method)
        out[flagged] = minhash.sign(shingles.hashes, shingles.offsets, out.shape[1], method.seed)


def _sign_tokens(seed: int, rows: pa.Array, first: int, workspace: Workspace, out: npt.NDArray[np.uint32]) -> None:
    limits = _limits(rows, first)
    damaged = minhash.sign_strings(*_strings_of(rows.flatten()), limits, seed, out)
    if damaged >= 0:
        raise _damaged(first + damaged)


def _sign_weighted(seed: int, rows: pa.Array, first: int, workspace: Workspace, out: npt.NDArray[np.uint32]) -> None:
    if pa.types.is_map(rows.type):
        rows = rows.cast(pa.list_(_element_of(rows.type)))
    limits = _limits(rows, first)
    features, column = rows.flatten().flatten()
    weights = column.cast(pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    wrong = ~((weights == 0) | ((weights >= _LEAST_WEIGHT) & (weights <= _MOST_WEIGHT)))
    if wrong.any():
        place = int(np.argmax(wrong))
        row = first + int(np.searchsorted(limits, place, side="right")) - 1
        raise InputError(
            f"A weight is 0 or a number from {_LEAST_WEIGHT} to {_MOST_WEIGHT}: got {column[place].as_py()!r} for "
            f"{features[place].as_py()!r} in row {row:,}. Leave such features out, or scale all weights."
        )
    hashes, filled, damaged = _hash_strings(features)
    if damaged >= 0:
        raise _damaged(first + int(np.searchsorted(limits, damaged, side="right")) - 1)
    if not filled.all():  # an empty feature is none
        hashes, weights, limits = hashes[filled], weights[filled], limits_of_counts(filled)[limits]
    distinct = distinct_features(hashes, limits)
    if len(distinct.hashes) < len(weights):
        weights = add_own_weights(weights, hashes, limits)
    else:
        weights = weights[distinct.firsts]
    minhash.sign_weighted(distinct.hashes, weights, distinct.offsets, out.shape[1], seed, out)


def _limits(lists: pa.Array, first: int) -> npt.NDArray[np.int64]:
    """Return where each list begins and ends in what `flatten` makes of them. first : the number of the first row."""
    if not isinstance(lists, (pa.ListArray, pa.LargeListArray)) or lists.null_count:
        return limits_of_counts(pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False))
    offsets: npt.NDArray[np.int64] = lists.offsets.to_numpy().astype(np.int64)
    wrong = (offsets < 0) | (offsets > len(lists.values))
    wrong[1:] |= np.diff(offsets) < 0
    if wrong.any():
        raise _damaged(first + max(0, int(np.argmax(wrong)) - 1))
    offsets -= offsets[0]
    return offsets


def _damaged(row: int) -> InputError:
    return InputError(
        f"Row {row:,} of the column points outside of its own memory. It is damaged: column.validate(full=True) says "
        "where. Write it anew from its source."
    )


def _hash_strings(strings: pa.Array) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_], int]:
    """Return the hashes of strings, which of them are not empty, and the first that is damaged, -1 if none is."""
    from neardup.kernels import strings as kernel

    data, offsets = _strings_of(strings)
    hashes = np.empty(len(strings), np.uint64)
    damaged = int(kernel.hash_strings(data, offsets, hashes))
    return hashes, np.diff(offsets) > 0, damaged


def _strings_of(strings: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32 | np.int64]]:
    kind = storage_type(strings.type)
    in_place = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    return view_strings(strings if in_place and kind == strings.type else as_text(strings, "the tokens")[0])
