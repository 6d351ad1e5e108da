"""The texts of two documents that a comparison shows."""

from __future__ import annotations

import pytest

from neardup.settings.methods import Shingling
from neardup.verify.comparison import shown

PAGES = ("<p>one <b>two</b></p>", "<p>three</p>")


@pytest.mark.parametrize(
    ("html", "texts"), [(None, PAGES), ("all", ("one two", "three"))], ids=["texts", "pages"]
)
def test_pages_are_shown_by_their_text_and_texts_as_they_are(html, texts):
    found = shown(*PAGES, Shingling(html=html))
    assert tuple(text.strip() for text in found) == texts
