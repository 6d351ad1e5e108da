"""The options are the settings of the library: same names, defaults and constraints."""

from __future__ import annotations

import dataclasses
import inspect
import re
from itertools import chain

import click
import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

import neardup
from neardup.cli.main import cli, every_command
from neardup.cli.methods import build_method
from neardup.cli.settings import SettingType, parse_number
from neardup.errors import SettingError
from neardup.runs import run
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import Jieba, MinHash, SimHash, Vectors
from neardup.settings.run import OutputSettings, RunSettings, SelectionSettings

COMMANDS = dict(every_command())
METHODS = {"minhash": MinHash, "simhash": SimHash, "vectors": Vectors}
SETTINGS = [*METHODS.values(), SelectionSettings, OutputSettings, RunSettings]
OF_SIGN = {"num_hashes"}  # settings of signatures alone
ANY_TEXT = {"idf", "within", "count_by", "sources", "dates"}  # names of files and columns
FIELDS = [
    (settings, field)
    for settings in SETTINGS
    for field in dataclasses.fields(settings)
    if field.name not in OF_SIGN
]


def _called(value: object) -> str:
    return value.__name__ if isinstance(value, type) else value.name


def options_of(command: str) -> dict[str, click.Option]:
    return {
        param.name: param for param in COMMANDS[command].params if isinstance(param, click.Option)
    }


def parsed(command: str, *arguments: str) -> dict:
    context = COMMANDS[command].make_context(command, list(arguments))
    return context.params


@pytest.mark.parametrize(("settings", "field"), FIELDS, ids=_called)
def test_every_setting_is_an_option_of_dedup_with_its_default_and_help(settings, field):
    option = options_of("dedup")[field.name]
    if settings in METHODS.values():  # None until given, since each method has defaults of its own
        owner = next(kind for kind in METHODS.values() if field.name in constraints_of(kind))
        assert option.help.startswith(constraints_of(owner)[field.name].help)
        if field.default not in (None, False, ()):
            assert (
                str("yes" if field.default is True else field.default)
                in option.help.partition("[default: ")[2]
            )
        return
    assert option.default == field.default
    assert option.help == constraints_of(settings)[field.name].help
    assert parsed("dedup", "in.parquet", "-o", "out")[field.name] == field.default


@pytest.mark.parametrize("method", METHODS)
def test_a_method_with_no_option_has_the_defaults_of_the_library(method):
    assert (
        build_method(parsed("dedup", "in.parquet", "-o", "out", "--method", method))
        == METHODS[method]()
    )


FINGERPRINT = "--method simhash --bits 128 --weights tfidf --max-features 30 --no-nfkc"
CHINESE = "--tokens jieba --jieba-mode search --no-hmm --add-word 石墨烯"


def test_options_become_the_settings_of_their_method():
    values = parsed(
        "compare",
        "a",
        "b",
        *[
            "--method",
            "simhash",
            "--bits",
            "128",
            "--weights",
            "tfidf",
            "--max-features",
            "30",
            "--no-nfkc",
        ],
    )
    assert build_method(values) == SimHash(bits=128, weights="tfidf", max_features=30, nfkc=False)
    values = parsed(
        "compare",
        "a",
        "b",
        *["--tokens", "jieba", "--jieba-mode", "search", "--no-hmm", "--add-word", "石墨烯"],
    )
    assert build_method(values) == MinHash(
        tokens=Jieba(mode="search", hmm=False, words=("石墨烯",))
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--max-distance 2", "--max-distance belongs to --method simhash"),
        ("--method simhash --recall 0.9", "--recall belongs to --method minhash"),
        ("--no-hmm", "--hmm requires --tokens jieba: got --tokens words"),
        (
            "--tokens chars --user-dict words.txt",
            "--user-dict requires --tokens jieba: got --tokens chars",
        ),
    ],
)
def test_an_option_of_another_method_is_refused(options, said):
    with pytest.raises(SettingError, match=said):
        build_method(parsed("compare", "a", "b", *options.split()))


@pytest.mark.parametrize("command", ["dedup", "find-pairs", "compare"])
@pytest.mark.parametrize("settings", METHODS.values(), ids=_called)
def test_every_field_of_a_method_is_an_option(command, settings):
    assert set(constraints_of(settings)) - OF_SIGN <= set(options_of(command))


