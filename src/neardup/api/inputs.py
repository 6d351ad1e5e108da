"""Guess what users passed: a path, a pattern, texts, a table. Here and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from neardup.documents.batch import Part
from neardup.documents.columns import choose_columns
from neardup.documents.input_file import format_of
from neardup.documents.inputs import list_inputs
from neardup.documents.tables import TablePart
from neardup.engines.describe import Task
from neardup.errors import InputError
from neardup.formats import is_pages
from neardup.shingling import PAGE_TOKENS, Shingling

Source = Any  # a path, a glob, an address, a list of these or of texts, or what speaks Arrow's PyCapsule stream

AnyMethod = TypeVar("AnyMethod", bound=Shingling)


class Inputs(NamedTuple):
    """What is to be read, and how; as in `dedup`."""

    source: Source
    against: Source | None = None
    text_column: str | None = None
    id_column: str | None = None
    text_unit: str = "auto"


def tasks_of(inputs: Inputs, keep: str) -> list[Task]:
    """Return the parts to read, those of the earlier collection first."""
    rank = keep.partition(":")[2] or None
    tasks = []
    if inputs.against is not None:
        parts = _parts(inputs.against, inputs.text_unit, "against")
        columns = choose_columns(parts, inputs.text_column, inputs.id_column, None)
        tasks += [Task(part, columns, True) for part in parts]
    parts = _parts(inputs.source, inputs.text_unit, "source")
    columns = choose_columns(parts, inputs.text_column, inputs.id_column, rank)
    return tasks + [Task(part, columns, False) for part in parts]


def for_pages(method: AnyMethod, tasks: Sequence[Task]) -> AnyMethod:
    """Return the method for these inputs: of web pages it compares the main text, unless it says what else.

    Raises
    ------
    InputError
        If some inputs are pages and others texts, and the method does not read all as pages.
    """
    pages = [task.part for task in tasks if is_pages(task.part.format)]
    if not pages or method.html is not None or method.tokens in PAGE_TOKENS:
        return method
    other = next((task.part for task in tasks if not is_pages(task.part.format)), None)
    if other is not None:
        raise InputError(
            f"Some inputs are web pages, and others texts: {pages[0].name} and {other.name}. Run them one after the "
            "other, or say that all hold pages: html='main' (--html main), or structure() (--method structure)."
        )
    return replace(method, html="main")


def _parts(source: Source, text_unit: str, name: str) -> Sequence[Part]:
    paths = named_paths(source)
    if paths:
        return list_inputs(paths, unit=text_unit)
    return [TablePart(source, name)]


def named_paths(source: Source) -> list[str]:
    """Return the paths that a source names; none if it is texts or a table."""
    if isinstance(source, (str, os.PathLike)):
        return [os.fspath(source)]
    if not isinstance(source, (list, tuple)) or not all(isinstance(one, (str, os.PathLike)) for one in source):
        return []
    named = [isinstance(one, os.PathLike) or _looks_like_path(one) for one in source]
    return [os.fspath(one) for one in source] if source and all(named) else []


def _looks_like_path(text: str) -> bool:
    """Return whether a string is a path that exists or has a known suffix, a pattern, an address, or standard input."""
    if text == "-":
        return True
    if len(text) > 4096 or "\n" in text or "\0" in text or not text.strip():
        return False
    if os.path.exists(text):
        return True
    is_pattern = "/" in text and any(mark in text for mark in "*?[")
    return " " not in text and ("://" in text or is_pattern or format_of(text)[0] is not None)
