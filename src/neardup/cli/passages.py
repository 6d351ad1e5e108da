"""The command `neardup passages`."""

from __future__ import annotations

from typing import Any

import neardup
from neardup.cli.config import config_option
from neardup.cli.running import finish, write_folder
from neardup.cli.settings import Named, command, option, settings_options
from neardup.cli.sources import (
    folder_options,
    inputs_argument,
    printing_options,
    source_options,
)
from neardup.settings.passages import PassageInputs, PassageOutput, PassageSettings
from neardup.settings.run import RunSettings


@command(
    "Cut repeated passages, keep the first copy.",
    common=(
        "output write overwrite resume against text_column min_length unit cut_at keep min_share "
        "within"
    ),
)
@inputs_argument
@folder_options
@settings_options(PassageOutput, "Output")
@option(
    "--within COLUMN",
    "Decision",
    "With --keep none, a column, such as the site of a page: --min-share is of its values.",
)
@settings_options(PassageInputs, "Input")
@source_options
@settings_options(PassageSettings, "Decision")
@settings_options(RunSettings, "Running")
@config_option
@printing_options
def passages(inputs: list[Named], output: str, **values: Any) -> None:
    """Cut the passages of documents that occurred before, in this document or an earlier one; the
    first copy stays.

    DIR gets kept/ in the format of the input, and passages.parquet with the position of each
    passage and of the copy that stays.

    \b
    Examples:
      neardup passages corpus/*.parquet -o out/                     the first copy stays
      neardup passages corpus/ -o out/ --unit line --normalise      whole lines, without case and punctuation
      neardup passages site/ -o out/ --within site --keep none --min-share 0.3      what 30 % of a site's pages have
      neardup passages new/ --against old/ -o out/                  also what is in old/
    """  # noqa: E501
    result = write_folder(neardup.remove_passages, inputs, output, values)
    finish(result.report, result.output)
