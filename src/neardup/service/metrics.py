"""The counts and times of the service, and their page in the text format of Prometheus."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

# Upper bounds of the buckets, in seconds, up to the default of `answer_timeout_s`.
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 10_000)

Labels = tuple[tuple[str, str], ...]


class Family(NamedTuple):
    """A counter or a gauge: its name, its meaning, and its values by their labels."""

    name: str
    meaning: str
    values: Mapping[Labels, float]


class Histogram:
    """Counts of values up to each of some bounds, by label."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts: dict[str, list[int]] = defaultdict(lambda: [0] * (len(bounds) + 1))
        self.sums: dict[str, float] = defaultdict(float)

    def add(self, label: str, value: float) -> None:
        """Count a value."""
        # A bound belongs to its own bucket: `le` of Prometheus means at most. The last count has
        # the values above all bounds.
        self.counts[label][bisect_left(self.bounds, value)] += 1
        self.sums[label] += value


class Metrics:
    """The counts and times of the service since its start."""

    def __init__(self) -> None:
        self.requests: dict[tuple[str, int], int] = defaultdict(int)
        self.seconds = Histogram(_SECONDS)
        self.batches = Histogram(_SIZES)
        self.decisions: dict[str, int] = defaultdict(int)
        self.num_requests = 0

    def answered(self, operation: str, status: int, seconds: float) -> None:
        """Count a request: the name of its operation, its status and its time."""
        # Counted apart: `stats` would have to add up the requests of all labels.
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
            Family("neardup_requests_total", "Requests, by operation and status.", requests),
            Family(
                "neardup_decisions_total",
                "Decisions about documents: kept, removed, repeated.",
                decisions,
            ),
            *gauges,
        ]
        lines = []
        for family in families:
            kind = "counter" if family.name.endswith("_total") else "gauge"
            lines += _head(family.name, kind, family.meaning)
            lines += [_line(family.name, labels, value) for labels, value in family.values.items()]
        duration = "Time from the arrival of a request to its answer."
        lines += _histogram("neardup_request_duration_seconds", duration, "operation", self.seconds)
        lines += _histogram(
            "neardup_batch_size", "Items in a call of the library, by queue.", "queue", self.batches
        )
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]


def _line(name: str, labels: Labels, value: float) -> str:
    inner = ",".join(f'{key}="{_escape(text)}"' for key, text in labels)
    return f"{name}{{{inner}}} {_number(value)}" if inner else f"{name} {_number(value)}"


def _number(value: float) -> str:
    # 3, not 3.0, as counters are usually written.
    return str(int(value)) if value == int(value) else repr(value)


def _escape(text: str) -> str:
    # The backslash first: the others add backslashes.
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _histogram(name: str, meaning: str, label: str, histogram: Histogram) -> list[str]:
    lines = _head(name, "histogram", meaning)
    for key, counts in sorted(histogram.counts.items()):
        # The buckets of Prometheus are cumulative: each has the values of the ones before it.
        total = 0
        for bound, count in zip((*histogram.bounds, None), counts, strict=True):
            total += count
            shown = "+Inf" if bound is None else f"{bound:g}"
            lines.append(_line(f"{name}_bucket", ((label, key), ("le", shown)), total))
        lines.append(_line(f"{name}_sum", ((label, key),), histogram.sums[key]))
        lines.append(_line(f"{name}_count", ((label, key),), total))
    return lines
