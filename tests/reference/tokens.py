"""What a token is, in the plainest Python: the twin of the text kernels.

Everything about a character comes from ``unicodedata`` here, not from the package's tables.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

SEPARATOR = "separator"
WORD = "word"
SINGLE = "single"
TRANSPARENT = "transparent"

# The names of the letters and marks of the scripts that are written without spaces.
UNSPACED_NAMES = (
    "CJK UNIFIED IDEOGRAPH-",
    "CJK COMPATIBILITY IDEOGRAPH-",
    "IDEOGRAPHIC ",  # iteration mark, zero, tone marks
    "VERTICAL IDEOGRAPHIC ",
    "OLD CHINESE ITERATION MARK",
    "VIETNAMESE ALTERNATE READING MARK",
    "HANGZHOU NUMERAL",
    "MASU MARK",
    "HIRAGANA",
    "KATAKANA",  # with KATAKANA-HIRAGANA PROLONGED SOUND MARK
    "HENTAIGANA",
    "HALFWIDTH KATAKANA",
    "VERTICAL KANA REPEAT",
    "COMBINING KATAKANA-HIRAGANA",
    "BOPOMOFO ",
    "THAI ",
    "LAO ",
    "KHMER ",
    "MYANMAR ",
)


DEFAULT_IGNORABLE = frozenset(
    chr(code)
    for first, last in (
        # Default_Ignorable_Code_Point, DerivedCoreProperties.txt 15.1
        *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5)),
        *((0x180B, 0x180F), (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F)),
        *((0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0)),
        *((0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
    )
    for code in range(first, last + 1)
)
FILLERS = "\u115f\u1160\u3164\uffa0"  # Hangul: letters without NFKC


def normalise(
    text: str,
    nfkc: bool,
    case_fold: bool,
    fold: Sequence[str] = (),
    *,
    is_code: bool = False,
) -> str:
    """Return the text as tokens see it."""
    if "hyphens" in fold:
        text = join_lines(text)
    if not is_code:
        text = "".join(one for one in text if not is_dropped(one, nfkc))
    if nfkc:
        text = unicodedata.normalize("NFKC", text)
    if case_fold:
        text = text.casefold()
    if nfkc and case_fold:
        text = unicodedata.normalize("NFKC", text)
    text = "".join(folded(character, fold) for character in text)
    return move_tones(text) if "vietnamese" in fold else text


def is_dropped(character: str, nfkc: bool) -> bool:
    """Return whether a character is in no token."""
    if character in FILLERS:
        return nfkc
    return class_of(character) == TRANSPARENT


def join_lines(text: str) -> str:
    """Return the text with words joined that a hyphen divides at the end of a line."""
    joined = ""
    position = 0
    for found in re.finditer("[-\u2010\u00ad][ \t]*(?:\r\n|\r|\n)[ \t]*", text):
        before = text[found.start() - 1] if found.start() else " "
        after = text[found.end()] if found.end() < len(text) else " "
        if is_letter(before) and is_letter(after):
            joined += text[position : found.start()]
            position = found.end()
    return joined + text[position:]


def is_letter(character: str) -> bool:
    """Return whether a character next to a hyphen is part of a word: no digit of ASCII."""
    return character.isalpha() if character.isascii() else class_of(character) == WORD


ALEF = {"\u0622": "\u0627", "\u0623": "\u0627", "\u0625": "\u0627", "\u0671": "\u0627"}
YEH = {"\u0649": "\u064a", "\u06cc": "\u064a", "\u06d2": "\u064a", "\u06d3": "\u064a"}
HEH = {"\u0629": "\u0647", "\u06c0": "\u0647", "\u06c1": "\u0647", "\u06c2": "\u0647"}
KAF = {"\u06a9": "\u0643"}
ARABIC = {**ALEF, **YEH, **HEH, **KAF, "\u0640": ""}
GERMAN = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ẞ": "SS"}
TURKISH = {"ı": "i", "İ": "I", "\u0307": ""}
DROPPED_MARKS = {"arabic": "ARABIC ", "hebrew": "HEBREW ", "greek": "COMBINING GREEK "}


def folded(character: str, fold: Sequence[str]) -> str:
    """Return a normalised character as some languages fold it."""
    name = unicodedata.name(character, "")
    if unicodedata.category(character) == "Mn":
        begins = [DROPPED_MARKS[one] for one in fold if one in DROPPED_MARKS]
        if name.startswith(tuple(begins)):
            return ""
    maps = {"arabic": ARABIC, "german": GERMAN, "turkish": TURKISH}
    for one in fold:
        if character in maps.get(one, ()):
            return maps[one][character]
    if "chinese" in fold:
        character = simplified_characters().get(character, character)
    is_greek = name.startswith("GREEK ") and unicodedata.category(character)[0] == "L"
    if "greek" in fold and is_greek:
        plain = unicodedata.normalize("NFD", character)
        plain = "".join(one for one in plain if unicodedata.category(one) != "Mn")
        return plain.replace("ς", "σ")
    return character


def move_tones(text: str) -> str:
    """Return the text with the tone marks of Vietnamese on the second vowel of oa, oe and uy."""
    characters = list(text)
    for index, (first, second) in enumerate(pairwise(text)):
        letter, *tone = list(unicodedata.normalize("NFD", first))
        has_tone = len(tone) == 1 and tone[0] in "\u0300\u0301\u0309\u0303\u0323"
        if has_tone and (letter + second).lower() in ("oa", "oe", "uy"):
            characters[index] = letter
            characters[index + 1] = unicodedata.normalize("NFC", second + tone[0])
    return "".join(characters)


def words(text: str) -> list[str]:
    """Return the words of a normalised text: runs of word characters, and each single character."""
    found: list[str] = []
    run = ""
    for character in without_transparent(text):
        kind = class_of(character)
        if kind == WORD:
            run += character
            continue
        if run:
            found.append(run)
            run = ""
        if kind == SINGLE:
            found.append(character)
    if run:
        found.append(run)
    return found


def whitespace_words(text: str) -> list[str]:
    """Return what stands between whitespace in a normalised text; U+0000 counts as whitespace."""
    return without_transparent(text).replace("\0", " ").split()


def characters(text: str) -> list[str]:
    """Return the characters of a normalised text, each run of whitespace as one space, none at the
    ends.
    """
    return list(" ".join(whitespace_words(text)))


def letters(text: str) -> list[str]:
    """Return the letters and digits of a normalised text, those that are mistaken for each other as
    one.
    """
    return list(
        "".join(words(text)).replace("_", "").translate(str.maketrans("012589i", "olzsbgl"))
    )


def code(text: str) -> list[str]:
    """Return the tokens of source code, its comments' among them."""
    return _code(text, with_comments=True)


