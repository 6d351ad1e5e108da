"""Documents as lists of tokens, from a callable or a segmenter: flat strings, and their hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import flatten_strings, offsets_from_lengths
from neardup.errors import InputError
from neardup.features.normalise import normalise
from neardup.features.segmenters import Segmenter
from neardup.kernels.token_arrays import Shingles, Text, TokenStrings, make_shingles
from neardup.settings.shingling import Shingling

STRING_LISTS = pa.large_list(pa.large_string())


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
    limits = offsets_from_lengths([len(tokens) for tokens in lists])
    return TokenStrings(*flatten_strings(list_strings(lists).values), limits)


def list_strings(rows: Sequence[Any]) -> pa.LargeListArray:
    """Return lists, tuples or sets of strings as an Arrow column of lists; in less time than `pa.array` takes for sets.

    Parameters
    ----------
    rows : collections of strings; None is an empty one.

    Raises
    ------
    TypeError, ValueError, pyarrow.ArrowException
        If a row is no collection, holds anything but strings and None, or a string has no UTF-8.
    """
    offsets = offsets_from_lengths([0 if row is None else len(row) for row in rows])
    strings = pa.array(list(chain.from_iterable(row for row in rows if row is not None)), pa.large_string())
    return pa.LargeListArray.from_arrays(pa.array(offsets), strings)


def shingle_strings(tokens: TokenStrings, ngram: int) -> Shingles:
    """Return the hashes of n-grams of tokens that are strings, and the content hash of each document."""
    num_documents = len(tokens.document_offsets) - 1
    longest = int(np.diff(tokens.document_offsets).max(initial=0))
    shingles = make_shingles(np.empty(int(tokens.document_offsets[-1]) + num_documents, np.uint64), num_documents)
    buffer = np.empty(longest, np.uint64)
    kernels.tokens.shingle_tokens(Text(tokens.data, tokens.offsets), tokens.document_offsets, ngram, buffer, shingles)
    return shingles.trim()
