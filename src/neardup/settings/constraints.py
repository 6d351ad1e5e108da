"""Constraints of parameters: declared with them, checked on construction, quoted in errors."""

from __future__ import annotations

import dataclasses
import difflib
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from reprlib import Repr
from typing import Any, TypeAlias

from neardup.errors import ColumnError, InputError, NeardupError, SettingError

ColumnNames: TypeAlias = str | Sequence[str] | None
"""A column, or several that are joined; None chooses one by its name."""
Options: TypeAlias = Mapping[str, Any]
"""Values of options, by the names of the parameters."""
MAX_AGE_S = 1e12
"""No age is as long, so that its microseconds fit into 64 bits."""
_REPR = Repr()
# A value in an error may be a whole text.
_REPR.maxstring = _REPR.maxother = 80


_STRINGS: dict[type, str] = {
    str: "a string",
    tuple: "a list of strings",
    list: "a string or a list of strings",
}


@dataclass(frozen=True)
class Constraint:
    """The accepted values of a parameter, and its help text.

    low, high, exclusive_min : the range of numbers. choices, numbers : the accepted strings or
    numbers, besides strings that begin with one of `prefixes`, lists of them with commas
    (`is_list`), None (`optional`), callables (`or_callable`) and instances of `also_accepts`.
    Choices of the type tuple are a set: a list, or a string with commas, becomes a tuple in the
    order of the choices. A list becomes a tuple where the type is one.
    sentinels : strings with a special meaning, if any string is accepted. python_only : choices
    that the command line does not offer. alias : another flag on the command line. flag : the flag,
    if it has another name than the parameter.
    """

    help: str
    value_type: type = float
    low: float | None = None
    high: float | None = None
    exclusive_min: float | None = None
    choices: Collection[str] = ()
    numbers: tuple[int, ...] = ()
    sentinels: tuple[str, ...] = ()
    python_only: tuple[str, ...] = ()
    prefixes: tuple[str, ...] = ()
    counted: tuple[str, ...] = ()
    optional: bool = False
    or_callable: bool = False
    is_list: bool = False
    also_accepts: type | None = None
    alias: str = ""
    flag: str = ""

    @property
    def is_set(self) -> bool:
        """True if a value is a tuple of choices, in their order."""
        return bool(self.choices) and self.value_type is tuple

    def describe(self) -> str:
        """Return the accepted values in words."""
        others = [f"a {self.also_accepts.__name__}"] if self.also_accepts is not None else []
        others += ["a callable"] * self.or_callable
        if self.choices:
            return self._describe_choices(others)
        if self.value_type is bool:
            return "True or False"
        if self.value_type in _STRINGS:
            kinds = [_STRINGS[self.value_type], *others, *["None"] * self.optional]
            return " or ".join(kinds)
        if self.numbers:
            return "one of " + ", ".join(map(str, self.numbers))
        return self._describe_range()

    def _describe_choices(self, others: list[str]) -> str:
        choices = [repr(choice) for choice in (*self.choices, *self.python_only)]
        choices += [f"'{prefix}COLUMN'" for prefix in self.prefixes]
        text = "one of " + " or ".join([", ".join(choices), *others])
        if self.is_list:
            text += ", or several, separated by commas"
        if self.is_set:
            text += ", or a list of several"
        if self.counted:
            plain = [word for word in (*self.choices, *self.prefixes) if word not in self.counted]
            text += (
                f"; the last one may have a number, as in '{self.counted[0]}:3' (not "
                f"{', '.join(plain)})"
            )
        return text

    def _describe_range(self) -> str:
        text = "a whole number" if self.value_type is int else "a number"
        if self.exclusive_min is not None:
            text += f" above {_number(self.exclusive_min)}"
        else:
            text += f" of {_number(self.low)} or more"
        if self.high is not None:
            text += f" and at most {_number(self.high)}"
        return text + " or None" if self.optional else text

    def without_count(self, value: str) -> tuple[str, int | None]:
        """Return a value without the number at its end, and the number; None if there is none."""
        words = "|".join(self.counted)
        # A column before the last comma may have a line end in its name.
        counted = re.fullmatch(rf"(?s)((?:.*,)?(?:{words})):([1-9][0-9]{{0,8}})", value)
        return (counted[1], int(counted[2])) if counted and self.counted else (value, None)

    def check(self, name: str, value: object, given: object = None) -> Any:
        """Return the value of a parameter, a scalar of NumPy as one of Python.

        given : the value as the caller wrote it. Raises SettingError if the value does not satisfy
        the constraint.
        """
        original = plain(value)
        value = self.in_order(original)
        if not self.accepts(value):
            choices = (*self.choices, *self.python_only)
            shown_value = original if given is None else given
            raise SettingError(
                f"{name} must be {self.describe()}: got "
                f"{shown(shown_value)}.{suggestion(original, choices)} {self.help} Change {name} "
                f"({self.flag or flag_of(name)})."
            )
        return value

    def in_order(self, value: Any) -> Any:
        """Return a set of choices, however it is written, as a tuple in their order, and a list of
        other strings as a tuple; other values unchanged.
        """
        if self.value_type is tuple and not self.is_set and isinstance(value, list):
            return tuple(value)
        several = [value] if isinstance(value, str) else value
        if not self.is_set or not isinstance(several, (list, tuple)):
            return value
        if not all(isinstance(word, str) for word in several):
            return value
        words = [word for each in several for word in each.split(",")]
        unknown = [word for word in words if word not in self.choices]
        ordered = tuple(unknown or [choice for choice in self.choices if choice in words])
        return value if value == ordered else ordered

    def accepts(self, value: object) -> bool:
        """Return whether a value satisfies the constraint."""
        if value is None:
            return self.optional
        if self.value_type is object:  # its class, or the code that opens it, checks it
            return True
        # `isinstance(value, ())` is False for every value.
        if isinstance(value, self.also_accepts or ()) or (self.or_callable and callable(value)):
            return True
        if self.is_set:
            return isinstance(value, tuple) and all(word in self.choices for word in value)
        if self.choices:
            return isinstance(value, str) and self._accepts_choices(value)
        if self.value_type in _STRINGS:
            return self._accepts_strings(value)
        # True is an integer in Python, but no number of a setting.
        if self.value_type is bool or isinstance(value, bool):
            return self.value_type is bool and isinstance(value, bool)
        return self._accepts_number(value)

    def _accepts_choices(self, value: str) -> bool:
        if not self.is_list:
            return self._accepts_choice(value)
        words = self.without_count(value)[0].split(",")
        return all(self._accepts_choice(word) for word in words)

    def _accepts_choice(self, word: str) -> bool:
        if word in self.choices or word in self.python_only:
            return True
        # The prefix alone names no column.
        return any(word.startswith(prefix) and word != prefix for prefix in self.prefixes)

    def _accepts_strings(self, value: object) -> bool:
        if isinstance(value, str):
            return value != "" and self.value_type is not tuple
        if self.value_type is str or not isinstance(value, self.value_type):
            return False
        assert isinstance(value, (list, tuple))
        return all(isinstance(word, str) and word for word in value)

    def _accepts_number(self, value: object) -> bool:
        # 1 is accepted as 1.0; 1.0 is no whole number.
        if not isinstance(value, int if self.value_type is int else (int, float)):
            return False
        if self.numbers:
            return value in self.numbers
        if value != value:  # NaN
            return False
        return (
            (self.low is None or value >= self.low)
            and (self.exclusive_min is None or value > self.exclusive_min)
            and (self.high is None or value <= self.high)
        )


