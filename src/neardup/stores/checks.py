"""Check that the documents of a store, its tables of ids and contents, and its counts agree."""

from __future__ import annotations

import numpy as np

from neardup.errors import StoreError
from neardup.schemas import KEPT
from neardup.stores.base import Counts
from neardup.stores.chunks import array_of
from neardup.stores.hashed import HashedSnapshot, contents_of


def check_rows(snapshot: HashedSnapshot) -> list[str]:
    """Return the disagreements, a sentence each."""
    found, num_kept, num_rows = [], 0, 0
    try:
        for table in snapshot.scan(["row", "id", "state", "member", "content"]):
            rows = table.column("row").to_numpy().astype(np.int64)
            kept, members = table.column("state").to_numpy() == KEPT, table.column("member").to_numpy()
            wrong = (snapshot.rows_of_ids(array_of(table.column("id"))) != rows) | (snapshot.are_kept(rows) != kept)
            wrong[members] |= snapshot.rows_of_contents(contents_of(table.column("content"))[members]) < 0
            if wrong.any():
                found.append(f"{int(wrong.sum())} documents from row {rows[wrong][0]} on differ from their entries.")
            num_kept, num_rows = num_kept + int(kept.sum()), num_rows + len(rows)
    except StoreError as error:
        return [*found, str(error)]
    stored = Counts(num_kept, num_rows - num_kept)
    if stored != snapshot.count():
        found.append(f"The numbers of kept and removed documents are {tuple(stored)}, not {tuple(snapshot.count())}.")
    return found
