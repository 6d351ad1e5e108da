"""Count the words of a corpus that hyphens divide at the ends of lines."""

from __future__ import annotations

import pyarrow as pa

from neardup import kernels
from neardup.arrays import flatten_strings
from neardup.documents.batch import DividedWords
from neardup.features.unicode_tables import load_tables
from neardup.kernels.token_arrays import Text
from neardup.settings.methods import CODE_TOKENS, PAGE_TOKENS, Shingling

_SAMPLE = 1_000  # documents that are looked at, the first of a run
# With a divided word in 1,000 bytes, each of them changes 5 of 170 shingles: the similarity to a
# text without divided words is 0.94.
_BYTES_PER_WORD = 1_000
_MIN_WORDS = 10
_UNDIVIDED = (*PAGE_TOKENS, *CODE_TOKENS, "letters")
"""Tokens that no hyphen divides, or that are no words of a text."""


def count_divided_words(texts: pa.Array, shingling: Shingling, counted: DividedWords) -> None:
    """Add the words of the first documents to the counts, which are complete after 1,000 of them.

    Settings that divide no word count nothing.
    """
    may_be_divided = "hyphens" not in shingling.fold and shingling.tokens not in _UNDIVIDED
    num_rows = min(len(texts), _SAMPLE - counted.documents)
    if not may_be_divided or shingling.html is not None or num_rows <= 0:
        return
    text = Text(*flatten_strings(texts.slice(0, num_rows)))
    entries = load_tables(nfkc=False, case_fold=False).entries
    counted.words += kernels.line_ends.count_breaks(text, entries)
    counted.documents += num_rows
    counted.text_bytes += int(text.offsets[-1] - text.offsets[0])


def warn_of_divided_words(counted: DividedWords) -> list[str]:
    """Return a warning if many words are divided."""
    if counted.words < max(_MIN_WORDS, counted.text_bytes / _BYTES_PER_WORD):
        return []
    return [
        f"{counted.words:,} words of the first {counted.documents:,} documents are divided by "
        "hyphens at the ends of lines, and differ from the same words in other lines. Set "
        "fold='hyphens' (--fold hyphens) to join them."
    ]
