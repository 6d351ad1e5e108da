"""Choose the columns of the text, the id and the rank."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from neardup.documents.batch import Columns
from neardup.documents.nested import ELEMENTS, ColumnTypes
from neardup.documents.texts import (
    is_identifier,
    is_rank,
    is_text,
    is_turns,
    is_vector,
    storage_type,
)
from neardup.documents.turns import role_columns
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

CHOICE_NAMES = ("choices", "options")
"""The recognised names of columns of choices; all that exist are used."""

ANSWER_NAMES = (
    "answer",
    "answers",
    "solution",
    "solutions",
    "target",
    "output",
    "canonical_solution",
    "code",
)
"""The recognised names of columns of answers; all that exist are used."""

FILE_COLUMN = "file"
"""The id of a document that is a file or a message: its path, as it was named."""


def choose_columns(
    parts: Sequence[Part],
    text_column: ColumnNames = None,
    id_column: ColumnNames = None,
    rank_columns: Sequence[str] = (),
    value_columns: Sequence[str] = (),
    *,
    vector_length: int | None = None,
) -> Columns:
    """Return the columns to read: the named ones, or columns with recognised names in any case.

    Parameters
    ----------
    parts : the inputs. Plain text has no columns, empty and damaged parts show none; both are
        ignored. Pages beside tables need not have the text column: their text is the HTML.
    text_column : one column, or several to join their texts. Default: the first of `TEXT_NAMES`
        that every part has.
    id_column : one column, or several to join their values. Default: the path if each document is
        a file, the first of `ID_NAMES` that every part has, or None.
    rank_columns, value_columns : columns of numbers or dates; columns of values that group
        documents; never guessed.
    vector_length : see `Columns`; the default column of vectors is the first of `VECTOR_NAMES`.

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
    # A document that is a file has its path as its id, unless the user names another column.
    ids = [] if id_column is None else check_columns(id_column)
    has_path = all(part.unit in ("file", "message") for part in parts)
    id_is_path = has_path and ids in ([], [FILE_COLUMN])
    if id_is_path:
        ids = [FILE_COLUMN]

    if types:
        texts = _choose_texts(parts, types, text_column, vector_length)
        ids = ids or _guess_id(types)
        # A guessed id has been checked by `_guess_id`, which leaves an unfit column out.
        if id_column is not None:
            for column in ids:
                _fitting(types, column, _ID)
        _check_keys(parts, rank_columns, value_columns)
    else:
        # The path is an id of any text, so that it needs no column.
        named_ids = [] if id_is_path else ids
        _refuse_if_all_plain(parts, named_ids, rank_columns, value_columns)
        texts = check_columns(text_column or names_of(vector_length)[0])

    return Columns(
        text=texts[0],
        id=ids[0] if ids else None,
        ranks=tuple(rank_columns),
        values=tuple(value_columns),
        more_text=tuple(texts[1:]),
        vector_length=vector_length,
        more_ids=tuple(ids[1:]),
    )


class _Role(NamedTuple):
    """The use of a column, and the types it may have.

    kind : the adjective of such a column. meaning, types : the same use and its types, as in the
    sentences "cannot be the id" and "columns of strings or numbers".
    """

    kind: str
    meaning: str
    fits: Callable[[pa.DataType], bool]
    types: str


_TEXT = _Role(
    "text",
    "text",
    lambda kind: is_text(kind) or is_turns(kind),
    "of strings",
)
_VECTOR = _Role("vector", "a vector", is_vector, "of lists of numbers")
_ID = _Role("id", "the id", is_identifier, "of strings or numbers")
_RANK = _Role("rank", "the rank", is_rank, "of numbers or dates")
_ORDER = _Role("date", "a date", is_rank, "of numbers or dates")
_VALUE = _Role("value", "a value", is_identifier, "of strings or numbers")
_LABEL = _Role("label", "a label", is_identifier, "of strings or numbers")


