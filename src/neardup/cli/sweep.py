"""The command `neardup sweep`."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

import click

import neardup
from neardup.cli import render
from neardup.cli.config import config_option
from neardup.cli.methods import build_method, method_options
from neardup.cli.running import exit_if_incomplete, running, show
from neardup.cli.settings import COUNT, Named, command, option, setting_option, settings_options
from neardup.cli.sources import (
    inputs_argument,
    overwrite_option,
    printing_options,
    refuse_inputs_at,
    source_options,
)
from neardup.errors import SettingError
from neardup.report.wording import say
from neardup.settings.constraints import Options
from neardup.settings.methods import MethodSettings
from neardup.settings.run import GRADES, MIN_PRECISION, RunSettings, SelectionSettings

if TYPE_CHECKING:
    from neardup.results import Sweep
    from neardup.suggestion import Suggestion

_STEP = 0.05


@command(
    "Count the documents that each of several thresholds removes.",
    common=("thresholds ask answers page grade output text_column id_column method ngram threads"),
)
@inputs_argument
@option(
    "--thresholds FROM..TO|X,X",
    "Method",
    (
        "A range in steps of 0.05, or numbers with commas; without a suggestion.  [default: "
        "0.5..0.95, with a suggestion]"
    ),
)
@option(
    "--ask N",
    "Answers",
    "Suggest settings by N answers (y or n) about pairs of all similarities.",
    type=COUNT,
)
@option(
    "--answers FILE",
    "Answers",
    "The file of JSON lines to which answers are appended, for evaluate --pairs; those in it "
    "count.  [default: answers.jsonl]",
)
@option(
    "--page FILE",
    "Answers",
    "Write the pairs to this HTML page, which saves the answers, instead of asking here.",
)
@setting_option("min_precision", None, MIN_PRECISION, "Answers", shown_default="0.6")
@option(
    "--grade copies|versions",
    "Output",
    "The settings that --output writes: of copies, or of versions of one work.  [default: the "
    "suggested ones]",
    type=click.Choice(GRADES),
)
@option("-o, --output FILE", "Output", "Write the settings to this TOML file, for dedup --config.")
@overwrite_option
@option("--plot FILE", "Output", "Plot the removed documents at each threshold to this SVG file.")
@source_options
@method_options
@settings_options(SelectionSettings, "Decision", only=("keep", "within"))
@settings_options(RunSettings, "Running", without=("cache_bytes",))
@config_option
@printing_options
def sweep(
    inputs: list[Named],
    thresholds: str | None,
    ask: int | None,
    answers: str | None,
    page: str | None,
    min_precision: float | None,
    grade: str | None,
    output: str | None,
    overwrite: bool,
    **values: Any,
) -> None:
    """Choose a threshold: see how many documents each removes, with examples on both sides of it;
    the settings of two grades, copies and versions of one work; and a suggestion with its
    reason.

    Settings are suggested only where the texts decide, or by your answers about pairs (--ask). If
    these contradict each other, it asks about up to a third more.

    \b
    Examples:
      neardup sweep corpus.parquet
      neardup sweep corpus.parquet --grade versions --output versions.toml
      neardup sweep news/ --ask 27 --page pairs.html
    """
    if values.pop("threshold") is not None:
        raise SettingError(
            "sweep takes its thresholds from --thresholds: got --threshold, too. Leave --threshold "
            "out."
        )
    questions = _Questions(ask, answers, page, min_precision)
    questions.refuse_alone()
    _refuse_suggestion(thresholds, {"ask": ask, "page": page, "output": output, "grade": grade})
    _refuse_grade(grade, ask, output)
    from neardup.api.choose import NO_RULE, has_rule
    from neardup.output.tables import check_output

    path = None if output is None else check_output(output, (".toml",), overwrite=overwrite)
    if page is not None:
        # A page holds no answers, which go to a file: nothing is lost if it is replaced.
        check_output(page, (".html",), overwrite=True)
    refuse_inputs_at((path, page), inputs, values)
    method = build_method(values)
    limits = None if thresholds is None else parse_thresholds(thresholds)
    questions.refuse_without_rule(method)
    if grade is not None and not has_rule(method):
        raise SettingError(
            f"--grade requires a method whose grades are known: got other settings. {NO_RULE} "
            "Leave --grade or the other settings out."
        )
    # Each answer is appended to the file when it is given.
    with running("The answers so far are in the file." if ask else "Nothing was written."):
        result = neardup.sweep(inputs, thresholds=limits, method=method, **values)
        found = questions.put(result)
    suggestion = found.suggestion
    written = suggestion if grade is None else getattr(result.grades, grade)
    if written is not None and path is not None:
        # Before it is printed: the text names the file.
        written.write(path, overwrite=overwrite)

    def print_it() -> None:
        if page is not None:
            click.echo(say("sweep.page", page=page, pairs=found.pairs))
        elif ask is None:
            render.evaluate.print_sweep(result)
            if result.grades is not None:
                render.suggestion.print_grades(result.grades)
        if suggestion is not None and (page is None or path is not None):
            render.suggestion.print_suggestion(suggestion)
        render.reports.print_troubles(result.report)

    report = result.report | ({} if suggestion is None else {"suggestion": suggestion.record()})
    show(report, print_it)
    exit_if_incomplete(report)


class _Found(NamedTuple):
    """The suggestion after the questions; pairs : how many a page has."""

    suggestion: Suggestion | None
    pairs: int = 0


class _Questions(NamedTuple):
    """The options about questions, as given."""

    ask: int | None
    answers: str | None
    page: str | None
    min_precision: float | None

    def refuse_alone(self) -> None:
        """Raise SettingError if an option has an effect only beside another one."""
        if self.answers is not None and self.ask is None and self.page is None:
            raise SettingError(
                f"--answers requires --ask or --page: got --answers {self.answers} alone. Add "
                "--ask 27."
            )
        if self.min_precision is not None and (self.ask is None or self.page is not None):
            raise SettingError(
                "--min-precision requires --ask without --page: got --min-precision "
                f"{self.min_precision:g}. Add --ask 27, or leave --min-precision out."
            )

    def refuse_without_rule(self, method: MethodSettings) -> None:
        """Raise SettingError if there are questions, and no rule chooses settings of the method."""
        from neardup.api.choose import NO_RULE, has_rule

        needing = "ask" if self.ask is not None else "page" if self.page is not None else None
        if needing is not None and not has_rule(method):
            raise SettingError(
                f"--{needing} requires the default method, of which --ngram and the options of "
                f"texts may differ: got other settings. {NO_RULE} Leave --{needing} or the other "
                "settings out."
            )

    def put(self, result: Sweep) -> _Found:
        """Write the pairs to the page, or ask about them; without questions, return the result's
        own suggestion.
        """
        answers = self.answers or "answers.jsonl"
        if self.page is not None:
            # The default of `write_questions`.
            pairs = result.write_questions(self.page, count=self.ask or 27, answers=answers)
            return _Found(result.suggestion, pairs)
        if self.ask is None:
            return _Found(result.suggestion)
        floor = {} if self.min_precision is None else {"min_precision": self.min_precision}
        ask = render.suggestion.ask
        return _Found(result.ask(ask, count=self.ask, answers=answers, **floor))


def _refuse_grade(grade: str | None, ask: int | None, output: str | None) -> None:
    """Raise SettingError if a grade has no file, or answers decide."""
    if grade is not None and (output is None or ask is not None):
        raise SettingError(
            f"--grade requires --output, without --ask: got --grade {grade}. Add --output "
            "sweep.toml, or leave --grade out."
        )


def _refuse_suggestion(thresholds: str | None, options: Options) -> None:
    """Raise SettingError if thresholds are given beside an option that needs a suggestion."""
    needing = next((name for name, value in options.items() if value), None)
    if thresholds is not None and needing is not None:
        raise SettingError(
            f"--{needing} requires a suggestion, which --thresholds leaves out: got both. Leave "
            "--thresholds out."
        )


def parse_thresholds(text: str) -> list[float]:
    """Return the thresholds of a text: a range in steps of 0.05 to its end, or numbers and commas.

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
        # Rounded first: (0.9 - 0.6) / 0.05 is 6.000000000000001, which would become 7 steps.
        steps = ceil(round((float(high) - float(low)) / _STEP, 12))
        if steps < 0:
            raise ValueError
        # A step beyond is above 1, which the library refuses: a range such as 0..1e9 must not make
        # a list of its own size.
        below = [round(float(low) + _STEP * step, 12) for step in range(min(steps, 99))]
        return [*below, float(high)]
    except (ValueError, OverflowError):
        raise SettingError(
            f"--thresholds must be a range or numbers separated by commas: got {text!r}. Use "
            "0.5..0.95, or 0.6,0.7."
        ) from None
