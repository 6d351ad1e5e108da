"""The findings of an audit over the pairs of an engine: shares, faults and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from neardup.arrays import Ints, Mask, Words, arrow_of
from neardup.decide.clusters import first_members
from neardup.decide.faults import BELOW, find_shifts, removals_below
from neardup.decide.referee import (
    ALONE,
    CHAIN,
    COPY,
    EMPTY,
    GROUP,
    NEAR,
    VERDICTS,
    Judgement,
    Remaining,
)
from neardup.engines.base import Searched
from neardup.files import JsonObject
from neardup.output.tables import pair_batches
from neardup.runs.foreign_ids import Clustered
from neardup.runs.kept_rows import Matched, Rows
from neardup.schemas import SIMILARITY, judged_schema, unmatched_schema
from neardup.verify.recall import estimate_recall, wilson

NONE = -1
"""In place of the number of a document or a cluster where there is none."""
_ROWS = 65_536
_MAX_VALUES = 100  # of a column, in a report
_BINS = 10  # of similarity, from 0 to 1
_MIN_SOURCE = 20  # documents of a source that may count as vanished
_VANISHED = 0.9  # removed share of a source that nearly vanished


class Estimate(NamedTuple):
    """A number of removals: their share of the judged ones, with a 95 % interval; exact if all are
    checked.
    """

    documents: int
    share: float
    low: float
    high: float
    is_exact: bool


@dataclass(frozen=True)
class Findings:
    """The findings of an audit.

    searched : the documents and pairs of the original. rows : the hashes of its documents.
    matched : the documents that were kept. judgement : of each document. remaining : the duplicates
    among the kept documents. ours : bool by document, whether the sieve of neardup keeps it.
    clusters : of the other tool.
    """

    searched: Searched
    rows: Rows
    matched: Matched
    judgement: Judgement
    remaining: Remaining
    ours: Mask
    clusters: Clustered | None

    @property
    def _num_documents(self) -> int:
        return len(self.matched.is_kept)

    @property
    def _is_removed(self) -> Mask:
        return ~self.matched.is_kept

    @cached_property
    def _is_lost(self) -> Mask:
        """The removed documents that are similar to no kept one, among the checked ones."""
        lost: Mask = self.judgement.is_unfound & self.judgement.checked
        return lost

    @property
    def is_sound(self) -> Mask:
        return self.judgement.where(COPY, NEAR)

    @property
    def is_late(self) -> Mask:
        """The sound removals whose similar kept documents all come after them."""
        late: Mask = self.is_sound & (self.judgement.earliest > np.arange(self._num_documents))
        return late

    @property
    def is_below(self) -> Mask:
        """The lost removals whose nearest kept document is just below the threshold."""
        least = self.searched.method.limit.value - BELOW
        judgement = self.judgement
        below: Mask = self._is_lost & judgement.where(ALONE) & (judgement.similarity >= least)
        return below

    @property
    def is_far(self) -> Mask:
        """The other lost removals that are similar to no document."""
        far: Mask = self._is_lost & self.judgement.where(ALONE) & ~self.is_below
        return far

    @property
    def num_judged(self) -> int:
        """The removed documents with features."""
        return _count(self._is_removed & ~self.judgement.where(EMPTY))

    @property
    def num_checked(self) -> int:
        """The removed documents that were compared with all kept ones."""
        return _count(self.judgement.checked)

    @property
    def num_unchecked(self) -> int:
        """The removed documents without a similar kept one that were not drawn."""
        return _count(self.judgement.is_unfound & ~self.judgement.checked)

    def lost(self) -> Estimate:
        """Estimate the lost removals.

        Removals for which the search found a similar kept document are sound. The others are a
        stratum, and a sample of it is compared exactly, so only their share is uncertain.
        """
        num_checked = self.num_checked
        stratum = num_checked + self.num_unchecked
        if not stratum:
            return Estimate(documents=0, share=0.0, low=0.0, high=0.0, is_exact=True)
        share = _count(self._is_lost) / num_checked
        low, high = wilson(share, num_checked) if self.num_unchecked else (share, share)
        scale = stratum / self.num_judged
        return Estimate(
            documents=round(share * stratum),
            share=share * scale,
            low=max(0.0, low) * scale,
            high=min(1.0, high) * scale,
            is_exact=not self.num_unchecked,
        )

    def _estimated(self, is_kind: Mask) -> int:
        """Return the estimated number of lost documents of a kind."""
        num_lost = _count(self._is_lost)
        if not num_lost:
            return 0
        share = _count(is_kind & self._is_lost) / num_lost
        return round(share * self.lost().documents)

    def counts(self) -> dict[str, int]:
        """Return the numbers of documents by verdict, and of rows that do not match."""
        tally = self.searched.corpus.tally
        verdicts = np.bincount(self.judgement.verdicts, minlength=len(VERDICTS))
        return {
            "read": self._num_documents,
            "kept": _count(self.matched.is_kept),
            "removed": _count(self._is_removed),
            "judged": self.num_judged,
            "copies": int(verdicts[COPY]),
            "near": int(verdicts[NEAR]),
            "empty": int(verdicts[EMPTY]),
            "checked": self.num_checked,
            "unchecked": self.num_unchecked,
            "unmatched": len(self.matched.unmatched),
            "changed": self.matched.num_changed,
            "rejected": tally.losses.rejected,
            "without_features": tally.without_features,
        }

    def similarities(self) -> list[JsonObject]:
        """Return the lost documents by the similarity of the nearest kept document."""
        edges = np.arange(_BINS + 1) / _BINS
        similarity = self.judgement.similarity
        rows: list[JsonObject] = [
            {"from": 0.0, "to": 0.0, "documents": self._estimated(similarity == 0.0)}
        ]
        for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            is_inside = (similarity > 0.0) & (similarity >= low) & (similarity < high)
            rows.append({"from": low, "to": high, "documents": self._estimated(is_inside)})
        return [row for row in rows if row["documents"]]

    def groups(self) -> JsonObject:
        """Return the number of groups without a kept copy, and of their documents."""
        components = self.judgement.components[self.judgement.where(GROUP)]
        return {"without_kept": len(np.unique(components)), "documents": len(components)}

    def keepers(self) -> JsonObject:
        """Return which document of a group was kept: the first, the last or the longest.

        A group is a kept document and the removed ones to which it is the most similar.
        """
        removed = np.flatnonzero(self.is_sound)
        keepers = self.judgement.keepers[removed]
        kept, group = np.unique(keepers, return_inverse=True)
        lengths = self.searched.found.lengths
        first = np.full(len(kept), self._num_documents)
        np.minimum.at(first, group, removed)
        last = np.full(len(kept), -1)
        np.maximum.at(last, group, removed)
        longest = np.zeros(len(kept), np.int64)
        np.maximum.at(longest, group, lengths[removed])
        return {
            "groups": len(kept),
            "first": _count(kept < first),
            "last": _count(kept > last),
            "longest": _count(lengths[kept] >= longest),
        }

    def remaining_among_kept(self) -> JsonObject:
        """Return the duplicates among the kept documents, with the estimated recall."""
        remaining = self.remaining
        return {
            "documents": len(remaining.documents),
            "copies": remaining.num_copies,
            "pairs": len(remaining.pairs.left),
            "recall": self._recall_among_kept(),
        }

    def _recall_among_kept(self) -> JsonObject | None:
        """Return the estimated recall of the remaining duplicates, if it is known."""
        searched = self.searched
        probability = searched.method.hit_probability
        is_hidden = searched.found.confirmed.left_out.any()
        if probability is None or is_hidden:
            return None
        pairs = self.remaining.pairs
        components = first_members(self._num_documents, pairs.left, pairs.right)[pairs.left]
        estimate = estimate_recall(pairs.measured[SIMILARITY.name], components, probability)
        if estimate is None:
            return None
        return {"estimated": estimate.estimated, "low": estimate.low, "high": estimate.high}

    def ours_beside_theirs(self) -> dict[str, int]:
        """Return the documents that the sieve of neardup would have kept at this threshold."""
        return {
            "kept": _count(self.ours),
            "removed": _count(~self.ours),
            "removed_by_both": _count(self._is_removed & ~self.ours),
            "removed_by_them_only": _count(self._is_removed & self.ours),
            "removed_by_us_only": _count(~self._is_removed & ~self.ours),
        }

    def faults(self) -> list[JsonObject]:
        """Return the faults that were seen, each with the number of documents."""
        judgement = self.judgement
        groups = self.groups()
        is_below = self.is_below
        threshold = self.searched.method.limit.value
        below = removals_below(judgement.similarity[is_below], threshold)
        faults: list[JsonObject] = [
            *self._shifts(),
            {"fault": "chain", "documents": self._estimated(judgement.where(CHAIN))},
            {
                "fault": "no_copy_kept",
                "documents": groups["documents"],
                "groups": groups["without_kept"],
            },
            {"fault": "later_copy_kept", "documents": _count(self.is_late)},
            {
                "fault": "estimate" if below.is_estimate else "below_threshold",
                "documents": self._estimated(is_below),
            },
            {"fault": "unlike", "documents": self._estimated(self.is_far)},
        ]
        return [fault for fault in faults if fault["documents"]]

    def _shifts(self) -> Iterator[JsonObject]:
        """Yield the shifts of document numbers."""
        names = self.searched.locations.names
        should_go = ~self.ours & self.matched.is_kept
        for shift in find_shifts(self.judgement.is_unfound, should_go, self.rows.part_ends):
            yield {
                "fault": "shifted" if shift.part is None else "shifted_in_file",
                "documents": shift.explained,
                "lost": shift.lost,
                "offset": shift.offset,
                "file": None if shift.part is None else names[shift.part],
            }

    def sources(self) -> list[JsonObject]:
        """Return the removals by input and by the values of columns, with vanished ones marked."""
        is_unfound = self.judgement.is_unfound
        parts = self.rows.parts(np.arange(self._num_documents))
        rows = _count_by(None, parts, self._is_removed, is_unfound, self._names_of_parts)
        for column, hashes in self.searched.described.items():
            distinct, values = np.unique(hashes, return_inverse=True)
            names_of = partial(self._names_of_values, distinct)
            rows += _count_by(column, values, self._is_removed, is_unfound, names_of)
        return rows

    def _names_of_parts(self, numbers: Ints) -> list[str]:
        return [self.searched.locations.names[number] for number in numbers.tolist()]

    def _names_of_values(self, hashes: Words, numbers: Ints) -> list[str]:
        return self.searched.corpus.names.find(hashes[numbers])

    def of_clusters(self) -> JsonObject | None:
        """Return how the clusters of the other tool agree with the removals; None without them."""
        if self.clusters is None:
            return None
        documents = self.clusters.documents
        clusters = self.clusters.clusters
        sizes = np.bincount(clusters)
        num_kept = np.bincount(clusters[self.matched.is_kept[documents]], minlength=len(sizes))
        cluster_of = np.full(self._num_documents, NONE, np.int64)
        cluster_of[documents] = clusters
        has_cluster = cluster_of != NONE
        removed = np.flatnonzero(self.is_sound & has_cluster)
        is_own = cluster_of[self.judgement.keepers[removed]] == cluster_of[removed]
        return {
            "clusters": _count(sizes > 1),
            "without_kept": _count((num_kept == 0) & (sizes > 0)),
            "with_several_kept": _count(num_kept > 1),
            "removed_outside": _count(self._is_removed & ~has_cluster),
            "sound_by_own_cluster": _count(is_own),
            "sound_by_other_cluster": _count(~is_own),
            "unknown": self.clusters.num_unknown,
        }

    def judged_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the table of removed documents; see schemas.judged_schema."""
        locations = self.searched.locations
        judgement = self.judgement
        removed = np.flatnonzero(self._is_removed).astype(np.uint32)
        for start in range(0, len(removed), _ROWS):
            part = removed[start : start + _ROWS]
            keepers = judgement.keepers[part]
            has_keeper = keepers >= 0
            is_known = self.is_sound[part] | judgement.checked[part]
            # Document 0 in place of none; its columns become null.
            kept = np.where(has_keeper, keepers, 0).astype(np.uint32)
            no_keeper = arrow_of(~has_keeper)
            columns = [
                *locations.columns(part),
                pa.array(VERDICTS).take(arrow_of(judgement.verdicts[part])),
                arrow_of(judgement.checked[part]),
                pa.array(judgement.similarity[part], mask=~is_known),
                *(_null_where(no_keeper, column) for column in locations.columns(kept)),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=judged_schema())

    def remaining_batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the pairs of near-duplicates among the kept documents; see schemas.pairs_schema."""
        searched = self.searched
        return pair_batches(self.remaining.pairs, searched.locations.ids, searched.method.measures)


def _count(mask: Mask) -> int:
    return int(np.count_nonzero(mask))


def _null_where(mask: pa.Array, column: pa.Array) -> pa.Array:
    return pc.if_else(mask, pa.scalar(None, column.type), column)


def _count_by(
    column: str | None,
    values: Ints,
    is_removed: Mask,
    is_unfound: Mask,
    names_of: Callable[[Ints], list[str]],
) -> list[JsonObject]:
    """Return the documents of each value of a column, the most removed share first.

    values : the number of each document's value. names_of : returns the names of such numbers.
    """
    documents = np.bincount(values)
    removed = np.bincount(values[is_removed], minlength=len(documents))
    unfound = np.bincount(values[is_unfound], minlength=len(documents))
    share = removed / np.maximum(documents, 1)
    shown = np.argsort(-share, kind="stable")
    shown = shown[documents[shown] > 0][:_MAX_VALUES]
    return [
        {
            "column": column,
            "value": name,
            "documents": int(documents[number]),
            "removed": int(removed[number]),
            "lost": int(unfound[number]),
            "vanished": bool(documents[number] >= _MIN_SOURCE and share[number] >= _VANISHED),
        }
        for number, name in zip(shown.tolist(), names_of(shown), strict=True)
    ]


def unmatched_batches(
    names: Sequence[str], rows: Rows, documents: Ints
) -> Iterator[pa.RecordBatch]:
    """Yield the kept documents that are not in the original; see schemas.unmatched_schema.

    names : of the parts of the kept side. rows : its documents.
    """
    for start in range(0, len(documents), _ROWS):
        part = documents[start : start + _ROWS]
        files = pa.array(list(names), pa.string()).take(arrow_of(rows.parts(part)))
        columns = [files, arrow_of(rows.numbers[part])]
        yield pa.RecordBatch.from_arrays(columns, schema=unmatched_schema())
