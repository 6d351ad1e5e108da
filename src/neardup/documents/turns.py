"""Texts of several turns, as of a chat: the strings of a list, joined by line ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Ints, Mask, arrow_of, mask_of
from neardup.documents.batch import Columns, DocumentBatch
from neardup.documents.nested import ELEMENTS, ROLE_NAMES, column_of, element_offsets, is_list


class Turns(NamedTuple):
    """The turns of rows, in their order.

    values : the text of each turn, null if it has none. offsets : int64 (num_rows + 1,), the turns
    of each row. is_text : bool (num_turns,), the turns that are in the text: of the chosen
    roles, and not null. is_null : bool (num_rows,), the rows without a list.
    """

    values: pa.Array
    offsets: Ints
    is_text: Mask
    is_null: Mask

    def replaced(self, turns: Ints, texts: pa.LargeStringArray) -> Turns:
        """Return the turns with other texts for some. turns : the numbers of these, rising."""
        is_changed = mask_of(turns, len(self.values))
        values = pc.replace_with_mask(self.values.cast(texts.type), arrow_of(is_changed), texts)
        return self._replace(values=values)


def role_columns(name: str) -> list[str]:
    """Return the columns that may have the roles of the turns of a text; none if its name has no
    list.
    """
    outer, brackets, _ = name.partition(ELEMENTS)
    return [f"{outer}{ELEMENTS}.{role}" for role in ROLE_NAMES] if brackets else []


def mask_of_roles(rows: pa.RecordBatch, name: str, roles: Sequence[str]) -> Mask | None:
    """Return which turns of a column have one of the roles; None if its turns have no roles.

    A turn has the first of ROLE_NAMES that is not null. Lists inside a turn have its role.
    """
    known = [column_of(rows, column) for column in role_columns(name)]
    found = [column.flatten().cast(pa.string()) for column in known if column is not None]
    if not found:
        return None
    chosen = pc.is_in(pc.coalesce(*found), value_set=pa.array(roles, pa.string()))
    mask: Mask = chosen.to_numpy(zero_copy_only=False)
    outer, _, inner_name = name.partition(ELEMENTS)
    if ELEMENTS in inner_name:
        elements = column_of(rows, outer + ELEMENTS)
        assert elements is not None  # the roles are inside
        inner = column_of(pa.RecordBatch.from_struct_array(elements.flatten()), inner_name[1:])
        assert inner is not None
        mask = np.repeat(mask, np.diff(element_offsets(inner)))
    return mask


def turns_of(rows: pa.RecordBatch, name: str, roles: Sequence[str] = ()) -> Turns | None:
    """Return the turns of a column of lists; None if it is no such column.

    roles : the roles whose turns are in the text; all if there are none.
    """
    lists = column_of(rows, name)
    if lists is None or not is_list(lists.type):
        return None
    values = lists.flatten()
    is_text = values.is_valid().to_numpy(zero_copy_only=False)
    has_role = mask_of_roles(rows, name, roles) if roles else None
    return Turns(
        values=values,
        offsets=element_offsets(lists),
        is_text=is_text if has_role is None else is_text & has_role,
        is_null=lists.is_null().to_numpy(zero_copy_only=False),
    )


def turns_of_rows(batch: DocumentBatch, columns: Columns) -> Turns | None:
    """Return the turns of the texts of a batch whose payload is rows of a table; None if they are
    not of turns.
    """
    if not isinstance(batch.payload, pa.RecordBatch):
        return None
    return turns_of(batch.payload, columns.text, columns.roles)
