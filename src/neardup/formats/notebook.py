"""Jupyter notebooks: a file is a document, the source of its cells, whether of code or of text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from neardup.arrays import arrow_of_strings
from neardup.documents.batch import Columns, DocumentBatch, Reject, Rejected
from neardup.documents.sinks import sink_of_lines
from neardup.documents.sources import Source
from neardup.formats.plain import read_whole
from neardup.formats.registry import Handler


def read(
    file: Source, columns: Columns, reject: Reject, *, with_payload: bool = False
) -> Iterator[DocumentBatch]:
    """Yield the source of the notebook as one document, or reject the file."""
    batch = next(
        read_whole(file, reject, with_id=columns.id is not None, with_payload=with_payload), None
    )
    if batch is None:
        return
    try:
        yield replace(batch, text=arrow_of_strings([source_of(batch.text[0].as_py())]))
    except (ValueError, RecursionError) as error:
        reject(Rejected(file.name, 0, None, None, f"the file is not a notebook: {error}"))


def source_of(notebook: str) -> str:
    """Return the source of the cells of a notebook, of version 3 or later, with an empty line
    between them.

    Raises
    ------
    ValueError
        If it is not the JSON of a notebook.
    """
    content = json.loads(notebook)
    sheets = (content.get("worksheets") or [content]) if isinstance(content, dict) else None
    if not isinstance(sheets, list) or not all(
        isinstance(_field(sheet, "cells"), list) for sheet in sheets
    ):
        raise ValueError("it has no list of cells")
    sources = [_field(cell, "source", "input") for sheet in sheets for cell in sheet["cells"]]
    texts = [
        "".join(filter(_is_text, source)) if isinstance(source, list) else source
        for source in sources
    ]
    joined = "\n\n".join(filter(_is_text, texts))
    return joined.encode("utf-8", "replace").decode()  # a lone surrogate is not Unicode


def _field(value: Any, *names: str) -> Any:
    """Return the first of some members that an object of JSON has; None if it has none, or is no
    object.
    """
    return (
        next((value[name] for name in names if name in value), None)
        if isinstance(value, dict)
        else None
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


HANDLER = Handler(read, sink_of_lines)
