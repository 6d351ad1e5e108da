"""The options of the methods: every command has all of them, and accepts those of the requested method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import click

from neardup.cli.settings import Function, option, setting_option
from neardup.errors import SettingError
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import MethodSettings, MinHash, SimHash
from neardup.settings.presets import METHODS, SKETCHES
from neardup.settings.shingling import Jieba, Shingling

_METHOD = "Method"
_TEXT = tuple(constraints_of(Shingling))
_SIGNATURE = ("num_hashes", "seed")
_FINGERPRINT = ("bits", "weights", "decay", "idf", "max_features", "weight_levels", "hash", "scheme")
JIEBA = {
    "jieba_mode": "mode", "hmm": "hmm", "user_dict": "user_dict", "add_word": "words", "stop_words": "stop_words",
    "part_of_speech": "parts_of_speech",
}  # fmt: skip


def method_options(function: Function) -> Function:
    """Add --method, and the options of every method and of its text; those not given are None."""
    shared = [name for name in constraints_of(MinHash) if name in constraints_of(SimHash) and name not in _TEXT]
    sections = {
        "SimHash (--method simhash, decay, paths)": [
            name for name in constraints_of(SimHash) if name not in constraints_of(MinHash)
        ],
        "MinHash (--method minhash, structure, content, page)": [
            name for name in constraints_of(MinHash) if name not in constraints_of(SimHash) and name != "num_hashes"
        ],
        _METHOD: shared,
    }
    function = text_options(function)
    for section, names in sections.items():
        for name in reversed(names):
            owner = MinHash if name in constraints_of(MinHash) else SimHash
            function = setting_option(
                name, None, constraints_of(owner)[name], section, shown_default=_default_text(name, *METHODS)
            )(function)
    return option(
        "--method", type=click.Choice(list(METHODS)), section=_METHOD,
        help="For texts: compare sets of shingles (minhash) or fingerprints of weighted words (simhash). For web "
        "pages: compare the template (structure), the main text (content), both (page), or the template by two "
        "methods of the literature (decay, paths).  [default: minhash]",
    )(function)  # fmt: skip


def sketch_options(function: Function) -> Function:
    """Add --method, and the options of MinHash signatures and SimHash fingerprints; those not given are None."""
    function = text_options(function, methods=("minhash", "simhash"))
    sections = (
        ("SimHash (--method simhash, structure, decay, paths)", _FINGERPRINT, SimHash, "simhash"),
        ("MinHash (--method minhash, content)", _SIGNATURE, MinHash, "minhash"),
    )
    for section, names, owner, method in sections:
        for name in reversed(names):
            shown = "128" if name == "num_hashes" else _default_text(name, method)
            function = setting_option(name, None, constraints_of(owner)[name], section, shown_default=shown)(function)
    return option(
        "--method", type=click.Choice(list(SKETCHES)), section=_METHOD,
        help="For texts: signatures of sets of shingles (minhash) or fingerprints of weighted words (simhash). For "
        "web pages: signatures of the main text (content) or fingerprints of the template (structure, or two methods "
        "of the literature: decay, paths).  [default: minhash]",
    )(function)  # fmt: skip


def text_options(function: Function, *, methods: tuple[str, ...] = tuple(METHODS)) -> Function:
    """Add the options that cut a text into features; those not given are None."""
    for name in reversed(JIEBA):
        constraint = constraints_of(Jieba)[JIEBA[name]]
        default = () if constraint.value_type is tuple else None
        shown = _value_text(Jieba(), JIEBA[name])
        function = setting_option(name, default, constraint, "Chinese words (--tokens jieba)", shown_default=shown)(
            function
        )
    for name in reversed(_TEXT):
        shown = _default_text(name, *methods)
        owner = SimHash if name == "tokens" else Shingling  # which has tokens that MinHash has not
        function = setting_option(name, None, constraints_of(owner)[name], "Text", shown_default=shown)(function)
    return function


def build_method(values: dict[str, Any], default: str = "minhash") -> MethodSettings:
    """Return the method that a command was given, or the default, taking its options out of the values.

    Raises
    ------
    SettingError
        If an option belongs to another method, or to Chinese words without --tokens jieba.
    """
    return _with_options(METHODS[values.pop("method", None) or default], values)


def is_method_given(values: dict[str, Any]) -> bool:
    """Return whether a command was given a method or an option of one."""
    names = ("method", *JIEBA, *constraints_of(MinHash), *constraints_of(SimHash))
    return any(values.get(name) not in (None, ()) for name in names)


def _with_options(start: MethodSettings, values: dict[str, Any]) -> MethodSettings:
    """Return settings with the given options in place of their values."""
    method = type(start)
    chinese = {field: values.pop(name) for name, field in JIEBA.items()}
    chinese = {name: value for name, value in chinese.items() if value not in (None, ())}
    names = {name for settings in (MinHash, SimHash) for name in constraints_of(settings)} & values.keys()
    given = {name: value for name in names if (value := values.pop(name)) is not None}
    for name in sorted(given):
        if name not in constraints_of(method):
            other = "simhash" if method is MinHash else "minhash"
            raise SettingError(
                f"{_flag(name)} belongs to --method {other}: got it with {method.__name__}. Add --method {other}, or "
                f"leave {_flag(name)} out."
            )
    if chinese and given.get("tokens") != "jieba":
        flag = next(_flag(name) for name, field in JIEBA.items() if field in chinese)
        raise SettingError(
            f"{flag} requires --tokens jieba: got --tokens {given.get('tokens', 'words')}. Add --tokens jieba, or "
            f"leave {flag} out."
        )
    if chinese:
        given["tokens"] = Jieba(**chinese)
    return replace(start, **given)


def build_methods(values: dict[str, Any], names: Sequence[str]) -> dict[str, MethodSettings]:
    """Return several methods by their names, taking their options out of the values; each gets those that it has."""
    fields = {name: constraints_of(type(METHODS[name])).keys() for name in names}
    taken = {field for name in names for field in fields[name]}

    def values_of(name: str) -> dict[str, Any]:
        others = taken - fields[name]
        return {key: None if key in others else value for key, value in values.items()} | {"method": name}

    methods = {name: build_method(values_of(name)) for name in names}
    for name in ("method", *JIEBA, *constraints_of(MinHash), *constraints_of(SimHash)):
        values.pop(name, None)
    return methods


def build_sketch(values: dict[str, Any], default: str = "minhash") -> MethodSettings:
    """Return the settings of signatures or fingerprints that a command was given, as `build_method` does."""
    return _with_options(SKETCHES[values.pop("method", None) or default], values)


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _default_text(name: str, *methods: str) -> str | None:
    """Return the default of a setting, and that of each method where they differ."""
    values = {word: _value_text(METHODS[word], name) for word in methods if name in constraints_of(type(METHODS[word]))}
    first, *others = values.items()
    different = [f"{word}: {value}" for word, value in others if value != first[1]]
    own = f"{first[0]}: " if different and first[0] != "minhash" else ""
    return "; ".join([f"{own}{first[1]}", *different]) if first[1] else None


def _value_text(settings: object, name: str) -> str | None:
    default = getattr(settings, name)
    if default is None or default == () or default is False:
        return None
    return "yes" if default is True else str(default)
