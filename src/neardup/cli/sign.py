"""The command `neardup sign`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import neardup
from neardup.cli.methods import build_method, sketch_options
from neardup.cli.running import finish, running
from neardup.cli.settings import Named, command, option
from neardup.cli.sources import (
    engine_options,
    inputs_argument,
    job_options,
    output_options,
    source_options,
)
from neardup.settings.run import FileSettings


@command(
    "Save a signature or fingerprint of each document.",
    common=(
        "output overwrite with_hex text_column id_column method num_hashes bits weights tokens "
        "ngram threads"
    ),
)
@inputs_argument
@output_options(
    FileSettings,
    help="The file to write: .parquet, which `neardup find-pairs` reads, .jsonl or .csv.",
)
@option(
    "--hex",
    "Output",
    "Add a column of hexadecimal digits; .jsonl and .csv files have digits alone.",
    "with_hex",
)
@source_options
@sketch_options
@job_options
@engine_options
def sign(inputs: list[Named], output: str, **values: Any) -> None:
    """Save a MinHash signature or a SimHash fingerprint of each document, together with its id.

    Two MinHash signatures estimate the Jaccard similarity; two SimHash fingerprints of similar
    documents differ in few bits. `neardup find-pairs FILE` finds pairs of similar fingerprints.
    Signatures made with different settings cannot be compared.

    \b
    Examples:
      neardup sign corpus.jsonl -o fp.parquet --method simhash --scheme mfonda --hex
      neardup sign zh.jsonl -o fp.parquet --method simhash --tokens jieba --weights tfidf --max-features 20
    """  # noqa: E501
    method = build_method(values)
    with running(f"Nothing was written to {output}."):
        signed = neardup.sign(inputs, method=method, output=output, **values)
    assert signed.report is not None  # a run with an output has a report
    finish(signed.report, Path(output))
