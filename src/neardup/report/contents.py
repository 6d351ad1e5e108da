"""Make the reports of runs, with the losses of inputs and values."""

from __future__ import annotations

import posixpath
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from neardup.arrays import Integers, Words
from neardup.candidates.blocks import Radius
from neardup.decide.clusters import Clusters
from neardup.decide.outcome import Outcome, Totals
from neardup.documents.batch import Corpus, Losses, ValueNames
from neardup.errors import IncompleteWarning, InputError
from neardup.features.divided_words import warn_of_divided_words
from neardup.files import JsonObject
from neardup.fingerprints.gathered import Count
from neardup.fingerprints.sketches import Scheme
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.methods.registry import settings_or_none
from neardup.progress import Stages
from neardup.report.record import (
    NO_FACTS,
    ClusterReport,
    DedupReport,
    EngineFacts,
    Part,
    SearchCounts,
)
from neardup.report.rows import ReportValues
from neardup.report.wording import plural, shortened, visible
from neardup.settings.constraints import Options
from neardup.settings.run import SelectionSettings
from neardup.verify.recall import Recall
from neardup.version import __version__


def warn_if_incomplete(report: ReportValues, on_error: str) -> None:
    """Warn whoever called neardup, unless lost files were declared to be no error."""
    if report["incomplete"] is None or on_error == "skip":
        return
    # The warning names the line that called neardup: frames of neardup itself are passed over.
    level = 1
    frame = sys._getframe()
    # A job that ends is a context manager.
    while frame.f_back is not None and frame.f_globals["__name__"].startswith(
        ("neardup.", "contextlib")
    ):
        level = level + 1
        frame = frame.f_back
    warnings.warn(report["incomplete"]["message"], IncompleteWarning, stacklevel=level)


def refuse_incomplete(losses: Losses, on_error: str) -> None:
    """Raise InputError, before an index is updated, if a run could not read all of its inputs."""
    incomplete = _incomplete(losses)
    if incomplete is None or on_error == "skip":
        return
    raise InputError(
        f"The index is not updated, and no output is written: {incomplete['message']} Then "
        "continue with resume=True (--resume)."
    )


_MAX_VALUES = 1000  # in a report
_MAX_REASON = 300  # characters
_MAX_SHARE = 0.9
_MIN_DOCUMENTS = 20


def removed_by_input(outcome: Totals) -> list[int]:
    """Return the number of removed documents of each input."""
    cells = outcome.counts.by_inputs  # removed input, kept input, documents, bytes
    removed = cells[:, 0]
    documents = cells[:, 2]
    ends = outcome.corpus.part_ends
    # Counts with weights are floats, exact up to 2^53.
    with_keeper = np.bincount(removed, documents, len(ends)).astype(np.int64)
    # Documents that are removed without a keeper are in no cell.
    without_keeper = np.bincount(
        np.searchsorted(ends, outcome.others, "right"), minlength=len(ends)
    )
    counts: list[int] = (with_keeper + without_keeper).tolist()
    return counts


def removed_by_value(outcome: Outcome, hashes: Words, column: str) -> JsonObject:
    """Return the documents and removals of each value of a column, the most removals first.

    Parameters
    ----------
    hashes : uint64 by document, the hash of its value.
    """
    first = outcome.corpus.num_against
    distinct, of_document = np.unique(hashes[first:], return_inverse=True)
    documents = np.bincount(of_document, minlength=len(distinct))
    removed = np.bincount(of_document[outcome.removals.documents - first], minlength=len(distinct))
    names = outcome.corpus.names
    return describe_values(column, distinct, documents, removed, names)


def describe_values(
    column: str, hashes: Words, documents: Integers, removed: Integers, names: ValueNames
) -> JsonObject:
    """Return the counts of values, the most removals first, then the most documents, then by the
    hash of the value.

    names : of all hashes.
    """
    # `lexsort` sorts by its last key first.
    order = np.lexsort((hashes, -documents, -removed))[:_MAX_VALUES]
    shown = zip(
        names.find(hashes[order]), documents[order].tolist(), removed[order].tolist(), strict=True
    )
    rows = [{"value": value, "documents": number, "removed": gone} for value, number, gone in shown]
    return {"column": column, "num_values": len(hashes), "values": rows}


