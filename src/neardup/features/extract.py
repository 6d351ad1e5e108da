"""What of a document is compared: all of it, or the text of a page."""

from __future__ import annotations

import pyarrow as pa

from neardup.documents.page_text import texts_of_pages
from neardup.settings.shingling import Shingling


def readable(texts: pa.Array, shingling: Shingling) -> pa.Array:
    """Return the texts that are compared: those of HTML pages if `shingling.html` says so, else as they are.

    Raises
    ------
    MissingExtraError
        If the main text is asked for, and the package that finds it is not installed.
    """
    if shingling.html is None:
        return texts
    return texts_of_pages(texts, main=shingling.html == "main")
