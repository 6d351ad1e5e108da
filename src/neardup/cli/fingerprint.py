"""The command `neardup fingerprint`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from neardup.cli.methods import build_fingerprint, fingerprint_options
from neardup.cli.running import exit_if_incomplete, running, shows_progress
from neardup.cli.settings import Command, build, option, settings_options
from neardup.cli.sources import file_options, inputs_argument, named, printing_options, source_options
from neardup.settings.presets import FINGERPRINTS
from neardup.settings.running import Running

_COMMON = (
    "output", "overwrite", "hexadecimal", "text_column", "id_column", "method", "bits", "weights", "tokens", "ngram",
    "threads",
)  # fmt: skip


@click.command(cls=Command, common=_COMMON, no_args_is_help=True, short_help="Save a fingerprint of each document.")
@inputs_argument
@file_options("The file to write: .parquet, which neardup pairs reads; or .jsonl or .csv.")
@option(
    "--hex", "hexadecimal", is_flag=True, section="Output",
    help="Add a column of hexadecimal digits; .jsonl and .csv have no other.",
)  # fmt: skip
@source_options
@option(
    "--method", type=click.Choice(list(FINGERPRINTS)), default="simhash", show_default=True,
    section="Fingerprint", help="Fingerprints of texts, or of the template of web pages.",
)  # fmt: skip
@fingerprint_options
@settings_options(Running, "Running", without=("batch_rows",))
@printing_options
def fingerprint(
    inputs: tuple[str, ...],
    output: str,
    overwrite: bool,
    hexadecimal: bool,
    text_column: str | None,
    id_column: str | None,
    text_unit: str,
    in_format: str | None,
    max_document_bytes: int,
    quiet: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Save a fingerprint of each document: its id, and so many bits that near ones mean like texts.

    A document without features has a null. `neardup pairs FILE` finds those that are near one another, without the
    texts; fingerprints of different settings never compare.

    \b
    Examples:
      neardup fingerprint corpus.parquet -o fp.parquet --method simhash --bits 64
      neardup fingerprint corpus.jsonl -o fp.parquet --scheme mfonda --hex
      neardup fingerprint zh.jsonl -o fp.parquet --tokens jieba --weights tfidf --top 20
    """
    with running(lambda: f"Nothing was written to {output}."):
        from neardup.api.fingerprints import run_fingerprint
        from neardup.api.inputs import Inputs
        from neardup.output.table_file import TableFile

        file = TableFile(Path(output), overwrite=overwrite)
        columns = ("hex",) if file.is_text else ("fingerprint", "hex") if hexadecimal else ("fingerprint",)
        method, settings = build_fingerprint(values), build(Running, values)
        source = Inputs(named(inputs), None, text_column, id_column, text_unit, in_format, max_document_bytes)
        report = run_fingerprint(source, method, settings, file.write, columns=columns, progress=shows_progress(quiet))
    _tell(report, file.path, quiet, as_json)
    exit_if_incomplete(report["incomplete"], settings.on_error)


def _tell(report: dict[str, Any], path: Path, quiet: bool, as_json: bool) -> None:
    from neardup.cli.render import reports as printing

    if as_json:
        printing.print_json(report)
    elif not quiet:
        printing.print_fingerprints(report, path)