def warn_of_losses(
    tasks: Sequence[Task], outcome: Totals, by_value: ReportValues | None
) -> list[str]:
    """Return a warning if more than 90 % of the documents of an input, or of a value, were removed.

    by_value : the counts by the values of a column, if the run has one. Without one, files of one
        document each count by their folder.
    """
    counts = _source_counts(tasks, outcome) if by_value is None else _value_counts(by_value)
    lost = [
        f"{count.removed:,} of the {count.documents:,} documents of {name}"
        for name, count in counts.items()
        if count.documents >= _MIN_DOCUMENTS and count.removed > _MAX_SHARE * count.documents
    ]
    if not lost:
        return []
    more = f"; and {len(lost) - 3:,} more" if len(lost) > 3 else ""
    return [
        f"Nearly all documents of a source were removed: {'; '.join(lost[:3])}{more}. Read some of "
        "them in report.html. If texts of different sources are not to be compared, set within "
        "(--within COLUMN)."
    ]


def warn_of_textless(losses: Losses) -> list[str]:
    """Return a warning that names the PDF files without a text layer."""
    if not losses.textless_files:
        return []
    names = ", ".join(losses.textless[:3])
    more = f" and {losses.textless_files - 3:,} more" if losses.textless_files > 3 else ""
    return [
        f"No text layer, 0 words, in {plural(losses.textless_files, 'PDF file')}: {names}{more}. "
        "They count as empty documents, which match nothing. Add a text layer, for example by "
        "ocrmypdf."
    ]


class _Removed(NamedTuple):
    """The documents of a source, and how many of them were removed."""

    documents: int
    removed: int


def _source_counts(tasks: Sequence[Task], outcome: Totals) -> dict[str, _Removed]:
    """Return the counts of each new input; files of one document each count by their folder."""
    counts: dict[str, _Removed] = {}
    sizes = np.diff([0, *outcome.corpus.part_ends.tolist()]).tolist()
    for task, size, removed in zip(tasks, sizes, removed_by_input(outcome), strict=True):
        if task.against:
            continue
        part = task.part
        # One file of one document is wholly removed or not: a folder tells more.
        name = posixpath.dirname(part.name) or "." if part.unit == "file" else part.name
        before = counts.get(name, _Removed(0, 0))
        counts[name] = _Removed(before.documents + size, before.removed + removed)
    return counts


def _value_counts(by_value: ReportValues) -> dict[str, _Removed]:
    """Return the counts of each value of a column."""
    column = by_value["column"]
    return {
        f"{column}={row['value']}": _Removed(row["documents"], row["removed"])
        for row in by_value["values"]
    }


MAX_INPUTS = 1000  # that the report lists
_MAX_CELLS = 400  # pairs of inputs that it lists
_LARGEST = 10  # clusters that it lists


class Findings(NamedTuple):
    """The findings of a search, from which a report is made once the output is written.

    warnings : of the inputs. engine : the facts that only the engine knows. rule : the facts of the
    rule that decided. options : of the call.
    """

    tasks: list[Task]
    method: Method
    selection: SelectionSettings
    outcome: Totals
    stages: Stages
    warnings: list[str]
    engine: EngineFacts = NO_FACTS
    rule: Mapping[str, Any] = {}
    options: Options | None = None

    @property
    def bound(self) -> dict[str, int]:
        """The limit of a bucket, and the number of documents for which it hid others."""
        own = self.method.max_bucket_size
        chosen = self.selection.max_bucket_size
        return {
            "max_bucket_size": own if chosen is None else chosen,
            "documents": self.outcome.num_bucket_overflows,
        }


