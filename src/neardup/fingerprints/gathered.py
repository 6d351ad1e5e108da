"""Gather the fingerprints of several files or tables in one array, without their ids, which are
looked up later.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from neardup.arrays import Array, Ints, Mask, Words, arrow_file, arrow_of
from neardup.fingerprints.fingerprints import Fingerprints, read_scheme, read_values
from neardup.fingerprints.sketches import read_batches, read_ids


class FingerprintFile:
    """A Parquet file of fingerprints, of which one column is read at a time.

    Parameters
    ----------
    path : the file.

    Raises
    ------
    InputError, ColumnError
        As `Fingerprints.open`, but for nulls among the ids: see `pieces`.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.scheme = read_scheme(next(read_batches(path)).schema, path)
        with arrow_file(path) as file:
            self._metadata = pq.read_metadata(file)

    def __len__(self) -> int:
        """Return the number of rows, empty ones included."""
        return int(self._metadata.num_rows)

    def pieces(self) -> Iterator[tuple[Words, Mask]]:
        """Yield the values and the empty rows, some 65,000 rows at a time; ColumnError if a row
        lacks an id.
        """
        columns = ["fingerprint", "id"] if self._may_lack_ids() else ["fingerprint"]
        for table in read_batches(self.path, columns):
            values, empty = read_values(table, self.path)
            if len(columns) > 1:
                read_ids(table, empty, self.path)
            yield values, empty

    def ids(self, rows: Ints) -> pa.Array:
        """Return the ids of rows, which rise, as strings; row numbers if the file has no ids."""
        if "id" not in self._metadata.schema.names:
            return arrow_of(rows).cast("large_string")
        taken, first = [pa.array([], "large_string")], 0
        for table in read_batches(self.path, ["id"]):
            stop = first + table.num_rows
            chosen = rows[slice(*np.searchsorted(rows, [first, stop]))]
            if len(chosen):
                taken.append(
                    table["id"].take(arrow_of(chosen - first)).combine_chunks().cast("large_string")
                )
            first = stop
        return pa.concat_arrays(taken)

    def _may_lack_ids(self) -> bool:
        """Return whether the statistics of the file cannot exclude a null among the ids."""
        if "id" not in self._metadata.schema.names:
            return False
        column = self._metadata.schema.names.index("id")
        groups = (
            self._metadata.row_group(number).column(column)
            for number in range(self._metadata.num_row_groups)
        )
        return any(group.statistics is None or group.statistics.null_count != 0 for group in groups)


class Count(NamedTuple):
    """The number of fingerprints of a source, and of its rows without one."""

    fingerprints: int
    without_features: int


class Gathered:
    """The fingerprints of all sources, one source after the other, without empty rows.

    Attributes
    ----------
    values : uint64 array of shape (num_fingerprints, num_words). That of a single source in memory
        without empty rows is not copied.
    counts : by source.
    """

    def __init__(self, sources: Mapping[str, Fingerprints | FingerprintFile]) -> None:
        self._sources = sources
        self._empty: dict[str, Ints] = {}
        self.counts: dict[str, Count] = {}
        only = next(iter(sources.values()))
        if len(sources) == 1 and isinstance(only, Fingerprints) and not only.empty.any():
            self.values = only.values
            self._end_source(next(iter(sources)), len(only), [])
            return
        words = -(-int(only.scheme["bits"]) // 64)
        values, used = np.empty((sum(map(len, sources.values())), words), np.uint64), 0
        for name, source in sources.items():
            first, rows, empty_rows = used, 0, []
            pieces = (
                [(source.values, source.empty)]
                if isinstance(source, Fingerprints)
                else source.pieces()
            )
            for piece, empty in pieces:
                featured = piece[~empty] if empty.any() else piece
                values[used : used + len(featured)] = featured
                empty_rows.append(rows + np.flatnonzero(empty))
                rows, used = rows + len(piece), used + len(featured)
            self._end_source(name, used - first, empty_rows)
        self.values = values[:used]

    def ids(self, positions: Array) -> pa.Array:
        """Return the ids of positions in `values`, which rise, as strings. Complexity: one pass
        over the id columns.
        """
        taken, first = [pa.array([], "large_string")], 0
        for name, source in self._sources.items():
            stop, empty = first + self.counts[name].fingerprints, self._empty[name]
            chosen = (
                positions[slice(*np.searchsorted(positions, [first, stop]))].astype(np.int64)
                - first
            )
            # The row of a fingerprint is its number, and one more for each empty row before it.
            rows = chosen + np.searchsorted(empty - np.arange(len(empty)), chosen, side="right")
            ids = (
                source.ids(rows)
                if isinstance(source, FingerprintFile)
                else source.ids.take(arrow_of(rows))
            )
            taken.append(ids.cast("large_string"))
            first = stop
        return pa.concat_arrays(taken)

    def _end_source(self, name: str, count: int, empty_rows: list[Ints]) -> None:
        self._empty[name] = np.concatenate([np.empty(0, np.int64), *empty_rows])
        self.counts[name] = Count(count, len(self._empty[name]))
