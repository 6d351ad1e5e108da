"""The results of the library: tables and a report, shown in one line or as HTML in a notebook."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from neardup import answers
from neardup.arrays import Mask
from neardup.candidates.bands import Bands
from neardup.errors import InputError, OutputError, SettingError
from neardup.files import AnyPath, JsonObject, Output, write_text, writing_to
from neardup.formats.tables import is_hugging_face, splits_of
from neardup.output.tables import check_output
from neardup.report import charts
from neardup.report.items import MarkedPair, marked_text
from neardup.report.page import first_rows
from neardup.report.questions_html import ShownGrade, render_questions
from neardup.report.rows import ReportValues, headline, scores
from neardup.report.sections import notebook
from neardup.report.wording import escape_text, speaking
from neardup.settings.constraints import Options, check_path
from neardup.verify.alignment import Outlines, Passage, align_outlines
from neardup.verify.scores import Score

if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict

    from neardup.suggestion import Grades, Suggestion, SweepPair

T = TypeVar("T")
Chart = Callable[[ReportValues], str]


def _drawn(report: JsonObject, path: AnyPath | None, *kinds: Chart) -> charts.Drawing:
    """Return the first chart that a report has, and write it to a file if a path is given."""
    with speaking(report.get("lang", "en")):
        chart = next(filter(None, (kind(report) for kind in kinds)), "")
    if not chart:
        raise InputError(
            "There is nothing to plot: the result has no near-duplicates besides copies. Use a "
            "lower threshold, or a larger max_distance."
        )
    if path is not None:
        charts.save_drawing(chart, check_output(path, (".svg",), overwrite=True))
    return charts.standalone(chart)


def _file_of(answers: AnyPath | None) -> Path | None:
    """Return the file of answers. Raises OutputError if it is no path."""
    return None if answers is None else Path(check_path("answers", answers, OutputError))


class _OneLine:
    """Base of the results: the repr is the sentence of `str`."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"


class _Reported(_OneLine):
    """Base of the results of a run: `str` is the headline of the report, a notebook shows its
    rows.
    """

    report: JsonObject

    def __str__(self) -> str:
        """Return the result in one sentence."""
        return headline(self.report)

    def _repr_html_(self) -> str:
        return notebook(self.report)

    @property
    def report_table(self) -> pa.Table:
        """The report as an Arrow table of section, name and value; a value that is not text is
        written as JSON.
        """
        rows = []
        for section, content in self.report.items():
            values = content if isinstance(content, dict) else {"": content}
            for name, value in values.items():
                text = value if isinstance(value, str) else json.dumps(value)
                rows.append({"section": section, "name": str(name), "value": text})
        return pa.Table.from_pylist(rows)


def filled(table: T | None, name: str, output: Output) -> T:
    """Return a part of a result. Raises SettingError if the run was not to fill it."""
    if table is None:
        where = (
            "Use tables=True" if output is None else f"Read it from {output}, or use tables=True"
        )
        raise SettingError(f"{name} is not in the result: got tables=False. {where}.")
    return table


def _selected(dataset: Any, mask: Mask, added: pa.RecordBatch) -> Any:
    """Return the kept rows of a Dataset with further columns. added : of these rows, and more."""
    kept = np.flatnonzero(mask)
    selected = dataset.select(kept)
    for name, column in zip(added.schema.names, added.columns, strict=True):
        selected = selected.add_column(name, column.slice(0, len(kept)))
    return selected


