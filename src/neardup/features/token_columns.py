"""Columns of token lists, with or without weights: their tokens, the offsets of their rows, and the hashes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from neardup import kernels
from neardup.arrays import arrow_of, offsets_from_lengths, view_strings
from neardup.documents.texts import as_text, is_number, is_text, storage_type
from neardup.errors import InputError


class HashedTokens(NamedTuple):
    """Tokens that are not empty.

    strings : the tokens. hashes : uint64, of each. offsets : int64 (num_rows + 1,); the tokens of row i are offsets[i]
    to offsets[i + 1].
    """

    strings: pa.Array
    hashes: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]


def list_element(dtype: pa.DataType) -> pa.DataType | None:
    """Return the type of the elements of a column of lists, None if it is of another type; a map is a list of pairs."""
    t = pa.types
    if t.is_map(dtype):
        return pa.struct([dtype.key_field, dtype.item_field])
    lists = (t.is_list, t.is_large_list, t.is_fixed_size_list, t.is_list_view, t.is_large_list_view)
    return dtype.value_type if any(is_list(dtype) for is_list in lists) else None


def is_weighted(dtype: pa.DataType) -> bool:
    """Return whether a type is that of a token with its weight."""
    return pa.types.is_struct(dtype) and dtype.num_fields == 2 and is_text(dtype[0].type) and is_number(dtype[1].type)


def list_offsets(lists: pa.Array, first: int) -> npt.NDArray[np.int64]:
    """Return the offsets of lists in their flattened tokens, int64 (num_rows + 1,).

    Parameters
    ----------
    lists : a column of lists, or a part of it.
    first : the number of its first row.

    Raises
    ------
    InputError
        If an offset points outside the column.
    """
    if not isinstance(lists, (pa.ListArray, pa.LargeListArray)) or lists.null_count:
        return offsets_from_lengths(pc.list_value_length(lists).fill_null(0).to_numpy(zero_copy_only=False))
    offsets: npt.NDArray[np.int64] = lists.offsets.to_numpy().astype(np.int64)
    wrong = (offsets < 0) | (offsets > len(lists.values))
    wrong[1:] |= np.diff(offsets) < 0
    if wrong.any():
        raise damaged_row(first + max(0, int(np.argmax(wrong)) - 1))
    offsets -= offsets[0]
    return offsets


def damaged_row(row: int) -> InputError:
    """Return the error of a row whose memory is damaged."""
    return InputError(
        f"Row {row:,} of the column refers to memory outside of the column. The column is damaged: "
        "column.validate(full=True) locates the fault. Create it again from its source."
    )


def hash_tokens(tokens: pa.Array, row_offsets: npt.NDArray[np.int64]) -> tuple[HashedTokens | None, int]:
    """Return the tokens that are not empty and -1; None and the first row of a damaged one, if there is one."""
    data, offsets = view_tokens(tokens)
    hashes = np.empty(len(tokens), np.uint64)
    damaged = int(kernels.strings.hash_strings(data, offsets, hashes))
    if damaged >= 0:
        return None, int(np.searchsorted(row_offsets, damaged, side="right")) - 1
    filled = np.diff(offsets) > 0
    if not filled.all():
        tokens, hashes = tokens.filter(arrow_of(filled)), hashes[filled]
        row_offsets = offsets_from_lengths(filled)[row_offsets]
    return HashedTokens(_as_strings(tokens), hashes, row_offsets), -1


def is_filled(tokens: pa.Array) -> npt.NDArray[np.bool_]:
    """Return whether each token has characters, bool (num_tokens,)."""
    return np.greater(np.diff(view_tokens(tokens)[1]), 0)


def view_tokens(tokens: pa.Array) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int32 | np.int64]]:
    """Return the UTF-8 of tokens and its offsets, without a copy where possible."""
    return view_strings(_as_strings(tokens))


def _as_strings(tokens: pa.Array) -> pa.Array:
    dtype = storage_type(tokens.type)
    in_place = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
    return tokens if in_place and dtype == tokens.type else as_text(tokens, "the tokens")[0]
