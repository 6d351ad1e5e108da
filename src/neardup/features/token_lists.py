"""Documents as lists of tokens, from a callable or a segmenter: flat strings, and their hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import flatten_strings
from neardup.errors import InputError
from neardup.features.normalise import normalise
from neardup.features.segmenters import Segmenter
from neardup.kernels.token_arrays import Shingles, Text, TokenStrings
from neardup.settings.shingling import Shingling

STRING_LISTS = pa.large_list(pa.large_string())


@dataclass(frozen=True)
class HashedLists:
    """Lists of strings as sets of hashes.

    hashes : uint64, those of kernels/strings.py, empty strings left out; offsets : int64 (num_rows + 1,), the hashes of
    row i are offsets[i] to offsets[i + 1].
    """

    hashes: npt.NDArray[np.uint64]
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1


def cut_documents(texts: pa.Array, cut: Callable[[str], Iterable[Any]], shingling: Shingling) -> TokenStrings:
    """Return the tokens that a function cuts normalised texts into; a null has none."""
    lists = [list(cut(normalise(text or "", shingling))) for text in texts.to_pylist()]
    return pack_tokens(lists, None if isinstance(cut, Segmenter) else shingling.tokens)


def pack_tokens(lists: Sequence[list[Any]], source: object = None) -> TokenStrings:
    """Return lists of tokens side by side.

    Parameters
    ----------
    lists : the tokens of each document.
    source : who returned them, for the error; None where they are strings without doubt.

    Raises
    ------
    InputError
        If a token is not a string.
    """
    wrong = [] if source is None else [token for token in chain.from_iterable(lists) if not isinstance(token, str)]
    if wrong:
        raise InputError(
            f"The tokenizer must return strings: got {wrong[0]!r} from {source!r}. Return an iterable of str."
        )
    # An empty token is none; without any, the lists are taken as they are.
    if any(not all(tokens) for tokens in lists):
        lists = [[token for token in tokens if token] for tokens in lists]
    return TokenStrings(
        *flatten_strings(list_strings(lists).values), limits_of_counts([len(tokens) for tokens in lists])
    )


def list_strings(rows: Sequence[Any]) -> pa.LargeListArray:
    """Return lists, tuples or sets of strings as Arrow holds them, in two thirds of the time that `pa.array` takes.

    Parameters
    ----------
    rows : collections of strings; None for a null.

    Raises
    ------
    TypeError, ValueError, pyarrow.ArrowException
        If a row is no collection, holds anything but strings and None, or a string has no UTF-8.
    """
    from neardup.kernels import python_lists as kernel

    lists, num_strings = _as_lists(rows)
    limits, offsets = np.empty(len(lists) + 1, np.int64), pa.allocate_buffer(8 * (num_strings + 1))
    # Of Arrow, which uses memory again; NumPy gives it back, and fresh pages would cost 13 ns a token.
    view = np.frombuffer(offsets, np.int64)
    if not kernel.measure_lists(id(lists), limits, view):
        return list_any(rows)
    data = pa.allocate_buffer(int(view[-1]))
    if not kernel.copy_lists(id(lists), limits, view, np.frombuffer(data, np.uint8)):
        return list_any(rows)
    strings = pa.Array.from_buffers(pa.large_string(), num_strings, [None, offsets, data])
    return pa.LargeListArray.from_arrays(pa.array(limits), strings)


def hash_lists(rows: Sequence[Any]) -> HashedLists | pa.LargeListArray:
    """Return the hashes of what `list_strings` takes, and raise what it does; Arrow's lists if there are nulls."""
    from neardup.kernels import python_lists as kernel

    lists, num_strings = _as_lists(rows)
    hashed = HashedLists(np.empty(num_strings, np.uint64), np.empty(len(lists) + 1, np.int64))
    return hashed if kernel.hash_lists(id(lists), hashed.hashes, hashed.offsets) else list_any(rows)


def _as_lists(rows: Sequence[Any]) -> tuple[list[list[Any]], int]:
    """Return each row as a list, and how many elements they have together."""
    num_elements = sum(0 if row is None else len(row) for row in rows)
    return [row if type(row) is list else [] if row is None else list(row) for row in rows], num_elements


def list_any(rows: Sequence[Any]) -> pa.LargeListArray:
    """Return what `list_strings` does, whatever the strings hold."""
    return pa.array([list(row) if isinstance(row, Set) else row for row in rows], STRING_LISTS)


def shingle_strings(tokens: TokenStrings, ngram: int) -> Shingles:
    """Return the hashes of n-grams of tokens that are strings, and the content hash of each document."""
    from neardup.kernels import tokens as kernel

    num_documents = len(tokens.limits) - 1
    longest = int(np.diff(tokens.limits).max(initial=0))
    shingles = Shingles(
        np.empty(int(tokens.limits[-1]) + num_documents, np.uint64),
        np.empty(num_documents + 1, np.int64),
        np.empty((num_documents, 2), np.uint64),
        np.zeros(num_documents, np.bool_),
    )
    room = np.empty(longest, np.uint64)
    kernel.shingle_tokens(Text(tokens.data, tokens.offsets), tokens.limits, ngram, room, shingles)
    return shingles._replace(hashes=shingles.hashes[: shingles.offsets[-1]])


def limits_of_counts(counts: Any) -> npt.NDArray[np.int64]:
    """Return where ranges of such lengths begin and end, one after the other."""
    limits = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=limits[1:])
    return limits
