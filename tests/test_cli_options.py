"""The options are the settings of the library: same names, defaults and limits."""

from __future__ import annotations

import dataclasses
import inspect

import click
import pytest
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli
from neardup.cli.settings import SettingType, parse_number
from neardup.config import MinHash, Running, Sieve
from neardup.limits import limits_of

SETTINGS = [MinHash, Sieve, Running]
FIELDS = [(settings, field) for settings in SETTINGS for field in dataclasses.fields(settings)]


def _called(value: object) -> str:
    return value.__name__ if isinstance(value, type) else value.name


def options_of(command: str) -> dict[str, click.Option]:
    return {param.name: param for param in cli.commands[command].params if isinstance(param, click.Option)}


def parsed(command: str, *arguments: str) -> dict:
    context = cli.commands[command].make_context(command, list(arguments))
    return context.params


@pytest.mark.parametrize(("settings", "field"), FIELDS, ids=_called)
def test_every_setting_is_an_option_of_dedup_with_its_default_and_help(settings, field):
    option = options_of("dedup")[field.name]
    assert option.default == field.default
    assert option.help == limits_of(settings)[field.name].help
    assert parsed("dedup", "in.parquet", "-o", "out")[field.name] == field.default


@pytest.mark.parametrize("command", ["dedup", "pairs", "compare"])
def test_every_field_of_minhash_is_an_option(command):
    assert set(limits_of(MinHash)) <= set(options_of(command))


@pytest.mark.parametrize(("command", "function"), [("dedup", neardup.dedup), ("pairs", neardup.find_pairs)])
def test_a_command_takes_what_its_function_takes(command, function):
    arguments = set(inspect.signature(function).parameters)
    arguments = arguments - {"source", "method", "watcher"} | set(limits_of(MinHash))
    printing = {"quiet", "as_json", "help"}
    assert set(options_of(command)) - printing - arguments <= {"output", "overwrite"}
    assert arguments <= set(options_of(command))


@pytest.mark.parametrize(
    ("settings", "field"),
    [(s, f) for s, f in FIELDS if limits_of(s)[f.name].kind is not bool],
    ids=_called,
)
def test_a_value_outside_the_limits_is_refused_with_what_is_accepted(settings, field):
    limits = limits_of(settings)[field.name]
    option = "--" + field.name.replace("_", "-")
    wrong = "nonsense" if limits.choices else str((limits.high or 0) * 2 + 1)
    result = CliRunner().invoke(cli, ["dedup", "in.parquet", "-o", "out", option, wrong])
    accepted = SettingType(limits).limits.describe()
    assert result.exit_code == 2
    assert f"Invalid value for '{option}': must be {accepted}: got '{wrong}'." in result.output


def test_numbers_may_have_an_exponent_or_underscores():
    assert parsed("plan", "--documents", "1e8")["documents"] == 1e8
    assert parsed("plan", "--documents", "100_000_000")["documents"] == 1e8
    assert parsed("dedup", "a", "-o", "b", "--max-bucket", "1e4")["max_bucket"] == 10_000
    assert parse_number("2.5", whole=True) is None
    assert parse_number("inf", whole=True) is None
    assert parse_number("five", whole=False) is None


def test_switches_turn_normalisation_off_and_on():
    values = parsed("dedup", "a", "-o", "b", "--no-nfkc", "--no-case-fold", "--fold-chinese")
    assert (values["nfkc"], values["case_fold"], values["fold_chinese"]) == (False, False, True)


def test_keep_takes_a_column():
    assert parsed("dedup", "a", "-o", "b", "--keep", "max:score")["keep"] == "max:score"


@pytest.mark.parametrize("command", ["dedup", "pairs", "compare", "plan"])
def test_the_help_of_each_command_has_examples_and_all_options_at_80_columns(command):
    result = CliRunner().invoke(cli, [command, "--help"], terminal_width=80)
    assert result.exit_code == 0
    assert "Examples:" in result.output
    for option in options_of(command).values():
        assert option.opts[-1] in result.output
        assert option.help, option.name


def test_help_and_version_name_the_program():
    assert "neardup dedup news.parquet" in CliRunner().invoke(cli, ["--help"]).output
    assert CliRunner().invoke(cli, ["--version"], prog_name="neardup").output.startswith("neardup ")


def test_words_are_completed():
    limits = limits_of(Sieve)["keep"]
    context = click.Context(cli)
    offered = SettingType(limits).shell_complete(context, options_of("dedup")["keep"], "l")
    assert [item.value for item in offered] == ["last", "longest"]
