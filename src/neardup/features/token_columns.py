"""Read columns of token lists: the tokens of each row, and their hashes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import kernels
from neardup.arrays import Bytes, Ints, Mask, Words, arrow_of, offsets_from_lengths, view_strings
from neardup.documents.texts import as_text, is_number, is_text, storage_type
from neardup.errors import InputError

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
    is_list = (
        types.is_list(dtype)
        or types.is_large_list(dtype)
        or types.is_fixed_size_list(dtype)
        or types.is_list_view(dtype)
        or types.is_large_list_view(dtype)
    )
    return dtype.value_type if is_list else None


def is_weighted(dtype: pa.DataType) -> bool:
    """Return whether an element type is a token with its weight."""
    return (
        pa.types.is_struct(dtype)
        and dtype.num_fields == 2
        and is_text(dtype[0].type)
        and is_number(dtype[1].type)
    )


def list_offsets(lists: pa.Array, first: int) -> Ints:
    """Return the offsets of lists in their flattened tokens, int64 (num_rows + 1,), from 0.

    Parameters
    ----------
    lists : a column of lists, or a part of it.
    first : the row number of its first list, for the error.

    Raises
    ------
    InputError
        If an offset points outside the column.
    """
    has_plain_offsets = isinstance(lists, (pa.ListArray, pa.LargeListArray))
    if not has_plain_offsets or lists.null_count:
        # Other lists may overlap or leave gaps, and a null may cover tokens; flattening omits them.
        lengths = pc.list_value_length(lists).fill_null(0)
        return offsets_from_lengths(lengths.to_numpy(zero_copy_only=False))
    offsets: Ints = lists.offsets.to_numpy().astype(np.int64)
    # Arrow does not check offsets when it opens a file, and kernels check no bounds.
    is_damaged = (offsets < 0) | (offsets > len(lists.values))
    is_damaged[1:] |= np.diff(offsets) < 0
    if is_damaged.any():
        # An offset ends the row before it; only the first offset ends none.
        row = max(0, int(np.argmax(is_damaged)) - 1)
        raise damaged_row(first + row)
    offsets -= offsets[0]
    return offsets


def damaged_row(row: int) -> InputError:
    """Return the error about a row with damaged memory."""
    return InputError(
        f"Row {row:,} of the column refers to memory outside of the column. The column is damaged: "
        "column.validate(full=True) locates the fault. Create it again from its source."
    )


def hash_tokens(tokens: pa.Array, row_offsets: Ints) -> tuple[HashedTokens | None, int]:
    """Hash the tokens that are not empty.

    Returns
    -------
    hashed : the tokens, or None if a token is damaged.
    row : the first row with a damaged token, or -1. A token is damaged if its offsets point outside
        of its memory.
    """
    data, offsets = view_tokens(tokens)
    hashes = np.empty(len(tokens), np.uint64)
    damaged = int(kernels.strings.hash_strings(data, offsets, hashes))
    if damaged >= 0:
        return None, int(np.searchsorted(row_offsets, damaged, side="right")) - 1
    has_bytes = np.diff(offsets) > 0
    if not has_bytes.all():
        tokens = tokens.filter(arrow_of(has_bytes))
        hashes = hashes[has_bytes]
        # The number of remaining tokens before each token, at the ends of the rows.
        row_offsets = offsets_from_lengths(has_bytes)[row_offsets]
    hashed = HashedTokens(strings=_as_strings(tokens), hashes=hashes, offsets=row_offsets)
    return hashed, -1


def is_filled(tokens: pa.Array) -> Mask:
    """Return whether each token has characters, bool (num_tokens,)."""
    _, offsets = view_tokens(tokens)
    return np.greater(np.diff(offsets), 0)


def view_tokens(tokens: pa.Array) -> tuple[Bytes, Ints]:
    """Return the UTF-8 of tokens and its offsets, as `view_strings` does."""
    return view_strings(_as_strings(tokens))


def _as_strings(tokens: pa.Array) -> pa.Array:
    """Return tokens as a string or large_string array, without a copy if they are one."""
    dtype = storage_type(tokens.type)
    is_plain = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
    if is_plain and dtype == tokens.type:
        return tokens
    return as_text(tokens, "the tokens")[0]  # dictionaries, extension types
