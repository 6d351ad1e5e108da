"""Sign documents on threads: a corpus, or a column of texts or token lists."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from neardup.arrays import arrow_of, flatten_strings
from neardup.documents.batch import Reject
from neardup.documents.bounds import check_lists
from neardup.documents.nested import element_offsets
from neardup.documents.texts import as_text, is_text
from neardup.documents.views import num_bytes
from neardup.errors import InputError
from neardup.executor import map_all
from neardup.features.token_columns import hash_tokens, is_filled, is_weighted, list_element
from neardup.fingerprints.sketches import Sketches
from neardup.formats.reading import Task
from neardup.methods.sketcher import SketchBuffers, Sketcher
from neardup.progress import Progress
from neardup.runs.reading import map_batches
from neardup.runs.signed import SignedCounts

_MIN_BYTES = 1 << 19  # size of a batch; with less, threads wait for each other between batches
_MAX_BYTES = 1 << 24  # size of a batch
_BATCHES_PER_THREAD = 4  # at least, unless they would be too small


class Column(NamedTuple):
    """A column of texts or of token lists.

    dtype : the Arrow type of the rows. chunks : Arrow arrays of this type, or lists of Python rows.
    convert : returns the Arrow array of such a list; the second argument is the number of its first
    row.
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
    *,
    progress: Progress,
    reject: Reject,
) -> Iterator[Sketches]:
    """Yield the rows of the documents of all tasks, in order; `counts` is updated."""
    scheme = sketcher.scheme

    def work(texts: pa.Array) -> tuple[SketchBuffers, int]:
        rows = sketcher.allocate(len(texts))
        return rows, sketcher.sign_texts(texts, rows)

    results = map_batches(tasks, work, threads, progress, reject, losses=counts.losses)
    for batch, (rows, num_short) in results:
        num_rows = len(rows.values)
        ids = batch.ids
        if ids is None:
            ids = arrow_of(np.arange(counts.read, counts.read + num_rows))
        counts.read += num_rows
        counts.without_features += int(np.count_nonzero(rows.empty))
        counts.short += num_short
        counts.text_bytes += flatten_strings(batch.text)[0].nbytes
        yield sketcher.method.sketches(rows.values, scheme, ids.cast(pa.large_string()), rows.empty)


def sign_column(column: Column, sketcher: Sketcher, threads: int, max_text_bytes: int) -> Sketches:
    """Return the rows of a column of texts, or of token lists with or without weights.

    Raises
    ------
    InputError
        If it has another type, is damaged, or contains a text above the limit or a weight outside
        the accepted range.
    """
    sign = _sign_of(column.dtype, max_text_bytes)
    if is_text(column.dtype):
        scheme = sketcher.scheme
    else:
        scheme = sketcher.of_tokens.scheme_of_tokens(weighted=sign is _sign_weighted)
    if column.convert is None:  # converted columns are sound
        check_lists(column.chunks)
    values, empty = sketcher.allocate(column.num_rows)
    batch_bytes = _batch_bytes(column, threads)
    converting = Lock()

    def work(batch: tuple[int, Any]) -> None:
        first, chunk = batch
        if column.convert is not None:
            # Conversion needs the interpreter: one thread converts at a time, and then has the data
            # in its cache.
            with converting:
                chunk = column.convert(chunk, first)
        # A converted chunk may be larger than a batch.
        for start, rows in _batches([chunk], batch_bytes):
            span = slice(first + start, first + start + len(rows))
            sign(sketcher, rows, span.start, SketchBuffers(values[span], empty[span]))

    map_all(list(_batches(column.chunks, batch_bytes)), work, threads)
    return sketcher.method.sketches(values, scheme, None, empty)


_Sign = Callable[[Sketcher, pa.Array, int, SketchBuffers], None]
"""Signs rows into buffers. The third argument is the number of the first row in the column, which
errors name.
"""


def _sign_of(dtype: pa.DataType, max_text_bytes: int) -> _Sign:
    """Return the function that signs rows of a type. Raises InputError if there is none."""
    if is_text(dtype):
        return partial(_sign_texts, max_bytes=max_text_bytes)
    element = list_element(dtype)
    if element is not None and is_text(element):
        return _sign_tokens
    if element is not None and is_weighted(element):
        return _sign_weighted
    raise InputError(
        "A column to sign contains texts, lists of strings, or lists of a string and its weight "
        f"(struct or map): got {dtype}. Pass one such column: table['text']."
    )


def _sign_texts(
    sketcher: Sketcher, rows: pa.Array, first: int, out: SketchBuffers, max_bytes: int
) -> None:
    """Sign texts. Raises InputError if one is not UTF-8 or longer than `max_bytes`."""
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
            f"max_document_bytes={max_bytes}. Leave it out, or raise max_document_bytes "
            "(--max-document-bytes)."
        )
    sketcher.sign_texts(texts, out)


def _sign_tokens(sketcher: Sketcher, rows: pa.Array, first: int, out: SketchBuffers) -> None:
    """Sign lists of strings."""
    sketcher.of_tokens.sign_tokens(rows.flatten(), element_offsets(rows), out)


def _sign_weighted(sketcher: Sketcher, rows: pa.Array, first: int, out: SketchBuffers) -> None:
    """Sign lists of strings and weights. Raises InputError if the method does not accept a
    weight.
    """
    if pa.types.is_map(rows.type):
        rows = rows.cast(pa.list_(list_element(rows.type)))
    offsets = element_offsets(rows)
    tokens, column = rows.flatten().flatten()
    # A null becomes NaN, which no method accepts.
    weights = column.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
    method = sketcher.of_tokens
    is_accepted = method.accepts(weights)
    if not is_accepted.all():
        index = np.argmin(is_accepted)
        row = first + np.searchsorted(offsets, index, side="right") - 1
        raise InputError(
            f"A weight is {method.weight_range}: got {column[index].as_py()!r} for "
            f"{tokens[index].as_py()!r} in row {row:,}. Leave such features out, or scale all "
            "weights."
        )
    hashed = hash_tokens(tokens, offsets)
    if len(hashed.hashes) < len(weights):  # empty tokens have no hash
        weights = weights[is_filled(tokens)]
    method.sign_weighted(hashed, weights, out)


def _batch_bytes(column: Column, threads: int) -> int:
    """Return the size of a batch: every thread should have several."""
    if column.convert is not None:  # the chunks are blocks of rows already
        return _MAX_BYTES
    total = sum(map(num_bytes, column.chunks))
    return min(_MAX_BYTES, max(_MIN_BYTES, total // (_BATCHES_PER_THREAD * threads)))


def _batches(chunks: Iterable[Any], size: int) -> Iterator[tuple[int, Any]]:
    """Yield the first row of each batch of about `size` bytes, and its rows, without a copy. A list
    of Python rows is one batch.
    """
    first = 0
    for chunk in chunks:
        if isinstance(chunk, pa.Array):
            num_batches = max(1, round(num_bytes(chunk) / size))
            step = max(1, len(chunk) // num_batches)
            for start in range(0, len(chunk), step):
                yield first + start, chunk[start : start + step]
        else:
            yield first, chunk
        first += len(chunk)
