"""The command `neardup evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import neardup
from neardup.cli import render
from neardup.cli.methods import build_method, build_methods, method_options
from neardup.cli.running import exit_if_incomplete, running, show
from neardup.cli.settings import Named, command, option, settings_options
from neardup.cli.sources import (
    engine_options,
    inputs_argument,
    overwrite_option,
    printing_options,
    source_options,
)
from neardup.errors import SettingError
from neardup.settings.methods import METHODS, MethodSettings
from neardup.settings.run import OutputSettings, RunSettings, SelectionSettings


@command(
    "Score a method on labelled documents.",
    common="label pairs compare_methods plot errors overwrite text_column id_column method threshold "  # noqa: E501
    "max_distance "
    "ngram",
)
@inputs_argument
@option(
    "--label NAME",
    "Truth",
    "The column of labels: documents with the same label are duplicates; null or empty is unknown. "
    "With --pairs, the column of verdicts.  [default: cluster; with --pairs: duplicate, else "
    "label]",
)
@option(
    "--pairs FILE",
    "Truth",
    "Judged pairs: left_id, right_id, and whether they are duplicates (true or false, 1 or 0). All "
    "others are ignored.",
)
@option(
    "--compare-methods METHOD...",
    "Method",
    (
        "A method to compare with others, instead of --method; repeatable. Each takes the options "
        "that apply to it."
    ),
)
@option("--plot FILE", "Output", "Plot the curves to this SVG file.")
@option(
    "--errors FILE",
    "Output",
    "Write twenty wrong and twenty missed pairs to this HTML file.",
)
@settings_options(OutputSettings, "Output", only=("lang",))
@overwrite_option
@option(
    "--curve-from X",
    "Method",
    "The first threshold of the curve, at least 0.05; lower values are slower.  [default: 0.2]",
    type=float,
)
@source_options
@method_options
@settings_options(SelectionSettings, "Running", only=("max_bucket_size",))
@settings_options(RunSettings, "Running", without=("cache_bytes",))
@engine_options
@printing_options
def evaluate(
    inputs: list[Named], pairs: str | None, compare_methods: tuple[str, ...], **values: Any
) -> None:
    """Score a method on labelled documents: precision, recall and F1 of its pairs, by threshold and
    length of text, and the adjusted Rand index of its clusters.

    \b
    Examples:
      neardup evaluate labelled.jsonl --label cluster
      neardup evaluate labelled.jsonl --compare-methods minhash --compare-methods simhash --plot curves.svg
    """  # noqa: E501
    methods = _methods(values, compare_methods)
    if compare_methods and values["errors"] is not None:
        raise SettingError(
            "--errors requires a single method: got --compare-methods, too. Leave one of the two "
            "out."
        )
    with running("Nothing was written."):
        options = dict(values, pairs=None if pairs is None else Named(pairs))
        errors = options.pop("errors")
        lang = options.pop("lang")
        if not compare_methods:
            [(name, method)] = methods.items()
            results = {
                name: neardup.evaluate(inputs, method=method, errors=errors, lang=lang, **options)
            }
        else:
            results = neardup.compare_methods(inputs, methods, **options)
    reports = {name: result.report for name, result in results.items()}
    # The methods read the same inputs, so the losses are the same in all reports.
    first = next(iter(reports.values()))
    files = {"Plot": values["plot"], "Errors": errors}
    record = reports if compare_methods else first
    show(record, lambda: render.evaluate.print_evaluations(reports, files))
    exit_if_incomplete(first)


def _methods(values: dict[str, Any], names: Sequence[str]) -> dict[str, MethodSettings]:
    """Return the methods to score, by name, taking their options out of the values."""
    if not names:
        # Before `build_method`, which takes the method out of the values.
        name = values["method"] or "minhash"
        return {name: build_method(values)}
    if values["method"] is not None:
        raise SettingError(
            f"--compare-methods replaces --method: got both, --method {values['method']}. Leave "
            "one of the two out."
        )
    if len(names) < 2 or len(set(names)) < len(names) or not set(names) <= METHODS.keys():
        raise SettingError(
            f"--compare-methods must name two or more methods, each once, of {', '.join(METHODS)}: "
            f"got {', '.join(names)}. Repeat the option: --compare-methods minhash "
            "--compare-methods simhash."
        )
    return build_methods(values, names)
