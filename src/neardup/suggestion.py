"""The grades and the settings of a sweep, and the pairs that it shows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from neardup.errors import SettingError
from neardup.files import AnyPath, JsonObject, write_text, writing_to
from neardup.output.tables import check_output
from neardup.report.items import MarkedPair
from neardup.report.wording import plural
from neardup.runs.run import method_options
from neardup.settings.methods import MinHash
from neardup.settings.run import GRADES, GradeName
from neardup.verify.asking import Estimate
from neardup.verify.choosing import Level


class SweepPair(NamedTuple):
    """Two documents that a sweep shows, with the beginnings of their texts and the passages that
    they share.

    again : whether the pair is a further question, because answers about pairs of its similarity
    contradict each other.
    """

    left_id: str
    right_id: str
    similarity: float
    pair: MarkedPair
    again: bool = False


_EXPLANATIONS = {
    "names": (
        "Only names, numbers and dates differ in {share:.0f} % of these pairs: filled-in forms, or "
        "one notice sent again?"
    ),
    "passages": (
        "Whole passages differ in {share:.0f} % of these pairs: letters or adverts of one frame, "
        "or one text with parts added or left out?"
    ),
    "words": (
        "Words here and there differ in {share:.0f} % of these pairs: editions, translations or "
        "revisions of one work?"
    ),
}
_NO_DIFFERENCES: dict[GradeName, str] = {
    "copies": "No other pairs than exact copies were drawn.",
    "versions": "No other pairs than copies were drawn.",
}
_MAIN_SHARE = 0.5  # of the pairs, to name one kind of difference


class Differences(NamedTuple):
    """The kinds of differences in pairs of a grade, as shares of the pairs.

    pairs : the number of pairs that were compared, in the first 2,000 characters. names : with
    other names, numbers and dates only. passages : mostly with runs of ten words or more that only
    one text has. words : with other words.
    """

    pairs: int
    names: float
    passages: float
    words: float

    def __str__(self) -> str:
        """Return the main kind of difference, as a sentence that ends in a question."""
        shares = {name: getattr(self, name) for name in _EXPLANATIONS}
        main = max(shares, key=lambda name: shares[name])
        if shares[main] >= _MAIN_SHARE:
            return _EXPLANATIONS[main].format(share=100 * shares[main])
        return (
            f"These pairs differ in several ways: {100 * self.names:.0f} % only in names, numbers "
            f"and dates, {100 * self.passages:.0f} % in whole passages, {100 * self.words:.0f} % "
            "in words here and there."
        )


@dataclass(frozen=True, repr=False, eq=False)
class Grade:
    """A grade of similarity: its settings, their count and examples.

    Attributes
    ----------
    name : copies, or versions.
    method : the settings.
    removed : the number of documents that `dedup` removes with them.
    above, below : up to three SweepPair on each side of the threshold, the closest of the drawn
        pairs.
    differences : a Differences of pairs that are no exact copies, and of versions no copies; None
        without such pairs.
    """

    name: GradeName
    method: MinHash
    removed: int
    above: Sequence[SweepPair] = ()
    below: Sequence[SweepPair] = ()
    differences: Differences | None = None

    def __repr__(self) -> str:
        return f"<Grade: {self}>"

    def __str__(self) -> str:
        """Return the grade in one line."""
        documents = plural(self.removed, "document")
        words = plural(self.method.ngram, "word")
        return f"{GRADES[self.name]}: {documents} at {words} @ {self.method.threshold:g}"

    @property
    def explanation(self) -> str:
        """The differences in the pairs of the grade, in a sentence."""
        if self.differences is not None:
            return str(self.differences)
        if not self.above and not self.below:
            return "No pair was compared."
        return _NO_DIFFERENCES[self.name]

    def record(self) -> JsonObject:
        """Return the entry of the report: settings, count and differences."""
        differences = None if self.differences is None else self.differences._asdict()
        return {
            "ngram": self.method.ngram,
            "threshold": self.method.threshold,
            "removed": self.removed,
            "explanation": self.explanation,
            "differences": differences,
        }

    def write(self, path: AnyPath, *, overwrite: bool = False) -> Path:
        """Write the settings to a TOML file, for `neardup dedup --config`.

        Parameters
        ----------
        path : a file that ends in .toml.
        overwrite : replace it, if it exists.
        """
        return _write_settings(
            path, self.method, f"{self}. {self.explanation}", overwrite=overwrite
        )


class Grades(NamedTuple):
    """Both grades of a collection: copies by the settings of the sweep, versions by its clearest
    settings.
    """

    copies: Grade
    versions: Grade

    def record(self) -> JsonObject:
        """Return the entry of the report."""
        return {grade.name: grade.record() for grade in self}


@dataclass(frozen=True, repr=False, eq=False)
class Suggestion:
    """The settings that a sweep suggests.

    Attributes
    ----------
    method : the suggested settings, or the settings of the sweep.
    changes : whether the two differ.
    reason : in a sentence.
    clearest : the settings that separate groups best, suggested or not; None if there are none.
    levels : the graph of the pairs at each threshold, `verify.choosing.Level`.
    estimate : the settings with the largest F1 by answers, suggested or not, with their precision
        and recall, `verify.asking.Estimate`; None without an answer that is yes.
    """

    method: MinHash
    changes: bool
    reason: str
    clearest: MinHash | None = None
    levels: Sequence[Level] = ()
    estimate: Estimate | None = None

    def __repr__(self) -> str:
        return f"<Suggestion: {self}>"

    def __str__(self) -> str:
        """Return the suggestion in one sentence."""
        advice = (
            f"use ngram={self.method.ngram}, threshold={self.method.threshold:g}"
            if self.changes
            else "keep"
        )
        return f"{advice}: {self.reason}"

    def record(self) -> JsonObject:
        """Return the entry of the report: settings, reason, estimates and the figures of each
        threshold.
        """
        return {
            "changes": self.changes,
            "ngram": self.method.ngram,
            "threshold": self.method.threshold,
            "reason": self.reason,
            "estimate": None if self.estimate is None else self.estimate.record(),
            "levels": [level._asdict() for level in self.levels],
        }

    def write(self, path: AnyPath, *, overwrite: bool = False) -> Path:
        """Write the settings to a TOML file, for `neardup dedup --config`.

        Parameters
        ----------
        path : a file that ends in .toml.
        overwrite : replace it, if it exists.
        """
        return _write_settings(path, self.method, self.reason, overwrite=overwrite)


def _write_settings(path: AnyPath, method: MinHash, comment: str, *, overwrite: bool) -> Path:
    """Write settings to a TOML file, below a comment."""
    file = check_output(path, (".toml",), overwrite=overwrite)
    if callable(method.tokens):
        raise SettingError(
            "tokens is a Python function, which a file cannot contain. Pass the method to dedup."
        )
    limits = {"ngram": method.ngram, "threshold": method.threshold}
    values = method_options(method) | limits
    lines = [
        f"{key} = {_as_toml(value)}"
        for key, value in values.items()
        if key != "method" and value is not None
    ]
    with writing_to(file):
        write_text(file, "\n".join([f"# {comment}", *lines, ""]))
    return file


def _as_toml(value: object) -> str:
    """Return a string, a number, a flag or a list of these as TOML, which writes them as JSON does,
    but for one control character.
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
