"""Turn the decisions of a run into tables of clusters, and into a record of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.decide.decisions import Removals
from neardup.decide.groups import Groups, pick_others
from neardup.output.tables import DocumentLocations
from neardup.schemas import Measures, cluster_summary_schema, clusters_schema
from neardup.verify.measured import Measured, measured_of_copies

MAX_EXAMPLES = 5  # of a group, beside its first document
_ROWS = 65_536
_LARGEST = 10  # groups that the record holds


def cluster_batches(
    groups: Groups, removals: Removals, locations: DocumentLocations, measures: Measures
) -> Iterator[pa.RecordBatch]:
    """Yield a row for each document, in their order; see schemas.clusters_schema."""
    sizes = groups.sizes
    for start in range(0, len(groups.cluster_of), _ROWS):
        documents = np.arange(start, min(start + _ROWS, len(groups.cluster_of)), dtype=np.uint32)
        clusters = groups.cluster_of[start : start + _ROWS]
        columns = [
            locations.ids(documents),
            locations.parts(documents),
            pa.array(locations.rows(documents)),
            pa.array(clusters),
            pa.array(sizes[clusters]),
            pa.array(groups.members[groups.offsets[clusters]] == documents),
            *_measured(removals, documents, measures).arrow(measures),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=clusters_schema(measures))


def _measured(removals: Removals, documents: npt.NDArray[np.uint32], measures: Measures) -> Measured:
    """Return what was measured of documents in a row with the first of their clusters, which may be they themselves."""
    low, high = np.searchsorted(removals.documents, [documents[0], documents[-1] + 1])
    rows = removals.documents[low:high] - documents[0]
    near = removals.measured.take(slice(low, high))
    whole = measured_of_copies(len(documents), measures)
    for name, values in whole.columns.items():
        values[rows] = near[name]
    return whole


def group_batches(groups: Groups, names: Sequence[str], locations: DocumentLocations) -> Iterator[pa.RecordBatch]:
    """Yield a row for each cluster of two documents or more, the largest first; see schemas.cluster_summary_schema."""
    for start in range(0, groups.num_groups, _ROWS):
        stop = min(start + _ROWS, groups.num_groups)
        firsts = groups.members[groups.offsets[start:stop]].astype(np.uint32)
        examples, offsets = pick_others(groups, start, stop, MAX_EXAMPLES)
        ids = locations.ids(examples.astype(np.uint32))
        named: list[str | None] = list(names[start:stop])
        columns = [
            pa.array(np.arange(start, stop)),
            pa.array(groups.sizes[start:stop]),
            pa.array(named + [None] * (stop - start - len(named)), pa.string()),
            locations.ids(firsts),
            pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ids),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=cluster_summary_schema())


def first_rows(groups: Groups, names: Sequence[str], locations: DocumentLocations, most: int) -> list[dict[str, Any]]:
    """Return the rows of the largest groups as plain values, with the locations of the documents that they name.

    Each has a list `places`, of the file and the row of the first document and of the examples.
    """
    largest = groups._replace(num_groups=min(groups.num_groups, most))
    rows = [row for batch in group_batches(largest, names, locations) for row in batch.to_pylist()]
    others, offsets = pick_others(groups, 0, largest.num_groups, MAX_EXAMPLES)
    for row, start, stop in zip(rows, offsets[:-1], offsets[1:], strict=True):
        first = groups.members[groups.offsets[row["cluster"]]]
        shown = np.array([first, *others[start:stop]], np.uint32)
        row["places"] = [
            list(pair) for pair in zip(locations.parts(shown).to_pylist(), locations.rows(shown).tolist(), strict=True)
        ]
    return rows


def describe_groups(report: dict[str, Any], groups: Groups, rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the report of a run with the counts of its groups, and the first of their rows."""
    counts = report["counts"]
    grouped = int(groups.offsets[groups.num_groups])
    own = {
        "read": counts["read"],
        "clusters": groups.num_groups,
        "clustered": grouped,
        "single": counts["read"] - grouped,
        "largest": int(groups.sizes.max(initial=0)),
    }
    left_out = ("read", "kept", "removed", "removed_exact", "removed_near", "against")
    others = {name: value for name, value in counts.items() if name not in left_out}
    return {**report, "counts": own | others, "largest_clusters": list(rows[:_LARGEST])}
