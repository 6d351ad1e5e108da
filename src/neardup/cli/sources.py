"""The options of inputs, outputs and printing that several commands share."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from neardup.cli.config import config_option
from neardup.cli.methods import method_options
from neardup.cli.settings import (
    PRINTING,
    Decorator,
    Named,
    composed,
    named,
    option,
    setting_option,
    settings_options,
)
from neardup.errors import OutputError
from neardup.files import AnyPath
from neardup.runs.options import ReadingSettings
from neardup.settings.constraints import Options, constraints_of
from neardup.settings.methods import CODE_TOKENS
from neardup.settings.run import (
    EngineSettings,
    FileSettings,
    FolderSettings,
    RunSettings,
    SelectionSettings,
)

if TYPE_CHECKING:
    from neardup.formats.reading import InputFile


def refuse_inputs_at(
    outputs: Iterable[AnyPath | None], inputs: Iterable[Named], options: Options
) -> None:
    """Raise OutputError if a file that a command writes would replace one of its inputs."""
    from neardup.documents.sources import Source
    from neardup.runs.overlap import refuse_replacing

    # Not read here: it can be read only once. The shell may have opened the output as it.
    piped = [Source("-", "-") for path in inputs if path.name == "-"]
    refuse_replacing(outputs, [*piped, *_list_files(inputs, options)])


def count_inputs(inputs: Iterable[Named], options: Options) -> int:
    """Return the number of files that a run reads as its inputs."""
    is_piped = any(path.name == "-" for path in inputs)
    return is_piped + len(_list_files(inputs, options))


def _list_files(inputs: Iterable[Named], options: Options) -> Sequence[InputFile]:
    """Return the input files besides standard input."""
    from neardup.runs.input_files import list_inputs

    files = [path.name for path in inputs if path.name != "-"]
    if not files:
        return []
    is_code = getattr(options.get("method"), "tokens", None) in CODE_TOKENS
    return list_inputs(files, format_name=options.get("in_format"), only_code=is_code)


inputs_argument = click.argument(
    "inputs", metavar="INPUT...", nargs=-1, required=True, callback=named
)
source_options = settings_options(ReadingSettings, "Input")
"""Adds the options for reading documents."""


_GONE = "memory:"  # addresses that end with the process


def _refuse_memory(_ctx: click.Context, _param: click.Parameter, name: str) -> str:
    if name.startswith(_GONE):
        raise OutputError(
            f"An output in memory is gone when the command ends: got {name}. Name a folder or "
            "file, or s3://bucket/out."
        )
    return name


def output_options(settings: type, *, help: str | None = None) -> Decorator:
    """Return a decorator that adds the options of an output, whose --output is required.

    settings : FileSettings or FolderSettings. help : the sentence of --output, if it is not the
    declared one.
    """
    constraint = constraints_of(settings)["output"]
    if help is not None:
        constraint = replace(constraint, help=help)
    output = setting_option(
        "output", None, constraint, "Output", required=True, callback=_refuse_memory
    )
    return composed(output, settings_options(settings, "Output", without=("output",)))


overwrite_option = settings_options(FileSettings, "Output", only=("overwrite",))
"""Adds --overwrite."""
folder_options = output_options(FolderSettings)
"""Adds --output DIR, --overwrite, --resume and --scratch."""


engine_options = settings_options(EngineSettings, "Engine")
"""Adds --engine and --master."""


def _progress(ctx: click.Context, param: click.Parameter, value: str) -> Any:
    """Return the progress that the functions of the library take."""
    # --quiet is eager, so its value is known here.
    if value == "none" or (value == "auto" and ctx.params.get("quiet")):
        return False
    # Bars: `True` is the progress of the library itself.
    if value == "auto" and sys.stderr.isatty():
        return True
    from neardup.report.progress_lines import SECONDS_BETWEEN_LINES, StageLines

    # auto waits ten seconds before the first line: a short run prints none.
    return StageLines(patience_s=SECONDS_BETWEEN_LINES if value == "auto" else 0.0)


json_option = option("--json", PRINTING, "Print the result as one JSON object.", "as_json")
result_options = composed(
    option("-q, --quiet", PRINTING, "Print nothing but errors.", is_eager=True), json_option
)
"""Adds --quiet and --json."""
printing_options = composed(
    result_options,
    option(
        "--progress",
        PRINTING,
        (
            "Show progress on stderr. auto: bars on a terminal, else a line every 10 seconds; "
            "plain: always lines."
        ),
        type=click.Choice(["auto", "plain", "none"]),
        default="auto",
        callback=_progress,
    ),
)
"""Adds --quiet, --json and --progress, as an argument of the library."""
job_options = composed(
    settings_options(RunSettings, "Running", without=("batch_rows", "cache_bytes")),
    printing_options,
)
"""Adds the options of a command that reads documents once, besides those of reading, and those of
printing.
"""
run_options = composed(
    source_options,
    method_options,
    settings_options(SelectionSettings, "Decision"),
    settings_options(RunSettings, "Running"),
    config_option,
    engine_options,
    printing_options,
)
"""Adds the options of a run that writes a folder, besides those of the folder."""