@dataclass(frozen=True, repr=False, eq=False)
class Deduplication(_Reported):
    """The result of `dedup`.

    Attributes
    ----------
    removed : Arrow table, schemas.removed_schema, in the order of the documents.
    pairs : Arrow table, schemas.pairs_schema: every pair measured at or above the threshold.
    mask : bool array of shape (num_rows,): whether each row of the source, of several inputs one
        after the other, is kept; False for a rejected row or an empty line of JSON.
    report : the counts, settings, measures and timings of the run, a dictionary, as in report.json.
    output : the folder, or file, that was written, a str if it is an address; or None.
    passages : Arrow table, schemas.passages_schema: the passages cut from kept documents; None
        without `passages`.
    groups : Arrow table, schemas.groups_schema: the groups kept or removed; None without
        `group_by`.
    rule_tables : the tables of the rule that decided, such as groups, by name.

    With tables=False, removed and pairs raise SettingError; so do mask and kept where workers of a
    cluster wrote the output.
    """

    report: JsonObject
    output: Output
    _removed: pa.Table | None = None
    _pairs: pa.Table | None = None
    _mask: Mask | None = None
    _read_kept: Callable[[], pa.Table] | None = None
    _source: Any = None
    passages: pa.Table | None = None
    rule_tables: Mapping[str, pa.Table] = field(default_factory=dict)
    _least: Callable[[int], pa.Table] | None = None
    _again: Callable[[Options], Deduplication] | None = None
    _added: Callable[[], pa.RecordBatch] | None = None

    @property
    def removed(self) -> pa.Table:
        """The removed documents."""
        return filled(self._removed, "removed", self.output)

    @property
    def mask(self) -> Mask:
        """A bool for each row of the source: true if it is kept."""
        return filled(self._mask, "mask", None)

    @property
    def pairs(self) -> pa.Table:
        """The pairs of documents at or above the threshold."""
        return filled(self._pairs, "pairs", None)

    @property
    def groups(self) -> pa.Table | None:
        """The groups that were kept or removed; None without `group_by`."""
        return self.rule_tables.get("groups")

    def least_similar(self, n: int = 10) -> pa.Table:
        """Return the n removals of least similarity with both texts; no document is compared again.

        Returns
        -------
        Arrow table, see schemas.least_similar_schema; the least similar first, then in the order of
        the documents. The texts are read again: they are null if an input is gone or has changed,
        or is an index.

        Raises
        ------
        InputError
            If n is not 1 or more.
        """
        return filled(self._least, "least_similar", None)(n)

    def plot(self, path: AnyPath | None = None) -> charts.Drawing:
        """Return the histogram of the similarities of near-duplicates to their kept documents; of
        distances, the bars.

        Parameters
        ----------
        path : an SVG file to write it to. An existing file is replaced.

        Returns
        -------
        Drawing
            The text of the SVG file, which a notebook shows.

        Raises
        ------
        InputError
            If no near-duplicate was removed.
        OutputError
            If the file cannot be written, or does not end in .svg.
        """
        return _drawn(self.report, path, charts.similarity_chart, charts.distance_chart)

    def rethreshold(
        self, threshold: float | None = None, *, max_distance: int | None = None
    ) -> Deduplication:
        """Return the result at a stricter limit from the pairs of this run, without reading or
        comparing again.

        Parameters
        ----------
        threshold, max_distance : the limit, as in `dedup`: a threshold at or above the threshold of
            the run, a distance at or below its distance.

        Returns
        -------
        Deduplication
            Equal row for row to the result of a new run, as far as both find the same pairs:
            SimHash finds all within its distance, the bands of MinHash find more pairs than the
            bands chosen for a higher threshold. The report describes the search of this run, and
            nothing is written.

        Raises
        ------
        SettingError
            If the run had no rethreshold=True, the method does not have the limit, or the limit is
            less strict.
        """
        if self._again is None:
            raise SettingError(
                f"rethreshold needs the pairs of removed documents: got threshold={threshold!r}, "
                f"max_distance={max_distance!r} of a run without them. Run dedup(..., "
                "rethreshold=True)."
            )
        return self._again({"threshold": threshold, "max_distance": max_distance})

    @property
    def dataset(self) -> Dataset | DatasetDict:
        """The kept rows of a Hugging Face Dataset, or a DatasetDict of the kept rows of each
        split; no text is copied.

        Raises SettingError if the source was neither.
        """
        added = pa.record_batch({}) if self._added is None else self._added()
        splits = splits_of(self._source)
        if splits is not None:
            ends = np.cumsum([split.num_rows for split in splits.values()])
            masks = np.split(self.mask, ends[:-1])
            first = np.cumsum([0, *map(np.count_nonzero, masks)])
            return type(self._source)(
                {
                    name: _selected(split, mask, added.slice(start))
                    for name, split, mask, start in zip(
                        splits, splits.values(), masks, first[:-1].tolist(), strict=True
                    )
                }
            )
        if not is_hugging_face(self._source):
            raise SettingError(
                "dataset needs a Hugging Face Dataset or DatasetDict as source: got "
                f"{type(self._source).__name__}. Use kept, or the mask."
            )
        return _selected(self._source, self.mask, added)

    @property
    def kept(self) -> pa.Table:
        """The kept documents in their order, as an Arrow table, read on each use; with all columns
        of a table.

        Of JSON lines and text, the table has the id and the text; the files of `output` have the
        whole lines.
        """
        return filled(self._read_kept, "kept", self.output)()


