"""SimHash: near fingerprints propose pairs, and the exact similarity of features confirms them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from neardup.answers import PairMeasures
from neardup.arrays import Array, Floats, Integers, Ints, Mask, flatten_strings
from neardup.candidates.blocks import Radius, plan_blocks
from neardup.candidates.lookups import DistanceLookup
from neardup.decide.outcome import SHORT, Counts, Totals
from neardup.errors import SettingError
from neardup.features.described import Features, Keys, Lists
from neardup.features.idf import FEATURES_VERSION, IdfTable, resolve_idf
from neardup.features.shingles import is_scanned
from neardup.features.token_columns import HashedTokens, hash_tokens
from neardup.features.workspaces import Workspace
from neardup.files import JsonObject
from neardup.fingerprints import simhash_documents as fingerprinting
from neardup.fingerprints.explain import Explanation, explain_fingerprint
from neardup.fingerprints.simhash import SCHEME, num_words, to_integers
from neardup.fingerprints.simhash_documents import (
    describe,
    scheme_of,
    summarise_described,
    weigh,
)
from neardup.fingerprints.sketches import Scheme, require_same
from neardup.kernels.token_arrays import TokenStrings
from neardup.methods.base import (
    Curve,
    Described,
    Limit,
    Method,
    histogram,
    is_exact,
    without_version,
)
from neardup.methods.sketcher import GIVEN, SketchBuffers, TokenSketcher
from neardup.schemas import DISTANCE, EXACT, SIMILARITY, Measure
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import MAX_HAMMING_DISTANCE, Shingling, SimHash
from neardup.verify.measured import Measured, Rule, hamming_distances, similarity_of_lists

_MAX_TABLES = 16  # tables of an index: more make a query faster, and a document larger
# The time of a cheap look-up, in nanoseconds: a fifth of a query to an index on disk. More tables
# would save little, and tables that exceed the page cache cost far more.
_CHEAP_NS = 20_000


@dataclass(frozen=True)
class SimHashMethod(Method):
    """Hamming distance of fingerprints and, if the settings say so, Jaccard similarity."""

    settings: SimHash

    feature_name: ClassVar[str] = "features"
    scheme_fields: ClassVar[frozenset[str]] = frozenset(constraints_of(Shingling)).union(
        SimHash.sketch_options
    )

    # The base class declares these two as constants of a class; here they depend on the settings.
    @property
    def confirms_sets(self) -> bool:  # type: ignore[override]
        """True if the features of candidates are compared too."""
        return self.settings.confirm != "hamming"

    @property
    def describes_again(self) -> bool:  # type: ignore[override]
        """True if a kernel cuts the texts."""
        return is_scanned(self.settings)

    @property
    def radius(self) -> Radius:
        """The distance of duplicates, and the blocks by which they are found."""
        return Radius(self.settings.bits, self.settings.max_distance, self.settings.num_blocks)

    @property
    def lookup(self) -> DistanceLookup:
        return DistanceLookup(self.radius, self.confirms_sets)

    def for_index(self, expected_documents: int) -> SimHashMethod:
        """Return the method with the fewest tables that make look-ups cheap.

        If no number of tables does, it has the number with the cheapest look-ups.
        """
        radius = self.radius
        if radius.num_blocks is not None:
            return self
        plans = plan_blocks(expected_documents, radius.bits, radius.max_distance)
        max_tables = max(_MAX_TABLES, radius.max_distance + 1)
        # The fewest blocks always fit: `max_tables` is never below their number of tables.
        fitting = [plan for plan in plans if plan.num_tables <= max_tables]
        cheap = [plan for plan in fitting if plan.query_cost <= _CHEAP_NS]
        if cheap:
            best = min(cheap, key=lambda plan: plan.num_tables)
        else:
            best = min(fitting, key=lambda plan: (plan.query_cost, plan.num_tables))
        return replace(self, settings=replace(self.settings, num_blocks=best.num_blocks))

    @property
    def rule(self) -> Rule:
        measure = "jaccard" if self.confirms_sets else "hamming"
        return Rule(measure, self.settings.threshold, self.settings.bits)

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (DISTANCE, SIMILARITY, EXACT) if self.confirms_sets else (DISTANCE, EXACT)

    @property
    def limit(self) -> Limit:
        return Limit("max_distance", self.settings.max_distance, DISTANCE.name, False)

    @property
    def counted(self) -> Shingling | None:
        needs_counts = self.settings.weights == "tfidf" and self.settings.idf == "corpus"
        return self.settings if needs_counts else None

    @property
    def weighed(self) -> Shingling | None:
        is_weighed = self.settings.weights == "tfidf" and self.settings.idf != "lines"
        return self.settings if is_weighed else None

    def resolve(self) -> SimHashMethod:
        """Return the method with the table that its settings name, read from its file.

        The version of the table is then part of the scheme, so that a run is not resumed with
        another table.
        """
        if self.settings.weights != "tfidf" or self.settings.idf in ("corpus", "lines"):
            return self
        table = resolve_idf(self.settings)
        assert isinstance(table, IdfTable)
        # Both: the settings name the table in reports and schemes, the method weighs with it.
        return SimHashMethod(replace(self.settings, idf=table), table)

    def describe(self, texts: pa.Array, workspace: Workspace | None = None) -> Features:
        described = describe(texts, self.settings, workspace)
        shingles = described.shingles
        sets = Lists(shingles.hashes, shingles.offsets)
        return Features(shingles.content, sets, weighed=described)

    def summarise(self, features: Features) -> Keys:
        fingerprints = summarise_described(features.weighed, self.settings, self.idf)
        return Keys(fingerprints, features.content, features.sets.sizes > 0)

    def radius_of(self, scheme: Scheme, name: str) -> Radius:
        settings = self.settings
        default = SimHash()
        if settings.confirm == "jaccard":
            raise self.fingerprints_error(name, "confirm='jaccard'")
        if settings.threshold != default.threshold:
            raise self.fingerprints_error(name, f"threshold={settings.threshold!r}")
        # Settings at their default accept any scheme. Values of a scheme may be dictionaries, so no
        # set can have the items.
        defaults = [*scheme_of(default).items(), ("idf", "corpus")]
        requested = dict(item for item in scheme_of(settings).items() if item not in defaults)
        require_same(requested, {key: scheme.get(key) for key in requested}, "the method", name)
        return self.radius._replace(bits=int(scheme["bits"]))

    @property
    def sketcher(self) -> SimHashSketcher:
        return SimHashSketcher(self._with_table())

    def _with_table(self) -> SimHashMethod:
        """Return the method with document frequencies, from the settings if it has none."""
        return self if self.idf is not None else replace(self, idf=resolve_idf(self.settings))

    def measure(
        self, left: Described, right: Described, left_rows: Integers, right_rows: Integers
    ) -> Measured:
        exact = is_exact(left, right, left_rows, right_rows)
        distance = hamming_distances(left.keys.values[left_rows], right.keys.values[right_rows])
        columns: dict[str, Array] = {DISTANCE.name: distance}
        if self.confirms_sets:
            similarity = similarity_of_lists(
                left.features.sets, right.features.sets, left_rows, right_rows, "jaccard"
            )
            columns[SIMILARITY.name] = np.where(exact, 1.0, similarity)
        return Measured(columns | {EXACT.name: exact})

    def is_duplicate(self, measured: Measured) -> Mask:
        is_near = super().is_duplicate(measured)
        if not self.confirms_sets:
            return is_near
        return is_near & (measured[SIMILARITY.name] >= self.settings.threshold)

    def strength(self, measured: Measured) -> Floats:
        return measured[SIMILARITY.name] if self.confirms_sets else super().strength(measured)

    def refuse_recall_sample(self, recall_sample: int) -> None:
        raise SettingError(
            f"recall_sample measures the recall of MinHash: got recall_sample={recall_sample} with "
            "SimHash, whose search misses no pair within max_distance. Leave recall_sample "
            "(--recall-sample) at 0."
        )

    def curve(self, lowest: float | None = None) -> Curve:
        """Return the distances up to 16, or up to a quarter of the bits of a short fingerprint."""
        if lowest is not None:
            raise SettingError(
                "curve_from is a threshold, but the curve of SimHash has distances: got "
                f"{lowest:g}. Leave curve_from (--curve-from) out."
            )
        max_distance = min(MAX_HAMMING_DISTANCE, self.settings.bits // 4)
        # At least the distance of the settings, so that the curve shows their score.
        max_distance = max(self.settings.max_distance, max_distance)
        # Blocks were chosen for the smaller distance.
        loosest = replace(self.settings, max_distance=max_distance, num_blocks=None)
        return Curve(np.arange(max_distance + 1), SimHashMethod(loosest, self.idf))

    def compare(self, left: str, right: str) -> PairMeasures:
        # Not `super()`: the method with the table is another object.
        return super(SimHashMethod, self._with_table()).compare(left, right)

    def _measure_pair(self, described: Described) -> PairMeasures:
        found = super()._measure_pair(described)
        found = found._replace(similarity=found.jaccard)
        if not described.keys.featured.all():
            return found
        first, second = to_integers(described.keys.values)
        # Python's integers: a fingerprint has up to 256 bits.
        return found._replace(
            fingerprints=(first, second),
            distance=(first ^ second).bit_count(),
            weighted_cosine=self._cosine_of_weights(described.features),
        )

    def _cosine_of_weights(self, features: Features) -> float | None:
        """Return the cosine of the weights of two documents; None if one has no weight at all."""
        summands = weigh(features.weighed, self.idf)
        middle = summands.weighed.offsets[1]
        left = summands.weighed.weights[:middle]
        right = summands.weighed.weights[middle:]
        left_hashes = summands.features.hashes[:middle]
        right_hashes = summands.features.hashes[middle:]
        _, in_left, in_right = np.intersect1d(
            left_hashes, right_hashes, assume_unique=True, return_indices=True
        )
        length = np.linalg.norm(left) * np.linalg.norm(right)
        return float(left[in_left] @ right[in_right] / length) if length else None

    def explain(self, text: Any, idf: IdfTable | None = None) -> Explanation:
        return explain_fingerprint(text, self.settings, self.idf if idf is None else idf)

    def scheme_settings(self) -> JsonObject:
        scheme = scheme_of(self.settings, getattr(self.settings.idf, "version", None))
        features = without_version(scheme.pop("features", {}))
        del scheme["name"]
        return features | without_version(scheme)

    def scheme(self) -> JsonObject:
        is_native = self.settings.scheme == "native"
        versions = {"features_version": FEATURES_VERSION} if is_native else {}
        return {**SCHEME, **versions, **self.scheme_settings()}

    def other_settings(self, selection: Any) -> JsonObject:
        return super().other_settings(selection) | {
            "confirm": "jaccard" if self.confirms_sets else "hamming"
        }

    def describe_search(self, outcome: Totals) -> JsonObject:
        found = {
            "max_distance": self.settings.max_distance,
            "distinct": outcome.num_fingerprints,
            "near_pairs": outcome.num_near_pairs,
            "collisions": outcome.collisions,
            "short": outcome.short,
        }
        return super().describe_search(outcome) | {"fingerprints": found}

    def histogram(self, counts: Counts) -> JsonObject:
        distance = counts.near[DISTANCE.name]
        num_bars = self.settings.max_distance + 1
        # A fingerprint of several copies counts for each.
        bars = np.bincount(distance, weights=counts.repeats, minlength=num_bars)
        similarities = histogram(counts, self.settings.threshold) if self.confirms_sets else None
        return {"similarities": similarities, "distances": bars.astype(np.int64).tolist()}

    def warnings(self, outcome: Totals) -> list[str]:
        return warn_of_short(outcome.short)


class SimHashSketcher(TokenSketcher):
    """Makes SimHash fingerprints."""

    weight_range = "a finite number"
    method: SimHashMethod

    def __init__(self, method: SimHashMethod) -> None:
        super().__init__(method, num_words(method.settings.bits))

    @property
    def scheme(self) -> JsonObject:
        return scheme_of(self.method.settings, getattr(self.method.idf, "version", None))

    def scheme_of_tokens(self, *, weighted: bool) -> JsonObject:
        settings = self.method.settings
        counts_lines = settings.weights == "tfidf" and settings.idf == "lines"
        # Depth and lines are parts of a text, which token lists no longer have.
        needs_text = settings.weights == "depth" or counts_lines
        needs_weights = settings.weights == "given" and not weighted
        if needs_text or needs_weights:
            raise SettingError(
                "Token lists have no text to compute weights from: got "
                f"weights={settings.weights!r}, idf={settings.idf!r}. Pass each token with its "
                "weight, or use weights='tf'."
            )
        weights = {"weights": "given"} if weighted else {}
        return self.scheme | {"features": GIVEN} | weights

    def sign_tokens(self, tokens: pa.Array, offsets: Ints, out: SketchBuffers) -> None:
        self.sign_weighted(hash_tokens(tokens, offsets), None, out)

    def sign_weighted(
        self, hashed: HashedTokens, weights: Floats | None, out: SketchBuffers
    ) -> None:
        tokens = TokenStrings(*flatten_strings(hashed.strings), hashed.offsets)
        described = fingerprinting.describe_tokens(tokens, weights, self.method.settings)
        summands = fingerprinting.weigh(described, self.method.idf)
        # Into the given rows: the caller has allocated them for the whole batch.
        out.values[:] = fingerprinting.add_up(summands, self.method.settings).fingerprints
        out.empty[:] = np.diff(hashed.offsets) == 0

    def accepts(self, weights: Floats) -> Mask:
        return np.isfinite(weights)

    def warnings(self, num_short: int) -> list[str]:
        return warn_of_short(num_short)


def warn_of_short(num_documents: int) -> list[str]:
    """Return a warning if documents are too short for SimHash."""
    if not num_documents:
        return []
    have = "document has" if num_documents == 1 else "documents have"
    return [
        f"{num_documents:,} {have} fewer than {SHORT} features. SimHash is unreliable for such "
        "short texts: one changed word flips many bits, and most near-duplicates are missed. Use "
        "MinHash for them (--method minhash)."
    ]
