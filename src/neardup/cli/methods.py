"""The options of the methods: a command has all, and accepts the options of one method."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from neardup.cli.config import reported_for_another
from neardup.cli.settings import Decorator, Function, composed, option, setting_option
from neardup.errors import SettingError
from neardup.settings.constraints import Options, constraints_of, flag_of
from neardup.settings.jieba import JIEBA
from neardup.settings.methods import METHODS, Jieba, MethodSettings, Shingling, name_of
from neardup.settings.methods import method as settings_of
from neardup.settings.presets import NOISE, PRESET

_METHOD = "Method"
_TEXT = tuple(constraints_of(Shingling))
_TYPES: list[type[MethodSettings]] = list(
    # Several names, such as content and page, have one type.
    dict.fromkeys(type(settings) for settings in METHODS.values())
)
_OPTIONS = dict.fromkeys(
    name for kind in _TYPES for name in constraints_of(kind) if name not in _TEXT
)
"""The settings of all methods, besides those of texts."""
_STORED = {name for kind in _TYPES for name in kind.stored_options}
_ALL = ("method", "preset", "noise", *_TEXT, *_OPTIONS, *JIEBA)


def method_options(function: Function) -> Function:
    """Add --method, and the options of every method and of its text; an option not given is
    None.
    """
    return _options_of(
        list(METHODS),
        [name for name in _OPTIONS if name not in _STORED],
        "Compare texts by sets of shingles (minhash) or fingerprints of weighted words (simhash); "
        "web pages by the template (structure), the main text (content), both (page), or "
        "fingerprints of the template (tags; of the literature: decay, paths); or vectors by their "
        "cosine (vectors).  [default: minhash]",
    )(text_options(function))


def sketch_options(function: Function) -> Function:
    """Add --method, and the options that change the sketches of `sign`; an option not given is
    None.
    """
    return _options_of(
        [name for name, settings in METHODS.items() if settings.has_sketch],
        list(dict.fromkeys(name for kind in _TYPES for name in kind.sketch_options)),
        "Signatures of sets of shingles: of a text (minhash), the template (structure) or the main "
        "text (content) of a page; or fingerprints of weighted words (simhash), tags (tags, decay, "
        "paths) or vectors (vectors).  [default: minhash]",
    )(text_options(function, methods=("minhash", "simhash")))


def stored_options(function: Function) -> Function:
    """Add the options that change only the contents of an index; an option not given is None."""
    return composed(
        *_below_headings(list(METHODS), [name for name in _OPTIONS if name in _STORED])
    )(function)


def _options_of(methods: Sequence[str], names: Sequence[str], help: str) -> Decorator:
    """Return a decorator that adds --method, of these methods, --preset, --noise, and options of
    them.
    """
    return composed(
        option("--method", _METHOD, help, type=click.Choice(methods)),
        setting_option("preset", None, PRESET, _METHOD),
        option("--noise SHARE", _METHOD, NOISE.help),
        *_below_headings(methods, names),
    )


def _below_headings(methods: Sequence[str], names: Sequence[str]) -> Iterator[Decorator]:
    """Yield options below the headings of their methods; options of several methods come first."""
    # False sorts first: options of several methods come before the options below one heading.
    for name in sorted(names, key=lambda name: len(_kinds_with(name)) == 1):
        first, *others = _kinds_with(name)
        words = ", ".join(word for word in methods if isinstance(METHODS[word], first))
        section = _METHOD if others else f"{first.__name__} (--method {words})"
        shown = _default_text(name, methods)
        yield setting_option(name, None, constraints_of(first)[name], section, shown_default=shown)


def _kinds_with(name: str) -> list[type[MethodSettings]]:
    """Return the types of settings that have a setting."""
    return [kind for kind in _TYPES if name in constraints_of(kind)]


def text_options(function: Function, *, methods: Sequence[str] = tuple(METHODS)) -> Function:
    """Add the options that cut a text into features; an option not given is None."""
    options = []
    for name in _TEXT:
        known = (constraints_of(kind)[name] for kind in _kinds_with(name))
        # SimHash accepts more tokens than the others: the option accepts all, and a method refuses
        # tokens that it lacks.
        constraint = max(known, key=lambda one: len(one.choices))
        options.append(
            setting_option(
                name, None, constraint, "Text", shown_default=_default_text(name, methods)
            )
        )
    for name, field in JIEBA.items():
        constraint = constraints_of(Jieba)[field]
        shown = _value_text(Jieba(), field)
        # click gives an empty tuple for a repeatable option, not None.
        default = () if constraint.value_type is tuple else None
        section = "Chinese words (--tokens jieba)"
        options.append(setting_option(name, default, constraint, section, shown_default=shown))
    return composed(*options)(function)


def build_method(values: dict[str, Any], default: str = "minhash") -> MethodSettings:
    """Return the method that a command was given, or the default, taking its options out of the
    values.

    Raises
    ------
    SettingError
        If an option belongs to another method, or to Chinese words without --tokens jieba.
    """
    # Before anything is taken out: these values count as not given.
    values |= reported_for_another([*_TEXT, *_OPTIONS, *JIEBA])
    start = values.pop("method", None) or default
    method = type(METHODS[start])
    preset = values.pop("preset", None)
    noise = values.pop("noise", None)
    chinese = {field: values.pop(name) for name, field in JIEBA.items()}
    # Only options that were given: the defaults of Jieba itself fill in the rest.
    chinese = {name: value for name, value in chinese.items() if value not in (None, ())}
    names = {*_TEXT, *_OPTIONS} & values.keys()
    given = {name: value for name in names if (value := values.pop(name)) not in (None, ())}
    # Here, not by the settings: the sentence names the method that has the option.
    _refuse_options_of_others(method, given)
    if chinese:
        _refuse_chinese_without_jieba(chinese, given)
        given["tokens"] = Jieba(**chinese)
    return settings_of(start, preset=preset, noise=noise, **given)


def _refuse_options_of_others(method: type[MethodSettings], given: Options) -> None:
    """Raise SettingError if an option belongs to another method."""
    for name in sorted(given):
        if name not in constraints_of(method):
            other = name_of(_kinds_with(name)[0].__name__)
            raise SettingError(
                f"{flag_of(name)} belongs to --method {other}: got it with {method.__name__}. Add "
                f"--method {other}, or leave {flag_of(name)} out."
            )


def _refuse_chinese_without_jieba(chinese: Options, given: Options) -> None:
    """Raise SettingError if options of Chinese words are given without --tokens jieba."""
    if given.get("tokens") != "jieba":
        flag = next(flag_of(name) for name, field in JIEBA.items() if field in chinese)
        raise SettingError(
            f"{flag} requires --tokens jieba: got --tokens {given.get('tokens', 'words')}. Add "
            f"--tokens jieba, or leave {flag} out."
        )


def is_method_given(values: Options) -> bool:
    """Return whether a command was given a method or an option of one."""
    return any(values.get(name) not in (None, ()) for name in _ALL)


def build_methods(values: dict[str, Any], names: Sequence[str]) -> dict[str, MethodSettings]:
    """Return several methods by their names, and take their options out of the values."""
    fields = {name: constraints_of(type(METHODS[name])).keys() for name in names}
    taken = {field for name in names for field in fields[name]}

    def values_of(name: str) -> dict[str, Any]:
        # Options of other methods in the comparison count as not given, and are not refused.
        others = taken - fields[name]
        # A copy for each method: `build_method` takes options out.
        own = {key: None if key in others else value for key, value in values.items()}
        return own | {"method": name}

    methods = {name: build_method(values_of(name)) for name in names}
    for name in _ALL:
        values.pop(name, None)
    return methods


def _default_text(name: str, methods: Sequence[str]) -> str | None:
    """Return the default of a setting in the methods that have it, and differing defaults; None if
    no method has a default.
    """
    values = {
        word: _value_text(METHODS[word], name)
        for word in methods
        if name in constraints_of(type(METHODS[word]))
    }
    named = {word: value for word, value in values.items() if value is not None}
    if not named:
        return None
    word, first = next(iter(named.items()))
    different = [f"{other}: {value}" for other, value in named.items() if value != first]
    # MinHash is the default method, so its value needs no name; nor does one that all methods have.
    is_common = not different and len(named) == len(values)
    if is_common or word == "minhash":
        return "; ".join([first, *different])
    return "; ".join(f"{other}: {value}" for other, value in named.items())


def _value_text(settings: object, name: str) -> str | None:
    """Return the value of a setting as the help shows it, None for none or no."""
    default = getattr(settings, name)
    if default is None or default == () or default is False:
        return None
    return "yes" if default is True else str(default)
