"""The settings of a run: which document of a cluster is kept, and how the machine is used."""

from __future__ import annotations

from dataclasses import dataclass

from neardup.settings.constraints import Constraint, Validated, parameter

LANGUAGES = ("en", "zh")
"""The languages of reports and comparisons: English, simplified Chinese."""


@dataclass(frozen=True, kw_only=True)
class SelectionSettings(Validated):
    """Which document of a cluster is kept, and how far the search goes."""

    keep: str = parameter(
        "first",
        Constraint(
            "The document of a cluster that is kept: by position, length, a column of numbers or dates, or the order "
            "of the inputs (source); of several with commas, the first that differs decides.",
            str,
            choices=("first", "last", "longest", "shortest", "source"),
            prefixes=("max:", "min:"),
            is_list=True,
        ),
    )
    within: str | None = parameter(
        None,
        Constraint(
            "Compare only documents with the same value in this column, such as a language or a site.",
            str,
            optional=True,
            sentinels=("COLUMN",),
        ),
    )
    linkage: str = parameter(
        "sieve",
        Constraint(
            "Remove each document that is similar to a kept one (sieve), or all but one of each chain of similar "
            "documents (connected).",
            str,
            choices=("sieve", "connected"),
        ),
    )
    max_bucket_size: int | None = parameter(
        None,
        Constraint(
            "The maximum number of documents in a bucket, the earliest ones; it keeps the work linear on boilerplate, "
            "and the report shows when documents were left out. Default: 64 in a band, 1,000 of one fingerprint, "
            "10,000 with one sampled shingle (containment).",
            int,
            low=1,
            high=100_000,
            optional=True,
        ),
    )
    audit_sample: int = parameter(
        0,
        Constraint(
            "The number of documents to compare exactly with all others, to measure the recall; 0 for none.",
            int,
            low=0,
            high=100_000,
        ),
    )


@dataclass(frozen=True, kw_only=True)
class OutputSettings(Validated):
    """What a run writes, and counts."""

    write: str = parameter(
        "kept",
        Constraint(
            "Beside removed.parquet, write the kept documents in the format of the input (kept), a row for each input "
            "row with whether it is kept (mask), the ids of the kept documents (ids), all documents with the columns "
            "duplicate_of, similarity and cluster (annotated), or nothing (removed).",
            str,
            choices=("kept", "mask", "ids", "annotated", "removed"),
        ),
    )
    count_by: str | None = parameter(
        None,
        Constraint(
            "Count the removed documents for each value of this column, such as a source. Default: that of within.",
            str,
            optional=True,
            sentinels=("COLUMN",),
        ),
    )
    lang: str = parameter(
        "en", Constraint("The language of report.html: English, or simplified Chinese.", str, choices=LANGUAGES)
    )


@dataclass(frozen=True, kw_only=True)
class RunSettings(Validated):
    """How a run uses the machine. Nothing here changes the result."""

    threads: int | None = parameter(
        None,
        Constraint(
            "Worker threads. Default: one for each processor of this process.", int, low=1, high=1024, optional=True
        ),
    )
    batch_rows: int | None = parameter(
        None,
        Constraint("Documents processed at a time. Default: by their size.", int, low=1, high=1_000_000, optional=True),
    )
    cache_bytes: int | None = parameter(
        None,
        Constraint(
            "Memory, in bytes, for the documents of the inputs, which are then decoded once; inputs that do not fit "
            "are read again where they are needed. Default: a quarter of the memory.",
            int,
            low=0,
            high=1 << 50,
            optional=True,
        ),
    )
    on_error: str = parameter(
        "reject",
        Constraint(
            "For documents that cannot be read: reject lists them in rejected.jsonl, and a file that cannot be read to "
            "its end makes the result incomplete (exit code 1); skip lists them and accepts that; stop ends the run at "
            "the first.",
            str,
            choices=("reject", "skip", "stop"),
        ),
    )
