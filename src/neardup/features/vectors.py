"""Vectors: as callers pass them, as texts, which are JSON, as features: words of two numbers,
carried like hashes.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import (
    Float32s,
    Integers,
    arrow_of_strings,
    flatten_strings,
    offsets_from_lengths,
    read_only,
)
from neardup.documents.texts import as_vectors
from neardup.errors import InputError
from neardup.features.described import Features, Lists

_OTHER = np.uint8(0x5A)  # changes the bytes of the second half of a content hash
_SHOWN = 8  # numbers of a vector in a report


def array_of_documents(documents: Sequence[Any], vector_length: int | None) -> pa.Array:
    """Return documents as `as_documents` returns those of a column.

    documents : strings; or vectors, each a list of numbers, or the JSON of one. vector_length : as
    of `as_documents`.

    Raises
    ------
    InputError
        If a document is no vector of finite numbers, or of another length.
    """
    if vector_length is None:
        if (
            other := next(
                (document for document in documents if not isinstance(document, str)), None
            )
        ) is not None:
            raise InputError(f"The method compares texts: got {other!r:.80}. Pass strings.")
        return arrow_of_strings(list(documents))
    try:
        values = [
            json.loads(value or "null") if isinstance(value, str) else value for value in documents
        ]
        vectors, bad = as_vectors(pa.array(values, pa.large_list(pa.float64())), vector_length)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(
            f"A vector is a list of numbers, or the JSON of one: {error}. Correct the document."
        ) from error
    for row, reason in bad.items():
        raise InputError(
            f"A document cannot be compared: {reason}. Got {documents[row]!r:.80}. Correct it."
        )
    return vectors


def text_of(document: str | bytes | None) -> str:
    """Return a document, as it was read, as a text; a vector as the JSON of its numbers."""
    if isinstance(document, bytes):
        return f"[{', '.join(map(str, np.frombuffer(document, '<f4')))}]" if document else ""
    return document or ""


def texts_of(documents: pa.Array) -> pa.Array:
    """Return documents, as they were read, as texts."""
    if not pa.types.is_large_binary(documents.type):
        return documents
    return arrow_of_strings([text_of(document) for document in documents.to_pylist()])


def shortened(text: str) -> str:
    """Return the first numbers of the JSON of a vector, and how many it has."""
    numbers = text.split(",")
    return (
        text
        if len(numbers) <= _SHOWN
        else f"{','.join(numbers[:_SHOWN])}, ...] ({len(numbers)} numbers)"
    )


def describe_vectors(
    documents: pa.Array, vector_length: int, *, by_direction: bool = False
) -> Features:
    """Return the vectors of documents; one of zeros alone has no direction, and no features.

    Parameters
    ----------
    documents : vectors as readers return them, or strings, each the JSON of one.
    vector_length : the numbers of each, 0 for any number that all have.
    by_direction : whether vectors of one direction are copies, whose lengths differ.

    Raises
    ------
    InputError
        If a string is no vector, or the lengths differ.
    """
    if not pa.types.is_large_binary(documents.type):
        documents = array_of_documents(documents.to_pylist(), vector_length)
    data, offsets = flatten_strings(documents)
    sizes = np.diff(offsets) // 4
    length = int(sizes.max(initial=0))
    if ((sizes != length) & (sizes > 0)).any():
        raise InputError(
            "Vectors of different lengths cannot be compared: got "
            f"{sorted(set(sizes.tolist()) - {0})}."
        )
    numbers = data.view("<f4").reshape(-1, max(1, length)).astype(np.float32, copy=False)
    directed = numbers.any(axis=1)
    vectors = np.zeros((int(directed.sum()), length + length % 2), np.float32)
    np.add(numbers[directed], np.float32(0), out=vectors[:, :length])  # -0.0 becomes 0.0
    featured = sizes > 0
    featured[featured] = directed
    limits = offsets_from_lengths(np.where(featured, vectors.shape[1], 0))
    content = np.empty((2, len(sizes)), np.uint64)
    compared = np.empty_like(vectors) if by_direction else vectors
    if by_direction:
        kernels.vectors.to_directions(vectors, compared)
    bytes_of = compared.reshape(-1).view(np.uint8)
    for half, mask in zip(content, (np.uint8(0), _OTHER), strict=True):
        kernels.strings.hash_strings(read_only(bytes_of ^ mask), 4 * limits, half)
    return Features(
        np.ascontiguousarray(content.T), Lists(vectors.reshape(-1).view(np.uint64), limits // 2)
    )


def vectors_of(features: Lists, rows: Integers | None = None) -> Float32s:
    """Return the vectors of `describe_vectors`, float32 (num_rows, length), with a zero after an
    odd length.

    rows : of documents; None for all. Those without features have zeros.
    """
    rows = np.arange(len(features.offsets) - 1) if rows is None else rows
    starts = features.offsets[rows]
    sizes = features.offsets[rows + 1] - starts
    length = int(sizes.max(initial=0))
    vectors = np.zeros((len(rows), 2 * length), np.float32)
    if length:
        words = features.hashes.reshape(-1, length)  # of all documents with features
        vectors[sizes > 0] = words[starts[sizes > 0] // length].view(np.float32)
    return vectors
