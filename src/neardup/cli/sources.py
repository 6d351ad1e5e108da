"""The options of inputs, outputs and printing that several commands share."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

import click

from neardup.cli.config import config_option
from neardup.cli.methods import method_options
from neardup.cli.settings import COUNT, PRINTING, Function, composed, option, settings_options
from neardup.errors import OutputError
from neardup.formats.registry import FORMATS
from neardup.settings.run import RunSettings, SelectionSettings, TextUnit


class Named(os.PathLike[str]):
    """A path, pattern or address just as it was typed: never taken for a text, its slashes never merged."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __fspath__(self) -> str:
        return self.name


def named(names: Iterable[str]) -> list[Named] | None:
    """Return names as the paths they are; None if there are none."""
    return [Named(name) for name in names] or None


def refuse_inputs_at(output: str | os.PathLike[str], inputs: Iterable[str], options: Mapping[str, Any]) -> None:
    """Raise OutputError if a file that a command writes would replace one of its inputs."""
    from neardup.runs.input_files import list_inputs
    from neardup.runs.overlap import refuse_replacing

    files = [name for name in inputs if name != "-"]  # standard input can be read only once
    refuse_replacing([output], list_inputs(files, format_name=options.get("in_format")) if files else [])


inputs_argument = click.argument("inputs", metavar="INPUT...", nargs=-1, required=True)


def one_or_several(_ctx: click.Context, _param: click.Parameter, names: tuple[str, ...]) -> str | list[str] | None:
    """Return the only name of a repeatable option, the list of several, or None."""
    return None if not names else names[0] if len(names) == 1 else list(names)


_text_column = option(
    "--text-column, --vector-column NAME...",
    "Input",
    "The text column; repeatable, to join several. Default: text, content, body, raw_content or html. Of vectors: "
    "vector, embedding or embeddings.",
    "text_column",
    callback=one_or_several,
)
_id_column = option(
    "--id-column NAME...",
    "Input",
    "The id column; repeatable, to join several by colons. Default: id, doc_id, document_id, _id or url, else row "
    "numbers.",
    callback=one_or_several,
)
_file_options = composed(
    option(
        "--text-unit",
        "Input",
        "Whether a document of a text file is a line or the whole file; auto: a line if the input is a single file.",
        type=click.Choice(get_args(TextUnit)),
        default="auto",
    ),
    option(
        "--in-format",
        "Input",
        "The format of all inputs. Default: detected from the suffix, or from the first bytes of standard input.",
        type=click.Choice(list(FORMATS)),
    ),
    option("--max-document-bytes N", "Input", "Reject longer documents.", type=COUNT, default=64 << 20),
)
text_options = composed(_text_column, _file_options)
"""Adds the options for reading texts."""
source_options = composed(_text_column, _id_column, _file_options)
"""Adds the options for reading documents."""


def overwrite_option(file: str) -> Callable[[Function], Function]:
    """Return a decorator that adds --overwrite; file : what it replaces."""
    return option("--overwrite", "Output", f"Replace an existing {file} once the new one is complete.")


def output_options(value: str, help: str) -> Callable[[Function], Function]:
    """Return a decorator that adds --output, with its value and help, and --overwrite."""
    output = option(f"-o, --output {value}", "Output", help, required=True, callback=_refuse_memory)
    return composed(output, overwrite_option(value))


_GONE = "memory:"  # addresses that end with the process


def _refuse_memory(_ctx: click.Context, _param: click.Parameter, name: str) -> str:
    if name.startswith(_GONE):
        raise OutputError(
            f"An output in memory is gone when the command ends: got {name}. Name a folder or file, or s3://bucket/out."
        )
    return name


folder_options = composed(
    output_options("DIR", "The folder to write, or its address on remote storage, such as s3://bucket/out."),
    option("--resume", "Output", "Continue an interrupted run."),
    option(
        "--scratch DIR",
        "Output",
        "The folder for temporary files; use a fast local disk. Default: next to the output, or for remote output the "
        "temporary folder of the system.",
    ),
)
"""Adds --output DIR, --overwrite, --resume and --scratch."""


engine_options = composed(
    option(
        "--engine",
        "Running",
        "Run on this machine, or on Spark (pip install 'neardup[spark]'), with the same result.",
        type=click.Choice(["local", "spark"]),
        default="local",
    ),
    option(
        "--master URL",
        "Running",
        "The cluster of --engine spark, such as spark://host:7077. Default: that of spark-submit, or this machine.",
    ),
)
"""Adds --engine and --master."""


def _progress(ctx: click.Context, param: click.Parameter, value: str) -> Any:
    """Return the progress that the functions of the library take."""
    if value == "none" or (value == "auto" and ctx.params.get("quiet")):
        return False
    if value == "auto" and sys.stderr.isatty():
        return True
    from neardup.report.progress_lines import SECONDS_BETWEEN_LINES, StageLines

    return StageLines(patience_s=SECONDS_BETWEEN_LINES if value == "auto" else 0.0)


json_option = option("--json", PRINTING, "Print the result as one JSON object.", "as_json")
result_options = composed(option("-q, --quiet", PRINTING, "Print nothing but errors.", is_eager=True), json_option)
"""Adds --quiet and --json."""
printing_options = composed(
    result_options,
    option(
        "--progress",
        PRINTING,
        "Show progress on stderr. auto: bars on a terminal, else a line every 10 seconds; plain: always lines.",
        type=click.Choice(["auto", "plain", "none"]),
        default="auto",
        callback=_progress,
    ),
)
"""Adds --quiet, --json and --progress, as an argument of the library."""
job_options = composed(
    settings_options(RunSettings, "Running", without=("batch_rows", "cache_bytes")), printing_options
)
"""Adds the options of a command that reads documents once, besides those of reading, and those of printing."""
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
