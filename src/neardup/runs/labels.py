"""Read human judgements: a label for each document, or verdicts on pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Ints, Mask
from neardup.documents.batch import Columns
from neardup.documents.lines import STREAM_ERRORS
from neardup.documents.texts import as_ids
from neardup.errors import ColumnError, InputError
from neardup.formats.reading import Part
from neardup.formats.registry import FORMATS
from neardup.formats.tables import TablePart
from neardup.runs.columns import listed

VERDICT_NAMES = ("duplicate", "label")
"""The recognised names of a column of verdicts; the first that exists is used."""

_PAIR = ("left_id", "right_id")


class Labelled(NamedTuple):
    """The labels of one part.

    rows : int64 array, the row of each document in the part, rising. lengths : int64, the
    characters of its text. labels : Arrow strings, null or empty if the label is unknown; None if
    no label was requested.
    """

    rows: Ints
    lengths: Ints
    labels: pa.Array | None


class Verdicts(NamedTuple):
    """Judged pairs, row by row.

    left_ids, right_ids : Arrow strings; same : bool, whether the pair is a duplicate. name : the
    name of the source.
    """

    left_ids: pa.Array
    right_ids: pa.Array
    same: Mask
    name: str


def read_labels(part: Part, columns: Columns, label: str | None) -> Labelled:
    """Read a part again, for its labels and the lengths of its texts; rows that cannot be read are
    left out.
    """
    # So that `concatenate` has an array if the part is empty.
    rows = [np.empty(0, np.int64)]
    lengths = [np.empty(0, np.int64)]
    labels = [pa.array([], pa.string())]
    length_of = pc.utf8_length if columns.vector_length is None else pc.binary_length
    # A label may have any type of an id, so it is read as the id.
    read_columns = Columns(
        columns.text, label, vector_length=columns.vector_length, roles=columns.roles
    )
    for batch in part.read(read_columns, lambda _: None):
        rows.append(batch.rows)
        lengths.append(pc.fill_null(length_of(batch.text), 0).to_numpy(zero_copy_only=False))
        if batch.ids is not None:
            labels.append(batch.ids.cast(pa.string()))
    return Labelled(
        rows=np.concatenate(rows),
        lengths=np.concatenate(lengths),
        labels=None if label is None else pa.concat_arrays(labels),
    )


def read_verdicts(part: Part, column: str | None) -> Verdicts:
    """Read judged pairs: the columns left_id and right_id, and a column of verdicts.

    Parameters
    ----------
    part : a Parquet, Arrow, JSON lines, CSV or TSV file, or a table.
    column : the column of verdicts, true or false, 1 or 0; a pair with a null verdict is left out.
        Default: the first of VERDICT_NAMES that exists.

    Raises
    ------
    ColumnError
        If a column is missing or of the wrong type.
    InputError
        If the file cannot be read, or a verdict is neither true nor false.
    """
    table = _table_of(part)
    column = _verdict_column(table.column_names, column, part.name)
    same = _as_verdicts(table[column], column, part.name)
    # Ids as strings in either table: 7 in one is "7" in the other.
    left_ids = _as_strings(table["left_id"], "the id", part.name)
    right_ids = _as_strings(table["right_id"], "the id", part.name)
    known = pc.and_(same.is_valid(), pc.and_(left_ids.is_valid(), right_ids.is_valid()))
    if not pc.any(known).as_py():
        raise InputError(
            f"{part.name} contains no judged pair: no row has a left_id, a right_id and a "
            f"{column}. Pass another file."
        )
    return Verdicts(
        left_ids=left_ids.filter(known).cast(pa.string()),
        right_ids=right_ids.filter(known).cast(pa.string()),
        same=same.filter(known).to_numpy(zero_copy_only=False),
        name=part.name,
    )


def _verdict_column(names: list[str], column: str | None, source: str) -> str:
    """Return the column of verdicts. Raises ColumnError if it is missing, or a column of ids is."""
    for name in _PAIR:
        if names.count(name) != 1:
            wanted = "single column" if name in names else "column"
            raise ColumnError(
                f"No {wanted} '{name}' in {source}: it has {listed(names)}. Judged pairs need "
                "left_id, right_id and a column of verdicts. Rename the columns."
            )
    accepted = (column,) if column else VERDICT_NAMES
    chosen = next((name for name in accepted if name in names), None)
    if chosen is None:
        wanted = " or ".join(f"'{name}'" for name in accepted)
        raise ColumnError(
            f"No column {wanted} in {source}: it has {listed(names)}. Name the column of verdicts, "
            "true or false, as label (--label)."
        )
    return chosen


def _as_verdicts(column: pa.ChunkedArray, name: str, source: str) -> pa.Array:
    words = pc.utf8_lower(_as_strings(column, "the verdict", source))
    # `is_in` needs both sides of one type.
    same = pc.is_in(words, pa.array(["true", "1"], words.type))
    fits = pc.or_(same, pc.is_in(words, pa.array(["false", "0", None], words.type)))
    if pc.any(pc.invert(fits)).as_py():
        row = int(np.argmin(fits.to_numpy(zero_copy_only=False)))
        raise InputError(
            f"The column {name!r} of {source} must have true or false, 1 or 0: got "
            f"{column[row].as_py()!r} in row {row}. Name another column as label (--label), or "
            "convert it."
        )
    # `is_in` gives False for null, which is an unknown verdict.
    return pc.if_else(words.is_valid(), same, pa.scalar(None, pa.bool_()))


def _as_strings(column: pa.ChunkedArray, what: str, source: str) -> pa.Array:
    """Return a column as strings. Raises InputError for a value that is not UTF-8."""
    strings, bad = as_ids(column.combine_chunks(), what)
    for row, reason in bad.items():
        raise _unreadable(source, f"{reason} in row {row}")
    return strings


def _unreadable(source: str, reason: str) -> InputError:
    return InputError(
        f"{source} cannot be read as judged pairs: {reason}. Fix the file, or name another."
    )


def _table_of(part: Part) -> pa.Table:
    """Return all rows of a file or a table."""
    if isinstance(part, TablePart):
        return part.table
    read_table = FORMATS[part.format].handler.read_table
    if read_table is None:
        raise InputError(
            f"{part.name} is a {part.format} file, not a table. Give judged pairs as Parquet, "
            "Arrow, JSON lines, CSV or TSV."
        )
    try:
        return read_table(part, _PAIR)  # ids as strings, so that the id 007 keeps its zeros
    # Arrow raises UnicodeDecodeError for names of columns that are not UTF-8.
    except (*STREAM_ERRORS, UnicodeDecodeError) as error:
        raise _unreadable(part.name, str(error).partition("\n")[0]) from error
