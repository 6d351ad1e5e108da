"""The cases as data: which tools run, by which command, with which settings."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

from corpus import Corpus

BANDS = 12
ROWS = 5
THREADS = 2
_ADAPTERS = Path(__file__).resolve().parent / "peers"

# Package -> (adapter, how the peer works here, its ways to confirm a candidate, the default first).
PEERS = {
    "datasketch": (
        "datasketch_dedup.py",
        "MinHash affine32 over xxHash, signed in 2 processes; MinHashLSH",
        ("estimate", "exact", "bands"),
    ),
    "rensa": (
        "rensa_dedup.py",
        (
            "full-set R-MinHash (every shingle, not the sampling rho path), signed in 2 processes; "
            "RMinHashLSH"
        ),
        ("estimate", "exact", "bands"),
    ),
    "gaoya": (
        "gaoya_dedup.py",
        "built-in analyser and bulk calls, native threads",
        ("estimate", "exact", "bands"),
    ),
    "text-dedup": (
        "text_dedup_dedup.py",
        "its minhash command, own words, connected clusters",
        ("exact", "bands"),
    ),
    "datatrove": (
        "datatrove_dedup.py",
        "its four MinHash stages, 2 workers, spaCy words, connected clusters",
        ("bands",),
    ),
}
CONFIRMS = {
    "exact": "exact Jaccard",
    "estimate": "estimate from the signatures",
    "bands": "nothing: a shared band decides",
}
DEFAULT_PEERS = (
    "datasketch",
    "datasketch:exact",
    "rensa",
    "rensa:exact",
    "gaoya",
    "text-dedup",
    "datatrove",
)


@dataclass(frozen=True)
class Case:
    """A tool with its settings. command holds {input}, {text} and {output}, filled in by
    `arguments`.
    """

    name: str
    package: str
    confirm: str
    settings: str
    command: tuple[str, ...]

    def arguments(self, corpus: Corpus, output: Path) -> list[str]:
        """Return the command line for a corpus."""
        places = {
            "input": str(corpus.parquet),
            "text": str(corpus.text),
            "lines": str(corpus.lines),
            "output": str(output),
        }
        return [part.format(**places) for part in self.command]


YARDSTICKS = ("wc", "pyarrow")  # packages that do another job


def word_count() -> Case:
    """Return the yardstick: `wc -w` reads every byte and finds every word, as any of the tools
    must.
    """
    return Case("wc -w", "wc", "", "LC_ALL=C.UTF-8, one thread, plain text", ("wc", "-w", "{text}"))


def copying() -> list[Case]:
    """Return the other yardsticks: no tool that writes its result is faster than to copy the file,
    or to read it.
    """
    command = (sys.executable, str(_ADAPTERS / "copy_parquet.py"), "{input}", "{output}")
    return [
        Case("pyarrow copy", "pyarrow", "", "read and written again, same codec", command),
        Case("pyarrow read", "pyarrow", "", "read only", (*command, "--only-read")),
    ]


def neardup(command: str) -> list[Case]:
    """Return neardup with its defaults, without a copy of the kept documents, and from JSON lines
    to JSON lines.
    """
    start = (*shlex.split(command), "dedup")
    parts = (*start, "{input}", "-o", "{output}")
    return [
        Case("neardup", "neardup", "exact", "defaults", parts),
        Case(
            "neardup --write removed",
            "neardup",
            "exact",
            "only removed.parquet",
            (*parts, "--write", "removed"),
        ),
        Case(
            "neardup, JSON lines",
            "neardup",
            "exact",
            "JSON lines in and out",
            (*start, "{lines}", "-o", "{output}"),
        ),
    ]


def peer(spec: str, python: str) -> Case:
    """Return the case of "package" or "package:confirm"."""
    package, _, confirm = spec.partition(":")
    if package not in PEERS:
        raise SystemExit(
            f"No adapter for {package!r}; there is one for each of {', '.join(PEERS)}."
        )
    adapter, settings, ways = PEERS[package]
    confirm = confirm or ways[0]
    if confirm not in ways:
        raise SystemExit(
            f"{package} cannot be confirmed by {confirm!r}; choose from {', '.join(ways)}."
        )
    command = (python, str(_ADAPTERS / adapter), "{input}", "{output}", "--threads", str(THREADS))
    command += ("--bands", str(BANDS), "--rows", str(ROWS), "--confirm", confirm)
    return Case(spec, package, confirm, settings, command)