def _choose_texts(
    parts: Sequence[Part],
    types: dict[str, ColumnTypes],
    text_column: ColumnNames,
    vector_length: int | None,
) -> list[str]:
    """Return the columns of the text or the vector, by name or guessed."""
    # Pages have their text in a fixed column, so a text column belongs to the other inputs.
    pages = {part.name for part in parts if part.is_pages}
    # Pages alone: their own columns are looked at.
    others = {name: columns for name, columns in types.items() if name not in pages} or types
    if text_column is None:
        recognised = names_of(vector_length)
        guessed = _guess(others, recognised)
        if guessed is None:
            raise _no_text_column(others, recognised)
        names = [guessed]
    else:
        names = check_columns(text_column)

    role = _TEXT if vector_length is None else _VECTOR
    texts = [_fitting(others, name, role) for name in names]
    if vector_length is None:
        texts = [_with_elements(others, name) for name in texts]
    elif len(texts) > 1:
        raise ColumnError(f"A vector is in one column: got {listed(texts)}. Name one of them.")
    return texts


def _with_elements(types: dict[str, ColumnTypes], name: str) -> str:
    """Return a column of the text, as `tags[]` if it has lists of strings: a reader of lines then
    knows that it has, from the name alone.
    """
    if name.endswith(ELEMENTS) or not any(is_turns(columns[name]) for columns in types.values()):
        return name
    elements = name + ELEMENTS
    if any(elements in columns for columns in types.values()):
        return _fitting(types, elements, _TEXT)
    return name  # inside lists already, as in `messages[].content`


def _guess_id(types: dict[str, ColumnTypes]) -> list[str]:
    """Return the column with a recognised name if its type fits in all parts, or no column."""
    name = _guess(types, ID_NAMES)
    # A column named id may have another use, such as a list: rows are numbered then.
    if name is None or not all(is_identifier(columns[name]) for columns in types.values()):
        return []
    return [name]


def _check_keys(
    parts: Sequence[Part], rank_columns: Sequence[str], value_columns: Sequence[str]
) -> None:
    """Raise ColumnError unless all parts have the columns of ranks and of values."""
    for role, columns in ((_RANK, rank_columns), (_VALUE, value_columns)):
        for column in columns:
            # Folders such as year=2024 give all their rows a value.
            _refuse_plain(parts, column, role.kind, in_folders=True)
            _fitting(_types_of(parts, (column,)), column, role)
            _refuse_deep(parts, column)


def _refuse_deep(parts: Sequence[Part], column: str) -> None:
    """Raise ColumnError if a column is a level of folders, such as folder:3, that no file has."""
    for part in parts:
        in_folders = part.folder_values((column,))
        # A column of the file comes first.
        if in_folders.get(column, "") is not None or column in (part.column_types() or {}):
            return
    raise ColumnError(
        f"No file is in a folder '{column}': folder:1 is the first folder below a named input, "
        f"and {parts[0].name} is not so deep. Name the folder above it, or leave the column out."
    )


def check_ordered(parts: Sequence[Part], columns: Sequence[str]) -> None:
    """Raise ColumnError unless a column has numbers or dates, of one type in all parts."""
    for column in columns:
        types = _types_of(parts, (column,))
        _fitting(types, column, _ORDER)
        kinds = {
            name: storage_type(columns_of_part[column]) for name, columns_of_part in types.items()
        }
        known = {name: kind for name, kind in kinds.items() if not pa.types.is_null(kind)}
        for name, kind in known.items():
            first, first_kind = next(iter(known.items()))
            if kind != first_kind:
                raise ColumnError(
                    f"Column '{column}' must have one type in all inputs, since its values are "
                    f"compared: got {first_kind} in {first} and {kind} in {name}. Convert it to "
                    "one of them."
                )


def check_roles(parts: Sequence[Part], texts: Sequence[str]) -> None:
    """Raise ColumnError unless the texts of each part with columns are of turns with roles."""
    types = _types_of(parts)
    wanted = [column for name in texts for column in role_columns(name)]
    for part, columns in types.items():
        found = [name for name in wanted if name in columns]
        if not found or not all(is_turns(columns[name]) for name in found):
            with_roles = [name for name in columns if _has_role(columns, name)]
            raise _no_roles(f"{listed(texts)} of {part}", with_roles)
    if not types:
        raise _no_roles(f"{parts[0].name}, which is plain text", [])


