"""The command `neardup contamination`."""

from __future__ import annotations

from functools import partial
from typing import Any

import neardup
from neardup.cli import render
from neardup.cli.config import config_option
from neardup.cli.running import (
    ABOVE,
    UNREAD,
    accepts_losses,
    complain,
    exit_by_gate,
    is_all_read,
    show,
    tell_warnings,
    write_folder,
)
from neardup.cli.settings import Named, SettingType, command, option, settings_options
from neardup.cli.sources import (
    engine_options,
    folder_options,
    inputs_argument,
    printing_options,
    source_options,
)
from neardup.files import JsonObject
from neardup.settings.constraints import Constraint
from neardup.settings.contamination import (
    ContaminationOutput,
    ContaminationSettings,
    CorpusSettings,
    ItemSettings,
)
from neardup.settings.run import RunSettings


@command(
    "Find the items of test sets in a corpus.",
    common=(
        "output overwrite resume corpus item_columns benchmark_column threshold write fail_above "
        "text_column"
    ),
    greedy="--corpus",
)
@inputs_argument
@folder_options
@settings_options(ContaminationOutput, "Output")
@option(
    "--fail-above RATE",
    "Output",
    "Exit with 3 if a greater share of the items of any benchmark is contaminated; or with 4 if "
    "items or documents could not be read, or there is nothing to compare, unless --on-error skip "
    "accepts that.",
    type=SettingType(Constraint("", float, low=0.0, high=1.0)),
)
@settings_options(CorpusSettings, "Input")
@settings_options(ItemSettings, "Input")
@source_options
@settings_options(ContaminationSettings, "Decision")
@settings_options(RunSettings, "Running", without=("cache_bytes",))
@config_option
@engine_options
@printing_options
def contamination(
    inputs: list[Named], output: str, fail_above: float | None, **values: Any
) -> None:
    """Find which items of test sets are in the documents of a corpus, and show where.

    INPUT has the items: questions, with choices and answers in columns of their own, or texts. DIR
    gets hits.parquet with the position of each item in each document, items.parquet with the
    findings about each item, and boilerplate.parquet with frequent passages, which did not count.

    \b
    Examples:
      neardup contamination evals/*.jsonl --corpus train/*.parquet -o out/
      neardup contamination evals.jsonl --corpus train/ -o out/ --fail-above 0.01       exit code 3 above 1 %
      neardup contamination evals.jsonl --corpus train/ -o out/ --write corpus          the corpus without them
      neardup contamination train.jsonl test.jsonl -o out/                              between the splits of a dataset
    """  # noqa: E501
    result = write_folder(neardup.find_contamination, inputs, output, values)
    report = result.report
    show(report, lambda: render.reports.print_report(report, result.output))
    exit_by_gate(report, None if fail_above is None else partial(_gate, report, fail_above))


def _gate(report: JsonObject, fail_above: float) -> int:
    """Print why a gate does not pass, and return its exit code; 0 if it passes."""
    tell_warnings(report)
    row = report["benchmarks"][0]  # the most contaminated
    # Checked before the losses: a rate above the limit is found even in the part that was read.
    if row["rate"] > fail_above:
        found = f"{row['contaminated']:,} of {row['items']:,} items of {row['benchmark']}"
        complain(f"contaminated: {found}, above --fail-above {fail_above:g}.")
        return ABOVE
    if accepts_losses():
        return 0
    counts = report["counts"]
    # No reason to fail by itself: a corpus may have rows without text.
    if counts["without_text"]:
        documents = f"{counts['without_text']:,} of {counts['read']:,} documents"
        complain(f"{documents} have no text in the column that was read.")
    # Short questions are ordinary, too, but a rate of 0 says nothing about such a benchmark.
    for row in report["benchmarks"]:
        if row["short"] == row["items"]:
            items = f"{row['items']:,} items of {row['benchmark']}"
            complain(f"all {items} are too short to be looked for.")
    reason = _reason_to_fail(report)
    if not reason:
        return 0
    complain(f"{reason} Make the inputs readable, or accept this with --on-error skip.")
    return UNREAD


def _reason_to_fail(report: JsonObject) -> str:
    """Return why a gate cannot pass over the inputs as they were read; empty if it can."""
    counts = report["counts"]
    if not is_all_read(report):
        return "not all items and documents could be read, so --fail-above passes none."
    if counts["without_text"] == counts["read"]:
        return "the corpus has no text, so --fail-above does not pass."
    if counts["items_without_text"]:
        return "items have no text in the columns that were read, so --fail-above does not pass."
    # No item could have been found, so a rate of 0 proves nothing.
    if counts["short"] == counts["items"]:
        return "all items are too short to be looked for, so --fail-above does not pass."
    return ""