def _number(value: float | None) -> str:
    """Return a limit with all digits: 4294967295, not 4.29497e+09."""
    return "any size" if value is None else str(int(value)) if value == int(value) else repr(value)


def parameter(
    default: Any, constraint: Constraint | str, value_type: type = float, **limits: Any
) -> Any:
    """Declare a field with its default and its constraint.

    constraint : the constraint, or its help text. value_type : the type of values if the default is
    None; otherwise values have the type of the default. limits : further fields of the constraint.
    """
    if isinstance(constraint, str):
        kind = value_type if default is None else type(default)
        constraint = Constraint(constraint, kind, optional=default is None, **limits)
    return dataclasses.field(default=default, metadata={"constraint": constraint})


def collection(help: str) -> Any:
    """Declare a field of a collection: paths on the command line, in Python any source."""
    return parameter(None, help, object, sentinels=("PATH...",))


def constraints_of(settings: type) -> dict[str, Constraint]:
    """Return the constraint of each parameter of a class of settings, by name."""
    # A field without a constraint is a mistake: a KeyError when the settings are first made.
    return {field.name: field.metadata["constraint"] for field in dataclasses.fields(settings)}


class Validated:
    """Base of the settings; checks every field against its constraint."""

    def __post_init__(self) -> None:
        for name, constraint in constraints_of(type(self)).items():
            # The class is frozen. The checked value replaces the given one: it may have been a
            # scalar of NumPy.
            object.__setattr__(self, name, constraint.check(name, getattr(self, name)))


def flag_of(name: str) -> str:
    """Return the option of a parameter on the command line."""
    return "--" + name.replace("_", "-")


