"""The command `neardup dedup`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from neardup.cli.methods import build_method, is_method_given, method_options
from neardup.cli.running import finish, message_of_folder, report_discarded_run, running
from neardup.cli.settings import Command, option, settings_options
from neardup.cli.sources import folder_options, inputs_argument, named, printing_options, source_options
from neardup.settings.run import RunSettings, SelectionSettings

_COMMON = (
    "output", "overwrite", "resume", "against", "text_column", "id_column", "method", "threshold", "max_distance",
    "ngram", "keep", "threads",
)  # fmt: skip


@click.command(
    cls=Command, common=_COMMON, no_args_is_help=True, short_help="Remove near-duplicates, keep one of each, say why."
)
@inputs_argument
@folder_options
@option(
    "--against", section="Input", metavar="PATH", multiple=True,
    help="An earlier collection, never removed from; may be given several times. Or one index.",
)  # fmt: skip
@option("--update", section="Input", is_flag=True, help="Add the documents to the index, once all is written.")
@source_options
@method_options
@settings_options(SelectionSettings, "Decision")
@settings_options(RunSettings, "Running")
@printing_options
def dedup(
    inputs: tuple[str, ...], output: str, against: tuple[str, ...], quiet: bool, as_json: bool, **values: Any
) -> None:
    """Remove the near-duplicates of a collection, keep one of each, and say why.

    INPUT is a file (Parquet, Arrow, JSONL, CSV, TSV, text; .gz, .zst, .bz2, .xz), a folder, a pattern, an address
    such as s3://bucket/key, or - for standard input. DIR gets kept/ in the format of the input, removed.parquet,
    rejected.jsonl, report.json and report.html; it appears once it is complete.

    \b
    Examples:
      neardup dedup news.parquet more/*.jsonl.zst -o out/
      neardup dedup pages/ -o out/ --threshold 0.7 --ngram 3 --recall 0.999 --keep longest
      neardup dedup new.parquet --against old.parquet -o out/
      neardup dedup new.parquet --against news.index -o out/ --update
      neardup dedup corpus/ -o out/ --resume          after an interruption
      zstdcat big.jsonl.zst | neardup dedup - -o out/ --json | jq .counts
    """
    is_given, given = is_method_given(values), build_method(values)
    method = given if is_given else None  # that of the index, or the default
    report_discarded_run(output, values["resume"])
    with running(lambda: message_of_folder(output)):
        import neardup

        result = neardup.dedup(
            named(inputs),
            method=method if is_given else None,
            against=named(against),
            output=output,
            tables=False,
            **values,
        )
    finish(result.report, Path(output), quiet, as_json, values["on_error"])
