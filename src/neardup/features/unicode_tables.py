"""Load the tables by which kernels normalise text and separate tokens, one code point at a time.

The normalisation N drops the transparent characters, and is then NFKC(casefold(NFKC(text))) with
both options, NFKC or casefold with one, and the identity with none. The foldings of languages map
each character of the result to none, one or several. An entry word holds

==========  =======================================================================================
bits 0-20   the code point that the character becomes; with EXPAND, an index ``i`` into
            ``expansions``, where the low 8 bits of ``expansions[i]`` are a count and as many words
            follow, each the entry of a resulting code point
bits 21-22  token class of the result: SEPARATOR, WORD, SINGLE, TRANSPARENT
bit 23      EXPAND: the character becomes none or several (bits 21, 22, 24 are 0 here, and set in
            the expansion), or its tone mark may move
bit 24      WHITESPACE: ``str.isspace`` of the result; also of U+0000, which kernels keep for
            themselves
bit 25      COMPOSE: the result may depend on the neighbours; never set in an expansion
bits 26-31  rank of the result's canonical combining class; 0 for class 0. With EXPAND, of its last
            code point
==========  =======================================================================================

**Token classes.** WORD: letters, numbers, marks and connecting punctuation (categories L, N, M,
Pc); words are runs of them. SINGLE: letters, marks and letter-like numbers (L, M, Nl) of the
scripts written without spaces: Han, Hiragana, Katakana, Bopomofo, Thai, Lao, Khmer, Myanmar; each
is a token. Digits are WORD in every script. TRANSPARENT: format characters (Cf) and the default
ignorable code points, as toNFKC_Casefold drops them (U+200B, U+00AD, joiners, variation selectors);
they do not end a word. Hangul fillers are TRANSPARENT with NFKC only. SEPARATOR: all others, with
surrogates, noncharacters, private and unassigned code points.

**Tone marks** (folding `vietnamese`). A vowel whose tone mark moves to an a, e or y after it has an
expansion of one word; the bits above the count are the number of pairs after it, of three words
each: the ASCII byte of the second vowel, and the entries of both vowels::

    1 | num_pairs << 8 | ò || a | o | à || e | o | è ||

**The invariant.** In a document in which no character has COMPOSE, and in which no character of
nonzero rank is followed, at once or after transparent ones, by one of a smaller nonzero rank,
mapping each character alone gives N(document). Any other document must be normalised by
``unicodedata`` and folded, and then be read with ``load_tables(nfkc=False, case_fold=False)``.

Notes
-----
Unicode Standard Annex 15, section 9: a text whose characters all answer Yes to the NFKC quick
check, and whose combining classes never fall, is in NFKC. COMPOSE marks a character whose result
starts with a character that answers Maybe; a Maybe inside an expansion has met its neighbour
already. So the joined results are in NFKC after each of the two NFKC steps, and equal to the result
of the step for the whole text. COMPOSE also marks a character whose result has more than
``MAX_GROWTH`` times its UTF-8 bytes, whose combining classes are not the same at both steps, or
whose result starts with a mark and goes on. ``tests/features/test_unicode_tables.py`` tests the
claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from neardup.arrays import Mask, Uint16s, Uint32s

LOW_MASK = 0x1FFFFF
CLASS_SHIFT = 21
CLASS_MASK = 3
EXPAND = 1 << 23
WHITESPACE = 1 << 24
COMPOSE = 1 << 25
RANK_SHIFT = 26
COUNT_MASK = 0xFF
"""The bits of a count in `expansions`; those above are a number of pairs of vowels."""
PAIRS_SHIFT = 8
PLAIN = LOW_MASK | CLASS_MASK << CLASS_SHIFT | WHITESPACE
"""The bits of the entry of a character that is mapped alone, to one character."""

SEPARATOR = 0
WORD = 1
SINGLE = 2
TRANSPARENT = 3

_PAGE_SIZE = 128
NUM_CODE_POINTS = 0x110000
MAX_GROWTH = 3
"""No result without COMPOSE has more than this many times the UTF-8 bytes of its character."""

_OF_CHARACTERS = ("chinese", "arabic", "hebrew", "greek", "turkish", "vietnamese", "german")
"""The foldings of characters; the others need whole texts."""

_PATH = Path(__file__).resolve().parent.parent / "kernels" / "unicode_tables.npz"


class UnicodeTables(NamedTuple):
    """The table of one normalisation; both arrays are read-only."""

    entries: Uint32s
    """Shape (0x110000,): the entry word of each code point."""
    expansions: Uint32s
    """Counts, each followed by that many entry words, and perhaps by pairs of vowels; never
    empty.
    """


def load_tables(*, nfkc: bool, case_fold: bool, fold: Sequence[str] = ()) -> UnicodeTables:
    """Return the tables of a normalisation, shared: about 4.5 MB for each combination of options
    used.

    Parameters
    ----------
    nfkc : compatibility composition (Unicode Standard Annex 15). Without it, no entry has COMPOSE
        or a rank.
    case_fold : full case folding, as `str.casefold`.
    fold : the foldings of languages, after the other two. Foldings of other kinds are ignored.
    """
    return _load(nfkc, case_fold, tuple(name for name in fold if name in _OF_CHARACTERS))


@cache
def _load(nfkc: bool, case_fold: bool, fold: tuple[str, ...]) -> UnicodeTables:
    name = f"nfkc{nfkc:d}_fold{case_fold:d}"
    with np.load(_PATH, allow_pickle=False) as arrays:
        pages: Uint16s = arrays[f"{name}_pages"]
        relative: Uint32s = arrays[f"{name}_entries"]
        expansions: Uint32s = arrays[f"{name}_expansions"]
    entries = _make_absolute(pages, relative)
    if fold:
        expansions = _fold(entries, expansions, _results_of(fold, case_fold))
    if not len(expansions):
        expansions = np.zeros(1, np.uint32)
    for array in (entries, expansions):
        array.flags.writeable = False
    return UnicodeTables(entries, expansions)


@cache
def folded_characters(fold: tuple[str, ...]) -> dict[int, str]:
    """Return the map of foldings for `str.translate`: the characters that change alone."""
    folded: dict[int, str] = {}
    with np.load(_PATH, allow_pickle=False) as arrays:
        for name in fold:
            # Hyphens and tone marks depend on other characters.
            if f"{name}_from" not in arrays:
                continue
            ends = np.cumsum(arrays[f"{name}_sizes"]).tolist()
            text = "".join(map(chr, arrays[f"{name}_to"].tolist()))
            results = [text[start:end] for start, end in pairwise([0, *ends])]
            folded |= zip(arrays[f"{name}_from"].tolist(), results, strict=True)
    return folded


@cache
def moved_tones() -> dict[str, str]:
    """Return the pairs of Vietnamese vowels with the tone mark on the first, each with the pair
    that has it on the second.
    """
    with np.load(_PATH, allow_pickle=False) as arrays:
        rows = arrays["vietnamese_pairs"].tolist()
    return {
        chr(first) + chr(second): chr(moved_first) + chr(moved_second)
        for first, second, moved_first, moved_second in rows
    }


def code_points(text: str) -> Uint32s:
    """Return the code points of a text, halves of surrogate pairs among them: shape
    (len(text),).
    """
    data = text.encode("utf-32-le", "surrogatepass")
    return np.frombuffer(data, "<u4").astype(np.uint32, copy=False)


def classes_of(entries: Uint32s) -> Uint32s:
    """Return the token class of each entry."""
    return entries >> np.uint32(CLASS_SHIFT) & np.uint32(CLASS_MASK)


def unicode_version() -> str:
    """Return the version of the Unicode Character Database in the tables, such as ``"15.1.0"``."""
    with np.load(_PATH, allow_pickle=False) as arrays:
        return ".".join(str(part) for part in arrays["unicode_version"])


def _make_absolute(pages: Uint16s, relative: Uint32s) -> Uint32s:
    """Return one entry per code point; in the file the low bits are relative to it, modulo
    2**21.
    """
    entries = relative.reshape(-1, _PAGE_SIZE)[pages].reshape(-1)
    low = np.arange(NUM_CODE_POINTS, dtype=np.uint32)
    low += entries
    low &= np.uint32(LOW_MASK)
    low |= entries & ~np.uint32(LOW_MASK)
    return low


def _results_of(fold: tuple[str, ...], case_fold: bool) -> dict[int, list[int]]:
    """Return the expansion of each character that foldings change."""
    entry_of = _load(False, False, ()).entries & np.uint32(PLAIN)
    results = {
        code: [len(result), *(int(entry_of[ord(character)]) for character in result)]
        for code, result in folded_characters(fold).items()
    }
    if "vietnamese" not in fold:
        return results
    for vowels, moved in moved_tones().items():
        if case_fold and not vowels.islower():
            continue
        vowel = ord(vowels[0])
        expansion = results.setdefault(vowel, [1, int(entry_of[vowel])])
        seconds = {vowels[1], vowels[1].upper()} if case_fold else {vowels[1]}
        for second in sorted(seconds):
            expansion[0] += 1 << PAIRS_SHIFT
            expansion += [ord(second), *(int(entry_of[ord(character)]) for character in moved)]
    return results


def _fold(entries: Uint32s, expansions: Uint32s, results: dict[int, list[int]]) -> Uint32s:
    """Replace the characters that foldings change in `entries`, in place; return new expansions.

    Flags and ranks stay: they are about the text before it is folded.
    """
    is_changed = np.zeros(NUM_CODE_POINTS, np.bool_)
    is_changed[list(results)] = True
    is_expanded = entries & np.uint32(EXPAND) != 0
    low = entries & np.uint32(LOW_MASK)
    words, index_of = _fold_expansions(expansions, results)
    _replace(entries, is_expanded, index_of, LOW_MASK)

    replacements: dict[int, int] = {}
    is_replaced = is_changed[low] & ~is_expanded
    for code in np.unique(low[is_replaced]).tolist():
        result = results[code]
        if result[0] == 1:
            replacements[code] = result[1]
        else:
            replacements[code] = EXPAND | len(words)
            words += result
    _replace(entries, is_replaced, replacements, PLAIN)
    return np.array(words, np.uint32)


def _replace(entries: Uint32s, chosen: Mask, replacements: dict[int, int], bits: int) -> None:
    """Replace bits of the chosen entries by a word for their low bits, in place."""
    old = entries[chosen]
    low = (old & np.uint32(LOW_MASK)).tolist()
    new = np.array([replacements[code] for code in low], np.uint32)
    entries[chosen] = old & ~np.uint32(bits) | new


def _fold_expansions(
    expansions: Uint32s, results: dict[int, list[int]]
) -> tuple[list[int], dict[int, int]]:
    """Return expansions with folded characters, and the new index of each."""
    words: list[int] = []
    index_of: dict[int, int] = {}
    old = expansions.tolist()
    start = 0
    while start < len(old):
        stop = start + 1 + old[start]
        index_of[start] = len(words)
        parts = [_folded_words(word, results) for word in old[start + 1 : stop]]
        folded = [word for part in parts for word in part]
        words += [len(folded), *folded]
        start = stop
    return words, index_of


def _folded_words(word: int, results: dict[int, list[int]]) -> list[int]:
    """Return the words of a character inside an expansion once it is folded."""
    result = results.get(word & LOW_MASK)
    # The tone mark of a vowel with pairs stays: no character expands to such a vowel at its end.
    return [word] if result is None else result[1 : 1 + (result[0] & COUNT_MASK)]
