"""What is known of a corpus once it is read: how many documents, where each input ends, what was left out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from neardup.documents.batch import Rejected
from neardup.errors import InputError

MAX_UNREAD_NAMED = 100  # files that could not be read, named in the report


@dataclass
class Tally:
    """How far the reading is; what a checkpoint holds.

    against_bytes : those of text_bytes of the earlier corpus. unread : the first files that could not be read to their
    end. values : the values of the counted column, by their hash in digits.
    """

    part: int = 0
    part_documents: int = 0
    part_rejected: int = 0
    documents: int = 0
    rejected: int = 0
    without_features: int = 0
    unread_files: int = 0
    shingles: int = 0
    structure: int = 0
    text_bytes: int = 0
    against_bytes: int = 0
    id_bytes: int = 0
    short: int = 0
    unread: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Corpus:
    """What is known after reading; the documents themselves are in the scratch columns.

    part_ends, part_rejected : int64 (num_parts,), where each task's documents end, and its rejected rows.
    """

    part_ends: np.ndarray
    part_rejected: np.ndarray
    num_against: int
    tally: Tally

    @property
    def num_documents(self) -> int:
        """All documents, those of the earlier corpus included."""
        return self.tally.documents


def describe_rejected(row: Rejected) -> str:
    """Say in a sentence what was rejected, where and why."""
    places = [
        f"{name} {value}"
        for name, value in (("row", row.row), ("line", row.line), ("byte", row.byte))
        if value is not None
    ]
    return f"{row.file}{', ' if places else ''}{', '.join(places)}: {row.reason}"


def rejecter(
    on_error: str, use: Callable[[Rejected], None], before: str = "nothing is written"
) -> Callable[[Rejected], None]:
    """Return the function to call with each row that cannot be read: `use`, or one that raises InputError.

    Parameters
    ----------
    on_error : of the run; stop ends it at the first such row.
    use : takes the row otherwise.
    before : what has become of the documents before it.
    """
    return partial(_stop, before) if on_error == "stop" else use


def _stop(before: str, row: Rejected) -> None:
    raise InputError(
        f"{describe_rejected(row)}. The run stops at the first such document because of on_error='stop' (--on-error "
        f"stop): {before}. Use on_error='reject' (--on-error reject) to leave such documents out and list them."
    )
