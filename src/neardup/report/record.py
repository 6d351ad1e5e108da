"""The reports of the commands as records: each is complete when it is made, and nobody changes it
afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import NamedTuple

from neardup.files import JsonObject
from neardup.settings.constraints import Options
from neardup.version import __version__

Count = int | None


class Part(JsonObject):
    """A part of a report whose keys are keys of the report itself."""


@dataclass(frozen=True, kw_only=True)
class Record:
    """A JSON object with the fields of the record as its keys, in their order."""

    def to_dict(self) -> JsonObject:
        """Return the values for JSON. Keys that may be missing are of fields with None as their
        default.
        """
        values: JsonObject = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Part):
                values.update(value)
            # A required field has no default, so that its key stays, as null.
            elif value is not None or field.default is not None:
                values[field.name] = value.to_dict() if isinstance(value, Record) else value
        return values


class EngineFacts(NamedTuple):
    """The facts that only an engine knows.

    engine : its name, and the number of its rounds. against, repeated : the documents of an index,
    and the documents of the run that it had before. updated : whether it is updated after the
    output is complete.
    """

    engine: JsonObject | None = None
    against: int | None = None
    repeated: int | None = None
    updated: bool | None = None


NO_FACTS = EngineFacts()
"""The facts of an engine on this machine."""


@dataclass(frozen=True, kw_only=True)
class SearchCounts(Record):
    """The documents and pairs of a search: kept and removed documents, or clusters.

    compared, collisions : None if the engine does not count them.
    """

    read: int
    kept: Count = None
    removed: Count = None
    removed_exact: Count = None
    removed_near: Count = None
    clusters: Count = None
    clustered: Count = None
    known: Count = None
    single: Count = None
    largest: Count = None
    rejected: int
    without_features: int
    against: Count = None
    compared: Count
    confirmed: int
    confirmed_exact: int
    collisions: Count
    removed_with_group: Count = None
    repeated: Count = None


@dataclass(frozen=True, kw_only=True)
class Report(Record):
    """The report of a command. options : of the call; None for a command without a file of
    options.
    """

    version: str = __version__
    command: str
    options: Options | None = None

    def before_update(self) -> Report:
        """Return the report of an output that is complete, before the run changes anything besides
        it.
        """
        return self


@dataclass(frozen=True, kw_only=True)
class SearchReport(Report):
    """The report of a search for near-duplicates.

    losses : files and rows that could not be read. search, histogram : the parts that the method
    describes. bound : the limit of a bucket, and the number of documents for which it hid others.
    """

    scheme: JsonObject
    settings: JsonObject
    method: JsonObject | None
    columns: JsonObject
    max_document_bytes: Count
    inputs: Part
    removed_by_inputs: list[JsonObject]
    counts: SearchCounts
    losses: Part
    search: Part
    recall: JsonObject | None
    recall_sample: JsonObject | None
    bound: JsonObject
    histogram: Part
    cluster_sizes: list[list[int]]
    cost: Part
    source_bytes: int
    removed_bytes: Count = None
    warnings: list[str]


@dataclass(frozen=True, kw_only=True)
class DedupReport(SearchReport):
    """The report of `dedup`. rule : the facts of the rule that decided, by name."""

    command: str = "dedup"
    by_value: JsonObject | None
    write: str
    lang: str
    passages: JsonObject | None = None
    rule: Part
    engine: JsonObject | None = None
    updated: bool | None = None

    def before_update(self) -> DedupReport:
        """Return the report of an output that is complete, before the index is updated."""
        return self if self.updated is None else replace(self, updated=False)

    def at_limit(self, other: DedupReport) -> DedupReport:
        """Return the report of another decision about the pairs of this search."""
        return replace(self, **{name: getattr(other, name) for name in _DECIDED})


_DECIDED = (
    "options",
    "settings",
    "method",
    "inputs",
    "removed_by_inputs",
    "counts",
    "histogram",
    "cluster_sizes",
    "bound",
    "removed_bytes",
    "warnings",
    "by_value",
    "rule",
)
"""The fields that depend on the decision; the others are of the search."""


@dataclass(frozen=True, kw_only=True)
class ClusterReport(SearchReport):
    """The report of `cluster`. largest_clusters : rows of cluster_summary.parquet."""

    command: str = "cluster"
    largest_clusters: list[JsonObject]
    lang: str
    engine: JsonObject | None = None


@dataclass(frozen=True, kw_only=True)
class PairsReport(SearchReport):
    """The report of `find_pairs`. rejected : the rows of rejected.jsonl, which is not written."""

    command: str = "find-pairs"
    rejected: list[JsonObject]
    engine: JsonObject | None = None


@dataclass(frozen=True, kw_only=True)
class EvaluationReport(SearchReport):
    """The report of `evaluate`, with the scores as in `results.Evaluation`."""

    command: str = "evaluate"
    truth: JsonObject
    rejected: list[JsonObject]
    at_threshold: JsonObject
    best: JsonObject
    adjusted_rand: float | None
    adjusted_rand_connected: float | None
    curve: list[JsonObject]
    by_length: list[JsonObject]


@dataclass(frozen=True, kw_only=True)
class PassagesReport(Report):
    """The report of `remove_passages`. rejected : the rows of rejected.jsonl; None if another
    report has them.
    """

    command: str = "passages"
    settings: JsonObject
    columns: JsonObject
    counts: dict[str, int]
    source_bytes: int
    inputs: Part
    losses: Part
    cost: Part
    warnings: list[str]
    write: str
    lang: str
    rejected: list[JsonObject] | None = None


@dataclass(frozen=True, kw_only=True)
class ContaminationReport(Report):
    """The report of `find_contamination`."""

    command: str = "contamination"
    settings: JsonObject
    columns: JsonObject
    counts: dict[str, int]
    benchmarks: list[JsonObject]
    between: list[JsonObject]
    inputs: Part
    losses: Part
    cost: Part
    warnings: list[str]
    rejected: list[JsonObject]
    write: str
    lang: str
