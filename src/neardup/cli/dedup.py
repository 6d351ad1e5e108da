"""The command `neardup dedup`."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import click

from neardup.cli.config import config_option, preset_option
from neardup.cli.methods import build_method, is_method_given, method_options
from neardup.cli.running import exit_if_incomplete, finish, message_of_folder, report_discarded_run, running
from neardup.cli.settings import Command, option, settings_options
from neardup.cli.sources import folder_options, inputs_argument, named, printing_options, source_options
from neardup.errors import SettingError
from neardup.settings.methods import MethodSettings
from neardup.settings.run import OutputSettings, RunSettings, SelectionSettings

_LOCAL = (
    "within",
    "count_by",
    "resume",
    "update",
    "audit_sample",
    "threads",
    "batch_rows",
    "cache_bytes",
)
_COMMON = (
    "output", "write", "overwrite", "resume", "against", "text_column", "id_column", "method", "threshold",
    "preset", "ngram", "keep",
)  # fmt: skip


@click.command(
    cls=Command, common=_COMMON, no_args_is_help=True, short_help="Remove near-duplicates, keep one of each, show why."
)
@inputs_argument
@folder_options
@settings_options(OutputSettings, "Output")
@option(
    "--against", section="Input", metavar="PATH", multiple=True,
    help="An earlier collection whose documents are always kept; repeatable. Or an index.",
)  # fmt: skip
@option(
    "--scratch", section="Output", metavar="DIR",
    help="The folder for temporary files; use a fast local disk. Default: next to the output, or for remote output the "
    "temporary folder of the system.",
)  # fmt: skip
@option(
    "--update",
    section="Input",
    is_flag=True,
    help="Add the documents to the index of --against once the output is complete. A run that is repeated writes the "
    "same output: a document that the index has already, with the same id and text, gets its earlier answer.",
)
@source_options
@preset_option
@method_options
@settings_options(SelectionSettings, "Decision")
@settings_options(RunSettings, "Running")
@config_option
@option(
    "--engine", type=click.Choice(["local", "spark"]), default="local", show_default=True, section="Running",
    help="Run on this machine, or on Spark (pip install 'neardup[spark]'), with the same result.",
)  # fmt: skip
@option(
    "--master", metavar="URL", section="Running",
    help="The cluster of --engine spark, such as spark://host:7077. Default: that of spark-submit, or this machine.",
)  # fmt: skip
@printing_options
def dedup(
    inputs: tuple[str, ...],
    output: str,
    against: tuple[str, ...],
    engine: str,
    master: str | None,
    quiet: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Remove the near-duplicates of a collection, keep one of each, and show why.

    INPUT is a file (Parquet, Arrow, JSONL, CSV, TSV, text; .gz, .zst, .bz2, .xz), a folder, a pattern, an address
    such as s3://bucket/key, or - for standard input. The output folder DIR contains kept/ in the format of the input,
    removed.parquet, rejected.jsonl, report.json and report.html; it appears once it is complete.

    \b
    Examples:
      neardup dedup news.parquet more/*.jsonl.zst -o out/
      neardup dedup pages/ -o out/ --threshold 0.7 --ngram 3 --recall 0.999 --keep longest
      neardup dedup new.parquet --against old.parquet -o out/
      neardup dedup new.parquet --against news.index -o out/ --update
      neardup dedup corpus/ -o out/ --resume          after an interruption
      neardup dedup --config out/report.json -o again/        the same run again
      zstdcat big.jsonl.zst | neardup dedup - -o out/ --json | jq .counts
      neardup dedup in.jsonl -o - | gzip > clean.jsonl.gz     one input, to standard output
      neardup dedup corpus/ -o out/ --engine spark --master spark://host:7077
    """
    is_given, given = is_method_given(values), build_method(values)
    if engine == "spark":
        _refuse_local_options()
        with running(lambda: message_of_folder(output, values["scratch"])):
            import neardup.spark

            shared = {name: value for name, value in values.items() if name not in _LOCAL}
            report = neardup.spark.dedup_files(
                named(inputs), method=given, against=named(against), output=output, master=master, **shared
            )
        finish(report, output, quiet, as_json, values["on_error"])
        return
    if master is not None:
        raise SettingError(f"--master requires --engine spark: got --master {master}. Add it, or leave --master out.")
    if output == "-":
        _print_kept(inputs, against, given if is_given else None, values)
        return
    report_discarded_run(output, values["resume"], values["scratch"])
    with running(lambda: message_of_folder(output, values["scratch"])):
        import neardup

        result = neardup.dedup(
            named(inputs),
            method=given if is_given else None,  # else that of the index, or the default
            against=named(against),
            output=output,
            tables=False,
            **values,
        )
    finish(result.report, result.output or output, quiet, as_json, values["on_error"])


def _print_kept(
    inputs: tuple[str, ...], against: tuple[str, ...], method: MethodSettings | None, values: dict[str, Any]
) -> None:
    """Write the kept documents of one input to standard output, in its format; print nothing else there."""
    if values["write"] != "kept" or values["resume"]:
        raise SettingError(
            "-o - writes the kept documents to standard output: got --write or --resume. Leave it out, or use -o DIR."
        )
    with (
        running(lambda: "Nothing was written."),
        tempfile.TemporaryDirectory(prefix="neardup-", dir=values["scratch"]) as folder,
    ):
        import neardup

        output = Path(folder) / "out"
        result = neardup.dedup(
            named(inputs), method=method, against=named(against), output=output, tables=False, **values
        )
        kept = [part["kept"] for part in result.report["inputs"] if part["role"] == "source"]
        if len(kept) != 1 or result.report["num_inputs"] > len(result.report["inputs"]):
            raise SettingError(
                f"-o - writes the kept documents of one input: got {len(kept)} inputs. Name one file, or a folder as "
                "output (-o DIR)."
            )
        if (output / "kept" / kept[0]).exists():
            with open(output / "kept" / kept[0], "rb") as file:
                shutil.copyfileobj(file, sys.stdout.buffer)
            sys.stdout.buffer.flush()
    exit_if_incomplete(result.report["incomplete"], values["on_error"])


def _refuse_local_options() -> None:
    """Raise SettingError if an option was given that Spark has no use for."""
    context = click.get_current_context()
    for name in _LOCAL:
        if context.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT:
            shown = f"--{name.replace('_', '-')}"
            raise SettingError(f"{shown} has no effect with --engine spark: got {shown}. Leave it out.")
