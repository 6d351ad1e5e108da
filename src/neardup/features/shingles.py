"""Turn texts into shingle hashes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import (
    Ints,
    Mask,
    arrow_of,
    arrow_of_strings,
    flatten_strings,
    offsets_from_lengths,
    read_only,
)
from neardup.documents.page_text import texts_of_pages
from neardup.features.normalise import normalise
from neardup.features.page_structure import shingle_pages
from neardup.features.segmenters import cutter_of
from neardup.features.token_lists import cut_documents, shingle_strings
from neardup.features.unicode_tables import MAX_GROWTH, load_tables
from neardup.features.workspaces import Workspace
from neardup.kernels.token_arrays import (
    Shingles,
    Tables,
    Text,
    longest_of,
    make_buffers,
    make_shingles,
)
from neardup.settings.methods import CODE_TOKENS, Shingling

# The tokens that a kernel cuts, in the order of its modes: WORDS to UNCOMMENTED of
# kernels/tokens.py.
_SCANNED = ("words", "whitespace", "chars", "letters", "code", "uncommented")
_MODES = {tokens: mode for mode, tokens in enumerate(_SCANNED)}


def shingle_documents(
    texts: pa.Array, shingling: Shingling, workspace: Workspace | None = None
) -> Shingles:
    """Return the shingle hashes and content hashes of a batch of documents.

    Parameters
    ----------
    texts : string array of any Arrow string type, shape (num_documents,); a null has no features.
        HTML pages if `shingling.html` is set.
    shingling : how texts become shingles.
    workspace : memory for the hashes, which are valid until it is used again. None for new memory.

    Returns
    -------
    Shingles
        With num_documents rows: `hashes` in the order of the text with repeats, `offsets`, and
        `content`, a 128-bit hash of the token sequence. The content hash of a document without
        features is undefined.
    """
    if shingling.tokens == "tags":
        return shingle_pages(texts, shingling.ngram)
    texts = extract_text(texts, shingling)
    cut = cutter_of(shingling)
    if cut is not None:
        return shingle_strings(cut_documents(texts, cut, shingling), shingling.ngram)
    whole = _shingle(scan_strings(texts, shingling), shingling.ngram, workspace or Workspace())
    if not whole.flagged.any():
        return whole
    # A workspace of its own: `whole` still uses the other.
    part = _shingle(scan_flagged(texts, whole.flagged, shingling), shingling.ngram, Workspace())
    return _splice(whole, part, np.flatnonzero(whole.flagged))


class Scan(NamedTuple):
    """Arguments of the kernels that cut texts: the texts, the tables of their normal form, and the
    mode (see kernels/tokens.py).
    """

    text: Text
    tables: Tables
    mode: int


def _shingle(scan: Scan, ngram: int, workspace: Workspace) -> Shingles:
    """Return the shingles of texts that a kernel cuts; some may be flagged."""
    num_documents = len(scan.text.offsets) - 1
    # The worst case: each byte of the normal form is a token. Room for it costs nothing: the system
    # allocates no page before it is written.
    max_hashes = MAX_GROWTH * len(scan.text.data) + num_documents
    shingles = make_shingles(workspace.hashes(max_hashes), num_documents)
    buffers = make_buffers(longest_of(scan.text))
    kernels.tokens.shingle_text(scan.text, scan.tables, scan.mode, ngram, buffers, shingles)
    return shingles.trim()


def _splice(whole: Shingles, part: Shingles, documents: Ints) -> Shingles:
    """Replace the shingles of some documents of `whole` by the rows of `part`."""
    counts = np.diff(whole.offsets)
    counts[documents] = np.diff(part.offsets)
    offsets = offsets_from_lengths(counts)
    # Between two replaced documents, the hashes of `whole` are copied in one slice.
    pieces = []
    num_done = 0  # hashes of `whole` that are copied or replaced
    for row, document in enumerate(documents):
        pieces.append(whole.hashes[num_done : whole.offsets[document]])
        pieces.append(part.hashes[part.offsets[row] : part.offsets[row + 1]])
        num_done = whole.offsets[document + 1]
    pieces.append(whole.hashes[num_done:])
    hashes = np.concatenate(pieces)
    content = whole.content.copy()
    content[documents] = part.content
    return whole._replace(hashes=hashes, offsets=offsets, content=content)


def extract_text(texts: pa.Array, shingling: Shingling) -> pa.Array:
    """Return the texts to compare: the text of HTML pages if `shingling.html` is set, otherwise the
    same texts.

    `shingle_documents` and all other functions that cut documents call it, so that tags are never
    hashed as words. Displays call it for the text to show.

    Raises
    ------
    MissingExtraError
        If the main text is requested, and the package that extracts it is not installed.
    """
    if shingling.html is None:
        return texts
    return texts_of_pages(texts, main=shingling.html == "main")


def is_scanned(shingling: Shingling) -> bool:
    """Return whether a kernel cuts texts by these settings. It is so fast that cutting texts again
    takes less time than to store their hashes on a disk.
    """
    tokens = shingling.tokens
    return shingling.html is None and isinstance(tokens, str) and tokens in _MODES


def scan_of(texts: pa.Array, shingling: Shingling) -> Scan | None:
    """Return the arguments of the kernel that cuts texts; None if Python cuts them, or if they are
    pages cut into tags.

    Parameters
    ----------
    texts : string array of any Arrow string type; a null has no features.
    shingling : how texts become shingles.
    """
    if shingling.tokens == "tags" or cutter_of(shingling) is not None:
        return None
    return scan_strings(extract_text(texts, shingling), shingling)


def scan_strings(texts: pa.Array, shingling: Shingling, *, normalised: bool = False) -> Scan:
    """Return the arguments of the kernel that cuts strings. normalised : whether the strings are
    normalised and folded already.
    """
    mode = _MODES[str(shingling.tokens)]
    text = Text(*flatten_strings(texts))
    if normalised:
        tables = _tables(mode, nfkc=False, case_fold=False, fold=())
    else:
        if "hyphens" in shingling.fold:
            text = _join_lines(text)
        tables = _tables(
            mode, nfkc=shingling.nfkc, case_fold=shingling.case_fold, fold=shingling.fold
        )
    return Scan(text=text, tables=tables, mode=mode)


def scan_flagged(texts: pa.Array, flagged: Mask, shingling: Shingling) -> Scan:
    """Return the scan of the flagged texts: Python normalises them, the kernel cannot."""
    chosen = texts.filter(arrow_of(flagged))
    normalised = [normalise(text, shingling) for text in chosen.to_pylist()]
    return scan_strings(arrow_of_strings(normalised), shingling, normalised=True)


def _join_lines(text: Text) -> Text:
    """Return texts with words joined that a hyphen divides at the end of a line."""
    entries = load_tables(nfkc=False, case_fold=False).entries
    # Most batches have none and are not copied.
    if not kernels.line_ends.has_breaks(text, entries):
        return text
    joined = Text(np.empty(len(text.data), np.uint8), np.empty(len(text.offsets), np.int64))
    size = kernels.line_ends.join_lines(text, entries, joined)
    return joined._replace(data=read_only(joined.data[:size]))


@cache
def _tables(mode: int, *, nfkc: bool, case_fold: bool, fold: Sequence[str]) -> Tables:
    """Return the tables of the kernels: of Unicode, and of ASCII for their fast path.

    fold : a tuple, since the tables are cached.
    """
    tables = load_tables(nfkc=nfkc, case_fold=case_fold, fold=fold)
    tokens = _SCANNED[mode]
    # By code: the byte of the normal form, or 0 if the character separates tokens. U+0000 always
    # does.
    ascii_bytes = np.zeros(128, np.uint8)
    for code in range(1, 128):
        character = chr(code)
        if tokens in ("words", "letters"):
            separates = not (character.isalnum() or character == "_")
        else:
            separates = character.isspace() and tokens not in CODE_TOKENS
        if not separates:
            ascii_bytes[code] = ord(character.casefold() if case_fold else character)
    return Tables(
        entries=tables.entries,
        expansions=tables.expansions,
        ascii=ascii_bytes,
        comments=tokens == "code" if tokens in CODE_TOKENS else None,
    )
