"""Gather the fingerprints of several files or tables in one array; ids are looked up later."""

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
    """A Parquet file of fingerprints, read one column at a time.

    Parameters
    ----------
    path : the file.

    Raises
    ------
    InputError, ColumnError
        As for `Fingerprints.open`, except for nulls among the ids: see `pieces`.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        no_rows = next(read_batches(path))
        self.scheme = read_scheme(no_rows.schema, path)
        read_ids(no_rows, np.zeros(0, np.bool_), path)  # raises if their type has no text
        with arrow_file(path) as file:
            self._metadata = pq.read_metadata(file)
        # The schema of Parquet names the fields inside a column, too.
        self._has_ids = "id" in self._metadata.schema.to_arrow_schema().names

    def __len__(self) -> int:
        """Return the number of rows, empty ones included."""
        return int(self._metadata.num_rows)

    def pieces(self) -> Iterator[tuple[Words, Mask]]:
        """Yield values and the mask of empty rows, some 65,000 rows at a time.

        Raises ColumnError if the id of a row is null.
        """
        columns = ["fingerprint", "id"] if self._may_lack_ids() else ["fingerprint"]
        for table in read_batches(self.path, columns):
            values, empty = read_values(table, self.path)
            if len(columns) > 1:
                read_ids(table, empty, self.path)  # raises if an id is null
            yield values, empty

    def ids(self, rows: Ints) -> pa.Array:
        """Return the ids of rows, which must rise, as strings; row numbers if there are no ids."""
        if not self._has_ids:
            return arrow_of(rows).cast("large_string")
        parts = [pa.array([], "large_string")]
        first = 0
        for table in read_batches(self.path, ["id"]):
            stop = first + table.num_rows
            rows_of_table = _between(rows, first, stop) - first
            if len(rows_of_table):
                ids = table["id"].take(arrow_of(rows_of_table))
                parts.append(ids.combine_chunks().cast("large_string"))
            first = stop
        return pa.concat_arrays(parts)

    def _may_lack_ids(self) -> bool:
        """Return whether the statistics of the file cannot exclude a null among the ids."""
        for number in range(self._metadata.num_row_groups):
            group = self._metadata.row_group(number)
            for column in map(group.column, range(group.num_columns)):
                # A field `id` of another column has a longer path.
                if column.path_in_schema == "id":
                    statistics = column.statistics
                    if statistics is None or statistics.null_count != 0:
                        return True
        return False


def _between(rising: Array, start: int, stop: int) -> Array:
    """Return the numbers of a rising array from `start` to below `stop`."""
    first, end = np.searchsorted(rising, [start, stop])
    return rising[first:end]


class Count(NamedTuple):
    """The number of fingerprints of a source, and of its rows without features."""

    fingerprints: int
    without_features: int


class Gathered:
    """The fingerprints of all sources, one source after the other, without empty rows.

    Attributes
    ----------
    values : uint64 array of shape (num_fingerprints, num_words); not a copy if the only source is
        in memory and has no empty rows.
    counts : the number of fingerprints, by source.
    """

    def __init__(self, sources: Mapping[str, Fingerprints | FingerprintFile]) -> None:
        self._sources = sources
        self._empty_rows: dict[str, Ints] = {}
        self.counts: dict[str, Count] = {}
        name, only = next(iter(sources.items()))
        if len(sources) == 1 and isinstance(only, Fingerprints) and not only.empty.any():
            self.values = only.values
            self._empty_rows[name] = np.empty(0, np.int64)
            self.counts[name] = Count(fingerprints=len(only), without_features=0)
            return
        # Room for empty rows, too, which are not known yet; the pages of the rest stay unused.
        num_words = -(-int(only.scheme["bits"]) // 64)
        num_rows = sum(map(len, sources.values()))
        values = np.empty((num_rows, num_words), np.uint64)
        used = 0
        for name, source in sources.items():
            self._fill(name, source, values[used:])
            used += self.counts[name].fingerprints
        self.values = values[:used]

    def _fill(self, name: str, source: Fingerprints | FingerprintFile, values: Words) -> None:
        """Write the fingerprints of a source to the beginning of `values`."""
        if isinstance(source, Fingerprints):
            pieces = iter([(source.values, source.empty)])
        else:
            pieces = source.pieces()
        num_rows = 0
        used = 0
        empty_rows = [np.empty(0, np.int64)]
        for piece, empty in pieces:
            featured = piece[~empty] if empty.any() else piece
            values[used : used + len(featured)] = featured
            empty_rows.append(num_rows + np.flatnonzero(empty))
            num_rows += len(piece)
            used += len(featured)
        self._empty_rows[name] = np.concatenate(empty_rows)
        self.counts[name] = Count(fingerprints=used, without_features=num_rows - used)

    def ids(self, positions: Array) -> pa.Array:
        """Return the ids of positions in `values`, which must rise, as strings.

        Complexity: one pass over the id columns.
        """
        parts = [pa.array([], "large_string")]
        first = 0
        for name, source in self._sources.items():
            stop = first + self.counts[name].fingerprints
            numbers = _between(positions, first, stop).astype(np.int64) - first
            # The row of a fingerprint is its number plus the number of empty rows before it.
            empty_rows = self._empty_rows[name]
            num_featured_before = empty_rows - np.arange(len(empty_rows))
            rows = numbers + np.searchsorted(num_featured_before, numbers, side="right")
            if isinstance(source, FingerprintFile):
                ids = source.ids(rows)
            else:
                ids = source.ids.take(arrow_of(rows))
            parts.append(ids.cast("large_string"))
            first = stop
        return pa.concat_arrays(parts)
