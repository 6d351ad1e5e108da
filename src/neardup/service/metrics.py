"""Counters and histograms, in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000)

Labels = tuple[tuple[str, str], ...]
Family = tuple[str, str, Mapping[Labels, float]]
"""Name, meaning, and values by their labels."""


class Histogram:
    """Counts of values up to each of some bounds, by label."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts: dict[str, list[int]] = {}
        self.sums: dict[str, float] = defaultdict(float)

    def add(self, label: str, value: float) -> None:
        """Count a value."""
        counts = self.counts.setdefault(label, [0] * (len(self.bounds) + 1))
        counts[bisect_left(self.bounds, value)] += 1
        self.sums[label] += value


class Metrics:
    """What the service has done since its start."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], int] = defaultdict(int)
        self.seconds = Histogram(_SECONDS)
        self.batches = Histogram(_SIZES)
        self.decisions: dict[str, int] = defaultdict(int)
        self.num_requests = 0

    def answered(self, operation: str, status: int, seconds: float) -> None:
        """Count a request: the name of its operation, its status and its time."""
        self.num_requests += 1
        self.requests[operation, status] += 1
        self.seconds.add(operation, seconds)

    def render(self, *gauges: Family) -> str:
        """Return the page of metrics; gauges : numbers that are not counted here."""
        requests: dict[Labels, float] = {
            (("operation", operation), ("status", str(status))): count
            for (operation, status), count in sorted(self.requests.items())
        }
        decisions: dict[Labels, float] = {
            (("decision", decision),): count for decision, count in sorted(self.decisions.items())
        }
        families: list[Family] = [
            ("neardup_requests_total", "Requests, by operation and status.", requests),
            ("neardup_decisions_total", "Decisions about documents: kept, removed, repeated.", decisions),
            *gauges,
        ]
        lines = []
        for name, meaning, values in families:
            lines += _head(name, "counter" if name.endswith("_total") else "gauge", meaning)
            lines += [_line(name, labels, value) for labels, value in values.items()]
        duration = "Time from the arrival of a request to its answer."
        lines += _histogram("neardup_request_duration_seconds", duration, "operation", self.seconds)
        lines += _histogram("neardup_batch_size", "Items in a call of the library, by queue.", "queue", self.batches)
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Labels, value: float) -> str:
    inner = ",".join(f'{key}="{_escape(text)}"' for key, text in labels)
    return f"{name}{{{inner}}} {_number(value)}" if inner else f"{name} {_number(value)}"


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _histogram(name: str, meaning: str, label: str, histogram: Histogram) -> list[str]:
    lines = _head(name, "histogram", meaning)
    for key, counts in sorted(histogram.counts.items()):
        total = 0
        for bound, count in zip((*histogram.bounds, None), counts, strict=True):
            total += count
            shown = "+Inf" if bound is None else f"{bound:g}"
            lines.append(_line(f"{name}_bucket", ((label, key), ("le", shown)), total))
        lines.append(_line(f"{name}_sum", ((label, key),), histogram.sums[key]))
        lines.append(_line(f"{name}_count", ((label, key),), total))
    return lines
