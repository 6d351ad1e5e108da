"""The settings of a run and of an index: the document that stays, the use of the machine, the
storage.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Literal, get_args

from neardup.errors import OutputError, SettingError
from neardup.files import AnyPath
from neardup.settings.constraints import (
    Constraint,
    Validated,
    check_path,
    collection,
    constraints_of,
    flag_of,
    parameter,
)
from neardup.settings.passages import MIN_LENGTH

Storage = Literal["fingerprints", "features", "text"]
GradeName = Literal["copies", "versions"]
GRADES: dict[GradeName, str] = {"copies": "copies", "versions": "versions of one work"}
"""The grades of a sweep, with their titles."""
MIN_PRECISION = Constraint(
    "The least estimated precision of suggested settings; the lower end of its interval is at "
    "least half of it. If none reach it, the given settings stay.",
    low=0.0,
    high=0.95,
)


@dataclass(frozen=True, kw_only=True)
class IndexSettings(Validated):
    """The storage of an index: the parts of a document that it keeps, and its expected size."""

    storage: Storage = parameter(
        "features",
        "The data stored for a kept document: its fingerprint (fingerprints; SimHash with "
        "confirm=hamming), also the hashes of its features, which confirm duplicates exactly "
        "(features), or its text, in a third of the space and twice the time (text).",
        choices=get_args(Storage),
    )
    max_bucket_size: int | None = parameter(
        None,
        ("The maximum number of documents in a bucket. Default: as in dedup."),
        int,
        low=1,
        high=100_000,
    )
    expected_documents: int = parameter(
        10_000_000,
        "The number of documents for which the blocks of SimHash are chosen.",
        low=1,
        high=2**32 - 1,
    )
    track_sources: bool = parameter(
        False,
        "Store the source of each document: answers and the export then have the columns sources "
        "and num_sources.",
    )
    track_dates: bool = parameter(
        False,
        "Store the source and the date of each document: answers and the export then also have the "
        "columns first_date and last_date, as strings.",
    )


Keep = Literal["first", "last", "longest", "shortest", "source", "none"] | str
Linkage = Literal["sieve", "connected"]
LINKAGES = list(get_args(Linkage))
"""The values of `linkage`; a rule that is registered adds its own, see decide.rules."""
OutputKind = Literal["kept", "mask", "ids", "annotated", "removed"]
INPUT = "input"
"""The value of `sources` that names no column, but the inputs."""
Language = Literal["en", "zh"]
OnError = Literal["reject", "skip", "stop"]
TextUnit = Literal["auto", "line", "file"]
Quote = Literal["double", "none"]
Engine = Literal["local", "spark"]


@dataclass(frozen=True, kw_only=True)
class SelectionSettings(Validated):
    """The kept document of a cluster, and the limits of the search."""

    keep: Keep = parameter(
        "first",
        "The document of a cluster to keep: by position, length in UTF-8 bytes, a column of "
        "numbers or dates, or the order of the inputs (source). Later ones, after commas, decide "
        "ties. longest:3 keeps three of a cluster; none keeps no document that has a "
        "near-duplicate.",
        choices=get_args(get_args(Keep)[0]),
        prefixes=("max:", "min:"),
        counted=get_args(get_args(Keep)[0])[:-1],
        is_list=True,
    )
    within: str | None = parameter(
        None,
        "Compare only documents with the same value in this column, such as a language or a site.",
        str,
        sentinels=("COLUMN",),
    )
    linkage: Linkage = parameter(
        "sieve",
        "Remove each document that is similar to a kept one (sieve), or all but one of each chain "
        "of similar documents (connected).",
        choices=LINKAGES,
    )
    max_bucket_size: int | None = parameter(
        None,
        "The maximum number of documents in a bucket; later ones are left out, which keeps the "
        "work linear on boilerplate. Default: 64 in a band (1,000 in a search for all pairs), "
        "1,000 with one fingerprint, 10,000 with containment.",
        int,
        low=1,
        high=100_000,
    )
    recall_sample: int = parameter(
        0,
        (
            "Compare this number of sampled documents exactly with all others, to measure the "
            "recall."
        ),
        low=0,
        high=100_000,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if "none" in self.keep.split(","):
            # Without a document that stays, the words after it would decide nothing.
            if self.keep != "none":
                raise SettingError(
                    "keep='none' keeps no copy, and there is nothing to choose: got "
                    f"{self.keep!r}. Use keep='none' (--keep none) alone."
                )
            if self.linkage == "sieve":
                # The sieve always keeps the first document of a cluster.
                object.__setattr__(self, "linkage", "connected")

    @property
    def copies(self) -> int:
        """The documents of a cluster that stay, 0 for keep="none"."""
        return split_copies(self.keep)[1]

    def refuse_copies(self, command: str) -> None:
        """Raise SettingError unless one document of a cluster stays."""
        if self.copies != 1:
            raise SettingError(
                f"{command} keeps one document of each cluster: got keep={self.keep!r}. Set "
                "another order, such as keep='first' (--keep first), or use dedup."
            )


def split_copies(keep: str) -> tuple[str, int]:
    """Return `keep` as an order, and the number of documents of a cluster that stay.

    Examples
    --------
    >>> split_copies("max:stars,longest:3")
    ('max:stars,longest', 3)
    >>> split_copies("none")
    ('first', 0)
    """
    order, copies = constraints_of(SelectionSettings)["keep"].without_count(keep)
    return ("first", 0) if keep == "none" else (order, copies or 1)


@dataclass(frozen=True, kw_only=True)
class GroupSettings(Validated):
    """The documents that are kept or removed together."""

    group_by: str | None = parameter(
        None,
        "Keep or remove all documents with the same value in this column together, such as the "
        "files of a repository; folder:1 is the first folder below the input. Writes "
        "groups.parquet.",
        str,
        sentinels=("COLUMN",),
    )
    group_share: float = parameter(
        0.5,
        (
            "Remove a group if at least this share of its documents are near-duplicates of "
            "documents in kept groups."
        ),
        exclusive_min=0,
        high=1,
    )

    def refuse(self, selection: SelectionSettings, output: OutputSettings) -> None:
        """Raise SettingError if whole groups cannot be decided about with other settings."""
        if self.group_by is None:
            # Without groups it would have no effect.
            if self.group_share != 0.5:
                raise SettingError(
                    "group_share is of the documents of a group: got "
                    f"group_share={self.group_share} without group_by. Name the column "
                    "(--group-by), or leave group_share (--group-share) out."
                )
            return
        others = {
            "keep": (selection.keep, selection.copies == 1),  # first: "none" sets linkage
            "linkage": (selection.linkage, selection.linkage == "sieve"),
            "passages": (output.passages, output.passages is None),
            # With the column of the groups, no two groups would be compared.
            "within": (selection.within, selection.within != self.group_by),
            "write": (output.write, output.write != "annotated"),
            "count_by": (output.count_by, output.count_by is None),
        }
        for option, (value, fits) in others.items():
            if not fits:
                raise SettingError(
                    f"group_by keeps or removes whole groups, which {option} does not allow for: "
                    f"got {option}={value!r} with group_by={self.group_by!r}. Leave {option} "
                    f"({flag_of(option)}) or group_by (--group-by) out."
                )


@dataclass(frozen=True, kw_only=True)
class OutputSettings(Validated):
    """The output and the counts of a run."""

    write: OutputKind = parameter(
        "kept",
        "The output besides removed.parquet: the kept documents in the format of the input (kept), "
        "true or false for each input row (mask), the kept ids (ids), all documents with the "
        "columns duplicate_of, similarity, cluster and duplicates (annotated), or nothing "
        "(removed).",
        choices=get_args(OutputKind),
    )
    passages: int | None = parameter(
        None,
        (
            "Then cut passages of at least N characters that kept documents repeat; see neardup "
            "passages."
        ),
        int,
        low=MIN_LENGTH,
        high=100_000,
    )
    count_by: str | None = parameter(
        None,
        (
            "Count removed documents by the values of this column, such as a source. Default: the "
            "column of within."
        ),
        str,
        sentinels=("COLUMN",),
    )
    sources: str | None = parameter(
        None,
        "Add the columns sources and num_sources to kept rows: the values of this column (input: "
        "the names of the inputs) in the row and in the rows removed for it.",
        str,
        sentinels=("COLUMN",),
    )
    dates: str | None = parameter(
        None,
        "Add the columns first_seen and last_seen to kept rows: the least and the greatest value "
        "of this column, of dates or numbers, in the row and in the rows removed for it.",
        str,
        sentinels=("COLUMN",),
    )
    lang: Language = parameter(
        "en",
        (
            "The language of output: English, or simplified Chinese, the default of commands in a "
            "Chinese locale."
        ),
        choices=get_args(Language),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        for option in ("sources", "dates"):
            value = getattr(self, option)
            if value is not None and self.write != "kept":
                raise SettingError(
                    f"{option} adds columns to kept rows: got {option}={value!r} with "
                    f"write={self.write!r}. Use write='kept' (--write kept), or leave {option} "
                    f"(--{option}) out."
                )


@dataclass(frozen=True, kw_only=True)
class EarlierSettings(Validated):
    """The earlier collection, or the index, of a run that removes documents."""

    against: Any = collection(
        "An earlier collection whose documents are always kept; repeatable. Or an index."
    )
    update: bool = parameter(
        False,
        "Add the documents to the index of --against once the output is complete. A repeated run "
        "writes the same output.",
    )


@dataclass(frozen=True, kw_only=True)
class KnownSettings(Validated):
    """The known documents of a run that clusters."""

    against: Any = collection(
        "Known documents; a document joins the cluster of the known one that it is similar to. "
        "Repeatable."
    )


_OVERWRITE = "Replace an existing output once the new one is complete."


@dataclass(frozen=True, kw_only=True)
class FileSettings(Validated):
    """The file that a run writes."""

    output: AnyPath | None = parameter(
        None,
        "The file to write: .parquet, .jsonl or .csv.",
        object,
        sentinels=("FILE",),
        alias="-o",
    )
    overwrite: bool = parameter(False, _OVERWRITE)


@dataclass(frozen=True, kw_only=True)
class FolderSettings(Validated):
    """The folder that a run writes, and its temporary files."""

    output: AnyPath | None = parameter(
        None,
        "The folder to write, or its address on remote storage, such as s3://bucket/out, with "
        "rejected.jsonl, report.json and report.html. It appears once it is complete.",
        object,
        sentinels=("DIR",),
        alias="-o",
    )
    overwrite: bool = parameter(False, _OVERWRITE)
    resume: bool = parameter(False, "Continue an interrupted run.")
    scratch: AnyPath | None = parameter(
        None,
        "The folder for temporary files; use a fast local disk. Default: next to the output; for "
        "remote output the temporary folder of the system.",
        object,
        sentinels=("DIR",),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.output is not None:
            check_path("An output", self.output, OutputError)
        is_path = isinstance(self.scratch, (str, os.PathLike))
        if self.scratch is not None and not (is_path and os.path.isdir(self.scratch)):
            raise SettingError(
                f"scratch must be an existing folder: got {self.scratch!s:.200}. Create it, or "
                "change scratch (--scratch)."
            )
        if self.resume and self.output is None:
            raise SettingError(
                "resume continues the run of an output folder: got resume=True without output. "
                "Pass output."
            )


@dataclass(frozen=True, kw_only=True)
class EngineSettings(Validated):
    """The engine of a run."""

    engine: Engine = parameter(
        "local",
        "Run on this machine, or with the same result on Spark (pip install 'neardup[spark]').",
        choices=get_args(Engine),
    )
    master: str | None = parameter(
        None,
        (
            "The cluster of --engine spark, such as spark://host:7077. Default: of spark-submit, "
            "or this machine."
        ),
        str,
        sentinels=("URL",),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.engine == "local" and self.master is not None:
            raise SettingError(
                f"master (--master) is the address of a cluster: got master={self.master!r} with "
                "engine='local'. Add engine='spark' (--engine spark), or leave it out."
            )


MAX_DOCUMENT_BYTES = 64 << 20
"""Default limit of the size of a document."""
MAX_UNREADABLE = 0.01
"""Default share of the rows of a file that may be unreadable."""


@dataclass(frozen=True, kw_only=True)
class RunSettings(Validated):
    """The use of the machine by a run. Nothing here changes the result."""

    threads: int | None = parameter(
        None,
        "Worker threads. Default: one per available processor.",
        int,
        low=1,
        high=1024,
    )
    batch_rows: int | None = parameter(
        None, "Documents per batch. Default: chosen from their size.", int, low=1, high=1_000_000
    )
    cache_bytes: int | None = parameter(
        None,
        "Bytes of memory for caching input documents; inputs that do not fit are read again when "
        "needed. Default: a quarter of the memory.",
        int,
        low=0,
        high=1 << 50,
    )
    on_error: OnError = parameter(
        "reject",
        "Documents that cannot be read: reject lists them in rejected.jsonl, and exits with 1 if a "
        "file cannot be read to its end; skip only lists them; stop ends the run at the first.",
        choices=get_args(OnError),
    )
    max_unreadable: float = parameter(
        MAX_UNREADABLE,
        "The share of unreadable rows above which a file counts as not read to its end.",
        low=0.0,
        high=1.0,
    )