def dedup_report(
    found: Findings,
    *,
    by_value: JsonObject | None,
    write: str,
    lang: str,
    passages: JsonObject | None = None,
) -> DedupReport:
    """Return the report of `dedup`.

    by_value : the removals for each value of a column, if counted. passages : the settings and
    counts of the passages that were cut from kept documents, if any were looked for.
    """
    losses = warn_of_losses(found.tasks, found.outcome, by_value)
    return DedupReport(
        **search_fields(found._replace(warnings=found.warnings + losses)),
        removed_bytes=int(found.outcome.counts.by_inputs[:, 3].sum()),
        by_value=by_value,
        write=write,
        lang=lang,
        passages=passages,
        rule=Part(found.rule),
        engine=found.engine.engine,
        updated=found.engine.updated,
    )


def cluster_report(
    found: Findings, clusters: Clusters, rows: Sequence[JsonObject], lang: str
) -> ClusterReport:
    """Return the report of `cluster`; rows : the largest clusters.

    Known documents, which come first, are counted in no cluster but as its first document.
    """
    counts = _counts(found)
    num_known = found.outcome.corpus.num_against
    new = clusters.cluster_of[num_known:]
    num_clustered = int(np.count_nonzero(new < clusters.num_clusters))
    # The first member of a cluster is from the earlier collection if any member is.
    is_known = clusters.members[clusters.offsets[new]] < num_known
    counts = replace(
        counts,
        kept=None,
        removed=None,
        removed_exact=None,
        removed_near=None,
        clusters=clusters.num_clusters,
        clustered=num_clustered,
        known=int(np.count_nonzero(is_known)) if num_known else None,
        single=counts.read - num_clustered,
        largest=int(clusters.sizes.max(initial=0)),
        against=counts.against or None,
    )
    return ClusterReport(
        **search_fields(found, counts),
        largest_clusters=list(rows[:_LARGEST]),
        lang=lang,
        engine=found.engine.engine,
    )


def search_fields(found: Findings, counts: SearchCounts | None = None) -> JsonObject:
    """Return the fields of a `SearchReport`; counts : in place of kept and removed documents."""
    tasks = found.tasks
    method = found.method
    outcome = found.outcome
    tally = outcome.corpus.tally
    return {
        "options": found.options,
        "scheme": method.scheme(),
        "settings": method.other_settings(found.selection),
        "method": settings_or_none(method.settings),
        "columns": _columns(tasks),
        "max_document_bytes": min((task.max_document_bytes for task in tasks), default=None),
        "inputs": _searched_inputs(found),
        "removed_by_inputs": _removed_by_inputs(tasks, outcome),
        "counts": _counts(found) if counts is None else counts,
        "losses": describe_losses(tally.losses, tally.documents),
        "search": Part(method.describe_search(outcome)),
        "recall": _recall(outcome.recall),
        "recall_sample": _recall_sample(outcome.sampled_recall, found.selection.recall_sample),
        "bound": found.bound,
        "histogram": Part(method.histogram(outcome.counts)),
        "cluster_sizes": outcome.counts.cluster_sizes,
        "cost": describe_cost(found.stages, tally.documents, tally.text_bytes),
        "source_bytes": tally.text_bytes - tally.against_bytes,
        "warnings": _warnings(found),
    }


def _warnings(found: Findings) -> list[str]:
    """Return the warnings about a search, then about its inputs."""
    tally = found.outcome.corpus.tally
    return [
        *warn_of_bound(**found.bound),
        *found.method.warnings(found.outcome),
        *warn_of_divided_words(tally.divided),
        *found.warnings,
        *warn_of_textless(tally.losses),
    ]


def describe_losses(losses: Losses, num_documents: int) -> Part:
    """Return the parts of a report about unreadable files and rows; a part without any is None.

    num_documents : the documents that the run has read.
    """
    return Part(
        incomplete=_incomplete(losses),
        unreadable=_unreadable(losses, num_documents),
        excluded={"rows": losses.excluded, "too_long": losses.too_long}
        if losses.excluded
        else None,
        textless={"files": losses.textless_files, "names": losses.textless}
        if losses.textless_files
        else None,
    )


