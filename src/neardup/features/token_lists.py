"""Documents as lists of tokens, from a callable or a segmenter: flat strings, and their hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import chain, compress
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import flatten_strings
from neardup.errors import InputError
from neardup.features.normalise import normalise
from neardup.features.segmenters import Segmenter
from neardup.kernels.token_arrays import Shingles, Text, TokenStrings, make_buffers
from neardup.shingling import Shingling

STRING_LISTS = pa.large_list(pa.large_string())


@dataclass(frozen=True)
class JoinedLists:
    """Lists of strings as one text: joined : uint8, each string with a zero behind it, and 8 zeros.

    counts : int64 (num_rows,), strings of each list; rows : the lists as they came, for what holds zeros itself.
    """

    rows: Sequence[Any]
    counts: npt.NDArray[np.int64]
    joined: npt.NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.rows)


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
    """Return lists, tuples or sets of strings as Arrow holds them, in half the time that `pa.array` takes.

    Parameters
    ----------
    rows : collections of strings; None for a null.

    Raises
    ------
    TypeError, ValueError, pyarrow.ArrowException
        If a row is no collection, holds anything but strings and None, or a string has no UTF-8.
    """
    from neardup.kernels import token_sets as kernel

    lists = join_lists(rows)
    if not isinstance(lists, JoinedLists):
        return lists
    limits = limits_of_counts(lists.counts)
    num_strings = int(limits[-1])
    # Of Arrow, which uses memory again; NumPy gives it back, and fresh pages would cost 13 ns a token.
    data, offsets = pa.allocate_buffer(len(lists.joined)), pa.allocate_buffer(8 * (num_strings + 1))
    arrays = (np.frombuffer(one, kind) for one, kind in ((data, np.uint8), (offsets, np.int64)))
    if kernel.cut_joined(lists.joined, *arrays) != num_strings:  # a string holds a zero
        return list_any(rows)
    strings = pa.Array.from_buffers(pa.large_string(), num_strings, [None, offsets, data])
    return pa.LargeListArray.from_arrays(pa.array(limits), strings)


def join_lists(rows: Sequence[Any]) -> JoinedLists | pa.LargeListArray:
    """Return what `list_strings` does, and raise what it does, as one text; as Arrow holds them if there are nulls."""
    counts = [0 if row is None else len(row) for row in rows]
    try:
        joined = "\0".join([*map("\0".join, compress(rows, counts)), "\0" * 8]).encode()
    except (TypeError, ValueError):  # a null among the strings, or what Arrow has the better words for
        return list_any(rows)
    return JoinedLists(rows, np.array(counts, np.int64), np.frombuffer(joined, np.uint8))


def list_any(rows: Sequence[Any]) -> pa.LargeListArray:
    """Return what `list_strings` does, whatever the strings hold."""
    return pa.array([list(row) if isinstance(row, Set) else row for row in rows], STRING_LISTS)


def shingle_strings(tokens: TokenStrings, ngram: int) -> Shingles:
    """Return the hashes of n-grams of tokens that are strings, and the content hash of each document."""
    from neardup.kernels import tokens as kernel

    num_documents = len(tokens.limits) - 1
    longest = int(max(np.diff(tokens.limits).max(initial=0), np.diff(tokens.offsets).max(initial=0)))
    shingles = Shingles(
        np.empty(int(tokens.limits[-1]) + num_documents, np.uint64),
        np.empty(num_documents + 1, np.int64),
        np.empty((num_documents, 2), np.uint64),
        np.zeros(num_documents, np.bool_),
    )
    kernel.shingle_tokens(Text(tokens.data, tokens.offsets), tokens.limits, ngram, make_buffers(longest), shingles)
    return shingles._replace(hashes=shingles.hashes[: shingles.offsets[-1]])


def limits_of_counts(counts: Any) -> npt.NDArray[np.int64]:
    """Return where ranges of such lengths begin and end, one after the other."""
    limits = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=limits[1:])
    return limits
