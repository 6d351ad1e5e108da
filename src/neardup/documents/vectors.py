"""Vectors outside of columns: lists of numbers that callers pass, and vectors as texts, which are JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from neardup.arrays import arrow_of_strings
from neardup.documents.texts import as_vectors
from neardup.errors import InputError

_SHOWN = 8  # numbers of a vector in a report


def array_of_documents(documents: Sequence[Any], vector_length: int | None) -> pa.Array:
    """Return documents as `as_documents` returns those of a column.

    documents : strings; or vectors, each a list of numbers, or the JSON of one. vector_length : as of `as_documents`.

    Raises
    ------
    InputError
        If a document is no vector of finite numbers, or of another length.
    """
    if vector_length is None:
        if (other := next((document for document in documents if not isinstance(document, str)), None)) is not None:
            raise InputError(f"The method compares texts: got {other!r:.80}. Pass strings.")
        return arrow_of_strings(list(documents))
    try:
        values = [json.loads(value or "null") if isinstance(value, str) else value for value in documents]
        vectors, bad = as_vectors(pa.array(values, pa.large_list(pa.float64())), vector_length)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise InputError(
            f"A vector is a list of numbers, or the JSON of one: {error}. Correct the document."
        ) from error
    for row, reason in bad.items():
        raise InputError(f"A document cannot be compared: {reason}. Got {documents[row]!r:.80}. Correct it.")
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
    return text if len(numbers) <= _SHOWN else f"{','.join(numbers[:_SHOWN])}, ...] ({len(numbers)} numbers)"
