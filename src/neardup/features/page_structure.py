"""Describe the structure of HTML pages: their elements and positions, not their text."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import Bytes, Floats, Ints, Words, flatten_strings
from neardup.kernels.token_arrays import Shingles, TokenStrings, make_shingles

TAG_NAME = re.compile(rb"</?([A-Za-z][^ \t\n\f\r/>]*)")
"""Group 1 is the name of the tag."""
_IMPLIED = ("html", "head", "body", "colgroup", "p", "tbody", "tr")
"""Elements that a page may have without a tag."""
_MAX_NAME_BYTES = 256  # bytes of a tag that are shown, with its "</"
_MAX_PATH = 32  # names of a path that are shown, the innermost ones


class WeighedTags(NamedTuple):
    """The elements of pages in document order, as features.

    hashes : uint64 (num_elements,), the hash of the tag or of the tag path.
    weights : float64 (num_elements,).
    offsets : int64 (num_pages + 1,), the range of the elements of each page.
    content : uint64 (num_pages, 2), equal for equal elements in equal order.
    strings : the names or paths of the elements, if requested.
    """

    hashes: Words
    weights: Floats
    offsets: Ints
    content: Words
    strings: TokenStrings | None


def shingle_pages(pages: pa.Array, ngram: int) -> Shingles:
    """Return the hashes of n-grams of the start tags of pages.

    A start tag is its name with the names of its attributes and the words of class, id, name, rel
    and type; numbers in these words are read as one sign, and the order of attributes does not
    matter. A page with fewer than `ngram` tags has one shingle.

    Parameters
    ----------
    pages : HTML in UTF-8, string or binary array of shape (num_pages,); a null has no tags.
    ngram : start tags of a shingle, 1 or more.

    Returns
    -------
    Shingles with num_pages rows, `hashes` in the order of the page with repeats; `content` is the
    128-bit hash of the sequence of start tags. A page without tags has no shingles.

    Notes
    -----
    Time is linear in the bytes. Lists of ten and of a hundred equal rows have the same set of
    shingles.
    """
    tags = read_tags(pages)
    shingles = make_shingles(np.empty(int(tags.offsets[-1]), np.uint64), len(pages))
    kernels.html_shingles.shingle_tags(tags, ngram, shingles)
    return shingles.trim()


def read_tags(pages: pa.Array) -> kernels.html_tokens.Tags:
    """Return the start and end tags of pages."""
    return kernels.html_tokens.tags_of(*flatten_strings(pages))


def weigh_tags(
    pages: pa.Array, decay: float, *, paths: bool = False, with_strings: bool = False
) -> WeighedTags:
    """Return the elements of pages, each with the weight decay ** depth; html has depth 0.

    Parameters
    ----------
    pages : HTML in UTF-8, string or binary array of shape (num_pages,); a null has no elements.
    decay : above 0, at most 1.
    paths : whether an element is identified by its tag path from html down, not by its tag alone.
    with_strings : whether to return the names or paths as strings, such as `li` or `html/body/ul`;
        of a path deeper than 32 elements, the innermost 32.

    Returns
    -------
    WeighedTags, repeats included. A page without tags has no elements.

    Notes
    -----
    Implied elements count, as in a browser's tree. Elements deeper than `html_tree.MAX_DEPTH` count
    as at that depth.
    """
    data, page_offsets = flatten_strings(pages)
    tags = kernels.html_tokens.tags_of(data, page_offsets)
    elements = kernels.html_tree.elements_of(tags)
    num_elements = int(elements.offsets[-1])
    hashes = np.empty(num_elements, np.uint64)
    kernels.html_shingles.hash_elements(elements, paths, hashes)
    weight_of_depth = float(decay) ** np.arange(kernels.html_tree.MAX_DEPTH + 1)
    weights = weight_of_depth[elements.depths[:num_elements]]
    content = np.empty((len(pages), 2), np.uint64)
    # The bits of the weights are hashed too: the same elements at other depths differ.
    kernels.html_shingles.hash_sequences(hashes, weights.view(np.uint64), elements.offsets, content)
    strings = None
    if with_strings:
        names = _names_by_hash(data, tags)
        by_hash = _paths_by_hash if paths else _tags_by_hash
        strings = _strings_of_hashes(hashes, by_hash(elements, hashes, names), elements.offsets)
    return WeighedTags(
        hashes=hashes,
        weights=weights,
        offsets=elements.offsets,
        content=content,
        strings=strings,
    )


def implied_names() -> dict[int, str]:
    """Return the names of elements that pages may imply, by their hashes."""
    return {int(kernels.html_tags.hash_name(name)): name for name in _IMPLIED}


def _names_by_hash(data: Bytes, tags: kernels.html_tokens.Tags) -> dict[int, str]:
    """Return the names of the tags of pages in lower case, and of elements that pages may imply,
    by their hashes.
    """
    names = implied_names()
    num_tags = int(tags.offsets[-1])
    found, firsts = np.unique(tags.names[:num_tags], return_index=True)
    for value, start in zip(found.tolist(), tags.starts[firsts].tolist(), strict=True):
        name = TAG_NAME.match(data[start : start + _MAX_NAME_BYTES].tobytes())
        # Each start is the start of a tag.
        assert name is not None
        # bytes.lower() changes ASCII alone, as the standard does.
        names[value] = name[1].lower().decode("utf-8", "replace")
    return names


def _tags_by_hash(
    elements: kernels.html_tree.Elements, hashes: Words, names: dict[int, str]
) -> dict[int, str]:
    """Return the names of elements by the hashes of the elements."""
    found, firsts = np.unique(hashes, return_index=True)
    values = elements.names[firsts].tolist()
    return {element: names[value] for element, value in zip(found.tolist(), values, strict=True)}


def _paths_by_hash(
    elements: kernels.html_tree.Elements, hashes: Words, names: dict[int, str]
) -> dict[int, str]:
    """Return the paths of elements by the hashes of the elements."""
    path_of: dict[int, str] = {}
    path: list[str] = []
    depths = elements.depths[: len(hashes)].tolist()
    values = elements.names[: len(hashes)].tolist()
    for element, value, depth in zip(hashes.tolist(), values, depths, strict=True):
        del path[depth:]
        path.append(names[value])
        if element not in path_of:
            left_out = "…/" if len(path) > _MAX_PATH else ""
            path_of[element] = left_out + "/".join(path[-_MAX_PATH:])
    return path_of


def _strings_of_hashes(hashes: Words, label_of: dict[int, str], offsets: Ints) -> TokenStrings:
    """Return the label of each element."""
    distinct, indices = np.unique(hashes, return_inverse=True)
    labels = pa.array([label_of[value] for value in distinct.tolist()], pa.large_string())
    return TokenStrings(*flatten_strings(labels.take(pa.array(indices))), offsets)


def start_tags(page: str) -> tuple[list[int], list[int]]:
    """Return the offset in characters and the hash of each start tag of a page.

    The hashes are the hashes of `shingle_pages`.
    """
    data = page.encode("utf-8", "replace")
    tags = read_tags(pa.array([data], "large_binary"))
    kinds = tags.kinds[: tags.offsets[-1]]
    chosen = np.flatnonzero(kinds & np.uint8(kernels.html_tokens.START))
    begins_character = np.frombuffer(data, np.uint8) & 0xC0 != 0x80  # no UTF-8 continuation byte
    character_of_byte = np.cumsum(begins_character) - 1
    return character_of_byte[tags.starts[chosen]].tolist(), tags.tokens[chosen].tolist()
