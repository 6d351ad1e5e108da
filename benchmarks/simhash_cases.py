"""The cases of run_simhash.py as data: which tools do which job, and with which settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_JOBS = Path(__file__).resolve().parent / "fingerprint_jobs"
_PACKAGES = {
    **{"faiss": "faiss-cpu", "simhash": "simhash", "pybind": "simhash-pybind"},
    **{"neardup_pages": "neardup", "html_similarity": "html-similarity"},
}
SAMPLE_MB = 12  # what peers fingerprint
# Hashes, bits of each, bits flipped in a query: of those tried (see README.md) the fastest whose
# recall is 1.
_HASHES_JOIN = {10**5: (2, 24, 1), 10**6: (4, 16, 0)}
_HASHES_QUERY = {10**5: (2, 20, 1), 10**6: (2, 24, 1)}
_HASHES_LARGE = (2, 28, 1)


@dataclass(frozen=True)
class Case:
    """A tool with its settings.

    script : of fingerprint_jobs, by which its environment is known. how : as shown. most : the most
    fingerprints that it gets, of a peer those that it manages in about two minutes.
    """

    tool: str
    script: str
    how: str
    threads: int
    options: dict[str, Any] = field(default_factory=dict)
    most: int = 10**7

    @property
    def ours(self) -> bool:
        return self.package == "neardup"

    @property
    def package(self) -> str:
        return _PACKAGES.get(self.script, self.script)

    @property
    def path(self) -> str:
        return str(_JOBS / f"{self.script}_jobs.py")

    @property
    def name(self) -> str:
        return f"{self.tool}, {self.how}, {self.threads}"


def texts(megabytes: int) -> list[Case]:
    """Return who fingerprints so much text: the peers a sample."""
    cases = [
        Case("neardup", "neardup", "fingerprint(table of texts)", threads) for threads in (2, 1)
    ]
    if megabytes != SAMPLE_MB:
        return cases
    for threads in (2, 1):
        cases += [
            Case(
                "simhash",
                "simhash",
                "Simhash(text): runs of 4 characters",
                threads,
                {"form": "text"},
            ),
            Case("simhash", "simhash", "Simhash(words)", threads, {"form": "listed"}),
            Case(
                "simhash",
                "simhash",
                "Simhash(Counter(words)), xxh3 for MD5",
                threads,
                {"form": "counted"},
            ),
            Case("simhash-pybind", "pybind", "compute(hashes of words), xxh3 for MD5", threads),
        ]
    return cases


def pairs(size: int) -> list[Case]:
    """Return who finds all pairs among so many fingerprints."""
    blocks = 4 if size <= 10**5 else 5  # the fastest of 4 to 8
    return [
        Case("neardup", "neardup", "find_pairs: table to table", 2, {"by": "call"}, 10**8),
        Case("neardup join", "neardup", "array to arrays", 2, {"by": "join"}, 10**8),
        Case("neardup join", "neardup", "array to arrays", 1, {"by": "join"}),
        _multi_hash(_HASHES_JOIN.get(size, _HASHES_LARGE)),
        Case("faiss IndexBinaryFlat", "faiss", "brute force", 2, {}, 10**5),
        Case("simhash-pybind", "pybind", f"find_all, {blocks} blocks", 1, {"blocks": blocks}),
        Case("simhash", "simhash", "SimhashIndex: ask, then add", 1, {}, 10**5),
    ]


def queries(size: int) -> list[Case]:
    """Return who answers queries among so many fingerprints. ask : of a batch, where all would take
    too long.
    """
    multi_hash = _multi_hash(_HASHES_QUERY.get(size, _HASHES_LARGE))
    return [
        Case("neardup", "neardup", "HammingIndex.query_many", 2),
        Case("neardup", "neardup", "HammingIndex.query_many", 1),
        Case(multi_hash.tool, "faiss", multi_hash.how, 2, {**multi_hash.options, "ask": None}),
        Case("faiss IndexBinaryFlat", "faiss", "brute force", 2, {"ask": 10**10 // size}),
        Case("simhash", "simhash", "SimhashIndex, one by one", 1, {"ask": 2000}, 10**6),
    ]


def _multi_hash(chosen: tuple[int, int, int]) -> Case:
    number, bits, flips = chosen
    how = f"{number} hashes of {bits} bits, nflip={flips}"
    return Case("faiss IndexBinaryMultiHash", "faiss", how, 2, {"hashes": chosen})
