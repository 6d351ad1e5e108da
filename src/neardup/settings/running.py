"""The settings of a run: which document of several is kept, and how the machine is used."""

from __future__ import annotations

from dataclasses import dataclass

from neardup.settings.limits import Checked, Limits, parameter


@dataclass(frozen=True, kw_only=True)
class Sieve(Checked):
    """Which document of several alike is kept, and how far the search goes."""

    keep: str = parameter(
        "first",
        Limits(
            "Which document of several alike stays: by place, by length, or by a column of numbers or dates.",
            str,
            choices=("first", "last", "longest", "shortest"),
            prefixes=("max:", "min:"),
        ),
    )
    linkage: str = parameter(
        "sieve",
        Limits(
            "Remove what resembles a kept document (sieve), or all but one of each chain of resemblances (connected).",
            str,
            choices=("sieve", "connected"),
        ),
    )
    max_bucket: int | None = parameter(
        None,
        Limits(
            "Documents that one bucket lists at most, its earliest, so that boilerplate does not turn the work "
            "quadratic; the report says when others were left out. When unset: 64 in a band, 1,000 of one "
            "fingerprint, 10,000 that share a sampled shingle (containment).",
            int,
            low=1,
            high=100_000,
            optional=True,
        ),
    )
    audit: int = parameter(
        0,
        Limits(
            "Documents to compare with all others exactly, to measure the recall; 0 for none.", int, low=0, high=100_000
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Running(Checked):
    """How a run uses the machine. Nothing here changes the answer."""

    threads: int | None = parameter(
        None, Limits("Worker threads; all processors of this process when unset.", int, low=1, high=1024, optional=True)
    )
    batch_rows: int | None = parameter(
        None,
        Limits(
            "Documents that are worked on at once; by their size when unset.", int, low=1, high=1_000_000, optional=True
        ),
    )
    on_error: str = parameter(
        "reject",
        Limits(
            "What cannot be read: reject lists it in rejected.jsonl, and a file that cannot be read to its end makes "
            "the result incomplete (exit code 1); skip lists it and accepts that; stop ends the run at the first.",
            str,
            choices=("reject", "skip", "stop"),
        ),
    )
