"""The text of a document that is compared: all of it, or the text of a page."""

from __future__ import annotations

import pyarrow as pa

from neardup.documents.page_text import texts_of_pages
from neardup.settings.shingling import Shingling


def extract_text(texts: pa.Array, shingling: Shingling) -> pa.Array:
    """Return the texts that are compared: those of HTML pages if `shingling.html` asks for them, else the same.

    `shingle_documents` and all that cuts documents calls it, so that tags are never hashed as words; others call it
    to show a text.

    Raises
    ------
    MissingExtraError
        If the main text is requested, and the package that extracts it is not installed.
    """
    if shingling.html is None:
        return texts
    return texts_of_pages(texts, main=shingling.html == "main")
