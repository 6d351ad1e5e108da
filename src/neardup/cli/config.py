"""Read the options of a command from a file: TOML, or the report.json of an earlier run."""

from __future__ import annotations

import difflib
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from neardup.cli.settings import GIVEN, option
from neardup.errors import SettingError
from neardup.files import JsonObject, parse_toml, read_text
from neardup.version import __version__

_REPORTED = "neardup.reported"  # of `Context.meta`: the names of the options that a report gave


def _read_config(ctx: click.Context, _param: click.Parameter, name: str | None) -> None:
    if name is None:
        return
    is_report = name.endswith(".json")
    values = _parse(name, is_report)
    params = _params_of(ctx)
    if is_report:
        values = _options_of(values, ctx, name)
        _refuse_lost(values, params, ctx, name)
    # A copy: the map may be a part of the map of the parent.
    ctx.default_map = dict(ctx.default_map or {})
    ctx.meta[_REPORTED] = {*values} if is_report else set()
    for key, value in values.items():
        param = params.get(key.replace("-", "_"))
        if param is None:
            # An unknown key is refused, as an unknown option is: a misspelt one would have no
            # effect, and no message.
            raise SettingError(_refusal_of(key, params, ctx, name))
        # null in a report: a value that JSON cannot have. The command line gives it, see
        # `_refuse_lost`.
        if value is None:
            continue
        is_several = getattr(param, "multiple", False) or param.nargs == -1
        _refuse_other_kind(param, value, is_several, name)
        in_list = is_several and not isinstance(value, list)
        # click would take the characters of a string as the values of a repeatable option.
        ctx.default_map[str(param.name)] = [value] if in_list else value


def _parse(name: str, is_report: bool) -> Any:
    """Return the contents of a file of options."""
    try:
        text = read_text(Path(name))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", error)
        raise SettingError(
            f"--config {name} cannot be read: {reason}. Name a TOML file or a report.json."
        ) from error
    try:
        return json.loads(text) if is_report else parse_toml(text)
    except (ValueError, RecursionError) as error:
        raise SettingError(
            f"--config {name} is neither TOML nor a report.json: {error}. Fix the file."
        ) from error


def _params_of(ctx: click.Context) -> dict[str, click.Parameter]:
    """Return the parameters of a command by their keys in a file: inputs, and options."""
    return {
        spelling.lstrip("-").replace("-", "_"): param
        for param in ctx.command.get_params(ctx)
        # An option may be named by any of its spellings, such as o and output.
        for spelling in (param.opts if isinstance(param, click.Option) else [str(param.name)])
        if spelling not in ("-h", "--help", "--help-all", "--config")
    }


def _refusal_of(key: str, params: Collection[str], ctx: click.Context, name: str) -> str:
    """Return the sentence that refuses a key that is no option."""
    plain = key.replace("-", "_")
    negated = [f"{plain[3:]} = false"] if plain.startswith("no_") and plain[3:] in params else []
    # A file has `case_fold = false` for --no-case-fold of the command line.
    close = negated or difflib.get_close_matches(plain, params, 1)
    hint = f" Did you mean '{close[0].replace('_', '-')}'?" if close else ""
    return (
        f"'{key}' in {name} is no option of {ctx.command.name}.{hint} Keys are the options of "
        f"neardup {ctx.command.name} --help-all without their dashes, and inputs. Correct the key."
    )


def _refuse_other_kind(param: click.Parameter, value: Any, is_several: bool, name: str) -> None:
    """Raise SettingError if a value is of a kind that no option on the command line can have."""
    values = value if isinstance(value, list) and is_several else [value]
    is_flag = isinstance(param.type, click.types.BoolParamType)
    # click reads words such as "yes" as flags, too. `true` is an int of Python, but no number.
    kinds = {bool, str} if is_flag else {str, int, float}
    if not {*map(type, values)} <= kinds:
        accepted = (
            "a string or a number, or a list of them" if is_several else "a string or a number"
        )
        accepted = "true or false" if is_flag else accepted
        option = max(param.opts, key=len).lstrip("-")
        raise SettingError(
            f"{option} in {name} must be {accepted}: got {value!r:.80}. Correct the value."
        )


config_option = option(
    "--config FILE",
    "Running",
    "Read options from a TOML file (threshold = 0.7), or from report.json to repeat a run.",
    # Before the other options, whose defaults the file gives.
    is_eager=True,
    expose_value=False,
    callback=_read_config,
)
"""Adds --config, whose file gives the options that are not on the command line."""


def reported_for_another(names: Iterable[str]) -> dict[str, None]:
    """Return None for each of some options that a report gave, if the command line sets a method.

    The settings of the report do not belong to a method that --method, --preset or --noise choose.
    """
    context = click.get_current_context(silent=True)
    if context is None or _REPORTED not in context.meta:
        return {}
    source = context.get_parameter_source
    # Only the command line replaces the method of a report; the file alone repeats its own.
    if ParameterSource.COMMANDLINE not in map(source, ("method", "preset", "noise")):
        return {}
    reported = context.meta[_REPORTED] & {*names}
    return {name: None for name in reported if source(name) is ParameterSource.DEFAULT_MAP}


def _options_of(report: Any, ctx: click.Context, name: str) -> JsonObject:
    """Return the options that change the result of a run from its report."""
    # Options of one name differ between commands: a report of another command would set wrong ones.
    if not isinstance(report, dict) or report.get("command") != ctx.command.name:
        raise SettingError(
            f"--config {name} is no report of neardup {ctx.command.name}: got that of "
            f"{report.get('command') if isinstance(report, dict) else 'no run'}. Name the "
            "report.json of such a run."
        )
    options = report.get("options")
    if not isinstance(options, dict):
        raise SettingError(
            f"--config {name} does not repeat a run: the report has no 'options' of the kind that "
            f"neardup {__version__} writes (it is of version {report.get('version')}). Name a "
            "complete report.json of this version, or write the options to a TOML file."
        )
    return options


def _refuse_lost(
    options: JsonObject, params: Mapping[str, click.Parameter], ctx: click.Context, name: str
) -> None:
    """Raise SettingError if a report has no value for an option of its run, and none is given.

    Inputs are no option: click itself asks for them.
    """
    for key, value in options.items():
        # --config is eager and runs before values are known, so the names come from the first parse
        # in `Command.parse_args`.
        is_given = key in params and params[key].name in ctx.meta.get(GIVEN, ())
        if value is None and key != "inputs" and not is_given:
            raise SettingError(
                f"The run of {name} used a Python object as {key}, or more names than a report "
                "contains. Repeat it in Python, or give the options anew."
            )
