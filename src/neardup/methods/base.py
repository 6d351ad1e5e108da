"""The interface of a method, so that no engine, report or command tests the type of a method."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import pyarrow as pa

from neardup.answers import PairMeasures
from neardup.arrays import Array, Floats, Integers, Mask
from neardup.candidates.blocks import Radius
from neardup.candidates.lookups import Lookup
from neardup.decide.outcome import Counts, Totals
from neardup.errors import SettingError
from neardup.features.described import Features, Keys, Lists, distinct_lists
from neardup.features.idf import IdfTable
from neardup.features.workspaces import Workspace
from neardup.files import JsonObject
from neardup.fingerprints.explain import Explanation, SignatureExplanation
from neardup.fingerprints.fingerprints import Fingerprints
from neardup.fingerprints.sketches import Scheme, Sketches
from neardup.methods.sketcher import Sketcher
from neardup.schemas import EXACT, SIMILARITY, Measure
from neardup.settings.methods import Shingling
from neardup.settings.run import SelectionSettings
from neardup.verify.comparison import measure_shared, read_pair
from neardup.verify.measured import Measured, Rule

Self = TypeVar("Self", bound="Method")
# Members of a bucket. A search for all pairs should miss few of them. A smaller default, such as 64
# in a band of MinHash, is enough to find a kept document.
_MIN_BUCKET_OF_ALL_PAIRS = 1_000
CURVE_STEPS = 20  # from threshold 0 to 1
_HISTOGRAM_BARS = 20


class Described(NamedTuple):
    """A batch of documents, as input of `measure`."""

    features: Features
    keys: Keys

    def take(self, rows: Integers) -> Described:
        """Return some of the documents."""
        return Described(self.features.take(rows), self.keys.take(rows))


class Limit(NamedTuple):
    """The limit of the measure of a duplicate pair.

    name, value : the setting. measure : the name of the measure that it limits. at_least : whether
    a duplicate has this value or more; otherwise it has this value or less.
    """

    name: str
    value: float
    measure: str
    at_least: bool


class Curve(NamedTuple):
    """The limits at which `evaluate` scores a method, and the method at the loosest of them."""

    limits: Array
    loosest: Method


@dataclass(frozen=True)
class Method(ABC):
    """A method: it describes documents, proposes and measures pairs, and decides which are
    duplicates.

    The stages (`describe` to `is_duplicate`) are stateless functions of NumPy arrays and can be
    pickled, so that they run in a thread, in a worker of a cluster or in an index.

    settings : the settings of the method. idf : the document frequencies of the corpus, once they
    are counted or read.
    """

    settings: Any
    idf: IdfTable | None = None

    feature_name: ClassVar[str] = "shingles"
    """The word for a feature, in the plural."""
    scheme_fields: ClassVar[frozenset[str]] = frozenset()
    """The settings that change a document's features or its summary."""
    max_bucket_size: ClassVar[int] = 1_000
    """The maximum number of members that a bucket lists by default, in a search for the kept
    documents.
    """
    directed: ClassVar[bool] = False
    """Whether the measure of a pair depends on the order: the later document is measured."""
    confirms_sets: ClassVar[bool] = True
    """Whether the sets of candidates are compared. Other methods need not store them."""
    describes_again: ClassVar[bool] = False
    """Whether an engine describes candidates again, faster than storing all documents' sets."""
    ordered: ClassVar[bool] = False
    """Whether features have an order, such as the numbers of a vector, and are no set of hashes."""
    sketches: ClassVar[type[Sketches]] = Fingerprints
    """The rows that `sign` returns and `sketch` fills: Signatures or Fingerprints."""

    # Measures and limits.

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of a pair, in the order of the tables."""
        return (SIMILARITY, EXACT)

    @property
    def limit(self) -> Limit:
        """The limit that a duplicate pair must reach."""
        return Limit(
            name="threshold",
            value=self.settings.threshold,
            measure=SIMILARITY.name,
            at_least=True,
        )

    @property
    def rule(self) -> Rule | None:
        """The condition of a duplicate in a fused kernel; None if engines call the stages."""
        return None

    @property
    @abstractmethod
    def lookup(self) -> Lookup:
        """The tables of keys in which engines and indexes find candidates."""

    def for_index(self: Self, expected_documents: int) -> Self:
        """Return the method with the settings of its tables fixed, as an index stores them."""
        return self

    def radius_of(self, scheme: Scheme, name: str) -> Radius:
        """Return the search among fingerprints of a scheme, without the documents.

        Parameters
        ----------
        scheme : the scheme of the fingerprints.
        name : the name of their file, for the message.

        Raises
        ------
        SettingError
            If fingerprints alone do not decide.
        SchemeError
            If the method makes other fingerprints.
        """
        raise self.fingerprints_error(name, type(self.settings).__name__)

    @staticmethod
    def fingerprints_error(name: str, given: str) -> SettingError:
        """Return the error of a search in a file of fingerprints that needs more than distances."""
        return SettingError(
            f"{name} contains fingerprints, which are compared by Hamming distance only: got "
            f"{given}. Use SimHash(max_distance=...) (--method simhash --max-distance N), or give "
            "the texts."
        )

    def in_all_pairs(self, selection: SelectionSettings) -> SelectionSettings:
        """Return the selection for a search for all pairs: by default, buckets list more members.

        Notes
        -----
        100,000 texts from one template take three times as long with 1,000 members as with 64 if no
        two are similar, and give more than 10^8 pairs if all are.
        """
        if selection.max_bucket_size is not None:
            return selection
        return replace(
            selection, max_bucket_size=max(self.max_bucket_size, _MIN_BUCKET_OF_ALL_PAIRS)
        )

    # The number of documents.

    @property
    def awaits_count(self) -> bool:
        """True if the keys depend on the number of documents: an engine counts them first, and
        makes the keys of `for_corpus`. Requires: no `rule`, and a look-up with `bands`.
        """
        return False

    def for_corpus(self: Self, num_documents: int) -> Self:
        """Return the method with the keys that are cheapest for a number of documents."""
        return self

    # Document frequencies.

    @property
    def counted(self) -> Shingling | None:
        """The features whose document frequencies an extra pass must count first, or None."""
        return None

    @property
    def weighed(self) -> Shingling | None:
        """The features that document frequencies weigh; None if all features weigh alike."""
        return self.counted

    def resolve(self: Self) -> Self:
        """Return the method with the table of document frequencies that its settings name."""
        return self

    def with_idf(self: Self, idf: IdfTable | None) -> Self:
        """Return the method with document frequencies."""
        return replace(self, idf=idf)

    # The stages.

    def compact(self, lists: Lists) -> Lists:
        """Return features as engines and stores keep them.

        These are the distinct features of a set, rising, or all features in order if `ordered`.
        """
        # A vector must keep equal numbers in their places.
        return lists if self.ordered else distinct_lists(lists)

    @property
    def keeps_groups_apart(self) -> bool:
        """True if documents of different groups are never duplicates: keys or sets are salted."""
        return self.lookup.radius is None if self.ordered else self.confirms_sets

    @property
    def examples(self) -> tuple[str, str]:
        """Two documents that the method can describe, as texts."""
        length = self.settings.vector_length
        if length is None:
            # Two texts that differ, so that their comparison is compiled, too.
            return "a text to load the compiled code", "another text to load the compiled code"
        return f"[{'1,' * (length - 1)}1]", f"[{'1,' * (length - 1)}2]"

    @abstractmethod
    def describe(self, texts: pa.Array, workspace: Workspace | None = None) -> Features:
        """Return the features of documents.

        Parameters
        ----------
        texts : string array of any Arrow string type, shape (num_documents,); a null has no
            features. The texts are HTML pages if the settings are for pages. For a method that
            reads vectors, the argument of `features.vectors.describe_vectors`.
        workspace : the buffer of the hashes, which are valid until it is used again. None allocates
            new memory.
        """

    @abstractmethod
    def summarise(self, features: Features) -> Keys:
        """Return the keys of the search for candidates."""

    def summarise_at(self, limits: Sequence[Method], features: Features) -> list[Keys]:
        """Return the keys for each of several methods that differ in their limit only."""
        # Methods with one summary for all limits override this.
        return [method.summarise(features) for method in limits]

    def sketch(self, features: Features) -> Array:
        """Return the part of a summary that an index stores.

        Returns
        -------
        array of shape (num_documents, width) : signatures, uint32, or the words of fingerprints,
            uint64.
        """
        return self.summarise(features).values

    @property
    def sketcher(self) -> Sketcher:
        """The signing of `sign`. Raises SettingError if the settings have no sketch."""
        return Sketcher(self)

    def keys_of(self, sketch: Array, features: Features) -> Keys:
        """Return the same as `summarise`, from the rows that `sketch` returned."""
        # A document without features has no keys: it is like no other.
        return Keys(values=sketch, content=features.content, featured=features.sets.sizes > 0)

    @abstractmethod
    def measure(
        self, left: Described, right: Described, left_rows: Integers, right_rows: Integers
    ) -> Measured:
        """Return the exact measures of pairs.

        Parameters
        ----------
        left, right : documents, which may be the same; `left` is the earlier one of a pair, which
            may remove the other.
        left_rows, right_rows : integers (num_pairs,), rows of `left` and of `right`.
        """

    def is_duplicate(self, measured: Measured) -> Mask:
        """Return a mask of the duplicate pairs."""
        values = measured[self.limit.measure]
        limit = self.limit.value
        is_near = values >= limit if self.limit.at_least else values <= limit
        return np.asarray(is_near, np.bool_)

    def strength(self, measured: Measured) -> Floats:
        """Return the strength of pairs.

        If several kept documents are similar to a document, the strongest pair removes it.
        """
        values: Floats = measured[self.limit.measure].astype(np.float64)
        return values if self.limit.at_least else -values

    # Recall.

    @property
    def hit_probability(self) -> Callable[[Floats], Floats] | None:
        """The probability that a pair of a similarity is proposed.

        None if no pair can be missed, or if it is unknown.
        """
        return None

    def proposed_similarity(
        self, similarity: Floats, left_sizes: Floats, right_sizes: Floats
    ) -> Floats:
        """Return the similarity to pass to `hit_probability`, for pairs of sets of these sizes."""
        return similarity

    def refuse_recall_sample(self, recall_sample: int) -> None:
        """Raise SettingError if the recall of this method cannot be measured on a sample."""
        raise SettingError(
            "recall_sample measures the recall of bands, and this method has none: got "
            f"recall_sample={recall_sample}. Leave recall_sample (--recall-sample) at 0."
        )

    # Evaluation.

    def curve(self, lowest: float | None = None) -> Curve:
        """Return the limits at which `evaluate` scores the method.

        Parameters
        ----------
        lowest : the threshold where the curve begins; None is the method's own choice.
        """
        return Curve(np.array([self.limit.value]), self)

    # Two texts.

    def compare(self, left: str, right: str) -> PairMeasures:
        """Return the measures of two texts. Containment is the containment of `left` in `right`.

        Raises
        ------
        InputError
            If a text contains a lone surrogate, which is not valid Unicode.
        """
        features = self.describe(read_pair(left, right))
        return self._measure_pair(Described(features, self.summarise(features)))

    def _measure_pair(self, described: Described) -> PairMeasures:
        """Return the measures of two documents, the left one and the right one."""
        features = described.features
        sets = features.sets
        # Ordered features are not shared one by one: the set of each of the two documents has one
        # element, a word of its content hash.
        if self.ordered:
            sets = Lists(features.content[:, 0], offsets=np.arange(3))
        have_features = bool(described.keys.featured.all())
        # Swapped: a directed method measures the containment of the later document in the other,
        # and the result has the containment of the left one.
        measured = self.measure(described, described, np.array([1]), np.array([0]))
        similarity = measured.columns.get(SIMILARITY.name)
        return PairMeasures(
            **measure_shared(sets)._asdict(),
            same_text=have_features and bool(measured.exact[0]),
            similarity=None if similarity is None else float(similarity[0]),
            duplicate=have_features and bool(self.is_duplicate(measured)[0]),
        )

    def explain(self, text: Any, idf: IdfTable | None = None) -> Explanation | SignatureExplanation:
        """Return the computation of the fingerprint of a text; see `neardup.explain`."""
        raise SettingError(
            f"{type(self.settings).__name__} has no fingerprint to explain. Use SimHash or MinHash "
            "(--method simhash)."
        )

    # Reports.

    def scheme_settings(self) -> JsonObject:
        """Return the settings that change features or summaries, as values for JSON."""
        return {name: getattr(self.settings, name) for name in sorted(self.scheme_fields)}

    def scheme(self) -> JsonObject:
        """Return the name and the version of the scheme, with its settings."""
        return {"name": type(self.settings).__name__, "version": 1, **self.scheme_settings()}

    def other_settings(self, selection: SelectionSettings) -> JsonObject:
        """Return the settings that decide which documents are compared, and which is kept."""
        # "scheme" names the scheme itself, which `scheme` returns.
        in_scheme = {*self.scheme_fields, "scheme"}
        own = {
            field.name: getattr(self.settings, field.name)
            for field in fields(self.settings)
            if field.name not in in_scheme
        }
        return own | {field.name: getattr(selection, field.name) for field in fields(selection)}

    def all_settings(self, selection: SelectionSettings) -> JsonObject:
        """Return all settings: a run is resumed only with the same ones."""
        return self.scheme_settings() | self.other_settings(selection)

    def describe_search(self, outcome: Totals) -> JsonObject:
        """Return the parts of a report about the search: bands, samples and fingerprints."""
        return {"bands": None, "samples": None, "fingerprints": None}

    def histogram(self, counts: Counts) -> JsonObject:
        """Return the histograms of near-duplicates by similarity and by distance."""
        return {"similarities": histogram(counts, self.settings.threshold), "distances": None}

    def warnings(self, outcome: Totals) -> list[str]:
        """Return warnings about the documents of a run."""
        return []


def thresholds_from(lowest: float) -> Floats:
    """Return the thresholds of a curve, from `lowest` rounded down to a step, up to 1."""
    # A sum such as 0.7 - 0.4 may be just below a step; it counts as the step.
    return np.arange(math.floor(lowest * CURVE_STEPS + 1e-9), CURVE_STEPS + 1) / CURVE_STEPS


def histogram(decided: Counts, threshold: float) -> dict[str, list[float]]:
    """Return the edges and the counts of bars of similarity.

    The bars reach from the threshold, or from the smallest similarity if it is lower, to 1.
    """
    similarity = decided.near[SIMILARITY.name]
    low = min(threshold, float(similarity.min(initial=1.0)))
    # With a threshold of 1, one bar: linspace would give edges of no width.
    edges = np.linspace(low, 1.0, _HISTOGRAM_BARS + 1) if low < 1.0 else np.array([0.0, 1.0])
    counts, _ = np.histogram(similarity, edges, weights=decided.repeats)
    return {"edges": [round(edge, 4) for edge in edges.tolist()], "counts": counts.tolist()}


def without_version(features: JsonObject) -> JsonObject:
    """Return the description of features without the version of their scheme."""
    return {name: value for name, value in features.items() if name != "version"}


def is_exact(left: Described, right: Described, left_rows: Integers, right_rows: Integers) -> Mask:
    """Return a mask of the pairs whose tokens are the same in the same order."""
    # The content hash has 128 bits in two words.
    same = left.features.content[left_rows] == right.features.content[right_rows]
    # Documents without tokens have equal content hashes, but are no copies.
    have_features = left.keys.featured[left_rows] & right.keys.featured[right_rows]
    exact: Mask = same[:, 0] & same[:, 1] & have_features
    return exact
