"""Turn texts into shingle hashes."""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.arrays import arrow_of, arrow_of_strings, flatten_strings
from neardup.features.normalise import normalise
from neardup.features.page_structure import shingle_pages
from neardup.features.segmenters import cutter_of
from neardup.features.token_lists import cut_documents, shingle_strings
from neardup.features.unicode_tables import load_tables
from neardup.kernels.token_arrays import Shingles, Tables, Text, make_buffers
from neardup.shingling import Shingling

_MODES = {"words": 0, "whitespace": 1, "chars": 2}  # WORDS, WHITESPACE, CHARACTERS of kernels/tokens.py


class Workspace:
    """Memory for the hashes of one batch at a time, kept between batches: fresh pages cost as much as hashing."""

    def __init__(self) -> None:
        self._hashes = np.empty(0, np.uint64)

    def hashes(self, count: int) -> npt.NDArray[np.uint64]:
        """Return an array of at least `count` hashes, whatever it holds."""
        if len(self._hashes) < count:
            self._hashes = np.empty(count, np.uint64)
        return self._hashes


def shingle_documents(
    texts: pa.Array, shingling: Shingling, workspace: Workspace | None = None, *, as_sets: bool = False
) -> Shingles:
    """Return the shingle hashes and content hashes of a batch of documents.

    Parameters
    ----------
    texts : string array of any Arrow string type, shape (num_documents,); a null has no features.
    shingling : how texts become shingles.
    workspace : where the hashes are written; valid until it is used again. None for memory of their own.
    as_sets : whether only the sets of hashes are wanted, for MinHash: repeats may be left out, `content` is empty.

    Returns
    -------
    Shingles, with num_documents rows: `hashes` in the order of the text with repeats, `offsets`, and `content`, a
    128-bit hash of the token sequence; the content hash of a document without features means nothing.
    """
    if shingling.tokens == "tags":
        return shingle_pages(texts, shingling.ngram)
    cut = cutter_of(shingling)
    if cut is not None:
        return shingle_strings(cut_documents(texts, cut, shingling), shingling.ngram)
    mode = _MODES[str(shingling.tokens)]
    text = Text(*flatten_strings(texts))
    tables = _tables(shingling.nfkc, shingling.case_fold, shingling.fold_chinese, mode)
    whole = _shingle(text, tables, mode, shingling.ngram, workspace or Workspace(), as_sets)
    if not whole.flagged.any():
        return whole
    flagged = texts.filter(arrow_of(whole.flagged)).to_pylist()
    normalised = arrow_of_strings([normalise(one, shingling) for one in flagged])
    plain = _tables(False, False, shingling.fold_chinese, mode)
    part = _shingle(Text(*flatten_strings(normalised)), plain, mode, shingling.ngram, Workspace(), as_sets)
    return _splice(whole, part, np.flatnonzero(whole.flagged))


def _shingle(text: Text, tables: Tables, mode: int, ngram: int, workspace: Workspace, as_sets: bool) -> Shingles:
    from neardup.kernels import tokens as kernel

    num_documents = len(text.offsets) - 1
    longest = int(np.diff(text.offsets).max(initial=0))
    # Room for the worst case costs nothing: memory that is never written is never given out.
    shingles = _empty(workspace.hashes(3 * len(text.data) + num_documents), num_documents, as_sets)
    kernel.shingle_text(text, tables, mode, ngram, make_buffers(longest), shingles)
    return shingles._replace(hashes=shingles.hashes[: shingles.offsets[-1]])


def _empty(hashes: npt.NDArray[np.uint64], num_documents: int, as_sets: bool) -> Shingles:
    offsets = np.empty(num_documents + 1, np.int64)
    content = np.empty((0 if as_sets else num_documents, 2), np.uint64)
    return Shingles(hashes, offsets, content, np.zeros(num_documents, np.bool_))


def _splice(whole: Shingles, part: Shingles, documents: np.ndarray) -> Shingles:
    """Put the shingles of some documents in the place of what `whole` has for them."""
    counts = np.diff(whole.offsets)
    counts[documents] = np.diff(part.offsets)
    offsets = np.zeros_like(whole.offsets)
    np.cumsum(counts, out=offsets[1:])
    hashes = np.empty(offsets[-1], np.uint64)
    source = 0
    for index, document in enumerate(documents):
        stop = whole.offsets[document]
        hashes[offsets[document] - (stop - source) : offsets[document]] = whole.hashes[source:stop]
        hashes[offsets[document] : offsets[document + 1]] = part.hashes[part.offsets[index] : part.offsets[index + 1]]
        source = whole.offsets[document + 1]
    hashes[len(hashes) - (len(whole.hashes) - source) :] = whole.hashes[source:]
    content = whole.content.copy()
    if len(content):
        content[documents] = part.content
    return whole._replace(hashes=hashes, offsets=offsets, content=content)


@cache
def _tables(nfkc: bool, case_fold: bool, fold_chinese: bool, mode: int) -> Tables:
    tables = load_tables(nfkc=nfkc, case_fold=case_fold, fold_chinese=fold_chinese)
    ascii_bytes = np.zeros(128, np.uint8)
    for code in range(128):
        character = chr(code)
        separates = character.isspace() if mode else not (character.isalnum() or character == "_")
        if not separates and code:
            ascii_bytes[code] = ord(character.casefold() if case_fold else character)
    return Tables(tables.entries, tables.expansions, ascii_bytes)