def _no_roles(got: str, with_roles: Sequence[str]) -> ColumnError:
    """Return the error for a text without roles. with_roles : the columns that have them."""
    advice = "Leave it out."
    if with_roles:
        advice = f"Name another by text_column (--text-column): {listed(with_roles)}."
    return ColumnError(
        f"roles (--roles) needs a text of turns that have a field role or from: got {got}. {advice}"
    )


def _has_role(columns: ColumnTypes, name: str) -> bool:
    """Return whether a column has texts in turns with roles."""
    roles = role_columns(name)
    is_role = name in roles
    return not is_role and is_turns(columns[name]) and any(role in columns for role in roles)


def _types_of(parts: Sequence[Part], in_folders: Sequence[str] = ()) -> dict[str, ColumnTypes]:
    """Return the columns of the parts that have columns, by the name of the part.

    Parts with the same columns are listed once: a hundred thousand small files have few kinds of
    columns, and each check below looks at every listed part.

    in_folders : columns whose values may be in the names of folders. The keys of folders are then
        columns, too.
    """
    types = {}
    seen = set()
    for part in parts:
        columns = part.column_types()
        if in_folders and columns != {}:
            names = [*part.keys, *part.folder_values(in_folders)]
            columns = dict.fromkeys(names, pa.string()) | (columns or {})
        if not columns:
            continue
        # Pages are told from tables: the text column is looked for in tables only.
        kind = (part.is_pages, tuple(columns.items()))
        if kind not in seen:
            seen.add(kind)
            types[part.name] = columns
    return types


def names_of(vector_length: int | None) -> tuple[str, ...]:
    """Return the recognised names of the column of texts, or of vectors."""
    return TEXT_NAMES if vector_length is None else VECTOR_NAMES


def choose_label(parts: Sequence[Part], label: str) -> str:
    """Return the column of labels, if every part has it.

    Raises
    ------
    ColumnError
        If it is missing in a part, or its type cannot be a label.
    """
    _refuse_plain(
        parts,
        label,
        _LABEL.kind,
        "Use JSON lines, CSV or Parquet, or pass judged pairs (--pairs).",
    )
    advice = "Name the column of labels (label, --label)."
    return _fitting(_types_of(parts), label, _LABEL, advice)


def choose_item_columns(
    parts: Sequence[Part], item_columns: ColumnNames, benchmark_column: str | None
) -> tuple[dict[str, float], list[str]]:
    """Return the weight of each column of an item, and the columns that are strings in all parts.

    Parameters
    ----------
    item_columns : names, also separated by commas, with a weight that is not 1 as in "answer:0.5".
        Default: the first of `QUESTION_NAMES` that every part has, and the `CHOICE_NAMES` and
        `ANSWER_NAMES` that any part has.
    benchmark_column : a column that every part must have.

    Raises
    ------
    ColumnError
        If a column is missing or weighs nothing, none is recognised, or no column of an item is of
        strings.
    """
    types = _types_of(parts)
    _refuse_bare(parts)
    if benchmark_column is not None:
        _refuse_plain(parts, benchmark_column, "benchmark")
        _named(types, benchmark_column, "Name one of these (benchmark_column, --benchmark-column).")

    if item_columns is None:
        weights = dict.fromkeys(_usual_item_columns(types), 1.0)
    else:
        weights = _weighted(types, item_columns)
    # Plain text has one column, which is text. It has the first of the names.
    texts = [name for name in weights if _is_item_text(types, name)] if types else [*weights][:1]
    if not texts:
        got = listed(list(weights)) or repr(item_columns)
        raise ColumnError(f"An item needs a column of strings: got {got}. {_ITEM_ADVICE}")
    return weights, texts


_WEIGHTED = re.compile(r"(.+):(\d{1,9}|\d{0,9}\.\d+)")  # answer:0.5


