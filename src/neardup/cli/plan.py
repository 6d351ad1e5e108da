"""The command `neardup plan`."""

from __future__ import annotations

from typing import Any

import click

import neardup
from neardup.cli import render
from neardup.cli.methods import build_method, method_options
from neardup.cli.running import show
from neardup.cli.settings import COUNT, PRINTING, SettingType, command, option
from neardup.cli.sources import json_option
from neardup.settings.constraints import Constraint, constraints_of
from neardup.settings.run import IndexSettings

_COUNT = SettingType(Constraint("A count.", low=1, high=1e15))


@command(
    "Estimate the memory, disk and work of a run.",
    common="documents document_bytes engine storage memory_bytes method threshold num_bands "
    "rows_per_band max_distance",
)
@option(
    "--documents N",
    "Corpus",
    "The number of documents, such as 1e8; of an index, the kept ones.",
    type=_COUNT,
    required=True,
)
@option(
    "--document-bytes N",
    "Corpus",
    "The average size of a text, in bytes of UTF-8.",
    type=_COUNT,
    default=4000,
)
@option(
    "--document-features N",
    "Corpus",
    "Of an index, the average number of distinct features of a text. Default: the average of "
    "English texts.",
    type=_COUNT,
)
@option(
    "--engine",
    "Engine",
    "A run with MinHash on this machine or on Spark; an index in a folder; or SimHash "
    "fingerprints in memory.",
    type=click.Choice(["local", "spark", "index", "memory"]),
    default="local",
)
@option(
    "--storage",
    "Engine",
    "The data that an index stores for a kept document.  [default: features]",
    type=click.Choice(constraints_of(IndexSettings)["storage"].choices),
)
@option(
    "--memory-bytes N",
    "Engine",
    "The maximum memory of fingerprints, such as 16e9. Default: no limit.",
    type=_COUNT,
)
@option("--threads N", "Engine", "The worker threads of a local run. Default: 2.", type=COUNT)
@method_options
@option("--plot FILE", PRINTING, "Plot the S-curve of a local run to this SVG file.")
@json_option
def plan(**values: Any) -> None:
    """Estimate a run or an index: its bands or blocks, memory, disk space, candidate pairs and
    S-curve.

    \b
    Examples:
      neardup plan --documents 1e8 --threshold 0.8 --recall 0.99
      neardup plan --documents 1e8 --engine index --method simhash --storage text
      neardup plan --documents 1e9 --engine memory --method simhash --max-distance 4 --memory-bytes 64e9
    """  # noqa: E501
    method = build_method(values)
    estimate = neardup.plan(method=method, **values)
    bands = {} if estimate.bands is None else estimate.bands._asdict()
    record = {**vars(estimate), **bands, "disk_bytes": estimate.disk_bytes}
    show(record, lambda: render.plan.print_plan(estimate))
