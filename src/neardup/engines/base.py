"""Define the base class of engines, and the records that engines return.

An engine finds pairs (`Searched`), the rule of the run decides about them (`Decision`, `Outcome`),
and both together are `Decided`. An engine whose workers decide returns the numbers alone
(`Counted`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from neardup.arrays import Floats, Mask, Positions, Words
from neardup.decide.clusters import first_members
from neardup.decide.outcome import Edits, Outcome, Pairs, Totals, count_decisions
from neardup.decide.rule import Decision, Found, Names, Rule
from neardup.documents.batch import Corpus
from neardup.files import JsonObject
from neardup.formats.reading import Task
from neardup.methods.base import Method
from neardup.methods.registry import method_of
from neardup.output.job import Job
from neardup.output.kept import refuse_unwritable
from neardup.output.tables import row_masks
from neardup.progress import Stages
from neardup.report.contents import Findings, removed_by_value
from neardup.report.record import NO_FACTS, EngineFacts
from neardup.runs.directory import OutputDirectory
from neardup.runs.locations import DocumentLocations, release_nothing
from neardup.runs.run import Run, named_paths
from neardup.runs.scratch import Scratch
from neardup.settings.run import SelectionSettings
from neardup.verify.measured import Measured
from neardup.verify.recall import Recall, estimate_recall

if TYPE_CHECKING:
    from neardup.decide.passages import Passages
    from neardup.kernels.passages import Pieces


class Inputs(NamedTuple):
    """The parts, the method and the selection of a run, with warnings about skipped files."""

    tasks: list[Task]
    method: Method
    selection: SelectionSettings
    warnings: list[str]


class Search(NamedTuple):
    """A search among documents that other searches share, and the rule that decides over its pairs.

    On one machine, its method differs from the methods of the others in its limit only.
    """

    method: Method
    selection: SelectionSettings
    rule: Rule


class SearchOutcome(NamedTuple):
    """The decisions of a search.

    method : the method with the table of document frequencies that it names.
    """

    outcome: Outcome
    method: Method
    locations: DocumentLocations


class Cleaned(NamedTuple):
    """The repeated passages of a collection.

    pieces : the text around them. edits : the decisions about all documents.
    """

    tasks: list[Task]
    corpus: Corpus
    locations: DocumentLocations
    passages: Passages
    pieces: Pieces
    edits: Edits


@dataclass(frozen=True, kw_only=True)
class Searched:
    """The documents that an engine has read, and the pairs that it has found.

    Attributes
    ----------
    tasks : the parts that were read.
    method : the method with the table of document frequencies that it names.
    corpus, locations : the documents, and their locations in the inputs.
    warnings : remarks about the inputs for the user.
    found : the confirmed pairs.
    described : for each column that describes documents, uint64 (num_documents,), the hashes of its
        values.
    short, num_fingerprints, num_near_pairs : as in `Totals`.
    expected : takes the positions and measures of pairs, and returns the similarities on which the
        probability depends that the pairs are proposed; None if the recall is not estimated.
    sampled_recall : the recall measured on a sample.
    engine : facts for the report that only the engine knows.
    release : drops the data that the engine stores for the rule, once it has decided.
    """

    tasks: list[Task]
    method: Method
    corpus: Corpus
    locations: DocumentLocations
    warnings: list[str]
    found: Found
    described: Mapping[str, Words] = field(default_factory=dict)
    short: int
    num_fingerprints: int | None = None
    num_near_pairs: int | None = None
    expected: Callable[[Positions, Positions, Measured], Floats] | None = None
    sampled_recall: Recall | None = None
    engine: EngineFacts = NO_FACTS
    release: Callable[[], None] = release_nothing

    def outcome(self, decision: Decision) -> Outcome:
        """Return the decisions of a rule by documents, with the measurements of the search."""
        order = self.found.queue.order
        confirmed = self.found.confirmed
        lengths = self.found.lengths
        # A rule decides about positions in the order of priority; `order` has their documents.
        pairs = Pairs(order[decision.left], order[decision.right], decision.measured)
        counts = count_decisions(
            decision.removals,
            pairs,
            self.corpus,
            bytes_of=lambda documents: lengths[documents],
            cluster_sizes=decision.cluster_sizes,
        )
        return Outcome(
            corpus=self.corpus,
            counts=counts,
            short=self.short,
            compared=confirmed.compared,
            num_bucket_overflows=decision.num_hidden,
            collisions=confirmed.collisions,
            num_fingerprints=self.num_fingerprints,
            num_near_pairs=self.num_near_pairs,
            recall=self._recall(decision),
            sampled_recall=self.sampled_recall,
            removals=decision.removals,
            pairs=pairs,
            others=decision.others,
        )

    def _recall(self, decision: Decision) -> Recall | None:
        """Estimate the recall of the search from the pairs of a decision, without copies, which are
        always found. None if full buckets may have hidden an unknown number of pairs.
        """
        probability = self.method.hit_probability
        if self.expected is None or probability is None or decision.num_hidden:
            return None
        is_near = ~decision.measured.exact
        left = decision.left[is_near]
        right = decision.right[is_near]
        similarity = self.expected(left, right, decision.measured.take(is_near))
        # Pairs of one cluster share signatures: they are found or missed together.
        clusters = first_members(len(self.found.queue.order), left, right)[left]
        return estimate_recall(similarity, clusters, probability)

    def decide(self, rule: Rule) -> SearchOutcome:
        """Return the decisions of a rule, without the pairs and features of the search."""
        outcome = self.outcome(rule.decide(self.found))
        return SearchOutcome(outcome, self.method, self.locations)

    def names(self) -> Names:
        """Return the names for the tables of a rule."""
        return Names(ids=self.locations.ids, values=self.corpus.names.find)


class Decided(NamedTuple):
    """The result of a search, and the decisions of a rule about it.

    by_value : the removals for each value of a column, if counted. cleaned : the repeated passages
    of the kept documents, if requested. The properties have the names of the fields of `Counted`:
    `findings_of` reads both.
    """

    searched: Searched
    decision: Decision
    outcome: Outcome
    by_value: JsonObject | None = None
    cleaned: Cleaned | None = None

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        """The facts of the rule, by their part of the report."""
        return self.decision.facts

    @property
    def engine(self) -> EngineFacts:
        """The facts that only the engine knows."""
        return self.searched.engine

    @property
    def tasks(self) -> list[Task]:
        """The parts that were read."""
        return self.searched.tasks

    @property
    def method(self) -> Method:
        """The method of the run."""
        return self.searched.method

    @property
    def locations(self) -> DocumentLocations:
        """The locations of the documents."""
        return self.searched.locations

    @property
    def warnings(self) -> list[str]:
        """Remarks about the inputs for the user."""
        return self.searched.warnings

    def row_mask(self) -> Mask:
        """Return whether each row of the source is kept; a rejected row is not.

        Returns
        -------
        bool array of shape (num_rows,), the rows of the inputs one after the other.
        """
        masks = [mask for _, mask in row_masks(self.tasks, self.outcome, self.locations)]
        return np.concatenate([np.empty(0, np.bool_), *masks])  # a run may have no input


class Counted(NamedTuple):
    """The numbers of a run that decided about more documents than are collected. See `Decided`."""

    tasks: list[Task]
    method: Method
    warnings: list[str]
    outcome: Totals
    by_value: JsonObject | None
    engine: EngineFacts
    cleaned: Cleaned | None = None

    @property
    def facts(self) -> Mapping[str, Mapping[str, Any]]:
        """No facts: the rules that workers perform have none."""
        return {}


def findings_of(decided: Decided | Counted, run: Run, stages: Stages) -> Findings:
    """Return the findings for the report of a run that ends now."""
    return Findings(
        tasks=decided.tasks,
        method=decided.method,
        selection=run.selection,
        outcome=decided.outcome,
        stages=stages,
        warnings=decided.warnings,
        engine=decided.engine,
        rule=decided.facts,
        options=run.given,
    )


def decide(run: Run, searched: Searched) -> Decided:
    """Decide by the rule of a run, and count."""
    decision = run.rule.decide(searched.found)
    outcome = searched.outcome(decision)
    by_value = None
    if run.rule.counts_values:
        by_value = count_by_value(run, outcome, searched.found.values)
    searched.release()
    # Drop the functions of the search, which refer to the features of all candidates.
    found = searched.found.decided()
    remaining = replace(searched, found=found, expected=None, release=release_nothing)
    return Decided(searched=remaining, decision=decision, outcome=outcome, by_value=by_value)


@dataclass
class Engine(ABC):
    """An engine, which decides about the documents of one run."""

    run: Run
    has_workers: ClassVar[bool] = False
    """Whether workers of a cluster can write the kept documents."""

    def paths(self) -> list[str]:
        """Return the paths that the run reads."""
        return named_paths(self.run.inputs.source) + named_paths(self.run.inputs.against)

    def inputs(self) -> Inputs:
        """Find the inputs. Refuse settings and inputs that the run cannot process before any input
        is read.
        """
        run = self.run
        if run.selection.recall_sample:
            method_of(run.method).refuse_recall_sample(run.selection.recall_sample)
        found = run.find()
        method = found.method.resolve()
        run.rule.refuse(method)
        refuse_unwritable(found.tasks, run.inputs)
        selection = run.selection
        if run.rule.pairs == "all":
            selection = method.in_all_pairs(selection)
        return Inputs(found.tasks, method, selection, found.warnings)

    def decide(self, job: Job) -> Decided:
        """Find the pairs that the rule of the run needs, and decide by it."""
        return decide(self.run, self.find(job.folder, job.scratch, job.stages))

    @abstractmethod
    def find(self, folder: OutputDirectory | None, scratch: Scratch, stages: Stages) -> Searched:
        """Read the inputs, and find the pairs that the rule of the run needs."""

    # Not abstract: most engines change nothing besides the output.
    def commit(self, report: JsonObject, folder: OutputDirectory | None) -> None:  # noqa: B027
        """Apply the changes of the run besides its output, such as to an index, once the output is
        complete.

        report : the report of the run after these changes.
        """


def count_by_value(run: Run, outcome: Outcome, hashes: Words) -> JsonObject | None:
    """Return the removals for each value of the counted column; None if there is no such column.

    hashes : uint64 (num_documents,), the hash of each value.
    """
    if run.counted is None:
        return None
    return removed_by_value(outcome, hashes, run.counted)
