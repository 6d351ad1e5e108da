"""Read human judgements: a label for each document, or verdicts on pairs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Ints, Mask
from neardup.documents.batch import Columns
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
    characters of its text. labels : Arrow strings, null or empty where the label is not known; None
    if no label was requested.
    """

    rows: Ints
    lengths: Ints
    labels: pa.Array | None


class Verdicts(NamedTuple):
    """Judged pairs, row by row. left_ids, right_ids : Arrow strings; same : bool. name : of the
    source.
    """

    left_ids: pa.Array
    right_ids: pa.Array
    same: Mask
    name: str


def read_labels(part: Part, columns: Columns, label: str | None) -> Labelled:
    """Read a part again, for its labels and the lengths of its texts; rows that cannot be read are
    left out.
    """
    rows, lengths, labels = (
        [np.empty(0, np.int64)],
        [np.empty(0, np.int64)],
        [pa.array([], pa.string())],
    )
    # A label may have any type of an id, so it is read as the id.
    length_of = pc.utf8_length if columns.vector_length is None else pc.binary_length
    for batch in part.read(
        Columns(columns.text, label, vector_length=columns.vector_length), lambda _: None
    ):
        rows.append(batch.rows)
        lengths.append(pc.fill_null(length_of(batch.text), 0).to_numpy(zero_copy_only=False))
        if batch.ids is not None:
            labels.append(batch.ids.cast(pa.string()))
    return Labelled(
        np.concatenate(rows),
        np.concatenate(lengths),
        None if label is None else pa.concat_arrays(labels),
    )


def read_verdicts(part: Part, column: str | None) -> Verdicts:
    """Read judged pairs: the columns left_id, right_id, and one that says which are duplicates.

    Parameters
    ----------
    part : a Parquet, Arrow, JSON lines, CSV or TSV file, or a table.
    column : of the verdicts, true or false, 1 or 0; a pair where it is null is left out. Default:
        the first of VERDICT_NAMES that is there.

    Raises
    ------
    ColumnError
        If a column is missing or of the wrong type.
    InputError
        If the file cannot be read, or a verdict is neither true nor false.
    """
    table = _table_of(part)
    names = table.column_names
    missing = next((name for name in _PAIR if name not in names), None)
    if missing is not None:
        raise ColumnError(
            f"No column '{missing}' in {part.name}: it has {listed(names)}. Judged pairs need "
            "left_id, right_id and a "
            "column of verdicts. Rename the columns."
        )
    column = column or next((name for name in VERDICT_NAMES if name in names), None)
    if column is None or column not in names:
        named = " or ".join(f"'{name}'" for name in ((column,) if column else VERDICT_NAMES))
        raise ColumnError(
            f"No column {named} in {part.name}: it has {listed(names)}. Name the column of "
            "verdicts, true or false, "
            "as label (--label)."
        )
    same = _as_verdicts(table[column], column, part.name)
    ids = [as_ids(table[name].combine_chunks())[0] for name in _PAIR]
    known = pc.and_(same.is_valid(), pc.and_(ids[0].is_valid(), ids[1].is_valid()))
    if not pc.any(known).as_py():
        raise InputError(
            f"{part.name} contains no judged pair: no row has a left_id, a right_id and a "
            f"{column}. Pass another file."
        )
    left_ids, right_ids = (column.filter(known).cast(pa.string()) for column in ids)
    return Verdicts(
        left_ids, right_ids, same.filter(known).to_numpy(zero_copy_only=False), part.name
    )


def _as_verdicts(column: pa.ChunkedArray, name: str, source: str) -> pa.Array:
    values = column.combine_chunks()
    words = pc.utf8_lower(as_ids(values, "the verdict")[0])
    same = pc.is_in(words, pa.array(["true", "1"], words.type))
    fits = pc.or_(same, pc.is_in(words, pa.array(["false", "0", None], words.type)))
    if pc.any(pc.invert(fits)).as_py():
        row = int(np.argmin(fits.to_numpy(zero_copy_only=False)))
        raise InputError(
            f"The column {name!r} of {source} must have true or false, 1 or 0: got "
            f"{values[row].as_py()!r} in row {row}. Name another column as label (--label), "
            "or convert it."
        )
    return pc.if_else(words.is_valid(), same, pa.scalar(None, pa.bool_()))


def _table_of(part: Part) -> pa.Table:
    """Return all rows of a file or a table."""
    if isinstance(part, TablePart):
        return part.table
    read_table = FORMATS[part.format].handler.read_table
    if read_table is None:
        raise InputError(
            f"{part.name} is a {part.format} file, not a table. Give judged pairs as Parquet, "
            "Arrow, JSON lines, CSV "
            "or TSV."
        )
    try:
        return read_table(part, _PAIR)  # as strings, so that the id 007 stays as it is
    except (pa.ArrowException, UnicodeDecodeError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(
            f"{part.name} cannot be read as judged pairs: {reason}. Fix the file, or name another."
        ) from error
