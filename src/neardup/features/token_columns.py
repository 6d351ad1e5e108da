"""Read columns of token lists: the tokens of each row, and their hashes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Bytes, Ints, Mask, Words, arrow_of, offsets_from_lengths, view_strings
from neardup.documents.nested import is_list
from neardup.documents.texts import as_text, is_number, is_text

TOKENS_VERSION = 2
"""Version of the hashes of given tokens, which no normalisation changes."""


class HashedTokens(NamedTuple):
    """The tokens of a column of lists, without empty tokens.

    strings : the tokens. hashes : uint64 (num_tokens,). offsets : int64 (num_rows + 1,); the tokens
    of row i are offsets[i] to offsets[i + 1].
    """

    strings: pa.Array
    hashes: Words
    offsets: Ints


def list_element(dtype: pa.DataType) -> pa.DataType | None:
    """Return the element type of a list type, None if the type is no list. A map is a list of
    pairs.
    """
    types = pa.types
    if types.is_map(dtype):
        return pa.struct([dtype.key_field, dtype.item_field])
    is_view = types.is_list_view(dtype) or types.is_large_list_view(dtype)
    return dtype.value_type if is_view or is_list(dtype) else None


def is_weighted(dtype: pa.DataType) -> bool:
    """Return whether an element type is a token with its weight."""
    return (
        pa.types.is_struct(dtype)
        and dtype.num_fields == 2
        and is_text(dtype[0].type)
        and is_number(dtype[1].type)
    )


def hash_tokens(tokens: pa.Array, row_offsets: Ints) -> HashedTokens:
    """Hash the tokens that are not empty. row_offsets : of each row in `tokens`."""
    data, offsets = view_tokens(tokens)
    hashes = np.empty(len(tokens), np.uint64)
    kernels.strings.hash_strings(data, offsets, hashes)
    has_bytes = np.diff(offsets) > 0
    if not has_bytes.all():
        tokens = tokens.filter(arrow_of(has_bytes))
        hashes = hashes[has_bytes]
        # The number of remaining tokens before each token, at the ends of the rows.
        row_offsets = offsets_from_lengths(has_bytes)[row_offsets]
    return HashedTokens(strings=_as_strings(tokens), hashes=hashes, offsets=row_offsets)


def is_filled(tokens: pa.Array) -> Mask:
    """Return whether each token has characters, bool (num_tokens,)."""
    _, offsets = view_tokens(tokens)
    return np.greater(np.diff(offsets), 0)


def view_tokens(tokens: pa.Array) -> tuple[Bytes, Ints]:
    """Return the UTF-8 of tokens and its offsets, as `view_strings` does."""
    return view_strings(_as_strings(tokens))


def _as_strings(tokens: pa.Array) -> pa.Array:
    """Return tokens as a string or large_string array, without a copy if they are one."""
    if pa.types.is_string(tokens.type) or pa.types.is_large_string(tokens.type):
        return tokens
    return as_text(tokens, "the tokens")[0]  # dictionaries, extension types
