"""The settings that a sweep suggests, and the pairs that it shows."""

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
from neardup.runs.run import method_options
from neardup.settings.methods import MinHash
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


@dataclass(frozen=True, repr=False, eq=False)
class Suggestion:
    """The settings that a sweep suggests.

    Attributes
    ----------
    method : the suggested settings, or the settings of the sweep if no others are suggested.
    changes : whether others are suggested.
    reason : why, in a sentence.
    clearest : the settings that separate groups best, suggested or not; None if there are none.
    added : up to ten SweepPair that they add to the settings of the sweep.
    above, below : up to three SweepPair, the closest to the threshold from each side.
    levels : the graph of the pairs at each threshold; see `verify.choosing.Level`.
    estimate : the threshold with the largest F1 by answers, suggested or not, with its precision
        and recall, as in `verify.asking.Estimate`; None without an answer that is yes.
    """

    method: MinHash
    changes: bool
    reason: str
    clearest: MinHash | None = None
    added: Sequence[SweepPair] = ()
    above: Sequence[SweepPair] = ()
    below: Sequence[SweepPair] = ()
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
        file = check_output(path, (".toml",), overwrite=overwrite)
        if callable(self.method.tokens):
            raise SettingError(
                "tokens is a Python function, which a file cannot contain. Pass the method to "
                "dedup."
            )
        limits = {"ngram": self.method.ngram, "threshold": self.method.threshold}
        values = method_options(self.method) | limits
        lines = [
            f"{key} = {_as_toml(value)}"
            for key, value in values.items()
            if key != "method" and value is not None
        ]
        with writing_to(file):
            write_text(file, "\n".join([f"# {self.reason}", *lines, ""]))
        return file


def _as_toml(value: object) -> str:
    """Return a string, a number, a flag or a list of these as TOML, which writes them as JSON does,
    but for one control character.
    """
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
