"""Extract the text of HTML pages: all visible text, or the main content."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup import kernels
from neardup.arrays import flatten_strings, offsets_from_lengths
from neardup.errors import MissingExtraError
from neardup.kernels.token_arrays import Text

if TYPE_CHECKING:
    from neardup.kernels.html_tokens import Tags

# Limits of what goes to resiliparse. It takes 2 microseconds for an element, and as much again for each 24 levels that
# it is deep. So no page takes more than 0.2 microseconds a byte. Of 1,809 real pages the deepest has 73 levels, and
# those of 500 elements or more have one in 15 bytes at most, counted like this.
MAX_DEPTH = 256
BYTES_PER_ELEMENT, FREE_ELEMENTS = 10, 200
_LEVELS_PER_ELEMENT = 24

# Main content this short, in a page that shows five times as much, is mostly a line of the frame around an article that
# was missed ("Reader Interactions"), the same on all pages of a site. docs/decisions/0014 has the figures.
SHORT, SHARE = 500, 5

_LONG_NUMBER = re.compile("&#(?:[0-9]{32,}|[xX][0-9a-fA-F]{32,});?")


def texts_of_pages(pages: pa.Array, *, main: bool) -> pa.LargeStringArray:
    """Return the text of HTML pages, without tags, scripts, styles, comments, form fields and alternative texts.

    Parameters
    ----------
    pages : HTML in UTF-8, string or binary array of shape (num_pages,); bytes that are not UTF-8 become U+FFFD.
    main : only the main content: no navigation, headers, footers, advertisements, reader comments.

    Returns
    -------
    large_string array of shape (num_pages,), null where a page is. Each block is on its own line; the title, which
    the page itself does not show, is left out.

    Raises
    ------
    MissingExtraError
        If `main` is true and the package resiliparse is not installed.

    Notes
    -----
    Time is linear in the bytes. resiliparse finds the main content, in a page without the elements that do not matter
    to it. All visible text is returned instead if it finds none, if it finds less than 500 characters and less than a
    fifth of all, or if a page is nested deeper, or has more elements, than any page for people.
    """
    extract = _extractor() if main else None
    data, offsets = flatten_strings(pages)
    tags = kernels.html_tokens.tags_of(data, offsets)
    texts = [_resolve(text) for text in _strings(_write(data, offsets, tags, short=False))]
    if extract:
        short = _write(data, offsets, tags, short=True)
        cheap = _are_cheap(short, np.diff(offsets))
        texts = [
            _choose(extract(page), text) if is_cheap else text
            for page, text, is_cheap in zip(_strings(short), texts, cheap, strict=True)
        ]
    return pa.array(texts, pa.large_string(), mask=pages.is_null().to_numpy(zero_copy_only=False))


def _write(data: npt.NDArray[np.uint8], offsets: npt.NDArray[np.int64], tags: Tags, *, short: bool) -> Text:
    """Return the visible text of pages, or reduced pages."""
    capacity = len(data) + 3 * len(tags.names) if short else len(data)
    text = Text(np.empty(capacity, np.uint8), np.empty(len(offsets), np.int64))
    kernels.html_text.write_texts(data, offsets, tags, short, text.data, text.offsets)
    return text


def _strings(text: Text) -> list[str]:
    limits = zip(text.offsets[:-1], text.offsets[1:], strict=True)
    return [text.data[first:stop].tobytes().decode("utf-8", "replace") for first, stop in limits]


def _resolve(text: str) -> str:
    """Return a text with its character references resolved."""
    if "&" not in text:
        return text
    # Python refuses to read numbers of thousands of digits; no character has one of 32.
    return html.unescape(_LONG_NUMBER.sub("\ufffd", text))


def _are_cheap(short: Text, sizes: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return which pages, given in short and by their size in bytes, resiliparse reads in time linear in the size."""
    elements = kernels.html_tree.elements_of(
        kernels.html_tokens.tags_of(short.data[: short.offsets[-1]], short.offsets)
    )
    depths = elements.depths[: elements.offsets[-1]]
    work = np.diff(offsets_from_lengths(depths + _LEVELS_PER_ELEMENT)[elements.offsets])
    too_deep = np.diff(offsets_from_lengths(depths > MAX_DEPTH)[elements.offsets]) > 0
    allowed = _LEVELS_PER_ELEMENT * (FREE_ELEMENTS + sizes // BYTES_PER_ELEMENT)
    cheap: npt.NDArray[np.bool_] = (work <= allowed) & ~too_deep
    return cheap


def _choose(content: str, text: str) -> str:
    """Return the main content of a page, or all its text where that cannot be it."""
    return text if len(content) < SHORT and len(content) * SHARE < len(text) else content or text


def _extractor() -> Callable[[str], str]:
    """Return the function that finds the main content of a page."""
    try:
        from resiliparse.extract.html2text import extract_plain_text
        from resiliparse.parse.html import HTMLTree
    except ImportError as error:
        raise MissingExtraError(
            "The main content of HTML pages needs the package resiliparse, which is not installed. "
            'Install it: pip install "neardup[web]". Or compare all text that pages show: html="all" (--html all).'
        ) from error

    def extract(page: str) -> str:
        # resiliparse 2.0 holds the interpreter's lock all the time: two threads are not faster than one.
        text: str = extract_plain_text(
            HTMLTree.parse(page),
            main_content=True,
            preserve_formatting=True,
            list_bullets=False,
            alt_texts=False,
            comments=False,
            post_meta=False,
        )
        return text.strip()

    return extract
