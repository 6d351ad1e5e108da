"""Extract the text of HTML pages: all visible text, or the main content."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup import kernels
from neardup.arrays import (
    Bytes,
    Ints,
    Mask,
    arrow_of_bytes,
    flatten_strings,
    offsets_from_lengths,
    read_only,
)
from neardup.documents.page_content import PageParts, contents_of, extractor, find_contents
from neardup.kernels.token_arrays import Text

# Limits of the pages for resiliparse. It takes 2 microseconds for an element, and as much again for
# each 24 levels of its depth, so that no page takes more than 0.2 microseconds a byte. Of 1,809
# real pages the deepest has 73 levels; pages of 500 elements or more have at most one in 15 bytes,
# counted in this way.
MAX_DEPTH = 256
BYTES_PER_ELEMENT = 10
FREE_ELEMENTS = 200
_LEVELS_PER_ELEMENT = 24


def texts_of_pages(pages: pa.Array, *, main: bool) -> pa.LargeStringArray:
    """Return the text of HTML pages, without tags, scripts, styles, comments, form fields and
    alternative texts.

    Parameters
    ----------
    pages : HTML in UTF-8, string or binary array of shape (num_pages,); bytes that are not UTF-8
        become U+FFFD.
    main : only the main content: no navigation, headers, footers, advertisements, reader comments.

    Returns
    -------
    large_string array of shape (num_pages,); a null page has a null text. Each block is on its own
    line; the title is left out, as the page does not show it.

    Raises
    ------
    MissingExtraError
        If `main` is true and the package resiliparse is not installed.

    Notes
    -----
    Time is linear in the bytes. resiliparse finds the main content, in a page without the elements
    that do not matter to it. All visible text is returned instead if it finds nothing, if it finds
    less than 500 characters and less than a fifth of the text, or if a page is nested deeper, or
    has more elements, than any page for people.
    """
    if main:
        extractor()
    data, offsets = flatten_strings(pages)
    tags = kernels.html_tokens.tags_of(data, offsets)
    text = _write(data, offsets, tags, short=False)
    reduced = Text(np.empty(0, np.uint8), np.zeros(1, np.int64))
    is_main = np.zeros(len(pages), np.bool_)
    if main:
        reduced = _write(data, offsets, tags, short=True)
        is_main = _are_cheap(reduced, np.diff(offsets))
    parts = PageParts(*_bytes_of(text), *_bytes_of(reduced), is_main.tobytes())
    contents, content_offsets = contents_of(parts) if main else find_contents(parts)
    strings = arrow_of_bytes(contents, np.frombuffer(content_offsets, np.int64))
    texts = strings.view(pa.large_string())
    return pc.if_else(pages.is_null(), None, texts) if pages.null_count else texts


def _write(data: Bytes, offsets: Ints, tags: kernels.html_tokens.Tags, *, short: bool) -> Text:
    """Return the visible text of pages; with `short`, reduced pages."""
    # The room that `write_texts` requires.
    capacity = len(data) + 3 * len(tags.names) if short else len(data)
    text = Text(np.empty(capacity, np.uint8), np.empty(len(offsets), np.int64))
    kernels.html_text.write_texts(data, offsets, tags, short, text.data, text.offsets)
    return text


def _bytes_of(text: Text) -> tuple[bytes, bytes]:
    return text.data[: text.offsets[-1]].tobytes(), text.offsets.tobytes()


def _are_cheap(short: Text, sizes: Ints) -> Mask:
    """Return which pages resiliparse reads in linear time.

    short : the reduced pages. sizes : the bytes of the pages.
    """
    data = read_only(short.data[: short.offsets[-1]])
    elements = kernels.html_tree.elements_of(kernels.html_tokens.tags_of(data, short.offsets))
    depths = elements.depths[: elements.offsets[-1]]
    # Sums over the elements of each page are differences of sums over all elements before.
    work = np.diff(offsets_from_lengths(depths + _LEVELS_PER_ELEMENT)[elements.offsets])
    num_too_deep = np.diff(offsets_from_lengths(depths > MAX_DEPTH)[elements.offsets])
    max_work = _LEVELS_PER_ELEMENT * (FREE_ELEMENTS + sizes // BYTES_PER_ELEMENT)
    is_cheap: Mask = (work <= max_work) & (num_too_deep == 0)
    return is_cheap
