"""The text of HTML pages."""

from __future__ import annotations

import pyarrow as pa

from neardup.errors import MissingExtraError


def texts_of_pages(pages: pa.Array, *, main: bool) -> pa.LargeStringArray:
    """Return the text of HTML pages; null stays null.

    main : without navigation, footers and other boilerplate, where the page has a main part.
    """
    try:
        from resiliparse.extract.html2text import extract_plain_text
    except ImportError as error:
        raise MissingExtraError(
            "The text of pages needs the package resiliparse, which is not installed. Install it: "
            'pip install "neardup[web]".'
        ) from error
    texts = [None if page is None else extract_plain_text(page, main_content=main) for page in pages.to_pylist()]
    return pa.array(texts, pa.large_string())
