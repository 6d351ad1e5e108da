"""Build the options of commands from the settings of the library, and the help from the options."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from itertools import takewhile
from types import ModuleType
from typing import Any, Protocol, TypeVar

import click

from neardup.report.wording import speak
from neardup.settings.constraints import Constraint, constraints_of, flag_of

Function = TypeVar("Function", bound=Callable[..., Any])


class Decorator(Protocol):
    """Adds options to a command."""

    def __call__(self, function: Function, /) -> Function: ...


class Named(os.PathLike[str]):
    """A path, pattern or address just as it was typed: never taken for a text, its slashes never
    merged.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __fspath__(self) -> str:
        return self.name


PRINTING = "Printing"
_NAMES_WIDTH = 22  # characters of the option names in the help; longer names get their own line

# Keys of `Context.meta`.
GIVEN = "neardup.given"  # the names of the parameters on the command line
_ALL = "neardup.help_all"  # whether the help shows all options
_SET = "neardup.set."  # prefix of the options of printing, see `is_set`


_TYPE_NAMES: dict[type, str] = {str: "text", int: "integer"}


class SettingType(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A value within the limits of a setting; numbers may be written 1e6 or 1_000_000."""

    def __init__(self, constraint: Constraint) -> None:
        # A command line has no Python objects.
        self.constraint = dataclasses.replace(
            constraint, or_callable=False, also_accepts=None, python_only=(), optional=False
        )
        self.name = _TYPE_NAMES.get(constraint.value_type, "number")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value. Fails with the accepted values."""
        parsed = value
        # A default, or a value of a TOML file, is a number already.
        if isinstance(value, str) and self.constraint.value_type not in (str, tuple):
            parsed = parse_number(value, whole=self.constraint.value_type is int)
        if isinstance(value, str) and self.constraint.value_type is tuple:
            parsed = self.constraint.in_order(value)
        # None, if the word is no number, is not accepted: `optional` was taken out above.
        if not self.constraint.accepts(parsed):
            self.fail(f"must be {self.constraint.describe()}: got {value!r}.", param, ctx)
        return parsed

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[Any]:
        """Offer the words that are accepted."""
        # Loaded only by a shell that completes words.
        from click.shell_completion import CompletionItem

        words = (
            *self.constraint.choices,
            *map(str, self.constraint.numbers),
            *self.constraint.prefixes,
        )
        return [CompletionItem(word) for word in words if word.startswith(incomplete)]


_LANGUAGE = Constraint(
    "The language of output: English, or simplified Chinese, the default of commands in a Chinese "
    "locale.",
    str,
    choices=("en", "zh"),
)
COUNT = SettingType(Constraint("", int, low=1))
"""A whole number of 1 or more."""


class SectionOption(click.Option):
    """An option with a heading in the help."""

    def __init__(self, *args: Any, section: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.section = section


def option(
    shown: str, section: str, help: str, name: str | None = None, **settings: Any
) -> Decorator:
    """Return a decorator that adds an option.

    Parameters
    ----------
    shown : the option in the help, such as "-o, --output FILE": its flags, and a word for the
        value, with dots if it may be repeated. With neither a word nor a type, it is a switch.
    section : the heading in the help.
    help : the sentence in the help.
    name : the name of the parameter. Default: the last flag.
    settings : other arguments of click.option.
    """
    words = shown.split()
    flags = [word.rstrip(",") for word in words if word.startswith("-")]
    value = words[-1] if len(words) > len(flags) else None
    # A word in capitals after the flags is the placeholder of the value; without one the option is
    # a switch.
    if value is None and "type" not in settings:
        settings["is_flag"] = True
    elif value is not None:
        settings |= {"metavar": value.removesuffix("..."), "multiple": value.endswith("...")}
    # 0 equals False here: a default of 0 is not shown either.
    settings.setdefault("show_default", settings.get("default") not in (None, False, ()))
    declarations = [*flags, name] if name else flags
    return click.option(*declarations, cls=SectionOption, section=section, help=help, **settings)


class Command(click.Command):
    """A command whose --help shows the common options, and --help-all all options below headings.

    common : the names of the parameters that --help shows, besides printing; all if empty.
    greedy : a flag that takes all words up to the next flag, such as the files to which the shell
    expands a pattern.
    """

    def __init__(self, *args: Any, common: str = "", greedy: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.common = common.split()
        self._greedy = greedy
        # A command with reports has an own --lang, which is one of its settings.
        if not any(param.name == "lang" for param in self.params):
            setting_option("lang", None, _LANGUAGE, PRINTING, expose_value=False)(self)
        if common:
            eager: dict[str, Any] = {
                "is_eager": True,
                "expose_value": False,
                "callback": _print_help_all,
            }
            option("--help-all", PRINTING, "Show all options and exit.", **eager)(self)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an option that takes one value is refused if it is given twice."""
        self._repeat_greedy(args)
        # Parsed twice: click keeps only the last value of an option, so that the first parser finds
        # the options in `given`, and click's own method then sets their values.
        try:
            _, _, given = self.make_parser(ctx).parse_args(args=list(args))
        except click.BadOptionUsage as error:
            # click leaves the context out: the error would name the help of another command.
            error.ctx = ctx
            raise
        ctx.meta[GIVEN] = {param.name for param in given}
        for param, times in Counter(given).items():
            if not isinstance(param, click.Option) or param.multiple or param.is_flag:
                continue
            # A shell that completes words shows no errors.
            if times > 1 and not ctx.resilient_parsing:
                raise click.UsageError(
                    f"{max(param.opts, key=len)} takes one value: got {times}. Give it once.", ctx
                )
        return super().parse_args(ctx, args)

    def _repeat_greedy(self, args: list[str]) -> None:
        """Repeat the greedy flag before each of its words: click takes one value for a flag."""
        positions = [index for index, word in enumerate(args) if word == self._greedy]
        # From the last: the words that are inserted do not move the positions before them.
        for position in reversed(positions):
            first = position + 2  # after the flag and its first word
            words = list(
                takewhile(lambda word: not word.startswith("-") or word == "-", args[first:])
            )
            repeated = [part for word in words for part in (self._greedy, word)]
            args[first : first + len(words)] = repeated

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Its function gets no options of printing, see `is_set`."""
        # In the context: `show` and others ask for them without an argument through all functions.
        ctx.meta.update({_SET + name: ctx.params.pop(name, False) for name in ("quiet", "as_json")})
        return super().invoke(ctx)

    def get_help_all(self, ctx: click.Context) -> str:
        """Return the help with all options."""
        ctx.meta[_ALL] = True
        return self.get_help(ctx)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options below headings, in the order in which the headings first appear."""
        is_short = bool(self.common) and not ctx.meta.get(_ALL)
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None or not isinstance(param, click.Option):
                continue
            section = getattr(param, "section", PRINTING)
            if not is_short or section == PRINTING or param.name in self.common:
                name = "Common options" if is_short else section
                # click makes the first column of each section as wide as its own names: padded, all
                # sections are alike.
                sections.setdefault(name, []).append((record[0].ljust(_NAMES_WIDTH), record[1]))
        for section, records in sections.items():
            with formatter.section(section):
                formatter.write_dl(records, col_max=_NAMES_WIDTH)
        if is_short:
            formatter.write_paragraph()
            formatter.write_text(f"{ctx.command_path} --help-all shows all options.")


def command(
    short_help: str, *, common: str = "", **others: str
) -> Callable[[Callable[..., Any]], Command]:
    """Return a decorator that makes a command, which prints its help without arguments.

    short_help : the line in the list of commands. common : see `Command`. others : `greedy`, see
    `Command`; `name`, the name of the command. Default: the name of the function.
    """
    return click.command(
        cls=Command, no_args_is_help=True, short_help=short_help, common=common, **others
    )


def commands_of(*modules: ModuleType) -> dict[str, click.Command]:
    """Return the commands that modules define, by name."""
    defined = [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, click.Command)
    ]
    return {str(command.name): command for command in defined}


def is_set(name: str) -> bool:
    """Return whether the command that runs was given an option of printing: quiet, or as_json."""
    return bool(click.get_current_context().meta[_SET + name])


def _print_help_all(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and isinstance(ctx.command, Command):
        click.echo(ctx.command.get_help_all(ctx), color=ctx.color)
        # At once, as --help does: before click asks for missing arguments.
        ctx.exit()


def _speak(_ctx: click.Context, _param: click.Parameter, language: str | None) -> str | None:
    speak(language)
    return language


def parse_number(text: str, *, whole: bool) -> float | None:
    """Return the number that a text represents, or None; a whole number is an int, in any notation.

    Examples
    --------
    >>> [parse_number(text, whole=True) for text in ("1e6", "1_000", "1.5")]
    [1000000, 1000, None]
    >>> parse_number("1%", whole=False)
    0.01
    """
    if text.endswith("%") and not whole:
        share = None if text.endswith("%%") else parse_number(text[:-1], whole=False)
        return None if share is None else share / 100
    # A whole number first by `int`: a float would round one above 2^53.
    with suppress(ValueError):
        return int(text) if whole else float(text)
    with suppress(ValueError):
        # Of 1e6 and 2.0; infinity and NaN are not integers, either.
        return int(float(text)) if float(text).is_integer() else None
    return None


def composed(*decorators: Decorator) -> Decorator:
    """Return one decorator that adds the options of several, in their order."""

    def add_options(function: Function) -> Function:
        # The last decorator is applied first, as if they were written above the function.
        for decorate in reversed(decorators):
            function = decorate(function)
        return function

    return add_options


def settings_options(
    settings: type, section: str, *, only: tuple[str, ...] = (), without: tuple[str, ...] = ()
) -> Decorator:
    """Return a decorator that adds an option for each field of a class of settings, in the order of
    the fields.

    Parameters
    ----------
    settings : a frozen dataclass of settings/.
    section : the heading in the help.
    only : the fields with an option; all if empty.
    without : the fields without an option.
    """
    constraints = constraints_of(settings)
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}
    chosen = [name for name in defaults if (not only or name in only) and name not in without]
    options = [
        # All commands have the language below this heading.
        setting_option(
            name, defaults[name], constraints[name], PRINTING if name == "lang" else section
        )
        for name in chosen
    ]
    return composed(*options)


def one_or_several(
    _ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]
) -> str | list[str] | None:
    """Return the only name of a repeatable option, the list of several, or None."""
    if not names:
        return None
    # One name alone stays a string, as in Python: `text_column="body"`.
    return names[0] if len(names) == 1 else list(names)


def named(
    _ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]
) -> list[Named] | None:
    """Return names as the paths they are; None if there are none."""
    # An option that is not given, not an empty list.
    return [Named(name) for name in names] or None


def _one_set(
    _ctx: click.Context, param: click.Parameter, sets: tuple[tuple[str, ...], ...]
) -> tuple[str, ...]:
    """Return the choices of a repeatable option, in their order."""
    assert isinstance(param.type, SettingType)
    chosen: tuple[str, ...] = param.type.constraint.in_order(
        [word for each in sets for word in each]
    )
    return chosen


_CALLBACKS: dict[type, Callable[..., Any] | None] = {
    list: one_or_several,
    tuple: None,
    object: named,
}
"""Of the types of constraints whose options have a word and no type."""


def setting_option(
    name: str,
    default: Any,
    constraint: Constraint,
    section: str,
    *,
    shown_default: str | None = None,
    **more: Any,
) -> Decorator:
    """Return a decorator that adds an option for one setting.

    shown_default : the default in the help for an option that is None unless given. more : other
    arguments of click.option.
    """
    if name == "lang":  # read first, so that errors of the other options are in this language
        more |= {"is_eager": True, "callback": _speak}
    flag = flag_of(name)
    text = f"{constraint.help}  [default: {shown_default}]" if shown_default else constraint.help
    if constraint.value_type is bool:
        switch = flag if default is False else f"{flag}/--no-{flag[2:]}"
        return option(switch, section, text, default=default)
    flags = ", ".join(sorted(filter(None, (flag, constraint.alias)), key=len))
    if constraint.value_type in _CALLBACKS and not constraint.is_set:
        value = constraint.sentinels[0]
        if value.endswith("..."):
            more |= {"callback": _CALLBACKS[constraint.value_type], "default": default or ()}
        return option(f"{flags} {value}", section, text, name, **more)
    kind = SettingType(constraint)
    if constraint.is_set:
        more["callback"] = _one_set
    declaration = f"{flag} {_placeholder(constraint)}"
    return option(declaration, section, text, name, default=default, type=kind, **more)


def _placeholder(constraint: Constraint) -> str:
    """Return the accepted values as the help shows them: words with bars, N or X; NAME... of a set,
    whose option may be repeated.
    """
    if constraint.is_set:
        return "NAME..."
    words = [*constraint.choices, *map(str, constraint.numbers)]
    words += [f"{prefix}COLUMN" for prefix in constraint.prefixes]
    if constraint.value_type is str and not constraint.choices:
        words += constraint.sentinels
        # One sentinel in capitals, such as COLUMN, is a placeholder for any text.
        is_placeholder = len(constraint.sentinels) == 1 and constraint.sentinels[0].isupper()
        if not is_placeholder:
            words.append("FILE")
    return "|".join(words) or ("N" if constraint.value_type is int else "X")