def _incomplete(losses: Losses) -> JsonObject | None:
    if not losses.unread_files:
        return None
    lost = [f"{name}: {_shortened(reason)}" for name, reason in islice(losses.unread.items(), 3)]
    more = f"; and {losses.unread_files - 3:,} more" if losses.unread_files > 3 else ""
    message = (
        f"{plural(losses.unread_files, 'file')} could not be read completely: "
        f"{'; '.join(lost)}{more}. What could be read is in the result. Make the files readable "
        "and run again, or accept this with on_error='skip' (--on-error skip)."
    )
    return {"files": losses.unread_files, "names": list(losses.unread), "message": message}


def _unreadable(losses: Losses, num_documents: int) -> JsonObject | None:
    if not losses.unreadable:
        return None
    message = (
        f"{losses.unreadable:,} of {plural(num_documents + losses.unreadable, 'row')} could not be "
        f"read, such as {_shortened(losses.first)}. Convert the file, name its format with "
        "in_format (--in-format), or accept this with on_error='skip' (--on-error skip)."
    )
    return {"rows": losses.unreadable, "message": message}


def _shortened(reason: str) -> str:
    return shortened(visible(" ".join(reason.split())).rstrip("."), _MAX_REASON)


def peak_memory() -> int | None:
    """Return the peak memory of this process in bytes; None if the system does not report it."""
    try:  # on Linux, ru_maxrss also counts the memory of the parent at the fork
        with open("/proc/self/status", "rb") as file:
            return next(int(line.split()[1]) * 1024 for line in file if line.startswith(b"VmHWM:"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        return None
    # ru_maxrss has bytes on macOS and KiB on other systems.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def describe_inputs(tasks: Sequence[Task], corpus: Corpus, **columns: Sequence[Any]) -> Part:
    """Return the part of a report about its inputs; columns : further values of each, by name."""
    columns = {
        "name": [task.part.name for task in tasks],
        "format": [task.part.format for task in tasks],
        "documents": np.diff([0, *corpus.part_ends]).tolist(),
        "rejected": corpus.part_rejected.tolist(),
        **columns,
    }
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    return Part(inputs=rows[:MAX_INPUTS], num_inputs=len(tasks))


def _searched_inputs(found: Findings) -> Part:
    tasks = found.tasks
    corpus = found.outcome.corpus
    documents = np.diff([0, *corpus.part_ends]).tolist()
    if found.engine.against is not None:  # the run has read few of the documents in the index
        documents[0] = found.engine.against
    return describe_inputs(
        tasks,
        corpus,
        documents=documents,
        unit=[task.part.unit for task in tasks],
        kept=[None if task.against else task.part.relative_name for task in tasks],
        removed=removed_by_input(found.outcome),
        role=roles_of(tasks),
    )


def roles_of(tasks: Sequence[Task]) -> list[str]:
    """Return the role of each input: against for the earlier collection, otherwise source."""
    return ["against" if task.against else "source" for task in tasks]


def _removed_by_inputs(tasks: list[Task], outcome: Totals) -> list[JsonObject]:
    """Return the number of documents that each input removed from each input, the largest first."""
    cells = outcome.counts.by_inputs  # removed input, kept input, documents, bytes
    # Equal counts in the order of the inputs, so that equal runs give equal reports.
    largest = cells[np.argsort(-cells[:, 2], kind="stable")[:_MAX_CELLS]]
    return [
        {
            "removed_from": tasks[removed].part.name,
            "kept_in": tasks[kept].part.name,
            "documents": count,
        }
        for removed, kept, count, _ in largest.tolist()
    ]


def _columns(tasks: list[Task]) -> JsonObject:
    """Return the columns of documents that may be removed; joined columns are a list."""
    columns = next((task.columns for task in tasks if not task.against), None)
    if columns is None:
        return {"text": None, "id": None}
    return {
        "text": list(columns.texts) if columns.more_text else columns.text,
        "id": list(columns.ids) if columns.more_ids else columns.id,
    }


def _counts(found: Findings) -> SearchCounts:
    outcome = found.outcome
    engine = found.engine
    corpus = outcome.corpus
    counts = outcome.counts
    new = corpus.num_documents - corpus.num_against
    has_fingerprints = found.method.describe_search(outcome)["fingerprints"] is not None
    return SearchCounts(
        read=new,
        kept=new - counts.removed - len(outcome.others),
        removed=counts.removed,
        removed_exact=counts.removed_exact,
        removed_near=counts.removed - counts.removed_exact,
        rejected=corpus.tally.losses.rejected,
        without_features=corpus.tally.without_features,
        against=corpus.num_against if engine.against is None else engine.against,
        compared=outcome.compared,
        confirmed=counts.pairs,
        confirmed_exact=counts.pairs_exact,
        collisions=outcome.collisions if has_fingerprints else 0,
        removed_with_group=found.rule.get("groups", {}).get("removed_with_group"),
        repeated=engine.repeated,
    )


def _recall(recall: Recall | None) -> dict[str, float] | None:
    if recall is None:
        return None
    return {"estimated": recall.estimated, "low": recall.low, "high": recall.high}


def _recall_sample(recall: Recall | None, documents: int) -> JsonObject | None:
    if not documents:
        return None
    found: JsonObject = {"pairs": 0, "found": 0, "recall": None, "low": None, "high": None}
    if recall is not None:
        found = {
            "pairs": recall.num_pairs,
            "found": round(recall.estimated * recall.num_pairs),
            "recall": recall.estimated,
            "low": recall.low,
            "high": recall.high,
        }
    return {"documents": documents, **found}


def warn_of_bound(*, documents: int, max_bucket_size: int) -> list[str]:
    """Return a warning if a full bucket hid earlier documents from others."""
    if not documents:
        return []
    shares, were = ("shares", "was") if documents == 1 else ("share", "were")
    return [
        f"{plural(documents, 'document')} {shares} a bucket with more than "
        f"{plural(max_bucket_size, 'earlier document')}, and {were} compared only with the first "
        f"{max_bucket_size:,}. Raise max_bucket_size (--max-bucket-size) to compare with all."
    ]


def fingerprint_pairs_report(
    scheme: Scheme,
    counts: Mapping[str, Count],
    radius: Radius,
    num_pairs: int,
    stages: Stages,
    *,
    options: Options,
    warnings: list[str],
) -> JsonObject:
    """Return the report of a search for pairs of fingerprints. options : of the call."""
    count = sum(each.fingerprints for each in counts.values())
    return {
        "version": __version__,
        "command": "find-pairs",
        "scheme": dict(scheme),
        "settings": {"max_distance": radius.max_distance, "num_blocks": radius.num_blocks},
        "inputs": [{"name": name, **each._asdict()} for name, each in counts.items()],
        "counts": {
            "fingerprints": count,
            "without_features": sum(each.without_features for each in counts.values()),
            "confirmed": num_pairs,
        },
        **describe_losses(Losses(), 0),
        **describe_cost(stages, count),
        "warnings": warnings,
        "options": options,
    }


def describe_cost(stages: Stages, count: int, text_bytes: int | None = None) -> Part:
    """Return the part of a report about time and memory.

    count : documents of a run that read `text_bytes` of text, or fingerprints of one that read no
    text.
    """
    seconds = sum(stages.seconds.values())
    # A run may take no measurable time.
    divisor = max(seconds, 1e-9)
    rates: JsonObject = {"fingerprints_per_second": round(count / divisor)}
    if text_bytes is not None:
        rates = {
            "bytes": text_bytes,
            "megabytes_per_second": round(text_bytes / 1e6 / divisor, 1),
            "documents_per_second": round(count / divisor),
        }
    return Part(
        timings=[
            {"stage": name, "seconds": round(value, 4)} for name, value in stages.seconds.items()
        ],
        seconds=round(seconds, 4),
        compile_seconds=round(stages.compile_seconds, 4),
        **rates,
        peak_memory_bytes=peak_memory(),
    )
