"""MinHash: bands or samples of shingles propose pairs, and the exact similarity confirms them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from neardup.answers import PairMeasures
from neardup.arrays import Array, Floats, Integers, Ints, Mask, Uint32s, arrow_of
from neardup.candidates.bands import Bands, candidate_probability, choose_bands
from neardup.candidates.lookups import BandLookup, SampleLookup
from neardup.candidates.samples import Samples, choose_samples, hit_probability, needed_by_size
from neardup.decide.outcome import SHORT, Totals
from neardup.errors import SettingError
from neardup.features.described import (
    Features,
    Keys,
    Lists,
    distinct_features,
    even_features,
    replicate_rare_features,
    sum_weights,
)
from neardup.features.idf import FEATURES_VERSION, IdfTable, describe_features
from neardup.features.shingles import is_scanned, scan_of, shingle_documents
from neardup.features.token_columns import HashedTokens, view_tokens
from neardup.features.workspaces import Workspace
from neardup.files import JsonObject
from neardup.fingerprints import minhash as signing
from neardup.fingerprints.explain import SignatureExplanation, explain_signature
from neardup.fingerprints.minhash import (
    SCHEME_NAME,
    SCHEME_VERSION,
    WEIGHTED_SCHEME_NAME,
    band_keys,
    sign,
)
from neardup.fingerprints.signatures import Signatures, is_empty
from neardup.methods.base import (
    Curve,
    Described,
    Method,
    is_exact,
    thresholds_from,
    without_version,
)
from neardup.methods.sketcher import GIVEN, SketchBuffers, TokenSketcher
from neardup.schemas import EXACT, SIMILARITY, STRUCTURE, Measure
from neardup.settings.constraints import constraints_of
from neardup.settings.methods import PAGE_TOKENS, MinHash, Shingling
from neardup.verify.measured import Measured, Rule, similarity_above_chance, similarity_of_lists

MIN_DOCUMENTS = 20  # the fewest in a run that warns of short texts
# A search at 0.1 takes some eight times as long, and at a lower threshold compares almost all
# pairs.
CURVE_FROM = 0.2
_MIN_CURVE_RECALL = 0.99  # recall of the search for a curve, at the lowest threshold
# Far from the limits of float64, 1e-308 and 1e308: sums and ratios of weights stay normal numbers.
_MIN_WEIGHT = 1e-100
_MAX_WEIGHT = 1e100
# 2^64 / golden ratio, which is odd: a text and tags with each other's hashes differ in content.
_TEXT_FACTOR = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class MinHashMethod(Method):
    """Jaccard similarity, containment or cosine of sets of shingles."""

    settings: MinHash

    scheme_fields: ClassVar[frozenset[str]] = frozenset(constraints_of(Shingling)) | {"seed"}
    sketches: ClassVar[type[Signatures]] = Signatures

    @property
    def max_bucket_size(self) -> int:  # type: ignore[override]
        """The maximum number of members that a bucket lists by default.

        Notes
        -----
        On 57,401 manual pages, changelogs and chapters (300 MB), bands with a limit of 64 lose 3 of
        10,014 removals, and samples with a limit of 1,000 lose 911 of 14,430. 200,000 texts from
        one template of 80 words take 2.7 times as long as unrelated texts with a limit of 64, and
        30 times as long with 1,000, which removes 3 % more.
        """
        return 10_000 if self.by_samples else 64

    @property
    def directed(self) -> bool:  # type: ignore[override]
        """True if the similarity is the containment of the later document in the earlier one."""
        return self.settings.similarity == "containment"

    @property
    def describes_again(self) -> bool:  # type: ignore[override]
        """True if a kernel cuts the texts, and only the shingles are compared."""
        return is_scanned(self.settings) and self.settings.of_structure is None

    @property
    def by_samples(self) -> bool:
        """True if samples of shingles propose pairs.

        Bands of a signature do not find contained texts.
        """
        return self.settings.similarity == "containment"

    @cached_property
    def bands(self) -> Bands:
        """The bands of a signature, as set, or the cheapest ones that reach the recall."""
        rows = self.settings.rows_per_band
        if self.settings.num_bands is not None and rows is not None:
            return Bands(self.settings.num_bands, rows)
        return choose_bands(
            self.settings.jaccard_threshold, self.settings.recall, rows_per_band=rows
        )

    @cached_property
    def samples(self) -> Samples:
        """The samples that find a contained document."""
        return choose_samples(self.settings.threshold, self.settings.recall)

    @property
    def lookup(self) -> BandLookup | SampleLookup:
        if not self.by_samples:
            return BandLookup(self.bands)
        needed = needed_by_size(self.settings.threshold, self.settings.recall, self.samples)
        return SampleLookup(self.samples, tuple(needed.tolist()))

    def for_index(self, expected_documents: int) -> MinHashMethod:
        if self.by_samples:
            return self
        return replace(self, settings=replace(self.settings, **self.bands._asdict()))

    @property
    def rule(self) -> Rule:
        return Rule(
            self.settings.similarity,
            self.settings.threshold,
            min_structure=self.settings.min_structure or 0.0,
            above_chance=self.settings.above_chance,
        )

    @property
    def measures(self) -> tuple[Measure, ...]:
        if self.settings.min_structure is None:
            return (SIMILARITY, EXACT)
        return (SIMILARITY, STRUCTURE, EXACT)

    @property
    def counted(self) -> Shingling | None:
        return self.settings.of_structure or (self.settings if self.settings.boost_rare else None)

    def describe(self, texts: pa.Array, workspace: Workspace | None = None) -> Features:
        """Return the shingles of texts; rare ones count more with `boost_rare` if `idf` is set."""
        shingles = shingle_documents(texts, self.settings, workspace)
        sets = Lists(shingles.hashes, shingles.offsets)
        even = even_features(sets) if self.settings.above_chance else None
        # After `even_features`, which needs the numbers of repeats in the text itself.
        if self.settings.boost_rare:
            sets = _count_rare(sets, self.idf)
            even = None if even is None else _count_rare(even, self.idf)
        if self.settings.of_structure is None:
            return Features(content=shingles.content, sets=sets, structure=even)
        # The settings exclude `above_chance` here, so the second list is free for the tags.
        tags = shingle_documents(texts, self.settings.of_structure)
        # Pages are copies if both text and tags are equal.
        content = shingles.content * _TEXT_FACTOR + tags.content
        structure = _count_rare(Lists(tags.hashes, tags.offsets), self.idf)
        return Features(content=content, sets=sets, structure=structure)

    def summarise(self, features: Features) -> Keys:
        if self.by_samples:
            return self.keys_of(_no_signatures(features), features)
        signatures = sign(*features.sets, self.bands.num_hashes, self.settings.seed)
        return self.keys_of(signatures, features)

    def summarise_at(self, limits: Sequence[Method], features: Features) -> list[Keys]:
        """Return the keys of each method, from one signature that is long enough for all."""
        if self.by_samples:
            return super().summarise_at(limits, features)
        num_hashes = [
            method.bands.num_hashes for method in limits if isinstance(method, MinHashMethod)
        ]
        # The first hashes of a longer signature are a shorter one.
        signatures = sign(*features.sets, max(num_hashes), self.settings.seed)
        return [method.keys_of(signatures, features) for method in limits]

    def sketch(self, features: Features) -> Uint32s:
        """Return signatures of `num_hashes`, or longer ones if the bands need them.

        Samples need no signatures: their rows are empty.
        """
        if self.by_samples:
            return _no_signatures(features)
        # Longer ones serve a later rebuild with more bands.
        num_hashes = max(self.bands.num_hashes, self.settings.num_hashes or 0)
        return sign(*features.sets, num_hashes, self.settings.seed)

    @property
    def sketcher(self) -> MinHashSketcher:
        return MinHashSketcher(self)

    def keys_of(self, sketch: Array, features: Features) -> Keys:
        featured = features.sets.sizes > 0
        if self.by_samples:
            no_keys = np.empty((len(featured), 0), np.uint64)
            return Keys(no_keys, features.content, featured, samples=features.sets)
        # The stored signature may be longer than the bands.
        banded = np.ascontiguousarray(sketch[:, : self.bands.num_hashes])
        return Keys(band_keys(banded, self.bands.num_bands).T, features.content, featured)

    def measure(
        self, left: Described, right: Described, left_rows: Integers, right_rows: Integers
    ) -> Measured:
        exact = is_exact(left, right, left_rows, right_rows)
        sets = left.features.sets, right.features.sets
        # The second lists of `describe`: even features with `above_chance`, tags with
        # `min_structure`, never both.
        left_second = left.features.structure
        right_second = right.features.structure
        if self.settings.above_chance and left_second is not None and right_second is not None:
            even = (left_second, right_second)
            similarity = similarity_above_chance(
                sets, even, (left_rows, right_rows), self.settings.similarity
            )
        else:
            similarity = similarity_of_lists(*sets, left_rows, right_rows, self.settings.similarity)
        # Copies are 1.0, also if their sets are compared above chance.
        columns: dict[str, Array] = {SIMILARITY.name: np.where(exact, 1.0, similarity)}
        compares_tags = self.settings.min_structure is not None
        if compares_tags and left_second is not None and right_second is not None:
            structure = similarity_of_lists(
                left_second, right_second, left_rows, right_rows, "cosine"
            )
            columns[STRUCTURE.name] = np.where(exact, 1.0, structure)
        return Measured(columns | {EXACT.name: exact})

    def is_duplicate(self, measured: Measured) -> Mask:
        is_duplicate = super().is_duplicate(measured)
        if self.settings.min_structure is not None:
            is_duplicate &= measured[STRUCTURE.name] >= self.settings.min_structure
        return is_duplicate

    @property
    def hit_probability(self) -> Callable[[Floats], Floats]:
        if self.by_samples:
            return partial(hit_probability, samples=self.samples)
        return partial(candidate_probability, bands=self.bands)

    def proposed_similarity(
        self, similarity: Floats, left_sizes: Floats, right_sizes: Floats
    ) -> Floats:
        if self.settings.similarity != "cosine":
            return similarity
        # From the cosine and both sizes to the number of shared shingles, and from there to the
        # Jaccard similarity, by which bands propose.
        shared = similarity * np.sqrt(left_sizes * right_sizes)
        return np.asarray(shared / np.maximum(left_sizes + right_sizes - shared, 1.0))

    def refuse_recall_sample(self, recall_sample: int) -> None:
        if self.settings.similarity != "jaccard" or self.settings.min_structure is not None:
            raise SettingError(
                "recall_sample measures the recall of Jaccard similarity only: got "
                f"recall_sample={recall_sample} with similarity={self.settings.similarity!r}, "
                f"min_structure={self.settings.min_structure!r}. Leave recall_sample "
                "(--recall-sample) at 0; every run estimates its recall."
            )

    def curve(self, lowest: float | None = None) -> Curve:
        """Return thresholds up to 1.

        Bands that the settings set stay; otherwise they are chosen for the lowest threshold.
        """
        limits = thresholds_from(CURVE_FROM if lowest is None else lowest)
        has_bands = self.settings.num_bands is not None
        # One search at the lowest threshold finds the pairs of all.
        loosest = replace(
            self.settings,
            threshold=float(limits[0]),
            recall=max(self.settings.recall, _MIN_CURVE_RECALL),
            # Rows alone were chosen for another threshold: the lowest one needs its own.
            rows_per_band=self.settings.rows_per_band if has_bands else None,
        )
        return Curve(limits, MinHashMethod(loosest, self.idf))

    def _measure_pair(self, described: Described) -> PairMeasures:
        found = super()._measure_pair(described)
        pages = described.features.structure
        if pages is not None and self.settings.min_structure is not None:
            structure = similarity_of_lists(pages, pages, np.array([1]), np.array([0]), "cosine")
            found = found._replace(structure=float(structure[0]))
        if self.by_samples:
            return found
        # A text without shingles has no signature.
        if not described.keys.featured.all():
            return found._replace(estimated_jaccard=0.0, candidate_probability=0.0)
        signatures = sign(*described.features.sets, self.bands.num_hashes, self.settings.seed)
        probability = candidate_probability(found.jaccard, self.bands)
        return found._replace(
            estimated_jaccard=float(np.mean(signatures[0] == signatures[1])),
            candidate_probability=float(probability),
        )

    def explain(self, text: Any, idf: IdfTable | None = None) -> SignatureExplanation:
        if self.by_samples:
            raise SettingError(
                "Contained texts are found by samples of shingles, not by signatures: got "
                f"similarity={self.settings.similarity!r}. Explain the text with "
                "similarity='jaccard' (--similarity jaccard)."
            )
        if idf is not None:
            raise SettingError(
                "idf weighs the features of SimHash: got one with MinHash. Leave idf out."
            )
        return explain_signature(text, self.settings, *self.bands)

    def scheme_settings(self) -> JsonObject:
        return without_version(describe_features(self.settings)) | {"seed": self.settings.seed}

    def scheme(self) -> JsonObject:
        versions = {"version": SCHEME_VERSION, "features_version": FEATURES_VERSION}
        if self.by_samples:
            return {"name": "shingles", **versions, **self.scheme_settings()}
        num_hashes = self.bands.num_hashes
        return {
            "name": SCHEME_NAME,
            **versions,
            "num_hashes": num_hashes,
            **self.scheme_settings(),
        }

    def warnings(self, outcome: Totals) -> list[str]:
        if self.settings.tokens not in PAGE_TOKENS:
            return self._warn_of_short(outcome)
        return _warn_of_untagged(
            outcome.corpus.tally.without_features, outcome.corpus.num_documents
        )

    def _warn_of_short(self, outcome: Totals) -> list[str]:
        """Return a warning if most texts are so short that one changed word makes them dissimilar.

        A changed word changes `ngram` of the shingles: of n shingles, n - ngram stay, so the
        Jaccard similarity of both texts is (n - ngram) / (n + ngram).
        """
        threshold = self.settings.threshold
        ngram = self.settings.ngram
        num_featured = outcome.corpus.num_documents - outcome.corpus.tally.without_features
        # The greatest ngram with which a text of SHORT shingles stays similar: this similarity
        # equals the threshold, solved for ngram. 0 if there is none.
        max_ngram = int(SHORT * (1 - threshold) / (1 + threshold))
        is_ngram_too_long = 0 < max_ngram < ngram
        are_most_short = num_featured >= MIN_DOCUMENTS and 2 * outcome.short > num_featured
        is_jaccard = self.settings.similarity == "jaccard"
        if not (are_most_short and is_ngram_too_long and is_jaccard):
            return []
        suggested = min(2, max_ngram)
        return [
            f"{outcome.short:,} of {num_featured:,} documents have fewer than {SHORT} shingles of "
            f"{ngram} tokens. In such a text one changed word lowers the similarity below "
            f"{threshold:g}. Set ngram={suggested} (--ngram {suggested}), or a lower threshold."
        ]

    def describe_search(self, outcome: Totals) -> JsonObject:
        search = self.samples if self.by_samples else self.bands
        return super().describe_search(outcome) | {self.lookup.name: search._asdict()}


class MinHashSketcher(TokenSketcher):
    """Makes MinHash signatures of `signature_length` hashes."""

    weight_range = f"0 or a number from {_MIN_WEIGHT} to {_MAX_WEIGHT}"
    method: MinHashMethod

    def __init__(self, method: MinHashMethod) -> None:
        if method.settings.min_structure is not None:
            raise SettingError(
                "A signature is of one set of features, and min_structure compares two: got "
                f"min_structure={method.settings.min_structure!r}. Leave it unset, or use dedup or "
                "find_pairs."
            )
        super().__init__(method, method.settings.signature_length)

    @property
    def scheme(self) -> JsonObject:
        idf = self.method.idf
        rarity = {} if idf is None else {"document_frequencies": idf.version}
        return self._scheme(SCHEME_NAME, describe_features(self.method.settings) | rarity)

    def scheme_of_tokens(self, *, weighted: bool) -> JsonObject:
        if self.method.settings.boost_rare:
            raise SettingError(
                "boost_rare counts the documents that contain a shingle of texts: got lists of "
                "tokens. Leave it unset."
            )
        return self._scheme(WEIGHTED_SCHEME_NAME if weighted else SCHEME_NAME, GIVEN)

    def _scheme(self, name: str, features: JsonObject) -> JsonObject:
        parameters = {"seed": self.method.settings.seed, "num_hashes": self.width}
        return {"name": name, "version": SCHEME_VERSION, **parameters, "features": features}

    def sign_texts(self, texts: pa.Array, out: SketchBuffers) -> int:
        settings = self.method.settings
        values = out.values
        # The kernel that signs texts does not count rare shingles.
        scan = None if settings.boost_rare else scan_of(texts, settings)
        if scan is None:
            sign(*self.method.describe(texts).sets, self.width, settings.seed, values)
        else:
            flagged = signing.sign_texts(*scan, settings.ngram, settings.seed, out=values)
            # Texts that must be normalised as a whole, which the kernel cannot do.
            if flagged.any():
                sets = self.method.describe(texts.filter(arrow_of(flagged))).sets
                values[flagged] = sign(*sets, self.width, settings.seed)
        out.empty[:] = is_empty(values)
        return 0  # short texts are not counted: `warnings` does not use their number

    def sign_tokens(self, tokens: pa.Array, offsets: Ints, out: SketchBuffers) -> None:
        signing.sign_strings(*view_tokens(tokens), offsets, self.method.settings.seed, out.values)

    def sign_weighted(self, hashed: HashedTokens, weights: Floats, out: SketchBuffers) -> None:
        distinct = distinct_features(hashed.hashes, hashed.offsets)
        # A repeated token has the sum of its weights.
        if len(distinct.hashes) < len(weights):
            weights = sum_weights(weights, hashed.hashes, hashed.offsets)
        else:
            weights = weights[distinct.firsts]
        seed = self.method.settings.seed
        signing.sign_weighted(
            distinct.hashes, weights, distinct.offsets, self.width, seed, out=out.values
        )

    def accepts(self, weights: Floats) -> Mask:
        return np.equal(weights, 0) | ((weights >= _MIN_WEIGHT) & (weights <= _MAX_WEIGHT))


def _warn_of_untagged(num_without: int, num_documents: int) -> list[str]:
    """Return a warning if most documents have no tags."""
    if 2 * num_without <= num_documents:
        return []
    have = "document has" if num_documents == 1 else "documents have"
    return [
        f"{num_without:,} of {num_documents:,} {have} no HTML tags, so they were not compared. For "
        "texts use method='minhash' (--method minhash)."
    ]


def _count_rare(sets: Lists, idf: IdfTable | None) -> Lists:
    """Return the sets with rare hashes repeated; unchanged without document frequencies."""
    if idf is None:
        return sets
    features = distinct_features(*sets)
    document_counts = idf.document_counts(features.hashes)
    return Lists(*replicate_rare_features(features, document_counts, idf.num_documents))


def _no_signatures(features: Features) -> Uint32s:
    """Return signatures without hashes, uint32 (num_documents, 0), for methods by samples."""
    return np.empty((len(features.content), 0), np.uint32)