@dataclass(frozen=True, repr=False, eq=False)
class Clustering(_Reported):
    """The result of `cluster`.

    Attributes
    ----------
    documents : Arrow table, schemas.clusters_schema: the cluster of each document, in their order.
    clusters : Arrow table, schemas.cluster_summary_schema: size, name and examples of each cluster
        of two documents or more, the largest first.
    report, output : as in `Deduplication`.
    """

    _documents: pa.Table | None
    _clusters: pa.Table | None
    report: JsonObject
    output: Output

    @property
    def documents(self) -> pa.Table:
        """The cluster of each document."""
        return filled(self._documents, "documents", self.output)

    @property
    def clusters(self) -> pa.Table:
        """The clusters of two documents or more."""
        return filled(self._clusters, "clusters", self.output)


@dataclass(frozen=True, repr=False, eq=False)
class Contamination(_Reported):
    """The result of `find_contamination`.

    Attributes
    ----------
    hits : Arrow table, schemas.found_items_schema: the items found, by item, the best document
        first.
    items : Arrow table, schemas.items_schema: all items.
    boilerplate : Arrow table, schemas.boilerplate_schema: the words of items that do not count.
    report, output : as in `Deduplication`.
    """

    _tables: Mapping[str, pa.Table]
    report: JsonObject
    output: Output

    @property
    def hits(self) -> pa.Table:
        """The items that were found, in each document."""
        return filled(self._tables.get("hits"), "hits", self.output)

    @property
    def items(self) -> pa.Table:
        """All items."""
        return filled(self._tables.get("items"), "items", self.output)

    @property
    def boilerplate(self) -> pa.Table:
        """The words of items that do not count."""
        return filled(self._tables.get("boilerplate"), "boilerplate", self.output)


@dataclass(frozen=True, repr=False, eq=False)
class PassageRemoval(_Reported):
    """The result of `remove_passages`.

    Attributes
    ----------
    passages : Arrow table, schemas.passages_schema: the passages cut, in the order of the
        documents.
    report, output : as in `Deduplication`.
    """

    _passages: pa.Table | None
    report: JsonObject
    output: Output
    _read_kept: Callable[[], pa.Table]

    @property
    def passages(self) -> pa.Table:
        """The passages that were cut."""
        return filled(self._passages, "passages", self.output)

    @property
    def kept(self) -> pa.Table:
        """The documents without the passages, as an Arrow table, read on each use; as
        `Deduplication.kept`.
        """
        return self._read_kept()


@dataclass(frozen=True, repr=False, eq=False)
class DuplicatePairs(_Reported):
    """The result of `find_pairs`.

    Attributes
    ----------
    pairs : Arrow table, schemas.pairs_schema, by left and then by right document.
    report, output : as in `Deduplication`.
    """

    _pairs: pa.Table | None
    report: JsonObject
    output: Path | None

    @property
    def pairs(self) -> pa.Table:
        """The pairs of documents at or above the threshold."""
        return filled(self._pairs, "pairs", self.output)

    def _repr_html_(self) -> str:
        shown = "" if self._pairs is None else first_rows("Duplicate pairs", self._pairs)
        return f"<p>{escape_text(self)}</p>{shown}"


class SweepExample(NamedTuple):
    """A document that the limit of a sweep decides about.

    removed_at : the threshold at which it is removed; None if it is kept at all of them. kept_at :
    the next threshold, at which this similarity is too low; None if there is none. id, kept_id : of
    both documents. similarity : theirs. pair : the beginnings of both texts, the removed one first,
    with the passages that they share.
    """

    removed_at: float | None
    kept_at: float | None
    id: str
    kept_id: str
    similarity: float
    pair: MarkedPair


