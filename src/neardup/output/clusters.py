"""Build the tables of clusters from the decisions of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from neardup.arrays import Positions
from neardup.decide.clusters import Clusters, pick_others
from neardup.decide.outcome import Removals
from neardup.files import JsonObject
from neardup.runs.locations import DocumentLocations
from neardup.schemas import Measures, cluster_summary_schema, clusters_schema
from neardup.verify.measured import Measured, measured_of_copies

MAX_EXAMPLES = 5  # of a cluster, besides its kept document
_ROWS = 65_536


def cluster_batches(
    clusters: Clusters, removals: Removals, locations: DocumentLocations, measures: Measures
) -> Iterator[pa.RecordBatch]:
    """Yield a row for each new document, in input order; see schemas.clusters_schema."""
    sizes = clusters.sizes
    for start in range(locations.num_against, len(clusters.cluster_of), _ROWS):
        numbers = clusters.cluster_of[start : start + _ROWS]
        documents = np.arange(start, start + len(numbers), dtype=np.uint32)
        # The first member of each cluster is its kept document.
        firsts = clusters.members[clusters.offsets[numbers]].astype(np.uint32)
        columns = [
            *locations.columns(documents),
            pa.array(numbers),
            pa.array(sizes[numbers]),
            pa.array(firsts == documents),
            locations.ids(firsts),
            locations.roles(firsts),
            *_measured(removals, documents, measures).arrow(measures),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=clusters_schema(measures))


def _measured(removals: Removals, documents: Positions, measures: Measures) -> Measured:
    """Return the measures of consecutive documents against the kept document of their cluster (or
    themselves).
    """
    low, high = np.searchsorted(removals.documents, [documents[0], documents[-1] + 1])
    rows = removals.documents[low:high] - documents[0]
    near = removals.measured.take(slice(low, high))
    # Documents that were not removed are compared with themselves, as copies.
    whole = measured_of_copies(len(documents), measures)
    for name, values in whole.columns.items():
        values[rows] = near[name]
    return whole


def cluster_summary_batches(
    clusters: Clusters, names: Sequence[str], locations: DocumentLocations
) -> Iterator[pa.RecordBatch]:
    """Yield a row for each cluster of two documents or more, the largest first; see
    schemas.cluster_summary_schema.
    """
    for start in range(0, clusters.num_clusters, _ROWS):
        stop = min(start + _ROWS, clusters.num_clusters)
        firsts = clusters.members[clusters.offsets[start:stop]].astype(np.uint32)
        examples, offsets = pick_others(clusters, start, stop, MAX_EXAMPLES)
        ids = locations.ids(examples.astype(np.uint32))
        named = list(names[start:stop])
        columns = [
            pa.array(np.arange(start, stop)),
            pa.array(clusters.sizes[start:stop]),
            # Only the largest clusters have names.
            pa.array(named + [None] * (stop - start - len(named)), pa.string()),
            locations.ids(firsts),
            locations.roles(firsts),
            pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), ids),
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=cluster_summary_schema())


def first_rows(
    clusters: Clusters, names: Sequence[str], locations: DocumentLocations, most: int
) -> list[JsonObject]:
    """Return the rows of the largest clusters as Python values, with the locations of the documents
    that they name.

    Each has a list `places`: the file and the row of the kept document and of each example.
    """
    largest = clusters._replace(num_clusters=min(clusters.num_clusters, most))
    rows = [
        row
        for batch in cluster_summary_batches(largest, names, locations)
        for row in batch.to_pylist()
    ]
    others, offsets = pick_others(clusters, 0, largest.num_clusters, MAX_EXAMPLES)
    for row, start, stop in zip(rows, offsets[:-1], offsets[1:], strict=True):
        first = clusters.members[clusters.offsets[row["cluster"]]]
        shown = np.array([first, *others[start:stop]], np.uint32)
        row["places"] = [[place.file, place.row] for place in locations.places(shown)]
    return rows
