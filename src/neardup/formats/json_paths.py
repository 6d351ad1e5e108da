"""Values of JSON objects by the keys that lead to them: turns of a text, and where their strings
are in a line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

from neardup.documents.nested import ELEMENTS, role_of
from neardup.files import JsonObject

Path: TypeAlias = tuple[str | None, ...]
"""Keys that lead from the outermost object to a value; None leads to the elements of a list."""


def kind_of(value: Any) -> str:
    """Return the type of a value in words."""
    names = {
        dict: "an object",
        list: "a list",
        str: "a string",
        bool: "a boolean",
        type(None): "null",
    }
    return names.get(type(value), "a number")


def value_at(value: Any, keys: Path) -> Any:
    """Return the value to which keys of objects lead; None if one of them is missing."""
    for depth, key in enumerate(keys):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise TypeError(f"'{keys[depth - 1]}' is {kind_of(value)}, not an object")
        value = value.get(key)
    return value


class Turn(NamedTuple):
    """A turn of a line. position : its number, or numbers if lists are in lists."""

    position: tuple[int, ...]
    text: str | None
    role: object

    def is_text(self, roles: Sequence[str]) -> bool:
        """Return whether the turn is in a text of some roles; of all roles if there are none."""
        return self.text is not None and (not roles or self.role in roles)


def turns_in(record: JsonObject, keys: Path) -> list[Turn] | None:
    """Return the turns to which keys lead; None without a list. Raises TypeError if one is no
    string.
    """
    around, inside = _split(keys)
    elements = value_at(record, around)
    if elements is None:
        return None
    turns = []
    for number, element in enumerate(_as_list(elements, around)):
        try:
            texts = list(_texts_in(element, inside))
        except TypeError as error:
            raise TypeError(f"element {number} of '{around[-1]}': {error}") from error
        role = role_of(element) if isinstance(element, dict) else None
        turns += [Turn((number, *position), text=text, role=role) for position, text in texts]
    return turns


def _texts_in(value: Any, keys: Path) -> Iterator[tuple[tuple[int, ...], str | None]]:
    """Yield the texts to which keys lead, each with its numbers in the lists on the way."""
    is_inside = bool(keys) and keys[0] is not None
    if is_inside and value is not None and not isinstance(value, dict):
        raise TypeError(f"it is {kind_of(value)}, not an object")
    if None in keys:
        around, inside = _split(keys)
        elements = value_at(value, around)
        if elements is not None:
            for number, element in enumerate(_as_list(elements, around)):
                for position, text in _texts_in(element, inside):
                    yield (number, *position), text
        return
    text = value_at(value, keys)
    if text is not None and not isinstance(text, str):
        what = f"'{keys[-1]}'" if keys else "it"
        advice = "; name the text of its parts, as in content[].text" if type(text) is list else ""
        raise TypeError(f"{what} is {kind_of(text)}, not a string{advice}")
    yield (), text


def _split(keys: Path) -> tuple[tuple[str, ...], Path]:
    """Return the keys before the first list, and the keys inside it."""
    end = keys.index(None)
    return tuple(map(str, keys[:end])), keys[end + 1 :]


def _as_list(value: Any, keys: Path) -> list[Any]:
    if isinstance(value, list):
        return value
    what = f"'{keys[-1]}'" if keys else "it"
    raise TypeError(f"{what} is {kind_of(value)}, not a list")


def join_turns(turns: list[Turn] | None, roles: Sequence[str]) -> str | None:
    """Return the text of turns, as `documents.texts.join_turns` does."""
    if turns is None:
        return None
    return "\n".join(turn.text or "" for turn in turns if turn.is_text(roles))


_MARK = re.compile(r'["{}\[\],]')
_STRINGS = json.JSONDecoder(strict=False)


def find_strings(line: str, name: str) -> dict[tuple[int, ...], tuple[int, int]]:
    """Return the ranges of the strings of a column, by their numbers in the lists on the way to
    them; without lists, of the only string, by ().

    name : keys of objects joined by dots, `[]` after the key of a list. Of strings at several
    depths, the outermost count; of strings with the same keys, the last.
    """
    found: dict[tuple[int, ...], tuple[int, int]] = {}
    depth_of_found = len(line)
    for string in _strings_in(line):
        steps = string.steps
        if len(steps) > depth_of_found or _name_of(steps) != name:
            continue
        if len(steps) < depth_of_found:
            found.clear()
        depth_of_found = len(steps)
        numbers = tuple(step for step in steps if isinstance(step, int))
        found[numbers] = (string.begin, string.end)
    return found


class _String(NamedTuple):
    """A string that is a value, in line[begin:end].

    steps : its key in each object around it, or its number in each list.
    """

    steps: Sequence[str | int | None]
    begin: int
    end: int


def _strings_in(line: str) -> Iterator[_String]:
    """Yield the strings of a line that are values. The steps of a string change after it."""
    # The latest key of each open object, or the number of the latest element of each open list.
    steps: list[str | int | None] = []
    is_key = False
    position = 0
    while match := _MARK.search(line, position):
        mark = match[0]
        position = match.end()
        if mark == '"':
            value, position = _STRINGS.raw_decode(line, match.start())
            if is_key:
                steps[-1] = value
                is_key = False
            else:
                yield _String(steps=steps, begin=match.start(), end=position)
        elif mark in "{[":
            steps.append(None if mark == "{" else 0)
            is_key = mark == "{"
        elif mark in "}]":
            steps.pop()
            is_key = False
        else:
            number = steps[-1]
            is_key = not isinstance(number, int)  # after a comma in an object
            if isinstance(number, int):
                steps[-1] = number + 1


def _name_of(steps: Sequence[str | int | None]) -> str:
    """Return the name of a value in objects and lists."""
    parts = [ELEMENTS if isinstance(step, int) else f".{step}" for step in steps]
    return "".join(parts).removeprefix(".")
