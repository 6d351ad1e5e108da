"""The command `neardup idf`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from neardup.cli.incomplete import exit_if_incomplete
from neardup.cli.interrupt import interruptible
from neardup.cli.methods import build_fingerprint, text_options
from neardup.cli.settings import SectionedCommand, build, settings_options
from neardup.cli.sources import file_options, inputs_argument, named, shown_options, source_options
from neardup.settings.running import Running


@click.command(cls=SectionedCommand, no_args_is_help=True, short_help="Count in how many documents each word occurs.")
@inputs_argument
@file_options("The table to write, a Parquet file.")
@partial(source_options, without_id=True)
@partial(text_options, methods=("simhash",))
@settings_options(Running, "Running", without=("batch_rows",))
@shown_options
def idf(
    inputs: tuple[str, ...],
    output: str,
    overwrite: bool,
    text_column: str | None,
    text_unit: str,
    in_format: str | None,
    max_document_bytes: int,
    quiet: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Count in how many documents of a corpus each word occurs, and save the table for --weights tfidf.

    The table is bound to the way texts are cut into words: --tokens, --ngram and the rest must be the same where it is
    used. A run that weighs its own corpus needs no table.

    \b
    Examples:
      neardup idf corpus.parquet -o idf.parquet
      neardup fingerprint new.jsonl -o fp.parquet --weights tfidf --idf idf.parquet
      neardup idf zh.jsonl -o zh.parquet --tokens jieba
    """
    with interruptible(lambda: f"Nothing was written to {output}."):
        from neardup.api.features import run_document_frequencies
        from neardup.api.inputs import Inputs
        from neardup.cli.progress import watching
        from neardup.output.report import incomplete_by
        from neardup.output.table_file import check_output

        path = check_output(Path(output), (".parquet",), overwrite=overwrite)
        running = build(Running, values)
        source = Inputs(named(inputs), None, text_column, None, text_unit, in_format, max_document_bytes)
        with watching(quiet) as watcher:
            table, rejected = run_document_frequencies(
                source, build_fingerprint(values | {"method": "simhash"}), running, watcher=watcher
            )
        table.save(path)
    _tell(table, rejected, path, quiet, as_json)
    exit_if_incomplete({"incomplete": incomplete_by(rejected)}, running.on_error)


def _tell(table: Any, rejected: list[Any], path: Path, quiet: bool, as_json: bool) -> None:
    from neardup.cli import summary as printing

    if as_json:
        printing.print_json(
            {
                "documents": table.num_documents,
                "features": len(table.hashes),
                "max_undercount": table.max_undercount,
                "version": table.version,
                "scheme": dict(table.scheme),
                "rejected": [row._asdict() for row in rejected],
            }
        )
    elif not quiet:
        printing.print_frequencies(table, [row._asdict() for row in rejected], path)
