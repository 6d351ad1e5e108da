"""Files of answers about pairs: JSON lines, to which each answer is added at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from neardup.errors import InputError
from neardup.files import JsonObject
from neardup.verify.choosing import LOWEST


class AskedPair(NamedTuple):
    """A pair that was asked about; the texts that were shown differ with the length of shingles."""

    left_id: str
    right_id: str
    similarity: float
    ngram: int


_TYPES: dict[str, Any] = {
    "left_id": str,
    "right_id": str,
    "duplicate": bool | None,
    "similarity": float | int,
    "ngram": int,
}


def read_answers(file: Path) -> dict[AskedPair, bool | None]:
    """Return the answers of a file by their pairs, None for a pair that was skipped.

    Raises
    ------
    InputError
        If a line is no answer, or contradicts an earlier one.
    """
    answers: dict[AskedPair, bool | None] = {}
    for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        row = _row_of(line)
        if row is None:
            raise InputError(
                f"Line {number} of {file} is no answer of a sweep: got "
                f"{line.decode(errors='replace')[:80]!r}. An answer is a JSON object with left_id, "
                "right_id, duplicate (true, false or null), similarity, ngram. Fix the line, or "
                "name another file."
            )
        pair = AskedPair(**{name: row[name] for name in AskedPair._fields})
        # The same line twice is fine, two different answers are not.
        if answers.setdefault(pair, row["duplicate"]) != row["duplicate"]:
            raise InputError(
                f"Line {number} of {file} contradicts an earlier answer: got {row}. Remove one of "
                "the two."
            )
    return answers


def _row_of(line: bytes) -> JsonObject | None:
    """Return a line of a file of answers; None if it is no answer."""
    try:
        row: JsonObject = json.loads(line)
        has_types = all(isinstance(row[name], kind) for name, kind in _TYPES.items())
        is_answer = has_types and LOWEST <= row["similarity"] <= 1
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return row if is_answer else None


def line_of(pair: AskedPair, same: bool | None) -> JsonObject:
    """Return the line of an answer about a pair."""
    return {
        "left_id": pair.left_id,
        "right_id": pair.right_id,
        "duplicate": same,
        "similarity": pair.similarity,
        "ngram": pair.ngram,
    }


def append_line(file: Path, row: JsonObject) -> None:
    """Append a line to a file of answers."""
    line = json.dumps(row, ensure_ascii=False) + "\n"
    # An editor may have left the last line without its end.
    last_is_open = file.exists() and file.read_bytes()[-1:] not in (b"", b"\n")
    with file.open("a", encoding="utf-8") as lines:
        lines.write("\n" + line if last_is_open else line)
