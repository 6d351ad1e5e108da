"""What every engine that decides about a collection has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from neardup.candidates.bands import bits_for, pack_keys
from neardup.decide.outcome import Outcome
from neardup.documents.batch import Corpus
from neardup.engines.local.scratch import Scratch
from neardup.errors import InputError, SettingError
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.output.directory import OutputDirectory
from neardup.output.tables import DocumentLocations, row_masks
from neardup.progress import Stages
from neardup.report.contents import removed_by_value
from neardup.runs.run import Run, named_paths

_MOST_SHOWN = 1000


class Decided(NamedTuple):
    """The inputs, method and outcome of a run.

    method : with the table of document frequencies it names.
    warnings : what the user should know of the inputs. by_value : the removals for each value of a column, if counted.
    """

    tasks: list[Task]
    method: Method
    outcome: Outcome
    locations: DocumentLocations
    warnings: list[str]
    by_value: dict[str, Any] | None = None

    def row_mask(self) -> npt.NDArray[np.bool_]:
        """Return for each row of the source whether it is kept; a rejected row is not.

        Returns
        -------
        bool array of shape (num_rows,), the rows of the inputs one after the other.
        """
        masks = [mask for _, mask in row_masks(self.tasks, self.outcome, self.locations)]
        return np.concatenate([np.empty(0, np.bool_), *masks])


@dataclass
class Engine(ABC):
    """Decides about the documents of one run."""

    run: Run

    def decide(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Decided:
        """Read the inputs and decide about their documents.

        Raises
        ------
        SettingError
            If there is no output whose run can be resumed.
        OutputError
            If an input is in the output folder.
        """
        if self.run.resume and folder is None:
            raise SettingError(
                "resume continues the run of an output folder: got resume=True without output. Pass output."
            )
        if folder is not None:
            folder.refuse_inputs_inside(self.paths())
        return self.perform(folder, scratch, stages)

    def paths(self) -> list[str]:
        """Return the paths that the run reads."""
        return named_paths(self.run.inputs.source) + named_paths(self.run.inputs.against)

    @abstractmethod
    def perform(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Decided:
        """Read the inputs and decide about their documents."""

    def complete(self, report: dict[str, Any]) -> None:  # noqa: B027 - most reports are complete
        """Correct the report of the run, before it is written."""

    def commit(self, report: dict[str, Any], folder: OutputDirectory | None) -> None:  # noqa: B027
        """Change what the run is to change besides its output, which is complete."""


def check_ids(run: Run, hashes: npt.NDArray[np.uint64], corpus: Corpus, locations: DocumentLocations) -> list[str]:
    """Return a warning if ids repeat; raise InputError if the user named the column.

    hashes : uint64 by document, of its id; empty if there is no column of ids.
    """
    repeated = None if run.all_pairs else find_repeated_id(hashes, corpus, locations)
    if repeated is None:
        return []
    if run.inputs.id_column is not None:
        raise InputError(
            f"{repeated} Ids in the column {run.inputs.id_column!r} must differ. Name another id_column (--id-column), "
            "or none: documents are then identified by their row numbers."
        )
    return [f"{repeated} {run.table} distinguishes them by source_file and row."]


def count_by_value(run: Run, outcome: Outcome, hashes: npt.NDArray[np.uint64]) -> dict[str, Any] | None:
    """Return the removals for each value of the counted column; hashes : uint64 by document, of its value."""
    return None if run.counted is None else removed_by_value(outcome, hashes, run.counted)


def find_repeated_id(hashes: npt.NDArray[np.uint64], corpus: Corpus, locations: DocumentLocations) -> str | None:
    """Return a sentence that names the first id of two new documents; None if there is none, or no id column.

    hashes : uint64 by document, of its id.
    """
    hashes = hashes[corpus.num_against :]
    if len(hashes) == 0:
        return None
    bits = np.uint64(bits_for(len(hashes)))
    packed = pack_keys(hashes.copy(), np.arange(len(hashes), dtype=np.uint32), len(hashes))
    same = np.flatnonzero(packed[1:] >> bits == packed[:-1] >> bits)
    mask = (np.uint64(1) << bits) - np.uint64(1)
    left, right = (packed[same] & mask).astype(np.uint32), (packed[same + 1] & mask).astype(np.uint32)
    truly = hashes[left] == hashes[right]
    left, right = left[truly] + np.uint32(corpus.num_against), right[truly] + np.uint32(corpus.num_against)
    for first, second in sorted(zip(left[:_MOST_SHOWN].tolist(), right[:_MOST_SHOWN].tolist(), strict=True)):
        pair = np.array([first, second], np.uint32)
        (id, part, row), (other, other_part, other_row) = locations.places(pair)
        if id == other:
            both = f"The id {id!r} belongs to two documents, row {row} of {part} and row {other_row} of {other_part}."
            return f"{both} {len(left):,} documents repeat an id." if len(left) > 1 else both
    return None
