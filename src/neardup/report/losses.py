"""Count the removals of each input and of each value of a column, and warn where nearly all documents were removed."""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.decide.outcome import Outcome, Totals
from neardup.formats.reading import Task

Ints = npt.NDArray[np.integer[Any]]
_MAX_VALUES = 1000  # in a report
_MAX_SHARE, _MIN_DOCUMENTS = 0.9, 20


def removed_by_input(outcome: Totals) -> list[int]:
    """Return the number of removed documents of each input."""
    removed, _, documents, _ = outcome.counts.by_inputs.T
    counts: list[int] = np.bincount(removed, documents, len(outcome.corpus.part_ends)).astype(np.int64).tolist()
    return counts


def removed_by_value(outcome: Outcome, hashes: npt.NDArray[np.uint64], column: str) -> dict[str, Any]:
    """Return the documents and removals of each value of a column, the most removals first, as values for JSON.

    Parameters
    ----------
    hashes : uint64 by document, the hash of its value.
    """
    first = outcome.corpus.num_against
    distinct, of_document = np.unique(hashes[first:], return_inverse=True)
    documents = np.bincount(of_document, minlength=len(distinct))
    removed = np.bincount(of_document[outcome.removals.documents - first], minlength=len(distinct))
    names = outcome.corpus.tally.values
    return describe_values(column, distinct, documents, removed, lambda row: names.get(str(distinct[row])))


def describe_values(
    column: str, hashes: Ints, documents: Ints, removed: Ints, name: Callable[[int], str | None]
) -> dict[str, Any]:
    """Return the counts of values, the most removals first, then the most documents, then by the hash of the value.

    name : returns the value of a row.
    """
    order = np.lexsort((hashes, -documents, -removed))[:_MAX_VALUES]
    rows = [{"value": name(row), "documents": int(documents[row]), "removed": int(removed[row])} for row in order]
    return {"column": column, "num_values": len(hashes), "values": rows}


def warn_of_losses(tasks: Sequence[Task], outcome: Totals, by_value: Mapping[str, Any] | None) -> list[str]:
    """Return a warning for the inputs, or values of the column, of which more than 90 % of the documents were removed.

    Files of one document each count by their folder.
    """
    sizes = np.diff([0, *outcome.corpus.part_ends.tolist()]).tolist()
    counts: dict[str, tuple[int, int]] = {}
    for task, size, removed in zip(tasks, sizes, removed_by_input(outcome), strict=True):
        if not task.against:
            part = task.part
            name = posixpath.dirname(part.name) or "." if part.unit == "file" else part.name
            before = counts.get(name, (0, 0))
            counts[name] = before[0] + size, before[1] + removed
    if by_value is not None:
        column = by_value["column"]
        counts = {f"{column}={row['value']}": (row["documents"], row["removed"]) for row in by_value["values"]}
    lost = [
        f"{removed:,} of the {size:,} documents of {name}"
        for name, (size, removed) in counts.items()
        if size >= _MIN_DOCUMENTS and removed > _MAX_SHARE * size
    ]
    if not lost:
        return []
    shown = "; ".join(lost[:3]) + (f"; and {len(lost) - 3:,} more" if len(lost) > 3 else "")
    return [
        f"Nearly all documents of a source were removed: {shown}. Read some of them in report.html. If texts of "
        "different sources are not to be compared, set within (--within COLUMN)."
    ]