def plain(value: Any) -> Any:
    """Return a scalar of NumPy, such as an item of an array, as a Python one; others unchanged."""
    # By the names, so that NumPy is not imported.
    is_scalar = type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
    # Dates and durations in nanoseconds would become integers, without their unit.
    return value.item() if is_scalar and value.dtype.kind not in "mM" else value


def suggestion(value: object, choices: Iterable[str]) -> str:
    """Return a sentence with the choice that is closest to a misspelt value, if one is."""
    if not isinstance(value, str):
        return ""
    near = difflib.get_close_matches(value.lower(), list(choices), 1)
    return f" Did you mean {near[0]!r}?" if near else ""


def check_text(name: str, value: object, advice: str = "") -> str:
    """Return the value of a parameter. Raises InputError, with an advice, if it is no text."""
    if not isinstance(value, str):
        raise InputError(
            f"{name} must be a string: got {type(value).__name__} {shown(value)}.{advice}"
        )
    try:
        # The quick test first; `encode` fails only at lone surrogates.
        value.isascii() or value.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            f"{name} must be Unicode text: {error}. Replace lone surrogates."
        ) from error
    return value


def check_path(name: str, path: object, error: type[NeardupError] = InputError) -> str:
    """Return a path or an address as a string. Raises the error if no file can have it."""
    # A path of bytes is refused below.
    text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else None
    try:
        # fsencode raises for a name that the file system cannot have.
        if isinstance(text, str) and "\0" not in text and os.fsencode(text):
            return text
    except UnicodeEncodeError:
        pass
    raise error(
        f"{name} must be a str or a pathlib.Path: got {shown(path)}. Name a file or a folder."
    )


def check_flag(name: str, value: object, advice: str = "") -> bool:
    """Return the value of a parameter. Raises SettingError if it is neither True nor False."""
    flag = plain(value)
    if not isinstance(flag, bool):
        raise SettingError(
            f"{name} must be True or False: got {shown(value)}. {advice or f'Change {name}.'}"
        )
    return flag


def check_columns(names: Any) -> list[str]:
    """Return the name of a column, or several, as a list. Raises ColumnError for other values."""
    several = list(names) if isinstance(names, (list, tuple)) and names else [names]
    for name in several:
        if not isinstance(name, str):
            raise ColumnError(
                f"The name of a column must be a string: got {shown(name)}. Name a column, or "
                "several."
            )
    return several


def check_kind(name: str, value: object, kind: Any, accepted: str) -> None:
    """Raise InputError if a value is no instance of a type; accepted : the type in words."""
    if not isinstance(value, kind):
        raise InputError(
            f"{name} must be {accepted}: got {type(value).__name__} {shown(value)}. Change {name}."
        )


def shown(value: object) -> str:
    """Return an object for a message, on one line, even if its own repr raises."""
    # Repr catches the errors of a `__repr__`.
    return " ".join(_REPR.repr(value).split())


def assignments(values: Options, names: Iterable[str]) -> str:
    """Return some of the values as a sentence has them: ngram=5, seed=1; None for a missing one."""
    return ", ".join(f"{name}={values.get(name)!r}" for name in names)


def without_none(options: Options) -> dict[str, Any]:
    """Return the options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def iterates_over_names(source: Any) -> bool:
    """Return whether the items of an object are the names of its columns or keys, not texts."""
    # DataFrames, tables and dicts, without importing their libraries.
    return hasattr(source, "columns") or hasattr(source, "keys")


def check_import_name(name: object) -> None:
    """Raise InputError if a value cannot name an import."""
    if not check_text("The name of an import", name):
        raise InputError("The name of an import must not be empty: got ''. Pass another name.")


def check_age(age: timedelta | float) -> int:
    """Return an age, a timedelta or seconds, in microseconds. Raises SettingError for others."""
    seconds = age.total_seconds() if isinstance(age, timedelta) else plain(age)
    is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
    if not is_number or not 0 <= seconds < MAX_AGE_S:
        raise SettingError(
            f"An age is a timedelta, or a number of seconds of 0 or more: got {shown(age)}. "
            "Change the age."
        )
    return int(seconds * 1_000_000)


def check_limit(limit: Any, name: str = "limit", least: int = 1, option: str = "") -> int:
    """Return a whole number of `least` or more. Raises SettingError if it is none.

    name : the name of the parameter. option : its option on the command line.
    """
    number = plain(limit)
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        change = f"{name} ({option})" if option else name
        raise SettingError(
            f"{name} must be a whole number of {least} or more: got {shown(limit)}. Change "
            f"{change}."
        )
    return number
