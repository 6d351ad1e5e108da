"""The command `neardup document-frequencies`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import neardup
from neardup.cli import render
from neardup.cli.methods import build_method, text_options
from neardup.cli.running import exit_if_incomplete, running, show
from neardup.cli.settings import Named, command, settings_options
from neardup.cli.sources import (
    engine_options,
    inputs_argument,
    job_options,
    output_options,
    refuse_inputs_at,
)
from neardup.runs.options import ReadingSettings
from neardup.settings.run import FileSettings


@command(
    "Count the documents that contain each word.",
    common="output overwrite text_column tokens ngram threads",
)
@inputs_argument
@output_options(FileSettings, help="The table to write, a Parquet file.")
@settings_options(ReadingSettings, "Input", without=("id_column",))
# The help shows the defaults of SimHash, whose weights need such a table.
@partial(text_options, methods=("simhash",))
@job_options
@engine_options
def document_frequencies(inputs: list[Named], output: str, overwrite: bool, **values: Any) -> None:
    """Count the documents of a corpus that contain each word, and save the table for --weights
    tfidf.

    Use the table with the same --tokens, --ngram and other text options. A run that weights its own
    corpus needs no table.

    \b
    Examples:
      neardup document-frequencies corpus.parquet -o idf.parquet
      neardup sign new.jsonl -o fp.parquet --method simhash --weights tfidf --idf idf.parquet
    """
    method = build_method(values, "simhash")
    with running(f"Nothing was written to {output}."):
        from neardup.documents.batch import Losses
        from neardup.output.tables import check_output
        from neardup.report.contents import describe_losses

        path = check_output(Path(output), (".parquet",), overwrite=overwrite)
        # A file that is replaced while it is read would be lost.
        refuse_inputs_at([path], inputs, values)
        table = neardup.document_frequencies(inputs, method=method, **values)
        table.save(path)
    rejected = list(table.rejected)
    losses = describe_losses(Losses.of(rejected), table.describe()["documents"])
    report = {
        **table.describe(),
        **losses,
        "warnings": list(table.warnings),
        "rejected": [row._asdict() for row in rejected],
    }
    show(report, lambda: render.reports.print_frequencies(report, path))
    exit_if_incomplete(report)