def _weighted(types: dict[str, ColumnTypes], item_columns: ColumnNames) -> dict[str, float]:
    """Return the weight of each column that a user names."""
    # On the command line, names are separated by commas, too.
    names = [name for column in check_columns(item_columns) for name in column.split(",")]
    weights = {}
    for name in filter(None, names):
        weighted = _WEIGHTED.fullmatch(name)
        if any(name in columns for columns in types.values()):
            weighted = None  # the name of a column may end like a weight
        column = _named(types, weighted[1] if weighted else name, _ITEM_ADVICE)
        weights[column] = float(weighted[2]) if weighted else 1.0
        if weights[column] == 0:
            raise ColumnError(
                f"The weight of a column must be more than 0: got {name!r}. Leave the column out."
            )

    return weights


def _is_item_text(types: dict[str, ColumnTypes], name: str) -> bool:
    """Return whether all parts have a column of an item, of strings, or of strings in lists that it
    names.
    """
    kinds = [columns.get(name) for columns in types.values()]
    return all(
        kind is not None and (is_text(kind) or (ELEMENTS in name and is_turns(kind)))
        for kind in kinds
    )


_ITEM_ADVICE = "Name columns of the items (item_columns, --item-columns)."


def is_answer(column: str) -> bool:
    """Return whether a column of an item has a recognised name of answers."""
    return column.lower() in ANSWER_NAMES


def _usual_item_columns(types: dict[str, ColumnTypes]) -> list[str]:
    """Return the recognised columns of an item: a question, which every part has, and the choices
    and answers of any part.
    """
    if not types:
        return ["text"]
    question = _guess(types, QUESTION_NAMES)
    if question is None:
        raise _no_item_column(types)
    answers = [
        _guess({part: columns}, (name,))
        for name in (*CHOICE_NAMES, *ANSWER_NAMES)
        for part, columns in types.items()
    ]
    return list(dict.fromkeys([question, *filter(None, answers)]))


def _no_item_column(types: dict[str, ColumnTypes]) -> ColumnError:
    part, columns = next(iter(types.items()))
    known = f"Looked for {', '.join(QUESTION_NAMES)}."
    for other_part, other in types.items():
        # Each part may have a column of items, but not the same one.
        if set(other) != set(columns):
            return ColumnError(
                f"No column of items that all inputs have: {part} has {listed(columns)}; "
                f"{other_part} has {listed(other)}. {known} Run such inputs separately, or give "
                "their columns one name."
            )
    return ColumnError(
        f"No column of items in {part}: it has {listed(columns)}. {known} {_ITEM_ADVICE}"
    )


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
    """Return the first recognised column that every part has, or None.

    Raises ColumnError if two columns differ from a name in case only.
    """
    first, *others = types.values()
    # In the order of the first part: it decides among several.
    common = [column for column in first if all(column in other for other in others)]
    for name in names:
        if name in common:
            return name
        matches = [column for column in common if column.casefold() == name]
        if len(matches) == 1:
            return matches[0]
        if matches:
            part = next(iter(types))
            raise ColumnError(
                f"Which column is '{name}'? {part} has {listed(matches)}. Name the one to use."
            )
    return None


def _no_text_column(types: dict[str, ColumnTypes], names: tuple[str, ...]) -> ColumnError:
    part, columns = next(iter(types.items()))
    known = ", ".join(names)
    are_vectors = names is VECTOR_NAMES
    kind = "vectors" if are_vectors else "text"
    column = "column of vectors" if are_vectors else "text column"
    option = "--vector-column" if are_vectors else "--text-column"
    for other_part, other in types.items():
        # Each part may have a text column, but not the same one.
        if set(other) != set(columns):
            return ColumnError(
                f"No column of {kind} that all inputs have: {part} has {listed(columns)}; "
                f"{other_part} has {listed(other)}. Looked for {known}. Name the {column} "
                f"({option}), or run such inputs separately."
            )
    advice = (
        _other_separator(columns)
        or _missing_header(columns)
        or f" Name the {column} (text_column, {option})."
    )
    # Rows of vectors given to a method of texts.
    if not are_vectors and _guess(types, VECTOR_NAMES):
        advice += " To compare vectors, use method='vectors' (--method vectors)."
    return ColumnError(
        f"No column of {kind} in {part}: it has {listed(columns)}. Looked for {known}.{advice}"
    )


