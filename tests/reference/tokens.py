"""What a token is, in the plainest Python: the twin of the text kernels.

Everything about a character comes from ``unicodedata`` here, not from the package's tables.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
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


def normalise(text: str, nfkc: bool, case_fold: bool, fold_chinese: bool) -> str:
    """Return the text as tokens see it."""
    if nfkc:
        text = unicodedata.normalize("NFKC", text)
    if case_fold:
        text = text.casefold()
    if nfkc and case_fold:
        text = unicodedata.normalize("NFKC", text)
    if fold_chinese:
        text = "".join(simplified_characters().get(character, character) for character in text)
    return text


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
    """Return the text without format characters and variation selectors."""
    return "".join(character for character in text if class_of(character) != TRANSPARENT)


@cache
def class_of(character: str) -> str:
    """Return the token class of a character."""
    category = unicodedata.category(character)
    name = unicodedata.name(character, "")
    if "VARIATION SELECTOR" in name or (category == "Cf" and name != "ZERO WIDTH SPACE"):
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