def uncommented(text: str) -> list[str]:
    """Return the tokens of source code but those of its comments."""
    return _code(text, with_comments=False)


_WORD = r"[0-9](?:[0-9A-Za-z_\x80-\U0010ffff]|\.(?=[0-9]))*|[A-Za-z_\x80-\U0010ffff][0-9A-Za-z_\x80-\U0010ffff]*"  # noqa: E501
_SIGN = r"[=!<>+\-*/%&|^:~]=|&&|\|\||\+\+|--|<<|>>|::|\*\*|//|\.\.|\?\?|[-=]>|[^\0-\x20]"
_STRING = "|".join(
    rf"{quote}(?:\\.|(?!{quote})[^\\{'' if len(quote) == 3 or quote == '`' else chr(10)}])*{quote}"
    for quote in ('"""', "'''", "`")
) + "".join(rf"|{one}(?!{one}{one})(?:\\.|[^\\\n{one}])*{one}" for one in "\"'")
_BLANK = r"[\0-\x20]+"


def _code(text: str, with_comments: bool) -> list[str]:
    """Read code kind by kind, with a regular expression each."""
    text = text.lstrip("\ufeff").replace("\r\n", "\n")
    text = "".join("\0" if one.isspace() and one > "\x7f" else one for one in text)
    lines = [re.sub(rf"\A{_BLANK}|{_BLANK}\Z", "", line) for line in text.split("\n")]
    braces, colons, slashes, hashes = (
        sum(re.search(sign, line) is not None for line in lines)
        for sign in (
            rf";\Z|(?:{_WORD}|\))(?:{_BLANK})?{{\Z",
            r":\Z",
            r"\A/[/*]",
            r"\A# [A-Z\x80-\U0010ffff]",
        )
    )
    has_braces = slashes > hashes or (slashes == hashes and braces > colons)
    remark = r"//[^\n]*|/\*(?:.*?\*/|.*)" if has_braces else r"#[^\n]*"
    found: list[str] = []
    depth = 0
    indented = None
    before = "\n"
    pattern = re.compile(rf"({_BLANK})|({remark})|({_STRING}|{_WORD}|{_SIGN})", re.DOTALL)
    for blank, comment, token in (match.groups() for match in pattern.finditer(text)):
        if blank:
            if "\n" in blank:
                line = re.search(r"\n[ \t]*(?=[^\n]*\Z)", blank)[0]
                indented = line if colons > braces and not has_braces and depth == 0 else None
            continue
        if comment and not with_comments:
            continue
        if indented is not None:
            found += [indented] if indented != before else []
            before = indented
            indented = None
        for part in [token] if token else re.findall(rf"{_WORD}|{_SIGN}", comment):
            found.append(part)
            depth = max(0, depth + (part in "([{") - (part in ")]}"))
    return found


def without_transparent(text: str) -> str:
    """Return the text without format characters and default ignorable ones."""
    return "".join(character for character in text if class_of(character) != TRANSPARENT)


@cache
def class_of(character: str) -> str:
    """Return the token class of a character."""
    category = unicodedata.category(character)
    name = unicodedata.name(character, "")
    is_ignorable = character in DEFAULT_IGNORABLE and character not in FILLERS
    if is_ignorable or category == "Cf":
        return TRANSPARENT
    if category[0] in "LM" or category == "Nl":
        return SINGLE if name.startswith(UNSPACED_NAMES) else WORD
    if category[0] == "N" or category == "Pc":
        return WORD
    return SEPARATOR


@cache
def simplified_characters() -> dict[str, str]:
    """Return OpenCC's simplified form of each traditional character, as the package carries it."""
    path = Path(__file__).parents[2] / "src" / "neardup" / "kernels" / "unicode_tables.npz"
    with np.load(path) as arrays:
        pairs = zip(arrays["chinese_from"].tolist(), arrays["chinese_to"].tolist(), strict=True)
        return {chr(traditional): chr(simplified) for traditional, simplified in pairs}
