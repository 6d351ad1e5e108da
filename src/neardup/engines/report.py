"""Gather what a run did into one record: what report.json holds and the page shows."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from neardup.config import MinHash, Sieve
from neardup.engines.describe import Task
from neardup.engines.local import Outcome
from neardup.engines.stages import Stages
from neardup.fingerprints.minhash import SCHEME_NAME, SCHEME_VERSION
from neardup.verify.recall import Recall
from neardup.version import __version__

_HISTOGRAM_BARS = 20
_TEXT_SETTINGS = ("tokens", "ngram", "nfkc", "case_fold", "fold_chinese", "seed")


def build_report(
    command: str,
    tasks: list[Task],
    method: MinHash,
    sieve: Sieve,
    outcome: Outcome,
    stages: Stages,
    warnings: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the record of a run; plain values that JSON can hold."""
    seconds = sum(stages.seconds.values())
    tally, corpus = outcome.corpus.tally, outcome.corpus
    return {
        "version": __version__,
        "command": command,
        "scheme": _scheme(method, outcome),
        "settings": _settings(method, sieve),
        "inputs": _inputs(tasks, outcome),
        "counts": _counts(outcome),
        "bands": None if outcome.bands is None else outcome.bands._asdict(),
        "samples": None if outcome.samples is None else outcome.samples._asdict(),
        "recall": _recall(outcome.recall),
        "audit": _audit(outcome.audited, sieve.audit),
        "bound": {"max_bucket": sieve.max_bucket, "documents": outcome.bound_met},
        "similarities": _histogram(outcome.removals.similarity[~outcome.removals.exact], method.threshold),
        "cluster_sizes": _cluster_sizes(outcome.removals.kept),
        "timings": [{"stage": name, "seconds": round(value, 4)} for name, value in stages.seconds.items()],
        "seconds": round(seconds, 4),
        "bytes": tally.text_bytes,
        "megabytes_per_second": round(tally.text_bytes / 1e6 / max(seconds, 1e-9), 1),
        "documents_per_second": round(corpus.num_documents / max(seconds, 1e-9)),
        "peak_memory_bytes": peak_memory(),
        "warnings": [*_warnings(outcome, sieve), *warnings],
    }


def peak_memory() -> int | None:
    """Return the most memory that this process has held so far, in bytes, where the system tells."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def _name(value: Any) -> Any:
    return getattr(value, "__qualname__", repr(value)) if callable(value) else value


def _scheme(method: MinHash, outcome: Outcome) -> dict[str, Any]:
    text = {name: _name(getattr(method, name)) for name in _TEXT_SETTINGS}
    if outcome.bands is None:
        return {"name": "shingles", "version": SCHEME_VERSION, **text}
    return {"name": SCHEME_NAME, "version": SCHEME_VERSION, "num_hashes": outcome.bands.num_hashes, **text}


def _settings(method: MinHash, sieve: Sieve) -> dict[str, Any]:
    own = {field.name: getattr(method, field.name) for field in fields(method)}
    settings = {name: value for name, value in own.items() if name not in _TEXT_SETTINGS}
    return settings | {field.name: getattr(sieve, field.name) for field in fields(sieve)}


def _inputs(tasks: list[Task], outcome: Outcome) -> list[dict[str, Any]]:
    counts = np.diff([0, *outcome.corpus.part_ends]).tolist()
    return [
        {
            "name": task.part.name,
            "format": task.part.format,
            "documents": count,
            "rejected": rejected,
            "role": "against" if task.against else "source",
        }
        for task, count, rejected in zip(tasks, counts, outcome.corpus.part_rejected, strict=True)
    ]


def _counts(outcome: Outcome) -> dict[str, int]:
    corpus, removals = outcome.corpus, outcome.removals
    new = corpus.num_documents - corpus.num_against
    exact = int(np.count_nonzero(removals.exact))
    removed = len(removals.documents)
    return {
        "read": new,
        "kept": new - removed,
        "removed": removed,
        "removed_exact": exact,
        "removed_near": removed - exact,
        "rejected": corpus.tally.rejected,
        "without_features": corpus.tally.without_features,
        "against": corpus.num_against,
        "compared": outcome.compared,
        "confirmed": len(outcome.similarity),
    }


def _recall(recall: Recall | None) -> dict[str, float] | None:
    if recall is None:
        return None
    return {"estimated": recall.estimated, "low": recall.low, "high": recall.high}


def _audit(recall: Recall | None, documents: int) -> dict[str, Any] | None:
    if not documents:
        return None
    if recall is None:
        return {"documents": documents, "pairs": 0, "found": 0, "recall": None, "low": None, "high": None}
    found = round(recall.estimated * recall.num_pairs)
    return {
        "documents": documents,
        "pairs": recall.num_pairs,
        "found": found,
        "recall": recall.estimated,
        "low": recall.low,
        "high": recall.high,
    }


def _histogram(similarity: npt.NDArray[np.float64], threshold: float) -> dict[str, list[float]]:
    low = min(threshold, float(similarity.min(initial=1.0)))
    edges = np.linspace(low, 1.0, _HISTOGRAM_BARS + 1) if low < 1.0 else np.array([0.0, 1.0])
    counts, _ = np.histogram(similarity, edges)
    return {"edges": [round(edge, 4) for edge in edges.tolist()], "counts": counts.tolist()}


def _cluster_sizes(kept: npt.NDArray[np.uint32]) -> list[list[int]]:
    """Return [size, number of clusters of that size], the kept document counted."""
    if len(kept) == 0:
        return []
    _, members = np.unique(kept, return_counts=True)
    sizes, counts = np.unique(members + 1, return_counts=True)
    return [[size, count] for size, count in zip(sizes.tolist(), counts.tolist(), strict=True)]


def _warnings(outcome: Outcome, sieve: Sieve) -> list[str]:
    warnings = []
    if outcome.bound_met:
        warnings.append(
            f"{outcome.bound_met:,} documents met a bucket that lists {sieve.max_bucket:,} kept documents already, "
            "and were not compared with the others in it. Raise max_bucket (--max-bucket) to compare them all."
        )
    return warnings
