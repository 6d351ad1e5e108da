"""The command `neardup plan`."""

from __future__ import annotations

from typing import Any

import click

from neardup.cli.methods import build_method, method_options
from neardup.cli.settings import SettingType, command, option
from neardup.settings.constraints import Constraint, constraints_of
from neardup.settings.index import IndexSettings

_COMMON = (
    "documents",
    "document_bytes",
    "engine",
    "storage",
    "memory_bytes",
    "method",
    "threshold",
    "num_bands",
    "rows_per_band",
    "max_distance",
)
_COUNT = SettingType(Constraint("A count.", low=1, high=1e15))


@command("Estimate the memory, disk and work of a run.", common=_COMMON)
@option(
    "--documents",
    type=_COUNT,
    metavar="N",
    required=True,
    section="Corpus",
    help="The number of documents, such as 1e8 or 100_000_000; of an index, those that are kept.",
)
@option(
    "--document-bytes",
    type=_COUNT,
    metavar="N",
    default=4000,
    show_default=True,
    section="Corpus",
    help="The average size of a text, in bytes of UTF-8.",
)
@option(
    "--document-features",
    type=_COUNT,
    metavar="N",
    section="Corpus",
    help="Of an index, the average number of distinct features of a text. Default: the average of English texts.",
)
@option(
    "--engine",
    type=click.Choice(["local", "spark", "index", "memory"]),
    default="local",
    show_default=True,
    section="Engine",
    help="A run with MinHash on this machine or on Spark; an index in a folder; or SimHash fingerprints in memory.",
)
@option(
    "--storage",
    type=click.Choice(constraints_of(IndexSettings)["storage"].choices),
    section="Engine",
    help="The data that an index stores for a kept document.  [default: features]",
)
@option(
    "--memory-bytes",
    type=_COUNT,
    metavar="N",
    section="Engine",
    help="The maximum memory of fingerprints, such as 16e9. Default: no limit.",
)
@method_options
@option("--plot", metavar="FILE", section="Printing", help="Plot the S-curve of a local run to this SVG file.")
@option("--json", "as_json", is_flag=True, section="Printing", help="Print one JSON object.")
def plan(as_json: bool, **values: Any) -> None:
    """Estimate a run or an index: its bands or blocks, memory, disk space, candidate pairs and S-curve.

    \b
    Examples:
      neardup plan --documents 1e8 --threshold 0.8 --recall 0.99
      neardup plan --documents 5e6 --num-bands 20 --rows-per-band 5 --plot curve.svg
      neardup plan --documents 1e9 --engine spark
      neardup plan --documents 1e8 --engine index --method simhash --storage text
      neardup plan --documents 1e9 --engine memory --method simhash --max-distance 4 --memory-bytes 64e9
    """
    import neardup
    from neardup.cli.render import plan as rendering
    from neardup.cli.render import reports

    method = build_method(values)
    estimate = neardup.plan(method=method, **values)
    if as_json:
        bands = {} if estimate.bands is None else estimate.bands._asdict()
        reports.print_json({**vars(estimate), **bands, "disk_bytes": estimate.disk_bytes})
    else:
        rendering.print_plan(estimate)
