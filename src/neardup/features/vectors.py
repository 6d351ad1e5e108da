"""Vectors in three forms: as callers pass them, as texts (JSON), and as features.

A feature is a 64-bit word of two float32 numbers, and travels like the hash of a shingle:

    numbers    x0 x1 | x2 x3 | x4  0     a zero after an odd length
    features     w0  |   w1  |   w2
"""

from __future__ import annotations

import json
from collections.abc import Sequence, Set
from typing import Any

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import (
    Float32s,
    Integers,
    Ints,
    Words,
    arrow_of_strings,
    flatten_strings,
    offsets_from_lengths,
    read_only,
)
from neardup.documents.texts import as_vectors
from neardup.errors import InputError
from neardup.features.described import Features, Lists

# Flips half of the bits of each byte: the hash of the result is the second half of a content hash.
_SECOND_HALF = np.uint8(0x5A)
_MAX_SHOWN = 8  # numbers of a vector that a report shows


def array_of_documents(documents: Sequence[Any], vector_length: int | None) -> pa.Array:
    """Return documents that a caller passes, as readers return a column: texts, or vectors.

    Parameters
    ----------
    documents : strings; or vectors, each a list of numbers, or the JSON of one.
    vector_length : the length of each vector, 0 for any common length; None for texts.

    Returns
    -------
    Arrow array: large_string, or large_binary, the float32 numbers of each vector.

    Raises
    ------
    InputError
        If a document is no vector of finite numbers, or of another length.
    """
    if vector_length is None:
        for document in documents:
            if not isinstance(document, str):
                raise InputError(f"The method compares texts: got {document!r:.80}. Pass strings.")
        return arrow_of_strings(list(documents))
    try:
        values = [_parse_vector(document) for document in documents]
        vectors, bad = as_vectors(pa.array(values, pa.large_list(pa.float64())), vector_length)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(
            f"A vector is a list of numbers, or the JSON of one: {error}. Correct the document."
        ) from error
    if bad:
        row, reason = next(iter(bad.items()))  # the first one
        raise InputError(
            f"A document cannot be compared: {reason}. Got {documents[row]!r:.80}. Correct it."
        )
    return vectors


def _parse_vector(document: Any) -> Any:
    """Return the value of a JSON string, None for an empty string, other objects unchanged."""
    # Arrow would take each byte for a number, and the numbers of a set in any order.
    if isinstance(document, (bytes, bytearray, memoryview, Set)):
        raise TypeError(f"got {type(document).__name__}")
    return json.loads(document or "null") if isinstance(document, str) else document


def text_of(document: str | bytes | None) -> str:
    """Return a document of a reader as a text; a vector as the JSON of its numbers."""
    if not document:
        return ""
    if isinstance(document, str):
        return document
    numbers = np.frombuffer(document, "<f4")
    return f"[{', '.join(map(str, numbers))}]"


def texts_of(documents: pa.Array) -> pa.Array:
    """Return the documents of a reader as texts."""
    if not pa.types.is_large_binary(documents.type):
        return documents
    return arrow_of_strings([text_of(document) for document in documents.to_pylist()])


def shortened(text: str) -> str:
    """Return the first numbers of the JSON of a vector, and their count."""
    numbers = text.split(",")
    if len(numbers) <= _MAX_SHOWN:
        return text
    return f"{','.join(numbers[:_MAX_SHOWN])}, ...] ({len(numbers)} numbers)"


def describe_vectors(
    documents: pa.Array, vector_length: int, *, by_direction: bool = False
) -> Features:
    """Return the vectors of documents as features.

    A vector of zeros has no direction, and so no features.

    Parameters
    ----------
    documents : vectors as readers return them, or strings, each the JSON of one.
    vector_length : the length of each vector, 0 for any common length.
    by_direction : whether vectors of one direction are copies, even if their norms differ.

    Raises
    ------
    InputError
        If a string is no vector, or the lengths differ.
    """
    if not pa.types.is_large_binary(documents.type):
        documents = array_of_documents(documents.to_pylist(), vector_length)
    data, offsets = flatten_strings(documents)
    sizes = np.diff(offsets) // 4  # numbers of a float32 vector; a null has none
    length = _common_length(sizes)
    numbers = data.view("<f4").reshape(-1, max(1, length)).astype(np.float32, copy=False)

    has_direction = numbers.any(axis=1)
    vectors = _padded(numbers[has_direction], length)
    # `has_direction` has an entry for each row of `numbers`: for each document with numbers.
    #
    #     documents        [3 4]    null    [0 0]
    #     numbers          [3 4]            [0 0]
    #     has_direction    true             false
    #     has_features     true     false   false
    has_features = sizes > 0
    has_features[has_features] = has_direction
    number_offsets = offsets_from_lengths(np.where(has_features, vectors.shape[1], 0))
    compared = vectors
    if by_direction:
        compared = np.empty_like(vectors)
        kernels.vectors.to_directions(vectors, compared)
    return Features(
        content=_hash_contents(compared, number_offsets),
        sets=Lists(vectors.reshape(-1).view(np.uint64), number_offsets // 2),  # two numbers each
    )


def _common_length(sizes: Ints) -> int:
    """Return the length of all vectors; a size of 0, of a null, does not count."""
    length = int(sizes.max(initial=0))
    if ((sizes != length) & (sizes > 0)).any():
        raise InputError(
            "Vectors of different lengths cannot be compared: got "
            f"{sorted(set(sizes.tolist()) - {0})}."
        )
    return length


def _padded(numbers: Float32s, length: int) -> Float32s:
    """Return vectors with a zero after an odd length: a feature is a word of two numbers."""
    vectors = np.zeros((len(numbers), length + length % 2), np.float32)
    np.add(numbers, np.float32(0), out=vectors[:, :length])  # -0.0 becomes 0.0
    return vectors


def _hash_contents(vectors: Float32s, number_offsets: Ints) -> Words:
    """Return the content hash of each document, uint64 (num_documents, 2)."""
    data = vectors.reshape(-1).view(np.uint8)
    byte_offsets = 4 * number_offsets
    halves = np.empty((2, len(byte_offsets) - 1), np.uint64)
    kernels.strings.hash_strings(read_only(data), byte_offsets, halves[0])
    kernels.strings.hash_strings(read_only(data ^ _SECOND_HALF), byte_offsets, halves[1])
    return np.ascontiguousarray(halves.T)


def vectors_of(features: Lists, rows: Integers | None = None) -> Float32s:
    """Return the vectors of `describe_vectors`, float32 (num_rows, length), with a zero after an
    odd length.

    rows : documents; None for all. A document without features has zeros.
    """
    rows = np.arange(len(features.offsets) - 1) if rows is None else rows
    starts = features.offsets[rows]
    sizes = features.offsets[rows + 1] - starts
    num_words = int(sizes.max(initial=0))
    vectors = np.zeros((len(rows), 2 * num_words), np.float32)
    if num_words:
        has_features = sizes > 0
        # All vectors have one length, so the documents with features are the rows of a matrix.
        words = features.hashes.reshape(-1, num_words)
        vectors[has_features] = words[starts[has_features] // num_words].view(np.float32)
    return vectors
