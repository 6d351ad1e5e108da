"""Format sentences, numbers and texts: for the terminal, and escaped for the page."""

from __future__ import annotations

import json
import re
import string
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from html import escape
from importlib.resources import files
from itertools import chain
from typing import Any

from neardup.files import parse_toml, read_text
from neardup.settings.constraints import Options
from neardup.settings.methods import CODE_TOKENS, PAGE_TOKENS

_LANGUAGES = ("en", "zh")
_LANGUAGE = ContextVar("language", default="en")

_CONTROLS = (  # noqa: SIM905 - as a list, one name a line
    "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN "
    "EM SUB ESC FS GS RS US"
).split()
# Control characters except tab and line feed, line separators, the byte order mark, lone
# surrogates, and the bidirectional overrides that would reorder the text around them. Joiners and
# directional marks stay: scripts need them.
_HIDDEN = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"  # noqa: E501


@contextmanager
def speaking(language: str | None) -> Iterator[None]:
    """Set the language of the sentences that are written inside: en, or zh; None leaves it as it
    is.
    """
    before = _LANGUAGE.set(language or _LANGUAGE.get())
    try:
        yield
    finally:
        _LANGUAGE.reset(before)


def speak(language: str | None) -> None:
    """Set the language of the sentences from here on, within `speaking`; None leaves it as it
    is.
    """
    _LANGUAGE.set(language or _LANGUAGE.get())


@cache
def _table(name: str) -> dict[str, Any]:
    """Return a file of sentences."""
    return parse_toml(read_text(files("neardup.report").joinpath(name)))


@cache
def sentences() -> dict[str, dict[str, str]]:
    """Return the sentences of `sentences.toml` in each language, by table and name:
    "headline.nothing".
    """
    tables = _table("sentences.toml")
    rows = [
        (f"{table}.{name}", both)
        for table, entries in tables.items()
        for name, both in entries.items()
    ]
    return {
        language: {key: both[column] for key, both in rows}
        for column, language in enumerate(_LANGUAGES)
    }


class _Sentence(string.Formatter):
    """Fills in a sentence; {read:document} is a count with its noun, {read:-document} the noun
    alone.
    """

    def format_field(self, value: Any, spec: str) -> str:
        if spec[:1] == "-":
            return noun(value, spec[1:])
        return plural(value, spec) if len(spec) > 1 and spec[0].isalpha() else format(value, spec)


def say(key: str, default: str | None = None, /, **values: Any) -> str:
    """Return a sentence in the language of the page, filled in with values.

    default : returned if there is no such sentence; without it, that is a KeyError.
    """
    written = sentences()[_LANGUAGE.get()]
    if default is not None and key not in written:
        return default
    # A mapping, so that a sentence may leave out values, or name one twice.
    return _Sentence().vformat(written[key], (), values)


def for_terminal(message: str) -> str:
    """Return a message of the library as the command line prints it: with options, in the language
    of the page.

    "Pass id_column=None (--id-column NAME)" becomes "Pass --id-column NAME". A sentence that
    errors.toml does not have stays English.
    """
    return translated(re.sub(_PARAMETER, _option_of, message))


def for_page(message: str) -> str:
    """Return a message of the library as a page shows it: as it is, or in Chinese, with options."""
    return message if _LANGUAGE.get() == "en" else for_terminal(message)


_PARAMETER = r"(?P<parameter>(?P<name>\w+)(=[^ ()]+|\([^()]*\))?) \((\w+, )?(?P<option>--[^()]*)\)"


def _option_of(found: re.Match[str]) -> str:
    # "in_format (--in-format)" becomes "--in-format".
    named = found["option"].startswith("--" + found["name"].replace("_", "-"))
    return (
        found["option"]
        if named or found["parameter"] != found["name"]
        else f"{found['name']} ({found['option']})"
    )


_DOCUMENT_SUFFIXES = "docx|docm|dotx|dotm|odt|ott|epub|pdf|eml|mbox"
_KINDS = {
    "unread": rf".+?\.(?i:{_DOCUMENT_SUFFIXES})(?i:\.gz|\.zst|\.bz2|\.xz)?",
    "num": r"[\d.,e+-]+",
    "size": r"[\d.,]+ (?:[kMGT]B|bytes|字节)",
    "share": r"[<> \d.,]+ %",
}
"""The pattern of the values of a field, by the beginning of its name."""
# Names that the user chose are never translated.
_CHOSEN = ("unread", "path", "name", "id", "columns", "input", "example", "method")


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """Return the English sentences of errors.toml and tables.toml as patterns, with their
    translations.
    """
    pairs = chain(*_table("errors.toml").values(), *_table("tables.toml").values())
    return [(_pattern_of(english), chinese) for english, chinese in pairs]


def _pattern_of(english: str) -> re.Pattern[str]:
    """Return the pattern of a sentence, with a group for each of its fields, such as {path}."""
    pattern = ""
    known = set[str]()
    # `split` also returns the captured text: parts of the sentence and names of fields in turn.
    for number, part in enumerate(re.split(r"{(\w+)}", english)):
        is_field = number % 2 == 1
        if not is_field:
            pattern += re.escape(part)
        elif part in known:
            # A group is defined once; later occurrences equal it.
            pattern += f"(?P={part})"
        else:
            pattern += f"(?P<{part}>{_kind_of(part)})"
            known.add(part)
    return re.compile(pattern, re.DOTALL)