OF_A_METHOD = {
    *chain.from_iterable(map(constraints_of, METHODS.values())),
    "method",
    "preset",
    "noise",
}
OF_A_METHOD |= {"jieba_mode", "hmm", "user_dict", "add_word", "stop_words", "part_of_speech"}
PRINTING = {"quiet", "as_json", "progress", "help", "help_all", "config"}
CALLS = {
    "dedup": neardup.dedup,
    "find-pairs": neardup.find_pairs,
    "cluster": neardup.cluster,
    "evaluate": neardup.evaluate,
    "sweep": neardup.sweep,
    "sign": neardup.sign,
    "document-frequencies": neardup.document_frequencies,
}


def arguments_of(function) -> set[str]:
    """Return the names of all arguments, with those of `**options: Unpack[...]`."""
    parameters = dict(inspect.signature(function).parameters)
    options = parameters.pop("options", None)
    declared = (
        "" if options is None else options.annotation.removeprefix("Unpack[").removesuffix("]")
    )
    return set(parameters) | set(getattr(run, declared).__annotations__ if declared else ())


@pytest.mark.parametrize(("command", "function"), CALLS.items(), ids=list(CALLS))
def test_the_options_of_a_command_are_the_arguments_of_its_function(command, function):
    arguments = arguments_of(function) - {"source", "progress", "tables", "rethreshold"}
    arguments |= {"output", "overwrite"} if command in ("document-frequencies", "sweep") else set()
    of_asking = {
        "ask",
        "answers",
        "grade",
        "page",
        "min_precision",
    }  # of Sweep.ask, Sweep.write_questions and Grade.write
    arguments |= of_asking if command == "sweep" else set()
    assert (
        set(options_of(command))
        - PRINTING
        - OF_A_METHOD
        - {"compare_methods"}
        - ({"lang"} - arguments)
        == arguments - OF_A_METHOD
    )


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        (s, f)
        for s, f in FIELDS
        if constraints_of(s)[f.name].value_type is not bool and f.name not in ANY_TEXT
    ],
    ids=_called,
)
def test_a_value_outside_the_limits_is_refused_with_what_is_accepted(settings, field):
    constraint = constraints_of(SimHash if field.name == "tokens" else settings)[
        field.name
    ]  # SimHash takes more of them
    option = "--" + field.name.replace("_", "-")
    wrong = "nonsense" if constraint.choices else str((constraint.high or 0) * 2 + 1)
    result = CliRunner().invoke(cli, ["dedup", "in.parquet", "-o", "out", option, wrong])
    accepted = SettingType(constraint).constraint.describe()
    assert result.exit_code == 2
    assert f"Invalid value for '{option}': must be {accepted}: got '{wrong}'." in result.output


@pytest.mark.parametrize("wrong", ["0", "lots", "1.5"])
def test_a_number_of_threads_is_a_number(wrong):
    result = CliRunner().invoke(
        cli, ["dedup", "in.parquet", "-o", "out", "--threads", wrong], prog_name="neardup"
    )
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == (
        "neardup: error: Invalid value for '--threads': must be a whole number of 1 or more "
        "and at most 1024: "
        f"got '{wrong}'. See neardup dedup --help.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["dedup", "in.parquet"], "Missing option '-o' / '--output'. See neardup dedup --help."),
        (
            ["index", "add", "--answers"],
            "Option '--answers' requires an argument. See neardup index add --help.",
        ),
        (["dedpu"], "No such command 'dedpu'."),
        (["dedup", "in.parquet", "-o", "out", "--treshold", "1"], "No such option"),
    ],
    ids=str,
)
def test_a_mistake_in_the_command_is_one_line(arguments, message):
    result = CliRunner().invoke(cli, arguments, prog_name="neardup")
    assert result.exit_code == 2
    assert result.stderr.startswith(f"neardup: error: {message}")
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["dedup", "a", "-o", "x", "--output", "y"], "--output"),
        (["evaluate", "a", "--method", "minhash", "--method", "simhash"], "--method"),
        (["plan", "--documents", "1e6", "--documents=1e7"], "--documents"),
    ],
)
def test_an_option_of_one_value_is_refused_twice(arguments, option):
    result = CliRunner().invoke(cli, arguments)
    assert result.exit_code == 2
    assert f"{option} takes one value: got 2. Give it once." in result.stderr