@dataclass(frozen=True, repr=False, eq=False)
class Sweep(_Reported):
    """The result of `sweep`.

    Attributes
    ----------
    counts : Arrow table, schemas.sweep_schema: a row for each threshold, rising.
    examples : list of SweepExample: up to three for each threshold, and the closest miss of the
        first.
    suggestion : a Suggestion; None if the thresholds were given.
    report : the counts, grades, suggestion and cost, a dictionary.
    grades : a pair of Grade, copies and versions; None if the thresholds were given, or the method
        does not compare words by their Jaccard similarity.
    """

    counts: pa.Table
    examples: list[SweepExample]
    suggestion: Suggestion | None
    report: JsonObject
    grades: Grades | None = None
    _asking: Any = None  # the object that asks, of `api.chooser`

    def ask(
        self,
        answer: Callable[[SweepPair], bool | None],
        *,
        count: int = 27,
        answers: AnyPath | None = None,
        min_precision: float = 0.6,
    ) -> Suggestion:
        """Ask about pairs of nine bands of similarity, and return the settings with the largest
        estimated F1.

        If answers contradict each other, it asks about up to a third more pairs.

        Parameters
        ----------
        answer : called with each SweepPair; returns whether they are duplicates, None to skip the
            pair; raises StopIteration to end.
        count : the number of answers, with the answers in the file.
        answers : a file of JSON lines to which answers are appended, and which counts if it exists:
            judged pairs of `evaluate`. Default: None.
        min_precision : the least estimated precision of suggested settings; the lower end of its
            interval is at least half of it. If none reach it, the given settings stay. From 0 to
            0.95.

        Raises
        ------
        SettingError
            If the thresholds were given, the method does not compare words by their Jaccard
            similarity, or min_precision is outside its limits.
        InputError, OutputError
            If an answer, or a line of the file, is none of these, or the file cannot be written.
        """
        asked: Suggestion = self._asker().ask(answer, count, _file_of(answers), min_precision)
        return asked

    def write_questions(
        self, path: AnyPath, *, count: int = 27, answers: AnyPath | None = None
    ) -> int:
        """Write a page that asks about the pairs of `ask` and saves answers; return their number.

        Parameters
        ----------
        path : an HTML file, replaced if it exists.
        count, answers : as in `ask`.
        """
        questions, known = self._asker().questions(count, _file_of(answers))
        file = check_output(path, (".html",), overwrite=True)
        with writing_to(file):
            write_text(file, render_questions(self.report, questions, known, self._shown_grades()))
        return len(questions)

    def _shown_grades(self) -> list[ShownGrade]:
        return [
            ShownGrade(
                name=grade.name,
                title=str(grade),
                explanation=grade.explanation,
                pairs=[(pair._asdict(), pair.pair) for pair in (*grade.above, *grade.below)],
            )
            for grade in self.grades or ()
        ]

    def _asker(self) -> Any:
        if self._asking is None:
            reason = "Leave thresholds out." if self.suggestion is None else self.suggestion.reason
            raise SettingError(f"The sweep has no pairs to ask about. {reason}")
        return self._asking

    def __str__(self) -> str:
        """Return the result in one sentence."""
        rows = self.counts.to_pylist()
        return "removed " + ", ".join(f"{row['removed']:,} at {row['threshold']:g}" for row in rows)

    def plot(self, path: AnyPath | None = None) -> charts.Drawing:
        """Return the bars of the removed documents at each threshold, as `Deduplication.plot` does.

        Parameters
        ----------
        path : an SVG file to write, replaced if it exists.
        """
        return _drawn(self.report, path, charts.sweep_chart)

    def _repr_html_(self) -> str:
        grades = "".join(
            f"<p>{escape_text(grade)}<br>{escape_text(grade.explanation)}</p>"
            for grade in self.grades or ()
        )
        return f"<p>{escape_text(self)}</p>{grades}{self.plot()}{first_rows('Removed at each threshold', self.counts)}"  # noqa: E501