def _kind_of(field: str) -> str:
    """Return the pattern of the values of a field."""
    return next((kind for name, kind in _KINDS.items() if field.startswith(name)), ".+?")


def translated(message: str) -> str:
    """Return an English message in the language of the page, and the parts that fill it in, if
    tables have them.
    """
    if _LANGUAGE.get() == "en":
        return message
    for pattern, chinese in _patterns():
        found = pattern.fullmatch(message)
        if found is not None:
            parts = found.groupdict().items()
            return chinese.format(
                # Parts may be sentences themselves, such as the reason of an error.
                **{name: part if name in _CHOSEN else translated(part) for name, part in parts}
            )
    return message


def words(*names: str) -> list[str]:
    """Return words of the page; an empty string for an empty name."""
    return [say(f"words.{name}") if name else "" for name in names]


def what_copies_share(settings: Options, tokens: object) -> str:
    """Return the common part of copies, by the settings and the tokens of a method."""
    if tokens in PAGE_TOKENS:
        return say("copies.tags")
    if tokens in CODE_TOKENS:
        return say("copies.code")
    case = say("copies.case") if settings.get("case_fold", True) else ""
    if tokens == "letters":
        return say("copies.letters", case=case)
    # A method without tokens compares the content.
    text = say("copies.words", case=case) if tokens is not None else say("copies.content")
    if tokens in ("chars", "whitespace"):
        text = say("copies.text")
    return text if settings.get("min_structure") is None else text + say("copies.in_tags")


def percent(share: float) -> str:
    """Return a share as a percentage that shows 0 % or 100 % only for these values."""
    if share <= 0 or share >= 1:
        return f"{share * 100:.0f} %"
    text = f"{share * 100:.1f}"
    # Rounding must not make a share look like none or all.
    return {"0.0": "< 0.1 %", "100.0": "> 99.9 %"}.get(text, f"{text} %")


def duration(seconds: float) -> str:
    """Return seconds in readable units: 3.1 s, 12 min 5 s, 1 h 40 min."""
    if seconds < 120:
        return f"{seconds:.3g} s" if seconds < 100 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min {rest} s"


_UNITS = {"T": 1e12, "G": 1e9, "M": 1e6, "k": 1e3}


def memory(num_bytes: float) -> str:
    """Return bytes in decimal units: 412.0 MB."""
    for unit, limit in _UNITS.items():
        if num_bytes >= limit:
            return f"{num_bytes / limit:,.1f} {unit}B"
    return f"{num_bytes:,.0f} {say('words.bytes')}"


def short(value: float) -> str:
    """Return a number in at most five characters: 812, 1.5k, 12.3k, 4.56M."""
    for unit, limit in _UNITS.items():
        if value >= limit:
            scaled = value / limit
            # `.3g` would write 999.7 as 1e+03.
            return f"{scaled:.0f}{unit}" if scaled >= 100 else f"{scaled:.3g}{unit}"
    return f"{value:.0f}"


def plural(count: int, word: str) -> str:
    """Return a count with its noun: 1 copy, 2 copies."""
    if count == 1:
        return f"1 {word}"
    is_consonant_y = re.search("[^aeiou]y$", word) is not None
    return f"{count:,} {word[:-1]}ies" if is_consonant_y else f"{count:,} {word}s"


def noun(count: int, word: str) -> str:
    """Return a noun for a count that is written elsewhere: copy, copies."""
    return plural(count, word).partition(" ")[2]


def shortened(text: str, most: int) -> str:
    """Return text of at most `most` characters, the last one an ellipsis if it is cut."""
    return text if len(text) <= most else text[: most - 1] + "…"


def shortened_in_the_middle(text: str, most: int) -> str:
    """Return text of at most `most` characters, cut in its middle: names differ at their ends.

    Examples
    --------
    >>> shortened_in_the_middle("usr/share/licenses/GPL-2", 13)
    'usr/sh…/GPL-2'
    """
    if len(text) <= most:
        return text
    num_last = (most - 1) // 2
    return f"{text[: most - 1 - num_last]}…{text[len(text) - num_last :]}"


def visible(text: object) -> str:
    """Return text with each hidden character replaced by its name, as in [NUL] or [U+202E]."""
    return re.sub(_HIDDEN, lambda found: _name(found[0]), str(text))


def _name(character: str) -> str:
    code = ord(character)
    return f"[{_CONTROLS[code]}]" if code < len(_CONTROLS) else f"[U+{code:04X}]"


def setting(value: object) -> str:
    """Return a setting as readable HTML."""
    if value is None or isinstance(value, bool):
        return say({True: "words.yes", False: "words.no", None: "words.not_set"}[value])
    written = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    )
    return escape_text(written)


def document_id(name: str, most: int | None = None) -> str:
    """Return the name of a document or input as HTML, cut in its middle to at most `most`
    characters.
    """
    shown = name if most is None else shortened_in_the_middle(name, most)
    return f'<bdi class="id">{escape_text(shown, lines=False)}</bdi>'


def escape_text(text: object, *, lines: bool = True) -> str:
    """Return text for HTML with hidden characters shown; and tabs and line ends too, unless `lines`
    is set.
    """
    plain = str(text)
    escaped = ""
    position = 0
    for run in re.finditer(_HIDDEN if lines else rf"{_HIDDEN}|[\t\n]", plain):
        escaped += (
            f'{escape(plain[position : run.start()])}<span class="hidden">{_name(run[0])}</span>'
        )
        position = run.end()
    return escaped + escape(plain[position:])
