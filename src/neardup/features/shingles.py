"""Turn texts into shingle hashes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from queue import Empty, LifoQueue
from typing import Generic, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from neardup import kernels
from neardup.arrays import (
    Ints,
    Mask,
    Words,
    arrow_of,
    arrow_of_strings,
    flatten_strings,
    offsets_from_lengths,
)
from neardup.documents.page_text import texts_of_pages
from neardup.features.normalise import normalise
from neardup.features.page_structure import shingle_pages
from neardup.features.segmenters import cutter_of
from neardup.features.token_lists import cut_documents, shingle_strings
from neardup.features.unicode_tables import load_tables
from neardup.kernels.token_arrays import (
    Shingles,
    Tables,
    Text,
    longest_of,
    make_buffers,
    make_shingles,
)
from neardup.settings.methods import CODE_TOKENS, Shingling

T = TypeVar("T")
_CUT = ("words", "whitespace", "chars", "letters", "code", "uncommented")
_MODES = {name: mode for mode, name in enumerate(_CUT)}  # WORDS to UNCOMMENTED of kernels/tokens.py


class Workspace:
    """Memory for the hashes of one batch at a time, kept between batches: fresh pages cost as much
    as hashing.
    """

    def __init__(self) -> None:
        self._hashes = np.empty(0, np.uint64)

    def hashes(self, count: int) -> Words:
        """Return an array of at least `count` hashes, whatever it holds."""
        if len(self._hashes) < count:
            self._hashes = np.empty(count, np.uint64)
        return self._hashes


class Workspaces(Generic[T]):
    """Workspaces for a pool of threads, as many as are in use at once. make : returns one."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._free: LifoQueue[T] = LifoQueue()

    @contextmanager
    def borrow(self) -> Iterator[T]:
        """Lend a workspace until the end of the block."""
        try:
            workspace = self._free.get_nowait()
        except Empty:
            workspace = self._make()
        yield workspace
        self._free.put(workspace)


class Scan(NamedTuple):
    """Texts that a kernel cuts, the tables of their normal form, and how they are cut: see
    kernels/tokens.py.
    """

    text: Text
    tables: Tables
    mode: int


def is_scanned(shingling: Shingling) -> bool:
    """Return whether a kernel cuts texts by these settings: faster than a disk stores their
    hashes.
    """
    return (
        shingling.html is None and isinstance(shingling.tokens, str) and shingling.tokens in _MODES
    )


def extract_text(texts: pa.Array, shingling: Shingling) -> pa.Array:
    """Return the texts that are compared: those of HTML pages if `shingling.html` asks for them,
    else the same.

    `shingle_documents` and all that cuts documents calls it, so that tags are never hashed as
    words; others call it to show a text.

    Raises
    ------
    MissingExtraError
        If the main text is requested, and the package that extracts it is not installed.
    """
    if shingling.html is None:
        return texts
    return texts_of_pages(texts, main=shingling.html == "main")


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
    """Return the arguments of the kernel that cuts strings. normalised : whether only Chinese
    characters are folded.
    """
    mode = _MODES[str(shingling.tokens)]
    nfkc, case_fold = (False, False) if normalised else (shingling.nfkc, shingling.case_fold)
    return Scan(
        Text(*flatten_strings(texts)), _tables(nfkc, case_fold, shingling.fold_chinese, mode), mode
    )


def scan_flagged(texts: pa.Array, flagged: Mask, shingling: Shingling) -> Scan:
    """Return the scan of the flagged texts, which are normalised as a whole."""
    normalised = [
        normalise(text, shingling) for text in texts.filter(arrow_of(flagged)).to_pylist()
    ]
    return scan_strings(arrow_of_strings(normalised), shingling, normalised=True)


def shingle_documents(
    texts: pa.Array, shingling: Shingling, workspace: Workspace | None = None
) -> Shingles:
    """Return the shingle hashes and content hashes of a batch of documents.

    Parameters
    ----------
    texts : string array of any Arrow string type, shape (num_documents,); a null has no features.
        Pages where `shingling.html` asks for their text.
    shingling : how texts become shingles.
    workspace : where the hashes are written; valid until it is used again. None for memory of their
        own.

    Returns
    -------
    Shingles, with num_documents rows: `hashes` in the order of the text with repeats, `offsets`,
        and `content`, a
    128-bit hash of the token sequence; the content hash of a document without features means
    nothing.
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
    part = _shingle(scan_flagged(texts, whole.flagged, shingling), shingling.ngram, Workspace())
    return _splice(whole, part, np.flatnonzero(whole.flagged))


def _shingle(scan: Scan, ngram: int, workspace: Workspace) -> Shingles:
    num_documents = len(scan.text.offsets) - 1
    # Room for the worst case costs nothing: memory that is never written is never given out.
    shingles = make_shingles(
        workspace.hashes(3 * len(scan.text.data) + num_documents), num_documents
    )
    kernels.tokens.shingle_text(*scan, ngram, make_buffers(longest_of(scan.text)), shingles)
    return shingles.trim()


def _splice(whole: Shingles, part: Shingles, documents: Ints) -> Shingles:
    """Put the shingles of some documents in the place of what `whole` has for them."""
    counts = np.diff(whole.offsets)
    counts[documents] = np.diff(part.offsets)
    offsets = offsets_from_lengths(counts)
    hashes = np.empty(offsets[-1], np.uint64)
    source = 0
    for index, document in enumerate(documents):
        stop = whole.offsets[document]
        hashes[offsets[document] - (stop - source) : offsets[document]] = whole.hashes[source:stop]
        hashes[offsets[document] : offsets[document + 1]] = part.hashes[
            part.offsets[index] : part.offsets[index + 1]
        ]
        source = whole.offsets[document + 1]
    hashes[len(hashes) - (len(whole.hashes) - source) :] = whole.hashes[source:]
    content = whole.content.copy()
    content[documents] = part.content
    return whole._replace(hashes=hashes, offsets=offsets, content=content)


@cache
def _tables(nfkc: bool, case_fold: bool, fold_chinese: bool, mode: int) -> Tables:
    tables = load_tables(nfkc=nfkc, case_fold=case_fold, fold_chinese=fold_chinese)
    ascii_bytes = np.zeros(128, np.uint8)
    for code in range(128):
        character = chr(code)
        if _CUT[mode] in ("words", "letters"):
            separates = not (character.isalnum() or character == "_")
        else:
            separates = character.isspace() and _CUT[mode] not in CODE_TOKENS
        if not separates and code:
            ascii_bytes[code] = ord(character.casefold() if case_fold else character)
    return Tables(tables.entries, tables.expansions, ascii_bytes)