@dataclass(frozen=True, repr=False)
class Comparison(_OneLine, answers.Comparison):
    """The result of `compare`.

    Attributes
    ----------
    left, right : the texts that were compared; of pages with html="main" their main texts.
    measures : every measure of the pair.
    similarity, threshold : of the method.
    bands : the bands of MinHash; None with another method.
    duplicate : whether the two are duplicates.
    """

    left: str
    right: str
    bands: Bands | None
    _mark: Callable[[], tuple[list[Passage], list[Passage]]] = field(compare=False)
    _pages: tuple[str, str] | None = field(compare=False)
    _compare: Callable[..., Comparison] = field(compare=False)

    def __str__(self) -> str:
        """Return the result in one sentence."""
        distance = "" if self.measures.distance is None else f"distance {self.measures.distance}, "
        verdict = "duplicates" if self.duplicate else "not duplicates"
        return (
            f"{verdict}: {distance}similarity {self.similarity:.4f}, threshold {self.threshold:g}"
        )

    def _repr_html_(self) -> str:
        sentence = f"<p>{escape_text(str(self))}</p>"
        if self._pages is not None:
            return sentence
        sides = (
            marked_text(self.left, self.left_passages, "del"),
            marked_text(self.right, self.right_passages, "ins"),
        )
        columns = "".join(
            f'<div style="flex:1 1 0;min-width:0;white-space:pre-wrap">{side}</div>'
            for side in sides
        )
        return (
            f'{sentence}<div style="display:flex;gap:24px;font:14px/1.45 '
            f'system-ui,sans-serif">{columns}</div>'
        )

    @cached_property
    def _passages(self) -> tuple[list[Passage], list[Passage]]:
        return self._mark()

    @property
    def left_passages(self) -> list[Passage]:
        """The (start, end, shared) passages that cover the left text, in characters; found on first
        use.
        """
        return self._passages[0]

    @property
    def right_passages(self) -> list[Passage]:
        """The (start, end, shared) passages that cover the right text, in characters; found on
        first use.
        """
        return self._passages[1]

    @cached_property
    def outlines(self) -> Outlines | None:
        """The aligned outlines of two pages whose structure was compared; None for other texts;
        found on first use.
        """
        return None if self._pages is None else align_outlines(*self._pages)

    @cached_property
    def content(self) -> Comparison | None:
        """The comparison of the main texts of two pages whose structure was compared; None for
        other texts; made on first use.

        Raises MissingExtraError without the extra `web`.
        """
        return None if self._pages is None else self._compare(*self._pages, method="content")


@dataclass(frozen=True, repr=False, eq=False)
class Evaluation(_Reported):
    """The result of `evaluate`.

    Attributes
    ----------
    at_threshold : neardup.lsh.Score of the method at its own limit.
    best : the score of the curve with the highest F1.
    curve : Arrow table, schemas.curve_schema: the scores at thresholds from `curve_from` on, or at
        distances up to 16, all from one search at the loosest limit.
    by_length : Arrow table, schemas.length_schema: the scores of at_threshold by the length of the
        shorter text of a pair, in powers of two of characters.
    adjusted_rand : the agreement of the clusters of `dedup` with the labels, 1 if equal, about 0 by
        chance; None with judged pairs. adjusted_rand_connected : of dedup(linkage="connected").
    report : all of these and the report of the search, a dictionary.
    """

    at_threshold: Score
    best: Score
    curve: pa.Table
    by_length: pa.Table
    adjusted_rand: float | None
    adjusted_rand_connected: float | None
    report: JsonObject

    def __str__(self) -> str:
        """Return the result in one sentence."""
        limit = self.curve.column_names[0]
        at = _scored(limit, self.report["at_threshold"])
        return f"{at}; best {_scored(limit, self.report['best'])}"

    def _repr_html_(self) -> str:
        return f"<p>{self}</p>{charts.score_chart({'': self.report})}"


def _scored(limit: str, score: ReportValues) -> str:
    precision, recall, f1 = scores(score)
    return f"{limit}={score[limit]:g}: precision {precision}, recall {recall}, F1 {f1}"
