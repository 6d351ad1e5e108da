"""The command `neardup sweep`."""

from __future__ import annotations

from typing import Any

import neardup
from neardup.cli import render
from neardup.cli.methods import build_method, method_options
from neardup.cli.running import exit_if_incomplete, running, show
from neardup.cli.settings import command, option, settings_options
from neardup.cli.sources import inputs_argument, named, printing_options, source_options
from neardup.errors import SettingError
from neardup.settings.run import RunSettings, SelectionSettings

_STEP = 0.05


@command(
    "Count the documents that each of several thresholds removes.",
    common="thresholds text_column id_column method ngram keep within threads",
)
@inputs_argument
@option("--thresholds FROM..TO|X,X", "Method", "A range in steps of 0.05, or numbers with commas.", default="0.5..0.95")
@option("--plot FILE", "Output", "Plot the removed documents at each threshold to this SVG file.")
@source_options
@method_options
@settings_options(SelectionSettings, "Decision", only=("keep", "within"))
@settings_options(RunSettings, "Running", without=("cache_bytes",))
@printing_options
def sweep(inputs: tuple[str, ...], thresholds: str, quiet: bool, as_json: bool, **values: Any) -> None:
    """Choose a threshold without labels: see how many documents each one removes, with examples on both sides of it.

    Writes no files but the plot. The inputs are read once, and searched at each threshold.

    \b
    Examples:
      neardup sweep corpus.parquet
      neardup sweep news/ --thresholds 0.6,0.7,0.8 --ngram 3 --plot removed.svg
    """
    if values.pop("threshold") is not None:
        raise SettingError("sweep takes its thresholds from --thresholds: got --threshold, too. Leave --threshold out.")
    method, limits = build_method(values), parse_thresholds(thresholds)
    with running("A sweep writes nothing."):
        result = neardup.sweep(named(inputs), thresholds=limits, method=method, **values)
    show(result.report, lambda: render.evaluate.print_sweep(result), quiet=quiet, as_json=as_json)
    exit_if_incomplete(result.report["incomplete"], values["on_error"])


def parse_thresholds(text: str) -> list[float]:
    """Return the thresholds of a text: a range in steps of 0.05 with its end, or numbers with commas.

    Raises
    ------
    SettingError
        If it is neither.

    Examples
    --------
    >>> parse_thresholds("0.8..0.9"), parse_thresholds("0.7,0.75")
    ([0.8, 0.85, 0.9], [0.7, 0.75])
    """
    try:
        low, dots, high = text.partition("..")
        if not dots:
            return [float(word) for word in text.split(",")]
        steps = round((float(high) - float(low)) / _STEP)
        return [round(float(low) + _STEP * step, 4) for step in range(min(steps, 99))] + [float(high)]
    except (ValueError, OverflowError):
        raise SettingError(
            f"--thresholds must be a range or numbers separated by commas: got {text!r}. Use 0.5..0.95, or 0.6,0.7."
        ) from None
