"""Estimate a run: its bands, their work, memory and disk."""

from __future__ import annotations

from dataclasses import dataclass

from neardup.candidates.bands import Bands, candidate_probability, expected_false_candidates
from neardup.documents.batch_cache import default_cache_bytes

# Bytes per document. On disk: the columns of docs/architecture.md. In memory: the limit that tests/test_runs.py checks
# for whole runs; 47 were measured between half a million and two million documents.
_DISK_FIXED, _DISK_BAND, _DISK_SHINGLE = 8 + 16 + 8 + 8, 8 + 4, 8
_MEMORY_DOCUMENT = 64
_MEMORY_BASE = 500e6
_BYTES_PER_SHINGLE = 6.6  # of English text in UTF-8, a word and its separator
# A cached document: its text, and the row that is written if it is kept. Besides, a row number, offsets, and its id.
_CACHE_COPIES, _CACHE_DOCUMENT = 2, 64


@dataclass(frozen=True)
class Plan:
    """The estimate of a run.

    curve : pairs of a similarity and the probability of a comparison, from 0 to 1 in steps of 0.05. false_candidates :
    pairs below the threshold that are compared, as in manual pages and chapters; with the defaults, 4 a document there,
    16 in licences, which share sentences, and 0.03 in poems. memory_bytes : an upper limit, with the cached documents.
    cache_bytes : of these, if they fit into a quarter of the memory of this machine, else 0: a run decodes its files
    again. A compressed file is cached until it does not fit. Columns besides text and id take more. disk_bytes : an
    upper limit of the scratch files for English, reached if each document has a candidate and none is cached; twice as
    much for Chinese, where a character is a token.
    """

    documents: int
    threshold: float
    recall: float
    bands: Bands
    recall_at_threshold: float
    false_candidates: float
    memory_bytes: float
    cache_bytes: float
    disk_bytes: float
    text_bytes: float
    curve: tuple[tuple[float, float], ...]

    def __str__(self) -> str:
        """Return the plan in one sentence."""
        return (
            f"{self.documents:,} documents: {self.bands.num_bands} bands of {self.bands.rows_per_band} rows find "
            f"{self.recall_at_threshold:.1%} of the pairs at {self.threshold:g}; {self.memory_bytes / 1e9:,.1f} GB of "
            f"memory, {self.disk_bytes / 1e9:,.1f} GB of scratch files"
        )


@dataclass(frozen=True)
class ClusterPlan:
    """The estimate of a run with MinHash on Spark, from the figures of docs/spark.md.

    collapse_bytes, band_bytes, feature_bytes : shuffled to collapse copies, to fill buckets, and to compare
    candidates. core_hours : of a core like the measured one. core_memory_bytes : of an executor for each of its cores,
    the JVM and the Python worker together.
    """

    documents: int
    text_bytes: float
    threshold: float
    recall: float
    bands: Bands
    collapse_bytes: float
    band_bytes: float
    feature_bytes: float
    core_hours: float
    core_memory_bytes: float

    @property
    def shuffle_bytes(self) -> float:
        """All shuffled bytes."""
        return self.collapse_bytes + self.band_bytes + self.feature_bytes


# Measured by tools/measure_spark.py on windows of documentation, compressed as Spark does. A document in a candidate
# pair is shuffled once to its cell, and once before if the list of such documents is too long to be broadcast.
_COLLAPSE_FIXED, _COLLAPSE_BAND, _BAND_ROW, _BAND_PAIRS, _FEATURE_COPIES = 57, 8, 22.3, 74, 2.3
_CLUSTER_SECONDS_PER_GB = 350.0
_CORE_MEMORY = 2e9


def make_cluster_plan(
    documents: int, document_bytes: float, threshold: float, recall: float, bands: Bands
) -> ClusterPlan:
    """Return the estimate of a run on Spark over `documents` texts of `document_bytes` bytes on average."""
    text_bytes = documents * document_bytes
    seconds = _CLUSTER_SECONDS_PER_GB * text_bytes / 1e9
    return ClusterPlan(
        documents=documents,
        text_bytes=text_bytes,
        threshold=threshold,
        recall=recall,
        bands=bands,
        collapse_bytes=documents * (_COLLAPSE_FIXED + _COLLAPSE_BAND * bands.num_bands),
        band_bytes=documents * (_BAND_ROW * bands.num_bands + _BAND_PAIRS),
        feature_bytes=_FEATURE_COPIES * _DISK_SHINGLE * text_bytes / _BYTES_PER_SHINGLE,
        core_hours=seconds / 3600,
        core_memory_bytes=_CORE_MEMORY,
    )


def make_plan(documents: int, document_bytes: float, threshold: float, recall: float, bands: Bands) -> Plan:
    """Return the estimate of a run over `documents` texts of `document_bytes` bytes on average."""
    steps = [i / 20 for i in range(21)]
    probabilities = candidate_probability(steps, bands).tolist()
    cache = documents * (_CACHE_COPIES * document_bytes + _CACHE_DOCUMENT)
    cache = cache if cache <= default_cache_bytes() else 0
    disk = _DISK_FIXED + _DISK_BAND * bands.num_bands + _DISK_SHINGLE * document_bytes / _BYTES_PER_SHINGLE
    return Plan(
        documents=documents,
        threshold=threshold,
        recall=recall,
        bands=bands,
        recall_at_threshold=float(candidate_probability(threshold, bands)),
        false_candidates=documents * expected_false_candidates(bands, threshold),
        memory_bytes=_MEMORY_BASE + _MEMORY_DOCUMENT * documents + cache,
        cache_bytes=cache,
        disk_bytes=disk * documents,
        text_bytes=document_bytes * documents,
        curve=tuple(zip(steps, probabilities, strict=True)),
    )
