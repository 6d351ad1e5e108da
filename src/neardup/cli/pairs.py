"""The command `neardup pairs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from neardup.cli.incomplete import exit_if_incomplete
from neardup.cli.interrupt import interruptible
from neardup.cli.methods import build_method, method_options
from neardup.cli.settings import SectionedCommand, build, settings_options
from neardup.cli.sources import file_options, inputs_argument, named, shown_options, source_options
from neardup.settings.running import Running, Sieve


@click.command(cls=SectionedCommand, no_args_is_help=True, short_help="List all pairs of duplicates.")
@inputs_argument
@file_options("The file to write: .parquet, .jsonl or .csv.")
@source_options
@method_options
@settings_options(Sieve, "Running", only=("max_bucket",))
@settings_options(Running, "Running")
@shown_options
def pairs(
    inputs: tuple[str, ...],
    output: str,
    overwrite: bool,
    text_column: str | None,
    id_column: str | None,
    text_unit: str,
    in_format: str | None,
    max_document_bytes: int,
    quiet: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Find all pairs of duplicates of a collection, with their exact similarity.

    FILE gets a row for each pair: left_id, right_id, similarity (or distance, of fingerprints), exact. It appears once
    it is whole. INPUT may be files of fingerprints, as neardup fingerprint writes them (.parquet): no text is needed
    then, and --method simhash is understood.

    \b
    Examples:
      neardup pairs corpus.parquet -o pairs.parquet
      neardup pairs a.jsonl b.jsonl -o pairs.csv --threshold 0.5 --id-column url
      neardup pairs fp.parquet --max-distance 3 -o pairs.parquet
    """
    with interruptible(lambda: f"Nothing was written to {output}."):
        from neardup.api.inputs import Inputs
        from neardup.api.pairs import fingerprint_paths, run_pairs
        from neardup.cli.progress import watching
        from neardup.output.table_file import TableFile

        file = TableFile(Path(output), overwrite=overwrite)
        method, sieve, running = (
            build_method(values, "simhash" if fingerprint_paths(named(inputs)) else "minhash"),
            build(Sieve, values),
            build(Running, values),
        )
        source = Inputs(named(inputs), None, text_column, id_column, text_unit, in_format, max_document_bytes)
        with watching(quiet) as watcher:
            report = run_pairs(source, method, sieve, running, file.write, watcher=watcher)
    _tell(report, file, quiet, as_json)
    exit_if_incomplete(report, running.on_error)


def _tell(report: dict[str, Any], file: Any, quiet: bool, as_json: bool) -> None:
    from neardup.cli import summary as printing

    if as_json:
        printing.print_json(report)
    elif not quiet:
        printing.print_pairs(report, file.path)
