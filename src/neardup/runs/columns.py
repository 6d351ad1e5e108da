"""Choose the columns of the text, the id and the rank."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from neardup.documents.batch import Columns
from neardup.documents.nested import ColumnTypes
from neardup.documents.texts import is_identifier, is_rank, is_text, is_vector
from neardup.errors import ColumnError
from neardup.formats.reading import Part
from neardup.settings.constraints import ColumnNames, check_columns

TEXT_NAMES = ("text", "content", "body", "raw_content", "html", "正文")
"""The recognised names of a text column; the first that exists is used."""

VECTOR_NAMES = ("vector", "embedding", "embeddings")
"""The recognised names of a column of vectors."""

ID_NAMES = ("id", "doc_id", "document_id", "_id", "url", "编号")
"""The recognised names of an id column; the first that exists is used."""

QUESTION_NAMES = (
    "question",
    "problem",
    "prompt",
    "query",
    "instruction",
    "input",
    "text",
    "content",
    "sentence",
)
"""The recognised names of the first column of an item; the first that exists is used."""

ANSWER_NAMES = (
    "choices",
    "options",
    "answer",
    "answers",
    "solution",
    "target",
    "output",
    "canonical_solution",
)
"""The recognised names of further columns; all that exist are used."""

FILE_COLUMN = "file"
"""The id of a document that is a file: its path, as it was named."""


def choose_columns(  # noqa: C901
    parts: Sequence[Part],
    text_column: ColumnNames = None,
    id_column: ColumnNames = None,
    rank_columns: Sequence[str] = (),
    value_columns: Sequence[str] = (),
    vector_length: int | None = None,
) -> Columns:
    """Return the columns to read: those named, else those whose names are known, in whatever case.

    Parameters
    ----------
    parts : the inputs. Plain text has no columns, empty and damaged parts show none; both are
        ignored. Pages beside tables need not have the text column: theirs is the HTML.
    text_column : or several, whose texts are joined. Default: the first of `TEXT_NAMES` that every
        part has.
    id_column : or several, whose values are joined. Default: the path where each document is a
        file, the first of `ID_NAMES` that every part has, or None.
    rank_columns, value_columns : columns of numbers or dates; of values that group documents; never
        guessed.
    vector_length : as of `Columns`; the column of vectors is the first of `VECTOR_NAMES` by
        default.

    Raises
    ------
    ColumnError
        If a named column is missing in a part or has an unfit type, or no single text column can be
        guessed.
    """
    if vector_length is not None:
        _refuse_without_vectors(parts)
    types = _types_of(parts)
    _refuse_bare(parts)
    ids: list[Any] = [] if id_column is None else check_columns(id_column)
    has_paths = all(part.unit == "file" for part in parts) and ids in ([], [FILE_COLUMN])
    ids = [FILE_COLUMN] if has_paths else ids
    ranks, values = tuple(rank_columns), tuple(value_columns)
    if not types:  # plain text has no columns, empty parts need none
        if all(part.column_types() is None for part in parts):
            for role, names in (
                ("id", [] if has_paths else ids),
                ("rank", ranks),
                ("value", values),
            ):
                for column in names:
                    _refuse_plain(parts, column, role)
        text, *more = check_columns(text_column or names_of(vector_length)[0])
        return Columns(
            text, next(iter(ids), None), ranks, values, tuple(more), vector_length, tuple(ids[1:])
        )
    # The text of pages is in a fixed column; the text column is that of the other inputs.
    pages = {part.name for part in parts if part.is_pages}
    others = {name: shown for name, shown in types.items() if name not in pages} or types
    guessed = _guess(others, names_of(vector_length)) if text_column is None else None
    if text_column is None and guessed is None:
        raise _no_text_column(others, names_of(vector_length))
    fit = (
        (is_text, "text", "of strings")
        if vector_length is None
        else (is_vector, "a vector", "of lists of numbers")
    )
    texts = [
        _fitting(others, name, *fit)
        for name in (check_columns(text_column) if guessed is None else [guessed])
    ]
    if vector_length is not None and len(texts) > 1:
        raise ColumnError(f"A vector is in one column: got {listed(texts)}. Name one of them.")
    if not ids:
        named = _guess(types, ID_NAMES)
        ids = (
            [named]
            if named and all(is_identifier(columns[named]) for columns in types.values())
            else []
        )
    for column in () if id_column is None else ids:
        _fitting(types, column, is_identifier, "the id", "of strings or numbers")
    if ranks or values:
        types = _types_of(parts, with_keys=True)
    for column in ranks:
        _fitting(types, column, is_rank, "the rank", "of numbers or dates")
        _refuse_plain(parts, column, "rank")
    for column in values:
        _fitting(types, column, is_identifier, "a value", "of strings or numbers")
        _refuse_plain(parts, column, "value")
    id, more_ids = next(iter(ids), None), tuple(ids[1:])
    return Columns(texts[0], id, ranks, values, tuple(texts[1:]), vector_length, more_ids)


def _types_of(parts: Sequence[Part], *, with_keys: bool = False) -> dict[str, ColumnTypes]:
    """Return the columns of the parts that show some, by the name of the part.

    Of parts that are alike only the first is listed: a hundred thousand small files have few kinds
    of columns, and each check below asks every one that is listed.

    with_keys : whether the keys of the folders of a part are columns, too.
    """
    listed: dict[str, ColumnTypes] = {}
    seen: set[Hashable] = set()
    for part in parts:
        columns = part.column_types()
        if not columns:
            continue
        if with_keys:
            columns = dict.fromkeys(part.keys, pa.string()) | columns
        kind = part.is_pages, tuple(columns.items())
        if kind not in seen:
            seen.add(kind)
            listed[part.name] = columns
    return listed


def names_of(vector_length: int | None) -> tuple[str, ...]:
    """Return the recognised names of the column of documents, which are texts or vectors."""
    return TEXT_NAMES if vector_length is None else VECTOR_NAMES


def choose_label(parts: Sequence[Part], label: str) -> str:
    """Return the column of labels, if every part has it.

    Raises
    ------
    ColumnError
        If it is missing in a part, or its type cannot be a label.
    """
    _refuse_plain(
        parts, label, "label", "Use JSON lines, CSV or Parquet, or pass judged pairs (--pairs)."
    )
    advice = "Name the column of labels (label, --label)."
    return _fitting(
        _types_of(parts), label, is_identifier, "a label", "of strings or numbers", advice
    )


def choose_item_columns(
    parts: Sequence[Part], item_columns: ColumnNames, benchmark_column: str | None
) -> tuple[dict[str, float], list[str]]:
    """Return the columns of items with their weights, and those of them that are strings in all
    parts.

    Parameters
    ----------
    item_columns : names, also separated by commas, with a weight that is not 1 as in "answer:0.5".
        Default: the first of `QUESTION_NAMES`, and those of `ANSWER_NAMES` that every part has.
    benchmark_column : a column that every part must have.

    Raises
    ------
    ColumnError
        If a column is missing or weighs nothing, none is recognised, or no column of an item is of
        strings.
    """
    types, advice = _types_of(parts), "Name columns of the items (item_columns, --item-columns)."
    _refuse_bare(parts)
    if benchmark_column is not None:
        _refuse_plain(parts, benchmark_column, "benchmark")
        _named(types, benchmark_column, "Name one of these (benchmark_column, --benchmark-column).")
    names: list[str | None]
    if item_columns is not None:
        names = [name for one in check_columns(item_columns) for name in one.split(",")]
    else:
        names = (
            [_guess(types, QUESTION_NAMES), *(_guess(types, (name,)) for name in ANSWER_NAMES)]
            if types
            else ["text"]
        )
    if names[0] is None:
        part, columns = next(iter(types.items()))
        raise ColumnError(
            f"No column of items in {part}: it has {listed(columns)}. Looked for "
            f"{', '.join(QUESTION_NAMES)}. {advice}"
        )
    chosen = {}
    for name in filter(None, names):
        weighted = re.fullmatch(r"(.+):(\d*\.?\d+)", name)
        column = _named(types, weighted[1] if weighted else name, advice)
        chosen[column] = float(weighted[2]) if weighted else 1.0
        if chosen[column] == 0:
            raise ColumnError(
                f"The weight of a column must be more than 0: got {name!r}. Leave the column out."
            )
    texts = [
        name
        for name in chosen
        if types and all(is_text(columns[name]) for columns in types.values())
    ]
    if types and not texts:
        raise ColumnError(
            f"An item needs a column of strings: got {listed(list(chosen))}. {advice}"
        )
    return chosen, texts


def _named(types: dict[str, ColumnTypes], column: str, advice: str = "Name one of these.") -> str:
    if not isinstance(column, str):
        raise ColumnError(f"The name of a column must be a string: got {column!r:.80}. {advice}")
    for part, columns in types.items():
        if column not in columns:
            close = difflib.get_close_matches(column, columns, n=1, cutoff=0.6)
            hint = _other_separator(columns) or (
                f" Did you mean '{close[0]}'?" if close else f" {advice}"
            )
            raise ColumnError(f"No column '{column}' in {part}: it has {listed(columns)}.{hint}")
    return column


def _guess(types: dict[str, ColumnTypes], names: tuple[str, ...]) -> str | None:
    """Return the column of every part with the first of some names, or None.

    Raises ColumnError if two columns differ in case only and neither is written as the name is.
    """
    first, *others = types.values()
    common = [column for column in first if all(column in other for other in others)]
    for name in names:
        matches = [column for column in common if column.casefold() == name]
        if name in matches or len(matches) == 1:
            return name if name in matches else matches[0]
        if matches:
            part = next(iter(types))
            raise ColumnError(
                f"Which column is '{name}'? {part} has {listed(matches)}. Name the one to use."
            )
    return None


def _no_text_column(types: dict[str, ColumnTypes], names: tuple[str, ...]) -> ColumnError:
    part, columns = next(iter(types.items()))
    known, kind = ", ".join(names), "vectors" if names is VECTOR_NAMES else "text"
    column = "column of vectors" if names is VECTOR_NAMES else "text column"
    option = "--vector-column" if names is VECTOR_NAMES else "--text-column"
    for other_part, other in types.items():
        if set(other) != set(columns):
            return ColumnError(
                f"No column of {kind} that all inputs have: {part} has {listed(columns)}; "
                f"{other_part} has "
                f"{listed(other)}. Looked for {known}. Name the {column} ({option}), or run "
                "such inputs "
                "separately."
            )
    advice = (
        _other_separator(columns)
        or _missing_header(columns)
        or f" Name the {column} (text_column, {option})."
    )
    if names is not VECTOR_NAMES and _guess(types, VECTOR_NAMES):
        advice += " To compare vectors, use method='vectors' (--method vectors)."
    return ColumnError(
        f"No column of {kind} in {part}: it has {listed(columns)}. Looked for {known}.{advice}"
    )


def _other_separator(columns: Mapping[str, object]) -> str:
    """Return advice if the only column seems to be a header of several, with another separator;
    else nothing.
    """
    marks = (
        [mark for mark in ";|\t," if any(mark in name for name in columns)]
        if len(columns) == 1
        else []
    )
    if not marks:
        return ""
    return (
        f" Its columns seem to be separated by {marks[0]!r}: use commas in .csv files, tabs in "
        ".tsv files."
    )


def _missing_header(columns: Mapping[str, object]) -> str:
    """Return advice if the names of columns look like values of a row; else nothing."""
    if not any(name.isdecimal() or name.count(" ") > 2 for name in columns):
        return ""
    return " The first row of CSV and TSV is the names of the columns: add one if it is missing."


def _fitting(
    types: dict[str, ColumnTypes],
    column: str,
    fits: Callable[[pa.DataType], bool],
    role: str,
    needed: str,
    advice: str = "Name one of these.",
) -> str:
    """Return the name of a column. Raises ColumnError if a part has none of the name and of a type
    that fits.
    """
    for part, columns in types.items():
        if not fits(columns[_named(types, column, advice)]):
            able = [name for name, kind in columns.items() if fits(kind)]
            choice = f"Columns {needed}: {listed(able)}" if able else f"It has no column {needed}"
            kind = re.sub(r"(large_)?list<\w+: null>", "lists without values", str(columns[column]))
            raise ColumnError(
                f"Column '{column}' in {part} holds {kind}, which cannot be {role}. {choice}."
            )
    return column


def _refuse_plain(
    parts: Sequence[Part],
    column: str,
    role: str,
    advice: str = "Run it separately, or leave the column out.",
) -> None:
    plain = next((part.name for part in parts if part.column_types() is None), None)
    if plain is not None:
        raise ColumnError(
            f"No {role} column '{column}': {plain} is plain text, which has no columns. {advice}"
        )


def _refuse_bare(parts: Sequence[Part]) -> None:
    """Raise ColumnError if a part is a table without columns."""
    bare = next((part.name for part in parts if part.column_types() == {} and part.is_bare()), None)
    if bare is not None:
        raise ColumnError(
            f"{bare} is a table without columns. Pass one with a column of texts "
            "(text_column, --text-column)."
        )


def _refuse_without_vectors(parts: Sequence[Part]) -> None:
    other = next(
        (part.name for part in parts if part.is_pages or part.column_types() is None), None
    )
    if other is not None:
        raise ColumnError(
            f"No column of vectors in {other}, which is text or a page. Write vectors as JSON "
            "lines, Parquet or Arrow."
        )


def listed(columns: Sequence[str] | ColumnTypes) -> str:
    """Return the names of columns in quotes, the first twenty of many."""
    shown = list(columns)
    more = f" and {len(shown) - 20} more" if len(shown) > 20 else ""
    return ", ".join(f"'{name}'" for name in shown[:20]) + more
