"""What every engine that decides about a collection has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from neardup.arrays import Mask, Words
from neardup.decide.outcome import Edits, Outcome
from neardup.documents.batch import Corpus
from neardup.errors import SettingError
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.output.tables import row_masks
from neardup.progress import Stages
from neardup.report.contents import Findings, removed_by_value
from neardup.report.record import EngineFacts
from neardup.runs.directory import OutputDirectory
from neardup.runs.locations import DocumentLocations
from neardup.runs.run import Run, named_paths
from neardup.runs.scratch import Scratch
from neardup.settings.run import SelectionSettings

if TYPE_CHECKING:
    from neardup.decide.passages import Passages
    from neardup.kernels.passages import Pieces


class Cleaned(NamedTuple):
    """The repeated passages of a collection. pieces : the text around them. edits : of all documents."""

    tasks: list[Task]
    corpus: Corpus
    locations: DocumentLocations
    passages: Passages
    pieces: Pieces
    edits: Edits


class Decided(NamedTuple):
    """The inputs, method and outcome of a run.

    method : with the table of document frequencies it names.
    warnings : what the user should know of the inputs. by_value : the removals for each value of a column, if counted.
    cleaned : the repeated passages of the kept documents, if they were looked for. engine : the facts for the report
    that only the engine knows.
    """

    tasks: list[Task]
    method: Method
    outcome: Outcome
    locations: DocumentLocations
    warnings: list[str]
    by_value: dict[str, Any] | None = None
    cleaned: Cleaned | None = None
    engine: EngineFacts = EngineFacts()

    def findings(self, selection: SelectionSettings, stages: Stages) -> Findings:
        """Return the findings for the report of a run that ends now."""
        return Findings(self.tasks, self.method, selection, self.outcome, stages, self.warnings, self.engine)

    def row_mask(self) -> Mask:
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

    def commit(self, report: dict[str, Any], folder: OutputDirectory | None) -> None:  # noqa: B027
        """Change what the run is to change besides its output, which is complete; report : of the change, too."""


def count_by_value(run: Run, outcome: Outcome, hashes: Words) -> dict[str, Any] | None:
    """Return the removals for each value of the counted column; hashes : uint64 by document, of its value."""
    return None if run.counted is None else removed_by_value(outcome, hashes, run.counted)
