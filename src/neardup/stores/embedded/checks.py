"""Check the files of an index, and that its tables and documents agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from neardup import kernels
from neardup.errors import StoreError
from neardup.stores.chunks import bits_at
from neardup.stores.embedded.array_files import FileInfo
from neardup.stores.embedded.row_files import check_file
from neardup.stores.key_tables import KeyRun
from neardup.stores.state import View, contents_of

_ROWS_AT_ONCE = 1 << 16


def check_files(folder: Path, list_files: Callable[[], list[FileInfo]]) -> Iterator[str]:
    """Yield what is wrong with files, a sentence each; files that were replaced meanwhile are left out."""
    for info in list_files():
        try:
            check_file(folder, info)
        except StoreError as error:  # noqa: PERF203 - a file is read
            yield str(error)
        except FileNotFoundError:
            if info in list_files():
                yield f"{info.name}: it is missing"


def check_rows(view: View) -> Iterator[str]:
    """Yield where tables of keys are not sorted, or disagree with the documents."""
    num_rows = view.num_rows
    members = np.zeros(num_rows, np.bool_)
    stored = np.zeros(num_rows, np.bool_)
    for table in view.scan(["row", "id", "member", "content"]):
        rows = table.column("row").to_numpy().astype(np.int64)
        stored[rows] = True
        members[rows] = table.column("member").to_numpy()
        if (view.rows_of_ids(table.column("id").combine_chunks()) < 0).any():
            yield f"ids of rows {rows[0]} to {rows[-1]} are not in the table of ids"
        contents = contents_of(table.column("content"))[members[rows]]
        if (view.rows_of_contents(contents) < 0).any():
            yield f"contents of rows {rows[0]} to {rows[-1]} are not in the table of contents"
    if int(stored.sum()) != sum(view.count()):
        yield f"{int(stored.sum())} documents are stored, {sum(view.count())} were counted"
    for run in view.keys.runs:
        for number in range(len(run.tables)):
            listed = stored if number == len(run.tables) - 2 else members
            yield from (
                f"table {number} of rows {run.first} to {run.stop}: {text}"
                for text in _check(run, number, view, listed)
            )


def _check(run: KeyRun, number: int, view: View, listed: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Iterator[str]:
    keys, rows, starts, shift = run.tables[number]
    counts = np.zeros(len(starts), np.uint32)
    last = np.uint64(0)
    for begin in range(0, len(keys), _ROWS_AT_ONCE):
        some, numbers = keys[begin : begin + _ROWS_AT_ONCE], rows[begin : begin + _ROWS_AT_ONCE].astype(np.int64)
        if some[0] < last or (some[1:] < some[:-1]).any():
            yield "keys are not sorted"
        last = some[-1]
        kernels.key_tables.count_cells(np.array(some), shift, counts)
        if numbers.min() < run.first or numbers.max() >= run.stop:
            yield "a row is outside of the run"
        elif not (listed[numbers] | bits_at(view.states.forgotten, numbers)).all():
            yield "a row has no document, or is no member"
    if not np.array_equal(np.cumsum(counts, dtype=np.uint32), starts):
        yield "cells do not agree with the keys"
