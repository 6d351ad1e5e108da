"""The questions that every method answers; engines, reports and the command line ask these and never test its type."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from neardup.candidates.bands import Bands
from neardup.candidates.blocks import Radius
from neardup.candidates.propose import Candidates
from neardup.candidates.samples import Samples
from neardup.decide.outcome import Outcome
from neardup.errors import SettingError
from neardup.features.described import Features, Keys
from neardup.features.idf import IdfTable
from neardup.features.shingles import Workspace
from neardup.schemas import EXACT, SIMILARITY, Measure
from neardup.settings.run import SelectionSettings
from neardup.settings.shingling import Shingling
from neardup.verify.comparison import PairMeasures, count_shared, read_pair
from neardup.verify.measured import Measured
from neardup.verify.similarity import Rule

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.integer[Any]]
Search = Bands | Samples | Radius
Self = TypeVar("Self", bound="Method")


class Described(NamedTuple):
    """A batch of documents as `measure` takes it."""

    features: Features
    keys: Keys

    def take(self, rows: Rows) -> Described:
        """Return some of the documents."""
        return Described(self.features.take(rows), self.keys.take(rows))


class Limit(NamedTuple):
    """From where on, or up to where, a pair counts as duplicate.

    name : of the setting. value : of it. measure : the name of the measure that it limits. at_least : whether a
    duplicate has this or more; else this or less.
    """

    name: str
    value: float
    measure: str
    at_least: bool


class Curve(NamedTuple):
    """The limits at which `evaluate` scores a method, and the method at the loosest of them."""

    limits: npt.NDArray[Any]
    loosest: Method


@dataclass(frozen=True)
class Method(ABC):
    """A method: how documents are described, found, measured and decided on.

    Its stages (`describe` to `is_duplicate`) take and return NumPy arrays, hold no state and can be pickled: they run
    alike in a thread, in a worker of a cluster and behind an index.

    settings : what the user chose. idf : the document frequencies of the corpus, once they are counted or read.
    """

    settings: Any
    idf: IdfTable | None = None

    feature_name: ClassVar[str] = "shingles"
    """The word for a feature, in the plural."""
    scheme_fields: ClassVar[frozenset[str]] = frozenset(field.name for field in fields(Shingling))
    """The settings that change a document's features or its summary."""
    max_bucket_size: ClassVar[int] = 1_000
    """How many members a bucket lists where the user sets no limit."""
    confirms_sets: ClassVar[bool] = True
    """Whether the sets of candidates are compared; if not, they need not be stored."""

    # What is measured, and what it must reach.

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of a pair, in the order of the tables."""
        return (SIMILARITY, EXACT)

    @property
    def limit(self) -> Limit:
        """What a pair must reach to count as duplicate."""
        return Limit("threshold", self.settings.threshold, SIMILARITY.name, True)

    @property
    def search(self) -> Search | None:
        """How the engine finds candidates with its own kernels; None where it calls `propose`."""
        return None

    @property
    def rule(self) -> Rule | None:
        """When a pair counts as duplicate, for the engine's own kernels; None where it calls `measure`."""
        return None

    # Document frequencies.

    @property
    def counted(self) -> Shingling | None:
        """The features whose document frequencies must be counted in one pass before; None for none."""
        return None

    def resolve(self: Self) -> Self:
        """Return the method with the table of document frequencies that its settings name, if they name one."""
        return self

    def with_idf(self: Self, idf: IdfTable | None) -> Self:
        """Return the method with document frequencies."""
        return replace(self, idf=idf)

    # The stages.

    @abstractmethod
    def describe(self, texts: pa.Array, workspace: Workspace | None = None) -> Features:
        """Return the features of documents.

        Parameters
        ----------
        texts : string array of any Arrow string type, shape (num_documents,); a null has no features. Pages where the
            settings take pages.
        workspace : where the hashes are written; valid until it is used again. None for memory of their own.
        """

    @abstractmethod
    def summarise(self, features: Features) -> Keys:
        """Return the keys by which documents are found."""

    @abstractmethod
    def propose(
        self, keys: Keys, order: npt.NDArray[np.uint32], max_bucket_size: int, *, all_pairs: bool = False
    ) -> Candidates:
        """Return the pairs to measure.

        Parameters
        ----------
        keys : of all documents.
        order : uint32, the document at each position of the order of priority.
        max_bucket_size : members that a bucket lists at most, its earliest.
        all_pairs : whether copies are paired with their representatives.
        """

    @abstractmethod
    def measure(self, left: Described, right: Described, left_rows: Rows, right_rows: Rows) -> Measured:
        """Return the measures of pairs, exactly.

        Parameters
        ----------
        left, right : documents, which may be the same; `left` is the earlier one of a pair, which may remove the other.
        left_rows, right_rows : integers (num_pairs,), rows of `left` and of `right`.
        """

    def is_duplicate(self, measured: Measured) -> npt.NDArray[np.bool_]:
        """Return which pairs count as duplicates."""
        values = measured[self.limit.measure]
        return np.asarray(values >= self.limit.value if self.limit.at_least else values <= self.limit.value, np.bool_)

    def strength(self, measured: Measured) -> Floats:
        """Return by what the kept document that removes another is chosen: the greatest."""
        values: Floats = measured[self.limit.measure].astype(np.float64)
        return values if self.limit.at_least else -values

    # Recall.

    @property
    def hit_probability(self) -> Callable[[Floats], Floats] | None:
        """The chance that a pair of a similarity is proposed; None where no pair can be missed or nothing is known."""
        return None

    def proposed_similarity(self, similarity: Floats, left_sizes: Floats, right_sizes: Floats) -> Floats:
        """Return the similarity that `hit_probability` takes, of pairs of sets of these sizes."""
        return similarity

    def refuse_audit(self, audit_sample: int) -> None:
        """Raise SettingError if this method cannot be audited."""
        raise SettingError(
            f"audit_sample measures the recall of bands, and this method has none: got audit_sample={audit_sample}. "
            "Leave audit_sample (--audit-sample) at 0."
        )

    # Evaluation.

    def curve(self) -> Curve:
        """Return where `evaluate` scores the method."""
        return Curve(np.array([self.limit.value]), self)

    # Two texts.

    def compare(self, left: str, right: str) -> PairMeasures:
        """Return how similar two texts are. Containment is that of `left`.

        Raises
        ------
        InputError
            If a text holds half of a surrogate pair, which is no Unicode text.
        """
        described = self._describe_pair(left, right)
        features = described.features
        both = bool(described.keys.featured.all())
        measured = self.measure(described, described, np.array([1]), np.array([0]))
        return PairMeasures(
            *count_shared(features.sets),
            same_text=both and bool(measured.exact[0]),
            similarity=float(measured[SIMILARITY.name][0]) if SIMILARITY.name in measured.columns else None,
            duplicate=both and bool(self.is_duplicate(measured)[0]),
        )

    def _describe_pair(self, left: str, right: str) -> Described:
        features = self.describe(read_pair(left, right))
        return Described(features, self.summarise(features))

    # Reports.

    def scheme_settings(self) -> dict[str, Any]:
        """Return the settings that change a document's features or its summary, in values that JSON can hold."""
        return {name: getattr(self.settings, name) for name in sorted(self.scheme_fields)}

    def scheme(self) -> dict[str, Any]:
        """Return the name and the version of the scheme, with its settings."""
        return {"name": type(self.settings).__name__, "version": 1, **self.scheme_settings()}

    def other_settings(self, selection: SelectionSettings) -> dict[str, Any]:
        """Return the settings that decide which documents are compared and which of them is kept."""
        names = [field.name for field in fields(self.settings) if field.name not in {*self.scheme_fields, "scheme"}]
        chosen = {name: getattr(self.settings, name) for name in names}
        return chosen | {field.name: getattr(selection, field.name) for field in fields(selection)}

    def describe_search(self, outcome: Outcome) -> dict[str, Any]:
        """Return the parts of a report on how candidates were found: bands, samples and fingerprints."""
        return {"bands": None, "samples": None, "fingerprints": None}

    def histogram(self, near: Measured) -> dict[str, Any]:
        """Return how near-duplicates spread over the measures: similarities and distances."""
        return {"similarities": histogram(near[SIMILARITY.name], self.settings.threshold), "distances": None}

    def warnings(self, outcome: Outcome) -> list[str]:
        """Return what a user should know of the documents of a run."""
        return []


_HISTOGRAM_BARS = 20


def histogram(similarity: Floats, threshold: float) -> dict[str, list[float]]:
    """Return the edges and the counts of similarities from the threshold, or the least of them, to 1."""
    low = min(threshold, float(similarity.min(initial=1.0)))
    edges = np.linspace(low, 1.0, _HISTOGRAM_BARS + 1) if low < 1.0 else np.array([0.0, 1.0])
    counts, _ = np.histogram(similarity, edges)
    return {"edges": [round(edge, 4) for edge in edges.tolist()], "counts": counts.tolist()}


def without_version(features: dict[str, Any]) -> dict[str, Any]:
    """Return the description of features without the version of their scheme."""
    return {name: value for name, value in features.items() if name != "version"}


def is_exact(left: Described, right: Described, left_rows: Rows, right_rows: Rows) -> npt.NDArray[np.bool_]:
    """Return which pairs are the same text after normalisation."""
    same = (left.features.content[left_rows] == right.features.content[right_rows]).all(axis=1)
    exact: npt.NDArray[np.bool_] = same & left.keys.featured[left_rows] & right.keys.featured[right_rows]
    return exact
