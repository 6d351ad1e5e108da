"""Lists of token strings, packed into one buffer, and their shingles."""

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
from neardup.settings.methods import Shingling

STRING_LISTS = pa.large_list(pa.large_string())


def cut_documents(
    texts: pa.Array, cut: Callable[[str], Iterable[Any]], shingling: Shingling
) -> TokenStrings:
    """Return the tokens that a function cuts normalised texts into; a null has none."""
    lists = [list(cut(normalise(text or "", shingling))) for text in texts.to_pylist()]
    # The words of a segmenter are strings; the tokens of a caller's function are checked.
    return pack_tokens(lists, None if isinstance(cut, Segmenter) else shingling.tokens)


def pack_tokens(lists: Sequence[list[Any]], tokenizer: object = None) -> TokenStrings:
    """Pack lists of tokens into one buffer, without empty tokens.

    Parameters
    ----------
    lists : the tokens of each document.
    tokenizer : the function that made them, named in errors; None skips the check.

    Raises
    ------
    InputError
        If a token is not a string of Unicode text.
    """
    if tokenizer is not None:
        _check_strings(lists, tokenizer)
    # The usual lists have no empty token and are not copied.
    if any(not all(tokens) for tokens in lists):
        lists = [[token for token in tokens if token] for tokens in lists]
    document_offsets = offsets_from_lengths([len(tokens) for tokens in lists])
    try:
        strings = list_strings(lists).values
    except UnicodeEncodeError as error:
        raise InputError(
            f"Tokens must be Unicode text: {error}. Replace lone surrogates."
        ) from error
    return TokenStrings(*flatten_strings(strings), document_offsets)


def _check_strings(lists: Sequence[list[Any]], tokenizer: object) -> None:
    for token in chain.from_iterable(lists):
        if not isinstance(token, str):
            raise InputError(
                f"The tokenizer must return strings: got {token!r} from {tokenizer!r}. Return an "
                "iterable of str."
            )


def list_strings(rows: Sequence[Any]) -> pa.LargeListArray:
    """Convert collections of strings to an Arrow column of lists. For sets, this is faster than
    `pa.array`.

    Parameters
    ----------
    rows : lists, tuples, sets or arrays of strings; None is an empty list.

    Raises
    ------
    TypeError, ValueError, pyarrow.ArrowException
        If a row is no collection, contains anything but strings and None, or a string has no UTF-8.
    """
    offsets = offsets_from_lengths([0 if row is None else len(row) for row in rows])
    tokens = chain.from_iterable(row for row in rows if row is not None)
    strings = pa.array(list(tokens), "large_string")
    return pa.LargeListArray.from_arrays(pa.array(offsets), strings)


def shingle_strings(tokens: TokenStrings, ngram: int) -> Shingles:
    """Return the hashes of the n-grams of string tokens, and the content hash of each document."""
    num_tokens = int(tokens.document_offsets[-1])
    num_documents = len(tokens.document_offsets) - 1
    # A document with fewer tokens than `ngram` has one shingle: hence a spare one per document.
    shingles = make_shingles(np.empty(num_tokens + num_documents, np.uint64), num_documents)
    max_tokens = int(np.diff(tokens.document_offsets).max(initial=0))
    token_hashes = np.empty(max_tokens, np.uint64)
    text = Text(tokens.data, tokens.offsets)
    kernels.tokens.shingle_tokens(text, tokens.document_offsets, ngram, token_hashes, shingles)
    return shingles.trim()