def test_an_option_of_several_values_may_be_repeated_and_a_switch_is_a_switch():
    command = cli.commands["dedup"]
    context = command.make_context(
        "dedup", ["a", "-o", "x", "--against", "b", "--against", "c", "-q", "-q"]
    )
    assert [path.name for path in context.params["against"]] == ["b", "c"]


def test_a_misspelt_word_is_corrected():
    with pytest.raises(SettingError, match=r"got 'word'\. Did you mean 'words'\?"):
        MinHash(tokens="word")


def test_numbers_may_have_an_exponent_or_underscores():
    assert parsed("plan", "--documents", "1e8")["documents"] == 1e8
    assert parsed("plan", "--documents", "100_000_000")["documents"] == 1e8
    assert parsed("dedup", "a", "-o", "b", "--max-bucket-size", "1e4")["max_bucket_size"] == 10_000
    assert parse_number("2.5", whole=True) is None
    assert parse_number("inf", whole=True) is None
    assert parse_number("five", whole=False) is None
    assert parse_number("5%%", whole=False) is None


def test_switches_turn_normalisation_off_and_on():
    values = parsed(
        "dedup", "a", "-o", "b", "--no-nfkc", "--no-case-fold", "--fold", "greek,chinese"
    )
    assert (values["nfkc"], values["case_fold"], values["fold"]) == (
        False,
        False,
        ("chinese", "greek"),
    )


def test_keep_takes_a_column():
    assert parsed("dedup", "a", "-o", "b", "--keep", "max:score")["keep"] == "max:score"


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_all_options_are_in_help_all_at_80_columns(command):
    flag = "--help-all" if getattr(COMMANDS[command], "common", ()) else "--help"
    result = CliRunner().invoke(cli, [*command.split(), flag], terminal_width=80)
    assert result.exit_code == 0
    assert "Examples:" in result.output
    for option in options_of(command).values():
        assert option.opts[-1] in result.output
        assert option.help, option.name


@pytest.mark.parametrize(
    "command", sorted(name for name in COMMANDS if getattr(COMMANDS[name], "common", ()))
)
def test_the_help_shows_a_dozen_common_options_and_names_help_all(command):
    result = CliRunner().invoke(cli, [*command.split(), "--help"], prog_name="neardup")
    listed = re.findall(r"^  (?:-\w, )?--([\w-]+)", result.output, re.MULTILINE)
    assert (
        3
        <= len(
            [
                name
                for name in listed
                if name not in ("quiet", "json", "progress", "lang", "help", "help-all")
            ]
        )
        <= 12
    )
    assert f"neardup {command} --help-all shows all options." in result.output
    assert set(COMMANDS[command].common) <= set(options_of(command))


def test_help_and_version_name_the_program():
    assert "neardup dedup news.parquet" in CliRunner().invoke(cli, ["--help"]).output
    assert CliRunner().invoke(cli, ["--version"], prog_name="neardup").output.startswith("neardup ")


def test_words_are_completed():
    constraint = constraints_of(SelectionSettings)["keep"]
    context = click.Context(cli)
    offered = SettingType(constraint).shell_complete(context, options_of("dedup")["keep"], "l")
    assert [item.value for item in offered] == ["last", "longest"]
    # An option given twice is an error of the command, not of the completion.
    given = ["dedup", "--threshold", "0.5", "--threshold", "0.6"]
    completed = ShellComplete(cli, {}, "neardup", "_NEARDUP_COMPLETE")
    assert [item.value for item in completed.get_completions(given, "--thr")] == ["--threads"]


@pytest.mark.parametrize(
    ("option", "default"),
    [
        ("--ngram", "5; simhash: 1; structure: 3; tags: 3; decay: 1; paths: 1"),
        ("--boost-rare", "structure: yes"),
        ("--rows-per-band", "structure: 2"),
        ("--min-structure", "page: 0.4"),
        ("--html", "content: main; page: main"),
    ],
)
def test_help_names_the_defaults_of_all_methods_that_have_one(option, default):
    printed = CliRunner().invoke(cli, ["dedup", "--help-all"], env={"COLUMNS": "80"}).output
    _, _, described = printed.partition(f"\n  {option} ")
    described = " ".join(described.split())
    assert described.partition("[default: ")[2].startswith(f"{default}]")
