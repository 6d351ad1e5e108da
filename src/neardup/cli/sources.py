"""The options of inputs, outputs and printing that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

import click

from neardup.cli.config import config_option
from neardup.cli.methods import method_options
from neardup.cli.settings import PRINTING, Decorator, composed, option, settings_options
from neardup.errors import OutputError
from neardup.files import AnyPath
from neardup.runs.options import ReadingSettings
from neardup.settings.constraints import Options
from neardup.settings.run import EngineSettings, RunSettings, SelectionSettings


class Named(os.PathLike[str]):
    """A path, pattern or address just as it was typed: never taken for a text, its slashes never
    merged.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __fspath__(self) -> str:
        return self.name


def refuse_inputs_at(output: AnyPath, inputs: Iterable[Named], options: Options) -> None:
    """Raise OutputError if a file that a command writes would replace one of its inputs."""
    from neardup.runs.input_files import list_inputs
    from neardup.runs.overlap import refuse_replacing

    # Standard input can be read only once.
    files = [path.name for path in inputs if path.name != "-"]
    refuse_replacing(
        [output], list_inputs(files, format_name=options.get("in_format")) if files else []
    )


def _named(
    _ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]
) -> list[Named] | None:
    """Return names as the paths they are; None if there are none."""
    # An option that is not given, not an empty list.
    return [Named(name) for name in names] or None


inputs_argument = click.argument(
    "inputs", metavar="INPUT...", nargs=-1, required=True, callback=_named
)


def collection_option(flag: str, help: str) -> Decorator:
    """Return a decorator that adds an option for the paths of a collection, besides the inputs."""
    return option(f"{flag} PATH...", "Input", help, callback=_named)


source_options = settings_options(ReadingSettings, "Input")
"""Adds the options for reading documents."""


def overwrite_option(file: str) -> Decorator:
    """Return a decorator that adds --overwrite; file : the noun of the replaced thing."""
    return option(
        "--overwrite", "Output", f"Replace an existing {file} once the new one is complete."
    )


def output_options(value: str, help: str) -> Decorator:
    """Return a decorator that adds --output, with its value and help, and --overwrite."""
    output = option(f"-o, --output {value}", "Output", help, required=True, callback=_refuse_memory)
    return composed(output, overwrite_option(value))


_GONE = "memory:"  # addresses that end with the process


def _refuse_memory(_ctx: click.Context, _param: click.Parameter, name: str) -> str:
    if name.startswith(_GONE):
        raise OutputError(
            f"An output in memory is gone when the command ends: got {name}. Name a folder or "
            "file, or s3://bucket/out."
        )
    return name


folder_options = composed(
    output_options(
        "DIR", "The folder to write, or its address on remote storage, such as s3://bucket/out."
    ),
    option("--resume", "Output", "Continue an interrupted run."),
    option(
        "--scratch DIR",
        "Output",
        "The folder for temporary files; use a fast local disk. Default: next to the output, or "
        "for remote output the temporary folder of the system.",
    ),
)
"""Adds --output DIR, --overwrite, --resume and --scratch."""


engine_options = settings_options(EngineSettings, "Running")
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
