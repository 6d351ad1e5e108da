"""Arrays that travel together between tokens and shingles."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

PADDING = 160  # zeros after a stream: its last block of 64 bytes, and two words more


class Text(NamedTuple):
    """UTF-8 documents. data : uint8 array, read-only; offsets : int64 array of shape (num_documents
    + 1,).
    """

    data: np.ndarray
    offsets: np.ndarray


class Tables(NamedTuple):
    """The Unicode tables, and `ascii`: uint8[128], the folded byte, or 0 where a byte separates
    tokens.

    comments : of source code, whether the words of comments are tokens; None for other texts, whose
    kernels are compiled without the rules of source code.
    """

    entries: np.ndarray
    expansions: np.ndarray
    ascii: np.ndarray
    comments: bool | None


class Buffers(NamedTuple):
    """Working space of one thread. stream : uint8, edges : int32, tokens : uint64; see
    `make_buffers`.
    """

    stream: np.ndarray
    edges: np.ndarray
    tokens: np.ndarray


class Shingles(NamedTuple):
    """The shingle hashes of documents, in the order of the text, repeats included.

    hashes : uint64 array; offsets : int64 array of shape (num_documents + 1,);
    content : uint64 array of shape (num_documents, 2), the 128-bit hash of each document's token
    sequence; flagged : bool array of shape (num_documents,), where a text must be normalised as a
    whole before.
    """

    hashes: np.ndarray
    offsets: np.ndarray
    content: np.ndarray
    flagged: np.ndarray

    def trim(self) -> Shingles:
        """Return the shingles without the unused hashes at the end."""
        return self._replace(hashes=self.hashes[: self.offsets[-1]])


class TokenStrings(NamedTuple):
    """The tokens of documents as strings, in the order of the text.

    data : uint8, UTF-8; offsets : int64 (num_tokens + 1,), token i is data[offsets[i]:offsets[i +
    1]]; document_offsets : int64 (num_documents + 1,), the tokens of document i are
    document_offsets[i] to document_offsets[i + 1].
    """

    data: np.ndarray
    offsets: np.ndarray
    document_offsets: np.ndarray


def make_shingles(hashes: np.ndarray, num_documents: int) -> Shingles:
    """Return shingles to be filled, without flags."""
    offsets = np.empty(num_documents + 1, np.int64)
    content = np.empty((num_documents, 2), np.uint64)
    return Shingles(hashes, offsets, content, np.zeros(num_documents, np.bool_))


def longest_of(text: Text) -> int:
    """Return the bytes of the longest document."""
    return int(np.diff(text.offsets).max(initial=0))


def make_buffers(longest: int) -> Buffers:
    """Return working space that serves any document of at most `longest` bytes.

    A code point of b bytes yields at most 3b bytes (the tables send longer expansions to Python),
    and two more if it is a token of its own. `PADDING` bytes of zeros follow the stream.
    """
    size = 5 * longest + PADDING
    return Buffers(
        np.empty(size, np.uint8), np.empty(size, np.int32), np.empty(3 * longest + 2, np.uint64)
    )