def _other_separator(columns: Mapping[str, object]) -> str:
    """Return advice if the only column looks like a header with another separator, or nothing."""
    if len(columns) != 1:
        return ""
    header = next(iter(columns))
    mark = next((mark for mark in ";|\t," if mark in header), None)
    if mark is None:
        return ""
    return (
        f" Its columns seem to be separated by {mark!r}: use commas in .csv files, tabs in .tsv "
        "files."
    )


def _missing_header(columns: Mapping[str, object]) -> str:
    """Return advice if the names of columns look like the values of a row, or nothing."""
    if not any(name.isdecimal() or name.count(" ") > 2 for name in columns):
        return ""
    return " The first row of CSV and TSV is the names of the columns: add one if it is missing."


def _fitting(
    types: dict[str, ColumnTypes],
    column: str,
    role: _Role,
    advice: str = "Name one of these.",
) -> str:
    """Return a column. Raises ColumnError if a part lacks it or its type does not fit the role."""
    for part, columns in types.items():
        column_type = columns[_named(types, column, advice)]
        if role.fits(column_type):
            continue
        fitting = [name for name, other_type in columns.items() if role.fits(other_type)]
        choice = (
            f"Columns {role.types}: {listed(fitting)}"
            if fitting
            else f"It has no column {role.types}"
        )
        # The type of a column of empty lists: "null" would say nothing to a user.
        shown = re.sub(r"(large_)?list<\w+: null>", "lists without values", str(column_type))
        raise ColumnError(
            f"Column '{column}' in {part} holds {shown}, which cannot be {role.meaning}. {choice}."
        )
    return column


def _refuse_plain(
    parts: Sequence[Part],
    column: str,
    kind: str,
    advice: str = "Run it separately, or leave the column out.",
    *,
    in_folders: bool = False,
) -> None:
    """Raise ColumnError if a part is plain text.

    in_folders : accept plain text whose folders have a value of the column.
    """
    # None: no columns at all, as plain text; an empty dictionary is a table without columns, or a
    # damaged file.
    for part in parts:
        if part.column_types() is None and not (in_folders and part.folder_values((column,))):
            raise ColumnError(
                f"No {kind} column '{column}': {part.name} is plain text, which has no columns. "
                f"{advice}"
            )


def _refuse_if_all_plain(
    parts: Sequence[Part], ids: Sequence[str], ranks: Sequence[str], values: Sequence[str]
) -> None:
    """Raise ColumnError if a column is named, but all parts are plain text."""
    if any(part.column_types() is not None for part in parts):
        return
    for column in ids:
        _refuse_plain(parts, column, _ID.kind)
    _check_keys(parts, ranks, values)


def _refuse_bare(parts: Sequence[Part]) -> None:
    """Raise ColumnError if a part is a table without columns."""
    for part in parts:
        if part.column_types() == {} and part.is_bare():
            raise ColumnError(
                f"{part.name} is a table without columns. Pass one with a column of texts "
                "(text_column, --text-column)."
            )


def _refuse_without_vectors(parts: Sequence[Part]) -> None:
    """Raise ColumnError if a part is text or a page."""
    for part in parts:
        if part.is_pages or part.column_types() is None:
            raise ColumnError(
                f"No column of vectors in {part.name}, which is text or a page. Write vectors as "
                "JSON lines, Parquet or Arrow."
            )


def listed(columns: Sequence[str] | ColumnTypes) -> str:
    """Return the names of columns in quotes, at most twenty of them."""
    shown = list(columns)
    more = f" and {len(shown) - 20} more" if len(shown) > 20 else ""
    return ", ".join(f"'{name}'" for name in shown[:20]) + more
