"""Score a method on labelled documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from neardup.engines import evaluation
from neardup.engines.choose import accepted_by_spark
from neardup.engines.evaluation import Evaluated, LengthScore, RunSearches
from neardup.engines.local import pipeline
from neardup.errors import InputError, SettingError
from neardup.files import AnyPath, JsonObject, write_text, writing_to
from neardup.formats.reading import Task
from neardup.formats.tables import TablePart, rereadable
from neardup.methods.registry import method_of
from neardup.output.job import Job, open_job
from neardup.output.tables import check_output
from neardup.report.charts import save_drawing, score_chart
from neardup.report.contents import search_fields, warn_if_incomplete
from neardup.report.dedup_html import Errors, render_errors
from neardup.report.record import EvaluationReport
from neardup.results import Evaluation
from neardup.runs.columns import choose_label
from neardup.runs.input_files import list_inputs
from neardup.runs.labels import Verdicts, read_verdicts
from neardup.runs.run import PairOptions, Run, Source, Unpack, named_paths, run_of, spelled_out
from neardup.schemas import curve_schema, length_schema
from neardup.settings.methods import MethodSettings, method_named
from neardup.settings.run import Language, OutputSettings, SelectionSettings
from neardup.verify.scores import Score

LABEL = "cluster"


@spelled_out(PairOptions)
def evaluate(
    source: Source,
    *,
    label: str | None = None,
    pairs: Source | None = None,
    method: MethodSettings | str = "minhash",
    threshold: float | None = None,
    max_distance: int | None = None,
    plot: AnyPath | None = None,
    errors: AnyPath | None = None,
    lang: Language = "en",
    overwrite: bool = False,
    curve_from: float | None = None,
    max_bucket_size: int | None = None,
    **options: Unpack[PairOptions],
) -> Evaluation:
    """Score a method on labelled documents: precision, recall and F1, by threshold and length;
    agreement of clusters.

    Parameters
    ----------
    source, method, threshold, max_distance : as in `dedup`.
    label : the column of labels; default: cluster. Documents with the same label are duplicates;
        null or empty is unknown. With `pairs`, the column of verdicts; default: duplicate,
        otherwise label.
    pairs : judged pairs, a file or a table with the columns left_id, right_id, and the verdict:
        true or false, 1 or 0. All others are ignored.
    plot : an SVG file for the curve.
    errors : an HTML file for twenty wrong and twenty missed pairs.
    lang : the language of the page of errors: en or zh.
    overwrite : replace these files, if they exist.
    curve_from : the first threshold of the curve, from 0.05 to 1, rounded down to a multiple of
        0.05. Lower values are slower. Default: 0.2. SimHash, whose curve has distances, does not
        accept it.
    max_bucket_size : as in `find_pairs`.
    engine, master : as in `dedup`; the driver collects all pairs, labels and lengths of texts.
    text_column, roles, id_column, text_unit, in_format, quote, max_document_bytes : as in `dedup`.
    threads, batch_rows, on_error, max_unreadable, progress : as in `dedup`.

    Returns
    -------
    Evaluation

    Raises
    ------
    ColumnError
        If the column of labels, or one of judged pairs, is missing.
    InputError
        If no document has a label, or no judged pair consists of documents of the source.

    Notes
    -----
    It searches three times: with the unchanged method for the scores at its threshold; at
    `curve_from` (SimHash: distance 16) for the curve; and as `dedup` does for the clusters.

    Examples
    --------
    >>> import neardup, pyarrow as pa
    >>> table = pa.table({
    ...     "text": ["a b c d e f g", "A b c d e f g!", "a b c d e f h", "x y z", "u v w"],
    ...     "cluster": ["1", "1", "1", "2", None],
    ... })
    >>> result = neardup.evaluate(table)
    >>> result.at_threshold
    Score(limit=0.8, found=1, correct=1, positives=3)
    >>> result.best.limit, result.best.f1
    (0.5, 1.0)
    """
    lang = OutputSettings(lang=lang).lang
    path = None if plot is None else check_output(plot, (".svg",), overwrite=overwrite)
    page = None if errors is None else check_output(errors, (".html",), overwrite=overwrite)
    selection = SelectionSettings(max_bucket_size=max_bucket_size)
    run = run_of(
        "evaluate",
        source,
        options,
        method=method_named(method, threshold, max_distance),
        selection=selection,
        outputs=(path, page),
    )
    judgement = _Judgement(label, pairs)
    result, examples = _evaluate(run, judgement, curve_from, with_errors=page is not None)
    if path is not None:
        save_drawing(score_chart({"": result.report}), path)
    if page is not None and examples is not None:
        with writing_to(page):
            write_text(page, render_errors(result.report, examples, lang))
    # Last: a filter may turn the warning into an error, and the files are written by then.
    warn_if_incomplete(result.report, run.settings.on_error)
    return result


@spelled_out(PairOptions)
def compare_methods(
    source: Source,
    methods: Sequence[str] | Mapping[str, MethodSettings | str],
    *,
    label: str | None = None,
    pairs: Source | None = None,
    plot: AnyPath | None = None,
    overwrite: bool = False,
    curve_from: float | None = None,
    max_bucket_size: int | None = None,
    **options: Unpack[PairOptions],
) -> dict[str, Evaluation]:
    """Score several methods on the same labelled documents, as `evaluate` scores one.

    Parameters
    ----------
    source, label, pairs, max_bucket_size, engine, master : as in `evaluate`.
    text_column, roles, id_column, text_unit, in_format, quote, max_document_bytes : as in `dedup`.
    threads, batch_rows, on_error, max_unreadable, progress : as in `dedup`.
    methods : two or more names of methods, or a dictionary of names to settings.
    plot : an SVG file for all curves.
    overwrite : replace the plot, if it exists.
    curve_from : as in `evaluate`; curves of distances always begin at 0.

    Returns
    -------
    dict of the name of each method to its Evaluation, in the order of `methods`

    Raises
    ------
    SettingError
        If there are fewer than two methods, or a name is unknown.

    Examples
    --------
    >>> import neardup, pyarrow as pa
    >>> texts = ["a b c d e f g", "A b c d e f g!", "a b c d e f h"]
    >>> table = pa.table({"text": texts, "cluster": ["1", "1", "2"]})
    >>> methods = {"strict": neardup.MinHash(), "loose": neardup.MinHash(threshold=0.4)}
    >>> found = neardup.compare_methods(table, methods)
    >>> {name: result.at_threshold.precision for name, result in found.items()}
    {'strict': 1.0, 'loose': 0.3333333333333333}
    """
    named = _named(methods)
    path = None if plot is None else check_output(plot, (".svg",), overwrite=overwrite)
    # Each method reads the source and the pairs.
    run = run_of(
        "evaluate",
        rereadable(source),
        options,
        selection=SelectionSettings(max_bucket_size=max_bucket_size),
        outputs=(path,),
    )
    judgement = _Judgement(label, rereadable(pairs))
    settings = {name: method_named(method) for name, method in named.items()}
    results = {}
    for name, method in settings.items():
        # A curve of distances has no lowest threshold.
        begin = curve_from if method_of(method).limit.at_least else None
        results[name], _ = _evaluate(replace(run, method=method), judgement, begin)
    if path is not None:
        reports = {name: result.report for name, result in results.items()}
        save_drawing(score_chart(reports), path)
    # All methods read the same inputs.
    warn_if_incomplete(next(iter(results.values())).report, run.settings.on_error)
    return results


def _named(
    methods: Sequence[str] | Mapping[str, MethodSettings | str],
) -> dict[str, MethodSettings | str]:
    """Return methods by name. Raise SettingError if they are fewer than two, or repeat."""
    is_collection = isinstance(methods, (Mapping, Sequence)) and not isinstance(methods, str)
    if not is_collection or not all(isinstance(name, str) for name in methods):
        raise SettingError(
            f"methods must be a list of names, or a dict of settings by name: got {methods!r:.80}. "
            "Pass for example ['minhash', 'simhash']."
        )
    named: dict[str, MethodSettings | str] = (
        dict(methods) if isinstance(methods, Mapping) else {name: name for name in methods}
    )
    if len(named) < 2 or len(named) < len(methods):
        raise SettingError(
            f"methods must be two or more different ones: got {methods!r}. To score one method, "
            "use evaluate."
        )
    return named


def _check_curve(curve_from: float | None) -> None:
    is_number = isinstance(curve_from, (int, float)) and not isinstance(curve_from, bool)
    if curve_from is not None and not (is_number and 0.05 <= curve_from <= 1):
        raise SettingError(
            f"curve_from must be a threshold from 0.05 to 1: got {curve_from!r}. Leave curve_from "
            "(--curve-from) out to begin at 0.2."
        )


class _Judgement(NamedTuple):
    """The options `label` and `pairs`, which name the truth."""

    label: str | None
    pairs: Source | None


def _searches_of(job: Job, tasks: list[Task], on_spark: bool) -> RunSearches:
    """Return the function of an engine that searches."""
    if not on_spark:
        run = job.run
        return lambda searches: pipeline.run_searches(
            tasks, searches, run.settings, job.scratch, job.stages
        )
    from neardup.engines.spark.engine import run_searches

    return partial(run_searches, job, tasks)


def _evaluate(
    run: Run, judgement: _Judgement, curve_from: float | None, *, with_errors: bool = False
) -> tuple[Evaluation, Errors | None]:
    """Score the method of a run; return examples of its errors, too, if requested."""
    on_spark = accepted_by_spark(run)
    _check_curve(curve_from)
    _check_label(judgement.label)
    inputs = run.find()
    # Before labels are read: a missing table of document frequencies is an error at once.
    method = inputs.method.resolve()
    truth = _truth(inputs.tasks, judgement)
    with open_job(run) as job:
        scored = evaluation.evaluate(
            job,
            inputs.tasks,
            truth,
            method,
            _searches_of(job, inputs.tasks, on_spark),
            curve_from=curve_from,
            with_errors=with_errors,
        )
    return _result_of(scored, method.limit.name, inputs.warnings), scored.errors


def _result_of(scored: Evaluated, limit: str, warnings: Sequence[str]) -> Evaluation:
    """Return the scores of a method as a result.

    limit : the name of the threshold. warnings : about the inputs.
    """
    points = [_at_limit(limit, score) for score in scored.curve]
    curve = pa.Table.from_pylist(points, curve_schema(limit))
    lengths = [_of_length(row) for row in scored.by_length]
    by_length = pa.Table.from_pylist(lengths, length_schema())
    found = scored.found._replace(warnings=[*warnings, *scored.found.warnings])
    report = EvaluationReport(
        **search_fields(found),
        truth=scored.truth,
        rejected=scored.rejected,
        at_threshold=_at_limit(limit, scored.at_threshold),
        best=_at_limit(limit, scored.best),
        adjusted_rand=scored.clusters.sieved,
        adjusted_rand_connected=scored.clusters.connected,
        curve=curve.to_pylist(),
        by_length=by_length.to_pylist(),
    )
    return Evaluation(
        at_threshold=scored.at_threshold,
        best=scored.best,
        curve=curve,
        by_length=by_length,
        adjusted_rand=scored.clusters.sieved,
        adjusted_rand_connected=scored.clusters.connected,
        report=report.to_dict(),
    )


def _verdicts(pairs: Source, label: str | None) -> Verdicts:
    paths = named_paths(pairs)
    if not paths:
        return read_verdicts(TablePart(pairs, "pairs"), label)
    files = list_inputs(paths)
    if len(files) > 1:
        raise InputError(
            f"Judged pairs must be in one file: got {len(files)}, the first {files[0].name}. Join "
            "them into one."
        )
    return read_verdicts(files[0], label)


def _truth(tasks: list[Task], judgement: _Judgement) -> str | Verdicts:
    """Return the column of labels, or the verdicts of judged pairs."""
    if judgement.pairs is not None:
        return _verdicts(judgement.pairs, judgement.label)
    column = judgement.label or LABEL
    choose_label([task.part for task in tasks], column)
    return column


def _check_label(label: str | None) -> None:
    if label is not None and not isinstance(label, str):
        raise SettingError(
            f"label must be the name of a column: got {label!r:.80}. Put the labels into a column "
            "of the source, and pass its name."
        )


def _of_length(scored: LengthScore) -> JsonObject:
    """Return the row of a class of lengths."""
    return {
        "characters_from": scored.min_length,
        # Classes of lengths double: 1, 2 to 3, 4 to 7; 0 is a class of its own.
        "characters_to": max(2 * scored.min_length - 1, 0),
        "documents": scored.documents,
        **_cells(scored.score),
    }


def _at_limit(limit: str, score: Score) -> JsonObject:
    return {limit: score.limit, **_cells(score)}


def _cells(score: Score) -> JsonObject:
    names = ("found", "correct", "positives", "precision", "recall", "f1")
    return {name: getattr(score, name) for name in names}
