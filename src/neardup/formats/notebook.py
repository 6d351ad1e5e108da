"""Jupyter notebooks: each file is a document, the source of its cells of code and of text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from neardup.arrays import arrow_of_strings
from neardup.documents.batch import Columns, DocumentBatch, Reject
from neardup.documents.sinks import sink_of_lines
from neardup.documents.sources import Source
from neardup.formats.plain import read_whole
from neardup.formats.registry import Handler
from neardup.formats.whole_files import rejected_file


def read(
    file: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the source of the notebook as one document, or reject the file."""
    has_id = columns.id is not None
    batch = next(read_whole(file, reject, with_id=has_id, with_payload=with_payload), None)
    if batch is None:
        return
    try:
        source = source_of(batch.text[0].as_py())
        yield replace(batch, text=arrow_of_strings([source]))
    except (ValueError, RecursionError) as error:
        reject(rejected_file(file, f"the file is not a notebook: {error}"))


def source_of(notebook: str) -> str:
    """Return the source of the cells of a notebook, version 3 or later, joined by empty lines.

    Raises
    ------
    ValueError
        If it is not the JSON of a notebook.
    """
    texts = [_text_of(cell) for cell in _cells(json.loads(notebook))]
    joined = "\n\n".join(text for text in texts if text is not None)
    # JSON may escape a lone surrogate, which is not Unicode text.
    return joined.encode("utf-8", "replace").decode()


def _cells(content: Any) -> list[Any]:
    """Return the cells of a notebook: version 3 has them in worksheets. Raises ValueError if it has
    none.
    """
    no_cells = ValueError("it has no list of cells")
    if not isinstance(content, dict):
        raise no_cells
    sheets = content.get("worksheets") or [content]
    if not isinstance(sheets, list):
        raise no_cells
    cells: list[Any] = []
    for sheet in sheets:
        cells_of_sheet = _member(sheet, "cells")
        if not isinstance(cells_of_sheet, list):
            raise no_cells
        cells += cells_of_sheet
    return cells


def _text_of(cell: Any) -> str | None:
    """Return the source of a cell, a string or a list of lines; None if it has none."""
    source = _member(cell, "source", "input")
    if isinstance(source, list):
        return "".join(line for line in source if isinstance(line, str))
    return source if isinstance(source, str) else None


def _member(value: Any, *names: str) -> Any:
    """Return the member of a JSON object with the first of some names that it has; None if it has
    none.
    """
    if isinstance(value, dict):
        for name in names:
            if name in value:
                return value[name]
    return None


HANDLER = Handler(read, sink_of_lines)
