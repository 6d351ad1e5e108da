"""Sign documents on threads: those of a corpus, or a column of texts or token lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import arrow_of, flatten_strings
from neardup.documents.batch import Reject
from neardup.documents.texts import as_text, is_text
from neardup.documents.views import num_bytes
from neardup.errors import InputError
from neardup.executor import map_all
from neardup.features.token_columns import (
    damaged_row,
    hash_tokens,
    is_filled,
    is_weighted,
    list_element,
    list_offsets,
)
from neardup.fingerprints.sketches import Sketches
from neardup.formats.reading import Task
from neardup.methods.sketcher import SketchBuffers, Sketcher
from neardup.progress import Progress
from neardup.runs.reading import map_batches
from neardup.runs.signed import SignedCounts

_LEAST_BYTES, _MOST_BYTES = (
    1 << 19,
    1 << 24,
)  # of a batch; with less, threads wait for each other between batches
_BATCHES_A_THREAD = 4


class Column(NamedTuple):
    """A column of texts or of token lists.

    dtype : the Arrow type of the rows. chunks : Arrow arrays of this type, or lists of Python rows.
    convert : returns the Arrow array of such a list, from the number of its first row.
    """

    dtype: pa.DataType
    num_rows: int
    chunks: Iterable[Any]
    convert: Callable[[list[Any], int], pa.Array] | None = None


def sign_corpus(
    tasks: list[Task],
    sketcher: Sketcher,
    threads: int,
    counts: SignedCounts,
    progress: Progress,
    reject: Reject,
) -> Iterator[Sketches]:
    """Yield the rows of the documents of all tasks, in order; `counts` is updated."""
    scheme = sketcher.scheme

    def work(texts: pa.Array) -> tuple[SketchBuffers, int]:
        out = sketcher.allocate(len(texts))
        return out, sketcher.sign_texts(texts, out)

    for batch, ((values, empty), num_short) in map_batches(tasks, work, threads, progress, reject):
        ids = (
            arrow_of(np.arange(counts.read, counts.read + len(values)))
            if batch.ids is None
            else batch.ids
        )
        counts.read += len(values)
        counts.without_features += int(np.count_nonzero(empty))
        counts.short += num_short
        counts.text_bytes += flatten_strings(batch.text)[0].nbytes
        yield sketcher.method.sketches(values, scheme, ids.cast(pa.large_string()), empty)


def sign_column(column: Column, sketcher: Sketcher, threads: int, max_text_bytes: int) -> Sketches:
    """Return the rows of a column of texts, or of token lists with or without weights.

    Raises
    ------
    InputError
        If it has another type, is damaged, or contains a text above the limit or a weight outside
        the accepted range.
    """
    element = list_element(column.dtype)
    sign: Callable[[Sketcher, pa.Array, int, SketchBuffers], None]
    if is_text(column.dtype):
        sign, scheme = partial(_sign_texts, max_bytes=max_text_bytes), sketcher.scheme
    elif element is not None and is_text(element):
        sign, scheme = _sign_tokens, sketcher.of_tokens.scheme_of_tokens(weighted=False)
    elif element is not None and is_weighted(element):
        sign, scheme = _sign_weighted, sketcher.of_tokens.scheme_of_tokens(weighted=True)
    else:
        raise InputError(
            "A column to sign contains texts, lists of strings, or lists of a string and its "
            "weight (struct or map): "
            f"got {column.dtype}. Pass one such column: table['text']."
        )
    values, empty = sketcher.allocate(column.num_rows)
    turn, size = Lock(), _batch_bytes(column, threads)

    def work(batch: tuple[int, Any]) -> None:
        first, part = batch
        if column.convert is not None:
            # conversion needs the interpreter: one thread at a time, which then has the data in its
            # cache
            with turn:
                part = column.convert(part, first)
        for start, rows in _batches([part], size):
            span = slice(first + start, first + start + len(rows))
            sign(sketcher, rows, span.start, SketchBuffers(values[span], empty[span]))

    map_all(list(_batches(column.chunks, size)), work, threads)
    return sketcher.method.sketches(values, scheme, None, empty)


def _sign_texts(
    sketcher: Sketcher, rows: pa.Array, first: int, out: SketchBuffers, max_bytes: int
) -> None:
    texts, bad = as_text(rows, "the text")
    if bad:
        raise InputError(
            f"The text in row {first + min(bad):,} is not UTF-8. Correct it, or leave it out."
        )
    lengths = np.diff(flatten_strings(texts)[1])
    if lengths.max(initial=0) > max_bytes:
        row = int(np.argmax(lengths > max_bytes))
        raise InputError(
            f"The text in row {first + row:,} has {lengths[row]} bytes, more than "
            f"max_document_bytes={max_bytes}. "
            "Leave it out, or raise max_document_bytes (--max-document-bytes)."
        )
    sketcher.sign_texts(texts, out)


def _sign_tokens(sketcher: Sketcher, rows: pa.Array, first: int, out: SketchBuffers) -> None:
    damaged = sketcher.of_tokens.sign_tokens(rows.flatten(), list_offsets(rows, first), out)
    if damaged >= 0:
        raise damaged_row(first + damaged)


def _sign_weighted(sketcher: Sketcher, rows: pa.Array, first: int, out: SketchBuffers) -> None:
    if pa.types.is_map(rows.type):
        rows = rows.cast(pa.list_(list_element(rows.type)))
    offsets = list_offsets(rows, first)
    tokens, column = rows.flatten().flatten()
    weights = column.cast(pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False)
    chosen = sketcher.of_tokens
    wrong = ~chosen.accepts(weights)
    if wrong.any():
        index = int(np.argmax(wrong))
        row = first + int(np.searchsorted(offsets, index, side="right")) - 1
        raise InputError(
            f"A weight is {chosen.weight_range}: got {column[index].as_py()!r} for "
            f"{tokens[index].as_py()!r} in row "
            f"{row:,}. Leave such features out, or scale all weights."
        )
    hashed, damaged = hash_tokens(tokens, offsets)
    if hashed is None:
        raise damaged_row(first + damaged)
    if len(hashed.hashes) < len(weights):
        weights = weights[is_filled(tokens)]
    chosen.sign_weighted(hashed, weights, out)


def _batch_bytes(column: Column, threads: int) -> int:
    if column.convert is not None:  # in blocks
        return _MOST_BYTES
    total = sum(map(num_bytes, column.chunks))
    return min(_MOST_BYTES, max(_LEAST_BYTES, total // (_BATCHES_A_THREAD * threads)))


def _batches(chunks: Iterable[Any], size: int) -> Iterator[tuple[int, Any]]:
    """Yield the first row of each batch of about `size` bytes, and its rows, without a copy;
    Python's rows whole.
    """
    first = 0
    for chunk in chunks:
        if isinstance(chunk, pa.Array):
            step = max(1, len(chunk) // max(1, round(num_bytes(chunk) / size)))
            yield from (
                (first + start, chunk[start : start + step]) for start in range(0, len(chunk), step)
            )
        else:
            yield first, chunk
        first += len(chunk)
