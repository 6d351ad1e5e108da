"""The command `neardup plan`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from neardup.cli.settings import SectionedCommand, SectionOption, SettingType, build, settings_options
from neardup.config import MinHash
from neardup.limits import Limits

if TYPE_CHECKING:
    from neardup.candidates.plan import Plan

_BANDS = ("threshold", "recall", "num_bands", "rows_per_band")
_COUNT = SettingType(Limits("A count.", low=1, high=1e15))


@click.command(cls=SectionedCommand, no_args_is_help=True, short_help="Foresee the memory, disk and work of a run.")
@click.option(
    "--documents", type=_COUNT, metavar="N", required=True, cls=SectionOption, section="Corpus",
    help="How many documents there are; 1e8 and 100_000_000 are the same.",
)  # fmt: skip
@click.option(
    "--document-bytes", type=_COUNT, metavar="N", default=4000, show_default=True, cls=SectionOption, section="Corpus",
    help="The average size of a text, in bytes of UTF-8.",
)  # fmt: skip
@settings_options(MinHash, "Similarity", only=_BANDS)
@click.option("--json", "as_json", is_flag=True, cls=SectionOption, section="Printing", help="Print one JSON object.")
def plan(documents: float, document_bytes: float, as_json: bool, **values: Any) -> None:
    """Foresee a run: bands, memory, disk, candidate pairs, and the S-curve of being compared.

    \b
    Examples:
      neardup plan --documents 1e8 --threshold 0.8 --recall 0.99
      neardup plan --documents 5e6 --num-bands 20 --rows-per-band 5
    """
    from neardup.api import plans
    from neardup.cli import foresight, summary

    foreseen = plans.plan(documents=documents, document_bytes=document_bytes, method=build(MinHash, values))
    if as_json:
        summary.print_json(_record(foreseen))
    else:
        foresight.print_plan(foreseen)


def _record(plan: Plan) -> dict[str, Any]:
    figures = {name: value for name, value in vars(plan).items() if not isinstance(value, tuple)}
    return {**figures, **plan.bands._asdict(), "curve": [[s, p] for s, p in plan.curve if math.isfinite(p)]}
