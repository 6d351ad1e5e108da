"""The command `neardup find-pairs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import neardup
from neardup.cli.config import config_option
from neardup.cli.methods import build_method, method_options
from neardup.cli.running import finish, running
from neardup.cli.settings import Named, command, settings_options
from neardup.cli.sources import (
    engine_options,
    inputs_argument,
    output_options,
    printing_options,
    source_options,
)
from neardup.settings.run import FileSettings, RunSettings, SelectionSettings


@command(
    "List all pairs of near-duplicates.",
    common="output overwrite text_column id_column method threshold max_distance ngram threads",
)
@inputs_argument
@output_options(FileSettings, help="The file for the pairs: .parquet, .jsonl or .csv.")
@source_options
@method_options
@settings_options(SelectionSettings, "Running", only=("max_bucket_size",))
@settings_options(RunSettings, "Running", without=("cache_bytes",))
@config_option
@engine_options
@printing_options
def find_pairs(inputs: list[Named], output: str, **values: Any) -> None:
    """Find all pairs of near-duplicates in a collection, with their exact similarity.

    FILE gets a row for each pair: left_id, right_id, similarity (for fingerprints: distance),
    exact. INPUT can also be Parquet files of fingerprints that `neardup sign --method simhash`
    wrote; --method simhash is then the default.

    \b
    Examples:
      neardup find-pairs corpus.parquet -o pairs.parquet
      neardup find-pairs fp.parquet --max-distance 3 -o pairs.parquet
    """
    with running(f"Nothing was written to {output}."):
        from neardup.api.pairs import fingerprint_files
        from neardup.runs.find import LeftOut

        # A file of fingerprints has no texts, so its distances are compared, by SimHash.
        has_fingerprints = bool(fingerprint_files(inputs, LeftOut()))
        method = build_method(values, "simhash" if has_fingerprints else "minhash")
        result = neardup.find_pairs(inputs, method=method, output=output, tables=False, **values)
    finish(result.report, Path(output))
