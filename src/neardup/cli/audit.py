"""The command `neardup audit`."""

from __future__ import annotations

from functools import partial
from typing import Any

import neardup
from neardup.cli import render
from neardup.cli.config import config_option
from neardup.cli.methods import build_method, method_options
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
    folder_options,
    inputs_argument,
    printing_options,
    source_options,
)
from neardup.files import JsonObject
from neardup.settings.audit import AuditOutput, AuditSettings, KeptSettings
from neardup.settings.constraints import Constraint
from neardup.settings.run import RunSettings


@command(
    "Check the removals of a deduplication, ours or another tool's.",
    common="output overwrite kept removed_ids clusters sample fail_above threshold ngram id_column",
    greedy="--kept",
)
@inputs_argument
@folder_options
@settings_options(AuditOutput, "Output")
@option(
    "--fail-above RATE",
    "Output",
    "Exit with 3 if a greater share of the removed documents is lost; or with 4 if documents could "
    "not be read (unless --on-error skip accepts that), or the sample does not decide it.",
    type=SettingType(Constraint("", float, low=0.0, high=1.0)),
)
@settings_options(KeptSettings, "Input")
@source_options
@method_options
@settings_options(AuditSettings, "Decision")
@settings_options(RunSettings, "Running")
@config_option
@printing_options
def audit(inputs: list[Named], output: str, fail_above: float | None, **values: Any) -> None:
    """Check the removals of a deduplication: is each removed document similar to a kept one?

    INPUT has the original documents, --kept the documents that a tool kept, or --removed-ids the
    ids that it removed. DIR gets removals.parquet with a verdict about each removed document and
    the nearest kept one, left.parquet with the near-duplicates among kept documents, and
    unmatched.parquet with kept documents that are not in the original.

    \b
    Examples:
      neardup audit original/ --kept kept/ -o out/
      neardup audit original/ --kept kept/ -o out/ --fail-above 0.01        exit code 3 above 1 %
    """
    values["method"] = build_method(values)
    result = write_folder(neardup.audit, inputs, output, values)
    report = result.report
    show(report, lambda: render.audit.print_audit(report, result.output))
    exit_by_gate(report, None if fail_above is None else partial(_gate, report, fail_above))


def _gate(report: JsonObject, fail_above: float) -> int:
    """Print why a gate does not pass, and return its exit code; 0 if it passes."""
    tell_warnings(report)
    lost = report["lost"]
    judged = report["counts"]["judged"]
    # Checked before the losses: a rate above the limit is found even in the part that was read.
    if lost["share"] > fail_above:
        found = f"{lost['documents']:,} of {judged:,} removed documents"
        complain(f"lost: {found}, above --fail-above {fail_above:g}.")
        return ABOVE
    if lost["high"] > fail_above:
        complain(
            f"the sample does not show that at most {fail_above:g} of the removed documents are "
            "lost, so --fail-above does not pass. Raise --sample."
        )
        return UNREAD
    if accepts_losses():
        return 0
    if not report["counts"]["read"]:
        complain("no document was read, so --fail-above does not pass. Name the original texts.")
        return UNREAD
    if not is_all_read(report):
        complain(
            "not all documents could be read, so --fail-above does not pass. Make the inputs "
            "readable, or accept this with --on-error skip."
        )
        return UNREAD
    return 0
